// Every kernel on random forests and rows, for the sanitizers to watch: the same bytes from one
// thread and several, the hard scores of a walk by hand, answers that flip, searches side by side
// on one forest, and stops in the middle.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "treefocus/exact.hpp"
#include "treefocus/kernels.hpp"

using namespace treefocus;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void expect(bool holds, const char* what, int line) {
    if (holds) return;
    std::fprintf(stderr, "line %d: %s\n", line, what);
    std::exit(1);
}
#define EXPECT(condition) expect((condition), #condition, __LINE__)

template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

struct Rng {
    std::mt19937_64 engine;
    int below(int n) { return static_cast<int>(engine() % static_cast<std::uint64_t>(n)); }
    double unit() { return std::uniform_real_distribution<double>(0.0, 1.0)(engine); }
};

// A forest under construction: thresholds by value, numbered when all nodes are known.
struct Draft {
    Forest forest;
    std::vector<double> value;  // (n_nodes,) threshold of a split

    std::int32_t node(std::int32_t feature, double threshold, bool default_left) {
        forest.feature.push_back(feature);
        value.push_back(threshold);
        forest.right.push_back(-1);
        forest.default_left.push_back(feature >= 0 && default_left);
        return forest.n_nodes() - 1;
    }

    Forest finished() {
        std::vector<std::set<double>> own(forest.n_features);
        for (std::int32_t i = 0; i < forest.n_nodes(); ++i)
            if (forest.feature[i] >= 0) own[forest.feature[i]].insert(value[i]);
        forest.start.assign(1, 0);
        for (const auto& thresholds : own) {
            forest.threshold.insert(forest.threshold.end(), thresholds.begin(), thresholds.end());
            forest.start.push_back(forest.n_thresholds());
        }
        forest.split.assign(forest.n_nodes(), -1);
        for (std::int32_t i = 0; i < forest.n_nodes(); ++i) {
            const std::int32_t f = forest.feature[i];
            if (f < 0) continue;
            const auto first = forest.threshold.begin();
            const auto found =
                std::lower_bound(first + forest.start[f], first + forest.start[f + 1], value[i]);
            forest.split[i] = static_cast<std::int32_t>(found - first);
        }
        for (std::int32_t f = 0; f <= forest.n_features; ++f)
            forest.cell_start.push_back(forest.start[f] + f);
        forest.has_sets.assign(forest.n_features, 0);
        forest.set_of_node.assign(forest.n_nodes(), -1);
        forest.finish();
        return forest;
    }
};

void grow(Draft& draft, Rng& rng, int depth) {
    Forest& forest = draft.forest;
    if (depth == 0 || rng.unit() < 0.15) {
        draft.node(-1, 0.0, false);
        for (std::int32_t k = 0; k < forest.n_outputs; ++k)
            forest.leaf_value.push_back(rng.unit() - 0.5);
        return;
    }
    const double threshold = static_cast<float>(std::floor(rng.unit() * 16.0) / 16.0 + 0.03125);
    const std::int32_t node = draft.node(rng.below(forest.n_features), threshold, rng.unit() < 0.5);
    grow(draft, rng, depth - 1);
    forest.right[node] = forest.n_nodes();
    grow(draft, rng, depth - 1);
}

Forest random_forest(Rng& rng) {
    Draft draft;
    Forest& forest = draft.forest;
    forest.n_features = 1 + rng.below(6);
    forest.n_classes = 2 + rng.below(3);
    const bool is_single = forest.n_classes == 2 && rng.unit() < 0.5;
    forest.n_outputs = is_single ? 1 : forest.n_classes;
    forest.decision =
        is_single ? (rng.unit() < 0.5 ? Decision::above : Decision::at_least) : Decision::argmax;
    forest.is_float32 = rng.unit() < 0.5;
    forest.has_float32_sum = rng.unit() < 0.3;
    forest.base_score.assign(forest.n_outputs, 0.0);
    forest.tree_start.assign(1, 0);
    const int n_trees = 1 + rng.below(12), depth = 1 + rng.below(4);
    forest.divisor = rng.unit() < 0.5 ? 1.0 : n_trees;
    for (int tree = 0; tree < n_trees; ++tree) {
        grow(draft, rng, depth);
        forest.tree_start.push_back(forest.n_nodes());
    }
    return draft.finished();
}

