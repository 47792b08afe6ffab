"""What is said of a problem, claim by claim, held against the oracle.

`judged` asks treefocus and gives every claim that is false, in words that say why, with the witness.
"""

from __future__ import annotations

import json
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations
from typing import Any
from unittest.mock import patch

import numpy as np

from treefocus import Explainer, Explanation, Explanations, InvalidInput, Status, verify
from treefocus.adapters import translate
from treefocus.adapters.trust import trusted
from treefocus.check import ACCEPTED, REJECTED, judge
from treefocus.explanation.why_not import WhyNot
from treefocus.model.forest import Floats
from treefocus.model.source import Source
from truth.columns import cell_of, code_of, points_of, schema_of
from truth.meaning import MEASURES, Question, moves, single
from truth.models import Model
from truth.oracle import TooManyBoxesError, Witness, nearest
from truth.problems import Problem

RELATIVE = 1e-7
NOISE, COUPLED_NOISE = 1e-12, 1e-9  # of distances that are sums over columns, and of the others
FURTHER_LIMIT = 0.2  # of each search that a further question asks for; what is not decided by then is not claimed


ORACLE = "oracle"


@dataclass(frozen=True)
class Falsehood:
    """A claim that is not true; of the kind ORACLE, one that the oracle could not make."""

    seed: int
    row: int
    kind: str
    told: str


@dataclass(eq=False)
class Verdict:
    """All that came out of a problem."""

    seed: int
    false: list[Falsehood] = field(default_factory=list)
    checked: Counter[str] = field(default_factory=Counter)  # how many claims of each kind were looked at
    status: Counter[str] = field(default_factory=Counter)
    refused: str | None = None  # why treefocus does not take the problem


@dataclass(eq=False)
class _Row:
    """One row of a problem, with what the oracle knows of it."""

    problem: Problem
    i: int
    question: Question
    verdict: Verdict
    kept: dict[Any, Witness | None] = field(default_factory=dict)

    def say(self, kind: str, told: str) -> None:
        self.verdict.false.append(Falsehood(self.problem.spec.seed, self.i, kind, told))

    def check(self, kind: str, holds: bool, told: str) -> None:
        self.verdict.checked[kind] += 1
        if not holds:
            self.say(kind, told)

    @property
    def noise(self) -> float:
        return COUPLED_NOISE if self.question.measure.is_coupled else NOISE

    def nearest(self, question: Question, only_whether: bool = False) -> Witness | None:
        models = tuple(map(id, question.also))
        key = (tuple(map(repr, question.constraints)), models, question.left_alone, only_whether)
        if key not in self.kept:
            self.kept[key] = nearest(question, only_whether=only_whether)
        return self.kept[key]

    def shown(self, point: Floats) -> str:
        cells = zip(self.question.columns, point, strict=True)
        return "(" + ", ".join(f"{c.name}={cell_of(c, v)!r}" for c, v in cells) + ")"


def judged(problem: Problem) -> Verdict:
    """Ask treefocus, and hold all that it says against the oracle."""
    try:
        explainer, found = answered(problem)
    except InvalidInput as error:
        return Verdict(problem.spec.seed, refused=str(error))
    except Exception:  # whatever it is, it is no answer
        return Verdict(problem.spec.seed, [Falsehood(problem.spec.seed, 0, "crash", traceback.format_exc())])
    return held(problem, explainer, found)


def answered(problem: Problem) -> tuple[Explainer, Explanations]:
    """What treefocus says."""
    n = 3 if "ways" in problem.spec.asked else 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        explainer = explainer_of(problem)
        asked = {"strategy": problem.strategy, "n_jobs": 1, "n": n, "tolerance": problem.tolerance}
        return explainer, explainer.explain(problem.frame, problem.target, **asked)


def held(problem: Problem, explainer: Explainer, found: Explanations) -> Verdict:
    """What is said, against the oracle."""
    verdict = Verdict(problem.spec.seed)
    if problem.spec.more == "two threads":
        _same_bytes(problem, explainer, found, verdict)
    for i, one in enumerate(found):
        row = _Row(problem, i, problem.question(i), verdict)
        verdict.status[one.status.name] += 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                _judge(row, one, found, explainer)
        except TooManyBoxesError:
            verdict.checked["too large"] += 1
        except Exception:
            row.say("crash", traceback.format_exc())
    return verdict


