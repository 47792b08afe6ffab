// What a row's search may spend, and has spent.
//
// Work is counted in steps: about a nanosecond each on a machine of 2026, but counted, not
// measured, so that the same question ends at the same place on every machine. Only a limit in
// seconds looks at the clock.
#pragma once

#include <chrono>

#include "treefocus/exact.hpp"
#include "treefocus/parallel.hpp"

namespace treefocus {

class Work {
public:
    Work(const Limits& limits, const Control& control, std::int64_t boxes_, std::int64_t steps_)
        : boxes(boxes_), steps(steps_), limits_(limits), control_(control), began_(Clock::now()) {}

    std::int64_t boxes = 0;
    std::int64_t steps = 0;
    bool is_out = false;  // a limit was met

    // Looks whether a limit is met: the clock, and whether somebody asks to stop, once in so many
    // boxes, for a box takes a microsecond or two.
    bool is_up() {
        constexpr std::int64_t kBoxesPerLook = 64;
        if (is_out) return true;
        if (limits_.nodes > 0 && boxes >= limits_.nodes) return is_out = true;
        if (limits_.steps > 0 && steps >= limits_.steps) return is_out = true;
        return boxes % kBoxesPerLook == 0 && is_late() && (is_out = true);
    }
    // A part of the row's work, on whichever thread: it begins where all of it is now.
    void begin(const Work& all) {
        boxes = all.boxes;
        steps = all.steps;
        is_out = false;
    }
    // What a part has spent is spent.
    void take(const Work& part) {
        boxes = part.boxes;
        steps = part.steps;
        is_out = part.is_out;
    }
    // Whether so much more is within the limits that are counted.
    bool has_room(std::int64_t more_boxes, std::int64_t more_steps) const {
        return (limits_.nodes == 0 || boxes + more_boxes <= limits_.nodes) &&
               (limits_.steps == 0 || steps + more_steps <= limits_.steps);
    }
    bool is_late() const {
        return control_.stop ||
               (limits_.seconds < kInfinity &&
                std::chrono::duration<double>(Clock::now() - began_).count() > limits_.seconds);
    }

private:
    using Clock = std::chrono::steady_clock;
    const Limits& limits_;
    const Control& control_;
    Clock::time_point began_;
};

}  // namespace treefocus
