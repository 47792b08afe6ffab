"""The judge on trial: what the oracle says of small problems, by other means, and lies that it has to see."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from treefocus import (
    AtMost,
    Condition,
    Decreasing,
    Explanations,
    Fixed,
    Implies,
    Increasing,
    Linear,
    MayBeMissing,
    OneOf,
    Range,
    Status,
    Together,
)
from treefocus.model.forest import Floats
from truth.campaign import excluded, pair_table, run, seldom
from truth.claims import answered, held
from truth.columns import DESIGNS, frame_of, points_of
from truth.meaning import MEASURES, Question, Space
from truth.models import LIBRARIES, Model, fitted, why_no_model
from truth.oracle import TooManyBoxesError, nearest
from truth.problems import Problem, Spec, chosen_seeds, drawn, made

MADE = [(library, design) for library in LIBRARIES for design in DESIGNS if why_no_model(library, design, 2) is None]


def question(row: list[float], *constraints: Any, design: str = "mixed", measure: str = "manhattan") -> Question:
    return asked_of(fitted("decision tree", design, 2, 0), row, *constraints, measure=measure)


def asked_of(model: Model, row: list[float], *constraints: Any, measure: str = "manhattan") -> Question:
    space = Space.of(model, "of the data", "range")
    return Question(model, space, np.array(row), constraints, MEASURES[measure], None, np.ones(len(row)))


def random_points(of: Question, rng: np.random.Generator, n: int) -> Floats:
    """Points of the domain, many of them on the row's own values, on thresholds, and on what constraints name."""
    points = np.empty((n, len(of.row)))
    for j, column in enumerate(of.columns):
        if column.is_category:
            held = np.arange(float(len(column.values)))
        elif column.is_finite:
            held = np.array(column.values)
        else:
            own = of.model.cuts[j]
            ends = np.clip(
                [of.low[j], of.high[j]], np.nanmin(of.model.data[:, j]) - 9, np.nanmax(of.model.data[:, j]) + 9
            )
            held = np.concatenate([own, np.nextafter(own, np.inf), rng.uniform(*ends, 30)])
            held = np.rint(held) if column.is_whole else np.append(held, np.round(held, 2))
        if j in of.may_become_missing or np.isnan(of.row[j]):
            held = np.append(held, np.nan)
        points[:, j] = np.where(rng.random(n) < 0.4, of.row[j], rng.choice(held, n))
    return points


# ---- models


@pytest.mark.parametrize(("library", "design"), MADE)
def test_the_atlas_says_what_the_model_says(library: str, design: str) -> None:
    model = fitted(library, design, 2, 1)
    rng = np.random.default_rng(0)
    columns = []
    for j, column in enumerate(model.columns):
        own = model.data[:, j]
        near = np.concatenate([own, model.cuts[j], np.nextafter(model.cuts[j], np.inf)])
        columns.append(rng.choice(near[~np.isnan(near) | column.has_missing], 300))
    points = np.stack(columns, axis=1)
    cells = tuple(model.atlas.cell(j, points[:, j]) for j in range(points.shape[1]))
    assert (model.atlas.answer[cells] == model.own_answers(points)).all()
    if library == "hard votes":
        assert model.atlas.likely is None
        return
    assert model.atlas.likely is not None
    assert (model.atlas.likely[cells] == model.own_probabilities(points)).all()


@pytest.mark.parametrize("design", DESIGNS)
def test_points_survive_the_table(design: str) -> None:
    library = next(library for library, own in MADE if own == design)
    model = fitted(library, design, 2, 0)
    assert np.array_equal(points_of(model.columns, frame_of(model.columns, model.data)), model.data, equal_nan=True)


# ---- meaning

NAN = float("nan")
LOOSE = Condition("b", low=3)


