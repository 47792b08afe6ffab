#include "treefocus/rules.hpp"

#include <algorithm>
#include <cmath>

namespace treefocus {

// In plain float64 and in the order given, as a user would check it; a missing term gives NaN, and
// such a sum asks nothing.
bool Rules::Linear::holds(const double* values) const {
    double sum = 0.0, largest = std::abs(bound);
    for (std::size_t i = 0; i < features.size(); ++i) {
        const double term = coefficient[i] * values[features[i]];
        if (std::isnan(term)) return true;
        sum += term;
        largest = std::max(largest, std::abs(term));
    }
    return sum <= bound + slack(largest);
}

bool RowRules::holds(const Rules::AtMost& rule, const double* values) const {
    const auto is_other = [&](std::int32_t f) { return is_changed(f, values); };
    return std::count_if(rule.features.begin(), rule.features.end(), is_other) <= rule.n;
}

bool RowRules::holds(const Rules::Together& rule, const double* values) const {
    const auto is_other = [&](std::int32_t f) { return is_changed(f, values); };
    const auto n = std::count_if(rule.features.begin(), rule.features.end(), is_other);
    return n == 0 || n == static_cast<std::ptrdiff_t>(rule.features.size());
}

bool RowRules::holds(const Rules::Implies& rule, const std::int32_t* codes,
                     const double* values) const {
    const auto meets = [&](const Rules::Condition& condition) {
        return rules_.meets(condition, codes[condition.feature], values[condition.feature]);
    };
    return !meets(rule.cause) || meets(rule.effect);
}

// Codes for conditions on categories, values for all else.
bool RowRules::hold(const std::int32_t* codes, const double* values) const {
    const auto all = [](const auto& rules, const auto& holds) {
        return std::all_of(rules.begin(), rules.end(), holds);
    };
    return all(rules_.at_most, [&](const auto& rule) { return holds(rule, values); }) &&
           all(rules_.together, [&](const auto& rule) { return holds(rule, values); }) &&
           all(rules_.implies, [&](const auto& rule) { return holds(rule, codes, values); }) &&
           all(rules_.linear, [&](const auto& rule) { return rule.holds(values); });
}

}  // namespace treefocus
