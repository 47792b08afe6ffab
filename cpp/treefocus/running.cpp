// Pointers and slots move together: a slot always has what the tree's present wish asks. A slot
// that is asked for nothing holds every code, so that no range lies beyond it.
#include "treefocus/running.hpp"

#include <algorithm>

namespace treefocus {

namespace {

constexpr std::int32_t kLowest = std::numeric_limits<std::int32_t>::min(),
                       kHighest = std::numeric_limits<std::int32_t>::max();

}  // namespace

Running::Running(const Ranking& ranking, const ScoreTest* test, double need_, const Crop& crop,
                 const Box& box)
    : need(need_),
      ranking_(&ranking),
      test_(test),
      crop_(&crop),
      position_(crop.n_trees()),
      low_(crop.n_slots(), kLowest),
      high_(crop.n_slots(), kHighest) {
    // The slots of trees that the test does not ask are asked for nothing, and stay so.
    const bool is_of_all = !test || test->end_tree - test->first_tree == crop.n_trees();
    const std::int32_t first = is_of_all ? 0 : test->first_tree,
                       end = is_of_all ? crop.n_trees() : test->end_tree;
    if (!is_of_all) {
        std::copy(crop.tree_start.begin(), crop.tree_start.end() - 1, position_.begin());
        list_slots(first, end);
    }
    for (std::int32_t tree = first; tree < end; ++tree) {
        std::int32_t at = crop.tree_start[tree];
        // A box with a point in it reaches a leaf of every tree, so that this ends within the
        // tree's leaves.
        while (!crop.is_reachable(ranking.order[at], box)) ++at;
        position_[tree] = at;
        place(tree, at);
        total += best_of(tree);
    }
    n_looks = end - first;
}

// A feature's slots stand in the order of their trees.
void Running::list_slots(std::int32_t first_tree, std::int32_t end_tree) {
    const auto tree = crop_->slot_tree.begin();
    for (std::size_t f = 0; f + 1 < crop_->slot_start.size(); ++f) {
        const auto begin = tree + crop_->slot_start[f], end = tree + crop_->slot_start[f + 1];
        slots_.push_back(
            static_cast<std::int32_t>(std::lower_bound(begin, end, first_tree) - tree));
        slots_.push_back(static_cast<std::int32_t>(std::lower_bound(begin, end, end_tree) - tree));
    }
}

// Leaves before the pointer were out of reach in a larger box already: only what is behind can be
// the best now.
void Running::move_down(std::int32_t tree, const Box& box) {
    const double before = best_of(tree);
    std::int32_t at = position_[tree];
    do ++at, ++n_looks;
    while (!crop_->is_reachable(ranking_->order[at], box));
    place(tree, at);
    total += best_of(tree) - before;
}

// Only the pointer and its slots; the total comes back with Position::undo, to the last bit.
void Running::put_back(std::int32_t tree, std::int32_t position) {
    place(tree, position);
}

// Frees the slots of the old wish before it fills those of the new: the two can share features.
void Running::place(std::int32_t tree, std::int32_t position) {
    const std::int32_t old = wish(tree);
    for (std::int32_t i = crop_->start[old]; i < crop_->start[old + 1]; ++i)
        low_[crop_->slot[i]] = kLowest, high_[crop_->slot[i]] = kHighest;
    position_[tree] = position;
    const std::int32_t leaf = wish(tree);
    for (std::int32_t i = crop_->start[leaf]; i < crop_->start[leaf + 1]; ++i)
        low_[crop_->slot[i]] = crop_->side[i].low, high_[crop_->slot[i]] = crop_->side[i].high;
}

}  // namespace treefocus
