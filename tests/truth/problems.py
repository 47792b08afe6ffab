"""Problems drawn by a seed: what is asked of which model, under which constraints, at which distance.

A seed says all about a problem. `Spec` is what it is made of, in words, and `pairs` are the pairs of words that meet in
it; `chosen_seeds` takes the seeds in which pairs meet that have met least. The seeds of one round (`ROUND` of them)
share their models, one of each library, columns and task, so that a model is fitted once and asked many questions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import fsum
from typing import Any

import numpy as np
import pandas as pd

from treefocus import (
    AtMost,
    Auto,
    Condition,
    Decreasing,
    Exact,
    Fixed,
    Focus,
    Implies,
    Increasing,
    Interval,
    Linear,
    LocalOutlierFactor,
    MayBeMissing,
    OneOf,
    Probability,
    Range,
    Score,
    Together,
    Tolerance,
)
from treefocus.model.forest import Floats
from truth.columns import DESIGNS, KINDS, Column, cell_of, frame_of
from truth.meaning import DOMAINS, MEASURES, SCALES, Question, Space
from truth.models import LIBRARIES, MEANS, NO_MISSING, READS_UNSEEN, SINGLE, Model, fitted, why_no_model

CONSTRAINTS = (
    "none", "fixed", "range", "relative range", "increasing", "decreasing", "one of", "at most", "at most of some",
    "linear", "two linears", "equality", "implies", "together", "may be missing",
)  # fmt: skip
TARGETS = ("any", "class", "one a row", "probability", "interval", "score")
ASKED = ("ways", "why not", "prices", "region", "rounded", "plausibility", "certificate")
WEIGHTS = ("no weights", "weights")
MORE = ("nothing more", "also", "vary", "small budget", "two threads", "tolerance")  # what a question can have besides
DIMENSIONS = {
    "distance": tuple(MEASURES), "weights": WEIGHTS, "constraint": CONSTRAINTS, "column": KINDS, "target": TARGETS,
    "library": LIBRARIES, "domain": DOMAINS, "asked": ASKED, "more": MORE,
}  # fmt: skip
COUPLED = tuple(name for name, measure in MEASURES.items() if measure.is_coupled)
SUMS = tuple(library for library in LIBRARIES if library not in MEANS)
OF_NUMBERS = ("range", "relative range", "linear", "two linears", "equality")
Pair = tuple[tuple[str, str], tuple[str, str]]
WORK = 40_000_000  # steps a row: what is decided at all is decided in less, nearly always
STRATEGIES = (
    Auto(work_limit=WORK), Exact(work_limit=WORK), Exact(node_limit=12), Auto(prove=False),
    Focus(iterations=60, retry=False),
)  # fmt: skip
N_ROWS = 2
ROUND = 1_000_000  # seeds
MODELS = (0.5, 0.2, 0.1, 0.08, 0.06, 0.06)  # how often each model of a library, design and task is taken in round 0


@dataclass(frozen=True)
class Spec:
    """What a problem is made of."""

    seed: int
    library: str
    design: str
    n_classes: int
    model_seed: int
    measure: str
    weights: str
    target: str
    constraints: tuple[tuple[str, tuple[int, ...]], ...]  # kinds, and the columns that each is about
    domain: str
    asked: tuple[str, ...]
    more: str = "nothing more"

    @classmethod
    def of(cls, seed: int) -> Spec:
        rng = np.random.default_rng(seed)

        def one(of: Any) -> Any:
            return of[int(rng.integers(len(of)))]

        target = one(TARGETS)
        library = one(SUMS)
        n_classes = one((2, 2, 3))
        means = np.random.default_rng([seed, 1])  # by itself, so that a seed of sums is the problem that it was
        if means.random() < len(MEANS) / len(LIBRARIES):
            library = str(means.choice(MEANS))
        if target == "interval" or (target == "score" and library not in SINGLE):
            n_classes = 0
        elif target == "score" or (target == "probability" and library in ("AdaBoost", "voting")):
            n_classes = 2
        if (library in MEANS and target in ("interval", "score")) or (library, target) == ("hard votes", "probability"):
            target = "class"
        if library in MEANS:
            n_classes = 2
        designs = [design for design in DESIGNS if why_no_model(library, design, n_classes) is None]
        if not designs:  # AdaBoost predicts no number
            target, n_classes = "any", 2
            designs = [design for design in DESIGNS if why_no_model(library, design, n_classes) is None]
        design = one(designs)
        measure = one(tuple(MEASURES))
        kinds = [one(CONSTRAINTS) for _ in range(one((1, 2, 2, 3, 3)))]
        drawn = []
        for kind in dict.fromkeys(kinds):
            about = _about(kind, DESIGNS[design], measure, rng)
            if about is not None:
                drawn.append((kind, about))
        drawn = _apart([(kind, about) for kind, about in drawn if kind != "none" or len(drawn) == 1])
        domain = one((*DOMAINS, "of the data", "of the data"))
        asked = tuple(sorted({one(ASKED) for _ in range(2)}, key=ASKED.index))
        if domain == "without data":
            asked = tuple(own for own in asked if own != "plausibility") or ("ways",)
        number = int(rng.choice(len(MODELS), p=MODELS))
        return cls(
            seed, library, design, n_classes, len(MODELS) - 1 + seed // ROUND if seed >= ROUND else number, measure,
            one(WEIGHTS), target, tuple(drawn) or (("none", ()),), domain, asked, one(MORE),
        )._possible()  # fmt: skip

    def _possible(self) -> Spec:
        """The same without what has no meaning here."""
        is_open = self.target in ("any", "one a row") and self.n_classes == 3  # which class do all agree on?
        if self.more == "also" and (is_open or not self.partners()):
            return replace(self, more="nothing more")
        return self

    def partners(self) -> list[str]:
        """The libraries whose models can be asked besides, of the same columns, task and labels."""
        if self.library == "AdaBoost" and self.target == "score":
            return []
        made = [one for one in LIBRARIES if why_no_model(one, self.design, self.n_classes) is None]
        if any(column.kind == "category" for column in self.columns):
            made = [one for one in made if one in READS_UNSEEN or self.library not in READS_UNSEEN]
        if self.target == "probability":
            made = [one for one in made if one != "hard votes"]
        if self.target == "score" and self.n_classes:
            made = [one for one in made if one in SINGLE]
        if self.n_classes and self.model_seed % 2:  # XGBoost has numbers for labels
            made = [one for one in made if (one == "XGBoost") == (self.library == "XGBoost")]
        return made

    @property
    def columns(self) -> tuple[Column, ...]:
        return DESIGNS[self.design]

    @property
    def model(self) -> tuple[str, str, int, int]:
        """What `fitted` takes."""
        return self.library, self.design, self.n_classes, self.model_seed

    def words(self) -> dict[str, set[str]]:
        """By dimension, what occurs; a column's kind where it is not tied to a constraint."""
        return {
            "distance": {self.measure},
            "weights": {self.weights},
            "constraint": {kind for kind, _ in self.constraints},
            "column": {tag for column in self.columns for tag in column.tags},
            "target": {self.target},
            "library": {self.library},
            "domain": {self.domain},
            "asked": set(self.asked),
            "more": {self.more},
        }

    def pairs(self) -> set[Pair]:
        """The pairs of words of different dimensions that meet; a constraint meets the columns that it is about."""
        words = self.words()
        found: set[Pair] = set()
        for first, second in combinations(DIMENSIONS, 2):
            if (first, second) != ("constraint", "column"):
                found |= {((first, a), (second, b)) for a in words[first] for b in words[second]}
        for kind, about in self.constraints:
            for j in about or range(len(self.columns)):
                found |= {(("constraint", kind), ("column", tag)) for tag in self.columns[j].tags}
        kinds = sorted(words["constraint"], key=CONSTRAINTS.index)
        found |= {(("constraint", a), ("constraint", b)) for a, b in combinations(kinds, 2)}
        return found


