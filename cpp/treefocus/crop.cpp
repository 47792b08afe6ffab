// Trees are walked from the root along the ways that the box leaves open, so that a crop costs what
// it holds. For ranges such a walk ends at exactly the leaves whose boxes meet the box: each turn
// asks one end of the leaf's range, and an interval meets another if both of its ends allow it.
// Sets are looked at once more at the leaf.
#include "treefocus/crop.hpp"

#include <algorithm>
#include <numeric>

namespace treefocus {

void Crop::fit(const Choices& choices, const LeafBoxes& boxes, const Box& box) {
    forest = &choices.forest;
    whole = &boxes;
    leaf.clear(), side.clear();
    tree_start.assign(1, 0);
    start.assign(1, 0);
    for (std::int32_t tree = 0; tree < forest->n_trees(); ++tree) {
        stack_.assign(1, forest->tree_start[tree]);
        while (!stack_.empty()) {
            const std::int32_t node = stack_.back(), f = forest->feature[node];
            stack_.pop_back();
            if (f < 0) {
                add_leaf(choices, box, forest->first_leaf[node]);
                continue;
            }
            const bool is_missing = choices.home[f] == kMissing,
                       is_set = forest->code_split[node] == kBySet;
            const bool is_left = is_missing ? forest->default_left[node] != 0
                                            : is_set || box.low[f] <= forest->code_split[node];
            const bool is_right =
                is_missing ? !is_left : is_set || box.high[f] > forest->code_split[node];
            // The left side is looked at first, so that leaves come in their order.
            if (is_right) stack_.push_back(forest->right[node]);
            if (is_left) stack_.push_back(node + 1);
        }
        tree_start.push_back(n_open());
    }
    number_slots();
}

void Crop::add_leaf(const Choices& choices, const Box& box, std::int32_t number) {
    const std::size_t before = side.size();
    for (std::int32_t i = whole->start[number]; i < whole->start[number + 1]; ++i) {
        const Side& one = whole->side[i];
        const std::int32_t f = one.feature;
        if (choices.home[f] == kMissing) continue;  // the walk has followed it
        if (!one.is_set()) {
            if (one.low > box.low[f] || one.high < box.high[f]) side.push_back(one);
            continue;
        }
        bool holds_all = true, is_met = false;
        for (std::int32_t w = 0; w < forest->n_words; ++w) {
            const std::uint64_t here = box.cells[forest->word_start[f] + w],
                                own = whole->words(one.set())[w];
            holds_all = holds_all && !(here & ~own);
            is_met = is_met || (here & own);
        }
        if (!is_met) {
            side.resize(before);
            return;
        }
        if (!holds_all) side.push_back(one);
    }
    leaf.push_back(number);
    start.push_back(static_cast<std::int32_t>(side.size()));
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
    weight.resize(crop.leaf.size());
    for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = test.weight[crop.leaf[i]];
    sort(crop, test.first_tree, test.end_tree);
}

// Ties go by number, so that the same forest is searched in the same order everywhere.
void Ranking::sort(const Crop& crop, std::int32_t first_tree, std::int32_t end_tree) {
    order.resize(weight.size());
    std::iota(order.begin(), order.end(), 0);
    for (std::int32_t tree = first_tree; tree < end_tree; ++tree)
        std::sort(order.begin() + crop.tree_start[tree], order.begin() + crop.tree_start[tree + 1],
                  [&](std::int32_t a, std::int32_t b) {
                      return weight[a] != weight[b] ? weight[a] > weight[b] : a < b;
                  });
}

}  // namespace treefocus
