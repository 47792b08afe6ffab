// How the bound of price.hpp is kept.
//
// The share that tree m pays for feature f in cell c is theta_m(c) = mean(c) - r_m(c). mean is kept
// per cell, r_m per interval of the tree (it cannot tell cells within one apart), and what follows
// from the two is refreshed bottom up:
//   share_     per interval, the least theta of its cells in the box;
//   paid_      per leaf, the sum over the tree's axes of the least share that the leaf allows;
//   total      the price's part, and per tree the least paid - lambda * weight of its open leaves.
// Taking the least at each level can only lower the bound, so that it holds for every point of the
// box.
#include "treefocus/price.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace treefocus {

// The first price is looked for on this line, around the dearest cell for the largest leaf.
constexpr double kLeastPrice = 1e-4, kMostPrice = 1e2;
constexpr int kPriceSteps = 25;

TreeGrids::TreeGrids(const Forest& forest, const LeafBoxes& boxes)
    : axis_start{0}, span_start{0}, axes_of(forest.n_features) {
    std::vector<std::int32_t> axis_of(forest.n_features, -1);
    span.reserve(boxes.side.size());
    span_start.reserve(boxes.start.size());
    for (std::int32_t tree = 0; tree < forest.n_trees(); ++tree) {
        for (std::int32_t node = forest.tree_start[tree]; node < forest.tree_start[tree + 1];
             ++node)
            if (const std::int32_t f = forest.feature[node];
                // A number below the tree's first axis is left over from an earlier tree: f is new
                // to this one.
                f >= 0 && axis_of[f] < axis_start.back()) {
                axis_of[f] = static_cast<std::int32_t>(axis.size());
                add_axis(forest, tree, f);
            }
        const std::int32_t root = forest.tree_start[tree];
        for (std::int32_t leaf = forest.first_leaf[root]; leaf < forest.end_leaf[root]; ++leaf) {
            for (std::int32_t i = boxes.start[leaf]; i < boxes.start[leaf + 1]; ++i)
                add_spans(forest, boxes, boxes.side[i], axis_of[boxes.side[i].feature]);
            span_start.push_back(static_cast<std::int32_t>(span.size()));
        }
        axis_start.push_back(static_cast<std::int32_t>(axis.size()));
    }
}

void TreeGrids::add_axis(const Forest& forest, std::int32_t tree, std::int32_t f) {
    axes_of[f].push_back(static_cast<std::int32_t>(axis.size()));
    tree_of_axis.push_back(tree);
    const std::int32_t first = static_cast<std::int32_t>(interval_low.size());
    if (forest.has_sets[f]) add_classes(forest, tree, f);
    else add_ranges(forest, tree, f);
    axis.push_back({f, first, static_cast<std::int32_t>(interval_low.size()) - first});
}

// Intervals between the tree's own thresholds, in order; together they cover the feature.
void TreeGrids::add_ranges(const Forest& forest, std::int32_t tree, std::int32_t f) {
    std::vector<std::int32_t> cuts;
    for (std::int32_t node = forest.tree_start[tree]; node < forest.tree_start[tree + 1]; ++node)
        if (forest.feature[node] == f) cuts.push_back(forest.code_split[node]);
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    cuts.push_back(forest.n_codes(f) - 1);
    std::int32_t from = 0;
    for (std::int32_t cut : cuts) {
        interval_low.push_back(from);
        interval_high.push_back(cut);
        from = cut + 1;
    }
}

// Cells are alike to the tree if every one of its sets on the feature has both of them or neither.
void TreeGrids::add_classes(const Forest& forest, std::int32_t tree, std::int32_t f) {
    std::vector<std::int32_t> sets;
    for (std::int32_t node = forest.tree_start[tree]; node < forest.tree_start[tree + 1]; ++node)
        if (forest.feature[node] == f) sets.push_back(forest.set_of_node[node]);
    std::map<std::vector<bool>, std::vector<std::int32_t>> classes;
    for (std::int32_t code = 0; code < forest.n_codes(f); ++code) {
        std::vector<bool> side;
        for (std::int32_t set : sets) side.push_back(forest.set_has(set, code));
        classes[side].push_back(code);
    }
    for (const auto& [side, cells] : classes) {
        interval_low.push_back(static_cast<std::int32_t>(class_cell.size()));
        class_cell.insert(class_cell.end(), cells.begin(), cells.end());
        interval_high.push_back(static_cast<std::int32_t>(class_cell.size()) - 1);
    }
}

