"""Refits: the same estimator trained again, with other seeds and on other draws of the same rows.

What a model says close to its boundary is partly luck. Models that differ in nothing but luck tell how much of it is:
the share of them that agrees with an answer is what "it will still hold when the model is trained again" means.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus import kernels
from treefocus.errors import InvalidInput, reject
from treefocus.render.progress import progress_bar

_SEEDS = ("random_state", "random_seed", "seed")  # what libraries call the start of their random numbers
_DRAWS = 100  # of rows, before a class that is hardly there is given up
_LARGEST_SEED = 2**31 - 1


def refits(
    model: Any,
    X: Any,
    y: Any,
    n: int = 20,
    seed: int = 0,
    *,
    n_jobs: int | None = None,
    progress: bool | Callable[[int], None] = False,
) -> list[Any]:
    """Train the same estimator again, n times, each with another seed and on another bootstrap draw of the rows.

    Parameters
    ----------
    model : estimator
        Of scikit-learn, XGBoost, LightGBM or CatBoost, a pipeline or a wrapper of them; it stays as it is.
    X : table of shape (n_rows, n_features)
        The training rows.
    y : array of shape (n_rows,)
        Their labels.
    n : int
        How many.
    seed : int
        Start of the random numbers; the same gives the same models.
    n_jobs : int, optional
        Models that are trained at a time; all cores if not given.
    progress : bool or callable
        Whether a bar shows how many are done, or who hears of it.

    Returns
    -------
    list
        Fitted models.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from treefocus import refits
    >>> X, y = np.arange(20.0)[:, None], np.arange(20) > 9
    >>> len(refits(DecisionTreeClassifier().fit(X, y), X, y, n=3))
    3
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        reject("n", "a whole number above 0", n)
    estimator, labels = _estimator(model), np.asarray(y)
    if labels.ndim != 1 or len(labels) != len(X) or not len(labels):
        reject("y", f"one label a row ({len(X)})", labels.shape)
    seeds = np.random.SeedSequence(seed).generate_state(2 * n)
    draws = [_drawn(labels, int(own)) for own in seeds[:n]]
    starts = [int(own) % _LARGEST_SEED for own in seeds[n:]]
    return _trained(estimator, X, labels, draws, starts, kernels.n_threads(n_jobs), progress)


def _trained(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    draws: Sequence[NDArray[np.intp]],
    starts: Sequence[int],
    n_jobs: int,
    progress: bool | Callable[[int], None],
) -> list[Any]:
    """In threads: libraries let go of the interpreter while they grow trees."""
    from joblib import Parallel, delayed

    work = (delayed(_again)(estimator, rows_of(X, draw), y[draw], own) for draw, own in zip(draws, starts, strict=True))
    found: list[Any] = []
    with progress_bar(progress, len(draws), "training") as report:
        for fitted in Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(work):
            found.append(fitted)
            if report is not None:
                report(len(found))
    return found


def rows_of(X: Any, numbers: NDArray[np.intp]) -> Any:
    """Some rows of a table, as a table of the same kind."""
    if hasattr(X, "iloc"):
        return X.iloc[numbers].reset_index(drop=True)
    return X[numbers] if hasattr(X, "shape") else [X[k] for k in numbers]


def _again(estimator: Any, X: Any, y: NDArray[Any], seed: int) -> Any:
    from sklearn.base import clone

    return _seeded(clone(estimator), seed).fit(X, y)


def _seeded(estimator: Any, seed: int) -> Any:
    """The estimator with another seed, wherever one can be set inside it."""
    names = [name for name in estimator.get_params(deep=True) if name.rsplit("__", 1)[-1] in _SEEDS]
    if not names and type(estimator).__module__.startswith("catboost"):
        names = ["random_seed"]  # which it lists only once it was set
    return estimator.set_params(**dict.fromkeys(names, seed))


def _estimator(model: Any) -> Any:
    """What is trained again: of a search over parameters, the best estimator with the parameters that it found."""
    inside = getattr(model, "best_estimator_", model)
    if not (hasattr(inside, "fit") and hasattr(inside, "get_params")):
        raise InvalidInput(
            f"A {type(model).__name__} cannot be trained again: give the estimator (XGBClassifier instead of a "
            "Booster, say), or train the models yourself and give them as refits=[...]."
        )
    if type(inside).__name__ == "FrozenEstimator":
        raise InvalidInput("A FrozenEstimator stays as it is; give the estimator inside to be trained again.")
    return inside


def _drawn(y: NDArray[Any], seed: int) -> NDArray[np.intp]:
    """Row numbers, drawn with replacement, that hold every class."""
    rng = np.random.default_rng(seed)
    known = np.unique(y) if y.dtype.kind not in "fc" else None
    for _ in range(_DRAWS):
        draw = np.sort(rng.integers(0, len(y), len(y)))
        if known is None or len(np.unique(y[draw])) == len(known):
            return draw
    raise InvalidInput("y has a class of so few rows that draws do not hold it; train with more rows of it.")
