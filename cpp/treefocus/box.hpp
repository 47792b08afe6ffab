// Boxes of the grid, and what they cost.
//
// Every feature is a list of cells (codes). A box is a range of codes per feature; where nodes
// split by sets (categories, and numbers that may also be missing) it is a set of cells. For one
// row, Choices holds what it costs to bring each feature into each cell: the closest allowed value
// there, or nothing if bounds, integers or other constraints leave none. Over a range, costs rise
// away from a feature's home, the cheapest cell, in both directions, and a cell without an allowed
// value costs what the next one behind it costs. All constraints on one feature are in these tables
// and nowhere else.
#pragma once

#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "treefocus/kernels.hpp"

namespace treefocus {

constexpr std::int32_t kNone = -2;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A part of the grid: codes low..high of each feature, or the cells of a set, n_words words at
// forest.word_start[f]. Rules can ask for less than whole cells: of the numbers in them those from
// value_low to value_high; a missing value is not bound by it. Without rules these stay empty.
struct Box {
    std::vector<std::int32_t> low, high;        // (d,)
    std::vector<std::uint64_t> cells;           // (word_start.back(),)
    std::vector<double> value_low, value_high;  // (d,) or empty
    std::vector<std::uint8_t> moves;  // (d,) or empty: the feature counts as changed in this box
    double slice_low = -kInfinity, slice_high = kInfinity;  // of the length along the row (fan.hpp)
    void bind_values(std::int32_t d) {
        value_low.assign(d, -kInfinity);
        value_high.assign(d, kInfinity);
        moves.assign(d, 0);
    }
    bool is_cut(std::int32_t f) const {
        return !value_low.empty() && (value_low[f] > -kInfinity || value_high[f] < kInfinity);
    }
    bool holds(std::int32_t f, double value) const {
        return value_low.empty() || (value >= value_low[f] && value <= value_high[f]);
    }
    bool has(const Forest& forest, std::int32_t f, std::int32_t code) const {
        if (forest.has_sets[f]) return cells[forest.word_start[f] + code / 64] >> (code % 64) & 1;
        return code >= low[f] && code <= high[f];
    }
};

// Calls visit(code) for every cell of a feature in the box.
template <class Visit>
void for_cells(const Forest& forest, const Box& box, std::int32_t f, const Visit& visit) {
    if (!forest.has_sets[f]) {
        for (std::int32_t c = box.low[f]; c <= box.high[f]; ++c) visit(c);
        return;
    }
    for (std::int32_t w = 0; w < forest.n_words; ++w)
        for (std::uint64_t word = box.cells[forest.word_start[f] + w]; word; word &= word - 1)
            visit(64 * w + std::countr_zero(word));
}

// A leaf's box: the features on its path with the codes that reach it. A set of cells is kSet + its
// number, in both ends.
constexpr std::int32_t kSet = 1 << 30;
struct Side {
    std::int32_t feature, low, high;
    bool is_set() const { return low >= kSet; }
    std::int32_t set() const { return low - kSet; }
};

double most_sides(const Forest& forest);  // what the boxes of all leaves have together, at most

struct LeafBoxes {
    explicit LeafBoxes(const Forest& forest);
    std::vector<std::int32_t> start;  // (n_leaves + 1,)
    std::vector<Side> side;
    std::vector<std::int32_t> slot_start;  // (d + 1,) a slot per feature and tree that splits on it
    std::vector<std::int32_t> slot_tree;   // (n_slots,)
    std::vector<std::uint64_t> sets;  // (n_sets, n_words) of cells, no two of one feature alike
    std::int32_t n_words;
    std::span<const std::int32_t> trees_of(std::int32_t f) const {
        return {slot_tree.data() + slot_start[f], slot_tree.data() + slot_start[f + 1]};
    }
    std::int32_t n_sets() const { return static_cast<std::int32_t>(sets.size()) / n_words; }
    const std::uint64_t* words(std::int32_t set) const {
        return sets.data() + static_cast<std::size_t>(set) * n_words;
    }
    bool set_has(std::int32_t set, std::int32_t code) const {
        return words(set)[code / 64] >> (code % 64) & 1;
    }
    bool meets(const Forest& forest, const Side& side, const Box& box) const {
        const std::uint64_t *own = words(side.set()),
                            *other = box.cells.data() + forest.word_start[side.feature];
        for (std::int32_t w = 0; w < n_words; ++w)
            if (own[w] & other[w]) return true;
        return false;
    }

private:
    void number_slots(const Forest& forest);
};

// What the exact search minimises, a norm-like function of how far each feature moves, with
// delta_f = |z_f - z'_f|:
//   sum of l1_f delta_f + sqrt(sum of l2_f delta_f^2) + max of linf_f delta_f
//   + sum of l0_f [delta_f > 0].
struct Norms {
    std::vector<double> l1, l2, linf, l0;  // (d,) each, zeros where a part is absent
    bool has_l1l0 = false, has_l2 = false, has_linf = false;
    void finish();
    bool is_additive() const { return !has_linf && !(has_l1l0 && has_l2); }
    double step(std::int32_t f, double delta) const;  // a feature's term of the additive cost
    double total(const double* delta, std::int32_t d) const;
    double to_cost(double distance) const {
        return has_l2 && !has_l1l0 && !has_linf ? distance * distance : distance;
    }
    double to_distance(double cost) const {
        return has_l2 && !has_l1l0 && !has_linf ? std::sqrt(cost) : cost;
    }
};

// The values low..high of a run of cells that ends at cell_low..cell_high, within the box and on
// the grain.
struct Ends {
    double low, high;
};
Ends ends_of(double cell_low, double cell_high, double box_low, double box_high,
             const Grain& grain);

// A value of a feature and what it costs to go there; infinity if there is none.
struct Spot {
    double value, delta;
};

struct Choices {
    Choices(const Forest& forest, const double* cell_low, const double* cell_high);
    void load(const Batch& batch, std::int64_t row);

