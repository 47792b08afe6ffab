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

    // Starts in a box, on the way to a goal and below a limit. In three steps, between which the
    // search narrows the box: the box; its closest point, false if it has none; and the tests, for
    // what the box then leaves of the forest, false if one of them cannot be met.
    void start(const Goal& goal, double limit, const Box& box);
    bool settle();
    bool test();

    // Before the first mark, in a box that may have been narrowed since: leaves of the crop that
    // are not marked (n_open,) have no answer cheaper than the limit. False if a test cannot be
    // met.
    bool keep(const std::vector<std::uint8_t>& is_kept);

    // A place to come back to. Places are left in the opposite order of their marks.
    struct Mark {
        std::size_t trail, pointers, costs, totals;
    };
    Mark mark();
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
    // The number of the test that could not be met, by the last call or at the start; -1 if none.
    std::int32_t failed_test() const { return failed_test_; }

    // One more test, with priced leaf weights of the crop: an answer cheaper than the limit has a
    // sum of at least constant - limit. It stands until the next start.
    void price(const Ranking& priced, double constant);

    // The test that the closest point misses by most.
    const Running& hardest() const;
    const Goal& goal() const { return *goal_; }
    // The leaves that the box reached when the tests were made.
    const Crop& crop() const { return crop_; }

    // What was looked at since the last call, in about the time of one comparison each.
    std::int64_t take_looks();

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
    bool is_plain = false;     // tests ask for the need itself, not for whole votes
    std::int64_t to = 0;       // the class to reach

private:
    void sync();
    bool means_are_met() const;
    bool make_tests();

    // Bounds count as reached this close to the limit, relatively.
    static constexpr double kTolerance = 1e-10;
    // What the walker does at a node, of a look.
    static constexpr std::int64_t kNodesPerLook = 3;

    struct PointerBefore {
        std::int32_t test, tree, position;
    };
    const Goal* goal_ = nullptr;
    Crop crop_;
    std::vector<Ranking> ranking_;  // of the goal's tests, and of the voices of its means
    // The goal's tests, then those of the voices, then the priced one if there is one.
    std::vector<Running> running_;
    std::size_t n_plain_ = 0;  // all but that
    std::int32_t failed_test_ = -1;
    std::vector<double> totals_;  // of all tests, mark after mark
    // Where pointers stood before they moved, in order.
    std::vector<PointerBefore> pointers_;
    // What BoxCost::save and save_all have put away, the two mixed in the order of the calls.
    std::vector<double> cost_stack_;
    std::size_t n_costs_ = 0;  // how often the whole cost was saved
    std::vector<double> point_;
};

}  // namespace treefocus
