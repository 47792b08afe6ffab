#include "treefocus/exact.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "treefocus/cost.hpp"
#include "treefocus/running.hpp"

namespace treefocus {

Plan::Plan(const Forest& forest, const Limits& limits, int n_threads) {
    // Without a clock the answer is the same on every machine, so it may not hang on how many threads share the memory.
    if (limits.seconds == kInfinity) n_threads = std::max(n_threads, kPlannedThreads);
    // A leaf's box has at most a side per node on its path.
    std::vector<std::int32_t> depth(forest.n_nodes(), 0);
    double sides = 0.0, axes = 0.0;
    for (std::int32_t node = 0; node < forest.n_nodes(); ++node) {
        if (forest.feature[node] < 0) sides += depth[node];
        else depth[node + 1] = depth[forest.right[node]] = depth[node] + 1, axes += 1.0;
    }
    const double leaves = forest.n_leaves(), classes = forest.n_classes;
    const double sets = 3.0 * forest.set_user_node.size() * (64.0 + 8.0 * forest.n_words);
    const double shared = sides * sizeof(Side) + leaves * 4.0 + classes * (classes - 1.0) * leaves * 12.0 + sets;
    const double grids = sides * sizeof(TreeGrids::Span) + axes * 40.0 + 64.0 * forest.n_words * forest.set_user_node.size() * 4.0;
    const double state = axes * 24.0 + 8.0 * forest.n_cells() + 20.0 * leaves;
    can_search = shared < limits.bytes;
    const double left = limits.bytes - shared - grids - n_threads * (axes * 32.0 + leaves * 12.0);
    can_price = left > n_threads * 4.0 * state;
    max_depth = can_price ? static_cast<int>(std::min(left / (n_threads * state), 200.0)) : 0;
}

ExactShared::ExactShared(const Forest& forest, const Plan& plan) : boxes(forest), goals(forest) {
    if (plan.can_price) grids.emplace(forest, boxes);
}

std::shared_ptr<const ExactShared> ExactShared::of(const Forest& forest, const Plan& plan) {
    std::lock_guard lock(forest.cache->mutex);
    auto shared = std::static_pointer_cast<const ExactShared>(forest.cache->exact);
    if (!shared || shared->grids.has_value() != plan.can_price)
        forest.cache->exact = shared = std::make_shared<const ExactShared>(forest, plan);
    return shared;
}

namespace {

using Clock = std::chrono::steady_clock;
constexpr double kProofTolerance = 1e-10;  // bounds count as reached this close to the limit, relatively

// The shortest way out of the row's own cell in any feature: limits start there when no answer is known.
double smallest_step(const Choices& choices, const BoxCost& cost) {
    double smallest = kInfinity;
    for (std::int32_t f = 0; f < choices.forest.n_features; ++f) {
        if (choices.home[f] == kMissing) continue;
        for_cells(choices.forest, choices.all, f, [&](std::int32_t code) {
            if (!choices.forest.has_sets[f] && std::abs(code - choices.home[f]) != 1) return;
            if (const double step = cost.to_distance(cost.with(f, code)); step > 0.0) smallest = std::min(smallest, step);
        });
    }
    return smallest < kInfinity ? 2.0 * smallest : 1.0;
}

class Search {
public:
    Search(const Forest& forest, const ExactShared& shared, const Choices& choices, BoxCost& cost, const Limits& limits,
           const Plan& plan, const Batch& batch, std::int64_t row, Control& control, Clock::time_point began)
        : forest_(forest), shared_(shared), choices_(choices), cost_(cost), limits_(limits), plan_(plan),
          control_(control), began_(began), walker_(forest), pull_set_(shared.boxes.n_sets()) {
        if (shared.grids) price_.emplace(forest, shared.boxes, *shared.grids);
        if (batch.rules) relations_ = batch.rules, rules_.emplace(forest, *batch.rules, batch.rows + row * forest.n_features);
    }

