"""Certificates: an answer with all that is needed to check it, by anybody who has the model.

A certificate is a small JSON object: fingerprints of the forest and of itself, the question (row, box, scale, distance,
class to leave or reach), the answer, and what is claimed of it. `verify` checks the claims about the answer with the
hard forest and the distance's own formula. That nothing is closer, or that there is no answer, can only be searched for
again (`reprove`); where that was not done, or came to no end, the claim is reported as not checked, and does not hold.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from treefocus import kernels
from treefocus.check import REJECTED, judge
from treefocus.errors import InvalidInput, reject
from treefocus.explanation.proof import prove
from treefocus.kernels.inputs import Batch, Choices, Lists
from treefocus.kernels.rules import ImpliesRule, LinearRule, Rules
from treefocus.model.fingerprint import digest_of_trees, fingerprint
from treefocus.model.forest import Floats, Forest
from treefocus.model.variants import variant
from treefocus.problem.compile import with_cuts
from treefocus.problem.distance_record import distance_record, read_distance
from treefocus.problem.joint import Companion, put_to_all
from treefocus.problem.problem import Problem
from treefocus.problem.targets import Interval, Probability, Score, Slack, put
from treefocus.problem.words import with_words, words_added
from treefocus.schema.schema import ANY_FLOAT, FLOAT32, INTEGER, LISTED, STEPPED
from treefocus.schema.steps import is_sound
from treefocus.search.base import Incumbent, Run, Status
from treefocus.search.exact import Exact
from treefocus.search.limits import SearchLimits, check_time_limit

FORMAT = "treefocus-certificate-3"
_EARLIER = "treefocus-certificate-2"  # the same, with a fingerprint of the forest's trees and scores alone
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Check:
    """One claim of a certificate: whether it was checked, and holds."""

    claim: str
    holds: bool  # False where it was not checked
    is_checked: bool = True

    def to_text(self) -> str:
        """The verdict and the claim."""
        verdict = ("ok" if self.holds else "FAILED") if self.is_checked else "NOT CHECKED"
        return f"{verdict:<11}  {self.claim}"


@dataclass(frozen=True)
class Verification:
    """Every claim of a certificate, checked or not."""

    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        """Whether all claims were checked and hold."""
        return all(check.holds for check in self.checks)

    @property
    def is_checked(self) -> bool:
        """Whether all claims were checked."""
        return all(check.is_checked for check in self.checks)

    @property
    def failed(self) -> tuple[Check, ...]:
        """The claims that were checked and do not hold."""
        return tuple(check for check in self.checks if check.is_checked and not check.holds)

    def to_text(self) -> str:
        """A line a claim."""
        return "\n".join(check.to_text() for check in self.checks)


def certify(
    problem: Problem,
    point: Floats | None,
    distance: float | None,
    lower_bound: float,
    status: Status,
    limits: SearchLimits | None = None,
    target: Any = None,
    *,
    with_proof: bool = False,
    larger: float | None = None,
    told: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The certificate of a problem of one row; `target` as the user put it, where it is no class.

    larger: by how much, as a share, round numbers have made the change larger, where they were asked for. told: what is
    written down beside, and nothing rests on: names of columns, the time.
    """
    from importlib.metadata import version  # slow to import, and seldom needed

    batch = problem.batch
    record: dict[str, Any] = {
        "format": FORMAT,
        "version": version("treefocus"),
        **(told or {}),
        "forest": fingerprint(problem.model),
        "question": _question_record(problem, target),
        "row": _numbers(batch.rows[0]),
        "low": _numbers(batch.low[0]),
        "high": _numbers(batch.high[0]),
        "offset": _numbers(batch.offset),
        "scale": _numbers(batch.scale),
        "grain": batch.grain.tolist(),
        "choices": _choices_record(batch.choices),
        "lists": {name: getattr(batch.lists, name).tolist() for name in ("start", "value", "is_strict")},
        "rules": batch.rules.to_record(),
        "leave": int(batch.origin[0]),
        "reach": int(batch.target[0]),
        "distance_function": distance_record(problem.distance),
        "status": status.name,
        "point": None if point is None else _numbers(point),
        "distance": distance,
        "lower_bound": _number(lower_bound),
        "limits": None if limits is None else asdict(limits),
    }
    if problem.also:
        record["also"] = [{"forest": fingerprint(one.forest), "margin": one.margin} for one in problem.also]
    words = words_added(problem.model)
    if words:  # which the model's own file does not have
        record["words"] = [[column, list(own)] for column, own in words.items()]
    if larger is not None:
        record["larger"] = larger
    argument = prove(problem, lower_bound) if with_proof else None
    if argument is not None and _is_sound(record, argument, problem):
        record["proof"] = argument
    return record | {"fingerprint": _digest(record)}


