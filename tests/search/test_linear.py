"""Linear rules in the exact search, against a linear or quadratic program in every cell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import linprog, minimize

from support import brute
from support.brute import RowQuestion
from support.examples import forests
from support.forests import SEEDS, adversarial_rows, random_forest
from treefocus import AtMost, Linear, Schema, Status
from treefocus.constraints.kinds import Constraint
from treefocus.kernels import rules
from treefocus.model.forest import Floats
from treefocus.problem.distances import Chebyshev, Distance, Euclidean, FewestFeatures, Manhattan
from treefocus.problem.problem import Problem
from treefocus.problem.question import Question
from treefocus.problem.space import Space
from treefocus.schema.schema import ANY_FLOAT, INTEGER
from treefocus.search import Auto, Exact, Focus
from treefocus.search.base import Run

RELATIVE = 1e-6  # of the quadratic programs


def linear_problem(seed: int, distance: Distance, *, n_rules: int, has_integers: bool = False) -> Problem:
    """Two or three features in a box, and sums of them that are bounded."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 4))
    forest = random_forest(rng, n_features=d, n_trees=int(rng.integers(1, 5)), n_thresholds=3, n_classes=2)
    grain = np.full(d, ANY_FLOAT, np.int8)
    rows = np.round(adversarial_rows(forest, rng, 4), 2)
    if has_integers:
        grain[0] = INTEGER
        rows[:, 0] = np.rint(rows[:, 0])
    rules: list[Constraint] = []
    for _ in range(n_rules):
        columns = rng.choice(d, 2, replace=False)
        coefficients = dict(zip(columns.tolist(), rng.choice([-2.0, -1.0, 1.0, 1.5], 2).tolist(), strict=True))
        own = np.array([coefficients.get(f, 0.0) for f in range(d)])
        rules.append(Linear(coefficients, at_most=float(np.round((rows @ own).mean() + rng.normal(0.0, 0.5), 1))))
    if rng.random() < 0.3:
        rules.append(AtMost(2))
    return Question(
        forest,
        rows,
        space=Space(np.zeros(d), rng.uniform(0.5, 2.0, d), np.full(d, -4.0), np.full(d, 4.0)),
        distance=distance.fitted(d, None),
        constraints=rules,
        schema=Schema.of_names(f"x{f}" for f in range(d)),
        grain=grain,
        target=None,
    ).problem()


def cheapest(question: RowQuestion, low: Floats, high: Floats) -> float:
    """The smallest distance to the part of one cell that obeys the linear rules, by a program of its own."""
    row, scale, d = question.row, question.scale, len(question.row)
    sums = [rule for rule in question.rules if type(rule).__name__.removesuffix("Rule") == "Linear"]
    matrix = np.array([[dict(zip(r.columns, r.coefficient, strict=True)).get(f, 0.0) for f in range(d)] for r in sums])
    bound = np.array([rule.bound for rule in sums])
    if isinstance(question.distance, Manhattan):  # values, and how far each is away
        eye = np.eye(d)
        away = np.block([[eye, -np.diag(scale)], [-eye, -np.diag(scale)], [matrix, np.zeros((len(sums), d))]])
        limits = [*zip(low, high, strict=True), *[(0, None)] * d]
        cost = np.concatenate([np.zeros(d), np.ones(d)])
        found = linprog(cost, A_ub=away, b_ub=np.concatenate([row, -row, bound]), bounds=limits)
        return float(found.fun) if found.success else np.inf
    if isinstance(question.distance, Chebyshev):  # values, and how far the farthest is away
        eye, zero = np.eye(d), np.zeros((len(sums), 1))
        away = np.block([[eye, -scale[:, None]], [-eye, -scale[:, None]], [matrix, zero]])
        limits = [*zip(low, high, strict=True), (0, None)]
        found = linprog(np.append(np.zeros(d), 1.0), A_ub=away, b_ub=np.concatenate([row, -row, bound]), bounds=limits)
        return float(found.fun) if found.success else np.inf
    inside = linprog(np.zeros(d), A_ub=matrix, b_ub=bound, bounds=list(zip(low, high, strict=True)))
    if not inside.success:
        return np.inf
    found = minimize(
        lambda v: (((v - row) / scale) ** 2).sum(), inside.x, jac=lambda v: 2 * (v - row) / scale**2, method="SLSQP",
        bounds=list(zip(low, high, strict=True)), options={"maxiter": 200, "ftol": 1e-14},
        constraints=[{"type": "ineq", "fun": lambda v: bound - matrix @ v, "jac": lambda v: -matrix}],
    )  # fmt: skip
    return float(np.sqrt(max(found.fun, 0.0)))


