"""Advice that holds: how many retrained models confirm an answer, and what that costs.

    python benchmarks/holds.py FOLDER             German, Adult, COMPAS, Phishing, Spambase of FOLDER, and loans
    python benchmarks/holds.py FOLDER --tables german --models rf4 --rows 25 --held-out 30 --seed 7
    python benchmarks/holds.py FOLDER --curves    distance at the same validity, for the methods that have a knob
    python benchmarks/holds.py FOLDER --cost      what `also=` costs, in multiples of one model
    python benchmarks/holds.py FOLDER --room      who does more than the advice: what the model itself says of them

FOLDER (or TREEFOCUS_BENCH) has the tables of OCEAN's authors (*.csv.gz: names, kinds, what may change, rows). Models:
`rf4`, 100 trees of depth 4, `rf`, a random forest by its defaults, `xgb`, XGBoost by its defaults. Rows with the
unwanted class are asked for the other one, Manhattan. *Validity* is the share of held-out refits (other seeds, other
bootstrap rows, never those that an answer was made with) that give the wanted class, over all rows with an answer;
*distance* is in multiples of the smallest change. Methods:

smallest        the default
p >= 0.6        a margin on the model's own probability
hold            `hold=0.95` with refits of its own
above 5%, 20%   room to move: `Tolerance(above=...)`
also 5, also 20 that many refits have to agree, jointly
votes           the law of a forest's votes without any refit, after Forel, Parmentier and Vidal, "Don't explain
                noise" (2022)
RobX            after Dutta et al. (2022): from the smallest change step by step towards near training rows that are
                stable themselves, until the model's probability in a sample around the point, less its spread,
                passes a limit
"""

from __future__ import annotations

import argparse
import gzip
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from treefocus import Explainer, Fixed, Increasing, Probability, Tolerance, loans, refits

TABLES = {name: name for name in ("adult", "compas", "phishing", "spambase")} | {"german": "german-credit"}
PROMISE = 0.95
N_REFITS = 40  # that answers may be made with
KNOBS = {
    "hold": (0.6, 0.7, 0.75, 0.8, 0.825, 0.85, 0.875, 0.9, 0.925, 0.95, 0.97, 0.99),
    "votes": (0.6, 0.7, 0.8, 0.85, 0.875, 0.9, 0.925, 0.95, 0.97, 0.98, 0.99, 0.999),
    "RobX": (0.4, 0.5, 0.54, 0.57, 0.6, 0.62, 0.64, 0.66, 0.7, 0.75, 0.8, 0.9),
}
Answers = tuple[pd.DataFrame, np.ndarray, np.ndarray]
STABLE, SAMPLE, SPREAD, STEPS, NEIGHBOURS = 0.6, 60, 0.1, 20, 10  # of RobX


@dataclass(frozen=True)
class Case:
    """A model, its training rows, and the people whom it turns down."""

    name: str
    model: Any
    X: pd.DataFrame
    y: np.ndarray
    people: pd.DataFrame
    wanted: Any
    constraints: list[Any]

    def explainer(self, **options: Any) -> Explainer:
        """An explainer of the model, with these options besides."""
        return Explainer(self.model, self.X, constraints=self.constraints, **options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default=os.environ.get("TREEFOCUS_BENCH"))
    parser.add_argument("--tables", nargs="+", default=[*TABLES, "loans"])
    parser.add_argument("--models", nargs="+", default=["rf4", "rf", "xgb"])
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--rows", type=int, default=50)
    parser.add_argument("--held-out", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0, help="of the refits")
    parser.add_argument("--curves", action="store_true", help="distance at the same validity instead")
    parser.add_argument("--cost", action="store_true", help="what also= costs instead")
    parser.add_argument("--room", action="store_true", help="who does more than the advice instead")
    chosen = parser.parse_args()
    if chosen.room:
        return in_boxes(chosen)
    if chosen.curves or chosen.cost:
        for table in chosen.tables:
            for kind in chosen.models:
                case = case_of(table, kind, chosen.folder, chosen.rows)
                told = at_validity(case, chosen.held_out, chosen.seed) if chosen.curves else cost(case, chosen.seed)
                print(f"{table:10} {kind:5} {told}", flush=True)
        return None
    heads = f"{'method':9} {'found':>7} {'proven':>7} {'validity':>9} {'distance':>9} {'s a row':>8}"
    print(f"{'table':10} {'model':5} {heads}")
    for table in chosen.tables:
        for kind in chosen.models:
            case = case_of(table, kind, chosen.folder, chosen.rows)
            for line in compared(case, chosen.methods, chosen.held_out, chosen.seed):
                print(f"{table:10} {kind:5} {line}", flush=True)


