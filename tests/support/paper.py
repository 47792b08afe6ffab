"""The paper's models and data, where they are at hand."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from treefocus import Forest, load_forest
from treefocus.model.forest import Floats

DATA = {"wine": "wine", "heloc": "heloc", "compas": "compas_num", "shopping": "shop2"}
MODELS = {"dt": "dt", "rf": "rf", "ab": "ada"}


@cache
def paper_rows(folder: Path, dataset: str, part: str) -> Floats:
    """(n_rows, n_features) without the index in front and the class behind."""
    path = folder / "data" / f"cf_{DATA[dataset]}_data_{part}.tsv"
    return np.ascontiguousarray(np.genfromtxt(path, delimiter="\t", skip_header=1)[:, 1:-1])


@cache
def paper_model(folder: Path, dataset: str, model: str) -> Forest:
    [path] = (folder / "models").glob(f"model_{MODELS[model]}_cf_{DATA[dataset]}_*.json.gz")
    return load_forest(path)
