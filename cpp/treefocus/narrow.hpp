// What rules leave of a box, and where to split it.
//
// The exact search uses rules in three ways: a box in which a rule cannot hold is done; features
// that a rule leaves no choice stay at the row's own value; and a closest point that breaks a rule
// is no answer, so the box is split where the rule says. AtMost and Together are about values, and
// a feature can change inside its own cell: the box is split into "stays" and "changes". Conditions
// of Implies can begin inside a cell: the box is split by value.
#pragma once

#include <optional>

#include "treefocus/rules.hpp"

namespace treefocus {

// A split of a box in two. The closest point lies on the near side.
enum class By : std::uint8_t {
    cells,    // far: codes from `code` up, or down
    set,      // far: the cells of the forest's set
    all_but,  // far: every cell but `code`
    rule,     // far: the categories of the rules' set that are in (code 1), or not (0)
    value,    // far: numbers from `value` up, or down
    stay,     // far: the row's own value; near: any other
    slice,    // far: lengths along the row from `value` up, or down (fan.hpp); of no feature
};
struct Cut {
    std::int32_t feature = -1;
    std::int32_t code = 0;
    bool is_up = true;
    By by = By::cells;
    std::int32_t set = -1;
    double value = 0.0;
};

class BoxRules : public RowRules {
public:
    BoxRules(const Rules& rules, const Choices& choices)
        : RowRules(rules, choices.x), forest_(choices.forest), choices_(choices) {}

    // False if no point of the box obeys. Else calls stay(f) for each feature that has to stay as
    // it is and could not.
    template <class Stay>
    bool narrow(const Box& box, const Stay& stay) const;

    // Where to split a box whose closest point breaks a rule; nothing if it breaks none, or only a
    // sum.
    std::optional<Cut> broken(const Box& box, const std::int32_t* codes,
                              const double* values) const;

    // Whether the point breaks a rule whose features have no other value in the box.
    bool is_final(const Box& box, const std::int32_t* codes, const double* values) const;

private:
    bool must_change(const Box& box, std::int32_t f) const {
        return box.moves[f] || !choices_.can_stay(f, box);
    }
    bool must_stay(const Box& box, std::int32_t f) const;
    bool has_one_value(const Box& box, std::int32_t f) const;
    std::size_t n_cells(const Box& box, std::int32_t f) const;
    bool has_missing(const Box& box, std::int32_t f) const;  // a missing value is in the box
    // Every value of the box meets it.
    bool is_inside(const Box& box, const Rules::Condition& condition) const;
    bool is_outside(const Box& box, const Rules::Condition& condition) const;  // none does
    std::optional<Cut> to_change(const Box& box, std::int32_t f) const;
    Cut towards(const Box& box, const Rules::Condition& condition, double value) const;
    Cut away_from(const Box& box, const Rules::Condition& condition, std::int32_t code) const;
    const Forest& forest_;
    const Choices& choices_;
};

template <class Stay>
bool BoxRules::narrow(const Box& box, const Stay& stay) const {
    const auto all_stay = [&](const std::vector<std::int32_t>& features) {
        for (const std::int32_t f : features)
            if (!must_change(box, f) && !must_stay(box, f)) stay(f);
    };
    for (const Rules::AtMost& rule : rules_.at_most) {
        std::int32_t n_changed = 0;
        for (const std::int32_t f : rule.features) n_changed += must_change(box, f);
        if (n_changed > rule.n) return false;
        if (n_changed == rule.n) all_stay(rule.features);
    }
    for (const Rules::Together& rule : rules_.together) {
        bool is_changing = false, is_staying = false;
        for (const std::int32_t f : rule.features) {
            is_changing = is_changing || must_change(box, f);
            is_staying = is_staying || must_stay(box, f);
        }
        if (is_changing && is_staying) return false;
        if (is_staying) all_stay(rule.features);
    }
    for (const Rules::Implies& rule : rules_.implies)
        if (is_inside(box, rule.cause) && is_outside(box, rule.effect)) return false;
    return true;
}

}  // namespace treefocus
