// The only file that knows Python. It checks shapes, releases the GIL and polls Ctrl-C; the rest is
// the core's.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <optional>
#include <stdexcept>
#include <string>

#include "treefocus/exact.hpp"
#include "treefocus/kernels.hpp"
#include "treefocus/proof.hpp"
#include "treefocus/rules.hpp"

namespace nb = nanobind;
using namespace treefocus;
using namespace nb::literals;

template <class T, std::size_t Dimensions>
using In = nb::ndarray<const T, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;
template <class T, std::size_t Dimensions>
using Out = nb::ndarray<T, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;
using Progress = std::optional<nb::object>;

namespace {

// Sizes are checked here, once; the core trusts its pointers.
template <class Array>
void expect(const Array& array, const char* name, std::initializer_list<std::size_t> shape) {
    std::size_t axis = 0;
    for (std::size_t size : shape) {
        if (array.shape(axis) != size)
            throw std::invalid_argument(std::string(name) + " has the wrong shape on axis " +
                                        std::to_string(axis));
        ++axis;
    }
}

// Only the forest and the rules are copied, for they outlive the call that brought them.
template <class T>
std::vector<T> copied(const In<T, 1>& array) {
    return {array.data(), array.data() + array.size()};
}

// Runs a kernel without the GIL. A signal (Ctrl-C) or an exception in `progress` stops it; what is
// done is kept, and the exception is raised afterwards. Returns how many rows are done.
// The kernel polls from the calling thread, which takes the GIL for it: signals are only seen
// there.
template <class Kernel>
std::int64_t run(const Progress& progress, const Kernel& kernel) {
    Control control;
    bool is_interrupted = false;
    std::optional<nb::python_error> failure;
    control.poll = [&](std::int64_t done) {
        nb::gil_scoped_acquire gil;
        try {
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
            if (progress) (*progress)(done);
        } catch (nb::python_error& error) {
            // Raised once the threads have stopped: it must not unwind past threads that still run.
            failure.emplace(std::move(error));
            is_interrupted = true;
        }
        return is_interrupted;
    };
    {
        nb::gil_scoped_release release;
        kernel(control);
    }
    if (failure) throw std::move(*failure);
    return control.done;
}

// The arrays of a batch, held as long as kernels look at them.
// A batch is asked several questions (descend, polish, exact), so that its arrays are checked
// against the forest each time they are taken out, not when they are put in.
struct HeldBatch {
    In<double, 2> rows, low, high;
    In<double, 1> offset, scale;
    In<std::int8_t, 1> grain;
    In<std::int32_t, 1> origin, target;
    In<double, 2> first, set_value, set_delta;
    In<std::int32_t, 1> list_start;
    In<double, 1> list_value;
    In<std::uint8_t, 1> is_strict;
    std::optional<Rules> rules;

