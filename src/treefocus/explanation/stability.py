"""Stability: how many other models still give the wanted outcome to an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from treefocus.model.forest import Bools, Floats
from treefocus.tables.frames import frame_of

_LEVEL = 1.959963984540054  # of a normal distribution, for 95 %


@dataclass(frozen=True, eq=False)
class Stability:
    """The share of models that give each answer the wanted outcome, with a confidence interval of 95 %.

    Attributes
    ----------
    share : array of shape (n_rows,)
        Of the models, NaN where a row has no answer.
    low, high : array of shape (n_rows,)
        Wilson's interval for the share among all such models.
    agrees : array of shape (n_models, n_rows)
        What each model says.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from treefocus import explain, refits
    >>> X, y = np.arange(40.0)[:, None], np.arange(40) > 19
    >>> model = DecisionTreeClassifier().fit(X, y)
    >>> found = explain(model, X[:2], X).stability(refits(model, X, y, n=10))
    >>> found.n_models
    10
    """

    share: Floats
    low: Floats
    high: Floats
    agrees: Bools

    @property
    def n_models(self) -> int:
        """How many models were asked."""
        return len(self.agrees)

    @property
    def mean(self) -> float:
        """Over all answers; NaN where there is none."""
        known = self.share[~np.isnan(self.share)]
        return float(known.mean()) if known.size else float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        """Of the mean, by how much models differ in it; NaN for fewer than two."""
        answered = ~np.isnan(self.share)
        if self.n_models < 2 or not answered.any():
            return float("nan"), float("nan")
        each = self.agrees[:, answered].mean(axis=1)
        off = _LEVEL * float(each.std(ddof=1)) / np.sqrt(self.n_models)
        return max(self.mean - off, 0.0), min(self.mean + off, 1.0)

    def counted(self, i: int) -> int:
        """How many models agree with the answer of row i."""
        return int(self.agrees[:, i].sum())

    def to_frame(self) -> Any:
        """A line a row: share, low, high and how many models agree."""
        n_agreeing = self.agrees.sum(axis=0).tolist()
        columns = {"share": self.share, "low": self.low, "high": self.high}
        return frame_of({name: own.tolist() for name, own in columns.items()} | {"agree": n_agreeing})

    def to_text(self) -> str:
        """The mean with its interval."""
        low, high = self.interval
        return f"{self.mean:.1%} of {self.n_models} models give the wanted outcome (95 %: {low:.1%} to {high:.1%})"

    @classmethod
    def of(cls, agrees: Bools, has_answer: Bools) -> Stability:
        """From what every model says of every answer, (n_models, n_rows)."""
        n = len(agrees)
        share = np.where(has_answer, agrees.mean(axis=0), np.nan)
        centre = (share + _LEVEL**2 / (2 * n)) / (1 + _LEVEL**2 / n)
        spread = share * (1 - share) / n + _LEVEL**2 / (4 * n * n)
        off = _LEVEL / (1 + _LEVEL**2 / n) * np.sqrt(np.maximum(spread, 0.0))
        return cls(share, np.maximum(centre - off, 0.0), np.minimum(centre + off, 1.0), agrees & has_answer)
