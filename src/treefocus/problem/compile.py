"""What the answer to each row may be: the constraints, written into boxes, lists, choices and rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from treefocus import kernels
from treefocus.constraints.draft import Draft
from treefocus.constraints.kinds import Constraint
from treefocus.errors import InvalidInput
from treefocus.kernels.inputs import Batch, Choices, Int8s, Lists, nearest_of
from treefocus.kernels.rules import Cells, ImpliesRule, LinearRule, Rules
from treefocus.model.categories import Categories, Labels, are_categories
from treefocus.model.forest import Bools, Floats, Forest, Ints
from treefocus.model.grid import Grid, as_input, floor_to
from treefocus.model.variants import variant
from treefocus.problem.distances import Distance
from treefocus.problem.space import Space
from treefocus.schema.schema import FLOAT32, INTEGER, LISTED, STEPPED, Schema, snapped_down
from treefocus.schema.steps import Steps

_NOISE = 1e-9  # of a number of steps


@dataclass(frozen=True, eq=False)
class Allowed:
    """The parts of a batch that say what is allowed, and the forest on whose cells they are written."""

    forest: Forest
    low: Floats  # (n_rows, n_features)
    high: Floats  # (n_rows, n_features)
    grain: Int8s  # (n_features,)
    choices: Choices
    lists: Lists
    rules: Rules
    is_category: Bools  # (n_features,)


def dry_run(constraints: Sequence[Constraint], schema: Schema, forest: Forest, orders: Labels | None = None) -> Draft:
    """The constraints without rows: what does not depend on them, and an error for a column that does not exist."""
    return _constrained(np.empty((0, forest.n_features)), constraints, schema, forest, orders)


def _constrained(
    rows: Floats, constraints: Sequence[Constraint], schema: Schema, forest: Forest, orders: Labels | None
) -> Draft:
    """The constraints on these rows, and nothing else: their boxes have no end where no constraint is."""
    labels = None if forest.categories is None else forest.categories.labels
    draft = Draft.of(rows, np.full_like(rows, -np.inf), np.full_like(rows, np.inf), schema, labels, orders)
    with np.errstate(invalid="ignore"):
        for constraint in constraints:
            constraint.apply(draft)
    return draft


def allowed(
    forest: Forest,
    rows: Floats,
    *,
    space: Space,
    distance: Distance,
    constraints: Sequence[Constraint],
    schema: Schema,
    grain: Int8s,
    orders: Labels | None = None,
) -> Allowed:
    """What the answers to these rows may be. Under a distance that couples columns, what is no number stays."""
    draft = _constrained(rows, constraints, schema, forest, orders)
    is_category = are_categories(draft.labels)
    is_open = _open_columns(draft, forest, rows, distance)
    rules = Rules(tuple(draft.rules))
    forest = with_cuts(forest, rules)
    if (is_open & ~is_category).any():
        forest = variant(forest, missing_is_choice=is_open & ~is_category)
    grain, lists = _held_by(forest, draft, space, grain, is_category)
    draft = _boxed(draft, forest, space, grain, lists, is_category, is_open)
    choices = choices_of(
        forest, draft, scale=space.scale, grain=grain, lists=lists,
        typical=space.typical if space.typical is not None else np.zeros(forest.n_features),
        is_kept=distance.norms is None, domain=_domains(draft, forest.categories),
    )  # fmt: skip
    return Allowed(forest, draft.low, draft.high, grain, choices, lists, rules, is_category)


def with_domains(space: Space, schema: Schema, forest: Forest) -> Space:
    """The space with the domains that the schema names, where it does."""
    low, high = space.low.copy(), space.high.copy()
    for j, feature in enumerate(schema.features):
        if forest.categories is None or not forest.categories.is_categorical[j]:
            domain = (0.0, 1.0) if feature.kind == "boolean" else feature.ends
            low[j] = low[j] if domain[0] is None else domain[0]
            high[j] = high[j] if domain[1] is None else domain[1]
    return replace(space, low=low, high=high)


def _domains(general: Draft, categories: Categories | None) -> dict[int, Bools]:
    """Which categories may be moved to, by column: those of the schema, else all that somebody may know as a value."""
    named: dict[int, Bools] = {}
    for j, labels in enumerate(general.labels):
        if labels is not None and categories is not None:
            values, withheld = set(general.schema.features[j].values), set(categories.withheld(j))
            named[j] = np.array([label in values if values else label not in withheld for label in labels], bool)
    return named


def _open_columns(general: Draft, forest: Forest, rows: Floats, distance: Distance) -> Bools:
    """(n_features,) columns in which a missing value is a choice."""
    may_be_missing = general.may_be_missing
    is_tied = np.zeros(forest.n_features, bool)  # to other columns
    for rule in general.rules:
        if isinstance(rule, LinearRule):
            is_tied[rule.columns] = True
    is_refused = may_be_missing & ~_may_be_empty(forest, with_words=True)
    if is_refused.any() and not forest.takes_missing:
        raise InvalidInput(f"A {forest.source} does not take missing values, so that none may become missing.")
    if is_refused.any():
        column = general.schema.names[int(np.flatnonzero(is_refused)[0])]
        raise InvalidInput(f"{column!r} may not become missing: the {forest.source} cannot read it without a value.")
    if may_be_missing.any() and distance.norms is None:
        raise InvalidInput(f"MayBeMissing needs a distance that is a sum over columns, {distance!r} is not.")
    if (may_be_missing & is_tied).any():
        column = general.schema.names[int(np.flatnonzero(may_be_missing & is_tied)[0])]
        raise InvalidInput(f"{column!r} may not become missing: Linear asks for its value.")
    if distance.norms is None:  # what is missing cannot be measured, and stays
        return np.zeros(forest.n_features, bool)
    is_missing = np.isnan(rows).any(axis=0) & forest.takes_missing
    may_become = general.may_become_missing & _may_be_empty(forest)
    return np.asarray((may_become | is_missing) & ~is_tied)


def _may_be_empty(forest: Forest, with_words: bool = False) -> Bools:
    """(n_features,) columns in which the model takes a missing value; with_words: or has a word for it."""
    may_be_empty = np.full(forest.n_features, forest.takes_missing)
    if forest.refuses_missing is not None:
        may_be_empty &= ~forest.refuses_missing
    if with_words and forest.categories is not None and forest.categories.blanks is not None:
        may_be_empty |= [bool(own) for own in forest.categories.blanks]
    return may_be_empty


def _boxed(
    draft: Draft, forest: Forest, space: Space, grain: Int8s, lists: Lists, is_category: Bools, is_open: Bools
) -> Draft:
    """The constraints inside the space, on values that the columns can hold.

    The box of every row is NaN where a value is missing and stays so, and empty where it must become known and cannot.
    """
    rows = draft.rows
    known = np.where(np.isnan(rows), np.where(is_open, space.low, 0.0), rows)
    space_low, space_high = np.where(is_category, -np.inf, space.low), np.where(is_category, np.inf, space.high)
    is_frozen = np.isnan(rows) & ~is_open & ~is_category
    low = np.where(is_frozen, np.nan, np.minimum(space_low, known))
    high = np.where(is_frozen, np.nan, np.maximum(space_high, np.where(np.isnan(rows), space_high, known)))
    with np.errstate(invalid="ignore"):
        low, high = np.maximum(low, draft.low), np.minimum(high, draft.high)
        is_inside = (rows >= low) & (rows <= high)  # a value may stay, also one that the column could not take anew
        low, high = lists.inside(low, high, grain)
        low, high = np.where(is_inside, np.minimum(low, rows), low), np.where(is_inside, np.maximum(high, rows), high)
    is_lost = is_frozen & draft.must_be_known
    may_be_missing = draft.may_be_missing & _may_be_empty(forest)
    low, high = np.where(is_lost, np.inf, low), np.where(is_lost, -np.inf, high)
    return replace(draft, low=low, high=high, may_be_missing=may_be_missing)


def _held_by(forest: Forest, draft: Draft, space: Space, grain: Int8s, is_category: Bools) -> tuple[Int8s, Lists]:
    """The grain of every column, and what those that hold only some numbers hold.

    Where no constraint lists anything the schema alone says it, and what it has said is kept.
    """
    key = grain.tobytes()
    if not draft.listed and (kept := _kept.get(forest)) and kept.schema is draft.schema and kept.asked == key:
        return kept.grain, kept.lists
    listed = _listed(draft, space, grain, is_category)
    lists = _as_lists(listed, draft, forest.n_features)
    grain = grain.copy()
    for j, own in listed.items():
        grain[j] = STEPPED if isinstance(own, Steps) else LISTED
    if not draft.listed:
        _kept[forest] = _Held(draft.schema, key, grain, lists)
    return grain, lists


@dataclass(frozen=True, eq=False)
class _Held:
    """What a schema says of a forest's columns, for the grain that was asked for."""

    schema: Schema
    asked: bytes
    grain: Int8s
    lists: Lists


