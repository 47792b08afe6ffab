"""The command line: `treefocus demo` to see it work, `treefocus explain` for your own model and rows.

Misuse is one line on stderr and exit code 2; finding no answer for a row is a status in the output, not a failure.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import numpy as np
import typer
from typer.core import TyperGroup

from treefocus import __version__, distances
from treefocus.adapters import load_forest, translate
from treefocus.certificate import verify as check_certificate
from treefocus.coding import Coding
from treefocus.constraints import Constraint, Decreasing, Fixed, Increasing, Range
from treefocus.errors import InvalidInput, TreefocusError, reject
from treefocus.evaluation.commands import register
from treefocus.explainer import Explainer
from treefocus.explanation import Explanations
from treefocus.forest import Forest, read_json
from treefocus.schema import INTEGER
from treefocus.search import NAMED as STRATEGIES
from treefocus.tables import TABLE_FILES, Table, check_suffix, import_pyarrow, read_names, read_table, write_columns

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

DEMO_DISTANCES = ("euclidean", "manhattan", "cosine", "mahalanobis")
DEMO_SECONDS = 0.05  # a row
PICKLES = (".pkl", ".pickle", ".joblib")
OUTPUTS = (*TABLE_FILES, ".json", ".html")
N_PEOPLE = 3  # whose answers are given as sentences
MISUSE, INTERRUPTED = 2, 130


class _Commands(TyperGroup):
    """The commands, with every error as one line on stderr."""

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        """Run a command and leave with its exit code."""
        extra["standalone_mode"] = False
        try:
            code = super().main(*args, **extra)
        except (typer.Abort, KeyboardInterrupt):
            code = INTERRUPTED
        except TreefocusError as error:
            code = _complain(str(error))
        except Exception as error:
            if not hasattr(error, "format_message"):  # not the parser's own
                raise
            code = _complain(error.format_message())
        sys.exit(code or 0)


app = typer.Typer(
    cls=_Commands, rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)  # fmt: skip


def main() -> None:
    """Run the program."""
    app(prog_name="treefocus")


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"treefocus {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _treefocus(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """What is the smallest change to a row that changes a tree model's prediction?

    treefocus takes a trained tree ensemble (a decision tree, a random forest, a boosted ensemble) and rows of
    data, and answers that question for every row, in the data's own units. Start with the demo: it trains a
    model on invented loan applications and tells declined applicants what would get them the loan.

    \b
      treefocus demo
      treefocus explain model.json rows.csv --train train.csv --fix age
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command(short_help="See it work on invented loan applications.")
def demo(
    rows: Annotated[int, typer.Option(min=1, help="How many declined applicants to explain.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Which applicants are drawn.")] = 0,
) -> None:
    """Explain declined loan applications under four distances: what would have got them the loan?

    The applications come with the package and are invented. Age and dependants stay as they are, income, savings
    and years can only grow, and the loan, the debts and the late payments can only shrink.
    """
    from treefocus import loans

    console = _console()
    trained = loans.train()
    declined = trained.X_test[trained.model.predict(trained.X_test) == "declined"]
    n_rows = min(rows, len(declined))
    chosen = np.sort(np.random.default_rng(seed).permutation(len(declined))[:n_rows])
    _say(
        console,
        f"A random forest of {len(trained.model.estimators_)} trees, trained on {len(trained.X_train):,} invented "
        f"loan applications, declined {len(declined)} of {len(trained.X_test):,} others. What would {n_rows} of "
        "them have to change to be approved?\n",
    )
    found = {}
    for distance in DEMO_DISTANCES:
        explainer = Explainer(
            trained.model,
            trained.X_train,
            distance=distance,
            constraints=loans.CONSTRAINTS,
            schema=loans.SCHEMA,
        )
        with _progress(distance, n_rows) as progress:
            found[distance] = explainer.explain(
                declined[chosen], target="approved", time_limit=DEMO_SECONDS, progress=progress, seed=seed
            )
    _show_overview(console, found["manhattan"], limit=5)
    for i in range(min(N_PEOPLE, n_rows)):
        _say(console, f"\nApplicant {i}, under each distance:")
        for answers in found.values():
            _say(console, f"  - {answers[i].to_text()}")
    console.print()
    console.print(_summary_table(found))


