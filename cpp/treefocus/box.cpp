// Three tables, from the slowest to the fastest: the boxes of all leaves, once a forest
// (LeafBoxes); what every cell costs, once a row (Choices::load); and the closest cell of a box,
// millions of times a row (Choices::closest), which is why the tables are made monotone first.
#include "treefocus/box.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace treefocus {

// A leaf has one side per feature on its path, so at most as many as the path is long. Counted
// before anything is built: Plan decides with it whether the boxes fit into memory.
double most_sides(const Forest& forest) {
    std::vector<std::int32_t> depth(forest.n_nodes(), 0);
    double sides = 0.0;
    for (std::int32_t node = 0; node < forest.n_nodes(); ++node) {
        if (forest.feature[node] < 0) sides += std::min(depth[node], forest.n_features);
        else depth[node + 1] = depth[forest.right[node]] = depth[node] + 1;
    }
    return sides;
}

// Every tree is walked once with the sides of the present path at hand. A turn at a node narrows
// one side, or adds it, and keeps what was there before, so that the way back is a copy. Equal sets
// of a feature get one number: there are far fewer of them than leaves that ask for them.
LeafBoxes::LeafBoxes(const Forest& forest) : start{0}, n_words(forest.n_words) {
    // Sets by feature and words.
    std::map<std::pair<std::int32_t, std::vector<std::uint64_t>>, std::int32_t> known;
    // kSet + number at both ends: beyond any code, so that a range test always stops at a set and
    // its words are looked at.
    const auto set_side = [&](std::int32_t f, const std::vector<std::uint64_t>& cells) {
        const auto [found, is_new] = known.try_emplace({f, cells}, n_sets());
        if (is_new) sets.insert(sets.end(), cells.begin(), cells.end());
        return Side{f, kSet + found->second, kSet + found->second};
    };
    const auto all_cells = [&](std::int32_t f) {
        std::vector<std::uint64_t> cells(n_words, 0);
        for (std::int32_t c = 0; c < forest.n_codes(f); ++c)
            cells[c / 64] |= std::uint64_t{1} << (c % 64);
        return cells;
    };
    // What a turn leaves of a side: a range ends at the node's split, a set keeps what is in the
    // node's set, or outside it.
    const auto narrowed = [&](const Side* side, std::int32_t node, bool is_left) {
        const std::int32_t f = forest.feature[node];
        if (forest.set_of_node[node] < 0) {
            Side own = side ? *side : Side{f, 0, forest.n_codes(f) - 1};
            if (is_left) own.high = std::min(own.high, forest.code_split[node]);
            else own.low = std::max(own.low, forest.code_split[node] + 1);
            return own;
        }
        std::vector<std::uint64_t> cells = all_cells(f);
        if (side) cells.assign(words(side->set()), words(side->set()) + n_words);
        const std::uint64_t* left =
            forest.sets.data() + static_cast<std::size_t>(forest.set_of_node[node]) * n_words;
        for (std::int32_t w = 0; w < n_words; ++w) cells[w] &= is_left ? left[w] : ~left[w];
        return set_side(f, cells);
    };
    // Nodes stand in pre-order: from a leaf the walk goes back to the last node whose right side is
    // still to come.
    struct Turn {
        std::int32_t node;
        bool is_left;
        std::size_t at;  // the node's feature in the path,
        Side before;  // and what it was before this turn; kNone low where the path did not have it
    };
    std::vector<Side> path;
    std::vector<Turn> turns;
    const auto take = [&](std::int32_t node, bool is_left) {
        const std::int32_t f = forest.feature[node];
        const auto found =
            std::find_if(path.begin(), path.end(), [f](const Side& s) { return s.feature == f; });
        const std::size_t at = found - path.begin();
        turns.push_back({node, is_left, at, found == path.end() ? Side{f, kNone, kNone} : *found});
        if (found == path.end()) path.push_back(narrowed(nullptr, node, is_left));
        else path[at] = narrowed(&path[at], node, is_left);
    };
    const auto take_back = [&] {
        const Turn turn = turns.back();
        turns.pop_back();
        if (turn.before.low == kNone) path.pop_back();
        else path[turn.at] = turn.before;
        return turn;
    };
    start.reserve(forest.n_leaves() + 1);
    side.reserve(static_cast<std::size_t>(most_sides(forest)));
    for (std::int32_t node = 0; node < forest.n_nodes(); ++node) {
        if (forest.feature[node] >= 0) {
            take(node, true);
            continue;
        }
        side.insert(side.end(), path.begin(), path.end());
        start.push_back(static_cast<std::int32_t>(side.size()));
        while (!turns.empty())
            if (const Turn turn = take_back(); turn.is_left) {
                take(turn.node, false);
                break;
            }
    }
    number_slots(forest);
}

