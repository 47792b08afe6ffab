"""Certificates: an answer with all that is needed to check it, by anybody who has the model.

A certificate is a small JSON object: fingerprints of the forest and of itself, the question (row, box, scale, distance,
class to leave or reach), the answer, and what is claimed of it. `explanation/verifying.py` checks one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from treefocus.check import ACCEPTED, REJECTED, judge
from treefocus.explanation.proof import prove
from treefocus.kernels.rules import LinearRule
from treefocus.model.fingerprint import fingerprint
from treefocus.model.forest import Floats
from treefocus.problem.problem import Problem
from treefocus.problem.problem_record import problem_record, written_number, written_numbers
from treefocus.search.base import Status
from treefocus.search.limits import SearchLimits

FORMAT = "treefocus-certificate-3"
EARLIER = "treefocus-certificate-2"  # the same, with a fingerprint of the forest's trees and scores alone


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
    written down beside: how the model's columns are taken (`problem.coded`), the time.
    """
    from importlib.metadata import version  # slow to import, and seldom needed

    if problem.relaxed is not None and point is not None and distance == 0 and not problem.is_valid(point[None])[0]:
        problem = problem.relaxed  # a row that stays as it is need not be like the data
    if distance == 0:
        problem = replace(problem, outliers=None)
    record: dict[str, Any] = {
        "format": FORMAT,
        "version": version("treefocus"),
        **(told or {}),
        "forest": fingerprint(problem.model),
        **problem_record(problem, target),
        "status": status.name,
        "point": None if point is None else written_numbers(point),
        "distance": distance,
        "lower_bound": written_number(lower_bound),
        "limits": None if limits is None else asdict(limits),
    }
    if problem.also:
        record["also"] = [{"forest": fingerprint(one.forest), "margin": one.margin} for one in problem.also]
    if larger is not None:
        record["larger"] = larger
    for argument in prove(replace(problem, outliers=None), lower_bound, point) if with_proof else ():
        without = record if problem.outliers is None else {k: v for k, v in record.items() if k != "plausibility"}
        if _is_sound(without, argument, problem):  # what is so of all answers needs no limit on their likeness
            record = without | {"proof": argument}
            break
    return record | {"fingerprint": digest(record)}


def _is_sound(record: dict[str, Any], argument: dict[str, Any], problem: Problem) -> bool:
    """Whether the checker follows a proof of points, prices or several models, where it allows for more rounding."""
    is_alone = not problem.also and problem.room is None and problem.isolation is None and problem.outliers is None
    is_plain = problem.distance.norms is not None and is_alone
    if is_plain and not any(isinstance(rule, LinearRule) for rule in problem.batch.rules.all):
        return True
    written, models = record | {"proof": argument}, (problem.model, *(one.forest for one in problem.also))
    records = [json.loads(json.dumps(one)) for one in (written, *(own.to_record() for own in models))]
    code = judge(*records)[0]
    return code != REJECTED if problem.outliers is None else code == ACCEPTED


def digest(record: dict[str, Any]) -> str:
    """The fingerprint of a certificate without its own."""
    return hashlib.sha256(json.dumps(record, sort_keys=True, allow_nan=False).encode()).hexdigest()
