// How the bound of price.hpp is kept.
//
// The share that tree m pays for feature f in cell c is theta_m(c) = mean(c) - r_m(c). mean is kept
// per cell, r_m per interval of the tree (it cannot tell cells within one apart), and what follows
// from the two is refreshed bottom up:
//   share_     per interval, the least theta of its cells in the box;
//   own_       per leaf and axis, the least share of the intervals that the leaf allows;
//   value_     per leaf, the sum of those over the tree's axes, less what the leaf is worth;
//   total      the prices' part, and per tree the least value of its leaves.
// Taking the least at each level can only lower the bound, so that it holds for every point of the
// box. Sweeps update values by differences; before a bound is told they are added up anew.
#include "treefocus/price.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace treefocus {

namespace {

// The first price is looked for on this line, around the dearest cell for the largest leaf.
constexpr double kLeastPrice = 1e-4, kMostPrice = 1e2;
constexpr int kPriceSteps = 20, kFewSteps = 4;

}  // namespace

double Price::State::bytes() const {
    return 8.0 * lambda.size() + 12.0 * axis.size() + 8.0 * from.size() + 200.0;
}

template <class Visit>
void Price::for_axis(std::int32_t slot, const Visit& visit) const {
    const std::int32_t f = crop_->slot_feature[slot];
    if (class_start_[slot] >= 0) {
        std::int32_t i = class_start_[slot];
        for_cells(choices_->forest, *box_, f, [&](std::int32_t c) { visit(c, class_of_[i++]); });
        return;
    }
    for (std::int32_t j = axis_start_[slot]; j < axis_start_[slot + 1]; ++j) {
        const std::int32_t end = j + 1 < axis_start_[slot + 1] ? from_[j + 1] - 1 : box_->high[f];
        for (std::int32_t c = from_[j]; c <= end; ++c) visit(c, j);
    }
}

// Entries by axis, then the intervals between the cuts that the axis' leaves make inside the box.
void Price::cut_axes() {
    const std::int32_t n_slots = crop_->n_slots();
    entry_start_.assign(n_slots + 1, 0);
    for (const std::int32_t slot : crop_->slot) ++entry_start_[slot + 1];
    for (std::int32_t i = 0; i < n_slots; ++i) entry_start_[i + 1] += entry_start_[i];
    entry_.resize(crop_->side.size());
    cuts_.assign(entry_start_.begin(), entry_start_.end());
    for (std::int32_t open = 0; open < crop_->n_open(); ++open)
        for (std::int32_t i = crop_->start[open]; i < crop_->start[open + 1]; ++i)
            entry_[cuts_[crop_->slot[i]]++] = {open, crop_->side[i].low, crop_->side[i].high};
    axis_start_.assign(1, 0);
    from_.clear();
    class_of_.clear();
    class_start_.assign(n_slots, -1);
    for (std::int32_t slot = 0; slot < n_slots; ++slot) {
        if (choices_->forest.has_sets[crop_->slot_feature[slot]]) cut_classes(slot);
        else cut_ranges(slot);
        axis_start_.push_back(static_cast<std::int32_t>(from_.size()));
    }
    const std::size_t n = from_.size();
    outside_.assign(n, 0.0);
    share_.assign(n, 0.0);
    own_.assign(entry_.size(), 0.0);
    axis_min_.assign(n_slots, 0.0);
    n_looks_ += static_cast<std::int64_t>(4 * entry_.size() + n);
}

// Ranges become runs of intervals; ends beyond the box are its ends.
void Price::cut_ranges(std::int32_t slot) {
    const std::int32_t f = crop_->slot_feature[slot], low = box_->low[f], high = box_->high[f];
    cuts_.assign(1, low);
    for (std::int32_t i = entry_start_[slot]; i < entry_start_[slot + 1]; ++i) {
        if (entry_[i].low > low) cuts_.push_back(entry_[i].low);
        if (entry_[i].high < high) cuts_.push_back(entry_[i].high + 1);
    }
    std::sort(cuts_.begin(), cuts_.end());
    cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
    const std::int32_t first = static_cast<std::int32_t>(from_.size());
    const auto interval_of = [&](std::int32_t code) {
        return first +
               static_cast<std::int32_t>(std::upper_bound(cuts_.begin(), cuts_.end(), code) -
                                         cuts_.begin()) -
               1;
    };
    for (std::int32_t i = entry_start_[slot]; i < entry_start_[slot + 1]; ++i) {
        entry_[i].low = interval_of(std::max(entry_[i].low, low));
        entry_[i].high = interval_of(std::min(entry_[i].high, high));
    }
    from_.insert(from_.end(), cuts_.begin(), cuts_.end());
}