// Trees come in order, so a feature's newest slot is this tree's, or this tree has none yet.
void LeafBoxes::number_slots(const Forest& forest) {
    std::vector<std::vector<std::int32_t>> trees(forest.n_features);
    for (std::int32_t tree = 0; tree < forest.n_trees(); ++tree) {
        const std::int32_t root = forest.tree_start[tree];
        for (std::int32_t i = start[forest.first_leaf[root]]; i < start[forest.end_leaf[root]];
             ++i) {
            std::vector<std::int32_t>& own = trees[side[i].feature];
            if (own.empty() || own.back() != tree) own.push_back(tree);
        }
    }
    slot_start.assign(1, 0);
    for (const auto& own : trees) {
        slot_tree.insert(slot_tree.end(), own.begin(), own.end());
        slot_start.push_back(static_cast<std::int32_t>(slot_tree.size()));
    }
}

void Norms::finish() {
    const auto any = [](const std::vector<double>& w) {
        return std::any_of(w.begin(), w.end(), [](double v) { return v > 0; });
    };
    has_l1l0 = any(l1) || any(l0);
    has_l2 = any(l2);
    has_linf = any(linf);
}

// Where there is an l2 part the additive cost is the square of the distance, which is a sum over
// features as the distance is not.
double Norms::step(std::int32_t f, double delta) const {
    if (delta == 0.0) return 0.0;
    return has_l2 ? l2[f] * delta * delta : l1[f] * delta + l0[f];
}

// The distance itself, never its square: with to_cost it becomes what the search adds up.
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
    : forest(forest_),
      cell_low(cell_low_),
      cell_high(cell_high_),
      value(forest_.n_cells()),
      delta(value.size()),
      next(value.size()),
      by_cost(value.size()),
      home(forest_.n_features),
      own(forest_.n_features),
      may_stay(forest_.n_features),
      low(forest_.n_features),
      high(forest_.n_features) {
    all.low.resize(forest_.n_features);
    all.high.resize(forest_.n_features);
    all.cells.resize(forest_.word_start.back());
}

namespace {

constexpr double kHuge = 1e140;  // the farthest a change can be: its square is a number still

}  // namespace

// A cast to float rounds to nearest, up or down: where it went down, the next float is the one.
double Grain::up(double v) const {
    if (kind == Kind::listed) {
        const double* found = std::lower_bound(first, last, v);
        return found == last ? kInfinity : *found;
    }
    if (kind == Kind::integer) return std::ceil(v);
    if (kind == Kind::stepped) {
        const double mirrored[] = {-first[0], first[1], first[2], first[3]};
        return -Grain{kind, mirrored, mirrored + 4}.step_down(-v);
    }
    if (kind == Kind::float32 && static_cast<double>(static_cast<float>(v)) < v)
        return std::nextafter(static_cast<float>(v), INFINITY);
    if (kind == Kind::float32) return static_cast<float>(v);
    return v;
}

double Grain::down(double v) const {
    if (kind == Kind::stepped) return step_down(v);
    if (kind != Kind::listed) return -up(-v);
    const double* after = std::upper_bound(first, last, v);
    return after == first ? -kInfinity : *(after - 1);
}

