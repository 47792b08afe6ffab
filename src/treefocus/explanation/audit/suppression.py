"""Which numbers are not shown, so that an audit tells of nobody in particular.

A group is left out if fewer than `min_group` people stand behind any of its numbers: its rows, those of them who are
asked for something, and those who have a way out. That is not enough where what is left out can be computed from the
rest: a total minus the groups that are shown. So wherever the groups left out of a total are fewer than two, or of too
few people together, the next smallest one is left out, too; and so on, as long as all totals together determine what
one of them is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from treefocus.explanation.audit.groups import Key

Counts = tuple[int, ...]  # of the people behind each number of a group
_NOISE = 1e-9


def is_few(counts: Iterable[int], min_group: int) -> bool:
    """Whether somebody, but fewer than so many, stand behind one of the numbers."""
    return any(0 < count < min_group for count in counts)


def suppressed(
    counts: Mapping[Key, Counts], totals: Iterable[Iterable[Key]], min_group: int, gone: Iterable[Key] = ()
) -> set[Key]:
    """The groups to leave out, `gone` anyway; totals: the sets of groups whose sums are known."""
    hidden = {key for key, own in counts.items() if is_few(own, min_group)} | set(gone)
    sets = [list(own) for own in totals]
    while exposed := _exposed(counts, sets, hidden, min_group):
        hidden.add(min(exposed, key=lambda key: (counts[key], str(key))))
    return hidden


def totals_of(keys: Sequence[Key], names: Sequence[str], hidden: Iterable[tuple[tuple[str, ...], Key]]) -> list[Any]:
    """The sets of groups whose sums are known beside a level's own: all, and of a crossing those of a shown label.

    Of the labels of a column that are hidden, the sum is known.
    """
    gone, found = set(hidden), [list(keys)]
    for k, name in enumerate(names if len(names) > 1 else ()):
        is_hidden = {label: ((name,), (label,)) in gone for label in dict.fromkeys(key[k] for key in keys)}
        found += [[key for key in keys if key[k] == label] for label, own in is_hidden.items() if not own]
        found.append([key for key in keys if is_hidden[key[k]]])
    return found


def _exposed(counts: Mapping[Key, Counts], sets: Sequence[Sequence[Key]], hidden: set[Key], few: int) -> list[Key]:
    """Groups one of which has to be hidden, too, since a total gives away what is hidden beside them; none if none."""
    for own in sets:
        mine, left = [key for key in own if key in hidden], [key for key in own if key not in hidden]
        if mine and left and (len(mine) < 2 or is_few(np.sum([counts[key] for key in mine], axis=0).tolist(), few)):
            return left
    known = _determined(sets, hidden)
    beside = [key for own in sets if known & set(own) for key in own if key not in hidden]
    return beside or ([key for key in counts if key not in hidden] if known else [])


def _determined(sets: Sequence[Sequence[Key]], hidden: set[Key]) -> set[Key]:
    """The hidden groups that the sums of the sets determine, all taken together."""
    places = {key: k for k, key in enumerate(sorted(hidden & set(chain.from_iterable(sets)), key=str))}
    sums = np.zeros((len(sets), len(places)))
    for k, own in enumerate(sets):
        sums[k, [places[key] for key in own if key in places]] = 1.0
    if len(places) < 2:
        return set()
    _, sizes, basis = np.linalg.svd(sums)
    free = basis[int((sizes > _NOISE).sum()) :]
    return {key for key, k in places.items() if (np.abs(free[:, k]) < _NOISE).all()}
