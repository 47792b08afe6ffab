// The closest point of a box under linear rules, for costs that are sums over features.
//
// With a price mu_j on every rule, each feature finds its best value alone, and for ANY prices
//     sum over f of min over its range of (cost_f(v) + (sum_j mu_j a_jf) (v - x_f))
//         + sum_j mu_j (a_j x - b_j)
// is a lower bound. One rule: raise its price until the features' own choices obey; the closest
// point is a mixture of the choices just before and just after, and as cheap as the bound. Several:
// their prices take turns, and the point is whatever then obeys all of them, a little dearer than
// the bound or not found at all; the search splits the box further. A fee for moving has a gap
// between the two: the box is then split into "stays" and "moves", where the fee is certain
// (round_cut). A maximum grows until its box has a point that obeys (widen). Other costs that are
// no sum over features keep the bound that they have without the rules.
#include <algorithm>
#include <cmath>

#include "treefocus/cost.hpp"

namespace treefocus {

constexpr double kFirstPrice = 1e-6;  // of a rule; doubled until the rule is obeyed
// A round that raises the bound by less, relatively, is the last.
constexpr double kProgress = 1e-13;

void LinearCost::load(const Choices& choices, const Batch& batch, std::int64_t row) {
    load_row(choices, batch, row);
    base_.load(choices, batch, row);
    delta_.assign(codes.size(), 0.0);
    dearness_.assign(codes.size(), 0.0);
    is_paid_.assign(codes.size(), 0);
    for (std::size_t f = 0; f < codes.size(); ++f)
        dearness_[f] =
            (norms_.l1[f] + norms_.l2[f] + norms_.linf[f] + norms_.l0[f]) / batch.scale[f];
    for (const Rules::Linear* rule : rules_)
        for (const std::int32_t f : rule->features) is_free_[f] = 1;
}

// A closest point that obeys anyway is the closest that obeys: then rules cost nothing.
bool LinearCost::settle(const Box& box) {
    if (!base_.settle(box)) return false;
    codes = base_.codes;
    cost = reached = base_.cost;
    base_.point(point_.data());
    relaxed_ = point_;
    show_prices({});
    if (std::all_of(rules_.begin(), rules_.end(),
                    [&](const auto* rule) { return rule->holds(point_.data()); }))
        return true;
    for (std::int32_t f = 0; f < static_cast<std::int32_t>(codes.size()); ++f)
        if (is_free_[f] && !set_ends(box, f)) return false;
    if (!std::all_of(rules_.begin(), rules_.end(),
                     [&](const auto* rule) { return is_possible(*rule); }))
        return false;
    n_steps_ += kFeature * static_cast<std::int64_t>(codes.size());
    fees_ = 0.0;
    for (std::size_t f = 0; f < codes.size(); ++f) {
        is_paid_[f] = !box.moves.empty() && box.moves[f];
        if (is_paid_[f] && base_.delta(static_cast<std::int32_t>(f)) == 0.0) fees_ += norms_.l0[f];
    }
    cost = reached = base_.cost + fees_;
    if (!solve()) return false;
    place();
    return true;
}

// Where the feature is known to move, the fee is paid wherever it goes.
double LinearCost::cost_at(std::int32_t f, double value) const {
    const double delta = std::abs(value - x_[f]) / batch_->scale[f];
    return is_paid_[f] && delta == 0.0 && !norms_.has_l2 ? norms_.l0[f] : norms_.step(f, delta);
}

// The best value of a feature when a unit of it costs `price` more.
// min over the range of cost_f(v) + price (v - x_f). A square has its minimum where the slopes
// cancel; a sum of |v - x| and a fee for moving is concave away from x in either direction, so that
// only home and the end that the price favours can be best.
double LinearCost::choice(std::int32_t f, double price) const {
    const double home = std::clamp(x_[f], low_[f], high_[f]), scale = batch_->scale[f];
    if (norms_.has_l2) {
        if (norms_.l2[f] <= 0.0) return price > 0.0 ? low_[f] : price < 0.0 ? high_[f] : home;
        return std::clamp(x_[f] - price * scale * scale / (2.0 * norms_.l2[f]), low_[f], high_[f]);
    }
    double best = home, least = cost_at(f, home) + price * (home - x_[f]);
    // Without an end it is taken only if every unit pays: the bound is then minus infinity, and the
    // price too high.
    const double far = price > 0.0 ? low_[f] : high_[f];
    if (std::isfinite(far) && cost_at(f, far) + price * (far - x_[f]) < least) best = far;
    else if (!std::isfinite(far) && std::abs(price) * scale > norms_.l1[f]) best = far;
    return best;
}

// The bound at the present prices, and the features' choices; minus infinity where one would go on
// for ever.
// The rounding of every term is taken off, so that the number is below the true bound.
double LinearCost::priced(std::vector<double>& values) const {
    // Of sums of a few terms.
    constexpr double kRounding = 16.0 * std::numeric_limits<double>::epsilon();
    std::vector<double> price(codes.size(), 0.0);
    n_steps_ += kTerm * static_cast<std::int64_t>(codes.size());
    double sum = 0.0, size = 0.0;
    for (std::size_t j = 0; j < rules_.size(); ++j) {
        double terms = std::abs(rules_[j]->bound);
        for (std::size_t i = 0; i < rules_[j]->features.size(); ++i) {
            const std::int32_t f = rules_[j]->features[i];
            price[f] += mu_[j] * rules_[j]->coefficient[i];
            terms += std::abs(rules_[j]->coefficient[i] * x_[f]);
        }
        sum += mu_[j] * own_excess_[j];
        // A sum may exceed its bound by its own rounding.
        size += mu_[j] * (std::abs(own_excess_[j]) + terms * 0.5);
    }
    bool is_finite = true;
    for (std::size_t f = 0; f < codes.size(); ++f) {
        if (!is_free_[f]) continue;
        values[f] = choice(static_cast<std::int32_t>(f), price[f]);
        is_finite = is_finite && std::isfinite(values[f]);
        const double own = cost_at(static_cast<std::int32_t>(f), values[f]),
                     paid = price[f] * (values[f] - x_[f]);
        sum += own + paid;
        size += own + std::abs(paid);
    }
    return is_finite ? sum - kRounding * size : -kInfinity;
}

// The closest point and a bound; false if no point obeys.
bool LinearCost::solve() {
    std::vector<double> together, prices;
    // One rule needs no linear program: is_possible has asked already whether it can be obeyed.
    const Verdict verdict =
        rules_.size() > 1 ? meet_rules(dearness_, together, prices) : Verdict::open;
    if (verdict == Verdict::impossible) {
        show_prices(prices);
        return false;
    }
    // No bound from prices: the features' terms do not add up. The point is mended, the bound is
    // the box's.
    if (!norms_.is_additive()) {
        if (norms_.has_linf && !norms_.has_l1l0 && !norms_.has_l2) widen();
        repair(dearness_, false);
        if (verdict == Verdict::solved && !obeys(point_)) take(together);
        return true;
    }
    double others = 0.0;  // what features outside the rules cost
    for (std::size_t f = 0; f < codes.size(); ++f)
        if (!is_free_[f]) {
            others += base_.term(static_cast<std::int32_t>(f));
            if (is_paid_[f] && base_.delta(static_cast<std::int32_t>(f)) == 0.0)
                others += norms_.l0[f];
        }
    mu_.assign(rules_.size(), 0.0);
    std::vector<double> before = point_, after = point_;
    double best = 0.0;
    // A bound that is better than all before is remembered with its prices.
    const auto keep = [&](double bound) {
        if (bound > best) best = bound, show_prices(mu_);
    };
    constexpr int kRounds = 100;
    // Without squares the program's prices are taken below, so that one round is enough; squares
    // take as many as their prices need.
    const int rounds =
        rules_.size() == 1 || (verdict == Verdict::solved && !norms_.has_l2) ? 1 : kRounds;
    for (int round = 0; round < rounds; ++round) {
        const double least = best * (1.0 + kProgress);
        for (std::size_t j = 0; j < rules_.size(); ++j) keep(others + raise(j, before, after));
        if (round > 0 && best <= least) break;
    }
    if (verdict == Verdict::solved && !norms_.has_l2) {
        // The program's prices are as good as any for a bound: priced() holds whatever they are.
        mu_ = prices;
        keep(others + priced(after));
    }
    cost = std::max(cost, best);
    if (verdict == Verdict::solved && !norms_.has_l2) {
        take(together);
        return true;
    }
    // A square has one minimum at every price: the choices at the last prices.
    if (norms_.has_l2 && rules_.size() > 1) {
        priced(after);
        take(after);
        if (verdict == Verdict::solved && !obeys(point_)) take(together);
        return true;
    }
    // At the price where the choices of the last rule change sides, `before` breaks it and `after`
    // obeys. Both are best at that price, and where costs are convex so is their mixture, the one
    // that meets the rule exactly.
    const double over = excess(*rules_.back(), before), under = excess(*rules_.back(), after);
    const double share =
        over > 0.0 && over > under && std::isfinite(under) ? -under / (over - under) : 0.0;
    for (std::size_t f = 0; f < codes.size(); ++f) {
        if (!is_free_[f]) continue;
        // Where the far end is infinite the mixture is nowhere: from the values before, the
        // cheapest goes as far as needed.
        const bool is_mixed = std::isfinite(after[f]) && std::isfinite(under);
        const double start =
            std::isfinite(before[f]) ? before[f] : std::clamp(x_[f], low_[f], high_[f]);
        point_[f] = !is_mixed               ? start
                    : after[f] == before[f] ? after[f]
                                            : after[f] + share * (before[f] - after[f]);
    }
    repair(dearness_, false);
    if (verdict == Verdict::solved && !obeys(point_)) take(together);
    return true;
}

// The price of one rule at which the features' own choices begin to obey it, the others' prices as
// they are: the best bound on the way, and the choices on both sides of that price.
// Choices jump from one end to another as the price passes what they cost, so that there may be no
// price at which the rule is met exactly: hence both sides.
double LinearCost::raise(std::size_t j, std::vector<double>& before, std::vector<double>& after) {
    mu_[j] = 0.0;
    double best = priced(before);
    after = before;
    if (excess(*rules_[j], before) <= 0.0) return best;
    double low = 0.0, high = kFirstPrice;
    for (int i = 0; i < 200; ++i, low = high, high *= 2.0) {
        mu_[j] = high;
        best = std::max(best, priced(after));
        if (excess(*rules_[j], after) <= 0.0) break;
        before = after;
    }
    std::vector<double> middle = after;
    for (int i = 0; i < 100 && low < high; ++i) {
        // Down to neighbouring floats: the mixture is only as cheap as the bound at the very price.
        mu_[j] = 0.5 * (low + high);
        if (mu_[j] == low || mu_[j] == high) break;
        best = std::max(best, priced(middle));
        if (excess(*rules_[j], middle) <= 0.0) high = mu_[j], after = middle;
        else low = mu_[j], before = middle;
    }
    mu_[j] = high;
    if (!std::isfinite(priced(middle)))
        mu_[j] = low;  // the other rules go on from a price at which the bound is a number
    return best;
}

// The largest of linf_f |v_f - x_f| / scale_f. Within a radius every feature has a range of its
// own, and a sum is least where each is at the end that suits it: a radius at which that least sum
// is above the bound, by more than its rounding, is below every point that obeys. The least sum
// falls as the radius grows, so the radius is found by bisection, from both sides; the point goes
// as far from the closest one towards those ends as the sum asks.
void LinearCost::widen() {
    constexpr int kSteps = 200;
    constexpr double kInward = 1.0 - 16.0 * std::numeric_limits<double>::epsilon();
    std::vector<double> ends = point_;
    double size = 0.0;
    const auto least = [&](std::size_t j, double radius) {
        const Rules::Linear& rule = *rules_[j];
        n_steps_ += kTerm * static_cast<std::int64_t>(rule.features.size());
        size = std::abs(rule.bound);
        for (std::size_t i = 0; i < rule.features.size(); ++i) {
            const std::int32_t f = rule.features[i];
            const double reach =
                norms_.linf[f] > 0.0 ? radius * (batch_->scale[f] / norms_.linf[f]) : kInfinity;
            ends[f] = std::clamp(rule.coefficient[i] > 0.0 ? x_[f] - reach : x_[f] + reach, low_[f],
                                 high_[f]);
            size += std::abs(rule.coefficient[i]) * (std::abs(x_[f]) + std::abs(ends[f]));
        }
        return excess(rule, ends);
    };
    const auto is_out = [&](std::size_t j, double radius) {
        const double sum = least(j, radius);
        return sum > 4.0 * Rules::Linear::slack(size);
    };
    for (std::size_t j = 0; j < rules_.size(); ++j) {
        double out = base_.cost, in = std::max(base_.cost, kTiny);
        for (int i = 0; i < kSteps && least(j, in) > 0.0; ++i)
            in = i == 0 ? std::max(in, 1e-9) : in * 2.0;
        if (!(least(j, in) <= 0.0)) continue;
        double high = in;
        for (int i = 0; i < kSteps; ++i) {
            const double middle = 0.5 * (out + high);
            if (middle == out || middle == high) break;
            (is_out(j, middle) ? out : high) = middle;
        }
        if (out > base_.cost) cost = std::max(cost, out * kInward);
        double low = out;
        for (int i = 0; i < kSteps; ++i) {
            const double middle = 0.5 * (low + in);
            if (middle == low || middle == in) break;
            (least(j, middle) > 0.0 ? low : in) = middle;
        }
        const double over = excess(*rules_[j], point_), under = least(j, in);
        if (!(over > 0.0) || !std::isfinite(under) || !(over > under)) continue;
        const double share = std::min(over / (over - under), 1.0);
        for (const std::int32_t f : rules_[j]->features)
            point_[f] = std::clamp(point_[f] + share * (ends[f] - point_[f]), low_[f], high_[f]);
    }
}

// A fee is what keeps the point from being as cheap as the bound: of the features that have moved
// and could stay, the one that moves farthest is split into "stays" and "moves".
std::optional<Cut> LinearCost::round_cut(const Box& box, bool anywhere) const {
    if (const auto cut = RoundedCost::round_cut(box, anywhere)) return cut;
    if (is_tight() || box.moves.empty()) return std::nullopt;
    std::optional<Cut> best;
    double most = 0.0;
    for (std::int32_t f = 0; f < static_cast<std::int32_t>(codes.size()); ++f) {
        if (!is_free_[f] || !(norms_.l0[f] > 0.0) || box.moves[f] || !choices_->can_stay(f, box))
            continue;
        const double moved = std::abs(point_[f] - x_[f]) / batch_->scale[f];
        if (!(moved > most)) continue;
        most = moved;
        best = Cut{f, codes[f], true, By::stay};
    }
    return best;
}

bool LinearCost::obeys(const std::vector<double>& values) const {
    return std::all_of(rules_.begin(), rules_.end(),
                       [&](const auto* rule) { return excess(*rule, values) <= 0.0; });
}

// What comes in may still break a rule: repair moves the cheapest values by what is missing.
void LinearCost::take(const std::vector<double>& values) {
    for (std::size_t f = 0; f < codes.size(); ++f)
        if (is_free_[f]) point_[f] = values[f];
    repair(dearness_, false);
}

// Values that the columns can hold, in the direction in which the rules stay obeyed, and what the
// point costs.
void LinearCost::place() {
    const std::int32_t d = static_cast<std::int32_t>(codes.size());
    relaxed_ = point_;
    bool is_rounded = false;
    for (std::int32_t f = 0; f < d; ++f)
        if (is_free_[f]) {
            round(f, pull_of(f));
            is_rounded = is_rounded || point_[f] != relaxed_[f];
        }
    if (is_rounded) repair(dearness_, true);
    for (const Rules::Linear* rule : rules_) nudge(*rule);
    for (std::int32_t f = 0; f < d; ++f) {
        if (is_free_[f]) codes[f] = choices_->forest.code(f, point_[f]);
        delta_[f] = codes[f] == kMissing ? 0.0
                    : is_free_[f]        ? std::abs(point_[f] - x_[f]) / batch_->scale[f]
                                         : base_.delta(f);
    }
    reached = std::max(cost, to_cost(norms_.total(delta_.data(), d)));
}

void LinearCost::save_all(std::vector<double>& stack) const {
    base_.save_all(stack);
    save_whole(stack, {&point_, &relaxed_, &shown_prices_});
}

void LinearCost::restore_all(std::vector<double>& stack) {
    restore_whole(stack, {&point_, &relaxed_, &shown_prices_});
    base_.restore_all(stack);
}

}  // namespace treefocus