_kept: WeakKeyDictionary[Forest, _Held] = WeakKeyDictionary()


def _listed(general: Draft, space: Space, grain: Int8s, is_category: Bools) -> dict[int, Floats | Steps]:
    """Columns that hold only some numbers: those a constraint lists, and those of the schema's steps and values.

    Each has the numbers that the column's own kind can hold: the whole ones, or what a float32 makes of them.
    """
    listed: dict[int, Floats | Steps] = {}
    for j, (feature, steps) in enumerate(zip(general.schema.features, general.schema.steps, strict=True)):
        named, is_number = general.listed.get(j), not is_category[j]
        if is_number and feature.values and all(isinstance(value, Real) for value in feature.values):
            own = np.unique(np.array(feature.values, np.float64))
            named = own if named is None else np.intersect1d(own, named)
        elif is_number and steps is not None and named is not None:
            named = _on_steps(named, steps, space.low[j], space.high[j])
        elif is_number and steps is not None:
            listed[j] = _of_grain(steps, int(grain[j]))
        if named is not None:
            listed[j] = _held(named, int(grain[j]))
    return listed


def _held(values: Floats, grain: int) -> Floats:
    """Those of the values that a column of that grain can hold."""
    if grain == INTEGER:
        return np.asarray(values[values == np.rint(values)])
    return np.unique(as_input(values, "float32")) if grain == FLOAT32 else values


