// One row after another: what they share is built once, a row's search runs on one thread, and what
// it proves is told by RowSearch::answer alone.
#include "treefocus/exact.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "treefocus/search.hpp"

namespace treefocus {

// Bytes are estimated from counts, before anything is built. What must be there: the leaves' boxes
// and the score tests (`shared`), and per thread the tables of a row, the slots of its tests and a
// million bytes for the rest (`own`). What is left goes to priced bounds: the trees' grids, shared,
// and per thread one Price::State for every level at which a box may be priced.
Plan::Plan(const Forest& forest, const Limits& limits, int n_wanted) {
    const double leaves = forest.n_leaves(), axes = forest.n_nodes() - leaves,
                 classes = forest.n_classes;
    const double sides = most_sides(forest),
                 slots = std::min(axes, double(forest.n_trees()) * forest.n_features);
    const double sets = 3.0 * forest.set_user_node.size() * (64.0 + 8.0 * forest.n_words);
    const double tests = std::max(classes * (classes - 1.0), 2.0);
    const double shared =
        sides * (sizeof(Side) + 4.0) + slots * 8.0 + leaves * (4.0 + 12.0 * tests) + sets;
    const double own = forest.n_cells() * 32.0 + slots * 8.0 * std::max(classes, 2.0) + leaves +
                       forest.n_trees() * 24.0 + 1e6;
    const double room = limits.bytes - shared;
    least = shared + own;
    can_search = room > own && sides < std::numeric_limits<std::int32_t>::max();
    // Without a clock the answer is the same on every machine, so what it hangs on is planned for a
    // fixed number of threads.
    const double most = can_search ? std::min<double>(n_wanted, room / own) : 0.0;
    const double planned = limits.seconds == kInfinity ? kPlannedThreads : std::floor(most);
    const double grids = sides * sizeof(TreeGrids::Span) + axes * 40.0 +
                         64.0 * forest.n_words * forest.set_user_node.size() * 4.0;
    const double state = axes * 24.0 + slots * 8.0 + 8.0 * forest.n_cells() + 20.0 * leaves;
    // Of a thread with priced bounds, besides their states.
    const double priced = own + axes * 32.0 + leaves * 12.0;
    const double left = room - grids - planned * priced;
    can_price = can_search && left > planned * 4.0 * state;
    max_depth = can_price ? static_cast<int>(std::min(left / (planned * state), 200.0)) : 0;
    n_threads = static_cast<int>(
        can_price ? std::min(most, (room - grids) / (priced + max_depth * state)) : most);
}

// Kept with the forest: batches of the same forest, one after another or at once, build it once.
std::shared_ptr<const ExactShared> ExactShared::of(const Forest& forest) {
    std::lock_guard lock(forest.cache->mutex);
    if (!forest.cache->exact) forest.cache->exact = std::make_shared<const ExactShared>(forest);
    return std::static_pointer_cast<const ExactShared>(forest.cache->exact);
}

std::shared_ptr<const TreeGrids> ExactShared::grids_of(const Forest& forest,
                                                       const ExactShared& shared,
                                                       const Plan& plan) {
    std::lock_guard lock(forest.cache->mutex);
    if (!plan.can_price) forest.cache->grids.reset();
    else if (!forest.cache->grids)
        forest.cache->grids = std::make_shared<const TreeGrids>(forest, shared.boxes);
    return std::static_pointer_cast<const TreeGrids>(forest.cache->grids);
}

namespace {

// The shortest way out of the row's own cell in any feature: limits start there when no answer is
// known.
// Twice that step, so that the first limit leaves room for one; 1 where nothing can move.
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

// One row: a short try at the whole question, then limits from below, each proven before the next.
// Limits from below cost little if they are small, since boxes end at the budget, and they rise
// like a geometric series, so that all of them together cost a few times the last one. Each that
// ends without an answer is a proven lower bound; the first that ends with one has the optimum.
class RowSearch {
public:
    RowSearch(const ExactShared& shared, const TreeGrids* grids, const Choices& choices,
              BoxCost& cost, const Limits& limits, const Plan& plan, const Batch& batch,
              std::int64_t row, const Control& control)
        : choices_(choices),
          cost_(cost),
          limits_(limits),
          position_(choices.forest, shared, choices, cost, batch.rules),
          work_(limits, control),
          search_(position_, work_, grids, plan.max_depth),
          goals_(shared.goals.of(batch.origin[row], batch.target[row])) {}

