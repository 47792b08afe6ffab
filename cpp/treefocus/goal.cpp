// From "the model says c" to sums of leaf weights. Each test is necessary for an answer, never
// sufficient: it is loosened by what rounding can do, and where a class is reached in several ways
// (below or above an interval, one rival or another) each way is a goal of its own.
#include "treefocus/goal.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace treefocus {

// sum over outputs of weight * score >= at_least, for scores as the model shows them, less a
// tolerance.
ScoreTest Goals::linear(const Forest& forest, const Forest& rule,
                        const std::vector<double>& output_weight, double at_least) const {
    ScoreTest test;
    test.first_tree = rule.first_tree;
    test.end_tree = &rule == &forest ? forest.n_trees() : rule.end_tree;
    test.weight.assign(forest.n_leaves(), 0.0);
    // The model divides last, so that the need is multiplied instead of every leaf divided.
    test.need = (at_least - rule.tolerance) * rule.divisor;
    test.whole_need = test.need;
    if (test.first_tree == test.end_tree) return test;
    const std::int32_t first = forest.first_leaf[forest.tree_start[test.first_tree]];
    const std::int32_t end = forest.end_leaf[forest.tree_start[test.end_tree - 1]];
    for (std::int32_t k = 0; k < rule.n_outputs; ++k) {
        if (output_weight[k] == 0.0) continue;
        test.need -= output_weight[k] * forest.base_score[rule.first_score + k];
        for (std::int32_t leaf = first; leaf < end; ++leaf)
            test.weight[leaf] +=
                output_weight[k] *
                forest.leaf_value[static_cast<std::size_t>(leaf) * forest.n_outputs + k];
    }
    count_votes(forest, test, true);
    return test;
}

namespace {

constexpr double kVoteUnit = 1.0 / 64.0;
// Of hard votes: models, and sets of them that win.
constexpr std::size_t kMostVoters = 12, kMostWays = 20;

// Sums of trees that are `first` and any number of steps; a step of 0: unknown.
struct Votes {
    double first = 0.0, step = 0.0;
};

// Of leaves that all are multiples of kVoteUnit and not too large: such sums have no rounding.
Votes votes_of(const Forest& forest, const ScoreTest& test) {
    constexpr double kLargest = 4096.0;
    Votes votes;
    std::int64_t step = 0;
    double size = 0.0;
    for (std::int32_t tree = test.first_tree; tree < test.end_tree; ++tree) {
        const std::int32_t root = forest.tree_start[tree], begin = forest.first_leaf[root];
        double largest = 0.0;
        for (std::int32_t leaf = begin; leaf < forest.end_leaf[root]; ++leaf) {
            const double units = test.weight[leaf] / kVoteUnit,
                         more = (test.weight[leaf] - test.weight[begin]) / kVoteUnit;
            largest = std::max(largest, std::abs(test.weight[leaf]));
            if (!(largest < kLargest) || units != std::floor(units)) return {};
            step = std::gcd(step, static_cast<std::int64_t>(std::abs(more)));
        }
        votes.first += test.weight[begin];
        size += largest;
    }
    if (size < kLargest) votes.step = static_cast<double>(step) * kVoteUnit;
    return votes;
}

}  // namespace

// Trees that vote with 0 and 1 add up to whole numbers, and a tree that changes its mind from one
// class to another is two steps. Of two classes with as many votes the first one wins: the other
// has to be a step ahead.
void Goals::count_votes(const Forest& forest, ScoreTest& test, bool is_tie_enough) const {
    test.whole_need = test.need;
    const Votes votes = votes_of(forest, test);
    if (!(votes.step > 0.0)) return;
    double sum = votes.first + std::ceil((test.need - votes.first) / votes.step) * votes.step;
    if (!is_tie_enough && sum == 0.0) sum += votes.step;
    test.whole_need = std::max(test.need, sum);
}

Goals::Goals(const Forest& forest, const Forest& rule)
    : n_classes_(rule.n_classes), ways_(n_classes_), disagreed_(rule.disagreed()) {
    if (rule.decision == Decision::agreed) ask_members(forest);
    else if (rule.decision == Decision::likely) ask_probability(forest, rule);
    else if (rule.decision != Decision::argmax) ask_one_score(forest, rule);
    else compare_classes(forest, rule);
}

