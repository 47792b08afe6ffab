// The nearest examples: for each row, known points with a wanted answer, brought into the row's
// box.
#include <algorithm>
#include <cmath>

#include "treefocus/kernels.hpp"

namespace treefocus {

namespace {

// Ties go to the earlier example, so that the order of the heap does not show.
struct Near {
    double away;
    std::int64_t index;
    bool operator<(const Near& other) const {
        return away != other.away ? away < other.away : index < other.index;
    }
};

}  // namespace

void nearest(const Batch& batch, std::int32_t d, const std::int8_t* kind, const double* examples,
             const std::int32_t* answer, std::int64_t n_examples, std::int32_t n_wanted,
             std::int32_t* index, int n_threads, Control& control) {
    parallel_for(batch.n, 1, n_threads, control, [&](std::int64_t row, std::int64_t) {
        const double *x = batch.rows + row * d, *low = batch.low + row * d,
                     *high = batch.high + row * d;
        // How far the example is in one feature once it is brought into the row's box: beyond an
        // end it stops there.
        const auto change = [&](std::int32_t f, double value) {
            if (kind[f] == kCategory)
                return value == x[f] || (std::isnan(value) && std::isnan(x[f])) ? 0.0 : 1.0;
            if (std::isnan(value) || std::isnan(x[f]))
                return kind[f] == kMayBeMissing && std::isnan(value) != std::isnan(x[f]) ? 1.0
                                                                                         : 0.0;
            return std::abs((std::min(std::max(value, low[f]), high[f]) - x[f]) / batch.scale[f]);
        };
        std::vector<Near> best;  // a heap, the farthest on top
        for (std::int64_t i = 0; i < n_examples; ++i) {
            if (batch.target[row] >= 0 ? answer[i] != batch.target[row]
                                       : answer[i] == batch.origin[row])
                continue;
            const bool is_full = static_cast<std::int32_t>(best.size()) == n_wanted;
            const double farthest = is_full ? best.front().away : INFINITY;
            double away = 0.0;
            // A sum that has passed the farthest of the best can only grow.
            for (std::int32_t f = 0; f < d && away <= farthest; ++f)
                away += change(f, examples[i * d + f]);
            const Near candidate{away, i};
            if (is_full && !(candidate < best.front())) continue;
            if (is_full) std::pop_heap(best.begin(), best.end()), best.pop_back();
            best.push_back(candidate);
            std::push_heap(best.begin(), best.end());
        }
        std::sort_heap(best.begin(), best.end());
        for (std::int32_t k = 0; k < n_wanted; ++k)
            index[row * n_wanted + k] = k < static_cast<std::int32_t>(best.size())
                                            ? static_cast<std::int32_t>(best[k].index)
                                            : -1;
    });
}

}  // namespace treefocus
