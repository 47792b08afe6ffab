// A good cut closes both sides soon: the far side because the step there costs much, the near side
// because much of the score that the trees still hope for lies behind the cut. So every threshold,
// or set, that some tree's best leaf lies behind is weighed by score behind * sqrt(cost of the
// step), for the test that is farthest from being met.
#include "treefocus/branch.hpp"

#include <algorithm>
#include <cmath>

namespace treefocus {

Cut Brancher::choose() {
    if (const auto cut = at_.cost.slice_cut()) return *cut;
    if (at_.is_wanted())
        if (const Cut cut = mend(); cut.feature >= 0) return cut;
    const Running& one = at_.hardest();
    const std::vector<double>& weight = one.test().weight;
    // What a tree would add if the point went to its best leaf: only these trees pull.
    gain_.resize(at_.forest.n_trees());
    for (std::int32_t tree = one.first_tree(); tree < one.end_tree(); ++tree)
        // Never negative while the point is in the box, for then its leaf is in reach and no better
        // than the best.
        gain_[tree] = one.best_of(tree) - weight[at_.walker.leaves()[tree]];
    best_ = {};
    best_score_ = -1.0;
    for (std::int32_t f = 0; f < at_.forest.n_features; ++f) {
        if (at_.walker.codes()[f] == kMissing) continue;
        if (at_.forest.has_sets[f]) weigh_sets(one, f);
        else weigh_thresholds(one, f);
    }
    return best_score_ < 0.0 ? any_cut() : best_;
}

// The model is content with the point, so thresholds have nothing to offer. A rule that is broken
// says where its point could be; rounding is split beside the rounded value.
Cut Brancher::mend() {
    if (at_.rules)
        if (const auto cut =
                at_.rules->broken(at_.trail.box(), at_.cost.codes.data(), at_.point().data());
            cut && can_split(*cut))
            return *cut;
    return round(false);
}

// A split by value beside a point that was rounded. Such splits could go on for ever, or deeper
// than the stack, among numbers without an end: only where the limit keeps them from it, and no
// more than so many inside each other.
Cut Brancher::round(bool anywhere) {
    const Box& box = at_.trail.box();
    const auto cut = at_.cost.round_cut(box, anywhere);
    if (!cut || at_.trail.n_value_steps() > kMostValueSteps || !can_split(*cut)) return {};
    if (cut->by == By::stay) return *cut;  // once a feature, wherever it ends
    const Ends hull = at_.choices.hull(cut->feature, box);
    const bool is_finite = std::isfinite(hull.low) && std::isfinite(hull.high);
    return is_finite || (at_.limit < kInfinity && at_.cost.is_growing()) ? *cut : Cut{};
}

// A wish that begins above the point pulls up to its low end, one that ends below it down to its
// high end. A cut there has behind it all wishes that lie as far or farther.
void Brancher::weigh_thresholds(const Running& one, std::int32_t f) {
    const std::int32_t code = at_.walker.codes()[f];
    above_.clear();
    below_.clear();
    one.for_wishes_elsewhere(f, code, [&](std::int32_t tree, std::int32_t low, std::int32_t high) {
        if (!(gain_[tree] > 0.0)) return;
        if (code < low) above_.push_back({low, gain_[tree]});
        else below_.push_back({high, gain_[tree]});
    });
    // Farthest first: the sum so far is what lies behind the cut at this code.
    std::sort(above_.begin(), above_.end(),
              [](const Pull& a, const Pull& b) { return a.code > b.code; });
    std::sort(below_.begin(), below_.end(),
              [](const Pull& a, const Pull& b) { return a.code < b.code; });
    for (const std::vector<Pull>* pulls : {&above_, &below_}) {
        double behind = 0.0;
        for (std::size_t i = 0; i < pulls->size(); ++i) {
            behind += (*pulls)[i].gain;
            if (i + 1 == pulls->size() || (*pulls)[i + 1].code != (*pulls)[i].code)
                weigh({f, (*pulls)[i].code, pulls == &above_}, behind);
        }
    }
}

// Wishes for the same set pull together; different sets of one feature are different cuts. Every
// set is handed over here, for its number is beyond any code, so that those that hold the point are
// left out first.
void Brancher::weigh_sets(const Running& one, std::int32_t f) {
    const std::int32_t code = at_.walker.codes()[f];
    touched_.clear();
    one.for_wishes_elsewhere(f, code, [&](std::int32_t tree, std::int32_t low, std::int32_t) {
        const std::int32_t set = low - kSet;
        if (!(gain_[tree] > 0.0) || at_.shared.boxes.set_has(set, code)) return;
        if (pull_set_[set] == 0.0) touched_.push_back(set);
        pull_set_[set] += gain_[tree];
    });
    std::sort(touched_.begin(), touched_.end());
    for (const std::int32_t set : touched_) {
        weigh({f, 0, true, By::set, set}, pull_set_[set]);
        pull_set_[set] = 0.0;
    }
}

void Brancher::weigh(const Cut& cut, double behind) {
    const double least_step = kLeastStep * (at_.limit < kInfinity ? at_.limit : 1.0);
    const double step = std::max(cost_of(cut) - at_.cost.cost, 0.0) + least_step;
    // The cost of the step counts half as much, in powers, as the score behind it.
    const double score = behind * std::sqrt(step);
    if (score > best_score_) best_score_ = score, best_ = cut;
}

// Costs rise away from the closest point, so that a range costs what its first cell does; a set
// costs what its cheapest cell does.
double Brancher::cost_of(const Cut& cut) const {
    if (cut.by == By::cells) return at_.cost.guess(cut.feature, cut.code);
    double least = kInfinity;
    for_cells(at_.forest, at_.trail.box(), cut.feature, [&](std::int32_t code) {
        if (is_far_cell(cut, code)) least = std::min(least, at_.cost.with(cut.feature, code));
    });
    return least;
}

// No best leaf lies elsewhere, so the tests are met at the point. Yet the model says no, by less
// than the tests' tolerance, or a rule or rounding stands in the way with no cut of its own.
// Features are split beside the point's cell, so that the box comes down to single cells, and those
// are decided.
Cut Brancher::any_cut() {
    const Box& box = at_.trail.box();
    for (std::int32_t f = 0; f < at_.forest.n_features; ++f) {
        const std::int32_t code = at_.walker.codes()[f];
        if (code == kMissing) continue;
        if (at_.forest.has_sets[f]) {
            if (const Cut cut{f, code, true, By::all_but}; can_split(cut)) return cut;
            continue;
        }
        if (code < box.high[f]) return {f, code + 1, true};
        if (code > box.low[f]) return {f, code - 1, false};
    }
    if (at_.is_wanted()) return round(true);
    return {};
}

bool Brancher::can_split(const Cut& cut) const {
    if (cut.feature < 0 || at_.trail.length() > kLongestTrail) return false;
    if (cut.by == By::slice) return true;
    if (cut.by == By::value || cut.by == By::stay) return can_split_values(cut);
    const Box& box = at_.trail.box();
    const std::int32_t code = at_.walker.codes()[cut.feature];
    if (at_.forest.has_sets[cut.feature]) {
        bool has_far = false;
        for_cells(at_.forest, box, cut.feature,
                  [&](std::int32_t c) { has_far = has_far || is_far_cell(cut, c); });
        return has_far && box.has(at_.forest, cut.feature, code) && !is_far_cell(cut, code);
    }
    const std::int32_t low = box.low[cut.feature], high = box.high[cut.feature];
    return low <= code && code <= high &&
           (cut.is_up ? code < cut.code && cut.code <= high : low <= cut.code && cut.code < code);
}

bool Brancher::can_split_values(const Cut& cut) const {
    const Box& box = at_.trail.box();
    if (cut.by == By::stay)
        return at_.choices.can_stay(cut.feature, box) && !box.moves[cut.feature];
    const Ends hull = at_.choices.hull(cut.feature, box);
    return cut.is_up ? hull.high >= cut.value && hull.low < cut.value
                     : hull.low <= cut.value && hull.high > cut.value;
}

// Of cuts of features with sets, by what the cut names: a rule's set, all but one cell, or a
// forest's.
bool Brancher::is_far_cell(const Cut& cut, std::int32_t code) const {
    if (cut.by == By::rule) return at_.relations->sets[cut.set][code] == cut.code;
    return cut.by == By::all_but ? code != cut.code : at_.shared.boxes.set_has(cut.set, code);
}

void Brancher::take_side(const Cut& cut, bool is_far) {
    const std::int32_t f = cut.feature;
    const Box& box = at_.trail.box();
    if (cut.by == By::slice)
        at_.trail.set_slice(cut.is_up == is_far ? cut.value : -kInfinity,
                            cut.is_up == is_far ? kInfinity : cut.value);
    else if (cut.by == By::value || cut.by == By::stay) take_values(cut, is_far);
    else if (cut.by != By::cells)
        at_.trail.set_cells(f, [&](std::int32_t code) { return is_far_cell(cut, code) == is_far; });
    else if (cut.is_up == is_far)
        at_.trail.set_range(f, is_far ? cut.code : cut.code + 1, box.high[f]);
    else at_.trail.set_range(f, box.low[f], is_far ? cut.code : cut.code - 1);
}

// Numbers to one side of a value, and the cells that hold them; a missing value is on the near
// side.
void Brancher::take_values(const Cut& cut, bool is_far) {
    const std::int32_t f = cut.feature, own = at_.choices.own[f];
    if (cut.by == By::stay) {
        if (is_far) return at_.make_stay(f);
        if (at_.choices.is_category(f))
            at_.trail.set_cells(f, [own](std::int32_t code) { return code != own; });
        return at_.trail.set_values(f, -kInfinity, kInfinity, true);
    }
    const Box& box = at_.trail.box();
    const bool is_up = cut.is_up == is_far;
    // The near side ends one float64 beside the value where the far side begins, so that no number
    // is on both sides or on none.
    const double end =
        is_far ? cut.value : std::nextafter(cut.value, cut.is_up ? -kInfinity : kInfinity);
    at_.trail.set_values(f, is_up ? end : -kInfinity, is_up ? kInfinity : end, false);
    const std::int32_t code = at_.forest.code(f, end), missing = at_.forest.n_codes(f) - 1;
    if (at_.forest.has_sets[f])
        at_.trail.set_cells(f, [&](std::int32_t c) {
            return c == missing ? !is_far : is_up ? c >= code : c <= code;
        });
    else if (is_up) at_.trail.set_range(f, std::max(box.low[f], code), box.high[f]);
    else at_.trail.set_range(f, box.low[f], std::min(box.high[f], code));
}

}  // namespace treefocus