    // `best` holds an answer at `distance`, or nothing at infinity; both are improved in place.
    Answer run(double* best, double distance) {
        best_ = best;
        upper_ = distance < kInfinity ? cost_.to_cost(distance) : kInfinity;
        distance_ = distance;
        work_.box_limit = limits_.nodes > 0 ? std::min(limits_.nodes, kFirstTry) : kFirstTry;
        bool is_done = try_below(upper_);
        work_.box_limit = limits_.nodes;
        double reach = upper_ < kInfinity ? kFirstLimit * cost_.to_distance(upper_)
                                          : smallest_step(choices_, cost_);
        for (int round = 0; !is_done && !is_spent(); ++round) {
            // Without any answer limits double; after kDoublings of them the whole space is
            // searched, which is the only way to learn that there is none.
            const bool is_known = upper_ < kInfinity;
            const double next = !is_known && round >= kDoublings ? kInfinity : cost_.to_cost(reach);
            // Never below what is proven already, never above what is known.
            const double limit = std::max(std::min(next, upper_), proven_);
            if (!try_below(limit)) break;
            is_done = upper_ <= limit;
            reach *= !is_known                                   ? 2.0
                     : reach < kNear * cost_.to_distance(upper_) ? kFastGrowth
                                                                 : kGrowth;
        }
        return answer(is_done);
    }

private:
    // Searches every goal for answers cheaper than limit; true if all came to their end, then
    // proven_ is up to date.
    bool try_below(double limit) {
        double proven = kInfinity, unresolved = kInfinity;
        bool is_complete = true;
        // Goals share the limit: an answer to one is the mark that the others have to beat, and
        // what is proven is the least of what each has proven.
        for (const Goal& goal : goals_) {
            const bool is_end = search_.run(goal, std::min(limit, upper_));
            if (search_.has_answer() && search_.limit() < upper_) {
                upper_ = search_.limit();
                distance_ = cost_.to_distance(upper_);
                std::copy(search_.best().begin(), search_.best().end(), best_);
            }
            proven = std::min(proven, search_.proven());
            unresolved = std::min(unresolved, search_.unresolved());
            is_complete = is_complete && is_end;
            if (work_.is_out && goals_.size() > 1)
                return false;  // the other goals have no bound yet
        }
        proven_ = std::max(proven_, std::min(proven, upper_));
        unresolved_ = unresolved;
        return is_complete;
    }

    // Boxes only: time that is up ends the loop by itself, for then no try comes to its end.
    bool is_spent() const {
        return work_.is_out && (limits_.nodes > 0 && work_.boxes >= limits_.nodes);
    }

    // Infeasible: every goal was searched without a limit, and no box was left open. Optimal:
    // everything below the answer is proven empty, up to rounding. All else is what is known so
    // far.
    Answer answer(bool is_done) const {
        Answer answer;
        answer.nodes = work_.boxes;
        answer.distance = distance_;
        answer.is_undecided = unresolved_ < upper_;
        if (is_done && upper_ == kInfinity && proven_ == kInfinity) {
            answer.proof = Proof::infeasible;
            answer.lower_bound = kInfinity;
            return answer;
        }
        answer.lower_bound = std::min(cost_.to_distance(proven_), distance_);
        const bool is_optimal =
            is_done && proven_ >= upper_ * (1.0 - BoxCost::kTight) - cost_.noise;
        answer.proof = is_optimal           ? Proof::optimal
                       : upper_ < kInfinity ? Proof::bounded
                                            : Proof::nothing;
        if (is_optimal) answer.lower_bound = distance_, answer.is_undecided = false;
        return answer;
    }

    static constexpr std::int64_t kFirstTry = 3000;  // boxes
    static constexpr double kFirstLimit = 0.1;       // of the known answer's distance
    static constexpr double kFastGrowth = 1.5;       // of limits up to kNear of that distance,
    static constexpr double kNear = 0.4;
    static constexpr double kGrowth = 1.15;  // and beyond
    static constexpr int kDoublings = 30;    // without an answer this far out, look everywhere

    const Choices& choices_;
    BoxCost& cost_;
    const Limits& limits_;
    Position position_;
    Work work_;
    Search search_;
    std::vector<Goal> goals_;
    double* best_ = nullptr;
    double upper_ = kInfinity, proven_ = 0.0, distance_ = kInfinity;
    double unresolved_ = kInfinity;  // of the last try: what its cheapest undecided box costs
};

}  // namespace

void exact(const Forest& forest, const double* cell_low, const double* cell_high,
           const Norms* norms, const Distance* distance, const Limits& limits, const Batch& batch,
           double* best, double* distances, double* lower_bound, std::int8_t* proof,
           std::uint8_t* is_undecided, std::int64_t* nodes, int n_threads, Control& control) {
    const Plan plan(forest, limits, n_threads);
    if (!plan.can_search) return;
    const auto shared = ExactShared::of(forest);
    const auto grids = ExactShared::grids_of(forest, *shared, plan);
    const std::int32_t d = forest.n_features;
    parallel_for(batch.n, 1, plan.n_threads, control, [&](std::int64_t row, std::int64_t) {
        Choices choices(forest, cell_low, cell_high);
        choices.load(batch, row);
        std::unique_ptr<BoxCost> cost;
        // Linear rules couple features, so that the cost is no longer closest in each at once.
        if (norms && batch.rules && !batch.rules->linear.empty())
            cost = std::make_unique<LinearCost>(*norms);
        else if (norms) cost = std::make_unique<SeparableCost>(*norms);
        else cost = std::make_unique<CoupledCost>(*distance);
        cost->load(choices, batch, row);
        RowSearch search(*shared, grids.get(), choices, *cost, limits, plan, batch, row, control);
        const Answer answer = search.run(best + row * d, distances[row]);
        distances[row] = answer.distance;
        lower_bound[row] = answer.lower_bound;
        proof[row] = static_cast<std::int8_t>(answer.proof);
        is_undecided[row] = answer.is_undecided;
        nodes[row] = answer.nodes;
    });
}

}  // namespace treefocus
