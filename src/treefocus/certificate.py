"""Certificates: an answer with all that is needed to check it, by anybody who has the model.

A certificate is a small JSON object: fingerprints of the forest and of itself, the question (row, box, scale, distance,
class to leave or reach), the answer, and what is claimed of it. `verify` checks every claim with the hard forest and
the distance's own formula; the lower bound is taken on trust unless it is proven again (`reprove`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from treefocus import kernels
from treefocus.allowed import with_cuts
from treefocus.distances import (
    L0,
    L1,
    L2,
    LINF,
    Chebyshev,
    Cosine,
    Distance,
    Euclidean,
    FewestFeatures,
    Mahalanobis,
    Manhattan,
    Sum,
)
from treefocus.errors import InvalidInput, reject
from treefocus.forest import Floats, Forest
from treefocus.kernels.inputs import Batch, Choices, Lists, Metric
from treefocus.kernels.rules import Rules
from treefocus.problem import Problem
from treefocus.search.base import Incumbent, Limits, Run, Status
from treefocus.search.exact import Exact
from treefocus.targets import variant

FORMAT = "treefocus-certificate-2"
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Check:
    """One claim of a certificate and whether it holds."""

    claim: str
    holds: bool


@dataclass(frozen=True)
class Verification:
    """Every claim that was checked."""

    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        """Whether all claims hold."""
        return all(check.holds for check in self.checks)

    def to_text(self) -> str:
        """A line a claim."""
        return "\n".join(f"{'ok    ' if check.holds else 'FAILED'}  {check.claim}" for check in self.checks)


def certify(
    problem: Problem,
    point: Floats | None,
    distance: float | None,
    lower_bound: float,
    status: Status,
    limits: Limits | None = None,
) -> dict[str, Any]:
    """The certificate of a problem of one row."""
    from importlib.metadata import version  # slow to import, and seldom needed

    batch = problem.batch
    record: dict[str, Any] = {
        "format": FORMAT,
        "version": version("treefocus"),
        "forest": fingerprint(problem.model),
        "question": _question_record(problem),
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
        "distance_function": _distance_record(problem.distance),
        "status": status.name,
        "point": None if point is None else _numbers(point),
        "distance": distance,
        "lower_bound": _number(lower_bound),
        "limits": None if limits is None else asdict(limits),
    }
    return record | {"fingerprint": _digest(record)}


def verify(
    certificate: dict[str, Any], forest: Forest, *, reprove: bool = False, time_limit: float | None = None
) -> Verification:
    """Check a certificate against a forest; `reprove` searches again for anything closer than the lower bound says."""
    if certificate.get("format") != FORMAT:
        reject("The certificate's format", repr(FORMAT), repr(certificate.get("format")))
    body = {key: value for key, value in certificate.items() if key != "fingerprint"}
    checks = [
        Check("the certificate is as it was written", certificate.get("fingerprint") == _digest(body)),
        Check("it speaks of this model", certificate.get("forest") == fingerprint(forest)),
    ]
    if not checks[1].holds:
        return Verification(tuple(checks))
    try:
        problem = _problem(certificate, forest)
        status = Status[certificate["status"]]
        bound = float(certificate["lower_bound"])
        point = None if certificate["point"] is None else _floats(certificate["point"])[None, :]
        distance = None if certificate["distance"] is None else float(certificate["distance"])
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"The certificate is not whole: {error!r}.") from error
    said = int(kernels.predict(problem.forest, problem.batch.rows)[0])
    told = f"the model predicts {forest.classes[said]!s} for the row"
    if problem.forest.decision != forest.decision:
        told = f"the row is {'' if said else 'not '}where the question leads"
    checks.append(Check(told, said == problem.batch.origin[0]))
    if point is not None and distance is not None:
        checks += _check_point(problem, point, distance, bound, status)
    if reprove:
        checks.append(_prove_again(problem, point, distance, bound, status, time_limit))
    return Verification(tuple(checks))


def fingerprint(forest: Forest) -> str:
    """SHA-256 of all that decides a forest's predictions."""
    digest = hashlib.sha256()
    arrays: Sequence[Any] = (
        forest.feature, forest.threshold, forest.left, forest.right, forest.default_left, forest.tree_start,
        forest.leaf_value, forest.base_score,
    )  # fmt: skip
    for array in arrays:
        digest.update(str((array.dtype.str, array.shape)).encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    rest = (
        forest.classes.tolist(), forest.n_features, forest.divisor, forest.decision, forest.cut,
        forest.input_dtype, forest.score_dtype,
    )  # fmt: skip
    digest.update(repr(rest).encode())
    if forest.categories is not None:
        digest.update(json.dumps(forest.categories.to_record(), default=str).encode())
    return digest.hexdigest()


def _check_point(problem: Problem, point: Floats, claimed: float, bound: float, status: Status) -> list[Check]:
    flips = bool(problem.batch.is_flipped(kernels.predict(problem.forest, point))[0])
    obeys = bool(problem.obeys(point)[0])
    measured = float(problem.distance_to(point)[0])
    checks = [
        Check("the model gives the wanted answer for the point", flips),
        Check("the point obeys every constraint", obeys),
        Check(f"its distance is {claimed:.9g}", bool(np.isclose(measured, claimed, rtol=_TOLERANCE, atol=1e-12))),
        Check(f"the claimed bound {bound:.9g} is not above it", bound <= claimed * (1 + _TOLERANCE) + 1e-12),
    ]
    if status is Status.OPTIMAL:
        checks.append(Check("an optimum's bound is its distance", bound >= claimed * (1 - 1e-8) - 1e-10))
    return checks


def _prove_again(
    problem: Problem, point: Floats | None, distance: float | None, bound: float, status: Status, limit: float | None
) -> Check:
    """Search from the certified point, or from nothing, and compare what is proven with what is claimed."""
    incumbent = Incumbent(problem)
    if point is not None:
        incumbent.offer(point)
    found = Exact(time_limit=limit).prove(problem, incumbent, Run())
    if status is Status.INFEASIBLE:
        return Check("proven again: there is no answer", found.status[0] is Status.INFEASIBLE)
    proven = float(found.lower_bound[0])
    closer = distance is not None and float(found.distance[0]) < min(distance, bound) * (1 - 1e-8) - 1e-10
    holds = not closer and proven >= bound * (1 - 1e-8) - 1e-10
    return Check(f"proven again: nothing is closer than {bound:.9g} (proved up to {proven:.9g})", holds)


def _question_record(problem: Problem) -> dict[str, Any]:
    """What the forest that decides has other than the model's own."""
    asked, model = problem.forest, problem.model
    names = ("decision", "cut", "cut_high", "favoured")
    record = {name: getattr(asked, name) for name in names if getattr(asked, name) != getattr(model, name)}
    if asked.missing_is_choice is not None:
        record["missing_is_choice"] = asked.missing_is_choice.tolist()
    return record


def _question(record: dict[str, Any], forest: Forest) -> Forest:
    names = ("decision", "cut", "cut_high", "favoured")
    changes: dict[str, Any] = {name: record[name] for name in names if name in record}
    if "decision" in changes or "cut" in changes:
        changes["classes"] = np.array([False, True])
    if "missing_is_choice" in record:
        changes["missing_is_choice"] = np.array(record["missing_is_choice"], bool)
    return variant(forest, **changes)


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


def _problem(record: dict[str, Any], forest: Forest) -> Problem:
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
    if batch.rows.shape[1] != forest.n_features:
        reject("The certificate's row", f"{forest.n_features} numbers", batch.rows.shape[1])
    asked = _question(record["question"], with_cuts(forest, batch.rules))
    return Problem(asked, batch, _distance(record["distance_function"], forest.n_features), model=forest)


_PARTS: dict[int, type[Any]] = {L1: Manhattan, L2: Euclidean, LINF: Chebyshev, L0: FewestFeatures}


def _distance_record(distance: Distance) -> dict[str, Any]:
    norms, compiled = distance.norms, distance.compiled
    if norms is not None:
        return {"kind": "norms", "weights": norms.weights.tolist()}
    if compiled is None:
        raise InvalidInput("A certificate needs a distance that can be written down; a user's own function cannot.")
    return {"kind": compiled.metric.name, "weight": compiled.weight.tolist(), "inverse": compiled.inverse.tolist()}


def _distance(record: dict[str, Any], n_features: int) -> Distance:
    if record["kind"] == "norms":
        weights = _floats(record["weights"])
        present = [part for part in range(4) if weights[part].any()]
        parts = [(1.0, _PARTS[part](weights=np.ascontiguousarray(weights[part]))) for part in present]
        return parts[0][1] if len(parts) == 1 else Sum(tuple(parts))
    metric = Metric[record["kind"]]
    if metric is Metric.COSINE:
        return Cosine(_floats(record["weight"]))
    inverse = _floats(record["inverse"])
    if inverse.shape != (n_features, n_features):
        reject("The certificate's matrix", f"({n_features}, {n_features})", inverse.shape)
    return Mahalanobis(squared=metric is Metric.MAHALANOBIS_SQUARED, inverse=inverse)


def _digest(record: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True, allow_nan=False).encode()).hexdigest()


def _number(value: float) -> float | str:
    """JSON has no infinities and no NaN: they are written as words."""
    return float(value) if np.isfinite(value) else str(float(value))


def _numbers(values: Floats) -> list[float | str]:
    return [_number(value) for value in values]


def _floats(values: Any) -> Floats:
    return np.array(values, dtype=np.float64)