@app.command(short_help="Explain the rows of a file.")
def explain(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="A forest saved as JSON (.json, .json.gz), or a pickled model with --allow-pickle."
        ),
    ],
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="The rows to explain: .csv, .tsv or .parquet, with column names.")
    ],
    train: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Training rows: they set the scale, the domain and the covariance."),
    ] = None,
    distance: Annotated[
        str, typer.Option(metavar="NAME", help=f"What small means: {', '.join(distances.NAMED)}.")
    ] = "euclidean",
    fix: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="A column that must not change. Repeatable.")
    ] = None,
    increasing: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="A column that may only grow. Repeatable.")
    ] = None,
    decreasing: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="A column that may only shrink. Repeatable.")
    ] = None,
    range_: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            metavar="COLUMN:LOW:HIGH",
            help="Where a column must end up; leave a side empty for no limit. Repeatable.",
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="CLASS", help="The class to reach; any other than the present if not given.")
    ] = None,
    strategy: Annotated[str, typer.Option(metavar="NAME", help=f"How to search: {', '.join(STRATEGIES)}.")] = "auto",
    scale: Annotated[
        str, typer.Option(metavar="NAME", help="What a change of 1 means in each column: range, std, mad or none.")
    ] = "range",
    bounds: Annotated[
        str | None,
        typer.Option(metavar="LOW:HIGH", help="Domain of every column; the range of the training rows if not given."),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column of the files that is not the model's. Repeatable."),
    ] = None,
    time_limit: Annotated[float | None, typer.Option(metavar="SECONDS", help="Time for one row.")] = None,
    n_jobs: Annotated[int | None, typer.Option(metavar="N", help="Threads; all cores if not given.")] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Start of the random numbers, where any are used.")] = 0,
    allow_pickle: Annotated[
        bool,
        typer.Option(
            "--allow-pickle",
            help="Read MODEL from .pkl or .joblib. Unpickling runs code from the file: only for files you trust.",
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help=f"Write the answers to a file: {', '.join(OUTPUTS)}."),
    ] = None,
) -> None:
    """Explain every row of DATA: the smallest change that gets another prediction from MODEL.

    Prints a table, sentences for the first rows and a summary, or writes every row's answer to a file with -o.
    Columns that hold only whole numbers are answered in whole numbers.

    \b
      treefocus explain model.json rows.csv --train train.csv --target approved
      treefocus explain model.json rows.csv --fix age --range income:0:200000 -o answers.csv
    """
    _check_output(output)
    known_model = _read_model(model, allow_pickle)
    forest = translate(known_model).forest
    known = None if train is None else _read_rows(train, ignore, forest, None)
    table = _read_rows(data, ignore, forest, known)
    if known is None:
        typer.echo(
            f"Note: no --train, so the scale and the range that answers stay in come from {data} itself.", err=True
        )
    explainer = Explainer(
        known_model,
        table if known is None else known,
        distance=distance,
        constraints=_constraints(fix, increasing, decreasing, range_),
        scale=None if scale == "none" else scale,
        bounds=None if bounds is None else _numbers("--bounds", bounds, bounds.split(":")),
    )
    with _progress("explaining", len(table.values)) as progress:
        found = explainer.explain(
            table,
            target=None if target is None else _label(target, forest),
            strategy=strategy,
            time_limit=time_limit,
            n_jobs=n_jobs,
            progress=progress,
            seed=seed,
        )
    _report(found, output)


@app.command(short_help="Check a certificate against a model.")
def verify(
    certificate: Annotated[Path, typer.Argument(metavar="CERT", help="A certificate, as JSON.")],
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The model it speaks of, as for explain.")],
    reprove: Annotated[
        bool, typer.Option("--reprove", help="Search again for anything closer than the certified bound.")
    ] = False,
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Time for the search; as long as it takes if not given.")
    ] = None,
    allow_pickle: Annotated[
        bool, typer.Option("--allow-pickle", help="Read MODEL from a pickle: only for files you trust.")
    ] = False,
) -> None:
    """Check a certificate: does the point flip MODEL, obey the constraints, and lie where it says it does?

    The exit code is 0 if every claim holds, else 1. Certificates come from Python:
    json.dump(found[0].certificate(), file).
    """
    if not certificate.is_file():
        raise InvalidInput(f"There is no file {certificate}.")
    forest = translate(_read_model(model, allow_pickle)).forest
    checked = check_certificate(read_json(certificate), forest, reprove=reprove, time_limit=time_limit)
    typer.echo(checked.to_text())
    if not checked.holds:
        raise typer.Exit(1)


register(app)


def _report(found: Explanations, output: Path | None) -> None:
    console = _console()
    if output is not None:
        _write(found, output)
    else:
        _show_overview(console, found)
        _say(console, "\n" + found.to_text(N_PEOPLE) + "\n")
    _say(console, _summary(found) + ("" if output is None else f" Written to {output}."))


# --- what comes in


def _read_model(path: Path, allow_pickle: bool) -> Any:
    if path.suffix not in PICKLES:
        return load_forest(path)
    if not allow_pickle:
        raise InvalidInput(
            f"{path} is a pickle, and reading one runs code from the file; add --allow-pickle if you trust it."
        )
    if not path.is_file():
        raise InvalidInput(f"There is no file {path}.")
    import joblib

    try:
        return joblib.load(path)
    except Exception as error:  # whatever the file's own code raises
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InvalidInput(f"{path} cannot be unpickled: {reason}.") from error


