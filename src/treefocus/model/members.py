"""How each of several models decides whose trees stand in one forest, one model after another."""

from __future__ import annotations

from dataclasses import dataclass

from treefocus.model.maps import Map
from treefocus.model.voices import Voice

EVERY_CLASS = -2  # of a model that only says whether a point will do: it agrees with every class


@dataclass(frozen=True)
class Member:
    """One of the models of a forest whose decision is "agreed": its trees, its scores, and what it makes of them."""

    n_trees: int
    n_outputs: int  # the first columns of its leaves' values
    to_class: tuple[int, ...]  # per class of its own the forest's, -1 for none of them, or EVERY_CLASS
    decision: str
    cut: float
    cut_high: float
    favoured: int
    link: str
    divisor: float
    score_dtype: str
    source: str
    maps: tuple[Map, ...] = ()
    voices: tuple[Voice, ...] = ()

    @property
    def n_scores(self) -> int:
        """Number of sums that it has: one a voice, where its score is a mean."""
        return len(self.voices) or self.n_outputs
