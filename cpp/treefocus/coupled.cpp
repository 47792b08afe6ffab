// The closest point of a box where features are coupled: Mahalanobis and cosine.
//
// Both are solved numerically, and a numerical answer proves nothing by itself. So each solver
// gives a point, to try on the model, and separately a number below which no point of the box lies,
// made from the slope at the point: the function is convex (or the cosine bounded by its own
// inequality), so that a linearisation, minimised over the box, is a bound wherever the solver
// stopped. Mahalanobis works with u = y - start and Q, the inverse of the covariance; the cost is
// u' Q u, the squared distance.
#include <algorithm>
#include <cmath>

#include "treefocus/cost.hpp"

namespace treefocus {

namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kFirstPrice = 1e-6;    // of a rule, in the distance's units; doubled until obeyed
constexpr double kAimed = 1e-15;        // a ray through the box is aimed this well, relatively, and
constexpr double kFarthestAim = 1e9;    // looked for from this far to this close
constexpr double kFlat = 1e-14;         // slopes of a cosine below this are rounding
constexpr double kCosineSlack = 1e-12;  // and so is an excess below this
constexpr double kCosineNoise = 1e-11;  // absolute rounding error of a cosine distance
// The same of a squared Mahalanobis distance near zero; beyond, see minimise().
constexpr double kQuadraticNoise = 1e-19;
// For the rounding of the inverse, whose condition is at most 1e8.
constexpr double kReach = 1.0 + 1e-6;
// Of sums that cancel: twice their rounding, and twice that for the inverse's own.
constexpr double kCancelled = 4.0;
// The program's value and bound this close to each other, relatively.
constexpr double kConverged = 1e-12;
constexpr int kRounds = 40;  // of the quadratic program; it takes two or three

// The inverse of a symmetric positive definite matrix, by Cholesky.
std::vector<double> inverse_of(const double* matrix, std::int32_t d) {
    std::vector<double> lower(static_cast<std::size_t>(d) * d, 0.0), inverse(lower.size(), 0.0),
        v(d);
    for (std::int32_t i = 0; i < d; ++i)
        for (std::int32_t j = 0; j <= i; ++j) {
            double sum = matrix[i * d + j];
            for (std::int32_t k = 0; k < j; ++k) sum -= lower[i * d + k] * lower[j * d + k];
            lower[i * d + j] = i == j ? std::sqrt(std::max(sum, kTiny)) : sum / lower[j * d + j];
        }
    // L v = e_column, then L' (column of the inverse) = v.
    for (std::int32_t column = 0; column < d; ++column) {
        for (std::int32_t i = 0; i < d; ++i) {
            double sum = i == column ? 1.0 : 0.0;
            for (std::int32_t k = column; k < i; ++k) sum -= lower[i * d + k] * v[k];
            v[i] = i < column ? 0.0 : sum / lower[i * d + i];
        }
        for (std::int32_t i = d; i-- > 0;) {
            double sum = v[i];
            for (std::int32_t k = i + 1; k < d; ++k)
                sum -= lower[k * d + i] * inverse[k * d + column];
            inverse[i * d + column] = sum / lower[i * d + i];
        }
    }
    return inverse;
}

}  // namespace

void CoupledCost::load(const Choices& choices, const Batch& batch, std::int64_t row) {
    const std::int32_t d = choices.forest.n_features;
    load_row(choices, batch, row);
    start_.resize(d);
    for (std::int32_t f = 0; f < d; ++f)
        start_[f] = choices.forest.has_sets[f] || std::isnan(x_[f]) ? NAN
                    : is_cosine() ? (x_[f] - batch.offset[f]) / batch.scale[f]
                                  : 0.0;
    y_ = start_;
    noise = is_cosine() ? kCosineNoise : kQuadraticNoise;
    for (auto* v :
         {&y_low_, &y_high_, &measured_, &tangent_, &slope_, &price_, &price_size_, &dearness_})
        v->assign(d, 0.0);
    // Its diagonal says how far a feature can go for a given cost: u' Q u >= u_f^2 / covariance_ff.
    if (!is_cosine() && covariance_.empty()) covariance_ = inverse_of(distance_.inverse, d);
    limit_ = kInfinity;
    for (auto* v : {&at_u_, &at_slope_, &at_noise_, &at_term_}) v->assign(d, 0.0);
    linear_bound_.assign(1, -kInfinity);
    for (std::int32_t f = 0; f < d; ++f) {
        is_free_[f] = !is_still(f);
        // A guide for repair and for the linear program; no bound rests on it.
        dearness_[f] =
            (is_cosine() ? distance_.weight[f] : std::sqrt(distance_.inverse[f * d + f])) /
            batch.scale[f];
    }
    set_cells();
    steps_.assign(cell_low_.size(), 0.0);
    if (is_cosine())
        fan_.load(choices, batch, distance_.weight, start_, is_free_, cell_low_, cell_high_);
}