    const Forest& forest;
    const double *cell_low, *cell_high;  // (n_thresholds + d,)
    const double* x = nullptr;
    const Batch* batch = nullptr;
    std::vector<double> value;       // (n_cells,) closest allowed value, NaN if none
    std::vector<double> delta;       // (n_cells,) |change| in the distance space
    std::vector<std::int32_t> next;  // (n_cells,) the cell itself, or the next allowed behind it
    std::vector<std::int32_t>
        by_cost;                     // (n_cells,) of a feature with sets: its cells, cheapest first
    std::vector<std::int32_t> home;  // (d,) cheapest cell
    std::vector<std::int32_t> own;   // (d,) the row's cell, kMissing where it stays missing
    std::vector<std::uint8_t> may_stay;  // (d,) the row's own value is allowed
    Box all;                             // every allowed cell
    std::vector<double> low, high;       // (d,) the row's box
    // (n_leaves,) leaves that a missing value routes away from
    std::vector<std::uint8_t> is_blocked;
    bool is_empty = false, has_missing = false;

    std::int32_t at(std::int32_t f, std::int32_t code) const { return forest.cell_start[f] + code; }
    bool is_reachable(const LeafBoxes& boxes, std::int32_t leaf, const Box& box) const {
        if (has_missing && is_blocked[leaf]) return false;
        for (std::int32_t i = boxes.start[leaf]; i < boxes.start[leaf + 1]; ++i) {
            const Side& side = boxes.side[i];
            if (side.low > box.high[side.feature] || side.high < box.low[side.feature])
                if (!side.is_set() || !boxes.meets(forest, side, box)) return false;
        }
        return true;
    }
    // The closest allowed cell of a feature in the box, or kNone if it has none.
    std::int32_t closest(std::int32_t f, const Box& box) const;
    // The closest allowed value of a cell in the box.
    Spot spot(std::int32_t f, std::int32_t code, const Box& box) const;
    // The smallest and the largest allowed number of a feature in the box, low above high if there
    // is none.
    Ends hull(std::int32_t f, const Box& box) const;
    // The next number above or below that the column can hold.
    double after(std::int32_t f, double value) const {
        return grain_of(f).up(std::nextafter(value, kInfinity));
    }
    double before(std::int32_t f, double value) const {
        return grain_of(f).down(std::nextafter(value, -kInfinity));
    }
    Grain grain_of(std::int32_t f) const { return batch->grain_of(f); }
    bool is_category(std::int32_t f) const {
        return forest.has_sets[f] && cell_low[at(f, 0)] == cell_high[at(f, 0)];
    }
    // The row's own value is allowed and in the box.
    bool can_stay(std::int32_t f, const Box& box) const;
    bool is_allowed(std::int32_t f, std::int32_t code) const { return next[at(f, code)] == code; }

private:
    std::int32_t closest_cut(std::int32_t f, const Box& box) const;
    void load_sets(const Batch& batch, std::int64_t row, std::int32_t f, std::int32_t first_cell);
    void load_range(std::int32_t f);
    void block(std::int32_t node);
};

}  // namespace treefocus
