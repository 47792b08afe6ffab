#include "treefocus/price.hpp"

#include <algorithm>
#include <cmath>

namespace treefocus {

TreeGrids::TreeGrids(const Forest& forest, const LeafBoxes& boxes)
    : axis_start{0}, span_start{0}, axes_of(forest.n_features) {
    std::vector<std::int32_t> axis_of(forest.n_features, -1);
    for (std::int32_t tree = 0; tree < forest.n_trees(); ++tree) {
        std::vector<std::vector<std::int32_t>> cuts(forest.n_features);
        std::vector<std::int32_t> used;
        for (std::int32_t node = forest.tree_start[tree]; node < forest.tree_start[tree + 1]; ++node)
            if (const std::int32_t f = forest.feature[node]; f >= 0) {
                if (cuts[f].empty()) used.push_back(f);
                cuts[f].push_back(forest.code_split[node]);
            }
        for (std::int32_t f : used) {
            std::sort(cuts[f].begin(), cuts[f].end());
            cuts[f].erase(std::unique(cuts[f].begin(), cuts[f].end()), cuts[f].end());
            axis_of[f] = static_cast<std::int32_t>(axis.size());
            axes_of[f].push_back(axis_of[f]);
            tree_of_axis.push_back(tree);
            axis.push_back({f, static_cast<std::int32_t>(interval_low.size()), static_cast<std::int32_t>(cuts[f].size()) + 1});
            std::int32_t from = 0;
            for (std::int32_t cut : cuts[f]) {
                interval_low.push_back(from);
                interval_high.push_back(cut);
                from = cut + 1;
            }
            interval_low.push_back(from);
            interval_high.push_back(forest.n_codes(f) - 1);
        }
        const std::int32_t root = forest.tree_start[tree];
        for (std::int32_t leaf = forest.first_leaf[root]; leaf < forest.end_leaf[root]; ++leaf) {
            for (std::int32_t i = boxes.start[leaf]; i < boxes.start[leaf + 1]; ++i) {
                const Side& side = boxes.side[i];
                const auto& cut = cuts[side.feature];
                const auto below = [&](std::int32_t code) {  // how many cuts lie below the code
                    return static_cast<std::int32_t>(std::lower_bound(cut.begin(), cut.end(), code) - cut.begin());
                };
                span.push_back({axis_of[side.feature], below(side.low), below(side.high)});
            }
            span_start.push_back(static_cast<std::int32_t>(span.size()));
        }
        axis_start.push_back(static_cast<std::int32_t>(axis.size()));
    }
}

Price::Price(const Forest& forest, const LeafBoxes& boxes, const TreeGrids& grids)
    : forest_(forest), boxes_(boxes), grids_(grids), share_(grids.interval_low.size()),
      axis_min_(grids.axis.size()), paid_(forest.n_leaves()), is_open_(forest.n_leaves()) {}

// share_ and axis_min_ of one axis, from mean_ and outside_.
void Price::refresh_axis(std::int32_t a) {
    const auto& axis = grids_.axis[a];
    axis_min_[a] = 0.0;
    if (!state_->is_active[a]) {
        std::fill_n(share_.begin() + axis.first_interval, axis.n_intervals, 0.0);
        return;
    }
    const std::int32_t f = axis.feature;
    const double* mean = state_->mean.data() + choices_->at(f, 0);
    double smallest = kInfinity;
    for (std::int32_t j = axis.first_interval; j < axis.first_interval + axis.n_intervals; ++j) {
        const std::int32_t a_code = std::max(grids_.interval_low[j], (*low_)[f]);
        const std::int32_t b_code = std::min(grids_.interval_high[j], (*high_)[f]);
        double best = kInfinity;
        for (std::int32_t c = a_code; c <= b_code; ++c) best = std::min(best, mean[c]);
        share_[j] = best - state_->outside[j];
        if (best < kInfinity) smallest = std::min(smallest, share_[j]);
    }
    axis_min_[a] = smallest;
}

// paid_ of a tree's leaves: every axis pays its least share, a leaf's own axes what its intervals allow.
void Price::refresh_tree(std::int32_t tree) {
    double everywhere = 0.0;
    for (std::int32_t a = grids_.axis_start[tree]; a < grids_.axis_start[tree + 1]; ++a) everywhere += axis_min_[a];
    const std::int32_t root = forest_.tree_start[tree];
    for (std::int32_t leaf = forest_.first_leaf[root]; leaf < forest_.end_leaf[root]; ++leaf) {
        if (!is_open_[leaf]) continue;
        double sum = everywhere;
        for (std::int32_t i = grids_.span_start[leaf]; i < grids_.span_start[leaf + 1]; ++i) {
            const auto& span = grids_.span[i];
            if (!state_->is_active[span.axis]) continue;
            const double* share = share_.data() + grids_.axis[span.axis].first_interval;
            double best = share[span.low];
            for (std::int32_t j = span.low + 1; j <= span.high; ++j) best = std::min(best, share[j]);
            sum += best - axis_min_[span.axis];
        }
        paid_[leaf] = sum;
    }
}

// The bound for a price, shares as they are.
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

void Price::sweep(std::int32_t f, const std::vector<double>& cost) {
    std::int32_t n_active = 0;
    const std::int32_t base = choices_->at(f, 0), a_code = (*low_)[f], b_code = (*high_)[f];
    double* mean = state_->mean.data() + base;
    for (std::int32_t a : grids_.axes_of[f]) n_active += state_->is_active[a];
    if (n_active == 0) return;
    for (std::int32_t c = a_code; c <= b_code; ++c) mean[c] = cost[base + c];
    for (std::int32_t a : grids_.axes_of[f]) {
        if (!state_->is_active[a]) continue;
        const auto& axis = grids_.axis[a];
        double* outside = state_->outside.data() + axis.first_interval;
        const double* share = share_.data() + axis.first_interval;
        std::vector<double> best(axis.n_intervals, kInfinity);
        const std::int32_t root = forest_.tree_start[grids_.tree_of_axis[a]];
        for (std::int32_t leaf = forest_.first_leaf[root]; leaf < forest_.end_leaf[root]; ++leaf) {
            if (!is_open_[leaf]) continue;
            std::int32_t from = 0, to = axis.n_intervals - 1;
            double own = axis_min_[a];
            for (std::int32_t i = grids_.span_start[leaf]; i < grids_.span_start[leaf + 1]; ++i)
                if (grids_.span[i].axis == a) {
                    from = grids_.span[i].low, to = grids_.span[i].high;
                    own = share[from];
                    for (std::int32_t j = from + 1; j <= to; ++j) own = std::min(own, share[j]);
                    break;
                }
            const double rest = paid_[leaf] - own - state_->lambda * test_->weight[leaf];
            for (std::int32_t j = from; j <= to; ++j) best[j] = std::min(best[j], rest);
        }
        for (std::int32_t j = 0; j < axis.n_intervals; ++j) {
            outside[j] = best[j] == kInfinity ? 0.0 : best[j];
            const std::int32_t jl = std::max(grids_.interval_low[axis.first_interval + j], a_code);
            const std::int32_t jh = std::min(grids_.interval_high[axis.first_interval + j], b_code);
            for (std::int32_t c = jl; c <= jh; ++c) mean[c] += outside[j];
        }
    }
    for (std::int32_t c = a_code; c <= b_code; ++c) mean[c] /= n_active;
    for (std::int32_t a : grids_.axes_of[f]) {
        if (!state_->is_active[a]) continue;
        refresh_axis(a);
        refresh_tree(grids_.tree_of_axis[a]);
    }
}

// Equal shares among the trees whose thresholds cut the box, and a price to go with them.
void Price::start(const std::vector<double>& cost) {
    State& state = *state_;
    state.mean.assign(forest_.n_thresholds() + forest_.n_features, 0.0);
    state.outside.assign(grids_.interval_low.size(), 0.0);
    state.is_active.assign(grids_.axis.size(), 0);
    for (std::int32_t f = 0; f < forest_.n_features; ++f) {
        if (choices_->home[f] == kMissing) continue;
        std::int32_t n_active = 0;
        for (std::int32_t a : grids_.axes_of[f]) {
            const auto& axis = grids_.axis[a];
            for (std::int32_t j = axis.first_interval; j < axis.first_interval + axis.n_intervals - 1; ++j)
                if (grids_.interval_high[j] >= (*low_)[f] && grids_.interval_high[j] < (*high_)[f]) state.is_active[a] = 1;
            n_active += state.is_active[a];
        }
        const std::int32_t base = choices_->at(f, 0);
        for (std::int32_t c = (*low_)[f]; c <= (*high_)[f] && n_active; ++c) state.mean[base + c] = cost[base + c] / n_active;
    }
}

// Golden section on log(lambda), shares as they are: the bound is concave in lambda.
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

double Price::bound(const Choices& choices, const std::vector<double>& cost, const std::vector<std::int32_t>& low,
                    const std::vector<std::int32_t>& high, const ScoreTest& test, double limit, int sweeps, State& state,
                    const std::function<bool()>& is_late) {
    choices_ = &choices;
    test_ = &test;
    low_ = &low;
    high_ = &high;
    state_ = &state;
    const std::int32_t d = forest_.n_features;
    const bool is_new = state.lambda <= 0.0;
    if (is_new) start(cost);
    free_cost_ = 0.0;  // of features that no tree pays for
    for (std::int32_t f = 0; f < d; ++f) {
        if (choices.home[f] == kMissing) continue;
        const auto& axes = grids_.axes_of[f];
        if (std::none_of(axes.begin(), axes.end(), [&](std::int32_t a) { return state.is_active[a]; }))
            free_cost_ += cost[choices.at(f, std::clamp(choices.home[f], low[f], high[f]))];
    }
    for (std::int32_t leaf = 0; leaf < forest_.n_leaves(); ++leaf)
        is_open_[leaf] = choices.is_reachable(boxes_, leaf, low.data(), high.data());
    for (std::int32_t a = 0; a < static_cast<std::int32_t>(grids_.axis.size()); ++a) refresh_axis(a);
    for (std::int32_t tree = 0; tree < forest_.n_trees(); ++tree) refresh_tree(tree);
    if (is_new) {
        double size = 0.0, weight = 0.0;
        for (std::int32_t f = 0; f < d; ++f)
            if (choices.home[f] != kMissing)
                size = std::max({size, cost[choices.at(f, low[f])], cost[choices.at(f, high[f])]});
        for (std::int32_t leaf = 0; leaf < forest_.n_leaves(); ++leaf) weight = std::max(weight, std::abs(test.weight[leaf]));
        if (!(size > 0.0) || !(weight > 0.0) || !std::isfinite(size)) return 0.0;
        state.lambda = size / weight;
        search_price(state.lambda * 1e-4, state.lambda * 1e2, 25);
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

void Price::export_to(ScoreTest& test) const {
    test.weight.resize(forest_.n_leaves());
    for (std::int32_t leaf = 0; leaf < forest_.n_leaves(); ++leaf)
        test.weight[leaf] = is_open_[leaf] ? state_->lambda * test_->weight[leaf] - paid_[leaf] : -kInfinity;
    test.sort(forest_);
}

}  // namespace treefocus
