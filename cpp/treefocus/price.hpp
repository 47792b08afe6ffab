// The priced bound: how little can an answer in this box cost?
//
// Put a price lambda on every missing unit of score, and let each feature's cost be paid in shares
// by the trees that split on it. Then every tree can choose its leaf alone, and for ANY price and
// ANY shares that add up to no more than the cost,
//     cost of an answer >= lambda * need + sum over trees of min over its reachable leaves of
//     (shares paid - lambda * weight).
// The shares of feature f are functions of its cell c. They start equal, and are improved feature
// by feature: with r_m(c) = the best tree m can do outside f if f is in cell c, the shares
// theta_m(c) = mean over m of q(c) - r_m(c), q(c) = cost(c) + sum of r_m(c), make all trees agree
// on what each cell is worth and never lower the bound (min-marginal averaging). The price moves
// along a line search in between.
//
// The result is used twice: as a bound at once, and as leaf weights for all boxes inside this one,
// where the shares stay valid: a ScoreTest like the plain one, checked at the same speed.
#pragma once

#include "treefocus/box.hpp"
#include "treefocus/goal.hpp"

namespace treefocus {

// A tree's own view of the grid: for each feature it uses, the intervals between its own
// thresholds. Where it splits by sets, an interval is a class of cells that it does not tell apart.
struct TreeGrids {
    explicit TreeGrids(const Forest& forest, const LeafBoxes& boxes);
    struct Axis {
        // Intervals are numbered over the whole forest.
        std::int32_t feature, first_interval, n_intervals;
    };
    struct Span {
        std::int32_t axis, low, high;  // a run of a leaf's intervals on one of its tree's axes
    };
    std::vector<std::int32_t> axis_start;  // (n_trees + 1,)
    std::vector<Axis> axis;
    std::vector<std::int32_t> interval_low,
        interval_high;                     // (n_intervals,) codes, or positions in class_cell
    std::vector<std::int32_t> class_cell;  // the cells of classes, one class after another
    // (n_leaves + 1,) a leaf's runs, those of an axis together
    std::vector<std::int32_t> span_start;
    std::vector<Span> span;
    std::vector<std::vector<std::int32_t>> axes_of;  // per feature: the axes on it
    std::vector<std::int32_t> tree_of_axis;

private:
    void add_axis(const Forest& forest, std::int32_t tree, std::int32_t f);
    void add_ranges(const Forest& forest, std::int32_t tree, std::int32_t f);
    void add_classes(const Forest& forest, std::int32_t tree, std::int32_t f);
    void add_spans(const Forest& forest, const LeafBoxes& boxes, const Side& side,
                   std::int32_t axis);
};

class Price {
public:
    Price(const Forest& forest, const LeafBoxes& boxes, const TreeGrids& grids);

    // Price and shares. They hold for the box they were computed for and for every box inside it.
    struct State {
        double lambda = 0.0;                  // 0: none yet
        std::vector<double> mean;             // (n_cells,) q(c) / n
        std::vector<double> outside;          // (n_intervals,) r_m
        std::vector<std::uint8_t> is_active;  // (n_axes,) axes that pay a share
    };

    // The bound for a box; cost (n_cells,) is the additive cost of each cell.
    // Starts from the state of a box around it, or of none, and leaves the improved one in `state`.
    // Stops early once the bound reaches `limit`, or when it is late.
    double bound(const Choices& choices, const std::vector<double>& cost, const Box& box,
                 const ScoreTest& test, double limit, int sweeps, State& state,
                 const std::function<bool()>& is_late);

    // The same bound as a test for boxes inside the last one: an answer cheaper than limit has
    // sum of weight >= constant() - limit.
    void export_to(ScoreTest& test) const;
    double constant() const { return constant_; }

private:
    // Calls visit(code) for the cells of an interval that are in the box.
    template <class Visit>
    void for_interval(const TreeGrids::Axis& axis, std::int32_t interval, const Visit& visit) const;
    double total(double lambda) const;
    void start(const std::vector<double>& cost);
    void search_price(double from, double to, int steps);
    void refresh_axis(std::int32_t axis);
    void refresh_tree(std::int32_t tree);
    void sweep(std::int32_t f, const std::vector<double>& cost);
    void best_outside(std::int32_t axis);

    const Forest& forest_;
    const LeafBoxes& boxes_;
    const TreeGrids& grids_;
    const Choices* choices_ = nullptr;
    const ScoreTest* test_ = nullptr;
    const Box* box_ = nullptr;
    State* state_ = nullptr;
    // lambda * need + free_cost_; and what features cost that no tree pays for.
    double constant_ = 0.0, free_cost_ = 0.0;
    std::vector<double> share_;     // (n_intervals,) min over the interval's cells of the share
    std::vector<double> axis_min_;  // (n_axes,) min over its intervals
    std::vector<double> paid_;      // (n_leaves,) sum of shares
    std::vector<double> best_;
    std::vector<std::uint8_t> is_open_;  // (n_leaves,) reachable
};

}  // namespace treefocus
