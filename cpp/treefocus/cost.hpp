// What the closest point of a box costs, for every distance the exact search knows.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "treefocus/fan.hpp"
#include "treefocus/narrow.hpp"
#include "treefocus/program.hpp"

namespace treefocus {

// The closest point of the current box and its cost, kept up to date by the search.
class BoxCost {
public:
    virtual ~BoxCost() = default;
    virtual void load(const Choices& choices, const Batch& batch, std::int64_t row) = 0;
    // The closest point of the box; false if no point of it is allowed.
    virtual bool settle(const Box& box) = 0;
    // The same after feature f alone has a new range that the closest point was outside of.
    virtual bool settle_after(std::int32_t f, const Box& box) = 0;
    // No point with feature f in this cell, inside the current box, costs less.
    virtual double with(std::int32_t f, std::int32_t code) const = 0;
    // Whether that never falls from the closest point's cell to either end of a range.
    virtual bool is_rising() const { return false; }
    // Undo: what settle_after(f) changes, put on a stack and taken back.
    virtual void save(std::int32_t f, std::vector<double>& stack) const = 0;
    virtual void restore(std::int32_t f, std::vector<double>& stack) = 0;
    // The same for all that settle changes.
    virtual void save_all(std::vector<double>& stack) const = 0;
    virtual void restore_all(std::vector<double>& stack) = 0;
    // Costs that round their closest point to values that the columns can hold: a split by value
    // beside it, where it was rounded, or anywhere; nothing if no such split is left.
    virtual bool is_rounding() const { return false; }
    virtual bool is_growing() const { return true; }  // without end as any feature moves away
    virtual std::optional<Cut> round_cut(const Box&, bool /*anywhere*/) const {
        return std::nullopt;
    }
    // Whether a box that still holds the closest point has lost, in feature f, what it was before
    // it was rounded.
    virtual bool has_lost(std::int32_t, const Box&) const { return false; }
    // The closest point, as values in the user's units that the answer may hold; its distance is
    // never below cost.
    virtual void point(double* values) const = 0;
    // (n_rules,) of the question's linear rules: the prices that the bound rests on, or the weights
    // that show that no point obeys; null where it rests on none.
    virtual const std::vector<double>* rule_prices() const { return nullptr; }
    // (d,) the point at which the bound was linearised, in the space of the distance; zeros: at
    // none; null where the cost is a sum or a maximum over features.
    virtual const std::vector<double>* tangent() const { return nullptr; }
    // What finding closest points has cost since the last call, beyond looking at each feature
    // once, in steps of Work: rounds of a solver are counted by their size, about a nanosecond a
    // step.
    std::int64_t take_steps() { return std::exchange(n_steps_, 0); }
    // Additive cost per cell (n_cells,), or null if the cost is not a sum over features.
    virtual const std::vector<double>* additive() const { return nullptr; }
    virtual double to_cost(double distance) const { return distance; }
    virtual double to_distance(double cost) const { return cost; }

    // Costs that are no sum over features can know more once they know the limit: with() and cost
    // then say how little points cost that are cheaper than it.
    virtual void set_limit(double /*cost*/) {}
    // A search begins, and must not hang on what was searched before: solvers start anew.
    virtual void forget() {}
    // Before with() is asked about a box: false if no point of it is cheaper than the limit.
    virtual bool look(const Box&) { return true; }
    // About what it costs to go to a cell, a guide for splits.
    virtual double guess(std::int32_t f, std::int32_t code) const { return with(f, code); }
    // A split by length along the row, where that is wide (fan.hpp).
    virtual std::optional<Cut> slice_cut() const { return std::nullopt; }

    // A sum over features below the cost, for priced bounds: a point of the box that is cheaper
    // than a limit has a sum of steps below left(limit) + constant.
    struct Minorant {
        const std::vector<double>* steps;  // (n_cells,)
        double constant, least;            // and what the steps of the box add up to at least
        bool is_new;                       // differs from box to box
    };
    virtual std::optional<Minorant> minorant() {
        if (!additive()) return std::nullopt;
        return Minorant{additive(), 0.0, cost, false};
    }
    virtual double left(double limit) const { return limit; }
    // What points cost at least whose steps add up to `sum` or more.
    virtual double of_minorant(double sum) const { return sum; }