// One tree, `depth` splits below each other on one feature.
Forest chain(int depth) {
    Draft draft;
    Forest& forest = draft.forest;
    forest.n_features = 2, forest.n_classes = 2, forest.n_outputs = 1;
    forest.decision = Decision::above;
    forest.base_score = {0.0};
    for (int i = 0; i < depth; ++i) {
        const std::int32_t node = draft.node(0, i, false);
        draft.node(-1, 0.0, false);
        forest.right[node] = forest.n_nodes();
        forest.leaf_value.push_back(i == depth / 2 ? 1.0 : -1.0);
    }
    draft.node(-1, 0.0, false);
    forest.leaf_value.push_back(-1.0);
    forest.tree_start = {0, forest.n_nodes()};
    return draft.finished();
}

struct Question {
    const Forest& forest;
    std::int64_t n;
    std::vector<double> rows, low, high, offset, scale, cell_low, cell_high;
    std::vector<std::int8_t> grain;
    std::vector<std::int32_t> origin, target;

    Question(const Forest& forest, Rng& rng, std::int64_t n) : forest(forest), n(n) {
        const std::int32_t d = forest.n_features;
        for (std::int64_t i = 0; i < n * d; ++i) {
            const double pick = rng.unit();
            double value = rng.unit();
            if (pick < 0.2 && forest.n_thresholds() > 0)
                value = forest.threshold[rng.below(forest.n_thresholds())];
            rows.push_back(pick > 0.97 ? kNan : value);
        }
        for (double value : rows) {
            low.push_back(std::isnan(value) ? kNan : std::min(value, 0.0));
            high.push_back(std::isnan(value) ? kNan : std::max(value, 1.0));
        }
        offset.assign(d, 0.0);
        scale.assign(d, 1.0);
        grain.assign(d, 0);
        for (std::int32_t f = 0; f < d; ++f) {
            cell_low.push_back(-kInfinity);
            for (std::int32_t t = forest.start[f]; t < forest.start[f + 1]; ++t) {
                cell_high.push_back(forest.threshold[t]);
                cell_low.push_back(
                    forest.is_float32
                        ? std::nextafter(static_cast<float>(forest.threshold[t]), 1e30f)
                        : std::nextafter(forest.threshold[t], kInfinity));
            }
            cell_high.push_back(kInfinity);
        }
        Control control;
        std::vector<double> scores(n * forest.n_outputs);
        hard_scores(forest, rows.data(), n, scores.data(), 1, control);
        for (std::int64_t i = 0; i < n; ++i) {
            origin.push_back(forest.decide(scores.data() + i * forest.n_outputs));
            target.push_back(rng.unit() < 0.7 ? -1 : rng.below(forest.n_classes));
        }
    }

    Batch batch() const {
        return {rows.data(),  low.data(),    high.data(),   offset.data(), scale.data(),
                grain.data(), origin.data(), target.data(), rows.data(),   n,
                nullptr,      nullptr};
    }

    bool flips(const double* point, std::int64_t row) const {
        Control control;
        std::vector<double> scores(forest.n_outputs);
        hard_scores(forest, point, 1, scores.data(), 1, control);
        const std::int32_t label = forest.decide(scores.data());
        return target[row] >= 0 ? label == target[row] : label != origin[row];
    }
};

// scores by a walk from every root
std::vector<double> walked(const Forest& forest, const std::vector<double>& rows, std::int64_t n) {
    std::vector<double> scores;
    for (std::int64_t i = 0; i < n; ++i) {
        const double* row = rows.data() + i * forest.n_features;
        std::vector<std::int32_t> leaves;
        for (std::int32_t tree = 0; tree < forest.n_trees(); ++tree) {
            std::int32_t node = forest.tree_start[tree];
            while (forest.feature[node] >= 0) {
                const double value = forest.seen(row[forest.feature[node]]);
                const bool is_left = std::isnan(value)
                                         ? forest.default_left[node] != 0
                                         : value <= forest.threshold[forest.split[node]];
                node = is_left ? node + 1 : forest.right[node];
            }
            leaves.push_back(forest.first_leaf[node]);
        }
        std::vector<double> own(forest.n_outputs);
        forest.scores_of_leaves(leaves.data(), own.data());
        scores.insert(scores.end(), own.begin(), own.end());
    }
    return scores;
}