def _on_steps(values: Floats, steps: Steps, low: float, high: float) -> Floats:
    """Those of the values that lie a whole number of steps from the beginning, between low and high."""
    n_steps = (values * steps.divisor - steps.begin) / steps.step
    is_whole = np.abs(n_steps - np.rint(n_steps)) <= _NOISE * np.maximum(1.0, np.abs(n_steps))
    return np.asarray(values[is_whole & (values >= low) & (values <= high)])


def _of_grain(steps: Steps, grain: int) -> Steps | Floats:
    """The steps that a column holds; where it holds whole numbers only, the whole ones among them, or none."""
    whole = steps.whole if grain == INTEGER else replace(steps, is_single=grain == FLOAT32)
    return np.empty(0) if whole is None else whole


def _as_lists(listed: dict[int, Floats | Steps], general: Draft, n_features: int) -> Lists:
    value = {j: own.numbers if isinstance(own, Steps) else own for j, own in listed.items()}
    start = np.concatenate([[0], np.cumsum([len(value.get(j, ())) for j in range(n_features)])]).astype(np.int32)
    in_order = np.concatenate([*(value[j] for j in sorted(value)), np.empty(0)])
    is_strict = np.zeros(n_features, bool)
    is_strict[list(general.listed)] = True
    return Lists(start, in_order, is_strict)


def with_cuts(forest: Forest, rules: Rules) -> Forest:
    """The forest with trees that add nothing and split where a rule's conditions begin and end.

    On its cells every condition is wholly true or wholly false.
    """
    cuts = [cut for rule in rules.all if isinstance(rule, ImpliesRule) for cut in _cuts_of(rule, forest)]
    if not cuts:
        return forest
    column, threshold = np.array([f for f, _ in cuts], np.int32), np.array([t for _, t in cuts])
    n, first = len(cuts), len(forest.feature)
    root = first + 3 * np.arange(n)
    leaves = np.zeros((2 * n, forest.n_outputs))
    extra = None if forest.tree_weight is None else np.concatenate([forest.tree_weight, np.zeros(n)])
    no_leaf = forest.leaf_distribution

    def appended(own: NDArray[np.generic], at_root: NDArray[np.generic], at_leaf: float) -> NDArray[np.generic]:
        block = np.full((n, 3), at_leaf)
        block[:, 0] = at_root
        return np.concatenate([own, block.ravel().astype(own.dtype)])

    return variant(
        forest,
        feature=appended(forest.feature, column, -1),
        threshold=appended(forest.threshold, threshold, 0.0),
        left=appended(forest.left, root + 1, -1),
        right=appended(forest.right, root + 2, -1),
        default_left=appended(forest.default_left, np.zeros(n), 0.0),
        tree_start=np.concatenate([forest.tree_start, root[1:], [first + 3 * n]]),
        leaf_value=np.concatenate([forest.leaf_value, leaves]),
        tree_weight=extra,
        leaf_distribution=None if no_leaf is None else np.concatenate([no_leaf, leaves]),
        categories=None
        if forest.categories is None
        else replace(
            forest.categories, set_of_node=np.concatenate([forest.categories.set_of_node, np.full(3 * n, -1)])
        ),
    )


