"""Functions of the user's own in a pipeline, `FunctionTransformer(np.log1p)`: asked whether they can be taken apart.

A function that grows with its number, column by column, sends the numbers up to a threshold to one side and those
beyond to the other, as scalers do; one that falls does so with the sides changed. NumPy's own functions are known. Any
other function is tried: it has to keep the columns, to leave a column as it is when another one changes, and to grow or
to fall over thousands of numbers of every size. One that takes no numbers is tried on dates.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Ways:
    """What a function of columns is: of dates or of numbers, and which columns fall with what they are given."""

    is_of_dates: bool
    falls: tuple[bool, ...]


def ways_of(step: Any, name: str, n_columns: int) -> Ways:
    """How a FunctionTransformer's function goes; refused if it neither grows nor falls, column by column."""
    if step.func in _GROWING and not step.kw_args:
        return Ways(False, (False,) * n_columns)
    of_numbers = _ways(step, _numbers(), n_columns, "numbers")
    if not isinstance(of_numbers, str):
        return Ways(False, of_numbers)
    of_dates = _ways(step, _moments(), n_columns, "dates")
    if not isinstance(of_dates, str):
        return Ways(True, of_dates)
    # what it takes at all says what is wrong with it
    why = of_dates if _NOT_TAKEN in of_numbers and _NOT_TAKEN not in of_dates else of_numbers
    raise UnsupportedModel(f"The pipeline's step {name!r} is a FunctionTransformer whose function {why}. {INSTEAD}")


_NOT_TAKEN = "does not take"


def _ways(step: Any, values: NDArray[Any], n_columns: int, what: str) -> tuple[bool, ...] | str:
    """Which columns fall, as far as ascending values show; or why the function cannot be taken apart."""
    columns = getattr(step, "feature_names_in_", None)
    try:
        made = _asked(step, np.repeat(values[:, None], n_columns, axis=1), columns)
    except Exception as error:  # whatever the user's function makes of it
        return f"{_NOT_TAKEN} a table of {what} ({type(error).__name__})"
    if made.shape != (len(values), n_columns):
        return f"makes {made.shape[1:]} of {n_columns} columns"
    some = _asked(step, np.repeat(values[::3, None], n_columns, axis=1), columns)
    if some.shape != made[::3].shape or not ((some == made[::3]) | (np.isnan(some) & np.isnan(made[::3]))).all():
        return "mixes columns, or rows"
    falls = []
    others = np.random.default_rng(0).permutation(len(values))
    for j in range(n_columns):
        rows = np.repeat(values[others][:, None], n_columns, axis=1)
        rows[:, j] = values
        is_same = (again := _asked(step, rows, columns)[:, j]) == made[:, j]
        if not (is_same | (np.isnan(again) & np.isnan(made[:, j]))).all():
            return "mixes columns, or rows"
        known = made[~np.isnan(made[:, j]), j]
        with np.errstate(invalid="ignore"):
            steps = np.diff(known)
            has_rise, has_fall = bool((steps > 0).any()), bool((steps < 0).any())
        if not len(known) or (has_rise and has_fall):
            return "neither grows nor falls with its number, so that no threshold on the raw column says the same"
        falls.append(has_fall)
    return tuple(falls)


def _numbers() -> NDArray[np.float64]:
    """Numbers of every size, ascending: close together around 0 as well as far off."""
    sizes = [np.logspace(-12, 12, 1500), np.logspace(12, 300, 300)]
    far = np.concatenate([*sizes, np.linspace(0.0, 100.0, 2001), np.linspace(0.0, 1.0, 501)])
    return np.unique(np.concatenate([-far, far]))


def _moments() -> NDArray[np.datetime64]:
    """Moments of two centuries, ascending: days, and seconds in between."""
    days = np.arange("1900-01-01", "2100-01-01", 17, dtype="datetime64[D]").astype("datetime64[us]")
    return np.unique(np.concatenate([days, days + np.timedelta64(40_003, "s")]))


def _asked(step: Any, rows: NDArray[Any], columns: Any) -> NDArray[np.float64]:
    given: Any = rows
    if columns is not None:
        import pandas

        given = pandas.DataFrame(rows, columns=list(columns))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        made = step.transform(given)
    return np.asarray(made, np.float64)
