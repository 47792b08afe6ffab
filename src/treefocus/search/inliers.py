"""Inliers: the closest answer whose local outlier factor obeys a limit, with its proof.

Parts of the domain are searched best first, the one with the least bound next, each as a plain question. An answer that
obeys the limit settles its part. One that does not is a reason to say more of the part:

- With one neighbour, a point obeys if it is near enough to the training row that is nearest to it. So the part is asked
  once for every row that could be that one (`outliers`), with two linear rules: not too far from this row, and not
  farther than from the one that was nearest. Where a rule is below what it stands for, the answer shows it: then comes
  one more rule, or the part is split where the distance has its kink.
- With more neighbours, a box grows around the answer as long as no point in it obeys, and what is left of the part
  are at most two parts a column. Where the neighbours are certain, it goes on as with one.

What could be nearer than the best answer so far, and near enough to its training row, is all that stays of a part. So
what is proven of the parts is proven of the answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from treefocus import kernels
from treefocus.kernels.inputs import Batch
from treefocus.kernels.rules import LinearRule, Rules
from treefocus.model.forest import Bools, Floats
from treefocus.problem.plausibility import LocalOutlierFactor, is_within, neighbours_of
from treefocus.problem.problem import Problem
from treefocus.schema.schema import ANY_FLOAT, FLOAT32
from treefocus.search.base import Incumbent, Outcome, Run, Status
from treefocus.search.limits import SearchLimits
from treefocus.search.outliers import Extent, Indices, Outliers, SignedSum, below
from treefocus.search.parts import Subdomain, cut, halves, narrowed, put_to_parts, with_cells
from treefocus.search.proven import proven
from treefocus.search.refused import Refused
from treefocus.search.sought import Sought

STEPS, BOXES = 2_000_000, 50  # of work that a part takes besides its search, and the boxes that it counts as
MOST_PARTS = 4000  # of a row; columns of any number can be split without end
_MOST_LINES = 6  # linear rules that a part is asked with
_HALVINGS = 5  # of a column's range, to see how far a box can grow
_OUTSIDE, _INSIDE = 1.0, -4.0  # a linear rule lets pass what rounding could, or nothing but what surely obeys
_SAFE = 1e-9  # as a share: a bound on a cost that was added up here


@dataclass(frozen=True, eq=False)
class Surroundings:
    """A part of a row's domain, and what is known of the neighbours of those of its points that obey."""

    domain: Subdomain
    near: Indices  # training rows that can be among the nearest of its points
    who: tuple[int, ...] = ()  # the nearest ones; none: not known
    lines: tuple[tuple[SignedSum, Floats], ...] = ()  # sums that hold, and where a linear one is close to them
    is_narrow: bool = False

    @property
    def bound(self) -> float:
        """Proven: no answer in it is closer."""
        return self.domain.bound

    def raised(self, bound: float) -> Surroundings:
        """The same with a bound that may say more."""
        return replace(self, domain=replace(self.domain, bound=max(bound, self.bound)))


def among_the_data(
    problem: Problem, measure: LocalOutlierFactor, found: Outcome, known: Floats, limits: SearchLimits, run: Run
) -> Outcome:
    """Answers that obey the limit, of rows whose closest ones do not: `found`, of the rows of the problem alone.

    `known`: answers that obey, NaN where there is none.
    """
    rows = [_OneRow(problem.subset(np.array([i])), i, measure, found, known[i]) for i in range(len(problem))]
    with run.kept():
        while not run.is_interrupted:
            going = [row for row in rows if row.is_going(limits)]
            if not going:
                break
            if run.progress is not None:
                run.progress(len(rows) - len(going))
            for row in going:
                if run.clock is not None and limits.time_limit is not None and run.clock.spent >= limits.time_limit:
                    return _told(found, rows, limits)
                row.step(limits, run)
    return _told(found, rows, limits)