def _cuts_of(rule: ImpliesRule, forest: Forest) -> list[tuple[int, float]]:
    found = []
    for cells in (rule.cause, rule.effect):
        if isinstance(cells, Cells) and cells.categories is None:
            if np.isfinite(cells.low):
                found.append((cells.column, float(floor_to(np.nextafter(cells.low, -np.inf), forest.input_dtype))))
            if np.isfinite(cells.high):
                found.append((cells.column, cells.high))
    return found


def choices_of(
    forest: Forest,
    draft: Draft,
    *,
    scale: Floats,
    grain: Int8s,
    lists: Lists,
    typical: Floats,
    is_kept: bool = False,
    domain: dict[int, Bools] | None = None,
) -> Choices:
    """What each row of the draft may choose.

    `typical` stands for an unknown value that becomes known. A value may stay missing, unless the column must be known;
    it may become missing where the draft says so. `is_kept`: all stay as they are, because the distance cannot measure
    them. `domain` says, by column, which categories may be moved to.
    """
    grid = kernels.grid_of(forest)
    columns = np.flatnonzero(grid.has_sets)
    rows = draft.rows
    if not columns.size:
        return Choices.none(len(rows))
    codes = grid.encode(forest, rows)
    values, deltas = [], []
    for j in columns.tolist():
        if draft.labels[j] is not None:
            value, delta = _of_categories(draft, j)
            if domain is not None and j in domain:
                delta[(delta > 0) & np.append(~domain[j], False)] = np.inf
        else:
            value, delta = _Column(grid, forest, j, scale[j], grain, typical[j], lists).choices(draft, codes[:, j])
        delta[(delta > 0) & is_kept] = np.inf
        values.append(np.column_stack([value, np.full(len(rows), np.nan)]))
        deltas.append(np.column_stack([delta, _of_missing(draft, j)]))
    start = np.concatenate([[0], np.cumsum([value.shape[1] for value in values])])
    is_category = np.array([draft.labels[j] is not None for j in columns])
    value, delta = (np.ascontiguousarray(np.concatenate(parts, axis=1)) for parts in (values, deltas))
    return Choices(columns, is_category, start.astype(np.intp), value, delta)


def within_parts(forest: Forest, batch: Batch, low: Floats, high: Floats, is_open: Bools) -> Batch:
    """The batch with every row in a part of its domain: narrower ends, and some of its choices' cells."""
    choices, grid = batch.choices, kernels.grid_of(forest)
    value, delta = choices.value.copy(), choices.delta.copy()
    for place in np.flatnonzero(~choices.is_category).tolist():
        j = int(choices.column[place])
        cells = slice(choices.start[place], choices.start[place + 1] - 1)  # without the missing value's
        column = _Column(grid, forest, j, batch.scale[j], batch.grain, np.nan, batch.lists)
        is_narrower = (low[:, j] > batch.low[:, j]) | (high[:, j] < batch.high[:, j])
        own = np.where(np.isfinite(delta[:, cells]), value[:, cells], np.nan)
        found = column.within(own, batch.rows[:, j], low[:, j], high[:, j])
        value[:, cells] = np.where(is_narrower[:, None], found[0], value[:, cells])
        delta[:, cells] = np.where(is_narrower[:, None], found[1], delta[:, cells])
    delta = np.where(is_open, delta, np.inf)
    with np.errstate(invalid="ignore"):
        first = np.where(batch.is_category, batch.first, np.clip(batch.first, low, np.maximum(low, high)))
    return replace(
        batch, low=low, high=high, first=first,
        choices=Choices(choices.column, choices.is_category, choices.start, value, delta),
    )  # fmt: skip


def _of_missing(draft: Draft, j: int) -> Floats:
    """(n_rows,) how far a missing value is."""
    stays = np.inf if draft.must_be_known[j] else 0.0
    return np.where(np.isnan(draft.rows[:, j]), stays, 1.0 if draft.may_become_missing[j] else np.inf)