    double cost = 0.0;  // in the search's own units, see to_cost; no point of the box costs less
    // What the closest point costs: `cost`, or a little more where it was rounded.
    double reached = 0.0;
    std::vector<std::int32_t> codes;  // (d,) the closest point's cells
    // Whether the point is as cheap as the bound, as far as the arithmetic can tell.
    bool is_tight() const { return reached <= cost * (1.0 + kTight) + noise; }
    static constexpr double kTight = 1e-9;  // relatively
    double noise = 0.0;                     // absolute rounding error of a distance

protected:
    // Of work: what a solver does with a feature once, with a feature in a sum over all of them,
    // and with a pair of features.
    static constexpr std::int64_t kFeature = 100, kTerm = 10, kPair = 2;
    mutable std::int64_t n_steps_ = 0;
    // All of a solved point: its cost, its cells and these values.
    void save_whole(std::vector<double>& stack,
                    std::initializer_list<const std::vector<double>*> values) const;
    void restore_whole(std::vector<double>& stack,
                       std::initializer_list<std::vector<double>*> values);
};

// Sums and maxima of per-feature terms: the closest point is closest in every feature at once.
class SeparableCost : public BoxCost {
public:
    explicit SeparableCost(const Norms& norms) : norms_(norms) {}
    void load(const Choices& choices, const Batch& batch, std::int64_t row) override;
    bool settle(const Box& box) override;
    bool settle_after(std::int32_t f, const Box& box) override;
    double with(std::int32_t f, std::int32_t code) const override;
    bool is_rising() const override { return true; }
    void save(std::int32_t f, std::vector<double>& stack) const override;
    void restore(std::int32_t f, std::vector<double>& stack) override;
    void point(double* values) const override { std::copy(value_.begin(), value_.end(), values); }
    const std::vector<double>* additive() const override {
        return norms_.is_additive() ? &step_ : nullptr;
    }
    double to_cost(double distance) const override { return norms_.to_cost(distance); }
    double to_distance(double cost) const override { return norms_.to_distance(cost); }

    double term(std::int32_t f) const { return term_[f]; }
    double delta(std::int32_t f) const { return delta_[f]; }
    void save_all(std::vector<double>& stack) const override {
        save_whole(stack, {&value_, &delta_, &term_});
    }
    void restore_all(std::vector<double>& stack) override {
        restore_whole(stack, {&value_, &delta_, &term_});
    }

private:
    void place(std::int32_t f, std::int32_t code, const Box& box);
    void total();
    const Norms& norms_;
    const Choices* choices_ = nullptr;
    std::vector<double> step_;           // (n_cells,) additive term of each cell
    std::vector<double> value_, delta_;  // (d,) the closest point, and how far it is
    std::vector<double> term_;           // (d,) what that adds to an additive cost
};

// Costs whose closest point is found as if columns could hold any number, and rounded to what they
// can hold.
class RoundedCost : public BoxCost {
public:
    bool settle_after(std::int32_t, const Box& box) override { return settle(box); }
    void save(std::int32_t, std::vector<double>& stack) const override { save_all(stack); }
    void restore(std::int32_t, std::vector<double>& stack) override { restore_all(stack); }
    void point(double* values) const override { std::copy(point_.begin(), point_.end(), values); }
    bool is_rounding() const override { return true; }
    std::optional<Cut> round_cut(const Box& box, bool anywhere) const override;
    bool has_lost(std::int32_t f, const Box& box) const override;

protected:
    void load_row(const Choices& choices, const Batch& batch, std::int64_t row);
    bool set_ends(const Box& box, std::int32_t f);
    // Brings values onto the grain, in the direction in which sums stay within their bounds, and
    // mends broken sums by moving what needs no rounding.
    void round(std::int32_t f, double pull);
    double excess(const Rules::Linear& rule, const std::vector<double>& values) const;
    bool is_possible(const Rules::Linear& rule) const;  // at the best ends of its features
    void repair(const std::vector<double>& dearness, bool is_rounded);
    // Several rules at once: the values that obey all of them and cost least as the dearness has
    // it, with the rules' prices; `impossible` only where that is certain.
    Verdict meet_rules(const std::vector<double>& dearness, std::vector<double>& values,
                       std::vector<double>& prices) const;
    bool is_impossible(const std::vector<double>& weights) const;
    // Remembers on what the bound, or the verdict that there is no point, rests.
    void show_prices(const std::vector<double>& prices);
    std::vector<double> x_values() const;
    // Mends a sum that rounding has left a last bit above its bound.
    void nudge(const Rules::Linear& rule);
    double pull_of(std::int32_t f) const;

