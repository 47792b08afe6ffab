// Polish: from an answer to one that no move of one feature, and no trade between two, improves.
//
// Points are codes here: a feature in a cell takes the cell's cheapest allowed value, so every
// candidate is a step over thresholds, and the walker re-evaluates only the trees that a threshold
// turns. Three moves, until none helps:
//   project  x onto the box of leaves the point sits in: nothing changes for the model, every
//            feature comes home a bit;
//   single   bring one feature as close to home as the answer survives;
//   trade    bring one feature closer and send another away, where the sum is cheaper and the
//            answer survives. Two features with thresholds are a plane (plane.hpp); a feature with
//            sets goes through its cells.
//
// The cost falls at every step and there are finitely many cells, so this ends. What it ends at is
// a local optimum: moves of three features at once are the exact search's.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "treefocus/exact.hpp"
#include "treefocus/plane.hpp"
#include "treefocus/rules.hpp"
#include "treefocus/work.hpp"

namespace treefocus {

namespace {

class Polisher {
public:
    Polisher(const Forest& forest, const ExactShared& shared, const Norms& norms, Choices& choices,
             const Rules* rules, const Limits& limits, Control& control)
        : forest_(forest),
          shared_(shared),
          boxes_(shared.boxes),
          norms_(norms),
          choices_(choices),
          work_(limits, control, 0, 0),
          walker_(forest),
          plane_(forest, shared.boxes),
          delta_(forest.n_features) {
        if (rules) rules_.emplace(*rules, choices.x);
    }

    // Improves the point in place; false if it is no answer once every feature is at its cell's
    // cheapest value.
    bool run(std::int32_t origin, std::int32_t target, bool with_trades, double* point) {
        origin_ = origin;
        target_ = target;
        // Tests for the planes; whether a point is an answer is the walker's to say.
        goals_ = shared_.goals.of(origin, target);
        for (std::int32_t f = 0; f < forest_.n_features; ++f) {
            const std::int32_t code = forest_.code(f, point[f]);
            codes_.resize(forest_.n_features);
            codes_[f] = choices_.home[f] == kMissing ? kMissing : code;
            // A start outside what is allowed is given back as it came.
            if (codes_[f] != kMissing &&
                !(choices_.all.has(forest_, f, code) && choices_.is_allowed(f, code)))
                return false;
        }
        walker_.place_codes(codes_.data());
        for (std::int32_t f = 0; f < forest_.n_features; ++f) note(f);
        if (!is_answer()) return false;
        cost_ = norms_.total(delta_.data(), forest_.n_features);
        do {
            project();
            while (single()) project();
        } while (with_trades && !work_.is_late() && trade());
        write(point);
        return true;
    }

    std::int64_t steps() const { return work_.steps; }

private:
    std::int32_t code_of(std::int32_t f) const { return walker_.codes()[f]; }
    void note(std::int32_t f) {
        delta_[f] = code_of(f) == kMissing ? 0.0 : choices_.delta[choices_.at(f, code_of(f))];
    }

    void go(std::int32_t f, std::int32_t code) {
        walker_.move_code(f, code);
        note(f);
    }

    bool is_answer() {
        const std::int32_t now = walker_.predicted();
        if (target_ >= 0 ? now != target_ : now == origin_ || now == forest_.disagreed())
            return false;
        return is_obedient();
    }

    bool is_obedient() {
        if (!rules_) return true;
        values_.resize(forest_.n_features);
        write(values_.data());
        return rules_->hold(walker_.codes(), values_.data());
    }

    void write(double* point) const {
        for (std::int32_t f = 0; f < forest_.n_features; ++f)
            point[f] = code_of(f) == kMissing ? NAN : choices_.value[choices_.at(f, code_of(f))];
    }

    double cost() const { return norms_.total(delta_.data(), forest_.n_features); }
    // By more than rounding, or two points could trade places for ever.
    bool is_cheaper(double than) const { return cost() < than * (1.0 - kCheaper); }