def _of_categories(draft: Draft, j: int) -> tuple[Floats, Floats]:
    """Every category that is allowed, at a distance of 1; an unseen one only where it is the row's own."""
    own, low, high = (values[:, j, None] for values in (draft.rows, draft.low, draft.high))
    n_labels = len(draft.labels[j] or ())
    number = np.arange(n_labels + 1.0)
    delta = np.where((number >= low) & (number <= high) & (number < n_labels), 1.0, np.inf)
    delta[number == own] = 0.0
    delta[(number == own) & ~((own >= low) & (own <= high))] = np.inf  # the constraints say that it cannot stay
    if j in draft.barred:
        delta[draft.barred[j]] = np.inf
    if j in draft.named:
        delta[:, np.append(~draft.named[j], True)] = np.inf
    return np.broadcast_to(number, delta.shape).copy(), delta


class _Column:
    """A column of numbers, cell by cell."""

    def __init__(
        self, grid: Grid, forest: Forest, j: int, scale: float, grain: Int8s, typical: float, lists: Lists
    ) -> None:
        cells = slice(grid.cell_start[j], grid.cell_start[j + 1] - 1)  # without the missing value's
        self.cell_low, self.cell_high = grid.low[cells], grid.high[cells]
        self.threshold = grid.threshold[grid.start[j] : grid.start[j + 1]]
        self.input_dtype = forest.input_dtype
        self.j, self.scale, self.grain, self.typical, self.lists = j, scale, int(grain[j]), typical, lists

    def choices(self, draft: Draft, code: Ints) -> tuple[Floats, Floats]:
        """The closest allowed value of every cell; from an unknown value, the one closest to the typical, at 1."""
        own, low, high = (values[:, self.j, None] for values in (draft.rows, draft.low, draft.high))
        may_stay = (own >= low) & (own <= high)
        if self.lists.is_strict[self.j]:
            may_stay &= np.isin(own, self.lists.of(self.j))
        stays = may_stay & (code[:, None] == np.arange(len(self.cell_low)))
        from_ = np.where(np.isnan(own), self.typical, own)
        if self.grain == LISTED:
            value = self._listed(self.lists.of(self.j), from_, low, high)
        else:
            value = self._closest(from_, low, high, np.isnan(own))
        value = np.where(stays, own, value)
        delta = np.where(np.isnan(own), 1.0, np.abs(value - own) / self.scale)
        return value, np.where(np.isnan(value), np.inf, delta)

    def _closest(self, from_: Floats, low: Floats, high: Floats, is_unknown: Bools) -> Floats:
        """(n_rows, n_cells) the value of each cell, on the column's grain, closest to the given; NaN where none is."""
        below = self._up(np.maximum(self.cell_low, low))
        above = self._down(np.minimum(self.cell_high, high))
        with np.errstate(invalid="ignore"):
            value = np.clip(from_, below, np.maximum(below, above))
            value = np.where(is_unknown, self._up(value), value)
            return np.where((below <= above) & (value <= above), value, np.nan)

    def within(self, value: Floats, own: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """The same inside of narrower ends, from the closest value of every cell before; own, low and high: (n_rows,).

        What is closest in a smaller interval is the smaller interval's value closest to it.
        """
        own, low, high = own[:, None], low[:, None], high[:, None]
        if self.grain == LISTED:
            listed = self.lists.of(self.j)
            cell = np.searchsorted(self.threshold, as_input(listed, self.input_dtype), side="left")
            columns = [nearest_of(listed[cell == c], value[:, [c]], low, high) for c in range(value.shape[1])]
            found = np.concatenate(columns, axis=1)
        else:
            found = self._closest(value, low, high, np.zeros_like(value, bool))
        stays = (value == own) & (own >= low) & (own <= high)
        found = np.where(stays, own, np.where(np.isnan(value), np.nan, found))
        delta = np.where(np.isnan(own), 1.0, np.abs(found - own) / self.scale)
        return found, np.where(np.isnan(found), np.inf, delta)

    def _up(self, values: Floats) -> Floats:
        if self.grain == STEPPED:
            return self.lists.steps_of(self.j).up(values)
        return -snapped_down(-values, self.grain)

    def _down(self, values: Floats) -> Floats:
        return self.lists.steps_of(self.j).down(values) if self.grain == STEPPED else snapped_down(values, self.grain)

    def _listed(self, listed: Floats, from_: Floats, low: Floats, high: Floats) -> Floats:
        """(n_rows, n_cells) the listed value of each cell closest to the given; NaN where none is."""
        cell = np.searchsorted(self.threshold, as_input(listed, self.input_dtype), side="left")
        columns = [nearest_of(listed[cell == c], from_, low, high) for c in range(len(self.cell_low))]
        return np.concatenate(columns, axis=1)
