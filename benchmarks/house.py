"""How easy the house is to find one's way in: rooms, layers, cycles, names, options, and how far a call travels.

    python benchmarks/house.py                     every measure
    python benchmarks/house.py --option seed       the files that know of another option
    python benchmarks/house.py --list              the names behind the numbers as well
    python benchmarks/house.py --tests             the minutes of the tests too, by README's own command

A crossing is a call from a function in one file of the package to a function in another one, whatever foreign code
lies between; the caches are warm. `explain` answers three declined applicants of the loan data under their
constraints, the REST call one of the demo's. A conversion turns categories into numbers or back, counted from the
request to the search for a row with one category.
"""

from __future__ import annotations

import argparse
import ast
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import treefocus
from treefocus import Explainer, Forest, kernels, loans

ROOT = Path(__file__).parents[1]
PACKAGE = Path(treefocus.__file__).parent
OPTION = "vary"  # added when the record of options was there; its name means nothing else
COLUMNS = 100
LABELS = ("coding", "labels")  # the module that turns categories into numbers and back, by its names
CONVERSIONS = ("encode", "encode_text", "decode", "label_of")
Edges = dict[str, set[str]]


# --- what can be read from the text


def modules() -> dict[str, Path]:
    """Every module by its dotted name; a package has the name of its `__init__`."""
    result = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        result[".".join(["treefocus", *(part for part in parts if part != "__init__")])] = path
    return result


