"""Every option of `Explainer` and of `Explainer.explain`, declared once: name, default, what it takes, what it means.

The doors of the library (the command line, REST, the page, answers in parts, certificates) take their words and lists
from here, or are held against it by tests/test_options.py. An option that a door does not have says here why.
"""

# ruff: noqa: RUF009 - `_option` makes a field, and what it gives cannot change

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any

from treefocus.errors import reject
from treefocus.problem.distances import NAMED as DISTANCES
from treefocus.problem.space import SCALES
from treefocus.search import NAMED as STRATEGIES
from treefocus.search.limits import SECONDS, is_time_limit

EXPLAINER, EXPLAIN = "Explainer", "Explainer.explain"  # the call that takes an option

# Doors through which options come in, or by which answers are known again.
COMMAND_LINE = "the command line"
REST = "the REST API"
SERVICE = "the service's key"
PAGE = "the page"
PARTS = "answers in parts"
MANIFEST = "the manifest"
CERTIFICATE = "the certificate"
DOORS = (COMMAND_LINE, REST, SERVICE, PAGE, PARTS, MANIFEST, CERTIFICATE)

# What `hold` is where an answer is told to a person and nobody said otherwise: in letters of the command line and of
# the REST API, on the page, and in the demo. `Explainer.hold_for_people` says where it can be asked for.
HOLD_FOR_PEOPLE = 0.95

_WITH_THE_EXPLAINER = {PARTS: "it comes with the explainer"}
_OF_THE_SERVER = "it is the server's to say"
_ONLY_HOW = "no answer depends on it"


@dataclass(frozen=True)
class Option:
    """One option: what every door has to know of it."""

    name: str
    call: str  # `EXPLAINER` or `EXPLAIN`
    takes: str  # its type, as a docstring says it
    default: Any
    meaning: str  # without a full stop: a door may add how it is written there
    limits: str = ""  # what is allowed, where `takes` does not say it all
    values: tuple[str, ...] = ()  # its names, where it has some
    names: Mapping[str, str] = field(default_factory=dict)  # by door, where it has another one there
    without: Mapping[str, str] = field(default_factory=dict)  # doors that do not have it, and why
    allows: Callable[[Any], bool] | None = None  # whether a value is within the limits
    wire: Any = None  # its type at the REST API, where plain JSON will do; the server's own value unless said

    def name_at(self, door: str) -> str | None:
        """What it is called there; None where it is not."""
        return None if door in self.without else self.names.get(door, self.name)

    def told(self, more: str = "") -> str:
        """What it means, and how that is said at a door."""
        return f"{self.meaning}{more}."

    def check(self, value: Any) -> None:
        """Refuse a value beyond the limits."""
        if self.allows is not None and not self.allows(value):
            reject(self.name, self.limits, repr(value) if isinstance(value, str) else value)


def _option(call: str, takes: str, default: Any, meaning: str, *, is_key: bool = True, **others: Any) -> Any:
    """A field of the record; `is_key`: whether its values can be hashed."""
    told = {"call": call, "takes": takes, "meaning": meaning, **others}
    return field(default=default, hash=None if is_key else False, metadata=told)


