// The closest point of a box under linear rules, for costs that are sums over features.
//
// With a price mu_j on every rule, each feature finds its best value alone, and for ANY prices
//     sum over f of min over its range of (cost_f(v) + (sum_j mu_j a_jf) v) - sum_j mu_j b_j
// is a lower bound. One rule: raise its price until the features' own choices obey; the closest point is a mixture of the
// choices just before and just after, and as cheap as the bound. Several: their prices take turns, and the point is
// whatever then obeys all of them, a little dearer than the bound or not found at all; the search splits the box further.
#include <algorithm>
#include <cmath>

#include "treefocus/cost.hpp"

namespace treefocus {

void LinearCost::load(const Choices& choices, const Batch& batch, std::int64_t row) {
    const std::int32_t d = choices.forest.n_features;
    choices_ = &choices;
    batch_ = &batch;
    x_ = batch.rows + row * d;
    base_.load(choices, batch, row);
    codes.assign(d, 0);
    point_.assign(d, 0.0);
    delta_.assign(d, 0.0);
    rules_.clear();
    is_used_.assign(d, 0);
    for (const Rules::Linear& rule : batch.rules->linear) {
        const bool asks = std::all_of(rule.features.begin(), rule.features.end(), [&](std::int32_t f) { return choices.home[f] != kMissing; });
        if (!asks) continue;  // something is missing
        rules_.push_back(&rule);
        for (std::int32_t f : rule.features) is_used_[f] = 1;
    }
}

bool LinearCost::settle(const Box& box) {
    if (!base_.settle(box)) return false;
    codes = base_.codes;
    cost = reached = base_.cost;
    base_.point(point_.data());
    if (std::all_of(rules_.begin(), rules_.end(), [&](const auto* rule) { return rule->holds(point_.data()); })) return true;
    if (!set_ends(box)) return false;
    solve();
    place();
    return true;
}

// The values each feature may take; false if a rule fails at the best of them.
bool LinearCost::set_ends(const Box& box) {
    const std::int32_t d = static_cast<std::int32_t>(codes.size());
    low_.assign(d, 0.0);
    high_.assign(d, 0.0);
    for (std::int32_t f = 0; f < d; ++f) {
        if (!is_used_[f]) continue;
        const std::int32_t own = choices_->forest.code(f, x_[f]);
        auto [a, b] = ends_of(choices_->forest, choices_->cell_low[choices_->at(f, box.low[f])],
                              choices_->cell_high[choices_->at(f, box.high[f])], choices_->low[f], choices_->high[f],
                              batch_->grain_of(f));
        if (choices_->may_stay[f] && own >= box.low[f] && own <= box.high[f]) a = std::min(a, x_[f]), b = std::max(b, x_[f]);
        if (a > b) return false;
        low_[f] = a;
        high_[f] = b;
    }
    for (const Rules::Linear* rule : rules_) {
        double least = 0.0, size = std::abs(rule->bound);
        for (std::size_t i = 0; i < rule->features.size(); ++i) {
            const std::int32_t f = rule->features[i];
            const double term = rule->coefficient[i] * (rule->coefficient[i] > 0.0 ? low_[f] : high_[f]);
            least += term;
            size += std::abs(term);
        }
        if (least > rule->bound + 1e-9 * size) return false;
    }
    return true;
}

double LinearCost::cost_at(std::int32_t f, double value) const {
    return norms_.step(f, std::abs(value - x_[f]) / batch_->scale[f]);
}

// The best value of a feature when a unit of it costs `price` more.
double LinearCost::choice(std::int32_t f, double price) const {
    const double home = std::clamp(x_[f], low_[f], high_[f]), scale = batch_->scale[f];
    if (norms_.has_l2) {
        if (norms_.l2[f] <= 0.0) return price > 0.0 ? low_[f] : price < 0.0 ? high_[f] : home;
        return std::clamp(x_[f] - price * scale * scale / (2.0 * norms_.l2[f]), low_[f], high_[f]);
    }
    double best = home, least = cost_at(f, home) + price * home;
    const double far = price > 0.0 ? low_[f] : high_[f];
    if (std::isfinite(far) && cost_at(f, far) + price * far < least) best = far;
    else if (!std::isfinite(far) && std::abs(price) * scale > norms_.l1[f]) best = far;
    return best;
}

double LinearCost::priced(std::vector<double>& values) const {
    std::vector<double> price(codes.size(), 0.0);
    double sum = 0.0;
    for (std::size_t j = 0; j < rules_.size(); ++j) {
        for (std::size_t i = 0; i < rules_[j]->features.size(); ++i) price[rules_[j]->features[i]] += mu_[j] * rules_[j]->coefficient[i];
        sum -= mu_[j] * rules_[j]->bound;
    }
    for (std::size_t f = 0; f < codes.size(); ++f) {
        if (!is_used_[f]) continue;
        values[f] = choice(static_cast<std::int32_t>(f), price[f]);
        sum += cost_at(static_cast<std::int32_t>(f), values[f]) + price[f] * values[f];
    }
    return sum;
}

double LinearCost::excess(const Rules::Linear& rule, const std::vector<double>& values) const {
    double sum = -rule.bound;
    for (std::size_t i = 0; i < rule.features.size(); ++i) sum += rule.coefficient[i] * values[rule.features[i]];
    return sum;
}

void LinearCost::solve() {
    if (!norms_.is_additive()) return repair();
    double others = 0.0;  // what features outside the rules cost
    for (std::size_t f = 0; f < codes.size(); ++f)
        if (!is_used_[f] && codes[f] != kMissing) {
            const std::int32_t feature = static_cast<std::int32_t>(f);
            others += norms_.step(feature, choices_->delta[choices_->at(feature, codes[f])]);
        }
    mu_.assign(rules_.size(), 0.0);
    std::vector<double> before = point_, after = point_;
    double best = 0.0;
    const int rounds = rules_.size() == 1 ? 1 : 12;
    for (int round = 0; round < rounds; ++round)
        for (std::size_t j = 0; j < rules_.size(); ++j) {
            raise(j, before, after);
            const double bound = others + priced(after);
            if (std::isfinite(bound)) best = std::max(best, bound);
        }
    cost = std::max(base_.cost, best);
    const double over = excess(*rules_.back(), before), under = excess(*rules_.back(), after);
    const double share = over > 0.0 && over > under && std::isfinite(over) && std::isfinite(under) ? -under / (over - under) : 0.0;
    for (std::size_t f = 0; f < codes.size(); ++f)
        if (is_used_[f]) point_[f] = after[f] == before[f] ? after[f] : after[f] + share * (before[f] - after[f]);
    repair();
}

// The price of one rule at which the features' own choices begin to obey it, the others' prices as they are.
void LinearCost::raise(std::size_t j, std::vector<double>& before, std::vector<double>& after) {
    mu_[j] = 0.0;
    priced(before);
    after = before;
    if (excess(*rules_[j], before) <= 0.0) return;
    double low = 0.0, high = 1e-6;
    for (int i = 0; i < 200; ++i, low = high, high *= 2.0) {
        mu_[j] = high;
        priced(after);
        if (excess(*rules_[j], after) <= 0.0) break;
    }
    std::vector<double> middle = after;
    for (int i = 0; i < 100 && low < high; ++i) {
        mu_[j] = 0.5 * (low + high);
        if (mu_[j] == low || mu_[j] == high) break;
        priced(middle);
        if (excess(*rules_[j], middle) <= 0.0) high = mu_[j], after = middle;
        else low = mu_[j], before = middle;
    }
    mu_[j] = high;
    priced(after);
}

// Moves values, cheapest first, until every rule holds, as far as that goes.
void LinearCost::repair() {
    for (int round = 0; round < 20; ++round) {
        bool is_done = true;
        for (const Rules::Linear* rule : rules_) {
            double over = excess(*rule, point_);
            if (over <= 0.0) continue;
            is_done = false;
            std::vector<std::size_t> order(rule->features.size());
            for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
            const auto dearness = [&](std::size_t i) {
                const std::int32_t f = rule->features[i];
                const double weight = norms_.l1[f] + norms_.l2[f] + norms_.linf[f] + norms_.l0[f];
                return weight / (batch_->scale[f] * std::abs(rule->coefficient[i]));
            };
            std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return dearness(a) < dearness(b); });
            for (std::size_t i : order) {
                const std::int32_t f = rule->features[i];
                const double target = std::clamp(point_[f] - over / rule->coefficient[i], low_[f], high_[f]);
                over += rule->coefficient[i] * (target - point_[f]);
                point_[f] = target;
                if (over <= 0.0) break;
            }
        }
        if (is_done) break;
    }
}

