#include <algorithm>
#include <cmath>

#include "treefocus/cost.hpp"

namespace treefocus {

namespace {

// The diagonal of the inverse of a symmetric positive definite matrix, by Cholesky.
std::vector<double> inverse_diagonal(const double* matrix, std::int32_t d) {
    std::vector<double> lower(static_cast<std::size_t>(d) * d, 0.0), diagonal(d, 0.0);
    for (std::int32_t i = 0; i < d; ++i)
        for (std::int32_t j = 0; j <= i; ++j) {
            double sum = matrix[i * d + j];
            for (std::int32_t k = 0; k < j; ++k) sum -= lower[i * d + k] * lower[j * d + k];
            lower[i * d + j] = i == j ? std::sqrt(std::max(sum, 1e-300)) : sum / lower[j * d + j];
        }
    for (std::int32_t column = 0; column < d; ++column) {  // solve L v = e_column; the sum of v^2 is the entry
        std::vector<double> v(d, 0.0);
        for (std::int32_t i = column; i < d; ++i) {
            double sum = i == column ? 1.0 : 0.0;
            for (std::int32_t k = column; k < i; ++k) sum -= lower[i * d + k] * v[k];
            v[i] = sum / lower[i * d + i];
            diagonal[column] += v[i] * v[i];
        }
    }
    return diagonal;
}

}  // namespace

void CoupledCost::load(const Choices& choices, const Batch& batch, std::int64_t row) {
    const std::int32_t d = choices.forest.n_features;
    choices_ = &choices;
    batch_ = &batch;
    x_ = batch.rows + row * d;
    codes.assign(d, 0);
    start_.resize(d);
    for (std::int32_t f = 0; f < d; ++f) start_[f] = choices.forest.has_sets[f] ? NAN : (x_[f] - batch.offset[f]) / batch.scale[f];
    y_ = start_;
    noise = distance_.metric == Metric::cosine ? 1e-11 : 1e-19;  // in units of cost
    for (auto* v : {&y_low_, &y_high_, &value_low_, &value_high_, &point_, &measured_, &slope_}) v->assign(d, 0.0);
    if (distance_.metric != Metric::cosine && variance_.empty()) variance_ = inverse_diagonal(distance_.inverse, d);
}

bool CoupledCost::settle(const Box& box) {
    const Choices& choices = *choices_;
    for (std::int32_t f = 0; f < choices.forest.n_features; ++f) {
        if (is_still(f)) continue;
        const std::int32_t own = choices.forest.code(f, x_[f]);
        auto [a, b] = ends_of(choices.forest, choices.cell_low[choices.at(f, box.low[f])],
                              choices.cell_high[choices.at(f, box.high[f])], choices.low[f], choices.high[f], batch_->grain_of(f));
        if (own >= box.low[f] && own <= box.high[f] && choices.may_stay[f])
            a = std::min(a, x_[f]), b = std::max(b, x_[f]);
        if (a > b) return false;
        value_low_[f] = a;
        value_high_[f] = b;
        y_low_[f] = start_[f] + (a - x_[f]) / batch_->scale[f];
        y_high_[f] = start_[f] + (b - x_[f]) / batch_->scale[f];
    }
    if (distance_.metric == Metric::cosine) solve_cosine();
    else solve_quadratic();
    place();
    return true;
}

// min u' Q u over the box, by turns: coordinate descent finds which features sit on the box's sides, a Newton step solves
// for the others. For any u, u' Q u + sum over f of min over the box of 2 (Q u)_f (v_f - u_f) is a lower bound.
void CoupledCost::solve_quadratic() {
    const std::int32_t d = static_cast<std::int32_t>(y_.size());
    const double* q = distance_.inverse;
    u_.resize(d);
    for (std::int32_t f = 0; f < d; ++f)
        u_[f] = is_still(f) ? 0.0 : std::clamp(y_[f], y_low_[f], y_high_[f]) - start_[f];
    double bound = 0.0;
    for (int round = 0; round < 40; ++round) {
        double value = 0.0;
        for (std::int32_t f = 0; f < d; ++f) {
            slope_[f] = 0.0;
            for (std::int32_t g = 0; g < d; ++g) slope_[f] += q[f * d + g] * u_[g];
            value += u_[f] * slope_[f];
        }
        bound = value;
        for (std::int32_t f = 0; f < d; ++f) {
            if (is_still(f) || slope_[f] == 0.0) continue;
            // The best point costs at most `value`, so it lies this close in every feature, wherever the box ends.
            const double reach = std::sqrt(value * variance_[f]) * (1.0 + 1e-9);
            const double end = std::clamp((slope_[f] > 0.0 ? y_low_[f] : y_high_[f]) - start_[f], -reach, reach);
            bound += std::min(2.0 * slope_[f] * (end - u_[f]), 0.0);
        }
        if (std::isfinite(bound) && value - bound <= 1e-12 * value) break;
        for (int inner = 0; inner < 3; ++inner)
            for (std::int32_t f = 0; f < d; ++f) {
                if (is_still(f)) continue;
                const double want = u_[f] - slope_[f] / q[f * d + f];
                const double next = std::clamp(want, y_low_[f] - start_[f], y_high_[f] - start_[f]);
                const double move = next - u_[f];
                if (move == 0.0) continue;
                u_[f] = next;
                for (std::int32_t g = 0; g < d; ++g) slope_[g] += q[g * d + f] * move;
            }
        newton();
    }
    for (std::int32_t f = 0; f < d; ++f)
        if (!is_still(f)) y_[f] = start_[f] + u_[f];
    cost = std::isfinite(bound) ? std::max(bound, 0.0) : 0.0;
}

// The features off the box's sides go to where they would be alone, or as far in that direction as the box allows.
void CoupledCost::newton() {
    const std::int32_t d = static_cast<std::int32_t>(y_.size());
    const double* q = distance_.inverse;
    free_.clear();
    for (std::int32_t f = 0; f < d; ++f)
        if (!is_still(f) && u_[f] > y_low_[f] - start_[f] && u_[f] < y_high_[f] - start_[f]) free_.push_back(f);
    const std::size_t n = free_.size();
    if (n == 0) return;
    lower_.assign(n * n, 0.0);
    step_.assign(n, 0.0);
    for (std::size_t i = 0; i < n; ++i) {  // Cholesky, with the right-hand side -slope carried along
        for (std::size_t j = 0; j <= i; ++j) {
            double sum = q[free_[i] * d + free_[j]];
            for (std::size_t k = 0; k < j; ++k) sum -= lower_[i * n + k] * lower_[j * n + k];
            lower_[i * n + j] = i == j ? std::sqrt(std::max(sum, 1e-300)) : sum / lower_[j * n + j];
        }
        double sum = -slope_[free_[i]];
        for (std::size_t k = 0; k < i; ++k) sum -= lower_[i * n + k] * step_[k];
        step_[i] = sum / lower_[i * n + i];
    }
    for (std::size_t i = n; i-- > 0;) {
        for (std::size_t k = i + 1; k < n; ++k) step_[i] -= lower_[k * n + i] * step_[k];
        step_[i] /= lower_[i * n + i];
    }
    double share = 1.0;
    for (std::size_t i = 0; i < n; ++i) {
        const std::int32_t f = free_[i];
        const double room = (step_[i] > 0.0 ? y_high_[f] : y_low_[f]) - start_[f] - u_[f];
        if (step_[i] != 0.0 && std::abs(step_[i]) > std::abs(room)) share = std::min(share, room / step_[i]);
    }
    for (std::size_t i = 0; i < n; ++i)
        u_[free_[i]] = std::clamp(u_[free_[i]] + share * step_[i], y_low_[free_[i]] - start_[free_[i]], y_high_[free_[i]] - start_[free_[i]]);
}

// The point of the box with the largest cosine is clip(mu z, low, high) for the mu with mu <z, y> = <y, y>. With t its cosine
// and v its direction, cos(y) <= t + max over the box of <z/|z| - t v, y> / |y| bounds all others.
void CoupledCost::solve_cosine() {
    const std::int32_t d = static_cast<std::int32_t>(y_.size());
    const double* w = distance_.weight;
    double zz = 0.0, least = 0.0, most = 0.0;  // |z|^2, the box's smallest |y|^2, its largest <z, y>
    for (std::int32_t f = 0; f < d; ++f) {
        if (is_still(f)) continue;
        zz += w[f] * start_[f] * start_[f];
        const double nearest = std::clamp(0.0, y_low_[f], y_high_[f]);
        least += w[f] * nearest * nearest;
        if (start_[f] != 0.0) most += w[f] * std::max(start_[f] * y_low_[f], start_[f] * y_high_[f]);
        y_[f] = nearest;
    }
    if (zz == 0.0 || most <= 0.0) {
        cost = zz == 0.0 && least == 0.0 ? 0.0 : 1.0;
        return;
    }
    // 1, 0 or -1: whether mu is too small, right or too large at y = clip(mu z). Right can be a whole interval, where the
    // box holds a piece of the ray through z; the end of it that is closer to z itself is taken.
    const auto aim = [&](double mu) {
        double yy = 0.0, zy = 0.0;
        for (std::int32_t f = 0; f < d; ++f) {
            if (is_still(f)) continue;
            y_[f] = std::clamp(mu * start_[f], y_low_[f], y_high_[f]);
            yy += w[f] * y_[f] * y_[f];
            zy += w[f] * start_[f] * y_[f];
        }
        const double off = yy - mu * zy;
        return std::abs(off) <= 1e-15 * yy ? 0 : off > 0.0 ? 1 : -1;
    };
    if (const int first = aim(1.0); first != 0) {
        double near = 1.0, far = first > 0 ? 2.0 : 0.5;  // the answer lies between; near is on z's side of it
        while (aim(far) == first && far < 1e9 && far > 1e-9) near = far, far *= first > 0 ? 2.0 : 0.5;
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
    const double t = zy / std::sqrt(zz * yy);
    double excess = 0.0;
    for (std::int32_t f = 0; f < d; ++f) {
        if (is_still(f)) continue;
        const double c = w[f] * (start_[f] / std::sqrt(zz) - t * y_[f] / std::sqrt(yy));
        if (std::abs(c) > 1e-14) excess += std::max(c * y_low_[f], c * y_high_[f]);
    }
    const double slack = excess <= 0.0 ? 0.0 : least > 0.0 ? excess / std::sqrt(least) : excess > 1e-12 ? kInfinity : 1e-12;
    cost = std::max(0.0, 1.0 - std::min(1.0, t + slack));
}

void CoupledCost::place() {
    const std::int32_t d = static_cast<std::int32_t>(y_.size());
    for (std::int32_t f = 0; f < d; ++f) {
        if (is_still(f)) {
            measured_[f] = NAN;
            codes[f] = choices_->home[f];
            point_[f] = codes[f] == kMissing ? NAN : choices_->value[choices_->at(f, codes[f])];
            continue;
        }
        double value = y_[f] == start_[f] ? x_[f] : x_[f] + (y_[f] - start_[f]) * batch_->scale[f];
        value = std::clamp(value, value_low_[f], value_high_[f]);
        if (value != x_[f] || !choices_->may_stay[f]) value = std::clamp(snap(value, batch_->grain_of(f)), value_low_[f], value_high_[f]);
        point_[f] = value;
        measured_[f] = start_[f] + (value - x_[f]) / batch_->scale[f];
        codes[f] = choices_->forest.code(f, value);
    }
    reached = std::max(cost, to_cost(distance_.value(start_.data(), measured_.data())));
}

double CoupledCost::with(std::int32_t f, std::int32_t code) const {
    if (distance_.metric == Metric::cosine) return cost;
    const double delta = choices_->delta[choices_->at(f, code)];
    return std::max(cost, delta * delta / variance_[f]);
}

void CoupledCost::save(std::int32_t, std::vector<double>& stack) const { save_whole(stack, {&y_, &point_}); }

void CoupledCost::restore(std::int32_t, std::vector<double>& stack) { restore_whole(stack, {&y_, &point_}); }

}  // namespace treefocus
