// One row after another: what they share is built once, a thread has a row of its own while there
// are some and then helps with another (crew.hpp), and what a row's search proves is told by
// RowSearch::answer alone.
#include "treefocus/exact.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "treefocus/row.hpp"

namespace treefocus {

// Bytes are estimated from counts, before anything is built, for a box that reaches every leaf.
// What must be there: the leaves' boxes and the score tests (`shared`), and per thread the tables
// of a row, the crop, the slots of its tests and a million bytes for the rest (`own`). What is left
// goes to priced bounds: shares and values of the crop (`priced`), and what is kept of them.
Plan::Plan(const Forest& forest, const Limits& limits, int n_wanted) {
    const double leaves = forest.n_leaves(), axes = forest.n_nodes() - leaves,
                 classes = forest.n_classes;
    const double sides = most_sides(forest),
                 slots = std::min(axes, double(forest.n_trees()) * forest.n_features);
    const double sets = 3.0 * forest.set_user_node.size() * (64.0 + 8.0 * forest.n_words);
    double all_tests = std::max(classes * (classes - 1.0), 2.0),
           tests = std::max(classes - 1.0, 2.0);
    const auto count = [&](const Forest& own) {
        const double voices =
            own.voices.size();  // each has a test of its own, and there is one more
        all_tests += voices > 0 ? 4.0 * (voices + 1.0)
                                : std::max(own.n_classes * (own.n_classes - 1.0), 2.0);
        tests += voices > 0 ? 2.0 * (voices + 1.0) : std::max(own.n_classes - 1.0, 2.0);
    };
    if (!forest.members.empty() || !forest.voices.empty()) all_tests = tests = 0.0;
    if (!forest.voices.empty()) count(forest);
    for (const Forest& own : forest.members) count(own);
    const double shared =
        sides * sizeof(Side) + slots * 4.0 + leaves * (4.0 + 8.0 * all_tests) + sets;
    const double own = forest.n_cells() * 32.0 + sides * (sizeof(Side) + 4.0) +
                       slots * 8.0 * tests + leaves * (8.0 + 12.0 * tests) +
                       forest.n_trees() * 24.0 + 1e6;
    const double room = limits.bytes - shared;
    least = shared + own;
    can_search = room > own && sides < std::numeric_limits<std::int32_t>::max();
    const double most = can_search ? std::min<double>(n_wanted, room / own) : 0.0;
    const double priced = own + sides * 20.0 + axes * 20.0 + slots * 40.0 +
                          leaves * (21.0 + 8.0 * tests) + 8.0 * forest.n_cells() +
                          4.0 * 64.0 * forest.n_words * forest.set_user_node.size();
    const double state = axes * 8.0 + slots * 20.0;
    // Without a clock the answer is the same on every machine, so what it hangs on is planned for a
    // number of threads that hangs on the forest alone: fewer, where prices would not fit
    // otherwise.
    const auto states_for = [&](double n) { return room / std::max(n, 1.0) - priced; };
    double planned = limits.seconds == kInfinity ? kPlannedThreads : std::floor(most);
    if (limits.seconds == kInfinity)
        while (planned > 1.0 && !(states_for(planned) > 4.0 * state)) planned /= 2.0;
    states = states_for(planned);
    can_price = can_search && states > 4.0 * state;
    if (!can_price) states = 0.0;
    n_threads = static_cast<int>(can_price ? std::min(most, room / (priced + states)) : most);
}

// Kept with the forest: batches of the same forest, one after another or at once, build it once.
std::shared_ptr<const ExactShared> ExactShared::of(const Forest& forest) {
    std::lock_guard lock(forest.cache->mutex);
    if (!forest.cache->exact) forest.cache->exact = std::make_shared<const ExactShared>(forest);
    return std::static_pointer_cast<const ExactShared>(forest.cache->exact);
}

void exact(const Forest& forest, const double* cell_low, const double* cell_high,
           const Norms* norms, const Distance* distance, const Limits& limits, const Batch& batch,
           Part part, const Rows& rows, int n_threads, Control& control) {
    const Plan plan(forest, limits, n_threads);
    if (!plan.can_search) return;
    const auto shared = ExactShared::of(forest);
    const std::int32_t d = forest.n_features;
    Crew crew(batch.n, control);
    const auto search_row = [&](std::int64_t row, std::int64_t) {
        Choices choices(forest, cell_low, cell_high);
        choices.load(batch, row);
        const RowSearch::MakeCost make_cost = [&]() -> std::unique_ptr<BoxCost> {
            auto cost = cost_of(norms, *distance, batch);
            cost->load(choices, batch, row);
            return cost;
        };
        const Crew::Place place(crew);
        RowSearch search(*shared, choices, make_cost, limits, plan, batch, row, *place.team,
                         control, rows.nodes[row], rows.steps[row]);
        const Answer answer = search.run(rows.best + row * d, rows.distances[row], part);
        rows.distances[row] = answer.distance;
        rows.lower_bound[row] = answer.lower_bound;
        rows.proof[row] = static_cast<std::int8_t>(answer.proof);
        rows.is_undecided[row] = answer.is_undecided;
        rows.nodes[row] = answer.nodes;
        rows.steps[row] = answer.steps;
    };
    // A short try is over before a second thread could help.
    const bool is_short = part == Part::short_try;
    const auto help = [&] { crew.help(); };
    parallel_for(batch.n, 1, plan.n_threads, control, search_row, false,
                 is_short ? std::function<void()>() : help);
}

}  // namespace treefocus