def imported(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """The modules that a file imports, wherever in it, those for type checkers included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in known else node.module for name in names)


def cycles(edges: Edges) -> list[list[str]]:
    """The groups of modules of which each leads to every other."""
    reached = {name: _reachable(name, edges) for name in edges}
    groups = {
        tuple(sorted(other for other in reached[name] if name in reached[other]))
        for name in edges
        if name in reached[name]
    }
    return sorted((list(group) for group in groups if len(group) > 1), key=len)


def _reachable(start: str, edges: Edges) -> set[str]:
    seen: set[str] = set()
    waiting = list(edges[start])
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += edges[name]
    return seen


def layers() -> int:
    """The lines of `LAYERS` in the test that holds them."""
    for path in (ROOT / "tests").rglob("test_layers.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "LAYERS":
                return len(ast.literal_eval(node.value))
    raise SystemExit("There is no test_layers.py with LAYERS.")


def classes_used_twice(known: dict[str, Path]) -> dict[str, list[str]]:
    """The names of classes that stand in two modules or more, and the modules."""
    found = defaultdict(list)
    for name, path in known.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(name)
    return {name: places for name, places in sorted(found.items()) if len(places) > 1}


def files_of(option: str, known: dict[str, Path]) -> list[str]:
    """The files whose code has the option as a name, an argument, an attribute or a text of its own."""
    return [name for name, path in known.items() if option in _words(ast.parse(path.read_text(encoding="utf-8")))]


def _words(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        for name in ("id", "arg", "attr", "value"):
            word = getattr(node, name, None)
            if isinstance(word, str):
                yield word


def functions(known: dict[str, Path]) -> dict[str, int]:
    """The lines of every function."""
    result = {}
    for name, path in known.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                result[f"{name}.{node.name}:{node.lineno}"] = (node.end_lineno or node.lineno) - node.lineno + 1
    return result


def cpp_lines() -> list[str]:
    """The lines of the core, empty ones left out."""
    files = (ROOT / "cpp" / "treefocus").glob("*.[ch]pp")
    return [line for path in files for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


# --- what is seen while it runs


class Journey:
    """Counts, while it is open, the calls from one file of the package to another, in every thread."""

    def __init__(self) -> None:
        self.crossings: Counter[tuple[str, str]] = Counter()
        self.conversions = 0
        self._is_open = self._has_arrived = False

    def of(self, call: Callable[[], Any]) -> None:
        """Count what one call does."""
        self._is_open = True
        try:
            call()
        finally:
            self._is_open = False

    def seen(self, frame: FrameType, event: str, _: Any) -> None:
        """Hear of a call; for `sys.setprofile`."""
        if not self._is_open or event != "call" or (to := self._file(frame)) is None:
            return
        back = frame.f_back
        while back is not None and self._file(back) is None:
            back = back.f_back
        if back is None or (origin := self._file(back)) == to:
            return
        self.crossings[str(origin), to] += 1
        is_labels, name = Path(to).stem in LABELS, frame.f_code.co_name
        self._has_arrived |= to.startswith("search/") and name == "solve"
        self.conversions += not self._has_arrived and is_labels and name in CONVERSIONS

    @staticmethod
    def _file(frame: FrameType) -> str | None:
        path = frame.f_code.co_filename
        return path[len(str(PACKAGE)) + 1 :] if path.startswith(str(PACKAGE)) else None


def profiled(work: Callable[[Journey], None]) -> Journey:
    """What is counted while some work is done, in threads that it starts too."""
    journey = Journey()
    sys.setprofile(journey.seen)
    threading.setprofile(journey.seen)
    try:
        work(journey)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return journey


def one_explain() -> Journey:
    """`explain` of three declined applicants."""
    trained = loans.train()
    forest = loans.forest()
    rows = trained.X_test[kernels.predict(forest, trained.X_test) == forest.classes.tolist().index("declined")][:3]
    explainer = Explainer(forest, trained.X_train, schema=loans.SCHEMA, constraints=loans.CONSTRAINTS)
    explainer.explain(rows)
    return profiled(lambda journey: journey.of(lambda: explainer.explain(rows)))


def one_call() -> Journey:
    """A REST call about one applicant."""
    from treefocus.app.demo import demo_service

    service = demo_service()
    declined = [i for i, label in enumerate(service.predictions.labels) if label == "declined"]
    return _called(service, [service.rows.values[declined[0]].tolist()])


def one_category() -> Journey:
    """A REST call about a row with one category."""
    from treefocus.app.service import Service

    model = _on_housing()
    data = np.array([["own", 20.0], ["rent", 70.0], ["free", 40.0]], object)
    explainer = Explainer(model, data)
    table = explainer.explain(data).table
    return _called(Service(model, data, table, schema=explainer.schema), [["rent", 40.0]])


def _on_housing() -> Forest:
    """One split on a column of three categories."""
    categories = {"labels": [["own", "rent", "free"], None], "set_of_node": [0, -1, -1], "set_start": [0, 1]}
    record: dict[str, Any] = {
        "feature": [0, -1, -1], "threshold": [0.0] * 3, "left": [1, -1, -1], "right": [2, -1, -1],
        "default_left": [False] * 3, "tree_start": [0, 3], "leaf_value": [[1.0, 0.0], [0.0, 1.0]],
        "base_score": [0.0, 0.0], "classes": ["yes", "no"], "n_features": 2, "feature_names": ["housing", "age"],
        "categories": categories | {"set_member": [0]},
    }  # fmt: skip
    return Forest.from_record(record)


def _called(service: Any, rows: list[list[Any]]) -> Journey:
    from fastapi.testclient import TestClient

    from treefocus.app.server import create_app

    def work(journey: Journey) -> None:
        with (
            tempfile.TemporaryDirectory() as folder,
            TestClient(create_app(service, Path(folder), with_page=False), base_url="http://127.0.0.1") as client,
        ):
            client.post("/v1/explain", json={"rows": rows}).raise_for_status()
            journey.of(lambda: client.post("/v1/explain", json={"rows": rows}).raise_for_status())

    return profiled(work)


def minutes_of_tests() -> tuple[float, float]:
    """The whole suite, as README runs it: by the clock, and of the processor, which a busy machine changes little."""
    began, before = time.perf_counter(), os.times()
    subprocess.run([sys.executable, "-m", "pytest", "-q"], cwd=ROOT, check=True)
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return (time.perf_counter() - began) / 60, spent / 60


# --- the report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--option", default=OPTION)
    parser.add_argument("--list", action="store_true", help="the names behind the numbers")
    parser.add_argument("--tests", action="store_true", help="run the tests and say how long they take")
    asked = parser.parse_args()
    known = modules()
    edges = {name: set(imported(path, known)) - {name} for name, path in known.items()}
    round_trips, doubled, of_option = cycles(edges), classes_used_twice(known), files_of(asked.option, known)
    lengths, core = functions(known), cpp_lines()
    longest = max(lengths, key=lengths.__getitem__)
    explained, called, category = one_explain(), one_call(), one_category()
    lines = [
        ("modules at the top", len(list(PACKAGE.glob("*.py"))), []),
        ("modules in all", len(known), []),
        ("layers", layers(), []),
        ("import cycles", len(round_trips), [" ".join(group) for group in round_trips]),
        ("modules in cycles", sum(map(len, round_trips)), []),
        ("class names used twice", len(doubled), [f"{name}: {' '.join(own)}" for name, own in doubled.items()]),
        (f"files that know of {asked.option!r}", len(of_option), of_option),
        ("crossings of one explain", explained.crossings.total(), _ranked(explained.crossings)),
        ("crossings of one REST call", called.crossings.total(), _ranked(called.crossings)),
        ("conversions of a category before the search", category.conversions, []),
        ("functions", len(lengths), []),
        ("lines of a function, median", statistics.median(lengths.values()), []),
        ("lines of the longest function", lengths[longest], [longest]),
        (
            "comment lines in C++, %",
            round(100 * statistics.mean(line.lstrip().startswith("//") for line in core), 1),
            [],
        ),
        (f"lines of C++ over {COLUMNS} columns", sum(len(line) > COLUMNS for line in core), []),
    ]
    if asked.tests:
        by_the_clock, of_the_processor = minutes_of_tests()
        lines.append(("minutes of the tests", round(by_the_clock, 1), []))
        lines.append(("minutes of the tests, of one processor", round(of_the_processor, 1), []))
    for name, number, behind in lines:
        print(f"{name:45} {number:>8}")
        if asked.list:
            print(*(f"    {line}" for line in behind), sep="\n", end="\n" if behind else "")


def _ranked(crossings: Counter[tuple[str, str]]) -> list[str]:
    return [f"{number:4}  {origin} -> {to}" for (origin, to), number in crossings.most_common()]


if __name__ == "__main__":
    main()
