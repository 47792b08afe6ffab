"""The model in numbers and words, for people who write programs."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from treefocus.app.options import measure_body, target_body
from treefocus.app.service import Service
from treefocus.explanation.json import number
from treefocus.problem.distances import NAMED as DISTANCES
from treefocus.search import NAMED as STRATEGIES


def card(service: Service) -> dict[str, Any]:
    """The model card, as plain values for JSON."""
    forest = service.forest
    return {
        "title": service.title,
        "fingerprint": service.fingerprint,
        "source": forest.source,
        "predicts": "number" if service.predicts_number else "class",
        "classes": service.classes,
        "features": _features(service),
        "trees": len(forest.tree_start) - 1,
        "nodes": len(forest.feature),
        "leaves": int((forest.feature < 0).sum()),
        "takes_missing": forest.takes_missing,
        "constraints": [constraint.to_text() for constraint in service.asked.constraints],
        "distances": list(DISTANCES),
        "strategies": list(STRATEGIES),
        "defaults": _defaults(service),
        "limits": _limits(service),
    }


def _features(service: Service) -> list[dict[str, Any]]:
    low, high = service.space.low.tolist(), service.space.high.tolist()
    return [
        {
            "name": feature.name, "kind": feature.kind, "unit": feature.unit, "description": feature.description,
            "low": _finite(low[j]), "high": _finite(high[j]),
        }
        for j, feature in enumerate(service.schema.features)
    ]  # fmt: skip


def _defaults(service: Service) -> dict[str, Any]:
    asked = service.asked
    return {
        "distance": asked.distance, "strategy": asked.strategy, "target": _plain(target_body(asked.target)),
        "time_limit": asked.time_limit, "weights": asked.weights,
        "plausibility": _plain(measure_body(asked.plausibility)),
    }  # fmt: skip


def _limits(service: Service) -> dict[str, Any]:
    names = (
        "rows_per_call", "rows_per_job", "seconds_per_row", "ways_per_row", "isolation_trees", "body_bytes",
        "jobs_open",
    )  # fmt: skip
    return {name: getattr(service.limits, name) for name in names}


def _finite(value: float) -> float | None:
    known = number(value)
    return known if isinstance(known, float) else None


def _plain(option: Any) -> Any:
    return option.model_dump() if isinstance(option, BaseModel) else option
