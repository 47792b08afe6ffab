// The exact search for one row.
//
// Question: is there an answer cheaper than `limit`? Search a tree of boxes, depth first. In each
// box
//   1. spend the budget: a cell is out of the box if going there costs limit or more, given what
//      the box costs already (Search::spend);
//   2. bound the score: each tree gives its best leaf still reachable; if the sum cannot reach the
//      need, the box is done (Position::update_tests). A tree that loses its best leaf looks for
//      the next from its root on (Running);
//   3. look at the closest point of the box: if the model says yes there, nothing in this box is
//      cheaper, limit drops (Search::close_box);
//   4. else split at a threshold that many trees' best leaves lie behind: the near side keeps the
//      closest point and loses those leaves, the far side pays for the step (Brancher::choose).
// A box that takes too many boxes is cut off, gets a priced bound (price.hpp) of its own, and is
// split. Which box is searched next, and below which limit, is in row.hpp: low limits come first,
// and the least bound of what is open is proven at every moment.
#pragma once

#include <chrono>
#include <optional>

#include "treefocus/box.hpp"
#include "treefocus/goal.hpp"

namespace treefocus {

struct Limits {
    double seconds = kInfinity;  // per row
    std::int64_t nodes = 0;      // boxes per row, 0 = no limit
    std::int64_t steps = 0;      // of work per row (work.hpp), 0 = no limit
    double bytes = 1e9;          // of the process, shared by its threads
    std::int64_t patience = 0;   // plain boxes before a box is priced and split, 0 = as usual
};

enum class Proof : std::int8_t { optimal = 0, bounded = 1, infeasible = 2, nothing = 3 };

struct Answer {
    Proof proof = Proof::nothing;
    double distance = kInfinity;  // of the best answer known
    double lower_bound = 0.0;     // proven
    std::int64_t nodes = 0, steps = 0;
    bool is_undecided = false;  // boxes were left that no split decides
};

// What fits into the memory: the search at all, on how many threads, priced bounds, and how many of
// them inside each other.
struct Plan {
    Plan(const Forest& forest, const Limits& limits, int n_wanted);
    bool can_search = true, can_price = true;
    int n_threads = 0;
    double states = 0.0;  // bytes of each thread for what is kept of priced boxes
    double least = 0.0;   // bytes that a search on one thread takes
    static constexpr int kPlannedThreads = 8;  // without a clock, memory is planned for so many
};

// What every row of a batch shares, kept with the forest.
struct ExactShared {
    explicit ExactShared(const Forest& forest) : boxes(forest), goals(forest) {}
    static std::shared_ptr<const ExactShared> of(const Forest& forest);
    LeafBoxes boxes;
    Goals goals;
};

// best (n, d) and distances (n,) hold a known answer on entry (infinity where none) and the best
// one on return; nodes and steps (n,) what was spent of a row's work before, and in the end. One of
// norms and distance is given, the other null. is_undecided (n,): boxes were left that no split
// decides. A search can be asked for in two parts: the short try, and what comes after it.
enum class Part : std::int8_t { all = 0, short_try = 1, rest = 2 };
struct Rows {
    double *best, *distances, *lower_bound;
    std::int8_t* proof;
    std::uint8_t* is_undecided;
    std::int64_t *nodes, *steps;
};
void exact(const Forest& forest, const double* cell_low, const double* cell_high,
           const Norms* norms, const Distance* distance, const Limits& limits, const Batch& batch,
           Part part, const Rows& rows, int n_threads, Control& control);

// polish.cpp -- points (n, d), answers on entry (NaN where none), are improved in place, as far as
// the memory and the time allow; steps (n,) grow by the work of each row.
void polish(const Forest& forest, const double* cell_low, const double* cell_high,
            const Norms& norms, const Limits& limits, const Batch& batch, bool with_trades,
            double* points, std::int64_t* steps, int n_threads, Control& control);

}  // namespace treefocus
