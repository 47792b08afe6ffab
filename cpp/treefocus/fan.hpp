// Cosine as a fan of Euclidean problems, one for every slice of the length along the row.
//
// With e = z / |z| the row's direction and t = <e, y> the length of a point along it, the cosine of
// y is t / |y|. A point is cheaper than a limit of 1 - kappa, kappa > 0, exactly if t > 0 and
//     f(y) = |y|^2 - G t^2 < 0,  G = 1 / kappa^2.
// The first part is a sum over features, the second is not, but it is concave: for t1 <= t <= t2
//     (t - t1)(t - t2) <= 0,  so  -G t^2 >= -G (t1 + t2) t + G t1 t2,
// and t is a sum over features. With m = (t1 + t2) / 2 and o = G m e,
//     f(y) >= |y - o|^2 - |o|^2 + G t1 t2:
// within a slice of t the question is Euclidean, from the origin o, and has all that a Euclidean
// one has: a bound of every box, a budget for every feature and priced bounds. What the slice costs
// is G (t2 - t1)^2 / 4 at most, so slices are halved until that is little beside what the limit
// leaves, (G - 1) t^2. Boxes are slices too: t has ends in every box, and each feature narrows them
// once more, since in the cone of the limit y_f / t lies between e_f - r_f and e_f + r_f.
//
// A box without a point cheaper than the limit is thus shown by G, t1, t2 and a sum over features.
#pragma once

#include <optional>
#include <vector>

#include "treefocus/box.hpp"

namespace treefocus {

class Fan {
public:
    // z (d,) the row in the distance space; features that stay as they are take no part.
    // cell_low, cell_high (n_cells,) the ends of every cell there, or wider.
    void load(const Choices& choices, const Batch& batch, const double* weight,
              const std::vector<double>& z, const std::vector<std::uint8_t>& takes_part,
              const std::vector<double>& cell_low, const std::vector<double>& cell_high);
    // Answers have to be closer than this; no fan from 1 on, a right angle.
    void set_limit(double distance);

    // Looks at the box low..high (d,) in the distance space; false if no point of it is closer than
    // the limit.
    bool look(const Box& box, const std::vector<double>& low, const std::vector<double>& high);
    // What the last look has shown for every point of its box, and for those with a feature in one
    // cell: a distance that none of them is closer than, as far as it is below the limit.
    double bound() const { return is_open_ ? to_distance(total_) : 0.0; }
    double with(std::int32_t f, std::int32_t code) const;
    // About the distance if a feature alone goes there from y, in a point at this distance.
    double guess(std::int32_t f, std::int32_t code, double y, double distance) const;
    // Where to halve the slice, if its width spoils the bound.
    std::optional<double> cut() const;

    // The Euclidean problem of the last look as a table of costs, one a cell, that answers cheaper
    // than the limit have to stay below `below`; false if there is none worth it.
    bool is_narrow() const { return is_open_ && !cut(); }
    void fill(std::vector<double>& steps) const;
    double below() const { return below_; }
    double least_sum() const { return total_ + below_; }  // of the box
    // A bound on the table's sums as a distance.
    double distance_of(double sum) const { return to_distance(sum - below_); }

private:
    bool narrow_slice();
    bool narrow_features();
    void round(std::int32_t f);
    double least(std::int32_t f, double low, double high) const;  // w (y - o)^2 over an interval
    double to_distance(double total) const;

    const Choices* choices_ = nullptr;
    const Batch* batch_ = nullptr;
    std::int32_t d_ = 0;
    double norm_ = 0.0;                   // |z|
    std::vector<std::int32_t> features_;  // that take part
    std::vector<double> weight_, z_, e_;  // (d,) e = z / norm
    const double *cell_low_ = nullptr, *cell_high_ = nullptr;
    double grow_ = 0.0;         // G, 0 while there is no fan
    std::vector<double> cone_;  // (d,) r_f
    // Of the last look.
    std::vector<double> low_, high_;        // (d,) the box, less what the cone leaves out
    bool is_open_ = false;                  // there is a bound
    double t1_ = 0.0, t2_ = 0.0;            // the slice
    double from_ = 0.0, to_ = 0.0;          // ends of t in the box alone
    double total_ = 0.0, below_ = 0.0;      // bound of f; |o|^2 - G t1 t2, both with rounding
    std::vector<double> origin_, term_;     // (d,) o, and the least w (y - o)^2 of the box
    std::vector<double> least_t_, most_t_;  // (d,) ends of w e y
};

}  // namespace treefocus
