// Where the search splits a box, and what lies on either side.
//
// A box whose closest point would do, but for a rule or for rounding, is split there. Any other is
// split at the threshold, or the set, that most score lies behind: the near side keeps the closest
// point and loses the leaves behind the cut, the far side pays for the step.
#pragma once

#include <vector>

#include "treefocus/position.hpp"
#include "treefocus/proof.hpp"

namespace treefocus {

class Brancher {
public:
    explicit Brancher(Position& at) : at_(at), pull_set_(at.shared.boxes.n_sets()) {}

    // The best cut; one of no feature if nothing is left to split.
    Cut choose();

    // Whether a cut leaves something on both sides, with the closest point on the near one, and the
    // trail is not too long.
    bool can_split(const Cut& cut) const;

    // Writes a cut down.
    void note(const Cut& cut, ProofLog& log) const {
        log.split(cut, [&](std::int32_t code) { return is_far_cell(cut, code); });
    }

    // Brings the box to one side of a cut.
    void take_side(const Cut& cut, bool is_far);

private:
    struct Pull {
        std::int32_t code;
        double gain;
    };
    Cut mend();                // where the closest point would do, but for a rule or for rounding
    Cut round(bool anywhere);  // beside a value that was rounded, or beside any
    Cut any_cut();             // scores within rounding of each other leave no better guide

    // The cuts of a feature, the farthest first on either side, so that a running sum is the gain
    // that lies behind.
    void weigh_thresholds(const Running& one, std::int32_t f);
    void weigh_sets(const Running& one, std::int32_t f);
    void weigh(const Cut& cut, double behind);
    double cost_of(const Cut& cut) const;  // what the far side costs at least

    bool can_split_values(const Cut& cut) const;
    void take_values(const Cut& cut, bool is_far);
    bool is_far_cell(const Cut& cut, std::int32_t code) const;

    static constexpr std::size_t kMostValueSteps = 2000;  // inside each other, see round
    static constexpr std::size_t kLongestTrail = 10'000'000;
    // Of the limit: a step that costs less counts as this.
    static constexpr double kLeastStep = 1e-3;

    Position& at_;
    Cut best_;
    double best_score_ = -1.0;
    std::vector<double> gain_, pull_set_;
    std::vector<Pull> above_, below_;
    std::vector<std::int32_t> touched_;
};

}  // namespace treefocus
