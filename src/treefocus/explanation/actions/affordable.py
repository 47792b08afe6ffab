"""Which few of many actions where those helped may cost so much on average, and whom such a plan helps.

Each person is asked for their cheapest action. Whom that is too dear for the mean is left out, the dearest first: so
the helped are the most of the cheapest people whose mean keeps within the limit. Choices are sought by exchanging one
action at a time; of single actions all are tried, and what all actions together could do bounds every choice, as does
what further ones could add to those chosen.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from treefocus.explanation.actions.choice import Choice, most_covered
from treefocus.model.forest import Bools, Floats, Ints

_STARTS = (0.5, 1.0, 1.5, 2.0, 4.0)  # limits for each person, in means, from whose choices the search sets out
_ROUNDS = 50  # of exchanges
_PRICES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)  # of a mean, in rows
_MOST_LOOKED = 2e9  # rows times actions, at which the proof of a choice looks before it gives up
_SLACK = 1e-6  # of a bound, which rounding may take
_NOISE = 1e-9  # of a sum of costs, which rounding may cost


def is_affordable(least: Floats, mean_cost: float) -> Bools:
    """(n_rows,) who is helped, of the costs of the cheapest actions (n_rows,), infinity where none helps."""
    order = np.argsort(least, kind="stable")
    kept = np.zeros(len(least), bool)
    kept[order[: int(_n_affordable(least[None], mean_cost)[0])]] = True
    return kept


def most_affordable(cost: Floats, at_most: int, mean_cost: float) -> Choice:
    """At most so many actions that help as many rows as possible at a mean cost of at most this.

    cost: (n_actions, n_rows), infinity where an action does not help.
    """
    if not len(cost):
        return Choice((), 0, 0)
    best = [_best(worth(cost, mean_cost))]
    if at_most > 1:
        starts = [best, *(_start(cost, at_most, share * mean_cost) for share in _STARTS)]
        improved = [own for start in starts if (own := _exchanged(cost, start, at_most, mean_cost))]
        best = max(improved, key=lambda own: tuple(worth(cost[own].min(axis=0)[None], mean_cost)[0]))
    covered = int(_n_affordable(cost[best].min(axis=0)[None], mean_cost)[0])
    if not covered:
        return Choice((), 0, 0)
    bound = covered if at_most == 1 else int(_n_affordable(cost.min(axis=0)[None], mean_cost)[0])
    if bound > covered:
        bound = max(min(bound, _most_of(cost, best, at_most, mean_cost)), covered)
    return Choice(tuple(best), covered, bound)


def _most_of(cost: Floats, chosen: Sequence[int], at_most: int, mean_cost: float) -> int:
    """How many rows any choice of so many actions helps at most.

    At any price of what is left below the mean, or paid above it, a row that is helped is worth 1 + price * (mean -
    its cost), and those of a choice within the mean are worth their number at least. What all rows are worth by their
    best action, or nothing, grows less and less with further actions. So no choice is worth more than any set of
    actions and what as many further ones add to it, each alone.
    """
    best = float(cost.shape[1])
    for price in _PRICES:
        gain = _gains(cost, mean_cost, price)
        own = gain[list(chosen)].max(axis=0)
        for _ in range(at_most + 1):
            further = np.maximum(gain - own, 0.0).sum(axis=1)
            best = min(best, float(own.sum() + np.sort(further)[-at_most:].sum()))
            own = np.maximum(own, gain[int(np.argmax(further))])
    return int(np.floor(best + _SLACK))


def _gains(cost: Floats, mean_cost: float, price: float) -> Floats:
    """(n_actions, n_rows) what each row is worth by each action, at a price of what is left below the mean."""
    helps, mean = np.isfinite(cost), mean_cost * (1 + _NOISE)
    return np.where(helps, np.maximum(1.0 + price * (1.0 - np.where(helps, cost, 0.0) / mean), 0.0), 0.0)


def proven(cost: Floats, choice: Choice, at_most: int, mean_cost: float) -> Choice:
    """The choice with the bound that a search through all choices proves, or a better one that it comes upon.

    It sets out from the price at which the bound is least, and leaves out whatever cannot be worth a row more. Where it
    would take too long, the bound stays as it was.
    """
    if choice.covered >= choice.bound or not choice.chosen:
        return choice
    at_most = min(at_most, len(cost))
    gains = (_gains(cost, mean_cost, price) for price in _PRICES)
    gain = min(gains, key=lambda own: np.sort(own.sum(axis=1))[-at_most:].sum())
    search = _Proof(cost, gain, mean_cost, choice)
    is_through = search.look((), np.zeros(cost.shape[1]), np.arange(len(cost), dtype=np.int32), at_most)
    return replace(search.best, bound=search.best.covered) if is_through else search.best


class _Proof:
    """A search for a choice that helps more rows than the best one known; gain: what a row is worth by each action."""

    def __init__(self, cost: Floats, gain: Floats, mean_cost: float, best: Choice) -> None:
        self.best, self._cost, self._gain, self._mean, self._left = best, cost, gain, mean_cost, _MOST_LOOKED

    def look(self, chosen: tuple[int, ...], own: Floats, others: Ints, n_more: int) -> bool:
        """Whether all choices of these and at most so many of the others were looked at, or could be left out."""
        self._left -= others.size * len(own)
        if self._left < 0 or not others.size:
            return self._left >= 0
        further = np.maximum(self._gain[others] - own, 0.0).sum(axis=1)
        order = np.argsort(-further, kind="stable")
        others, further = others[order], further[order]
        reach = own.sum() + np.convolve(further, np.ones(n_more))[n_more - 1 :]  # with the next ones in this order
        is_open = reach >= self.best.covered + 1 - _SLACK
        if n_more == 1:
            return self._hear(chosen, others[is_open])
        for place in np.flatnonzero(is_open).tolist():
            if reach[place] < self.best.covered + 1 - _SLACK:  # something better was found
                break
            k = int(others[place])
            if not self.look((*chosen, k), np.maximum(own, self._gain[k]), others[place + 1 :], n_more - 1):
                return False
        return True

    def _hear(self, chosen: tuple[int, ...], last: Ints) -> bool:
        """Choices that are complete, by what they really cost."""
        if last.size:
            kept = self._cost[list(chosen)].min(axis=0, initial=np.inf)
            counts = _n_affordable(np.minimum(self._cost[last], kept), self._mean)
            first = int(np.argmax(counts))
            if counts[first] > self.best.covered:
                covered = int(counts[first])
                self.best = Choice((*chosen, int(last[first])), covered, max(self.best.bound, covered))
        return True


def nearly_as_good(
    cost: Floats, chosen: Sequence[int], mean_cost: float, kinds: Sequence[Hashable], n: int
) -> list[int]:
    """Actions that would do nearly as well in the place of one of those chosen, the best first, one of each kind.

    kinds: what each action is of; those of a kind that was chosen are left out.
    """
    found: list[tuple[float, float, int]] = []
    for place in range(len(chosen)):
        rest = cost[[k for other, k in enumerate(chosen) if other != place]].min(axis=0, initial=np.inf)
        values = worth(np.minimum(cost, rest), mean_cost)
        found += [(float(helped), float(paid), k) for k, (helped, paid) in enumerate(values)]
    best: dict[Hashable, int] = {}
    known = {kinds[k] for k in chosen}
    for _, _, k in sorted(found, reverse=True):
        if kinds[k] not in known:
            best.setdefault(kinds[k], k)
    return list(best.values())[:n]


def _start(cost: Floats, at_most: int, limit: float) -> list[int]:
    """A choice where nobody is asked for more than a limit."""
    return list(most_covered(np.where(cost <= limit, cost, np.inf), at_most).chosen)


def _exchanged(cost: Floats, chosen: list[int], at_most: int, mean_cost: float) -> list[int]:
    """One action added, or exchanged for another, at a time, as long as more rows are helped, or as many for less."""
    chosen = list(chosen)
    known = tuple(worth(cost[chosen].min(axis=0)[None], mean_cost)[0]) if chosen else (0.0, 0.0)
    for _ in range(_ROUNDS):
        others = [chosen] if len(chosen) < at_most else []
        others += [chosen[:k] + chosen[k + 1 :] for k in range(len(chosen))]
        found = []
        for rest in others:
            kept = cost[rest].min(axis=0) if rest else np.full(cost.shape[1], np.inf)
            values = worth(np.minimum(cost, kept), mean_cost)
            new = _best(values)
            found.append((tuple(values[new]), [*rest, new]))
        better, choice = max(found, key=lambda own: own[0])
        if better[0] <= known[0] and better[1] - known[1] <= _NOISE * abs(known[1]):
            break
        known, chosen = better, choice
    return chosen


def _best(values: Floats) -> int:
    return int(np.lexsort((values[:, 1], values[:, 0]))[-1])


def worth(least: Floats, mean_cost: float) -> Floats:
    """(n, 2) how many are helped, and minus what that costs, of the least costs (n, n_rows)."""
    counts = _n_affordable(least, mean_cost)
    totals = np.concatenate([np.zeros((len(least), 1)), np.cumsum(np.sort(least, axis=1), axis=1)], axis=1)
    return np.stack([counts, -totals[np.arange(len(least)), counts]], axis=1)


def _n_affordable(least: Floats, mean_cost: float) -> np.ndarray:
    """(n,) how many of the cheapest rows keep within the mean: the means of more and more of them only grow."""
    totals = np.cumsum(np.sort(least, axis=1), axis=1)
    is_within = totals <= mean_cost * np.arange(1, least.shape[1] + 1) * (1 + _NOISE)
    return np.asarray((is_within & np.isfinite(totals)).sum(axis=1), np.intp)
