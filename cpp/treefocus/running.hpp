// A score test while a box shrinks: every tree's best leaf that the box still reaches, its wish,
// and their sum.
//
// A tree that loses its best leaf looks for the next below its nodes, from the root on: only where
// the box goes, and only where a leaf may be better than the best found. The range that a wish asks
// of a feature stands in a slot, the slots of a feature side by side: a feature that shrinks finds
// the wishes it takes away by comparing two numbers each.
#pragma once

#include <vector>

#include "treefocus/crop.hpp"
#include "treefocus/goal.hpp"

namespace treefocus {

class Running {
public:
    Running() = default;
    // Leaf weights by the ranking, for boxes inside the crop's; both must outlive this. test: the
    // plain test whose weights these are, or null.
    Running(const Ranking& ranking, const ScoreTest* test, double need, const Crop& crop,
            const Box& box);

    double need = 0.0, total = 0.0;
    std::int64_t n_looks = 0;  // leaves and blocks of slots that were looked at
    const ScoreTest& test() const { return *test_; }
    std::int32_t n_trees() const { return static_cast<std::int32_t>(position_.size()); }

    // The weight of a tree's best leaf in reach.
    double best_of(std::int32_t tree) const { return ranking_->weight[wish(tree)]; }

    // After feature f of the box has shrunk; note(tree, position) tells where a pointer stood
    // before.
    template <class Note>
    void follow(std::int32_t f, const Box& box, const Note& note) {
        n_looks += (slot_end(f) - slot_begin(f)) / kBlock;
        for_slots_beyond(f, box.low[f], box.high[f], [&](std::int32_t slot) {
            const std::int32_t tree = crop_->slot_tree[slot], before = position_[tree];
            if (low_[slot] >= kSet && crop_->is_reachable(wish(tree), box))
                return;  // the box meets the set
            note(tree, before);
            move_down(tree, box);
        });
    }
    void put_back(std::int32_t tree, std::int32_t position);

    // Calls visit(slot, low, high) for the slots of a feature whose range does not hold the code;
    // any slot of a set.
    template <class Visit>
    void for_wishes_elsewhere(std::int32_t f, std::int32_t code, const Visit& visit) const {
        for_slots_beyond(f, code, code, [&](std::int32_t slot) {
            visit(crop_->slot_tree[slot], low_[slot], high_[slot]);
        });
    }

private:
    static constexpr std::int32_t kBlock = 16;

    // The slots of a feature whose range misses low..high. Most do not, so they are looked at in
    // blocks.
    template <class Visit>
    void for_slots_beyond(std::int32_t f, std::int32_t low, std::int32_t high,
                          const Visit& visit) const {
        const std::int32_t end = slot_end(f);
        for (std::int32_t first = slot_begin(f); first < end; first += kBlock) {
            // Without a branch inside, so that the compiler compares a block at once.
            std::int32_t any = 0;
            if (first + kBlock <= end)
                for (std::int32_t i = 0; i < kBlock; ++i)
                    any |= (low_[first + i] > high) | (high_[first + i] < low);
            else any = 1;
            if (!any) continue;
            for (std::int32_t slot = first; slot < std::min(first + kBlock, end); ++slot)
                if (low_[slot] > high || high_[slot] < low) visit(slot);
        }
    }

    // The slots of a feature, of the trees that the test asks.
    std::int32_t slot_begin(std::int32_t f) const {
        return slots_.empty() ? crop_->slot_start[f] : slots_[2 * f];
    }
    std::int32_t slot_end(std::int32_t f) const {
        return slots_.empty() ? crop_->slot_start[f + 1] : slots_[2 * f + 1];
    }

    std::int32_t wish(std::int32_t tree) const { return position_[tree]; }
    std::int32_t best_in(std::int32_t tree, double most, const Box& box);
    void move_down(std::int32_t tree, const Box& box);
    void place(std::int32_t tree, std::int32_t position);
    void list_slots(std::int32_t first_tree, std::int32_t end_tree);
    const Ranking* ranking_ = nullptr;
    const ScoreTest* test_ = nullptr;
    const Crop* crop_ = nullptr;
    std::vector<std::int32_t> position_;  // (n_trees,) the wish, a leaf of the crop
    std::vector<std::int32_t> stack_;     // of nodes that are still to be looked at
    // (n_slots,) what the wish asks of the feature; everything if nothing
    std::vector<std::int32_t> low_, high_;
    bool has_sets_ = false;            // in the forest
    std::vector<std::int32_t> slots_;  // (2 d,) first and end a feature; empty for all trees
};

}  // namespace treefocus
