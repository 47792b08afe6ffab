// The forest as two features see it while all others stay: every tree shrinks to a few rectangles
// of cells, and the sum of the trees is constant between the cuts that are left. So all trades
// between two features are tried at once.
#pragma once

#include <vector>

#include "treefocus/box.hpp"
#include "treefocus/goal.hpp"

namespace treefocus {

// One of the two features: a range of its cells, cut into runs that no tree tells apart.
struct Axis {
    std::int32_t feature = 0, low = 0, high = 0;
    // (high - low + 2,) the run of a cell; the last entry is the number of runs
    std::vector<std::int32_t> run_of;
    std::vector<std::int32_t> first;  // (n_runs + 1,) the first cell of a run
    std::int32_t n_runs() const { return static_cast<std::int32_t>(first.size()) - 1; }
    void reset(std::int32_t f, std::int32_t from, std::int32_t to);
    void cut(std::int32_t code) { run_of[code - low] = 1; }
    void finish();  // from cuts to runs
};

class Plane {
public:
    Plane(const Forest& forest, const LeafBoxes& boxes)
        : forest_(forest), boxes_(boxes), is_seen_(forest.n_trees()) {}

    // Sets the features and ranges; both features split by thresholds, and their codes are not
    // missing.
    void place(std::int32_t f, std::int32_t f_low, std::int32_t f_high, std::int32_t g,
               std::int32_t g_low, std::int32_t g_high, const std::int32_t* codes,
               const std::int32_t* leaves);
    // The same with one feature alone: a plane of one column.
    void place_line(std::int32_t f, std::int32_t low, std::int32_t high, const std::int32_t* codes,
                    const std::int32_t* leaves);
    const Axis& rows() const { return f_; }
    const Axis& columns() const { return g_; }
    std::size_t n_cells() const { return static_cast<std::size_t>(f_.n_runs()) * g_.n_runs(); }

    // Where a goal may be met: may_be(row, column). Tests are sums with a tolerance, the model has
    // the last word.
    void ask(const std::vector<Goal>& goals);
    bool may_be(std::int32_t row, std::int32_t column) const {
        return may_be_[static_cast<std::size_t>(row) * g_.n_runs() + column];
    }

private:
    struct Rectangle {
        std::int32_t node, f_low, f_high, g_low, g_high;  // a subtree; in the end a leaf
    };
    void see(const std::int32_t* codes, const std::int32_t* leaves);
    void shrink(std::int32_t root, const std::int32_t* codes);
    void split(const Rectangle& at, Axis& axis, std::int32_t Rectangle::* low,
               std::int32_t Rectangle::* high);
    void add_up(const ScoreTest& test);
    const Forest& forest_;
    const LeafBoxes& boxes_;
    Axis f_, g_;
    std::vector<std::uint8_t> is_seen_;  // (n_trees,) trees that split on one of the two
    std::vector<std::int32_t> still_;    // leaves of the trees that see none of it
    std::vector<Rectangle> rectangles_, open_;
    // Corners first, sums in the end.
    std::vector<double> sum_;  // (n_rows + 1, n_columns + 1)
    std::vector<std::uint8_t> may_be_, meets_;
};

}  // namespace treefocus
