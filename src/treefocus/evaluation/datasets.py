"""The paper's four data sets: Wine Quality, HELOC, COMPAS and Shopping, and the 12 models on them.

From a folder laid out as the authors' repository (`data/cf_<name>_data_<train|test>.tsv`, `models/*.json.gz`), or from
the public originals, prepared the paper's way: a label of -1 or 1, numeric columns only, 70 % to train on, each part
scaled to [0, 1] on its own. Originals are kept in the user's cache folder. Their checksum is noted at the first
download and must stay the same ever after; what they must look like (columns, number of rows) is known from the paper.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus.adapters import load_forest, translate
from treefocus.errors import InvalidInput, reject
from treefocus.evaluation.paper import SIZES, ModelKind
from treefocus.model.forest import Floats, Forest

CHECKSUMS = "checksums.json"
_FILE_NAMES = {"wine": "wine", "heloc": "heloc", "compas": "compas_num", "shopping": "shop2"}  # the authors'
_MODEL_NAMES = {"dt": "dt", "rf": "rf", "ab": "ada"}
_TIMEOUT = 60  # seconds without a byte
_TRAIN_SHARE = 0.7

Columns = dict[str, list[str]]


@dataclass(frozen=True, eq=False)
class Split:
    """A data set in two parts."""

    name: str
    feature_names: tuple[str, ...]
    X_train: Floats
    y_train: NDArray[np.int64]  # -1 or 1
    X_test: Floats
    y_test: NDArray[np.int64]


@dataclass(frozen=True)
class DataSource:
    """Where an original comes from, what it must look like, and how features and label come out of it."""

    file: str
    url: str | None  # None where its owner asks for a registration
    n_rows: int  # after preparation
    features: dict[str, str]  # the original's column -> the paper's name
    label: Callable[[Columns], NDArray[np.bool_]]  # which rows are of class 1
    keep: Callable[[Columns], NDArray[np.bool_]] | None = None
    clean: Callable[[Floats], Floats] | None = None
    delimiter: str = ","
    registration: str = ""


def _numbers(column: list[str]) -> Floats:
    return np.array([float(value) if value.strip() else np.nan for value in column])


def _kept_compas(columns: Columns) -> NDArray[np.bool_]:
    """ProPublica's own filter: screened within 30 days of the arrest, a known outcome, no ordinary traffic offence."""
    days = _numbers(columns["days_b_screening_arrest"])
    known = np.array(columns["is_recid"]) != "-1"
    graded = (np.array(columns["c_charge_degree"]) != "O") & (np.array(columns["score_text"]) != "N/A")
    return np.asarray((days >= -30) & (days <= 30) & known & graded)


def _filled_heloc(values: Floats) -> Floats:
    """HELOC codes what it does not know as -7, -8 and -9. The paper's files hold the column's mean there.

    Read off those files, not documented: one value a column stands in all rows that are coded throughout, and it is
    the rounded mean of the column with the codes in it.
    """
    return np.where(values < 0, np.rint(np.maximum(values.mean(axis=0), 0.0)), values)


_HELOC = (
    "ExternalRiskEstimate", "MSinceOldestTradeOpen", "MSinceMostRecentTradeOpen", "AverageMInFile",
    "NumSatisfactoryTrades", "NumTrades60Ever2DerogPubRec", "NumTrades90Ever2DerogPubRec", "PercentTradesNeverDelq",
    "MSinceMostRecentDelq", "MaxDelq2PublicRecLast12M", "MaxDelqEver", "NumTotalTrades", "NumTradesOpeninLast12M",
    "PercentInstallTrades", "MSinceMostRecentInqexcl7days", "NumInqLast6M", "NumInqLast6Mexcl7days",
    "NetFractionRevolvingBurden", "NetFractionInstallBurden", "NumRevolvingTradesWBalance", "NumInstallTradesWBalance",
    "NumBank2NatlTradesWHighUtilization", "PercentTradesWBalance",
)  # fmt: skip
_COMPAS = ("age", "juv_fel_count", "juv_misd_count", "days_b_screening_arrest", "juv_other_count", "priors_count")
_SHOPPING = (
    "Administrative", "Administrative_Duration", "Informational", "Informational_Duration", "ProductRelated",
    "ProductRelated_Duration", "BounceRates", "ExitRates", "PageValues",
)  # fmt: skip

