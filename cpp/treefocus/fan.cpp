// How the inequalities of fan.hpp are kept in floating point: every end of t is moved outward and
// every sum lowered by more than its rounding can be, so that what is left is true of the numbers
// as they are.
#include "treefocus/fan.hpp"

#include <algorithm>
#include <cmath>

namespace treefocus {

namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
// Quotients and square roots of a few roundings each, relatively.
constexpr double kOutward = 64.0 * kEpsilon;
// A slice is narrow enough if its width spoils the bound by less than this part of what the limit
// leaves.
constexpr double kSpoilt = 0.25;
// Thinner slices, relatively, are left to the features: in a thin cone a split at a threshold
// narrows t as well, and where the model changes.
constexpr double kThinnest = 0.05;
// Of the row's length: closer to the origin no slice is cut, for there they would never end, and
// the cone is as thin as a cell.
constexpr double kClosest = 1e-3;
constexpr double kGrain = 1e-12;  // relatively, of values in the user's units
constexpr int kRounds = 2;        // of t and the features narrowing each other

}  // namespace

void Fan::load(const Choices& choices, const Batch& batch, const double* weight,
               const std::vector<double>& z, const std::vector<std::uint8_t>& takes_part,
               const std::vector<double>& cell_low, const std::vector<double>& cell_high) {
    choices_ = &choices;
    batch_ = &batch;
    z_ = z;
    cell_low_ = cell_low.data();
    cell_high_ = cell_high.data();
    d_ = static_cast<std::int32_t>(z.size());
    weight_.assign(weight, weight + d_);
    for (auto* values : {&e_, &cone_, &origin_, &term_, &least_t_, &most_t_})
        values->assign(d_, 0.0);
    features_.clear();
    double square = 0.0;
    for (std::int32_t f = 0; f < d_; ++f)
        // A feature without weight is in no sum.
        if (takes_part[f] && weight_[f] > 0.0)
            features_.push_back(f), square += weight_[f] * z[f] * z[f];
    norm_ = std::sqrt(square);
    grow_ = 0.0;
    is_open_ = false;
    if (!(norm_ > 0.0)) return;
    for (const std::int32_t f : features_) e_[f] = z[f] / norm_;
}

// G is rounded up: a wider cone holds all that the true one holds. In it |y - t e| <= rho t with
// rho^2 = G - 1, and of a vector at a right angle to e feature f has at most sqrt(1 - e_f^2).
void Fan::set_limit(double distance) {
    grow_ = 0.0;
    is_open_ = false;
    if (!(distance < 1.0) || !(distance > 0.0) || !(norm_ > 0.0)) return;
    const double kappa = (1.0 - distance) * (1.0 - kOutward);
    grow_ = 1.0 / (kappa * kappa) * (1.0 + kOutward);
    const double rho = std::sqrt(grow_ - 1.0);
    for (const std::int32_t f : features_) {
        const double root = std::sqrt(weight_[f]), part = std::min(std::abs(root * e_[f]), 1.0);
        const double across = std::sqrt(std::max((1.0 - part) * (1.0 + part), 0.0) + kOutward);
        cone_[f] = (rho * across / root + std::abs(e_[f]) * kOutward) * (1.0 + kOutward);
    }
}

double Fan::least(std::int32_t f, double low, double high) const {
    const double off = std::max({low - origin_[f], origin_[f] - high, 0.0});
    return weight_[f] * off * off;
}

