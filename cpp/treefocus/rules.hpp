// Relations between features: constraints that no single feature can answer for.
//
//   AtMost    no more than so many of these features change;
//   Together  these features change all or not at all; a change counts if the model can see it, that is, in cells;
//   Implies   if one feature is in these cells, another is in those;
//   Linear    sum of coefficient * value <= bound; of a missing value it asks nothing.
//
// The exact search uses them in three ways: a box in which a rule cannot hold is done; a closest point that breaks one is
// no answer, and the box is split where the rule says; cells that a rule leaves out, with the closest point staying, leave
// the box. Linear rules change what a box costs as well (linear.cpp).
#pragma once

#include <optional>
#include <vector>

#include "treefocus/box.hpp"

namespace treefocus {

// Far side: codes >= code if is_up, else codes <= code; of a feature with sets, the cells of a set, all but the code, or
// (kOfRule - i) the cells of the rules' set i.
constexpr std::int32_t kNoSet = -1, kAllBut = -2, kOfRule = -3;
struct Cut {
    std::int32_t feature = -1;
    std::int32_t code = 0;
    bool is_up = true;
    std::int32_t set = kNoSet;
};

struct Rules {
    struct AtMost {
        std::vector<std::int32_t> features;
        std::int32_t n;
    };
    struct Together {
        std::vector<std::int32_t> features;
    };
    struct Cells {                                   // of one feature: a range of codes, or a set
        std::int32_t feature, low, high, set;        // set: kNoSet, or a number into `sets`
    };
    struct Implies {
        Cells cause, effect;
    };
    struct Linear {
        std::vector<std::int32_t> features;
        std::vector<double> coefficient;
        double bound;
        bool holds(const double* values) const;
    };
    std::vector<AtMost> at_most;
    std::vector<Together> together;
    std::vector<Implies> implies;
    std::vector<Linear> linear;
    std::vector<std::vector<std::uint8_t>> sets;     // per set: by code, whether it is in

    bool is_empty() const { return at_most.empty() && together.empty() && implies.empty() && linear.empty(); }
    bool has(const Cells& cells, std::int32_t code) const {
        if (code == kMissing) return false;
        return cells.set == kNoSet ? code >= cells.low && code <= cells.high : sets[cells.set][code] != 0;
    }
};

// The rules as one row sees them.
class RowRules {
public:
    RowRules(const Forest& forest, const Rules& rules, const double* x);

    // Whether a point obeys: its cells and its values.
    bool hold(const std::int32_t* codes, const double* values) const;
    // Where to split a box whose closest point, at these codes, breaks a rule on cells; nothing if it breaks none.
    std::optional<Cut> broken(const Box& box, const std::int32_t* codes) const;
    // False if no point of the box obeys. Else calls keep(f, code) for each feature that has to stay at a code it is at.
    template <class Keep>
    bool narrow(const Box& box, const Choices& choices, const Keep& keep) const;

private:
    bool is_alone(const Box& box, std::int32_t f, std::int32_t code) const;   // the box holds no other cell
    bool is_inside(const Box& box, const Rules::Cells& cells) const;          // every cell of the box is in
    bool is_outside(const Box& box, const Rules::Cells& cells) const;         // none is
    Cut towards(const Box& box, const Rules::Cells& cells, std::int32_t code, bool is_in) const;
    const Forest& forest_;
    const Rules& rules_;
    const double* x_;
    std::vector<std::int32_t> own_;                  // (d,) the row's codes
};

template <class Keep>
bool RowRules::narrow(const Box& box, const Choices& choices, const Keep& keep) const {
    for (const Rules::AtMost& rule : rules_.at_most) {
        std::int32_t n_changed = 0;
        const auto must_change = [&](std::int32_t f) {
            const std::int32_t code = choices.closest(f, box);
            return code != kMissing && (code == kNone || choices.delta[choices.at(f, code)] > 0.0);
        };
        for (std::int32_t f : rule.features) n_changed += must_change(f);
        if (n_changed > rule.n) return false;
        if (n_changed == rule.n)
            for (std::int32_t f : rule.features)
                if (choices.home[f] != kMissing && !must_change(f) && !is_alone(box, f, choices.home[f])) keep(f, choices.home[f]);
    }
    for (const Rules::Together& rule : rules_.together) {
        bool must_change = false, must_stay = false;
        for (std::int32_t f : rule.features) {
            must_change = must_change || (own_[f] != kMissing && !box.has(forest_, f, own_[f]));
            must_stay = must_stay || own_[f] == kMissing || is_alone(box, f, own_[f]);
        }
        if (must_change && must_stay) return false;
        if (must_stay)
            for (std::int32_t f : rule.features)
                if (own_[f] != kMissing && !is_alone(box, f, own_[f])) keep(f, own_[f]);
    }
    for (const Rules::Implies& rule : rules_.implies)
        if (is_inside(box, rule.cause) && is_outside(box, rule.effect)) return false;
    return true;
}

}  // namespace treefocus
