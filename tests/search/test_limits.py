"""The one rule about time: which limit counts, and what is left of it."""

from __future__ import annotations

import copy
import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from treefocus import (
    Auto,
    Dace,
    Exact,
    Explainer,
    Explanations,
    Focus,
    InvalidInput,
    Probability,
    Status,
    kernels,
    verify,
)
from treefocus.model.forest import Floats
from treefocus.problem.problem import Problem
from treefocus.search import limits
from treefocus.search.base import Outcome, Run, Strategy, solved
from treefocus.search.limits import LEAST, WORK, Clock, DefaultSeconds, check_time_limit, seconds_left, time_limit_of


def asked(explainer: Explainer, strategy: str | Strategy, **options: Any) -> Explanations:
    return explainer.explain(explainer.space.low[None] + 0.5 * explainer.space.scale, strategy=strategy, **options)


@pytest.fixture(scope="module")
def data() -> Floats:
    return np.random.default_rng(5).normal(size=(300, 6))


@pytest.fixture(scope="module")
def explainer(data: Floats) -> Explainer:
    model = RandomForestClassifier(20, max_depth=5, random_state=0).fit(data, data[:, 0] + data[:, 1] > 0)
    return Explainer(model, data)


DEFAULT = DefaultSeconds(1.0)


@pytest.mark.parametrize(
    ("own", "told", "counts"),
    [
        (1.0, 5.0, 1.0), (5.0, 1.0, 1.0), (1.0, None, 1.0), (None, 5.0, 5.0), (None, None, None),
        (DEFAULT, 5.0, 5.0), (DEFAULT, 0.5, 0.5), (DEFAULT, None, 1.0), (np.inf, None, None), (DEFAULT, np.inf, None),
    ],
)  # fmt: skip
def test_the_tighter_limit_counts_and_a_default_gives_way(
    own: float | None, told: float | None, counts: float | None
) -> None:
    assert time_limit_of(own, told) == counts


@pytest.mark.parametrize("kind", [Auto, Exact])
def test_every_strategy_follows_the_same_rule(explainer: Explainer, kind: Any) -> None:
    own = asked(explainer, kind(time_limit=20), time_limit=50)[0].limits
    assert own is not None
    assert own.time_limit == 20
    own = asked(explainer, kind(time_limit=50), time_limit=20)[0].limits
    assert own is not None
    assert own.time_limit == 20


def test_a_default_is_no_limit_of_its_own(explainer: Explainer) -> None:
    for strategy in ("auto", Auto(), pickle.loads(pickle.dumps(Auto())), copy.deepcopy(Auto())):
        own = asked(explainer, strategy, time_limit=50)[0].limits
        assert own is not None
        assert own.time_limit == 50
    own = asked(explainer, "auto")[0].limits
    assert own is not None
    assert own.time_limit is None
    assert own.work_limit == WORK
    assert type(own.work_limit) is int


