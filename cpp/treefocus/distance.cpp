// Distances and their slopes. A feature that is missing in the row takes no part. Where a distance
// has a corner (no change at all, a vector of length 0) the slope is smoothed, so that it is a
// number everywhere.
#include <algorithm>
#include <cmath>

#include "treefocus/kernels.hpp"

namespace treefocus {

namespace {
constexpr double kSmooth = 1e-10;    // inside the square root, as in the authors' program
constexpr double kShortest = 1e-12;  // squared length below which a direction has no slope
}  // namespace

double Distance::value(const double* z, const double* y) const {
    double sum = 0.0;
    switch (metric) {
        case Metric::euclidean:
            for (std::int32_t f = 0; f < d; ++f)
                if (const double delta = y[f] - z[f]; delta != 0.0 && !std::isnan(z[f]))
                    sum += weight[f] * delta * delta;
            return std::sqrt(sum);
        case Metric::manhattan:
            for (std::int32_t f = 0; f < d; ++f)
                if (const double delta = y[f] - z[f]; delta != 0.0 && !std::isnan(z[f]))
                    sum += weight[f] * std::abs(delta);
            return sum;
        case Metric::cosine: {
            double zz = 0.0, yy = 0.0, zy = 0.0;
            for (std::int32_t f = 0; f < d; ++f) {
                if (std::isnan(z[f])) continue;
                zz += weight[f] * z[f] * z[f];
                yy += weight[f] * y[f] * y[f];
                zy += weight[f] * z[f] * y[f];
            }
            // Two zero vectors point the same way; a zero vector and another are at a right angle.
            if (zz == 0.0 || yy == 0.0) return zz == yy ? 0.0 : 1.0;
            return std::max(0.0, 1.0 - zy / std::sqrt(zz * yy));
        }
        default: {
            for (std::int32_t f = 0; f < d; ++f) {
                if (y[f] == z[f] || std::isnan(z[f])) continue;
                double row = 0.0;
                for (std::int32_t g = 0; g < d; ++g)
                    if (!std::isnan(z[g])) row += inverse[f * d + g] * (y[g] - z[g]);
                sum += (y[f] - z[f]) * row;
            }
            sum = std::max(sum, 0.0);
            return metric == Metric::mahalanobis ? std::sqrt(sum) : sum;
        }
    }
}

void Distance::gradient(const double* z, const double* y, double* out) const {
    switch (metric) {
        case Metric::euclidean: {
            // sqrt(sum + kSmooth) has a slope at 0, and it is 0.
            double sum = kSmooth;
            for (std::int32_t f = 0; f < d; ++f) {
                const double delta = std::isnan(z[f]) ? 0.0 : y[f] - z[f];
                sum += weight[f] * delta * delta;
                out[f] = weight[f] * delta;
            }
            const double norm = std::sqrt(sum);
            for (std::int32_t f = 0; f < d; ++f) out[f] /= norm;
            return;
        }
        case Metric::manhattan:
            for (std::int32_t f = 0; f < d; ++f) {
                const double delta = y[f] - z[f];
                // A comparison with NaN is false: 0 for what is missing.
                out[f] = delta > 0.0 ? weight[f] : delta < 0.0 ? -weight[f] : 0.0;
            }
            return;
        case Metric::cosine: {
            double zz = 0.0, yy = 0.0, zy = 0.0;
            for (std::int32_t f = 0; f < d; ++f) {
                if (std::isnan(z[f])) continue;
                zz += weight[f] * z[f] * z[f];
                yy += weight[f] * y[f] * y[f];
                zy += weight[f] * z[f] * y[f];
            }
            // d/dy (1 - <z, y> / (|z| |y|)) = (<z, y> / |y|^2 y - z) / (|z| |y|).
            const double norm = std::sqrt(std::max(zz, kShortest) * std::max(yy, kShortest));
            for (std::int32_t f = 0; f < d; ++f)
                out[f] = std::isnan(z[f])
                             ? 0.0
                             : weight[f] * (zy / std::max(yy, kShortest) * y[f] - z[f]) / norm;
            return;
        }
        default: {
            double sum = 0.0;
            for (std::int32_t f = 0; f < d; ++f) {
                out[f] = 0.0;
                if (std::isnan(z[f])) continue;
                for (std::int32_t g = 0; g < d; ++g)
                    if (!std::isnan(z[g])) out[f] += inverse[f * d + g] * (y[g] - z[g] + kSmooth);
                sum += (y[f] - z[f]) * out[f];
            }
            // d/dy sqrt(u' Q u) = Q u / sqrt(u' Q u); of the square, 2 Q u.
            const double factor =
                metric == Metric::mahalanobis ? 1.0 / std::sqrt(std::max(sum, 0.0) + kSmooth) : 2.0;
            for (std::int32_t f = 0; f < d; ++f) out[f] *= factor;
            return;
        }
    }
}

}  // namespace treefocus