// Steps in whole numbers of the last decimal, so that one division rounds, and rounds once.
double Grain::multiple(double k) const {
    const double value = (first[0] + k * first[1]) / first[2];
    return first[3] != 0.0 ? static_cast<double>(static_cast<float>(value)) : value;
}

// The quotient may be off by a few steps, for its rounding: the multiples themselves decide. Too
// far out, steps are finer than the numbers there, and each of those is one.
double Grain::step_down(double v) const {
    constexpr double kMost = 4503599627370496.0;  // 2^52 steps
    double k = std::floor((v * first[2] - first[0]) / first[1]);
    if (!(std::abs(k) < kMost)) return first[3] != 0.0 ? Grain{Kind::float32}.down(v) : v;
    if (first[3] != 0.0) {
        const float size = std::abs(static_cast<float>(v));
        const double spacing = std::nextafter(size, INFINITY) - size;
        if (first[1] / first[2] <= spacing / 2) return Grain{Kind::float32}.down(v);
    }
    while (multiple(k) > v) --k;
    while (multiple(k + 1.0) <= v) ++k;
    return multiple(k) + 0.0;  // never -0
}

// Of two equally near the lower one; the value itself where the list has none.
double Grain::nearest(double v) const {
    const double above = up(v), below = down(v);
    if (!(above < kInfinity)) return below > -kInfinity ? below : v;
    return below > -kInfinity && v - below <= above - v ? below : above;
}

Ends ends_of(double cell_low, double cell_high, double box_low, double box_high,
             const Grain& grain) {
    return {grain.up(std::max(cell_low, box_low)), grain.down(std::min(cell_high, box_high))};
}

// A missing value on a feature without sets stays missing: it has no cell (home is kMissing), its
// range is left whole so that no box test stumbles over it, and which leaves it routes away from is
// worked out once (is_blocked) instead of in every box.
void Choices::load(const Batch& questions, std::int64_t row) {
    const std::int32_t d = forest.n_features;
    batch = &questions;
    x = questions.rows + row * d;
    is_empty = has_missing = false;
    std::int32_t set_cell = 0;
    for (std::int32_t f = 0; f < d && !is_empty; ++f) {
        low[f] = questions.low[row * d + f];
        high[f] = questions.high[row * d + f];
        own[f] = forest.code(f, x[f]);
        if (forest.has_sets[f]) {
            load_sets(questions, row, f, set_cell);
            set_cell += forest.n_codes(f);
        } else if (std::isnan(x[f])) {  // a missing value stays missing
            home[f] = kMissing;
            all.low[f] = 0;
            all.high[f] = forest.n_codes(f) - 1;
            has_missing = true;
            may_stay[f] = 1;
        } else {
            load_range(f);
        }
    }
    if (!has_missing || is_empty) return;
    is_blocked.assign(forest.n_leaves(), 1);
    for (std::int32_t tree = 0; tree < forest.n_trees(); ++tree) block(forest.tree_start[tree]);
}

namespace {

// The value of a cell that is closest to the row's, between these ends, or the row's own where it
// may stay.
Spot nearest_of(const Choices& choices, std::int32_t f, std::int32_t code, const Ends& ends,
                bool may_stay) {
    const double x = choices.x[f];
    if (code == choices.own[f] && may_stay) return {x, 0.0};
    if (!(ends.low <= ends.high)) return {NAN, kInfinity};
    // In a cell beside the row's own the nearest end is the one that faces it; only in its own cell
    // can the nearest value lie inside.
    const bool is_above = code > choices.own[f] || (code == choices.own[f] && x < ends.low);
    double value = is_above ? ends.low : ends.high;
    if (code == choices.own[f]) {
        const Grain grain = choices.grain_of(f);
        value = std::clamp(grain.kind == Kind::listed ? grain.nearest(x) : x, ends.low, ends.high);
    }
    // Capped, so that the square of a huge change is a number still: only what is not allowed costs
    // infinity.
    return {value, std::min(std::abs(value - x) / choices.batch->scale[f], kHuge)};
}

}  // namespace