@dataclass(frozen=True)
class ExplainerOptions:
    """The options of `Explainer` and of `Explainer.explain`, with the library's defaults."""

    distance: Any = _option(
        EXPLAINER, "str, Distance or an object with value and gradient", "manhattan", "What small means",
        values=tuple(DISTANCES), without=_WITH_THE_EXPLAINER,
    )  # fmt: skip
    constraints: Any = _option(
        EXPLAINER, "str, constraint or a sequence of them", (), "What an answer may not do",
        names={COMMAND_LINE: "constraint", PAGE: "more"}, without=_WITH_THE_EXPLAINER,
    )  # fmt: skip
    vary: Any = _option(
        EXPLAINER, "column or sequence of columns, optional", None, "The only columns that may change",
        limits="at least one column", is_key=False, wire=list[str] | None,
        without=_WITH_THE_EXPLAINER | {PAGE: "every column says there whether it may change"},
        allows=lambda value: value is None or isinstance(value, str | Integral) or len(value) > 0,
    )  # fmt: skip
    also: Any = _option(
        EXPLAINER, "model or sequence of models, optional", (),
        "Other models that have to give the wanted outcome, too",
        is_key=False,
        without=_WITH_THE_EXPLAINER | dict.fromkeys((REST, SERVICE, PAGE), _OF_THE_SERVER),
    )  # fmt: skip
    labels: Any = _option(
        EXPLAINER, "array, optional", None, "The labels of the training rows, with which the model is trained again",
        is_key=False,
        without=_WITH_THE_EXPLAINER | dict.fromkeys((REST, SERVICE, PAGE), _OF_THE_SERVER) | {
            COMMAND_LINE: "a model in a file cannot be trained again; --refits takes those that were",
            CERTIFICATE: "a certificate names the models that have to agree",
            MANIFEST: "it matters where hold= asks for it",
        },
    )  # fmt: skip
    refits: Any = _option(
        EXPLAINER, "sequence of models, optional", (), "The model as it was trained again, for hold",
        is_key=False,
        without=_WITH_THE_EXPLAINER | dict.fromkeys((REST, SERVICE, PAGE), _OF_THE_SERVER) | {
            CERTIFICATE: "a certificate names the models that have to agree",
            MANIFEST: "it matters where hold= asks for it",
        },
    )  # fmt: skip
    hold: float | None = _option(
        EXPLAIN, "float, optional", None, "The share of future models that has to give the wanted class, too",
        limits="a number above 0.5 and below 1", wire=float | None,
        allows=lambda value: value is None or (isinstance(value, Real) and 0.5 < float(value) < 1),
    )  # fmt: skip
    tolerance: Any = _option(
        EXPLAIN, "Tolerance, float or str, optional", None,
        "Room to move, in which every point gets the wanted outcome, too",
        is_key=False, wire=str | float | None, names={PAGE: "room"},
    )  # fmt: skip
    target: Any = _option(
        EXPLAIN, "a class, Probability, Interval, Score or a list with one a row, optional", None,
        "The class to reach", is_key=False, names={PAGE: "wish"},
    )  # fmt: skip
    strategy: Any = _option(
        EXPLAIN, "str or strategy", "auto", "How to search", values=tuple(STRATEGIES),
        without={PAGE: _OF_THE_SERVER, CERTIFICATE: "a claim is checked however it was found"},
    )  # fmt: skip
    time_limit: float | None = _option(
        EXPLAIN, "float, optional", None, "Seconds a row", limits=SECONDS,
        names={CERTIFICATE: "limits"}, allows=is_time_limit,
    )  # fmt: skip
    seed: int = _option(
        EXPLAIN, "int", 0, "Start of the random numbers, where any are used",
        without={PAGE: _OF_THE_SERVER, CERTIFICATE: "a claim is checked however it was found"},
    )  # fmt: skip
    n: int = _option(
        EXPLAIN, "int", 1, "How many ways out to look for, a row", limits="a whole number above 0",
        names={COMMAND_LINE: "ways", PAGE: "n_ways"},
        without={
            PARTS: "a line is one answer",
            MANIFEST: "a line is one answer",
            CERTIFICATE: "each way out has its own",
        },
        allows=lambda value: isinstance(value, Integral) and int(value) > 0,
    )  # fmt: skip
    scale: Any = _option(
        EXPLAINER, "str, float, array or None", "range", "What a change of 1 means in each column",
        limits="finite numbers above 0", values=SCALES, is_key=False,
        without=_WITH_THE_EXPLAINER | {PAGE: _OF_THE_SERVER},
    )  # fmt: skip
    bounds: Any = _option(
        EXPLAINER, "(low, high), optional", None, "Domain of the answers", is_key=False,
        without=_WITH_THE_EXPLAINER | {PAGE: _OF_THE_SERVER},
    )  # fmt: skip
    weights: Any = _option(
        EXPLAINER, "mapping of columns to float, optional", None, "What a change of a column weighs",
        limits="finite numbers above 0", is_key=False, names={COMMAND_LINE: "weight"}, without=_WITH_THE_EXPLAINER,
    )  # fmt: skip
    plausibility: Any = _option(
        EXPLAINER, "LocalOutlierFactor or IsolationScore, optional", None,
        "How like the training rows an answer has to be", names={PAGE: "measure"},
        without=_WITH_THE_EXPLAINER | {
            COMMAND_LINE: "a measure is an object of several numbers",
        },
    )  # fmt: skip
    schema: Any = _option(
        EXPLAINER, "Schema, optional", None, "What the columns are",
        without=_WITH_THE_EXPLAINER | {REST: _OF_THE_SERVER, SERVICE: _OF_THE_SERVER, PAGE: _OF_THE_SERVER},
    )  # fmt: skip
    n_jobs: int | None = _option(
        EXPLAIN, "int, optional", None, "Threads",
        without=dict.fromkeys((REST, PAGE), _OF_THE_SERVER)
        | dict.fromkeys((SERVICE, MANIFEST, CERTIFICATE), _ONLY_HOW),
    )  # fmt: skip
    progress: Any = _option(
        EXPLAIN, "bool or callable", False, "Whether a bar shows how many rows are done, or who hears of it",
        without=dict.fromkeys((COMMAND_LINE, REST, PAGE, PARTS), "progress is shown there in its own way")
        | dict.fromkeys((SERVICE, MANIFEST, CERTIFICATE), _ONLY_HOW),
    )  # fmt: skip
    on_interrupt: str = _option(
        EXPLAIN, "str", "raise", "What happens when Ctrl-C has stopped the search", limits="'raise' or 'return'",
        values=("raise", "return"), allows=lambda value: value in ("raise", "return"),
        without=dict.fromkeys(DOORS, "Ctrl-C is for whoever calls from Python"),
    )  # fmt: skip


OPTIONS: Mapping[str, Option] = MappingProxyType(
    {one.name: Option(name=one.name, default=one.default, **one.metadata) for one in fields(ExplainerOptions)}
)


def named(call: str) -> tuple[str, ...]:
    """The options of a call."""
    return tuple(name for name, option in OPTIONS.items() if option.call == call)


def names_at(door: str) -> tuple[str, ...]:
    """The options that a door has, under their names in Python."""
    return tuple(name for name, option in OPTIONS.items() if option.name_at(door) is not None)


def check(**values: Any) -> None:
    """Refuse values beyond the limits of their options."""
    for name, value in values.items():
        OPTIONS[name].check(value)
