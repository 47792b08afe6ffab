// Sums over a plane by corners: a rectangle adds its weight at its first corner, takes it away one
// past its end in either direction, and adds it again where both ends meet. Prefix sums along rows
// and columns then give the sum of all rectangles over every cell, in time rectangles + cells.
#include "treefocus/plane.hpp"

#include <algorithm>
#include <cmath>

namespace treefocus {

constexpr double kRounding = 1e-12;  // of sums over a plane, relative to their terms

// One entry more than cells, see finish.
void Axis::reset(std::int32_t f, std::int32_t from, std::int32_t to) {
    feature = f, low = from, high = to;
    run_of.assign(to - from + 2, 0);
}

// Until here run_of marks with a 1 where a run begins; now it numbers them. The entry one past the
// end lets a rectangle that ends at the last cell write its closing corner.
void Axis::finish() {
    first.assign(1, low);
    for (std::int32_t code = low; code <= high; ++code) {
        std::int32_t& run = run_of[code - low];
        if (run && code > low) first.push_back(code);
        run = static_cast<std::int32_t>(first.size()) - 1;
    }
    run_of.back() = static_cast<std::int32_t>(first.size());
    first.push_back(high + 1);
}

// Trees that split on neither of the two add the leaf that they have, wherever the two go.
void Plane::place(std::int32_t f, std::int32_t f_low, std::int32_t f_high, std::int32_t g,
                  std::int32_t g_low, std::int32_t g_high, const std::int32_t* codes,
                  const std::int32_t* leaves) {
    f_.reset(f, f_low, f_high);
    g_.reset(g, g_low, g_high);
    std::fill(is_seen_.begin(), is_seen_.end(), 0);
    for (const std::int32_t feature : {f, g})
        for (const std::int32_t tree : boxes_.trees_of(feature)) is_seen_[tree] = 1;
    see(codes, leaves);
}

// No tree splits on feature kNone.
void Plane::place_line(std::int32_t f, std::int32_t low, std::int32_t high,
                       const std::int32_t* codes, const std::int32_t* leaves) {
    f_.reset(f, low, high);
    g_.reset(kNone, 0, 0);
    std::fill(is_seen_.begin(), is_seen_.end(), 0);
    for (const std::int32_t tree : boxes_.trees_of(f)) is_seen_[tree] = 1;
    see(codes, leaves);
}

void Plane::see(const std::int32_t* codes, const std::int32_t* leaves) {
    rectangles_.clear();
    still_.clear();
    for (std::int32_t tree = 0; tree < forest_.n_trees(); ++tree) {
        if (is_seen_[tree]) shrink(forest_.tree_start[tree], codes);
        else still_.push_back(leaves[tree]);
    }
    f_.finish();
    g_.finish();
}

// A tree without the nodes that the other features decide.
void Plane::shrink(std::int32_t root, const std::int32_t* codes) {
    open_.push_back({root, f_.low, f_.high, g_.low, g_.high});
    while (!open_.empty()) {
        Rectangle at = open_.back();
        open_.pop_back();
        // The others stand still, so that their nodes have one way.
        std::int32_t feature = forest_.feature[at.node];
        while (feature >= 0 && feature != f_.feature && feature != g_.feature) {
            at.node =
                forest_.goes_left(at.node, codes[feature]) ? at.node + 1 : forest_.right[at.node];
            feature = forest_.feature[at.node];
        }
        if (feature < 0)
            rectangles_.push_back(
                {forest_.first_leaf[at.node], at.f_low, at.f_high, at.g_low, at.g_high});
        else if (feature == f_.feature) split(at, f_, &Rectangle::f_low, &Rectangle::f_high);
        else split(at, g_, &Rectangle::g_low, &Rectangle::g_high);
    }
}

// A child whose range is empty here is out of reach; the axis is only cut where both remain.
void Plane::split(const Rectangle& at, Axis& axis, std::int32_t Rectangle::* low,
                  std::int32_t Rectangle::* high) {
    const std::int32_t last_left = forest_.code_split[at.node];
    Rectangle left = at, right = at;
    left.node = at.node + 1;
    right.node = forest_.right[at.node];
    left.*high = std::min(at.*high, last_left);
    right.*low = std::max(at.*low, last_left + 1);
    if (left.*low <= left.*high) open_.push_back(left);
    if (right.*low <= right.*high) open_.push_back(right);
    if (left.*low <= left.*high && right.*low <= right.*high) axis.cut(right.*low);
}

// Any goal will do, of a goal all tests must be met. The tests have a tolerance, so that no answer
// is left out.
void Plane::ask(const std::vector<Goal>& goals) {
    may_be_.assign(n_cells(), 0);
    for (const Goal& goal : goals) {
        meets_.assign(n_cells(), 1);
        for (const ScoreTest* test : goal.tests) add_up(*test);
        for (std::size_t i = 0; i < meets_.size(); ++i) may_be_[i] |= meets_[i];
    }
}

// The sum of a test over the plane: every rectangle adds its weight at one corner and takes it back
// at the others. Leaves come tree after tree, so that those of the trees asked are a run: of many
// models that have to agree each test goes through its own model's alone.
void Plane::add_up(const ScoreTest& test) {
    const std::int32_t n_rows = f_.n_runs(), n_columns = g_.n_runs(), width = n_columns + 1;
    sum_.assign(static_cast<std::size_t>(n_rows + 1) * width, 0.0);
    const std::int32_t begin = forest_.leaf_start(test.first_tree),
                       end = forest_.leaf_start(test.end_tree);
    double still = 0.0, most = 0.0;
    for (auto leaf = std::lower_bound(still_.begin(), still_.end(), begin);
         leaf != still_.end() && *leaf < end; ++leaf)
        still += test.weight[*leaf], most += std::abs(test.weight[*leaf]);
    const auto first = std::partition_point(rectangles_.begin(), rectangles_.end(),
                                            [&](const Rectangle& r) { return r.node < begin; });
    for (auto at = first; at != rectangles_.end() && at->node < end; ++at) {
        const Rectangle& r = *at;
        const double weight = test.weight[r.node];
        double* top = sum_.data() + static_cast<std::size_t>(f_.run_of[r.f_low - f_.low]) * width;
        double* bottom =
            sum_.data() + static_cast<std::size_t>(f_.run_of[r.f_high + 1 - f_.low]) * width;
        const std::int32_t left = g_.run_of[r.g_low - g_.low],
                           right = g_.run_of[r.g_high + 1 - g_.low];
        top[left] += weight, bottom[right] += weight;
        top[right] -= weight, bottom[left] -= weight;
        most += std::abs(weight);
    }
    // The order of adding is not the model's; the tolerance grows with what was added.
    const double need = test.need - still - kRounding * most;
    for (std::int32_t row = 0; row < n_rows; ++row) {
        double* here = sum_.data() + static_cast<std::size_t>(row) * width;
        if (row > 0)
            for (std::int32_t column = 0; column < n_columns; ++column)
                here[column] += here[column - width];
        double along = 0.0;
        for (std::int32_t column = 0; column < n_columns; ++column) {
            along += here[column];
            meets_[static_cast<std::size_t>(row) * n_columns + column] &= along >= need;
        }
    }
}

}  // namespace treefocus
