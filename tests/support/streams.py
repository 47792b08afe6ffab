"""What the tests of the scale package share: a small model, rows with every kind of trouble, folders as bytes."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass, fields
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.ensemble import AdaBoostClassifier
from sklearn.tree import DecisionTreeClassifier

from treefocus import Explainer, loans
from treefocus.scale.batches import Rows, Task, explain_batches
from treefocus.scale.files import explain_file
from treefocus.scale.manifest import Manifest

NAMES = loans.SCHEMA.names


def loan_explainer(**options: Any) -> Explainer:
    """Of a small boosted model of loan applications."""
    X, y = loans.generate(600, seed=3)
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    model = AdaBoostClassifier(tree, n_estimators=8, random_state=0).fit(X, y)
    return Explainer(model, X, schema=loans.SCHEMA, **options)


def loan_rows(n_rows: int, *, seed: int = 7, n_bad: int = 3) -> pa.Table:
    """Applications with a number each; some have values that no model reads."""
    X, _ = loans.generate(n_rows, seed=seed)
    X = np.array(X, np.float64)
    rng = np.random.default_rng(seed)
    X[rng.integers(0, n_rows, n_bad), rng.integers(0, len(NAMES), n_bad)] = np.nan
    columns = {"customer": np.arange(n_rows) + 1000} | dict(zip(NAMES, X.T, strict=True))
    return pa.table(columns)


def odd_rows(n_rows: int) -> pa.Table:
    """Applications in columns of other types: whole numbers beyond those of floats, and decimals."""
    table = loan_rows(n_rows, n_bad=0)
    incomes = [2**53 + 1 + i if i % 5 == 0 else int(value) for i, value in enumerate(table["income"].to_pylist())]
    savings = [None if i % 7 == 0 else Decimal(int(value)) for i, value in enumerate(table["savings"].to_pylist())]
    table = table.set_column(table.column_names.index("income"), "income", pa.array(incomes, pa.int64()))
    table = table.set_column(table.column_names.index("savings"), "savings", pa.array(savings, pa.decimal128(20, 2)))
    return table.set_column(0, "customer", pa.array([f"c{i:05}" for i in range(n_rows)]))


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder; of the manifest, what does not tell of times and places."""
    found = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    if "_manifest.json" in found:
        manifest = Manifest.from_bytes(found["_manifest.json"])
        manifest.run |= {"started": "then", "finished": "later", "folder": "", "input": ""}
        found["_manifest.json"] = manifest.to_bytes()
    return found


def answers(folder: Path) -> pa.Table:
    """All parts together."""
    from pyarrow import parquet

    return pa.concat_tables([parquet.read_table(path) for path in sorted(folder.glob("part-*.parquet"))])


def explained(explainer: Explainer, path: Path, folder: Path, **options: Any) -> dict[str, bytes]:
    """The folder after a whole run."""
    explain_file(explainer, path, folder, **options)
    return contents(folder)


def answers_of_one_process(explainer: Explainer, rows: pa.Table) -> pa.Table:
    """What a cluster's answers are held to."""
    return pa.Table.from_batches(list(explain_batches(explainer, rows.to_batches(), keep=["customer"])))


def python_path() -> str:
    """For a cluster's workers: where this process finds its modules, the tests' own among them."""
    return os.pathsep.join([str(Path(__file__).parents[1]), *(path for path in sys.path if path)])


@dataclass(frozen=True, eq=False)
class FatalOnce(Task):
    """Kills its worker in the middle of a batch, once."""

    mark: str = ""

    @classmethod
    def task(cls, explainer: Explainer, mark: Path) -> FatalOnce:
        """On one thread, with the customers' numbers; `mark` is there once a worker was killed."""
        task = Task.of(explainer, keep=["customer"], n_jobs=1)
        return cls(**{field.name: getattr(task, field.name) for field in fields(task)}, mark=str(mark))

    def answer(self, rows: Rows, stop: Any = None) -> pa.RecordBatch:
        if 1500 in rows.batch["customer"].to_pylist():
            try:
                os.close(os.open(self.mark, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        return super().answer(rows, stop)