def _about(kind: str, columns: tuple[Column, ...], measure: str, rng: np.random.Generator) -> tuple[int, ...] | None:
    """The columns that a constraint of this kind is about, drawn; None where it can be about none."""
    every = np.arange(len(columns))
    numbers = np.array([j for j in every if not columns[j].is_category], int)
    if kind in ("none", "at most"):
        return ()
    if kind in ("linear", "two linears", "equality"):
        return tuple(rng.choice(numbers, 2, replace=False).tolist()) if len(numbers) > 1 else None
    if kind in ("range", "relative range"):
        return (int(rng.choice(numbers)),) if len(numbers) else None
    if kind in ("increasing", "decreasing"):
        ordered = [j for j in every if not columns[j].is_category or columns[j].is_ordered]
        return tuple(rng.choice(ordered, min(len(ordered), int(rng.integers(1, 3))), replace=False).tolist())
    if kind == "may be missing":
        open_to = [j for j in every if columns[j].has_missing]
        if not open_to or measure in COUPLED:
            return None
        return tuple(rng.choice(open_to, int(rng.integers(1, len(open_to) + 1)), replace=False).tolist())
    if kind in ("together", "implies", "at most of some"):
        return tuple(rng.choice(every, 2, replace=False).tolist())
    return (int(rng.choice(every)),)


