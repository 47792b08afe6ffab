// The loop. Everything here keeps one promise: a box is only called done if no point of it is an
// answer cheaper than the limit, or if its cheapest answer has become the limit. What cannot be
// decided is remembered by what it costs (unresolved_), and no proof goes beyond that.
#include "treefocus/search.hpp"

#include <algorithm>

namespace treefocus {

Search::Search(Position& position, Work& work, bool can_price, std::int64_t patience)
    : patience_(patience), at_(position), work_(work), brancher_(position) {
    if (can_price) price_.emplace();
}

// The cuts of a path were made in boxes that the budget had narrowed. Taken before anything is
// narrowed, they leave what they left then or more, and every cut has both sides here, too.
void Search::take(const Step* path) {
    if (!path) return;
    take(path->before.get());
    brancher_.take_side(path->cut, path->is_far);
}

// A start that no test allows is a search that came to its end at once.
bool Search::start(const Goal& goal, double limit, const Box& box, const Step* path) {
    at_.start(goal, limit, box);
    take(path);
    const bool is_open = at_.settle() && spend() && obey() && spend() && at_.test();
    count_box_steps(is_open);
    return is_open;
}

// Of every box that follows, and of this one.
void Search::count_box_steps(bool is_open) {
    const Crop& crop = at_.crop();
    box_steps_ = kBox + kBoxFeature * at_.forest.n_features + kBoxTree * at_.forest.n_trees() +
                 (is_open ? crop.n_slots() / kSlotsPerStep : 0);
    if (is_open) work_.steps += kCropLook * (crop.n_open() + crop.side.size());
    work_.steps += box_steps_ + at_.cost.take_steps();
}

bool Search::run(const Goal& goal, double limit, const Box& box, std::int64_t n_boxes) {
    best_.clear();
    unresolved_ = kInfinity;
    return !start(goal, limit, box, nullptr) || plain(work_.boxes + n_boxes);
}

// In a node that has shares from around it these are tried on the box first, and the plain search
// has them as a test. What it cannot finish gets shares of its own, and is split. Every bound that
// is told here is about answers below the limit in the node's box: no answer in it is cheaper than
// the bound or the limit, whichever is less.
Search::Look Search::look(const Goal& goal, double limit, Node& node, Node& near, bool can_keep) {
    best_.clear();
    unresolved_ = kInfinity;
    const auto closed = [&] {
        node.bound = std::max(node.bound, at_.limit);
        node.proven = std::max(node.proven, std::min(at_.limit, unresolved_));
        node.is_undecided = unresolved_ < at_.limit;
        return Look::closed;
    };
    const auto raise = [&](double bound) {
        node.bound = std::max(node.bound, std::min(bound, at_.limit));
        node.proven = std::max(node.proven, std::min(bound, at_.limit));
        return bound >= at_.least();
    };
    const bool is_first = !node.shares;
    if (!start(goal, limit, at_.choices.all, node.path.get())) return closed();
    if (!is_first) {
        if (raise(price_box(node.shares.get(), kFirstSweeps))) return closed();
        install_price();
    }
    const Position::Mark m = at_.mark();
    const std::int64_t boxes = patience_ > 0 ? patience_ : is_first ? kRootBoxes : kBoxes;
    if (plain(work_.boxes + boxes)) return closed();
    if (work_.is_up()) return Look::stopped;
    at_.undo(m);
    // Where the limit has dropped less is left of the box, and the price is for that.
    const bool is_same = at_.limit == limit;
    if (!is_same && !start(goal, at_.limit, at_.choices.all, node.path.get())) return closed();
    if (price_) {
        const bool is_closed = raise(
            is_same && !is_first ? improve_price(kSweeps)
                                 : price_box(node.shares.get(), is_first ? kRootSweeps : kSweeps));
        if (minorant_ && price_->has_state() && (can_keep || is_first))
            node.shares = std::make_shared<const Price::State>(price_->state());
        if (is_closed || !leave_out()) return closed();
    }
    if (close_box()) return closed();
    const Cut cut = brancher_.choose();
    if (!brancher_.can_split(cut)) {
        give_up(cut);
        return closed();
    }
    near = node;
    near.path = std::make_shared<const Step>(Step{cut, false, node.path});
    node.path = std::make_shared<const Step>(Step{cut, true, node.path});
    return Look::split;
}

// Without prices, whose shares would have to be written down too, and without whole votes, which
// the reader of a proof does not count.
bool Search::record(const Goal& goal, double limit, ProofLog& log) {
    work_.is_out = false;
    best_.clear();
    unresolved_ = kInfinity;
    log_ = &log;
    weighed_ = -1;
    bool is_done = true;
    at_.is_plain = true;
    at_.start(goal, limit, at_.choices.all);
    if (at_.settle() && at_.test()) is_done = plain(kAllBoxes);
    else close(at_.failed_test() >= 0 ? ProofStep::score : ProofStep::none_left);
    log_ = nullptr;
    return is_done;
}

bool Search::close(ProofStep reason) {
    if (!log_) return true;
    if (reason == ProofStep::none_left || at_.cost.tangent()) weigh();
    if (reason == ProofStep::score) log_->close(reason, at_.failed_test());
    else log_->close(reason);
    return true;
}

// A box inside one that was weighed is weighed the same, until its closest point is another.
void Search::weigh() {
    if (!log_) return;
    const std::vector<double>* point = at_.cost.tangent();
    const std::vector<double>* prices = at_.cost.rule_prices();
    ProofLog::Weights weights{point ? *point : std::vector<double>{},
                              prices ? *prices : std::vector<double>{}};
    const auto is_zero = [](double one) { return one == 0.0; };
    const bool is_nothing = std::all_of(weights.point.begin(), weights.point.end(), is_zero) &&
                            std::all_of(weights.prices.begin(), weights.prices.end(), is_zero);
    if (weighed_ < 0 ? is_nothing : log_->weights[weighed_] == weights) return;
    weighed_ = static_cast<std::int32_t>(log_->weights.size());
    log_->close(ProofStep::weigh, weighed_);
    log_->weights.push_back(std::move(weights));
}

// From cheap to dear, each on what the one before has left: cells beyond the budget, rules, the
// closest point if it was lost, the score tests, and only then the model itself.
bool Search::close_box() {
    if (at_.cost.tangent()) weigh();
    if (!spend() || !obey() || !keep_point()) return close(ProofStep::none_left);
    if (!at_.update_tests()) return close(ProofStep::score);
    if (!at_.is_wanted() || !at_.is_obedient()) return false;
    // The model agrees and the rules hold: an answer.
    if (at_.cost.reached < at_.limit) {
        best_ = at_.point();
        at_.limit = at_.cost.reached;
        at_.cost.set_limit(at_.limit);
    }
    // Done if nothing in the box is cheaper than the point; a rounded point can leave a gap, then
    // the box is split.
    return (at_.cost.is_tight() || at_.cost.cost >= at_.least()) && close(ProofStep::none_left);
}

// with(f, code) is a lower bound for all points of the box in that cell. Cells fall off at the ends
// only, so that a range stays a range.
bool Search::spend() {
    const BoxCost& cost = at_.cost;
    const Box& box = at_.trail.box();
    if (cost.cost >= at_.least() || !at_.cost.look(box)) return false;
    for (std::int32_t f = 0; f < at_.forest.n_features; ++f) {
        const std::int32_t code = cost.codes[f];
        if (code == kMissing) continue;
        if (at_.forest.has_sets[f]) {
            spend_on_set(f, code);
            continue;
        }
        const std::int32_t low = last_in_reach(f, code, box.low[f]),
                           high = last_in_reach(f, code, box.high[f]);
        if (low != box.low[f] || high != box.high[f]) at_.trail.set_range(f, low, high);
    }
    return true;
}

// From the end of a range towards the closest point's cell: one cell after another, for a cell may
// be dearer than the one behind it; where costs rise away from the point by halves.
std::int32_t Search::last_in_reach(std::int32_t f, std::int32_t code, std::int32_t end) const {
    const auto is_beyond = [&](std::int32_t c) { return at_.cost.with(f, c) >= at_.limit; };
    const std::int32_t step = end > code ? -1 : 1;
    if (!at_.cost.is_rising()) {
        while (end != code && is_beyond(end)) end += step;
        return end;
    }
    if (end == code || !is_beyond(end)) return end;
    for (std::int32_t inside = code;;) {
        if (std::abs(end - inside) <= 1) return inside;
        const std::int32_t middle = inside + (end - inside) / 2;
        (is_beyond(middle) ? end : inside) = middle;
    }
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
        if (!at_.is_wanted()) {  // a cell in which the model says otherwise
            close(ProofStep::cell);
            return;
        }
        if (at_.rules &&
            at_.rules->is_final(at_.trail.box(), at_.cost.codes.data(), at_.point().data())) {
            close(ProofStep::none_left);
            return;
        }
    }
    if (log_) log_->leave_open();
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
        work_.steps += box_steps_;
        const bool is_closed = close_box();
        work_.steps += kLook * at_.take_looks() + at_.cost.take_steps();
        if (is_closed) break;
        const Cut cut = brancher_.choose();
        if (!brancher_.can_split(cut)) {
            give_up(cut);
            break;
        }
        const Position::Mark before = at_.mark();
        if (log_) brancher_.note(cut, *log_);
        const std::int32_t weighed = weighed_;
        if (enter(cut, true)) is_done = plain(last_box);
        else close(ProofStep::none_left);
        leave(cut, true, before);
        weighed_ = weighed;
        if (!enter(cut, false)) {
            close(ProofStep::none_left);
            break;
        }
    }
    at_.undo(m);
    return is_done;
}

