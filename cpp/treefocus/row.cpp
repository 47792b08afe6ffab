#include "treefocus/row.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace treefocus {

namespace {

// The shortest way out of the row's own cell in any feature: limits start there when no answer is
// known. Twice that step, so that the first limit leaves room for one; 1 where nothing can move.
double smallest_step(const Choices& choices, const BoxCost& cost) {
    double smallest = kInfinity;
    for (std::int32_t f = 0; f < choices.forest.n_features; ++f) {
        if (choices.home[f] == kMissing) continue;
        for_cells(choices.forest, choices.all, f, [&](std::int32_t code) {
            if (!choices.forest.has_sets[f] && std::abs(code - choices.home[f]) != 1) return;
            if (const double step = cost.to_distance(cost.with(f, code)); step > 0.0)
                smallest = std::min(smallest, step);
        });
    }
    return smallest < kInfinity ? 2.0 * smallest : 1.0;
}

// The least bound on top; among equals the node that was made first, so that the order is the same
// everywhere.
bool is_behind(const Node& a, const Node& b) {
    return a.bound != b.bound ? a.bound > b.bound : a.number > b.number;
}

}  // namespace

RowSearch::RowSearch(const ExactShared& shared, const Choices& choices, const MakeCost& make_cost,
                     const Limits& limits, const Plan& plan, const Batch& batch, std::int64_t row,
                     Team& team, const Control& control, std::int64_t boxes, std::int64_t steps)
    : shared_(shared),
      choices_(choices),
      make_cost_(make_cost),
      limits_(limits),
      plan_(plan),
      rules_(batch.rules),
      team_(team),
      work_(limits, control, boxes, steps),
      searchers_(std::max(plan.n_threads, 1)),
      cost_(*searcher(0).cost),
      goals_(shared.goals.of(batch.origin[row], batch.target[row])),
      began_(steps) {}

// Made by the thread that it is for, on its first task.
Searcher& RowSearch::searcher(std::size_t member) {
    std::unique_ptr<Searcher>& own = searchers_[member];
    if (!own)
        own = std::make_unique<Searcher>(shared_, choices_, make_cost_(), rules_, work_, plan_,
                                         limits_.patience);
    return *own;
}

Answer RowSearch::run(double* best, double distance, Part part) {
    best_ = best;
    upper_ = distance < kInfinity ? cost_.to_cost(distance) : kInfinity;
    distance_ = distance;
    if (part == Part::rest)
        for (std::size_t goal = 0; goal < goals_.size(); ++goal) push_goal(goal);
    else try_all();
    if (part == Part::short_try) return answer();
    if (!frontier_.empty() && upper_ == kInfinity) {
        cost_.set_limit(kInfinity);
        if (cost_.settle(choices_.all)) smallest_ = smallest_step(choices_, cost_);
    }
    while (!frontier_.empty() && !is_proven(frontier_.front().bound) && !work_.is_up()) advance();
    return answer();
}

// The whole question below the best answer, a part of the boxes for every goal; goals that do not
// come to their end are the frontier's first nodes.
void RowSearch::try_all() {
    const auto n_goals = static_cast<std::int64_t>(std::max<std::size_t>(goals_.size(), 1));
    const std::int64_t boxes = std::max(kFirstTry / n_goals, kLeastTry);
    Searcher& own = searcher(0);
    for (std::size_t goal = 0; goal < goals_.size(); ++goal) {
        own.work.begin(work_);
        const bool is_done =
            !work_.is_up() && own.search.run(goals_[goal], upper_, choices_.all, boxes);
        if (!work_.is_out) work_.take(own.work);
        if (own.search.has_answer()) take_answer(own.search.limit(), own.search.best());
        if (is_done)
            close(std::min(own.search.limit(), own.search.unresolved()), own.search.limit());
        else push_goal(goal);
    }
}

// Bounds count as reached this close to the best answer.
bool RowSearch::is_proven(double bound) const {
    return bound >= upper_ * (1.0 - BoxCost::kTight) - cost_.noise;
}

void RowSearch::push_goal(std::size_t goal) {
    Node node;
    node.goal = goal;
    push(std::move(node));
}

void RowSearch::push(Node&& node) {
    node.number = n_nodes_++;
    frontier_.push_back(std::move(node));
    std::push_heap(frontier_.begin(), frontier_.end(), is_behind);
}