    // Looks for an answer cheaper than limit. True if the search came to its end: then `limit` is proven.
    bool run(const Goal& goal, double limit, std::int64_t target_class) {
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

    double limit() const { return limit_; }
    bool has_answer() const { return !best_.empty(); }
    const std::vector<double>& best() const { return best_; }
    std::int64_t nodes() const { return nodes_; }
    bool is_out() const { return is_out_; }
    std::int64_t node_limit = 0;     // 0 = none
    // What the last run proved even if it did not come to its end, or left boxes it could not decide.
    double proven() const { return std::min(is_out_ ? root_bound_ : limit_, unresolved_); }

private:
    // ---- the running tests
    void add(const ScoreTest& test, double need) { running_.emplace_back(test, need, shared_.boxes, choices_, box_); }

    // Lets the tests see what has changed; false if one can no longer be met.
    bool update_tests() {
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

    // ---- boxes
    void set_range(std::int32_t f, std::int32_t low, std::int32_t high) {
        range_trail_.push_back({f, box_.low[f], box_.high[f]});
        box_.low[f] = low;
        box_.high[f] = high;
        note_changed(f);
    }

    // Keeps the cells of a feature with sets for which keep(code).
    template <class Keep>
    void set_cells(std::int32_t f, const Keep& keep) {
        std::uint64_t* words = box_.cells.data() + forest_.word_start[f];
        range_trail_.push_back({f, box_.low[f], box_.high[f]});
        word_trail_.insert(word_trail_.end(), words, words + forest_.n_words);
        for_cells(forest_, box_, f, [&](std::int32_t code) {
            if (!keep(code)) words[code / 64] &= ~(std::uint64_t{1} << (code % 64));
        });
        note_changed(f);
    }

    void note_changed(std::int32_t f) {
        if (changed_.empty() || changed_.back() != f) changed_.push_back(f);
    }

    // Cells that the budget does not reach leave the box. False if the box is done.
    bool spend() {
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

    void spend_on_set(std::int32_t f, std::int32_t at) {
        const auto is_in_reach = [&](std::int32_t code) { return code == at || cost_.with(f, code) < limit_; };
        bool is_whole = true;
        for_cells(forest_, box_, f, [&](std::int32_t code) { is_whole = is_whole && is_in_reach(code); });
        if (!is_whole) set_cells(f, is_in_reach);
    }

    // Cells that the rules leave out leave the box. False if the box is done.
    bool obey() {
        return !rules_ || rules_->narrow(box_, choices_, [this](std::int32_t f, std::int32_t code) {
            if (cost_.codes[f] != code) return;
            if (forest_.has_sets[f]) set_cells(f, [code](std::int32_t c) { return c == code; });
            else set_range(f, code, code);
        });
    }

    bool is_obedient() {
        if (!rules_) return true;
        candidate_.resize(forest_.n_features);
        cost_.point(candidate_.data());
        return rules_->hold(cost_.codes.data(), candidate_.data());
    }

    struct Mark {
        std::size_t ranges, pointers;
        std::vector<double> totals;
    };
    Mark mark() const {
        Mark m{range_trail_.size(), pointer_trail_.size(), {}};
        m.totals.reserve(running_.size());
        for (const Running& one : running_) m.totals.push_back(one.total);
        return m;
    }
    void undo(const Mark& m) {
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

    // A bound that reaches this is as good as the limit.
    double least() const { return limit_ * (1.0 - kProofTolerance) - cost_.noise; }

    // ---- the search
    bool is_time_up() {
        if (is_out_) return true;
        if (node_limit > 0 && nodes_ >= node_limit) return is_out_ = true;
        return (nodes_ & 63) == 0 && is_late() && (is_out_ = true);
    }

    bool is_late() const {
        return control_.stop || std::chrono::duration<double>(Clock::now() - began_).count() > limits_.seconds;
    }

    // Bounds the current box; true if it is done (nothing cheaper than limit in it, or its best is taken).
    bool close_box() {
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

    // Whether a cut leaves something on both sides, with the closest point on the near one. It always does, unless
    // rounding put the closest point of a coupled distance outside the box.
    bool can_split(const Cut& cut) const {
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

    bool is_far_cell(const Cut& cut, std::int32_t code) const {
        if (cut.set <= kOfRule) return relations_->sets[kOfRule - cut.set][code] == cut.code;
        return cut.set == kAllBut ? code != cut.code : shared_.boxes.set_has(cut.set, code);
    }

    // A box that cannot be split: a cell without an answer is done; of anything else it is only known what it costs.
    void give_up(const Cut& cut) {
        if (cut.feature < 0 && (walker_.predicted() != to_ || (rules_ && rules_->broken(box_, cost_.codes.data())))) return;
        unresolved_ = std::min(unresolved_, cost_.cost);
    }

    // Plain depth first until the box budget is used up; false if cut off. The far side is a call, the near side goes on
    // in this one, so that the stack is only as deep as steps were taken.
    bool plain(std::int64_t last_node) {
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

    bool enter(const Cut& cut, bool is_far) {
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

    void leave(const Cut& cut, bool is_far, const Mark& m) {
        undo(m);
        if (!is_far) return;
        cost_.restore(cut.feature, cost_trail_);
        sync();
    }

    void sync() {
        for (std::int32_t f = 0; f < forest_.n_features; ++f) walker_.move_code(f, cost_.codes[f]);
    }

    // Boxes that plain search cannot finish get a priced bound of their own.
    bool deep(int depth, const Price::State& around) {
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

    // Where to split: the threshold that most score lies behind, weighed by what the step there costs.
    Cut choose() {
        if (rules_ && walker_.predicted() == to_)
            if (const auto cut = rules_->broken(box_, cost_.codes.data()); cut && can_split(*cut)) return *cut;
        const Running& one = running_[hardest()];
        const std::vector<double>& weight = one.test().weight;
        gain_.resize(forest_.n_trees());
        for (std::int32_t tree = 0; tree < forest_.n_trees(); ++tree)
            gain_[tree] = weight[one.wish(tree)] - weight[walker_.leaves()[tree]];
        best_cut_ = {};
        best_score_ = -1.0;
        for (std::int32_t f = 0; f < forest_.n_features; ++f) {
            if (walker_.codes()[f] == kMissing) continue;
            if (forest_.has_sets[f]) weigh_sets(one, f);
            else weigh_thresholds(one, f);
        }
        return best_score_ < 0.0 ? any_cut() : best_cut_;
    }

    // The cuts of a feature, the farthest first on either side, so that a running sum is the gain that lies behind.
    void weigh_thresholds(const Running& one, std::int32_t f) {
        const std::int32_t code = walker_.codes()[f];
        above_.clear();
        below_.clear();
        one.for_wishes_elsewhere(f, code, [&](std::int32_t tree, std::int32_t low, std::int32_t high) {
            if (!(gain_[tree] > 0.0)) return;
            if (code < low) above_.push_back({low, gain_[tree]});
            else below_.push_back({high, gain_[tree]});
        });
        std::sort(above_.begin(), above_.end(), [](const Pull& a, const Pull& b) { return a.code > b.code; });
        std::sort(below_.begin(), below_.end(), [](const Pull& a, const Pull& b) { return a.code < b.code; });
        for (const std::vector<Pull>* pulls : {&above_, &below_}) {
            double behind = 0.0;
            for (std::size_t i = 0; i < pulls->size(); ++i) {
                behind += (*pulls)[i].gain;
                if (i + 1 == pulls->size() || (*pulls)[i + 1].code != (*pulls)[i].code)
                    weigh({f, (*pulls)[i].code, pulls == &above_}, behind);
            }
        }
    }

    void weigh_sets(const Running& one, std::int32_t f) {
        const std::int32_t code = walker_.codes()[f];
        touched_.clear();
        one.for_wishes_elsewhere(f, code, [&](std::int32_t tree, std::int32_t low, std::int32_t) {
            const std::int32_t set = low - kSet;
            if (!(gain_[tree] > 0.0) || shared_.boxes.set_has(set, code)) return;
            if (pull_set_[set] == 0.0) touched_.push_back(set);
            pull_set_[set] += gain_[tree];
        });
        std::sort(touched_.begin(), touched_.end());
        for (const std::int32_t set : touched_) {
            weigh({f, 0, true, set}, pull_set_[set]);
            pull_set_[set] = 0.0;
        }
    }

    void weigh(const Cut& cut, double behind) {
        const double least_step = 1e-3 * (limit_ < kInfinity ? limit_ : 1.0);
        const double step = std::max(cost_of(cut) - cost_.cost, 0.0) + least_step;
        const double score = behind * std::sqrt(step);  // the cost of the step counts half as much as the score behind it
        if (score > best_score_) best_score_ = score, best_cut_ = cut;
    }

    // What the far side costs at least.
    double cost_of(const Cut& cut) const {
        if (cut.set == kNoSet) return cost_.with(cut.feature, cut.code);
        double least = kInfinity;
        for_cells(forest_, box_, cut.feature, [&](std::int32_t code) {
            if (is_far_cell(cut, code)) least = std::min(least, cost_.with(cut.feature, code));
        });
        return least;
    }

    // The test that the closest point misses by most.
    std::size_t hardest() const {
        if (n_plain_ == 1) return 0;
        std::size_t worst = 0;
        double most = -kInfinity;
        for (std::size_t i = 0; i < n_plain_; ++i) {
            double sum = 0.0;
            for (std::int32_t tree = 0; tree < forest_.n_trees(); ++tree)
                sum += running_[i].test().weight[walker_.leaves()[tree]];
            if (running_[i].need - sum > most) most = running_[i].need - sum, worst = i;
        }
        return worst;
    }

    // Any split at all: scores within rounding of each other leave no better guide.
    Cut any_cut() const {
        for (std::int32_t f = 0; f < forest_.n_features; ++f) {
            const std::int32_t code = walker_.codes()[f];
            if (code == kMissing) continue;
            if (forest_.has_sets[f]) {
                if (const Cut cut{f, code, true, kAllBut}; can_split(cut)) return cut;
                continue;
            }
            if (code < box_.high[f]) return {f, code + 1, true};
            if (code > box_.low[f]) return {f, code - 1, false};
        }
        return {};
    }

    static constexpr std::int64_t kRootBoxes = 5000;   // plain boxes before a box gets a priced bound
    static constexpr std::int64_t kBoxes = 1000;
    static constexpr std::int64_t kAllBoxes = std::numeric_limits<std::int64_t>::max() / 4;
    static constexpr std::size_t kLongestTrail = 10'000'000;
    static constexpr int kRootSweeps = 30, kSweeps = 6;
    static constexpr std::int64_t kPricedBoxes = 20;   // what a priced bound counts as

    struct RangeBefore { std::int32_t feature, low, high; };
    struct PointerBefore { std::int32_t test, tree, position; };
    struct Pull { std::int32_t code; double gain; };

    const Forest& forest_;
    const ExactShared& shared_;
    const Choices& choices_;
    BoxCost& cost_;
    const Limits& limits_;
    const Plan& plan_;
    Control& control_;
    Clock::time_point began_;
    Walker walker_;
    std::optional<Price> price_;
    const Rules* relations_ = nullptr;
    std::optional<RowRules> rules_;
    std::vector<double> candidate_;
    Box box_;
    std::vector<Running> running_;
    std::size_t n_plain_ = 0;
    std::vector<std::int32_t> changed_;
    std::int64_t nodes_ = 0, to_ = 0;
    std::vector<double> gain_, pull_set_;
    std::vector<Pull> above_, below_;
    std::vector<std::int32_t> touched_;
    Cut best_cut_;
    double best_score_ = -1.0;
    std::vector<RangeBefore> range_trail_;
    std::vector<std::uint64_t> word_trail_;    // the cells of those ranges that are sets
    std::vector<PointerBefore> pointer_trail_;
    std::vector<double> cost_trail_;
    std::vector<double> best_;
    double limit_ = kInfinity;
    double unresolved_ = kInfinity, root_bound_ = 0.0;
    bool is_out_ = false;
};

// One row: a short try at the whole question, then limits from below, each proven before the next.
class RowSearch {
public:
    RowSearch(const Forest& forest, const ExactShared& shared, const Choices& choices, BoxCost& cost, const Limits& limits,
              const Plan& plan, const Batch& batch, std::int64_t row, Control& control)
        : choices_(choices), cost_(cost), limits_(limits),
          search_(forest, shared, choices, cost, limits, plan, batch, row, control, Clock::now()),
          goals_(shared.goals.of(batch.origin[row], batch.target[row])) {}

    // `best` holds an answer at `distance`, or nothing at infinity; both are improved in place.
    Answer run(double* best, double distance) {
        best_ = best;
        upper_ = distance < kInfinity ? cost_.to_cost(distance) : kInfinity;
        distance_ = distance;
        search_.node_limit = limits_.nodes > 0 ? std::min(limits_.nodes, kFirstTry) : kFirstTry;
        bool is_done = try_below(upper_);
        search_.node_limit = limits_.nodes;
        double reach = upper_ < kInfinity ? kFirstLimit * cost_.to_distance(upper_) : smallest_step(choices_, cost_);
        for (int round = 0; !is_done && !is_spent(); ++round) {
            const bool is_known = upper_ < kInfinity;
            const double next = !is_known && round >= kDoublings ? kInfinity : cost_.to_cost(reach);
            const double limit = std::max(std::min(next, upper_), proven_);
            if (!try_below(limit)) break;
            is_done = upper_ <= limit;
            reach *= !is_known ? 2.0 : reach < kNear * cost_.to_distance(upper_) ? kFastGrowth : kGrowth;
        }
        return answer(is_done);
    }

private:
    // Searches every goal for answers cheaper than limit; true if all came to their end, then proven_ is up to date.
    bool try_below(double limit) {
        double proven = kInfinity;
        bool is_complete = true;
        for (const Goal& goal : goals_) {
            const bool is_end = search_.run(goal, std::min(limit, upper_), goal.to);
            if (search_.has_answer() && search_.limit() < upper_) {
                upper_ = search_.limit();
                distance_ = cost_.to_distance(upper_);
                std::copy(search_.best().begin(), search_.best().end(), best_);
            }
            proven = std::min(proven, search_.proven());
            is_complete = is_complete && is_end;
            if (search_.is_out() && goals_.size() > 1) return false;  // the other goals have no bound yet
        }
        proven_ = std::max(proven_, std::min(proven, upper_));
        return is_complete;
    }

    bool is_spent() const { return search_.is_out() && (limits_.nodes > 0 && search_.nodes() >= limits_.nodes); }

    Answer answer(bool is_done) const {
        Answer answer;
        answer.nodes = search_.nodes();
        answer.distance = distance_;
        if (is_done && upper_ == kInfinity) {
            answer.proof = Proof::infeasible;
            answer.lower_bound = kInfinity;
            return answer;
        }
        answer.lower_bound = std::min(cost_.to_distance(proven_), distance_);
        const bool is_optimal = is_done && proven_ >= upper_ * (1.0 - 1e-9) - cost_.noise;
        answer.proof = is_optimal ? Proof::optimal : upper_ < kInfinity ? Proof::bounded : Proof::nothing;
        if (is_optimal) answer.lower_bound = distance_;
        return answer;
    }

    static constexpr std::int64_t kFirstTry = 3000;   // boxes
    static constexpr double kFirstLimit = 0.1;        // of the known answer's distance
    static constexpr double kFastGrowth = 1.5;        // of limits up to kNear of that distance,
    static constexpr double kNear = 0.4;
    static constexpr double kGrowth = 1.15;           // and beyond
    static constexpr int kDoublings = 30;             // without an answer this far out, look everywhere

    const Choices& choices_;
    BoxCost& cost_;
    const Limits& limits_;
    Search search_;
    std::vector<Goal> goals_;
    double* best_ = nullptr;
    double upper_ = kInfinity, proven_ = 0.0, distance_ = kInfinity;
};

}  // namespace

void exact(const Forest& forest, const double* cell_low, const double* cell_high, const Norms* norms,
           const Distance* distance, const Limits& limits, const Batch& batch, double* best, double* distances,
           double* lower_bound, std::int8_t* proof, std::int64_t* nodes, int n_threads, Control& control) {
    const Plan plan(forest, limits, n_threads);
    if (!plan.can_search) return;
    const auto shared = ExactShared::of(forest, plan);
    const std::int32_t d = forest.n_features;
    parallel_for(batch.n, 1, n_threads, control, [&](std::int64_t row, std::int64_t) {
        Choices choices(forest, cell_low, cell_high);
        choices.load(batch, row);
        std::unique_ptr<BoxCost> cost;
        if (norms && batch.rules && !batch.rules->linear.empty()) cost = std::make_unique<LinearCost>(*norms);
        else if (norms) cost = std::make_unique<SeparableCost>(*norms);
        else cost = std::make_unique<CoupledCost>(*distance);
        cost->load(choices, batch, row);
        RowSearch search(forest, *shared, choices, *cost, limits, plan, batch, row, control);
        const Answer answer = search.run(best + row * d, distances[row]);
        distances[row] = answer.distance;
        lower_bound[row] = answer.lower_bound;
        proof[row] = static_cast<std::int8_t>(answer.proof);
        nodes[row] = answer.nodes;
    });
}

}  // namespace treefocus
