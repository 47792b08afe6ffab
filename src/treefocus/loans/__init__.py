"""Loan applications to try things on: invented people, a bank's rule of thumb, and a forest trained on both.

Nobody in here exists. `generate` draws the people and decides; the package carries what it draws for the
default seed, so that examples, tests and the demo all speak of the same applicants.
"""

from __future__ import annotations

import csv
import gzip
import io
from importlib.resources import as_file, files
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from treefocus.adapters import load_forest
from treefocus.constraints.kinds import Constraint, Decreasing, Fixed, Increasing
from treefocus.errors import reject
from treefocus.loans.schema import SCHEMA as SCHEMA
from treefocus.model.forest import Floats, Forest

SEED = 2022
LABELS = ("approved", "declined")

# What an applicant can do: nobody gets younger or gives up a child, years only add up, and to be told to earn
# less, to borrow more or to pay late helps nobody.
CONSTRAINTS: tuple[Constraint, ...] = (
    Fixed("age", "dependants"),
    Increasing("income", "employment_years", "savings", "credit_history_years"),
    Decreasing("loan_amount", "utilisation", "recent_inquiries", "late_payments"),
)


class Trained(NamedTuple):
    """A forest and the two parts of the data."""

    model: Any  # sklearn.ensemble.RandomForestClassifier
    X_train: Floats
    X_test: Floats
    y_train: NDArray[np.str_]
    y_test: NDArray[np.str_]


def generate(n_rows: int = 5000, seed: int = SEED) -> tuple[Floats, NDArray[np.str_]]:
    """Draw applicants: (n_rows, 12) in the order and units of `SCHEMA`, each "approved" or "declined"."""
    if n_rows < 1:
        reject("n_rows", "at least 1", n_rows)
    draw = _Draws(n_rows, seed)
    means, care = draw.normal(), draw.normal()  # how well off, how careful with money
    age = np.clip(np.rint(43 + 12 * draw.normal() + 2 * care), 20, 78)
    grown = age - 18
    dependants = np.minimum(draw.count(np.where((age > 26) & (age < 58), 1.3, 0.35)), 6)
    employment = np.round(grown * draw.uniform() ** np.exp(0.9 - 0.35 * care), 1)
    income = 34_000 * np.exp(0.38 * means + 0.2 * draw.normal() + 0.11 * np.log1p(employment) - 0.2)
    income = np.clip(_to(income, 100), 9_000, 120_000)
    savings = _to(income * 0.3 * np.exp(0.6 * care + 0.2 * means + 0.6 * draw.normal() - 0.3), 100)
    savings = np.where(draw.uniform() < 0.08, 0.0, np.minimum(savings, 50_000))
    amount = np.clip(_to(income * 0.42 * np.exp(0.65 * draw.normal() - 0.15 * care), 100), 1_000, 60_000)
    years = np.clip(np.rint(2 + amount / 7_000 + 1.5 * draw.normal()), 1, 15)
    history = np.round(np.maximum(grown * draw.uniform() ** np.exp(0.4 - 0.3 * care), 0.0), 1)
    lines = np.minimum(draw.count(1.0 + 0.09 * np.minimum(history, 25) + 0.8 * np.exp(0.3 * means)), 14)
    used = _logistic(-0.3 - 0.9 * care - 0.3 * means + 0.8 * draw.normal())
    utilisation = np.where(lines == 0, 0.0, np.rint(100 * used))
    inquiries = np.minimum(draw.count(0.9 * np.exp(0.012 * utilisation - 0.25 * care)), 12)
    late = np.minimum(draw.count(0.45 * np.exp(-0.8 * care + 0.006 * utilisation)), 12)
    columns = [
        age, dependants, income, employment, savings, amount,
        years, history, lines, utilisation, inquiries, late,
    ]  # fmt: skip
    X = np.ascontiguousarray(np.stack(columns, axis=1))
    is_approved = draw.uniform() < _logistic(2.5 * _points(X))
    return X, np.where(is_approved, *LABELS)