// A leaf's side as runs of intervals: one run of a range, as many as it takes of classes, whose
// order means nothing.
void TreeGrids::add_spans(const Forest& forest, const LeafBoxes& boxes, const Side& side,
                          std::int32_t a) {
    const std::int32_t first = axis[a].first_interval, n = axis[a].n_intervals;
    // Intervals stand in order, and a leaf's range holds each whole or not at all.
    if (!forest.has_sets[side.feature]) {
        const auto low = interval_low.begin() + first, high = interval_high.begin() + first;
        const auto from = std::lower_bound(low, low + n, side.low) - low,
                   end = std::upper_bound(high, high + n, side.high) - high;
        if (from < end)
            span.push_back(
                {a, static_cast<std::int32_t>(from), static_cast<std::int32_t>(end) - 1});
        return;
    }
    const auto has = [&](std::int32_t j) {
        return boxes.set_has(side.set(), class_cell[interval_low[first + j]]);
    };
    for (std::int32_t j = 0; j < n; ++j) {
        if (!has(j)) continue;
        std::int32_t end = j;
        while (end + 1 < n && has(end + 1)) ++end;
        span.push_back({a, j, end});
        j = end;
    }
}

Price::Price(const Forest& forest, const LeafBoxes& boxes, const TreeGrids& grids)
    : forest_(forest),
      boxes_(boxes),
      grids_(grids),
      share_(grids.interval_low.size()),
      axis_min_(grids.axis.size()),
      paid_(forest.n_leaves()),
      is_open_(forest.n_leaves()) {}

template <class Visit>
void Price::for_interval(const TreeGrids::Axis& axis, std::int32_t j, const Visit& visit) const {
    const std::int32_t f = axis.feature;
    if (forest_.has_sets[f]) {
        for (std::int32_t i = grids_.interval_low[j]; i <= grids_.interval_high[j]; ++i)
            if (box_->has(forest_, f, grids_.class_cell[i])) visit(grids_.class_cell[i]);
        return;
    }
    const std::int32_t from = std::max(grids_.interval_low[j], box_->low[f]);
    const std::int32_t to = std::min(grids_.interval_high[j], box_->high[f]);
    for (std::int32_t c = from; c <= to; ++c) visit(c);
}

// share_ and axis_min_ of one axis, from mean_ and outside_.
void Price::refresh_axis(std::int32_t a) {
    const auto& axis = grids_.axis[a];
    axis_min_[a] = 0.0;
    if (!state_->is_active[a]) {
        std::fill_n(share_.begin() + axis.first_interval, axis.n_intervals, 0.0);
        return;
    }
    const double* mean = state_->mean.data() + choices_->at(axis.feature, 0);
    double smallest = kInfinity;
    for (std::int32_t j = axis.first_interval; j < axis.first_interval + axis.n_intervals; ++j) {
        double best = kInfinity;
        for_interval(axis, j, [&](std::int32_t c) { best = std::min(best, mean[c]); });
        share_[j] = best - state_->outside[j];
        if (best < kInfinity) smallest = std::min(smallest, share_[j]);
    }
    // What a leaf pays that says nothing about the feature: it may be anywhere in the box.
    axis_min_[a] = smallest;
}

// paid_ of a tree's leaves: every axis pays its least share, a leaf's own axes what its intervals
// allow.
void Price::refresh_tree(std::int32_t tree) {
    // Summed over all axes of the tree first; then a leaf only corrects those on its path.
    double everywhere = 0.0;
    for (std::int32_t a = grids_.axis_start[tree]; a < grids_.axis_start[tree + 1]; ++a)
        everywhere += axis_min_[a];
    const std::int32_t root = forest_.tree_start[tree];
    for (std::int32_t leaf = forest_.first_leaf[root]; leaf < forest_.end_leaf[root]; ++leaf) {
        if (!is_open_[leaf]) continue;
        double sum = everywhere;
        for (std::int32_t i = grids_.span_start[leaf]; i < grids_.span_start[leaf + 1];) {
            const std::int32_t a = grids_.span[i].axis;
            const double* share = share_.data() + grids_.axis[a].first_interval;
            double best = kInfinity;
            for (; i < grids_.span_start[leaf + 1] && grids_.span[i].axis == a; ++i)
                for (std::int32_t j = grids_.span[i].low; j <= grids_.span[i].high; ++j)
                    best = std::min(best, share[j]);
            if (state_->is_active[a]) sum += best - axis_min_[a];
        }
        paid_[leaf] = sum;
    }
}

// The bound for a price, shares as they are.
// A minimum of linear functions for every tree, so concave in lambda.
double Price::total(double lambda) const {
    double sum = lambda * test_->need + free_cost_;
    for (std::int32_t tree = 0; tree < forest_.n_trees(); ++tree) {
        const std::int32_t root = forest_.tree_start[tree];
        double best = kInfinity;
        for (std::int32_t leaf = forest_.first_leaf[root]; leaf < forest_.end_leaf[root]; ++leaf)
            if (is_open_[leaf]) best = std::min(best, paid_[leaf] - lambda * test_->weight[leaf]);
        sum += best;
    }
    return sum;
}

