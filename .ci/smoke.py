"""A wheel that was just installed: it imports, explains, proves, and its proof is accepted by the checker.

What cibuildwheel runs on every platform, with nothing installed but the package and what it needs itself.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import treefocus
from treefocus import Explainer, Status, loans


def main() -> None:
    """Answer three applicants under every distance, and have one answer checked."""
    trained, forest = loans.train(), loans.forest()
    rows = trained.X_test[:3]
    for distance in ("manhattan", "euclidean", "chebyshev", "l0", "cosine", "mahalanobis"):
        explainer = Explainer(forest, trained.X_train, distance=distance, schema=loans.SCHEMA)
        found = explainer.explain(rows)
        assert found.has_answer.all(), distance
    found = Explainer(forest, trained.X_train, schema=loans.SCHEMA).explain(rows)
    proven = next(one for one in found if one.status is Status.OPTIMAL)
    with tempfile.TemporaryDirectory() as folder:
        forest.save(Path(folder) / "model.json")
        (Path(folder) / "certificate.json").write_text(json.dumps(proven.certificate(proof=True)), encoding="utf-8")
        program = Path(treefocus.__file__).with_name("check.py")
        subprocess.run([sys.executable, program, "certificate.json", "model.json"], cwd=folder, check=True)
    subprocess.run([sys.executable, "-m", "treefocus", "--version"], check=True)
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
