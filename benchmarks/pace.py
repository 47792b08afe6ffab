"""How fast explainers are built: a forest alone, the same behind the steps of a pipeline, and a second time.

    python benchmarks/pace.py building

Told in milliseconds of processor time, the median of several fresh models, so that a busy machine does not count much.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

N_ROWS, N_COLUMNS, N_TRIES = 600, 8, 5


def table() -> tuple[pd.DataFrame, Any]:
    """Numbers, as most tables have them."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(N_ROWS, N_COLUMNS)).round(2), columns=[f"x{j}" for j in range(N_COLUMNS)])
    return rows, (rows["x0"] + rows["x1"] * rows["x2"] > 0).astype(int).to_numpy()


def kinds() -> dict[str, Callable[[], Any]]:
    """The models that are built around, each a default forest."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    def forest() -> Any:
        return RandomForestClassifier(random_state=0)

    return {
        "forest alone": forest,
        "scaler": lambda: make_pipeline(StandardScaler(), forest()),
        "imputer and scaler": lambda: make_pipeline(SimpleImputer(), StandardScaler(), forest()),
    }


def building() -> None:
    """Tell of every kind how long the first and a second explainer take, and how many times the forest alone."""
    import treefocus

    rows, y = table()
    alone = None
    for name, make in kinds().items():
        first, second = [], []
        for _ in range(N_TRIES):
            model = make().fit(rows, y)
            for spent in (first, second):
                began = time.process_time()
                treefocus.Explainer(model, rows)
                spent.append(time.process_time() - began)
        median, again = float(np.median(first)), float(np.median(second))
        alone = median if alone is None else alone
        print(f"{name}: {1e3 * median:.0f} ms, {median / alone:.2f} of the forest; a second {1e3 * again:.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["building"])
    parser.parse_args()
    warnings.simplefilter("ignore")
    building()


if __name__ == "__main__":
    main()