// One step of min-marginal averaging. Before it, the trees' best values with f in cell c are r_m(c)
// + theta_m(c), and the bound has the sum of their least, each over its own c. After it all of them
// are q(c) / n, so that the trees agree on the cell and the bound has min over c of q(c), which is
// no less. An interval that no open leaf reaches gets r = 0: shares add up to the cost whatever r
// is.
void Price::sweep(std::int32_t f, const std::vector<double>& cost) {
    std::int32_t n_active = 0;
    const std::int32_t base = choices_->at(f, 0);
    double* mean = state_->mean.data() + base;
    for (std::int32_t a : grids_.axes_of[f]) n_active += state_->is_active[a];
    if (n_active == 0) return;
    // mean holds q while the trees add their part, and is divided at the end.
    for_cells(forest_, *box_, f, [&](std::int32_t c) { mean[c] = cost[base + c]; });
    for (std::int32_t a : grids_.axes_of[f]) {
        if (!state_->is_active[a]) continue;
        const auto& axis = grids_.axis[a];
        double* outside = state_->outside.data() + axis.first_interval;
        best_outside(a);
        for (std::int32_t j = 0; j < axis.n_intervals; ++j) {
            outside[j] = best_[j] == kInfinity ? 0.0 : best_[j];
            for_interval(axis, axis.first_interval + j,
                         [&](std::int32_t c) { mean[c] += outside[j]; });
        }
    }
    for_cells(forest_, *box_, f, [&](std::int32_t c) { mean[c] /= n_active; });
    for (std::int32_t a : grids_.axes_of[f]) {
        if (!state_->is_active[a]) continue;
        refresh_axis(a);
        refresh_tree(grids_.tree_of_axis[a]);
    }
}

// best_[j]: the best that an axis' tree can do outside the axis if the axis is in interval j.
void Price::best_outside(std::int32_t a) {
    const auto& axis = grids_.axis[a];
    const double* share = share_.data() + axis.first_interval;
    best_.assign(axis.n_intervals, kInfinity);
    const std::int32_t root = forest_.tree_start[grids_.tree_of_axis[a]];
    for (std::int32_t leaf = forest_.first_leaf[root]; leaf < forest_.end_leaf[root]; ++leaf) {
        if (!is_open_[leaf]) continue;
        std::int32_t begin = grids_.span_start[leaf];
        const std::int32_t last = grids_.span_start[leaf + 1];
        while (begin < last && grids_.span[begin].axis != a) ++begin;
        std::int32_t end = begin;
        // A leaf without the axis on its path takes its least share, and fits every interval of it.
        double own = begin == last ? axis_min_[a] : kInfinity;
        for (; end < last && grids_.span[end].axis == a; ++end)
            for (std::int32_t j = grids_.span[end].low; j <= grids_.span[end].high; ++j)
                own = std::min(own, share[j]);
        // What the leaf pays on the other axes, and what it earns.
        const double rest = paid_[leaf] - own - state_->lambda * test_->weight[leaf];
        if (begin == last)
            for (double& best : best_) best = std::min(best, rest);
        for (std::int32_t i = begin; i < end; ++i)
            for (std::int32_t j = grids_.span[i].low; j <= grids_.span[i].high; ++j)
                best_[j] = std::min(best_[j], rest);
    }
}

// Equal shares among the trees whose thresholds cut the box, and a price to go with them.
void Price::start(const std::vector<double>& cost) {
    State& state = *state_;
    state.mean.assign(forest_.n_cells(), 0.0);
    state.outside.assign(grids_.interval_low.size(), 0.0);
    state.is_active.assign(grids_.axis.size(), 0);
    for (std::int32_t f = 0; f < forest_.n_features; ++f) {
        if (choices_->home[f] == kMissing) continue;
        std::int32_t n_active = 0;
        for (std::int32_t a : grids_.axes_of[f]) {
            const auto& axis = grids_.axis[a];
            // A tree that sees only one interval of the box has no say in where the feature goes,
            // and pays nothing.
            std::int32_t n_met = 0;  // intervals with a cell in the box
            for (std::int32_t j = axis.first_interval;
                 j < axis.first_interval + axis.n_intervals && n_met < 2; ++j) {
                bool is_met = false;
                for_interval(axis, j, [&](std::int32_t) { is_met = true; });
                n_met += is_met;
            }
            // Stays as it is for all boxes inside: an axis that they leave one interval of still
            // pays its share.
            state.is_active[a] = n_met >= 2;
            n_active += state.is_active[a];
        }
        const std::int32_t base = choices_->at(f, 0);
        if (n_active > 0)
            for_cells(forest_, *box_, f,
                      [&](std::int32_t c) { state.mean[base + c] = cost[base + c] / n_active; });
    }
}

