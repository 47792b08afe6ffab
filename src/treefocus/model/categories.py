"""Splits on categories: which of a column's categories a node sends to the left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treefocus.errors import InvalidInput, reject

Ints = NDArray[np.int32]
Labels = tuple[tuple[Any, ...] | None, ...]
NO_CATEGORY = ("no category",)  # stands for the labels of a column of which the model knows none
UNUSED = ("not used by the model",)  # of a column that the model never sees: all it holds is unseen


def are_categories(labels: Sequence[Any] | None, n_columns: int = 0) -> NDArray[np.bool_]:
    """(n_columns,) which columns hold categories: those with labels; none where nothing is known of the labels."""
    return np.array([own is not None for own in labels], bool) if labels else np.zeros(n_columns, bool)


@dataclass(frozen=True, eq=False)
class Categories:
    """The categorical columns of a forest and the splits on them.

    A row holds a category as its number, 0 to n - 1 for the n labels of the column; n stands for every category the
    model has not seen, NaN for a missing one. A categorical node sends left the members of its set (n may be one of
    them), and a missing value where the forest's `default_left` says.
    """

    labels: Labels  # per feature: its categories in the order of their numbers, None for a numeric feature
    set_of_node: Ints  # (n_nodes,) the node's set, -1 at numeric splits and leaves
    set_start: Ints  # (n_sets + 1,) where a set's members begin
    set_member: Ints  # (n_members,) categories that go left
    refuses_unseen: NDArray[np.bool_] | None = None  # (n_features,) columns of which the model reads only its labels
    fillers: Labels | None = None  # per feature: labels that a model's own steps write, and perhaps no table holds
    blanks: Labels | None = None  # per feature: labels by which a table says that a value is missing
    n_added: Ints | None = None  # (n_features,) how many of the last labels are not the model's but the data's

    @classmethod
    def of_sets(cls, labels: Sequence[Sequence[Any] | None], sets: Sequence[Iterable[int] | None]) -> Categories:
        """From one collection of category numbers a node, None at numeric splits and leaves; equal sets are shared."""
        seen: dict[tuple[int, ...], int] = {}
        number_of: dict[int, int] = {}  # by the object, which many nodes may share
        of_node = np.full(len(sets), -1, np.int32)
        for node, members in enumerate(sets):
            if members is not None and id(members) not in number_of:
                own = tuple(sorted({int(member) for member in members}))
                number_of[id(members)] = seen.setdefault(own, len(seen))
            if members is not None:
                of_node[node] = number_of[id(members)]
        return cls.of_shared(labels, of_node, list(seen))

    @classmethod
    def of_shared(
        cls, labels: Sequence[Sequence[Any] | None], set_of_node: NDArray[Any], sets: Sequence[Iterable[int]]
    ) -> Categories:
        """From the number of its set at every node, and the sets."""
        members = [np.fromiter(own, np.int64) for own in sets]
        start = np.concatenate([[0], np.cumsum([len(own) for own in members])]).astype(np.int32)
        member = np.concatenate([*members, np.empty(0, np.int64)])
        return cls(tuple(None if own is None else tuple(own) for own in labels), set_of_node, start, member)

    def __post_init__(self) -> None:
        for name in ("labels", "fillers", "blanks"):
            known = getattr(self, name)
            if known is not None:
                object.__setattr__(self, name, tuple(None if own is None else tuple(own) for own in known))
        for name in ("set_of_node", "set_start", "set_member"):
            given = np.asarray(getattr(self, name))
            array = np.array(given, np.int32, order="C")
            if not np.array_equal(array, given):
                reject(f"Categories.{name}", "whole numbers of 32 bits", given)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if self.refuses_unseen is not None:
            object.__setattr__(self, "refuses_unseen", np.array(self.refuses_unseen, bool))
        if self.n_added is not None:
            object.__setattr__(self, "n_added", np.array(self.n_added, np.int32))

    @property
    def n_sets(self) -> int:
        """Number of different sets."""
        return len(self.set_start) - 1

    @property
    def is_categorical(self) -> NDArray[np.bool_]:
        """(n_features,) which columns hold categories."""
        return are_categories(self.labels)

    def withheld(self, feature: int) -> tuple[Any, ...]:
        """The labels of a column that are no advice of themselves, because nobody may know them as a value."""
        own = self.labels[feature]
        words = [NO_CATEGORY, UNUSED] if own in (NO_CATEGORY, UNUSED) else []
        words += [known[feature] or () for known in (self.fillers, self.blanks) if known is not None]
        return tuple(label for label in own or () if any(label in some for some in words))

    def n_labels(self, feature: int) -> int:
        """How many categories a column has."""
        return len(self.labels[feature] or ())

    def members(self, number: int) -> Ints:
        """The categories that a set sends left."""
        return self.set_member[self.set_start[number] : self.set_start[number + 1]]

    def reordered(self, order: NDArray[np.int64]) -> Categories:
        """The same for nodes in another order."""
        return replace(self, set_of_node=self.set_of_node[order])

    def check(self, feature: Ints, n_features: int) -> None:
        """Refuse what does not fit the nodes of a forest."""
        if len(self.labels) != n_features:
            reject("Categories.labels", f"one a feature ({n_features})", len(self.labels))
        if self.refuses_unseen is not None and self.refuses_unseen.shape != (n_features,):
            reject("Categories.refuses_unseen", f"({n_features},)", self.refuses_unseen.shape)
        for name in ("fillers", "blanks", "n_added"):
            if getattr(self, name) is not None and len(getattr(self, name)) != n_features:
                reject(f"Categories.{name}", f"one a feature ({n_features})", len(getattr(self, name)))
        for f, own in enumerate(self.labels):
            if own is not None and (not own or len(set(own)) != len(own)):
                reject(f"Categories.labels[{f}]", "one or more different labels", repr(own)[:80])
        if len(self.set_of_node) != len(feature):
            reject("Categories.set_of_node", f"one a node ({len(feature)})", len(self.set_of_node))
        start = self.set_start.astype(np.int64)
        if len(start) < 1 or start[0] != 0 or start[-1] != len(self.set_member) or (np.diff(start) < 0).any():
            raise InvalidInput("Categories.set_start must rise from 0 to the number of members.")
        if self.set_of_node.size and not -1 <= self.set_of_node.min() <= self.set_of_node.max() < self.n_sets:
            reject("Categories.set_of_node", f"from -1 to {self.n_sets - 1}", self.set_of_node.max())
        is_split_on_them = np.append(self.is_categorical, False)[feature]  # a leaf's -1 reads the False
        if not np.array_equal(is_split_on_them, self.set_of_node >= 0):
            raise InvalidInput("A split on a categorical column needs a set of categories, and no other node has one.")
        for f in np.flatnonzero(self.is_categorical).tolist():
            for number in np.unique(self.set_of_node[feature == f]):
                members = self.members(int(number))
                if members.size and not 0 <= members.min() <= members.max() <= self.n_labels(f):
                    reject("Categories.set_member", f"from 0 to {self.n_labels(f)}", int(members.max()))

    def to_record(self) -> dict[str, Any]:
        """As plain lists, for JSON."""
        arrays = {name: getattr(self, name).tolist() for name in ("set_of_node", "set_start", "set_member")}
        labels = [None if own is None else [_plain(label) for label in own] for own in self.labels]
        refuses = None if self.refuses_unseen is None else self.refuses_unseen.tolist()
        record = {"labels": labels, **arrays, "refuses_unseen": refuses}
        for name, own in (("fillers", self.fillers), ("blanks", self.blanks)):
            if own is not None:
                record[name] = [None if words is None else [_plain(word) for word in words] for words in own]
        return record if self.n_added is None else record | {"n_added": self.n_added.tolist()}

    @classmethod
    def from_record(cls, record: Any) -> Categories:
        """From what `to_record` gave."""
        if not isinstance(record, dict):
            reject("Forest.categories", "an object", type(record).__name__)
        missing = {"labels", "set_of_node", "set_start", "set_member"} - record.keys()
        if missing:
            raise InvalidInput(f"Forest.categories lacks {', '.join(sorted(missing))}.")
        labels = tuple(None if own is None else tuple(own) for own in record["labels"])
        return cls(
            labels, record["set_of_node"], record["set_start"], record["set_member"], record.get("refuses_unseen"),
            record.get("fillers"), record.get("blanks"), record.get("n_added"),
        )  # fmt: skip


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label