// All members have to say the same: a way to it is a way of each, together.
void Goals::ask_members(const Forest& forest) {
    members_.reserve(forest.members.size());
    for (const Forest& own : forest.members) members_.emplace_back(forest, own);
    for (std::int32_t to = 0; to < n_classes_; ++to) {
        if (to == disagreed_) continue;
        std::vector<Goal> goals{{to, {}}};
        for (std::size_t m = 0; m < members_.size(); ++m)
            join(goals, members_[m], forest.members[m], to);
        ways_[to] = std::move(goals);
    }
}

// Every way so far with every way of one more member; none if it does not know the class.
void Goals::join(std::vector<Goal>& goals, const Goals& others, const Forest& rule,
                 std::int32_t to) const {
    std::vector<Goal> found;
    for (std::int32_t own = 0; own < rule.n_classes; ++own) {
        if (rule.to_class[own] != to && rule.to_class[own] != kEveryClass) continue;
        // A model of two classes leaves the one to reach the other.
        for (const Goal& more : others.of(rule.n_classes == 2 ? 1 - own : own, own))
            for (const Goal& goal : goals) {
                found.push_back(goal);
                found.back().tests.insert(found.back().tests.end(), more.tests.begin(),
                                          more.tests.end());
                found.back().means.insert(found.back().means.end(), more.means.begin(),
                                          more.means.end());
            }
    }
    goals = std::move(found);
}

// A tie goes to the lower class in the model; here both sides of it pass, and the model decides.
void Goals::compare_classes(const Forest& forest, const Forest& rule) {
    tests_.resize(static_cast<std::size_t>(n_classes_) * n_classes_);
    for (std::int32_t to = 0; to < n_classes_; ++to)
        for (std::int32_t from = 0; from < n_classes_; ++from) {
            if (to == from) continue;
            std::vector<double> weight(rule.n_outputs, 0.0);
            weight[to] = 1.0;
            weight[from] = -1.0;
            ScoreTest& test = tests_[static_cast<std::size_t>(to) * n_classes_ + from];
            test = linear(forest, rule, weight, 0.0);
            // What the base adds would have to be without rounding, too.
            const bool has_base = forest.base_score[rule.first_score + to] != 0.0 ||
                                  forest.base_score[rule.first_score + from] != 0.0;
            count_votes(forest, test, to < from || has_base);
        }
}

// Class 1 is the score's upper part, or its interval; class 0 the rest, on one side or on two.
void Goals::ask_one_score(const Forest& forest, const Forest& rule) {
    if (!rule.voices.empty()) return ask_mean(forest, rule);
    const bool is_interval = rule.decision == Decision::between;
    // In the order: at least cut, at most cut, at most cut_high, at least cut_high.
    tests_.push_back(linear(forest, rule, {1.0}, rule.cut));
    tests_.push_back(linear(forest, rule, {-1.0}, -rule.cut));
    if (is_interval) {
        tests_.push_back(linear(forest, rule, {-1.0}, -rule.cut_high));
        tests_.push_back(linear(forest, rule, {1.0}, rule.cut_high));
    }
    ways_[1].push_back({1, {&tests_[0]}});
    ways_[0].push_back({0, {&tests_[1]}});
    if (!is_interval) return;
    ways_[1][0].tests.push_back(&tests_[2]);
    ways_[0].push_back({0, {&tests_[3]}});
}

// The same of a mean: a line over each voice's curve makes a sum of it, and the curves themselves
// are asked besides. Goals point at tests, so that these must not move while they are added.
void Goals::ask_mean(const Forest& forest, const Forest& rule) {
    const std::size_t n_voices = rule.voices.size();
    tests_.reserve(2 * (n_voices + 1)), means_.reserve(2);
    for (const std::int32_t to : {0, 1}) {
        const double side = to == 1 ? 1.0 : -1.0;
        if (ask_votes(forest, rule, to)) continue;
        tests_.push_back(below_lines(forest, rule, side, rule.cut));
        MeanTest mean{&rule, forest.base_score.data() + rule.first_score, side, rule.cut, {}};
        for (const Voice& own : rule.voices)
            mean.voices.push_back(sum_of(forest, own, side, -INFINITY));
        means_.push_back(std::move(mean));
        ways_[to].push_back({to, {&tests_.back()}, {&means_.back()}});
    }
}