SOURCES: dict[str, DataSource] = {
    "wine": DataSource(
        "winequality-white.csv",
        "https://archive.ics.uci.edu/ml/machine-learning-databases/wine-quality/winequality-white.csv",
        4898,
        {
            "fixed acidity": "fixed_acidity", "volatile acidity": "volatile_acidity", "citric acid": "citric_acid",
            "residual sugar": "residual_sugar", "chlorides": "chlorides", "free sulfur dioxide": "free_sf_diox",
            "total sulfur dioxide": "tot_sf_diox", "density": "density", "pH": "pH", "sulphates": "sulphates",
            "alcohol": "alcohol",
        },
        lambda columns: np.asarray(_numbers(columns["quality"]) >= 7),
        delimiter=";",
    ),
    "heloc": DataSource(
        "heloc_dataset_v1.csv",
        None,
        10459,
        {name: name for name in _HELOC},
        lambda columns: np.array(columns["RiskPerformance"]) == "Good",
        clean=_filled_heloc,
        registration="https://community.fico.com/s/explainable-machine-learning-challenge",
    ),
    "compas": DataSource(
        "compas-scores-two-years.csv",
        "https://raw.githubusercontent.com/propublica/compas-analysis/master/compas-scores-two-years.csv",
        6172,
        {name: name for name in _COMPAS},
        lambda columns: np.array(columns["two_year_recid"]) == "1",
        keep=_kept_compas,
    ),
    "shopping": DataSource(
        "online_shoppers_intention.csv",
        "https://archive.ics.uci.edu/ml/machine-learning-databases/00468/online_shoppers_intention.csv",
        12330,
        {name: name for name in _SHOPPING},
        lambda columns: np.array([value.strip().upper() == "TRUE" for value in columns["Revenue"]]),
    ),
}  # fmt: skip


def cache_dir() -> Path:
    """The user's cache folder: $TREEFOCUS_CACHE, else the platform's own."""
    own = os.environ.get("TREEFOCUS_CACHE")
    if own:
        return Path(own)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "treefocus"


def load(name: str, data_dir: Path | None = None, cache: Path | None = None, seed: int = 0) -> Split:
    """A data set: the paper's own split or the original in `data_dir`, else the original from its public source."""
    if name not in SOURCES:
        reject("dataset", f"one of {', '.join(SOURCES)}", repr(name))
    source = SOURCES[name]
    if data_dir is None:
        return prepare(name, fetch(source, cache or cache_dir()), seed)
    if not data_dir.is_dir():
        raise InvalidInput(f"There is no folder {data_dir}.")
    parts = [data_dir / "data" / f"cf_{_FILE_NAMES[name]}_data_{part}.tsv" for part in ("train", "test")]
    if all(part.is_file() for part in parts):
        return _read_split(name, *parts)
    if (data_dir / source.file).is_file():
        return prepare(name, data_dir / source.file, seed)
    raise InvalidInput(f"{data_dir} holds neither {' and '.join(p.name for p in parts)} in data/ nor {source.file}.")


def fetch(source: DataSource, cache: Path) -> Path:
    """The original in the cache folder, downloaded if need be, its checksum as at the first time."""
    path = cache / source.file
    if not path.is_file():
        if source.url is None:
            raise InvalidInput(
                f"{source.file} needs a registration with its owner: get it at {source.registration} and put it "
                f"into {cache}, or into the folder given with --data-dir."
            )
        _download(source.url, path)
    _check_checksum(path)
    return path


def _download(url: str, path: Path) -> None:
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer:
            content = answer.read()
    except (urllib.error.URLError, OSError) as error:
        reason = getattr(error, "reason", None) or error
        raise InvalidInput(
            f"{url} cannot be downloaded ({reason}). Put the file into {path.parent} yourself, or give a folder that "
            "holds it with --data-dir."
        ) from error
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".part")
    partial.write_bytes(content)
    partial.replace(path)


