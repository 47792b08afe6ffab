// Where a search stands: the box, its closest point, what the model says there, and how far each
// score test is met. All of it changes together on the way down and comes back on the way up.
#pragma once

#include <optional>
#include <vector>

#include "treefocus/cost.hpp"
#include "treefocus/exact.hpp"
#include "treefocus/running.hpp"
#include "treefocus/trail.hpp"

namespace treefocus {

class Position {
public:
    Position(const Forest& forest, const ExactShared& shared, const Choices& choices, BoxCost& cost,
             const Rules* rules);

    // Starts in the box of everything allowed, on the way to a goal and below a limit; false if
    // nothing can meet it.
    bool start(const Goal& goal, double limit);

    // A place to come back to.
    struct Mark {
        std::size_t trail, pointers, costs;
        std::vector<double> totals;
    };
    Mark mark() const;
    void undo(const Mark& m);

    // Finds the closest point anew where the box has lost it; what was there before comes back with
    // undo. False if the box holds no point.
    bool settle_again();

    // The same after feature f alone has lost it: save before the box changes, restore after it has
    // been undone.
    void save(std::int32_t f) { cost.save(f, cost_stack_); }
    bool settle_after(std::int32_t f);
    void restore(std::int32_t f);

    // Lets the tests see what has changed; false if one can no longer be met.
    bool update_tests();

    // One test with priced leaf weights at a time: that of an inner box takes the place of the
    // outer one's, which is given back to be put in again.
    std::optional<Running> price(const ScoreTest& priced, double constant);
    void unprice(std::optional<Running>&& outer);

    // The test that the closest point misses by most.
    const Running& hardest() const;
    const ScoreTest& first_test() const { return running_[0].test(); }

    // The closest point, as values in the user's units; whether it would do; whether it obeys.
    const std::vector<double>& point();
    bool is_wanted() { return walker.predicted() == to; }
    bool is_obedient();

    // The feature keeps the row's own value.
    void make_stay(std::int32_t f);

    // A bound that reaches this is as good as the limit.
    double least() const { return limit * (1.0 - kTolerance) - cost.noise; }

    const Forest& forest;
    const ExactShared& shared;
    const Choices& choices;
    BoxCost& cost;
    const Rules* relations;
    std::optional<BoxRules> rules;
    Trail trail;
    Walker walker;
    double limit = kInfinity;  // answers have to be cheaper
    std::int64_t to = 0;       // the class to reach

private:
    void sync();
    void add(const ScoreTest& test, double need);

    // Bounds count as reached this close to the limit, relatively.
    static constexpr double kTolerance = 1e-10;

    struct PointerBefore {
        std::int32_t test, tree, position;
    };
    std::vector<Running> running_;  // the goal's tests, then the priced one if there is one
    std::size_t n_plain_ = 0;
    // Where pointers stood before they moved, in order.
    std::vector<PointerBefore> pointers_;
    // What BoxCost::save and save_all have put away, the two mixed in the order of the calls.
    std::vector<double> cost_stack_;
    std::size_t n_costs_ = 0;  // how often the whole cost was saved
    std::vector<double> point_;
};

}  // namespace treefocus