def _apart(drawn: list[tuple[str, tuple[int, ...]]]) -> list[tuple[str, tuple[int, ...]]]:
    """The same with nothing that may become missing where a sum asks for its value, which is refused."""
    summed = {j for kind, about in drawn for j in about if kind in ("linear", "two linears", "equality")}
    found = []
    for kind, about in drawn:
        kept = tuple(j for j in about if kind != "may be missing" or j not in summed)
        if kept or not about:
            found.append((kind, kept))
    return found


def why_excluded(pair: Pair) -> str | None:
    """Why a pair of words cannot meet; None where it can."""
    words = dict(pair)
    constraint, column, library = words.get("constraint"), words.get("column"), words.get("library")
    if pair[0][0] == pair[1][0] == "constraint":
        return "without constraints there is no second one" if "none" in (pair[0][1], pair[1][1]) else None
    if constraint in OF_NUMBERS and column in ("category", "one-hot"):
        return "the constraint is about numbers"
    if constraint in ("increasing", "decreasing") and column == "one-hot":
        return "a group has no order"
    if constraint == "may be missing":
        if words.get("distance") in COUPLED:
            return "refused: a missing value cannot be measured"
        if column in ("integer", "one-hot"):
            return "a column of the dtype int64 holds no missing value"
        if library in NO_MISSING:
            return f"{library} takes no missing values"
    if column is not None and library is not None:
        made = [
            n
            for design, columns in DESIGNS.items()
            if any(column in own.tags for own in columns)
            for n in (2, 3, 0)
            if why_no_model(library, design, n) is None
        ]
        if not made:
            reasons = {
                str(why_no_model(library, design, 2))
                for design, columns in DESIGNS.items()
                if any(column in own.tags for own in columns)
            }
            return "; ".join(sorted(reasons))
    if words.get("domain") == "without data" and words.get("asked") == "plausibility":
        return "there is nothing to be like"
    if library == "AdaBoost" and words.get("target") == "interval":
        return "AdaBoostRegressor is not a sum of trees"
    if library in ("calibrated", *MEANS) and words.get("target") in ("interval", "score"):
        return "what is calibrated, or voted on, is no score"
    if library == "hard votes" and words.get("target") == "probability":
        return "votes are no probabilities"
    if library == "AdaBoost" and words.get("target") == "score":
        return "refused: AdaBoost has a score a class"
    return None


def every_pair() -> Iterator[Pair]:
    """All pairs of words that can meet."""
    for first, second in combinations(DIMENSIONS, 2):
        for a in DIMENSIONS[first]:
            for b in DIMENSIONS[second]:
                yield (first, a), (second, b)
    for a, b in combinations(CONSTRAINTS, 2):
        yield ("constraint", a), ("constraint", b)


