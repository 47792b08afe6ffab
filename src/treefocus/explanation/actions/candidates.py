"""Actions worth looking at: from every answer, from what answers have in common, and from around good ones.

An answer that is proven for one person is an action for all: the features that grow to at least their values, those
that shrink to at most theirs, or by the same steps. Answers that change the same features differ in how far; quantiles
of their values make actions that are enough for a half, three quarters, all of these people. Their regions tell how far
a value may go beyond without harm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from treefocus.explanation.actions.steps import AT_LEAST, AT_MOST, BY, SET, Action, ActionStep
from treefocus.explanation.answers import Answers
from treefocus.explanation.region import region_of
from treefocus.explanation.rounding import difference, short_before
from treefocus.model.categories import are_categories
from treefocus.model.forest import Floats
from treefocus.schema.schema import INTEGER
from treefocus.tables.labels import label_of

Lever = tuple[int, str, float]  # a column, up, down or a category, and which
UP, DOWN, TO = "up", "down", "to"
LEVELS = (0.25, 0.5, 0.75, 0.9, 1.0)  # of the people who change the same, how many a value is enough for
_MOST_SETS, _MOST_UNIONS, _MOST_ANSWERS, _MOST_REGIONS = 40, 8, 150, 25
_MIXED, _POOL = 250, 24  # actions whose levers go unequally far, and the levers that they are of
_QUARTERS = np.array([0.0, 0.25, 0.5, 0.75, 1.0])


@dataclass(frozen=True, eq=False)
class Levers:
    """Of each lever that some answer moves, the values that it is moved to, and by how much, over all answers."""

    answers: Answers
    values: dict[Lever, Floats]
    steps: dict[Lever, Floats]
    sets: Counter[frozenset[Lever]]  # which levers are moved together, and how often
    counts: Counter[Lever]  # how many answers move each

    @classmethod
    def of(cls, answers: Answers, rows: Iterable[int]) -> Levers:
        """Of these answered rows."""
        table, features = answers.table, answers.schema.features
        is_category = are_categories(table.labels, table.values.shape[1])
        values: dict[Lever, list[float]] = {}
        steps: dict[Lever, list[float]] = {}
        sets: Counter[frozenset[Lever]] = Counter()
        for i in rows:
            own = []
            for j in np.flatnonzero(answers.is_moved[i]).tolist():
                before, after = float(table.values[i, j]), float(answers.shown[i, j])
                if is_category[j] or np.isnan(before) or np.isnan(after):
                    lever = (j, TO, after)
                else:
                    lever = (j, UP if after > before else DOWN, 0.0)
                    told = short_before(before, after, features[j].decimals)
                    steps.setdefault(lever, []).append(difference(told, after))
                values.setdefault(lever, []).append(after)
                own.append(lever)
            if own and not any(np.isnan(lever[2]) for lever in own):
                sets[frozenset(own)] += 1
        found = {lever: np.array(own) for lever, own in values.items()}
        counts = Counter({lever: len(own) for lever, own in found.items()})
        return cls(answers, found, {lever: np.array(own) for lever, own in steps.items()}, sets, counts)

    def with_idle(self) -> Levers:
        """The same with the numbers that no smallest change moves, though they could be: to quarters of their range."""
        values, steps = dict(self.values), dict(self.steps)
        is_category = are_categories(self.answers.table.labels, self.answers.table.values.shape[1])
        for group in self.answers.groups:
            batch = group.problem.batch
            with np.errstate(invalid="ignore"):
                grows, shrinks = np.asarray(batch.high > batch.rows), np.asarray(batch.low < batch.rows)
            can = {UP: np.asarray(grows.any(axis=0)), DOWN: np.asarray(shrinks.any(axis=0))}
            low, high = np.nanmin(batch.low, axis=0), np.nanmax(batch.high, axis=0)
            for j in np.flatnonzero(~is_category & np.isfinite(high - low)).tolist():
                quarters = batch.scale[j] * _QUARTERS  # of what a change of 1 is, the range of the data unless said
                for way, sign, end in ((UP, 1.0, high[j]), (DOWN, -1.0, low[j])):
                    if can[way][j] and (j, way, 0.0) not in values:
                        to = np.clip(end - sign * quarters, low[j], high[j])
                        is_whole = batch.grain[j] == INTEGER
                        values[j, way, 0.0] = np.rint(to) if is_whole else to
                        steps[j, way, 0.0] = sign * (np.ceil(quarters) if is_whole else quarters)[1:]
        return Levers(self.answers, values, steps, self.sets, self.counts)

    def step(self, lever: Lever, level: float, *, is_by: bool = False) -> ActionStep:
        """What is enough for this share of those who move the lever."""
        column, way, code = lever
        name = self.answers.schema.features[column].name
        if way == TO:
            labels = self.answers.table.labels_of(column)
            return ActionStep(column, SET, code, name, None if labels is None else label_of(code, labels))
        known = (self.steps if is_by else self.values)[lever]
        value = float(
            np.quantile(known, level, method="higher") if way == UP else np.quantile(known, 1 - level, method="lower")
        )
        return ActionStep(column, BY if is_by else AT_LEAST if way == UP else AT_MOST, value, name)

    def action(self, levers: Iterable[Lever], level: float, *, is_by: bool = False) -> Action:
        """All of these levers, each far enough for this share of people."""
        return Action.of([self.step(lever, level, is_by=is_by) for lever in levers])

    def every(self) -> list[Lever]:
        """Those that most people move first."""
        known = [lever for lever in self.values if not np.isnan(lever[2])]
        return sorted(known, key=lambda lever: (-self.counts[lever], lever))

    def most_moved(self) -> list[Lever]:
        """The same, one a column."""
        first: dict[int, Lever] = {}
        for lever in self.every():
            first.setdefault(lever[0], lever)
        return list(first.values())


def candidates(levers: Levers, rows: Sequence[int]) -> list[Action]:
    """The first actions to look at; rows: answered ones, from which single answers are taken."""
    moved = levers.most_moved()
    sets = [own for own, _ in levers.sets.most_common(_MOST_SETS)]
    sets += [frozenset(moved[:size]) for size in range(1, min(len(moved), _MOST_UNIONS) + 1)]
    sets.append(frozenset(moved))
    found = [levers.action(own, level, is_by=is_by) for own in sets for level in LEVELS for is_by in (False, True)]
    found += [_answer(levers.answers, i, is_by) for i in rows[:_MOST_ANSWERS] for is_by in (False, True)]
    found += [_deep_in_region(levers.answers, i) for i in rows[:_MOST_REGIONS]]
    found += _mixed(levers.with_idle())
    found += [longer(action, times) for action in found if _is_by(action) for times in (1.5, 2.0)]
    return list(dict.fromkeys(action for action in found if action.steps))


def _mixed(levers: Levers) -> list[Action]:
    """A few levers at a time, one this far and another that far; the same at every call."""
    draw, pool, found = np.random.default_rng(0), levers.every()[:_POOL], []
    for _ in range(_MIXED if pool else 0):
        action, is_by = Action(()), bool(draw.integers(0, 2))
        for k in draw.choice(len(pool), min(len(pool), int(draw.integers(1, 6))), replace=False).tolist():
            action = action.having(levers.step(pool[k], float(draw.choice(LEVELS)), is_by=is_by))
        found.append(action)
    return found


def _is_by(action: Action) -> bool:
    return any(step.kind == BY for step in action.steps)


def longer(action: Action, times: float) -> Action:
    """Steps by so much, several times as long, in whole numbers where they were such."""
    steps = []
    for step in action.steps:
        long = step.value * times
        value = float(np.rint(long)) if step.value.is_integer() else float(f"{long:.6g}")
        steps.append(replace(step, value=value) if step.kind == BY else step)
    return Action.of(steps)


def _answer(answers: Answers, i: int, is_by: bool) -> Action:
    """One answer as an action."""
    own = Levers.of(answers, [i])
    return own.action([lever for lever in own.values if not np.isnan(lever[2])], 1.0, is_by=is_by)


def _deep_in_region(answers: Answers, i: int) -> Action:
    """One answer, each number as far from where it was as its region goes."""
    action = _answer(answers, i, False)
    group, place = answers.asked_of(i)
    problem = group.problem.subset(np.array([place]))
    changed = [step.column for step in action.steps]
    region = region_of(problem, answers.points[i], changed, answers.schema, answers.table.labels)
    ends = {one.feature: one for one in region.leeways}
    for step in action.steps:
        low, high = ends[step.feature].shown if step.feature in ends else (np.nan, np.nan)
        end = high if step.kind == AT_LEAST else low
        if step.kind != SET and np.isfinite(end):
            action = action.having(ActionStep(step.column, step.kind, float(end), step.feature))
    return action