// The ends of every cell in the space of the distance, wider than what the columns hold in it, with
// the row's own value.
void CoupledCost::set_cells() {
    cell_low_.assign(choices_->forest.n_cells(), 0.0);
    cell_high_ = cell_low_;
    for (std::int32_t f = 0; f < static_cast<std::int32_t>(start_.size()); ++f) {
        if (is_still(f)) continue;
        for (std::int32_t code = 0; code < choices_->forest.n_codes(f); ++code) {
            const std::int32_t i = choices_->at(f, code);
            double low = std::max(choices_->cell_low[i], choices_->low[f]),
                   high = std::min(choices_->cell_high[i], choices_->high[f]);
            if (code == choices_->own[f]) low = std::min(low, x_[f]), high = std::max(high, x_[f]);
            cell_low_[i] = start_[f] + (low - x_[f]) / batch_->scale[f];
            cell_high_[i] = start_[f] + (high - x_[f]) / batch_->scale[f];
        }
    }
}

void CoupledCost::set_limit(double cost) {
    limit_ = cost;
    if (is_cosine()) fan_.set_limit(cost);
}

bool CoupledCost::look(const Box& box) {
    if (is_cosine()) n_steps_ += kFeature * static_cast<std::int64_t>(y_.size());
    return !is_cosine() || (set_box(box) && fan_.look(box, y_low_, y_high_));
}

std::optional<Cut> CoupledCost::slice_cut() const {
    if (!is_cosine()) return std::nullopt;
    const auto middle = fan_.cut();
    if (!middle) return std::nullopt;
    return Cut{0, 0, true, By::slice, -1, *middle};
}

std::optional<BoxCost::Minorant> CoupledCost::minorant() {
    if (!is_cosine() || !fan_.is_narrow()) return std::nullopt;
    fan_.fill(steps_);
    return Minorant{&steps_, fan_.below(), fan_.least_sum(), true};
}

// In the space of the distance the box is start + (end - x) / scale, from differences, so that a
// value that does not move is at start exactly.
bool CoupledCost::set_box(const Box& box) {
    for (std::int32_t f = 0; f < choices_->forest.n_features; ++f) {
        if (is_still(f)) continue;
        if (!set_ends(box, f)) return false;
        y_low_[f] = start_[f] + (low_[f] - x_[f]) / batch_->scale[f];
        y_high_[f] = start_[f] + (high_[f] - x_[f]) / batch_->scale[f];
    }
    return true;
}

bool CoupledCost::settle(const Box& box) {
    std::fill(tangent_.begin(), tangent_.end(), 0.0);
    show_prices({});
    n_steps_ += kFeature * static_cast<std::int64_t>(y_.size());
    if (!set_box(box) || (is_cosine() && !fan_.look(box, y_low_, y_high_))) return false;
    if (!std::all_of(rules_.begin(), rules_.end(),
                     [&](const auto* rule) { return is_possible(*rule); }))
        return false;
    // A point that obeys several rules at once, for when the prices' own point does not.
    together_.clear();
    if (rules_.size() > 1) {
        std::vector<double> prices;
        if (meet_rules(dearness_, together_, prices) == Verdict::impossible) {
            show_prices(prices);
            return false;
        }
    }
    if (is_cosine()) solve_cosine();
    else solve_quadratic();
    place();
    return true;
}