@pytest.mark.parametrize(
    ("constraint", "point", "told"),
    [
        (Fixed("a"), [0.5, 3, 1.0], True),
        (Fixed("a"), [0.5000000001, 3, 1.0], False),
        (Fixed("a", "b"), [0.5, 2, 1.0], False),
        (Increasing("b"), [0.5, 3, 1.0], True),
        (Increasing("b"), [0.5, 1, 1.0], False),
        (Decreasing("b"), [0.5, 1, 1.0], True),
        (Decreasing("b"), [0.5, 4, 1.0], False),
        (Range("a", 0.48, 0.6), [0.48, 3, 1.0], True),
        (Range("a", 0.48, 0.6), [np.nextafter(0.48, 0), 3, 1.0], False),
        (Range("a", -0.1, 0.1, relative=True), [0.55, 3, 1.0], True),
        (Range("a", -0.1, 0.1, relative=True), [0.56, 3, 1.0], False),
        (OneOf("c", [0.1, 0.48]), [0.5, 3, 0.48], True),
        (OneOf("c", [0.1, 0.48]), [0.5, 3, 1.0], False),
        (AtMost(1), [0.5, 2, 1.0], True),
        (AtMost(1), [0.5, 2, 2.7], False),
        (AtMost(0, "a", "b"), [0.5, 3, 2.7], True),
        (AtMost(0, "a", "b"), [0.4, 3, 2.7], False),
        (Together("a", "b"), [0.5, 3, 2.7], True),
        (Together("a", "b"), [0.4, 2, 2.7], True),
        (Together("a", "b"), [0.4, 3, 2.7], False),
        (Implies(Condition("a", low=0.48), LOOSE), [0.48, 3, 1.0], True),
        (Implies(Condition("a", low=0.48), LOOSE), [0.48, 2, 1.0], False),
        (Implies(Condition("a", low=0.48), LOOSE), [np.nextafter(0.48, 0), 2, 1.0], True),
        (Linear({"a": 1, "b": -2}, at_most=-5.5), [0.5, 3, 1.0], True),
        (Linear({"a": 1, "b": -2}, at_most=-5.5), [0.5000001, 3, 1.0], False),
        (Linear({"a": 1, "b": -2}, at_most=-5.5), [NAN, 3, 1.0], True),
        (MayBeMissing("a"), [NAN, 3, 1.0], True),
    ],
)
def test_what_constraints_mean(constraint: Any, point: list[float], told: bool) -> None:
    assert question([0.5, 3, 1.0]).says(constraint, np.array(point)) is told


@pytest.mark.parametrize(
    ("constraints", "own", "stays", "becomes_known"),
    [
        ((), NAN, True, True),
        ((Fixed("a"),), NAN, True, False),
        ((Increasing("a"),), NAN, True, False),
        ((Range("a", -1, 1, relative=True),), NAN, True, False),
        ((Range("a", 0.2, 0.4),), NAN, True, True),
        ((OneOf("a", [0.25]),), NAN, False, True),
        ((OneOf("a", [0.25]), MayBeMissing("a")), NAN, True, True),
        ((Linear({"a": 1, "b": 1}, -99),), NAN, True, False),
        ((AtMost(0),), NAN, True, False),
        ((Together("a", "b"),), NAN, True, False),
    ],
)
def test_what_rules_mean_for_a_missing_value(
    constraints: tuple[Any, ...], own: float, stays: bool, becomes_known: bool
) -> None:
    model = fitted("decision tree", "missing numbers", 2, 0)
    asked = asked_of(model, [own, 3.0, 0.0], *constraints)
    for value, told in ((NAN, stays), (0.25, becomes_known)):
        point = np.array([value, 3.0, 0.0])
        said = [asked.says_column(0, value), *(asked.says(one, point) for one in constraints)]
        assert all(said) is told


@pytest.mark.parametrize(
    ("constraints", "told"),
    [
        ((), False),
        ((MayBeMissing("a"),), True),
        ((MayBeMissing("a"), Fixed("a")), False),
        ((MayBeMissing("a"), Increasing("a")), True),
        ((MayBeMissing("a"), Range("a", 0.2, 0.4)), True),
        ((MayBeMissing("a"), OneOf("a", [0.25])), True),
        ((MayBeMissing("a"), AtMost(0)), False),
        ((MayBeMissing("a"), Implies(Condition("b", low=3), Condition("a", low=-9))), False),
    ],
)
def test_what_may_become_missing(constraints: tuple[Any, ...], told: bool) -> None:
    model = fitted("decision tree", "missing numbers", 2, 0)
    asked = asked_of(model, [0.25, 3.0, 0.0], *constraints)
    point = np.array([NAN, 3.0, 0.0])
    assert all([asked.says_column(0, NAN), *(asked.says(one, point) for one in constraints)]) is told


@pytest.mark.parametrize(
    ("j", "value", "told"),
    [(0, 0.123456, True), (0, 1e6, False), (0, NAN, False), (1, 2.0, True), (1, 2.5, False), (1, 99.0, False),
     (2, 0.48, True), (2, 0.5, False)],
)  # fmt: skip
def test_what_columns_hold(j: int, value: float, told: bool) -> None:
    assert question([0.5, 3, 1.0]).says_column(j, value) is told


