#include "treefocus/cost.hpp"

#include <algorithm>
#include <cmath>

namespace treefocus {

namespace {

template <class Values>
void take(std::vector<double>& stack, Values& values) {
    std::copy(stack.end() - static_cast<std::ptrdiff_t>(values.size()), stack.end(), values.begin());
    stack.resize(stack.size() - values.size());
}

}  // namespace

void BoxCost::save_whole(std::vector<double>& stack, std::initializer_list<const std::vector<double>*> values) const {
    for (const auto* one : values) stack.insert(stack.end(), one->begin(), one->end());
    stack.insert(stack.end(), codes.begin(), codes.end());
    stack.insert(stack.end(), {reached, cost});
}

void BoxCost::restore_whole(std::vector<double>& stack, std::initializer_list<std::vector<double>*> values) {
    cost = stack.back();
    reached = stack[stack.size() - 2];
    stack.resize(stack.size() - 2);
    take(stack, codes);
    for (auto one = std::rbegin(values); one != std::rend(values); ++one) take(stack, **one);
}

void SeparableCost::load(const Choices& choices, const Batch&, std::int64_t) {
    choices_ = &choices;
    const Forest& forest = choices.forest;
    codes.assign(forest.n_features, 0);
    delta_.assign(forest.n_features, 0.0);
    step_.assign(choices.delta.size(), 0.0);
    if (!norms_.is_additive()) return;
    for (std::int32_t f = 0; f < forest.n_features; ++f)
        if (choices.home[f] != kMissing)
            for_cells(forest, choices.all, f, [&](std::int32_t c) {
                step_[choices.at(f, c)] = norms_.step(f, choices.delta[choices.at(f, c)]);
            });
}

void SeparableCost::place(std::int32_t f, std::int32_t code) {
    codes[f] = code;
    delta_[f] = code == kMissing ? 0.0 : choices_->delta[choices_->at(f, code)];
}

bool SeparableCost::settle(const Box& box) {
    const std::int32_t d = static_cast<std::int32_t>(codes.size());
    for (std::int32_t f = 0; f < d; ++f) {
        const std::int32_t code = choices_->closest(f, box);
        if (code == kNone) return false;
        place(f, code);
    }
    if (norms_.is_additive()) {
        cost = 0.0;
        for (std::int32_t f = 0; f < d; ++f)
            if (codes[f] != kMissing) cost += step_[choices_->at(f, codes[f])];
    } else {
        cost = norms_.total(delta_.data(), d);
    }
    reached = cost;
    return true;
}

bool SeparableCost::settle_after(std::int32_t f, const Box& box) {
    const std::int32_t code = choices_->closest(f, box);
    if (code == kNone) return false;
    if (norms_.is_additive()) cost += step_[choices_->at(f, code)] - step_[choices_->at(f, codes[f])];
    place(f, code);
    if (!norms_.is_additive()) cost = norms_.total(delta_.data(), static_cast<std::int32_t>(codes.size()));
    reached = cost;
    return true;
}

double SeparableCost::with(std::int32_t f, std::int32_t code) const {
    if (norms_.is_additive()) return cost - step_[choices_->at(f, codes[f])] + step_[choices_->at(f, code)];
    std::vector<double> delta = delta_;
    delta[f] = choices_->delta[choices_->at(f, code)];
    return norms_.total(delta.data(), static_cast<std::int32_t>(codes.size()));
}

void SeparableCost::save(std::int32_t f, std::vector<double>& stack) const {
    stack.push_back(cost);
    stack.push_back(codes[f]);
}

void SeparableCost::restore(std::int32_t f, std::vector<double>& stack) {
    place(f, static_cast<std::int32_t>(stack.back()));
    stack.pop_back();
    reached = cost = stack.back();
    stack.pop_back();
}

void SeparableCost::point(double* values) const {
    for (std::size_t f = 0; f < codes.size(); ++f)
        values[f] = codes[f] == kMissing ? NAN : choices_->value[choices_->at(static_cast<std::int32_t>(f), codes[f])];
}

}  // namespace treefocus