// Cells are alike to the tree if every one of its sets on the feature has both of them or neither.
// A leaf's set is then all of a class or nothing of it; entries keep the set's number.
void Price::cut_classes(std::int32_t slot) {
    const std::int32_t f = crop_->slot_feature[slot];
    class_start_[slot] = static_cast<std::int32_t>(class_of_.size());
    std::map<std::vector<bool>, std::int32_t> classes;
    for_cells(choices_->forest, *box_, f, [&](std::int32_t c) {
        std::vector<bool> sides;
        for (std::int32_t i = entry_start_[slot]; i < entry_start_[slot + 1]; ++i)
            sides.push_back(crop_->whole->set_has(entry_[i].low - kSet, c));
        const auto [found, is_new] =
            classes.try_emplace(sides, static_cast<std::int32_t>(from_.size()));
        if (is_new) from_.push_back(c);
        class_of_.push_back(found->second);
    });
}

// Both lists stand by feature and tree. An interval takes what was said of its first cell.
void Price::recall(const State& around) {
    std::size_t at = 0;
    for (std::int32_t slot = 0; slot < crop_->n_slots(); ++slot) {
        const std::int32_t f = crop_->slot_feature[slot], tree = crop_->slot_tree[slot];
        const auto is_before = [&](const State::Axis& axis) {
            return axis.feature != f ? axis.feature < f : axis.tree < tree;
        };
        while (at < around.axis.size() && is_before(around.axis[at])) ++at;
        if (at == around.axis.size()) break;
        if (around.axis[at].feature != f || around.axis[at].tree != tree) continue;
        const auto begin = around.from.begin() + around.axis[at].first,
                   end = at + 1 < around.axis.size()
                             ? around.from.begin() + around.axis[at + 1].first
                             : around.from.end();
        for (std::int32_t j = axis_start_[slot]; j < axis_start_[slot + 1]; ++j) {
            const auto behind = std::upper_bound(begin, end, from_[j]);
            if (behind != begin) outside_[j] = around.outside[behind - 1 - around.from.begin()];
        }
    }
}

Price::State Price::state() const {
    State state;
    state.lambda = lambda_;
    for (std::int32_t slot = 0; slot < crop_->n_slots(); ++slot)
        state.axis.push_back(
            {crop_->slot_feature[slot], crop_->slot_tree[slot], axis_start_[slot]});
    state.from = from_;
    state.outside.assign(outside_.begin(), outside_.end());
    // Classes of cells come in the order of their first cells, as ranges do.
    return state;
}

double Price::own_share(const Entry& entry, std::int32_t slot) const {
    double best = kInfinity;
    if (entry.low >= kSet) {
        for (std::int32_t j = axis_start_[slot]; j < axis_start_[slot + 1]; ++j)
            if (crop_->whole->set_has(entry.low - kSet, from_[j])) best = std::min(best, share_[j]);
        return best;
    }
    for (std::int32_t j = entry.low; j <= entry.high; ++j) best = std::min(best, share_[j]);
    return best;
}

// q(c) / n, from the present r.
void Price::refresh_means(std::int32_t f) {
    const std::int32_t base = choices_->at(f, 0),
                       n = crop_->slot_start[f + 1] - crop_->slot_start[f];
    double* mean = mean_.data() + base;
    const double* cost = cost_->data() + base;
    for_cells(choices_->forest, *box_, f, [&](std::int32_t c) { mean[c] = cost[c]; });
    for (std::int32_t slot = crop_->slot_start[f]; slot < crop_->slot_start[f + 1]; ++slot)
        for_axis(slot, [&](std::int32_t c, std::int32_t j) { mean[c] += outside_[j]; });
    for_cells(choices_->forest, *box_, f, [&](std::int32_t c) { mean[c] /= n; });
}

// share_, axis_min_ and own_ of one axis, from mean_ and outside_.
void Price::refresh_axis(std::int32_t slot) {
    const std::int32_t f = crop_->slot_feature[slot];
    const double* mean = mean_.data() + choices_->at(f, 0);
    for (std::int32_t j = axis_start_[slot]; j < axis_start_[slot + 1]; ++j) share_[j] = kInfinity;
    for_axis(slot,
             [&](std::int32_t c, std::int32_t j) { share_[j] = std::min(share_[j], mean[c]); });
    double smallest = kInfinity;
    for (std::int32_t j = axis_start_[slot]; j < axis_start_[slot + 1]; ++j)
        smallest = std::min(smallest, share_[j] -= outside_[j]);
    // What a leaf pays that says nothing about the feature: it may be anywhere in the box.
    axis_min_[slot] = smallest;
    for (std::int32_t i = entry_start_[slot]; i < entry_start_[slot + 1]; ++i)
        own_[i] = own_share(entry_[i], slot);
}