// t of every point low_..high_ that lies in the cone and in the slice; false if there is none.
bool Fan::narrow_slice() {
    double size = 0.0;
    from_ = to_ = 0.0;
    for (const std::int32_t f : features_) {
        const double slope = weight_[f] * e_[f];
        least_t_[f] = most_t_[f] = 0.0;
        if (slope == 0.0) continue;
        least_t_[f] = slope * (slope > 0.0 ? low_[f] : high_[f]);
        most_t_[f] = slope * (slope > 0.0 ? high_[f] : low_[f]);
        from_ += least_t_[f];
        to_ += most_t_[f];
        size += std::max(std::isfinite(least_t_[f]) ? std::abs(least_t_[f]) : 0.0,
                         std::isfinite(most_t_[f]) ? std::abs(most_t_[f]) : 0.0);
    }
    from_ -= 2.0 * d_ * kEpsilon * size;
    to_ += 2.0 * d_ * kEpsilon * size;
    t1_ = std::max({t1_, from_, 0.0});
    t2_ = std::min(t2_, to_);
    for (const std::int32_t f : features_) {
        const double a = e_[f] - cone_[f], b = e_[f] + cone_[f];  // a t <= y <= b t
        if (low_[f] > 0.0) {
            if (!(b > 0.0)) return false;
            t1_ = std::max(t1_, low_[f] / b * (1.0 - kOutward));
        } else if (b < 0.0) {
            t2_ = std::min(t2_, low_[f] / b * (1.0 + kOutward));
        }
        if (high_[f] < 0.0) {
            if (!(a < 0.0)) return false;
            t1_ = std::max(t1_, high_[f] / a * (1.0 - kOutward));
        } else if (a > 0.0) {
            t2_ = std::min(t2_, high_[f] / a * (1.0 + kOutward));
        }
    }
    return t1_ <= t2_;
}

// What the cone leaves of every feature within the slice, on the column's grain; false if a feature
// has no value left.
bool Fan::narrow_features() {
    for (const std::int32_t f : features_) {
        const double a = e_[f] - cone_[f], b = e_[f] + cone_[f];
        const double least = std::min(a * t1_, a * t2_), most = std::max(b * t1_, b * t2_);
        const double wide = kOutward * (std::abs(least) + std::abs(most));
        if (!(least - wide > low_[f]) && !(most + wide < high_[f])) continue;
        low_[f] = std::max(low_[f], least - wide);
        high_[f] = std::min(high_[f], most + wide);
        if (!batch_->grain_of(f).is_fine()) round(f);
        if (!(low_[f] <= high_[f])) return false;
    }
    return true;
}

// The first and the last value of the column between low and high, or the row's own. The way from
// the user's units to the distance's and back is rounded, so the ends are moved outward before.
void Fan::round(std::int32_t f) {
    const Grain grain = batch_->grain_of(f);
    const double x = choices_->x[f], scale = batch_->scale[f];
    const auto outside = [&](double y, double side) {
        const double value = x + (y - z_[f]) * scale;
        return value + side * kGrain * (std::abs(value) + std::abs(x) + std::abs(z_[f]) * scale);
    };
    const double low = outside(low_[f], -1.0), high = outside(high_[f], 1.0);
    double first = grain.up(low), last = grain.down(high);
    if (choices_->may_stay[f] && low <= x && x <= high)
        first = std::min(first, x), last = std::max(last, x);
    if (first > last) {
        low_[f] = kInfinity;
        return;
    }
    low_[f] = std::max(low_[f], z_[f] + (first - x) / scale);
    high_[f] = std::min(high_[f], z_[f] + (last - x) / scale);
    // One value, to the last digit.
    if (low_[f] > high_[f]) std::swap(low_[f], high_[f]);
}

bool Fan::look(const Box& box, const std::vector<double>& low, const std::vector<double>& high) {
    is_open_ = false;
    if (grow_ == 0.0) return true;
    low_ = low;
    high_ = high;
    t1_ = box.slice_low;
    t2_ = box.slice_high;
    for (int i = 0; i < kRounds; ++i) {
        if (!narrow_slice()) return false;
        if (!std::isfinite(t2_)) return true;
        if (!narrow_features()) return false;
    }
    const double shift = grow_ * 0.5 * (t1_ + t2_);
    double sum = 0.0, own = 0.0, size = grow_ * t1_ * t2_;
    for (const std::int32_t f : features_) {
        origin_[f] = shift * e_[f];
        term_[f] = least(f, low_[f], high_[f]);
        sum += term_[f];
        own += weight_[f] * origin_[f] * origin_[f];
        const double nearest = std::clamp(origin_[f], low_[f], high_[f]);
        size += weight_[f] * (std::abs(nearest) + std::abs(origin_[f])) *
                (std::abs(nearest) + std::abs(origin_[f]));
    }
    // What the sums below, and o itself, may be off by: a few roundings of every term.
    const double noise = 4.0 * (d_ + 8) * kEpsilon * size;
    below_ = own - grow_ * t1_ * t2_ + noise;
    total_ = sum - below_;
    is_open_ = true;
    return total_ < 0.0;
}

