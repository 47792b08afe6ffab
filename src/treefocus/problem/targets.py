"""Which answer is wanted instead: another class, a given one, a probability, or an interval of what is predicted.

A question of the last two kinds is put to a variant of the forest that has two classes, no and yes. What counts is the
number that the library itself shows. Where ours may differ from it in its last digits, the question comes in three
forms: as asked; loosened, so that no answer of the library's is left out, which is what a proof is made against; and
tightened, so that every answer is one of the library's.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from treefocus.errors import InvalidInput, reject
from treefocus.kernels.inverse import rest_up_to, score_from, score_up_to
from treefocus.model.forest import LARGEST, Forest, Ints
from treefocus.model.shares import has_shares
from treefocus.model.variants import variant
from treefocus.model.voices import has_votes, moved

ANY_OTHER = -1
NO, YES = 0, 1
Cuts = tuple[float, float, float | None]  # loose, as asked, and strict where one is


@dataclass(frozen=True)
class Probability:
    """A class with at least this probability: `Probability("approved", 0.7)`, a margin against a model's noise.

    Parameters
    ----------
    label : a class
        Of the model.
    at_least : float
        Above 0 and below 1.

    Examples
    --------
    >>> from treefocus import Probability
    >>> Probability("approved", 0.7)
    Probability(label='approved', at_least=0.7)
    """

    label: Any
    at_least: float

    def __post_init__(self) -> None:
        if not (isinstance(self.at_least, Real) and 0 < self.at_least < 1):
            reject("Probability.at_least", "a number between 0 and 1", repr(self.at_least))


@dataclass(frozen=True)
class Interval:
    """A predicted value from low to high, both included: `Interval(low=50_000)`; for models that predict a number.

    Parameters
    ----------
    low, high : float
        A side that is left out has no limit.

    Examples
    --------
    >>> from treefocus import Interval
    >>> Interval(low=50_000)
    Interval(low=50000, high=inf)
    """

    low: float = -np.inf
    high: float = np.inf

    def __post_init__(self) -> None:
        for bound in (self.low, self.high):
            if not isinstance(bound, Real) or np.isnan(float(bound)):
                reject(f"{type(self).__name__}", "from a number to a number", repr(bound))
        if not (self.low <= self.high and (self.low > -np.inf or self.high < np.inf)):
            reject(
                f"{type(self).__name__}", "from a low to a high value, one of them finite", f"{self.low}, {self.high}"
            )


@dataclass(frozen=True)
class Score(Interval):
    """A raw score from low to high, before any link function: `Score(low=0.5)`; for models with a single score.

    Parameters
    ----------
    low, high : float
        A side that is left out has no limit.

    Examples
    --------
    >>> from treefocus import Score
    >>> Score(low=0.5)
    Score(low=0.5, high=inf)
    """


@dataclass(frozen=True)
class Slack:
    """How a question's cuts lie where the library's own number may differ from ours in its last digits."""

    loose: tuple[tuple[str, Any], ...]  # fields of the forest: whatever the library lets in is let in
    strict: tuple[tuple[str, Any], ...] | None  # whatever is let in the library lets in; None: no cut does that
    is_exact: bool  # ours is the library's own, as long as it adds up and takes exponentials as it is known to


@dataclass(frozen=True, eq=False)
class Put:
    """A question as a forest takes it."""

    forest: Forest  # that decides it
    target: Ints  # (n_rows,) the class to reach, `ANY_OTHER` for any but a row's own
    slack: Slack | None = None  # None where nothing is rounded between the scores and the decision


def one_a_row(target: Any, forest: Forest, n_rows: int) -> tuple[Probability | Interval, ...] | None:
    """The target of every row, where each has a probability or an interval of its own; None where not."""
    is_interval = forest.decision == "value" and isinstance(target, tuple) and len(target) == 2
    if np.ndim(target) == 0 or (is_interval and all(isinstance(end, Real) for end in target)):
        return None
    each = [one.item() if isinstance(one, np.generic) else one for one in target]
    if forest.decision == "value":
        each = [Interval(*one) if isinstance(one, tuple) and len(one) == 2 else one for one in each]
    kinds = {_kind(one) for one in each}
    if not kinds & {Probability, Interval}:
        return None
    if len(kinds) > 1:
        reject("target", "of one kind for all rows: probabilities, intervals or classes", f"{each[0]!r} and others")
    if len(each) not in (1, n_rows):
        reject("target", f"one, or one a row ({n_rows})", len(each))
    return tuple(_hashable(each[0 if len(each) == 1 else i], forest) for i in range(n_rows))


def _kind(target: Any) -> type[Any]:
    return next((kind for kind in (Probability, Interval) if isinstance(target, kind)), object)


def _hashable(target: Probability | Interval, forest: Forest) -> Probability | Interval:
    """The same target with a label that is the model's own, so that equal ones are equal."""
    if isinstance(target, Interval):
        return target
    return replace(target, label=forest.classes.tolist()[_position(target.label, forest, "Probability.label")])


