// The priced bound: how little can an answer in this box cost?
//
// Put a price lambda on every missing unit of score, and let each feature's cost be paid in shares
// by the trees that split on it. Then every tree can choose its leaf alone, and for ANY price and
// ANY shares that add up to no more than the cost,
//     cost of an answer >= lambda * need + sum over trees of min over its reachable leaves of
//     (shares paid - lambda * weight).
// With several tests, as many as the wanted class has rivals, each has a price of its own, and
// lambda * need and lambda * weight are sums over the tests.
//
// The shares of feature f are functions of its cell c. They are improved feature by feature: with
// r_m(c) = the best tree m can do outside f if f is in cell c, the shares
// theta_m(c) = mean over m of q(c) - r_m(c), q(c) = cost(c) + sum of r_m(c), make all trees agree
// on what each cell is worth and never lower the bound (min-marginal averaging). The prices move
// along line searches in between.
//
// For ANY numbers r_m(c) those shares add up to the cost. So r is all that is kept of a box, in any
// precision, and is a start for every other box, larger or smaller, and under another limit: what
// it says of cells that are not there is left out, and what it does not say is 0.
//
// All of this works on the crop (crop.hpp): the leaves that the box reaches, and the cuts between
// them. The result is used twice: as a bound at once, and as leaf weights for all boxes inside this
// one, where the shares stay valid: a ranking like that of a plain test, checked at the same speed.
#pragma once

#include <functional>
#include <utility>

#include "treefocus/crop.hpp"

namespace treefocus {

class Price {
public:
    // What is kept of a box: prices, and r_m from each cut of an axis on.
    struct State {
        struct Axis {
            std::int32_t feature, tree, first;  // into from and outside; by feature, then tree
        };
        std::vector<double> lambda;  // a test
        std::vector<Axis> axis;
        std::vector<std::int32_t> from;
        std::vector<float> outside;
        double bytes() const;
    };

    // The bound for the box that the crop was made for; cost (n_cells,) is the additive cost of
    // each cell. Starts from another box's state, or from none. Stops early once the bound reaches
    // `limit`, or when it is late. 0, with nothing to export, where a cell costs infinitely much.
    double bound(const Choices& choices, const std::vector<double>& cost, const Box& box,
                 const Crop& crop, const Goal& goal, double limit, int sweeps, const State* around,
                 const std::function<bool()>& is_late);

    // More of the same, for the same box.
    double improve(double limit, int sweeps, const std::function<bool()>& is_late);

    // What of the box no answer cheaper than limit can be in, by the last bound: cells leave `box`,
    // a copy of it, and leaves of the crop that such an answer can reach are marked in is_kept
    // (n_open,). False if nothing is left.
    bool leave_out(double limit, Box& box, std::vector<std::uint8_t>& is_kept);

    // The same bound as a test for boxes inside: an answer cheaper than limit has sum of weight >=
    // constant - limit.
    void export_to(Ranking& ranking) const;
    double constant() const { return constant_; }
    double told() const { return told_; }                  // the last bound
    bool has_state() const { return told_ > -kInfinity; }  // there is something to export
    State state() const;

    // What was looked at since the last call, in about the time of one comparison each.
    std::int64_t take_looks() { return std::exchange(n_looks_, 0); }

private:
    struct Entry {
        std::int32_t open, low, high;  // a leaf and its run of intervals, or kSet + a set's number
    };
    bool is_finite() const;
    void cut_axes();
    void cut_ranges(std::int32_t slot);
    void cut_classes(std::int32_t slot);
    void recall(const State& around);
    std::int32_t n_groups(std::int32_t f) const { return group_start_[f + 1] - group_start_[f]; }
    // Calls visit(group, interval) for the groups of an axis' feature.
    template <class Visit>
    void for_axis(std::int32_t slot, const Visit& visit) const;
    double own_share(const Entry& entry, std::int32_t slot) const;
    void refresh_means(std::int32_t f);
    void refresh_axis(std::int32_t slot);
    void refresh_values();
    void group_cells();
    double least_of(std::int32_t tree) const;
    void take_out(std::int32_t slot);
    void put_in(std::int32_t slot);
    void find_worth(std::int32_t f, const std::vector<double>& least);
    void sweep(std::int32_t f);
    double total() const;
    double at_price(std::size_t test, double change, double* slope) const;
    double search_price(std::size_t test, double least, double most, int steps);
    void start_prices();
    void move_prices();
    bool has_mean(std::int32_t f) const { return crop_->slot_start[f + 1] > crop_->slot_start[f]; }

    const Choices* choices_ = nullptr;
    const std::vector<double>* cost_ = nullptr;
    const Box* box_ = nullptr;
    const Crop* crop_ = nullptr;
    const Goal* goal_ = nullptr;
    std::vector<std::vector<double>> weight_;  // a test: (n_open,)
    std::vector<double> lambda_;
    double free_cost_ = 0.0;  // what features cost that no tree pays for
    double told_ = -kInfinity;
    double constant_ = 0.0;  // sum of lambda * need, and the free cost
    std::int64_t n_looks_ = 0;
    // An axis is a slot of the crop: a tree and a feature that it splits inside the box.
    std::vector<std::int32_t> axis_start_;   // (n_slots + 1,) its intervals
    std::vector<std::int32_t> from_;         // (n_intervals,) first code of each, in order
    std::vector<std::int32_t> first_group_;  // (n_intervals,) of ranges
    std::vector<std::int32_t> set_start_;    // (n_slots,) of sets: into interval_of_, else -1
    std::vector<std::int32_t> interval_of_;  // of an axis' groups
    // Cells that no tree of the crop tells apart, by feature.
    std::vector<std::int32_t> group_start_;  // (d + 1,)
    std::vector<std::int32_t> group_from_;   // (n_groups,) first code of each, in order
    std::vector<double> group_cost_;         // (n_groups,) of the cheapest
    std::vector<std::int32_t> entry_start_;  // (n_slots + 1,)
    std::vector<Entry> entry_;
    std::vector<double> outside_, share_;  // (n_intervals,) r_m, and the least share of its cells
    std::vector<double> own_;              // (n_entries,) the least share that the leaf allows
    std::vector<double> axis_min_;         // (n_slots,)
    std::vector<double> mean_;             // (n_groups,)
    std::vector<double> common_;           // (n_trees,) the least shares of all its axes
    std::vector<double> value_;            // (n_open,) shares paid beyond those - lambda * weight
    std::vector<double> best_, rest_;
    std::vector<double> worth_;  // of the groups of a feature: the bound if it is there
    std::vector<std::int32_t> cuts_;
};

}  // namespace treefocus
