"""Calibration: the smallest margin with which a promise is kept, by what rows and models say that had no part in it.

A share of 96 % among some rows and some models does not promise 95 % of all: other rows and other models would have
said less, or more. So what was seen has to be so good that a true share below the promise would seldom show it.
Models differ, and so do rows: a model that turns one answer down turns down all that end in the same place, so that its
word about sixty rows is nearer to one draw than to sixty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np

from treefocus.model.forest import Bools, Floats

FEW_ROWS = 20  # that are asked first, to see about where the margin is
_SURE = 1.6448536269514722  # standard deviations, which a normal number exceeds 1 of 20 times
_LOOKS = 4  # margins that are tried with few rows
_STEPS = (1.12, 1.12, 1.12, 1.3, 1.3, 1.3)  # from a margin to the next one, with all rows
_CLOSE = 0.1  # margins, relatively, between which few rows do not tell
_BEYOND = 0.05  # of the way between two margins, so that the next one rather does
_GROWTH = 1.6  # of a margin that did not do
_HARDLY = 0.3  # of the scatter: where so little does, nothing at all may do

Asked = Callable[[float, slice], Bools]  # (n_models, n_answers) who agrees to the answers to some rows, under a margin


@dataclass(eq=False)
class Calibration:
    """The margins that were tried for a class so far, with what was said of the answers.

    What was seen is kept to save time; which margin comes out does not hang on which promises came before.
    """

    asked: Asked
    n_rows: int
    scatter: float  # how far models' leads lie apart at the same point
    seen: dict[float, dict[int, Bools]] = field(default_factory=dict)  # by margin, of the first n rows

    def margin(self, hold: float) -> float:
        """The first margin with which the promise is kept, from where it may be kept upwards.

        A larger margin is not always better: where there are few places, the next one may please fewer models.
        """
        guess = margin = self._guess(hold)
        for step in _STEPS:
            if self._is_kept(margin, hold):
                return margin if margin > guess else self._less(margin, hold)
            margin = max(margin * step, _HARDLY * self.scatter)
        return margin

    def _is_kept(self, margin: float, hold: float) -> bool:
        return lower_end(self._said(margin, self.n_rows)) >= hold

    def _less(self, margin: float, hold: float) -> float:
        """Downwards from a margin with which the promise is kept, as long as it is."""
        for step in _STEPS:
            less = margin / step if margin > _HARDLY * self.scatter else 0.0
            if less == margin or not self._is_kept(less, hold):
                break
            margin = less
        return margin

    def _guess(self, hold: float) -> float:
        """The smallest of a few margins of which few rows do not say that it is too small."""
        few = min(FEW_ROWS, self.n_rows)
        tried: dict[float, float] = {}
        margin = normal_quantile(hold) * self.scatter
        for _ in range(_LOOKS):
            if any(abs(margin - one) <= _CLOSE * max(one, margin) for one in tried):
                break
            tried[margin] = _share(self._said(margin, few))
            margin = next_margin(tried, hold, self.scatter)
        return min((one for one, share in tried.items() if share >= hold), default=max(tried))

    def _said(self, margin: float, n_rows: int) -> Bools:
        """Who agrees to the answers to the first n rows; those that were asked for before are not asked for again."""
        seen = self.seen.setdefault(margin, {})
        if n_rows not in seen:
            known = max((n for n in seen if n < n_rows), default=0)
            more = self.asked(margin, slice(known, n_rows))
            seen[n_rows] = np.concatenate([seen[known], more], axis=1) if known else more
        return seen[n_rows]


def _share(agrees: Bools) -> float:
    return float(agrees.mean()) if agrees.size else 1.0


def lower_end(agrees: Bools) -> float:
    """The least share of models that agree which could well (1 of 20 times) have shown what every model says here.

    Wilson's bound, for as many independent draws as would scatter as much as these models and these rows do.

    Parameters
    ----------
    agrees : array of shape (n_models, n_rows)
        A sample of models and a sample of rows.
    """
    if not agrees.size:
        return 1.0
    share = float(agrees.mean())
    variance = sum(_of_mean(agrees.mean(axis=axis), share) for axis in (0, 1))
    n_draws = min(share * (1 - share) / variance, agrees.size) if variance else agrees.size
    spread = share * (1 - share) / n_draws + (_SURE / (2 * n_draws)) ** 2
    return (share + _SURE**2 / (2 * n_draws) - _SURE * float(np.sqrt(spread))) / (1 + _SURE**2 / n_draws)


def _of_mean(shares: Floats, share: float) -> float:
    """The variance of the mean of these shares; of one alone, as if it could have been all or nothing."""
    n = len(shares)
    return float(((shares - share) ** 2).sum()) / (n - 1) / n if n > 1 else share * (1 - share)


def next_margin(tried: Mapping[float, float], least: float, scatter: float) -> float:
    """The next margin to try, of margins with what each reaches: between one that does and one that does not, or
    further out.

    Leads scatter about the pool's as normal numbers do, so that quantiles of the shares lie about on a line.
    """
    good = [one for one in tried.items() if one[1] >= least]
    bad = [one for one in tried.items() if one[1] < least and (not good or one[0] < min(good)[0])]
    if not good:
        return max(normal_quantile(least) * scatter, _GROWTH * max(bad)[0], 1e-6)
    high = min(good)
    if not bad and high[0] <= _HARDLY * scatter:
        return 0.0
    low = max(bad) if bad else (0.0, 0.5)
    ends = [normal_quantile(min(max(share, 0.02), 0.998)) for share in (low[1], high[1])]
    part = (normal_quantile(least) - ends[0]) / max(ends[1] - ends[0], 1e-9)
    return low[0] + min(max(part + _BEYOND, 0.2), 0.9) * (high[0] - low[0])


def normal_quantile(share: float) -> float:
    """The number of standard deviations that so large a share lies below."""
    return NormalDist().inv_cdf(share)  # as scipy's ndtri, whose import takes 20 MB
