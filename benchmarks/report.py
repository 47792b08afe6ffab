"""How long 10,000 explanations take to become a page, JSON, and explanations again, and how large they are.

    python benchmarks/report.py            10,000 explanations
    python benchmarks/report.py --rows N   another number of them

The explanations are FOCUS's answers to 500 rows of the loan data, over and over; finding them is not part of the
times. The limits are 10 s and 30 MB for the page, 2 s for JSON.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from treefocus import Explainer, Explanations, Focus, loans

DIFFERENT = 500
PAGE_SECONDS, PAGE_MEGABYTES, JSON_SECONDS = 10.0, 30.0, 2.0


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def repeated(found: Explanations, n_rows: int) -> Explanations:
    record = json.loads(found.to_json())
    record["rows"] = [record["rows"][i % len(found)] | {"row": i} for i in range(n_rows)]
    return Explanations.from_json(json.dumps(record))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    n_rows = parser.parse_args().rows
    trained = loans.train()
    rows, _ = loans.generate(DIFFERENT, seed=1)
    explainer = Explainer(trained.model, trained.X_train, distance="manhattan", schema=loans.SCHEMA)
    found = repeated(explainer.explain(rows, strategy=Focus(iterations=100)), n_rows)
    changed = found.summary()["mean_features_changed"]
    print(f"{n_rows:,} explanations, {found.has_answer.mean():.1%} with an answer, {changed:.1f} changes a row")
    with tempfile.TemporaryDirectory() as folder:
        page, file = Path(folder) / "report.html", Path(folder) / "found.json"
        seconds, _ = timed(lambda: found.to_html(page))
        size = page.stat().st_size / 1e6
        is_met = seconds < PAGE_SECONDS and size < PAGE_MEGABYTES
        print(f"to_html    {seconds:6.2f} s  {size:6.1f} MB  {'met' if is_met else 'MISSED'}")
        seconds, _ = timed(lambda: found.to_json(file))
        size = file.stat().st_size / 1e6
        print(f"to_json    {seconds:6.2f} s  {size:6.1f} MB  {'met' if seconds < JSON_SECONDS else 'MISSED'}")
        seconds, again = timed(lambda: Explanations.from_json(file))
        print(f"from_json  {seconds:6.2f} s  the same: {again.to_json() == file.read_text(encoding='utf-8')}")


if __name__ == "__main__":
    main()
