"""Which groups are not shown, so that an audit tells of nobody in particular.

Groups below `min_group` rows are left out. That is not enough where what is left out can be computed from the rest: a
total minus the groups that are shown. So wherever the groups left out of a total are fewer than two, or of fewer than
`min_group` rows together, the next smallest one is left out, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from treefocus.explanation.audit.groups import Key


def suppressed(
    rows: Mapping[Key, int], totals: Iterable[Iterable[Key]], min_group: int, gone: Iterable[Key] = ()
) -> set[Key]:
    """The groups to leave out, `gone` anyway; totals: the sets of groups whose sums are known."""
    hidden = {key for key, n_rows in rows.items() if n_rows < min_group} | set(gone)
    sets = [list(own) for own in totals]
    has_changed = True
    while has_changed:
        has_changed = False
        for own in sets:
            mine = [key for key in own if key in hidden]
            left = [key for key in own if key not in hidden]
            if mine and left and (len(mine) < 2 or sum(rows[key] for key in mine) < min_group):
                hidden.add(min(left, key=lambda key: (rows[key], str(key))))
                has_changed = True
    return hidden
