// How the bound of price.hpp is kept.
//
// The share that tree m pays for feature f in cell c is theta_m(c) = mean(c) - r_m(c). mean is kept
// per group of cells that no tree tells apart, r_m per interval of the tree (it cannot tell cells
// within one apart), and what follows from the two is refreshed bottom up:
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
constexpr std::int32_t kLeavesPerLook = 4;  // that are compared at once

}  // namespace

double Price::State::bytes() const {
    return 8.0 * lambda.size() + 12.0 * axis.size() + 8.0 * from.size() + 200.0;
}

template <class Visit>
void Price::for_axis(std::int32_t slot, const Visit& visit) const {
    const std::int32_t begin = axis_start_[slot], end = axis_start_[slot + 1];
    if (set_start_[slot] >= 0) {
        const std::int32_t n = n_groups(crop_->slot_feature[slot]);
        for (std::int32_t g = 0; g < n; ++g) visit(g, interval_of_[set_start_[slot] + g]);
        return;
    }
    const std::int32_t last = n_groups(crop_->slot_feature[slot]);
    for (std::int32_t j = begin; j < end; ++j) {
        const std::int32_t stop = j + 1 < end ? first_group_[j + 1] : last;
        for (std::int32_t g = first_group_[j]; g < stop; ++g) visit(g, j);
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
    interval_of_.clear();
    set_start_.assign(n_slots, -1);
    for (std::int32_t slot = 0; slot < n_slots; ++slot) {
        if (choices_->forest.has_sets[crop_->slot_feature[slot]]) cut_classes(slot);
        else cut_ranges(slot);
        axis_start_.push_back(static_cast<std::int32_t>(from_.size()));
    }
    group_cells();
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
    set_start_[slot] = static_cast<std::int32_t>(interval_of_.size());
    std::map<std::vector<bool>, std::int32_t> classes;
    for_cells(choices_->forest, *box_, f, [&](std::int32_t c) {
        std::vector<bool> sides;
        for (std::int32_t i = entry_start_[slot]; i < entry_start_[slot + 1]; ++i)
            sides.push_back(crop_->whole->set_has(entry_[i].low - kSet, c));
        const auto [found, is_new] =
            classes.try_emplace(sides, static_cast<std::int32_t>(from_.size()));
        if (is_new) from_.push_back(c);
        interval_of_.push_back(found->second);
    });
}

// Cells between two cuts that no tree of the crop makes are one to all trees, and the cheapest of
// them stands for all. Cells of a set are groups of one.
void Price::group_cells() {
    const Forest& forest = choices_->forest;
    group_start_.assign(1, 0);
    group_from_.clear(), group_cost_.clear();
    first_group_.assign(from_.size(), 0);
    for (std::int32_t f = 0; f < forest.n_features; ++f) {
        const std::int32_t begin = axis_start_[crop_->slot_start[f]],
                           end = axis_start_[crop_->slot_start[f + 1]];
        const double* cost = cost_->data() + choices_->at(f, 0);
        if (choices_->home[f] != kMissing) {
            if (forest.has_sets[f]) {
                for_cells(forest, *box_, f, [&](std::int32_t c) {
                    group_from_.push_back(c), group_cost_.push_back(cost[c]);
                });
            } else {
                cuts_.assign(from_.begin() + begin, from_.begin() + end);
                cuts_.push_back(box_->low[f]);
                std::sort(cuts_.begin(), cuts_.end());
                cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
                const auto number = [&](std::int32_t code) {
                    return static_cast<std::int32_t>(
                        std::lower_bound(cuts_.begin(), cuts_.end(), code) - cuts_.begin());
                };
                for (std::int32_t j = begin; j < end; ++j) first_group_[j] = number(from_[j]);
                for (std::size_t k = 0; k < cuts_.size(); ++k) {
                    const std::int32_t stop =
                        k + 1 < cuts_.size() ? cuts_[k + 1] : box_->high[f] + 1;
                    double least = kInfinity;
                    for (std::int32_t c = cuts_[k]; c < stop; ++c) least = std::min(least, cost[c]);
                    group_from_.push_back(cuts_[k]), group_cost_.push_back(least);
                }
            }
        }
        group_start_.push_back(static_cast<std::int32_t>(group_from_.size()));
    }
    mean_.resize(group_from_.size());
    n_looks_ += static_cast<std::int64_t>(2 * from_.size() + group_from_.size());
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
    const std::int32_t base = group_start_[f], n = crop_->slot_start[f + 1] - crop_->slot_start[f];
    double* mean = mean_.data() + base;
    std::copy_n(group_cost_.begin() + base, n_groups(f), mean);
    for (std::int32_t slot = crop_->slot_start[f]; slot < crop_->slot_start[f + 1]; ++slot)
        for_axis(slot, [&](std::int32_t g, std::int32_t j) { mean[g] += outside_[j]; });
    for (std::int32_t g = 0; g < n_groups(f); ++g) mean[g] /= n;
}

// share_, axis_min_ and own_ of one axis, from mean_ and outside_.
void Price::refresh_axis(std::int32_t slot) {
    const double* mean = mean_.data() + group_start_[crop_->slot_feature[slot]];
    for (std::int32_t j = axis_start_[slot]; j < axis_start_[slot + 1]; ++j) share_[j] = kInfinity;
    for_axis(slot,
             [&](std::int32_t g, std::int32_t j) { share_[j] = std::min(share_[j], mean[g]); });
    double smallest = kInfinity;
    for (std::int32_t j = axis_start_[slot]; j < axis_start_[slot + 1]; ++j)
        smallest = std::min(smallest, share_[j] -= outside_[j]);
    // What a leaf pays that says nothing about the feature: it may be anywhere in the box.
    axis_min_[slot] = smallest;
    for (std::int32_t i = entry_start_[slot]; i < entry_start_[slot + 1]; ++i)
        own_[i] = own_share(entry_[i], slot);
}

// value_ of all leaves: what a leaf's own axes ask beyond the least share. The least shares of all
// of a tree's axes are its leaves' in common.
void Price::refresh_values() {
    common_.assign(crop_->n_trees(), 0.0);
    for (std::int32_t slot = 0; slot < crop_->n_slots(); ++slot)
        common_[crop_->slot_tree[slot]] += axis_min_[slot];
    for (std::int32_t i = 0; i < crop_->n_open(); ++i) {
        double worth = 0.0;
        for (std::size_t k = 0; k < lambda_.size(); ++k)
            if (lambda_[k] > 0.0) worth += lambda_[k] * weight_[k][i];
        value_[i] = -worth;
    }
    for (std::int32_t slot = 0; slot < crop_->n_slots(); ++slot)
        for (std::int32_t i = entry_start_[slot]; i < entry_start_[slot + 1]; ++i)
            value_[entry_[i].open] += own_[i] - axis_min_[slot];
    n_looks_ += static_cast<std::int64_t>(entry_.size() + value_.size());
}

// The least value of a tree's leaves, what they have in common left out.
double Price::least_of(std::int32_t tree) const {
    // Several at a time, so that the compiler compares them at once.
    constexpr std::int32_t kLanes = 8;
    double lanes[kLanes];
    std::fill_n(lanes, kLanes, kInfinity);
    const double *at = value_.data() + crop_->tree_start[tree],
                 *end = value_.data() + crop_->tree_start[tree + 1];
    for (; at + kLanes <= end; at += kLanes)
        for (std::int32_t k = 0; k < kLanes; ++k) lanes[k] = at[k] < lanes[k] ? at[k] : lanes[k];
    for (; at < end; ++at) lanes[0] = std::min(lanes[0], *at);
    return *std::min_element(lanes, lanes + kLanes);
}

// The bound, prices and shares as they are.
double Price::total() const {
    double sum = free_cost_;
    for (std::size_t k = 0; k < lambda_.size(); ++k) sum += lambda_[k] * goal_->tests[k]->asked();
    for (std::int32_t tree = 0; tree < crop_->n_trees(); ++tree)
        sum += common_[tree] + least_of(tree);
    return sum;
}

// Takes an axis out of its tree: values are without it then. best_[j]: the best that the tree can
// do outside the axis if the axis is in interval j.
void Price::take_out(std::int32_t slot) {
    const std::int32_t tree = crop_->slot_tree[slot], first = axis_start_[slot],
                       n = axis_start_[slot + 1] - first, begin = entry_start_[slot],
                       end = entry_start_[slot + 1];
    common_[tree] -= axis_min_[slot];
    best_.assign(n, kInfinity);
    rest_.resize(end - begin);
    for (std::int32_t i = begin; i < end; ++i) {
        const Entry& entry = entry_[i];
        const double rest = value_[entry.open] - (own_[i] - axis_min_[slot]);
        rest_[i - begin] = rest;
        value_[entry.open] = kInfinity;
        if (entry.low >= kSet) {
            for (std::int32_t j = 0; j < n; ++j)
                if (crop_->whole->set_has(entry.low - kSet, from_[first + j]))
                    best_[j] = std::min(best_[j], rest);
            continue;
        }
        for (std::int32_t j = entry.low; j <= entry.high; ++j)
            best_[j - first] = std::min(best_[j - first], rest);
    }
    // A leaf without the axis on its path fits every interval of it.
    const double anywhere = least_of(tree);
    for (double& best : best_) best = std::min(best, anywhere) + common_[tree];
    for (std::int32_t i = begin; i < end; ++i) value_[entry_[i].open] = rest_[i - begin];
    n_looks_ += (crop_->tree_start[tree + 1] - crop_->tree_start[tree]) / kLeavesPerLook +
                3 * (end - begin) + n;
}

// And back, with the shares as they are by then.
void Price::put_in(std::int32_t slot) {
    common_[crop_->slot_tree[slot]] += axis_min_[slot];
    for (std::int32_t i = entry_start_[slot]; i < entry_start_[slot + 1]; ++i)
        value_[entry_[i].open] += own_[i] - axis_min_[slot];
    n_looks_ += entry_start_[slot + 1] - entry_start_[slot];
}

// One step of min-marginal averaging. Before it, the trees' best values with f in cell c are r_m(c)
// + theta_m(c), and the bound has the sum of their least, each over its own c. After it all of them
// are q(c) / n, so that the trees agree on the cell and the bound has min over c of q(c), which is
// no less. An interval that no open leaf reaches gets r = 0: shares add up to the cost whatever r
// is.
void Price::sweep(std::int32_t f) {
    const std::int32_t first = crop_->slot_start[f], last = crop_->slot_start[f + 1];
    for (std::int32_t slot = first; slot < last; ++slot) {
        take_out(slot);
        for (std::size_t j = 0; j < best_.size(); ++j)
            outside_[axis_start_[slot] + j] = best_[j] == kInfinity ? 0.0 : best_[j];
    }
    refresh_means(f);
    for (std::int32_t slot = first; slot < last; ++slot) {
        refresh_axis(slot);
        put_in(slot);
    }
    n_looks_ += (last - first) * n_groups(f);
}

// The bound if one price changes, less what does not, and its slope there: a minimum of linear
// functions for every tree, so concave in the price.
double Price::at_price(std::size_t test, double change, double* slope) const {
    const std::vector<double>& weight = weight_[test];
    double sum = change * goal_->tests[test]->asked();
    *slope = goal_->tests[test]->asked();
    for (std::int32_t tree = 0; tree < crop_->n_trees(); ++tree) {
        double best = kInfinity;
        std::int32_t at = crop_->tree_start[tree];
        for (std::int32_t i = at; i < crop_->tree_start[tree + 1]; ++i)
            if (const double value = value_[i] - change * weight[i]; value < best)
                best = value, at = i;
        sum += best + common_[tree];
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
    told_ = -kInfinity;
    if (!is_finite()) return 0.0;
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
        constant_ += lambda_[k] * goal_->tests[k]->asked();
    return told_ = total();
}

// With feature f in cell c the trees that split on it give r_m(c) each, their shares of f add up to
// its cost there, and all other trees give what they give: no answer in the cell is cheaper than
// that. A cell that no leaf of a tree reaches any more is infinitely dear.
void Price::find_worth(std::int32_t f, const std::vector<double>& least) {
    const double* cost = group_cost_.data() + group_start_[f];
    const std::int32_t n = n_groups(f);
    worth_.assign(cost, cost + n);
    double others = told_;
    for (std::int32_t slot = crop_->slot_start[f]; slot < crop_->slot_start[f + 1]; ++slot) {
        take_out(slot);
        for_axis(slot, [&](std::int32_t g, std::int32_t j) {
            worth_[g] += best_[j - axis_start_[slot]];
        });
        put_in(slot);
        others -= least[crop_->slot_tree[slot]];
    }
    if (!has_mean(f)) others -= *std::min_element(cost, cost + n);
    for (double& worth : worth_) worth += others;
}

// Whoever chooses a leaf that is worth more than the tree's least by the gap between bound and
// limit comes out above the limit, whatever the other trees choose.
bool Price::leave_out(double limit, Box& box, std::vector<std::uint8_t>& is_kept) {
    std::vector<double> least(crop_->n_trees());
    is_kept.resize(crop_->n_open());
    for (std::int32_t tree = 0; tree < crop_->n_trees(); ++tree) {
        const double own = least_of(tree);
        least[tree] = own + common_[tree];
        for (std::int32_t i = crop_->tree_start[tree]; i < crop_->tree_start[tree + 1]; ++i)
            is_kept[i] = value_[i] - own < limit - told_;
    }
    n_looks_ += crop_->n_open();
    const Forest& forest = choices_->forest;
    for (std::int32_t f = 0; f < forest.n_features; ++f) {
        if (choices_->home[f] == kMissing) continue;
        find_worth(f, least);
        const std::int32_t* from = group_from_.data() + group_start_[f];
        std::int32_t low = 0, high = n_groups(f) - 1;
        while (low <= high && !(worth_[low] < limit)) ++low;
        while (low <= high && !(worth_[high] < limit)) --high;
        if (low > high) return false;
        if (!forest.has_sets[f]) {
            box.low[f] = from[low];
            if (high + 1 < n_groups(f)) box.high[f] = from[high + 1] - 1;
            continue;
        }
        for (std::int32_t g = 0; g < n_groups(f); ++g)
            if (!(worth_[g] < limit))
                box.cells[forest.word_start[f] + from[g] / 64] &=
                    ~(std::uint64_t{1} << (from[g] % 64));
    }
    return true;
}

// An answer below limit has sum of -value > constant - limit: a score test.
void Price::export_to(Ranking& ranking) const {
    ranking.weight.resize(value_.size());
    for (std::int32_t tree = 0; tree < crop_->n_trees(); ++tree)
        for (std::int32_t i = crop_->tree_start[tree]; i < crop_->tree_start[tree + 1]; ++i)
            ranking.weight[i] = -(value_[i] + common_[tree]);
    ranking.finish(*crop_, 0, crop_->n_trees());
}

}  // namespace treefocus