def _same_bytes(problem: Problem, explainer: Explainer, found: Explanations, verdict: Verdict) -> None:
    """Whether two threads find what one does, to the last bit."""
    n = 1 + len(found.others)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = explainer.explain(problem.frame, problem.target, strategy=problem.strategy, n_jobs=2, n=n)
    for one, other in zip(found.ways, again.ways, strict=True):
        for name in ("points", "distance", "lower_bound", "status"):
            own, theirs = (np.asarray(getattr(each.found, name)) for each in (one, other))
            verdict.checked["same bytes"] += 1
            if own.tobytes() != theirs.tobytes() and not np.array_equal(own, theirs):
                verdict.false.append(Falsehood(problem.spec.seed, 0, "bytes", f"{name}: {own} and {theirs}"))


@lru_cache(maxsize=80)
def _taken_apart(model: Model) -> Source:
    """A model's forest, held against the model, made once: that takes longer than all the rest."""
    return trusted(translate(model.given))


@contextmanager
def _known_models(problem: Problem) -> Iterator[None]:
    """Models that were taken apart before are not again."""
    models = {id(model.given): model for model in (problem.model, *problem.also)}
    with (
        patch("treefocus.explainer.translate", lambda given: _taken_apart(models[id(given)])),
        patch("treefocus.problem.companions.translate", lambda given: _taken_apart(models[id(given)])),
        patch("treefocus.explainer.trusted", lambda source: source),
        patch("treefocus.problem.companions.trusted", lambda source: source),
    ):
        yield


def explainer_of(problem: Problem) -> Explainer:
    """The explainer that a user would make."""
    with _known_models(problem):
        return _explainer(problem)


def _explainer(problem: Problem) -> Explainer:
    model = problem.model
    return Explainer(
        model.given,
        None if problem.spec.domain == "without data" else model.frame,
        distance=MEASURES[problem.spec.measure].built(problem.covariance),
        constraints=list(problem.constraints),
        schema=schema_of(model.columns, with_labels=problem.with_labels),
        scale=problem.space.sizes,
        bounds=problem.space.bounds,
        weights=problem.weights,
        plausibility=problem.plausibility,
        vary=problem.vary,
        also=[other.given for other in problem.also],
    )


def _judge(row: _Row, one: Explanation, found: Any, explainer: Explainer) -> None:
    problem, question = row.problem, row.question
    if one.status is Status.INVALID:
        row.check("invalid", False, f"the model reads the row: {one.reason}")
        return
    _answer(row, question, one, found.counterfactuals, "the answer")
    earlier: list[Explanation] = [one]
    for k, way in enumerate(one.others, start=2):
        if not earlier[-1].status.has_answer:
            break
        sets = [moves(question, _point(row, before, found.ways[n].counterfactuals)) for n, before in enumerate(earlier)]
        if any(not own for own in sets):
            break  # it is where it should be
        asked = replace(question, left_alone=tuple(sets))
        _answer(row, asked, way, found.ways[k - 1].counterfactuals, f"way {k}")
        earlier.append(way)
    asked_for = problem.spec.asked
    if "certificate" in asked_for and one.status is not Status.NOT_FOUND:
        _certificate(row, one, explainer)
        _proof(row, one, explainer)
    if "why not" in asked_for and one.status is Status.INFEASIBLE:
        _why_not(row, one)
    if "prices" in asked_for and question.constraints:
        _prices(row, one)
    if one.counterfactual is not None:
        if "region" in asked_for:
            _region(row, one, found.counterfactuals)
        if "rounded" in asked_for:
            _rounded(row, one)
        if problem.plausibility is not None and one.changes:  # a row may stay where it is
            _plausible(row, _point(row, one, found.counterfactuals))


def _point(row: _Row, one: Explanation, frame: Any) -> Floats:
    """The answer, from the table that the user gets."""
    return points_of(row.question.columns, frame)[row.i]