struct Found {
    std::vector<double> scores, loss, gradient, best, best_distance, polished, exact, distance,
        bound;
    std::vector<std::int8_t> proof;
    std::vector<std::uint8_t> is_undecided;
    std::vector<std::int64_t> nodes, steps;
};

Norms euclidean(std::int32_t d) {
    const std::vector<double> ones(d, 1.0), none(d, 0.0);
    Norms norms{none, ones, none, none};
    norms.finish();
    return norms;
}

Found run_all(const Question& q, int n_threads, std::int64_t node_limit) {
    const Forest& forest = q.forest;
    const std::int32_t d = forest.n_features;
    const std::int64_t n = q.n;
    const Batch batch = q.batch();
    Control control;
    Found found;
    found.scores.resize(n * forest.n_outputs);
    hard_scores(forest, q.rows.data(), n, found.scores.data(), n_threads, control);

    const SoftForest soft{
        forest.threshold.data(), forest.leaf_value.data(), forest.n_trees(), 10.0, 3.0, true};
    std::vector<std::int8_t> sign(n, 1);
    found.loss.resize(n);
    found.gradient.resize(n * d);
    soft_loss(forest, soft, q.rows.data(), q.origin.data(), sign.data(), n, found.loss.data(),
              found.gradient.data(), n_threads, control);

    const std::vector<double> weight(d, 1.0);
    const Distance distance{Metric::euclidean, weight.data(), nullptr, d};
    found.best.assign(n * d, kNan);
    found.best_distance.assign(n, kInfinity);
    descend(forest, soft, distance, Descent{0.01, 0.02, 60, 1.0}, batch, found.best.data(),
            found.best_distance.data(), nullptr, n_threads, control);

    const Norms norms = euclidean(d);
    found.polished = found.best;
    found.steps.assign(n, 0);
    polish(forest, q.cell_low.data(), q.cell_high.data(), norms, Limits{kInfinity, 0, 0, 1e8},
           batch, true, found.polished.data(), found.steps.data(), n_threads, control);

    found.exact.assign(n * d, kNan);
    found.distance.assign(n, kInfinity);
    found.bound.assign(n, 0.0);
    found.proof.assign(n, 0);
    found.is_undecided.assign(n, 0);
    found.nodes.assign(n, 0);
    found.steps.assign(n, 0);
    exact(forest, q.cell_low.data(), q.cell_high.data(), &norms, &distance,
          Limits{kInfinity, node_limit, 0, 1e8}, batch, Part::all,
          Rows{found.exact.data(), found.distance.data(), found.bound.data(), found.proof.data(),
               found.is_undecided.data(), found.nodes.data(), found.steps.data()},
          n_threads, control);
    return found;
}

void check_random_forests(int n_rounds, std::uint64_t seed) {
    Rng rng{std::mt19937_64(seed)};
    for (int round = 0; round < n_rounds; ++round) {
        const Forest forest = random_forest(rng);
        const Question q(forest, rng, 1 + rng.below(30));
        const Found one = run_all(q, 1, 3000), several = run_all(q, 4, 3000);
        EXPECT(same(one.scores, walked(forest, q.rows, q.n)));
        EXPECT(same(one.scores, several.scores));
        EXPECT(same(one.loss, several.loss) && same(one.gradient, several.gradient));
        EXPECT(same(one.best, several.best) && same(one.best_distance, several.best_distance));
        EXPECT(same(one.polished, several.polished));
        EXPECT(same(one.exact, several.exact) && same(one.bound, several.bound) &&
               same(one.nodes, several.nodes));
        for (std::int64_t i = 0; i < q.n; ++i) {
            const auto proof = static_cast<Proof>(one.proof[i]);
            if (one.best_distance[i] < kInfinity)
                EXPECT(q.flips(one.best.data() + i * forest.n_features, i));
            if (proof == Proof::optimal) {
                EXPECT(q.flips(one.exact.data() + i * forest.n_features, i));
                EXPECT(one.distance[i] <= one.best_distance[i] * (1.0 + 1e-9) + 1e-12);
            }
            if (proof == Proof::infeasible) EXPECT(one.best_distance[i] == kInfinity);
            EXPECT(one.bound[i] <= one.distance[i]);
        }
    }
}

