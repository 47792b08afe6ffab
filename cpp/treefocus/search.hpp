// The search for one answer: is there one cheaper than `limit`? exact.hpp says how.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "treefocus/cost.hpp"
#include "treefocus/exact.hpp"
#include "treefocus/running.hpp"

namespace treefocus {

class Search {
public:
    using Clock = std::chrono::steady_clock;
    Search(const Forest& forest, const ExactShared& shared, const TreeGrids* grids, const Choices& choices, BoxCost& cost,
           const Limits& limits, const Plan& plan, const Batch& batch, Control& control, Clock::time_point began);

    // Looks for an answer cheaper than limit. True if the search came to its end: then `limit` is proven.
    bool run(const Goal& goal, double limit, std::int64_t target_class);
    double limit() const { return limit_; }
    bool has_answer() const { return !best_.empty(); }
    const std::vector<double>& best() const { return best_; }
    std::int64_t nodes() const { return nodes_; }
    bool is_out() const { return is_out_; }
    std::int64_t node_limit = 0;     // 0 = none
    // What the last run proved even if it did not come to its end, or left boxes it could not decide.
    double proven() const { return std::min(is_out_ ? root_bound_ : limit_, unresolved_); }
    // What the cheapest box costs that could not be decided, infinity if there was none.
    double unresolved() const { return unresolved_; }

private:
    void add(const ScoreTest& test, double need) { running_.emplace_back(test, need, shared_.boxes, choices_, box_); }

    // Lets the tests see what has changed; false if one can no longer be met.
    bool update_tests();

    // The box.
    void set_range(std::int32_t f, std::int32_t low, std::int32_t high);

    // Keeps the cells of a feature with sets for which keep(code).
    template <class Keep>
    void set_cells(std::int32_t f, const Keep& keep);
    void set_values(std::int32_t f, double low, double high, bool moves);
    void note_changed(std::int32_t f);

    // Cells that the budget does not reach leave the box. False if the box is done.
    bool spend();
    void spend_on_set(std::int32_t f, std::int32_t at);

    // What the rules leave out leaves the box. False if the box is done.
    bool obey();
    bool is_obedient();
    void make_stay(std::int32_t f);

    // A point that was rounded, or is dearer than the bound, is found anew where the box has lost what it was before, or
    // could have a better bound. False if the box is done.
    bool keep_point();

    // Finds the closest point anew where the box has lost it; what was there before goes on the trail. False if the box
    // holds no point.
    bool settle_again();

    struct Mark {
        std::size_t ranges, pointers;
        std::vector<double> totals;
    };
    Mark mark() const;
    void undo(const Mark& m);

    // A bound that reaches this is as good as the limit.
    double least() const { return limit_ * (1.0 - kTolerance) - cost_.noise; }

    // The tree of boxes.
    bool is_time_up();
    bool is_late() const;

    // Bounds the current box; true if it is done (nothing cheaper than limit in it, or its best is taken).
    bool close_box();

    // Whether a cut leaves something on both sides, with the closest point on the near one. It always does, unless
    // rounding put the closest point of a coupled distance outside the box.
    bool can_split(const Cut& cut) const;
    bool can_split_values(const Cut& cut) const;
    void split_values(const Cut& cut, bool is_far);
    bool is_far_cell(const Cut& cut, std::int32_t code) const;

    // A box that cannot be split: a cell without an answer is done; of anything else it is only known what it costs.
    void give_up(const Cut& cut);

    // Plain depth first until the box budget is used up; false if cut off. The far side is a call, the near side goes on
    // in this one, so that the stack is only as deep as steps were taken.
    bool plain(std::int64_t last_node);
    bool enter(const Cut& cut, bool is_far);
    void leave(const Cut& cut, bool is_far, const Mark& m);
    void sync();

    // Boxes that plain search cannot finish get a priced bound of their own.
    bool deep(int depth, const Price::State& around);

    // Where to split (branch.cpp): the threshold that most score lies behind, weighed by what the step there costs.
    Cut choose();

    // The cuts of a feature, the farthest first on either side, so that a running sum is the gain that lies behind.
    void weigh_thresholds(const Running& one, std::int32_t f);
    void weigh_sets(const Running& one, std::int32_t f);
    void weigh(const Cut& cut, double behind);

    // What the far side costs at least.
    double cost_of(const Cut& cut) const;

    // The test that the closest point misses by most.
    std::size_t hardest() const;

    // Any split at all: scores within rounding of each other leave no better guide.
    Cut any_cut();

    static constexpr double kTolerance = 1e-10;        // bounds count as reached this close to the limit, relatively
    static constexpr std::int64_t kRootBoxes = 5000;   // plain boxes before a box gets a priced bound
    static constexpr std::int64_t kBoxes = 1000;
    static constexpr std::int64_t kAllBoxes = std::numeric_limits<std::int64_t>::max() / 4;
    static constexpr std::size_t kLongestTrail = 10'000'000;
    static constexpr int kRootSweeps = 30, kSweeps = 6;
    static constexpr std::int64_t kPricedBoxes = 20;   // what a priced bound counts as

    enum class Kept : std::uint8_t { range, values, cost };
    struct Before { Kept kept; std::int32_t feature, low, high; };
    struct ValuesBefore { double low, high; std::uint8_t moves; };
    struct PointerBefore { std::int32_t test, tree, position; };
    struct Pull { std::int32_t code; double gain; };

    const Forest& forest_;
    const ExactShared& shared_;
    const Choices& choices_;
    BoxCost& cost_;
    const Limits& limits_;
    const Plan& plan_;
    Control& control_;
    Clock::time_point began_;
    Walker walker_;
    std::optional<Price> price_;
    const Rules* relations_ = nullptr;
    std::optional<BoxRules> rules_;
    std::vector<double> candidate_;
    Box box_;
    std::vector<Running> running_;
    std::size_t n_plain_ = 0;
    std::vector<std::int32_t> changed_;
    std::int64_t nodes_ = 0, to_ = 0;
    std::vector<double> gain_, pull_set_;
    std::vector<Pull> above_, below_;
    std::vector<std::int32_t> touched_;
    Cut best_cut_;
    double best_score_ = -1.0;
    std::vector<Before> trail_;                // what was there before, the last change at the end
    std::vector<std::uint64_t> word_trail_;    // the cells of ranges that are sets
    std::vector<ValuesBefore> value_trail_;
    std::vector<PointerBefore> pointer_trail_;
    std::vector<double> cost_trail_;
    std::vector<double> best_;
    double limit_ = kInfinity;
    double unresolved_ = kInfinity, root_bound_ = 0.0;
    bool is_out_ = false;
};

}  // namespace treefocus
