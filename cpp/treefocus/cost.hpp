// What the closest point of a box costs, for every distance the exact search knows.
#pragma once

#include <algorithm>
#include <cmath>

#include "treefocus/rules.hpp"

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
    // Undo: what settle_after(f) changes, put on a stack and taken back.
    virtual void save(std::int32_t f, std::vector<double>& stack) const = 0;
    virtual void restore(std::int32_t f, std::vector<double>& stack) = 0;
    // The closest point, as values in the user's units that the answer may hold; its distance is never below cost.
    virtual void point(double* values) const = 0;
    // Additive cost per cell (n_cells,), or null if the cost is not a sum over features.
    virtual const std::vector<double>* additive() const { return nullptr; }
    virtual double to_cost(double distance) const { return distance; }
    virtual double to_distance(double cost) const { return cost; }

    double cost = 0.0;                       // in the search's own units, see to_cost; no point of the box costs less
    double reached = 0.0;                    // what the closest point costs: `cost`, or a little more where it was rounded
    std::vector<std::int32_t> codes;         // (d,) the closest point's cells
    // Whether the point is as cheap as the bound, as far as the arithmetic can tell.
    bool is_tight() const { return reached <= cost * (1.0 + 1e-9) + noise; }
    double noise = 0.0;                      // absolute rounding error of a distance

protected:
    // All of a solved point: its cost, its cells and these values.
    void save_whole(std::vector<double>& stack, std::initializer_list<const std::vector<double>*> values) const;
    void restore_whole(std::vector<double>& stack, std::initializer_list<std::vector<double>*> values);
};

// Sums and maxima of per-feature terms: the closest point is closest in every feature at once.
class SeparableCost : public BoxCost {
public:
    explicit SeparableCost(const Norms& norms) : norms_(norms) {}
    void load(const Choices& choices, const Batch& batch, std::int64_t row) override;
    bool settle(const Box& box) override;
    bool settle_after(std::int32_t f, const Box& box) override;
    double with(std::int32_t f, std::int32_t code) const override;
    void save(std::int32_t f, std::vector<double>& stack) const override;
    void restore(std::int32_t f, std::vector<double>& stack) override;
    void point(double* values) const override;
    const std::vector<double>* additive() const override { return norms_.is_additive() ? &step_ : nullptr; }
    double to_cost(double distance) const override { return norms_.to_cost(distance); }
    double to_distance(double cost) const override { return norms_.to_distance(cost); }

private:
    void place(std::int32_t f, std::int32_t code);
    const Norms& norms_;
    const Choices* choices_ = nullptr;
    std::vector<double> step_;               // (n_cells,) additive term of each cell
    std::vector<double> delta_;              // (d,) of the closest point
};

// The same under linear rules, which couple the features they name.
class LinearCost : public BoxCost {
public:
    explicit LinearCost(const Norms& norms) : norms_(norms), base_(norms) {}
    void load(const Choices& choices, const Batch& batch, std::int64_t row) override;
    bool settle(const Box& box) override;
    bool settle_after(std::int32_t, const Box& box) override { return settle(box); }
    double with(std::int32_t f, std::int32_t code) const override;
    void save(std::int32_t f, std::vector<double>& stack) const override;
    void restore(std::int32_t f, std::vector<double>& stack) override;
    void point(double* values) const override { std::copy(point_.begin(), point_.end(), values); }
    const std::vector<double>* additive() const override { return base_.additive(); }
    double to_cost(double distance) const override { return norms_.to_cost(distance); }
    double to_distance(double cost) const override { return norms_.to_distance(cost); }

private:
    bool set_ends(const Box& box);
    double cost_at(std::int32_t f, double value) const;
    double choice(std::int32_t f, double price) const;
    double priced(std::vector<double>& values) const;
    double excess(const Rules::Linear& rule, const std::vector<double>& values) const;
    void solve();
    void raise(std::size_t j, std::vector<double>& before, std::vector<double>& after);
    void repair();
    void place();
    const Norms& norms_;
    SeparableCost base_;                     // without the rules
    const Choices* choices_ = nullptr;
    const Batch* batch_ = nullptr;
    const double* x_ = nullptr;
    std::vector<const Rules::Linear*> rules_;
    std::vector<std::uint8_t> is_used_;      // (d,) features that a rule names
    std::vector<double> mu_;                 // (n_rules,) prices
    std::vector<double> low_, high_;         // (d,) ends of the box, in the user's units
    std::vector<double> point_, delta_;      // (d,) the closest point
};

// Distances that couple the features: Mahalanobis (a quadratic program over the box) and cosine (one scalar search).
// Both are solved to a point and a bound that holds whether or not the solver has converged.
class CoupledCost : public BoxCost {
public:
    explicit CoupledCost(const Distance& distance) : distance_(distance) {}
    void load(const Choices& choices, const Batch& batch, std::int64_t row) override;
    bool settle(const Box& box) override;
    bool settle_after(std::int32_t, const Box& box) override { return settle(box); }
    double with(std::int32_t f, std::int32_t code) const override;
    void save(std::int32_t f, std::vector<double>& stack) const override;
    void restore(std::int32_t f, std::vector<double>& stack) override;
    void point(double* values) const override { std::copy(point_.begin(), point_.end(), values); }
    double to_cost(double distance) const override { return is_root() ? distance * distance : distance; }
    double to_distance(double cost) const override { return is_root() ? std::sqrt(cost) : cost; }

private:
    // Whether a feature keeps its value: it is missing, or a category, which these distances cannot measure.
    bool is_still(std::int32_t f) const { return choices_->home[f] == kMissing || choices_->forest.has_sets[f]; }
    bool is_root() const { return distance_.metric == Metric::mahalanobis; }
    void solve_quadratic();
    void newton();
    void solve_cosine();
    void place();                            // point_, codes and reached from y_
    const Distance& distance_;
    const Choices* choices_ = nullptr;
    const Batch* batch_ = nullptr;
    const double* x_ = nullptr;
    std::vector<double> start_;              // (d,) the row in the distance space
    std::vector<double> y_;                  // (d,) the closest point there
    std::vector<double> y_low_, y_high_;     // (d,) the box there
    std::vector<double> value_low_, value_high_;   // (d,) the box in the user's units
    std::vector<double> point_, measured_;
    std::vector<double> u_, slope_, lower_, step_;   // of the quadratic program: y - start, Q u, Cholesky factor, Newton step
    std::vector<std::int32_t> free_;
    std::vector<double> variance_;           // (d,) diagonal of the inverse of the inverse covariance
};

}  // namespace treefocus