def _is_sound(record: dict[str, Any], argument: dict[str, Any], problem: Problem) -> bool:
    """Whether the checker follows a proof that rests on points or prices, where it allows for more rounding."""
    if problem.distance.norms is not None and not any(isinstance(rule, LinearRule) for rule in problem.batch.rules.all):
        return True
    written = json.loads(json.dumps(record | {"proof": argument}))
    return judge(written, json.loads(json.dumps(problem.model.to_record())))[0] != REJECTED


def verify(
    certificate: dict[str, Any],
    forest: Forest,
    *,
    also: Sequence[Forest] = (),
    reprove: bool = False,
    time_limit: float | None = None,
) -> Verification:
    """Check a certificate against a forest.

    Parameters
    ----------
    certificate : dict
        As `Explanation.certificate` makes it.
    forest : Forest
        The model it speaks of.
    also : sequence of Forest
        The other models that it speaks of, where several have to give the wanted outcome, in any order
        (`explainer.also`).
    reprove : bool
        Whether to search again for anything closer than the lower bound says. Without, what is claimed of all other
        points is not checked, and the verification does not hold as a whole.
    time_limit : float, optional
        Seconds for that search.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from treefocus import Explainer, verify
    >>> data = np.array([[20.0], [30.0], [50.0], [60.0]])
    >>> model = DecisionTreeClassifier().fit(data, ["low", "low", "high", "high"])
    >>> explainer = Explainer(model, data)
    >>> certificate = explainer.explain(data[:1])[0].certificate()
    >>> verify(certificate, explainer.forest, reprove=True).holds
    True
    """
    check_time_limit(time_limit)
    if certificate.get("format") not in (FORMAT, _EARLIER):
        reject("The certificate's format", f"{FORMAT!r} or {_EARLIER!r}", repr(certificate.get("format")))
    body = {key: value for key, value in certificate.items() if key != "fingerprint"}
    forest = _worded(certificate, forest)
    checks = [
        Check("the certificate is as it was written", certificate.get("fingerprint") == _digest(body)),
        _check_forest(certificate, forest),
    ]
    others = _companions(certificate, also)
    if "also" in certificate:
        checks.append(Check("and of these other models", others is not None))
    if others is None or not checks[1].holds:
        return Verification(tuple(checks))
    try:
        problem = _problem(certificate, forest, others)
        claim = _Claim.read(certificate, forest.n_features)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise InvalidInput(f"The certificate is not whole: {error!r}.") from error
    checks += [_check_row(problem, forest), _check_status(claim)]
    if claim.point is not None and claim.distance is not None:
        checks += _check_point(problem, claim.point[None, :], claim.distance, claim.bound, claim.status)
    if claim.is_about_others:
        checks.append(_prove_again(problem, claim, time_limit) if reprove else _not_proven(claim))
    return Verification(tuple(checks))


def _worded(certificate: dict[str, Any], forest: Forest) -> Forest:
    """The forest with the words of the data that the certificate's categories count in, unless it has some already."""
    if "words" not in certificate or words_added(forest):
        return forest
    try:
        return with_words(forest, {int(column): tuple(own) for column, own in certificate["words"]})
    except (TypeError, ValueError, IndexError) as error:
        raise InvalidInput(f"The certificate is not whole: {error!r}.") from error


def _companions(certificate: dict[str, Any], also: Sequence[Forest]) -> tuple[Companion, ...] | None:
    """The other models that a certificate speaks of, as it names them; None where one is not at hand."""
    known = {fingerprint(forest): forest for forest in also}
    named = [(one.get("forest"), float(one.get("margin", 0.0))) for one in certificate.get("also", [])]
    if any(name not in known for name, _ in named):
        return None
    return tuple(Companion(known[name], margin) for name, margin in named)


