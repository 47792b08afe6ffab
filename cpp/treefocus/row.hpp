// The search for one row: which boxes are searched, and below which limits.
//
// A short try at the whole question comes first; most rows end there. Then the space is a frontier
// of nodes, each a box with a proven bound: no answer in it is cheaper. The node with the least
// bound is taken out and searched below a limit somewhat above its bound. What comes to its end
// goes back with that limit as its bound; what does not is split in two. So at every moment
//     no answer is cheaper than the least bound of the frontier,
// and this is what is proven when the work is up. Low limits come first, since boxes end at the
// budget: they cost little, and they rise like a geometric series, so that all of them together
// cost a few times the last one.
//
// In between, neighbourhoods of the best answer are searched to their end: all features but a few
// stay where the answer has them. Every answer lowers the limit of all that follows.
//
// Both come in rounds: some neighbourhoods, and the nodes with the least bounds that are searched
// below the same limit. A round's tasks know nothing of each other, so that all threads at the row
// take part (crew.hpp), and are put together in their order, so that it does not matter how many.
//
// What happens next hangs on what has happened, never on how much work is allowed: more work goes
// on where less would have ended, so that its answer is no farther and its bound no lower.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "treefocus/crew.hpp"
#include "treefocus/search.hpp"

namespace treefocus {

// What a thread needs of its own to search boxes of a row.
struct Searcher {
    Searcher(const ExactShared& shared, const Choices& choices, std::unique_ptr<BoxCost> own_cost,
             const Rules* rules, const Work& all, const Plan& plan, std::int64_t patience)
        : cost(std::move(own_cost)),
          position(choices.forest, shared, choices, *cost, rules),
          work(all),
          search(position, work, plan.can_price, patience) {}
    std::unique_ptr<BoxCost> cost;
    Position position;
    Work work;
    Search search;
};

class RowSearch {
public:
    using MakeCost = std::function<std::unique_ptr<BoxCost>()>;
    RowSearch(const ExactShared& shared, const Choices& choices, const MakeCost& make_cost,
              const Limits& limits, const Plan& plan, const Batch& batch, std::int64_t row,
              Team& team, const Control& control, std::int64_t boxes, std::int64_t steps);

    // `best` holds an answer at `distance`, or nothing at infinity; both are improved in place.
    Answer run(double* best, double distance, Part part);

private:
    // A node, or a neighbourhood of the best answer; and what came of its search.
    struct Task {
        Node node, near;
        Box box;
        bool is_near = false;
        double limit = kInfinity;
        Search::Look look = Search::Look::stopped;
        bool is_done = false;
        double reached = kInfinity;  // by an answer
        std::vector<double> best;
        Node searched;
        std::int64_t boxes = 0, steps = 0;
        bool is_out = false;  // a limit was met
    };

    void try_all();
    void advance();  // by a round
    void gather();
    void put_in_order();
    void do_task(Task& task, Searcher& own) const;
    bool take(Task& task, bool is_first);
    void put_back(Task& task);
    Searcher& searcher(std::size_t member);

    double limit_for(const Node& node) const;
    void push_goal(std::size_t goal);  // all of it
    void push(Node&& node);
    Node pop();
    bool is_proven(double bound) const;
    double proven() const;
    void close(double proven, double bound);

    // Answers near the best one.
    void gather_near();
    bool free_some(Box& box, std::int32_t n_free);
    void fix(Box& box, std::int32_t f, std::int32_t code) const;

    void take_answer(double reached, const std::vector<double>& best);
    Answer answer() const;

    static constexpr std::int64_t kFirstTry = 3000, kLeastTry = 300;  // boxes
    static constexpr double kFirstLimit = 0.1;  // of the known answer's distance
    static constexpr double kHardlyBelow =
        1.04;                                   // the best answer, by how much a limit is below it
    static constexpr double kFastGrowth = 1.5;  // of limits up to kNear of that distance,
    static constexpr double kNear = 0.4;
    static constexpr double kGrowth = 1.15;  // and beyond
    static constexpr int kDoublings = 30;    // without an answer this far out, look everywhere
    // Neighbourhoods: their part of all work, boxes each, features that move.
    static constexpr double kNearPart = 0.15;
    static constexpr std::int64_t kNearBoxes = 500;
    static constexpr std::int32_t kFewest = 3;
    // Tasks of a round, at most; up to how many nodes of higher limits fill it; neighbourhoods.
    static constexpr std::size_t kRound = 16, kFewTasks = 12, kMostNear = 3;

    const ExactShared& shared_;
    const Choices& choices_;
    const MakeCost& make_cost_;
    const Limits& limits_;
    const Plan& plan_;
    const Rules* rules_;
    Team& team_;
    Work work_;                                         // of all threads
    std::vector<std::unique_ptr<Searcher>> searchers_;  // a member of the team
    BoxCost& cost_;                                     // the owner's
    std::vector<Goal> goals_;
    double* best_ = nullptr;
    double upper_ = kInfinity, distance_ = kInfinity;
    double scale_ = kInfinity;    // the distance that limits rise to, of the first answer known
    double smallest_ = 1.0;       // and the step that they rise from where none is
    std::vector<Node> frontier_;  // a heap, the least bound on top
    std::int64_t n_nodes_ = 0;
    double closed_ = kInfinity;  // what is proven of what has left the frontier
    bool is_undecided_ = false;  // and whether a box was left in it that no split decides
    double state_bytes_ = 0.0;
    std::vector<Task> tasks_;         // of the round
    std::vector<std::size_t> order_;  // in which they are begun
    std::int64_t near_steps_ = 0, n_near_ = 0, began_ = 0;
    bool can_improve_ = true;
    std::int32_t n_free_ = kFewest + 1;
    std::uint64_t random_ = 0x9e3779b97f4a7c15u;
    std::vector<std::int32_t> codes_;
};

}  // namespace treefocus
