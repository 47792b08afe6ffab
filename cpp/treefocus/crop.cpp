// Trees are walked from the root along the ways that the box leaves open, so that a crop costs what
// it holds. For ranges such a walk ends at exactly the leaves whose boxes meet the box: each turn
// asks one end of the leaf's range, and an interval meets another if both of its ends allow it.
// Sets are looked at once more at the leaf.
#include "treefocus/crop.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace treefocus {

void Crop::fit(const Choices& choices, const LeafBoxes& boxes, const Box& box) {
    forest = &choices.forest;
    whole = &boxes;
    leaf.clear(), side.clear(), turn.clear(), root.clear();
    tree_start.assign(1, 0);
    start.assign(1, 0);
    for (std::int32_t tree = 0; tree < forest->n_trees(); ++tree) {
        root.push_back(n_turns());
        stack_.assign(1, {forest->tree_start[tree], -1});
        while (!stack_.empty()) {
            auto [node, parent] = stack_.back();
            stack_.pop_back();
            if (parent >= 0) turn[parent].right = n_turns();
            while (true) {
                const std::int32_t f = forest->feature[node];
                if (f < 0) {
                    const std::int32_t first = forest->first_leaf[node];
                    turn.push_back({-1, add_leaf(choices, box, first), -1});
                    break;
                }
                const bool is_missing = choices.home[f] == kMissing,
                           is_set = forest->code_split[node] == kBySet;
                const Turn at{
                    f, is_set ? kSet + forest->set_of_node[node] : forest->code_split[node], -1};
                const bool is_left =
                    is_missing ? forest->default_left[node] != 0 : goes_left(at, box);
                const bool is_right = is_missing ? !is_left : goes_right(at, box);
                if (is_left && is_right) {
                    stack_.push_back({forest->right[node], n_turns()});
                    turn.push_back(at);
                }
                node = is_left ? node + 1 : forest->right[node];
            }
        }
        tree_start.push_back(n_open());
    }
    number_slots();
}

bool Crop::meets_set(const Turn& at, const Box& box, bool is_left) const {
    const std::uint64_t *cells = box.cells.data() + forest->word_start[at.feature],
                        *left = forest->sets.data() +
                                static_cast<std::size_t>(at.split - kSet) * forest->n_words;
    for (std::int32_t w = 0; w < forest->n_words; ++w)
        if (cells[w] & (is_left ? left[w] : ~left[w])) return true;
    return false;
}

// Whether a side holds all of a box, and cannot be lost inside it.
bool Crop::holds_all(const Side& one, const Box& box) const {
    const std::int32_t f = one.feature;
    if (!one.is_set()) return one.low <= box.low[f] && one.high >= box.high[f];
    for (std::int32_t w = 0; w < forest->n_words; ++w)
        if (box.cells[forest->word_start[f] + w] & ~whole->words(one.set())[w]) return false;
    return true;
}

// Its place in the crop, -1 if a set on its way does not meet the box.
std::int32_t Crop::add_leaf(const Choices& choices, const Box& box, std::int32_t number) {
    const std::size_t before = side.size();
    for (std::int32_t i = whole->start[number]; i < whole->start[number + 1]; ++i) {
        const Side& one = whole->side[i];
        if (choices.home[one.feature] == kMissing) continue;  // the walk has followed it
        if (one.is_set() && !whole->meets(*forest, one, box)) {
            side.resize(before);
            return -1;
        }
        if (!holds_all(one, box)) side.push_back(one);
    }
    leaf.push_back(number);
    start.push_back(static_cast<std::int32_t>(side.size()));
    return n_open() - 1;
}