// The near side keeps the closest point, so that only the far side has to find a new one; of a
// slice, and where a feature stays or moves, both have a new bound.
bool Search::enter(const Cut& cut, bool is_far) {
    if (is_far) at_.save(cut.feature);
    brancher_.take_side(cut, is_far);
    const bool is_dearer = cut.by == By::slice || (cut.by == By::stay && at_.cost.is_rounding());
    if (!is_far) return !is_dearer || at_.settle_again();
    return at_.settle_after(cut.feature);
}

void Search::leave(const Cut& cut, bool is_far, const Position::Mark& m) {
    at_.undo(m);
    if (is_far) at_.restore(cut.feature);
}

// Only a sum over features can be shared among trees: the cost, or a sum that is below it. The box
// is the one that the crop was made for: nothing has narrowed it since the start. Told in the
// search's own units; infinity if no answer in the box is cheaper than the limit.
double Search::price_box(const Price::State* around, int sweeps) {
    minorant_.reset();
    if (!price_) return 0.0;
    if (!at_.cost.look(at_.trail.box())) return kInfinity;
    minorant_ = at_.cost.minorant();
    if (!minorant_) return 0.0;
    return told(price_->bound(at_.choices, *minorant_->steps, at_.trail.box(), at_.crop(),
                              at_.goal(), left(at_.limit), sweeps, around,
                              [this] { return work_.is_late(); }));
}