def put(target: Any, forest: Forest, n_rows: int, origin: Ints | None = None) -> Put:
    """The question of n rows with this target; `origin` are their own classes, where the scores may be rounded."""
    if forest.decision == "value" and isinstance(target, tuple) and len(target) == 2:
        target = Interval(*target)
    slack: Slack | None
    if isinstance(target, Probability):
        asked, slack, answer = _likely(target, forest)
    elif isinstance(target, Interval):
        asked, slack, answer = *_between(target, forest), YES
    elif forest.decision == "value":
        raise InvalidInput(
            f"A {forest.source} predicts a number: say which is wanted, target=Interval(low, high), got {target!r}."
        )
    else:
        targets = as_targets(target, forest, n_rows)
        return Put(forest, targets, _of_classes(forest, targets, origin))
    return Put(asked, np.full(n_rows, answer, np.int32), slack)


def _of_classes(forest: Forest, targets: Ints, origin: Ints | None) -> Slack | None:
    """The slack of rows that all want one class, or all want to leave one, where the model's scores may be rounded.

    To the class that is wanted the loosened question adds what rounding could, from the class to leave it takes that.
    """
    if not forest.rounding:
        return None
    wanted = targets if (targets >= 0).all() else origin
    if wanted is None or len(set(wanted.tolist())) != 1 or len(set(targets.tolist())) != 1:
        return None
    number, is_wanted = int(wanted[0]), bool(targets[0] >= 0)
    if forest.decision != "argmax":
        side = -1.0 if is_wanted == (number == YES) else 1.0
        loose, strict = (
            (("cut", forest.cut + way * forest.rounding), *_moved_voices(forest, -way)) for way in (side, -side)
        )
        return Slack(loose, strict, is_exact=False)
    forms = []
    for way in (1.0, -1.0):
        base = forest.base_score.copy()
        base[number] += (way if is_wanted else -way) * 2 * forest.rounding * forest.divisor
        forms.append((("base_score", base),))
    return Slack(forms[0], forms[1], is_exact=False)


def as_asked(target: Any, forest: Forest) -> Any:
    """The target with every pair of a class and a share as a `Probability`: ("approved", 0.8), or a list of those."""
    if forest.decision == "value":
        return target
    if isinstance(target, list):
        return [_as_likely(one, forest) for one in target]
    return _as_likely(target, forest)


def _as_likely(target: Any, forest: Forest) -> Any:
    """A pair whose second part is no class but a number asks for a probability; anything else is as it was."""
    if not (isinstance(target, tuple) and len(target) == 2 and isinstance(target[1], Real)):
        return target
    label, least = target
    return target if isinstance(least, bool) or least in forest.classes.tolist() else Probability(label, float(least))


def as_targets(target: Any, forest: Forest, n_rows: int) -> Ints:
    """(n_rows,) index of the class to reach, `ANY_OTHER` where `target` is None; one label, or one a row."""
    if target is None:
        return np.full(n_rows, ANY_OTHER, np.int32)
    labels = [target] if np.ndim(target) == 0 else list(target)
    if len(labels) not in (1, n_rows):
        reject("target", f"one class, or one a row ({n_rows})", f"{len(labels)}")
    found = [ANY_OTHER if label is None else _position(label, forest, "target") for label in labels]
    return np.broadcast_to(np.array(found, np.int32), (n_rows,)).copy()


