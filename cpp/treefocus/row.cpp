#include "treefocus/row.hpp"

#include <algorithm>
#include <cmath>

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

RowSearch::RowSearch(const ExactShared& shared, const Choices& choices, BoxCost& cost,
                     const Limits& limits, const Plan& plan, const Batch& batch, std::int64_t row,
                     const Control& control, std::int64_t boxes, std::int64_t steps)
    : choices_(choices),
      cost_(cost),
      plan_(plan),
      position_(choices.forest, shared, choices, cost, batch.rules),
      work_(limits, control, boxes, steps),
      search_(position_, work_, plan.can_price, limits.patience),
      goals_(shared.goals.of(batch.origin[row], batch.target[row])),
      began_(steps) {}

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
    while (!frontier_.empty() && !is_proven(frontier_.front().bound) && !work_.is_up()) {
        if (near_steps_ < kNearPart * static_cast<double>(work_.steps - began_)) improve();
        if (!work_.is_up()) advance();
    }
    return answer();
}

// The whole question below the best answer, a part of the boxes for every goal; goals that do not
// come to their end are the frontier's first nodes.
void RowSearch::try_all() {
    const auto n_goals = static_cast<std::int64_t>(std::max<std::size_t>(goals_.size(), 1));
    const std::int64_t boxes = std::max(kFirstTry / n_goals, kLeastTry);
    for (std::size_t goal = 0; goal < goals_.size(); ++goal) {
        const bool is_done =
            !work_.is_up() && search_.run(goals_[goal], upper_, choices_.all, boxes);
        take_answer();
        if (is_done) close(std::min(search_.limit(), search_.unresolved()), search_.limit());
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

// One node: taken out, searched below its limit, and put back, whole or in two parts.
void RowSearch::advance() {
    if (scale_ == kInfinity && upper_ < kInfinity) scale_ = distance_;
    std::pop_heap(frontier_.begin(), frontier_.end(), is_behind);
    Node node = std::move(frontier_.back()), near;
    frontier_.pop_back();
    const auto* shares = node.shares.get();
    const Search::Look look =
        search_.look(goals_[node.goal], limit_for(node), node, near, state_bytes_ < plan_.states);
    take_answer();
    if (node.shares.get() != shares) state_bytes_ += node.shares->bytes();
    if (look == Search::Look::split) {
        push(std::move(node));
        push(std::move(near));
    } else if (look == Search::Look::closed && is_proven(node.bound)) {
        close(node.proven, node.bound);
    } else {
        push(std::move(node));
    }
}

// The goal is the class that the answer has; every feature stays but for a few, some of them that
// have moved. As many as can be searched to the end: one more after a search that came to its end,
// one fewer after one that did not.
void RowSearch::improve() {
    const std::int64_t before = work_.steps;
    Box box = choices_.all;
    if (upper_ == kInfinity || !free_some(box)) {
        near_steps_ = std::numeric_limits<std::int64_t>::max() / 2;
        return;
    }
    const auto to = position_.walker.predicted();
    for (const Goal& goal : goals_) {
        if (goal.to != to) continue;
        const bool is_done = search_.run(goal, upper_, box, kNearBoxes);
        take_answer();
        n_free_ = std::max(n_free_ + (is_done ? 1 : -1), kFewest);
    }
    near_steps_ += std::max<std::int64_t>(work_.steps - before, 1);
}

// Leaves the walker at the answer. False where the box does not hold it, or nothing would stay.
bool RowSearch::free_some(Box& box) {
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
    n_free_ = std::min(n_free_, static_cast<std::int32_t>(moved.size() + others.size()));
    position_.walker.place_codes(codes_.data());
    const auto draw = [&](std::vector<std::int32_t>& from) {
        random_ ^= random_ << 13, random_ ^= random_ >> 7, random_ ^= random_ << 17;
        const std::size_t at = random_ % from.size();
        const std::int32_t f = from[at];
        from.erase(from.begin() + static_cast<std::ptrdiff_t>(at));
        return f;
    };
    std::vector<std::uint8_t> is_free(d, 0);
    for (std::int32_t i = 0; i < n_free_; ++i) {
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

bool RowSearch::take_answer() {
    if (!search_.has_answer() || !(search_.limit() < upper_)) return false;
    upper_ = search_.limit();
    distance_ = cost_.to_distance(upper_);
    std::copy(search_.best().begin(), search_.best().end(), best_);
    return true;
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
