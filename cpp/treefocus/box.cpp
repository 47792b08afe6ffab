#include "treefocus/box.hpp"

#include <algorithm>
#include <cmath>

namespace treefocus {

LeafBoxes::LeafBoxes(const Forest& forest) : start{0}, trees_of(forest.n_features) {
    std::vector<std::vector<Side>> path(forest.n_nodes());
    for (std::int32_t tree = 0; tree < forest.n_trees(); ++tree) {
        for (std::int32_t node = forest.tree_start[tree]; node < forest.tree_start[tree + 1]; ++node) {
            const std::int32_t f = forest.feature[node];
            if (f < 0) {
                side.insert(side.end(), path[node].begin(), path[node].end());
                start.push_back(static_cast<std::int32_t>(side.size()));
            } else {
                if (trees_of[f].empty() || trees_of[f].back() != tree) trees_of[f].push_back(tree);
                for (const bool is_left : {true, false}) {
                    std::vector<Side> own = path[node];
                    auto found = std::find_if(own.begin(), own.end(), [f](const Side& s) { return s.feature == f; });
                    if (found == own.end()) found = own.insert(own.end(), Side{f, 0, forest.n_codes(f) - 1});
                    if (is_left) found->high = std::min(found->high, forest.code_split[node]);
                    else found->low = std::max(found->low, forest.code_split[node] + 1);
                    path[is_left ? node + 1 : forest.right[node]] = std::move(own);
                }
            }
            path[node] = {};
        }
    }
}

void Norms::finish() {
    const auto any = [](const std::vector<double>& w) { return std::any_of(w.begin(), w.end(), [](double v) { return v > 0; }); };
    has_l1l0 = any(l1) || any(l0);
    has_l2 = any(l2);
    has_linf = any(linf);
}

double Norms::step(std::int32_t f, double delta) const {
    if (delta == 0.0) return 0.0;
    return has_l2 ? l2[f] * delta * delta : l1[f] * delta + l0[f];
}

double Norms::total(const double* delta, std::int32_t d) const {
    double sum = 0.0, square = 0.0, largest = 0.0;
    for (std::int32_t f = 0; f < d; ++f) {
        if (delta[f] == 0.0) continue;
        sum += l1[f] * delta[f] + l0[f];
        square += l2[f] * delta[f] * delta[f];
        largest = std::max(largest, linf[f] * delta[f]);
    }
    return sum + std::sqrt(square) + largest;
}

Choices::Choices(const Forest& forest_, const double* cell_low_, const double* cell_high_)
    : forest(forest_), cell_low(cell_low_), cell_high(cell_high_), value(forest_.n_thresholds() + forest_.n_features),
      delta(value.size()), next(value.size()), home(forest_.n_features), first(forest_.n_features),
      last(forest_.n_features), low(forest_.n_features), high(forest_.n_features) {}

namespace {

constexpr double kHuge = 1e140;

}  // namespace

double up_to_grain(double v, std::int8_t grain) {
    if (grain == 2) return std::ceil(v);
    if (grain == 1 && static_cast<double>(static_cast<float>(v)) < v) return std::nextafter(static_cast<float>(v), INFINITY);
    if (grain == 1) return static_cast<float>(v);
    return v;
}

double down_to_grain(double v, std::int8_t grain) { return -up_to_grain(-v, grain); }

Ends ends_of(const Forest& forest, double cell_low, double cell_high, double box_low, double box_high, std::int8_t grain) {
    Ends ends{up_to_grain(std::max(cell_low, box_low), grain), down_to_grain(std::min(cell_high, box_high), grain)};
    if (ends.low <= ends.high || !forest.is_float32 || grain != 0) return ends;
    const auto halfway = [](float a, float b) { return 0.5 * (static_cast<double>(a) + static_cast<double>(b)); };
    if (std::isfinite(cell_low)) {
        const float own = static_cast<float>(cell_low);
        cell_low = halfway(std::nextafter(own, -INFINITY), own);
        if (static_cast<float>(cell_low) != own) cell_low = std::nextafter(cell_low, INFINITY);
    }
    if (std::isfinite(cell_high)) {
        const float own = static_cast<float>(cell_high);
        cell_high = halfway(own, std::nextafter(own, INFINITY));
        if (static_cast<float>(cell_high) != own) cell_high = std::nextafter(cell_high, -INFINITY);
    }
    return {std::max(cell_low, box_low), std::min(cell_high, box_high)};
}

void Choices::load(const Batch& batch, std::int64_t row) {
    const std::int32_t d = forest.n_features;
    x = batch.rows + row * d;
    is_empty = has_missing = false;
    for (std::int32_t f = 0; f < d; ++f) {
        if (std::isnan(x[f])) {  // a missing value stays missing
            home[f] = kMissing;
            first[f] = 0;
            last[f] = forest.n_codes(f) - 1;
            has_missing = true;
            continue;
        }
        low[f] = batch.low[row * d + f];
        high[f] = batch.high[row * d + f];
        const std::int32_t own = forest.code(f, x[f]), n = forest.n_codes(f);
        const bool may_stay = x[f] >= low[f] && x[f] <= high[f];
        double cheapest = kInfinity;
        for (std::int32_t c = 0; c < n; ++c) {
            const std::int32_t i = at(f, c);
            const auto [a, b] = ends_of(forest, cell_low[i], cell_high[i], low[f], high[f], batch.grain[f]);
            const bool is_above = c > own || (c == own && x[f] < a);
            value[i] = c == own && may_stay ? x[f] : a > b ? NAN : is_above ? a : b;
            if (c == own && !may_stay && a <= b) value[i] = std::clamp(x[f], a, b);
            // Capped, so that the square of a huge change is a number still: only what is not allowed costs infinity.
            delta[i] = std::isnan(value[i]) ? kInfinity : std::min(std::abs(value[i] - x[f]) / batch.scale[f], kHuge);
            if (delta[i] < cheapest) cheapest = delta[i], home[f] = c;
        }
        if (cheapest == kInfinity) {
            is_empty = true;
            return;
        }
        // A cell without a value stands for the next one behind it, seen from home.
        first[f] = last[f] = home[f];
        for (std::int32_t c = 0; c < n; ++c)
            if (delta[at(f, c)] < kInfinity) first[f] = std::min(first[f], c), last[f] = std::max(last[f], c);
        for (std::int32_t c = last[f], behind = last[f]; c >= home[f]; --c) {
            if (delta[at(f, c)] < kInfinity) behind = c;
            next[at(f, c)] = behind;
            delta[at(f, c)] = delta[at(f, behind)];
        }
        for (std::int32_t c = first[f], behind = first[f]; c < home[f]; ++c) {
            if (delta[at(f, c)] < kInfinity) behind = c;
            next[at(f, c)] = behind;
            delta[at(f, c)] = delta[at(f, behind)];
        }
    }
    if (!has_missing) return;
    is_blocked.assign(forest.n_leaves(), 1);
    for (std::int32_t tree = 0; tree < forest.n_trees(); ++tree) block(forest.tree_start[tree]);
}

// Unblocks the leaves below a node that missing values leave reachable.
void Choices::block(std::int32_t node) {
    std::vector<std::int32_t> open{node};
    while (!open.empty()) {
        node = open.back();
        open.pop_back();
        const std::int32_t f = forest.feature[node];
        if (f < 0) {
            is_blocked[forest.first_leaf[node]] = 0;
            continue;
        }
        const bool is_missing = home[f] == kMissing;
        if (!is_missing || forest.default_left[node]) open.push_back(node + 1);
        if (!is_missing || !forest.default_left[node]) open.push_back(forest.right[node]);
    }
}

std::int32_t Choices::closest(std::int32_t f, std::int32_t low_code, std::int32_t high_code) const {
    if (home[f] == kMissing) return kMissing;
    const std::int32_t code = next[at(f, std::clamp(home[f], low_code, high_code))];
    return code >= low_code && code <= high_code ? code : kNone;
}

}  // namespace treefocus