def _told(found: Outcome, rows: list[_OneRow], limits: SearchLimits) -> Outcome:
    told = [row.sought.told() for row in rows]
    points = np.stack([np.full_like(found.points[0], np.nan) if one[0] is None else one[0] for one in told])
    distance, bound = np.array([one[1] for one in told]), np.array([one[2] for one in told])
    status = np.array([*(one[3] for one in told), None], object)[:-1]
    return Outcome(points, distance, bound, status, limits=limits)


class _OneRow:
    """The search of one row."""

    def __init__(self, one: Problem, i: int, measure: LocalOutlierFactor, found: Outcome, known: Floats) -> None:
        assert measure.limit is not None
        self.one, self.measure, self.batch = one, measure, one.batch
        self.outliers = Outliers.of(neighbours_of(one), float(measure.limit), int(measure.neighbours))
        self.sought: Sought[Surroundings] = Sought(i)
        self.spent = kernels.Spent.nothing(1)
        self.n_parts = 0
        if one.is_valid(known[None])[0] and self._obeys(known):
            self.sought.offer(known, float(one.distance_to(known[None])[0]))
        bound = float(min(found.lower_bound[i], found.distance[i]))
        whole = Surroundings(Subdomain.whole(self.batch, 0, bound), np.arange(len(self.outliers.known.points)))
        self.first: Surroundings | None = whole
        self.point = found.points[i]

    def is_going(self, limits: SearchLimits) -> bool:
        """Whether there is something to look for, and work left."""
        has_work = self.spent.steps[0] < (limits.work_limit or np.inf)
        has_work &= self.spent.boxes[0] < (limits.node_limit or np.inf)
        return bool((self.first is not None or self.sought.is_open) and has_work and self.n_parts < MOST_PARTS)

    def step(self, limits: SearchLimits, run: Run) -> None:
        """Look at the part with the least bound."""
        self.n_parts += 1
        self.spent.steps[:] += STEPS
        self.spent.boxes[:] += BOXES
        if self.first is not None:  # its closest answer is known
            whole, self.first = self._narrow(self.first), None
            if whole is not None:
                self._branch(whole, self.point)
            return
        (part,) = self.sought.next(1)
        if not part.is_narrow:
            narrow = self._narrow(part)
            if narrow is None:
                return
            part = replace(narrow, is_narrow=True)
            if part.bound > self.sought.least:
                self.sought.add(part)
                return
        self._ask(part, limits, run)

    def _obeys(self, point: Floats) -> bool:
        return bool(is_within(self.measure, self.measure.score(self.one, point[None]))[0])

    def _ask(self, part: Surroundings, limits: SearchLimits, run: Run) -> None:
        """Search a part, and see whether its closest answer obeys."""
        found, is_new = self._searched(part, _OUTSIDE, limits, run)
        if found is None:
            return
        is_settled = found.status[0] in (Status.OPTIMAL, Status.INFEASIBLE)
        part = part.raised(float(found.lower_bound[0]) if not is_settled or is_new else part.bound)
        if not is_new:
            if not is_settled:
                self.sought.leave(part.bound)
        elif self._obeys(found.points[0]):
            self.sought.offer(found.points[0], float(found.distance[0]))
            if not is_settled:
                self.sought.leave(part.bound)
        elif not self._branch(part, found.points[0]):
            inside, is_new = self._searched(part, _INSIDE, limits, run)
            if inside is not None and is_new and self._obeys(inside.points[0]):
                self.sought.offer(inside.points[0], float(inside.distance[0]))
            self.sought.leave(part.bound)

    def _searched(self, part: Surroundings, room: float, limits: SearchLimits, run: Run) -> tuple[Outcome | None, bool]:
        """The closest answer in a part that is closer than the best one, and whether there is one."""
        problem = put_to_parts(self.one, np.array([0]), [part.domain])
        if not problem.has_box[0]:
            return None, False
        rules = self._rules(part, room)
        if rules:
            problem = replace(problem, batch=replace(problem.batch, rules=Rules((*problem.batch.rules.all, *rules))))
        best = self.sought.point
        point = np.full_like(self.batch.rows, np.nan) if best is None else best[None].copy()
        incumbent = Incumbent(problem, point, np.array([self.sought.distance]))
        found = proven(problem, incumbent, run, limits, self.spent)
        return found, bool(found.has_answer[0] and found.distance[0] < self.sought.distance)

    def _rules(self, part: Surroundings, room: float) -> list[LinearRule]:
        extent, known = Extent.of(part.domain, self.batch), self.outliers.known
        rules = [below(asked, extent, self.batch, known, at, room).rule for asked, at in part.lines]
        return [rule for rule in rules if len(rule.columns)]

    # ---- what stays of a part

    def _narrow(self, part: Surroundings) -> Surroundings | None:
        """What of a part is near enough to the row and to training rows; None where nothing is."""
        domain: Subdomain | None = self._within_budget(part.domain)
        near, who = part.near, part.who
        for _ in range(2):
            if domain is None:
                return None
            extent = Extent.of(domain, self.batch)
            columns = extent.apart(self.outliers.known.points[near])
            least, most = columns[0].sum(axis=1), columns[1].sum(axis=1)
            kept = self.outliers.possible(near, least, most)
            near, least, most = near[kept], least[kept], most[kept]
            fits = self.outliers.may_obey(near, least, most)
            if not fits.any() or not set(who) <= set(near[fits].tolist()):
                return None
            if not who and self.outliers.k > 1 and len(near) == self.outliers.k:
                who = tuple(near.tolist())
            if not who:
                break
            if any(self.outliers.is_never_nearest(i, near, extent) for i in who if self.outliers.k == 1):
                return None
            domain = self._near_enough(domain, who, extent)
        if domain is None:
            return None
        part = replace(part, domain=domain, near=near, who=who)
        if who:
            part = part.raised(float(self._least_cost(domain, np.array(who), near).max()))
        return part if part.bound < self.sought.limit else None

    def _within_budget(self, domain: Subdomain) -> Subdomain | None:
        """What no single column takes beyond the best answer so far."""
        norms, budget = self.one.distance.norms, self.sought.distance
        if norms is None or not np.isfinite(budget):
            return domain
        weights = norms.weights
        unit = (weights[0] + np.sqrt(weights[1]) + weights[2]) * (1 - _SAFE)
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(unit > 0, budget * (1 + _SAFE) / unit, np.inf) * self.batch.scale
        own = self.batch.rows[0]
        reach = reach + _SAFE * reach
        return narrowed(domain, own - reach, own + reach, self.batch)

    def _near_enough(self, domain: Subdomain, who: tuple[int, ...], extent: Extent) -> Subdomain | None:
        """What no single column takes too far from the neighbours."""
        batch, points, rows = self.batch, self.outliers.known.points[list(who)], np.array(who)
        least = extent.apart(points)[0]
        reaches = np.maximum(least.sum(axis=1), self.outliers.radius[rows])
        others = reaches.sum() - reaches  # of the other neighbours
        room = self.outliers.reach_of(rows) - others - least.sum(axis=1)
        size = np.abs(points) + np.abs(batch.offset / batch.scale)
        left = room[:, None] + least + _SAFE * (1e-3 * size + np.abs(room)[:, None])
        if (left < 0).any():
            return None
        with np.errstate(invalid="ignore"):
            low, high = (points - left).max(axis=0), (points + left).min(axis=0)
        missing = np.isnan(points).any(axis=0) | batch.is_category
        low, high = np.where(missing, -np.inf, low), np.where(missing, np.inf, high)
        between = narrowed(domain, low * batch.scale + batch.offset, high * batch.scale + batch.offset, batch)
        for k, column in enumerate(batch.choices.column.tolist()):
            if between is None or not batch.choices.is_category[k] or (left[:, column] >= 1).all():
                continue
            own = points[left[:, column] < 1, column]
            value = batch.choices.value[0, batch.choices.start[k] : batch.choices.start[k + 1]].copy()
            value[-1] = np.nan
            fits = np.array([(np.isnan(own) | np.isnan(v) | (own == v)).all() for v in value])
            between = with_cells(between, k, fits, batch)
        return between

    def _least_cost(self, domain: Subdomain, rows: Indices, near: Indices) -> Floats:
        """(n,) what an answer costs, at least, of which each of the rows is the nearest, or among the nearest."""
        one, outliers, own = self.one, self.outliers, self.batch.rows[0]
        norms = one.distance.norms
        if norms is None:
            return np.zeros(len(rows))
        extent = Extent.of(domain, self.batch)
        stays = np.isnan(own) | self.batch.is_category | extent.may_lack
        closest = np.where(stays, own, np.clip(own, domain.low, domain.high))
        start = float(one.distance_to(closest[None])[0]) * (1 - _SAFE)
        at = outliers.known.to_space(closest[None])[0]
        is_plain = extent.is_number & ~extent.may_lack

        def away(chosen: Indices) -> tuple[Floats, Floats]:
            points = outliers.known.points[chosen]
            least, most = extent.apart(points)
            gap = np.nan_to_num(np.abs(points - at))
            least, most = np.where(is_plain, gap, least), np.where(is_plain, gap, most)
            return least.sum(axis=1), most.sum(axis=1)

        least, _ = away(rows)
        reach = outliers.limit / outliers.density[rows] if outliers.k == 1 else np.full(len(rows), np.inf)
        step = least - reach
        if outliers.k == 1 and len(near):
            step = np.maximum(step, (least - away(near)[1].min()) / 2)
        step = np.maximum(step - _SAFE * (np.abs(least) + 1), 0.0)
        can_move = is_plain & (extent.low < extent.high)
        if not can_move.any():
            return np.where(step > 0, np.inf, start)
        weights = norms.weights[:, can_move]
        if norms.weights[[0, 2, 3]].any():
            return np.asarray(start + weights[0].min() * step * (1 - _SAFE))
        return np.asarray(np.sqrt(start**2 + weights[1].min() * step**2 / can_move.sum()) * (1 - _SAFE))

    # ---- where a part goes on

    def _branch(self, part: Surroundings, point: Floats) -> bool:
        """Replace a part by parts without an answer that breaks the limit; False where no split is known."""
        made = self._made(part, point)
        if made is None:
            return False
        for one in made:
            if one.bound < self.sought.limit:
                self.sought.add(one)
        return True

    def _made(self, part: Surroundings, point: Floats) -> list[Surroundings] | None:
        if not part.who:
            return self._by_neighbour(part, point) if self.outliers.k == 1 else self._cut(part, point)
        if len(part.lines) >= 2 * _MOST_LINES:
            return self._cut(part, point)
        asked = self._broken(part, point)
        extent = Extent.of(part.domain, self.batch)
        line = below(asked, extent, self.batch, self.outliers.known, point, _OUTSIDE)
        if len(line.rule.columns) and not line.rule.holds(self.batch.rows, point[None])[0]:
            return [replace(part, lines=(*part.lines, (asked, point))[-_MOST_LINES:])]
        split = self._split(part, extent, line.gap, line.at, asked, point)
        return split if split is not None else self._cut(part, point, can_grow=False)

    def _by_neighbour(self, part: Surroundings, point: Floats) -> list[Surroundings]:
        """The part, once for every training row that can be the nearest of a point that obeys."""
        outliers, extent = self.outliers, Extent.of(part.domain, self.batch)
        columns = extent.apart(outliers.known.points[part.near])
        least, most = columns[0].sum(axis=1), columns[1].sum(axis=1)
        rows = part.near[outliers.may_obey(part.near, least, most)]
        cost = self._least_cost(part.domain, rows, part.near)
        (rival,) = outliers.nearest(point)
        made = []
        for i, least_cost in zip(rows.tolist(), cost.tolist(), strict=True):
            lines = [(self._ball(np.array([i]), point), point)]
            if i != rival:
                lines.append((SignedSum((i, int(rival)), (1.0, -1.0), 0.0), point))
            made.append(replace(part, who=(i,), lines=tuple(lines), is_narrow=False).raised(least_cost))
        return made

    def _ball(self, who: Indices, point: Floats) -> SignedSum:
        """The sum of the reaches of the neighbours, each by its distance or by its radius, as it is at a point."""
        outliers = self.outliers
        away = outliers.known.away(outliers.known.to_space(point[None]))[0][who]
        radius = outliers.radius[who]
        by_distance = (away >= radius) | (len(who) == 1)
        return SignedSum(
            tuple(who[by_distance].tolist()), (1.0,) * int(by_distance.sum()),
            outliers.reach_of(who) - float(radius[~by_distance].sum()),
        )  # fmt: skip

    def _broken(self, part: Surroundings, point: Floats) -> SignedSum:
        """What holds in a part for points that obey, and not for this one."""
        away = self.outliers.known.away(self.outliers.known.to_space(point[None]))[0]
        rival = next((j for j in self.outliers.nearest(point).tolist() if j not in part.who), None)
        if rival is None:
            return self._ball(np.array(part.who), point)
        farthest = max(part.who, key=lambda i: away[i])
        return SignedSum((farthest, rival), (1.0, -1.0), 0.0)

    def _split(
        self, part: Surroundings, extent: Extent, gap: Floats, at: Floats, asked: SignedSum, point: Floats
    ) -> list[Surroundings] | None:
        """The part in two, so that the linear sum comes closer to what it stands for at the point."""
        batch = self.batch
        place = {int(column): k for k, column in enumerate(batch.choices.column)}
        for j in np.argsort(-gap, kind="stable").tolist():
            if not gap[j] > _SAFE * 1e-3 * (1 + abs(asked.most)):
                return None
            pieces: list[Subdomain | None] = []
            if j in place and (j in extent.categories or (extent.may_lack[j] and extent.is_number[j])):
                cells = slice(batch.choices.start[place[j]], batch.choices.start[place[j] + 1])
                is_alike = self._is_alike(asked, j, batch.choices.value[0, cells], point[j], j in extent.categories)
                pieces = [with_cells(part.domain, place[j], own, batch) for own in (is_alike, ~is_alike)]
            elif extent.is_range(j) and np.isfinite(at[j]):
                value = float(at[j] * batch.scale[j] + batch.offset[j])
                if part.domain.low[j] < value < part.domain.high[j]:
                    pieces = [*halves(part.domain, j, value, batch)]
            left = [one for one in pieces if one is not None]
            if len(left) == 2 or (left and not _has(left[0], part.domain)):
                return [replace(part, domain=one, is_narrow=False) for one in left]
        return None

    def _is_alike(self, asked: SignedSum, j: int, values: Floats, own: float, is_category: bool) -> Bools:
        """(n_cells,) the cells of a column of choices in which the sum is what it is at a value."""
        is_missing: Bools = np.arange(len(values)) == len(values) - 1
        if not is_category:
            return is_missing if np.isnan(own) else ~is_missing
        rows, signs = self.outliers.known.points[list(asked.rows), j], np.array(asked.signs)
        cells = np.where(is_missing, np.nan, values)
        with np.errstate(invalid="ignore"):
            total = (np.abs(cells[:, None] - rows) > 0) @ signs
            here = float((np.abs(own - rows) > 0) @ signs)
        return np.asarray(total == here, bool)

    def _cut(self, part: Surroundings, point: Floats, *, can_grow: bool = True) -> list[Surroundings] | None:
        """What is left of a part without a box around a point in which no point obeys."""
        refused = self._refused(part, point, can_grow)
        if refused is None:
            return None
        bare = replace(part, lines=part.lines[:2] if part.who else (), is_narrow=False)
        return [replace(bare, domain=one) for _, one in cut(part.domain, self.batch, None, point, refused)]

    def _refused(self, part: Surroundings, point: Floats, can_grow: bool) -> Refused | None:
        """A box around a point that breaks the limit, in which every point does; None where it is the point alone."""
        growing = _Expanding(self.outliers, part, self.batch, point)
        if not can_grow or not growing.breaks():
            return growing.refused() if self._is_coarse(part.domain) else None
        is_changed = self.batch.changes(point[None])[0] != 0
        for j in np.argsort(is_changed, kind="stable").tolist():
            growing.grow(j)
        return growing.refused()

    def _is_coarse(self, domain: Subdomain) -> bool:
        """Whether to leave a single point out leads on: no column holds numbers that are as close as can be."""
        is_fine = (self.batch.grain == ANY_FLOAT) | (self.batch.grain == FLOAT32)
        return not (is_fine & ~self.batch.is_category & (domain.low < domain.high)).any()