// The sum of a voice's trees, times the side.
ScoreTest Goals::sum_of(const Forest& forest, const Voice& own, double side, double need) {
    ScoreTest test{std::vector<double>(forest.n_leaves(), 0.0), need, own.first_tree, own.end_tree};
    if (own.first_tree == own.end_tree) return test;
    const std::int32_t first = forest.first_leaf[forest.tree_start[own.first_tree]],
                       end = forest.end_leaf[forest.tree_start[own.end_tree - 1]];
    for (std::int32_t leaf = first; leaf < end; ++leaf)
        test.weight[leaf] =
            side * forest.leaf_value[static_cast<std::size_t>(leaf) * forest.n_outputs];
    return test;
}

// Where every voice is a vote, a class wins by some set of voices that is no larger than it has to
// be, and each such set is a way of its own: a test a voice, on its trees alone. False where there
// are voices that do not vote, or so many sets that one test over all of them is better.
bool Goals::ask_votes(const Forest& forest, const Forest& rule, std::int32_t to) {
    const std::size_t n = rule.voices.size();
    const auto is_vote = [](const Voice& one) { return one.is_vote(); };
    if (n > kMostVoters || !std::all_of(rule.voices.begin(), rule.voices.end(), is_vote))
        return false;
    const double side = to == 1 ? 1.0 : -1.0;
    const auto wins = [&](std::uint32_t set) {
        double sum = 0.0;
        for (std::size_t m = 0; m < n; ++m)
            if (((set >> m & 1) != 0) == (to == 1)) sum += rule.voices[m].weight;
        return side * (sum / rule.divisor - rule.cut) >= -kMeanNoise;
    };
    std::vector<std::uint32_t> sets;
    for (std::uint32_t set = 0; set < std::uint32_t{1} << n; ++set) {
        bool is_least = wins(set);
        for (std::size_t m = 0; m < n && is_least; ++m)
            is_least = !(set >> m & 1) || !wins(set ^ (std::uint32_t{1} << m));
        if (is_least) sets.push_back(set);
    }
    if (sets.empty() || sets.front() == 0 || sets.size() > kMostWays) return false;
    const std::size_t first = tests_.size();
    for (std::size_t m = 0; m < n; ++m)
        tests_.push_back(
            vote_of(forest, rule.voices[m], forest.base_score[rule.first_score + m], side));
    for (const std::uint32_t set : sets) {
        Goal& goal = ways_[to].emplace_back(Goal{to, {}});
        for (std::size_t m = 0; m < n; ++m)
            if (set >> m & 1) goal.tests.push_back(&tests_[first + m]);
    }
    return true;
}

// The sum from which on a voice votes as the side wants it, found by halving: what it shows is 0 or
// 1 and grows with its sum.
ScoreTest Goals::vote_of(const Forest& forest, const Voice& own, double base, double side) const {
    const auto is_met = [&](double score) { return (own.shown(score) > 0.5) == (side > 0.0); };
    const double wide = own.high - own.low + 2.0 * own.tolerance + 1.0;
    double out = side > 0.0 ? own.low - wide : own.high + wide,
           in = side > 0.0 ? own.high + wide : own.low - wide;
    const double farthest = in;
    // Beyond every sum where all of them are met, or none.
    if (is_met(out)) in = out;
    while (is_met(in) && !is_met(out)) {
        const double middle = 0.5 * (out + in);
        if (middle == out || middle == in) break;
        (is_met(middle) ? in : out) = middle;
    }
    ScoreTest test = sum_of(forest, own, side,
                            side * (in * own.divisor - base) - 2.0 * own.tolerance * own.divisor);
    count_votes(forest, test, true);
    // Whole votes have no rounding, so that sums at the very edge are asked what they show.
    const double step = votes_of(forest, test).step;
    if (!(step > 0.0) || std::fmod(base / kVoteUnit, 1.0) != 0.0) return test;
    for (double score; score = (base + side * test.whole_need) / own.divisor,
                       !is_met(score) && side * (score - farthest) < 0.0;)
        test.whole_need += step;
    return test;
}