POINTS = 1000  # of each box


def in_boxes(chosen: argparse.Namespace) -> None:
    """Random points of every box, and who overshoots by 20 %, put to the model itself."""
    print(
        f"{'table':10} {'model':5} {'room':9} {'found':>7} {'proven':>7} {'points of boxes':>19} {'overshooting':>13}"
    )
    for table in chosen.tables:
        for kind in chosen.models:
            case = case_of(table, kind, chosen.folder, chosen.rows)
            for above in (0.0, 0.05, 0.2):
                found = case.explainer().explain(case.people, case.wanted, tolerance=Tolerance(above=above))
                has = np.flatnonzero(found.has_answer)
                inside = [_said(case, found, i, above, np.random.default_rng(i).random(POINTS)) for i in has]
                beyond = [_said(case, found, i, 0.2, np.ones(1)) for i in has]
                proven = np.mean([one.name in ("OPTIMAL", "INFEASIBLE") for one in found.status])
                agree = f"{sum(map(sum, inside)):>9,} of {len(has) * POINTS:>7,}"
                counted = f"{len(has):>3}/{len(found):<3} {proven:>7.0%} {agree} {np.mean(beyond):>13.1%}"
                print(f"{table:10} {kind:5} {f'above {above:.0%}':9} {counted}", flush=True)


def _said(case: Case, found: Any, i: int, above: float, share: np.ndarray) -> np.ndarray:
    """Whether the model gives the wanted class to points so far beyond an answer, each column by a share of its own."""
    one, table = found[i], pd.concat([found.counterfactuals.iloc[[i]]] * len(share), ignore_index=True)
    explainer, draw = case.explainer(), np.random.default_rng(i)
    space = explainer.space
    for change in one.changes:
        j = one.schema.index(change.feature)
        if change.is_category or np.isnan(one.row[j]):
            continue
        to, own = one.counterfactual[j], one.row[j]
        shares = share if len(share) == 1 else draw.permutation(share)
        end = np.clip(to + above * shares * (to - own), min(space.low[j], own, to), max(space.high[j], own, to))
        is_whole = table.dtypes[change.feature].kind in "iu" or explainer.whole_columns[j]
        step = 1.0 if is_whole else explainer.schema.features[j].step  # the column holds no numbers in between
        end = to + np.sign(to - own) * step * np.floor(np.abs(end - to) / step) if step else end
        table[change.feature] = end.astype(table.dtypes[change.feature])
    return np.asarray(case.model.predict(table) == case.wanted)


def compared(case: Case, methods: list[str], n_held_out: int, seed: int) -> Iterator[str]:
    """A line a method."""
    own, held_out = trained(case, n_held_out, seed)
    smallest = case.explainer().explain(case.people, case.wanted)
    for name in methods:
        if name == "votes" and not _has_votes(case):  # boosted trees do not vote
            continue
        began = time.process_time()
        answers = METHODS[name](case, own, smallest)
        seconds = (time.process_time() - began) / len(case.people)
        validity, times = judged(case, answers, smallest, held_out)
        has = np.isfinite(answers[1])
        counted = f"{has.sum():>3}/{len(has):<3} {answers[2].mean():>7.0%}"
        yield f"{name:9} {counted} {validity:>9.1%} {times:>9.2f} {seconds:>8.2f}"


