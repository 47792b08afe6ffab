// The loop. Everything here keeps one promise: a box is only called done if no point of it is an
// answer cheaper than the limit, or if its cheapest answer has become the limit. What cannot be
// decided is remembered by what it costs (unresolved_), and no proof goes beyond that.
#include "treefocus/search.hpp"

#include <algorithm>

namespace treefocus {

// The clock, and whether somebody asks to stop, are looked at once in so many boxes: a box takes a
// microsecond or two, so that this is soon enough and costs nothing.
bool Work::is_up() {
    constexpr std::int64_t kBoxesPerLook = 64;  // at the clock
    if (is_out) return true;
    if (box_limit > 0 && boxes >= box_limit) return is_out = true;
    return boxes % kBoxesPerLook == 0 && is_late() && (is_out = true);
}

bool Work::is_late() const {
    return control_.stop ||
           std::chrono::duration<double>(Clock::now() - began_).count() > limits_.seconds;
}

Search::Search(Position& position, Work& work, const TreeGrids* grids, int max_depth)
    : at_(position), work_(work), brancher_(position), max_depth_(max_depth) {
    if (grids) price_.emplace(at_.forest, at_.shared.boxes, *grids);
}

// A start that no test allows is a search that came to its end at once.
bool Search::run(const Goal& goal, double limit) {
    work_.is_out = false;
    best_.clear();
    unresolved_ = kInfinity;
    root_bound_ = 0.0;
    return !at_.start(goal, limit) || deep(0, {});
}

// From cheap to dear, each on what the one before has left: cells beyond the budget, rules, the
// closest point if it was lost, the score tests, and only then the model itself.
bool Search::close_box() {
    if (!spend() || !obey() || !keep_point() || !at_.update_tests()) return true;
    if (!at_.is_wanted() || !at_.is_obedient()) return false;
    // The model agrees and the rules hold: an answer.
    if (at_.cost.reached < at_.limit) {
        best_ = at_.point();
        at_.limit = at_.cost.reached;
    }
    // Done if nothing in the box is cheaper than the point; a rounded point can leave a gap, then
    // the box is split.
    return at_.cost.is_tight() || at_.cost.cost >= at_.least();
}

// with(f, code) is a lower bound for all points of the box in that cell. Cells fall off at the ends
// only, so that a range stays a range.
bool Search::spend() {
    const BoxCost& cost = at_.cost;
    if (cost.cost >= at_.least()) return false;
    const Box& box = at_.trail.box();
    for (std::int32_t f = 0; f < at_.forest.n_features; ++f) {
        const std::int32_t code = cost.codes[f];
        if (code == kMissing) continue;
        if (at_.forest.has_sets[f]) {
            spend_on_set(f, code);
            continue;
        }
        std::int32_t low = box.low[f], high = box.high[f];
        while (high > code && cost.with(f, high) >= at_.limit) --high;
        while (low < code && cost.with(f, low) >= at_.limit) ++low;
        if (low != box.low[f] || high != box.high[f]) at_.trail.set_range(f, low, high);
    }
    return true;
}

// Cells of a set have no order, each is asked for. They are looked through once before any is taken
// out: most often none is, and then nothing needs to be noted.
void Search::spend_on_set(std::int32_t f, std::int32_t at) {
    const auto is_in_reach = [&](std::int32_t code) {
        return code == at || at_.cost.with(f, code) < at_.limit;
    };
    bool is_whole = true;
    for_cells(at_.forest, at_.trail.box(), f,
              [&](std::int32_t code) { is_whole = is_whole && is_in_reach(code); });
    if (!is_whole) at_.trail.set_cells(f, is_in_reach);
}

// Features that have to stay take the closest point with them, if it had moved them.
bool Search::obey() {
    if (!at_.rules) return true;
    bool is_moved = false;
    const std::vector<double>& point = at_.point();
    const bool is_possible = at_.rules->narrow(at_.trail.box(), [&](std::int32_t f) {
        at_.make_stay(f);
        is_moved = is_moved || at_.rules->is_changed(f, point.data());
    });
    return is_possible && (!is_moved || (at_.settle_again() && at_.cost.cost < at_.least()));
}

// A rounded point may still be in the box while the point that it was rounded from, which the bound
// rests on, is not: then the bound can rise.
bool Search::keep_point() {
    const std::vector<std::int32_t>& changed = at_.trail.changed();
    if (!at_.cost.is_rounding() || changed.empty()) return true;
    const auto is_lost = [&](std::int32_t f) { return at_.cost.has_lost(f, at_.trail.box()); };
    if (at_.cost.is_tight() && std::none_of(changed.begin(), changed.end(), is_lost)) return true;
    return at_.settle_again() && at_.cost.cost < at_.least();
}

// Two boxes that cannot be split are decided all the same: a single cell where the model says
// otherwise, and one whose point breaks a rule with no other value to choose.
void Search::give_up(const Cut& cut) {
    if (cut.feature < 0) {
        if (!at_.is_wanted()) return;  // a cell in which the model says otherwise
        if (at_.rules &&
            at_.rules->is_final(at_.trail.box(), at_.cost.codes.data(), at_.point().data()))
            return;
    }
    unresolved_ = std::min(unresolved_, at_.cost.cost);
}

// `last_box` bounds the whole subtree, not the boxes of one level: a subtree that is cut off is
// undone up to where it began and reported as not done, whatever its parts have shown. Answers
// found on the way are kept, for the limit only ever falls.
bool Search::plain(std::int64_t last_box) {
    const Position::Mark m = at_.mark();
    bool is_done = true;
    while (is_done) {
        ++work_.boxes;
        if (work_.is_up() || work_.boxes > last_box) {
            is_done = false;
            break;
        }
        if (close_box()) break;
        const Cut cut = brancher_.choose();
        if (!brancher_.can_split(cut)) {
            give_up(cut);
            break;
        }
        const Position::Mark before = at_.mark();
        if (enter(cut, true)) is_done = plain(last_box);
        leave(cut, true, before);
        enter(cut, false);
    }
    at_.undo(m);
    return is_done;
}

// The near side keeps the closest point, so that only the far side has to find a new one.
bool Search::enter(const Cut& cut, bool is_far) {
    if (is_far) at_.save(cut.feature);
    brancher_.take_side(cut, is_far);
    return !is_far || at_.settle_after(cut.feature);
}

void Search::leave(const Cut& cut, bool is_far, const Position::Mark& m) {
    at_.undo(m);
    if (is_far) at_.restore(cut.feature);
}

// A box is tried plainly with a budget of boxes; if that is not enough it is priced once, and its
// two halves are tried in the same way with the priced test in place. Below max_depth_, for which
// there is memory, plain search has no budget.
bool Search::deep(int depth, const Price::State& around) {
    if (close_box()) return true;
    const Position::Mark m = at_.mark();
    const std::int64_t boxes = depth == 0 ? kRootBoxes : depth < max_depth_ ? kBoxes : kAllBoxes;
    if (plain(work_.boxes + boxes)) return true;
    if (work_.is_up()) return false;
    Priced priced;
    priced.is_closed = close_box();  // again: the limit may have dropped
    priced.state = around;
    if (!priced.is_closed && price_ && depth < max_depth_) price_box(depth, priced);
    const bool is_done = priced.is_closed || branch(depth, priced.state);
    if (priced.is_installed) at_.unprice(std::move(priced.outer));
    at_.undo(m);
    return is_done;
}

// Only a sum over features can be shared among trees. At the root the bound is remembered: it is
// what a search proves that is stopped before its end.
void Search::price_box(int depth, Priced& priced) {
    const auto* steps = at_.cost.additive();
    if (!steps) return;
    const double bound = price_->bound(at_.choices, *steps, at_.trail.box(), at_.first_test(),
                                       at_.limit, depth == 0 ? kRootSweeps : kSweeps, priced.state,
                                       [this] { return work_.is_late(); });
    work_.boxes += kPricedBoxes;
    if (depth == 0) root_bound_ = std::max(bound, at_.cost.cost);
    priced.is_closed = bound >= at_.least();
    // A bound below what the box costs anyway would only slow the boxes inside.
    if (priced.is_closed || bound <= at_.cost.cost) return;
    price_->export_to(priced.test);
    priced.outer = at_.price(priced.test, price_->constant());
    priced.is_installed = true;
}

// The far side first, as in plain: an answer there lowers the limit for the near side.
bool Search::branch(int depth, const Price::State& around) {
    const Cut cut = brancher_.choose();
    if (!brancher_.can_split(cut)) {
        give_up(cut);
        return true;
    }
    for (const bool is_far : {true, false}) {
        const Position::Mark before = at_.mark();
        const bool is_done = !enter(cut, is_far) || deep(depth + 1, around);
        leave(cut, is_far, before);
        if (!is_done) return false;
    }
    return true;
}

}  // namespace treefocus
