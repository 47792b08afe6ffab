"""Every option is declared once, in options.py, and every door has it or says why not."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.main import get_command

import treefocus
from treefocus import Explainer, Feature, InvalidInput, LocalOutlierFactor, Probability, Schema, loans
from treefocus.app import page
from treefocus.app.demo import demo_service
from treefocus.app.limits import Limits
from treefocus.app.messages import ExplainBody
from treefocus.app.question import ExplainOptions
from treefocus.app.server import create_app
from treefocus.app.service import Service
from treefocus.app.visit import Visit
from treefocus.cli import app
from treefocus.options import (
    CERTIFICATE,
    COMMAND_LINE,
    DOORS,
    EXPLAIN,
    EXPLAINER,
    MANIFEST,
    OPTIONS,
    PAGE,
    PARTS,
    REST,
    SERVICE,
    ExplainerOptions,
    Option,
    check,
    named,
    names_at,
)
from treefocus.scale.batches import Task, explain_batches
from treefocus.scale.files import explain_file

INPUTS = {EXPLAINER: ("model", "data"), EXPLAIN: ("X",)}  # what is asked about, which is no option
WHOLE = Schema(tuple(Feature(one.name, "integer") for one in loans.SCHEMA.features))
# For every option another value than its default, by which its trace is found.
OTHER: dict[str, Any] = {
    "distance": "euclidean",
    "constraints": ("age fixed",),
    "vary": ("income", "savings"),
    "also": (loans.forest(),),
    "labels": tuple(loans.load()[1][:40]),
    "refits": (loans.forest(),) * 3,
    "hold": 0.9,
    "tolerance": "above 20%",
    "schema": WHOLE,
    "target": Probability("approved", 0.8),
    "strategy": "exact",
    "time_limit": 7.5,
    "seed": 3,
    "n": 2,
    "scale": "std",
    "bounds": (0.0, 1e6),
    "weights": {"income": 2.0},
    "plausibility": LocalOutlierFactor(1.5),
    "n_jobs": 2,
    "progress": True,
    "on_interrupt": "return",
}
QUICK = treefocus.Auto(time_limit=None, node_limit=100)
# The visitor's choice that makes each option of the page another one.
CHOICES: dict[str, Callable[[Visit], None]] = {
    "distance": lambda visit: setattr(visit, "distance", "cosine"),
    "more": lambda visit: setattr(visit, "more", "at most 2 changes"),
    "hold": lambda visit: setattr(visit, "hold", 0.9),
    "room": lambda visit: setattr(visit, "room", "above 20%"),
    "wish": lambda visit: setattr(visit.wish, "percent", 80.0),
    "time_limit": lambda visit: setattr(visit, "time_limit", 0.7),
    "n_ways": lambda visit: setattr(visit, "n_ways", 3),
    "weights": lambda visit: visit.weights.__setitem__(0, 4.0),
    "measure": lambda visit: setattr(visit, "measure", LocalOutlierFactor()),
}


# --- what each door has


@cache
def rows() -> Any:
    X, _ = loans.load()
    return X[:40]


@cache
def service() -> Service:
    return demo_service()


def explainer(**options: Any) -> Explainer:
    return Explainer(loans.forest(), rows(), **({"schema": loans.SCHEMA} | options))


def at_the_command_line() -> set[str]:
    command = get_command(app).commands["explain"]  # type: ignore[attr-defined]
    return {one.opts[0].removeprefix("--").replace("-", "_") for one in command.params}


def of_the_service() -> set[str]:
    """By the key of an explainer, where the option is one of those, else by the text that jobs are known by."""
    used = {name: OTHER[name] for name, option in OPTIONS.items() if option.wire is not None}
    asked, told = service().asked, ExplainOptions(**used).text
    found = {name for name in ExplainerOptions.__dataclass_fields__ if f" {name}=" in told or f"({name}=" in told}
    kept = service().explainer(asked)
    builds = {name: replace(asked, **{name: _as_asked(name)}) for name in found & set(named(EXPLAINER))}
    return found - {name for name, other in builds.items() if service().explainer(other) is kept}


def _as_asked(name: str) -> Any:
    return {"distance": "cosine", "constraints": (treefocus.Fixed("income"),)}.get(name, OTHER[name])


def on_the_page() -> set[str]:
    """Fields of a visit that the page's files speak of, and that make the question another one."""
    spoken: set[str] = set()
    for path in Path(page.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            spoken |= {node.attr} if isinstance(node, ast.Attribute) else set()
            spoken |= {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()
    found = set()
    for name in {one.name for one in fields(Visit)} & spoken & CHOICES.keys():
        visit = Visit.begin(service())
        visit.wish.label = "approved"
        before = visit.question()
        CHOICES[name](visit)
        found |= {name} if visit.question() != before else set()
    return found


def in_parts() -> set[str]:
    own = set(inspect.signature(explain_batches).parameters)
    return own & set(inspect.signature(Task.of).parameters) & {one.name for one in fields(Task)}


def in_the_manifest(folder: Path) -> set[str]:
    """Options by which a folder of answers is another one."""
    path = folder / "rows.csv"
    names = loans.SCHEMA.names
    np.savetxt(path, rows()[:1], delimiter=",", header=",".join(names), comments="")
    searches = in_parts()

    def question(number: int, name: str | None) -> Mapping[str, Any]:
        built = {name: OTHER[name]} if name in named(EXPLAINER) else {}
        asked = {name: OTHER[name]} if name in searches else {}
        return explain_file(explainer(**built), path, folder / str(number), **asked).question

    plain = question(0, None)
    return {name for number, name in enumerate(OPTIONS, 1) if question(number, name) != plain}


def in_the_certificate() -> set[str]:
    """Options of which a certificate keeps a trace, whatever the answer."""
    answers = ("point", "distance", "lower_bound", "status", "fingerprint")

    def certificate(name: str | None) -> Mapping[str, Any]:
        built = {name: OTHER[name]} if name in named(EXPLAINER) else {}
        asked = {name: OTHER[name]} if name in named(EXPLAIN) and name != "progress" else {}
        record = explainer(**built).explain(rows()[:1], **({"strategy": QUICK} | asked))[0].certificate()
        return {key: value for key, value in record.items() if key not in answers}

    plain = certificate(None)
    return {name for name in OPTIONS if name != "strategy" and certificate(name) != plain}  # which brings limits


def lacking(door: str, has: set[str]) -> list[str]:
    """A sentence for every option that a door lacks, and for every one that it has but is said not to."""
    found = []
    for name, option in OPTIONS.items():
        own = option.name_at(door)
        if own is not None and own not in has:
            found.append(f"{door} lacks the option {name} (there {own}); add it, or say why not in options.py")
        if own is None and name in has:
            found.append(f"{door} has the option {name}, and options.py says that it has not: {option.without[door]}")
    return found


# --- the doors


@pytest.mark.parametrize(("call", "function"), [(EXPLAINER, Explainer.__init__), (EXPLAIN, Explainer.explain)])
def test_the_signatures_are_those_declared(call: str, function: Callable[..., Any]) -> None:
    own = inspect.signature(function).parameters.values()
    has = {one.name: one.default for one in own if one.name not in ("self", *INPUTS[call])}
    declared = {name: OPTIONS[name].default for name in named(call)}
    assert has.keys() == declared.keys(), f"{call} and options.py differ in {has.keys() ^ declared.keys()}"
    for name, default in has.items():
        assert default == declared[name], f"{call} takes {name}={default!r}, options.py says {declared[name]!r}"


def test_the_defaults_of_the_doors_are_those_declared() -> None:
    """What a door leaves out is what Python leaves out; None stands for the library's or the server's own choice."""
    command = get_command(app).commands["explain"]  # type: ignore[attr-defined]
    typed = {one.opts[0].removeprefix("--").replace("-", "_"): one.default for one in command.params}
    sent = {name: one.default for name, one in ExplainBody.model_fields.items()}
    streamed = {name: one.default for name, one in inspect.signature(explain_batches).parameters.items()}
    tasked = {name: one.default for name, one in inspect.signature(Task.of).parameters.items()}
    for door, own in ((COMMAND_LINE, typed), (REST, sent), (PARTS, streamed), (PARTS, tasked)):
        for name in names_at(door):
            default = own[str(OPTIONS[name].name_at(door))]
            assert default is None or default == OPTIONS[name].default, f"{door}: {name}={default!r}"
    for door, own in ((COMMAND_LINE, typed), (REST, sent)):  # and these are said, so that people can read them
        said = {name for name in names_at(door) if own[str(OPTIONS[name].name_at(door))] is not None}
        assert said >= {"strategy", "seed", "n", "scale"}
    assert typed["distance"] == OPTIONS["distance"].default


def test_the_defaults_of_the_server_are_those_of_the_service() -> None:
    command = get_command(app).commands["serve"]  # type: ignore[attr-defined]
    typed = {one.name: one.default for one in command.params}
    limits, asked = Limits(), ExplainOptions()
    assert typed["distance"] == asked.distance == Visit.begin(service()).distance
    assert typed["time_limit"] is None
    assert [typed[name] for name in ("max_rows", "max_job_rows", "max_seconds", "max_body", "max_jobs")] == [
        limits.rows_per_call, limits.rows_per_job, limits.seconds_per_row, limits.body_bytes, limits.jobs_open,
    ]  # fmt: skip


def test_every_door_has_every_option_or_says_why_not(tmp_path: Path) -> None:
    has = {
        COMMAND_LINE: at_the_command_line(),
        REST: set(ExplainBody.model_fields),
        SERVICE: of_the_service(),
        PAGE: on_the_page(),
        PARTS: in_parts(),
        MANIFEST: in_the_manifest(tmp_path),
        CERTIFICATE: {OPTIONS[name].names.get(CERTIFICATE, name) for name in in_the_certificate()},
    }
    assert has.keys() == set(DOORS)
    found = [sentence for door in DOORS for sentence in lacking(door, has[door])]
    assert not found, "\n" + "\n".join(found)


def test_a_door_that_lacks_an_option_is_named() -> None:
    has = set(ExplainBody.model_fields) - {"weights"} | {"n_jobs"}
    assert lacking(REST, has) == [
        "the REST API lacks the option weights (there weights); add it, or say why not in options.py",
        "the REST API has the option n_jobs, and options.py says that it has not: it is the server's to say",
    ]


def test_one_call_takes_the_options_of_both() -> None:
    quick = {"strategy": "random_perturbation", "time_limit": 5.0, "n": 1, "progress": False, "schema": loans.SCHEMA}
    quick["target"] = "approved"  # hold= is for classes
    given = {name: quick.get(name, OTHER[name]) for name in OPTIONS}
    assert len(treefocus.explain(loans.forest(), rows()[:1], rows(), **given)) == 1


# --- their words


def test_the_command_line_says_what_an_option_means() -> None:
    command = get_command(app).commands["explain"]  # type: ignore[attr-defined]
    told = {one.opts[0].removeprefix("--").replace("-", "_"): one.help for one in command.params}
    for name in set(names_at(COMMAND_LINE)) - {"constraints"}:  # of which there are several there
        own = OPTIONS[name].name_at(COMMAND_LINE)
        assert told[own].startswith(OPTIONS[name].meaning), f"the command line tells {own} in other words"


def test_the_openapi_document_says_what_an_option_means(tmp_path: Path) -> None:
    asked = create_app(service(), tmp_path, with_page=False).openapi()["components"]["schemas"]["ExplainBody"][
        "properties"
    ]
    for name in names_at(REST):
        assert asked[name]["description"].startswith(OPTIONS[name].meaning), f"the REST API tells {name} otherwise"
    for name in ("distance", "strategy"):
        values = asked[name].get("enum") or asked[name]["anyOf"][0]["enum"]
        assert tuple(values) == OPTIONS[name].values


def test_every_option_says_what_it_means() -> None:
    for name, option in OPTIONS.items():
        assert option.takes, name
        assert option.meaning.rstrip(".") == option.meaning != "", name
        assert set(option.without) | set(option.names) <= set(DOORS), name


# --- their limits


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"vary": []}, "vary must be at least one column, got []."),
        ({"n": 0}, "n must be a whole number above 0, got 0."),
        ({"n": "two"}, "n must be a whole number above 0, got 'two'."),
        ({"time_limit": -1}, "time_limit must be a number of seconds above 0, or None, got -1."),
        ({"on_interrupt": "stop"}, "on_interrupt must be 'raise' or 'return', got 'stop'."),
    ],
)
def test_a_value_beyond_the_limits_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as error:
        check(**given)
    assert str(error.value) == message


@pytest.mark.parametrize("option", OPTIONS.values(), ids=list(OPTIONS))
def test_a_default_is_within_the_limits(option: Option) -> None:
    option.check(option.default)
    option.check(OTHER[option.name])