def trained(case: Case, n_held_out: int, seed: int) -> tuple[list[Any], list[Any]]:
    """Refits that answers may be made with, and those that judge them."""
    return tuple(  # type: ignore[return-value]
        refits(case.model, case.X, case.y, n=n, seed=own)
        for n, own in ((N_REFITS, 2 * seed + 1), (n_held_out, 2 * seed + 2))
    )


def judged(case: Case, answers: Answers, smallest: Any, held_out: list[Any]) -> tuple[float, float]:
    """The share of held-out refits that agree, and the mean distance in smallest changes."""
    points, distance, _ = answers
    has = np.isfinite(distance) & smallest.has_answer
    if not has.any():
        return np.nan, np.nan
    agree = [model.predict(points[has]) == case.wanted for model in held_out]
    return float(np.mean(agree)), float(distance[has].mean() / smallest.distance[has].mean())


def at_validity(case: Case, n_held_out: int, seed: int) -> str:
    """The distance at which each method with a knob first has the validity that was promised, along its curve.

    The knob: the margin on the pool, the promise of the law of the votes, the limit on RobX's stability.
    """
    own, held_out = trained(case, n_held_out, seed)
    smallest = case.explainer().explain(case.people, case.wanted)
    explainer, told = case.explainer(refits=own), []
    knobs: dict[str, Callable[[float], Answers]] = {
        "hold": lambda knob: _told(explainer.explain(case.people, case.wanted, hold=knob)),
        "votes": lambda knob: _told(case.explainer().explain(case.people, case.wanted, hold=knob)),
        "RobX": lambda knob: by_robx(case, own, smallest, knob),
    }
    for name, method in knobs.items():
        if name == "votes" and not _has_votes(case):
            continue
        curve = [judged(case, smallest_answers, smallest, held_out) for smallest_answers in [_told(smallest)]]
        for knob in KNOBS[name]:
            curve.append(judged(case, method(knob), smallest, held_out))
            if curve[-1][0] >= PROMISE:
                break
        told.append(f"{name} {_where(curve):.2f}")
    return f"distance at {PROMISE:.0%}: " + ", ".join(told)


def _where(curve: list[tuple[float, float]]) -> float:
    """The distance at the promise, between the last point of a curve below it and the first above."""
    (low, near), (high, far) = curve[-2:]
    return near + (far - near) * (PROMISE - low) / (high - low) if high >= PROMISE > low else np.nan


def cost(case: Case, seed: int) -> str:
    """Processor time of `explain` with 5 and with 20 refits that have to agree, in multiples of the model alone."""
    own = refits(case.model, case.X, case.y, n=20, seed=2 * seed + 1)
    seconds = []
    for n in (0, 5, 20):
        explainer = case.explainer(also=own[:n])
        explainer.explain(case.people[:1], case.wanted, n_jobs=1)
        least = np.inf
        for _ in range(3):
            began = time.process_time()
            explainer.explain(case.people, case.wanted, n_jobs=1)
            least = min(least, time.process_time() - began)
        seconds.append(least)
    times = [one / seconds[0] for one in seconds[1:]]
    return (
        f"{1e3 * seconds[0] / len(case.people):.2f} ms a row alone; times {times[0]:.1f} with 5, {times[1]:.1f} with 20"
    )


def _has_votes(case: Case) -> bool:
    return not hasattr(case.model[-1] if hasattr(case.model, "steps") else case.model, "get_booster")


# --- the methods: (answers, distance, is proven), a row each


def _told(found: Any) -> Answers:
    proven = np.array([one.name in ("OPTIMAL", "INFEASIBLE") for one in found.status])
    return found.counterfactuals, np.where(found.has_answer, found.distance, np.nan), proven


def by_smallest(case: Case, own: list[Any], smallest: Any) -> Answers:
    return _told(smallest)


