"""Several models that have to agree: one forest of all their trees, and one score test a model.

Every model's trees stand in it as they are, on one grid of all thresholds. A class comes out where all models give it;
where they do not, the last class does, which nobody can ask for. So a search needs to know nothing of several models:
what it finds and proves is about all of them. An isolation forest that says whether a point is like the data is one
more of them, which agrees with every class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from treefocus.adapters.joined import joined
from treefocus.errors import InvalidInput, UnsupportedModel
from treefocus.model.forest import Floats, Forest, Ints
from treefocus.model.members import EVERY_CLASS, Member
from treefocus.model.variants import variant
from treefocus.problem.isolation import Isolation
from treefocus.problem.targets import NO, YES, Interval, Probability, Put, Slack, put

_KEPT = 8  # joint forests


@dataclass(frozen=True, eq=False)
class Companion:
    """Another model that has to give the wanted outcome, and by how much its score has to be ahead."""

    forest: Forest
    margin: float = 0.0


def put_to_all(target: Any, forest: Forest, also: Sequence[Companion], n_rows: int, origin: Ints | None) -> Put:
    """The question of n rows with this target, to a model and its companions; `origin` are the rows' own classes."""
    first = put(target, forest, n_rows, origin)
    if not also:
        return first
    if isinstance(target, Probability | Interval) or forest.decision == "value":
        return _of_numbers(first, [put(target, one.forest, n_rows) for one in also])
    targets = _classes_wanted(first.target, forest, origin)
    labels = forest.classes.tolist()
    puts = [replace(first, target=targets)]
    maps = [tuple(range(len(labels)))]
    for one in also:
        own = one.forest.classes.tolist()
        puts.append(_ahead(one, targets, labels, n_rows))
        maps.append(tuple(labels.index(label) if label in labels else -1 for label in own))
    return _joint(puts, maps, targets, len(labels))


def put_within(asked: Put, isolation: Isolation) -> Put:
    """The question for answers that please an isolation forest, too."""
    forests = asked.forest, isolation.forest
    known = asked.slack
    loose = () if known is None else _form([known.loose, None], forests, _WITHIN)
    strict = None
    if known is None or known.strict is not None:
        cut = ("cut", isolation.strict.cut)
        strict = _form([None if known is None else known.strict, (cut,)], forests, _WITHIN)
    return Put(_of_two(*forests), asked.target, Slack(loose, strict, known is None or known.is_exact))


_WITHIN = ((), (-1, EVERY_CLASS))  # what is too strange is no answer; the first model's own classes stay


@lru_cache(maxsize=_KEPT)
def _of_two(forest: Forest, isolation: Forest) -> Forest:
    """One forest of the trees that decide and of those that say whether a point is like the data; kept."""
    n_classes = forest.n_classes - 1 if forest.members else forest.n_classes
    return _of_forests((forest, isolation), _WITHIN, n_classes)


def _classes_wanted(targets: Ints, forest: Forest, origin: Ints | None) -> Ints:
    """(n_rows,) the class that all models have to give; of two classes the other one than a row's own."""
    if (targets >= 0).all():
        return targets
    if forest.n_classes != 2 or origin is None:
        raise InvalidInput("target must be a class where several models of more than two classes have to agree on it.")
    return np.where(targets >= 0, targets, 1 - origin).astype(np.int32)


def _ahead(one: Companion, targets: Ints, labels: list[Any], n_rows: int) -> Put:
    """A question for classes as a companion takes it: the class has to be ahead by the margin."""
    wanted, forest = list(dict.fromkeys(targets.tolist())), one.forest
    known = forest.classes.tolist()
    if any(labels[k] not in known for k in wanted):
        missing = next(labels[k] for k in wanted if labels[k] not in known)
        raise InvalidInput(f"also= has a {forest.source} that does not know the class {missing!r}, but {known}.")
    own = [labels[k] for k in targets.tolist()]
    if not one.margin or not n_rows:
        is_one = len(wanted) == 1
        return put(labels[wanted[0]] if is_one else own, forest, n_rows)
    if len(wanted) != 1:
        raise InvalidInput("A margin takes rows that want the same class.")
    return put(labels[wanted[0]], with_margin(forest, known.index(labels[wanted[0]]), one.margin), n_rows)


