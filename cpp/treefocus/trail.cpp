#include "treefocus/trail.hpp"

#include <algorithm>

namespace treefocus {

// The box of everything allowed is never changed itself; every run starts from a copy.
void Trail::start(const Box& whole, bool with_values) {
    box_ = whole;
    if (with_values) box_.bind_values(forest_.n_features);
    steps_.clear();
    words_.clear();
    values_.clear();
    slices_.clear();
    changed_.clear();
}

// A note per change, the same feature several times on the way down: undo needs them all in order.
void Trail::set_range(std::int32_t f, std::int32_t low, std::int32_t high) {
    note(Kept::range, f);
    box_.low[f] = low;
    box_.high[f] = high;
    note_changed(f);
}

// Values only ever shrink on the way down: the new ends meet the old ones. Not noted as changed,
// for score tests see cells only; who cuts values narrows the cells beside.
void Trail::set_values(std::int32_t f, double low, double high, bool moves) {
    note(Kept::values, f);
    values_.push_back({box_.value_low[f], box_.value_high[f], box_.moves[f]});
    box_.value_low[f] = std::max(box_.value_low[f], low);
    box_.value_high[f] = std::min(box_.value_high[f], high);
    box_.moves[f] = box_.moves[f] || moves;
}

// A slice belongs to no feature; scores do not see it.
void Trail::set_slice(double low, double high) {
    note(Kept::slice, 0);
    slices_.push_back({box_.slice_low, box_.slice_high});
    box_.slice_low = std::max(box_.slice_low, low);
    box_.slice_high = std::min(box_.slice_high, high);
}

// Stacks of steps, words, values and slices; a step says which of the others it has something on.
// Nothing is `changed` afterwards: pointers come back by their own notes.
void Trail::undo(std::size_t length) {
    while (steps_.size() > length) {
        const Step& step = steps_.back();
        const std::int32_t f = step.feature;
        if (step.kept == Kept::values) {
            box_.value_low[f] = values_.back().low;
            box_.value_high[f] = values_.back().high;
            box_.moves[f] = values_.back().moves;
            values_.pop_back();
        } else if (step.kept == Kept::slice) {
            box_.slice_low = slices_.back().low;
            box_.slice_high = slices_.back().high;
            slices_.pop_back();
        } else {
            box_.low[f] = step.low;
            box_.high[f] = step.high;
            if (forest_.has_sets[f]) {
                const auto from = words_.end() - forest_.n_words;
                std::copy(from, words_.end(), box_.cells.begin() + forest_.word_start[f]);
                words_.erase(from, words_.end());
            }
        }
        steps_.pop_back();
    }
    changed_.clear();
}

}  // namespace treefocus