def _position(label: Any, forest: Forest, parameter: str) -> int:
    plain = label.item() if isinstance(label, np.generic) else label
    position = {own: index for index, own in enumerate(forest.classes.tolist())}
    if not isinstance(plain, Hashable) or plain not in position:
        reject(parameter, f"one of {', '.join(map(repr, position)) or 'no classes'}", repr(plain))
    return position[plain]


def _likely(target: Probability, forest: Forest) -> tuple[Forest, Slack, int]:
    if forest.decision == "value":
        raise InvalidInput(f"A {forest.source} predicts a number, not a probability: give target=Interval(low, high).")
    label, p = _position(target.label, forest, "Probability.label"), float(target.at_least)
    if forest.decision not in ("argmax", "likely"):
        return _of_one_score(label, p, forest)
    if forest.link == "sigmoid":  # each class has its own, which is a question about its score
        cuts, is_exact = _score_cuts(p, forest, is_second=True), _divides_exactly(forest)
        return *_asked(forest, cuts, is_exact, decision="likely", link="identity", favoured=label), YES
    if forest.link == "softmax" or _is_adaboost(forest):
        divisor = forest.divisor * (1 if forest.link == "softmax" else forest.n_classes - 1)
        error = 2 * float(np.finfo(forest.score_dtype).eps) * (forest.n_outputs + 4 - float(np.log(p)))
        changes: dict[str, Any] = {"link": "softmax", "divisor": divisor}
    elif has_shares(forest):
        error, changes = 2 * float(np.finfo(np.float64).eps) * (forest.n_trees + 2), {}  # added up in any order
    else:
        raise InvalidInput(f"A {forest.source} gives no probabilities; ask for a class.")
    error += 4 * forest.rounding / (p if not changes else 1.0)
    more = p * (1 + error)
    cuts = _rounded_down(p, forest) * (1 - error), p, more if more < 1 else None
    return *_asked(forest, cuts, not changes, decision="likely", favoured=label, **changes), YES


def _of_one_score(label: int, p: float, forest: Forest) -> tuple[Forest, Slack, int]:
    """Of a model with one score and two classes: from some score up, or up to some score."""
    if (forest.link != "sigmoid" and not forest.maps and not forest.voices) or has_votes(forest.voices):
        raise InvalidInput(f"A {forest.source} gives no probabilities; ask for a class or for Score(low, high).")
    decision, answer = ("at_least", YES) if label == 1 else ("above", NO)
    loose, plain, strict = _score_cuts(p, forest, is_second=label == 1)
    off = forest.rounding if label == 1 else -forest.rounding
    cuts = loose - off, plain, None if strict is None else strict + off
    asked, slack = _asked(forest, cuts, _divides_exactly(forest) and not off, decision=decision)
    if forest.voices:
        side = 1 if label == 1 else -1
        less = None if slack.strict is None else (*slack.strict, *_moved_voices(forest, -side))
        slack = Slack((*slack.loose, *_moved_voices(forest, side)), less, slack.is_exact)
    return asked, slack, answer


def _moved_voices(forest: Forest, way: float) -> tuple[tuple[str, Any], ...]:
    """The change that lets every voice show what rounding could make of it, from above or from below."""
    return (("voices", moved(forest.voices, 1 if way > 0 else -1)),) if forest.voices else ()


def _asked(forest: Forest, cuts: Cuts, is_exact: bool, **changes: Any) -> tuple[Forest, Slack]:
    """The forest that asks for the second of three cuts, and the other two."""
    loose, plain, strict = (None if cut is None else min(max(cut, -LARGEST), LARGEST) for cut in cuts)
    slack = Slack((("cut", loose),), None if strict is None else (("cut", strict),), is_exact)
    return variant(forest, cut=plain, classes=np.array([False, True]), **changes), slack


def _is_adaboost(forest: Forest) -> bool:
    """Whether the scores are weighted votes of more than two classes, as AdaBoost counts them."""
    return forest.link == "identity" and forest.leaf_distribution is not None and forest.n_classes > 2


