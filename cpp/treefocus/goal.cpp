#include "treefocus/goal.hpp"

#include <algorithm>
#include <numeric>

namespace treefocus {

void ScoreTest::sort(const Forest& forest) {
    order.resize(weight.size());
    std::iota(order.begin(), order.end(), 0);
    for (std::int32_t tree = 0; tree < forest.n_trees(); ++tree) {
        const std::int32_t root = forest.tree_start[tree];
        std::sort(order.begin() + forest.first_leaf[root], order.begin() + forest.end_leaf[root],
                  [&](std::int32_t a, std::int32_t b) { return weight[a] != weight[b] ? weight[a] > weight[b] : a < b; });
    }
}

Goals::Goals(const Forest& forest) : n_classes_(forest.n_classes), tests_(static_cast<std::size_t>(n_classes_) * n_classes_) {
    const double tolerance = forest.tolerance * forest.divisor;
    const std::int32_t outputs = forest.n_outputs;
    for (std::int32_t to = 0; to < n_classes_; ++to)
        for (std::int32_t from = 0; from < n_classes_; ++from) {
            if (to == from) continue;
            ScoreTest& test = tests_[static_cast<std::size_t>(to) * n_classes_ + from];
            test.weight.resize(forest.n_leaves());
            if (forest.decision == Decision::argmax) {
                for (std::int32_t leaf = 0; leaf < forest.n_leaves(); ++leaf)
                    test.weight[leaf] = forest.leaf_value[static_cast<std::size_t>(leaf) * outputs + to] -
                                        forest.leaf_value[static_cast<std::size_t>(leaf) * outputs + from];
                test.need = forest.base_score[from] - forest.base_score[to] - tolerance;
            } else {  // one score: above the cut is class 1
                const double direction = to == 1 ? 1.0 : -1.0;
                for (std::int32_t leaf = 0; leaf < forest.n_leaves(); ++leaf)
                    test.weight[leaf] = direction * forest.leaf_value[leaf];
                test.need = direction * (forest.cut * forest.divisor - forest.base_score[0]) - tolerance;
            }
            test.sort(forest);
        }
}

std::vector<Goal> Goals::of(std::int32_t origin, std::int32_t target) const {
    std::vector<Goal> goals;
    for (std::int32_t to = 0; to < n_classes_; ++to) {
        if (target >= 0 ? to != target : to == origin) continue;
        Goal goal{to, {}};
        if (to != origin) goal.tests.push_back(test(to, origin));
        for (std::int32_t from = 0; from < n_classes_; ++from)
            if (from != to && from != origin) goal.tests.push_back(test(to, from));
        goals.push_back(std::move(goal));
    }
    return goals;
}

}  // namespace treefocus