def chosen_seeds(n: int, seed: int = 0, *, at_least: int = 10, tries: int = 8) -> list[int]:
    """Seeds of n problems, each the one of a few in which most pairs meet that have met fewer than `at_least` times.

    Problems of one model stand next to each other, so that it is fitted once, and so do models of the same columns.
    """
    met: Counter[Pair] = Counter()
    wanted = {pair for pair in every_pair() if why_excluded(pair) is None}
    found = []
    for k in range(n):
        first = seed * ROUND + k * tries
        is_open = bool(wanted)
        specs = [Spec.of(first + t) for t in range(tries if is_open else 1)]
        best = max(specs, key=lambda spec: fsum(1.0 / (1 + met[pair]) for pair in spec.pairs() & wanted))
        met.update(best.pairs())
        wanted -= {pair for pair in best.pairs() if met[pair] >= at_least}
        found.append(best)
    return in_order(found)


def in_order(specs: Sequence[Spec]) -> list[int]:
    """The seeds of problems, those of one model next to each other, and models of the same columns too."""
    return [
        one.seed for one in sorted(specs, key=lambda one: (one.design, one.n_classes, one.library, one.model, one.seed))
    ]


# ---- problems


@dataclass(frozen=True, eq=False)
class Problem:
    """A problem: what is given to treefocus, and what it means row by row."""

    spec: Spec
    model: Model
    rows: Floats  # (n_rows, d)
    constraints: tuple[Any, ...]
    target: Any  # as it is given
    targets: tuple[Any, ...]  # row by row
    weights: dict[str, float] | None
    covariance: Floats | None
    plausibility: Any
    space: Space
    strategy: Any
    with_labels: bool  # the schema names the labels of categories without an order
    also: tuple[Model, ...] = ()
    vary: tuple[str, ...] | None = None
    tolerance: Tolerance | None = None

    @property
    def frame(self) -> pd.DataFrame:
        return frame_of(self.model.columns, self.rows)

    def question(self, i: int) -> Question:
        weights = np.array([(self.weights or {}).get(column.name, 1.0) for column in self.model.columns])
        return Question(
            self.model, self.space, self.rows[i], self.obeyed, MEASURES[self.spec.measure], self.targets[i],
            weights, self.covariance, self.also, tolerance=self.tolerance,
        )  # fmt: skip

    @property
    def obeyed(self) -> tuple[Any, ...]:
        """All constraints: what may vary leaves the others fixed."""
        if self.vary is None:
            return self.constraints
        rest = [column.name for column in self.model.columns if column.name not in self.vary]
        return (*self.constraints, Fixed(*rest)) if rest else self.constraints


def drawn(seed: int) -> Problem:
    """The problem of a seed."""
    return made(Spec.of(seed))


def made(spec: Spec) -> Problem:
    """The problem that a spec tells of; what it leaves open is drawn by its seed."""
    rng = np.random.default_rng([spec.seed, 1])
    model = fitted(*spec.model)
    rows = np.stack([_row(model, rng) for _ in range(N_ROWS)])
    targets = _targets(spec, model, rng)
    weights = None
    if spec.weights == "weights":
        names = [column.name for column in model.columns]
        chosen = rng.choice(names, int(rng.integers(1, len(names) + 1)), replace=False)
        weights = {str(name): float(rng.choice([0.25, 0.5, 2.0, 3.0, 10.0])) for name in chosen}
    covariance = None
    is_known = spec.domain != "without data" and not any(column.is_category for column in model.columns)
    if spec.measure.startswith("mahalanobis") and not is_known:
        d = len(model.columns)
        root = rng.normal(size=(d, d)) * 0.3 + 0.3 * np.eye(d)
        covariance = np.round(root @ root.T + 0.02 * np.eye(d), 3)
    scales = ("none", "sizes") if spec.domain == "without data" else (*SCALES, "range", "range", "range")
    constraints = tuple(_constraints(spec, model, rows, rng))
    target = list(targets) if spec.target == "one a row" or len(set(targets)) > 1 else targets[0]
    problem = Problem(
        spec, model, rows, constraints, target, targets, weights, covariance,
        LocalOutlierFactor(limit=float(rng.choice([1.2, 2.0, 5.0]))) if "plausibility" in spec.asked else None,
        Space.of(model, spec.domain, scales[int(rng.integers(len(scales)))]),
        STRATEGIES[int(rng.choice(len(STRATEGIES), p=[0.7, 0.14, 0.1, 0.03, 0.03]))],
        bool(rng.random() < 0.5),
    )  # fmt: skip
    return _with_more(problem, np.random.default_rng([spec.seed, 2]))