    Batch of(const Forest& forest) const {
        const std::size_t n = rows.shape(0), d = static_cast<std::size_t>(forest.n_features);
        for (const auto& [array, name] :
             {std::pair{rows, "rows"}, {low, "low"}, {high, "high"}, {first, "first"}})
            expect(array, name, {n, d});
        for (const auto& [array, name] : {std::pair{offset, "offset"}, {scale, "scale"}})
            expect(array, name, {d});
        for (const auto& [array, name] : {std::pair{origin, "origin"}, {target, "target"}})
            expect(array, name, {n});
        expect(grain, "grain", {d});
        // All cells of all features with sets, side by side in one row.
        std::size_t n_set_cells = 0;
        for (std::int32_t f = 0; f < forest.n_features; ++f)
            if (forest.has_sets[f]) n_set_cells += static_cast<std::size_t>(forest.n_codes(f));
        for (const auto& [array, name] :
             {std::pair{set_value, "set_value"}, {set_delta, "set_delta"}})
            expect(array, name, {n, n_set_cells});
        expect(list_start, "list_start", {d + 1});
        expect(is_strict, "is_strict", {d});
        return {rows.data(),       low.data(),
                high.data(),       offset.data(),
                scale.data(),      grain.data(),
                origin.data(),     target.data(),
                first.data(),      static_cast<std::int64_t>(n),
                set_value.data(),  set_delta.data(),
                list_start.data(), list_value.data(),
                is_strict.data(),  rules ? &*rules : nullptr};
    }
};

// These structs only point at the arrays; the caller's arguments keep those alive for the call.
SoftForest make_soft(const Forest& forest, const In<double, 1>& threshold,
                     const In<double, 2>& value, int n_trees, double sigma, double tau,
                     bool use_softmax) {
    expect(threshold, "threshold", {forest.threshold.size()});
    expect(
        value, "value",
        {static_cast<std::size_t>(forest.n_leaves()), static_cast<std::size_t>(forest.n_outputs)});
    return {threshold.data(), value.data(), std::min(n_trees, forest.n_trees()), sigma, tau,
            use_softmax};
}

Distance make_distance(const Forest& forest, int metric, const In<double, 1>& weight,
                       const In<double, 2>& inverse) {
    const std::size_t d = static_cast<std::size_t>(forest.n_features);
    expect(weight, "weight", {d});
    // Only these look at the matrix.
    if (static_cast<Metric>(metric) >= Metric::mahalanobis) expect(inverse, "inverse", {d, d});
    return {static_cast<Metric>(metric), weight.data(), inverse.data(), forest.n_features};
}

// Weights (4, d) of the Manhattan, Euclidean, Chebyshev and counting parts.
Norms make_norms(const Forest& forest, const In<double, 2>& weights) {
    const std::size_t d = static_cast<std::size_t>(forest.n_features);
    expect(weights, "norm_weights", {4, d});
    const double* w = weights.data();
    Norms norms{{w, w + d}, {w + d, w + 2 * d}, {w + 2 * d, w + 3 * d}, {w + 3 * d, w + 4 * d}};
    norms.finish();
    return norms;
}

// What decides for one of several models; `end_tree` is the number of its trees.
struct Member {
    Forest rule;
};

// Each voice's trees come after those of the one before it.
std::vector<Voice> voices_of(const nb::list& given) {
    std::vector<Voice> voices;
    for (const nb::handle one : given) {
        Voice own = nb::cast<const Voice&>(one);
        if (!voices.empty()) {
            own.first_tree = voices.back().end_tree;
            own.end_tree += own.first_tree;
        }
        voices.push_back(std::move(own));
    }
    return voices;
}

// Its trees and scores come after those of the members before it.
void add_member(Forest& forest, Forest own) {
    if (!forest.members.empty()) {
        const Forest& before = forest.members.back();
        own.first_tree = before.end_tree;
        own.end_tree += before.end_tree;
        own.first_score = before.first_score + before.n_sums();
    }
    if (own.end_tree > forest.n_trees() || own.n_outputs > forest.n_outputs)
        throw std::invalid_argument("A member has more trees or outputs than there are.");
    forest.members.push_back(std::move(own));
}

}  // namespace

