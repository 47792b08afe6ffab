#include "treefocus/rules.hpp"

#include <algorithm>
#include <cmath>

namespace treefocus {

bool Rules::Linear::holds(const double* values) const {
    double sum = 0.0, size = std::abs(bound);
    for (std::size_t i = 0; i < features.size(); ++i) {
        const double term = coefficient[i] * values[features[i]];
        if (std::isnan(term)) return true;
        sum += term;
        size += std::abs(term);
    }
    return sum <= bound + 1e-9 * size;
}

RowRules::RowRules(const Forest& forest, const Rules& rules, const double* x)
    : forest_(forest), rules_(rules), x_(x), own_(forest.n_features) {
    for (std::int32_t f = 0; f < forest.n_features; ++f) own_[f] = forest.code(f, x[f]);
}

bool RowRules::hold(const std::int32_t* codes, const double* values) const {
    const auto is_changed = [&](std::int32_t f) {
        return values[f] != x_[f] && !(std::isnan(values[f]) && std::isnan(x_[f]));
    };
    for (const Rules::AtMost& rule : rules_.at_most)
        if (std::count_if(rule.features.begin(), rule.features.end(), is_changed) > rule.n) return false;
    for (const Rules::Together& rule : rules_.together) {
        const auto n = std::count_if(rule.features.begin(), rule.features.end(), [&](std::int32_t f) { return codes[f] != own_[f]; });
        if (n != 0 && n != static_cast<std::ptrdiff_t>(rule.features.size())) return false;
    }
    for (const Rules::Implies& rule : rules_.implies)
        if (rules_.has(rule.cause, codes[rule.cause.feature]) && !rules_.has(rule.effect, codes[rule.effect.feature])) return false;
    return std::all_of(rules_.linear.begin(), rules_.linear.end(), [&](const Rules::Linear& rule) { return rule.holds(values); });
}

std::optional<Cut> RowRules::broken(const Box& box, const std::int32_t* codes) const {
    for (const Rules::Together& rule : rules_.together) {
        bool is_any = false;
        for (std::int32_t f : rule.features) is_any = is_any || codes[f] != own_[f];
        if (!is_any) continue;
        for (std::int32_t f : rule.features) {
            if (codes[f] != own_[f] || codes[f] == kMissing) continue;
            if (forest_.has_sets[f]) return Cut{f, codes[f], true, kAllBut};
            if (codes[f] < box.high[f]) return Cut{f, codes[f] + 1, true};
            return Cut{f, codes[f] - 1, false};
        }
    }
    for (const Rules::Implies& rule : rules_.implies) {
        const std::int32_t cause = codes[rule.cause.feature], effect = codes[rule.effect.feature];
        if (!rules_.has(rule.cause, cause) || rules_.has(rule.effect, effect)) continue;
        if (effect != kMissing && !is_outside(box, rule.effect)) return towards(box, rule.effect, effect, true);
        return towards(box, rule.cause, cause, false);
    }
    return std::nullopt;
}

// The cut whose far side has the cells, or all others, and not the code.
Cut RowRules::towards(const Box& box, const Rules::Cells& cells, std::int32_t code, bool is_in) const {
    if (forest_.has_sets[cells.feature]) return {cells.feature, is_in ? 1 : 0, true, kOfRule - cells.set};
    if (is_in) return code < cells.low ? Cut{cells.feature, cells.low, true} : Cut{cells.feature, cells.high, false};
    if (cells.high < box.high[cells.feature]) return {cells.feature, cells.high + 1, true};
    return {cells.feature, cells.low - 1, false};
}

bool RowRules::is_alone(const Box& box, std::int32_t f, std::int32_t code) const {
    bool is_other = false;
    for_cells(forest_, box, f, [&](std::int32_t c) { is_other = is_other || c != code; });
    return !is_other;
}

bool RowRules::is_inside(const Box& box, const Rules::Cells& cells) const {
    if (own_[cells.feature] == kMissing) return false;
    bool is_all = true;
    for_cells(forest_, box, cells.feature, [&](std::int32_t c) { is_all = is_all && rules_.has(cells, c); });
    return is_all;
}

bool RowRules::is_outside(const Box& box, const Rules::Cells& cells) const {
    if (own_[cells.feature] == kMissing) return true;
    bool is_any = false;
    for_cells(forest_, box, cells.feature, [&](std::int32_t c) { is_any = is_any || rules_.has(cells, c); });
    return !is_any;
}

}  // namespace treefocus
