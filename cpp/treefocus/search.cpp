#include "treefocus/search.hpp"

namespace treefocus {

Search::Search(const Forest& forest, const ExactShared& shared, const TreeGrids* grids, const Choices& choices, BoxCost& cost,
               const Limits& limits, const Plan& plan, const Batch& batch, Control& control, Clock::time_point began)
    : forest_(forest), shared_(shared), choices_(choices), cost_(cost), limits_(limits), plan_(plan),
      control_(control), began_(began), walker_(forest), pull_set_(shared.boxes.n_sets()) {
    if (grids) price_.emplace(forest, shared.boxes, *grids);
    if (batch.rules) relations_ = batch.rules, rules_.emplace(*batch.rules, choices);
}

bool Search::run(const Goal& goal, double limit, std::int64_t target_class) {
    limit_ = limit;
    to_ = target_class;
    is_out_ = false;
    best_.clear();
    unresolved_ = kInfinity;
    root_bound_ = 0.0;
    box_ = choices_.all;
    if (rules_ || cost_.is_rounding()) box_.bind_values(forest_.n_features);
    if (choices_.is_empty || !cost_.settle(box_)) return true;
    walker_.place_codes(cost_.codes.data());
    running_.clear();
    for (const ScoreTest* test : goal.tests) add(*test, test->need);
    n_plain_ = running_.size();
    for (Running& one : running_)
        if (one.total < one.need) return true;
    return deep(0, {});
}

bool Search::update_tests() {
    bool is_open = true;
    for (std::size_t i = 0; i < running_.size() && is_open; ++i) {
        Running& one = running_[i];
        for (const std::int32_t f : changed_)
            one.follow(f, box_, [&](std::int32_t tree, std::int32_t position) {
                pointer_trail_.push_back({static_cast<std::int32_t>(i), tree, position});
            });
        is_open = one.total >= (i < n_plain_ ? one.need : one.need - least());
    }
    changed_.clear();
    return is_open;
}

void Search::set_range(std::int32_t f, std::int32_t low, std::int32_t high) {
    trail_.push_back({Kept::range, f, box_.low[f], box_.high[f]});
    box_.low[f] = low;
    box_.high[f] = high;
    note_changed(f);
}

template <class Keep>
void Search::set_cells(std::int32_t f, const Keep& keep) {
    std::uint64_t* words = box_.cells.data() + forest_.word_start[f];
    trail_.push_back({Kept::range, f, box_.low[f], box_.high[f]});
    word_trail_.insert(word_trail_.end(), words, words + forest_.n_words);
    for_cells(forest_, box_, f, [&](std::int32_t code) {
        if (!keep(code)) words[code / 64] &= ~(std::uint64_t{1} << (code % 64));
    });
    note_changed(f);
}

void Search::set_values(std::int32_t f, double low, double high, bool moves) {
    trail_.push_back({Kept::values, f, 0, 0});
    value_trail_.push_back({box_.value_low[f], box_.value_high[f], box_.moves[f]});
    box_.value_low[f] = std::max(box_.value_low[f], low);
    box_.value_high[f] = std::min(box_.value_high[f], high);
    box_.moves[f] = box_.moves[f] || moves;
}

void Search::note_changed(std::int32_t f) {
    if (changed_.empty() || changed_.back() != f) changed_.push_back(f);
}

bool Search::spend() {
    if (cost_.cost >= least()) return false;
    for (std::int32_t f = 0; f < forest_.n_features; ++f) {
        const std::int32_t at = cost_.codes[f];
        if (at == kMissing) continue;
        if (forest_.has_sets[f]) {
            spend_on_set(f, at);
            continue;
        }
        std::int32_t low = box_.low[f], high = box_.high[f];
        while (high > at && cost_.with(f, high) >= limit_) --high;
        while (low < at && cost_.with(f, low) >= limit_) ++low;
        if (low != box_.low[f] || high != box_.high[f]) set_range(f, low, high);
    }
    return true;
}

void Search::spend_on_set(std::int32_t f, std::int32_t at) {
    const auto is_in_reach = [&](std::int32_t code) { return code == at || cost_.with(f, code) < limit_; };
    bool is_whole = true;
    for_cells(forest_, box_, f, [&](std::int32_t code) { is_whole = is_whole && is_in_reach(code); });
    if (!is_whole) set_cells(f, is_in_reach);
}

bool Search::obey() {
    if (!rules_) return true;
    bool is_moved = false;
    candidate_.resize(forest_.n_features);
    cost_.point(candidate_.data());
    const bool is_possible = rules_->narrow(box_, [&](std::int32_t f) {
        make_stay(f);
        is_moved = is_moved || rules_->is_changed(f, candidate_.data());
    });
    return is_possible && (!is_moved || (settle_again() && cost_.cost < least()));
}

void Search::make_stay(std::int32_t f) {
    const std::int32_t own = choices_.own[f];
    if (forest_.has_sets[f]) set_cells(f, [own](std::int32_t code) { return code == own; });
    else set_range(f, own, own);
    if (!choices_.is_category(f) && !std::isnan(choices_.x[f])) set_values(f, choices_.x[f], choices_.x[f], false);
}

bool Search::keep_point() {
    if (!cost_.is_rounding() || changed_.empty()) return true;
    const bool has_lost = std::any_of(changed_.begin(), changed_.end(), [&](std::int32_t f) { return cost_.has_lost(f, box_); });
    return (cost_.is_tight() && !has_lost) || (settle_again() && cost_.cost < least());
}

bool Search::settle_again() {
    trail_.push_back({Kept::cost, 0, 0, 0});
    cost_.save_all(cost_trail_);
    if (!cost_.settle(box_)) return false;
    sync();
    return true;
}

bool Search::is_obedient() {
    if (!rules_) return true;
    candidate_.resize(forest_.n_features);
    cost_.point(candidate_.data());
    return rules_->hold(cost_.codes.data(), candidate_.data());
}

Search::Mark Search::mark() const {
    Mark m{trail_.size(), pointer_trail_.size(), {}};
    m.totals.reserve(running_.size());
    for (const Running& one : running_) m.totals.push_back(one.total);
    return m;
}

void Search::undo(const Mark& m) {
    while (trail_.size() > m.ranges) {
        const Before& before = trail_.back();
        const std::int32_t f = before.feature;
        if (before.kept == Kept::cost) {
            cost_.restore_all(cost_trail_);
            sync();
        } else if (before.kept == Kept::values) {
            const ValuesBefore& values = value_trail_.back();
            box_.value_low[f] = values.low;
            box_.value_high[f] = values.high;
            box_.moves[f] = values.moves;
            value_trail_.pop_back();
        } else {
            box_.low[f] = before.low;
            box_.high[f] = before.high;
            if (forest_.has_sets[f]) {
                const auto from = word_trail_.end() - forest_.n_words;
                std::copy(from, word_trail_.end(), box_.cells.begin() + forest_.word_start[f]);
                word_trail_.erase(from, word_trail_.end());
            }
        }
        trail_.pop_back();
    }
    while (pointer_trail_.size() > m.pointers) {
        const auto& p = pointer_trail_.back();
        running_[p.test].put_back(p.tree, p.position);
        pointer_trail_.pop_back();
    }
    for (std::size_t i = 0; i < running_.size(); ++i) running_[i].total = m.totals[i];
    changed_.clear();
}

bool Search::is_time_up() {
    if (is_out_) return true;
    if (node_limit > 0 && nodes_ >= node_limit) return is_out_ = true;
    return (nodes_ & 63) == 0 && is_late() && (is_out_ = true);
}

bool Search::is_late() const {
    return control_.stop || std::chrono::duration<double>(Clock::now() - began_).count() > limits_.seconds;
}

bool Search::close_box() {
    if (!spend() || !obey() || !keep_point() || !update_tests()) return true;
    if (walker_.predicted() != to_ || !is_obedient()) return false;
    if (cost_.reached < limit_) {
        best_.resize(forest_.n_features);
        cost_.point(best_.data());
        limit_ = cost_.reached;
    }
    // Done if nothing in the box is cheaper than the point; a rounded point can leave a gap, then the box is split.
    return cost_.is_tight() || cost_.cost >= least();
}

bool Search::can_split(const Cut& cut) const {
    if (cut.feature < 0 || trail_.size() > kLongestTrail) return false;
    if (cut.by == By::value || cut.by == By::stay) return can_split_values(cut);
    const std::int32_t code = walker_.codes()[cut.feature];
    if (forest_.has_sets[cut.feature]) {
        bool has_far = false;
        for_cells(forest_, box_, cut.feature, [&](std::int32_t c) { has_far = has_far || is_far_cell(cut, c); });
        return has_far && box_.has(forest_, cut.feature, code) && !is_far_cell(cut, code);
    }
    const std::int32_t low = box_.low[cut.feature], high = box_.high[cut.feature];
    return low <= code && code <= high && (cut.is_up ? code < cut.code && cut.code <= high : low <= cut.code && cut.code < code);
}

bool Search::can_split_values(const Cut& cut) const {
    if (cut.by == By::stay) return choices_.can_stay(cut.feature, box_) && !box_.moves[cut.feature];
    const Ends hull = choices_.hull(cut.feature, box_);
    // Among numbers without an end, and with no answer that would limit what they cost, splits could go on for ever.
    if (limit_ == kInfinity && cost_.is_rounding() && !(std::isfinite(hull.low) && std::isfinite(hull.high))) return false;
    return cut.is_up ? hull.high >= cut.value && hull.low < cut.value : hull.low <= cut.value && hull.high > cut.value;
}

bool Search::is_far_cell(const Cut& cut, std::int32_t code) const {
    if (cut.by == By::rule) return relations_->sets[cut.set][code] == cut.code;
    return cut.by == By::all_but ? code != cut.code : shared_.boxes.set_has(cut.set, code);
}

void Search::give_up(const Cut& cut) {
    if (cut.feature < 0) {
        if (walker_.predicted() != to_) return;  // a cell in which the model says otherwise
        candidate_.resize(forest_.n_features);
        cost_.point(candidate_.data());
        if (rules_ && rules_->is_final(box_, cost_.codes.data(), candidate_.data())) return;
    }
    unresolved_ = std::min(unresolved_, cost_.cost);
}

bool Search::plain(std::int64_t last_node) {
    const Mark m = mark();
    bool is_done = true;
    while (is_done) {
        ++nodes_;
        if (is_time_up() || nodes_ > last_node) {
            is_done = false;
            break;
        }
        if (close_box()) break;
        const Cut cut = choose();
        if (!can_split(cut)) {
            give_up(cut);
            break;
        }
        const Mark before = mark();
        if (enter(cut, true)) is_done = plain(last_node);
        leave(cut, true, before);
        enter(cut, false);
    }
    undo(m);
    return is_done;
}

bool Search::enter(const Cut& cut, bool is_far) {
    const std::int32_t f = cut.feature;
    if (is_far) cost_.save(f, cost_trail_);
    if (cut.by == By::value || cut.by == By::stay) split_values(cut, is_far);
    else if (cut.by != By::cells) set_cells(f, [&](std::int32_t code) { return is_far_cell(cut, code) == is_far; });
    else if (cut.is_up == is_far) set_range(f, is_far ? cut.code : cut.code + 1, box_.high[f]);
    else set_range(f, box_.low[f], is_far ? cut.code : cut.code - 1);
    if (!is_far) return true;
    if (!cost_.settle_after(f, box_)) return false;
    sync();
    return true;
}

// Numbers to one side of a value, and the cells that hold them; a missing value is on the near side.
void Search::split_values(const Cut& cut, bool is_far) {
    const std::int32_t f = cut.feature, own = choices_.own[f];
    if (cut.by == By::stay) {
        if (is_far) return make_stay(f);
        if (choices_.is_category(f)) set_cells(f, [own](std::int32_t code) { return code != own; });
        return set_values(f, -kInfinity, kInfinity, true);
    }
    const bool is_up = cut.is_up == is_far;
    const double end = is_far ? cut.value : std::nextafter(cut.value, cut.is_up ? -kInfinity : kInfinity);
    set_values(f, is_up ? end : -kInfinity, is_up ? kInfinity : end, false);
    const std::int32_t code = forest_.code(f, end), missing = forest_.n_codes(f) - 1;
    if (forest_.has_sets[f])
        set_cells(f, [&](std::int32_t c) { return c == missing ? !is_far : is_up ? c >= code : c <= code; });
    else
        set_range(f, is_up ? std::max(box_.low[f], code) : box_.low[f], is_up ? box_.high[f] : std::min(box_.high[f], code));
}

void Search::leave(const Cut& cut, bool is_far, const Mark& m) {
    undo(m);
    if (!is_far) return;
    cost_.restore(cut.feature, cost_trail_);
    sync();
}

void Search::sync() {
    for (std::int32_t f = 0; f < forest_.n_features; ++f) walker_.move_code(f, cost_.codes[f]);
}

bool Search::deep(int depth, const Price::State& around) {
    if (close_box()) return true;
    const Mark m = mark();
    const std::int64_t budget = depth == 0 ? kRootBoxes : depth < plan_.max_depth ? kBoxes : kAllBoxes;
    if (plain(nodes_ + budget)) return true;
    if (is_time_up()) return false;
    bool is_closed = close_box();  // again: the limit may have dropped
    const auto* steps = cost_.additive();
    ScoreTest priced;
    Price::State state = around;
    const std::size_t n_running = running_.size();
    Running parent;
    bool is_installed = false;
    if (!is_closed && steps && price_ && depth < plan_.max_depth) {
        const int sweeps = depth == 0 ? kRootSweeps : kSweeps;
        const double bound = price_->bound(choices_, *steps, box_, running_[0].test(), limit_, sweeps, state,
                                           [this] { return is_late(); });
        nodes_ += kPricedBoxes;
        if (depth == 0) root_bound_ = std::max(bound, cost_.cost);
        is_closed = bound >= least();
        if (!is_closed && bound > cost_.cost) {
            price_->export_to(priced);
            if (n_running > n_plain_) parent = std::move(running_.back()), running_.pop_back();
            add(priced, price_->constant());
            is_installed = true;
        }
    }
    bool is_done = true;
    if (!is_closed) {
        const Cut cut = choose();
        if (!can_split(cut)) give_up(cut);
        else
            for (const bool is_far : {true, false}) {
                const Mark inner = mark();
                if (enter(cut, is_far)) is_done = deep(depth + 1, state);
                leave(cut, is_far, inner);
                if (!is_done) break;
            }
    }
    if (is_installed) {
        running_.pop_back();
        if (n_running > n_plain_) running_.push_back(std::move(parent));
    }
    undo(m);
    return is_done;
}

}  // namespace treefocus