// min u' Q u over the box and under the rules. With a price mu_j on every rule it is min u' Q u + p
// u over the box, and what that gives is a bound for ANY prices; they are raised in turn until the
// point obeys.
void CoupledCost::solve_quadratic() {
    const std::int32_t d = static_cast<std::int32_t>(y_.size());
    u_.resize(d);
    for (std::int32_t f = 0; f < d; ++f)
        // From where the last box ended: the next one differs by a side, and two or three rounds
        // do.
        u_[f] = is_still(f) ? 0.0 : std::clamp(y_[f], y_low_[f], y_high_[f]) - start_[f];
    mu_.assign(rules_.size(), 0.0);
    set_prices();
    cost = 0.0;
    improve();
    constexpr int kTurns = 100;
    // A turn that raises the bound by less, relatively, is the last.
    constexpr double kProgress = 1e-13;
    for (int turn = 0; turn < kTurns; ++turn) {
        const double least = cost * (1.0 + kProgress);
        bool is_done = true;
        for (std::size_t j = 0; j < rules_.size(); ++j)
            if (mu_[j] > 0.0 || sum_of(j) > 0.0) {
                is_done = false;
                raise(j);
            }
        if (is_done || rules_.size() == 1 || (turn > 0 && cost <= least)) break;
    }
    for (std::int32_t f = 0; f < d; ++f)
        if (!is_still(f)) y_[f] = start_[f] + u_[f];
}

void CoupledCost::improve() {
    const double bound = minimise();
    if (!(bound >= cost)) return;
    cost = bound;
    tangent_ = u_;
    show_prices(mu_);
}

// How far the point is above the bound of a rule.
double CoupledCost::sum_of(std::size_t j) const {
    double sum = own_excess_[j];
    for (std::size_t i = 0; i < rules_[j]->features.size(); ++i) {
        const std::int32_t f = rules_[j]->features[i];
        sum += rules_[j]->coefficient[i] * u_[f] * batch_->scale[f];
    }
    return sum;
}

// Added up anew each time: prices rise without an end where the box holds a single point that
// obeys, and what was added to a sum in between would leave its rounding there.
void CoupledCost::set_prices() {
    std::fill(price_.begin(), price_.end(), 0.0);
    std::fill(price_size_.begin(), price_size_.end(), 0.0);
    for (std::size_t j = 0; j < rules_.size(); ++j)
        for (std::size_t i = 0; i < rules_[j]->features.size(); ++i) {
            const std::int32_t f = rules_[j]->features[i];
            const double part = mu_[j] * rules_[j]->coefficient[i] * batch_->scale[f];
            price_[f] += part;
            price_size_[f] += std::abs(part);
        }
}

// The price of one rule at which the point begins to obey it, the others' prices as they are;
// `cost` keeps the best bound.
void CoupledCost::raise(std::size_t j) {
    // Whatever the price is, minimise gives a bound, so that none on the way is wasted.
    const auto set = [&](double mu) {
        mu_[j] = mu;
        set_prices();
        improve();
        return sum_of(j);
    };
    // The excess of the rule falls as its price rises: doubled until it is gone, then bisected.
    double largest = 0.0;  // what a price of 1 adds to a feature's slope, at most
    for (std::size_t i = 0; i < rules_[j]->features.size(); ++i)
        largest = std::max(
            largest, std::abs(rules_[j]->coefficient[i]) * batch_->scale[rules_[j]->features[i]]);
    double low = 0.0, high = std::max(2.0 * mu_[j], kFirstPrice / std::max(largest, kTiny));
    if (set(0.0) <= 0.0) return;
    for (int i = 0; i < 200 && set(high) > 0.0; ++i) low = high, high *= 2.0;
    for (int i = 0; i < 60; ++i) {
        const double middle = 0.5 * (low + high);
        if (middle == low || middle == high) break;
        const double sum = set(middle);
        (sum > 0.0 ? low : high) = middle;
    }
    set(high);
}