@dataclass(frozen=True, eq=False)
class _Claim:
    """What a certificate says of its answer."""

    status: Status
    point: Floats | None
    distance: float | None
    bound: float

    @classmethod
    def read(cls, record: dict[str, Any], n_features: int) -> _Claim:
        point = None if record["point"] is None else _floats(record["point"])
        if point is not None and point.shape != (n_features,):
            reject("The certificate's point", f"{n_features} numbers", point.shape)
        distance = None if record["distance"] is None else float(record["distance"])
        return cls(Status[record["status"]], point, distance, float(record["lower_bound"]))

    @property
    def is_about_others(self) -> bool:
        """Whether it speaks of all points, and not of its own alone: nothing is closer, or there is no answer."""
        return self.status is Status.INFEASIBLE or not self.bound <= 0

    @property
    def words(self) -> str:
        if self.status is Status.INFEASIBLE:
            return "there is no answer"
        return f"nothing is closer than {self.bound:.9g}"


def _check_forest(certificate: dict[str, Any], forest: Forest) -> Check:
    said = certificate.get("forest")
    if certificate["format"] == _EARLIER:
        return Check("it speaks of a model with these trees and scores", said == digest_of_trees(forest).hexdigest())
    return Check("it speaks of this model", said == fingerprint(forest))


def _check_row(problem: Problem, forest: Forest) -> Check:
    """What the model says of the row, in the terms of the question."""
    said = int(kernels.predict(problem.forest, problem.batch.rows)[0])
    if not problem.also and not _is_other(problem.forest, forest):
        return Check(f"the model predicts {forest.classes[said]!s} for the row", said == problem.batch.origin[0])
    forms = [form for form in (problem, problem.loosened(), problem.tightened()) if form is not None]
    fits = any(kernels.predict(form.forest, form.batch.rows)[0] == problem.batch.origin[0] for form in forms)
    return Check(f"the row is {'' if problem.batch.origin[0] else 'not '}where the question leads", fits)


def _check_status(claim: _Claim) -> Check:
    """Whether status, point, distance and bound can go together at all."""
    has_point = claim.point is not None and claim.distance is not None
    fits = has_point == claim.status.has_answer and (claim.point is None) == (claim.distance is None)
    fits &= claim.bound >= 0 and (claim.bound == np.inf) == (claim.status is Status.INFEASIBLE)
    return Check(f"what is said goes together with {claim.status.name}", bool(fits))


def _check_point(problem: Problem, point: Floats, claimed: float, bound: float, status: Status) -> list[Check]:
    obeys = bool(problem.obeys(point)[0])
    measured = float(problem.distance_to(point)[0])
    checks = [
        _check_answer(problem, point),
        Check("the point obeys every constraint", obeys),
        Check(f"its distance is {claimed:.9g}", bool(np.isclose(measured, claimed, rtol=_TOLERANCE, atol=1e-12))),
        Check(f"the claimed bound {bound:.9g} is not above it", bound <= claimed * (1 + _TOLERANCE) + 1e-12),
    ]
    if status is Status.OPTIMAL:
        checks.append(Check("an optimum's bound is its distance", bound >= claimed * (1 - 1e-8) - 1e-10))
    return checks


def _check_answer(problem: Problem, point: Floats) -> Check:
    """Whether the model gives the wanted answer, as far as can be told without the model itself."""
    told, sure = "the model gives the wanted answer for the point", problem.sure()
    if sure is not None and _flips(sure, point):
        return Check(told, holds=True)
    if _flips(problem.loosened(), point):
        return Check(f"{told}: to the last digits, which only its own library can tell", holds=False, is_checked=False)
    return Check(told, holds=False)


def _flips(problem: Problem, point: Floats) -> bool:
    return bool(problem.batch.is_flipped(kernels.predict(problem.forest, point))[0])


def _not_proven(claim: _Claim) -> Check:
    return Check(f"{claim.words}: only a new proof (reprove) can tell", holds=False, is_checked=False)


def _prove_again(problem: Problem, claim: _Claim, limit: float | None) -> Check:
    """Search from the certified point, or from nothing, and compare what is proven with what is claimed."""
    if not problem.has_box[0]:
        return Check("proven again: there is no answer, for a column has no value", claim.status is Status.INFEASIBLE)
    problem = problem.loosened()
    incumbent = Incumbent(problem)
    if claim.point is not None:
        incumbent.offer(claim.point[None, :])
    found = Exact(time_limit=limit).prove(problem, incumbent, Run())
    has_answer, proven = bool(found.has_answer[0]), float(found.lower_bound[0])
    least = claim.bound * (1 - 1e-8) - 1e-10
    if has_answer and (claim.status is Status.INFEASIBLE or float(found.distance[0]) < least):
        return Check(f"{claim.words}: there is an answer at {float(found.distance[0]):.9g}", holds=False)
    if claim.status is Status.INFEASIBLE:
        is_proven, so_far = found.status[0] is Status.INFEASIBLE, ""
    else:
        is_proven, so_far = proven >= least, f" (proved up to {proven:.9g})"
    if not is_proven:
        return Check(f"{claim.words}: the new proof came to no end{so_far}", holds=False, is_checked=False)
    return Check(f"proven again: {claim.words}{so_far}", holds=True)


