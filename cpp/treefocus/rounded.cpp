// Points that are found as if columns could hold any number, brought to numbers they can hold.
//
// The bound of a box rests on the relaxed point, which may be any number; an answer has to be one
// that the columns hold. The gap between the two is closed by the search: it splits beside the
// rounded value (round_cut), inside a cell if need be, until relaxed and rounded point are the same
// or too dear.
//
// Linear rules are mended here as well. Sums are measured from the row's own excess, which is known
// in twice the precision: a change of a few units is not lost beside terms of millions.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "treefocus/cost.hpp"

namespace treefocus {

namespace {

// sum of a_i b_i - bound as if computed in twice the precision: rows of large numbers leave small
// differences.
// Compensated: fma gives the rounding error of each product, and the terms after it that of each
// sum.
double exact_sum(const std::vector<double>& a, const std::vector<std::int32_t>& at, const double* b,
                 double bound) {
    double sum = -bound, error = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double value = b[at[i]], term = a[i] * value, next = sum + term, part = next - sum;
        error += std::fma(a[i], value, -term) + ((sum - (next - part)) + (term - part));
        sum = next;
    }
    return sum + error;
}

}  // namespace

void RoundedCost::load_row(const Choices& choices, const Batch& batch, std::int64_t row) {
    const std::int32_t d = choices.forest.n_features;
    choices_ = &choices;
    batch_ = &batch;
    x_ = batch.rows + row * d;
    codes.assign(d, 0);
    for (auto* values : {&low_, &high_, &relaxed_, &point_}) values->assign(d, 0.0);
    is_free_.assign(d, 0);
    rules_.clear();
    own_excess_.clear();
    shown_prices_.assign(batch.rules ? batch.rules->linear.size() : 0, 0.0);
    if (!batch.rules) return;
    for (const Rules::Linear& rule : batch.rules->linear) {
        const bool asks = std::all_of(rule.features.begin(), rule.features.end(),
                                      [&](std::int32_t f) { return choices.home[f] != kMissing; });
        // A sum with a missing term asks nothing of this row.
        if (!asks) continue;  // something is missing
        rules_.push_back(&rule);
        own_excess_.push_back(exact_sum(rule.coefficient, rule.features, x_, rule.bound));
    }
}

// The numbers of the box, ends included; false if it has none, such as a range between two
// integers.
bool RoundedCost::set_ends(const Box& box, std::int32_t f) {
    const Ends hull = choices_->hull(f, box);
    low_[f] = hull.low;
    high_[f] = hull.high;
    return hull.low <= hull.high;
}

// a (v - x) + (a x - b) in place of a v - b.
double RoundedCost::excess(const Rules::Linear& rule, const std::vector<double>& values) const {
    const std::size_t number = std::find(rules_.begin(), rules_.end(), &rule) - rules_.begin();
    double sum = own_excess_[number];
    for (std::size_t i = 0; i < rule.features.size(); ++i)
        sum += rule.coefficient[i] * (values[rule.features[i]] - x_[rule.features[i]]);
    return sum;
}

// Every term at the end that suits the rule; the slack is doubled, so that what holds() lets pass
// is never called impossible.
bool RoundedCost::is_possible(const Rules::Linear& rule) const {
    double least = 0.0, size = std::abs(rule.bound);
    for (std::size_t i = 0; i < rule.features.size(); ++i) {
        const std::int32_t f = rule.features[i];
        const double term = rule.coefficient[i] * (rule.coefficient[i] > 0.0 ? low_[f] : high_[f]);
        least += term;
        size += std::abs(term);
    }
    return !(least > rule.bound + 2.0 * Rules::Linear::slack(size));
}

// Above zero, the rules want the feature smaller.
double RoundedCost::pull_of(std::int32_t f) const {
    double pull = 0.0;
    for (const Rules::Linear* rule : rules_)
        for (std::size_t i = 0; i < rule->features.size(); ++i)
            if (rule->features[i] == f) pull += rule->coefficient[i];
    return pull;
}

// To the next value in the direction that the rules pull away from, or to the nearest where none
// pulls.
void RoundedCost::round(std::int32_t f, double pull) {
    const Grain grain = batch_->grain_of(f);
    if (grain.kind == Kind::any || (relaxed_[f] == x_[f] && choices_->may_stay[f])) return;
    constexpr double kNudge = 1e-12;  // a value that is on the grain but for rounding stays there
    // A feature rounded against the pull would break the sum that the point just meets.
    const double value = relaxed_[f],
                 nudged = value + (pull > 0.0 ? kNudge : -kNudge) * std::abs(value);
    const double rounded = pull == 0.0  ? snap(value, grain)
                           : pull > 0.0 ? grain.down(nudged)
                                        : grain.up(nudged);
    point_[f] = std::clamp(rounded, low_[f], high_[f]);
    // The row's own value counts, wherever it is.
    const bool is_own_closer = pull == 0.0 && std::abs(value - x_[f]) < std::abs(value - point_[f]);
    if (is_own_closer && choices_->may_stay[f] && x_[f] >= low_[f] && x_[f] <= high_[f])
        point_[f] = x_[f];
}