// Several callers on one forest, which keeps what a kernel derives from it.
void check_side_by_side(std::uint64_t seed) {
    Rng rng{std::mt19937_64(seed)};
    for (int round = 0; round < 5; ++round) {
        const Forest forest = random_forest(rng);
        const Question q(forest, rng, 20);
        const Found alone = run_all(q, 1, 1000);
        const Forest fresh = forest;
        fresh.cache->exact.reset();
        std::vector<std::thread> callers;
        std::atomic<int> n_same{0};
        for (int k = 0; k < 4; ++k)
            callers.emplace_back([&] { n_same += same(run_all(q, 2, 1000).exact, alone.exact); });
        for (auto& caller : callers) caller.join();
        EXPECT(n_same == 4);
    }
}

// Told to stop, a kernel comes back soon; an exception on a worker reaches the caller.
void check_stops() {
    Control control;
    std::atomic<std::int64_t> n_done{0};
    control.poll = [](std::int64_t) { return true; };
    parallel_for(1'000'000, 1, 3, control, [&](std::int64_t, std::int64_t) {
        ++n_done;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    EXPECT(control.stop);
    EXPECT(n_done < 100'000);
    Control other;
    bool is_caught = false;
    try {
        parallel_for(100, 1, 4, other, [](std::int64_t i, std::int64_t) {
            if (i == 50) throw std::runtime_error("a row");
        });
    } catch (const std::runtime_error&) {
        is_caught = true;
    }
    EXPECT(is_caught);
}

// A tree of 100,000 levels: no kernel may recurse over nodes, or take memory with the square of the
// depth.
void check_deep(int depth) {
    Rng rng{std::mt19937_64(1)};
    const Forest forest = chain(depth);
    const Question q(forest, rng, 2);
    Control control;
    const Norms norms = euclidean(2);
    const std::vector<double> weight(2, 1.0);
    const Distance distance{Metric::euclidean, weight.data(), nullptr, 2};
    std::vector<double> best(4, kNan), distances(2, kInfinity), bound(2, 0.0);
    std::vector<std::int8_t> proof(2, 3);
    std::vector<std::uint8_t> is_undecided(2, 0);
    std::vector<std::int64_t> nodes(2, 0), steps(2, 0);
    exact(forest, q.cell_low.data(), q.cell_high.data(), &norms, &distance, Limits{1.0, 0, 0, 1e8},
          q.batch(), Part::all,
          Rows{best.data(), distances.data(), bound.data(), proof.data(), is_undecided.data(),
               nodes.data(), steps.data()},
          2, control);
    std::vector<double> loss(2), gradient(4);
    const std::vector<std::int8_t> sign(2, 1);
    const SoftForest soft{forest.threshold.data(), forest.leaf_value.data(), 1, 1.0, 1.0, true};
    soft_loss(forest, soft, q.rows.data(), q.origin.data(), sign.data(), 2, loss.data(),
              gradient.data(), 2, control);
    EXPECT(std::isfinite(loss[0]));
}

}  // namespace

int main(int argc, char** argv) {
    const int n_rounds = argc > 1 ? std::atoi(argv[1]) : 100;
    const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
    check_random_forests(n_rounds, seed);
    check_side_by_side(seed + 1);
    check_stops();
    check_deep(100'000);
    std::printf("%d forests, seed %llu: all as it should be\n", n_rounds,
                static_cast<unsigned long long>(seed));
}