def _points(X: Floats) -> Floats:
    """(n_rows,) what the bank thinks of each: thresholds that depend on each other; above 0 is good."""
    column = dict(zip(SCHEMA.names, X.T, strict=True))
    amount, income, savings = column["loan_amount"], column["income"], column["savings"]
    # A year's payment as a share of a year's income.
    burden = amount * (1 / column["loan_years"] + 0.04) / income
    is_covered = savings >= 0.7 * amount
    late, history, used = column["late_payments"], column["credit_history_years"], column["utilisation"]
    lines, inquiries = column["open_credit_lines"], column["recent_inquiries"]
    points = 2.5 + np.zeros(len(X))
    points -= 1.2 * (burden > 0.16) + 1.3 * (burden > 0.27)
    points -= np.where(is_covered, 0.3, 1.3) * (late >= 1) + 1.2 * (late >= 3)
    points -= 0.6 * (used > 45) + 1.3 * ((used > 60) & (lines >= 3))
    points -= np.where(is_covered, 0.2, 1.4) * ((history < 3) | (lines == 0)) - 0.4 * (history > 12)
    points -= np.where((used > 50) | (history < 5), 1.2, 0.1) * (inquiries >= 3)
    points -= 0.9 * ((column["employment_years"] < 1.5) & (burden > 0.1))
    points -= 1.0 * (income / (1 + 0.35 * column["dependants"]) < 17_000)
    points -= 1.2 * (column["age"] + column["loan_years"] > 70)
    points += 0.9 * (is_covered & (burden < 0.2)) + 0.4 * (income > 55_000)
    return np.asarray(points)


def load() -> tuple[Floats, NDArray[np.str_]]:
    """The applications carried with the package, which are those of `generate()`."""
    reader = csv.reader(io.StringIO(carried()))
    next(reader)
    rows = list(reader)
    return np.array([row[:-1] for row in rows], dtype=np.float64), np.array([row[-1] for row in rows])


def carried() -> str:
    """The text of the carried file."""
    return gzip.decompress(files("treefocus").joinpath("data/loans.csv.gz").read_bytes()).decode()


def to_csv(X: Floats, y: NDArray[Any]) -> str:
    """Applications as a .csv file's text, the decision in the last column, `decision`."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([*SCHEMA.names, "decision"])
    writer.writerows(
        [*(f"{value:.10g}" for value in row), label] for row, label in zip(X.tolist(), y.tolist(), strict=True)
    )
    return file.getvalue()


def train() -> Trained:
    """A random forest on 70 % of the carried applications, the other 30 % to ask about; about a second."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import train_test_split

    X, y = load()
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    model = RandomForestClassifier(n_estimators=100, max_depth=7, random_state=0)
    return Trained(model.fit(X_train, y_train), X_train, X_test, y_train, y_test)


def forest() -> Forest:
    """The forest of `train()` as the package carries it, for where there is no time to train."""
    with as_file(files("treefocus").joinpath("data/loans-forest.json.gz")) as path:
        return load_forest(path)


class _Draws:
    """Random numbers made of uniform ones, whose stream NumPy keeps the same in every version."""

    def __init__(self, n_rows: int, seed: int) -> None:
        self._n_rows = n_rows
        self._generator = np.random.Generator(np.random.PCG64(seed))

    def uniform(self) -> Floats:
        return self._generator.random(self._n_rows)

    def normal(self) -> Floats:
        """Standard normal, nearly: the sum of twelve uniform numbers."""
        return np.asarray(self._generator.random((12, self._n_rows)).sum(axis=0) - 6.0)

    def count(self, mean: float | Floats) -> Floats:
        """Poisson of these means: how many terms of the distribution fit below a uniform number."""
        left, term = self.uniform(), np.exp(-np.broadcast_to(mean, self._n_rows))
        counts = np.zeros(self._n_rows)
        for k in range(1, 40):
            left = left - term
            counts += left > 0
            term = term * mean / k
        return counts


def _to(values: Floats, step: float) -> Floats:
    return np.rint(values / step) * step


def _logistic(values: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-values)))
