// Several models whose shown numbers are averaged: calibrated folds, boosters that vote softly,
// forests that vote. A voice is one of them: some trees in a row, their sum, and what is made of
// it. What a voice shows grows with its sum, so that over a box the mean is at most what the best
// sums show together. That bound is tight where a box is small; a line over each voice's curve
// makes one sum over all trees of it, which is weaker and all that prices and cuts can work with.
#pragma once

#include <cstdint>
#include <vector>

namespace treefocus {

enum class Link { identity = 0, sigmoid = 1, softmax = 2, exp = 3 };

// A monotone map, as in treefocus.model.maps.
struct Map {
    enum class Kind {
        affine = 0,    // a value + b
        shifted = 1,   // (value - b) / a
        exp = 2,       //
        expm1 = 3,     //
        platt = 4,     // 1 / (1 + exp(a value + b)), a < 0
        isotonic = 5,  // from point to point
        above = 6,     // a vote: 1 above a, else 0
        at_least = 7,  // 1 from a up, else 0
    };
    Kind kind;
    double a = 0.0, b = 0.0;
    std::vector<double> x, y;
    double operator()(double value) const;
};

struct Voice {
    std::int32_t first_tree = 0, end_tree = 0;
    double divisor = 1.0, weight = 1.0;
    bool has_float32_sum = false;
    Link link = Link::identity;
    std::vector<Map> maps;
    // By how much the library's own sum may differ from this one, and -1 or 1 where such sums are
    // all asked for, from below or from above; 0 for the sum as it is.
    double rounding = 0.0, moved = 0.0;
    double tolerance = 0.0;        // how far our own rounding can move the sum
    double low = 0.0, high = 0.0;  // no sum is below or above

    double shown(double score) const;
    // Whether it shows nothing but 0 or 1.
    bool is_vote() const {
        return !maps.empty() &&
               (maps.back().kind == Map::Kind::above || maps.back().kind == Map::Kind::at_least);
    }
};

// The mean as the library takes it: in order, divided last. sum(m) is the sum of voice m's trees.
template <class Sum>
double mean_of(const std::vector<Voice>& voices, double divisor, const Sum& sum) {
    double total = 0.0;
    for (std::size_t m = 0; m < voices.size(); ++m)
        total += voices[m].weight * voices[m].shown(sum(m));
    return total / divisor;
}

constexpr double kMeanNoise =
    1e-11;  // of a mean: C libraries' exponentials are monotone but for it

struct Line {
    double slope, offset;
};

// A rising line that no sum's shown number is above (side 1) or below (side -1), as close as can be
// where the voice shows `near`.
Line line_beside(const Voice& voice, double near, double side);

}  // namespace treefocus