// Of f(y) >= total: |y|^2 / t^2 >= G + total / t^2, and 1 - 1 / sqrt of that is the distance.
double Fan::to_distance(double total) const {
    const double t = total < 0.0 ? t1_ : t2_;
    const double square = grow_ + total / (t * t) * (1.0 + (total < 0.0 ? kOutward : -kOutward));
    return square > 1.0 ? 1.0 - 1.0 / std::sqrt(square) * (1.0 + kOutward) : 0.0;
}

double Fan::with(std::int32_t f, std::int32_t code) const {
    if (!is_open_ || !(weight_[f] > 0.0)) return 0.0;
    const std::int32_t i = choices_->at(f, code);
    const double slope = weight_[f] * e_[f];
    if (cell_high_[i] < low_[f] || cell_low_[i] > high_[f]) return kInfinity;  // beyond the cone
    if (slope != 0.0) {
        // Whether t can be in the slice with the feature in this cell.
        const double first = slope * (slope > 0.0 ? cell_low_[i] : cell_high_[i]),
                     last = slope * (slope > 0.0 ? cell_high_[i] : cell_low_[i]);
        const double gap =
            std::max(from_ - least_t_[f] + first - t2_, t1_ - (to_ - most_t_[f] + last));
        const double size = std::abs(from_) + std::abs(to_) + std::abs(least_t_[f]) +
                            std::abs(most_t_[f]) + t2_ + std::max(std::abs(first), std::abs(last));
        if (gap > 16.0 * kEpsilon * size) return kInfinity;
    }
    const double there = least(f, cell_low_[i], cell_high_[i]);
    // Where the step is long, its own rounding counts.
    return to_distance((total_ - term_[f]) + there * (1.0 - kOutward));
}

// From the row's own direction at length t the square of the distance over t^2 is what counts, and
// one feature changes its part of it.
double Fan::guess(std::int32_t f, std::int32_t code, double y, double distance) const {
    const double bound = with(f, code);
    if (!is_open_ || !(weight_[f] > 0.0)) return bound;
    const std::int32_t i = choices_->at(f, code);
    const double t = 0.5 * (t1_ + t2_), home = t * e_[f];
    const double there = std::max(cell_low_[i], std::min(y, cell_high_[i])) - home, here = y - home;
    const double kappa = 1.0 - std::min(distance, 0.999);
    const double square =
        1.0 / (kappa * kappa) + weight_[f] * (there * there - here * here) / (t * t);
    return std::max(bound, square > 1.0 ? 1.0 - 1.0 / std::sqrt(square) : 0.0);
}

std::optional<double> Fan::cut() const {
    if (!is_open_) return std::nullopt;
    const double middle = 0.5 * (t1_ + t2_), half = 0.5 * (t2_ - t1_);
    const bool is_wide = grow_ * half * half > kSpoilt * (grow_ - 1.0) * middle * middle;
    if (!is_wide || half <= kThinnest * middle || t2_ <= kClosest * norm_) return std::nullopt;
    return middle;
}

void Fan::fill(std::vector<double>& steps) const {
    std::fill(steps.begin(), steps.end(), 0.0);
    for (const std::int32_t f : features_)
        for (std::int32_t code = 0; code < choices_->forest.n_codes(f); ++code) {
            const std::int32_t i = choices_->at(f, code);
            steps[i] = least(f, cell_low_[i], cell_high_[i]) * (1.0 - kOutward);
        }
}

}  // namespace treefocus
