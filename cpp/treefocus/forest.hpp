// The forest as the kernels read it: the arrays of treefocus.Forest and treefocus.Grid, plus what
// is derived from them once. Nodes stand in pre-order, so the left child of node i is i + 1 and the
// leaves of a subtree are a contiguous run.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "treefocus/voice.hpp"

namespace treefocus {

constexpr std::int32_t kEveryClass = -2;

enum class Decision { argmax = 0, above = 1, at_least = 2, between = 3, likely = 4, agreed = 5 };

constexpr double kTiny = 1e-300;            // in place of zero, where a number must be above it
constexpr std::int32_t kMissing = -1;       // the code of a missing value, where it is not a cell
constexpr std::int32_t kBySet = INT32_MIN;  // code_split of a node that splits by a set of cells

// A place for what a kernel derives from a forest and wants to keep; the kernel knows what it is.
struct Cache {
    std::mutex mutex;
    std::shared_ptr<const void> exact;
};

struct Forest {
    // As given.
    std::int32_t n_features = 0, n_outputs = 0, n_classes = 0;
    std::vector<std::int32_t> feature;       // (n_nodes,) -1 at a leaf
    std::vector<std::int32_t> split;         // (n_nodes,) index into threshold
    std::vector<std::int32_t> right;         // (n_nodes,)
    std::vector<std::uint8_t> default_left;  // (n_nodes,)
    std::vector<std::int32_t> tree_start;    // (n_trees + 1,)
    std::vector<double> leaf_value;          // (n_leaves, n_outputs)
    std::vector<double> base_score;          // (n_outputs,)
    std::vector<std::int32_t> start;         // (n_features + 1,) thresholds of a feature
    std::vector<double> threshold;           // (n_thresholds,)
    std::vector<std::int32_t> cell_start;    // (n_features + 1,) cells of a feature
    // (n_features,) nodes split by sets; the last cell is the missing value
    std::vector<std::uint8_t> has_sets;
    std::vector<std::int32_t> set_of_node;  // (n_nodes,) -1 where a threshold decides
    std::vector<std::uint64_t> sets;        // (n_sets, n_words) bit c: cell c goes left
    std::int32_t n_words = 1;
    double divisor = 1.0, cut = 0.0, cut_high = INFINITY;
    std::int32_t favoured = 0;  // the output whose probability Decision::likely asks for
    Link link = Link::identity;
    Decision decision = Decision::argmax;
    bool is_float32 = false;       // inputs are compared after a cast to float
    bool has_float32_sum = false;  // scores are added up in float
    // Decision::agreed: the models whose trees stand here one after another. Of each only what
    // decides is set (outputs, classes, cuts, link, divisor, tolerance), and where it stands: its
    // trees, its scores among all, and the class here that each of its own means, -1 for none, or
    // kEveryClass where it only says whether a point will do, whatever its class.
    std::vector<Forest> members;
    std::int32_t first_tree = 0, end_tree = 0, first_score = 0;
    std::vector<std::int32_t> to_class;  // (its n_classes,)
    // The models whose shown numbers are averaged to the one score, if it is no sum itself; then a
    // point has a sum for each of them, and base_score a base.
    std::vector<Voice> voices;

    // Derived by finish().
    // (n_nodes,) split within its feature: go left if code <= code_split
    std::vector<std::int32_t> code_split;
    std::vector<std::int32_t> tree_of_node;  // (n_nodes,)
    // (n_trees,) the member that a tree counts for, -1 for none; empty without members
    std::vector<std::int32_t> member_of_tree;
    std::vector<std::int32_t> voice_of_tree;  // (n_trees,) among its rule's, -1 for none
    std::vector<std::int32_t> first_leaf;     // (n_nodes,) first leaf of the subtree
    std::vector<std::int32_t> end_leaf;       // (n_nodes,) one past its last leaf
    // (n_nodes,) unique (threshold, default_left): one soft activation each
    std::vector<std::int32_t> slot;
    std::vector<std::int32_t> slot_start;  // (n_features + 1,)
    std::vector<std::int32_t> slot_split;  // (n_slots,) index into threshold, or the set
    std::vector<std::uint8_t> slot_left;   // (n_slots,) where a missing value goes
    std::vector<std::int32_t> user_start;  // (n_thresholds + 1,) nodes that use a threshold
    std::vector<std::int32_t> user_node;
    // (n_features + 1,) nodes that split a feature by sets
    std::vector<std::int32_t> set_user_start;
    std::vector<std::int32_t> set_user_node;
    // (n_features + 1,) where a feature's words stand in a box; none without sets
    std::vector<std::int32_t> word_start;
    std::shared_ptr<Cache> cache;  // what other kernels derive, once
    double tolerance = 0.0;        // how far rounding can move a score, or two apart

