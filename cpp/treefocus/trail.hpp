// The box that the search is in, and the way back: every change is noted, and the last one is
// undone first.
#pragma once

#include <vector>

#include "treefocus/box.hpp"

namespace treefocus {

class Trail {
public:
    explicit Trail(const Forest& forest) : forest_(forest) {}

    // Starts anew in a box; with_values: values inside cells can be left out, too.
    void start(const Box& whole, bool with_values);
    const Box& box() const { return box_; }

    void set_range(std::int32_t f, std::int32_t low, std::int32_t high);

    // Keeps the cells of a feature with sets for which keep(code).
    template <class Keep>
    void set_cells(std::int32_t f, const Keep& keep) {
        std::uint64_t* words = box_.cells.data() + forest_.word_start[f];
        note(Kept::range, f);
        words_.insert(words_.end(), words, words + forest_.n_words);
        for_cells(forest_, box_, f, [&](std::int32_t code) {
            if (!keep(code)) words[code / 64] &= ~(std::uint64_t{1} << (code % 64));
        });
        note_changed(f);
    }

    // Leaves out numbers below low and above high; moves: the feature counts as changed from here
    // on.
    void set_values(std::int32_t f, double low, double high, bool moves);

    // Leaves out points whose length along the row is below low or above high.
    void set_slice(double low, double high);

    // How many changes there are; undo takes back all after so many.
    std::size_t length() const { return steps_.size(); }
    std::size_t n_value_steps() const { return values_.size(); }
    void undo(std::size_t length);

    // The features that have changed since somebody last looked.
    const std::vector<std::int32_t>& changed() const { return changed_; }
    void forget_changed() { changed_.clear(); }

private:
    enum class Kept : std::uint8_t { range, values, slice };
    // low and high as they were before the step; what else it changed is on one of the stacks
    // below.
    struct Step {
        Kept kept;
        std::int32_t feature, low, high;
    };
    struct Values {
        double low, high;
        std::uint8_t moves;
    };
    void note(Kept kept, std::int32_t f) { steps_.push_back({kept, f, box_.low[f], box_.high[f]}); }
    void note_changed(std::int32_t f) {
        if (changed_.empty() || changed_.back() != f) changed_.push_back(f);
    }
    const Forest& forest_;
    Box box_;
    std::vector<Step> steps_;
    std::vector<std::uint64_t> words_;  // of steps that changed a set of cells: the cells before
    std::vector<Values> values_;        // of steps that changed values: those before
    std::vector<Ends> slices_;          // of steps that changed the slice: the one before
    std::vector<std::int32_t> changed_;
};

}  // namespace treefocus
