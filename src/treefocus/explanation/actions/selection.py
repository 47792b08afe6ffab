"""Which actions are looked at, what they do for the people by whom actions are chosen, and the choice among them.

First come candidates, then what lies around the choice among these, as long as that makes it better. In the end one
action of the choice at a time is exchanged for the best of all that lie one or two small changes away from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from treefocus.explanation.actions.affordable import is_affordable, most_affordable, nearly_as_good, proven, worth
from treefocus.explanation.actions.candidates import Levers, candidates
from treefocus.explanation.actions.choice import Choice, fewest, most_covered
from treefocus.explanation.actions.marks import Marks
from treefocus.explanation.actions.neighbours import all_around, neighbours, plainer
from treefocus.explanation.actions.pairs import FIFTIETHS, Applicants
from treefocus.explanation.actions.steps import Action
from treefocus.model.forest import Floats

_PATIENCE = 4  # rounds of looking around actions, of which none has led to a better choice
_NEARLY = 8  # actions of other features, besides those chosen, around which is looked as well
_MOST_LOOKED = 6_000  # actions, after which no further ones are looked at
_MOST_PAIRS = 2_000_000  # of people and actions, after which nothing is exchanged any more
_STARTS = 4  # other single actions from which exchanges set out
_KEPT = 20  # of the actions around one, to choose from
_ROUNDING = 0.01  # of what all pay, that numbers of fewer digits may cost more
_RECHECKS = 5  # choices that the model itself may overrule


class Selection:
    """The actions that were looked at and kept, and what each costs whom."""

    def __init__(self, people: Applicants, limit: float, mean: float, at_most: int, needed: int | None) -> None:
        """limit, mean: what an action may cost somebody, and on average; needed: how many to help by as few as can be.

        With `needed`, `at_most` is not looked at.
        """
        self.people, self.limit, self.mean, self.at_most, self.needed = people, limit, mean, at_most, needed
        answered = [i for i in people.rows.tolist() if people.answers.status[i].has_answer]
        moved = Levers.of(people.answers, answered)
        first = candidates(moved, answered)
        self.levers = moved.with_idle()
        self.actions: list[Action] = []
        self.cost = np.empty((0, len(people)))
        self._seen = set(first)
        self._add(first)

    def run(self) -> Choice:
        """The best choice, after looking around the chosen actions, and confirmed by the model."""
        choice = self._plainer(self._exchanged(self._looked_around()))
        for _ in range(_RECHECKS):
            if self._confirmed(choice):
                better = self._proven(choice)
                return better if self._confirmed(better) else replace(choice, bound=better.bound)
            choice = self._choose()
        return Choice((), 0, choice.bound)

    def _proven(self, choice: Choice) -> Choice:
        """The choice with a bound as good as can be proven, or a better one."""
        if np.isfinite(self.mean) and self.needed is None and self.at_most > 1:
            return proven(self.cost, choice, self.at_most, self.mean)
        return choice

    def curve(self, most: int) -> tuple[tuple[int, float], ...]:
        """The coverage of one action, of two, and so on."""
        n = max(len(self.people), 1)
        return tuple((k, self._most(k).covered / n) for k in range(1, most + 1))

    def _looked_around(self) -> Choice:
        """The choice after a few rounds of looking around it, and around what would do nearly as well."""
        choice, stale = self._choose(), 0
        while stale < _PATIENCE:
            around = [*choice.chosen, *self._nearly(choice.chosen, _NEARLY)]
            new = self._unseen([other for k in around for other in neighbours(self.actions[k], self.levers)])
            if not new or len(self._seen) > _MOST_LOOKED:
                break
            self._add(new)
            better = self._choose()
            stale = 0 if self._worth(better) > self._worth(choice) else stale + 1
            choice = max(better, choice, key=self._worth)
        return choice

    def _exchanged(self, choice: Choice) -> Choice:
        """The choice after its actions, one at a time, have been exchanged for the best of all around them."""
        if not choice.chosen:
            return choice
        left = _MOST_PAIRS // (len(self.people) * (len(FIFTIETHS) if self.people.is_gradual else 1))
        starts = [choice.chosen]
        if len(choice.chosen) == 1:
            starts += [(k,) for k in self._nearly(choice.chosen, _STARTS)]
        marks = Marks.of(self.people)
        for chosen in starts:
            known, better = (0.0, -np.inf), self._helps(chosen)
            while better > known and left > 0:
                known = better
                for place in range(len(chosen)):
                    around = self._unseen(all_around(self.actions[chosen[place]], self.levers, marks))
                    left -= len(around)
                    others = (*chosen[:place], *chosen[place + 1 :])
                    new = self._add(around, beside=others)
                    chosen = max([chosen, *((*others, k) for k in new)], key=self._helps)
                better = self._helps(chosen)
        return max(self._choose(), choice, key=self._worth)

    def _plainer(self, choice: Choice) -> Choice:
        """The choice without steps that nobody needs, and in fewer digits where these cost next to nothing."""
        chosen = list(choice.chosen)
        helped, paid = self._helps(chosen) if chosen else (0.0, 0.0)
        for place in range(len(chosen)):
            for column in [step.column for step in self.actions[chosen[place]].steps]:
                action = self.actions[chosen[place]]
                for other in plainer(action, column):
                    self.actions.append(other)
                    self.cost = np.concatenate([self.cost, self._costs([other])])
                    tried = [*chosen[:place], len(self.actions) - 1, *chosen[place + 1 :]]
                    if (self._helps(tried)[0], self._helps(tried)[1]) >= (helped, paid * (1 + _ROUNDING)):
                        chosen = tried
                        break
        return Choice(tuple(chosen), choice.covered, choice.bound)

    def _unseen(self, actions: Sequence[Action]) -> list[Action]:
        new = [action for action in dict.fromkeys(actions) if action not in self._seen]
        self._seen.update(new)
        return new

    def _nearly(self, chosen: Sequence[int], n: int) -> list[int]:
        return nearly_as_good(self.cost, chosen, self.mean, [action.moved for action in self.actions], n)

    def _most(self, at_most: int) -> Choice:
        if np.isfinite(self.mean):
            return most_affordable(self.cost, at_most, self.mean)
        return most_covered(self.cost, at_most)

    def _choose(self) -> Choice:
        return self._most(self.at_most) if self.needed is None else fewest(self.cost, self.needed, self._most)

    def _worth(self, choice: Choice) -> tuple[int, int, float]:
        """What makes one choice better than another: fewer actions if that is asked, more people, less cost."""
        if not choice.chosen:
            return 0, 0, 0.0
        least = self.cost[list(choice.chosen)].min(axis=0)
        size = 0 if self.needed is None else -len(choice.chosen)
        return size, choice.covered, -float(least[is_affordable(least, self.mean)].sum())

    def _helps(self, chosen: Sequence[int]) -> tuple[float, float]:
        """How many people these help, and minus what that costs."""
        helped, paid = worth(self.cost[list(chosen)].min(axis=0)[None], self.mean)[0].tolist()
        return helped, paid

    def _costs(self, actions: list[Action]) -> Floats:
        cost = self.people.costs(actions)
        cost[cost > self.limit] = np.inf
        return cost

    def _add(self, actions: list[Action], beside: Sequence[int] | None = None) -> range:
        """Keep the actions that help anybody, beside others only the best; their numbers."""
        cost = self._costs(actions)
        kept = np.flatnonzero(np.isfinite(cost).any(axis=1))
        if beside is not None:
            values = worth(np.minimum(cost[kept], self.cost[list(beside)].min(axis=0, initial=np.inf)), self.mean)
            kept = kept[np.lexsort((values[:, 1], values[:, 0]))[::-1][:_KEPT]]
        first = len(self.actions)
        self.actions += [actions[k] for k in kept.tolist()]
        self.cost = np.concatenate([self.cost, cost[kept]])
        return range(first, len(self.actions))

    def _confirmed(self, choice: Choice) -> bool:
        """Whether the model itself says the same of every pair; where it does not, the pair is struck out."""
        is_same = True
        for k in choice.chosen:
            own = self.people.effect(self.actions[k], is_confirmed=True).cost
            wrong = np.isfinite(self.cost[k]) & ~np.isfinite(own)
            self.cost[k, wrong] = np.inf
            is_same &= not wrong.any()
        return is_same