// Values that the columns can hold, in the direction in which the rules stay obeyed, and what the point costs.
void LinearCost::place() {
    const std::int32_t d = static_cast<std::int32_t>(codes.size());
    for (std::int32_t f = 0; f < d; ++f) {
        if (is_used_[f]) {
            if (point_[f] != x_[f] && batch_->grain[f] != 0) {
                double pull = 0.0;
                for (const Rules::Linear* rule : rules_)
                    for (std::size_t i = 0; i < rule->features.size(); ++i)
                        if (rule->features[i] == f) pull += rule->coefficient[i];
                const Grain grain = batch_->grain_of(f);
                const double nudged = point_[f] + (pull > 0.0 ? 1e-12 : -1e-12) * std::abs(point_[f]);
                point_[f] = std::clamp(pull > 0.0 ? grain.down(nudged) : grain.up(nudged), low_[f], high_[f]);
            }
            codes[f] = choices_->forest.code(f, point_[f]);
        }
        delta_[f] = codes[f] == kMissing ? 0.0
                    : is_used_[f]        ? std::abs(point_[f] - x_[f]) / batch_->scale[f]
                                         : choices_->delta[choices_->at(f, codes[f])];
    }
    reached = std::max(cost, to_cost(norms_.total(delta_.data(), d)));
}

double LinearCost::with(std::int32_t f, std::int32_t code) const { return std::max(cost, base_.with(f, code)); }

void LinearCost::save(std::int32_t f, std::vector<double>& stack) const {
    base_.save(f, stack);
    save_whole(stack, {&point_});
}

void LinearCost::restore(std::int32_t f, std::vector<double>& stack) {
    restore_whole(stack, {&point_});
    base_.restore(f, stack);
}

}  // namespace treefocus