def by_margin(case: Case, own: list[Any], smallest: Any) -> Answers:
    return _told(case.explainer().explain(case.people, Probability(case.wanted, 0.6)))


def by_hold(case: Case, own: list[Any], smallest: Any) -> Answers:
    return _told(case.explainer(refits=own).explain(case.people, case.wanted, hold=PROMISE))


def by_tolerance(above: float) -> Callable[[Case, list[Any], Any], Answers]:
    def method(case: Case, own: list[Any], smallest: Any) -> Answers:
        return _told(case.explainer().explain(case.people, case.wanted, tolerance=Tolerance(above=above)))

    return method


def by_votes(case: Case, own: list[Any], smallest: Any) -> Answers:
    return _told(case.explainer().explain(case.people, case.wanted, hold=PROMISE))


def by_also(n: int) -> Callable[[Case, list[Any], Any], Answers]:
    def method(case: Case, own: list[Any], smallest: Any) -> Answers:
        return _told(case.explainer(also=own[:n]).explain(case.people, case.wanted, time_limit=5))

    return method


def by_robx(case: Case, own: list[Any], smallest: Any, least: float = STABLE) -> Answers:
    """From each smallest change towards the nearest stable training rows; the closest point that is stable."""
    explainer, draw = case.explainer(), np.random.default_rng(0)
    size = np.where(explainer.space.scale > 0, explainer.space.scale, 1.0)
    numbers = [j for j, labels in enumerate(explainer.column_labels) if labels is None]
    is_wanted = case.model.predict(case.X) == case.wanted
    rows = case.X[is_wanted].reset_index(drop=True)
    rows = rows[_stability(case, rows, numbers, size, draw) >= least].reset_index(drop=True)
    points, distance = smallest.counterfactuals.copy(), np.full(len(case.people), np.nan)
    for i in np.flatnonzero(smallest.has_answer):
        start, person = smallest.counterfactuals.iloc[[i]], case.people.iloc[[i]]
        ways = [_between(start, rows.iloc[[k]], numbers) for k in _nearest(start, rows, numbers, size)[:NEIGHBOURS]]
        tried = pd.concat([start, *ways], ignore_index=True)
        stable = (_stability(case, tried, numbers, size, draw) >= least) & (case.model.predict(tried) == case.wanted)
        if stable.any():
            far = np.where(stable, _distances(person, tried, numbers, size), np.inf)
            points.iloc[i], distance[i] = tried.iloc[int(far.argmin())], far.min()
    return points, distance, np.zeros(len(distance), bool)


def _stability(case: Case, rows: pd.DataFrame, numbers: list[int], size: np.ndarray, draw: Any) -> np.ndarray:
    """(n_rows,) the mean probability of the wanted class in a sample around each row, less its spread."""
    many = rows.loc[rows.index.repeat(SAMPLE)].reset_index(drop=True)
    for j in numbers:
        column = many.columns[j]
        many[column] = many[column].astype(float) + draw.normal(0, SPREAD * size[j], len(many))
    place = list(case.model.classes_).index(case.wanted)
    sure = case.model.predict_proba(many)[:, place].reshape(len(rows), SAMPLE)
    return np.asarray(sure.mean(axis=1) - sure.std(axis=1))


def _between(start: pd.DataFrame, end: pd.DataFrame, numbers: list[int]) -> pd.DataFrame:
    """Points on the way; whole numbers stay whole, categories change at the end."""
    way = pd.concat([start] * STEPS, ignore_index=True)
    share = np.linspace(1 / STEPS, 1, STEPS)
    for j in numbers:
        a, b, column = float(start.iloc[0, j]), float(end.iloc[0, j]), way.columns[j]
        moved = a + share * (b - a)
        is_whole = a.is_integer() and b.is_integer()
        way[column] = np.where(share == 1, b, np.round(moved) if is_whole else moved).astype(start[column].dtype)
    for j in set(range(way.shape[1])) - set(numbers):
        way.iloc[-1, j] = end.iloc[0, j]
    return way


