"""Many problems, and what came out of them: claims that were looked at, false ones, and how often each pair met."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations, groupby

from threadpoolctl import threadpool_limits

from truth.claims import ORACLE, Falsehood, judged
from truth.models import Model
from truth.problems import DIMENSIONS, Pair, Problem, described, drawn, every_pair, why_excluded


@dataclass(eq=False)
class Tally:
    """What came out so far."""

    n: int = 0
    met: Counter[Pair] = field(default_factory=Counter)
    checked: Counter[str] = field(default_factory=Counter)
    status: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    false: list[Falsehood] = field(default_factory=list)
    missed: list[Falsehood] = field(default_factory=list)  # answers that the library has and the oracle did not find

    def add(self, other: Tally) -> None:
        self.n += other.n
        for name in ("met", "checked", "status", "refused"):
            getattr(self, name).update(getattr(other, name))
        self.false += other.false
        self.missed += other.missed

    def to_text(self) -> str:
        """The counts, the table of pairs, and every false claim with its problem."""
        kinds = Counter(one.kind for one in self.false)
        lines = [
            f"{self.n} problems, {self.status.total()} rows: {_listed(self.status)}",
            f"claims looked at: {self.checked.total()}: {_listed(self.checked)}",
            f"refused: {self.refused.total()}",
            *(f"  {count} x {reason}" for reason, count in self.refused.most_common()),
            f"false: {len(self.false)} {_listed(kinds)}",
            f"answers that the oracle did not find: {len(self.missed)}",
            "",
            pair_table(self.met),
        ]
        for word, ones in (("FALSE", self.false), ("MISSED", self.missed)):
            for one in ones:
                lines += ["", described(drawn(one.seed)), f"  {word:<11} row {one.row}, {one.kind}: {one.told}"]
        return "\n".join(lines)


def run(seeds: Iterable[int]) -> Tally:
    """The problems of these seeds."""
    return total(map(drawn, seeds))


def total(problems: Iterable[Problem]) -> Tally:
    """What comes out of problems."""
    tally = Tally()
    for one in tallies(problems):
        tally.add(one)
    return tally


@threadpool_limits.wrap(limits=1)
def _judged(problem: Problem) -> Tally:
    """A problem's claims; a model of a few rows takes ten times as long on threads that wait for a core."""
    tally, verdict = Tally(n=1), judged(problem)
    if verdict.refused is not None:
        tally.refused[verdict.refused] += 1
        return tally
    tally.met.update(problem.spec.pairs())
    tally.checked.update(verdict.checked)
    tally.status.update(verdict.status)
    tally.false += [one for one in verdict.false if one.kind != ORACLE]
    tally.missed += [one for one in verdict.false if one.kind == ORACLE]
    return tally


def tallies(problems: Iterable[Problem]) -> Iterator[Tally]:
    """What comes out of each problem; after those of one model that follow each other, of their points.

    All of these are put to the models' own predict at once.
    """
    for _, of_one_model in groupby(problems, key=lambda problem: problem.model):
        asking: dict[Model, list[int]] = {}  # the seed of each entry of `looked_up`
        for problem in of_one_model:
            yield _judged(problem)
            for model in (problem.model, *problem.also):
                seeds = asking.setdefault(model, [])
                seeds += [problem.spec.seed] * (len(model.looked_up) - len(seeds))
        yield _points_held(asking)


def _points_held(asking: dict[Model, list[int]]) -> Tally:
    tally = Tally()
    for model, seeds in asking.items():
        tally.checked["points"] += sum(map(len, model.looked_up))
        told = f"{model.library} says otherwise of a point than of its cell"
        wrong = sorted({seeds[place] for place in model.contradicted()})
        tally.false += [Falsehood(seed, 0, "cells", told) for seed in wrong]
    return tally


def pair_table(met: Counter[Pair]) -> str:
    """For every two dimensions, how often each pair of words met; a dash where the pair has no meaning."""
    lines: list[str] = []
    for first, second in [*combinations(DIMENSIONS, 2), ("constraint", "constraint")]:
        rows, columns = DIMENSIONS[first], DIMENSIONS[second]
        wide = max(map(len, rows)) + 2
        marks = [chr(ord("a") + k) for k in range(len(columns))]
        lines += ["", f"{first} x {second}: " + ", ".join(f"{m} {c}" for m, c in zip(marks, columns, strict=True))]
        lines.append(" " * wide + "".join(f"{mark:>6}" for mark in marks))
        for a in rows:
            cells = []
            for b in columns:
                pair: Pair = ((first, a), (second, b))
                if first == second:
                    ordered = sorted((a, b), key=rows.index)
                    pair = ((first, ordered[0]), (second, ordered[1]))
                is_out = a == b and first == second
                cells.append("-" if is_out or why_excluded(pair) is not None else str(met[pair]))
            lines.append(f"{a:<{wide}}" + "".join(f"{cell:>6}" for cell in cells))
    return "\n".join(lines).lstrip("\n")


def seldom(met: Counter[Pair], at_least: int) -> list[tuple[Pair, int]]:
    """Pairs that met fewer times, though they have a meaning."""
    return [(pair, met[pair]) for pair in every_pair() if why_excluded(pair) is None and met[pair] < at_least]


def excluded() -> dict[str, list[Pair]]:
    """By reason, the pairs that cannot meet."""
    found: dict[str, list[Pair]] = {}
    for pair in every_pair():
        reason = why_excluded(pair)
        if reason is not None:
            found.setdefault(reason, []).append(pair)
    return found


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.most_common())
