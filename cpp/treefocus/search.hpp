// The search for one answer: is there one cheaper than `limit`? exact.hpp says how.
//
// Its parts: the position (position.hpp) is the box with its closest point and its tests, the
// brancher (branch.hpp) says where to split, the price (price.hpp) bounds boxes that plain search
// cannot finish, the work (below) says when to stop, and the loop is here.
#pragma once

#include <chrono>
#include <optional>

#include "treefocus/branch.hpp"
#include "treefocus/exact.hpp"
#include "treefocus/position.hpp"
#include "treefocus/price.hpp"

namespace treefocus {

// What a row's search has spent, and whether that was all.
class Work {
public:
    Work(const Limits& limits, const Control& control)
        : limits_(limits), control_(control), began_(Clock::now()) {}
    std::int64_t boxes = 0;
    std::int64_t box_limit = 0;  // 0 = none
    bool is_out = false;         // a limit was met
    bool is_up();                // looks whether one is
    bool is_late() const;

private:
    using Clock = std::chrono::steady_clock;
    const Limits& limits_;
    const Control& control_;
    Clock::time_point began_;
};

class Search {
public:
    Search(Position& position, Work& work, const TreeGrids* grids, int max_depth);

    // Looks for an answer cheaper than limit. True if the search came to its end: then `limit` is
    // proven.
    bool run(const Goal& goal, double limit);
    double limit() const { return at_.limit; }
    bool has_answer() const { return !best_.empty(); }
    const std::vector<double>& best() const { return best_; }
    // What the last run proved even if it did not come to its end, or left boxes it could not
    // decide.
    double proven() const { return std::min(work_.is_out ? root_bound_ : at_.limit, unresolved_); }
    // What the cheapest box costs that could not be decided, infinity if there was none.
    double unresolved() const { return unresolved_; }

private:
    // Bounds the current box; true if it is done (nothing cheaper than limit in it, or its best is
    // taken).
    bool close_box();

    // Cells that the budget does not reach leave the box. False if the box is done.
    bool spend();
    void spend_on_set(std::int32_t f, std::int32_t at);

    // What the rules leave out leaves the box. False if the box is done.
    bool obey();

    // A point that was rounded, or is dearer than the bound, is found anew where the box has lost
    // what it was before, or could have a better bound. False if the box is done.
    bool keep_point();

    // A box that cannot be split: a cell without an answer is done; of anything else it is only
    // known what it costs.
    void give_up(const Cut& cut);

    // Plain depth first until so many boxes have been opened; false if cut off. The far side is a
    // call, the near side goes on in this one, so that the stack is only as deep as steps were
    // taken.
    bool plain(std::int64_t last_box);
    bool enter(const Cut& cut, bool is_far);
    void leave(const Cut& cut, bool is_far, const Position::Mark& m);

    // Boxes that plain search cannot finish get a priced bound of their own, and are split with it.
    bool deep(int depth, const Price::State& around);
    bool branch(int depth, const Price::State& around);

    // The priced bound of the current box, and its test while there is one to be used inside.
    struct Priced {
        bool is_closed = false, is_installed = false;
        Price::State state;
        ScoreTest test;
        std::optional<Running> outer;
    };
    void price_box(int depth, Priced& priced);

    // Plain boxes before a box gets a priced bound.
    static constexpr std::int64_t kRootBoxes = 5000;
    static constexpr std::int64_t kBoxes = 1000;
    static constexpr std::int64_t kAllBoxes = std::numeric_limits<std::int64_t>::max() / 4;
    static constexpr int kRootSweeps = 30, kSweeps = 6;
    static constexpr std::int64_t kPricedBoxes = 20;  // what a priced bound counts as

    Position& at_;
    Work& work_;
    Brancher brancher_;
    std::optional<Price> price_;
    int max_depth_;
    std::vector<double> best_;
    double unresolved_ = kInfinity, root_bound_ = 0.0;
};

}  // namespace treefocus
