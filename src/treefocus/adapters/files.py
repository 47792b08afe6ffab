"""Models from files, told apart by what is in them: our own JSON, and what XGBoost, LightGBM, CatBoost, treelite,
converters to ONNX and PMML, and skops write. Nothing in such a file is run. Pickles are, so they are read only when
that is allowed.

XGBoost's, LightGBM's and CatBoost's text forms, ONNX and PMML are read here, without the library, and become a `Forest`
that has been checked. CatBoost's binary and treelite's files are opened by their library in a process of their own
(isolated.py).
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from treefocus.adapters import (
    catboost_model,
    focus_trees,
    lightgbm_model,
    onnx_model,
    pmml_model,
    ubjson,
    xgboost_model,
)
from treefocus.adapters.focus_trees import FOCUS_TREES
from treefocus.adapters.isolated import forest_from
from treefocus.errors import InvalidInput, TreefocusError, reject
from treefocus.model.forest import FORMAT, Forest, read_json

PICKLES = (".pkl", ".pickle", ".joblib")
_LARGEST_GROWTH = 200  # a skops file that unpacks to more times its size is no model
# skops does not vouch for these: a damaged one could make scikit-learn read out of bounds. Building a Forest checks
# every index, and that happens before the model is asked anything.
_TREES = ("sklearn.tree._tree.Tree", "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor")
_DAMAGE = (
    KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, ZeroDivisionError, RecursionError,
    MemoryError, StopIteration,
)  # fmt: skip


def load_model(path: str | Path, *, allow_pickle: bool = False) -> Any:
    """Read a model file: a `Forest`, or from skops and pickles the model itself.

    Parameters
    ----------
    path : str or Path
        The file.
    allow_pickle : bool
        Whether to read pickle and joblib files too. Unpickling runs code from the file: only for files you trust.

    Examples
    --------
    >>> from treefocus import load_model
    >>> load_model("model.pkl")
    Traceback (most recent call last):
        ...
    treefocus.errors.InvalidInput: ...
    """
    path = Path(path)
    if path.suffix in PICKLES and not allow_pickle:
        _unpickled(path, allow_pickle)
    if not path.is_file():
        raise InvalidInput(f"There is no file {path}.")
    data = path.read_bytes()
    if path.suffix in PICKLES or _is_pickle(data):
        return _unpickled(path, allow_pickle)
    for is_one, read in _KINDS:
        if is_one(data):
            return read(path, data)
    raise InvalidInput(
        f"{path} is no model file that treefocus reads: JSON of treefocus, XGBoost or CatBoost, .ubj of XGBoost, "
        ".txt of LightGBM, .cbm of CatBoost, .onnx, .pmml, a serialised treelite model, or .skops."
    )


def load_forest(path: str | Path) -> Forest:
    """Read a forest from a JSON file (docs/forest-format.md), gzip-compressed or not."""
    if not Path(path).is_file():
        raise InvalidInput(f"There is no file {path}.")
    return _own_json(Path(path), read_json(path))


def _own_json(path: Path, record: dict[str, Any]) -> Forest:
    found = record.get("format")
    if found == FORMAT:
        return Forest.from_record(record)
    if found == FOCUS_TREES:
        with _complaining(path, FOCUS_TREES):
            return focus_trees.read(record)
    reject(f"{path}: format", f"{FORMAT!r} or {FOCUS_TREES!r}", repr(found))


def _json(path: Path, data: bytes) -> Forest:
    record = read_json(path)
    if "learner" in record:
        with _complaining(path, "XGBoost"):
            return xgboost_model.read(record, n_rounds=_rounds(record))
    if "features_info" in record:
        with _complaining(path, "CatBoost"):
            return catboost_model.read(record)
    return _own_json(path, record)


def _ubjson(path: Path, data: bytes) -> Forest:
    with _complaining(path, "XGBoost"):
        record = ubjson.parse(data)
        return xgboost_model.read(record, n_rounds=_rounds(record))


def _rounds(record: dict[str, Any]) -> int | None:
    """XGBClassifier and friends predict with their best iteration, a Booster with all; the file tells whose it is."""
    known = record["learner"].get("attributes", {})
    return int(known["best_iteration"]) + 1 if {"scikit_learn", "best_iteration"} <= known.keys() else None


def _lightgbm(path: Path, data: bytes) -> Forest:
    with _complaining(path, "LightGBM"):
        return lightgbm_model.read(data.decode("utf-8").replace("\r\n", "\n"))


def _onnx(path: Path, data: bytes) -> Forest:
    with _complaining(path, "ONNX"):
        return onnx_model.read(data)


def _pmml(path: Path, data: bytes) -> Forest:
    with _complaining(path, "PMML"):
        return pmml_model.read(data)


def _old_xgboost(path: Path, data: bytes) -> Forest:
    raise InvalidInput(f"{path} is in XGBoost's old binary format; save the model again as .json or .ubj.")


def _skops(path: Path, data: bytes) -> Any:
    """A scikit-learn model, if every type in the file is one that skops trusts."""
    try:
        import skops.io
    except ImportError as error:
        raise InvalidInput(f"Reading {path} needs skops: pip install skops.") from error
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
        if unpacked > max(_LARGEST_GROWTH * len(data), 1 << 26):
            raise InvalidInput(f"{path} unpacks to {unpacked:,} bytes, which no model does.")
        found = skops.io.get_untrusted_types(file=path)
        untrusted = [name for name in found if name not in _TREES]
        if untrusted:
            raise InvalidInput(
                f"{path} holds types that skops does not trust: {', '.join(sorted(untrusted))}. "
                "Save a model of scikit-learn's own types."
            )
        return skops.io.load(path, trusted=found)
    except TreefocusError:
        raise
    except Exception as error:  # whatever the damage makes of it
        raise InvalidInput(f"{path} is not a whole skops file: {_one_line(error)}.") from error


def _unpickled(path: Path, allow_pickle: bool) -> Any:
    if not allow_pickle:
        raise InvalidInput(
            f"{path} is a pickle, and reading one runs code from the file; add --allow-pickle if you trust it."
        )
    import joblib

    try:
        return joblib.load(path)
    except Exception as error:  # whatever the file's own code raises
        raise InvalidInput(f"{path} cannot be unpickled: {_one_line(error)}.") from error


def _is_pickle(data: bytes) -> bool:
    return len(data) > 2 and data[0] == 0x80 and 2 <= data[1] <= 5


def _starts(*heads: bytes) -> Callable[[bytes], bool]:
    return lambda data: data.startswith(heads)


def _is_json(data: bytes) -> bool:
    return data[:1024].lstrip(b" \t\r\n\xef\xbb\xbf")[:1] in (b"{", b"[") or data[:2] == b"\x1f\x8b"


def _is_ubjson(data: bytes) -> bool:
    return data[:1] == b"{" and data[1:2] in (b"i", b"U", b"I", b"l", b"L")


_KINDS: tuple[tuple[Callable[[bytes], bool], Callable[[Path, bytes], Any]], ...] = (
    (_is_ubjson, _ubjson),
    (_is_json, _json),
    (_starts(b"tree\n", b"tree\r\n"), _lightgbm),
    (_starts(b"CBM1"), lambda path, _: forest_from("catboost", path)),
    (_starts(b"\x03\0\0\0", b"\x04\0\0\0"), lambda path, _: forest_from("treelite", path)),
    (_starts(b"PK\x03\x04"), _skops),
    (_starts(b"binf", b"bs64"), _old_xgboost),
    (onnx_model.is_onnx, _onnx),
    (pmml_model.is_pmml, _pmml),
)


@contextmanager
def _complaining(path: Path, kind: str) -> Iterator[None]:
    """Whatever a damaged record makes of the reading is said of the file."""
    try:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # Forest refuses what is not finite
            yield
    except TreefocusError as error:
        raise type(error)(f"{path}: {error}") from error
    except json.JSONDecodeError as error:
        raise InvalidInput(f"{path} is not a whole {kind} file: {error}.") from error
    except _DAMAGE as error:
        raise InvalidInput(f"{path} is not a whole {kind} file: {error!r}.") from error


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