    // Every cell of that box has the same leaves, hence the same answer; the closest one is
    // cheapest.
    void project() {
        const std::vector<std::int32_t> before(walker_.codes(),
                                               walker_.codes() + forest_.n_features);
        box_ = choices_.all;
        for (std::int32_t tree = 0; tree < forest_.n_trees(); ++tree) {
            const std::int32_t leaf = walker_.leaves()[tree];
            for (std::int32_t i = boxes_.start[leaf]; i < boxes_.start[leaf + 1]; ++i) {
                const Side& side = boxes_.side[i];
                if (code_of(side.feature) == kMissing) continue;
                if (side.is_set()) {
                    for (std::int32_t w = 0; w < forest_.n_words; ++w)
                        box_.cells[forest_.word_start[side.feature] + w] &=
                            boxes_.words(side.set())[w];
                    continue;
                }
                // Leaves of all trees meet: what is left has the point in it.
                box_.low[side.feature] = std::max(box_.low[side.feature], side.low);
                box_.high[side.feature] = std::min(box_.high[side.feature], side.high);
            }
        }
        for (std::int32_t f = 0; f < forest_.n_features; ++f)
            // Below 0 are features that are missing, or that have no allowed cell there: these
            // stay.
            if (const std::int32_t code = choices_.closest(f, box_); code >= 0) go(f, code);
        if (!is_obedient())  // the model is as content as before, the rules are not
            for (std::int32_t f = 0; f < forest_.n_features; ++f) go(f, before[f]);
        cost_ = cost();
    }

    // The features that moved, the dearest first.
    std::vector<std::int32_t> moved() const {
        std::vector<std::int32_t> features;
        for (std::int32_t f = 0; f < forest_.n_features; ++f)
            if (has_moved(f)) features.push_back(f);
        std::stable_sort(features.begin(), features.end(),
                         [&](std::int32_t a, std::int32_t b) { return delta_[a] > delta_[b]; });
        return features;
    }

    // The next allowed cell from `code` in direction `step`, within the allowed range; kNone at its
    // end.
    std::int32_t beside(std::int32_t f, std::int32_t code, std::int32_t step) const {
        for (code += step; code >= choices_.all.low[f] && code <= choices_.all.high[f];
             code += step)
            if (choices_.is_allowed(f, code)) return code;
        return kNone;
    }

    // The allowed cells closer to home than where the feature is, on both sides of it, the closest
    // first.
    // Two fingers walk out from home, and the nearer one is taken each time, until both are as far
    // as the feature is now.
    std::vector<std::int32_t> closer(std::int32_t f) const {
        std::vector<std::int32_t> codes;
        const double here = delta_[f];
        if (forest_.has_sets[f]) {
            for (const std::int32_t code : others(f))
                if (choices_.delta[choices_.at(f, code)] < here) codes.push_back(code);
            return codes;
        }
        const auto delta = [&](std::int32_t code) {
            return code == kNone ? kInfinity : choices_.delta[choices_.at(f, code)];
        };
        std::int32_t up = choices_.home[f], down = beside(f, up, -1);
        while (std::min(delta(up), delta(down)) < here) {
            std::int32_t& next = delta(up) <= delta(down) ? up : down;
            codes.push_back(next);
            next = beside(f, next, &next == &up ? 1 : -1);
        }
        return codes;
    }

    // All cells of a feature with sets but the one it is in, the cheapest first.
    std::vector<std::int32_t> others(std::int32_t f) const {
        std::vector<std::int32_t> codes;
        for (std::int32_t i = choices_.at(f, 0); i < choices_.at(f, forest_.n_codes(f)); ++i)
            if (choices_.is_allowed(f, choices_.by_cost[i]) && choices_.by_cost[i] != code_of(f))
                codes.push_back(choices_.by_cost[i]);
        return codes;
    }