def _answer(row: _Row, question: Question, one: Explanation, frame: Any, name: str) -> None:
    """Whether an answer is one, costs what is said, and is as close as is said."""
    is_limited = row.problem.plausibility is not None
    if one.status.has_answer:
        point = _point(row, one, frame)
        faults = question.faults(point)
        row.check("valid", not faults, f"{name} {row.shown(point)}: {'; '.join(faults)}")
        _told(row, question, one, point, name)
        cost = float(question.cost(point[None])[0])
        told = f"{name} {row.shown(point)} is {cost:.12g} away, {one.distance:.12g} is said"
        row.check("distance", bool(np.isclose(cost, one.distance, rtol=RELATIVE, atol=1e-10)), told)
        if not one.lower_bound <= one.distance * (1 + RELATIVE) + row.noise:
            row.say("bound", f"{name}: the bound {one.lower_bound:.12g} is above its own distance {one.distance:.12g}")
        if one.status is Status.OPTIMAL and one.lower_bound < one.distance * (1 - RELATIVE) - row.noise:
            row.say("bound", f"{name}: OPTIMAL, with the bound {one.lower_bound:.12g} below {one.distance:.12g}")
    if one.status in (Status.FOUND, Status.NOT_FOUND) and not one.lower_bound > 0:
        return
    best = row.nearest(question)
    if one.status is Status.INFEASIBLE:
        is_open = best is not None and (not is_limited or _is_plausible(row, best.point, for_sure=True))
        told = "" if best is None else f"{name}: {row.shown(best.point)} is an answer, {best.cost:.12g} away"
        row.check("infeasible", not is_open, told)
        return
    if is_limited and (best is None or not _is_plausible(row, best.point, for_sure=True)):
        return  # the oracle knows of no answer that is like the data
    row.verdict.checked["bound"] += 1
    if best is not None and one.lower_bound > best.cost * (1 + RELATIVE) + row.noise:
        told = f"{name}: {row.shown(best.point)} is {best.cost:.12g} away, below the bound {one.lower_bound:.12g}"
        row.say("optimal" if one.status is Status.OPTIMAL else "bound", told)
    if one.status is Status.OPTIMAL:
        row.verdict.checked["optimal"] += 1
        is_beaten = best is None or one.distance < best.cost * (1 - RELATIVE) - row.noise
        is_beaten &= bool(np.isfinite([question.low, question.high]).all())  # without end it does not look everywhere
        is_beaten &= not any(column.kind == "float32" for column in question.columns)  # nor at every float32 number
        if is_beaten and question.is_witness(_point(row, one, frame)):
            row.say(ORACLE, f"{name} is an answer, {one.distance:.12g} away, that the oracle did not find")


def _told(row: _Row, question: Question, one: Explanation, point: Floats, name: str) -> None:
    """Whether the changes that are told are those of the answer, and what is shown is an answer too."""
    shown = question.row.copy()
    changed = set()
    for change in one.changes:
        j = question.place(change.feature)
        changed.add(j)
        code = code_of(question.columns[j], change.shown)
        shown[j] = np.float32(code) if question.columns[j].kind == "float32" else code  # as the column keeps it
    row.check("changes", changed == set(moves(question, point)), f"{name}: {row.shown(point)} is told as {one.changes}")
    faults = question.faults(shown)
    row.check("shown", not faults, f"{name} {row.shown(point)} is shown as {row.shown(shown)}: {'; '.join(faults)}")


def _certificate(row: _Row, one: Explanation, explainer: Explainer) -> None:
    try:
        record = json.loads(json.dumps(one.certificate()))
        for reprove in (False, True):
            said = verify(record, explainer.forest, also=explainer.also, reprove=reprove, time_limit=FURTHER_LIMIT)
            row.check("certificate", not said.failed, f"reprove={reprove}:\n{said.to_text()}")
            row.verdict.checked["proven again"] += said.holds
    except Exception as error:  # a certificate of one's own answer is readable
        row.check("certificate", False, f"{type(error).__name__}: {error}")