// The next limit above a node's bound. Without any answer limits double; after kDoublings of them
// the whole space is searched, which is the only way to learn that there is none.
double RowSearch::limit_for(const Node& node) const {
    const double bound = node.bound * (1.0 + 1e-6);
    if (upper_ == kInfinity) {
        double reach = smallest_;
        for (int i = 0; i < kDoublings; ++i, reach *= 2.0)
            if (cost_.to_cost(reach) > bound) return cost_.to_cost(reach);
        return kInfinity;
    }
    // A limit hardly below the best answer would only be searched again; nor is one looked for that
    // is above the bound and does not exist, where costs have an end and the bound is beyond it.
    for (double reach = kFirstLimit * scale_; reach * kHardlyBelow < distance_;
         reach *= reach < kNear * scale_ ? kFastGrowth : kGrowth)
        if (const double limit = cost_.to_cost(reach); limit > bound) return limit;
    return upper_;
}

Node RowSearch::pop() {
    std::pop_heap(frontier_.begin(), frontier_.end(), is_behind);
    Node node = std::move(frontier_.back());
    frontier_.pop_back();
    return node;
}

// One round: tasks are gathered, done by all threads at the row, and put together in their order.
void RowSearch::advance() {
    if (scale_ == kInfinity && upper_ < kInfinity) scale_ = distance_;
    gather();
    put_in_order();
    team_.each(tasks_.size(), [this](std::size_t task, std::size_t member) {
        do_task(tasks_[order_[task]], searcher(member));
    });
    std::size_t taken = 0;
    while (taken < tasks_.size() && take(tasks_[taken], taken == 0)) ++taken;
    for (; taken < tasks_.size(); ++taken) put_back(tasks_[taken]);
    tasks_.clear();
}

// What takes longest is begun first, so that all threads come to the end of a round together: what
// has no shares yet, then nodes by the size of their shares.
void RowSearch::put_in_order() {
    const auto size = [&](std::size_t i) {
        const auto& shares = tasks_[i].node.shares;
        return shares ? shares->bytes() : kInfinity;
    };
    order_.resize(tasks_.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::size_t a, std::size_t b) { return size(a) > size(b); });
}

// Nodes that are searched below the same limit: none of them is a guess, each has to be searched
// there before the bound of the row can reach the limit.
void RowSearch::gather() {
    gather_near();
    const double least = limit_for(frontier_.front());
    while (tasks_.size() < kRound && !frontier_.empty() && !is_proven(frontier_.front().bound)) {
        const double limit = limit_for(frontier_.front());
        if (limit != least && tasks_.size() >= kFewTasks) break;
        Task& task = tasks_.emplace_back();
        task.node = task.searched = pop();
        task.limit = limit;
    }
}

// On any thread: nothing of the row changes here.
void RowSearch::do_task(Task& task, Searcher& own) const {
    own.work.begin(work_);
    Search& search = own.search;
    const Goal& goal = goals_[task.node.goal];
    if (task.is_near) task.is_done = search.run(goal, task.limit, task.box, kNearBoxes);
    else
        task.look =
            search.look(goal, task.limit, task.searched, task.near, state_bytes_ < plan_.states);
    if (search.has_answer()) task.reached = search.limit(), task.best = search.best();
    task.boxes = own.work.boxes - work_.boxes;
    task.steps = own.work.steps - work_.steps;
    task.is_out = own.work.is_out;
}

// What a task was worth. Its boxes and steps are counted behind those of the tasks before it; the
// first that does not fit into the limits is left out, and all behind it: false then. A limit in
// seconds leaves none out.
bool RowSearch::take(Task& task, bool is_first) {
    if (!is_first && !work_.has_room(task.boxes, task.steps)) {
        work_.is_out = true;
        return false;
    }
    work_.boxes += task.boxes;
    work_.steps += task.steps;
    work_.is_out = work_.is_out || task.is_out;
    if (task.reached < upper_) take_answer(task.reached, task.best);
    if (task.is_near) {
        // As many features as can be searched to the end.
        n_free_ = std::max(n_free_ + (task.is_done ? 1 : -1), kFewest);
        near_steps_ += std::max<std::int64_t>(task.steps, 1);
        ++n_near_;
        return true;
    }
    Node& node = task.searched;
    if (node.shares != task.node.shares) {
        // The first shares of a goal are kept in any case, others while there is memory.
        if (state_bytes_ < plan_.states || !task.node.shares) state_bytes_ += node.shares->bytes();
        else node.shares = task.near.shares = task.node.shares;
    }
    const bool is_closed = task.look == Search::Look::closed;
    if (is_closed && is_proven(node.bound)) close(node.proven, node.bound);
    else push(std::move(node));
    if (task.look == Search::Look::split) push(std::move(task.near));
    return true;
}

void RowSearch::put_back(Task& task) {
    if (!task.is_near) push(std::move(task.node));
}