// value_ of all leaves: every axis of the tree pays its least share, a leaf's own axes what its
// intervals allow.
void Price::refresh_values() {
    std::vector<double> everywhere(crop_->n_trees(), 0.0);
    for (std::int32_t slot = 0; slot < crop_->n_slots(); ++slot)
        everywhere[crop_->slot_tree[slot]] += axis_min_[slot];
    for (std::int32_t tree = 0; tree < crop_->n_trees(); ++tree)
        for (std::int32_t i = crop_->tree_start[tree]; i < crop_->tree_start[tree + 1]; ++i) {
            double worth = 0.0;
            for (std::size_t k = 0; k < lambda_.size(); ++k)
                if (lambda_[k] > 0.0) worth += lambda_[k] * weight_[k][i];
            value_[i] = everywhere[tree] - worth;
        }
    for (std::int32_t slot = 0; slot < crop_->n_slots(); ++slot)
        for (std::int32_t i = entry_start_[slot]; i < entry_start_[slot + 1]; ++i)
            value_[entry_[i].open] += own_[i] - axis_min_[slot];
    n_looks_ += static_cast<std::int64_t>(entry_.size() + value_.size());
}

// The bound, prices and shares as they are.
double Price::total() const {
    double sum = free_cost_;
    for (std::size_t k = 0; k < lambda_.size(); ++k) sum += lambda_[k] * goal_->tests[k]->need;
    for (std::int32_t tree = 0; tree < crop_->n_trees(); ++tree) {
        double best = kInfinity;
        for (std::int32_t i = crop_->tree_start[tree]; i < crop_->tree_start[tree + 1]; ++i)
            best = std::min(best, value_[i]);
        sum += best;
    }
    return sum;
}

// best_[j]: the best that an axis' tree can do outside the axis if the axis is in interval j.
void Price::find_outside(std::int32_t slot) {
    const std::int32_t tree = crop_->slot_tree[slot], first = axis_start_[slot],
                       n = axis_start_[slot + 1] - first;
    const std::int32_t begin = crop_->tree_start[tree], end = crop_->tree_start[tree + 1];
    best_.assign(n, kInfinity);
    for (std::int32_t i = entry_start_[slot]; i < entry_start_[slot + 1]; ++i) {
        const Entry& entry = entry_[i];
        has_axis_[entry.open] = 1;
        const double rest = value_[entry.open] - own_[i];
        if (entry.low >= kSet) {
            for (std::int32_t j = 0; j < n; ++j)
                if (crop_->whole->set_has(entry.low - kSet, from_[first + j]))
                    best_[j] = std::min(best_[j], rest);
            continue;
        }
        for (std::int32_t j = entry.low; j <= entry.high; ++j)
            best_[j - first] = std::min(best_[j - first], rest);
    }
    // A leaf without the axis on its path takes its least share, and fits every interval of it.
    double anywhere = kInfinity;
    for (std::int32_t i = begin; i < end; ++i)
        if (!has_axis_[i]) anywhere = std::min(anywhere, value_[i]);
    anywhere -= axis_min_[slot];
    for (double& best : best_) best = std::min(best, anywhere);
}

// One step of min-marginal averaging. Before it, the trees' best values with f in cell c are r_m(c)
// + theta_m(c), and the bound has the sum of their least, each over its own c. After it all of them
// are q(c) / n, so that the trees agree on the cell and the bound has min over c of q(c), which is
// no less. An interval that no open leaf reaches gets r = 0: shares add up to the cost whatever r
// is.
void Price::sweep(std::int32_t f) {
    const std::int32_t first = crop_->slot_start[f], last = crop_->slot_start[f + 1];
    for (std::int32_t slot = first; slot < last; ++slot) {
        find_outside(slot);
        const std::int32_t tree = crop_->slot_tree[slot];
        // Out of the values for now: what the axis pays comes back with its new shares.
        for (std::int32_t i = crop_->tree_start[tree]; i < crop_->tree_start[tree + 1]; ++i)
            if (!has_axis_[i]) value_[i] -= axis_min_[slot];
        for (std::int32_t i = entry_start_[slot]; i < entry_start_[slot + 1]; ++i)
            value_[entry_[i].open] -= own_[i], has_axis_[entry_[i].open] = 0;
        for (std::size_t j = 0; j < best_.size(); ++j)
            outside_[axis_start_[slot] + j] = best_[j] == kInfinity ? 0.0 : best_[j];
        n_looks_ += 2 * (crop_->tree_start[tree + 1] - crop_->tree_start[tree]) +
                    4 * (entry_start_[slot + 1] - entry_start_[slot]);
    }
    refresh_means(f);
    for (std::int32_t slot = first; slot < last; ++slot) {
        refresh_axis(slot);
        const std::int32_t tree = crop_->slot_tree[slot];
        for (std::int32_t i = entry_start_[slot]; i < entry_start_[slot + 1]; ++i)
            value_[entry_[i].open] += own_[i], has_axis_[entry_[i].open] = 1;
        for (std::int32_t i = crop_->tree_start[tree]; i < crop_->tree_start[tree + 1]; ++i)
            if (!has_axis_[i]) value_[i] += axis_min_[slot];
        for (std::int32_t i = entry_start_[slot]; i < entry_start_[slot + 1]; ++i)
            has_axis_[entry_[i].open] = 0;
        n_looks_ += box_->high[f] - box_->low[f];
    }
}

