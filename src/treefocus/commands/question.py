"""What is asked on a command line: every option of a question named once, for all commands that take one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from treefocus.adapters import load_model
from treefocus.commands.reading import constraints_of, numbers_of, target_of, weights_of
from treefocus.commands.schema import read_schema
from treefocus.commands.written import Decimal, Delimiter, Encoding, written_in
from treefocus.model.forest import Forest
from treefocus.options import OPTIONS
from treefocus.tables.text import STANDARD, TextFormat


def _one_of(name: str) -> str:
    return OPTIONS[name].told(f": {', '.join(OPTIONS[name].values)}")


@dataclass(frozen=True)
class TypedQuestion:
    """The options of a question, as they are typed; the field of an option is its name."""

    # the model and its rows
    train: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Training rows: they set the scale, the domain and the covariance."),
    ] = None
    also: Annotated[
        list[Path] | None,
        typer.Option(metavar="MODEL", help=OPTIONS["also"].told(": a model file") + " Repeatable."),
    ] = None
    refits: Annotated[
        list[Path] | None,
        typer.Option(metavar="MODEL", help=OPTIONS["refits"].told(": a model file") + " Repeatable."),
    ] = None
    hold: Annotated[float | None, typer.Option(metavar="SHARE", help=OPTIONS["hold"].told(": 0.95, say"))] = None
    tolerance: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help=OPTIONS["tolerance"].told(": 'above 20%', 'income above 500, below 5%'")),
    ] = None
    schema: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help=OPTIONS["schema"].told(", as `treefocus schema` writes it: .yaml")),
    ] = None
    # what small means, and what may change
    distance: Annotated[str, typer.Option(metavar="NAME", help=_one_of("distance"))] = OPTIONS["distance"].default
    fix: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="A column that must not change. Repeatable.")
    ] = None
    vary: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help=OPTIONS["vary"].told("; all if not given") + " Repeatable."),
    ] = None
    increasing: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="A column that may only grow. Repeatable.")
    ] = None
    decreasing: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="A column that may only shrink. Repeatable.")
    ] = None
    range_: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            metavar="COLUMN:LOW:HIGH",
            help="Where a column must end up; leave a side empty for no limit. Repeatable.",
        ),
    ] = None
    constraint: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help='A constraint in words: "age fixed", "income <= 2 * salary". Repeatable.'),
    ] = None
    # what is wanted
    target: Annotated[
        str | None,
        typer.Option(metavar="CLASS", help=OPTIONS["target"].told("; any other than the present if not given")),
    ] = None
    at_least: Annotated[
        float | None, typer.Option(metavar="P", help="With --target: the probability that the class has to reach.")
    ] = None
    between: Annotated[
        str | None,
        typer.Option(metavar="LOW:HIGH", help="The predicted number to reach, of a regression; a side may be empty."),
    ] = None
    ways: Annotated[
        int, typer.Option(min=1, metavar="N", help=OPTIONS["n"].told(", each without a column that another needs"))
    ] = OPTIONS["n"].default
    weight: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN:NUMBER",
            help=OPTIONS["weights"].told(" (under euclidean, its square); 1 if not given") + " Repeatable.",
        ),
    ] = None
    # how to search
    strategy: Annotated[str, typer.Option(metavar="NAME", help=_one_of("strategy"))] = OPTIONS["strategy"].default
    scale: Annotated[
        str, typer.Option(metavar="NAME", help=OPTIONS["scale"].told(f": {', '.join(OPTIONS['scale'].values)} or none"))
    ] = OPTIONS["scale"].default
    bounds: Annotated[
        str | None,
        typer.Option(
            metavar="LOW:HIGH",
            help=OPTIONS["bounds"].told(", for every column; the range of the training rows if not given"),
        ),
    ] = None
    ignore: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column of the files that is not the model's. Repeatable."),
    ] = None
    id_: Annotated[
        str | None,
        typer.Option("--id", metavar="COLUMN", help="A column of DATA that names the rows; not the model's."),
    ] = None
    time_limit: Annotated[float | None, typer.Option(metavar="SECONDS", help=OPTIONS["time_limit"].told())] = None
    n_jobs: Annotated[
        int | None, typer.Option(metavar="N", help=OPTIONS["n_jobs"].told("; all cores if not given"))
    ] = None
    seed: Annotated[int, typer.Option(metavar="N", help=OPTIONS["seed"].told())] = OPTIONS["seed"].default
    # how files are read
    allow_pickle: Annotated[
        bool,
        typer.Option(
            "--allow-pickle",
            help="Read MODEL from .pkl or .joblib. Unpickling runs code from the file, whatever its author put there: "
            "only for files you trust. The other formats hold numbers and run nothing.",
        ),
    ] = False
    encoding: Encoding = STANDARD.encoding
    delimiter: Delimiter = STANDARD.delimiter
    decimal: Decimal = STANDARD.decimal

    @property
    def text(self) -> TextFormat:
        """How text files are written."""
        return written_in(self.encoding, self.delimiter, self.decimal)

    @property
    def left_out(self) -> tuple[str, ...]:
        """The columns of the files that are not read as the model's."""
        return (*(self.ignore or ()), *([] if self.id_ is None else [self.id_]))

    def building(self) -> dict[str, Any]:
        """The options of `Explainer`."""
        return {
            "distance": self.distance,
            "constraints": constraints_of(self.fix, self.increasing, self.decreasing, self.range_, self.constraint),
            "scale": None if self.scale == "none" else self.scale,
            "bounds": None if self.bounds is None else numbers_of("--bounds", self.bounds, self.bounds.split(":")),
            "schema": read_schema(self.schema),
            "weights": weights_of(self.weight),
            "vary": self.vary,
            "also": [load_model(path, allow_pickle=self.allow_pickle) for path in self.also or ()],
            "refits": [load_model(path, allow_pickle=self.allow_pickle) for path in self.refits or ()],
        }

    def searching(self) -> dict[str, Any]:
        """The options of `Explainer.explain`, but what depends on the model and where the answers go."""
        return {name: getattr(self, name) for name in ("strategy", "time_limit", "n_jobs", "seed", "hold", "tolerance")}

    def wanted(self, forest: Forest) -> Any:
        """The target, once the model is known."""
        return target_of(self.target, self.at_least, self.between, forest)

    def told(self, made: dict[str, Any]) -> dict[str, Any]:
        """Options as they were given, for the manifest; what an explainer still knows it tells itself."""
        given = {
            "train": None if self.train is None else str(self.train),
            "ignore": list(self.ignore or ()) or None,
            "scale": made["scale"] if made["scale"] is not None else "none",
            "bounds": made["bounds"],
            "weights": made["weights"],
            "vary": made["vary"],
            "constraints in words": list(self.constraint or ()) or None,
            "at_least": self.at_least,
            "between": self.between,
        }
        return {name: value for name, value in given.items() if value is not None}


def takes_question(*, without: Collection[str] = ()) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command that has the options of a question where its parameter `asked` stands; without: those it lacks."""
    hints = get_type_hints(TypedQuestion, include_extras=True)
    options = [_typed(one.name, one.default, hints) for one in fields(TypedQuestion) if one.name not in without]

    def taking(command: Callable[..., None]) -> Callable[..., None]:
        own = get_type_hints(command, include_extras=True)
        typed: list[inspect.Parameter] = []
        for one in inspect.signature(command).parameters.values():
            typed += options if one.name == "asked" else [_typed(one.name, one.default, own)]

        @wraps(command)
        def called(**values: Any) -> None:
            given = {one.name: values.pop(one.name) for one in options}
            command(asked=TypedQuestion(**given), **values)

        called.__signature__ = inspect.Signature(typed)  # type: ignore[attr-defined]
        called.__annotations__ = {one.name: one.annotation for one in typed}
        return called

    return taking


def _typed(name: str, default: Any, hints: Mapping[str, Any]) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[name])
