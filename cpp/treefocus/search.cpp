#include "treefocus/search.hpp"

namespace treefocus {

Search::Search(const Forest& forest, const ExactShared& shared, const TreeGrids* grids, const Choices& choices, BoxCost& cost,
               const Limits& limits, const Plan& plan, const Batch& batch, std::int64_t row, Control& control, Clock::time_point began)
    : forest_(forest), shared_(shared), choices_(choices), cost_(cost), limits_(limits), plan_(plan),
      control_(control), began_(began), walker_(forest), pull_set_(shared.boxes.n_sets()) {
    if (grids) price_.emplace(forest, shared.boxes, *grids);
    if (batch.rules) relations_ = batch.rules, rules_.emplace(forest, *batch.rules, batch.rows + row * forest.n_features);
}

bool Search::run(const Goal& goal, double limit, std::int64_t target_class) {
    limit_ = limit;
    to_ = target_class;
    is_out_ = false;
    best_.clear();
    unresolved_ = kInfinity;
    root_bound_ = 0.0;
    box_ = choices_.all;
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
    range_trail_.push_back({f, box_.low[f], box_.high[f]});
    box_.low[f] = low;
    box_.high[f] = high;
    note_changed(f);
}

template <class Keep>
void Search::set_cells(std::int32_t f, const Keep& keep) {
    std::uint64_t* words = box_.cells.data() + forest_.word_start[f];
    range_trail_.push_back({f, box_.low[f], box_.high[f]});
    word_trail_.insert(word_trail_.end(), words, words + forest_.n_words);
    for_cells(forest_, box_, f, [&](std::int32_t code) {
        if (!keep(code)) words[code / 64] &= ~(std::uint64_t{1} << (code % 64));
    });
    note_changed(f);
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
    return !rules_ || rules_->narrow(box_, choices_, [this](std::int32_t f, std::int32_t code) {
        if (cost_.codes[f] != code) return;
        if (forest_.has_sets[f]) set_cells(f, [code](std::int32_t c) { return c == code; });
        else set_range(f, code, code);
    });
}

bool Search::is_obedient() {
    if (!rules_) return true;
    candidate_.resize(forest_.n_features);
    cost_.point(candidate_.data());
    return rules_->hold(cost_.codes.data(), candidate_.data());
}

Search::Mark Search::mark() const {
    Mark m{range_trail_.size(), pointer_trail_.size(), {}};
    m.totals.reserve(running_.size());
    for (const Running& one : running_) m.totals.push_back(one.total);
    return m;
}

void Search::undo(const Mark& m) {
    while (range_trail_.size() > m.ranges) {
        const auto& r = range_trail_.back();
        box_.low[r.feature] = r.low;
        box_.high[r.feature] = r.high;
        if (forest_.has_sets[r.feature]) {
            const auto from = word_trail_.end() - forest_.n_words;
            std::copy(from, word_trail_.end(), box_.cells.begin() + forest_.word_start[r.feature]);
            word_trail_.erase(from, word_trail_.end());
        }
        range_trail_.pop_back();
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
    if (!spend() || !obey() || !update_tests()) return true;
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
    if (cut.feature < 0 || range_trail_.size() > kLongestTrail) return false;
    const std::int32_t code = walker_.codes()[cut.feature];
    if (forest_.has_sets[cut.feature]) {
        bool has_far = false;
        for_cells(forest_, box_, cut.feature, [&](std::int32_t c) { has_far = has_far || is_far_cell(cut, c); });
        return has_far && box_.has(forest_, cut.feature, code) && !is_far_cell(cut, code);
    }
    const std::int32_t low = box_.low[cut.feature], high = box_.high[cut.feature];
    return low <= code && code <= high && (cut.is_up ? code < cut.code && cut.code <= high : low <= cut.code && cut.code < code);
}

bool Search::is_far_cell(const Cut& cut, std::int32_t code) const {
    if (cut.set <= kOfRule) return relations_->sets[kOfRule - cut.set][code] == cut.code;
    return cut.set == kAllBut ? code != cut.code : shared_.boxes.set_has(cut.set, code);
}

void Search::give_up(const Cut& cut) {
    if (cut.feature < 0 && (walker_.predicted() != to_ || (rules_ && rules_->broken(box_, cost_.codes.data())))) return;
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
    if (cut.set != kNoSet) set_cells(f, [&](std::int32_t code) { return is_far_cell(cut, code) == is_far; });
    else if (cut.is_up == is_far) set_range(f, is_far ? cut.code : cut.code + 1, box_.high[f]);
    else set_range(f, box_.low[f], is_far ? cut.code : cut.code - 1);
    if (!is_far) return true;
    if (!cost_.settle_after(f, box_)) return false;
    sync();
    return true;
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
