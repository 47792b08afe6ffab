// Boxes of the grid, and what they cost.
//
// Every feature is a list of cells (codes), so a box is a range of codes per feature. For one row, Choices holds what it
// costs to bring each feature into each cell: the closest allowed value there, or nothing if bounds, integers or other
// constraints leave none. Costs rise away from a feature's home, the cheapest cell, in both directions; a cell without
// an allowed value costs what the next one behind it costs. All box constraints are in these tables and nowhere else.
#pragma once

#include <limits>
#include <vector>

#include "treefocus/kernels.hpp"

namespace treefocus {

constexpr std::int32_t kNone = -2;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A leaf's box: the features on its path with the codes that reach it.
struct Side {
    std::int32_t feature, low, high;
};

struct LeafBoxes {
    explicit LeafBoxes(const Forest& forest);
    std::vector<std::int32_t> start;                       // (n_leaves + 1,)
    std::vector<Side> side;
    std::vector<std::vector<std::int32_t>> trees_of;       // per feature: the trees that split on it
};

// What the exact search minimises, a norm-like function of the distances moved: for delta_f = |z_f - z'_f|
//   sum of l1_f delta_f + sqrt(sum of l2_f delta_f^2) + max of linf_f delta_f + sum of l0_f [delta_f > 0].
struct Norms {
    std::vector<double> l1, l2, linf, l0;                  // (d,) each, zeros where a part is absent
    bool has_l1l0 = false, has_l2 = false, has_linf = false;
    void finish();
    bool is_additive() const { return !has_linf && !(has_l1l0 && has_l2); }
    double step(std::int32_t f, double delta) const;       // a feature's term of the additive cost
    double total(const double* delta, std::int32_t d) const;
    double to_cost(double distance) const { return has_l2 && !has_l1l0 && !has_linf ? distance * distance : distance; }
    double to_distance(double cost) const { return has_l2 && !has_l1l0 && !has_linf ? std::sqrt(cost) : cost; }
};

// The next value that a column can hold, not below / not above v.
double up_to_grain(double v, std::int8_t grain);
double down_to_grain(double v, std::int8_t grain);

// The values low..high of a run of cells that ends at cell_low..cell_high, within the box and on the grain. A float64
// column of a float32 model may also use what the cast rounds into the cells, where nothing else of them is in the box.
struct Ends {
    double low, high;
};
Ends ends_of(const Forest& forest, double cell_low, double cell_high, double box_low, double box_high, std::int8_t grain);

struct Choices {
    Choices(const Forest& forest, const double* cell_low, const double* cell_high);
    void load(const Batch& batch, std::int64_t row);

    const Forest& forest;
    const double *cell_low, *cell_high;                    // (n_thresholds + d,)
    const double* x = nullptr;
    std::vector<double> value;                             // (n_thresholds + d,) closest allowed value, NaN if none
    std::vector<double> delta;                             // (n_thresholds + d,) |change| in the distance space
    std::vector<std::int32_t> next;                        // (n_thresholds + d,) the cell itself, or the next allowed behind it
    std::vector<std::int32_t> home, first, last;           // (d,) cheapest cell; the range of allowed cells
    std::vector<double> low, high;                         // (d,) the row's box
    std::vector<std::uint8_t> is_blocked;                  // (n_leaves,) leaves that a missing value routes away from
    bool is_empty = false, has_missing = false;

    std::int32_t at(std::int32_t f, std::int32_t code) const { return forest.start[f] + f + code; }
    bool is_reachable(const LeafBoxes& boxes, std::int32_t leaf, const std::int32_t* low_code,
                      const std::int32_t* high_code) const {
        if (has_missing && is_blocked[leaf]) return false;
        for (std::int32_t i = boxes.start[leaf]; i < boxes.start[leaf + 1]; ++i) {
            const Side& side = boxes.side[i];
            if (side.low > high_code[side.feature] || side.high < low_code[side.feature]) return false;
        }
        return true;
    }
    // The closest allowed cell of a range, or kNone if it has none.
    std::int32_t closest(std::int32_t f, std::int32_t low_code, std::int32_t high_code) const;

private:
    void block(std::int32_t node);
};

}  // namespace treefocus
