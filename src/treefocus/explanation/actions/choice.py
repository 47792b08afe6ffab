"""Which few of many actions: a maximum coverage problem, solved to optimality by HiGHS, then made cheaper by swaps.

A row is covered if one of the chosen actions helps it. That is a small integer program, whose rows with the same
helpers are one, and from which actions are left out that help nobody whom another does not. Among choices that cover as
many, costs are made small by exchanging one action at a time, as long as no row is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus.model.forest import Bools, Floats

NODE_LIMIT = 20_000  # of the integer program: work, not seconds
_ROUNDS = 50  # of swaps


@dataclass(frozen=True)
class Choice:
    """Some of the actions, by their numbers."""

    chosen: tuple[int, ...]
    covered: int  # rows that one of them helps
    bound: int  # no choice of as many among these actions covers more; with `fewest`, at least so many are needed

    @property
    def is_optimal(self) -> bool:
        """Whether it is proven that no choice covers more."""
        return self.covered >= self.bound


def most_covered(cost: Floats, at_most: int) -> Choice:
    """At most so many actions that help as many rows as possible, and those at little cost.

    cost: (n_actions, n_rows), infinity where an action does not help.
    """
    helps = np.isfinite(cost)
    if not helps.any():
        return Choice((), 0, 0)
    kept, weight, reduced = _reduced(helps)
    solved, bound = _program(reduced, weight, at_most)
    greedy = _greedy(helps, at_most)
    best = max([kept[list(solved)].tolist(), greedy], key=lambda own: int(helps[own].any(axis=0).sum()))
    chosen = _cheaper(cost, _filled(cost, best, at_most))
    covered = int(helps[chosen].any(axis=0).sum())
    return Choice(tuple(chosen), covered, max(bound, covered))


def fewest(cost: Floats, needed: int, most: Callable[[int], Choice] | None = None) -> Choice:
    """The fewest actions that help so many rows, or as many as all of them do; most: the best choice of so many."""
    helps = np.isfinite(cost)
    needed = min(needed, int(helps.any(axis=0).sum()))
    most = partial(most_covered, cost) if most is None else most
    found = most(1)
    for size in range(2, len(cost) + 1):
        if found.covered >= needed:
            break
        larger = most(size)
        if larger.covered <= found.covered:  # no further action helps anybody else
            break
        found = larger
    return found


def _reduced(helps: Bools) -> tuple[NDArray[np.intp], Floats, Bools]:
    """The actions that no other makes superfluous, and the rows with the same helpers as one, with their number."""
    counts = helps.astype(np.float32)
    only_own = counts @ (1 - counts).T  # (a, b) rows that a helps and b does not
    is_inside = (only_own == 0) & ~np.eye(len(helps), dtype=bool)
    is_same = is_inside & is_inside.T
    is_later = np.tril(np.ones_like(is_inside), -1)  # of two that help the same, the first stays
    kept = np.flatnonzero(~(is_inside & (~is_same | is_later)).any(axis=1))
    patterns, numbers = np.unique(helps[kept][:, helps.any(axis=0)], axis=1, return_counts=True)
    return kept, numbers.astype(np.float64), patterns


def _program(helps: Bools, weight: Floats, at_most: int) -> tuple[tuple[int, ...], int]:
    """The integer program: chosen actions, and how many rows any choice covers at most."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import eye_array, hstack, vstack

    n_actions, n_rows = helps.shape
    covers: Any = hstack([-_sparse(helps.T), eye_array(n_rows)])  # a row is covered only by a chosen action
    few = np.concatenate([np.ones(n_actions), np.zeros(n_rows)])[None]
    upper = np.concatenate([np.zeros(n_rows), [float(at_most)]])
    found = milp(
        np.concatenate([np.zeros(n_actions), -weight]),
        integrality=np.concatenate([np.ones(n_actions), np.zeros(n_rows)]),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(vstack([covers, _sparse(few)]).tocsc(), -np.inf, upper),
        options={"node_limit": NODE_LIMIT, "mip_rel_gap": 0.0},
    )
    bound = found.mip_dual_bound
    most = int(weight.sum()) if bound is None or not np.isfinite(bound) else int(np.floor(-bound + 1e-6))
    chosen = () if found.x is None else tuple(np.flatnonzero(found.x[:n_actions] > 0.5).tolist())
    return chosen, min(most, int(weight.sum()))


def _sparse(matrix: Any) -> Any:
    from scipy.sparse import csr_array

    return csr_array(np.asarray(matrix, np.float64))


def _greedy(helps: Bools, at_most: int) -> list[int]:
    """One after the other, each that helps most of those who are left."""
    chosen: list[int] = []
    left = np.ones(helps.shape[1], bool)
    while len(chosen) < at_most and left.any():
        gain = (helps & left).sum(axis=1)
        best = int(np.argmax(gain))
        if not gain[best]:
            break
        chosen.append(best)
        left &= ~helps[best]
    return chosen


def _filled(cost: Floats, chosen: list[int], at_most: int) -> list[int]:
    """With further actions, as far as there may be some, each that makes it cheapest for those who are helped."""
    chosen = list(chosen)
    while chosen and len(chosen) < at_most:
        least = cost[chosen].min(axis=0)
        is_covered = np.isfinite(least)
        saved = np.maximum(least[is_covered] - cost[:, is_covered], 0.0).sum(axis=1)
        best = int(np.argmax(saved))
        if not saved[best] > 1e-9 * least[is_covered].sum():
            break
        chosen.append(best)
    return chosen


def _cheaper(cost: Floats, chosen: list[int]) -> list[int]:
    """One action exchanged at a time, as long as more rows are covered, or as many at less cost."""
    chosen = list(chosen)
    for _ in range(_ROUNDS):
        known = _worth(cost[chosen].min(axis=0)[None])[0]
        best: tuple[tuple[float, float], int, int] | None = None
        for place in range(len(chosen)):
            others = [own for k, own in enumerate(chosen) if k != place]
            rest = cost[others].min(axis=0) if others else np.full(cost.shape[1], np.inf)
            worth = _worth(np.minimum(cost, rest))
            order = np.lexsort((worth[:, 1], worth[:, 0]))
            new = int(order[-1])
            if tuple(worth[new]) > tuple(known) and (best is None or tuple(worth[new]) > best[0]):
                best = ((float(worth[new, 0]), float(worth[new, 1])), place, new)
        if best is None or (best[0][1] - known[1] < 1e-9 * abs(known[1]) and best[0][0] <= known[0]):
            break
        chosen[best[1]] = best[2]
    return chosen


def _worth(least: Floats) -> Floats:
    """(n, 2) rows covered, and minus their cost, of the least costs (n, n_rows)."""
    is_covered = np.isfinite(least)
    return np.stack([is_covered.sum(axis=1), -np.where(is_covered, least, 0.0).sum(axis=1)], axis=1)
