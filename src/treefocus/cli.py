"""The command line: `treefocus demo` to see it work, `treefocus explain` for your own model and rows.

Misuse is one line on stderr and exit code 2; finding no answer for a row is a status in the output, not a failure.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import numpy as np
import typer
from typer.core import TyperGroup

from treefocus import __version__
from treefocus.adapters import load_model, translate
from treefocus.check import judge
from treefocus.commands.audit import audit
from treefocus.commands.explain import N_PEOPLE, explain
from treefocus.commands.schema import schema
from treefocus.commands.serve import serve
from treefocus.commands.showing import console_of, progress_bar, say, show_overview
from treefocus.commands.streaming import INTERRUPTED
from treefocus.errors import InvalidInput, StorageFailed, TreefocusError
from treefocus.evaluation.commands import register
from treefocus.explainer import Explainer
from treefocus.explanation.batch import Explanations
from treefocus.explanation.verifying import companions_of
from treefocus.explanation.verifying import verify as check_certificate
from treefocus.model.forest import read_json
from treefocus.problem.coded import coded

if TYPE_CHECKING:
    from rich.table import Table as RichTable

DEMO_DISTANCES = ("euclidean", "manhattan", "cosine", "mahalanobis")
DEMO_SECONDS = 0.05  # a row
FAILED, MISUSE, NOT_CHECKED, STORAGE = 1, 2, 3, 4  # exit codes


class _Commands(TyperGroup):
    """The commands, with every error as one line on stderr."""

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        """Run a command and leave with its exit code."""
        extra["standalone_mode"] = False
        try:
            code = super().main(*args, **extra)
        except (typer.Abort, KeyboardInterrupt):
            code = INTERRUPTED
        except StorageFailed as error:
            _complain(str(error))
            code = STORAGE
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

    console = console_of()
    trained = loans.train()
    declined = trained.X_test[trained.model.predict(trained.X_test) == "declined"]
    n_rows = min(rows, len(declined))
    chosen = np.sort(np.random.default_rng(seed).permutation(len(declined))[:n_rows])
    say(
        console,
        f"A random forest of {len(trained.model.estimators_)} trees, trained on {len(trained.X_train):,} invented "
        f"loan applications, declined {len(declined)} of {len(trained.X_test):,} others. What would {n_rows} of "
        "them have to change to be approved, and to stay so when the forest is trained again?\n",
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
        with progress_bar(distance, n_rows) as progress:
            found[distance] = explainer.explain(
                declined[chosen], target="approved", time_limit=DEMO_SECONDS, progress=progress, seed=seed,
                hold=explainer.hold_for_people("approved"),
            )  # fmt: skip
    show_overview(console, found["manhattan"], limit=5)
    for i in range(min(N_PEOPLE, n_rows)):
        say(console, f"\nApplicant {i}, under each distance:")
        for answers in found.values():
            say(console, f"  - {answers[i].rounded().to_text(proof=True)}")
    console.print()
    console.print(_summary_table(found))


@app.command(short_help="Check a certificate against a model.")
def verify(
    certificate: Annotated[
        Path, typer.Argument(metavar="CERT", help="A certificate, as JSON, or a folder of answers in parts.")
    ],
    model: Annotated[
        Path | None,
        typer.Argument(metavar="[MODEL]", help="The model it speaks of, as for explain; a folder can do without."),
    ] = None,
    sample: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="Of a folder: so many answers are checked on MODEL, and their proofs."),
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Which answers are drawn.")] = 0,
    also: Annotated[
        list[Path] | None, typer.Option(metavar="MODEL", help="Another model that it speaks of. Repeatable.")
    ] = None,
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

    That nothing is closer, or that there is no answer at all, can only be proven again, with --reprove. The exit
    code is 0 if every claim was checked and holds, 1 if one failed, and 3 if none failed but not all were checked.
    Certificates come from Python: json.dump(found[0].certificate(), file), and from explain --certificates.

    Of a folder of answers in parts, every part is held to the manifest: bytes, rows, statuses. With --sample N so many
    answers are asked of MODEL again, and where certificates were written their proofs are followed.
    """
    if not certificate.exists():
        raise InvalidInput(f"There is no file {certificate}.")
    if model is None and (sample or not certificate.is_dir()):
        what = "--sample" if sample else certificate
        raise InvalidInput(f"{what} needs the model: treefocus verify {certificate} MODEL.")
    forest = None if model is None else translate(load_model(model, allow_pickle=allow_pickle)).forest
    if certificate.is_dir() or forest is None:
        from treefocus.scale.verification import verify_folder

        checked = verify_folder(certificate, forest, sample=sample, seed=seed)
    else:
        others = [translate(load_model(path, allow_pickle=allow_pickle)).forest for path in also or ()]
        checked = check_certificate(read_json(certificate), forest, also=others, reprove=reprove, time_limit=time_limit)
    typer.echo(checked.to_text())
    if not checked.holds:
        raise typer.Exit(FAILED if checked.failed else NOT_CHECKED)