def _nearest(start: pd.DataFrame, rows: pd.DataFrame, numbers: list[int], size: np.ndarray) -> np.ndarray:
    return np.argsort(_distances(start, rows, numbers, size), kind="stable")


def _distances(person: pd.DataFrame, rows: pd.DataFrame, numbers: list[int], size: np.ndarray) -> np.ndarray:
    """(n_rows,) Manhattan, in ranges of the columns; another category counts 1."""
    total = np.zeros(len(rows))
    for j in range(rows.shape[1]):
        if j in numbers:
            total += np.abs(rows.iloc[:, j].to_numpy(float) - float(person.iloc[0, j])) / size[j]
        else:
            total += rows.iloc[:, j].to_numpy() != person.iloc[0, j]
    return total


METHODS: dict[str, Callable[[Case, list[Any], Any], Answers]] = {
    "smallest": by_smallest,
    "p >= 0.6": by_margin,
    "hold": by_hold,
    "also 5": by_also(5),
    "also 20": by_also(20),
    "votes": by_votes,
    "above 5%": by_tolerance(0.05),
    "above 20%": by_tolerance(0.2),
    "RobX": by_robx,
}


# --- the cases


def case_of(table: str, kind: str, folder: str | None, n_rows: int) -> Case:
    if table == "loans":
        trained = loans.train()
        X = pd.DataFrame(trained.X_train, columns=loans.SCHEMA.names)
        test, y, wanted, rules = (
            pd.DataFrame(trained.X_test, columns=X.columns),
            trained.y_train,
            "approved",
            loans.CONSTRAINTS,
        )
    else:
        if folder is None:
            raise SystemExit("Give the folder of the tables, or set TREEFOCUS_BENCH.")
        X, test, y, rules = read(Path(folder) / f"{TABLES[table]}.csv.gz")
        wanted = 1
    labels = np.asarray(y) == wanted if kind == "xgb" else np.asarray(y)
    wanted = True if kind == "xgb" else wanted
    model = made(kind, X).fit(X, labels)
    people = test[model.predict(test) != wanted][:n_rows].reset_index(drop=True)
    return Case(table, model, X, labels, people, wanted, list(rules))


def read(path: Path) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray, list[Any]]:
    """Training rows, test rows, labels of the former, and what may not change."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        names, kinds, changes = (file.readline().strip().split(",") for _ in range(3))
        frame = pd.read_csv(file, names=names)
    y = frame.pop(names[-1]).to_numpy().astype(int)
    for name, kind in zip(names[:-1], kinds, strict=False):
        frame[name] = frame[name].astype(str) if kind == "C" else frame[name].astype(float if kind == "N" else int)
    fixed = [name for name, change in zip(names, changes, strict=True) if change == "FIXED"]
    rising = [name for name, change in zip(names, changes, strict=True) if change == "INC"]
    rules: list[Any] = [*([Fixed(*fixed)] if fixed else []), *([Increasing(*rising)] if rising else [])]
    X, test, y_train, _ = train_test_split(frame, y, test_size=0.3, random_state=0, stratify=y)
    return X.reset_index(drop=True), test.reset_index(drop=True), y_train, rules


def made(kind: str, X: pd.DataFrame) -> Any:
    if kind == "xgb":
        from xgboost import XGBClassifier

        tree: Any = XGBClassifier(random_state=0, n_jobs=1)
    else:
        tree = RandomForestClassifier(100, max_depth=4 if kind == "rf4" else None, random_state=0)
    return piped(tree, X)


def piped(tree: Any, X: pd.DataFrame) -> Any:
    """A model that reads a table with words."""
    words = [name for name in X.columns if not pd.api.types.is_numeric_dtype(X[name])]
    if not words:
        return clone(tree)
    encoded = (OneHotEncoder(handle_unknown="ignore", sparse_output=False), words)
    return make_pipeline(make_column_transformer(encoded, remainder="passthrough"), clone(tree))


if __name__ == "__main__":
    main()
