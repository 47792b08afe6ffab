"""What the answers say of everyone: few actions against GLOBE-CE, AReS and CET, how long an audit takes, what it finds.

    python benchmarks/everyone.py actions FOLDER      Adult, COMPAS, German of FOLDER (or TREEFOCUS_BENCH), and loans
    python benchmarks/everyone.py audit               10,000 loan applications: seconds of explaining and of the audit
    python benchmarks/everyone.py fairness            a planted unfairness, and a fair model under 100 seeds

The baselines are written here after their papers, under the same constraints and the same costs (the Manhattan distance
on columns scaled to the range of the data):

GLOBE-CE (Ley, Mishra, Magazzeni 2023): directions of change drawn at random over a few features; each person goes
    along a direction just as far as it takes. Of the directions, k are picked one after the other by coverage.
AReS (Rawal and Lakkaraju 2020): rules "if q then c" over columns in bins, both sides frequent itemsets of the data over
    the same features; k rules are picked one after the other by what they add to coverage, less a share of their cost.
CET (Kanamori, Takagi, Kobayashi, Ike 2022): a tree of at most k leaves over what is known of people, an action a leaf,
    grown by what it takes off the sum of cost and lost people. Its actions are drawn here from the differences between
    people and accepted rows, where the paper solves a program for each leaf.

At equal cost: our plan under `mean_cost`, the mean cost of the baseline. Beside GLOBE-CE, whose people go just as far
as it takes, ours do, too (`gradual=True`); beside the others all people take the whole action.
"""

from __future__ import annotations

import argparse
import gzip
import os
import time
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from treefocus import Explainer, Explanations, Feature, Fixed, Increasing, Schema, kernels, loans

SIZES = (1, 2, 3, 5)
TABLES = {"adult": "adult", "compas": "compas", "german": "german-credit"}


