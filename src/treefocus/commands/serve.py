"""`treefocus serve`: a web page and a REST API over a model in a file. What is heavy is imported when it runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from treefocus.adapters import load_model, translate
from treefocus.commands.reading import constraints_of, label_of, read_rows
from treefocus.commands.schema import read_schema
from treefocus.constraints import Constraint
from treefocus.distances import NAMED as DISTANCES
from treefocus.errors import InvalidInput, TreefocusError

if TYPE_CHECKING:
    from treefocus.app.limits import Limits
    from treefocus.app.service import Question, Service


def serve(
    model: Annotated[Path | None, typer.Argument(metavar="[MODEL]", help="As for explain.")] = None,
    data: Annotated[Path | None, typer.Option(metavar="FILE", help="Rows to pick from: .csv, .tsv, .parquet.")] = None,
    train: Annotated[Path | None, typer.Option(metavar="FILE", help="Training rows: scale and domain.")] = None,
    schema: Annotated[Path | None, typer.Option(metavar="FILE", help="What the columns are, and words: .yaml.")] = None,
    demo: Annotated[bool, typer.Option("--demo", help="Serve the invented loan applications.")] = False,
    distance: Annotated[str, typer.Option(metavar="NAME", help=f"Asked first: {', '.join(DISTANCES)}.")] = "manhattan",
    fix: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="Must not change. Repeatable.")] = None,
    increasing: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="May only grow. Repeatable.")] = None,
    decreasing: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="May only shrink. Repeatable.")] = None,
    range_: Annotated[
        list[str] | None, typer.Option("--range", metavar="COLUMN:LOW:HIGH", help="Where to end up. Repeatable.")
    ] = None,
    constraint: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help='In words: "income <= 2 * salary". Repeatable.')
    ] = None,
    target: Annotated[str | None, typer.Option(metavar="CLASS", help="Asked for first, if any.")] = None,
    ignore: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="Not the model's. Repeatable.")] = None,
    time_limit: Annotated[float | None, typer.Option(metavar="SECONDS", help="For one row, unless asked.")] = None,
    title: Annotated[str | None, typer.Option(help="The page's heading.")] = None,
    host: Annotated[str, typer.Option(help="Where to listen; elsewhere than here needs a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8080,
    token: Annotated[
        str | None, typer.Option(envvar="TREEFOCUS_TOKEN", help="What callers must know; better in the variable.")
    ] = None,
    jobs: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Where jobs are kept.")] = None,
    max_rows: Annotated[int, typer.Option(min=1, help="In one call.")] = 100,
    max_job_rows: Annotated[int, typer.Option(min=1, help="In one job.")] = 100_000,
    max_seconds: Annotated[float, typer.Option(help="For one row, whoever asks.")] = 10.0,
    max_body: Annotated[int, typer.Option(min=1, metavar="BYTES", help="Of one call.")] = 16_000_000,
    max_jobs: Annotated[int, typer.Option(min=1, help="That wait or run.")] = 4,
    allow_pickle: Annotated[
        bool, typer.Option("--allow-pickle", help="Read MODEL from a pickle: only for files you trust.")
    ] = False,
    access_log: Annotated[bool, typer.Option("--access-log", help="Log every call: path and code.")] = False,
) -> None:
    """Start a local server with a web page for people and a REST API for programs, over the same model.

    \b
      treefocus serve --demo
      treefocus serve model.json --data rows.csv --train train.csv --schema schema.yaml
    """
    _check_installed()
    from treefocus.app.demo import demo_service
    from treefocus.app.limits import Limits
    from treefocus.app.running import default_jobs_folder, run
    from treefocus.app.security import check_binding

    check_binding(host, token)
    limits = Limits(
        rows_per_call=max_rows, rows_per_job=max_job_rows, seconds_per_row=max_seconds, body_bytes=max_body,
        jobs_open=max_jobs,
    )  # fmt: skip
    limits.check_seconds(time_limit)
    if demo:
        if model is not None or data is not None:
            raise InvalidInput("--demo brings its own model and rows; leave MODEL and --data out.")
        service = demo_service(limits, distance, title, time_limit)
    elif model is None or data is None:
        raise InvalidInput("serve needs MODEL and --data, or --demo.")
    else:
        known = load_model(model, allow_pickle=allow_pickle)
        question = _question(
            known, distance, constraints_of(fix, increasing, decreasing, range_, constraint), target, time_limit
        )
        service = _service(known, data, train, schema, ignore, limits, question, title or model.name)
    run(service, jobs or default_jobs_folder(service.fingerprint), host, port, token, access_log)


def _question(
    model: Any, distance: str, constraints: Sequence[Constraint], target: str | None, time_limit: float | None
) -> Question:
    from treefocus.app.service import Question

    wanted = None if target is None else label_of(target, translate(model).forest)
    return Question(distance=distance, constraints=tuple(constraints), target=wanted, time_limit=time_limit or 1.0)


def _service(
    model: Any,
    data: Path,
    train: Path | None,
    schema: Path | None,
    ignore: Sequence[str] | None,
    limits: Limits,
    question: Question,
    title: str,
) -> Service:
    from treefocus.app.service import Service

    forest = translate(model).forest
    known = None if train is None else read_rows(train, ignore, forest, None)
    rows = read_rows(data, ignore, forest, known)
    if known is None:
        typer.echo(
            f"Note: no --train, so the scale and the range that answers stay in come from {data} itself.", err=True
        )
    examples = rows if known is None else known
    return Service(model, examples, rows, schema=read_schema(schema), asked=question, limits=limits, title=title)


def _check_installed() -> None:
    try:
        import fastapi  # noqa: F401
        import nicegui  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise TreefocusError("The server needs the extra app: pip install 'treefocus[app]'.") from error
