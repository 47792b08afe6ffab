"""The trees of a PMML model as binary splits.

Of a node's children the first whose predicate is true is next, so a node is a chain of questions. Each is a split by a
number or by a set of categories: on one side the child, on the other the next question. What is known of a column on
the way says which questions are settled already; without that, the second of two children would always be asked again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from treefocus.adapters.nodes import Nodes
from treefocus.adapters.pmml_predicates import (
    INSTEAD,
    MISSING,
    PREDICATES,
    PmmlColumn,
    PmmlColumns,
    holds,
    last_of,
    names_in,
    numbers_in,
)
from treefocus.adapters.xml_tree import Element
from treefocus.errors import InvalidInput, UnsupportedModel
from treefocus.model.forest import LARGEST, join_trees

_LONGEST = 10_000  # values that one predicate names
_LAST, _NOTHING, _CHILD = -1, -2, 1000  # where a missing value goes: the node's own score, nowhere, a child by number
_MOST_NODES = 1_000_000  # of a tree


@dataclass(frozen=True)
class _PmmlRoom:
    """What is known of a column on the way to a node: numbers above `low` up to `high`, or categories, or nothing."""

    low: float = -np.inf
    high: float = np.inf
    members: frozenset[int] | None = None  # of a column of categories
    may_be_missing: bool = True
    may_be_known: bool = True


@dataclass(frozen=True)
class _PmmlPlace:
    """A node that is to be made: of which element, from which of its children on, and what is known by then."""

    number: int
    node: Element
    child: int
    rooms: dict[int, _PmmlRoom]


class PmmlTrees:
    """Nodes as they are made, and what is left to be made."""

    def __init__(self, columns: PmmlColumns) -> None:
        self.columns = columns
        self.feature: list[int] = []
        self.threshold: list[float] = []
        self.left: list[int] = []
        self.right: list[int] = []
        self.default_left: list[bool] = []
        self.sets: list[Any] = []
        self.score: list[Element | None] = []  # at leaves, the node that says what is predicted there
        self.sizes: list[int] = []

    def add(self, model: Element) -> None:
        """Read one TreeModel."""
        root = model.first("Node")
        if root is None:
            raise InvalidInput("The PMML file is damaged: a TreeModel has no node.")
        begin, todo = len(self.feature), [_PmmlPlace(self._new(), root, 0, {})]
        while todo:
            todo += self._grow(model, todo.pop())
            if len(self.feature) - begin > _MOST_NODES:
                raise UnsupportedModel(f"A tree of the PMML model has more than {_MOST_NODES:,} nodes. {INSTEAD}")
        self.sizes.append(len(self.feature) - begin)

    def _new(self) -> int:
        self.feature.append(-1)
        self.threshold.append(0.0)
        self.left.append(-1)
        self.right.append(-1)
        self.default_left.append(False)
        self.sets.append(None)
        self.score.append(None)
        return len(self.feature) - 1

    def _grow(self, model: Element, place: _PmmlPlace) -> list[_PmmlPlace]:
        """Make one node: a leaf, or a split by the predicate of the next child; given back is what comes behind it."""
        node = place.node
        children = node.all("Node")
        if not children:
            self.score[place.number] = node
            return []
        for k in range(place.child, len(children)):
            predicate = _predicate(children[k])
            if predicate.name in ("True", "False"):
                if predicate.name == "True":
                    return [_PmmlPlace(place.number, children[k], 0, place.rooms)]
                continue
            column = self._column(predicate)
            room = place.rooms.get(column.number) or _whole(column)
            missing = self._of_missing(model, node, k, predicate, column)
            room = self._without_refused(room, missing, column)
            asked = _PmmlQuestion(place, children, k, column, predicate, room, missing)
            truths = asked.truths()
            if truths == {True}:
                return [_PmmlPlace(place.number, children[k], 0, place.rooms | {column.number: room})]
            if truths - {False}:
                return self._split(asked)
        return self._ended(model, place)

    def _ended(self, model: Element, place: _PmmlPlace) -> list[_PmmlPlace]:
        """No child is next."""
        if model.get("noTrueChildStrategy") != "returnLastPrediction":
            raise UnsupportedModel(f"The PMML tree predicts nothing for some rows. {INSTEAD}")
        self.score[place.number] = place.node
        return []

    def _column(self, predicate: Element) -> PmmlColumn:
        names = names_in(predicate)
        if len(names) != 1:
            raise UnsupportedModel(f"A predicate of the PMML tree asks for {len(names)} columns at once. {INSTEAD}")
        return self.columns.column(names.pop())

    def _of_missing(self, model: Element, node: Element, k: int, predicate: Element, column: PmmlColumn) -> bool | int:
        """Whether a missing value meets a predicate; or the child, the node's own score or nothing instead."""
        if column.replacement is not MISSING:
            value = column.replacement if column.labels is not None else float(column.replacement)
            return bool(holds(predicate, value, column))
        if predicate.get("booleanOperator") == "surrogate":
            return _NOTHING  # other columns would stand in
        is_true = holds(predicate, MISSING, column)
        strategy = model.get("missingValueStrategy", "none")
        if is_true is None and strategy == "none" and self._leads_nowhere(model, node, k, column):
            return _NOTHING
        if is_true is not None or strategy == "none":
            return bool(is_true)
        ids = [child.get("id") for child in node.all("Node")]
        if strategy == "defaultChild" and node.get("defaultChild") in ids:
            chosen = ids.index(node.get("defaultChild"))
            return True if chosen == k else _CHILD + chosen
        return _LAST if strategy == "lastPrediction" else _NOTHING  # weightedConfidence mixes several leaves

    def _leads_nowhere(self, model: Element, node: Element, k: int, column: PmmlColumn) -> bool:
        """Whether a missing value meets no predicate from a child on, where a node without a next child has no say."""
        if model.get("noTrueChildStrategy") == "returnLastPrediction":
            return False
        predicates = [_predicate(child) for child in node.all("Node")[k:]]
        asked = [one for one in predicates if one.name != "False"]
        is_alone = all(one.name != "True" and names_in(one) == names_in(predicates[0]) for one in asked)
        return is_alone and not any(holds(one, MISSING, column) for one in asked)

    def _without_refused(self, room: _PmmlRoom, missing: bool | int, column: PmmlColumn) -> _PmmlRoom:
        if room.may_be_missing and missing is not True and missing == _NOTHING:
            self.columns.refuses_missing.add(column.number)
            return replace(room, may_be_missing=False)
        return room

    def _split(self, asked: _PmmlQuestion) -> list[_PmmlPlace]:
        """Split where the predicate changes for the first time."""
        place, column, room, missing = asked.place, asked.column, asked.room, asked.missing
        goes_elsewhere = not isinstance(missing, bool)
        if room.may_be_missing and (goes_elsewhere or asked.known_truths() == {not missing}):
            if goes_elsewhere and (shared := self._shared(asked)) is not None:
                return shared
            left, right = self._divided(place.number, column, LARGEST, is_left=False)
            known = asked.with_room(left, replace(room, may_be_missing=False), asked.k)
            return [known, self._elsewhere(asked, right)]
        if column.labels is not None:
            return self._by_category(asked, is_missing_left=missing is True)
        return self._by_number(asked, missing is True)

    def _elsewhere(self, asked: _PmmlQuestion, number: int) -> _PmmlPlace:
        """The place of missing values that do not go on along the children."""
        room = replace(asked.room, may_be_known=False)
        if isinstance(asked.missing, bool):
            return asked.with_room(number, room, asked.k)
        if asked.missing == _LAST:
            alone = Element("Node", asked.place.node.attributes, asked.place.node.all("ScoreDistribution"))
            return _PmmlPlace(number, alone, 0, asked.place.rooms)
        child = asked.children[asked.missing - _CHILD]
        return _PmmlPlace(number, child, 0, asked.place.rooms | {asked.column.number: room})

    def _shared(self, asked: _PmmlQuestion) -> list[_PmmlPlace] | None:
        """The usual two children: missing values go where all that is not the first child's goes."""
        if asked.missing != _CHILD + asked.k + 1 or asked.k + 1 >= len(asked.children):
            return None
        known = replace(asked.room, may_be_missing=False)
        pieces = replace(asked, room=known).pieces()
        if len(pieces) != 2:
            return None
        predicate = _predicate(asked.children[asked.k + 1])
        rest = [piece for is_true, piece in pieces if not is_true]
        is_next = predicate.name == "True"
        if not is_next and names_in(predicate) != names_in(asked.predicate):
            return None
        if not is_next and replace(asked, k=asked.k + 1, predicate=predicate, room=rest[0]).known_truths() != {True}:
            return None
        (first_true, first), (_, second) = pieces
        left, right = self._cut(asked.place.number, asked.column, first, is_left=not first_true)
        made = []
        for number, is_true, room in ((left, first_true, first), (right, not first_true, second)):
            child = asked.children[asked.k if is_true else asked.k + 1]
            own = room if is_true else replace(room, may_be_missing=True)
            made.append(_PmmlPlace(number, child, 0, asked.place.rooms | {asked.column.number: own}))
        return made

    def _by_number(self, asked: _PmmlQuestion, is_missing_true: bool) -> list[_PmmlPlace]:
        pieces = asked.pieces()
        (is_true, first), rest = pieces[0], replace(asked.room, low=pieces[0][1].high)
        is_left = asked.room.may_be_missing and is_missing_true == is_true
        left, right = self._cut(asked.place.number, asked.column, first, is_left=is_left)
        return [
            asked.along(left, is_true, replace(first, may_be_missing=is_left)),
            asked.with_room(right, replace(rest, may_be_missing=asked.room.may_be_missing and not is_left), asked.k),
        ]

    def _by_category(self, asked: _PmmlQuestion, is_missing_left: bool) -> list[_PmmlPlace]:
        pieces = dict(asked.pieces())
        is_left = asked.room.may_be_missing and is_missing_left
        left, right = self._cut(asked.place.number, asked.column, pieces[True], is_left=is_left)
        return [
            asked.along(left, True, replace(pieces[True], may_be_missing=is_left)),
            asked.along(right, False, replace(pieces[False], may_be_missing=asked.room.may_be_missing and not is_left)),
        ]

    def _cut(self, number: int, column: PmmlColumn, first: _PmmlRoom, *, is_left: bool) -> tuple[int, int]:
        members = None if first.members is None else sorted(first.members)
        return self._divided(
            number, column, 0.0 if members is not None else first.high, is_left=is_left, members=members
        )

    def _divided(
        self, number: int, column: PmmlColumn, threshold: float, *, is_left: bool, members: Sequence[int] | None = None
    ) -> tuple[int, int]:
        left, right = self._new(), self._new()
        if column.labels is not None and members is None:
            members = range(len(column.labels))  # all that are known
        self.feature[number], self.threshold[number] = column.number, 0.0 if members is not None else threshold
        self.sets[number] = members
        self.left[number], self.right[number], self.default_left[number] = left, right, is_left
        return left, right

    def nodes(self, value: Any) -> Nodes:
        """All of them, with the values of the leaves."""
        return Nodes(
            np.array(self.feature), np.array(self.threshold), np.array(self.left), np.array(self.right),
            np.array(self.default_left), value, join_trees(self.sizes), self.sets,
        )  # fmt: skip