// The bound if one price changes, less what does not, and its slope there: a minimum of linear
// functions for every tree, so concave in the price.
double Price::at_price(std::size_t test, double change, double* slope) const {
    const std::vector<double>& weight = weight_[test];
    double sum = change * goal_->tests[test]->need;
    *slope = goal_->tests[test]->need;
    for (std::int32_t tree = 0; tree < crop_->n_trees(); ++tree) {
        double best = kInfinity;
        std::int32_t at = crop_->tree_start[tree];
        for (std::int32_t i = at; i < crop_->tree_start[tree + 1]; ++i)
            if (const double value = value_[i] - change * weight[i]; value < best)
                best = value, at = i;
        sum += best;
        *slope -= weight[at];
    }
    return sum;
}

// Looks for the best price of a test between two, shares as they are: where the tangents at the
// ends meet, or in the middle if that is an end. The present price is kept unless a better one is
// found, so that the bound never falls. Returns the gain.
double Price::search_price(std::size_t test, double least, double most, int steps) {
    const double now = lambda_[test];
    double slope = 0.0;
    const double before = at_price(test, 0.0, &slope);
    double best = before, best_change = 0.0;
    struct End {
        double change, value, slope;
    };
    End low{least - now, 0.0, 0.0}, high{most - now, 0.0, 0.0};
    low.value = at_price(test, low.change, &low.slope);
    high.value = at_price(test, high.change, &high.slope);
    (slope > 0.0 ? low : high) = {0.0, before, slope};
    n_looks_ += 3 * crop_->n_open();
    for (int i = 0; i < steps; ++i) {
        for (const End& end : {low, high})
            if (end.value > best) best = end.value, best_change = end.change;
        if (!(low.slope > 0.0) || !(high.slope < 0.0)) break;
        double at = (high.value - low.value + low.slope * low.change - high.slope * high.change) /
                    (low.slope - high.slope);
        const double room = 0.1 * (high.change - low.change);
        if (!(at > low.change + room) || !(at < high.change - room))
            at = 0.5 * (low.change + high.change);
        End middle{at, 0.0, 0.0};
        middle.value = at_price(test, at, &middle.slope);
        n_looks_ += crop_->n_open();
        if (middle.value > best) best = middle.value, best_change = at;
        (middle.slope > 0.0 ? low : high) = middle;
    }
    if (best_change == 0.0) return 0.0;
    lambda_[test] = now + best_change;
    for (std::int32_t i = 0; i < crop_->n_open(); ++i) value_[i] -= best_change * weight_[test][i];
    return best - before;
}

// The dearest cell for the largest leaf has the right units, the line search does the rest. Of
// several tests the one that gives the best bound alone gets a price, the others wait at 0.
void Price::start_prices() {
    double size = 0.0;
    for (std::int32_t f = 0; f < choices_->forest.n_features; ++f)
        if (choices_->home[f] != kMissing)
            for_cells(choices_->forest, *box_, f,
                      [&](std::int32_t c) { size = std::max(size, (*cost_)[choices_->at(f, c)]); });
    double most = 0.0;
    for (std::size_t k = 0; k < lambda_.size(); ++k) {
        double weight = 0.0;
        for (const double one : weight_[k]) weight = std::max(weight, std::abs(one));
        if (!(size > 0.0) || !(weight > 0.0)) continue;
        const std::vector<double> before = value_;
        const double gain =
            search_price(k, size / weight * kLeastPrice, size / weight * kMostPrice, kPriceSteps);
        value_ = before;
        if (gain > most) {
            most = gain;
            const double found = lambda_[k];
            std::fill(lambda_.begin(), lambda_.end(), 0.0);
            lambda_[k] = found;
        } else {
            lambda_[k] = 0.0;
        }
    }
    refresh_values();
}