    std::int32_t n_nodes() const { return static_cast<std::int32_t>(feature.size()); }
    std::int32_t n_trees() const { return static_cast<std::int32_t>(tree_start.size()) - 1; }
    std::int32_t n_leaves() const {
        return static_cast<std::int32_t>(leaf_value.size() / n_outputs);
    }
    std::int32_t n_thresholds() const { return static_cast<std::int32_t>(threshold.size()); }
    std::int32_t n_cells() const { return cell_start.back(); }
    std::int32_t n_codes(std::int32_t f) const { return cell_start[f + 1] - cell_start[f]; }
    bool set_has(std::int32_t set, std::int32_t code) const {
        return sets[static_cast<std::size_t>(set) * n_words + code / 64] >> (code % 64) & 1;
    }

    // How many sums a point gets, of this model alone and of all members.
    std::int32_t n_sums() const {
        return voices.empty() ? n_outputs : static_cast<std::int32_t>(voices.size());
    }
    std::int32_t n_scores() const {
        return members.empty() ? n_sums() : members.back().first_score + members.back().n_sums();
    }
    // The class of points that members disagree on, which nobody can ask for.
    std::int32_t disagreed() const { return members.empty() ? -1 : n_classes - 1; }

    void finish();

    // The value as the model compares it.
    double seen(double value) const {
        return is_float32 ? static_cast<double>(static_cast<float>(value)) : value;
    }

    // The cell of a value: how many of the feature's thresholds are below it.
    std::int32_t code(std::int32_t f, double value) const;

    bool goes_left(std::int32_t node, std::int32_t code) const {
        if (code == kMissing) return default_left[node] != 0;
        return code_split[node] == kBySet ? set_has(set_of_node[node], code)
                                          : code <= code_split[node];
    }

    // How many leaves the trees before this one have.
    std::int32_t leaf_start(std::int32_t tree) const {
        return tree < n_trees() ? first_leaf[tree_start[tree]] : n_leaves();
    }

    // The leaf that a point reaches from a node of one tree.
    std::int32_t leaf_below(std::int32_t node, const std::int32_t* codes) const {
        while (feature[node] >= 0)
            node = goes_left(node, codes[feature[node]]) ? node + 1 : right[node];
        return first_leaf[node];
    }

    // scores = (base + sum over trees, in order) / divisor, from the leaf reached in every tree.
    void scores_of_leaves(const std::int32_t* leaves, double* scores) const;

    std::int32_t decide(const double* scores) const;

    // The one score of a model that has one, from its sums.
    double score(const double* sums) const {
        return voices.empty() ? sums[0]
                              : mean_of(voices, divisor, [&](std::size_t m) { return sums[m]; });
    }

    // How far the scores are from another decision, in units of what rounding could do: below 1
    // they have to be the model's own.
    double safety(const double* scores) const;

    // The probability that Decision::likely asks for.
    double likelihood(const double* scores) const;

    // How far, as a share of it, a softmax near `cut` can be off by the rounding of its exponents,
    // powers and sum.
    double likelihood_error() const;

private:
    void list_users();
    void number_slots();
    void list_members();
    void place_voices(Forest& rule);
    double tolerance_of(std::int32_t begin_tree, std::int32_t end_tree, std::int32_t width,
                        const double* base, bool is_float32_sum, double divided_by) const;
    std::int32_t decide_score(double score) const;
    double gap(const double* scores) const;
    bool is_safe_mean(const double* sums) const;
};

}  // namespace treefocus