// min u' Q u + p u over the box, u in place, by turns: coordinate descent finds which features sit
// on the box's sides, a Newton step solves for the others. For any u, its value + sum over f of min
// over the box of slope_f (v_f - u_f) is a lower bound of it, returned with what the prices add,
// less what rounding may have added.
// With c = -Q^-1 p / 2, v' Q v + p v = (v - c)' Q (v - c) - shift, shift = p' Q^-1 p / 4. A point
// no dearer than u thus lies within sqrt((value + shift) covariance_ff) of c_f in every feature, so
// that the linearisation has an end even where the box has none.
double CoupledCost::minimise() {
    const std::int32_t d = static_cast<std::int32_t>(y_.size());
    const double* q = distance_.inverse;
    // Of the prices; how much of the value lies below zero because of them.
    double constant = 0.0, constant_size = 0.0, shift = 0.0;
    // The minimum without a box, and the sizes of what it and the shift are added up from: large
    // prices cancel there, those of two rules each other, too, and what rounding leaves of them
    // must not make the reach too short, nor the bound too high.
    std::vector<double> centre(d, 0.0), centre_size(d, 0.0);
    double shift_size = 0.0;
    const std::int64_t pairs = kPair * d * d;
    if (!rules_.empty()) n_steps_ += pairs;
    for (std::size_t j = 0; j < rules_.size(); ++j) {
        constant += mu_[j] * own_excess_[j];
        constant_size += std::abs(mu_[j] * own_excess_[j]);
    }
    for (std::int32_t f = 0; f < d && !rules_.empty(); ++f) {
        for (std::int32_t g = 0; g < d; ++g) {
            const double part = 0.5 * covariance_[f * d + g] * price_[g];
            centre[f] -= part;
            centre_size[f] += 0.5 * std::abs(covariance_[f * d + g]) * price_size_[g];
        }
        shift -= 0.5 * price_[f] * centre[f];
        shift_size += 0.5 * price_size_[f] * centre_size[f];
    }
    const double rounding = (d + rules_.size() + 4) * kEpsilon;  // sums, and 4 factors a term
    double bound = 0.0;
    for (int round = 0; round < kRounds; ++round) {
        n_steps_ += pairs + kTerm * d;
        double value = 0.0, size = constant_size;
        for (std::int32_t f = 0; f < d; ++f) {
            double half = 0.0, sum = 0.0;
            for (std::int32_t g = 0; g < d; ++g)
                half += q[f * d + g] * u_[g], sum += std::abs(q[f * d + g] * u_[g]);
            value += u_[f] * (half + price_[f]);
            size += std::abs(u_[f]) * (sum + price_size_[f]);
            slope_[f] = half + 0.5 * price_[f];
            at_noise_[f] = (d + rules_.size() + 1) * kEpsilon * (sum + price_size_[f]);
        }
        const double value_size = size;
        bound = value;
        const double room =
            std::max(value + shift, 0.0) + kCancelled * rounding * (size + shift_size);
        for (std::int32_t f = 0; f < d; ++f) {
            if (is_still(f)) continue;
            // The best point costs at most `value`, so it lies this close in every feature,
            // wherever the box ends.
            const double reach = std::sqrt(room * covariance_[f * d + f]) * kReach +
                                 kCancelled * rounding * centre_size[f];
            const double term = least_term(f, centre[f] - reach, centre[f] + reach);
            bound += term;
            size += std::abs(term);
        }
        const bool is_solved =
            std::isfinite(bound) && value - bound <= kConverged * std::abs(value);
        // size adds up the absolute values of all terms: d rounding errors of it cover every sum
        // above.
        bound += constant - rounding * size;
        if (is_solved || round + 1 == kRounds) {
            const double wide = std::max(std::max(value, limit_ - constant) + shift, 0.0) +
                                kCancelled * rounding * (value_size + shift_size);
            for (double& one : centre_size) one *= kCancelled * rounding;
            keep_linear(value + constant, value_size, wide, centre, centre_size);
            break;
        }
        descend();
        newton();
    }
    return std::isfinite(bound) ? bound : 0.0;
}

// What feature f gives the linearisation at least, at the ends of the box or of where points can
// lie; the slope's own rounding counts against it.
double CoupledCost::least_term(std::int32_t f, double from, double to) const {
    double least = 0.0;
    for (const double side : {y_low_[f], y_high_[f]}) {
        const double step = std::clamp(side - start_[f], from, to) - u_[f];
        least = std::min(least, 2.0 * (slope_[f] * step - at_noise_[f] * std::abs(step)));
    }
    return least;
}