// Moves values, cheapest first, until every rule holds, as far as that goes.
void RoundedCost::repair(const std::vector<double>& dearness, bool is_rounded) {
    constexpr int kRounds = 20;
    for (int round = 0; round < kRounds; ++round) {
        bool is_done = true;
        for (const Rules::Linear* rule : rules_) {
            double over = excess(*rule, point_);
            if (over <= 0.0) continue;
            is_done = false;
            std::vector<std::size_t> order(rule->features.size());
            std::iota(order.begin(), order.end(), 0);
            // What it costs to take one unit off the sum.
            const auto price = [&](std::size_t i) {
                return dearness[rule->features[i]] / std::abs(rule->coefficient[i]);
            };
            std::sort(order.begin(), order.end(),
                      [&](std::size_t a, std::size_t b) { return price(a) < price(b); });
            for (const std::size_t i : order) {
                const std::int32_t f = rule->features[i];
                // After rounding only columns of any number may move: the others would leave their
                // grain.
                if (is_rounded && batch_->kind_of(f) != Kind::any) continue;
                const double target =
                    std::clamp(point_[f] - over / rule->coefficient[i], low_[f], high_[f]);
                over += rule->coefficient[i] * (target - point_[f]);
                point_[f] = target;
                if (over <= 0.0) break;
            }
        }
        if (is_done) break;
    }
}

void RoundedCost::show_prices(const std::vector<double>& prices) {
    std::fill(shown_prices_.begin(), shown_prices_.end(), 0.0);
    for (std::size_t j = 0; j < prices.size(); ++j)
        shown_prices_[rules_[j] - batch_->rules->linear.data()] = prices[j];
}

// As a linear program in steps up and down from home, the closest point of the box in every
// feature, where each costs dearness a unit. Home need not obey; the right side is what each rule
// has to spare there.
Verdict RoundedCost::meet_rules(const std::vector<double>& dearness, std::vector<double>& values,
                                std::vector<double>& prices) const {
    const std::size_t d = codes.size(), k = rules_.size();
    // Two a feature: up and down from the value that is closest to the row's.
    std::vector<std::size_t> columns;
    for (std::size_t f = 0; f < d; ++f)
        if (is_free_[f]) columns.push_back(f);
    std::vector<double> home = x_values();
    for (const std::size_t f : columns) home[f] = std::clamp(x_[f], low_[f], high_[f]);
    Program program{k, 2 * columns.size(), {}, {}, {}, {}};
    program.matrix.assign(k * program.n_columns, 0.0);
    for (std::size_t j = 0; j < k; ++j) {
        program.right.push_back(-excess(*rules_[j], home));
        for (std::size_t i = 0; i < rules_[j]->features.size(); ++i) {
            const std::size_t place =
                std::find(columns.begin(), columns.end(), rules_[j]->features[i]) - columns.begin();
            const double unit = rules_[j]->coefficient[i] * batch_->scale[rules_[j]->features[i]];
            program.matrix[j * program.n_columns + 2 * place] = unit;
            program.matrix[j * program.n_columns + 2 * place + 1] = -unit;
        }
    }
    for (const std::size_t f : columns) {
        const double scale = batch_->scale[f];
        program.cost.insert(program.cost.end(), {dearness[f] * scale, dearness[f] * scale});
        program.upper.insert(program.upper.end(),
                             {(high_[f] - home[f]) / scale, (home[f] - low_[f]) / scale});
    }
    const Solution solution = solve(program);
    n_steps_ += kFeature * static_cast<std::int64_t>(d) + solution.steps;
    prices = solution.prices;
    if (solution.verdict == Verdict::impossible)
        // The program's word alone is not enough: its arithmetic is approximate.
        return is_impossible(prices) ? Verdict::impossible : Verdict::open;
    if (solution.verdict == Verdict::open) return Verdict::open;
    values = home;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const std::size_t f = columns[i];
        values[f] = std::clamp(
            home[f] + (solution.values[2 * i] - solution.values[2 * i + 1]) * batch_->scale[f],
            low_[f], high_[f]);
    }
    return Verdict::solved;
}

