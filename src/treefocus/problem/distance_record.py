"""Distances as plain values, for certificates and saved explainers."""

from __future__ import annotations

from typing import Any

import numpy as np

from treefocus.errors import InvalidInput, reject
from treefocus.kernels.inputs import Metric
from treefocus.model.forest import Floats
from treefocus.problem.distances import (
    L0,
    L1,
    L2,
    LINF,
    Chebyshev,
    Cosine,
    Distance,
    Euclidean,
    FewestFeatures,
    Mahalanobis,
    Manhattan,
    Sum,
)

_PARTS: dict[int, type[Any]] = {L1: Manhattan, L2: Euclidean, LINF: Chebyshev, L0: FewestFeatures}


def distance_record(distance: Distance) -> dict[str, Any]:
    """A fitted distance as plain values."""
    norms, compiled = distance.norms, distance.compiled
    if norms is not None:
        return {"kind": "norms", "weights": norms.weights.tolist()}
    if compiled is None:
        raise InvalidInput("A file needs a distance that can be written down; a user's own function cannot.")
    return {"kind": compiled.metric.name, "weight": compiled.weight.tolist(), "inverse": compiled.inverse.tolist()}


def read_distance(record: dict[str, Any], n_features: int) -> Distance:
    """The distance that `distance_record` wrote."""
    if record["kind"] == "norms":
        weights = _floats(record["weights"])
        present = [part for part in range(4) if weights[part].any()]
        parts = [(1.0, _PARTS[part](weights=np.ascontiguousarray(weights[part]))) for part in present]
        return parts[0][1] if len(parts) == 1 else Sum(tuple(parts))
    metric = Metric[record["kind"]]
    if metric is Metric.COSINE:
        return Cosine(_floats(record["weight"]))
    inverse = _floats(record["inverse"])
    if inverse.shape != (n_features, n_features):
        reject("The distance's matrix", f"({n_features}, {n_features})", inverse.shape)
    return Mahalanobis(squared=metric is Metric.MAHALANOBIS_SQUARED, inverse=inverse)


def _floats(values: Any) -> Floats:
    return np.array(values, dtype=np.float64)
