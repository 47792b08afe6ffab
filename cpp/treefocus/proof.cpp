// One more search, at the claim itself: what was tried on the way to it, below other limits, is not
// part of the proof.
#include "treefocus/proof.hpp"

#include "treefocus/search.hpp"

namespace treefocus {

std::vector<ProofLog> record_proof(const Forest& forest, const double* cell_low,
                                   const double* cell_high, const Norms* norms,
                                   const Distance& coupled, const Limits& limits,
                                   const Batch& batch, double distance, const Control& control) {
    const auto shared = ExactShared::of(forest);
    Choices choices(forest, cell_low, cell_high);
    choices.load(batch, 0);
    const auto made = cost_of(norms, coupled, batch);
    BoxCost& cost = *made;
    cost.load(choices, batch, 0);
    Position position(forest, *shared, choices, cost, batch.rules);
    Work work(limits, control, 0, 0);
    Search search(position, work, false, 0);
    std::vector<ProofLog> logs;
    for (const Goal& goal : shared->goals.of(batch.origin[0], batch.target[0])) {
        logs.emplace_back(forest);
        const bool is_done = search.record(goal, cost.to_cost(distance), logs.back());
        if (!is_done || !logs.back().is_whole || search.has_answer()) return {};
    }
    return logs;
}

}  // namespace treefocus