def optimum(question: RowQuestion) -> float:
    """The closest answer, cell by cell; rules on how many change are looked up by fixing the others."""
    best = np.inf
    n_most = min(
        [rule.n for rule in question.rules if type(rule).__name__.removesuffix("Rule") == "AtMost"],
        default=len(question.row),
    )
    for changed in range(2 ** len(question.row)):
        may_change = np.array([changed >> f & 1 for f in range(len(question.row))], bool)
        if may_change.sum() > n_most:
            continue
        lows, highs = brute.cells(question)
        for low, high in zip(lows, highs, strict=True):
            own = np.clip(question.row, low, high)
            if ((own != question.row) & ~may_change).any():
                continue
            if question.flips(brute.predict(question.forest, own[None, :]))[0]:
                fixed_low, fixed_high = np.where(may_change, low, own), np.where(may_change, high, own)
                away = cheapest(question, fixed_low, fixed_high)
                if isinstance(question.distance, FewestFeatures) and away < np.inf:
                    away = float(may_change.sum())
                best = min(best, away)
    return best


@pytest.mark.parametrize("distance", [Chebyshev(), FewestFeatures()], ids=["chebyshev", "fewest"])
@forests(8)
@given(seed=SEEDS)
def test_a_maximum_and_a_count_are_decided_under_one_sum(seed: int, distance: Distance) -> None:
    problem = linear_problem(seed, distance, n_rules=1)
    found = Exact().solve(problem, Run(n_jobs=1))
    for i, question in enumerate(brute.questions_of(problem)):
        best = optimum(question)
        if best == np.inf:
            assert found.status[i] is Status.INFEASIBLE
            continue
        assert problem.is_valid(found.points)[i]
        assert found.status[i] is Status.OPTIMAL
        assert found.distance[i] == pytest.approx(best, rel=RELATIVE, abs=1e-6)


@pytest.mark.parametrize("n_rules", [1, 2])
@pytest.mark.parametrize("distance", [Manhattan(), Euclidean()], ids=["manhattan", "euclidean"])
@forests(8)
@given(seed=SEEDS)
def test_exact_finds_what_the_programs_find(seed: int, distance: Distance, n_rules: int) -> None:
    problem = linear_problem(seed, distance, n_rules=n_rules)
    found = Exact().solve(problem, Run(n_jobs=1))
    for i, question in enumerate(brute.questions_of(problem)):
        best = optimum(question)
        status, reached = found.status[i], found.distance[i]
        assert found.lower_bound[i] <= best * (1 + RELATIVE) + 1e-6 or best == np.inf
        if best == np.inf:
            assert status is Status.INFEASIBLE
            continue
        assert problem.is_valid(found.points)[i]
        assert reached >= best * (1 - RELATIVE) - 1e-6
        if not any(isinstance(rule, rules.AtMostRule) for rule in question.rules) and n_rules == 1:
            assert status is Status.OPTIMAL
        if status is Status.OPTIMAL:
            assert reached <= best * (1 + RELATIVE) + 1e-6


@forests(8)
@given(seed=SEEDS)
def test_whole_numbers_obey_and_are_not_called_better_than_they_are(seed: int) -> None:
    problem = linear_problem(seed, Manhattan(), n_rules=1, has_integers=True)
    found = Exact(node_limit=2000).solve(problem, Run(n_jobs=1))
    for i, question in enumerate(brute.questions_of(problem)):
        relaxed = optimum(question)  # over all numbers: no answer in whole numbers is closer
        if found.status[i].has_answer:
            assert problem.is_valid(found.points)[i]
            assert found.distance[i] >= relaxed * (1 - RELATIVE) - 1e-6


@pytest.mark.parametrize("strategy", [Auto(), Focus(iterations=100)], ids=["auto", "focus"])
@forests(8)
@given(seed=SEEDS)
def test_every_strategy_obeys(seed: int, strategy: Auto | Focus) -> None:
    problem = linear_problem(seed, Euclidean(), n_rules=2)
    found = strategy.solve(problem, Run(n_jobs=1))
    has_answer = np.array([status.has_answer for status in found.status])
    assert problem.is_valid(found.points)[has_answer].all()
    assert problem.obeys(found.points)[has_answer].all()