// For every point v of the box, with u and slope as they are now,
//     v' Q v + p v = value + sum over g of 2 slope_g (v_g - u_g) + (v - u)' Q (v - u)
//                 >= value + sum over g of 2 slope_g (v_g - u_g) + (v_f - u_f)^2 / covariance_ff
// for any one f. Each g takes its least: at the box's end, or as far as a point can lie that is
// cheaper than the limit. Less what rounding may have added, that of the slopes included.
// Such a point has (v - centre)' Q (v - centre) <= room, and `slack` is the centre's own rounding.
void CoupledCost::keep_linear(double value, double size, double room,
                              const std::vector<double>& centre, const std::vector<double>& slack) {
    const std::int32_t d = static_cast<std::int32_t>(y_.size());
    at_u_ = u_;
    at_slope_ = slope_;
    double sum = value;
    for (std::int32_t f = 0; f < d; ++f) {
        at_term_[f] = 0.0;
        if (is_still(f)) continue;
        const double reach = std::sqrt(room * covariance_[f * d + f]) * kReach + slack[f];
        at_term_[f] = least_term(f, centre[f] - reach, centre[f] + reach);
        sum += at_term_[f];
        size += std::abs(at_term_[f]);
    }
    linear_bound_[0] = sum - (d + 8) * kEpsilon * size;
}

double CoupledCost::linear_with(std::int32_t f, std::int32_t code) const {
    if (!std::isfinite(linear_bound_[0])) return 0.0;
    const std::int32_t i = choices_->at(f, code);
    const double inverse = 1.0 / (covariance_[f * codes.size() + f] * kReach);
    const double best = at_u_[f] - at_slope_[f] / inverse;
    // An empty cell has its ends crossed, and no point to speak of.
    const double v = std::max(std::min(best, cell_high_[i] - start_[f]), cell_low_[i] - start_[f]);
    const double step = v - at_u_[f], line = 2.0 * at_slope_[f] * step,
                 curve = step * step * inverse;
    const double size = std::abs(linear_bound_[0]) + std::abs(at_term_[f]) + std::abs(line) + curve;
    const double bound = (linear_bound_[0] - at_term_[f]) + line + curve -
                         2.0 * at_noise_[f] * std::abs(step) - 16.0 * kEpsilon * size;
    return std::min(bound, limit_);
}

// slope_ is half the gradient, Q u + p / 2, so that the minimum along f is at u_f - slope_f / Q_ff.
// slope_ is kept up to date on the way, a column of Q for each move.
void CoupledCost::descend() {
    const std::int32_t d = static_cast<std::int32_t>(y_.size());
    const double* q = distance_.inverse;
    for (int inner = 0; inner < 3; ++inner)
        for (std::int32_t f = 0; f < d; ++f) {
            if (is_still(f)) continue;
            const double want = u_[f] - slope_[f] / q[f * d + f];
            const double next = std::clamp(want, y_low_[f] - start_[f], y_high_[f] - start_[f]);
            const double move = next - u_[f];
            if (move == 0.0) continue;
            u_[f] = next;
            n_steps_ += d;
            for (std::int32_t g = 0; g < d; ++g) slope_[g] += q[g * d + f] * move;
        }
}