void Price::move_prices() {
    double sum = 0.0;
    for (const double lambda : lambda_) sum += lambda;
    for (std::size_t k = 0; k < lambda_.size(); ++k) {
        if (lambda_[k] > 0.0 && lambda_.size() == 1) {
            search_price(k, lambda_[k] / 1.5, lambda_[k] * 1.5, kFewSteps);
            continue;
        }
        // A rival without a price gets one only if the present choice of leaves lets it win.
        double slope = 0.0;
        at_price(k, 0.0, &slope);
        n_looks_ += crop_->n_open();
        if (lambda_[k] > 0.0 || slope > 0.0)
            search_price(k, lambda_[k] / 1.5 - (lambda_[k] < 0.05 * sum ? lambda_[k] / 1.5 : 0.0),
                         lambda_[k] * 1.5 + 0.1 * sum, kFewSteps);
    }
}

double Price::bound(const Choices& choices, const std::vector<double>& cost, const Box& box,
                    const Crop& crop, const Goal& goal, double limit, int sweeps,
                    const State* around, const std::function<bool()>& is_late) {
    choices_ = &choices;
    cost_ = &cost;
    box_ = &box;
    crop_ = &crop;
    goal_ = &goal;
    const std::size_t n_open = crop.leaf.size();
    lambda_.assign(goal.tests.size(), 0.0);
    weight_.resize(goal.tests.size());
    for (std::size_t k = 0; k < weight_.size(); ++k) {
        weight_[k].resize(n_open);
        for (std::size_t i = 0; i < n_open; ++i)
            weight_[k][i] = goal.tests[k]->weight[crop.leaf[i]];
    }
    value_.assign(n_open, 0.0);
    has_axis_.assign(n_open, 0);
    told_ = -kInfinity;
    if (!is_finite()) return 0.0;
    mean_.resize(choices.forest.n_cells());
    cut_axes();
    if (around) recall(*around), lambda_ = around->lambda;
    // Features that no tree splits inside the box pay their cheapest cell, whatever trees choose.
    const auto cheapest = [&](std::int32_t f) {
        double least = kInfinity;
        for_cells(choices.forest, box, f,
                  [&](std::int32_t c) { least = std::min(least, cost[choices.at(f, c)]); });
        return least;
    };
    free_cost_ = 0.0;
    for (std::int32_t f = 0; f < choices.forest.n_features; ++f) {
        if (choices.home[f] == kMissing) continue;
        if (has_mean(f)) refresh_means(f);
        else free_cost_ += cheapest(f);
    }
    for (std::int32_t slot = 0; slot < crop.n_slots(); ++slot) refresh_axis(slot);
    refresh_values();
    if (!around) start_prices();
    return improve(limit, sweeps, is_late);
}

// A cell that costs infinitely much has no share to speak of.
bool Price::is_finite() const {
    bool is_finite = true;
    for (std::int32_t f = 0; f < choices_->forest.n_features; ++f)
        if (choices_->home[f] != kMissing)
            for_cells(choices_->forest, *box_, f, [&](std::int32_t c) {
                is_finite = is_finite && std::isfinite((*cost_)[choices_->at(f, c)]);
            });
    return is_finite;
}

// Sweeps and prices take turns until a turn closes less than a hundredth of the gap to the limit.
double Price::improve(double limit, int sweeps, const std::function<bool()>& is_late) {
    double best = total();
    for (int i = 0; i < sweeps && best < limit && !is_late(); ++i) {
        for (std::int32_t f = 0; f < choices_->forest.n_features && !is_late(); ++f)
            if (choices_->home[f] != kMissing && has_mean(f)) sweep(f);
        move_prices();
        const double now = total();
        const bool is_stalled = now < best + 0.01 * (limit - best);
        best = now;
        if (is_stalled && i >= 2) break;
    }
    refresh_values();
    constant_ = free_cost_;
    for (std::size_t k = 0; k < lambda_.size(); ++k)
        constant_ += lambda_[k] * goal_->tests[k]->need;
    return told_ = total();
}

// An answer below limit has sum of -value > constant - limit: a score test.
void Price::export_to(Ranking& ranking) const {
    ranking.weight.resize(value_.size());
    for (std::size_t i = 0; i < value_.size(); ++i) ranking.weight[i] = -value_[i];
    ranking.sort(*crop_);
}

}  // namespace treefocus
