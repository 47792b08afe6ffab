// What the closest point of a box costs, for every distance the exact search knows.
#pragma once

#include "treefocus/box.hpp"

namespace treefocus {

// The closest point of the current box and its cost, kept up to date by the search.
class BoxCost {
public:
    virtual ~BoxCost() = default;
    virtual void load(const Choices& choices, const Batch& batch, std::int64_t row) = 0;
    // The closest point of the box low..high (codes); false if no point of it is allowed.
    virtual bool settle(const std::int32_t* low, const std::int32_t* high) = 0;
    // The same after feature f alone has a new range that the closest point was outside of.
    virtual bool settle_after(std::int32_t f, const std::int32_t* low, const std::int32_t* high) = 0;
    // No point with feature f in this cell, inside the current box, costs less.
    virtual double with(std::int32_t f, std::int32_t code) const = 0;
    // Undo: what settle_after(f) changes, put on a stack and taken back.
    virtual void save(std::int32_t f, std::vector<double>& stack) const = 0;
    virtual void restore(std::int32_t f, std::vector<double>& stack) = 0;
    // The closest point, as values in the user's units that the answer may hold; its distance is never below cost.
    virtual void point(double* values) const = 0;
    // Additive cost per cell (n_thresholds + d,), or null if the cost is not a sum over features.
    virtual const std::vector<double>* additive() const { return nullptr; }
    virtual double to_cost(double distance) const { return distance; }
    virtual double to_distance(double cost) const { return cost; }

    double cost = 0.0;                       // in the search's own units, see to_cost
    std::vector<std::int32_t> codes;         // (d,) the closest point's cells
};

// Sums and maxima of per-feature terms: the closest point is closest in every feature at once.
class SeparableCost : public BoxCost {
public:
    explicit SeparableCost(const Norms& norms) : norms_(norms) {}
    void load(const Choices& choices, const Batch& batch, std::int64_t row) override;
    bool settle(const std::int32_t* low, const std::int32_t* high) override;
    bool settle_after(std::int32_t f, const std::int32_t* low, const std::int32_t* high) override;
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
    std::vector<double> step_;               // (n_thresholds + d,) additive term of each cell
    std::vector<double> delta_;              // (d,) of the closest point
};

}  // namespace treefocus
