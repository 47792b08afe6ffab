// The soft forest, kLanes rows at a time.
//
// The activation of a node needs sig(sigma (theta - z_f)) = 1 / (1 + exp(sigma (z_f - theta))).
// There is one such number per unique (feature, threshold), not per node (a "slot"), and the
// exponential factors:
//   exp(sigma (z_f - theta)) = exp(sigma (z_f - c_f)) / exp(sigma (theta - c_f)),
// so a row costs one exponential per feature and one division per threshold.
// A tree then takes one pass up (the soft value of every subtree) and one pass down (the
// probability of reaching it):
//   d score / d left-probability of a node = reach * (value of left - value of right).
#include <algorithm>
#include <cmath>

#include "treefocus/kernels.hpp"

namespace treefocus {

namespace {

using Lane = double[kLanes];

// left[s] = probability of going left, for the slots of one feature.
// pull / (pull + growth) is the sigmoid 1 / (1 + growth / pull) with one division.
TREEFOCUS_VECTORISED
void activations(const double* growth, const double* pull, std::int32_t n, double* left) {
    for (std::int32_t s = 0; s < n; ++s)
        for (int l = 0; l < kLanes; ++l) left[s * kLanes + l] = pull[s] / (pull[s] + growth[l]);
}

// value[node] = left * value of the left child + (1 - left) * value of the right child, from the
// leaves up.
// Backwards through pre-order, so that both children are there before their node.
TREEFOCUS_VECTORISED
void values_up(const std::int32_t* feature, const std::int32_t* slot, const std::int32_t* right,
               const std::int32_t* first_leaf, std::int32_t begin, std::int32_t end,
               const double* leaf, const double* left, double* value) {
    for (std::int32_t node = end - 1; node >= begin; --node) {
        double* own = value + (node - begin) * kLanes;
        if (feature[node] < 0) {
            const double v = leaf[first_leaf[node]];
            for (int l = 0; l < kLanes; ++l) own[l] = v;
        } else {
            const double* p = left + slot[node] * kLanes;
            const double* a = value + (node + 1 - begin) * kLanes;
            const double* b = value + (right[node] - begin) * kLanes;
            for (int l = 0; l < kLanes; ++l) own[l] = b[l] + p[l] * (a[l] - b[l]);
        }
    }
}

// gradient[feature] -= reach * (value left - value right) * p (1 - p), from the root down (sigma
// comes later).
// Forwards through pre-order, so that a node's reach is there before its children need it.
TREEFOCUS_VECTORISED
void gradients_down(const std::int32_t* feature, const std::int32_t* slot,
                    const std::int32_t* right, std::int32_t begin, std::int32_t end,
                    const double* left, const double* value, double* reach, double* gradient) {
    for (int l = 0; l < kLanes; ++l) reach[l] = 1.0;
    for (std::int32_t node = begin; node < end; ++node) {
        if (feature[node] < 0) continue;
        const double* p = left + slot[node] * kLanes;
        const double* own = reach + (node - begin) * kLanes;
        double* a = reach + (node + 1 - begin) * kLanes;
        double* b = reach + (right[node] - begin) * kLanes;
        const double* va = value + (node + 1 - begin) * kLanes;
        const double* vb = value + (right[node] - begin) * kLanes;
        double* g = gradient + feature[node] * kLanes;
        for (int l = 0; l < kLanes; ++l) {
            a[l] = own[l] * p[l];
            b[l] = own[l] - a[l];
            g[l] -= a[l] * (1.0 - p[l]) * (va[l] - vb[l]);
        }
    }
}

}  // namespace

// An estimate for planning: the arrays by slot and by leaf, beside which the rest is small.
double SoftBlock::bytes(const Forest& forest) {
    const double columns = forest.n_outputs;
    return forest.slot_split.size() * (8.0 + 8.0 * kLanes) +
           columns * 8.0 * (forest.n_leaves() + kLanes * forest.n_features);
}

// Two classes under a softmax need the difference of their scores only, and half of the passes.
SoftBlock::SoftBlock(const Forest& forest, const SoftForest& soft)
    : z(static_cast<std::size_t>(forest.n_features) * kLanes),
      gradient(z.size()),
      forest_(forest),
      soft_(soft),
      n_columns_(forest.n_outputs == 2 && soft.use_softmax ? 1 : forest.n_outputs),
      centre_(forest.n_features),
      is_wide_(forest.n_features) {
    const std::int32_t n_leaves = forest.n_leaves(),
                       n_slots = static_cast<std::int32_t>(forest.slot_split.size());
    column_.resize(static_cast<std::size_t>(n_columns_) * n_leaves);
    for (std::int32_t leaf = 0; leaf < n_leaves; ++leaf) {
        const double* value = soft.value + static_cast<std::size_t>(leaf) * forest.n_outputs;
        if (n_columns_ == forest.n_outputs)
            for (std::int32_t k = 0; k < n_columns_; ++k)
                column_[static_cast<std::size_t>(k) * n_leaves + leaf] = value[k];
        else column_[leaf] = value[1] - value[0];
    }
    std::int32_t largest = 0;
    for (std::int32_t tree = 0; tree < soft.n_trees; ++tree)
        largest = std::max(largest, forest.tree_start[tree + 1] - forest.tree_start[tree]);
    value_.resize(static_cast<std::size_t>(largest) * kLanes);
    reach_.resize(value_.size());
    left_.resize(static_cast<std::size_t>(n_slots) * kLanes);
    score_.resize(static_cast<std::size_t>(n_columns_) * kLanes);
    part_.resize(static_cast<std::size_t>(n_columns_) * z.size());
    pull_.resize(n_slots);
    for (std::int32_t f = 0; f < forest.n_features; ++f) {
        if (forest.start[f] == forest.start[f + 1] || forest.has_sets[f]) continue;
        const double first = soft.threshold[forest.start[f]],
                     last = soft.threshold[forest.start[f + 1] - 1];
        centre_[f] = 0.5 * (first + last);
        // exp overflows at 709. With the centre in the middle of the thresholds their factors stay
        // within exp(300), and a row's own is clipped at exp(690), where nothing is left of the
        // slope.
        is_wide_[f] = !(soft.sigma * (last - first) < 600.0);
        for (std::int32_t s = forest.slot_start[f]; s < forest.slot_start[f + 1]; ++s)
            pull_[s] =
                is_wide_[f]
                    ? 1.0
                    : std::exp(soft.sigma * (soft.threshold[forest.slot_split[s]] - centre_[f]));
    }
}

// Three ways to be routed: by set or by a missing value as the model does, without a slope; by the
// factored exponential; and, where that would overflow, by one exponential a threshold.
void SoftBlock::activate() {
    for (std::int32_t f = 0; f < forest_.n_features; ++f) {
        const std::int32_t a = forest_.slot_start[f], b = forest_.slot_start[f + 1];
        const double* own = &z[f * kLanes];
        if (forest_.has_sets[f]) {  // routed as the model routes it; 0 or 1 has no slope
            const double *from = soft_.threshold + forest_.start[f],
                         *to = soft_.threshold + forest_.start[f + 1];
            for (int l = 0; l < kLanes; ++l) {
                const std::int32_t code =
                    std::isnan(own[l])
                        ? forest_.n_codes(f) - 1
                        : static_cast<std::int32_t>(std::lower_bound(from, to, own[l]) - from);
                for (std::int32_t s = a; s < b; ++s)
                    left_[s * kLanes + l] = forest_.set_has(forest_.slot_split[s], code);
            }
            continue;
        }
        if (is_wide_[f]) {
            for (std::int32_t s = a; s < b; ++s)
                for (int l = 0; l < kLanes; ++l)
                    left_[s * kLanes + l] =
                        1.0 / (1.0 + std::exp(soft_.sigma *
                                              (own[l] - soft_.threshold[forest_.slot_split[s]])));
        } else {
            Lane growth;
            for (int l = 0; l < kLanes; ++l)
                growth[l] =
                    std::exp(std::clamp(soft_.sigma * (own[l] - centre_[f]), -690.0, 690.0));
            activations(growth, pull_.data() + a, b - a, left_.data() + a * kLanes);
        }
        for (int l = 0; l < kLanes; ++l)
            if (std::isnan(own[l]))  // a missing value is routed as the model routes it
                for (std::int32_t s = a; s < b; ++s) left_[s * kLanes + l] = forest_.slot_left[s];
    }
}

// The loss of one lane and its slope with respect to each column's score.
double SoftBlock::slopes(int lane, double* slope) const {
    const std::int32_t y = label[lane];
    if (n_columns_ == 1) {  // two classes: the loss is the softmax share of one of them
        // 1 - f~(0) = f~(1): leaving one class and reaching the other are the same loss.
        const double toward = (y == 1) == (sign[lane] > 0) ? 1.0 : -1.0;
        const double p = 1.0 / (1.0 + std::exp(-toward * soft_.tau * score_[lane]));
        slope[0] = soft_.tau * p * (1.0 - p) * toward;
        return p;
    }
    const double direction = sign[lane] > 0 ? 1.0 : -1.0;
    double p;
    // d p_y / d score_k = tau p_y ([k = y] - p_k), with scores shifted by the largest against
    // overflow.
    if (soft_.use_softmax) {
        double top = -INFINITY, sum = 0.0;
        for (std::int32_t k = 0; k < n_columns_; ++k)
            top = std::max(top, score_[k * kLanes + lane]);
        for (std::int32_t k = 0; k < n_columns_; ++k)
            sum += slope[k] = std::exp(soft_.tau * (score_[k * kLanes + lane] - top));
        p = slope[y] / sum;
        for (std::int32_t k = 0; k < n_columns_; ++k)
            slope[k] = direction * soft_.tau * p * ((k == y ? 1.0 : 0.0) - slope[k] / sum);
    } else {
        std::fill(slope, slope + n_columns_, 0.0);
        p = score_[y * kLanes + lane];
        slope[y] = direction;
    }
    return sign[lane] > 0 ? p : 1.0 - p;
}

// By the chain rule: d loss / d z = sum over columns of slope_k * d score_k / d z; the sigma that
// every activation's slope has is multiplied in here, once.
void SoftBlock::run() {
    const std::size_t size = z.size();
    activate();
    std::fill(score_.begin(), score_.end(), 0.0);
    std::fill(part_.begin(), part_.end(), 0.0);
    for (std::int32_t k = 0; k < n_columns_; ++k)
        for (std::int32_t tree = 0; tree < soft_.n_trees; ++tree) {
            const std::int32_t begin = forest_.tree_start[tree], end = forest_.tree_start[tree + 1];
            values_up(forest_.feature.data(), forest_.slot.data(), forest_.right.data(),
                      forest_.first_leaf.data(), begin, end,
                      column_.data() + static_cast<std::size_t>(k) * forest_.n_leaves(),
                      left_.data(), value_.data());
            // The root's value, that of the whole tree, is the first of its nodes.
            for (int l = 0; l < kLanes; ++l) score_[k * kLanes + l] += value_[l];
            gradients_down(forest_.feature.data(), forest_.slot.data(), forest_.right.data(), begin,
                           end, left_.data(), value_.data(), reach_.data(),
                           part_.data() + k * size);
        }
    std::vector<double> slope(n_columns_);
    std::fill(gradient.begin(), gradient.end(), 0.0);
    for (int l = 0; l < kLanes; ++l) {
        loss[l] = slopes(l, slope.data());
        for (std::int32_t k = 0; k < n_columns_; ++k)
            for (std::size_t i = l; i < size; i += kLanes)
                gradient[i] += soft_.sigma * slope[k] * part_[k * size + i];
    }
}

void soft_loss(const Forest& forest, const SoftForest& soft, const double* z,
               const std::int32_t* label, const std::int8_t* sign, std::int64_t n, double* loss,
               double* gradient, int n_threads, Control& control) {
    const std::int32_t d = forest.n_features;
    parallel_for(
        n, 4 * kLanes, n_threads, control,
        [&](std::int64_t begin, std::int64_t end) {
            SoftBlock block(forest, soft);
            for (std::int64_t first = begin; first < end; first += kLanes) {
                for (int l = 0; l < kLanes; ++l) {
                    // The last block is filled up with its last row; what those lanes compute is
                    // not used.
                    const std::int64_t i = std::min(first + l, end - 1);
                    for (std::int32_t f = 0; f < d; ++f) block.z[f * kLanes + l] = z[i * d + f];
                    block.label[l] = label[i];
                    block.sign[l] = sign[i];
                }
                block.run();
                for (int l = 0; l < kLanes && first + l < end; ++l) {
                    loss[first + l] = block.loss[l];
                    for (std::int32_t f = 0; f < d; ++f)
                        gradient[(first + l) * d + f] = block.gradient[f * kLanes + l];
                }
            }
        },
        true);
}

}  // namespace treefocus
