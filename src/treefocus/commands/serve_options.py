"""The options of `treefocus serve`, a name each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from treefocus.options import OPTIONS
from treefocus.problem.distances import NAMED as DISTANCES

# the model and what lies beside it
Model = Annotated[Path | None, typer.Argument(metavar="[MODEL]", help="As for explain.")]
Also = Annotated[
    list[Path] | None, typer.Option(metavar="MODEL", help="Has to give the wanted outcome, too. Repeatable.")
]
Refits = Annotated[
    list[Path] | None, typer.Option(metavar="MODEL", help=OPTIONS["refits"].told(": a model file") + " Repeatable.")
]
Data = Annotated[Path | None, typer.Option(metavar="FILE", help="Rows to pick from: .csv, .tsv, .parquet.")]
Train = Annotated[Path | None, typer.Option(metavar="FILE", help="Training rows: scale and domain.")]
SchemaFile = Annotated[Path | None, typer.Option(metavar="FILE", help="What the columns are, and words: .yaml.")]
Ignore = Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="Not the model's. Repeatable.")]
Id = Annotated[
    str | None, typer.Option("--id", metavar="COLUMN", help="A column of --data that names the rows; not the model's.")
]
AllowPickle = Annotated[
    bool, typer.Option("--allow-pickle", help="Read MODEL from a pickle: only for files you trust.")
]
Demo = Annotated[bool, typer.Option("--demo", help="Serve the invented loan applications.")]

# what is asked where a caller does not say
AskedDistance = Annotated[str, typer.Option(metavar="NAME", help=f"Asked first: {', '.join(DISTANCES)}.")]
Fix = Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="Must not change. Repeatable.")]
Increase = Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="May only grow. Repeatable.")]
Decrease = Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="May only shrink. Repeatable.")]
Ranges = Annotated[
    list[str] | None, typer.Option("--range", metavar="COLUMN:LOW:HIGH", help="Where to end up. Repeatable.")
]
InWords = Annotated[
    list[str] | None, typer.Option(metavar="TEXT", help='In words: "income <= 2 * salary". Repeatable.')
]
Target = Annotated[str | None, typer.Option(metavar="CLASS", help="Asked for first, if any.")]
AtLeast = Annotated[float | None, typer.Option(metavar="P", help="With --target: its probability, from 0 to 1.")]
Between = Annotated[str | None, typer.Option(metavar="LOW:HIGH", help="Asked for where a number is predicted.")]
Hold = Annotated[float | None, typer.Option(metavar="SHARE", help=OPTIONS["hold"].told(": 0.95, say"))]
Weights = Annotated[
    list[str] | None, typer.Option("--weight", metavar="COLUMN:NUMBER", help="What a change weighs. Repeatable.")
]
TimeLimit = Annotated[float | None, typer.Option(metavar="SECONDS", help="For one row, unless asked.")]

# the server
Title = Annotated[str | None, typer.Option(help="The page's heading.")]
Host = Annotated[str, typer.Option(help="Where to listen; elsewhere than here needs a token.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")]
Token = Annotated[
    str | None, typer.Option(envvar="TREEFOCUS_TOKEN", help="What callers must know; better in the variable.")
]
Tokens = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Several tokens, each with its name: lines of NAME TOKEN.")
]
JobsFolder = Annotated[Path | None, typer.Option(metavar="FOLDER", help="Where jobs are kept.")]
AccessLog = Annotated[bool, typer.Option("--access-log", help="Log every call: route, code, time, id.")]

# how much it takes on
MaxRows = Annotated[int, typer.Option(min=1, help="In one call.")]
MaxJobRows = Annotated[int, typer.Option(min=1, help="In one job.")]
MaxSeconds = Annotated[float, typer.Option(help="For one row, whoever asks.")]
MaxBody = Annotated[int, typer.Option(min=1, metavar="BYTES", help="Of one call.")]
MaxQuestions = Annotated[
    int | None, typer.Option(min=1, help="A day, of one token or address: rows predicted or explained.")
]
MaxVisitors = Annotated[int, typer.Option(min=1, help="That have the page open.")]
MaxJobs = Annotated[int, typer.Option(min=1, help="That wait or run.")]
