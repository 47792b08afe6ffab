"""Other tools beside treefocus: the same models, rows, budget and verifier; the table becomes docs/benchmarks.md.

    TREEFOCUS_PAPER=... python benchmarks/peers.py                     every model and every tool that is installed
    python benchmarks/peers.py "cancer forest" --tools treecf nice     some
    TREEFOCUS_PAPER=... python benchmarks/peers.py --write             and docs/benchmarks.md is written anew

`pip install ".[bench]"` brings treecf and NICE; DiCE asks for an old pandas: `pip install --no-deps dice-ml raiutils`.
A tool that is not there is left out, and the page says so. One core, one row after another. Everyone gets the trained
model and the training rows (but treecf, which comes closer without them), and is asked for the closest row of another
class: the sum over the columns of the change, each in ranges of its column. Columns hold any number. Whether an answer
is one is said by the model's own predict, and how far it is by this file, never by the tool.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib.metadata
import io
import os
import platform
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

import deep
from treefocus import Auto, Explainer, Feature, Schema

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
SAME = 1e-6  # distances that differ by less, relatively, are the same


@dataclass(frozen=True)
class Question:
    """A trained model of two classes, what it was trained on, and rows to explain; columns are numbers."""

    name: str
    model: Any
    train: np.ndarray
    labels: np.ndarray
    rows: np.ndarray
    budget: float  # seconds a row

    @property
    def range_of_columns(self) -> np.ndarray:
        """The units of the distance."""
        size = np.ptp(self.train, axis=0)
        return np.where(size > 0, size, 1.0)

    def predict(self, rows: np.ndarray) -> np.ndarray:
        """0 or 1, as the model itself says."""
        return np.asarray(self.model.predict(rows)).astype(int).ravel()

    def distance(self, row: np.ndarray, answer: np.ndarray | None) -> float:
        """Of an answer; infinity where it is none."""
        if answer is None or not np.isfinite(answer).all():
            return np.inf
        is_other = self.predict(answer[None, :])[0] != self.predict(row[None, :])[0]
        return float((np.abs(answer - row) / self.range_of_columns).sum()) if is_other else np.inf


Answer = tuple[np.ndarray | None, bool]  # the row, and whether the tool says that none is closer
Tool = Callable[[Question], Callable[[np.ndarray], Answer]]


def treefocus_auto(question: Question, *, prove: bool = True) -> Callable[[np.ndarray], Answer]:
    schema = Schema([Feature(f"c{i}") for i in range(question.train.shape[1])])
    explainer = Explainer(question.model, question.train, schema=schema)
    strategy = Auto(time_limit=question.budget, prove=prove)

    def ask(row: np.ndarray) -> Answer:
        found = explainer.explain(row[None, :], strategy=strategy, n_jobs=1)
        return np.asarray(found.counterfactuals, float)[0], found.status[0].name == "OPTIMAL"

    return ask


def treefocus_quick(question: Question) -> Callable[[np.ndarray], Answer]:
    return treefocus_auto(question, prove=False)


def treecf_exact(question: Question, *, backend: str = "exact") -> Callable[[np.ndarray], Answer]:
    import treecf

    explainer = treecf.Explainer(question.model, normalizers=question.range_of_columns)
    # Its forests show shares, its boosted models show margins; a tie is the first class's.
    cut = 0.5 if isinstance(question.model, RandomForestClassifier) else 0.0

    def ask(row: np.ndarray) -> Answer:
        is_one = question.predict(row[None, :])[0] == 1
        goal = treecf.Target.raw(range=(-np.inf, cut - 1e-9) if is_one else (cut + 1e-9, np.inf))
        found = explainer.explain(row, goal, backend=backend, time_budget_s=question.budget, seed=0)
        return getattr(found, "x_cf", None), getattr(found, "proof", None) == "optimal"

    return ask


def treecf_heuristic(question: Question) -> Callable[[np.ndarray], Answer]:
    return treecf_exact(question, backend="genetic")


def nice(question: Question) -> Callable[[np.ndarray], Answer]:
    from nice import NICE

    explainer = NICE(
        X_train=question.train, y_train=question.labels, predict_fn=question.model.predict_proba,
        cat_feat=[], num_feat=list(range(question.train.shape[1])), optimization="proximity",
        justified_cf=True, distance_metric="HEOM", num_normalization="minmax",
    )  # fmt: skip
    return lambda row: (np.asarray(explainer.explain(row[None, :]), float).ravel(), False)


def dice(question: Question) -> Callable[[np.ndarray], Answer]:
    import dice_ml
    import pandas as pd

    names = [f"c{i}" for i in range(question.train.shape[1])]
    table = pd.DataFrame(question.train, columns=names).assign(answer=question.labels)
    data = dice_ml.Data(dataframe=table, continuous_features=names, outcome_name="answer")
    explainer = dice_ml.Dice(data, dice_ml.Model(model=_Named(question.model), backend="sklearn"), method="genetic")

    def ask(row: np.ndarray) -> Answer:
        found = explainer.generate_counterfactuals(
            pd.DataFrame(row[None, :], columns=names), total_CFs=1, desired_class="opposite", verbose=False
        )
        final = found.cf_examples_list[0].final_cfs_df
        return (None if final is None or final.empty else final[names].to_numpy(float)[0]), False

    return ask


class _Named:
    """A model that takes tables, of which it needs the numbers alone."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def predict(self, table: Any) -> np.ndarray:
        return self._model.predict(np.asarray(table, float))

    def predict_proba(self, table: Any) -> np.ndarray:
        return self._model.predict_proba(np.asarray(table, float))