def test_a_value_may_stay_where_it_is_and_move_towards_its_domain() -> None:
    asked = question([1e6, 2.5, 0.7])
    assert all(asked.says_column(j, value) for j, value in enumerate(asked.row))
    assert asked.says_column(0, 5e5)
    assert not asked.says_column(0, 2e6)


def test_what_distances_measure() -> None:
    asked = question([0.0, 1.0, 1.0], design="integers")
    asked = replace(asked, weights=np.array([1.0, 4.0, 1.0]))
    point = asked.row + np.array([1.0, -2.0, 0.0]) * asked.scale
    said = {name: float(replace(asked, measure=one).cost(point[None])[0]) for name, one in MEASURES.items()}
    assert said["manhattan"] == pytest.approx(1 + 4 * 2)
    assert said["euclidean"] == pytest.approx(np.sqrt(1 + 4 * 4))
    assert said["chebyshev"] == pytest.approx(8)
    assert said["fewest features"] == 5
    assert said["manhattan + fewest"] == pytest.approx(9 + 0.25 * 5)
    assert said["euclidean + manhattan"] == pytest.approx(2 * np.sqrt(17) + 4.5)
    assert said["manhattan + chebyshev"] == pytest.approx(4.5 + 8)
    step = np.array([1.0, -2.0 * 2.0, 0.0])  # a weight of 4 counts a change twice
    z = (asked.model.data - asked.space.offset) / asked.scale
    square = step @ np.linalg.inv(np.cov(z.T, bias=True)) @ step
    assert said["mahalanobis"] == pytest.approx(np.sqrt(square))
    assert said["mahalanobis squared"] == pytest.approx(square)


def test_a_category_and_a_missing_value_are_one_away() -> None:
    model = fitted("histogram boosting", "missing words", 2, 0)
    asked = replace(asked_of(model, [0.0, NAN, 2.0]), weights=np.array([2.0, 3.0, 1.0]))
    points = np.array([[2.0, NAN, 2.0], [0.0, 0.3, 2.0], [NAN, 0.3, 2.0], [0.0, NAN, 2.0]])
    assert asked.cost(points).tolist() == [2.0, 3.0, 5.0, 0.0]


# ---- the closest answer


def finite_problems() -> list[int]:
    """Problems all of whose columns hold few values."""
    specs = map(Spec.of, range(1500))
    return [
        spec.seed
        for spec in specs
        if all(column.is_finite for column in spec.columns) and spec.domain in ("of the data", "given bounds")
    ]


@pytest.mark.parametrize("part", range(2))
def test_nothing_is_closer_among_all_points(part: int) -> None:
    n_found = 0
    for seed in finite_problems()[part::2][:30]:
        problem = drawn(seed)
        asked = problem.question(0)
        held_values = []
        for j, column in enumerate(asked.columns):
            values = np.array(column.values) if not column.is_category else np.arange(float(len(column.values)))
            if column.is_whole:
                ends = values[0] - 4, values[-1] + 4, asked.row[j]
                values = np.arange(np.ceil(np.nanmin(ends)), np.nanmax(ends) + 1)
            held_values.append(np.unique([*values, asked.row[j], np.nan]))
        points = np.array(list(product(*held_values)))
        points = points[np.argsort(asked.cost(points), kind="stable")]
        points = points[asked.wanted(_readable(asked.model, points))] if asked.model.takes_missing else points
        best = next((point for point in points if _is_known(asked.model, point) and asked.is_witness(point)), None)
        said = nearest(asked)
        assert (best is None) == (said is None), seed
        if best is not None and said is not None:
            n_found += 1
            assert said.cost == pytest.approx(float(asked.cost(best[None])[0]), rel=1e-12), seed
    assert n_found > 5


def _is_known(model: Model, point: Floats) -> bool:
    """Whether no value is missing that the model cannot read without."""
    may_be = np.array([column.has_missing for column in model.columns])
    return bool((~np.isnan(point) | may_be).all())


def _readable(model: Model, points: Floats) -> Floats:
    """The points with something in the place of missing values that the model cannot read."""
    may_be = np.array([column.has_missing for column in model.columns])
    return np.where(np.isnan(points) & ~may_be, np.nanmin(model.data, axis=0), points)


