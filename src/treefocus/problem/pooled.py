"""Models that differ in nothing but luck, pooled: one forest whose scores are the mean of theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from treefocus import kernels
from treefocus.adapters.joined import joined
from treefocus.errors import InvalidInput
from treefocus.model.forest import Floats, Forest

MOST_LEAVES = 200_000  # of a pool: more would be searched for minutes a row


def pooled(forests: Sequence[Forest]) -> Forest:
    """One forest with the mean of the models' scores, counted from their cuts; of as many as a search can bear."""
    first = forests[0]
    if any(one.classes.tolist() != first.classes.tolist() or one.decision != first.decision for one in forests):
        raise InvalidInput("refits= must be models of the same kind, with the same classes in the same order.")
    if first.decision not in ("argmax", "above", "at_least"):
        raise InvalidInput(f"hold= takes models that predict classes, not a {first.source}.")
    if first.voices and len({len(one.voices) for one in forests}) > 1:
        raise InvalidInput("refits= must be averages of as many models as the first of them.")
    chosen = forests[: max(1, int(np.searchsorted(np.cumsum([one.n_leaves for one in forests]), MOST_LEAVES)))]
    if first.voices:
        return _of_voices(chosen)
    cuts = [0.0 if one.decision == "argmax" else float(one.cut) for one in chosen]
    base = np.sum([one.base_score / one.divisor - cut for one, cut in zip(chosen, cuts, strict=True)], axis=0)
    return joined(
        chosen, [one.leaf_value / one.divisor for one in chosen], base,
        divisor=float(len(chosen)), cut=0.0, link="identity", maps=(), rounding=0.0, score_dtype="float64",
        source=f"pool of {len(chosen)} models",
    )  # fmt: skip


def _of_voices(chosen: Sequence[Forest]) -> Forest:
    """The mean of means: every voice counts as it did in its own, and the cut is the mean of theirs."""
    voices = [replace(voice, weight=voice.weight / one.divisor) for one in chosen for voice in one.voices]
    return joined(
        chosen, [one.leaf_value for one in chosen], np.concatenate([one.base_score for one in chosen]),
        divisor=float(len(chosen)), cut=float(np.mean([one.cut for one in chosen])), voices=tuple(voices),
        rounding=0.0, source=f"pool of {len(chosen)} models",
    )  # fmt: skip


def lead(forest: Forest, rows: Floats, wanted: int) -> Floats:
    """(n_rows,) by how much a class is ahead of every other, or of the cut; negative where it is behind."""
    scores = kernels.hard_scores(forest, rows)
    if forest.decision == "argmax":
        others = np.delete(scores, wanted, axis=1).max(axis=1)
        return np.asarray(scores[:, wanted] - others)
    return np.asarray((scores[:, 0] - forest.cut) * (1 if wanted == 1 else -1))