// Whether the weighted sum of the rules is broken by every point of the box, rounding included.
// Farkas: weights >= 0 add the rules up to one sum, whose least value over the box is taken feature
// by feature. If even that is above zero, by more than all rounding in it, no point obeys all of
// them.
bool RoundedCost::is_impossible(const std::vector<double>& weights) const {
    std::vector<double> slope(codes.size(), 0.0);
    double least = 0.0, size = 0.0;
    for (std::size_t j = 0; j < rules_.size(); ++j) {
        least += weights[j] * own_excess_[j];
        size += weights[j] * (std::abs(own_excess_[j]) + std::abs(rules_[j]->bound));
        for (std::size_t i = 0; i < rules_[j]->features.size(); ++i) {
            const std::int32_t f = rules_[j]->features[i];
            slope[f] += weights[j] * rules_[j]->coefficient[i];
            // An infinite end makes the least sum minus infinity, which proves nothing anyway.
            const double farthest =
                std::max({std::abs(x_[f]), std::abs(low_[f]), std::abs(high_[f])});
            size += weights[j] * std::abs(rules_[j]->coefficient[i]) *
                    (std::isfinite(farthest) ? farthest : std::abs(x_[f]));
        }
    }
    for (std::size_t f = 0; f < codes.size(); ++f)
        if (is_free_[f] && slope[f] != 0.0)
            least += slope[f] * ((slope[f] > 0.0 ? low_[f] : high_[f]) - x_[f]);
    return least > 4.0 * Rules::Linear::slack(size);
}

std::vector<double> RoundedCost::x_values() const {
    return {x_, x_ + codes.size()};
}

// Rounding can leave a sum a last bit above its bound, which a user's own check would see: one
// value is solved for again, and moved by a few of its last bits, if there is room and the other
// rules stay as they are.
void RoundedCost::nudge(const Rules::Linear& rule) {
    // More would be a move, not rounding.
    constexpr int kSteps = 4;
    const auto sum = [&](std::size_t without) {
        double total = 0.0;
        for (std::size_t i = 0; i < rule.features.size(); ++i)
            if (i != without) total += rule.coefficient[i] * point_[rule.features[i]];
        return total;
    };
    const auto n_held = [&] {
        return std::count_if(rules_.begin(), rules_.end(),
                             [&](const auto* one) { return one->holds(point_.data()); });
    };
    const std::size_t none = rule.features.size();
    for (std::size_t i = 0; i < none && sum(none) > rule.bound; ++i) {
        const std::int32_t f = rule.features[i];
        if (batch_->kind_of(f) != Kind::any || low_[f] == high_[f]) continue;
        const double before = point_[f];
        const auto held = n_held();
        point_[f] = std::clamp((rule.bound - sum(i)) / rule.coefficient[i], low_[f], high_[f]);
        for (int step = 0; step < kSteps && sum(none) > rule.bound; ++step)
            point_[f] = std::clamp(
                std::nextafter(point_[f], rule.coefficient[i] > 0.0 ? -kInfinity : kInfinity),
                low_[f], high_[f]);
        if (sum(none) > rule.bound || n_held() < held) point_[f] = before;
    }
}

// The search keeps the rounded point in the box; where the two are the same, the relaxed one is in
// it as well.
bool RoundedCost::has_lost(std::int32_t f, const Box& box) const {
    if (!is_free_[f] || relaxed_[f] == point_[f]) return false;
    const Ends hull = choices_->hull(f, box);
    return !(relaxed_[f] >= hull.low && relaxed_[f] <= hull.high);
}

// The far side begins at the next value that the column holds, on the side where the relaxed point
// lies, or at the row's own where that comes first. The feature with the largest gap is taken:
// there the bound has most to gain. Columns of any number are not split, they need no rounding;
// those of float32 are so fine that splitting would not end.
std::optional<Cut> RoundedCost::round_cut(const Box& box, bool anywhere) const {
    std::optional<Cut> best;
    double most = 0.0;
    for (std::int32_t f = 0; f < static_cast<std::int32_t>(codes.size()); ++f) {
        if (!is_free_[f] || batch_->grain_of(f).is_fine()) continue;
        const Ends hull = choices_->hull(f, box);
        if (!(hull.low < hull.high)) continue;
        const double gap = std::abs(relaxed_[f] - point_[f]) / batch_->scale[f];
        if (!(gap > most) && !(anywhere && !best)) continue;
        const bool is_up =
            relaxed_[f] > point_[f] || (relaxed_[f] == point_[f] && hull.high > point_[f]);
        double value = is_up ? choices_->after(f, point_[f]) : choices_->before(f, point_[f]);
        if (choices_->can_stay(f, box)) {
            if (is_up && x_[f] > point_[f]) value = std::min(value, x_[f]);
            if (!is_up && x_[f] < point_[f]) value = std::max(value, x_[f]);
        }
        if (is_up ? value > hull.high : value < hull.low) continue;
        best = Cut{f, codes[f], is_up, By::value, -1, value};
        most = gap;
    }
    return best;
}

}  // namespace treefocus