// The goal is the class that the answer has; every feature stays but for a few, some of them that
// have moved. So many neighbourhoods that they come to their part of the work.
void RowSearch::gather_near() {
    if (!can_improve_ || upper_ == kInfinity) return;
    const double due =
        kNearPart * static_cast<double>(work_.steps - began_) - static_cast<double>(near_steps_);
    const double each =
        static_cast<double>(near_steps_) / static_cast<double>(std::max<std::int64_t>(n_near_, 1));
    for (std::size_t i = 0; i < kMostNear && due > each * static_cast<double>(i); ++i) {
        Task task;
        task.box = choices_.all;
        can_improve_ = free_some(task.box, n_free_ + static_cast<std::int32_t>(i % 2));
        if (!can_improve_) return;
        const auto to = searcher(0).position.walker.predicted();
        task.is_near = true;
        task.limit = upper_;
        for (std::size_t goal = 0; goal < goals_.size(); ++goal) {
            if (goals_[goal].to != to) continue;
            task.node.goal = goal;
            tasks_.push_back(task);
        }
    }
}

// Leaves the walker at the answer. False where the box does not hold it, or nothing would stay.
bool RowSearch::free_some(Box& box, std::int32_t n_free) {
    const Forest& forest = choices_.forest;
    const std::int32_t d = forest.n_features;
    codes_.resize(d);
    std::vector<std::int32_t> moved, others;
    for (std::int32_t f = 0; f < d; ++f) {
        codes_[f] = choices_.home[f] == kMissing ? kMissing : forest.code(f, best_[f]);
        if (codes_[f] == kMissing || forest.n_codes(f) < 2) continue;
        if (!box.has(forest, f, codes_[f])) return false;
        (codes_[f] != choices_.home[f] ? moved : others).push_back(f);
    }
    const auto most = static_cast<std::int32_t>(moved.size() + others.size());
    n_free_ = std::min(n_free_, most);
    searcher(0).position.walker.place_codes(codes_.data());
    const auto draw = [&](std::vector<std::int32_t>& from) {
        random_ ^= random_ << 13, random_ ^= random_ >> 7, random_ ^= random_ << 17;
        const std::size_t at = random_ % from.size();
        const std::int32_t f = from[at];
        from.erase(from.begin() + static_cast<std::ptrdiff_t>(at));
        return f;
    };
    std::vector<std::uint8_t> is_free(d, 0);
    for (std::int32_t i = 0; i < std::min(n_free, most); ++i) {
        std::vector<std::int32_t>& from =
            others.empty() || (i % 2 == 0 && !moved.empty()) ? moved : others;
        is_free[draw(from)] = 1;
    }
    for (std::int32_t f = 0; f < d; ++f)
        if (!is_free[f] && codes_[f] != kMissing) fix(box, f, codes_[f]);
    return true;
}

void RowSearch::fix(Box& box, std::int32_t f, std::int32_t code) const {
    if (!choices_.forest.has_sets[f]) {
        box.low[f] = box.high[f] = code;
        return;
    }
    std::uint64_t* words = box.cells.data() + choices_.forest.word_start[f];
    std::fill_n(words, choices_.forest.n_words, 0);
    words[code / 64] = std::uint64_t{1} << (code % 64);
}

void RowSearch::take_answer(double reached, const std::vector<double>& best) {
    if (!(reached < upper_)) return;
    upper_ = reached;
    distance_ = cost_.to_distance(upper_);
    std::copy(best.begin(), best.end(), best_);
}

// What leaves the frontier: nothing cheaper than `bound` is open in it, but for undecided boxes,
// which are no cheaper than `proven`.
void RowSearch::close(double proven, double bound) {
    closed_ = std::min(closed_, proven);
    is_undecided_ = is_undecided_ || proven < bound;
}

// The least of what is proven of all parts, but no more than the best answer.
double RowSearch::proven() const {
    double least = std::min(upper_, closed_);
    for (const Node& node : frontier_) least = std::min(least, node.proven);
    return least;
}

// Infeasible: every goal was searched without a limit, and no box was left open. Optimal:
// everything below the answer is proven empty, up to rounding. All else is what is known so far.
Answer RowSearch::answer() const {
    Answer answer;
    answer.nodes = work_.boxes;
    answer.steps = work_.steps;
    answer.distance = distance_;
    const double least = proven();
    answer.is_undecided =
        is_undecided_ || std::any_of(frontier_.begin(), frontier_.end(),
                                     [](const Node& node) { return node.is_undecided; });
    if (least == kInfinity) {
        answer.proof = Proof::infeasible;
        answer.lower_bound = kInfinity;
        return answer;
    }
    answer.lower_bound = std::min(cost_.to_distance(least), distance_);
    const bool is_optimal = upper_ < kInfinity && is_proven(least);
    answer.proof = is_optimal           ? Proof::optimal
                   : upper_ < kInfinity ? Proof::bounded
                                        : Proof::nothing;
    if (is_optimal) answer.lower_bound = distance_, answer.is_undecided = false;
    return answer;
}

}  // namespace treefocus
