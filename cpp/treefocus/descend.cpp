// FOCUS, the loop.
//
// A chunk of rows goes through the iterations in step, so that the rows whose prediction has not
// flipped yet can be packed into full vectors for the soft pass; a flipped row takes no soft pass,
// only the pull of the distance. Rows do not see each other: the chunk a row stands in changes
// nothing in its answer.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "treefocus/kernels.hpp"
#include "treefocus/rules.hpp"

namespace treefocus {

namespace {

constexpr std::int64_t kChunk = 64;
constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;  // Adam's, as everywhere

// One row on its way: y_ is where Adam has it, in the space of the distance and between the values
// a column can hold; point_ is what would be told to the user, clipped and on the grain, and that
// is what the model is asked and the distance is measured at. The best flipped point of the way is
// kept.
class Row {
public:
    Row(const Forest& forest, const Distance& distance, const Batch& batch, std::int64_t i)
        : forest_(forest),
          origin_(batch.origin[i]),
          target_(batch.target[i]),
          d_(forest.n_features),
          x_(batch.rows + i * d_),
          low_(batch.low + i * d_),
          high_(batch.high + i * d_),
          batch_(batch),
          distance_(distance),
          walker_(forest),
          start_(d_),
          y_(d_),
          mean_(d_),
          square_(d_),
          point_(d_),
          measured_(d_),
          best_(d_, NAN) {
        for (std::int32_t f = 0; f < d_; ++f) {
            // From here on differences from the row are scaled, not values: what does not change
            // costs exactly 0.
            start_[f] = (x_[f] - batch.offset[f]) / batch.scale[f];
            point_[f] = batch.first[i * d_ + f];
            y_[f] = std::isnan(point_[f]) ? NAN : start_[f] + (point_[f] - x_[f]) / batch.scale[f];
            // Stays where it starts, and costs nothing while the others move.
            if (forest.has_sets[f]) {
                start_[f] = y_[f] = (point_[f] - batch.offset[f]) / batch.scale[f];
                continue;
            }
            if (point_[f] != x_[f] && !std::isnan(point_[f]))
                point_[f] = std::clamp(snap(point_[f], batch.grain_of(f)), low_[f], high_[f]);
        }
        if (batch.rules) rules_.emplace(*batch.rules, x_);
        walker_.place(point_.data());
        // From which side an interval is entered.
        is_low_ = walker_.score() < forest.cut;
        look();
    }

    bool is_flipped() const { return is_flipped_; }
    const double* y() const { return y_.data(); }
    double best_distance() const { return best_distance_; }
    const double* best() const { return best_.data(); }
    // The class the soft forest is to reach (sign -1) or leave (sign 1). Into an interval, a score
    // goes up or down.
    std::int32_t label() const {
        if (forest_.decision == Decision::between) return 1;
        if (forest_.decision == Decision::likely) return forest_.favoured;
        return target_ >= 0 ? target_ : origin_;
    }
    std::int8_t sign() const {
        const bool is_wanted = target_ >= 0 ? target_ == 1 : origin_ == 0;
        if (forest_.decision == Decision::between) return is_low_ == is_wanted ? -1 : 1;
        if (forest_.decision == Decision::likely) return is_wanted ? -1 : 1;
        return target_ >= 0 ? -1 : 1;
    }

    // One Adam step along gradient (the prediction's, null if flipped) + beta * the distance's.
    // Adam moves every feature by about `rate`, whatever the size of its slope. A missing value and
    // one of a set have no slope, and stay.
    void step(const double* gradient, std::size_t stride, const Descent& descent, double rate,
              double* scratch) {
        distance_.gradient(start_.data(), y_.data(), scratch);
        for (std::int32_t f = 0; f < d_; ++f) {
            if (std::isnan(y_[f]) || forest_.has_sets[f]) continue;
            double g = descent.beta * scratch[f];
            if (gradient) g += gradient[f * stride];
            g *= descent.gradient_scale;
            mean_[f] = kBeta1 * mean_[f] + (1.0 - kBeta1) * g;
            square_[f] = kBeta2 * square_[f] + (1.0 - kBeta2) * g * g;
            y_[f] -= rate * mean_[f] / (std::sqrt(square_[f]) + kEpsilon);
            place(f);
        }
        look();
    }

private:
    // Clip to the box, in the user's units, and tell the walker.
    void place(std::int32_t f) {
        const double scale = batch_.scale[f];
        double value = x_[f] + (y_[f] - start_[f]) * scale;
        if (value < low_[f] || value > high_[f]) {
            value = std::clamp(value, low_[f], high_[f]);
            y_[f] = start_[f] + (value - x_[f]) / scale;
        }
        // y_ stays between the values, or steps smaller than the grain would never add up.
        if (batch_.kind_of(f) != Kind::any && value != x_[f])
            value = std::clamp(snap(value, batch_.grain_of(f)), low_[f], high_[f]);
        point_[f] = value;
        walker_.move(f, value);
    }

