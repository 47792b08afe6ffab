// A proof written down: the tree of boxes that a search at a fixed limit goes through, in
// pre-order, with the reason for which each box at its end is closed, in the cells of the grid.
// src/treefocus/explanation/proof.py tells it in allowed values, as docs/proof.md has the format.
#pragma once

#include <utility>
#include <vector>

#include "treefocus/narrow.hpp"

namespace treefocus {

struct Limits;
struct Norms;
struct Distance;
struct Batch;
struct Control;

// What the boxes are written in; explanation/proof.py reads it.
enum class ProofStep : std::int32_t {
    none_left = 0,  // closed: nothing of the box is allowed and cheaper than the claim
    score = 1,      // closed: a test cannot be met: its number follows
    cell = 2,       // closed: a single cell, in which the model says otherwise
    weigh = 3,      // the number of weights: what points of the box cost at least, weighed so
    above = 4,      // split: column, code; the first side has the codes from this one up,
    below = 5,      // or all below it
    cells = 6,      // column, n, n cells: the first side has these
    from = 7,       // column, number of a value: the first side has the numbers from it up,
    up_to = 8,      // or up to it; a missing value is on the second
    stay = 9,       // column: the first side has the row's own value, the second any other
    slice = 10,     // number of a value: the first side has the lengths along the row from it up
};

// The proof of one goal.
class ProofLog {
public:
    explicit ProofLog(const Forest& forest) : forest_(forest) {}
    std::vector<std::int32_t> boxes;
    // Columns, -1 for lengths, and where they are split.
    std::vector<std::pair<std::int32_t, double>> values;
    // Where a coupled distance is linearised, and prices of the linear rules.
    struct Weights {
        std::vector<double> point, prices;
        bool operator==(const Weights&) const = default;
    };
    std::vector<Weights> weights;
    bool is_whole = true;  // false: a box was left open, and this is no proof

    void close(ProofStep reason) { boxes.push_back(static_cast<std::int32_t>(reason)); }
    void close(ProofStep reason, std::int32_t number) {
        close(reason);
        boxes.push_back(number);
    }
    void leave_open() { is_whole = false; }

    // is_far(code): whether a cell of a cut by sets lies on its far side, which is the first.
    template <class IsFar>
    void split(const Cut& cut, const IsFar& is_far) {
        if (cut.by == By::slice) {
            close(ProofStep::slice, static_cast<std::int32_t>(values.size()));
            values.emplace_back(-1, cut.value);
            return;
        }
        const bool is_stay = cut.by == By::stay;
        const ProofStep up = cut.by == By::value ? ProofStep::from : ProofStep::above;
        const ProofStep down = cut.by == By::value ? ProofStep::up_to : ProofStep::below;
        const bool is_range = cut.by == By::cells || cut.by == By::value;
        close(is_stay     ? ProofStep::stay
              : !is_range ? ProofStep::cells
              : cut.is_up ? up
                          : down,
              cut.feature);
        if (is_stay) return;
        if (cut.by == By::value) {
            boxes.push_back(static_cast<std::int32_t>(values.size()));
            values.emplace_back(cut.feature, cut.value);
        } else if (is_range) {
            boxes.push_back(cut.is_up ? cut.code : cut.code + 1);
        } else {
            const std::size_t at = boxes.size();
            boxes.push_back(0);
            for (std::int32_t code = 0; code < forest_.n_codes(cut.feature); ++code)
                if (is_far(code)) boxes.push_back(code), ++boxes[at];
        }
    }

private:
    const Forest& forest_;
};

// The proof that a batch's only row has no answer cheaper than `distance`, one log a goal; empty if
// it came to no end within the limits. Of norms and distance one is there.
std::vector<ProofLog> record_proof(const Forest& forest, const double* cell_low,
                                   const double* cell_high, const Norms* norms,
                                   const Distance& coupled, const Limits& limits,
                                   const Batch& batch, double distance, const Control& control);

}  // namespace treefocus
