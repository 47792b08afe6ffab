// What a box leaves of the forest.
//
// A search below a limit begins in a box that the budget has narrowed. Of a deep forest such a box
// reaches a few leaves in a hundred, and most sides of these hold all of the box and cannot be
// lost. The crop has the leaves that are reached and the sides that count, once for the whole
// search: everything inside works on it, at the cost of what is left and not of what the forest
// has.
#pragma once

#include <vector>

#include "treefocus/box.hpp"
#include "treefocus/goal.hpp"

namespace treefocus {

struct Crop {
    // Of a box: the leaves that some point of it reaches, and their sides that do not hold all of
    // it. A leaf is reached from a box inside this one if and only if its sides here meet that box.
    void fit(const Choices& choices, const LeafBoxes& boxes, const Box& box);

    std::vector<std::int32_t> leaf;        // (n_open,) the forest's numbers, tree after tree
    std::vector<std::int32_t> tree_start;  // (n_trees + 1,) into leaf
    std::vector<std::int32_t> start;       // (n_open + 1,) a leaf's sides
    std::vector<Side> side;
    std::vector<std::int32_t> slot_start;  // (d + 1,) a slot per feature and tree that splits on it
    std::vector<std::int32_t> slot_tree, slot_feature;  // (n_slots,)
    std::vector<std::int32_t> slot;                     // (n_sides,)
    const LeafBoxes* whole = nullptr;                   // the sets of cells that sides name
    const Forest* forest = nullptr;

    std::int32_t n_open() const { return static_cast<std::int32_t>(leaf.size()); }
    std::int32_t n_slots() const { return static_cast<std::int32_t>(slot_tree.size()); }
    std::int32_t n_trees() const { return static_cast<std::int32_t>(tree_start.size()) - 1; }

    // Whether a box inside the crop's reaches an open leaf.
    bool is_reachable(std::int32_t open, const Box& box) const {
        for (std::int32_t i = start[open]; i < start[open + 1]; ++i) {
            const Side& one = side[i];
            if (one.low > box.high[one.feature] || one.high < box.low[one.feature])
                if (!one.is_set() || !whole->meets(*forest, one, box)) return false;
        }
        return true;
    }

private:
    void add_leaf(const Choices& choices, const Box& box, std::int32_t number);
    void number_slots();
    std::vector<std::int32_t> stack_, place_;
};

// Weights of a crop's leaves, and each tree's leaves from the largest weight down.
struct Ranking {
    std::vector<double> weight;       // (n_open,)
    std::vector<std::int32_t> order;  // (n_open,) places in the crop, tree after tree
    // A test's own weights.
    void take(const ScoreTest& test, const Crop& crop);
    void sort(const Crop& crop) { sort(crop, 0, crop.n_trees()); }
    void sort(const Crop& crop, std::int32_t first_tree, std::int32_t end_tree);
};

}  // namespace treefocus
