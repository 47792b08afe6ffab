"""Functions of the user's own in a pipeline, `FunctionTransformer(np.log1p)`: asked whether they can be taken apart.

A function that grows with its number, column by column, sends the numbers up to a threshold to one side and those
beyond to the other, as scalers do. NumPy's own functions are known. Any other function is tried: it has to keep the
columns, to leave a column as it is when another one changes, and to grow over thousands of numbers of every size.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus.errors import UnsupportedModel

_GROWING = {
    np.log, np.log1p, np.log2, np.log10, np.sqrt, np.cbrt, np.exp, np.exp2, np.expm1, np.tanh, np.sinh, np.arctan,
    np.arcsinh, np.rint, np.floor, np.ceil, np.trunc, np.positive, np.sign,
}  # fmt: skip
INSTEAD = (
    "Explain the last step's model alone, on a table with the steps before it applied: Z = pipeline[:-1].transform(X), "
    "made dense by Z.toarray() if it is sparse, then Explainer(pipeline[-1], Z)."
)


def check_function(step: Any, name: str, n_columns: int) -> None:
    """Refuse a FunctionTransformer whose function does not grow column by column."""
    if step.func in _GROWING and not step.kw_args:
        return
    what = f"The pipeline's step {name!r} is a FunctionTransformer whose function"
    columns = getattr(step, "feature_names_in_", None)
    values = _numbers()
    try:
        made = _asked(step, np.repeat(values[:, None], n_columns, axis=1), columns)
    except Exception as error:  # whatever the user's function makes of it
        raise UnsupportedModel(
            f"{what} does not take a table of numbers ({type(error).__name__}). {INSTEAD}"
        ) from error
    if made.shape != (len(values), n_columns):
        raise UnsupportedModel(f"{what} makes {made.shape[1:]} of {n_columns} columns. {INSTEAD}")
    some = _asked(step, np.repeat(values[::3, None], n_columns, axis=1), columns)
    if some.shape != made[::3].shape or not ((some == made[::3]) | (np.isnan(some) & np.isnan(made[::3]))).all():
        raise UnsupportedModel(f"{what} mixes columns, or rows. {INSTEAD}")
    others = np.random.default_rng(0).permutation(len(values))
    for j in range(n_columns):
        rows = np.repeat(values[others][:, None], n_columns, axis=1)
        rows[:, j] = values
        is_same = (again := _asked(step, rows, columns)[:, j]) == made[:, j]
        if not (is_same | (np.isnan(again) & np.isnan(made[:, j]))).all():
            raise UnsupportedModel(f"{what} mixes columns, or rows. {INSTEAD}")
        known = made[~np.isnan(made[:, j]), j]
        if not len(known) or (np.diff(known) < 0).any():
            raise UnsupportedModel(
                f"{what} does not grow with its number, so that no threshold on the raw column says the same. {INSTEAD}"
            )


def _numbers() -> NDArray[np.float64]:
    """Numbers of every size, ascending: close together around 0 as well as far off."""
    far = np.concatenate([np.logspace(-12, 12, 1500), np.linspace(0.0, 100.0, 2001), np.linspace(0.0, 1.0, 501)])
    return np.unique(np.concatenate([-far, far]))


def _asked(step: Any, rows: NDArray[np.float64], columns: Any) -> NDArray[np.float64]:
    given: Any = rows
    if columns is not None:
        import pandas

        given = pandas.DataFrame(rows, columns=list(columns))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        made = step.transform(given)
    return np.asarray(made, np.float64)