def _check_checksum(path: Path) -> None:
    """Trust on first use: note the file's SHA-256, and refuse another one later."""
    lock = path.parent / CHECKSUMS
    known: dict[str, str] = json.loads(lock.read_text(encoding="utf-8")) if lock.is_file() else {}
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if known.setdefault(path.name, found) != found:
        raise InvalidInput(
            f"{path} has changed: its SHA-256 is {found}, and was {known[path.name]} at first. Delete the file to "
            f"download it again; delete its line in {lock} if the new one is right."
        )
    lock.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def prepare(name: str, path: Path, seed: int = 0) -> Split:
    """The paper's preparation of an original file."""
    source = SOURCES[name]
    columns = _read_columns(path, source.delimiter)
    lacking = [column for column in source.features if column not in columns]
    if lacking:
        raise InvalidInput(f"{path} is not the {name} data: it lacks the columns {', '.join(lacking)}.")
    try:
        kept = slice(None) if source.keep is None else source.keep(columns)
        values = np.stack([_numbers(columns[column])[kept] for column in source.features], axis=1)
        is_positive = source.label(columns)[kept]
    except (KeyError, ValueError) as error:
        raise InvalidInput(f"{path} is not the {name} data: {error}.") from error
    if len(values) != source.n_rows or np.isnan(values).any():
        reject(f"{path}", f"{source.n_rows} rows without a gap after preparation", f"{len(values)}")
    values = values if source.clean is None else source.clean(values)
    order = np.random.default_rng(seed).permutation(len(values))
    cut = round(_TRAIN_SHARE * len(values))
    train, test = order[:cut], order[cut:]
    label = np.where(is_positive, 1, -1).astype(np.int64)
    names = tuple(source.features.values())
    return Split(name, names, _scaled(values[train]), label[train], _scaled(values[test]), label[test])


def _scaled(values: Floats) -> Floats:
    """Each column to [0, 1]; one that never varies to 0."""
    low, size = values.min(axis=0), np.ptp(values, axis=0)
    return np.asarray((values - low) / np.where(size > 0, size, 1.0))


def _read_columns(path: Path, delimiter: str) -> Columns:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter)
        header = next(reader, [])
        rows = [row for row in reader if len(row) == len(header)]
    return {name.strip(): [row[j] for row in rows] for j, name in reversed(list(enumerate(header)))}


def _read_split(name: str, train: Path, test: Path) -> Split:
    wanted = [*SOURCES[name].features.values(), "class"]
    parts: list[Any] = []
    for path in (train, test):
        columns = _read_columns(path, "\t")
        if [column for column in columns if column] != wanted[::-1]:
            reject(f"{path}", f"columns {', '.join(wanted)}", ", ".join(column for column in columns if column))
        values = np.stack([_numbers(columns[column]) for column in wanted], axis=1)
        parts += [np.ascontiguousarray(values[:, :-1]), values[:, -1].astype(np.int64)]
    n_rows = SOURCES[name].n_rows
    if len(parts[0]) + len(parts[2]) != n_rows:
        reject(f"{train.parent}: {name}", f"{n_rows} rows together", len(parts[0]) + len(parts[2]))
    return Split(name, tuple(wanted[:-1]), *parts)


def load_model(split: Split, kind: ModelKind, data_dir: Path | None = None) -> Forest:
    """The paper's model from `data_dir`/models, else one of the same kind and size, trained on the split."""
    if data_dir is not None:
        pattern = f"model_{_MODEL_NAMES[kind]}_cf_{_FILE_NAMES[split.name]}_*.json.gz"
        found = sorted((data_dir / "models").glob(pattern))
        if found:
            return load_forest(found[0])
    return translate(train(split, kind)).forest


def train(split: Split, kind: ModelKind, seed: int = 0) -> Any:
    """A scikit-learn model of the paper's kind and size, fitted on the split's training part."""
    from sklearn.ensemble import AdaBoostClassifier, RandomForestClassifier
    from sklearn.tree import DecisionTreeClassifier

    n_trees, depth = SIZES[split.name, kind]  # type: ignore[index]
    model: Any
    if kind == "dt":
        model = DecisionTreeClassifier(max_depth=depth, random_state=seed)
    elif kind == "rf":
        model = RandomForestClassifier(n_trees, max_depth=depth, class_weight="balanced", random_state=seed)
    else:
        rate = 0.5 if split.name == "shopping" else 0.1
        tree = DecisionTreeClassifier(max_depth=depth, random_state=seed)
        model = AdaBoostClassifier(tree, n_estimators=n_trees, learning_rate=rate, random_state=seed)
    return model.fit(split.X_train, split.y_train)