TOOLS: dict[str, tuple[str, str, Tool]] = {  # name, its package, what asks it
    "treefocus": ("treefocus, default strategy", "treefocus", treefocus_auto),
    "quick": ("treefocus, `Auto(prove=False)`", "treefocus", treefocus_quick),
    "treecf": ("treecf, exact", "treecf", treecf_exact),
    "treecf-heuristic": ("treecf, heuristic", "treecf", treecf_heuristic),
    "nice": ("NICE, proximity", "nicex", nice),
    "dice": ("DiCE, genetic", "dice-ml", dice),
}


def _xgboost(**settings: Any) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(random_state=0, n_jobs=1, **settings)


def _lightgbm() -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(random_state=0, n_jobs=1, verbose=-1)


MODELS: dict[str, tuple[str, Callable[[], deep.Table], Callable[[], Any]]] = {
    "heloc xgboost": ("HELOC, XGBoost, its defaults", lambda: deep.of_paper("heloc"), _xgboost),
    "heloc boosting": (
        "HELOC, GradientBoostingClassifier, 100 trees of depth 3",
        lambda: deep.of_paper("heloc"),
        lambda: GradientBoostingClassifier(random_state=0),
    ),
    "wine lightgbm": ("Wine, LightGBM, its defaults", lambda: deep.of_paper("wine"), _lightgbm),
    "heloc forest": (
        "HELOC, RandomForestClassifier, 100 trees of depth 6",
        lambda: deep.of_paper("heloc"),
        deep.forest(max_depth=6),
    ),
    "cancer forest": (
        "breast cancer, RandomForestClassifier, its defaults", lambda: deep.parted("cancer"), deep.forest()
    ),
    "cancer catboost": (
        "breast cancer, CatBoost, 300 iterations", lambda: deep.parted("cancer"), deep.MODELS["catboost"][1]
    ),
    "fifty xgboost": ("made up, 50 columns, XGBoost, its defaults", lambda: deep.parted("fifty"), _xgboost),
}  # fmt: skip


@dataclass(frozen=True)
class Result:
    """What a tool gave for the rows of a question."""

    tool: str
    distance: np.ndarray  # infinity where there is no answer, or none that the model confirms
    is_given: np.ndarray
    is_proven: np.ndarray
    seconds: np.ndarray


def question_of(name: str, n_rows: int, budget: float) -> Question:
    title, load, make = MODELS[name]
    train, labels, rows = load()
    return Question(title, make().fit(train, labels), train, np.asarray(labels).astype(int), rows[:n_rows], budget)


def asked(tool: str, question: Question) -> Result:
    """Each row by itself; what a tool writes to the screen stays off it."""
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        ask, answers, seconds = TOOLS[tool][2](question), [], []
        for row in question.rows:
            began = time.perf_counter()
            answers.append(_answer(ask, row))
            seconds.append(time.perf_counter() - began)
    distance = [question.distance(row, point) for row, (point, _) in zip(question.rows, answers, strict=True)]
    is_given = [point is not None and bool(np.isfinite(point).all()) for point, _ in answers]
    is_proven = [is_proven for _, is_proven in answers]
    return Result(tool, np.array(distance), np.array(is_given), np.array(is_proven), np.array(seconds))


def _answer(ask: Callable[[np.ndarray], Answer], row: np.ndarray) -> Answer:
    try:
        return ask(row)
    except Exception:  # a tool that fails on a row has no answer for it
        return None, False


def compared(result: Result, own: Result) -> tuple[float, int, int]:
    """Mean of distance over ours, and on how many rows the tool is closer, and farther."""
    both = np.isfinite(result.distance) & np.isfinite(own.distance) & (own.distance > 0)
    ratio = result.distance[both] / own.distance[both]
    is_closer = result.distance < own.distance * (1 - SAME)
    is_farther = own.distance < result.distance * (1 - SAME)
    return (float(ratio.mean()) if ratio.size else np.nan), int(is_closer.sum()), int(is_farther.sum())


