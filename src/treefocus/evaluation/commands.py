"""The commands `treefocus reproduce` and `treefocus tune`; their work is imported when one of them runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treefocus.errors import InvalidInput, reject
from treefocus.problem.question import Question

if TYPE_CHECKING:
    from treefocus.problem.problem import Problem


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    app.command(short_help="Run the paper's experiments again.")(reproduce)
    app.command(short_help="Find FOCUS's parameters for your model.")(tune)


def reproduce(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Where results and report go.")],
    data_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The authors' data/ and models/; without it data are downloaded."),
    ] = None,
    settings: Annotated[
        str | None,
        typer.Option(metavar="IDS", help="Only these, as wine-ab-euclidean,heloc-dt; all 42 if not given."),
    ] = None,
    iterations: Annotated[int, typer.Option(min=1, metavar="N", help="FOCUS's iterations.")] = 1000,
    full: Annotated[bool, typer.Option("--full", help="Every row of everything: hours.")] = False,
    figures: Annotated[bool, typer.Option(help="Draw the figures (needs matplotlib).")] = True,
    n_jobs: Annotated[int | None, typer.Option(metavar="N", help="Threads; all cores if not given.")] = None,
) -> None:
    """Run the paper's 42 settings: published, faithful, as written, the baselines and the proven optimum.

    Writes DIR/results.json after every setting, then report.md and report.html. Started again with the same options,
    it goes on where it stopped.

    \b
      treefocus reproduce --data-dir paper -o reproduction
      treefocus reproduce --data-dir paper --settings wine-dt,compas-ab-cosine -o reproduction
    """
    from treefocus.evaluation import reproduce as work

    chosen = work.chosen_settings(settings)
    options = work.Options(iterations=iterations, full=full)
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{output} cannot be used as a folder: {error.strerror or error}.") from error
    if full:
        hours = work.expected_seconds(chosen, options, n_jobs) / 3600
        typer.echo(f"Every row of {len(chosen)} settings takes about {hours:.1f} hours on this many cores.", err=True)
    with _bar(len(chosen)) as say:
        results = work.reproduce(chosen, output, data_dir, options, n_jobs, say)
    _report(results, output, _figures(output) if figures else [])
    typer.echo(f"{len(results['settings'])} settings in {output / 'results.json'}, report in {output / 'report.html'}.")


def _figures(output: Path) -> list[Path]:
    from treefocus.evaluation.figures import draw_all

    try:
        return [path.relative_to(output) for path in draw_all(output / "figures") if path.suffix == ".png"]
    except ImportError as error:
        typer.echo(f"Note: no figures. {error}", err=True)
        return []


def _report(results: dict[str, Any], output: Path, figures: list[Path]) -> None:
    from treefocus.evaluation import report

    (output / "report.md").write_text(report.to_markdown(results, figures), encoding="utf-8")
    (output / "report.html").write_text(report.to_html(results, figures), encoding="utf-8")


def tune(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file, as explain takes it.")],
    data: Annotated[Path, typer.Argument(metavar="DATA", help="Rows to tune on: .csv, .tsv or .parquet.")],
    train: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Training rows, for scale, domain and covariance.")
    ] = None,
    distance: Annotated[str, typer.Option(metavar="NAME", help="What small means.")] = "euclidean",
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="A column that is not the model's. Repeatable.")
    ] = None,
    trials: Annotated[int, typer.Option(min=1, metavar="N", help="Parameters to try, earlier ones included.")] = 50,
    rows: Annotated[int, typer.Option(min=1, metavar="N", help="Rows to try them on; the best then see all.")] = 200,
    iterations: Annotated[int, typer.Option(min=1, metavar="N", help="FOCUS's iterations.")] = 1000,
    journal: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Note every trial here, and go on where the file ends.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the result as JSON.")
    ] = None,
    n_jobs: Annotated[int | None, typer.Option(metavar="N", help="Threads; all cores if not given.")] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Start of the random numbers.")] = 0,
    allow_pickle: Annotated[
        bool, typer.Option("--allow-pickle", help="Read pickle and joblib models; this runs code from the file.")
    ] = False,
) -> None:
    """Search sigma, tau, beta and alpha jointly: an answer for every row first, then the smallest mean distance.

    \b
      treefocus tune model.json rows.csv --train train.csv --distance manhattan --journal trials.log
    """
    from treefocus.evaluation.tuning import tune as work
    from treefocus.search.base import Run
    from treefocus.search.focus import Focus

    problem = _problem(model, data, train, distance, ignore or [], allow_pickle)
    base = Focus(iterations=iterations, retry=False, polish=False)
    with _bar(trials) as say:
        try:
            tuned = work(
                problem, trials=trials, rows=rows, base=base, journal=journal, run=Run(seed=seed, n_jobs=n_jobs),
                progress=lambda done: say("tuning", done, trials),
            )  # fmt: skip
        except ImportError as error:
            raise InvalidInput(str(error)) from error
    best = tuned.best
    values = ", ".join(f"{name}={value:.4g}" for name, value in best.parameters.items())
    mean = "none" if best.mean is None else f"{best.mean:.4g}"
    typer.echo(f"Focus({values}): {best.found:,} of {best.rows:,} rows, mean {distance} distance {mean}.")
    if output is not None:
        output.write_text(json.dumps(tuned.to_dict(), indent=1) + "\n", encoding="utf-8")


def _problem(
    model: Path, data: Path, train: Path | None, distance: str, ignore: list[str], allow_pickle: bool
) -> Problem:
    import numpy as np

    from treefocus.adapters import load_model, translate
    from treefocus.problem.distances import as_distance
    from treefocus.problem.space import Space
    from treefocus.schema.schema import Schema
    from treefocus.tables.files import read_table

    forest = translate(load_model(model, allow_pickle=allow_pickle)).forest
    asked = read_table(data, ignore)
    known = asked if train is None else read_table(train, ignore)
    for path, table in ((data, asked), (train or data, known)):
        if table.values.shape[1] != forest.n_features:
            reject(str(path), f"{forest.n_features} columns wide (--ignore leaves some out)", table.values.shape[1])
    examples = known.values[~np.isnan(known.values).any(axis=1)]
    space = Space.of(examples, "range", None, forest.n_features)
    return Question(
        forest,
        asked.values,
        space=space,
        distance=as_distance(distance).fitted(forest.n_features, space.to_z(examples)),
        constraints=(),
        schema=Schema.of_names(asked.names or [f"feature {j}" for j in range(forest.n_features)]),
        grain=known.grain,
        target=None,
        examples=examples,
    ).problem()


@contextmanager
def _bar(total: int) -> Iterator[Callable[[str, int, int], None]]:
    """A bar on stderr where somebody watches, else nothing."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield lambda title, done, of: None
        return
    columns = (TextColumn("{task.description:26}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda title, done, of: bar.update(task, description=title, completed=done)
