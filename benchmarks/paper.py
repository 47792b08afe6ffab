"""The paper's data, models and settings, from the folder named by TREEFOCUS_PAPER."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np

import treefocus

DATA = {"wine": "wine", "heloc": "heloc", "compas": "compas_num", "shopping": "shop2"}
MODELS = {"dt": "dt", "rf": "rf", "ab": "ada"}


def folder() -> Path:
    path = os.environ.get("TREEFOCUS_PAPER")
    if not path:
        sys.exit("Set TREEFOCUS_PAPER to the folder with the paper's data, models and settings.json.")
    return Path(path)


def table(dataset: str, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Features and labels of a split."""
    rows = np.genfromtxt(folder() / f"data/cf_{DATA[dataset]}_data_{part}.tsv", delimiter="\t", skip_header=1)
    return np.ascontiguousarray(rows[:, 1:-1]), rows[:, -1].astype(int)


def forest(dataset: str, model: str) -> treefocus.Forest:
    (path,) = (folder() / "models").glob(f"model_{MODELS[model]}_cf_{DATA[dataset]}_*.json.gz")
    return treefocus.load_forest(path)


def settings() -> list[dict]:
    return json.loads((folder() / "settings.json").read_text())


def explainer(model: object, dataset: str, distance: object) -> treefocus.Explainer:
    """In the paper's own space: values as they are, answers in [0, 1]."""
    return treefocus.Explainer(model, table(dataset, "train")[0], scale=None, bounds=(0, 1), distance=distance)