// Golden section on log(lambda), shares as they are: the bound is concave in lambda.
// The present price is kept unless a better one is found, so that the bound never falls.
void Price::search_price(double from, double to, int steps) {
    constexpr double ratio = 0.6180339887498949;
    double a = std::log(from), b = std::log(to);
    double x1 = b - ratio * (b - a), x2 = a + ratio * (b - a);
    double f1 = total(std::exp(x1)), f2 = total(std::exp(x2));
    for (int i = 0; i < steps; ++i) {
        if (f1 < f2) {
            a = x1, x1 = x2, f1 = f2, x2 = a + ratio * (b - a);
            f2 = total(std::exp(x2));
        } else {
            b = x2, x2 = x1, f2 = f1, x1 = b - ratio * (b - a);
            f1 = total(std::exp(x1));
        }
    }
    if (std::max(f1, f2) > total(state_->lambda)) state_->lambda = std::exp(f1 > f2 ? x1 : x2);
}

// The state is the outer box's: its shares are valid here as they are, and with fewer cells and
// leaves every minimum is no lower, so that the bound starts where the outer one ended or above.
// Sweeps and prices take turns until a turn closes less than a hundredth of the gap to the limit.
double Price::bound(const Choices& choices, const std::vector<double>& cost, const Box& box,
                    const ScoreTest& test, double limit, int sweeps, State& state,
                    const std::function<bool()>& is_late) {
    choices_ = &choices;
    test_ = &test;
    box_ = &box;
    state_ = &state;
    const std::int32_t d = forest_.n_features;
    const bool is_new = state.lambda <= 0.0;
    if (is_new) start(cost);
    // Such a feature pays its cheapest cell in the box, whatever the trees choose.
    free_cost_ = 0.0;  // of features that no tree pays for
    for (std::int32_t f = 0; f < d; ++f) {
        if (choices.home[f] == kMissing) continue;
        const auto& axes = grids_.axes_of[f];
        if (std::none_of(axes.begin(), axes.end(),
                         [&](std::int32_t a) { return state.is_active[a]; }))
            free_cost_ += cost[choices.at(
                f, forest_.has_sets[f] ? choices.closest(f, box)
                                       : std::clamp(choices.home[f], box.low[f], box.high[f]))];
    }
    for (std::int32_t leaf = 0; leaf < forest_.n_leaves(); ++leaf)
        is_open_[leaf] = choices.is_reachable(boxes_, leaf, box);
    for (std::int32_t a = 0; a < static_cast<std::int32_t>(grids_.axis.size()); ++a)
        refresh_axis(a);
    for (std::int32_t tree = 0; tree < forest_.n_trees(); ++tree) refresh_tree(tree);
    // The first price: the dearest cell for the largest leaf has the right units, the line search
    // does the rest.
    if (is_new) {
        double size = 0.0, weight = 0.0;
        for (std::int32_t f = 0; f < d; ++f)
            if (choices.home[f] != kMissing)
                for_cells(forest_, box, f,
                          [&](std::int32_t c) { size = std::max(size, cost[choices.at(f, c)]); });
        for (std::int32_t leaf = 0; leaf < forest_.n_leaves(); ++leaf)
            weight = std::max(weight, std::abs(test.weight[leaf]));
        if (!(size > 0.0) || !(weight > 0.0) || !std::isfinite(size)) return 0.0;
        state.lambda = size / weight;
        search_price(state.lambda * kLeastPrice, state.lambda * kMostPrice, kPriceSteps);
    }
    double best = total(state.lambda);
    for (int i = 0; i < sweeps && best < limit && !is_late(); ++i) {
        for (std::int32_t f = 0; f < d && !is_late(); ++f)
            if (choices.home[f] != kMissing) sweep(f, cost);
        search_price(state.lambda / 1.5, state.lambda * 1.5, 6);
        const double now = total(state.lambda);
        const bool is_stalled = now < best + 0.01 * (limit - best);
        best = now;
        if (is_stalled && i >= 2) break;
    }
    constant_ = state.lambda * test.need + free_cost_;
    return best;
}

// An answer below limit has sum of (lambda * weight - paid) > constant - limit: a score test.
// Leaves closed here are closed in every box inside.
void Price::export_to(ScoreTest& test) const {
    test.weight.resize(forest_.n_leaves());
    for (std::int32_t leaf = 0; leaf < forest_.n_leaves(); ++leaf)
        test.weight[leaf] =
            is_open_[leaf] ? state_->lambda * test_->weight[leaf] - paid_[leaf] : -kInfinity;
    test.sort(forest_);
}

}  // namespace treefocus