def line_of(result: Result, own: Result) -> str:
    ratio, n_closer, n_farther = compared(result, own)
    valid, n = int(np.isfinite(result.distance).sum()), len(result.distance)
    false = int((result.is_given & ~np.isfinite(result.distance)).sum())
    shown = f"{valid} of {n}" + (f", {false} do not flip the model" if false else "")
    mean = f"{result.distance[np.isfinite(result.distance)].mean():.4f}" if valid else "-"
    return (
        f"| {TOOLS[result.tool][0]} | {shown} | {mean} | {ratio:.2f} | {n_closer} | {n_farther} | "
        f"{int(result.is_proven.sum())} | {np.median(result.seconds):.3f} | {result.seconds.max():.3f} |"
    )


HEADER = (
    "| tool | answers | mean distance | over ours | closer rows | farther rows | proven | median s | most s |\n"
    "|---|---|---|---|---|---|---|---|---|"
)


def better_peers(name: str, results: list[Result]) -> list[str]:
    """Where a peer is better than treefocus' default, in sentences: closer on a row, or faster."""
    own, sentences = results[0], []
    for result in results[1:]:
        if TOOLS[result.tool][1] == "treefocus":
            continue
        ratio, n_closer, n_farther = compared(result, own)
        if n_closer:
            sentences.append(f"{name}: {TOOLS[result.tool][0]} is closer on {n_closer} rows (farther on {n_farther}).")
        if np.median(result.seconds) < np.median(own.seconds):
            sentences.append(
                f"{name}: {TOOLS[result.tool][0]} is faster, {np.median(result.seconds):.3f} s against "
                f"{np.median(own.seconds):.3f} s a row in the median, with answers {ratio:.2f} times as far."
            )
        if result.is_proven.sum() > own.is_proven.sum():
            sentences.append(f"{name}: {TOOLS[result.tool][0]} proves more rows.")
    return sentences


def version_of(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def machine() -> str:
    """The processor, by the name that the system has for it."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


PAGE_TEXT = """# Beside other tools

After this page you know how far treefocus and its peers come with the same models, rows and time, and where they win.

Written by `python benchmarks/peers.py --write` on {date}: Python {python}, {versions}, one core of {machine}, on which
other programs ran: {load:.0f} processes wanted one of its {cores} cores while this was measured, for everyone alike.

The first {n_rows} test rows of each table, {budget:g} s a row for tools that take a limit, which NICE and DiCE do not.
Everyone has the trained model and the training rows (but treecf, which comes closer without them), and is asked for the
closest row of the other class: the sum over the columns of the change, each in ranges of its column, with columns that
hold any number. *Answers* are confirmed by the model's own predict; *over ours* is the mean over the rows of the
distance, divided by that of treefocus' default strategy; *closer* and *farther* count rows that differ from it by more
than {same:g}; *proven* is what the tool says.

{missing}OCEAN (`oceanpy`) and LT-Attack could not be installed where this was measured, so that they are in no table.
DiCE is made for many and diverse answers, and NICE for answers that look like the data: neither promises the closest.

## Where a peer is better

{better}

## Tables

{tables}"""
NOWHERE = "Nowhere in this run: no row has a closer answer, no peer proves more rows, and none is faster in the median."


def page_of(n_rows: int, budget: float, tables: list[str], better: list[str], absent: list[str]) -> str:
    packages = ("scikit-learn", "xgboost", "lightgbm", "catboost", "treecf", "nicex", "dice-ml", "numpy")
    return PAGE_TEXT.format(
        date=datetime.date.today(),
        python=platform.python_version(),
        versions=", ".join(f"{name} {version_of(name)}" for name in packages if version_of(name)),
        machine=machine(),
        load=os.getloadavg()[2],
        cores=os.cpu_count(),
        n_rows=n_rows,
        budget=budget,
        same=SAME,
        missing=f"Not installed, and so not measured: {', '.join(absent)}. " if absent else "",
        better="\n".join(f"- {sentence}" for sentence in better) or NOWHERE,
        tables="\n".join(tables),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", choices=[*MODELS, []])
    parser.add_argument("--tools", nargs="+", choices=[*TOOLS], default=[*TOOLS])
    parser.add_argument("--rows", type=int, default=12)
    parser.add_argument("--budget", type=float, default=1.0, help="seconds a row")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md")
    chosen = parser.parse_args()
    tools = ["treefocus", *(tool for tool in chosen.tools if tool != "treefocus")]
    present = [tool for tool in tools if tool == "treefocus" or tool == "quick" or version_of(TOOLS[tool][1])]
    tables, better = [], []
    for name in chosen.models or MODELS:
        question = question_of(name, chosen.rows, chosen.budget)
        results = [asked(tool, question) for tool in present]
        table = "\n".join([f"### {question.name}", "", HEADER, *(line_of(one, results[0]) for one in results), ""])
        print(table, flush=True)
        tables.append(table)
        better += better_peers(question.name, results)
    print("\n".join(better))
    if chosen.write:
        absent = [TOOLS[tool][0] for tool in tools if tool not in present]
        PAGE.write_text(page_of(chosen.rows, chosen.budget, tables, better, absent), encoding="utf-8")


if __name__ == "__main__":
    main()
