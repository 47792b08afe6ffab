// The model itself, at once for many rows (hard_scores, predict) and step by step for one (Walker).
// A tree ensemble sees cells, not values: a value becomes the code of its cell once, and every
// comparison after that is one of integers.
#include <algorithm>
#include <cstdlib>

#include "treefocus/kernels.hpp"

namespace treefocus {

namespace {

// use(i, scores) hears, in some thread, of the scores of every row.
template <class Use>
void for_each_scores(const Forest& forest, const double* rows, std::int64_t n, int n_threads,
                     Control& control, const Use& use) {
    const std::int32_t d = forest.n_features;
    parallel_for(
        n, 256, n_threads, control,
        [&](std::int64_t begin, std::int64_t end) {
            std::vector<std::int32_t> codes(d), leaves(forest.n_trees());
            std::vector<double> scores(forest.n_scores());
            for (std::int64_t i = begin; i < end; ++i) {
                for (std::int32_t f = 0; f < d; ++f) codes[f] = forest.code(f, rows[i * d + f]);
                for (std::int32_t tree = 0; tree < forest.n_trees(); ++tree)
                    leaves[tree] = forest.leaf_below(forest.tree_start[tree], codes.data());
                forest.scores_of_leaves(leaves.data(), scores.data());
                use(i, scores);
            }
        },
        true);
}

}  // namespace

void hard_scores(const Forest& forest, const double* rows, std::int64_t n, double* scores,
                 int n_threads, Control& control) {
    for_each_scores(forest, rows, n, n_threads, control,
                    [&](std::int64_t i, const std::vector<double>& own) {
                        std::copy(own.begin(), own.end(), scores + i * forest.n_scores());
                    });
}

void predict(const Forest& forest, const double* rows, std::int64_t n, std::int32_t* predicted,
             int n_threads, Control& control) {
    for_each_scores(forest, rows, n, n_threads, control,
                    [&](std::int64_t i, const std::vector<double>& scores) {
                        predicted[i] = forest.decide(scores.data());
                    });
}

// A walker remembers the leaf of every tree. When a feature crosses a threshold, only the nodes
// that use it can turn, and of those only the ones on a current path: a node is on it if its run of
// leaves holds the tree's leaf. Sums are updated by difference; where two classes are too close for
// that, they are added up again in the model's own order.

constexpr std::int32_t kFar = 16;   // thresholds a tree
constexpr std::int64_t kPath = 16;  // nodes from a root to a leaf, about

Walker::Walker(const Forest& forest)
    : forest_(forest),
      codes_(forest.n_features),
      leaves_(forest.n_trees()),
      scores_(forest.n_scores()) {}

void Walker::place(const double* point) {
    for (std::int32_t f = 0; f < forest_.n_features; ++f) codes_[f] = forest_.code(f, point[f]);
    place_codes(codes_.data());
}

void Walker::place_codes(const std::int32_t* codes) {
    ++n_turns_;
    n_looks_ += kPath * forest_.n_trees();
    if (codes != codes_.data()) std::copy(codes, codes + forest_.n_features, codes_.begin());
    for (std::int32_t tree = 0; tree < forest_.n_trees(); ++tree)
        leaves_[tree] = forest_.leaf_below(forest_.tree_start[tree], codes_.data());
    resum();
}

void Walker::resum() {
    forest_.scores_of_leaves(leaves_.data(), scores_.data());
    n_moves_ = 0;
}

// Whose scores a tree adds to: its member's, or those of the forest itself; null for nobody's.
const Forest* Walker::rule_of(std::int32_t tree) const {
    if (forest_.members.empty()) return &forest_;
    const std::int32_t member = forest_.member_of_tree[tree];
    return member < 0 ? nullptr : &forest_.members[member];
}

// A node off the path of its tree changes nothing, whichever way it would turn.
void Walker::turn(std::int32_t node) {
    const std::int32_t k = forest_.n_outputs;
    std::int32_t& leaf = leaves_[forest_.tree_of_node[node]];
    if (leaf < forest_.first_leaf[node] || leaf >= forest_.end_leaf[node]) return;
    const std::int32_t other = forest_.leaf_below(node, codes_.data());
    if (other == leaf) return;
    const double* before = &forest_.leaf_value[static_cast<std::size_t>(leaf) * k];
    const double* after = &forest_.leaf_value[static_cast<std::size_t>(other) * k];
    if (const Forest* rule = rule_of(forest_.tree_of_node[node])) {
        double* scores = &scores_[rule->first_score];
        if (!rule->voices.empty()) {
            const std::int32_t m = forest_.voice_of_tree[forest_.tree_of_node[node]];
            if (m >= 0) scores[m] += (after[0] - before[0]) / rule->voices[m].divisor;
        } else
            for (std::int32_t j = 0; j < rule->n_outputs; ++j)
                scores[j] += (after[j] - before[j]) / rule->divisor;
    }
    leaf = other;
    ++n_moves_;
    ++n_turns_;
}

void Walker::move_code(std::int32_t feature, std::int32_t code) {
    const std::int32_t from = codes_[feature], first = forest_.start[feature];
    if (code == from) return;
    codes_[feature] = code;
    // A long way is shorter through the trees than over their thresholds.
    const bool is_far =
        !forest_.has_sets[feature] && std::abs(code - from) > kFar * forest_.n_trees();
    if (from == kMissing || code == kMissing || is_far) return place_codes(codes_.data());
    if (forest_.has_sets[feature])
        for (std::int32_t i = forest_.set_user_start[feature];
             i < forest_.set_user_start[feature + 1]; ++i)
            turn(forest_.set_user_node[i]);
    else
        for (std::int32_t t = std::min(from, code); t < std::max(from, code); ++t) cross(first + t);
    // Updates by difference lose a little each time; before that can add up to the tolerance, anew.
    if (n_moves_ > 100000) resum();
}

void Walker::cross(std::int32_t threshold) {
    n_looks_ += forest_.user_start[threshold + 1] - forest_.user_start[threshold];
    for (std::int32_t i = forest_.user_start[threshold]; i < forest_.user_start[threshold + 1]; ++i)
        turn(forest_.user_node[i]);
}

// Values move a little at a time in a descent, so that the neighbouring thresholds are looked at in
// place of a search among all of them.
void Walker::move(std::int32_t feature, double value) {
    const double* threshold = forest_.threshold.data() + forest_.start[feature];
    const std::int32_t last = forest_.n_codes(feature) - 1;
    const double seen = forest_.seen(value);
    std::int32_t code = codes_[feature];
    if (code == kMissing || std::isnan(value) || forest_.has_sets[feature])
        return move_code(feature, forest_.code(feature, value));
    while (code < last && threshold[code] < seen) ++code;
    while (code > 0 && threshold[code - 1] >= seen) --code;
    move_code(feature, code);
}

// The running sums decide where the margin is larger than what they can be off; else the model's
// own.
std::int32_t Walker::predicted() {
    if (forest_.safety(scores_.data()) < 1.0) resum();
    return forest_.decide(scores_.data());
}

}  // namespace treefocus
