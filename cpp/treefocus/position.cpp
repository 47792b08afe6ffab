// The parts that change together, and come back together: box and values (trail), closest point and
// cost (cost stack), the model at that point (walker), and the pointers of the score tests. On the
// way up pointers are put back one by one, and totals are copied back, not subtracted, so that
// rounding does not gather over millions of boxes.
#include "treefocus/position.hpp"

#include <algorithm>
#include <utility>

namespace treefocus {

Position::Position(const Forest& forest_, const ExactShared& shared_, const Choices& choices_,
                   BoxCost& cost_, const Rules* rules_)
    : forest(forest_),
      shared(shared_),
      choices(choices_),
      cost(cost_),
      relations(rules_),
      trail(forest_),
      walker(forest_),
      point_(forest_.n_features) {
    if (rules_) rules.emplace(*rules_, choices_);
}

// Values inside cells are only kept track of where something asks for less than a cell: rules, or a
// cost that rounds.
void Position::start(const Goal& goal, double below, const Box& box) {
    limit = below;
    // Whatever was searched before, and on which thread, is not this search's.
    walker.take_looks(), cost.take_steps();
    cost.forget();
    cost.set_limit(below);
    goal_ = &goal;
    to = goal.to;
    trail.start(box, rules || cost.is_rounding());
    pointers_.clear();
    cost_stack_.clear();
    totals_.clear();
    n_costs_ = 0;
    running_.clear();
    n_plain_ = 0;
    failed_test_ = -1;
}

bool Position::settle() {
    if (choices.is_empty || !cost.settle(trail.box())) return false;
    walker.place_codes(cost.codes.data());
    return true;
}

// Pointers start at the best leaves of the present box. What lies before them comes back only with
// a larger box, and there the tests do not stand.
bool Position::test() {
    crop_.fit(choices, shared.boxes, trail.box());
    return make_tests();
}

bool Position::keep(const std::vector<std::uint8_t>& is_kept) {
    return crop_.keep(is_kept, trail.box()) && make_tests();
}

bool Position::make_tests() {
    running_.clear();
    std::vector<const ScoreTest*> tests = goal_->tests;
    for (const MeanTest* mean : goal_->means)
        for (const ScoreTest& own : mean->voices) tests.push_back(&own);
    if (ranking_.size() < tests.size()) ranking_.resize(tests.size());
    running_.reserve(tests.size() + 1);
    bool is_open = true;
    for (std::size_t i = 0; i < tests.size(); ++i) {
        const ScoreTest& test = *tests[i];
        ranking_[i].take(test, crop_);
        const double need = is_plain ? test.need : test.asked();
        running_.emplace_back(ranking_[i], &test, need, crop_, trail.box());
        if (!is_open || running_[i].total >= running_[i].need) continue;
        is_open = false;
        failed_test_ = static_cast<std::int32_t>(i);
    }
    n_plain_ = running_.size();
    trail.forget_changed();
    return is_open && means_are_met();
}

// The curves themselves, where the lines over them are not enough.
bool Position::means_are_met() const {
    std::size_t first = goal_->tests.size();
    for (const MeanTest* mean : goal_->means) {
        if (!mean->is_met([&](std::size_t m) { return running_[first + m].total; })) return false;
        first += mean->voices.size();
    }
    return true;
}

void Position::price(const Ranking& priced, double constant) {
    running_.emplace_back(priced, nullptr, constant, crop_, trail.box());
}

std::int64_t Position::take_looks() {
    std::int64_t sum = walker.take_looks() / kNodesPerLook;
    for (Running& one : running_) sum += std::exchange(one.n_looks, 0);
    return sum;
}

// The notes need no copy, only their number; the totals are copied, one a test.
Position::Mark Position::mark() {
    const Mark m{trail.length(), pointers_.size(), n_costs_, totals_.size()};
    for (const Running& one : running_) totals_.push_back(one.total);
    return m;
}

// The walker is only moved where a whole cost was restored; a step to one far side restores its
// own.
void Position::undo(const Mark& m) {
    trail.undo(m.trail);
    while (pointers_.size() > m.pointers) {
        const PointerBefore& before = pointers_.back();
        running_[before.test].put_back(before.tree, before.position);
        pointers_.pop_back();
    }
    for (std::size_t i = 0; i < running_.size(); ++i) running_[i].total = totals_[m.totals + i];
    totals_.resize(m.totals + running_.size());
    if (n_costs_ == m.costs) return;
    for (; n_costs_ > m.costs; --n_costs_) cost.restore_all(cost_stack_);
    sync();
}

// Counted before it can fail: what was saved is taken back by undo either way.
bool Position::settle_again() {
    ++n_costs_;
    cost.save_all(cost_stack_);
    if (!cost.settle(trail.box())) return false;
    sync();
    return true;
}

bool Position::settle_after(std::int32_t f) {
    if (!cost.settle_after(f, trail.box())) return false;
    sync();
    return true;
}

void Position::restore(std::int32_t f) {
    cost.restore(f, cost_stack_);
    sync();
}

// Moving to the cell it is in costs a walker nothing, so that all features are simply gone through.
void Position::sync() {
    for (std::int32_t f = 0; f < forest.n_features; ++f) walker.move_code(f, cost.codes[f]);
}

// Tests behind the first one that fails do not follow: the box is done, and is undone next. A
// priced test has a need that falls with the limit: constant - limit.
bool Position::update_tests() {
    bool is_open = true;
    for (std::size_t i = 0; i < running_.size() && is_open; ++i) {
        Running& one = running_[i];
        for (const std::int32_t f : trail.changed())
            one.follow(f, trail.box(), [&](std::int32_t tree, std::int32_t position) {
                pointers_.push_back({static_cast<std::int32_t>(i), tree, position});
            });
        is_open = one.total >= (i < n_plain_ ? one.need : one.need - cost.left(least()));
        failed_test_ = is_open ? -1 : static_cast<std::int32_t>(i);
    }
    trail.forget_changed();
    return is_open && means_are_met();
}

// With one test there is nothing to compare; the priced one is left out, since its weights have the
// cost in them and say nothing about which class is behind.
const Running& Position::hardest() const {
    std::size_t worst = 0;
    double most = -kInfinity;
    for (std::size_t i = 0; i < n_plain_ && n_plain_ > 1; ++i) {
        double sum = 0.0;
        const ScoreTest& test = running_[i].test();
        for (std::int32_t tree = test.first_tree; tree < test.end_tree; ++tree)
            sum += test.weight[walker.leaves()[tree]];
        if (running_[i].need - sum > most) most = running_[i].need - sum, worst = i;
    }
    return running_[worst];
}

const std::vector<double>& Position::point() {
    cost.point(point_.data());
    return point_;
}

bool Position::is_obedient() {
    return !rules || rules->hold(cost.codes.data(), point().data());
}

// A category is its cell; a number is one value inside a cell, so that values are cut, too.
void Position::make_stay(std::int32_t f) {
    const std::int32_t own = choices.own[f];
    if (forest.has_sets[f]) trail.set_cells(f, [own](std::int32_t code) { return code == own; });
    else trail.set_range(f, own, own);
    if (!choices.is_category(f) && !std::isnan(choices.x[f]))
        trail.set_values(f, choices.x[f], choices.x[f], false);
}

}  // namespace treefocus