def _has(one: Subdomain, other: Subdomain) -> bool:
    """Whether a part is as large as the one that it is of."""
    is_same = (one.low == other.low) & (one.high == other.high) | np.isnan(other.low)
    return bool(is_same.all() and (one.is_open == other.is_open).all())


class _Expanding:
    """A box in a part, as large as can be seen, of which no point obeys the limit."""

    def __init__(self, outliers: Outliers, part: Surroundings, batch: Batch, point: Floats) -> None:
        self.outliers, self.part, self.batch, self.near = outliers, part, batch, part.near
        self.low, self.high = point.copy(), point.copy()
        choices = batch.choices
        self.place = {int(column): k for k, column in enumerate(choices.column)}
        self.is_open = np.zeros_like(part.domain.is_open)
        for k, column in enumerate(choices.column.tolist()):
            cells = slice(choices.start[k], choices.start[k + 1])
            is_missing = np.arange(cells.stop - cells.start) == cells.stop - cells.start - 1
            if np.isnan(point[column]):
                self.is_open[cells] = is_missing
            else:
                own = choices.value[0, cells] == point[column] if choices.is_category[k] else True
                self.is_open[cells] = ~is_missing & own
        self.least, self.most = self._extent().apart(outliers.known.points[self.near])

    def _extent(self) -> Extent:
        return Extent.of(replace(self.part.domain, low=self.low, high=self.high, is_open=self.is_open), self.batch)

    def breaks(self) -> bool:
        """Whether every point of the box breaks the limit."""
        least, most = self.least.sum(axis=1), self.most.sum(axis=1)
        kept = self.outliers.possible(self.near, least, most)
        return not self.outliers.may_obey(self.near[kept], least[kept], most[kept]).any()

    def grow(self, j: int) -> None:
        """A column, as far as it goes: one category after another, or the ends of its numbers."""
        domain = self.part.domain
        if self.batch.is_category[j]:
            k = self.place[j]
            cells = slice(self.batch.choices.start[k], self.batch.choices.start[k + 1])
            for cell in np.flatnonzero(domain.is_open[cells] & ~self.is_open[cells]).tolist():
                self.is_open[cells.start + cell] = True
                if not self._fits(j):
                    self.is_open[cells.start + cell] = False
            return
        if np.isnan(self.low[j]):
            return
        for ends, far in ((self.low, domain.low[j]), (self.high, domain.high[j])):
            near, whole = float(ends[j]), far
            for _ in range(_HALVINGS):
                if far == near:
                    break
                ends[j] = far
                if self._fits(j):
                    near = far
                    if far == whole:
                        break
                    far = 0.5 * (near + whole)
                else:
                    whole, far = far, 0.5 * (near + far)
                    if not np.isfinite(far):
                        break
            ends[j] = near

    def _fits(self, j: int) -> bool:
        """Whether every point breaks the limit with the column as it is now; if not, its distances stay as before."""
        before = self.least[:, j].copy(), self.most[:, j].copy()
        least, most = self._extent().apart(self.outliers.known.points[self.near])
        self.least[:, j], self.most[:, j] = least[:, j], most[:, j]
        if self.breaks():
            return True
        self.least[:, j], self.most[:, j] = before
        return False

    def refused(self) -> Refused:
        """The box."""
        choices = self.batch.choices
        categories = {
            int(column): self.is_open[choices.start[k] : choices.start[k + 1]]
            for k, column in enumerate(choices.column)
            if choices.is_category[k]
        }
        return Refused(self.low, self.high, categories)
