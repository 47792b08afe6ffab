"""treefocus: the smallest change to a row that changes a tree ensemble's answer, and how we know that it is."""

from __future__ import annotations

from typing import Any

from treefocus.adapters import load_forest, load_model
from treefocus.constraints.kinds import (
    AtMost,
    Condition,
    Decreasing,
    Fixed,
    Implies,
    Increasing,
    Linear,
    MayBeMissing,
    OneOf,
    Range,
    Together,
)
from treefocus.constraints.suggest import suggest_constraints
from treefocus.errors import InvalidInput, ModelMismatch, TreefocusError, UnsupportedModel
from treefocus.explainer import Explainer, explain, load_explainer
from treefocus.explanation.batch import Change, Explanation, Explanations
from treefocus.explanation.curve import Curve, curve
from treefocus.explanation.refits import refits
from treefocus.explanation.verifying import verify
from treefocus.model.forest import Forest
from treefocus.problem.distances import Chebyshev, Cosine, Distance, Euclidean, FewestFeatures, Mahalanobis, Manhattan
from treefocus.problem.plausibility import IsolationScore, LocalOutlierFactor
from treefocus.problem.targets import Interval, Probability, Score
from treefocus.problem.tolerance import Tolerance
from treefocus.schema.schema import Feature, Schema
from treefocus.search import Auto, Dace, Exact, FeatureTweaking, Focus, RandomPerturbation, Status


def __getattr__(name: str) -> Any:
    if name != "__version__":
        raise AttributeError(f"module 'treefocus' has no attribute {name!r}")
    from importlib.metadata import version  # slow to import, and seldom needed

    return version("treefocus")


__all__ = [
    "AtMost",
    "Auto",
    "Change",
    "Chebyshev",
    "Condition",
    "Cosine",
    "Curve",
    "Dace",
    "Decreasing",
    "Distance",
    "Euclidean",
    "Exact",
    "Explainer",
    "Explanation",
    "Explanations",
    "Feature",
    "FeatureTweaking",
    "FewestFeatures",
    "Fixed",
    "Focus",
    "Forest",
    "Implies",
    "Increasing",
    "Interval",
    "InvalidInput",
    "IsolationScore",
    "Linear",
    "LocalOutlierFactor",
    "Mahalanobis",
    "Manhattan",
    "MayBeMissing",
    "ModelMismatch",
    "OneOf",
    "Probability",
    "RandomPerturbation",
    "Range",
    "Schema",
    "Score",
    "Status",
    "Together",
    "Tolerance",
    "TreefocusError",
    "UnsupportedModel",
    "curve",
    "explain",
    "load_explainer",
    "load_forest",
    "load_model",
    "refits",
    "suggest_constraints",
    "verify",
]