def _read_rows(path: Path, ignore: Sequence[str] | None, forest: Forest, known: Table | None) -> Table:
    """The rows of a file, its columns in the model's order, or in that of the training rows."""
    names = [name for name in read_names(path) if name not in (ignore or ())]
    wanted = forest.feature_names or (names if known is None else known.names) or ()
    surplus = [name for name in names if name not in wanted]
    lacking = [name for name in wanted if name not in names]
    if lacking:
        raise InvalidInput(f"{path} lacks columns of the model: {', '.join(lacking)}.")
    if surplus:
        options = " ".join(f"--ignore {shlex.quote(name)}" for name in surplus)
        raise InvalidInput(f"{path} has columns that are not the model's; leave them out with {options}.")
    if names and len(names) != forest.n_features:
        raise InvalidInput(
            f"{path} has {len(names)} columns and the model takes {forest.n_features}; --ignore leaves columns out."
        )
    table = read_table(path, ignore or (), Coding.of(forest)).select(wanted)
    if known is None:
        return table
    seems_whole = (table.grain == INTEGER) & (known.grain != INTEGER)  # few rows can be whole numbers by chance
    return replace(table, grain=np.where(seems_whole, known.grain, table.grain))


def _constraints(
    fix: Sequence[str] | None,
    increasing: Sequence[str] | None,
    decreasing: Sequence[str] | None,
    ranges: Sequence[str] | None,
) -> list[Constraint]:
    kinds: tuple[tuple[Callable[..., Constraint], Sequence[str] | None], ...] = (
        (Fixed, fix), (Increasing, increasing), (Decreasing, decreasing),
    )  # fmt: skip
    return [kind(*names) for kind, names in kinds if names] + [_range(text) for text in ranges or ()]


def _range(text: str) -> Range:
    """COLUMN:LOW:HIGH; the column's name may hold colons itself."""
    column, *sides = text.rsplit(":", 2)
    return Range(column, *_numbers("--range", text, sides))


def _numbers(option: str, text: str, sides: Sequence[str]) -> tuple[float, float]:
    """Two numbers; an empty side is no limit."""
    try:
        low, high = (float(side) if side.strip() else None for side in sides)
    except ValueError:
        form = "COLUMN:LOW:HIGH" if option == "--range" else "LOW:HIGH"
        reject(option, form, repr(text))
    return -np.inf if low is None else low, np.inf if high is None else high


def _label(text: str, forest: Forest) -> Any:
    """The class that is written like this, whatever its type."""
    labels = forest.classes.tolist()
    for label in labels:
        if str(label) == text:
            return label
    for label in labels:
        if not isinstance(label, str) and _is_number(text) and float(text) == float(label):
            return label
    raise InvalidInput(f"--target must be one of {', '.join(map(str, labels))}, got {text!r}.")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# --- what goes out


def _check_output(path: Path | None) -> None:
    """Say now, not after an hour's work, that the answers cannot be written."""
    if path is None:
        return
    check_suffix(path, OUTPUTS)
    if not path.parent.is_dir():
        raise InvalidInput(f"There is no folder {path.parent}.")
    if path.suffix == ".parquet":
        import_pyarrow("Writing")


def _write(found: Explanations, path: Path) -> None:
    try:
        if path.suffix == ".json":
            found.to_json(path)
        elif path.suffix == ".html":
            found.to_html(path)
        else:
            write_columns(path, found.records())
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror or error}.") from error


def _complain(text: str) -> int:
    typer.echo(f"Error: {' '.join(text.split())}", err=True)
    return MISUSE


def _console(stderr: bool = False) -> Console:
    from rich.console import Console

    return Console(stderr=stderr, highlight=False)


def _say(console: Console, text: str) -> None:
    """Text as it is: a column may well be named [red]. Lines are broken only where somebody watches."""
    console.print(text, markup=False, emoji=False, soft_wrap=not console.is_terminal)


@contextmanager
def _progress(title: str, n_rows: int) -> Iterator[Callable[[int], None] | bool]:
    """A bar on stderr where somebody watches, else nothing."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = _console(stderr=True)
    if not console.is_terminal:
        yield False
        return
    columns = (TextColumn("{task.description:12}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=n_rows)
        yield lambda done: bar.update(task, completed=done)


def _show_overview(console: Console, found: Explanations, limit: int = 10) -> None:
    from treefocus.render.table import overview_table

    console.print(overview_table(found, limit))


def _summary(found: Explanations) -> str:
    numbers = found.summary()
    counts = ", ".join(f"{count} {name}" for name, count in numbers["status"].items())
    mean = numbers["mean_distance"]
    shown = "" if np.isnan(mean) else f" Mean {found.distance_name} distance {mean:.4g}."
    return f"{numbers['rows']:,} rows: {counts or 'none'}.{shown} {numbers['rows_per_second']:,.0f} rows per second."


def _summary_table(found: dict[str, Explanations]) -> RichTable:
    from rich.table import Table as RichTable

    table = RichTable(title="Every applicant, under each distance")
    table.add_column("distance")
    for heading in ("valid", "proven smallest", "mean distance", "features changed", "rows per second"):
        table.add_column(heading, justify="right")
    for name, answers in found.items():
        numbers = answers.summary()
        proven = numbers["status"].get("OPTIMAL", 0) / numbers["rows"]
        table.add_row(
            name,
            f"{numbers['share_found']:.1%}",
            f"{proven:.1%}",
            f"{numbers['mean_distance']:.4g}",
            f"{numbers['mean_features_changed']:.1f}",
            f"{numbers['rows_per_second']:,.0f}",
        )
    return table
