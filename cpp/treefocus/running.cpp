// Wishes and slots move together: a slot always has what the tree's present wish asks. A slot
// that is asked for nothing holds every code, so that no range lies beyond it.
#include "treefocus/running.hpp"

#include <algorithm>
#include <limits>

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
      high_(crop.n_slots(), kHighest),
      has_sets_(crop.whole->n_sets() > 0) {
    // The slots of trees that the test does not ask are asked for nothing, and stay so.
    const bool is_of_all = !test || test->end_tree - test->first_tree == crop.n_trees();
    const std::int32_t first = is_of_all ? 0 : test->first_tree,
                       end = is_of_all ? crop.n_trees() : test->end_tree;
    if (!is_of_all) {
        std::copy(crop.tree_start.begin(), crop.tree_start.end() - 1, position_.begin());
        list_slots(first, end);
    }
    for (std::int32_t tree = first; tree < end; ++tree) {
        // Every tree of the crop has a leaf that the box reaches.
        const std::int32_t at = best_in(tree, kInfinity, box);
        position_[tree] = at;
        place(tree, at);
        total += best_of(tree);
    }
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

// The tree's best leaf in a box, -1 if there is none; no leaf there is worth more than `most`. Of
// two sides that may have as good a leaf the left one is looked at first.
std::int32_t Running::best_in(std::int32_t tree, double most, const Box& box) {
    const Crop& crop = *crop_;
    const std::vector<double>& of_node = ranking_->most;
    std::int32_t best = -1;
    double worth = -kInfinity;
    stack_.clear();
    stack_.push_back(crop.root[tree]);
    while (!stack_.empty() && worth < most) {
        std::int32_t node = stack_.back();
        stack_.pop_back();
        while (of_node[node] > worth) {
            const Crop::Turn& at = crop.turn[node];
            ++n_looks;
            if (at.feature < 0) {
                // Sets that meet the box one by one may not meet it together.
                if (has_sets_ && !crop.is_reachable(at.split, box)) break;
                best = at.split;
                worth = of_node[node];
                break;
            }
            const bool is_left = crop.goes_left(at, box);
            if (is_left && crop.goes_right(at, box)) {
                const bool is_left_first = of_node[node + 1] >= of_node[at.right];
                stack_.push_back(is_left_first ? at.right : node + 1);
                node = is_left_first ? node + 1 : at.right;
            } else {
                node = is_left ? node + 1 : at.right;
            }
        }
    }
    return best;
}

void Running::move_down(std::int32_t tree, const Box& box) {
    const double before = best_of(tree);
    const std::int32_t at = best_in(tree, before, box);
    // A tree without a leaf: those that it had here were left out of the crop, for no answer has
    // them. The box is done, and the wish may stay.
    if (at < 0) {
        total = -kInfinity;
        return;
    }
    place(tree, at);
    total += best_of(tree) - before;
}

// Only the wish and its slots; the total comes back with Position::undo, to the last bit.
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