// The features off the box's sides go to where they would be alone, or as far in that direction as
// the box allows.
void CoupledCost::newton() {
    const std::int32_t d = static_cast<std::int32_t>(y_.size());
    const double* q = distance_.inverse;
    free_.clear();
    for (std::int32_t f = 0; f < d; ++f)
        if (!is_still(f) && u_[f] > y_low_[f] - start_[f] && u_[f] < y_high_[f] - start_[f])
            free_.push_back(f);
    const std::size_t n = free_.size();
    if (n == 0) return;
    n_steps_ += static_cast<std::int64_t>(n * n * n / 3 + n * n);
    lower_.assign(n * n, 0.0);
    step_.assign(n, 0.0);
    // Cholesky, with the right-hand side -slope carried along.
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j <= i; ++j) {
            double sum = q[free_[i] * d + free_[j]];
            for (std::size_t k = 0; k < j; ++k) sum -= lower_[i * n + k] * lower_[j * n + k];
            lower_[i * n + j] = i == j ? std::sqrt(std::max(sum, kTiny)) : sum / lower_[j * n + j];
        }
        double sum = -slope_[free_[i]];
        for (std::size_t k = 0; k < i; ++k) sum -= lower_[i * n + k] * step_[k];
        step_[i] = sum / lower_[i * n + i];
    }
    for (std::size_t i = n; i-- > 0;) {
        for (std::size_t k = i + 1; k < n; ++k) step_[i] -= lower_[k * n + i] * step_[k];
        step_[i] /= lower_[i * n + i];
    }
    // All free features go the same share of their step: that keeps the direction, and the value
    // falls.
    double share = 1.0;
    for (std::size_t i = 0; i < n; ++i) {
        const std::int32_t f = free_[i];
        const double room = (step_[i] > 0.0 ? y_high_[f] : y_low_[f]) - start_[f] - u_[f];
        if (step_[i] != 0.0 && std::abs(step_[i]) > std::abs(room))
            share = std::min(share, room / step_[i]);
    }
    for (std::size_t i = 0; i < n; ++i)
        u_[free_[i]] =
            std::clamp(u_[free_[i]] + share * step_[i], y_low_[free_[i]] - start_[free_[i]],
                       y_high_[free_[i]] - start_[free_[i]]);
}

// The point of the box with the largest cosine is clip(mu z, low, high) for the mu with
// mu <z, y> = <y, y>. With t its cosine and v its direction,
//     cos(y) <= t + max over the box of <z/|z| - t v, y> / |y|
// bounds all others, since <t v, y> / |y| is at most t: solved well or not, this is the bound.
void CoupledCost::solve_cosine() {
    const std::int32_t d = static_cast<std::int32_t>(y_.size());
    const double* w = distance_.weight;
    // |z|^2, the box's smallest |y|^2, its largest <z, y>.
    double zz = 0.0, least = 0.0, most = 0.0;
    for (std::int32_t f = 0; f < d; ++f) {
        if (is_still(f)) continue;
        zz += w[f] * start_[f] * start_[f];
        const double nearest = std::clamp(0.0, y_low_[f], y_high_[f]);
        least += w[f] * nearest * nearest;
        if (start_[f] != 0.0)
            most += w[f] * std::max(start_[f] * y_low_[f], start_[f] * y_high_[f]);
        y_[f] = nearest;
    }
    // No direction to follow, or no point of the box within a right angle of it: the distance is at
    // least 1, but that of the origin from itself, which counts as 0.
    if (zz == 0.0 || most <= 0.0) {
        cost = zz == 0.0 && least == 0.0 ? 0.0 : 1.0;
        return;
    }
    // 1, 0 or -1: whether mu is too small, right or too large at y = clip(mu z). Right can be a
    // whole interval, where the box holds a piece of the ray through z; the end of it that is
    // closer to z itself is taken.
    const auto aim = [&](double mu) {
        n_steps_ += kTerm * d;
        double yy = 0.0, zy = 0.0;
        for (std::int32_t f = 0; f < d; ++f) {
            if (is_still(f)) continue;
            y_[f] = std::clamp(mu * start_[f], y_low_[f], y_high_[f]);
            yy += w[f] * y_[f] * y_[f];
            zy += w[f] * start_[f] * y_[f];
        }
        const double off = yy - mu * zy;
        return std::abs(off) <= kAimed * yy ? 0 : off > 0.0 ? 1 : -1;
    };
    if (const int first = aim(1.0); first != 0) {
        // The answer lies between; near is on z's side of it.
        double near = 1.0, far = first > 0 ? 2.0 : 0.5;
        while (aim(far) == first && far < kFarthestAim && far > 1.0 / kFarthestAim)
            near = far, far *= first > 0 ? 2.0 : 0.5;
        for (int i = 0; i < 60; ++i) {
            const double middle = 0.5 * (near + far);
            (aim(middle) == first ? near : far) = middle;
        }
        aim(far);
    }
    double yy = 0.0, zy = 0.0;
    for (std::int32_t f = 0; f < d; ++f)
        if (!is_still(f)) yy += w[f] * y_[f] * y_[f], zy += w[f] * start_[f] * y_[f];
    if (yy == 0.0) {
        cost = 0.0;
        return;
    }
    for (std::int32_t f = 0; f < d; ++f)
        if (!is_still(f)) tangent_[f] = y_[f];
    const double t = zy / std::sqrt(zz * yy);
    double excess = 0.0;
    for (std::int32_t f = 0; f < d; ++f) {
        if (is_still(f)) continue;
        const double c = w[f] * (start_[f] / std::sqrt(zz) - t * y_[f] / std::sqrt(yy));
        if (std::abs(c) > kFlat) excess += std::max(c * y_low_[f], c * y_high_[f]);
    }
    // Divided by the least |y| in the box. Where that is 0, a true excess allows no bound at all.
    const double slack = excess <= 0.0           ? 0.0
                         : least > 0.0           ? excess / std::sqrt(least)
                         : excess > kCosineSlack ? kInfinity
                                                 : kCosineSlack;
    cost = std::max(0.0, 1.0 - std::min(1.0, t + slack));
    cost = std::max(cost, fan_.bound());
}