def _with_more(problem: Problem, rng: np.random.Generator) -> Problem:
    """The problem with what its question has besides."""
    spec = problem.spec
    if spec.more == "also":
        names = rng.choice(spec.partners(), int(rng.choice([1, 1, 2])))
        models = [
            fitted(str(name), spec.design, spec.n_classes, spec.model_seed + 2 * k) for k, name in enumerate(names)
        ]
        return replace(problem, also=tuple(models))
    if spec.more == "vary":
        names = [column.name for column in problem.model.columns]
        chosen = rng.choice(names, int(rng.integers(1, len(names))), replace=False)
        return replace(problem, vary=tuple(sorted(map(str, chosen))))
    if spec.more == "tolerance":
        return replace(problem, tolerance=_tolerance(problem.model, rng))
    if spec.more == "small budget":
        work, boxes = int(10 ** rng.uniform(2, 6)), int(10 ** rng.uniform(0, 3))
        made = (Auto(work_limit=work), Exact(work_limit=work), Exact(node_limit=boxes), Auto(node_limit=boxes))
        return replace(problem, strategy=made[int(rng.integers(len(made)))])
    return problem


def _tolerance(model: Model, rng: np.random.Generator) -> Tolerance:
    """Shares of the change, or units of some columns above and a share below."""
    below = float(rng.choice([0.0, 0.0, 0.1, 0.5]))
    numbers = [j for j, column in enumerate(model.columns) if not column.is_category]
    if numbers and rng.random() < 0.3:
        some = rng.choice(numbers, int(rng.integers(1, len(numbers) + 1)), replace=False).tolist()
        spread = np.nanmax(model.data, axis=0) - np.nanmin(model.data, axis=0)
        return Tolerance({model.columns[j].name: float(np.round(0.1 * spread[j], 2)) for j in some}, below)
    return Tolerance(float(rng.choice([0.05, 0.2, 1.0, np.inf])), below)


def _row(model: Model, rng: np.random.Generator) -> Floats:
    """A row: of the data, beside thresholds, outside of the domain, off the list, missing where that can be."""
    row = model.data[int(rng.integers(len(model.data)))].copy()
    for j, column in enumerate(model.columns):
        own = model.data[:, j]
        if column.is_category or column.kind == "integer":
            row[j] = own[~np.isnan(own)][int(rng.integers((~np.isnan(own)).sum()))]
            draw = rng.random()
            if column.has_missing and draw < 0.3:
                row[j] = np.nan
            elif column.kind == "category" and model.library in READS_UNSEEN and draw < 0.4:
                row[j] = len(column.values)
            continue
        spread = float(np.nanmax(own) - np.nanmin(own))
        draw = rng.random()
        if column.has_missing and draw < 0.3:
            row[j] = np.nan
        elif np.isnan(row[j]) or draw < 0.5:
            row[j] = rng.choice(own[~np.isnan(own)])
        elif column.has_whole_values:
            row[j] = rng.choice(own) + int(rng.integers(-40, 40))
        elif not column.is_finite and draw < 0.7 and len(model.cuts[j]):
            cut = float(rng.choice(model.cuts[j]))
            row[j] = rng.choice([cut, np.nextafter(cut, np.inf), np.nextafter(cut, -np.inf)])
        elif not column.is_finite and draw < 0.8:
            row[j] = np.round(rng.uniform(np.nanmin(own), np.nanmax(own)), 2)
        elif draw < 0.85:
            row[j] = np.nanmax(own) + np.round(0.3 * spread, 2) if rng.random() < 0.5 else np.nanmin(own) - spread
        elif draw < 0.9 and column.is_finite:
            row[j] = rng.choice(own[~np.isnan(own)]) + 0.25
        if column.kind == "float32":
            row[j] = np.float32(row[j])
    return row


