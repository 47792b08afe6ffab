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
    // The trees that it asks; no others have a wish.
    std::int32_t first_tree() const { return first_tree_; }
    std::int32_t end_tree() const {
        return first_tree_ + static_cast<std::int32_t>(position_.size());
    }

    // The weight of a tree's best leaf in reach.
    double best_of(std::int32_t tree) const {
        return ranking_->weight[wish(tree) - ranking_->first_open];
    }

    // After feature f of the box has shrunk; note(tree, position) tells where a pointer stood
    // before.
    template <class Note>
    void follow(std::int32_t f, const Box& box, const Note& note) {
        n_looks += (slot_start_[f + 1] - slot_start_[f]) / kBlock;
        for_slots_beyond(f, box.low[f], box.high[f], [&](std::int32_t slot) {
            const std::int32_t tree = tree_of(f, slot), before = wish(tree);
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
            visit(tree_of(f, slot), low_[slot], high_[slot]);
        });
    }

private:
    static constexpr std::int32_t kBlock = 16;

    // The slots of a feature whose range misses low..high. Most do not, so they are looked at in
    // blocks.
    template <class Visit>
    void for_slots_beyond(std::int32_t f, std::int32_t low, std::int32_t high,
                          const Visit& visit) const {
        const std::int32_t end = slot_start_[f + 1];
        for (std::int32_t first = slot_start_[f]; first < end; first += kBlock) {
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

    std::int32_t tree_of(std::int32_t f, std::int32_t slot) const {
        return crop_->slot_tree[slot + skipped_[f]];
    }
    std::int32_t wish(std::int32_t tree) const { return position_[tree - first_tree_]; }
    std::int32_t best_in(std::int32_t tree, double most, const Box& box);
    void move_down(std::int32_t tree, const Box& box);
    void place(std::int32_t tree, std::int32_t position);
    void make_slots();
    const Ranking* ranking_ = nullptr;
    const ScoreTest* test_ = nullptr;
    const Crop* crop_ = nullptr;
    std::int32_t first_tree_ = 0;
    std::vector<std::int32_t> position_;  // (n trees asked,) the wish, a leaf of the crop
    std::vector<std::int32_t> stack_;     // of nodes that are still to be looked at
    // The slots of the trees asked alone, or many models that have to agree would cost the square
    // of their number: what the wish asks of the feature; everything if nothing.
    std::vector<std::int32_t> low_, high_;
    std::vector<std::int32_t> slot_start_;  // (d + 1,)
    std::vector<std::int32_t> skipped_;     // (d,) a slot's number here, plus this, is the crop's
    bool has_sets_ = false;                 // in the forest
};

}  // namespace treefocus
