// The separable costs, and the stack that all costs save themselves on. Where the cost is a sum, a
// change of one feature is an update of one term; where it has a maximum or a root, all are added
// up again.
#include "treefocus/cost.hpp"

#include <algorithm>
#include <cmath>

namespace treefocus {

namespace {

template <class Values>
void take(std::vector<double>& stack, Values& values) {
    std::copy(stack.end() - static_cast<std::ptrdiff_t>(values.size()), stack.end(),
              values.begin());
    stack.resize(stack.size() - values.size());
}

}  // namespace

// Pushed as one run with the cost on top; restore_whole takes the pieces off in the opposite order.
void BoxCost::save_whole(std::vector<double>& stack,
                         std::initializer_list<const std::vector<double>*> values) const {
    for (const auto* one : values) stack.insert(stack.end(), one->begin(), one->end());
    stack.insert(stack.end(), codes.begin(), codes.end());
    stack.insert(stack.end(), {reached, cost});
}

void BoxCost::restore_whole(std::vector<double>& stack,
                            std::initializer_list<std::vector<double>*> values) {
    cost = stack.back();
    reached = stack[stack.size() - 2];
    stack.resize(stack.size() - 2);
    take(stack, codes);
    for (auto one = std::rbegin(values); one != std::rend(values); ++one) take(stack, **one);
}

// Terms per cell are only of use if the cost is their sum; otherwise step_ stays zero and is never
// offered (additive).
void SeparableCost::load(const Choices& choices, const Batch&, std::int64_t) {
    choices_ = &choices;
    const Forest& forest = choices.forest;
    codes.assign(forest.n_features, 0);
    delta_.assign(forest.n_features, 0.0);
    value_.assign(forest.n_features, 0.0);
    term_.assign(forest.n_features, 0.0);
    step_.assign(choices.delta.size(), 0.0);
    if (!norms_.is_additive()) return;
    for (std::int32_t f = 0; f < forest.n_features; ++f)
        if (choices.home[f] != kMissing)
            for_cells(forest, choices.all, f, [&](std::int32_t c) {
                step_[choices.at(f, c)] = norms_.step(f, choices.delta[choices.at(f, c)]);
            });
}

// The closest value of the cell inside the box, which may cut into the cell.
void SeparableCost::place(std::int32_t f, std::int32_t code, const Box& box) {
    const Spot spot = code == kMissing ? Spot{NAN, 0.0} : choices_->spot(f, code, box);
    codes[f] = code;
    value_[f] = spot.value;
    delta_[f] = spot.delta;
    term_[f] = norms_.is_additive() ? norms_.step(f, spot.delta) : 0.0;
}

bool SeparableCost::settle(const Box& box) {
    const std::int32_t d = static_cast<std::int32_t>(codes.size());
    for (std::int32_t f = 0; f < d; ++f) {
        const std::int32_t code = choices_->closest(f, box);
        if (code == kNone) return false;
        place(f, code, box);
    }
    total();
    return true;
}

// The other features stand where they stood: no feature's closest value depends on another's.
bool SeparableCost::settle_after(std::int32_t f, const Box& box) {
    const std::int32_t code = choices_->closest(f, box);
    if (code == kNone) return false;
    const double before = term_[f];
    place(f, code, box);
    if (!norms_.is_additive()) total();
    // Sums that are updated on the way down come back from the stack on the way up, so that nothing
    // drifts.
    else reached = cost += term_[f] - before;
    return true;
}

void SeparableCost::total() {
    const std::int32_t d = static_cast<std::int32_t>(codes.size());
    if (norms_.is_additive()) {
        cost = 0.0;
        for (std::int32_t f = 0; f < d; ++f) cost += term_[f];
    } else {
        cost = norms_.total(delta_.data(), d);
    }
    reached = cost;
}

// The table knows whole cells only. Where values are cut off inside the cell, the true cost is
// higher, so that this stays a bound from below.
double SeparableCost::with(std::int32_t f, std::int32_t code) const {
    if (norms_.is_additive()) return cost - term_[f] + step_[choices_->at(f, code)];
    std::vector<double> delta = delta_;
    delta[f] = choices_->delta[choices_->at(f, code)];
    return norms_.total(delta.data(), static_cast<std::int32_t>(codes.size()));
}

// One feature's five numbers instead of the whole point: this runs at every split.
void SeparableCost::save(std::int32_t f, std::vector<double>& stack) const {
    stack.insert(stack.end(),
                 {cost, value_[f], delta_[f], term_[f], static_cast<double>(codes[f])});
}

void SeparableCost::restore(std::int32_t f, std::vector<double>& stack) {
    const double* saved = stack.data() + stack.size() - 5;
    reached = cost = saved[0];
    value_[f] = saved[1];
    delta_[f] = saved[2];
    term_[f] = saved[3];
    codes[f] = static_cast<std::int32_t>(saved[4]);
    stack.resize(stack.size() - 5);
}

std::unique_ptr<BoxCost> cost_of(const Norms* norms, const Distance& coupled, const Batch& batch) {
    if (!norms) return std::make_unique<CoupledCost>(coupled);
    if (batch.rules && !batch.rules->linear.empty()) return std::make_unique<LinearCost>(*norms);
    return std::make_unique<SeparableCost>(*norms);
}

}  // namespace treefocus