NB_MODULE(_core, m) {
    nb::class_<Voice>(m, "Voice")
        .def("__init__",
             [](Voice* self, int n_trees, double divisor, double weight, bool has_float32_sum,
                int link, double rounding, double moved) {
                 Voice voice;
                 voice.end_tree = n_trees;
                 voice.divisor = divisor;
                 voice.weight = weight;
                 voice.has_float32_sum = has_float32_sum;
                 voice.link = static_cast<Link>(link);
                 voice.rounding = rounding;
                 voice.moved = moved;
                 new (self) Voice(std::move(voice));
             })
        .def("add_map",
             [](Voice& self, int kind, double a, double b, In<double, 1> x, In<double, 1> y) {
                 self.maps.push_back({static_cast<Map::Kind>(kind), a, b, copied(x), copied(y)});
             });

    nb::class_<Member>(m, "Member")
        .def("__init__", [](Member* self, int n_trees, int n_outputs, double divisor, int decision,
                            double cut, double cut_high, int favoured, int link,
                            bool has_float32_sum, In<std::int32_t, 1> to_class, nb::list voices) {
            Forest rule;
            rule.voices = voices_of(voices);
            rule.end_tree = n_trees;
            rule.n_outputs = n_outputs;
            rule.n_classes = static_cast<std::int32_t>(to_class.size());
            rule.divisor = divisor;
            rule.decision = static_cast<Decision>(decision);
            rule.cut = cut;
            rule.cut_high = cut_high;
            rule.favoured = favoured;
            rule.link = static_cast<Link>(link);
            rule.has_float32_sum = has_float32_sum;
            rule.to_class = copied(to_class);
            new (self) Member{std::move(rule)};
        });

    nb::class_<Forest>(m, "Forest")
        .def("__init__",
             [](Forest* self, In<std::int32_t, 1> feature, In<std::int32_t, 1> split,
                In<std::int32_t, 1> right, In<std::uint8_t, 1> default_left,
                In<std::int32_t, 1> tree_start, In<double, 2> leaf_value, In<double, 1> base_score,
                In<std::int32_t, 1> start, In<double, 1> threshold, In<std::int32_t, 1> cell_start,
                In<std::uint8_t, 1> has_sets, In<std::int32_t, 1> set_of_node,
                In<std::uint64_t, 2> sets, int n_classes, double divisor, int decision, double cut,
                double cut_high, int favoured, int link, bool is_float32, bool has_float32_sum,
                nb::list members, nb::list voices) {
                 Forest forest;
                 forest.voices = voices_of(voices);
                 forest.n_features = static_cast<std::int32_t>(start.size()) - 1;
                 forest.n_outputs = static_cast<std::int32_t>(leaf_value.shape(1));
                 forest.n_classes = n_classes;
                 forest.feature = copied(feature);
                 forest.split = copied(split);
                 forest.right = copied(right);
                 forest.default_left = copied(default_left);
                 forest.tree_start = copied(tree_start);
                 forest.leaf_value.assign(leaf_value.data(), leaf_value.data() + leaf_value.size());
                 forest.base_score = copied(base_score);
                 forest.start = copied(start);
                 forest.threshold = copied(threshold);
                 forest.cell_start = copied(cell_start);
                 forest.has_sets = copied(has_sets);
                 forest.set_of_node = copied(set_of_node);
                 forest.sets.assign(sets.data(), sets.data() + sets.size());
                 forest.n_words = static_cast<std::int32_t>(sets.shape(1));
                 forest.divisor = divisor;
                 forest.decision = static_cast<Decision>(decision);
                 forest.cut = cut;
                 forest.cut_high = cut_high;
                 forest.favoured = favoured;
                 forest.link = static_cast<Link>(link);
                 forest.is_float32 = is_float32;
                 forest.has_float32_sum = has_float32_sum;
                 for (const nb::handle one : members)
                     add_member(forest, nb::cast<const Member&>(one).rule);
                 if (!forest.voices.empty() && forest.voices.back().end_tree > forest.n_trees())
                     throw std::invalid_argument("The voices have more trees than there are.");
                 forest.finish();
                 // nanobind hands over raw memory; the forest is complete before it is put there.
                 new (self) Forest(std::move(forest));
             });

    nb::class_<Rules>(m, "Rules")
        .def(nb::init<>())
        .def("add_at_most", [](Rules& self, In<std::int32_t, 1> features,
                               int n) { self.at_most.push_back({copied(features), n}); })
        .def("add_together",
             [](Rules& self, In<std::int32_t, 1> features) {
                 self.together.push_back({copied(features)});
             })
        .def(
            "add_linear",
            [](Rules& self, In<std::int32_t, 1> features, In<double, 1> coefficient, double bound) {
                expect(coefficient, "coefficient", {features.size()});
                self.linear.push_back({copied(features), copied(coefficient), bound});
            })
        // Either a number from low to high, or a mask over the feature's cells.
        .def("add_implies", [](Rules& self, int cause, double cause_low, double cause_high,
                               In<std::uint8_t, 1> cause_cells, int effect, double effect_low,
                               double effect_high, In<std::uint8_t, 1> effect_cells) {
            const auto condition = [&self](int feature, double low, double high,
                                           const In<std::uint8_t, 1>& mask) {
                // An empty mask stands for a condition on numbers.
                if (mask.size() == 0) return Rules::Condition{feature, low, high, -1};
                self.sets.push_back(copied(mask));
                return Rules::Condition{feature, 0.0, 0.0,
                                        static_cast<std::int32_t>(self.sets.size()) - 1};
            };
            const Rules::Condition first = condition(cause, cause_low, cause_high, cause_cells);
            self.implies.push_back(
                {first, condition(effect, effect_low, effect_high, effect_cells)});
        });

    nb::class_<HeldBatch>(m, "Batch")
        .def(nb::init<In<double, 2>, In<double, 2>, In<double, 2>, In<double, 1>, In<double, 1>,
                      In<std::int8_t, 1>, In<std::int32_t, 1>, In<std::int32_t, 1>, In<double, 2>,
                      In<double, 2>, In<double, 2>, In<std::int32_t, 1>, In<double, 1>,
                      In<std::uint8_t, 1>, std::optional<Rules>>(),
             "rows"_a, "low"_a, "high"_a, "offset"_a, "scale"_a, "grain"_a, "origin"_a, "target"_a,
             "first"_a, "set_value"_a, "set_delta"_a, "list_start"_a, "list_value"_a, "is_strict"_a,
             "rules"_a.none());

    m.def("hard_scores",
          [](const Forest& forest, In<double, 2> rows, Out<double, 2> scores, int n_threads) {
              const std::size_t n = rows.shape(0);
              expect(rows, "rows", {n, static_cast<std::size_t>(forest.n_features)});
              expect(scores, "scores", {n, static_cast<std::size_t>(forest.n_scores())});
              run(std::nullopt, [&](Control& control) {
                  hard_scores(forest, rows.data(), static_cast<std::int64_t>(n), scores.data(),
                              n_threads, control);
              });
          });

    m.def("predict", [](const Forest& forest, In<double, 2> rows, Out<std::int32_t, 1> predicted,
                        int n_threads) {
        const std::size_t n = rows.shape(0);
        expect(rows, "rows", {n, static_cast<std::size_t>(forest.n_features)});
        expect(predicted, "predicted", {n});
        run(std::nullopt, [&](Control& control) {
            predict(forest, rows.data(), static_cast<std::int64_t>(n), predicted.data(), n_threads,
                    control);
        });
    });

    m.def("soft_loss",
          [](const Forest& forest, In<double, 1> threshold, In<double, 2> value, int n_trees,
             double sigma, double tau, bool use_softmax, In<double, 2> z, In<std::int32_t, 1> label,
             In<std::int8_t, 1> sign, Out<double, 1> loss, Out<double, 2> gradient, int n_threads) {
              const std::size_t n = z.shape(0), d = static_cast<std::size_t>(forest.n_features);
              const SoftForest soft =
                  make_soft(forest, threshold, value, n_trees, sigma, tau, use_softmax);
              expect(z, "z", {n, d});
              expect(label, "label", {n});
              expect(sign, "sign", {n});
              expect(loss, "loss", {n});
              expect(gradient, "gradient", {n, d});
              run(std::nullopt, [&](Control& control) {
                  soft_loss(forest, soft, z.data(), label.data(), sign.data(),
                            static_cast<std::int64_t>(n), loss.data(), gradient.data(), n_threads,
                            control);
              });
          });

    m.def("descend", [](const Forest& forest, In<double, 1> threshold, In<double, 2> value,
                        int n_trees, double sigma, double tau, bool use_softmax, int metric,
                        In<double, 1> weight, In<double, 2> inverse, double beta, double alpha,
                        int iterations, double gradient_scale, const HeldBatch& held,
                        Out<double, 2> best, Out<double, 1> best_distance,
                        std::optional<Out<double, 2>> trace, int n_threads, Progress progress) {
        const std::size_t n = held.rows.shape(0), d = static_cast<std::size_t>(forest.n_features);
        const SoftForest soft =
            make_soft(forest, threshold, value, n_trees, sigma, tau, use_softmax);
        const Batch batch = held.of(forest);
        expect(best, "best", {n, d});
        expect(best_distance, "best_distance", {n});
        if (trace) expect(*trace, "trace", {n, static_cast<std::size_t>(iterations)});
        const Distance distance = make_distance(forest, metric, weight, inverse);
        const Descent descent{beta, alpha, iterations, gradient_scale};
        return run(progress, [&](Control& control) {
            descend(forest, soft, distance, descent, batch, best.data(), best_distance.data(),
                    trace ? trace->data() : nullptr, n_threads, control);
        });
    });

    // norm_weights (4, d) for separable distances; else metric with weight (d,) and inverse (d, d).
    m.def(
        "exact",
        [](const Forest& forest, In<double, 1> cell_low, In<double, 1> cell_high,
           std::optional<In<double, 2>> norm_weights, int metric, In<double, 1> weight,
           In<double, 2> inverse, double seconds, std::int64_t node_limit, std::int64_t step_limit,
           double bytes, std::int64_t patience, const HeldBatch& held, int part,
           Out<double, 2> best, Out<double, 1> distances, Out<double, 1> lower_bound,
           Out<std::int8_t, 1> proof, Out<std::uint8_t, 1> is_undecided, Out<std::int64_t, 1> nodes,
           Out<std::int64_t, 1> steps, int n_threads, Progress progress) {
            const Batch batch = held.of(forest);
            const std::size_t n = held.rows.shape(0), d = held.rows.shape(1);
            expect(best, "best", {n, d});
            for (const auto& [array, name] :
                 {std::pair{distances, "distances"}, {lower_bound, "lower_bound"}})
                expect(array, name, {n});
            expect(proof, "proof", {n});
            expect(is_undecided, "is_undecided", {n});
            expect(nodes, "nodes", {n});
            expect(steps, "steps", {n});
            // Both are made, the kernel looks at the one that the caller has chosen.
            const Norms norms = norm_weights ? make_norms(forest, *norm_weights) : Norms{};
            const Distance distance = make_distance(forest, metric, weight, inverse);
            return run(progress, [&](Control& control) {
                exact(forest, cell_low.data(), cell_high.data(), norm_weights ? &norms : nullptr,
                      &distance, Limits{seconds, node_limit, step_limit, bytes, patience}, batch,
                      static_cast<Part>(part),
                      Rows{best.data(), distances.data(), lower_bound.data(), proof.data(),
                           is_undecided.data(), nodes.data(), steps.data()},
                      n_threads, control);
            });
        });

    // The proof that the batch's only row has no answer below `distance`: (boxes, values, weights)
    // a goal.
    m.def("record_proof", [](const Forest& forest, In<double, 1> cell_low, In<double, 1> cell_high,
                             std::optional<In<double, 2>> norm_weights, int metric,
                             In<double, 1> weight, In<double, 2> inverse, double seconds,
                             std::int64_t node_limit, const HeldBatch& held, double distance) {
        const Batch batch = held.of(forest);
        if (batch.n != 1) throw std::invalid_argument("a proof is recorded of one row");
        const Norms norms = norm_weights ? make_norms(forest, *norm_weights) : Norms{};
        const Distance coupled = make_distance(forest, metric, weight, inverse);
        std::vector<ProofLog> logs;
        run(std::nullopt, [&](Control& control) {
            logs = record_proof(
                forest, cell_low.data(), cell_high.data(), norm_weights ? &norms : nullptr, coupled,
                Limits{seconds, node_limit, 0, kInfinity}, batch, distance, control);
        });
        const auto listed = [](const auto& numbers) {
            nb::list list;
            for (const auto one : numbers) list.append(one);
            return list;
        };
        nb::list goals;
        for (const ProofLog& log : logs) {
            nb::list values, weights;
            for (const auto& [column, value] : log.values)
                values.append(nb::make_tuple(column, value));
            for (const ProofLog::Weights& one : log.weights)
                weights.append(nb::make_tuple(listed(one.point), listed(one.prices)));
            goals.append(nb::make_tuple(listed(log.boxes), values, weights));
        }
        return goals;
    });

    m.def("polish", [](const Forest& forest, In<double, 1> cell_low, In<double, 1> cell_high,
                       In<double, 2> norm_weights, double seconds, double bytes,
                       const HeldBatch& held, bool with_trades, Out<double, 2> points,
                       Out<std::int64_t, 1> steps, int n_threads, Progress progress) {
        const Norms norms = make_norms(forest, norm_weights);
        const Batch batch = held.of(forest);
        expect(points, "points", {held.rows.shape(0), held.rows.shape(1)});
        expect(steps, "steps", {held.rows.shape(0)});
        return run(progress, [&](Control& control) {
            polish(forest, cell_low.data(), cell_high.data(), norms, Limits{seconds, 0, 0, bytes},
                   batch, with_trades, points.data(), steps.data(), n_threads, control);
        });
    });

    // What the exact search and polish derive from a forest and keep, where there is room for it.
    m.def("prepare", [](const Forest& forest) {
        const nb::gil_scoped_release release;
        if (Plan(forest, Limits{}, 1).can_search) ExactShared::of(forest);
    });

    // Bytes on one thread: of the exact search, and of a descent.
    m.def("memory", [](const Forest& forest) {
        return std::pair(Plan(forest, Limits{}, 1).least, SoftBlock::bytes(forest));
    });

    m.def("nearest", [](const Forest& forest, const HeldBatch& held, In<std::int8_t, 1> kind,
                        In<double, 2> examples, In<std::int32_t, 1> answer,
                        Out<std::int32_t, 2> index, int n_threads) {
        const std::size_t n = held.rows.shape(0), d = held.rows.shape(1),
                          n_examples = examples.shape(0);
        const Batch batch = held.of(forest);
        expect(kind, "kind", {d});
        expect(examples, "examples", {n_examples, d});
        expect(answer, "answer", {n_examples});
        expect(index, "index", {n, index.shape(1)});
        run(std::nullopt, [&](Control& control) {
            nearest(batch, static_cast<std::int32_t>(d), kind.data(), examples.data(),
                    answer.data(), static_cast<std::int64_t>(n_examples),
                    static_cast<std::int32_t>(index.shape(1)), index.data(), n_threads, control);
        });
    });
}
