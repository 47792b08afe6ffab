// What is derived from a forest once, and the model's own arithmetic. The second has to agree with
// the library's to the last bit: sums in its order and number type, its comparison, its softmax.
#include "treefocus/forest.hpp"

#include <algorithm>
#include <map>

namespace treefocus {

constexpr double kFloatUnit = 6.1e-8;    // what one addition in float can be off, relatively
constexpr double kDoubleUnit = 1.2e-16;  // and in double
// Of a sum of doubles over all trees, with room for any order of adding them.
constexpr double kSumRounding = 1e-9;

// Nodes stand in pre-order, so one pass numbers the leaves from left to right and every subtree has
// a run of them: it begins where the node is met, and ends where its right child's run does, which
// is known when nodes are gone through backwards.
void Forest::finish() {
    const std::int32_t n = n_nodes();
    code_split.assign(n, 0);
    tree_of_node.assign(n, 0);
    first_leaf.assign(n, 0);
    end_leaf.assign(n, 0);
    std::int32_t leaf = 0;
    for (std::int32_t tree = 0; tree < n_trees(); ++tree)
        for (std::int32_t node = tree_start[tree]; node < tree_start[tree + 1]; ++node) {
            tree_of_node[node] = tree;
            first_leaf[node] = leaf;
            if (feature[node] < 0) ++leaf;
            else
                code_split[node] =
                    set_of_node[node] >= 0 ? kBySet : split[node] - start[feature[node]];
        }
    for (std::int32_t node = n - 1; node >= 0; --node)
        end_leaf[node] = feature[node] < 0 ? first_leaf[node] + 1 : end_leaf[right[node]];

    word_start.assign(n_features + 1, 0);
    for (std::int32_t f = 0; f < n_features; ++f)
        word_start[f + 1] = word_start[f] + (has_sets[f] ? n_words : 0);

    list_users();
    number_slots();
    cache = std::make_shared<Cache>();

    tolerance = tolerance_of(0, n_trees(), n_outputs, base_score.data(), has_float32_sum, divisor);
    voice_of_tree.assign(n_trees(), -1);
    place_voices(*this);
    list_members();
}

// How far the scores of some trees can be off, with the first `width` outputs of their leaves and a
// base each, divided and added up as told.
double Forest::tolerance_of(std::int32_t begin_tree, std::int32_t end, std::int32_t width,
                            const double* base, bool is_float32_sum, double divided_by) const {
    // The largest score that any point can have, whatever leaves it reaches.
    double score_size = 0.0;  // how large a sum of scores can be
    for (std::int32_t k = 0; k < width; ++k) score_size = std::max(score_size, std::abs(base[k]));
    for (std::int32_t tree = begin_tree; tree < end; ++tree) {
        double largest = 0.0;
        const std::int32_t root = tree_start[tree];
        for (std::int32_t i = first_leaf[root] * n_outputs; i < end_leaf[root] * n_outputs; ++i)
            largest = std::max(largest, std::abs(leaf_value[i]));
        score_size += largest;
    }
    // A sum of n floats is off by at most n half units in the last place of its largest partial
    // sum, and a difference of two such sums by twice that.
    return 2.0 * (is_float32_sum ? kFloatUnit * (end - begin_tree + 1) : kSumRounding) *
           score_size / divided_by;
}

// Where the trees of each voice stand among all, and between which ends its sums lie.
void Forest::place_voices(Forest& rule) {
    for (std::size_t m = 0; m < rule.voices.size(); ++m) {
        Voice& own = rule.voices[m];
        own.first_tree += rule.first_tree, own.end_tree += rule.first_tree;
        std::fill(voice_of_tree.begin() + own.first_tree, voice_of_tree.begin() + own.end_tree,
                  static_cast<std::int32_t>(m));
        const double* base = base_score.data() + rule.first_score + m;
        own.tolerance =
            tolerance_of(own.first_tree, own.end_tree, 1, base, own.has_float32_sum, own.divisor);
        own.low = own.high = *base;
        for (std::int32_t tree = own.first_tree; tree < own.end_tree; ++tree) {
            double least = INFINITY, most = -INFINITY;
            const std::int32_t root = tree_start[tree];
            for (std::int32_t leaf = first_leaf[root]; leaf < end_leaf[root]; ++leaf) {
                const double value = leaf_value[static_cast<std::size_t>(leaf) * n_outputs];
                least = std::min(least, value), most = std::max(most, value);
            }
            own.low += least, own.high += most;
        }
        own.low = own.low / own.divisor - own.tolerance;
        own.high = own.high / own.divisor + own.tolerance;
    }
}

void Forest::list_members() {
    if (members.empty()) return;
    member_of_tree.assign(n_trees(), -1);
    for (std::size_t m = 0; m < members.size(); ++m) {
        Forest& own = members[m];
        std::fill(member_of_tree.begin() + own.first_tree, member_of_tree.begin() + own.end_tree,
                  static_cast<std::int32_t>(m));
        own.tolerance =
            tolerance_of(own.first_tree, own.end_tree, own.n_outputs,
                         base_score.data() + own.first_score, own.has_float32_sum, own.divisor);
        place_voices(own);
    }
}

namespace {

// Members by group, as a start per group and one list; key(i) is item i's group, negative for none.
// Counting sort in two passes: sizes become starts, then every item goes to its place. Items of a
// group stay in order.
template <class Key>
void group_by(std::int32_t n_groups, std::int32_t n_items, const Key& key,
              std::vector<std::int32_t>& start, std::vector<std::int32_t>& list) {
    start.assign(n_groups + 1, 0);
    for (std::int32_t i = 0; i < n_items; ++i)
        if (key(i) >= 0) ++start[key(i) + 1];
    for (std::int32_t g = 0; g < n_groups; ++g) start[g + 1] += start[g];
    list.assign(start.back(), 0);
    std::vector<std::int32_t> at(start.begin(), start.end() - 1);
    for (std::int32_t i = 0; i < n_items; ++i)
        if (key(i) >= 0) list[at[key(i)]++] = i;
}

}  // namespace

// A threshold that is crossed has to tell its nodes (Walker::cross), a feature with sets those that
// split by one.
void Forest::list_users() {
    group_by(
        n_thresholds(), n_nodes(),
        [this](std::int32_t node) {
            return feature[node] < 0 || set_of_node[node] >= 0 ? -1 : split[node];
        },
        user_start, user_node);
    group_by(
        n_features, n_nodes(),
        [this](std::int32_t node) { return set_of_node[node] >= 0 ? feature[node] : -1; },
        set_user_start, set_user_node);
}

// The soft pass computes one activation a slot, not one a node: nodes that share a threshold, and
// where they send a missing value, or a set, share their slot.
void Forest::number_slots() {
    slot.assign(n_nodes(), -1);
    slot_start.assign(n_features + 1, 0);
    slot_split.clear();
    slot_left.clear();
    for (std::int32_t f = 0; f < n_features; ++f) {
        // Sets first, in the order in which nodes use them, then thresholds in theirs.
        std::map<std::int32_t, std::int32_t> slot_of_set;
        for (std::int32_t i = set_user_start[f]; i < set_user_start[f + 1]; ++i) {
            const std::int32_t set = set_of_node[set_user_node[i]];
            const auto [found, is_new] =
                slot_of_set.try_emplace(set, static_cast<std::int32_t>(slot_split.size()));
            if (is_new) slot_split.push_back(set), slot_left.push_back(0);
            slot[set_user_node[i]] = found->second;
        }
        for (std::int32_t t = start[f]; t < start[f + 1]; ++t)
            for (std::uint8_t side : {0, 1}) {
                bool is_used = false;
                for (std::int32_t i = user_start[t]; i < user_start[t + 1]; ++i)
                    if ((default_left[user_node[i]] != 0) == (side != 0)) {
                        slot[user_node[i]] = static_cast<std::int32_t>(slot_split.size());
                        is_used = true;
                    }
                if (is_used) slot_split.push_back(t), slot_left.push_back(side);
            }
        slot_start[f + 1] = static_cast<std::int32_t>(slot_split.size());
    }
}

// A value on a threshold is not above it, so that its cell is the one that goes left there.
std::int32_t Forest::code(std::int32_t f, double value) const {
    if (std::isnan(value)) return has_sets[f] ? n_codes(f) - 1 : kMissing;
    const auto begin = threshold.begin() + start[f], end = threshold.begin() + start[f + 1];
    return static_cast<std::int32_t>(std::lower_bound(begin, end, seen(value)) - begin);
}

namespace {

// One output of some trees, in their order, base first: another order can end in another last bit,
// and on another side.
template <class Number>
double sum_of(const Forest& forest, std::int32_t begin_tree, std::int32_t end_tree, double base,
              std::int32_t output, const std::int32_t* leaves) {
    Number sum = static_cast<Number>(base);
    for (std::int32_t tree = begin_tree; tree < end_tree; ++tree)
        sum += static_cast<Number>(
            forest.leaf_value[static_cast<std::size_t>(leaves[tree]) * forest.n_outputs + output]);
    return static_cast<double>(sum);
}

double sum_of(const Forest& forest, bool is_float32, std::int32_t begin_tree, std::int32_t end_tree,
              double base, std::int32_t output, const std::int32_t* leaves) {
    return is_float32 ? sum_of<float>(forest, begin_tree, end_tree, base, output, leaves)
                      : sum_of<double>(forest, begin_tree, end_tree, base, output, leaves);
}

void add_up(const Forest& forest, const Forest& rule, std::int32_t begin_tree,
            std::int32_t end_tree, const std::int32_t* leaves, double* scores) {
    const double* base = forest.base_score.data() + rule.first_score;
    scores += rule.first_score;
    for (std::size_t m = 0; m < rule.voices.size(); ++m) {
        const Voice& own = rule.voices[m];
        scores[m] =
            sum_of(forest, own.has_float32_sum, own.first_tree, own.end_tree, base[m], 0, leaves) /
            own.divisor;
    }
    if (!rule.voices.empty()) return;
    for (std::int32_t k = 0; k < rule.n_outputs; ++k)
        scores[k] = sum_of(forest, rule.has_float32_sum, begin_tree, end_tree, base[k], k, leaves) /
                    rule.divisor;
}

}  // namespace

void Forest::scores_of_leaves(const std::int32_t* leaves, double* scores) const {
    if (members.empty()) return add_up(*this, *this, 0, n_trees(), leaves, scores);
    for (const Forest& own : members)
        add_up(*this, own, own.first_tree, own.end_tree, leaves, scores);
}

std::int32_t Forest::decide_score(double score) const {
    if (decision == Decision::above) return score > cut;
    return score >= cut && (decision != Decision::between || score <= cut_high);
}

std::int32_t Forest::decide(const double* scores) const {
    switch (decision) {
        case Decision::above:
        case Decision::at_least:
        case Decision::between:
            return decide_score(score(scores));
        // Against the probability as the library shows it, not against a score that would be one.
        case Decision::likely:
            return likelihood(scores) >= cut;
        case Decision::agreed: {
            std::int32_t all = disagreed();
            for (const Forest& own : members) {
                const std::int32_t one = own.to_class[own.decide(scores + own.first_score)];
                if (one == kEveryClass) continue;
                if (one < 0 || (&own != members.data() && one != all)) return disagreed();
                all = one;
            }
            return all;
        }
        default:
            return static_cast<std::int32_t>(std::max_element(scores, scores + n_outputs) - scores);
    }
}

double Forest::gap(const double* scores) const {
    if (decision == Decision::argmax) {
        double first = -INFINITY, second = -INFINITY;
        for (std::int32_t k = 0; k < n_outputs; ++k) {
            if (scores[k] > first) second = first, first = scores[k];
            else second = std::max(second, scores[k]);
        }
        return first - second;
    }
    if (decision == Decision::likely) return std::abs(likelihood(scores) - cut);
    const double from_cut = std::abs(scores[0] - cut);
    return decision == Decision::between ? std::min(from_cut, std::abs(scores[0] - cut_high))
                                         : from_cut;
}

// Curves can be steep: the mean is taken at what rounding could make of the sums.
bool Forest::is_safe_mean(const double* sums) const {
    const auto mean = [&](double side) {
        const double value = mean_of(
            voices, divisor, [&](std::size_t m) { return sums[m] + side * voices[m].tolerance; });
        return value + side * kMeanNoise * std::max(std::abs(value), 1.0);
    };
    return mean(1.0) < cut || mean(-1.0) > cut;
}

double Forest::safety(const double* scores) const {
    if (!voices.empty()) return is_safe_mean(scores) ? INFINITY : 0.0;
    if (members.empty()) return gap(scores) / std::max(tolerance, kTiny);
    double least = INFINITY;
    for (const Forest& own : members) least = std::min(least, own.safety(scores + own.first_score));
    return least;
}

namespace {

// A softmax as libraries take it that add scores up in this type: shares in it, their sum in
// double.
template <class Number>
double share(const double* scores, std::int32_t n, std::int32_t own) {
    const Number top = static_cast<Number>(*std::max_element(scores, scores + n));
    const auto grown = [&](std::int32_t k) {
        return std::exp(static_cast<Number>(static_cast<Number>(scores[k]) - top));
    };
    double sum = 0.0;
    for (std::int32_t k = 0; k < n; ++k) sum += static_cast<double>(grown(k));
    return static_cast<double>(grown(own) / static_cast<Number>(sum));
}

}  // namespace

double Forest::likelihood(const double* scores) const {
    if (link != Link::softmax) return scores[favoured];
    return has_float32_sum ? share<float>(scores, n_outputs, favoured)
                           : share<double>(scores, n_outputs, favoured);
}

// Every term of the sum is off by a unit, power and division add a few more, and an exponent of
// size |log cut| passes its own rounding on as an error of the share; four times that, for room.
double Forest::likelihood_error() const {
    const double unit = has_float32_sum ? kFloatUnit : kDoubleUnit;
    return 4.0 * unit * (n_outputs + 4.0 + std::abs(std::log(cut)));
}

}  // namespace treefocus
