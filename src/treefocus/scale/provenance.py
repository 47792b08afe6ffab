"""Where answers come from, for whoever asks in a year: versions, files, options in words and times."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from treefocus.explainer import Explainer
from treefocus.problem.coded import coding_record
from treefocus.scale.batches import Task
from treefocus.scale.manifest import FORMAT, Manifest, sha256_of

LIBRARIES = ("treefocus", "numpy", "pyarrow", "scikit-learn", "narwhals")
_KEY = b"treefocus"  # in the metadata of a part


def now() -> str:
    """The time, as it is written down."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def versions() -> dict[str, str]:
    """Of Python and of what the answers are made with."""
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def options_in_words(task: Task, explainer: Explainer) -> dict[str, Any]:
    """What was asked, as far as an explainer and a task still know it."""
    return {
        "distance": explainer.distance_name,
        "constraints": [constraint.to_text() for constraint in explainer.constraints],
        "target": None if task.target is None else str(task.target),
        "strategy": task.strategy.to_text(),
        "time_limit": task.time_limit,
        "seed": task.seed,
        "keep": list(task.keep),
    }


def run_record(task: Task, named: str, folder: Path, model: Path | None, told: Mapping[str, Any]) -> dict[str, Any]:
    """What a manifest says of a run that begins now. told: options as they were given at a door."""
    return {
        "versions": versions(),
        "input": named,
        "folder": str(folder.resolve()),
        "model": None if model is None else {"path": str(model.resolve()), "sha256": sha256_of(model)},
        "options": options_in_words(task, task.explainer) | dict(told),
        "coding": coding_record(task.explainer.schema, task.explainer.forest),
        "started": now(),
        "finished": None,
    }


def part_metadata(manifest: Manifest, number: int) -> dict[bytes, bytes]:
    """What a part says of itself; nothing of it depends on when or where it was written."""
    record = {
        "format": FORMAT,
        "treefocus": manifest.run["versions"]["treefocus"],
        "part": number,
        "question": manifest.question,
        "options": manifest.run["options"],
    }
    return {_KEY: json.dumps(record, ensure_ascii=False, default=str).encode()}


def told_by(metadata: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    """The same, read from a part; nothing where it has none."""
    record: dict[str, Any] = json.loads((metadata or {}).get(_KEY, b"{}"))
    return record
