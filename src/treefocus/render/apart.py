"""Long names beside a picture, cut so that different ones can still be told apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

_HEAD, _BEFORE = 8, 6  # letters of a common beginning that stay, and letters before the difference


def told_apart(names: Sequence[str], longest: int) -> list[str]:
    """Each name in at most so many letters; where beginnings are the same, the place where they differ is kept.

    Examples
    --------
    >>> from treefocus.render.apart import told_apart
    >>> told_apart(["district of the city, number 1", "district of the city, number 2", "none"], 20)
    ['district…y, number 1', 'district…y, number 2', 'none']
    """
    cut = {name: name if len(name) <= longest else f"{name[: longest - 1]}…" for name in dict.fromkeys(names)}
    for short in _doubled(cut.values()):
        alike = [name for name, own in cut.items() if own == short]
        for name in alike:
            cut[name] = _around(name, _n_same(alike), longest)
    doubled = _doubled(cut.values())
    for number, name in enumerate([name for name, own in cut.items() if own in doubled], 1):
        cut[name] = f"{number}: {name[: longest - len(str(number)) - 3]}…"
    return [cut[name] for name in names]


def joined_apart(names: Sequence[Sequence[str]], longest: int) -> list[str]:
    """Names of one or several parts, each part cut so that different ones can be told apart."""
    found = [""] * len(names)
    for n_parts in {len(parts) for parts in names} - {0}:
        places = [k for k, parts in enumerate(names) if len(parts) == n_parts]
        room = max((longest - 2 * (n_parts - 1)) // n_parts, 2 * _HEAD)
        columns = [told_apart([names[k][j] for k in places], room) for j in range(n_parts)]
        for k, *parts in zip(places, *columns, strict=True):
            found[k] = ", ".join(parts)
    return found


def _doubled(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _n_same(names: Sequence[str]) -> int:
    """How many letters they begin with alike."""
    letters = zip(*names, strict=False)
    return next((k for k, own in enumerate(letters) if len(set(own)) > 1), min(map(len, names)))


def _around(name: str, place: int, longest: int) -> str:
    """The beginning of a name, and what is around this place."""
    room = longest - _HEAD - 1
    begin = max(min(place - _BEFORE, len(name) - room), _HEAD)
    ends_there = begin + room >= len(name)
    return f"{name[:_HEAD]}…{name[begin:] if ends_there else f'{name[begin : begin + room - 1]}…'}"