// In place: what is written never gets ahead of what is read.
bool Crop::keep(const std::vector<std::uint8_t>& is_kept, const Box& box) {
    std::int32_t n = 0, n_sides = 0, first = 0;
    bool is_whole = true;
    place_.assign(n_open(), -1);
    for (std::int32_t tree = 0; tree < n_trees(); ++tree) {
        const std::int32_t end = tree_start[tree + 1];
        for (std::int32_t i = std::exchange(first, end); i < end; ++i) {
            if (!is_kept[i] || !is_reachable(i, box)) continue;
            const std::int32_t from = start[i], to = start[i + 1];
            start[n] = n_sides;
            place_[i] = n;
            leaf[n++] = leaf[i];
            for (std::int32_t k = from; k < to; ++k)
                if (!holds_all(side[k], box)) side[n_sides++] = side[k];
        }
        is_whole = is_whole && n > tree_start[tree];
        tree_start[tree + 1] = n;
    }
    leaf.resize(n), side.resize(n_sides), start.resize(n + 1);
    start[n] = n_sides;
    if (!is_whole) return false;
    cut_turns(box);
    number_slots();
    return true;
}

// The same walk through what there is. A node whose leaves on one side were left out stays, for
// there are points of the box on that side.
void Crop::cut_turns(const Box& box) {
    turns_.swap(turn);
    turn.clear();
    for (std::int32_t& at_root : root) {
        stack_.assign(1, {std::exchange(at_root, n_turns()), -1});
        while (!stack_.empty()) {
            auto [node, parent] = stack_.back();
            stack_.pop_back();
            if (parent >= 0) turn[parent].right = n_turns();
            while (turns_[node].feature >= 0) {
                const Turn& at = turns_[node];
                const bool is_left = goes_left(at, box), is_right = goes_right(at, box);
                if (is_left && is_right) {
                    stack_.push_back({at.right, n_turns()});
                    turn.push_back(at);
                }
                node = is_left ? node + 1 : at.right;
            }
            const std::int32_t open = turns_[node].split;
            turn.push_back({-1, open < 0 ? -1 : place_[open], -1});
        }
    }
}

// Trees come in order, so that a feature's newest slot is this tree's, or this tree has none yet.
// Slots are counted, then numbered from each feature's first on.
void Crop::number_slots() {
    const std::int32_t d = forest->n_features;
    slot_start.assign(d + 1, 0);
    slot.resize(side.size());
    for (const bool is_counting : {true, false}) {
        place_.assign(d, -1);
        for (std::int32_t tree = 0; tree < n_trees(); ++tree)
            for (std::int32_t i = start[tree_start[tree]]; i < start[tree_start[tree + 1]]; ++i) {
                const std::int32_t f = side[i].feature;
                if (is_counting) {
                    if (place_[f] != tree) ++slot_start[f + 1], place_[f] = tree;
                    continue;
                }
                // Filled from the front: the next free slot of the feature is slot_start[f].
                if (place_[f] < 0 || slot_tree[place_[f]] != tree) {
                    place_[f] = slot_start[f]++;
                    slot_tree[place_[f]] = tree;
                    slot_feature[place_[f]] = f;
                }
                slot[i] = place_[f];
            }
        if (!is_counting) break;
        std::partial_sum(slot_start.begin(), slot_start.end(), slot_start.begin());
        slot_tree.assign(slot_start.back(), -1);
        slot_feature.resize(slot_start.back());
    }
    // Each start has moved to the next feature's: back by one.
    std::copy_backward(slot_start.begin(), slot_start.end() - 1, slot_start.end());
    slot_start[0] = 0;
}

void Ranking::take(const ScoreTest& test, const Crop& crop) {
    first_open = crop.tree_start[test.first_tree];
    weight.resize(crop.tree_start[test.end_tree] - first_open);
    for (std::size_t i = 0; i < weight.size(); ++i)
        weight[i] = test.weight[crop.leaf[first_open + i]];
    finish(crop, test.first_tree, test.end_tree);
}

// Children stand behind their parents.
void Ranking::finish(const Crop& crop, std::int32_t first_tree, std::int32_t end_tree) {
    first_turn = crop.turn_start(first_tree);
    most.resize(crop.turn_start(end_tree) - first_turn);
    for (std::size_t i = most.size(); i-- > 0;) {
        const Crop::Turn& at = crop.turn[first_turn + i];
        if (at.feature >= 0) most[i] = std::max(most[i + 1], most[at.right - first_turn]);
        else most[i] = at.split < 0 ? -kInfinity : weight[at.split - first_open];
    }
}

}  // namespace treefocus