def _proof(row: _Row, one: Explanation, explainer: Explainer) -> None:
    """Whether the checker, which shares no code with the search, follows the proof."""
    record = json.loads(json.dumps(one.certificate(proof=True)))
    if row.problem.tolerance and "proof" not in record:
        return  # of room to move no proof is written
    files = [json.loads(json.dumps(own.to_record())) for own in (explainer.forest, *explainer.also)]
    code, sentences = judge(record, *files)
    row.check("proof", code != REJECTED, " ".join(sentences))
    row.verdict.checked["proof accepted"] += code == ACCEPTED and "proof" in record


def _why_not(row: _Row, one: Explanation) -> None:
    if row.nearest(row.question, only_whether=True) is not None:
        return  # falsely infeasible: told already
    said = one.why_not(time_limit=FURTHER_LIMIT)
    every = single(row.question.constraints)
    bare = replace(
        row.question, constraints=tuple(c for c in row.question.constraints if type(c).__name__ == "MayBeMissing")
    )
    if said.constraints is None:
        best = row.nearest(bare, True)
        if said.is_proven:
            told = "" if best is None else f"no answer without constraints either: but {row.shown(best.point)}"
            row.check("why not", best is None or not _is_plausible(row, best.point, for_sure=True), told)
        return
    if said.models:
        _why_not_of_models(row, said)
        return
    strange = [c for c in said.constraints if c not in every]
    row.check("why not", not strange, f"{strange} are none of the constraints")
    left = _with(row.question, [c for c in every if c not in said.constraints])
    if said.explanation is not None and said.explanation.counterfactual is not None:
        point = _coded(row, said.explanation)
        faults = left.faults(point)
        row.check("why not", not faults, f"without {said.constraints}: {row.shown(point)}: {'; '.join(faults)}")
    if said.is_proven:
        for fewer in combinations(every, len(said.constraints) - 1) if said.constraints else ():
            best = row.nearest(_with(row.question, [c for c in every if c not in fewer]), True)
            told = (
                "" if best is None else f"{list(fewer)} would do, not {list(said.constraints)}: {row.shown(best.point)}"
            )
            row.check("why not", best is None or not _is_plausible(row, best.point, for_sure=True), told)


def _why_not_of_models(row: _Row, said: WhyNot) -> None:
    """Whether these models stand in the way, and no fewer do."""
    also = row.question.also
    left = replace(row.question, also=tuple(one for k, one in enumerate(also) if k not in said.models))
    if said.explanation is not None and said.explanation.counterfactual is not None:
        point = _coded(row, said.explanation)
        faults = left.faults(point)
        row.check("why not", not faults, f"without models {said.models}: {row.shown(point)}: {'; '.join(faults)}")
    if not said.is_proven:
        return
    for fewer in combinations(range(len(also)), len(said.models) - 1):
        kept = replace(row.question, also=tuple(one for k, one in enumerate(also) if k not in fewer))
        best = row.nearest(kept, True)
        told = "" if best is None else f"models {fewer} would do, not {said.models}: {row.shown(best.point)}"
        row.check("why not", best is None or not _is_plausible(row, best.point, for_sure=True), told)


def _with(question: Question, constraints: list[Any]) -> Question:
    """The question under these constraints, and what allows."""
    allowances = [one for one in question.constraints if type(one).__name__ == "MayBeMissing"]
    return replace(question, constraints=(*allowances, *constraints))


def _prices(row: _Row, one: Explanation) -> None:
    every = single(row.question.constraints)
    is_limited = row.problem.plausibility is not None
    for price in one.price_of_constraints(time_limit=FURTHER_LIMIT):
        if price.distance is not None and not price.is_proven:
            continue
        best = row.nearest(_with(row.question, [c for c in every if c != price.constraint]))
        told = f"without {price.constraint}: {price.distance} is said (proven: {price.is_proven}), "
        told += "there is none" if best is None else f"{row.shown(best.point)} is {best.cost:.12g} away"
        if price.distance is None:
            is_open = best is not None and not is_limited
            row.check("price", not (price.is_proven and is_open), told)
        elif price.is_proven:
            closer = best is not None and best.cost < price.distance * (1 - RELATIVE) - row.noise
            row.check("price", not closer or is_limited, told)