// The price is for the box of the start, and what its sum is worth as a cost is told by the last
// look, which was at a box inside: the box is looked at once more.
double Search::improve_price(int sweeps) {
    if (!minorant_ || !price_->has_state()) return 0.0;
    if (!at_.cost.look(at_.trail.box())) return kInfinity;
    return told(price_->improve(left(at_.limit), sweeps, [this] { return work_.is_late(); }));
}

// What the sum has to stay below for an answer cheaper than a limit.
double Search::left(double limit) const {
    return at_.cost.left(limit) + minorant_->constant;
}

double Search::told(double bound) {
    work_.steps += kPriceLook * price_->take_looks();
    if (!price_->has_state()) return 0.0;
    return bound >= left(at_.least()) ? kInfinity : at_.cost.of_minorant(bound);
}

void Search::leave_cells(std::int32_t f, const Box& box) {
    const auto is_left = [&](std::int32_t code) { return box.has(at_.forest, f, code); };
    bool is_whole = true;
    for_cells(at_.forest, at_.trail.box(), f,
              [&](std::int32_t code) { is_whole = is_whole && is_left(code); });
    if (!is_whole) at_.trail.set_cells(f, is_left);
}

// The tests, the closest point and the split see what is left alone. The price is not asked again.
bool Search::leave_out() {
    if (!minorant_ || !price_->has_state()) return true;
    Box box = at_.trail.box();
    const bool is_open = price_->leave_out(left(at_.limit), box, is_kept_);
    work_.steps += kPriceLook * price_->take_looks();
    if (!is_open) return false;
    for (std::int32_t f = 0; f < at_.forest.n_features; ++f) {
        if (at_.choices.home[f] == kMissing) continue;
        if (at_.forest.has_sets[f]) leave_cells(f, box);
        else if (box.low[f] > at_.trail.box().low[f] || box.high[f] < at_.trail.box().high[f])
            at_.trail.set_range(f, box.low[f], box.high[f]);
    }
    if (!at_.settle() || !spend() || !obey() || !spend() || !at_.keep(is_kept_)) return false;
    count_box_steps(true);
    return true;
}

// A bound below what the box costs anyway would only slow the boxes inside.
void Search::install_price() {
    if (!minorant_ || !price_->has_state() || price_->told() <= minorant_->least) return;
    price_->export_to(priced_);
    at_.price(priced_, price_->constant() - minorant_->constant);
}

}  // namespace treefocus
