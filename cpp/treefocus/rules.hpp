// Relations between features: constraints that no single feature can answer for.
//
//   AtMost    no more than so many of these features change;
//   Together  these features change all or not at all;
//   Implies   if one feature meets a condition, another meets its own; a missing value meets none;
//   Linear    sum of coefficient * value <= bound; of a missing value it asks nothing.
//
// They are about values, in the user's units, as the user would check them: not about cells, nor
// about what a model that rounds its input makes of them. Polish and the descent ask only whether a
// point obeys (RowRules); what the exact search does with them stands in narrow.hpp, and what
// Linear makes of the cost in linear.cpp.
#pragma once

#include <vector>

#include "treefocus/box.hpp"

namespace treefocus {

struct Rules {
    struct AtMost {
        std::vector<std::int32_t> features;
        std::int32_t n;
    };
    struct Together {
        std::vector<std::int32_t> features;
    };
    struct Condition {  // of one feature: a number from low to high, or a category of a set
        std::int32_t feature;
        double low, high;
        std::int32_t set;  // -1, or a number into `sets`
        bool is_number() const { return set < 0; }
    };
    struct Implies {
        Condition cause, effect;
    };
    struct Linear {
        std::vector<std::int32_t> features;
        std::vector<double> coefficient;
        double bound;
        bool holds(const double* values) const;
        // How far above the bound a sum may come out by rounding: two units in the last place of
        // its largest term.
        static double slack(double largest) {
            return 2.0 * std::numeric_limits<double>::epsilon() * largest;
        }
    };
    std::vector<AtMost> at_most;
    std::vector<Together> together;
    std::vector<Implies> implies;
    std::vector<Linear> linear;
    std::vector<std::vector<std::uint8_t>> sets;  // per set: by category, whether it is in

    bool meets(const Condition& condition, std::int32_t code, double value) const {
        if (std::isnan(value)) return false;
        return condition.is_number() ? value >= condition.low && value <= condition.high
                                     : sets[condition.set][code] != 0;
    }
};

// The rules as one row sees them.
class RowRules {
public:
    RowRules(const Rules& rules, const double* x) : rules_(rules), x_(x) {}

    // Whether a point obeys: its cells and its values.
    bool hold(const std::int32_t* codes, const double* values) const;
    bool is_changed(std::int32_t f, const double* values) const {
        return values[f] != x_[f] && !(std::isnan(values[f]) && std::isnan(x_[f]));
    }

protected:
    bool holds(const Rules::AtMost& rule, const double* values) const;
    bool holds(const Rules::Together& rule, const double* values) const;
    bool holds(const Rules::Implies& rule, const std::int32_t* codes, const double* values) const;
    const Rules& rules_;
    const double* x_;
};

}  // namespace treefocus
