"""`treefocus serve`: a web page and a REST API over a model in a file. What is heavy is imported when it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from treefocus.adapters import load_model, translate
from treefocus.app.limits import Limits
from treefocus.app.question import ExplainOptions
from treefocus.app.starting import import_page_framework, in_one_go
from treefocus.commands import serve_options as options
from treefocus.commands.reading import constraints_of, labels_of, read_rows, target_of, tokens_of, weights_of
from treefocus.commands.schema import read_schema
from treefocus.constraints.kinds import Constraint
from treefocus.errors import InvalidInput, TreefocusError
from treefocus.options import check

if TYPE_CHECKING:
    from treefocus.app.service import Service


def serve(
    model: options.Model = None,
    data: options.Data = None,
    also: options.Also = None,
    refits: options.Refits = None,
    train: options.Train = None,
    schema: options.SchemaFile = None,
    demo: options.Demo = False,
    distance: options.AskedDistance = ExplainOptions.distance,
    fix: options.Fix = None,
    increasing: options.Increase = None,
    decreasing: options.Decrease = None,
    range_: options.Ranges = None,
    constraint: options.InWords = None,
    target: options.Target = None,
    at_least: options.AtLeast = None,
    between: options.Between = None,
    hold: options.Hold = None,
    weight: options.Weights = None,
    ignore: options.Ignore = None,
    id_column: options.Id = None,
    time_limit: options.TimeLimit = None,
    title: options.Title = None,
    host: options.Host = "127.0.0.1",
    port: options.Port = 8080,
    token: options.Token = None,
    tokens: options.Tokens = None,
    jobs: options.JobsFolder = None,
    max_rows: options.MaxRows = Limits.rows_per_call,
    max_job_rows: options.MaxJobRows = Limits.rows_per_job,
    max_seconds: options.MaxSeconds = Limits.seconds_per_row,
    max_body: options.MaxBody = Limits.body_bytes,
    max_jobs: options.MaxJobs = Limits.jobs_open,
    max_questions: options.MaxQuestions = Limits.questions_per_day,
    max_visitors: options.MaxVisitors = Limits.visitors,
    allow_pickle: options.AllowPickle = False,
    access_log: options.AccessLog = False,
) -> None:
    """Start a local server with a web page for people and a REST API for programs, over the same model.

    \b
      treefocus serve --demo
      treefocus serve model.json --data rows.csv --train train.csv --schema schema.yaml
    """
    with in_one_go():
        _check_installed()
        from treefocus.app.running import default_jobs_folder, run
    from treefocus.app.security import check_binding

    known = tokens_of(token, tokens)
    check_binding(host, known.values())
    limits = Limits(
        rows_per_call=max_rows, rows_per_job=max_job_rows, seconds_per_row=max_seconds, body_bytes=max_body,
        jobs_open=max_jobs, questions_per_day=max_questions, visitors=max_visitors,
    )  # fmt: skip
    check(time_limit=time_limit, hold=hold)
    limits.check_seconds(time_limit)
    constraints = constraints_of(fix, increasing, decreasing, range_, constraint)
    asked = _Asked(distance, (target, at_least, between), time_limit, constraints, weights_of(weight), hold)
    others = {"also": tuple(also or ()), "refits": tuple(refits or ())}
    files = _Files(model, data, train, schema, tuple(ignore or ()), allow_pickle, id_column, **others)
    service = _demo(files, asked, limits, title) if demo else _served(files, asked, limits, title)
    run(service, jobs or default_jobs_folder(service.fingerprint), host, port, known, access_log=access_log)


@dataclass(frozen=True)
class _Files:
    """The files that the command line names, and which of their columns are not the model's."""

    model: Path | None
    data: Path | None
    train: Path | None
    schema: Path | None
    ignore: tuple[str, ...]
    allow_pickle: bool
    id: str | None = None  # the column that names the rows
    also: tuple[Path, ...] = ()
    refits: tuple[Path, ...] = ()

    def models(self, paths: Sequence[Path]) -> list[Any]:
        """Further models."""
        return [load_model(path, allow_pickle=self.allow_pickle) for path in paths]


@dataclass(frozen=True)
class _Asked:
    """What is asked where a caller does not say, as the command line has it."""

    distance: str
    target: tuple[str | None, float | None, str | None]  # --target, --at-least, --between
    time_limit: float | None
    constraints: Sequence[Constraint]
    weights: dict[str, float] | None
    hold: float | None


def _demo(files: _Files, asked: _Asked, limits: Limits, title: str | None) -> Service:
    from treefocus.app.demo import demo_service

    if files.model is not None or files.data is not None or files.id is not None or files.also or files.refits:
        raise InvalidInput("--demo brings its own model and rows; leave MODEL, --data, --id, --also and --refits out.")
    return demo_service(limits, asked.distance, title, asked.time_limit, asked.hold)


def _served(files: _Files, asked: _Asked, limits: Limits, title: str | None) -> Service:
    """The service over the files."""
    from treefocus.app.service import Service

    if files.model is None or files.data is None:
        raise InvalidInput("serve needs MODEL and --data, or --demo.")
    model: Any = load_model(files.model, allow_pickle=files.allow_pickle)
    forest = translate(model).forest
    question = ExplainOptions(
        distance=asked.distance, constraints=tuple(asked.constraints), time_limit=asked.time_limit,
        target=None if asked.target == (None, None, None) else target_of(*asked.target, forest), weights=asked.weights,
        hold=asked.hold,
    )  # fmt: skip
    ignore = (*files.ignore, *(() if files.id is None else (files.id,)))
    train = None if files.train is None else read_rows(files.train, ignore, forest, None)
    rows = read_rows(files.data, ignore, forest, train, say=partial(typer.echo, err=True))
    if train is None:
        typer.echo(
            f"Note: no --train, so the scale and the range that answers stay in come from {files.data} itself.",
            err=True,
        )
    return Service(
        model, rows if train is None else train, rows, schema=read_schema(files.schema), asked=question, limits=limits,
        title=title or files.model.name, ids=labels_of(files.data, files.id),
        also=files.models(files.also), refits=files.models(files.refits),
    )  # fmt: skip


def _check_installed() -> None:
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401

        import_page_framework()
    except ImportError as error:
        raise TreefocusError("The server needs the extra app: pip install 'treefocus[app]'.") from error
