// What a box leaves of the forest.
//
// A search below a limit begins in a box that the budget has narrowed. Of a deep forest such a box
// reaches a few leaves in a hundred, and most sides of these hold all of the box and cannot be
// lost. The crop has the leaves that are reached and the sides that count, once for the whole
// search: everything inside works on it, at the cost of what is left and not of what the forest
// has.
#pragma once

#include <utility>
#include <vector>

#include "treefocus/box.hpp"
#include "treefocus/goal.hpp"

namespace treefocus {

struct Crop {
    // Of a box: the leaves that some point of it reaches, and their sides that do not hold all of
    // it. A leaf is reached from a box inside this one if and only if its sides here meet that box.
    void fit(const Choices& choices, const LeafBoxes& boxes, const Box& box);

    // Leaves out what is not marked (n_open,), and what a box inside does not reach. False if a
    // tree has no leaf left.
    bool keep(const std::vector<std::uint8_t>& is_kept, const Box& box);

    std::vector<std::int32_t> leaf;        // (n_open,) the forest's numbers, tree after tree
    std::vector<std::int32_t> tree_start;  // (n_trees + 1,) into leaf
    std::vector<std::int32_t> start;       // (n_open + 1,) a leaf's sides
    std::vector<Side> side;
    std::vector<std::int32_t> slot_start;  // (d + 1,) a slot per feature and tree that splits on it
    std::vector<std::int32_t> slot_tree, slot_feature;  // (n_slots,)
    std::vector<std::int32_t> slot;                     // (n_sides,)
    // The trees without the nodes that the box decides, in pre-order: a left child is the next
    // node.
    struct Turn {
        std::int32_t feature;  // -1 at a leaf
        std::int32_t split;  // the last code that goes left, or kSet + the forest's set; of a leaf
                             // its place here, or -1 if it was left out
        std::int32_t right;
    };
    std::vector<Turn> turn;
    std::vector<std::int32_t> root;    // (n_trees,) into turn
    const LeafBoxes* whole = nullptr;  // the sets of cells that sides name
    const Forest* forest = nullptr;

    std::int32_t n_open() const { return static_cast<std::int32_t>(leaf.size()); }
    std::int32_t n_slots() const { return static_cast<std::int32_t>(slot_tree.size()); }
    std::int32_t n_turns() const { return static_cast<std::int32_t>(turn.size()); }
    std::int32_t n_trees() const { return static_cast<std::int32_t>(tree_start.size()) - 1; }
    // Where the nodes of the trees before this one end.
    std::int32_t turn_start(std::int32_t tree) const {
        return tree == n_trees() ? n_turns() : root[tree];
    }

    // Which sides of a node some point of a box goes to.
    bool goes_left(const Turn& at, const Box& box) const {
        return at.split >= kSet ? meets_set(at, box, true) : box.low[at.feature] <= at.split;
    }
    bool goes_right(const Turn& at, const Box& box) const {
        return at.split >= kSet ? meets_set(at, box, false) : box.high[at.feature] > at.split;
    }

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
    bool meets_set(const Turn& at, const Box& box, bool is_left) const;
    std::int32_t add_leaf(const Choices& choices, const Box& box, std::int32_t number);
    void cut_turns(const Box& box);
    bool holds_all(const Side& one, const Box& box) const;
    void number_slots();
    std::vector<std::int32_t> place_;
    std::vector<std::pair<std::int32_t, std::int32_t>>
        stack_;  // a node, and the one it is right of
    std::vector<Turn> turns_;
};

// Weights of a crop's leaves, and the largest below every node: of some trees in a row alone, or
// many models that have to agree would cost the square of their number.
struct Ranking {
    std::vector<double> weight;  // of the leaves from first_open on
    std::vector<double> most;    // of the nodes from first_turn on
    std::int32_t first_open = 0, first_turn = 0;
    // A test's own weights, of the trees that it asks.
    void take(const ScoreTest& test, const Crop& crop);
    // From the weights to the largest of them.
    void finish(const Crop& crop, std::int32_t first_tree, std::int32_t end_tree);
};

}  // namespace treefocus