def with_margin(forest: Forest, wanted: int, margin: float) -> Forest:
    """The forest that gives a class only where its score is ahead of every other, or of the cut, by a margin."""
    if forest.decision == "argmax":
        base = forest.base_score.copy()
        base[wanted] -= margin * forest.divisor
        return variant(forest, base_score=base)
    return variant(forest, cut=forest.cut + (margin if wanted == 1 else -margin))


def has_common_scores(forest: Forest) -> bool:
    """Whether the scores of all models mean the same, so that their soft copies can be added up."""
    kinds = {(one.decision, one.n_outputs) for one in forest.members}
    is_plain = all(one.to_class == tuple(range(len(one.to_class))) for one in forest.members)
    return not kinds or (len(kinds) == 1 and is_plain and next(iter(kinds))[0] in ("argmax", "above", "at_least"))


def _of_numbers(first: Put, others: Sequence[Put]) -> Put:
    """A question that every model answers with yes or no."""
    puts = [first, *others]
    maps = [(NO, YES) if int(one.target[0] if len(one.target) else YES) == YES else (YES, NO) for one in puts]
    return _joint(puts, maps, np.full(len(first.target), YES, np.int32), 2)


def _joint(puts: Sequence[Put], maps: Sequence[tuple[int, ...]], targets: Ints, n_classes: int) -> Put:
    forests = tuple(one.forest for one in puts)
    joint = _of_all(forests, tuple(maps), n_classes)
    return Put(joint, targets, _slack([one.slack for one in puts], forests, tuple(maps)))


@lru_cache(maxsize=_KEPT)
def _of_all(forests: tuple[Forest, ...], maps: tuple[tuple[int, ...], ...], n_classes: int) -> Forest:
    """One forest of all trees; kept, and with it what is derived from it."""
    return _of_forests(forests, maps, n_classes)


def _of_forests(forests: Sequence[Forest], maps: Sequence[tuple[int, ...]], n_classes: int) -> Forest:
    width = max(forest.n_outputs for forest in forests)
    values = [np.pad(forest.leaf_value, ((0, 0), (0, width - forest.n_outputs))) for forest in forests]
    base = np.concatenate([forest.base_score for forest in forests])
    return _joined_trees(
        forests, values, base,
        decision="agreed", classes=np.arange(n_classes + 1), members=_members(forests, maps), source="joint model",
        link="identity", divisor=1.0, maps=(), voices=(), rounding=0.0, score_dtype="float64",
    )  # fmt: skip


def _joined_trees(forests: Sequence[Forest], values: Sequence[Floats], base: Floats, **rest: Any) -> Forest:
    try:
        return joined(forests, values, base, **rest)
    except UnsupportedModel as error:
        raise InvalidInput(f"also= has models that do not fit together: {error}") from error


def _members(forests: Sequence[Forest], maps: Sequence[tuple[int, ...]]) -> tuple[Member, ...]:
    return tuple(one for forest, to_class in zip(forests, maps, strict=True) for one in _members_of(forest, to_class))


def _members_of(forest: Forest, to_class: tuple[int, ...]) -> tuple[Member, ...]:
    """What a forest is in a larger one; without `to_class` its classes are those of the larger one."""
    if forest.members:
        return forest.members
    own = to_class or tuple(range(forest.n_classes))
    one = Member(
        forest.n_trees, forest.n_outputs, own, forest.decision, float(forest.cut), float(forest.cut_high),
        int(forest.favoured), forest.link, float(forest.divisor), forest.score_dtype, forest.source, forest.maps,
        forest.voices,
    )  # fmt: skip
    return (one,)


def _slack(slacks: Sequence[Slack | None], forests: Sequence[Forest], maps: Any) -> Slack | None:
    """The slack of all models: loose where one is, strict only where each can be."""
    known = [slack for slack in slacks if slack is not None]
    if not known:
        return None
    loose = _form([None if slack is None else slack.loose for slack in slacks], forests, maps)
    has_strict = all(slack.strict is not None for slack in known)
    strict = _form([None if slack is None else slack.strict for slack in slacks], forests, maps) if has_strict else None
    return Slack(loose, strict, all(slack.is_exact for slack in known))


def _form(changes: Sequence[Any], forests: Sequence[Forest], maps: Any) -> tuple[tuple[str, Any], ...]:
    """What changes in the joint forest where these fields change in the models."""
    own = [variant(forest, **dict(one or ())) for forest, one in zip(forests, changes, strict=True)]
    return ("members", _members(own, maps)), ("base_score", np.concatenate([one.base_score for one in own]))
