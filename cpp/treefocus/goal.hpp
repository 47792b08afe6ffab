// What counts as an answer, as linear inequalities on the scores: class c beats class j if
// sum over trees of (value_c - value_j)[leaf] >= need. The search uses them as bounds, with a
// tolerance for rounding; whether a point is an answer is decided by the model's own arithmetic.
#pragma once

#include <vector>

#include "treefocus/forest.hpp"

namespace treefocus {

// Leaf weights whose sum over the trees must reach `need`.
struct ScoreTest {
    std::vector<double> weight;  // (n_leaves,)
    double need = 0.0;
};

// One way to be an answer: reach class `to`. The first test is against the class to leave.
struct Goal {
    std::int32_t to;
    std::vector<const ScoreTest*> tests;
};

// All tests a batch can need, built once and shared by the threads.
class Goals {
public:
    explicit Goals(const Forest& forest);
    std::vector<Goal> of(std::int32_t origin, std::int32_t target) const;

private:
    const ScoreTest* test(std::int32_t to, std::int32_t from) const {
        return &tests_[to * n_classes_ + from];
    }
    void compare_classes(const Forest& forest);
    void ask_one_score(const Forest& forest);
    void ask_probability(const Forest& forest);
    ScoreTest linear(const Forest& forest, const std::vector<double>& output_weight,
                     double at_least) const;
    std::int32_t n_classes_;
    // (n_classes, n_classes) for argmax, else as many as there are ways
    std::vector<ScoreTest> tests_;
    // (n_classes,) the ways to each class, where the classes are not by argmax
    std::vector<std::vector<Goal>> ways_;
};

}  // namespace treefocus