    // Every feature that moved is brought as close to home as the answer allows.
    bool single() {
        bool any = false;
        for (const std::int32_t f : moved())
            if (forest_.has_sets[f] ? single_set(f) : single_line(f)) any = true;
        return any;
    }

    // All cells of a feature at once: a plane that is a line. It tells which cells may be answers,
    // with a tolerance; those are tried on the model from the cheapest on.
    bool single_line(std::int32_t f) {
        const std::int32_t from = code_of(f);
        const Reach near = reach(f);
        plane_.place_line(f, near.low, near.high, walker_.codes(), walker_.leaves());
        work_.steps += kPlaneCell * static_cast<std::int64_t>(plane_.n_cells()) +
                       kPlaneTree * forest_.n_trees();
        plane_.ask(goals_);
        candidates_.clear();
        for (std::int32_t run = 0; run < plane_.rows().n_runs(); ++run) {
            const std::int32_t code = plane_.may_be(run, 0) ? nearest(plane_.rows(), run) : kNone;
            if (code == kNone) continue;
            delta_[f] = choices_.delta[choices_.at(f, code)];
            candidates_.push_back({cost(), code, code});
        }
        note(f);
        std::sort(candidates_.begin(), candidates_.end(), [](const Pair& a, const Pair& b) {
            return a.cost != b.cost ? a.cost < b.cost : a.f_code < b.f_code;
        });
        for (const Pair& one : candidates_) {
            go(f, one.f_code);
            work_.steps += kTry;
            if (!is_cheaper(cost_)) break;
            if (is_answer()) return cost_ = cost(), true;
        }
        go(f, from);
        return false;
    }

    // Cell by cell: the first that is still an answer is the best one, for they come cheapest
    // first.
    bool single_set(std::int32_t f) {
        const std::int32_t from = code_of(f);
        bool is_better = false;
        for (const std::int32_t code : closer(f)) {
            go(f, code);
            work_.steps += kTry;
            is_better = is_answer() && is_cheaper(cost_);
            if (is_better) break;
        }
        if (is_better) cost_ = cost();
        else go(f, from);
        return is_better;
    }

    // Features that moved are tried in turn, the next time from where the last trade was found.
    bool trade() {
        const std::int32_t d = forest_.n_features;
        for (std::int32_t i = 0; i < d; ++i, first_ = (first_ + 1) % d) {
            if (!has_moved(first_)) continue;
            if (work_.is_late()) return false;
            for (std::int32_t g = 0; g < d; ++g)
                if (is_partner(first_, g) && trade(first_, g)) return true;
        }
        return false;
    }

    bool has_moved(std::int32_t f) const {
        return code_of(f) != kMissing && code_of(f) != choices_.home[f];
    }

    // Whether the two can trade; of two that moved, the later one is the partner.
    bool is_partner(std::int32_t f, std::int32_t g) const {
        return g != f && code_of(g) != kMissing && forest_.n_codes(g) > 1 &&
               !(has_moved(g) && g < f);
    }

    // Sets have no plane and go cell by cell. Of more than kLargestPlane pairs none is tried: one
    // by one they take longer than the search that follows.
    bool trade(std::int32_t f, std::int32_t g) {
        if (forest_.has_sets[f] || forest_.has_sets[g])
            return trade_cells(f, g) || (has_moved(g) && trade_cells(g, f));
        const Reach of_f = reach(f, g), of_g = reach(g, f);
        plane_.place(f, of_f.low, of_f.high, g, of_g.low, of_g.high, walker_.codes(),
                     walker_.leaves());
        work_.steps += kPlaneTree * forest_.n_trees();
        if (plane_.n_cells() > kLargestPlane) return false;
        work_.steps += kPlaneCell * static_cast<std::int64_t>(plane_.n_cells());
        return trade_plane(f, g);
    }