// sum over voices of weight * (slope * sum + offset) / divisor, times the side, has to reach the
// need times the side.
ScoreTest Goals::below_lines(const Forest& forest, const Forest& rule, double side,
                             double need) const {
    ScoreTest test;
    test.weight.assign(forest.n_leaves(), 0.0);
    test.first_tree = rule.voices.front().first_tree;
    test.end_tree = rule.voices.back().end_tree;
    double constant = 0.0, size = std::abs(need) + 1.0, tolerance = 0.0;
    for (std::size_t m = 0; m < rule.voices.size(); ++m) {
        const Voice& own = rule.voices[m];
        const Line line = line_beside(own, need, side);
        const double part = own.weight / rule.divisor, slope = part * line.slope / own.divisor;
        const double base = forest.base_score[rule.first_score + m];
        constant += part * line.offset + slope * base;
        size += std::abs(part * line.offset) + std::abs(slope * base);
        tolerance += part * line.slope * own.tolerance;
        if (own.first_tree == own.end_tree) continue;
        const std::int32_t first = forest.first_leaf[forest.tree_start[own.first_tree]];
        const std::int32_t end = forest.end_leaf[forest.tree_start[own.end_tree - 1]];
        for (std::int32_t leaf = first; leaf < end; ++leaf)
            test.weight[leaf] =
                side * slope * forest.leaf_value[static_cast<std::size_t>(leaf) * forest.n_outputs];
    }
    test.need = side * (need - constant) - tolerance - kMeanNoise * size;
    return test;
}

// A probability that is a score is one test. A softmax share of at least p leaves no other more
// than 1 - p, and below p it leaves some other at least its part of 1 - p: tests that no answer
// fails, and the model itself decides. Near 1 the last digit of p is worth much in log(p / (1 -
// p)), so that p is taken as far off as rounding can bring it.
void Goals::ask_probability(const Forest& forest, const Forest& rule) {
    const std::int32_t n = rule.n_outputs, own = rule.favoured;
    std::vector<double> weight(n, 0.0);
    weight[own] = 1.0;
    // Goals point at tests, so that these must not move while they are added.
    tests_.reserve(2 * static_cast<std::size_t>(n));
    const auto add = [&](std::int32_t to, double sign, double at_least, bool is_way) {
        std::vector<double> signed_weight(n);
        for (std::int32_t k = 0; k < n; ++k) signed_weight[k] = sign * weight[k];
        tests_.push_back(linear(forest, rule, signed_weight, sign * at_least));
        if (is_way || ways_[to].empty()) ways_[to].push_back({to, {}});
        ways_[to].back().tests.push_back(&tests_.back());
    };
    if (rule.link != Link::softmax) {
        add(1, 1.0, rule.cut, true);
        add(0, -1.0, rule.cut, true);
        return;
    }
    const double error = rule.likelihood_error();
    // share >= p means exp(s_k - s_own) <= (1 - p) / p for every other k, hence s_own - s_k >= log
    // odds(p). share < p means that these n - 1 numbers add up to more than (1 - p) / p, hence one
    // of them is more than its part: s_own - s_k <= log((n - 1) odds(p)) for some k, a way for
    // each.
    const auto odds = [](double p) { return p / std::max(1.0 - p, kTiny); };
    const double least = std::log(odds(rule.cut * (1.0 - error)));
    const double most = std::log((n - 1) * odds(rule.cut * (1.0 + error)));
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
        if (to == disagreed_ || (target >= 0 ? to != target : to == origin)) continue;
        goals.insert(goals.end(), ways_[to].begin(), ways_[to].end());
        if (!ways_[to].empty() || !members_.empty()) continue;
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
