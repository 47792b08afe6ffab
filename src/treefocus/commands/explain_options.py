"""What `treefocus explain` reads and writes, an option a name; what it asks stands in `question.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from treefocus.tables.files import TABLE_FILES

OUTPUTS = (*TABLE_FILES, ".json", ".html")


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


# what is read and written
Keep = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="With -o FOLDER: a column of DATA to carry along. Repeatable."),
]
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
        help="Write a certificate of every row to a folder, for `treefocus verify`: row-1.json, ..., or named by "
        "--id; with -o FOLDER packed, a file a part and a line a row.",
    ),
]
WithProof = Annotated[
    bool, typer.Option("--proof", help="With --certificates: the proofs, too, for `treefocus check`.")
]
Letters = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER", help="Also write a letter a row into this folder: row-1.txt, ..., or named by --id."
    ),
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