def _whole(column: PmmlColumn) -> _PmmlRoom:
    return _PmmlRoom(members=None if column.labels is None else frozenset(range(len(column.labels))))


@dataclass(frozen=True)
class _PmmlQuestion:
    """A child's predicate at a place, and what is known of its column there."""

    place: _PmmlPlace
    children: list[Element]
    k: int
    column: PmmlColumn
    predicate: Element
    room: _PmmlRoom
    missing: bool | int  # whether a missing value meets it, or where it goes instead

    def truths(self) -> set[Any]:
        """What the predicate can be here."""
        known = self.known_truths()
        return known | {self.missing} if self.room.may_be_missing else known

    def known_truths(self) -> set[bool]:
        """What it can be for known values."""
        return {is_true for is_true, _ in self.pieces()}

    def pieces(self) -> list[tuple[bool, _PmmlRoom]]:
        """The known values of the room, by whether they meet the predicate: intervals in their order, or two sets."""
        if not self.room.may_be_known:
            return []
        if self.room.members is not None:
            return self._sets(self.room.members)
        found: list[tuple[bool, _PmmlRoom]] = []
        for low, high, value in self._intervals():
            if high <= self.room.low or low >= self.room.high:
                continue
            is_true = bool(holds(self.predicate, value, self.column))
            piece = replace(self.room, low=max(low, self.room.low), high=min(high, self.room.high))
            if found and found[-1][0] == is_true:
                found[-1] = is_true, replace(found[-1][1], high=piece.high)
            else:
                found.append((is_true, piece))
        return found

    def _sets(self, members: frozenset[int]) -> list[tuple[bool, _PmmlRoom]]:
        labels = self.column.labels or ()
        is_met = {k: bool(holds(self.predicate, labels[k], self.column)) for k in members}
        sides = [(is_true, frozenset(k for k in members if is_met[k] == is_true)) for is_true in (True, False)]
        return [(is_true, replace(self.room, members=own)) for is_true, own in sides if own]

    def _intervals(self) -> list[tuple[float, float, float]]:
        """Where the predicate cannot change: above one number up to another, and a value in between."""
        numbers = sorted(set(numbers_in(self.predicate, self.column)))
        if not numbers or len(numbers) > _LONGEST or not np.isfinite(numbers).all():
            if numbers:
                raise InvalidInput(
                    "The PMML file is damaged: a node compares with too many numbers, or with no number."
                )
            return [(-np.inf, np.inf, 0.0)]
        kind = np.float32 if self.column.is_single else np.float64
        ends = sorted({end for own in numbers for end in (float(np.nextafter(kind(own), kind(-np.inf))), own)})
        last = [last_of(end, self.column) for end in ends]
        tried = [*ends, float(np.nextafter(kind(ends[-1]), kind(np.inf)))]
        return list(zip([-np.inf, *last], [*last, np.inf], tried, strict=True))

    def along(self, number: int, is_true: bool, room: _PmmlRoom) -> _PmmlPlace:
        """A place where the predicate is decided: the child, or the next predicate."""
        rooms = self.place.rooms | {self.column.number: room}
        return _PmmlPlace(number, self.children[self.k], 0, rooms) if is_true else _PmmlPlace(
            number, self.place.node, self.k + 1, rooms)  # fmt: skip

    def with_room(self, number: int, room: _PmmlRoom, child: int) -> _PmmlPlace:
        """A place at which the children are asked from one on, and more is known."""
        return _PmmlPlace(number, self.place.node, child, self.place.rooms | {self.column.number: room})


def _predicate(node: Element) -> Element:
    found = node.first(*PREDICATES)
    if found is None:
        raise InvalidInput("The PMML file is damaged: a node has no predicate.")
    return found