// The values and costs of such cells come with the batch, since only the caller knows how far one
// category is from another. They have no order, so there is a list by cost in place of monotone
// costs.
void Choices::load_sets(const Batch& questions, std::int64_t row, std::int32_t f,
                        std::int32_t first_cell) {
    std::int32_t n_set_cells = 0;
    for (std::int32_t g = 0; g < forest.n_features; ++g)
        n_set_cells += forest.has_sets[g] ? forest.n_codes(g) : 0;
    const std::int32_t n = forest.n_codes(f);
    std::uint64_t* cells = all.cells.data() + forest.word_start[f];
    std::fill_n(cells, forest.n_words, 0);
    all.low[f] = 0;  // so that every side of a set is looked at
    all.high[f] = n - 1;
    for (std::int32_t c = 0; c < n; ++c) {
        const std::int32_t i = at(f, c);
        value[i] = questions.set_value[row * n_set_cells + first_cell + c];
        delta[i] = std::min(questions.set_delta[row * n_set_cells + first_cell + c], kInfinity);
        next[i] = delta[i] < kInfinity ? c : kNone;
        if (delta[i] < kInfinity) cells[c / 64] |= std::uint64_t{1} << (c % 64);
        by_cost[i] = c;
    }
    const auto begin = by_cost.begin() + at(f, 0);
    std::stable_sort(begin, begin + n, [&](std::int32_t a, std::int32_t b) {
        return delta[at(f, a)] < delta[at(f, b)];
    });
    // The cheapest cell there is; the row's own, where it may stay, costs 0.
    home[f] = *begin;
    may_stay[f] = delta[at(f, own[f])] == 0.0;
    is_empty = delta[at(f, home[f])] == kInfinity;
}