def test_dace_follows_the_rule(explainer: Explainer, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[float] = []

    def program(*arguments: Any) -> None:
        heard.append(arguments[-1]["time_limit"])

    monkeypatch.setattr("treefocus.search.dace._program", program)
    for strategy, told, counts in ((Dace(), 500.0, 500.0), (Dace(time_limit=300), 500.0, 300.0), (Dace(), None, 60.0)):
        asked(explainer, strategy, time_limit=told)
        assert counts * (1 - LEAST) < heard[-1] <= counts
    asked(explainer, Dace(time_limit=None))
    assert heard[-1] == np.inf


def test_programs_of_a_row_share_its_time(data: Floats, monkeypatch: pytest.MonkeyPatch) -> None:
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(data, np.digitize(data[:, 0], (-0.5, 0.0, 0.5)))
    heard: list[float] = []
    monkeypatch.setattr("treefocus.search.dace._program", lambda *given: heard.append(given[-1]["time_limit"]))
    Explainer(model, data).explain(data[:1], strategy=Dace(), time_limit=300)
    assert len(heard) == 3
    assert 300 * (1 - LEAST) < sum(heard) <= 300


@dataclass
class Watch:
    """The clock, which a test may set forward, and what the core was given by it, search after search."""

    ahead: float = 0.0
    heard: list[float] = field(default_factory=list)

    def now(self) -> float:
        return time.perf_counter() + self.ahead

    def after(self, seconds: float, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, which takes so long."""

        def slow(*arguments: Any, **options: Any) -> Any:
            self.ahead += seconds
            return function(*arguments, **options)

        return slow


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    own, exact = Watch(), kernels.exact

    def listened(*arguments: Any, **options: Any) -> Any:
        own.heard.append(options["seconds"])
        return exact(*arguments, **options)

    monkeypatch.setattr(kernels, "exact", listened)
    monkeypatch.setattr(limits, "now", own.now)
    monkeypatch.setattr("treefocus.explainer.now", own.now)
    return own


def test_seeds_take_of_the_rows_time(explainer: Explainer, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Focus, "descended", watch.after(30.0, Focus.descended))
    asked(explainer, "auto", time_limit=100)
    assert 60.0 < watch.heard[-1] <= 70.0
    asked(explainer, "auto", time_limit=20)
    assert watch.heard[-1] == LEAST * 20


def test_the_clock_starts_with_the_call(explainer: Explainer, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Explainer, "_question", watch.after(30.0, Explainer._question))
    asked(explainer, "exact", time_limit=100)
    assert 60.0 < watch.heard[-1] <= 70.0


def test_a_further_way_has_the_same_time_again(
    explainer: Explainer, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "exact", watch.after(60.0, kernels.exact))
    found = asked(explainer, "exact", time_limit=100, n=2)
    assert len(found[0].ways) == 2
    n_parts = len(found[0].changes)
    assert 90.0 / n_parts < watch.heard[-1] <= 100.0 / n_parts


def test_rows_asked_differently_take_turns(
    explainer: Explainer, data: Floats, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "exact", watch.after(60.0, kernels.exact))
    rows = data[data[:, 0] + data[:, 1] < -1][:2]
    explainer.explain(rows, [Probability(True, 0.6), Probability(True, 0.7)], "exact", time_limit=100, n_jobs=1)
    assert len(watch.heard) == 2
    assert min(watch.heard) > 90.0  # what the first row took is not the second one's


class Slow(Strategy):
    """Notes what is left of a row's time."""

    def __init__(self) -> None:
        self.left: list[float] = []

    def solve(self, problem: Problem, run: Run) -> Outcome:
        self.left.append(seconds_left(run.time_limit, run.clock))
        return Outcome.nothing(problem)


def test_a_run_without_a_clock_starts_one(explainer: Explainer, data: Floats) -> None:
    strategy = Slow()
    problem = explainer._question(explainer.table_of(data[:2]), None).problem()
    solved(strategy, problem, Run(time_limit=100.0))
    assert 90 < strategy.left[0] < 100


def test_what_is_spent_on_all_rows_is_each_ones_share() -> None:
    def spent(n_rows: int, n_threads: int) -> float:
        return Clock(n_rows, n_threads, began=time.perf_counter() - 12.0).spent

    assert spent(1, 1) == pytest.approx(12.0, abs=0.5)
    assert spent(1, 8) == pytest.approx(12.0, abs=0.5)  # one row is searched by one thread
    assert spent(6, 1) == pytest.approx(2.0, abs=0.5)
    assert spent(6, 3) == pytest.approx(6.0, abs=0.5)
    assert spent(0, 2) == pytest.approx(12.0, abs=0.5)


def test_a_clock_goes_on_or_waits_for_its_turn() -> None:
    clock = Clock(10, 1, gone=1.0, began=time.perf_counter() - 20.0)
    assert clock.on(3).gone == pytest.approx(3.0, abs=0.1)
    assert clock.again(3).gone == 1.0
    assert clock.on(3).n_rows == clock.again(3).n_rows == 3


def test_what_is_left_is_never_less_than_a_tenth() -> None:
    late = Clock(1, 1, gone=50.0)
    assert seconds_left(None, late) == np.inf
    assert seconds_left(2.0, None) == 2.0
    assert seconds_left(2.0, late) == LEAST * 2.0
    assert seconds_left(100.0, late) == pytest.approx(50.0, abs=1.0)


@pytest.mark.parametrize("limit", [0, -1, np.nan, "1", 0.0])
def test_what_is_no_time_limit_is_refused_everywhere(explainer: Explainer, limit: Any) -> None:
    found = asked(explainer, "auto")
    certificate = found[0].certificate()
    text = r"time_limit must be a number of seconds above 0, or None, got "
    for refused in (
        lambda: check_time_limit(limit),
        lambda: Auto(time_limit=limit),
        lambda: Exact(time_limit=limit),
        lambda: Dace(time_limit=limit),
        lambda: asked(explainer, "auto", time_limit=limit),
        lambda: found[0].price_of_constraints(time_limit=limit),
        lambda: verify(certificate, explainer.forest, time_limit=limit),
    ):
        with pytest.raises(InvalidInput, match=text):
            refused()


def test_answers_are_proven_under_a_clock(explainer: Explainer, data: Floats) -> None:
    assert all(one.status is Status.OPTIMAL for one in explainer.explain(data[:5], time_limit=50))
