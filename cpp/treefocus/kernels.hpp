// Every kernel, with its shapes and its equation. Arrays are row-major and the caller's; n = rows,
// d = features.
#pragma once

#include <cstdint>
#include <utility>

#include "treefocus/forest.hpp"
#include "treefocus/parallel.hpp"

namespace treefocus {

// hard.cpp -- the model itself.
// scores[i] = (base + sum over trees of leaf_value[leaf of rows[i]]) / divisor; rows (n, d), scores
// (n, n_scores): of several members each adds up its own trees.
void hard_scores(const Forest& forest, const double* rows, std::int64_t n, double* scores,
                 int n_threads, Control& control);

// predicted[i] = the class that comes out of those scores; rows (n, d), predicted (n).
void predict(const Forest& forest, const double* rows, std::int64_t n, std::int32_t* predicted,
             int n_threads, Control& control);

// What the model says of one point, kept up to date while the point moves feature by feature.
class Walker {
public:
    explicit Walker(const Forest& forest);
    void place(const double* point);  // start anywhere
    void place_codes(const std::int32_t* codes);
    void move(std::int32_t feature, double value);  // one feature changes
    void move_code(std::int32_t feature, std::int32_t code);
    const std::int32_t* codes() const { return codes_.data(); }
    const std::int32_t* leaves() const { return leaves_.data(); }
    std::int32_t predicted();  // the class, exactly as hard_scores would decide
    // How many leaves have changed since the start.
    std::int64_t n_turns() const { return n_turns_; }
    // Nodes that were looked at since the last call.
    std::int64_t take_looks() { return std::exchange(n_looks_, 0); }
    // Of a model with one score, good to its tolerance.
    double score() const { return forest_.score(scores_.data()); }

private:
    void cross(std::int32_t threshold);
    void turn(std::int32_t node);  // the leaf below a node, if the point passes it
    void resum();
    const Forest* rule_of(std::int32_t tree) const;
    const Forest& forest_;
    std::vector<std::int32_t> codes_, leaves_;
    std::vector<double> scores_;  // running sums, good to the forest's tolerance
    std::int64_t n_moves_ = 0, n_turns_ = 0, n_looks_ = 0;
};

// soft.cpp -- the paper's differentiable copy.
// The soft forest works in the space in which distance is measured: threshold[t] is there, value
// (n_leaves, n_outputs) carries the tree weights, and only the first n_trees trees take part.
struct SoftForest {
    const double* threshold;  // (n_thresholds,)
    const double* value;      // (n_leaves, n_outputs)
    std::int32_t n_trees;
    double sigma, tau;
    // False: the score itself is the loss (the authors' program on a single tree).
    bool use_softmax;
};

// loss[i] = f~(label_i | z_i) if sign > 0, else 1 - f~(label_i | z_i), with
//   t~_left = t~_parent * sig(sigma (theta - z)), T~ = sum over leaves t~ * value,
//   f~ = softmax(tau * sum T~);
// gradient[i] = d loss / d z. z (n, d) with NaN where missing, label (n,), loss (n,),
// gradient (n, d).
void soft_loss(const Forest& forest, const SoftForest& soft, const double* z,
               const std::int32_t* label, const std::int8_t* sign, std::int64_t n, double* loss,
               double* gradient, int n_threads, Control& control);

// Rows are computed kLanes at a time, one vector lane each.
constexpr int kLanes = 8;

// Scratch of one thread for blocks of kLanes rows.
class SoftBlock {
public:
    SoftBlock(const Forest& forest, const SoftForest& soft);
    std::vector<double> z;         // (d, kLanes) in
    std::int32_t label[kLanes];    // in
    std::int8_t sign[kLanes];      // in
    double loss[kLanes];           // out
    std::vector<double> gradient;  // (d, kLanes) out
    void run();
    static double bytes(const Forest& forest);  // what a block takes, about

private:
    void activate();
    double slopes(int lane, double* slope) const;
    const Forest& forest_;
    const SoftForest& soft_;
    // Leaf values the loss needs: one difference for two classes, else one a class.
    std::int32_t n_columns_;
    std::vector<double> column_;         // (n_columns, n_leaves)
    std::vector<double> pull_, centre_;  // exp(sigma (theta - centre)) per slot, centre per feature
    // Per feature: sigma * its span of thresholds would overflow that product.
    std::vector<std::uint8_t> is_wide_;
    std::vector<double> left_;           // (n_slots, kLanes) probability of going left
    std::vector<double> value_, reach_;  // (largest tree, kLanes)
    std::vector<double> score_;          // (n_columns, kLanes)
    std::vector<double> part_;  // (n_columns, d, kLanes) gradient of each score, without sigma
};

// distance.cpp -- the distances FOCUS descends on, with gradients; z and y (d,).
enum class Metric {
    euclidean = 0,
    manhattan = 1,
    cosine = 2,
    mahalanobis = 3,
    mahalanobis_squared = 4
};

struct Distance {
    Metric metric;
    const double* weight;   // (d,)
    const double* inverse;  // (d, d), Mahalanobis only
    std::int32_t d;
    double value(const double* z, const double* y) const;
    // With respect to y; smooth at y = z.
    void gradient(const double* z, const double* y, double* out) const;
};

// descend.cpp -- FOCUS: Adam on loss + beta * distance from each row until the real model flips,
// and back.
struct Descent {
    double beta, alpha;
    std::int32_t iterations;
    double gradient_scale;  // 1, or 1 / n for the authors' batch mean
};

struct Rules;

// Which values a column can hold: any float64, float32 values, integers, a sorted list, or the
// numbers (begin + k * step) / divisor, which schema/steps.py has in Python.
enum class Kind : std::int8_t { any = 0, float32 = 1, integer = 2, listed = 3, stepped = 4 };
struct Grain {
    Kind kind;
    // The list; of steps begin, step, divisor, and 1 where they are float32 values.
    const double *first = nullptr, *last = nullptr;
    double up(double v) const;  // the next value not below, infinity if there is none
    double down(double v) const;
    double nearest(double v) const;
    bool is_fine() const { return kind == Kind::any || kind == Kind::float32; }

private:
    double multiple(double k) const;
    double step_down(double v) const;
};

// A batch of questions: rows (n, d), low and high (n, d) the box the answer must stay in, offset
// and scale (d,) from the user's units to the distance space, grain (d,) of Kind; origin (n,) the
// class to leave, target (n,) the class to reach or -1 for any other; first (n, d) where to start.
struct Batch {
    const double *rows, *low, *high, *offset, *scale;
    const std::int8_t* grain;
    const std::int32_t *origin, *target;
    const double* first;
    std::int64_t n;
    // Cells of the features that split by sets, in the features' order, for every row (n,
    // n_set_cells): the value that stands for the cell, and how far from the row it is, infinity
    // where it is not allowed.
    const double *set_value = nullptr, *set_delta = nullptr;
    // The values of listed columns, and what steps are counted by: list_start (d + 1,) into
    // list_value; is_strict (d,) the row's own value counts only if it is listed.
    const std::int32_t* list_start = nullptr;
    const double* list_value = nullptr;
    const std::uint8_t* is_strict = nullptr;
    const Rules* rules = nullptr;  // or none
    Kind kind_of(std::int32_t f) const { return static_cast<Kind>(grain[f]); }
    Grain grain_of(std::int32_t f) const {
        if (kind_of(f) != Kind::listed && kind_of(f) != Kind::stepped) return {kind_of(f)};
        return {kind_of(f), list_value + list_start[f], list_value + list_start[f + 1]};
    }
};

// best (n, d) the closest flipped point seen, best_distance (n,) infinity where none; trace (n,
// iterations) the best distance after each iteration, or null.
void descend(const Forest& forest, const SoftForest& soft, const Distance& distance,
             const Descent& descent, const Batch& batch, double* best, double* best_distance,
             double* trace, int n_threads, Control& control);

// nearest.cpp -- index (n, n_wanted): the examples (n_examples, d) with a wanted answer that are
// nearest to each row once they are brought into its box, the nearest first, -1 where there are no
// more. Manhattan distance; another category, and a value that becomes known or unknown where it
// may, count 1.
constexpr std::int8_t kCategory = 1, kMayBeMissing = 2;  // kind (d,); 0 for other numbers
void nearest(const Batch& batch, std::int32_t d, const std::int8_t* kind, const double* examples,
             const std::int32_t* answer, std::int64_t n_examples, std::int32_t n_wanted,
             std::int32_t* index, int n_threads, Control& control);

// The value nearest to this one that an answer may hold.
inline double snap(double value, const Grain& grain) {
    if (grain.kind == Kind::integer) return std::nearbyint(value);
    if (grain.kind == Kind::float32) return static_cast<double>(static_cast<float>(value));
    return grain.kind == Kind::any ? value : grain.nearest(value);
}

}  // namespace treefocus
