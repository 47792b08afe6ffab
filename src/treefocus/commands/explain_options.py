"""The options of `treefocus explain`, a name each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from treefocus.options import OPTIONS
from treefocus.tables.files import TABLE_FILES

OUTPUTS = (*TABLE_FILES, ".json", ".html")


def _one_of(name: str) -> str:
    return OPTIONS[name].told(f": {', '.join(OPTIONS[name].values)}")


# the model and its rows
Model = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="A model file: XGBoost .json or .ubj, LightGBM .txt, CatBoost .cbm or .json, a serialised treelite "
        "model, .skops, a forest saved as JSON, or a pickle with --allow-pickle.",
    ),
]
Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="The rows to explain: .csv, .tsv or .parquet, with column names. With -o FOLDER also .csv.gz, a folder, a "
        "glob in quotes, - for text on the standard input, and each as s3://, gs://, abfs:// or hf://.",
    ),
]
Train = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Training rows: they set the scale, the domain and the covariance."),
]
Also = Annotated[
    list[Path] | None,
    typer.Option(metavar="MODEL", help=OPTIONS["also"].told(": a model file") + " Repeatable."),
]
Refits = Annotated[
    list[Path] | None,
    typer.Option(metavar="MODEL", help=OPTIONS["refits"].told(": a model file") + " Repeatable."),
]
Hold = Annotated[float | None, typer.Option(metavar="SHARE", help=OPTIONS["hold"].told(": 0.95, say"))]
SchemaFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help=OPTIONS["schema"].told(", as `treefocus schema` writes it: .yaml")),
]

# what small means, and what may change
DistanceName = Annotated[str, typer.Option(metavar="NAME", help=_one_of("distance"))]
Fix = Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="A column that must not change. Repeatable.")]
Vary = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help=OPTIONS["vary"].told("; all if not given") + " Repeatable.")
]
Increase = Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="A column that may only grow. Repeatable.")]
Decrease = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="A column that may only shrink. Repeatable.")
]
Ranges = Annotated[
    list[str] | None,
    typer.Option(
        "--range",
        metavar="COLUMN:LOW:HIGH",
        help="Where a column must end up; leave a side empty for no limit. Repeatable.",
    ),
]
InWords = Annotated[
    list[str] | None,
    typer.Option(metavar="TEXT", help='A constraint in words: "age fixed", "income <= 2 * salary". Repeatable.'),
]

# what is wanted
Target = Annotated[
    str | None, typer.Option(metavar="CLASS", help=OPTIONS["target"].told("; any other than the present if not given"))
]
AtLeast = Annotated[
    float | None, typer.Option(metavar="P", help="With --target: the probability that the class has to reach.")
]
Between = Annotated[
    str | None,
    typer.Option(metavar="LOW:HIGH", help="The predicted number to reach, of a regression; a side may be empty."),
]
Ways = Annotated[
    int, typer.Option(min=1, metavar="N", help=OPTIONS["n"].told(", each without a column that another needs"))
]
Weights = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN:NUMBER",
        help=OPTIONS["weights"].told(" (under euclidean, its square); 1 if not given") + " Repeatable.",
    ),
]

# how to search
StrategyName = Annotated[str, typer.Option(metavar="NAME", help=_one_of("strategy"))]
Scale = Annotated[
    str, typer.Option(metavar="NAME", help=OPTIONS["scale"].told(f": {', '.join(OPTIONS['scale'].values)} or none"))
]
Bounds = Annotated[
    str | None,
    typer.Option(
        metavar="LOW:HIGH",
        help=OPTIONS["bounds"].told(", for every column; the range of the training rows if not given"),
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="A column of the files that is not the model's. Repeatable."),
]
Id = Annotated[
    str | None, typer.Option("--id", metavar="COLUMN", help="A column of DATA that names the rows; not the model's.")
]
TimeLimit = Annotated[float | None, typer.Option(metavar="SECONDS", help=OPTIONS["time_limit"].told())]
Threads = Annotated[int | None, typer.Option(metavar="N", help=OPTIONS["n_jobs"].told("; all cores if not given"))]
Seed = Annotated[int, typer.Option(metavar="N", help=OPTIONS["seed"].told())]

# what is read and written
AllowPickle = Annotated[
    bool,
    typer.Option(
        "--allow-pickle",
        help="Read MODEL from .pkl or .joblib. Unpickling runs code from the file, whatever its author put there: "
        "only for files you trust. The other formats hold numbers and run nothing.",
    ),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="With -o FOLDER: a column of DATA to carry along. Repeatable."),
]
Encoding = Annotated[str, typer.Option(metavar="NAME", help="Of text files: utf-8, latin-1, cp1252, ...")]
Delimiter = Annotated[
    str | None, typer.Option(metavar="CHARACTER", help="Between cells; a comma in .csv, a tab in .tsv if not given.")
]
Decimal = Annotated[str, typer.Option(metavar="CHARACTER", help="Before the fraction of a number: . or ,")]
MaxInvalid = Annotated[
    str,
    typer.Option(
        metavar="SHARE",
        help="The share of rows, or their number, that may be INVALID; with more the exit code is 3, and the first "
        "reasons are told.",
    ),
]
PartRows = Annotated[int | None, typer.Option(min=1, metavar="N", help="With -o FOLDER: rows a file of answers.")]
ShardText = Annotated[
    str,
    typer.Option(
        "--shard",
        metavar="K/N",
        help="With -o FOLDER: answer the K-th of N shares of DATA, such as 3/16; `treefocus merge` joins them.",
    ),
]
AllowUpgrade = Annotated[
    bool,
    typer.Option("--allow-upgrade", help="With -o FOLDER: go on with a folder that another version has begun."),
]
LogFormat = Annotated[
    str,
    typer.Option(metavar="NAME", help="With -o FOLDER and no terminal: text or json, a line every 30 seconds."),
]
MetricsFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="With -o FOLDER: a file of metrics for Prometheus' textfile collector."),
]
Certificates = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Write a certificate of every row to a folder, for `treefocus verify`; with "
        "-o FOLDER packed, a file a part and a line a row.",
    ),
]
WithProof = Annotated[
    bool, typer.Option("--proof", help="With --certificates: the proofs, too, for `treefocus check`.")
]
Letters = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="Also write a letter a row into this folder: row-1.txt, ...")
]
LetterTemplate = Annotated[
    str,
    typer.Option("--template", metavar="NAME", help="Of the letters: plain, eu, us, or a text file with ${fields}."),
]
Language = Annotated[str, typer.Option(metavar="CODE", help="Of sentences and letters: en, de, fr.")]
Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="PATH",
        help=f"Write the answers to a file ({', '.join(OUTPUTS)}), or in parts to a folder, for DATA of any size.",
    ),
]
