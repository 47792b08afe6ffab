"""Writes the versions of everything that .ci/run installs, as they are in the environment that runs this.

    python -m venv fresh && fresh/bin/pip install ".[test,lint,docs,scale,cloud,ray,spark,connect]"
    fresh/bin/python .ci/lock.py > .ci/requirements.lock

.ci/run takes the file as constraints, so that a check that passed today passes tomorrow. Make it anew when a
requirement in pyproject.toml changes, and now and then to test against what has come out since.
"""

from __future__ import annotations

import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

EXTRAS = ("test", "lint", "docs", "scale", "cloud", "ray", "spark", "connect")


def main() -> None:
    """Follow the requirements to their end and print what is installed of each."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    texts = [*project["dependencies"], *(text for extra in EXTRAS for text in optional[extra])]
    waiting = [Requirement(text) for text in texts]
    asked: dict[str, set[str]] = {}
    versions: dict[str, str] = {}
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        extras = {"", *wanted.extras}
        if name in asked and extras <= asked[name]:
            continue
        asked.setdefault(name, set()).update(extras)
        try:
            found = distribution(name)
        except PackageNotFoundError:  # meant for another system
            continue
        versions[name] = found.version
        for text in found.requires or ():
            needed = Requirement(text)
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in asked[name]):
                waiting.append(needed)
    print("# Made by .ci/lock.py; what .ci/run installs, as constraints.")
    for name in sorted(versions):
        print(f"{name}=={versions[name]}")


if __name__ == "__main__":
    main()
