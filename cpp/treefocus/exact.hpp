// The exact search for one row.
//
// Question: is there an answer cheaper than `limit`? Search a tree of boxes, depth first. In each
// box
//   1. spend the budget: a cell is out of the box if going there costs limit or more, given what
//      the box costs already (Search::spend);
//   2. bound the score: each tree gives its best leaf still reachable; if the sum cannot reach the
//      need, the box is done (Position::update_tests). Leaves stand sorted, boxes only shrink, so a
//      pointer per tree moves down its list and is put back on the way up (Running);
//   3. look at the closest point of the box: if the model says yes there, nothing in this box is
//      cheaper, limit drops (Search::close_box);
//   4. else split at a threshold that many trees' best leaves lie behind: the near side keeps the
//      closest point and loses those leaves, the far side pays for the step (Brancher::choose).
// A subtree that takes too many boxes is cut off, gets a priced bound (price.hpp) of its own, and
// is searched again with it.
//
// The limit starts at the best known answer; if that is too much for the time, smaller limits are
// tried, and each one that is searched to its end without an answer is a proven lower bound.
#pragma once

#include <chrono>
#include <optional>

#include "treefocus/box.hpp"
#include "treefocus/goal.hpp"
#include "treefocus/price.hpp"

namespace treefocus {

struct Limits {
    double seconds = kInfinity;  // per row
    std::int64_t nodes = 0;      // per row, 0 = no limit
    double bytes = 1e9;          // of the process, shared by its threads
};

enum class Proof : std::int8_t { optimal = 0, bounded = 1, infeasible = 2, nothing = 3 };

struct Answer {
    Proof proof = Proof::nothing;
    double distance = kInfinity;  // of the best answer known
    double lower_bound = 0.0;     // proven
    std::int64_t nodes = 0;
    bool is_undecided = false;  // boxes were left that no split decides
};

// What fits into the memory: the search at all, on how many threads, priced bounds, and how many of
// them inside each other.
struct Plan {
    Plan(const Forest& forest, const Limits& limits, int n_wanted);
    bool can_search = true, can_price = true;
    int n_threads = 0, max_depth = 0;
    double least = 0.0;                        // bytes that a search on one thread takes
    static constexpr int kPlannedThreads = 8;  // without a clock, memory is planned for so many
};

// What every row of a batch shares, kept with the forest; the grids, for priced bounds, only while
// there is room for them.
struct ExactShared {
    explicit ExactShared(const Forest& forest) : boxes(forest), goals(forest) {}
    static std::shared_ptr<const ExactShared> of(const Forest& forest);
    static std::shared_ptr<const TreeGrids> grids_of(const Forest& forest,
                                                     const ExactShared& shared, const Plan& plan);
    LeafBoxes boxes;
    Goals goals;
};

// best (n, d) and distances (n,) hold a known answer on entry (infinity where none) and the best
// one on return. One of norms and distance is given, the other null. is_undecided (n,): boxes were
// left that no split decides.
void exact(const Forest& forest, const double* cell_low, const double* cell_high,
           const Norms* norms, const Distance* distance, const Limits& limits, const Batch& batch,
           double* best, double* distances, double* lower_bound, std::int8_t* proof,
           std::uint8_t* is_undecided, std::int64_t* nodes, int n_threads, Control& control);

// polish.cpp -- points (n, d), answers on entry (NaN where none), are improved in place, as far as
// the memory allows.
void polish(const Forest& forest, const double* cell_low, const double* cell_high,
            const Norms& norms, double bytes, const Batch& batch, bool with_trades, double* points,
            int n_threads, Control& control);

}  // namespace treefocus