@pytest.mark.parametrize("part", range(3))
def test_nothing_is_closer_among_random_points(part: int) -> None:
    n_asked = n_better = 0
    for seed in range(1000 + 50 * part, 1050 + 50 * part):
        problem = drawn(seed)
        asked = problem.question(0)
        points = random_points(asked, np.random.default_rng(seed), 400)
        points = points[[_is_known(asked.model, point) for point in points]]
        points = points[asked.wanted(points)]
        points = points[np.argsort(asked.cost(points), kind="stable")][:60]
        try:
            best = nearest(asked)
        except TooManyBoxesError:
            continue  # as the campaign leaves it out
        limit = np.inf if best is None else best.cost * (1 - 1e-7) - 1e-9
        closer = [point for point in points[asked.cost(points) < limit] if asked.is_witness(point)]
        assert not closer, f"seed {seed}: {closer[0]} is closer than {best}"
        n_asked += 1
        n_better += best is not None
    assert n_asked >= 40
    assert n_better > n_asked / 4


def test_an_answer_is_found_wherever_one_is_planted() -> None:
    """A box of one point between two sums and a tree: what the search for corners has to find."""
    asked = question([0.5, 3, 1.0], Linear({"a": 1, "b": 1}, 3.25), Linear({"a": -1, "b": -1}, -3.25))
    found = nearest(replace(asked, target=asked.model.answers(asked.row[None])[0]))
    assert found is not None
    assert found.point[0] + found.point[1] == 3.25
    assert found.cost == pytest.approx(0.25 / asked.scale[0])


# ---- lies


@cache
def easy() -> tuple[Problem, Any, Explanations]:
    """A problem of whole numbers without constraints, and what is said of it."""
    spec = replace(
        Spec.of(0), library="random forest", design="integers", n_classes=2, measure="manhattan", target="any",
        weights="no weights", constraints=(("none", ()),), asked=("rounded",), domain="of the data",
    )  # fmt: skip
    problem = made(spec)
    return problem, *answered(problem)


def lied(**changes: Any) -> Counter[str]:
    """What the judge says if something else had been found."""
    problem, explainer, found = easy()
    assert found.status[0] is Status.OPTIMAL
    other = {name: np.array(getattr(found.found, name), copy=True) for name in changes}
    for name, value in changes.items():
        other[name][0] = value(other[name][0])
    lie = replace(found.found, **other)
    said = held(problem, explainer, replace(found, found=lie, others=()))
    return Counter(one.kind for one in said.false if one.row == 0)


def test_the_truth_is_no_lie() -> None:
    assert not lied(status=lambda status: status)


def test_it_sees_an_answer_where_none_is_said_to_be() -> None:
    assert lied(status=lambda _: Status.INFEASIBLE, lower_bound=lambda _: np.inf)["infeasible"]


def test_it_sees_a_bound_above_the_optimum() -> None:
    bounded = lied(
        status=lambda _: Status.BOUNDED, lower_bound=lambda bound: bound * 1.01, distance=lambda far: far * 1.02
    )
    assert bounded["bound"]
    assert bounded["distance"]


def test_it_sees_a_point_that_does_not_flip() -> None:
    problem, _, _ = easy()
    said = lied(points=lambda _: problem.rows[0], distance=lambda _: 0.0, lower_bound=lambda _: 0.0)
    assert said["valid"]


def test_it_sees_an_optimum_that_is_not_the_closest() -> None:
    problem, _, _ = easy()
    asked = problem.question(0)
    every = np.array(list(product(*(column.values for column in asked.columns))))
    far = max(every[asked.wanted(every)], key=lambda point: float(asked.cost(point[None])[0]))
    cost = float(asked.cost(far[None])[0])
    assert lied(points=lambda _: far, distance=lambda _: cost, lower_bound=lambda _: cost)["optimal"]


# ---- pairs


def test_a_seed_says_all_about_a_problem() -> None:
    one, other = drawn(77), drawn(77)
    assert one.spec == other.spec
    assert repr(one.constraints) == repr(other.constraints)
    assert np.array_equal(one.rows, other.rows, equal_nan=True)


def test_seeds_are_chosen_so_that_pairs_meet() -> None:
    plain = [
        Counter(pair for seed in seeds for pair in Spec.of(seed).pairs()) for seeds in (range(300), chosen_seeds(300))
    ]
    assert len(seldom(plain[1], 2)) < len(seldom(plain[0], 2)) / 2


def test_a_pair_is_left_out_for_a_reason_only() -> None:
    pairs = {pair for own in excluded().values() for pair in own}
    assert all(excluded())
    for seed in range(2000):
        assert not Spec.of(seed).pairs() & pairs, seed


def test_the_tally_tells_what_came_out() -> None:
    tally = run([0, 1])
    assert tally.n == 2
    assert tally.status.total() == 4
    assert "distance x weights" in tally.to_text()
    assert "1" in pair_table(tally.met)