def _targets(spec: Spec, model: Model, rng: np.random.Generator) -> tuple[Any, ...]:
    """What is wanted of each row; probabilities and intervals are sometimes one a row, too."""
    if spec.target == "one a row":
        return tuple([None, *model.classes][int(rng.integers(len(model.classes) + 1))] for _ in range(N_ROWS))
    is_one_a_row = spec.target not in ("any", "class") and rng.random() < 0.3
    made = [_target(spec, model, rng) for _ in range(N_ROWS if is_one_a_row else 1)]
    return tuple(made if is_one_a_row else made * N_ROWS)


def _target(spec: Spec, model: Model, rng: np.random.Generator) -> Any:
    atlas = model.atlas
    if spec.target == "any":
        return None
    if spec.target == "class":
        return model.classes[int(rng.integers(len(model.classes)))]
    if spec.target == "probability":
        assert atlas.likely is not None
        k = int(rng.integers(len(model.classes)))
        given = np.unique(atlas.likely[..., k])
        given = given[(given > 0) & (given < 1)]
        at_least = _one_of(given, rng, model.is_from_file) if len(given) else 0.5
        return Probability(model.classes[k], at_least)
    number = atlas.score if spec.target == "score" else atlas.answer
    assert number is not None
    given = np.unique(number.astype(np.float64))
    low = _one_of(given, rng, model.is_from_file)
    high = max(low, _one_of(given, rng, model.is_from_file))
    ends = [(low, np.inf), (-np.inf, high), (low, high)][int(rng.integers(3))]
    return (Score if spec.target == "score" else Interval)(*ends)


def _one_of(given: Floats, rng: np.random.Generator, is_between: bool) -> float:
    """One of the numbers themselves, or between two; always so where nobody can ask the model for its last digits."""
    k = int(rng.integers(len(given)))
    if not is_between and (rng.random() < 0.6 or k + 1 == len(given)):
        return float(given[k])
    return float((given[k] + given[k + 1]) / 2) if k + 1 < len(given) else float(given[k]) * 0.999


def _constraints(spec: Spec, model: Model, rows: Floats, rng: np.random.Generator) -> Iterator[Any]:
    for kind, about in spec.constraints:
        columns = [model.columns[j] for j in about]
        names = [column.name for column in columns]
        if kind == "fixed":
            yield Fixed(*names)
        elif kind == "increasing":
            yield Increasing(*names)
        elif kind == "decreasing":
            yield Decreasing(*names)
        elif kind == "may be missing":
            yield MayBeMissing(*names)
        elif kind == "together":
            yield Together(*names)
        elif kind == "at most":
            yield AtMost(int(rng.integers(0 if rng.random() < 0.1 else 1, 3)))
        elif kind == "at most of some":
            yield AtMost(int(rng.integers(0, 2)), *names)
        elif kind == "range":
            low, high = np.sort(_numbers(model, about[0], rng, 2))
            yield Range(names[0], *[(low, np.inf), (-np.inf, high), (low, high)][int(rng.integers(3))])
        elif kind == "relative range":
            share = float(rng.choice([0.05, 0.1, 0.5, 1.0]))
            yield Range(names[0], -share if rng.random() < 0.7 else 0.0, share, relative=True)
        elif kind == "one of":
            yield OneOf(names[0], _values(model, about[0], rng))
        elif kind == "implies":
            yield Implies(_condition(model, about[0], rng), _condition(model, about[1], rng))
        elif kind in ("linear", "two linears", "equality"):
            yield from _sums(kind, model, about, rows, rng)


