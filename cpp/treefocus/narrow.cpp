// Where rules cut. A cut has to lead on from a box whose closest point breaks a rule: on the far
// side the rule can be obeyed in a new way; on the near side, which keeps the point, more is
// certain (this feature changes, that effect cannot be had), so that narrow() decides or the next
// cut follows.
#include "treefocus/narrow.hpp"

#include <algorithm>

namespace treefocus {

// The first broken rule is split on. AtMost and Together: a changed feature that is free to stay is
// split into "stays" and "changes"; of Together, if there is none, one that stays is split towards
// a change. Implies: a cause whose effect is out of reach has to go, else the effect is split
// towards what it should be. Sums are not cut here: their cost does it (RoundedCost).
std::optional<Cut> BoxRules::broken(const Box& box, const std::int32_t* codes,
                                    const double* values) const {
    for (const Rules::AtMost& rule : rules_.at_most) {
        if (holds(rule, values)) continue;
        for (const std::int32_t f : rule.features)
            if (is_changed(f, values) && !must_change(box, f))
                return Cut{f, codes[f], true, By::stay};
    }
    for (const Rules::Together& rule : rules_.together) {
        if (holds(rule, values)) continue;
        for (const std::int32_t f : rule.features)
            if (is_changed(f, values) && !must_change(box, f))
                return Cut{f, codes[f], true, By::stay};
        for (const std::int32_t f : rule.features)
            if (!is_changed(f, values))
                if (const auto cut = to_change(box, f)) return cut;
    }
    for (const Rules::Implies& rule : rules_.implies) {
        if (holds(rule, codes, values)) continue;
        const std::int32_t cause = rule.cause.feature, effect = rule.effect.feature;
        if (is_outside(box, rule.effect)) return away_from(box, rule.cause, codes[cause]);
        if (!std::isnan(values[effect])) return towards(box, rule.effect, values[effect]);
        return Cut{effect, codes[effect], true, By::all_but};
    }
    return std::nullopt;
}

// The far side has other values than the row's own; nothing if there are none.
std::optional<Cut> BoxRules::to_change(const Box& box, std::int32_t f) const {
    const std::int32_t own = choices_.own[f];
    if (forest_.has_sets[f] && n_cells(box, f) > 1) return Cut{f, own, true, By::all_but};
    if (must_stay(box, f)) return std::nullopt;
    const Ends hull = choices_.hull(f, box);
    if (const double up = choices_.after(f, choices_.x[f]); up <= hull.high)
        return Cut{f, own, true, By::value, -1, up};
    return Cut{f, own, false, By::value, -1, choices_.before(f, choices_.x[f])};
}

// The far side has what meets the condition, and not the value.
Cut BoxRules::towards(const Box&, const Rules::Condition& condition, double value) const {
    if (!condition.is_number()) return {condition.feature, 1, true, By::rule, condition.set};
    const bool is_up = value < condition.low;
    return {condition.feature, 0, is_up, By::value, -1, is_up ? condition.low : condition.high};
}

// The far side has what does not meet the condition, or as much of it as one cut can have.
Cut BoxRules::away_from(const Box& box, const Rules::Condition& condition,
                        std::int32_t code) const {
    const std::int32_t f = condition.feature;
    if (!condition.is_number()) return {f, 0, true, By::rule, condition.set};
    const Ends hull = choices_.hull(f, box);
    if (hull.high > condition.high)
        return {f, 0, true, By::value, -1, std::nextafter(condition.high, kInfinity)};
    if (hull.low < condition.low)
        return {f, 0, false, By::value, -1, std::nextafter(condition.low, -kInfinity)};
    return {f, code, true, By::all_but};  // only a missing value is left
}

// A box that no split divides further may be called done if its point breaks a rule and the rule's
// features have no second value.
bool BoxRules::is_final(const Box& box, const std::int32_t* codes, const double* values) const {
    const auto is_single = [&](const std::vector<std::int32_t>& features) {
        return std::all_of(features.begin(), features.end(),
                           [&](std::int32_t f) { return has_one_value(box, f); });
    };
    const auto any = [](const auto& rules, const auto& is_broken) {
        return std::any_of(rules.begin(), rules.end(), is_broken);
    };
    return any(rules_.at_most,
               [&](const auto& rule) {
                   return !holds(rule, values) && is_single(rule.features);
               }) ||
           any(rules_.together,
               [&](const auto& rule) {
                   return !holds(rule, values) && is_single(rule.features);
               }) ||
           any(rules_.implies,
               [&](const auto& rule) {
                   return !holds(rule, codes, values) &&
                          is_single({rule.cause.feature, rule.effect.feature});
               }) ||
           any(rules_.linear,
               [&](const auto& rule) { return !rule.holds(values) && is_single(rule.features); });
}

bool BoxRules::must_stay(const Box& box, std::int32_t f) const {
    if (choices_.home[f] == kMissing) return true;
    return choices_.can_stay(f, box) && has_one_value(box, f);
}

bool BoxRules::has_one_value(const Box& box, std::int32_t f) const {
    if (choices_.home[f] == kMissing) return true;
    if (forest_.has_sets[f] && n_cells(box, f) > 1) return false;
    if (has_missing(box, f) || choices_.is_category(f)) return true;
    const Ends hull = choices_.hull(f, box);
    if (hull.low == hull.high) return true;
    // The row's own value may lie beside the column's grain, and be all there is with no other next
    // to it.
    return choices_.can_stay(f, box) && choices_.after(f, choices_.x[f]) > hull.high &&
           choices_.before(f, choices_.x[f]) < hull.low;
}

std::size_t BoxRules::n_cells(const Box& box, std::int32_t f) const {
    std::size_t n = 0;
    for_cells(forest_, box, f, [&](std::int32_t) { ++n; });
    return n;
}

bool BoxRules::has_missing(const Box& box, std::int32_t f) const {
    return forest_.has_sets[f] && box.has(forest_, f, forest_.n_codes(f) - 1);
}

// A missing value meets no condition, so that a box that has one is never inside.
bool BoxRules::is_inside(const Box& box, const Rules::Condition& condition) const {
    const std::int32_t f = condition.feature;
    if (choices_.home[f] == kMissing || has_missing(box, f)) return false;
    if (condition.is_number()) {
        const Ends hull = choices_.hull(f, box);
        return hull.low >= condition.low && hull.high <= condition.high;
    }
    bool is_all = true;
    for_cells(forest_, box, f,
              [&](std::int32_t c) { is_all = is_all && rules_.sets[condition.set][c]; });
    return is_all;
}

// By the column's own values: between two integers no number lies, and the condition may.
bool BoxRules::is_outside(const Box& box, const Rules::Condition& condition) const {
    const std::int32_t f = condition.feature;
    if (choices_.home[f] == kMissing) return true;
    if (condition.is_number()) {
        const Grain grain = choices_.grain_of(f);
        const Ends hull = choices_.hull(f, box);
        const double x = choices_.x[f];
        if (x >= condition.low && x <= condition.high && choices_.can_stay(f, box)) return false;
        return grain.up(std::max(hull.low, condition.low)) >
               grain.down(std::min(hull.high, condition.high));
    }
    bool is_any = false;
    for_cells(forest_, box, f,
              [&](std::int32_t c) { is_any = is_any || rules_.sets[condition.set][c]; });
    return !is_any;
}

}  // namespace treefocus
