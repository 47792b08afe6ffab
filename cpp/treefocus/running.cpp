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
      first_tree_(test ? test->first_tree : 0),
      position_((test ? test->end_tree : crop.n_trees()) - first_tree_, -1),
      has_sets_(crop.whole->n_sets() > 0) {
    make_slots();
    for (std::int32_t tree = first_tree_; tree < end_tree(); ++tree) {
        // Every tree of the crop has a leaf that the box reaches.
        place(tree, best_in(tree, kInfinity, box));
        total += best_of(tree);
    }
}

// A feature's slots stand in the order of their trees, so that those of the trees asked are a run
// of them.
void Running::make_slots() {
    const std::size_t d = crop_->slot_start.size() - 1;
    const auto tree = crop_->slot_tree.begin();
    slot_start_.resize(d + 1);
    skipped_.resize(d);
    for (std::size_t f = 0; f < d; ++f) {
        const auto begin = tree + crop_->slot_start[f], end = tree + crop_->slot_start[f + 1];
        const auto first = std::lower_bound(begin, end, first_tree_);
        const auto last = std::lower_bound(first, end, end_tree());
        skipped_[f] = static_cast<std::int32_t>(first - tree) - slot_start_[f];
        slot_start_[f + 1] = slot_start_[f] + static_cast<std::int32_t>(last - first);
    }
    low_.assign(slot_start_[d], kLowest);
    high_.assign(slot_start_[d], kHighest);
}

// The tree's best leaf in a box, -1 if there is none; no leaf there is worth more than `most`. Of
// two sides that may have as good a leaf the left one is looked at first.
std::int32_t Running::best_in(std::int32_t tree, double most, const Box& box) {
    const Crop& crop = *crop_;
    const auto most_below = [&](std::int32_t node) {
        return ranking_->most[node - ranking_->first_turn];
    };
    std::int32_t best = -1;
    double worth = -kInfinity;
    stack_.clear();
    stack_.push_back(crop.root[tree]);
    while (!stack_.empty() && worth < most) {
        std::int32_t node = stack_.back();
        stack_.pop_back();
        while (most_below(node) > worth) {
            const Crop::Turn& at = crop.turn[node];
            ++n_looks;
            if (at.feature < 0) {
                // Sets that meet the box one by one may not meet it together.
                if (has_sets_ && !crop.is_reachable(at.split, box)) break;
                best = at.split;
                worth = most_below(node);
                break;
            }
            const bool is_left = crop.goes_left(at, box);
            if (is_left && crop.goes_right(at, box)) {
                const bool is_left_first = most_below(node + 1) >= most_below(at.right);
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
    std::int32_t& at = position_[tree - first_tree_];
    const Crop& crop = *crop_;
    const auto slot = [&](std::int32_t i) { return crop.slot[i] - skipped_[crop.side[i].feature]; };
    if (at >= 0)
        for (std::int32_t i = crop.start[at]; i < crop.start[at + 1]; ++i)
            low_[slot(i)] = kLowest, high_[slot(i)] = kHighest;
    at = position;
    for (std::int32_t i = crop.start[at]; i < crop.start[at + 1]; ++i)
        low_[slot(i)] = crop.side[i].low, high_[slot(i)] = crop.side[i].high;
}

}  // namespace treefocus