// First the point as it was solved, made to obey the rules; then on the grain, and mended once more
// with the columns that need none. `reached` is measured at the values that come out, so that it is
// what an answer there costs; `cost` stays the bound.
void CoupledCost::place() {
    const std::int32_t d = static_cast<std::int32_t>(y_.size());
    for (std::int32_t f = 0; f < d; ++f) {
        if (is_still(f)) {
            codes[f] = choices_->home[f];
            point_[f] = relaxed_[f] =
                codes[f] == kMissing ? NAN : choices_->value[choices_->at(f, codes[f])];
            continue;
        }
        const double value =
            y_[f] == start_[f] ? x_[f] : x_[f] + (y_[f] - start_[f]) * batch_->scale[f];
        point_[f] = relaxed_[f] = std::clamp(value, low_[f], high_[f]);
    }
    for (const bool is_rounded : {false, true}) {
        if (!rules_.empty()) repair(dearness_, is_rounded);
        const auto is_broken = [&](const auto* rule) { return excess(*rule, point_) > 0.0; };
        if (!is_rounded && !together_.empty() &&
            std::any_of(rules_.begin(), rules_.end(), is_broken))
            point_ = together_;
        for (std::int32_t f = 0; f < d && !is_rounded; ++f)
            if (!is_still(f)) relaxed_[f] = point_[f], round(f, pull_of(f));
    }
    for (const Rules::Linear* rule : rules_) nudge(*rule);
    for (std::int32_t f = 0; f < d; ++f) {
        if (!is_still(f)) codes[f] = choices_->forest.code(f, point_[f]);
        measured_[f] = is_still(f) ? NAN : start_[f] + (point_[f] - x_[f]) / batch_->scale[f];
    }
    reached = std::max(cost, to_cost(distance_.value(start_.data(), measured_.data())));
}

// A feature alone says what it does within a slice (fan.hpp), or as far as its variance goes.
double CoupledCost::with(std::int32_t f, std::int32_t code) const {
    if (is_still(f)) return cost;
    if (is_cosine()) return std::max(cost, fan_.with(f, code));
    const double delta = choices_->delta[choices_->at(f, code)];
    return std::max(
        {cost, delta * delta / (covariance_[f * codes.size() + f] * kReach), linear_with(f, code)});
}

// As if only this feature moved away from the closest point, at its length along the row.
double CoupledCost::guess(std::int32_t f, std::int32_t code) const {
    return is_cosine() && !is_still(f) ? std::max(cost, fan_.guess(f, code, y_[f], cost))
                                       : with(f, code);
}

void CoupledCost::save_all(std::vector<double>& stack) const {
    save_whole(stack, {&y_, &point_, &relaxed_, &at_u_, &at_slope_, &at_noise_, &at_term_,
                       &linear_bound_, &tangent_, &shown_prices_});
}

void CoupledCost::restore_all(std::vector<double>& stack) {
    restore_whole(stack, {&y_, &point_, &relaxed_, &at_u_, &at_slope_, &at_noise_, &at_term_,
                          &linear_bound_, &tangent_, &shown_prices_});
}

}  // namespace treefocus
