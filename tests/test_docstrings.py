"""Docstrings of public names have a section of parameters and an example, and the examples run."""

from __future__ import annotations

import doctest
import inspect
import pydoc
from typing import Any

import pytest

import treefocus
from treefocus import Explainer
from treefocus.constraints.kinds import Constraint
from treefocus.options import EXPLAIN, EXPLAINER, OPTIONS, named

CONSTRAINTS = (
    "AtMost",
    "Decreasing",
    "Fixed",
    "Implies",
    "Increasing",
    "Linear",
    "MayBeMissing",
    "OneOf",
    "Range",
    "Together",
)
DISTANCES = ("Chebyshev", "Cosine", "Euclidean", "FewestFeatures", "Mahalanobis", "Manhattan")
STRATEGIES = ("Auto", "Dace", "Exact", "FeatureTweaking", "Focus", "RandomPerturbation")
MEASURES = ("IsolationScore", "LocalOutlierFactor")
TARGETS = ("Interval", "Probability", "Score")
DESCRIBED = (
    *("Explainer", "Explainer.explain", "explain", "verify", "load_model", "Condition", "Schema"),
    *(*CONSTRAINTS, *DISTANCES, *MEASURES, *STRATEGIES, *TARGETS),
)
ANSWERS = ("Explanation", "Explanations")


def found(name: str) -> Any:
    thing: Any = treefocus
    for part in name.split("."):
        thing = getattr(thing, part)
    return thing


@pytest.mark.parametrize("name", DESCRIBED)
def test_every_parameter_is_described(name: str) -> None:
    text = inspect.getdoc(found(name)) or ""
    assert "Parameters\n----------\n" in text
    described = text.split("Parameters\n----------\n")[1].split("\n\n")[0]
    names = [line.split(" : ")[0] for line in described.splitlines() if not line.startswith(" ")]
    told = {one.strip(" *") for line in names for one in line.split(",")}
    assert told == set(inspect.signature(found(name)).parameters) - {"self"}


@pytest.mark.parametrize("name", ANSWERS)
def test_every_attribute_that_is_described_is_there(name: str) -> None:
    text = inspect.getdoc(found(name)) or ""
    described = text.split("Attributes\n----------\n")[1].split("\n\n")[0]
    lines = [line.split(" : ")[0] for line in described.splitlines() if not line.startswith(" ")]
    told = {one.strip() for line in lines for one in line.split(",")}
    assert told <= {*dir(found(name)), *found(name).__annotations__}


@pytest.mark.parametrize("name", [*DESCRIBED, *ANSWERS])
def test_every_example_runs(name: str) -> None:
    thing = found(name)
    (test,) = doctest.DocTestFinder(recurse=False).find(thing, name, globs={})
    assert test.examples, f"{name} has no example"
    said: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.append)
    assert not said, "".join(said)


@pytest.mark.parametrize(("call", "thing"), [(EXPLAINER, Explainer), (EXPLAIN, Explainer.explain)])
def test_the_docstrings_say_what_options_take_and_mean(call: str, thing: Any) -> None:
    text = inspect.getdoc(thing) or ""
    for option in (OPTIONS[name] for name in named(call)):
        assert f"{option.name} : {option.takes}\n    {option.meaning}" in text, f"{call} tells {option.name} otherwise"


def test_help_names_every_kind_of_constraint() -> None:
    public = {name for name in treefocus.__all__ if _is_constraint(getattr(treefocus, name))}
    assert public == set(CONSTRAINTS)
    for name in CONSTRAINTS:
        assert f"`{name}`" in (Explainer.__doc__ or "")


def _is_constraint(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, Constraint)


def test_help_repeats_no_line() -> None:
    lines = [line.strip(" |") for line in pydoc.plain(pydoc.render_doc(Explainer)).splitlines()]
    headings = ("Parameters", "Returns", "Examples", ">>>")
    told = [line for line in lines if line.strip("- ") and not line.startswith(headings)]
    assert sorted(told) == sorted(set(told))