def _between(target: Interval, forest: Forest) -> tuple[Forest, Slack | None]:
    if forest.n_outputs != 1:
        raise InvalidInput(f"A {forest.source} has {forest.n_outputs} scores; ask for a class or for a Probability.")
    if forest.voices:
        raise InvalidInput(f"A {forest.source} has a score a model inside; ask for a class or for a Probability.")
    low, high = float(target.low), float(target.high)
    slack = None
    if not isinstance(target, Score):
        if forest.decision != "value":
            raise InvalidInput(f"A {forest.source} predicts a class: ask for one, for a Probability or for a Score.")
        if forest.link != "identity" or forest.maps:
            low, high, slack = _inside(low, high, forest)
    if slack is None and forest.rounding:
        slack = _widened(low, high, forest)
    ends = _ended(low, high)
    return variant(forest, decision="between", cut=ends[0], cut_high=ends[1], classes=np.array([False, True])), slack


def _widened(low: float, high: float, forest: Forest) -> Slack:
    """An interval of scores, larger and smaller by what the model's own scores may be off."""
    off = forest.rounding
    forms = [tuple(zip(("cut", "cut_high"), _ended(low - way, high + way), strict=True)) for way in (off, -off)]
    return Slack(forms[0], forms[1] if low + off <= high - off else None, is_exact=False)


def _ended(low: float, high: float) -> tuple[float, float]:
    """Scores that a forest's cuts can be."""
    return max(low, -LARGEST), min(high, LARGEST)


def _inside(low: float, high: float, forest: Forest) -> tuple[float, float, Slack]:
    """The scores whose shown values lie in the interval, and in one that is larger or smaller by what is rounded."""
    forms = []
    for side in (-1, 0, 1):
        first = score_from(_moved(low, side, forest), forest) if low > -np.inf else -np.inf
        last = score_up_to(_moved(high, -side, forest), forest) if high < np.inf else np.inf
        forms.append((first, last))
    loose, plain, strict = forms
    off = forest.rounding
    loose, strict = (loose[0] - off, loose[1] + off), (strict[0] + off, strict[1] - off)
    if not (plain[0] <= plain[1] and plain[0] < np.inf and plain[1] > -np.inf):
        reject("Interval", f"one that a {forest.source} can predict", f"{low} to {high}")
    is_there = strict[0] <= strict[1] and strict[0] < np.inf and strict[1] > -np.inf
    named = [tuple(zip(("cut", "cut_high"), _ended(*ends), strict=True)) for ends in (loose, strict)]
    is_exact = forest.link == "sigmoid" and not forest.maps and not off and _divides_exactly(forest)
    return *plain, Slack(named[0], named[1] if is_there else None, is_exact)


def _score_cuts(p: float, forest: Forest, is_second: bool) -> Cuts:
    """The scores at which a sigmoid reaches p, a little less and a little more.

    Of the first class, whose probability is the rest, the last scores that still leave it so much.
    """

    def edge(least: float) -> float:
        return score_from(least, forest) if is_second else rest_up_to(least, forest)

    off = _off(p if is_second else max(p, 0.5), forest)
    less, more = max(_rounded_down(p, forest) - off, 5e-324), p + off
    return edge(less), edge(p), edge(more) if more < 1 else None


def _moved(value: float, side: int, forest: Forest) -> float:
    """A shown value, moved by as much as it can be off."""
    return value + side * _off(value, forest)


def _off(value: float, forest: Forest) -> float:
    """How far a shown value can be off by the rounding of its score, its exponential and itself."""
    size = max(abs(value), 5e-324)
    return float(np.spacing(np.dtype(forest.score_dtype).type(size))) * (4 + 2 * abs(float(np.log(size))))


def _rounded_down(p: float, forest: Forest) -> float:
    """The smaller of p and p as the library's own number type holds it, in which some compare."""
    return min(p, float(np.dtype(forest.score_dtype).type(p)))


def _divides_exactly(forest: Forest) -> bool:
    """Whether dividing the sum rounds nothing: by a power of two."""
    return bool(np.frexp(forest.divisor)[0] == 0.5)
