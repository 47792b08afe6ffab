"""TransformedTargetRegressor: the regressor inside, and the way back from its target to the user's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from treefocus.adapters.wrappers import check_fitted, looked_through
from treefocus.errors import UnsupportedModel
from treefocus.model.maps import Map
from treefocus.model.source import Source

SUPPORTED: tuple[type, ...] = (TransformedTargetRegressor,)
REFUSED: dict[type, str] = {}
_FUNCTIONS: dict[Any, tuple[Map, ...]] = {None: (), np.exp: (("exp",),), np.expm1: (("expm1",),)}


def to_source(model: Any) -> Source:
    """Translate the regressor inside; what it predicts goes through the inverse transformation."""
    from treefocus.adapters.registry import translated_inside

    check_fitted(model)
    inner = translated_inside(model.regressor_, model)
    forest = replace(inner.forest, maps=(*inner.forest.maps, *_way_back(model.transformer_)))
    return looked_through(model, inner, forest)


def _way_back(step: Any) -> tuple[Map, ...]:
    """The inverse transformation of the target, as maps."""
    if isinstance(step, FunctionTransformer) and step.inverse_func in _FUNCTIONS:
        return _FUNCTIONS[step.inverse_func]
    if isinstance(step, StandardScaler | RobustScaler | MaxAbsScaler):
        shift = getattr(step, "mean_", getattr(step, "center_", None))
        scale, shift = (default if own is None else own[0] for own, default in ((step.scale_, 1.0), (shift, 0.0)))
        return (("affine", float(scale), float(shift)),)
    if isinstance(step, MinMaxScaler) and not step.clip:
        return (("shifted", float(step.scale_[0]), float(step.min_[0])),)
    what = getattr(getattr(step, "inverse_func", None), "__name__", None) or type(step).__name__
    raise UnsupportedModel(
        f"A TransformedTargetRegressor whose way back is {what} is not supported; np.exp, np.expm1 and the inverse of "
        "StandardScaler, MinMaxScaler, RobustScaler and MaxAbsScaler are. Explain model.regressor_, with an interval "
        "of the transformed target."
    )