// First the closest value of every cell, then, from both ends inwards, costs that rise away from
// home: after that the cheapest cell of a range is its end that faces home, whatever constraints
// left out.
void Choices::load_range(std::int32_t f) {
    const std::int32_t n = forest.n_codes(f);
    const Grain grain = grain_of(f);
    // The row's own value counts beside the list, too, unless the list is strict.
    const bool is_listed =
        grain.kind != Kind::listed || !batch->is_strict[f] || grain.up(x[f]) == x[f];
    may_stay[f] = x[f] >= low[f] && x[f] <= high[f] && is_listed;
    double cheapest = kInfinity;
    for (std::int32_t c = 0; c < n; ++c) {
        const std::int32_t i = at(f, c);
        const Spot closest = nearest_of(
            *this, f, c, ends_of(cell_low[i], cell_high[i], low[f], high[f], grain), may_stay[f]);
        value[i] = closest.value;
        delta[i] = closest.delta;
        if (delta[i] < cheapest) cheapest = delta[i], home[f] = c;
    }
    is_empty = cheapest == kInfinity;
    if (is_empty) return;
    // A cell without a value stands for the next one behind it, seen from home.
    std::int32_t first = home[f], last = home[f];
    for (std::int32_t c = 0; c < n; ++c)
        // Cells outside first..last are never entered, those inside that are empty stand for one
        // behind them.
        if (delta[at(f, c)] < kInfinity) first = std::min(first, c), last = std::max(last, c);
    for (std::int32_t c = last, behind = last; c >= home[f]; --c) {
        if (delta[at(f, c)] < kInfinity) behind = c;
        next[at(f, c)] = behind;
        delta[at(f, c)] = delta[at(f, behind)];
    }
    for (std::int32_t c = first, behind = first; c < home[f]; ++c) {
        if (delta[at(f, c)] < kInfinity) behind = c;
        next[at(f, c)] = behind;
        delta[at(f, c)] = delta[at(f, behind)];
    }
    all.low[f] = first;
    all.high[f] = last;
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

// The answer may keep the row's value even where it is not on the grain: nobody is asked to round
// it.
bool Choices::can_stay(std::int32_t f, const Box& box) const {
    if (home[f] == kMissing) return true;
    return may_stay[f] && box.has(forest, f, own[f]) && (std::isnan(x[f]) || box.holds(f, x[f]));
}

// Without values cut off the table has it; with them the cell's ends move in and the closest value
// is found again.
Spot Choices::spot(std::int32_t f, std::int32_t code, const Box& box) const {
    const std::int32_t i = at(f, code);
    if (!box.is_cut(f) || next[i] != code || std::isnan(value[i]))
        return {value[i], next[i] == code ? delta[i] : kInfinity};
    const Ends ends = ends_of(cell_low[i], cell_high[i], std::max(low[f], box.value_low[f]),
                              std::min(high[f], box.value_high[f]), grain_of(f));
    if (!std::isnan(x[f])) return nearest_of(*this, f, code, ends, can_stay(f, box));
    if (!(ends.low <= ends.high))
        return {NAN, kInfinity};  // a value that becomes known costs the same wherever it is
    return {std::clamp(value[i], ends.low, ends.high), delta[i]};
}

// For sets every cell but the last, the missing value, adds its numbers; a range is one run,
// whatever lies in it. The row's own value belongs to it even where it lies beside the column's
// grain.
Ends Choices::hull(std::int32_t f, const Box& box) const {
    Ends hull{kInfinity, -kInfinity};
    const auto add = [&](std::int32_t first, std::int32_t last) {
        double a = low[f], b = high[f];
        if (!box.value_low.empty())
            a = std::max(a, box.value_low[f]), b = std::min(b, box.value_high[f]);
        const Ends ends =
            ends_of(cell_low[at(f, first)], cell_high[at(f, last)], a, b, grain_of(f));
        if (!(ends.low <= ends.high)) return;
        hull.low = std::min(hull.low, ends.low);
        hull.high = std::max(hull.high, ends.high);
    };
    if (forest.has_sets[f])
        for_cells(forest, box, f, [&](std::int32_t code) {
            if (code < forest.n_codes(f) - 1) add(code, code);
        });
    else add(box.low[f], box.high[f]);
    if (!std::isnan(x[f]) && can_stay(f, box))
        hull.low = std::min(hull.low, x[f]), hull.high = std::max(hull.high, x[f]);
    return hull;
}

// Where values cut into cells: the cheapest of the first cells with a value on either side of home.
std::int32_t Choices::closest_cut(std::int32_t f, const Box& box) const {
    std::int32_t best = kNone;
    double least = kInfinity;
    // True at a cell with a value: farther ones on that side are dearer.
    const auto look = [&](std::int32_t code) {
        const double delta = spot(f, code, box).delta;
        if (delta < least) least = delta, best = code;
        return delta < kInfinity;
    };
    if (forest.has_sets[f]) {
        for_cells(forest, box, f, look);
        return best;
    }
    const std::int32_t from = std::clamp(home[f], box.low[f], box.high[f]);
    for (std::int32_t code = from; code <= box.high[f] && !look(code); ++code) {}
    for (std::int32_t code = from - 1; code >= box.low[f] && !look(code); --code) {}
    return best;
}

// Costs rise away from home, so in a range it is the cell next to home; if that one is empty, the
// one it stands for is either in the box or there is none.
std::int32_t Choices::closest(std::int32_t f, const Box& box) const {
    if (home[f] == kMissing) return kMissing;
    if (box.is_cut(f)) return closest_cut(f, box);
    if (forest.has_sets[f]) {
        for (std::int32_t i = at(f, 0); i < at(f, forest.n_codes(f)); ++i)
            if (box.has(forest, f, by_cost[i])) return by_cost[i];
        return kNone;
    }
    const std::int32_t code = next[at(f, std::clamp(home[f], box.low[f], box.high[f]))];
    return code >= box.low[f] && code <= box.high[f] ? code : kNone;
}

}  // namespace treefocus
