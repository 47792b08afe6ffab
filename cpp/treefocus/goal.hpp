// What counts as an answer, as linear inequalities on the scores: class c beats class j if
// sum over trees of (value_c - value_j)[leaf] >= need. The search uses them as bounds, with a
// tolerance for rounding; whether a point is an answer is decided by the model's own arithmetic.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "treefocus/forest.hpp"

namespace treefocus {

// Leaf weights whose sum over the trees must reach `need`.
struct ScoreTest {
    std::vector<double> weight;  // (n_leaves,) 0 for trees that it does not ask
    double need = 0.0;
    std::int32_t first_tree = 0, end_tree = 0;  // that it asks
    // The least sum at or above the need that whole votes add up to; the need itself where leaves
    // are no multiples of anything. Not of a proof that is written down: its reader asks the need.
    double whole_need = -INFINITY;
    double asked() const { return whole_need > need ? whole_need : need; }
};

// The same of a mean of what voices show: it has to reach `need` from the side (1: from below, -1:
// from above), at the best sums of a box. Each voice's best sum is what its own test comes to,
// whose weights are the leaves' values times the side and which needs nothing by itself.
struct MeanTest {
    const Forest* rule = nullptr;
    const double* base = nullptr;  // of each voice
    double side = 1.0, need = 0.0;
    std::vector<ScoreTest> voices{};

    // total(m) is what voice m's test comes to.
    template <class Total>
    bool is_met(const Total& total) const {
        const double mean = mean_of(rule->voices, rule->divisor, [&](std::size_t m) {
            const Voice& own = rule->voices[m];
            return (base[m] + side * total(m)) / own.divisor + side * own.tolerance;
        });
        return side * (mean - need) >= -kMeanNoise * std::max(std::abs(mean), 1.0);
    }
};

// One way to be an answer: reach class `to`. The first test is against the class to leave.
struct Goal {
    std::int32_t to;
    std::vector<const ScoreTest*> tests;
    std::vector<const MeanTest*> means{};
};

// All tests a batch can need, built once and shared by the threads.
class Goals {
public:
    explicit Goals(const Forest& forest) : Goals(forest, forest) {}
    // Of the trees of one member, or of all trees; `rule` is what decides.
    Goals(const Forest& forest, const Forest& rule);
    std::vector<Goal> of(std::int32_t origin, std::int32_t target) const;

private:
    const ScoreTest* test(std::int32_t to, std::int32_t from) const {
        return &tests_[to * n_classes_ + from];
    }
    void compare_classes(const Forest& forest, const Forest& rule);
    void ask_one_score(const Forest& forest, const Forest& rule);
    void ask_mean(const Forest& forest, const Forest& rule);
    bool ask_votes(const Forest& forest, const Forest& rule, std::int32_t to);
    ScoreTest vote_of(const Forest& forest, const Voice& own, double base, double side) const;
    static ScoreTest sum_of(const Forest& forest, const Voice& own, double side, double need);
    void ask_probability(const Forest& forest, const Forest& rule);
    void ask_members(const Forest& forest);
    void join(std::vector<Goal>& goals, const Goals& others, const Forest& rule,
              std::int32_t to) const;
    ScoreTest below_lines(const Forest& forest, const Forest& rule, double side, double need) const;
    ScoreTest linear(const Forest& forest, const Forest& rule,
                     const std::vector<double>& output_weight, double at_least) const;
    void count_votes(const Forest& forest, ScoreTest& test, bool is_tie_enough) const;
    std::int32_t n_classes_;
    // (n_classes, n_classes) for argmax, else as many as there are ways
    std::vector<ScoreTest> tests_;
    std::vector<MeanTest> means_;
    // (n_classes,) the ways to each class, where the classes are not by argmax
    std::vector<std::vector<Goal>> ways_;
    // Of several models each has its own, whose tests the ways point at.
    std::vector<Goals> members_;
    std::int32_t disagreed_ = -1;
};

}  // namespace treefocus