_ASKED = ("decision", "cut", "cut_high", "favoured", "link", "divisor")  # fields in which a question changes a forest


def _is_other(asked: Forest, model: Forest) -> bool:
    """Whether the question is another than the model's own classes."""
    return any(getattr(asked, name) != getattr(model, name) for name in _ASKED)


def _question_record(problem: Problem, target: Any) -> dict[str, Any]:
    """What is asked for, where it is no class, and what else the forest that decides has other than the model's own."""
    asked, model = problem.forest, problem.model
    record: dict[str, Any] = {}
    if isinstance(target, Probability):
        number = model.classes.tolist().index(target.label.item() if hasattr(target.label, "item") else target.label)
        label = {"class": number, "label": str(target.label)}
        record["target"] = {"kind": "Probability", **label, "at_least": float(target.at_least)}
    elif isinstance(target, Interval):
        ends = {"low": _number(target.low), "high": _number(target.high)}
        record["target"] = {"kind": type(target).__name__, **ends}
    elif not problem.also:
        record |= {name: getattr(asked, name) for name in _ASKED if getattr(asked, name) != getattr(model, name)}
    if asked.missing_is_choice is not None:
        record["missing_is_choice"] = asked.missing_is_choice.tolist()
    return record


def _question(
    record: dict[str, Any], forest: Forest, also: Sequence[Companion], reach: int
) -> tuple[Forest, Slack | None]:
    """The forest that decides, and how far it may be from the library's own numbers."""
    if also:
        target = _target(record["target"], forest) if "target" in record else forest.classes.tolist()[reach]
        joint = put_to_all(target, forest, also, 1, None)
        has_choices = "missing_is_choice" in record
        mask = np.array(record["missing_is_choice"], bool) if has_choices else None
        return variant(joint.forest, **({"missing_is_choice": mask} if has_choices else {})), joint.slack
    changes: dict[str, Any] = {name: record[name] for name in _ASKED if name in record}
    slack = None
    if "target" in record:
        asked = put(_target(record["target"], forest), forest, 1)
        forest, slack = asked.forest, asked.slack
    if "decision" in changes or "cut" in changes:
        changes["classes"] = np.array([False, True])
    if "missing_is_choice" in record:
        changes["missing_is_choice"] = np.array(record["missing_is_choice"], bool)
    return variant(forest, **changes), slack


def _target(record: dict[str, Any], forest: Forest) -> Probability | Interval:
    if record["kind"] == "Probability":
        if not 0 <= int(record["class"]) < forest.n_classes:
            reject("The certificate's class", f"from 0 to {forest.n_classes - 1}", record["class"])
        return Probability(forest.classes.tolist()[int(record["class"])], float(record["at_least"]))
    kind = Score if record["kind"] == "Score" else Interval
    return kind(float(record["low"]), float(record["high"]))


def _choices_record(choices: Choices) -> dict[str, Any]:
    names = ("column", "is_category", "start")
    cells = {name: _numbers(getattr(choices, name)[0]) for name in ("value", "delta")}
    return {name: getattr(choices, name).tolist() for name in names} | cells


def _choices(record: dict[str, Any]) -> Choices:
    return Choices(
        np.array(record["column"], np.intp),
        np.array(record["is_category"], bool),
        np.array(record["start"], np.intp),
        _floats(record["value"])[None, :],
        _floats(record["delta"])[None, :],
    )


def _lists(record: dict[str, Any]) -> Lists:
    return Lists(np.array(record["start"], np.int32), _floats(record["value"]), np.array(record["is_strict"], bool))