    const Choices* choices_ = nullptr;
    const Batch* batch_ = nullptr;
    const double* x_ = nullptr;
    std::vector<const Rules::Linear*> rules_;
    std::vector<double> own_excess_;     // (n_rules,) of the row itself, to the last bit
    std::vector<double> shown_prices_;   // of all linear rules of the question, see rule_prices
    std::vector<std::uint8_t> is_free_;  // (d,) features that are moved by these costs
    std::vector<double> low_, high_;     // (d,) ends of the box, in the user's units
    std::vector<double> relaxed_;        // (d,) the closest point before rounding
    std::vector<double> point_;          // (d,) and after
};

// Sums and maxima under linear rules, which couple the features they name (linear.cpp).
class LinearCost : public RoundedCost {
public:
    explicit LinearCost(const Norms& norms) : norms_(norms), base_(norms) {}
    void load(const Choices& choices, const Batch& batch, std::int64_t row) override;
    bool settle(const Box& box) override;
    double with(std::int32_t f, std::int32_t code) const override {
        return std::max(cost, base_.with(f, code));
    }
    std::optional<Cut> round_cut(const Box& box, bool anywhere) const override;
    void save_all(std::vector<double>& stack) const override;
    void restore_all(std::vector<double>& stack) override;
    const std::vector<double>* additive() const override { return base_.additive(); }
    const std::vector<double>* rule_prices() const override { return &shown_prices_; }
    double to_cost(double distance) const override { return norms_.to_cost(distance); }
    double to_distance(double cost) const override { return norms_.to_distance(cost); }

private:
    double cost_at(std::int32_t f, double value) const;
    // A feature's best value alone, and the bound that all of them together give.
    double choice(std::int32_t f, double price) const;
    double priced(std::vector<double>& values) const;
    // False if no point of the box obeys.
    bool solve();
    bool obeys(const std::vector<double>& values) const;
    void take(const std::vector<double>& values);
    double raise(std::size_t j, std::vector<double>& before, std::vector<double>& after);
    void widen();
    void place();
    const Norms& norms_;
    SeparableCost base_;                 // without the rules
    std::vector<double> mu_;             // (n_rules,) prices
    std::vector<double> dearness_;       // (d,) what a unit of a feature costs, about
    std::vector<double> delta_;          // (d,) how far the closest point is
    std::vector<std::uint8_t> is_paid_;  // (d,) the feature is known to move: its fee is certain,
    double fees_ = 0.0;                  // beyond what the closest point pays
};

// Distances that couple the features: Mahalanobis (a quadratic program over the box, with linear
// rules in it) and cosine (one scalar search; linear rules only mend its point). Both are solved to
// a point and a bound that holds whether or not the solver has converged.
class CoupledCost : public RoundedCost {
public:
    explicit CoupledCost(const Distance& distance) : distance_(distance) {}
    void load(const Choices& choices, const Batch& batch, std::int64_t row) override;
    bool settle(const Box& box) override;
    double with(std::int32_t f, std::int32_t code) const override;
    double guess(std::int32_t f, std::int32_t code) const override;
    void set_limit(double cost) override;
    void forget() override { y_ = start_; }
    bool look(const Box& box) override;
    std::optional<Cut> slice_cut() const override;
    std::optional<Minorant> minorant() override;
    double left(double limit) const override { return is_cosine() ? 0.0 : limit; }
    double of_minorant(double sum) const override {
        return is_cosine() ? fan_.distance_of(sum) : sum;
    }
    const std::vector<double>* rule_prices() const override { return &shown_prices_; }
    const std::vector<double>* tangent() const override { return &tangent_; }
    void save_all(std::vector<double>& stack) const override;
    void restore_all(std::vector<double>& stack) override;
    double to_cost(double distance) const override {
        return is_root() ? distance * distance : distance;
    }
    double to_distance(double cost) const override { return is_root() ? std::sqrt(cost) : cost; }

private:
    // Whether a feature keeps its value: it is missing, or a category, which these distances cannot
    // measure.
    bool is_still(std::int32_t f) const {
        return choices_->home[f] == kMissing || choices_->forest.has_sets[f];
    }
    bool is_growing() const override { return !is_cosine(); }
    bool is_root() const { return distance_.metric == Metric::mahalanobis; }
    bool is_cosine() const { return distance_.metric == Metric::cosine; }
    // Leaves the point in y_ and the bound in `cost`, as solve_cosine does.
    void solve_quadratic();
    // The bound at the present prices; u_ comes as near to the minimum as rounds allow.
    double minimise();
    void improve();  // the same, and `cost` is the best bound so far
    void descend();
    void raise(std::size_t j);
    void set_prices();  // price_ and price_size_ from mu_
    double least_term(std::int32_t f, double from, double to) const;
    // Above zero where the point breaks the rule.
    double sum_of(std::size_t j) const;
    void newton();
    void solve_cosine();
    void set_cells();
    bool set_box(const Box& box);  // the ends of every feature; false if one has none
    // What the linearisation of the last minimum says of points cheaper than the limit.
    void keep_linear(double value, double size, double room, const std::vector<double>& centre,
                     const std::vector<double>& slack);
    double linear_with(std::int32_t f, std::int32_t code) const;
    void place();  // relaxed_, point_, codes and reached from y_
    const Distance& distance_;
    // (d,) the row in the distance space. Of differences alone, as in a quadratic form, it is 0: a
    // step beside a row of 1e9 would lose its digits, and large prices make much of them.
    std::vector<double> start_;
    std::vector<double> y_;               // (d,) the closest point there
    std::vector<double> y_low_, y_high_;  // (d,) the box there
    std::vector<double> measured_, tangent_;
    std::vector<double> together_;  // (d,) a point that obeys several rules, where there are some
    std::vector<double> dearness_;  // (d,) what a unit of a feature costs, about
    // (n_rules,) prices of the rules, and (d,) what they add to each feature's slope, and the same
    // with all signs positive
    std::vector<double> mu_, price_, price_size_;
    // Of the quadratic program: y - start, half its slope, Cholesky factor, Newton step.
    std::vector<double> u_, slope_, lower_, step_;
    std::vector<std::int32_t> free_;
    std::vector<double> covariance_;  // (d, d) the inverse of the inverse covariance
    double limit_ = kInfinity;        // answers have to be cheaper
    // (d,) of the linearisation: the point, half the slope, its rounding, what each feature gives
    // at least; and in `linear_bound_` all of them together.
    std::vector<double> at_u_, at_slope_, at_noise_, at_term_, linear_bound_;
    Fan fan_;                                   // of cosine
    std::vector<double> steps_;                 // (n_cells,) of a minorant
    std::vector<double> cell_low_, cell_high_;  // (n_cells,) in the distance space
};

// What the search of a batch is to be given. Linear rules couple features, so that the cost is no
// longer closest in each at once.
std::unique_ptr<BoxCost> cost_of(const Norms* norms, const Distance& coupled, const Batch& batch);

}  // namespace treefocus
