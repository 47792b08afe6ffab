// Where the search splits a box: at the threshold, or the set, that most score lies behind.
#include <cmath>

#include "treefocus/search.hpp"

namespace treefocus {

Cut Search::choose() {
    if (walker_.predicted() == to_) {  // the point would do, but for a rule or for rounding
        candidate_.resize(forest_.n_features);
        cost_.point(candidate_.data());
        if (rules_)
            if (const auto cut = rules_->broken(box_, cost_.codes.data(), candidate_.data()); cut && can_split(*cut)) return *cut;
        if (const auto cut = cost_.round_cut(box_, false); cut && can_split(*cut)) return *cut;
    }
    const Running& one = running_[hardest()];
    const std::vector<double>& weight = one.test().weight;
    gain_.resize(forest_.n_trees());
    for (std::int32_t tree = 0; tree < forest_.n_trees(); ++tree)
        gain_[tree] = weight[one.wish(tree)] - weight[walker_.leaves()[tree]];
    best_cut_ = {};
    best_score_ = -1.0;
    for (std::int32_t f = 0; f < forest_.n_features; ++f) {
        if (walker_.codes()[f] == kMissing) continue;
        if (forest_.has_sets[f]) weigh_sets(one, f);
        else weigh_thresholds(one, f);
    }
    return best_score_ < 0.0 ? any_cut() : best_cut_;
}

void Search::weigh_thresholds(const Running& one, std::int32_t f) {
    const std::int32_t code = walker_.codes()[f];
    above_.clear();
    below_.clear();
    one.for_wishes_elsewhere(f, code, [&](std::int32_t tree, std::int32_t low, std::int32_t high) {
        if (!(gain_[tree] > 0.0)) return;
        if (code < low) above_.push_back({low, gain_[tree]});
        else below_.push_back({high, gain_[tree]});
    });
    std::sort(above_.begin(), above_.end(), [](const Pull& a, const Pull& b) { return a.code > b.code; });
    std::sort(below_.begin(), below_.end(), [](const Pull& a, const Pull& b) { return a.code < b.code; });
    for (const std::vector<Pull>* pulls : {&above_, &below_}) {
        double behind = 0.0;
        for (std::size_t i = 0; i < pulls->size(); ++i) {
            behind += (*pulls)[i].gain;
            if (i + 1 == pulls->size() || (*pulls)[i + 1].code != (*pulls)[i].code)
                weigh({f, (*pulls)[i].code, pulls == &above_}, behind);
        }
    }
}

void Search::weigh_sets(const Running& one, std::int32_t f) {
    const std::int32_t code = walker_.codes()[f];
    touched_.clear();
    one.for_wishes_elsewhere(f, code, [&](std::int32_t tree, std::int32_t low, std::int32_t) {
        const std::int32_t set = low - kSet;
        if (!(gain_[tree] > 0.0) || shared_.boxes.set_has(set, code)) return;
        if (pull_set_[set] == 0.0) touched_.push_back(set);
        pull_set_[set] += gain_[tree];
    });
    std::sort(touched_.begin(), touched_.end());
    for (const std::int32_t set : touched_) {
        weigh({f, 0, true, By::set, set}, pull_set_[set]);
        pull_set_[set] = 0.0;
    }
}

void Search::weigh(const Cut& cut, double behind) {
    const double least_step = 1e-3 * (limit_ < kInfinity ? limit_ : 1.0);
    const double step = std::max(cost_of(cut) - cost_.cost, 0.0) + least_step;
    const double score = behind * std::sqrt(step);  // the cost of the step counts half as much as the score behind it
    if (score > best_score_) best_score_ = score, best_cut_ = cut;
}

double Search::cost_of(const Cut& cut) const {
    if (cut.by == By::cells) return cost_.with(cut.feature, cut.code);
    double least = kInfinity;
    for_cells(forest_, box_, cut.feature, [&](std::int32_t code) {
        if (is_far_cell(cut, code)) least = std::min(least, cost_.with(cut.feature, code));
    });
    return least;
}

std::size_t Search::hardest() const {
    if (n_plain_ == 1) return 0;
    std::size_t worst = 0;
    double most = -kInfinity;
    for (std::size_t i = 0; i < n_plain_; ++i) {
        double sum = 0.0;
        for (std::int32_t tree = 0; tree < forest_.n_trees(); ++tree)
            sum += running_[i].test().weight[walker_.leaves()[tree]];
        if (running_[i].need - sum > most) most = running_[i].need - sum, worst = i;
    }
    return worst;
}

Cut Search::any_cut() {
    for (std::int32_t f = 0; f < forest_.n_features; ++f) {
        const std::int32_t code = walker_.codes()[f];
        if (code == kMissing) continue;
        if (forest_.has_sets[f]) {
            if (const Cut cut{f, code, true, By::all_but}; can_split(cut)) return cut;
            continue;
        }
        if (code < box_.high[f]) return {f, code + 1, true};
        if (code > box_.low[f]) return {f, code - 1, false};
    }
    if (walker_.predicted() == to_)
        if (const auto cut = cost_.round_cut(box_, true); cut && can_split(*cut)) return *cut;
    return {};
}

}  // namespace treefocus