def _problem(record: dict[str, Any], forest: Forest, also: tuple[Companion, ...]) -> Problem:
    row, low, high = (_floats(record[key])[None, :] for key in ("row", "low", "high"))
    batch = Batch(
        rows=row,
        low=low,
        high=high,
        offset=_floats(record["offset"]),
        scale=_floats(record["scale"]),
        grain=np.array(record["grain"], np.int8),
        origin=np.array([record["leave"]], np.int32),
        target=np.array([record["reach"]], np.int32),
        first=row,
        choices=_choices(record["choices"]),
        lists=_lists(record["lists"]),
        rules=Rules.from_record(record["rules"]),
    )
    _check_columns(batch, forest.n_features)
    reach = int(record["reach"])
    if also and not 0 <= reach < max(forest.n_classes, 2):
        reject("The certificate's class", f"from 0 to {max(forest.n_classes, 2) - 1}", reach)
    cut = forest if also else with_cuts(forest, batch.rules)
    asked, slack = _question(record["question"], cut, also, reach)
    asked = with_cuts(asked, batch.rules) if also else asked
    _check_cells(batch, asked)
    distance = read_distance(record["distance_function"], forest.n_features)
    return Problem(asked, batch, distance, model=forest, slack=slack, also=also)


def _check_columns(batch: Batch, n: int) -> None:
    """A file may say anything: every array as wide as the forest, every column one of its columns."""
    for name in ("rows", "low", "high", "offset", "scale", "grain"):
        if getattr(batch, name).shape[-1] != n:
            reject(f"The certificate's {name.removesuffix('s')}", f"{n} numbers", getattr(batch, name).shape[-1])
    if not (np.isfinite(batch.scale).all() and (batch.scale > 0).all() and np.isfinite(batch.offset).all()):
        reject("The certificate's scale and offset", "finite, the scale above 0", "something else")
    if not np.isin(batch.grain, (ANY_FLOAT, FLOAT32, INTEGER, LISTED, STEPPED)).all():
        reject("The certificate's grain", f"from {ANY_FLOAT} to {STEPPED}", batch.grain.tolist())
    start = batch.lists.start
    if start.shape != (n + 1,) or (np.diff(start, prepend=0) < 0).any() or start[-1] != len(batch.lists.value):
        reject("The certificate's lists", f"those of {n} columns", start.tolist())
    for column in np.flatnonzero(batch.grain == STEPPED).tolist():
        numbers = batch.lists.of(column)
        if len(numbers) != 4 or not is_sound(numbers):
            reject("The certificate's steps", "a beginning, a step and a divisor above 0, and 0 or 1", numbers.tolist())
    if batch.lists.is_strict.shape != (n,):
        reject("The certificate's lists", f"{n} times strict or not", batch.lists.is_strict.shape)
    for rule in batch.rules.all:
        columns = (rule.cause.column, rule.effect.column) if isinstance(rule, ImpliesRule) else rule.columns.tolist()
        if not all(0 <= column < n for column in columns):
            reject("The certificate's rules", f"about columns 0 to {n - 1}", columns)
        if isinstance(rule, LinearRule) and rule.coefficient.shape != rule.columns.shape:
            reject("The certificate's rules", "with a coefficient a column", rule.coefficient.tolist())


def _check_cells(batch: Batch, asked: Forest) -> None:
    """Classes and cells are those of the forest that decides."""
    leave, reach = int(batch.origin[0]), int(batch.target[0])
    if not (0 <= leave < asked.n_classes and -1 <= reach < asked.n_classes):
        reject("The certificate's classes", f"from 0 to {asked.n_classes - 1}", f"{leave} and {reach}")
    grid, choices = kernels.grid_of(asked), batch.choices
    columns = np.flatnonzero(grid.has_sets)
    start = np.concatenate([[0], np.cumsum(np.diff(grid.cell_start)[columns])])
    is_same = np.array_equal(choices.column, columns) and np.array_equal(choices.start, start)
    if not (is_same and choices.is_category.shape == columns.shape):
        reject("The certificate's choices", f"those of columns {columns.tolist()}", choices.column.tolist())
    for cells in (choices.value, choices.delta):
        if cells.shape != (1, start[-1]):
            reject("The certificate's choices", f"{start[-1]} cells", cells.shape[-1])


def _digest(record: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True, allow_nan=False).encode()).hexdigest()


def _number(value: float) -> float | str:
    """JSON has no infinities and no NaN: they are written as words."""
    return float(value) if np.isfinite(value) else str(float(value))


def _numbers(values: Floats) -> list[float | str]:
    return [_number(value) for value in values]


def _floats(values: Any) -> Floats:
    return np.array(values, dtype=np.float64)
