// Pointers and slots move together: a slot always has what the tree's present wish asks. A slot
// that is asked for nothing holds every code, so that no range lies beyond it.
#include "treefocus/running.hpp"

namespace treefocus {

namespace {

constexpr std::int32_t kLowest = std::numeric_limits<std::int32_t>::min(),
                       kHighest = std::numeric_limits<std::int32_t>::max();

}  // namespace

Running::Running(const ScoreTest& test, double need_, const LeafBoxes& boxes,
                 const Choices& choices, const Box& box)
    : need(need_),
      test_(&test),
      boxes_(&boxes),
      choices_(&choices),
      position_(choices.forest.n_trees()),
      low_(boxes.slot_tree.size(), kLowest),
      high_(boxes.slot_tree.size(), kHighest) {
    const Forest& forest = choices.forest;
    for (std::int32_t tree = 0; tree < forest.n_trees(); ++tree) {
        std::int32_t at = forest.first_leaf[forest.tree_start[tree]];
        // A box with a point in it reaches a leaf of every tree, so that this ends within the
        // tree's leaves.
        while (!choices.is_reachable(boxes, test.order[at], box)) ++at;
        position_[tree] = at;
        place(tree, at);
        total += test.weight[wish(tree)];
    }
}

// Leaves before the pointer were out of reach in a larger box already: only what is behind can be
// the best now.
void Running::move_down(std::int32_t tree, const Box& box) {
    const double before = test_->weight[wish(tree)];
    std::int32_t at = position_[tree];
    do ++at;
    while (!choices_->is_reachable(*boxes_, test_->order[at], box));
    place(tree, at);
    total += test_->weight[wish(tree)] - before;
}

// Only the pointer and its slots; the total comes back with Position::undo, to the last bit.
void Running::put_back(std::int32_t tree, std::int32_t position) {
    place(tree, position);
}

// Frees the slots of the old wish before it fills those of the new: the two can share features.
void Running::place(std::int32_t tree, std::int32_t position) {
    const std::int32_t old = wish(tree);
    for (std::int32_t i = boxes_->start[old]; i < boxes_->start[old + 1]; ++i)
        low_[boxes_->slot[i]] = kLowest, high_[boxes_->slot[i]] = kHighest;
    position_[tree] = position;
    const std::int32_t leaf = wish(tree);
    for (std::int32_t i = boxes_->start[leaf]; i < boxes_->start[leaf + 1]; ++i)
        low_[boxes_->slot[i]] = boxes_->side[i].low, high_[boxes_->slot[i]] = boxes_->side[i].high;
}

}  // namespace treefocus