    // Every pair of cells at once.
    // The plane tells which pairs may be answers, with a tolerance; those are tried on the model
    // from the cheapest on, so that the first answer is the best trade of the two. In every row of
    // the plane columns are visited from g's home outwards, where costs rise, and each direction
    // ends at the first that is too dear.
    bool trade_plane(std::int32_t f, std::int32_t g) {
        plane_.ask(goals_);
        const std::int32_t from_f = code_of(f), from_g = code_of(g);
        candidates_.clear();
        for (std::int32_t row = 0; row < plane_.rows().n_runs(); ++row) {
            const std::int32_t code = nearest(plane_.rows(), row);
            if (code == kNone) continue;
            delta_[f] = choices_.delta[choices_.at(f, code)];
            const Axis& columns = plane_.columns();
            const std::int32_t home =
                columns
                    .run_of[std::clamp(choices_.home[g], columns.low, columns.high) - columns.low];
            for (std::int32_t column = home;
                 column < columns.n_runs() && offer(g, row, column, code); ++column) {}
            for (std::int32_t column = home - 1; column >= 0 && offer(g, row, column, code);
                 --column) {}
        }
        note(f), note(g);
        std::sort(candidates_.begin(), candidates_.end(),
                  [](const Pair& a, const Pair& b) { return a.cost < b.cost; });
        for (const Pair& pair : candidates_) {
            go(f, pair.f_code), go(g, pair.g_code);
            if (is_cheaper(cost_) && is_answer()) return cost_ = cost(), true;
        }
        go(f, from_f), go(g, from_g);
        return false;
    }

    // The codes that a feature could go to, and a pair of cells with what the point would cost
    // there.
    struct Reach {
        std::int32_t low, high;
    };
    struct Pair {
        double cost;
        std::int32_t f_code, g_code;
    };

    // Takes note of a promising pair; false once the pairs behind it are too dear.
    bool offer(std::int32_t g, std::int32_t row, std::int32_t column, std::int32_t f_code) {
        if (!plane_.may_be(row, column)) return true;
        const std::int32_t code = nearest(plane_.columns(), column);
        if (code == kNone) return true;
        delta_[g] = choices_.delta[choices_.at(g, code)];
        if (!is_cheaper(cost_)) return false;
        candidates_.push_back({cost(), f_code, code});
        return true;
    }

    // The cheapest cell of a run, or kNone if none is allowed.
    // The model sees no difference within a run, so that only the cheapest cell of it matters.
    std::int32_t nearest(const Axis& axis, std::int32_t run) const {
        const std::int32_t low = axis.first[run], high = axis.first[run + 1] - 1;
        const std::int32_t code = choices_.next[choices_.at(
            axis.feature, std::clamp(choices_.home[axis.feature], low, high))];
        return code >= low && code <= high ? code : kNone;
    }

    // The cells of f that may be cheaper than the point once g is at home.
    Reach reach(std::int32_t f, std::int32_t g) {
        delta_[g] = choices_.delta[choices_.at(g, choices_.home[g])];
        const Reach near = reach(f);
        note(g);
        return near;
    }

    // The cells of f that are cheaper than the point. Costs rise away from home.
    // Bisection: is_near is true up to some cell on either side and false beyond.
    Reach reach(std::int32_t f) {
        const auto is_near = [&](std::int32_t code) {
            delta_[f] = choices_.delta[choices_.at(f, code)];
            return is_cheaper(cost_);
        };
        Reach reach{choices_.home[f], choices_.home[f]};
        for (std::int32_t out = choices_.all.high[f] + 1; out - reach.high > 1;) {
            const std::int32_t middle = (reach.high + out) / 2;
            (is_near(middle) ? reach.high : out) = middle;
        }
        for (std::int32_t out = choices_.all.low[f] - 1; reach.low - out > 1;) {
            const std::int32_t middle = out + (reach.low - out) / 2;
            (is_near(middle) ? reach.low : out) = middle;
        }
        note(f);
        return reach;
    }

