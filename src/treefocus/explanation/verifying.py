"""Checking certificates against a model: claim by claim, what holds, what does not, and what was not checked.

`verify` checks the claims about the answer with the hard forest and the distance's own formula. That nothing is closer,
or that there is no answer, can only be searched for again (`reprove`); where that was not done, or came to no end, the
claim is reported as not checked, and does not hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from treefocus import kernels
from treefocus.adapters import translate
from treefocus.adapters.trust import trusted
from treefocus.errors import InvalidInput, UnsupportedModel, reject
from treefocus.explanation.certificate import EARLIER, FORMAT, digest
from treefocus.model.fingerprint import digest_of_trees, fingerprint
from treefocus.model.forest import Floats, Forest
from treefocus.problem.coded import coded
from treefocus.problem.joint import Companion
from treefocus.problem.problem import Problem
from treefocus.problem.problem_record import is_other, read_numbers, read_problem
from treefocus.search.base import Incumbent, Run, Status
from treefocus.search.exact import Exact
from treefocus.search.limits import check_time_limit

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


def verify(
    certificate: dict[str, Any],
    model: Any,
    *,
    also: Sequence[Any] = (),
    reprove: bool = False,
    time_limit: float | None = None,
) -> Verification:
    """Check a certificate against a model.

    Parameters
    ----------
    certificate : dict
        As `Explanation.certificate` makes it.
    model : object
        What it speaks of: a trained model as an `Explainer` takes it, or a `Forest`. Of a model that keeps only hashes
        of its categories, `explainer.forest`.
    also : sequence
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
    >>> verify(certificate, model, reprove=True).holds
    True
    """
    check_time_limit(time_limit)
    if not isinstance(certificate, dict):
        reject("certificate", "a dict, as Explanation.certificate() makes it or json.load reads it", repr(certificate))
    if certificate.get("format") not in (FORMAT, EARLIER):
        reject("The certificate's format", f"{FORMAT!r} or {EARLIER!r}", repr(certificate.get("format")))
    body = {key: value for key, value in certificate.items() if key != "fingerprint"}
    forest, also = coded(certificate, _forest_of(model)), [_forest_of(one) for one in also]
    checks = [
        Check("the certificate is as it was written", certificate.get("fingerprint") == digest(body)),
        _check_forest(certificate, forest),
    ]
    others = companions_of(certificate, (forest, *also))
    if "also" in certificate:
        checks.append(Check("and of these other models", others is not None))
    if others is None or not checks[1].holds:
        return Verification(tuple(checks))
    try:
        problem = read_problem(certificate, forest, others)
        claim = _Claim.read(certificate, forest.n_features)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise InvalidInput(f"The certificate is not whole: {error!r}.") from error
    checks += [_check_row(problem, forest), _check_status(claim)]
    if claim.point is not None and claim.distance is not None:
        checks += _check_point(problem, claim.point[None, :], claim.distance, claim.bound, claim.status)
    if claim.is_about_others:
        checks.append(_prove_again(problem, claim, time_limit) if reprove else _not_proven(claim))
    return Verification(tuple(checks))


def _forest_of(model: Any) -> Forest:
    """A model's translation, held against the model as an explainer does."""
    instead = "Give the forest that the explainer knows: explainer.forest."
    try:
        source = trusted(translate(model))
    except UnsupportedModel as error:
        raise UnsupportedModel(f"{error} {instead}") from error
    if source.with_words is not None:
        raise UnsupportedModel(f"A {type(model).__name__} keeps only hashes of its categories. {instead}")
    return source.forest


def companions_of(certificate: dict[str, Any], also: Sequence[Forest]) -> tuple[Companion, ...] | None:
    """The other models that a certificate speaks of, as it names them; None where one is not at hand."""
    groups: dict[str, Any] = {name: certificate[name] for name in ("columns", "groups") if name in certificate}
    known = {fingerprint(forest): forest for one in also for forest in (one, coded(groups, one))}
    try:
        named = [(one.get("forest"), float(one.get("margin", 0.0))) for one in certificate.get("also", [])]
    except (AttributeError, TypeError, ValueError) as error:
        raise InvalidInput(f"The certificate is not whole: {error!r}.") from error
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
        point = None if record["point"] is None else read_numbers(record["point"])
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
    if certificate["format"] == EARLIER:
        return Check("it speaks of a model with these trees and scores", said == digest_of_trees(forest).hexdigest())
    return Check("it speaks of this model", said == fingerprint(forest))


def _check_row(problem: Problem, forest: Forest) -> Check:
    """What the model says of the row, in the terms of the question."""
    problem = problem.relaxed or problem
    said = int(kernels.predict(problem.forest, problem.batch.rows)[0])
    if not problem.also and not is_other(problem.forest, forest):
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
    if problem.isolation is not None:
        told = f"its isolation score is at most {problem.isolation.limit:.9g}"
        checks.append(Check(told, bool(problem.isolation.holds(point)[0])))
    if problem.outliers is not None:
        told = f"its local outlier factor is at most {problem.outliers.limit:.9g}: only the training rows can tell"
        checks.append(Check(told, holds=False, is_checked=False))
    if problem.room is not None:
        checks.append(_check_room(problem, point))
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


def _check_room(problem: Problem, point: Floats) -> Check:
    """Whether every point around it gets the wanted answer, searched once more."""
    told, sure = "the model gives the wanted answer everywhere in the room around it", problem.sure()
    if sure is not None and sure.has_room(point)[0]:
        return Check(told, holds=True)
    is_refuted = bool((problem.loosened().looked_around(point).by >= 0)[0])
    return Check(told, holds=False, is_checked=is_refuted)


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
    is_refuted = has_answer and (claim.status is Status.INFEASIBLE or float(found.distance[0]) < least)
    if is_refuted and problem.outliers is not None:
        told = f"{claim.words} that is like the data: only the training rows can tell"
        return Check(told, holds=False, is_checked=False)
    if is_refuted:
        return Check(f"{claim.words}: there is an answer at {float(found.distance[0]):.9g}", holds=False)
    if claim.status is Status.INFEASIBLE:
        is_proven, so_far = found.status[0] is Status.INFEASIBLE, ""
    else:
        is_proven, so_far = proven >= least, f" (proved up to {proven:.9g})"
    if not is_proven:
        return Check(f"{claim.words}: the new proof came to no end{so_far}", holds=False, is_checked=False)
    return Check(f"proven again: {claim.words}{so_far}", holds=True)
