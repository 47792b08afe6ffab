// From "the model says c" to sums of leaf weights. Each test is necessary for an answer, never
// sufficient: it is loosened by what rounding can do, and where a class is reached in several ways
// (below or above an interval, one rival or another) each way is a goal of its own.
#include "treefocus/goal.hpp"

#include <algorithm>
#include <cmath>

namespace treefocus {

// sum over outputs of weight * score >= at_least, for scores as the model shows them, less a
// tolerance.
ScoreTest Goals::linear(const Forest& forest, const std::vector<double>& output_weight,
                        double at_least) const {
    ScoreTest test;
    const std::int32_t outputs = forest.n_outputs;
    test.weight.assign(forest.n_leaves(), 0.0);
    // The model divides last, so that the need is multiplied instead of every leaf divided.
    test.need = (at_least - forest.tolerance) * forest.divisor;
    for (std::int32_t k = 0; k < outputs; ++k) {
        if (output_weight[k] == 0.0) continue;
        test.need -= output_weight[k] * forest.base_score[k];
        for (std::int32_t leaf = 0; leaf < forest.n_leaves(); ++leaf)
            test.weight[leaf] +=
                output_weight[k] * forest.leaf_value[static_cast<std::size_t>(leaf) * outputs + k];
    }
    return test;
}

Goals::Goals(const Forest& forest) : n_classes_(forest.n_classes), ways_(n_classes_) {
    if (forest.decision == Decision::likely) ask_probability(forest);
    else if (forest.decision != Decision::argmax) ask_one_score(forest);
    else compare_classes(forest);
}

// A tie goes to the lower class in the model; here both sides of it pass, and the model decides.
void Goals::compare_classes(const Forest& forest) {
    tests_.resize(static_cast<std::size_t>(n_classes_) * n_classes_);
    for (std::int32_t to = 0; to < n_classes_; ++to)
        for (std::int32_t from = 0; from < n_classes_; ++from) {
            if (to == from) continue;
            std::vector<double> weight(forest.n_outputs, 0.0);
            weight[to] = 1.0;
            weight[from] = -1.0;
            tests_[static_cast<std::size_t>(to) * n_classes_ + from] = linear(forest, weight, 0.0);
        }
}

// Class 1 is the score's upper part, or its interval; class 0 the rest, on one side or on two.
void Goals::ask_one_score(const Forest& forest) {
    const bool is_interval = forest.decision == Decision::between;
    // In the order: at least cut, at most cut, at most cut_high, at least cut_high.
    tests_.push_back(linear(forest, {1.0}, forest.cut));
    tests_.push_back(linear(forest, {-1.0}, -forest.cut));
    if (is_interval) {
        tests_.push_back(linear(forest, {-1.0}, -forest.cut_high));
        tests_.push_back(linear(forest, {1.0}, forest.cut_high));
    }
    ways_[1].push_back({1, {&tests_[0]}});
    ways_[0].push_back({0, {&tests_[1]}});
    if (!is_interval) return;
    ways_[1][0].tests.push_back(&tests_[2]);
    ways_[0].push_back({0, {&tests_[3]}});
}

// A probability that is a score is one test. A softmax share of at least p leaves no other more
// than 1 - p, and below p it leaves some other at least its part of 1 - p: tests that no answer
// fails, and the model itself decides. Near 1 the last digit of p is worth much in log(p / (1 -
// p)), so that p is taken as far off as rounding can bring it.
void Goals::ask_probability(const Forest& forest) {
    const std::int32_t n = forest.n_outputs, own = forest.favoured;
    std::vector<double> weight(n, 0.0);
    weight[own] = 1.0;
    // Goals point at tests, so that these must not move while they are added.
    tests_.reserve(2 * static_cast<std::size_t>(n));
    const auto add = [&](std::int32_t to, double sign, double at_least, bool is_way) {
        std::vector<double> signed_weight(n);
        for (std::int32_t k = 0; k < n; ++k) signed_weight[k] = sign * weight[k];
        tests_.push_back(linear(forest, signed_weight, sign * at_least));
        if (is_way || ways_[to].empty()) ways_[to].push_back({to, {}});
        ways_[to].back().tests.push_back(&tests_.back());
    };
    if (forest.link != Link::softmax) {
        add(1, 1.0, forest.cut, true);
        add(0, -1.0, forest.cut, true);
        return;
    }
    const double error = forest.likelihood_error();
    // share >= p means exp(s_k - s_own) <= (1 - p) / p for every other k, hence s_own - s_k >= log
    // odds(p). share < p means that these n - 1 numbers add up to more than (1 - p) / p, hence one
    // of them is more than its part: s_own - s_k <= log((n - 1) odds(p)) for some k, a way for
    // each.
    const auto odds = [](double p) { return p / std::max(1.0 - p, kTiny); };
    const double least = std::log(odds(forest.cut * (1.0 - error)));
    const double most = std::log((n - 1) * odds(forest.cut * (1.0 + error)));
    for (std::int32_t other = 0; other < n; ++other) {
        if (other == own) continue;
        weight[other] = -1.0;
        add(1, 1.0, least, false);
        add(0, -1.0, most, true);
        weight[other] = 0.0;
    }
}

std::vector<Goal> Goals::of(std::int32_t origin, std::int32_t target) const {
    std::vector<Goal> goals;
    for (std::int32_t to = 0; to < n_classes_; ++to) {
        if (target >= 0 ? to != target : to == origin) continue;
        goals.insert(goals.end(), ways_[to].begin(), ways_[to].end());
        if (!ways_[to].empty()) continue;
        Goal goal{to, {}};
        // The class to leave comes first: at the row it is ahead of all others, and the first test
        // is the one that gets prices (Search::price_box).
        if (to != origin) goal.tests.push_back(test(to, origin));
        for (std::int32_t from = 0; from < n_classes_; ++from)
            if (from != to && from != origin) goal.tests.push_back(test(to, from));
        goals.push_back(std::move(goal));
    }
    return goals;
}

}  // namespace treefocus