    // The same cell by cell, where one of the two has sets.
    bool trade_cells(std::int32_t f, std::int32_t g) {
        const std::int32_t from = code_of(f);
        for (const std::int32_t code : closer(f)) {
            go(f, code);
            if (forest_.has_sets[g] ? swap(g) : send(g, 1) || send(g, -1)) return true;
        }
        go(f, from);
        return false;
    }

    // The cheapest other cell of a feature with sets that makes an answer, if the whole stays
    // cheaper.
    bool swap(std::int32_t g) {
        const std::int32_t from = code_of(g);
        for (const std::int32_t code : others(g)) {
            go(g, code);
            if (!is_cheaper(cost_)) break;
            if (is_answer()) return cost_ = cost(), true;
        }
        go(g, from);
        return false;
    }

    // Sends a feature along as long as the whole can stay cheaper; true at the first answer.
    // On the way home a feature gets cheaper first, and dearer behind it: too dear is only the end
    // where the cost rises. Cells at which no tree turned need not be asked again.
    bool send(std::int32_t g, std::int32_t step) {
        const std::int32_t from = code_of(g);
        std::int64_t seen = walker_.n_turns();  // what the trees have answered already
        for (std::int32_t code = beside(g, from, step); code != kNone;
             code = beside(g, code, step)) {
            const double before = delta_[g];
            go(g, code);
            const bool is_cheap = is_cheaper(cost_);
            if (!is_cheap && delta_[g] > before) break;
            if (!is_cheap || walker_.n_turns() == seen) continue;
            if (is_answer()) return cost_ = cost(), true;
            seen = walker_.n_turns();
        }
        go(g, from);
        return false;
    }

    // A step has to gain this much, relatively: less may be rounding.
    static constexpr double kCheaper = 1e-12;
    static constexpr std::size_t kLargestPlane = 1 << 20;  // pairs of runs
    // Of work, about: a pair of a plane, a tree that is shrunk to one, a cell that is tried.
    static constexpr std::int64_t kPlaneCell = 4, kPlaneTree = 100, kTry = 300;

    const Forest& forest_;
    const ExactShared& shared_;
    const LeafBoxes& boxes_;
    const Norms& norms_;
    Choices& choices_;
    Work work_;
    Walker walker_;
    Plane plane_;
    std::vector<Goal> goals_;
    std::vector<Pair> candidates_;
    // Where the next round of trades begins: features that gained nothing last time come last.
    std::int32_t first_ = 0;
    std::optional<RowRules> rules_;
    std::vector<std::int32_t> codes_;
    std::vector<double> delta_, values_;
    Box box_;
    std::int32_t origin_ = 0, target_ = -1;
    double cost_ = 0.0;
};

}  // namespace

void polish(const Forest& forest, const double* cell_low, const double* cell_high,
            const Norms& norms, const Limits& limits, const Batch& batch, bool with_trades,
            double* points, std::int64_t* steps, int n_threads, Control& control) {
    const Plan plan(forest, Limits{kInfinity, 0, 0, limits.bytes}, n_threads);
    if (!plan.can_search) return;  // the leaves' boxes alone would not fit
    const auto shared = ExactShared::of(forest);
    const std::int32_t d = forest.n_features;
    parallel_for(batch.n, 1, plan.n_threads, control, [&](std::int64_t row, std::int64_t) {
        if (std::all_of(points + row * d, points + (row + 1) * d,
                        [](double v) { return std::isnan(v); }))
            return;
        Choices choices(forest, cell_low, cell_high);
        choices.load(batch, row);
        if (choices.is_empty) return;
        Polisher polisher(forest, *shared, norms, choices, batch.rules, limits, control);
        polisher.run(batch.origin[row], batch.target[row], with_trades, points + row * d);
        steps[row] += polisher.steps();
    });
}

}  // namespace treefocus
