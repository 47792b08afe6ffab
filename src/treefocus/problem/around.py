"""What the model says around a point: whether some other point of a box gets another outcome than the wanted one.

That is a question of the usual kind, put the other way round: the rows are the points, the domain is the box, and what
is looked for is any outcome but the wanted one. Of several models that have to agree each is asked alone, for a point
on which one of them says no is no answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from treefocus import kernels
from treefocus.kernels.inputs import Batch, Choices, Norms
from treefocus.kernels.rules import Rules
from treefocus.model.forest import Bools, Floats, Forest, Ints
from treefocus.model.members import EVERY_CLASS, Member
from treefocus.model.variants import variant

ANY_OTHER = -1


@dataclass(frozen=True, eq=False)
class Decider:
    """A model that says yes or no to a point: its forest, without missing values as a choice, and the classes."""

    forest: Forest
    member: Member | None = None  # of a joint forest, which it is

    @property
    def says_nothing_of_classes(self) -> bool:
        """Whether it agrees with every class, and only asks for points that are like the data."""
        return self.member is not None and EVERY_CLASS in self.member.to_class

    def wanted(self, batch: Batch) -> tuple[Ints, Ints]:
        """(n_rows,) the class of its own to reach, `ANY_OTHER` for any but the second, which is to be left."""
        if self.member is None:
            return batch.target, batch.origin
        own = np.array([self.member.to_class.index(int(one)) for one in batch.target], np.int32)
        return own, own


_deciders: WeakKeyDictionary[Forest, tuple[Decider, ...]] = WeakKeyDictionary()


def deciders(forest: Forest) -> tuple[Decider, ...]:
    """The models whose yes it takes, one or several; an isolation forest among them is asked about answers only."""
    if forest not in _deciders:
        if not forest.members:
            made: tuple[Decider, ...] = (Decider(variant(forest, missing_is_choice=None)),)
        else:
            every = tuple(Decider(alone, one) for alone, one in zip(_apart(forest), forest.members, strict=True))
            made = tuple(one for one in every if not one.says_nothing_of_classes)
        _deciders[forest] = made
    return _deciders[forest]


def _apart(forest: Forest) -> list[Forest]:
    """The members of a joint forest as forests of their own."""
    found, tree, score = [], 0, 0
    for one in forest.members:
        nodes = slice(forest.tree_start[tree], forest.tree_start[tree + one.n_trees])
        is_own = (forest.tree_of_leaf >= tree) & (forest.tree_of_leaf < tree + one.n_trees)
        first = int(nodes.start)
        is_inner = forest.left[nodes] >= 0
        categories = forest.categories
        if categories is not None:
            categories = categories.reordered(np.arange(nodes.start, nodes.stop))
        found.append(
            Forest(
                feature=forest.feature[nodes],
                threshold=forest.threshold[nodes],
                left=np.where(is_inner, forest.left[nodes] - first, -1),
                right=np.where(is_inner, forest.right[nodes] - first, -1),
                default_left=forest.default_left[nodes],
                tree_start=forest.tree_start[tree : tree + one.n_trees + 1] - first,
                leaf_value=forest.leaf_value[is_own][:, : one.n_outputs],
                base_score=forest.base_score[score : score + one.n_scores],
                classes=np.arange(len(one.to_class)),
                n_features=forest.n_features,
                divisor=one.divisor,
                decision=one.decision,  # type: ignore[arg-type]
                cut=one.cut,
                cut_high=one.cut_high,
                favoured=one.favoured,
                link=one.link,  # type: ignore[arg-type]
                input_dtype=forest.input_dtype,
                score_dtype=one.score_dtype,  # type: ignore[arg-type]
                takes_missing=forest.takes_missing,
                reads=forest.reads,
                refuses_missing=forest.refuses_missing,
                categories=categories,
                voices=one.voices,
                source=one.source,
            )
        )
        tree, score = tree + one.n_trees, score + one.n_scores
    return found


@dataclass(frozen=True, eq=False)
class Around:
    """What was found in the boxes around points."""

    is_clean: Bools  # (n_points,) proven: the whole box gets the wanted outcome
    bad: Floats  # (n_points, n_features) a point of the box that does not, NaN where none was found
    by: NDArray[np.intp]  # (n_points,) which of the deciders says so, -1 where none was found
    steps: NDArray[np.int64]  # (n_points,) of work


def looked_around(
    forest: Forest,
    batch: Batch,
    points: Floats,
    ends: tuple[Floats, Floats],
    *,
    steps: int = 0,
    seconds: float = np.inf,
    n_jobs: int | None = None,
) -> Around:
    """What the forest's models say in the box of each point, which is an answer to the batch's row itself."""
    n_rows = len(points)
    bad, by = np.full_like(points, np.nan), np.full(n_rows, -1, np.intp)
    is_clean, spent = np.ones(n_rows, bool), np.zeros(n_rows, np.int64)
    has_room = ((ends[0] < points) | (ends[1] > points)).any(axis=1)
    left = np.flatnonzero(has_room)
    for number, decider in enumerate(deciders(forest)):
        if not left.size:
            break
        part = opposite(decider, batch, left, points, ends)
        found = kernels.exact(
            decider.forest, Norms(np.eye(4, 1) * np.ones(forest.n_features)), part,
            np.full((left.size, forest.n_features), np.nan), np.full(left.size, np.inf),
            seconds=seconds, step_limit=steps, n_jobs=n_jobs,
        )  # fmt: skip
        spent[left] += found.spent.steps
        has_point = np.isfinite(found.distance)
        has_point[has_point] &= part.subset(np.flatnonzero(has_point)).is_answer(
            kernels.predict(decider.forest, found.points[has_point]), found.points[has_point]
        )
        bad[left[has_point]], by[left[has_point]] = found.points[has_point], number
        is_clean[left] &= (found.proof == kernels.INFEASIBLE) & ~has_point
        left = left[~has_point]
    return Around(is_clean, bad, by, spent)


def opposite(
    decider: Decider, batch: Batch, rows: NDArray[np.intp], points: Floats, ends: tuple[Floats, Floats]
) -> Batch:
    """The question for any other outcome of one model in the boxes of some of the points; what is missing stays."""
    own, points = batch.subset(rows), points[rows]
    target, origin = decider.wanted(own)
    is_any = target < 0
    is_category = own.choices.is_category
    choices = own.choices.only(is_category)
    delta = np.full_like(choices.delta, np.inf)
    for place, column in enumerate(choices.column):
        last = choices.start[place + 1] - 1
        value = points[:, column]
        cell = np.where(np.isnan(value), last, choices.start[place] + np.nan_to_num(value)).astype(np.intp)
        delta[np.arange(len(points)), cell] = 0.0
    return Batch(
        points, ends[0][rows], ends[1][rows], own.offset, own.scale, own.grain,
        np.where(is_any, kernels.predict(decider.forest, points), target).astype(np.int32),
        np.where(is_any, origin, ANY_OTHER).astype(np.int32),
        points, Choices(choices.column, choices.is_category, choices.start, choices.value, delta),
        own.lists, Rules(()),
    )  # fmt: skip
