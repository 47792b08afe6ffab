#include "treefocus/voice.hpp"

#include <algorithm>
#include <cmath>

#include "treefocus/forest.hpp"

namespace treefocus {

namespace {

constexpr int kPieces = 256;        // of a curve
constexpr double kLinkUnits = 8.0;  // what a library's sigmoid can be off, in units
constexpr double kFloat = 6e-8, kDouble = 1.2e-16;

template <class Number>
double sigmoid(double score) {
    const Number one = 1;
    return static_cast<double>(one / (one + std::exp(-static_cast<Number>(score))));
}

// As numpy.interp has it, in reach of the points.
double between(const std::vector<double>& x, const std::vector<double>& y, double value) {
    if (!(value > x.front())) return y.front();
    if (value >= x.back()) return y.back();
    const std::size_t i = std::upper_bound(x.begin(), x.end(), value) - x.begin() - 1;
    const double slope = (y[i + 1] - y[i]) / (x[i + 1] - x[i]);
    return std::min(slope * (value - x[i]) + y[i], y[i + 1]);
}

}  // namespace

double Map::operator()(double value) const {
    switch (kind) {
        case Kind::affine:
            return value * a + b;
        case Kind::shifted:
            return (value - b) / a;
        case Kind::exp:
            return std::exp(value);
        case Kind::expm1:
            return std::expm1(value);
        case Kind::platt:
            return sigmoid<double>(-(a * value + b));
        case Kind::isotonic:
            return between(x, y, value);
        case Kind::above:
            return value > a ? 1.0 : 0.0;
        default:
            return value >= a ? 1.0 : 0.0;
    }
}

double Voice::shown(double score) const {
    double value = score + moved * rounding;
    if (link == Link::sigmoid)
        value = has_float32_sum ? sigmoid<float>(value) : sigmoid<double>(value);
    else if (link == Link::exp) value = std::exp(value);
    if (link != Link::identity)
        value += moved * kLinkUnits * (has_float32_sum ? kFloat : kDouble) * std::abs(value);
    for (const Map& map : maps) value = map(value);
    return value;
}

// Of the curve only that it rises is used: between two places it is nowhere above what it is at the
// second, and nowhere below what it is at the first. So a rising line that is above the second
// value at the first place of every piece is above the curve. Of such lines the edges of the upper
// hull of these points are the closest ones, and the edge over `near` is taken. Turned round, the
// same is true from below.
Line line_beside(const Voice& voice, double near, double side) {
    const double low = voice.low - voice.tolerance, high = voice.high + voice.tolerance;
    std::vector<double> x, y;  // of the hull, in the turned picture
    double at = side * (side > 0 ? low : high);
    const auto place = [&](int i) {
        return low + (high - low) * (side > 0 ? i : kPieces - i) / kPieces;
    };
    for (int i = 0; i <= kPieces; ++i) {
        const double own_x = side * place(i),
                     own_y = side * voice.shown(place(std::min(i + 1, kPieces)));
        if (side * voice.shown(place(i)) < side * near) at = own_x;
        if (!x.empty() && own_x <= x.back()) {
            y.back() = std::max(y.back(), own_y);
            continue;
        }
        while (x.size() > 1) {
            const std::size_t n = x.size();
            const double rise = (y[n - 1] - y[n - 2]) * (own_x - x[n - 2]);
            if (rise > (own_y - y[n - 2]) * (x[n - 1] - x[n - 2])) break;
            x.pop_back(), y.pop_back();
        }
        x.push_back(own_x), y.push_back(own_y);
    }
    if (x.size() < 2) return {0.0, side * y.back()};
    std::size_t i = 0;
    while (i + 2 < x.size() && x[i + 1] <= at) ++i;
    const double slope = std::max((y[i + 1] - y[i]) / (x[i + 1] - x[i]), 0.0);
    // Rounding may have left some point of the hull a little above the edge.
    double offset = y[i] - slope * x[i];
    for (std::size_t k = 0; k < x.size(); ++k) offset = std::max(offset, y[k] - slope * x[k]);
    return {slope, side * offset};
}

}  // namespace treefocus