@dataclass(frozen=True)
class Case:
    """A model, the people it turns down, and what they may change."""

    name: str
    explainer: Explainer
    model: Any
    people: np.ndarray  # (n_rows, n_features)
    data: np.ndarray
    wanted: Any
    is_fixed: np.ndarray  # (n_features,)
    only_up: np.ndarray
    only_down: np.ndarray
    is_whole: np.ndarray
    is_category: np.ndarray

    @property
    def low(self) -> np.ndarray:
        """(n_features,) where the data begin."""
        return self.data.min(axis=0)

    @property
    def high(self) -> np.ndarray:
        """(n_features,) where they end."""
        return self.data.max(axis=0)

    @property
    def scale(self) -> np.ndarray:
        """(n_features,) what a change of 1 is."""
        return np.where(self.high > self.low, self.high - self.low, 1.0)

    def says(self, points: np.ndarray) -> np.ndarray:
        """The model's answers, by our forest of it, which is quicker and gives the same."""
        forest = self.explainer.forest
        return forest.classes[kernels.predict(forest, np.ascontiguousarray(points))]

    def costs(self, points: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """What each point costs, infinity where it is not allowed or does not get the wanted answer."""
        moved = np.where(self.is_category, points != rows, np.abs(points - rows) / self.scale)
        allowed = ((points == rows) | ~self.is_fixed).all(axis=1)
        allowed &= ((points >= rows) | ~self.only_up).all(axis=1) & ((points <= rows) | ~self.only_down).all(axis=1)
        inside = (points == rows) | ((points >= self.low) & (points <= self.high))
        allowed &= inside.all(axis=1)
        good = allowed.copy()
        if allowed.any():
            good[allowed] = self.says(points[allowed]) == self.wanted
        return np.where(good, moved.sum(axis=1), np.inf)


def read(path: Path) -> tuple[list[str], list[str], list[str], list[list[str]]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        lines = [line.rstrip("\n").split(",") for line in file]
    return lines[0], lines[1], lines[2], lines[3:]


def case_of(name: str, folder: Path | None, n_rows: int, seed: int) -> Case:
    """The data set with a random forest, and some of the people it turns down, drawn by the seed."""
    if name == "loans":
        return loan_case(n_rows, seed)
    assert folder is not None
    names, kinds, rules, cells = read(folder / f"{TABLES[name]}.csv.gz")
    columns = list(zip(*cells, strict=True))
    values = np.empty((len(cells), len(names)))
    for j, column in enumerate(columns):
        try:
            values[:, j] = np.array(column, float)
        except ValueError:
            values[:, j] = np.unique(column, return_inverse=True)[1]
    X, y = values[:, :-1], values[:, -1].astype(int)
    order = np.random.default_rng(0).permutation(len(X))[:8_000]
    X, y = X[order], y[order]
    wanted = 0 if name == "compas" else 1
    half = len(X) // 2
    model = RandomForestClassifier(50, max_depth=6, random_state=0).fit(X[:half], y[:half])
    names, kinds, rules = names[:-1], kinds[:-1], rules[:-1]
    is_fixed, only_up = np.array([rule == "FIXED" for rule in rules]), np.array([rule == "INC" for rule in rules])
    # Categories are numbers here, for all methods alike: any whole number may be taken.
    schema = Schema(
        [Feature(own, "continuous" if kind == "N" else "integer") for own, kind in zip(names, kinds, strict=True)]
    )
    limits = [Fixed(*(n for n, f in zip(names, is_fixed, strict=True) if f))] if is_fixed.any() else []
    limits += [Increasing(*(n for n, f in zip(names, only_up, strict=True) if f))] if only_up.any() else []
    explainer = Explainer(model, X[:half], constraints=limits, schema=schema)
    people = drawn(X[half:][model.predict(X[half:]) != wanted], n_rows, seed)
    whole = np.array([kind != "N" for kind in kinds])
    none = np.zeros(len(names), bool)
    return Case(name, explainer, model, people, X[:half], wanted, is_fixed, only_up, none, whole, none)


def drawn(rows: np.ndarray, n_rows: int, seed: int) -> np.ndarray:
    return rows[np.sort(np.random.default_rng(seed).permutation(len(rows))[:n_rows])]


def loan_case(n_rows: int, seed: int) -> Case:
    model, X_train, X_test, _, _ = loans.train()
    explainer = Explainer(model, X_train, constraints=loans.CONSTRAINTS, schema=loans.SCHEMA)
    names = list(loans.SCHEMA.names)
    rule = {kind: np.zeros(len(names), bool) for kind in ("Fixed", "Increasing", "Decreasing")}
    for constraint in loans.CONSTRAINTS:
        for column in constraint.columns:
            rule[type(constraint).__name__][names.index(column)] = True
    people = drawn(X_test[model.predict(X_test) == "declined"], n_rows, seed)
    none = np.zeros(len(names), bool)
    whole = np.array([feature.kind == "integer" for feature in loans.SCHEMA.features])
    return Case(
        "loans", explainer, model, people, X_train, "approved", rule["Fixed"], rule["Increasing"], rule["Decreasing"],
        whole, none,
    )  # fmt: skip


# --- baselines: (n_actions, n_people) costs, and how k of them are picked


def globe_ce(case: Case, n_directions: int = 300, n_scalars: int = 25, seed: int = 0) -> np.ndarray:
    """Random directions over one to five features; each person goes as far as it takes."""
    draw = np.random.default_rng(seed)
    free = np.flatnonzero(~case.is_fixed)
    found = np.full((n_directions, len(case.people)), np.inf)
    for k in range(n_directions):
        chosen = draw.choice(free, min(len(free), draw.integers(1, 6)), replace=False)
        direction = np.zeros(case.people.shape[1])
        direction[chosen] = draw.uniform(-1, 1, len(chosen))
        direction[case.only_up] = np.abs(direction[case.only_up])
        direction[case.only_down] = -np.abs(direction[case.only_down])
        direction /= np.abs(direction).max()
        for scalar in np.linspace(1 / n_scalars, 1, n_scalars):
            left = np.flatnonzero(~np.isfinite(found[k]))
            if not left.size:
                break
            rows = case.people[left]
            points = rows + scalar * direction * case.scale
            points = np.where(case.is_whole, np.rint(points), points)
            points = np.where(
                direction == 0, rows, np.clip(points, np.minimum(rows, case.low), np.maximum(rows, case.high))
            )
            found[k, left] = case.costs(points, rows)
    return found


def ares(case: Case, n_bins: int = 10, support: float = 0.05, most_rules: int = 4_000) -> np.ndarray:
    """Rules "if q then c" from frequent itemsets of one and two binned features."""
    bins, middles = [], []
    for j in range(case.data.shape[1]):
        edges = np.unique(np.quantile(case.data[:, j], np.linspace(0, 1, n_bins + 1)[1:-1]))
        own = np.searchsorted(edges, case.data[:, j], side="left")
        bins.append(edges)
        middle = [np.median(case.data[own == b, j]) if (own == b).any() else np.nan for b in range(len(edges) + 1)]
        middles.append(np.array([np.rint(m) if case.is_whole[j] else m for m in middle]))
    of_data = np.stack([np.searchsorted(bins[j], case.data[:, j], side="left") for j in range(len(bins))], axis=1)
    of_people = np.stack([np.searchsorted(bins[j], case.people[:, j], side="left") for j in range(len(bins))], axis=1)
    accepted = of_data[case.says(case.data) == case.wanted]
    free = np.flatnonzero(~case.is_fixed).tolist()
    found: list[np.ndarray] = []
    for columns in [(j,) for j in free] + list(combinations(free, 2)):
        ifs, n_if = np.unique(of_people[:, columns], axis=0, return_counts=True)
        thens, n_then = np.unique(accepted[:, columns], axis=0, return_counts=True)
        ifs = ifs[n_if >= max(1, support * len(case.people))]
        thens = thens[n_then >= support * len(accepted)]
        for q in ifs:
            rows = np.flatnonzero((of_people[:, columns] == q).all(axis=1))
            for c in thens:
                if (q == c).any() or len(found) >= most_rules:
                    continue
                points = case.people[rows].copy()
                for place, j in enumerate(columns):
                    points[:, j] = middles[j][c[place]]
                cost = case.costs(points, case.people[rows])
                if np.isfinite(cost).any():
                    own = np.full(len(case.people), np.inf)
                    own[rows] = cost
                    found.append(own)
    return np.array(found).reshape(len(found), len(case.people))


def picked(cost: np.ndarray, size: int, share: float = 0.05) -> tuple[float, float]:
    """k lines one after the other, by what they add to coverage, less a share of their cost; coverage and mean cost."""
    least = np.full(cost.shape[1], np.inf)
    for _ in range(min(size, len(cost))):
        new = np.minimum(cost, least)
        helped = np.isfinite(new)
        total = np.where(helped, new, 0.0).sum(axis=1)
        worth = helped.mean(axis=1) - share * total / cost.shape[1]
        least = new[int(np.argmax(worth))]
    return measured(least)


def measured(least: np.ndarray) -> tuple[float, float]:
    helped = np.isfinite(least)
    return float(helped.mean()), float(least[helped].mean()) if helped.any() else float("nan")


def cet(case: Case, size: int, n_actions: int = 300, seed: int = 0, lost: float = 1.0) -> tuple[float, float]:
    """A tree of at most k leaves, an action a leaf, grown by cost plus `lost` for everyone not helped."""
    draw = np.random.default_rng(seed)
    accepted = case.data[case.says(case.data) == case.wanted]
    cost = np.full((n_actions, len(case.people)), np.inf)
    for k in range(n_actions):
        person = case.people[draw.integers(len(case.people))]
        other = accepted[draw.integers(len(accepted))]
        columns = np.flatnonzero((person != other) & ~case.is_fixed)
        columns = draw.permutation(columns)[: draw.integers(1, 4)]
        points = case.people.copy()
        points[:, columns] += (other - person)[columns]
        inside = np.clip(points, np.minimum(case.people, case.low), np.maximum(case.people, case.high))
        cost[k] = case.costs(inside, case.people)
    charged = np.where(np.isfinite(cost), cost, lost)
    leaves = [np.arange(len(case.people))]
    while len(leaves) < size:
        best: tuple[float, int, np.ndarray] | None = None
        for number, rows in enumerate(leaves):
            now = charged[:, rows].sum(axis=1).min()
            for j in range(case.people.shape[1]):
                for value in np.unique(np.quantile(case.people[rows, j], np.linspace(0.1, 0.9, 9))):
                    yes = case.people[rows, j] <= value
                    if 0 < yes.sum() < len(rows):
                        split = sum(charged[:, rows[side]].sum(axis=1).min() for side in (yes, ~yes))
                        if best is None or now - split > best[0]:
                            best = (now - split, number, yes)
        if best is None or best[0] <= 0:
            break
        rows = leaves.pop(best[1])
        leaves += [rows[best[2]], rows[~best[2]]]
    least = np.full(len(case.people), np.inf)
    for rows in leaves:
        least[rows] = cost[int(charged[:, rows].sum(axis=1).argmin())][rows]
    return measured(least)


# --- the three commands


def actions(folder: Path | None, n_rows: int, names: list[str], sizes: list[int], seed: int) -> None:
    print(
        f"{'data':8} {'k':>1} {'method':8} {'coverage':>8} {'mean cost':>9}   ours at that cost: coverage, cost, bound"
    )
    won = within = total = cells = 0
    for name in names:
        if name != "loans" and folder is None:
            print(f"{name:8} skipped: no folder")
            continue
        case = case_of(name, folder, n_rows, seed)
        began = time.perf_counter()
        found = case.explainer.explain(case.people, target=case.wanted, time_limit=0.5)
        explained = time.perf_counter() - began
        pools = {"GLOBE-CE": globe_ce(case), "AReS": ares(case)}
        print(f"{name:8} {len(case.people)} people, {explained:.1f} s to explain: {found!r}")
        for size in sizes:
            began = time.perf_counter()
            plans, gradual = Ours(case, found, size, False), Ours(case, found, size, True)
            whole = plans.plan(None)
            seconds = time.perf_counter() - began
            gap = whole[2] - whole[0]
            within += gap <= 0.1
            cells += 1
            print(
                f"{name:8} {size} {'ours':8} {whole[0]:8.1%} {whole[1]:9.3f}   proven bound {whole[2]:.1%} "
                f"({100 * gap:.1f} points above), {seconds:.1f} s"
            )
            others = {method: picked(pool, size) for method, pool in pools.items()} | {"CET": cet(case, size)}
            for method, (coverage, cost) in others.items():
                best = (gradual if method == "GLOBE-CE" else plans).plan(cost)
                won += best[0] > coverage or (best[0] == coverage == 1.0)
                total += 1
                print(
                    f"{name:8} {size} {method:8} {coverage:8.1%} {cost:9.3f}   {best[0]:8.1%} {best[1]:9.3f} "
                    f"{best[2]:8.1%} {'' if best[0] >= coverage else '  BEHIND'}",
                    flush=True,
                )
    print(f"more coverage at equal cost: {won} of {total}; bound within 10 points: {within} of {cells}")


@dataclass(frozen=True)
class Ours:
    """Our plans of one size: coverage, mean cost and bound."""

    case: Case
    found: Explanations
    size: int
    gradual: bool

    def plan(self, mean_cost: float | None) -> tuple[float, float, float]:
        """The plan at a mean cost of at most this."""
        limit = None if mean_cost is None or np.isnan(mean_cost) else mean_cost  # of whom nobody is helped
        plan = self.case.explainer.actions(self.found, at_most=self.size, mean_cost=limit, gradual=self.gradual)
        return plan.coverage, plan.mean_cost, plan.upper_bound


def audit(n_rows: int) -> None:
    model, X_train, *_ = loans.train()
    X, _ = loans.generate(4 * n_rows, seed=1)
    people = X[model.predict(X) == "declined"][:n_rows]
    explainer = Explainer(model, X_train, constraints=loans.CONSTRAINTS, schema=loans.SCHEMA)
    began = time.perf_counter()
    found = explainer.explain(people, target="approved", time_limit=0.02)
    explained = time.perf_counter() - began
    groups = {"age": np.digitize(people[:, 0], [30, 45, 60]), "dependants": np.minimum(people[:, 1], 3)}
    began = time.perf_counter()
    text = found.audit(groups).to_text()
    print(text)
    print(f"{len(people):,} rows: explained in {explained:.1f} s, audited in {time.perf_counter() - began:.1f} s")


def demanding(factor: int) -> tuple[Explainer, Any]:
    """A model under which group 0 needs x to reach v, and group 1 factor times v."""
    grid = np.array([(g, v, x) for g in (0, 1) for v in range(1, 9) for x in range(20)], float)
    passes = grid[:, 2] >= grid[:, 1] * np.where(grid[:, 0] == 1, factor, 1)
    model = DecisionTreeClassifier(random_state=0).fit(grid, np.where(passes, "yes", "no"))
    assert (model.predict(grid) == np.where(passes, "yes", "no")).all()
    names = ["group", "v", "x"]
    schema = Schema([Feature(name, "integer") for name in names])
    return Explainer(model, grid, constraints=Fixed("group", "v"), schema=schema, scale=None), model


def fairness(n_rows: int, n_seeds: int) -> None:
    for factor in (2, 1):
        explainer, _ = demanding(factor)
        n_found, ratios = 0, []
        for seed in range(n_seeds):
            draw = np.random.default_rng(seed)
            people = np.stack([draw.integers(0, 2, n_rows), draw.integers(1, 9, n_rows), np.zeros(n_rows)], axis=1)
            groups = {"sex": people[:, 0], "region": draw.integers(0, 3, n_rows)}
            made = explainer.explain(people.astype(float), target="yes").audit(groups)
            own = next(one for one in made.disparities if one.columns == ("sex",) and one.measure == "burden")
            ratios.append(own.ratio[0] if own.group == (1,) else 1 / own.ratio[0])
            n_found += bool(made.findings) if factor == 1 else own.is_found
        word = "planted, group 1 is asked for twice as much" if factor == 2 else "fair"
        print(f"{word}: findings in {n_found} of {n_seeds} audits of {n_rows} people; mean ratio {np.mean(ratios):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("actions", "audit", "fairness"))
    parser.add_argument("folder", nargs="?", default=os.environ.get("TREEFOCUS_BENCH"))
    parser.add_argument("--rows", type=int)
    parser.add_argument("--seeds", type=int, default=100, help="of fairness, one an audit")
    parser.add_argument("--seed", type=int, default=0, help="by which the people of actions are drawn")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="how many actions there may be")
    parser.add_argument("--data", nargs="*", default=[*TABLES, "loans"])
    given = parser.parse_args()
    if given.command == "actions":
        actions(
            None if given.folder is None else Path(given.folder), given.rows or 200, given.data, given.sizes, given.seed
        )
    elif given.command == "audit":
        audit(given.rows or 10_000)
    else:
        fairness(given.rows or 200, given.seeds)


if __name__ == "__main__":
    main()