def _region(row: _Row, one: Explanation, frame: Any) -> None:
    question = row.question
    point = _point(row, one, frame)
    region = one.region()
    rng = np.random.default_rng(row.problem.spec.seed)
    n = 40
    points = np.repeat(point[None], n, axis=0)
    for leeway in region.leeways:
        j = question.place(leeway.feature)
        column = question.columns[j]
        if column.is_category:
            points[:, j] = rng.choice([code_of(column, label) for label in leeway.categories], n)
            continue
        if np.isnan(point[j]):
            continue
        spread = float(question.scale[j])
        low = point[j] - 2 * spread if leeway.low is None else max(leeway.low, point[j] - 1e6 * spread)
        high = point[j] + 2 * spread if leeway.high is None else min(leeway.high, point[j] + 1e6 * spread)
        ends = np.array([low, high, *(v for v in leeway.shown if np.isfinite(v) and low <= v <= high)])
        drawn = np.where(rng.random(n) < 0.6, rng.choice(ends, n), rng.uniform(low, high, n))
        points[:, j] = np.clip(np.rint(drawn), np.ceil(low), np.floor(high)) if column.is_whole else drawn
    kept = question.wanted(points)
    bad = np.flatnonzero(~kept)
    told = "" if not bad.size else f"{row.shown(points[bad[0]])} lies in {region.leeways} around {row.shown(point)}"
    row.check("region", not bad.size, told)


def _rounded(row: _Row, one: Explanation) -> None:
    question = row.question
    made = one.rounded()
    point = _coded(row, made)
    faults = question.faults(point)
    row.check("rounded", not faults, f"{row.shown(point)}: {'; '.join(faults)}")
    cost = float(question.cost(point[None])[0])
    told = (
        f"{row.shown(point)} is {cost:.12g} away, {made.distance:.12g} is said, of an answer {one.distance:.12g} away"
    )
    near = one.distance is not None and cost <= one.distance * 1.1 * (1 + RELATIVE) + row.noise
    row.check("rounded", bool(near and np.isclose(cost, made.distance, rtol=RELATIVE, atol=1e-10)), told)
    best = row.nearest(question)
    if best is not None and not _is_plausible(row, best.point, for_sure=True):
        return  # the oracle knows of no answer that is like the data
    if best is not None and made.lower_bound > best.cost * (1 + RELATIVE) + row.noise:
        row.say("rounded", f"{row.shown(best.point)} is {best.cost:.12g} away, below the bound {made.lower_bound:.12g}")


def _coded(row: _Row, one: Explanation) -> Floats:
    """An explanation's own counterfactual as the oracle writes it."""
    cells = one.answered()
    assert cells is not None
    return np.array([code_of(column, cell) for column, cell in zip(row.question.columns, cells, strict=True)])


def _plausible(row: _Row, point: Floats) -> None:
    row.check("plausible", _is_plausible(row, point), f"{row.shown(point)} is above {row.problem.plausibility}")


def _is_plausible(row: _Row, point: Floats, *, for_sure: bool = False) -> bool:
    """Whether the local outlier factor of a point is within the limit, for some nearest training row, or for all."""
    question, measure = row.question, row.problem.plausibility
    if measure is None or measure.limit is None:
        return True
    data = question.model.data[~np.isnan(question.model.data).any(axis=1)]
    data = np.unique(data, axis=0)
    away = _apart(question, data, data)
    np.fill_diagonal(away, np.inf)
    radius = away.min(axis=1)  # to the nearest other row
    density = np.array([1.0 / max(r, radius[k]) for r, k in zip(radius, away.argmin(axis=1), strict=True)])
    own = _apart(question, point[None], data)[0]
    ties = np.flatnonzero(own <= own.min() * (1 + 1e-9) + 1e-12)
    factors = [float(density[k] * max(own[k], radius[k])) for k in ties]
    return max(factors) <= measure.limit * (1 - 1e-9) if for_sure else min(factors) <= measure.limit * (1 + 1e-9)


def _apart(question: Question, points: Floats, data: Floats) -> Floats:
    """(n, m) distances summed over columns; another category counts as 1, what is missing as 0."""
    gap = np.abs(points[:, None, :] - data[None]) / question.scale
    for j, column in enumerate(question.columns):
        if column.is_category:
            gap[..., j] = gap[..., j] > 0
    return np.nansum(gap, axis=2)