    // The model's own answer, not the soft one's, says whether the row has flipped. The distance is
    // that of the point as it is told.
    void look() {
        const std::int32_t now = walker_.predicted();
        is_flipped_ = target_ >= 0 ? now == target_ : now != origin_ && now != forest_.disagreed();
        if (!is_flipped_) return;
        for (std::int32_t f = 0; f < d_; ++f)
            measured_[f] =
                forest_.has_sets[f] ? start_[f] : start_[f] + (point_[f] - x_[f]) / batch_.scale[f];
        const double distance = distance_.value(start_.data(), measured_.data());
        if (distance < best_distance_ &&
            (!rules_ || rules_->hold(walker_.codes(), point_.data()))) {
            best_distance_ = distance;
            best_ = point_;
        }
    }

    const Forest& forest_;
    std::int32_t origin_, target_, d_;
    const double *x_, *low_, *high_;
    const Batch& batch_;
    const Distance& distance_;
    std::optional<RowRules> rules_;
    Walker walker_;
    std::vector<double> start_, y_, mean_, square_, point_, measured_, best_;
    double best_distance_ = INFINITY;
    bool is_flipped_ = false, is_low_ = false;
};

}  // namespace

void descend(const Forest& forest, const SoftForest& soft, const Distance& distance,
             const Descent& descent, const Batch& batch, double* best, double* best_distance,
             double* trace, int n_threads, Control& control) {
    const std::int32_t d = forest.n_features;
    const std::int64_t chunk =
        std::clamp<std::int64_t>(batch.n / (4 * std::max(n_threads, 1)), kLanes, kChunk);
    parallel_for(batch.n, chunk, n_threads, control, [&](std::int64_t begin, std::int64_t end) {
        SoftBlock block(forest, soft);
        std::vector<Row> rows;
        rows.reserve(end - begin);
        for (std::int64_t i = begin; i < end; ++i) rows.emplace_back(forest, distance, batch, i);
        // Rows that have not flipped, packed anew in every iteration.
        std::vector<std::int64_t> active;
        std::vector<double> scratch(d);
        for (std::int32_t iteration = 1; iteration <= descent.iterations && !control.stop;
             ++iteration) {
            // Adam's bias correction, folded into the rate.
            const double rate = descent.alpha * std::sqrt(1.0 - std::pow(kBeta2, iteration)) /
                                (1.0 - std::pow(kBeta1, iteration));
            active.clear();
            for (std::size_t i = 0; i < rows.size(); ++i) {
                // The loss has done its work there; only the distance pulls, until the row falls
                // back over the border.
                if (rows[i].is_flipped()) rows[i].step(nullptr, 0, descent, rate, scratch.data());
                else active.push_back(i);
            }
            for (std::size_t first = 0; first < active.size(); first += kLanes) {
                for (int l = 0; l < kLanes; ++l) {
                    // A block that is not full repeats its last row, and does not use the result.
                    const Row& row = rows[active[std::min(first + l, active.size() - 1)]];
                    for (std::int32_t f = 0; f < d; ++f) block.z[f * kLanes + l] = row.y()[f];
                    block.label[l] = row.label();
                    block.sign[l] = row.sign();
                }
                block.run();
                for (int l = 0; l < kLanes && first + l < active.size(); ++l)
                    rows[active[first + l]].step(block.gradient.data() + l, kLanes, descent, rate,
                                                 scratch.data());
            }
            if (trace)
                for (std::int64_t i = begin; i < end; ++i)
                    trace[i * descent.iterations + iteration - 1] = rows[i - begin].best_distance();
        }
        for (std::int64_t i = begin; i < end; ++i) {
            best_distance[i] = rows[i - begin].best_distance();
            std::copy(rows[i - begin].best(), rows[i - begin].best() + d, best + i * d);
        }
    });
}

}  // namespace treefocus