@app.command(short_help="Join the folders of all shards.")
def merge(
    shards: Annotated[list[Path], typer.Argument(metavar="SHARD...", help="The folders that explain --shard wrote.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where the whole goes: a new folder.")
    ],
) -> None:
    """Put the parts of all shards into one folder, the one that a single machine would have written.

    Every part is checked by its hash. Shards that are not complete, that answer another question, or that are not all
    there are refused.
    """
    from treefocus.scale.merge import merge as join

    manifest = join(shards, output)
    counts = ", ".join(f"{count:,} {name}" for name, count in manifest.counts().items())
    total = sum(manifest.counts().values())
    say(console_of(), f"{total:,} rows: {counts or 'none'}. {len(shards)} shards joined in {output}.")


@app.command(name="check", short_help="Check the proof in a certificate.")
def check_proof(
    certificate: Annotated[Path, typer.Argument(metavar="CERT", help="A certificate with a proof, as JSON.")],
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The model it speaks of, as for explain.")],
    also: Annotated[
        list[Path] | None,
        typer.Option(metavar="MODEL", help="Another model that it speaks of. Repeatable, in any order."),
    ] = None,
    allow_pickle: Annotated[
        bool, typer.Option("--allow-pickle", help="Read MODEL from a pickle: only for files you trust.")
    ] = False,
) -> None:
    """Check a certificate and the proof in it, by a program that shares no code with the search.

    The program is one file, treefocus/check.py, for anybody to read and to run alone: python check.py CERT MODEL, with
    MODEL a forest saved as JSON (Forest.save), and behind it the other models of a joint question as the certificate
    names them. This command brings other model files into that form first, and into that order.

    The exit code is 0 if the certificate is accepted, 1 if it is rejected, and 3 if it is not proven.
    """
    if not certificate.is_file():
        raise InvalidInput(f"There is no file {certificate}.")
    forest = translate(load_model(model, allow_pickle=allow_pickle)).forest
    files = [translate(load_model(path, allow_pickle=allow_pickle)).forest for path in also or ()]
    record = read_json(certificate)
    forest = coded(record, forest)
    others = companions_of(record, files)
    if others is None or len(others) != len(files):
        typer.echo("NOT PROVEN: the certificate is about other models than these; --also names those besides MODEL.")
        raise typer.Exit(NOT_CHECKED)
    code, sentences = judge(record, forest.to_record(), *(own.forest.to_record() for own in others))
    typer.echo("\n".join(sentences))
    if code:
        raise typer.Exit(code)


app.command(short_help="Explain the rows of a file.")(explain)
app.command(short_help="Audit what a model demands of people, by group.")(audit)
app.command(short_help="Guess what a file's columns are.")(schema)
app.command(short_help="A web page and a REST API for your model.")(serve)
register(app)


def _complain(text: str) -> int:
    typer.echo(f"Error: {' '.join(text.split())}", err=True)
    return MISUSE


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