def _numbers(model: Model, j: int, rng: np.random.Generator, n: int) -> Floats:
    """Numbers of a column's domain, some that its data hold, some thresholds, some round."""
    own = model.data[:, j]
    own = own[~np.isnan(own)]
    drawn = []
    for _ in range(n):
        draw = rng.random()
        if draw < 0.5:
            drawn.append(float(rng.choice(own)))
        elif draw < 0.6 and len(model.cuts[j]):
            drawn.append(float(rng.choice(model.cuts[j])))
        else:
            drawn.append(float(np.round(rng.uniform(own.min(), own.max()), 2)))
    return np.array(drawn)


def _values(model: Model, j: int, rng: np.random.Generator) -> list[Any]:
    column = model.columns[j]
    held = column.values or tuple(np.unique(_numbers(model, j, rng, 3)).tolist())
    if column.is_finite and not column.is_category:
        held = tuple(np.unique(model.data[~np.isnan(model.data[:, j]), j]).tolist())
    n = int(rng.integers(1, max(2, len(held))))
    return [held[k] for k in sorted(rng.choice(len(held), n, replace=False).tolist())]


def _condition(model: Model, j: int, rng: np.random.Generator) -> Condition:
    column = model.columns[j]
    if column.is_category:
        return Condition(column.name, values=_values(model, j, rng))
    low, high = np.sort(_numbers(model, j, rng, 2)).tolist()
    ends = [(low, np.inf), (-np.inf, high), (low, high), (low, low)][int(rng.choice(4, p=[0.35, 0.35, 0.25, 0.05]))]
    return Condition(column.name, *ends)


def _sums(kind: str, model: Model, about: tuple[int, ...], rows: Floats, rng: np.random.Generator) -> Iterator[Linear]:
    """Bounded sums that some training row obeys, or nearly so."""
    names = [model.columns[j].name for j in about]
    known = model.data[~np.isnan(model.data[:, list(about)]).any(axis=1)]
    for _ in range(2 if kind == "two linears" else 1):
        coefficients = rng.choice([-2.0, -1.0, 1.0, 3.0, 0.5], len(about))
        if kind == "equality":
            coefficients = np.array([1.0, -1.0]) if rng.random() < 0.5 else coefficients
        held = known[int(rng.integers(len(known)))][list(about)]
        bound = float(coefficients @ held) if rng.random() < 0.7 else float(np.round(coefficients @ held, 1))
        yield Linear(dict(zip(names, coefficients.tolist(), strict=True)), at_most=bound)
        if kind == "equality":
            yield Linear(dict(zip(names, (-coefficients).tolist(), strict=True)), at_most=-bound)


def described(problem: Problem) -> str:
    """The problem in words, to be read next to a false claim."""
    spec, model = problem.spec, problem.model
    rows = [[cell_of(column, value) for column, value in zip(model.columns, row, strict=True)] for row in problem.rows]
    columns = ", ".join(f"{column.name}: {' '.join(column.tags)}" for column in model.columns)
    lines = [
        f"seed {spec.seed}: {spec.library}, {spec.design}, {spec.n_classes or 'no'} classes, model {spec.model_seed}",
        f"  columns     {columns}",
        f"  distance    {spec.measure}, weights {problem.weights}, scale {problem.space.sizes!r}",
        f"  domain      {spec.domain}; strategy {problem.strategy!r}",
        f"  target      {problem.target!r}",
        f"  constraints {list(problem.constraints)!r}",
        f"  plausible   {problem.plausibility!r}",
        f"  besides     {spec.more}: also {[one.library for one in problem.also]}, vary {problem.vary}, "
        f"tolerance {problem.tolerance}",
        *(f"  row {i}       {row!r}" for i, row in enumerate(rows)),
    ]
    return "\n".join(lines)


def lone(problem: Problem, i: int) -> Problem:
    """The same with one row only."""
    target = [problem.targets[i]] if isinstance(problem.target, list) else problem.target
    return replace(problem, rows=problem.rows[[i]], target=target, targets=(problem.targets[i],))
