"""The OpenAPI document, with this model's columns and classes and a row of its own as example."""

from __future__ import annotations

from typing import Any

import numpy as np
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from treefocus.app.service import Service
from treefocus.problem.distances import NAMED as DISTANCES
from treefocus.search import NAMED as STRATEGIES

API_VERSION = "1.0"  # of the calls under /v1, not of the package
_ABOUT = (
    "What is the smallest change to a row that changes the model's answer, and how do we know that it is the smallest? "
    "Errors are application/problem+json with a sentence in `detail`."
)


def install(app: FastAPI, service: Service, *, needs_token: bool) -> None:
    """Have the app describe itself."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app, service, needs_token)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _document(app: FastAPI, service: Service, needs_token: bool) -> dict[str, Any]:
    document = get_openapi(title="treefocus", version=API_VERSION, description=_ABOUT, routes=app.routes)
    schemas = document["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):  # FastAPI's own, which are never sent
        schemas.pop(name, None)
    schemas["Problem"] = {
        "type": "object",
        "title": "Problem",
        "description": "What went wrong (RFC 9457).",
        "required": ["type", "title", "status", "detail"],
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string", "description": "Which parameter, what is allowed, what came."},
            "errors": {"type": "array", "items": {"type": "string"}},
        },
    }
    for body in ("RowsBody", "ExplainBody"):
        schemas[body]["properties"]["rows"]["items"] = {"$ref": "#/components/schemas/Row"}
        schemas[body]["examples"] = [_example(service, is_question=body == "ExplainBody")]
    schemas["Row"] = _row_schema(service)
    _describe_question(schemas, service)
    if needs_token:
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
    return document


def _describe_question(schemas: dict[str, Any], service: Service) -> None:
    """The options with what this model takes, and examples of its own."""
    asked = schemas["ExplainBody"]["properties"]
    asked["distance"]["anyOf"] = [{"type": "string", "enum": list(DISTANCES)}, {"type": "null"}]
    asked["strategy"]["enum"] = list(STRATEGIES)
    asked["constraints"]["examples"] = [_constraints(service)]
    asked["target"] |= {"anyOf": _target_schemas(service), "examples": targets(service)}
    if service.predicts_number and service.asked.target is None:
        schemas["ExplainBody"]["required"] += ["target"]
    if service.classes:
        schemas["ProbabilityBody"]["properties"]["label"] = {"enum": service.classes, "description": "The class."}
    names = service.schema.names
    weights = {name: {"type": "number", "exclusiveMinimum": 0} for name in names}
    by_name = {"type": "object", "properties": weights, "additionalProperties": False}
    asked["weights"] |= {"anyOf": [by_name, {"type": "null"}], "examples": [{names[0]: 2.0, names[-1]: 0.5}]}
    asked["plausibility"]["examples"] = [
        {"kind": "local_outlier_factor", "limit": 1.5}, {"kind": "isolation", "limit": 0.6, "cost": 0.1},
    ]  # fmt: skip


def _target_schemas(service: Service) -> list[dict[str, Any]]:
    """What this model can be asked for."""
    place = "#/components/schemas/"
    score = {"$ref": f"{place}ScoreBody"}
    if service.predicts_number:
        return [*_alone_and_by_row({"$ref": f"{place}IntervalBody"}), *_alone_and_by_row(score)]
    one_a_row = {"type": "array", "items": {"enum": [*service.classes, None]}}
    probability = _alone_and_by_row({"$ref": f"{place}ProbabilityBody"})
    found: list[dict[str, Any]] = [{"enum": service.classes}, one_a_row, *probability, {"type": "null"}]
    return [*found, *_alone_and_by_row(score)] if service.forest.n_outputs == 1 else found


def _alone_and_by_row(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return [schema, {"type": "array", "items": schema, "minItems": 1}]


def targets(service: Service) -> list[Any]:
    """A target of each kind that this model takes."""
    if service.predicts_number:
        return [{"kind": "interval", "low": float(f"{service.spread[1]:.3g}")}, {"kind": "score", "low": 0.0}]
    wanted = service.classes[0]
    found = [wanted, {"kind": "probability", "label": wanted, "at_least": 0.7}]
    return [*found, {"kind": "score", "low": 0.5}] if service.forest.n_outputs == 1 else found


def _row_schema(service: Service) -> dict[str, Any]:
    cell = {"type": ["number", "string", "boolean", "null"]}
    properties = {
        feature.name: {
            "type": ["number", "null"] if labels is None and not feature.is_date else cell["type"],
            "description": f"{feature.description}, {feature.unit}".strip(", "),
        }
        | ({"format": "date" if feature.kind == "date" else "date-time"} if feature.is_date else {})
        for feature, labels in zip(service.schema.features, service.labels, strict=True)
    }
    by_name = {
        "type": "object", "properties": properties, "required": list(properties), "additionalProperties": False,
    }  # fmt: skip
    in_order = {"type": "array", "items": cell, "minItems": len(properties), "maxItems": len(properties)}
    return {"title": "Row", "description": "By name, or in the model's order.", "anyOf": [by_name, in_order]}


def _example(service: Service, *, is_question: bool) -> dict[str, Any]:
    lowest = np.where(np.isfinite(service.space.low), service.space.low, 0.0)
    cells = service.written(0) if len(service.rows.values) else service.row_of(lowest).row(0)
    row = dict(zip(service.schema.names, cells, strict=True))
    if not is_question:
        return {"rows": [row]}
    return {"rows": [row], "target": targets(service)[0], "distance": "manhattan", "time_limit": 1.0}


def _constraints(service: Service) -> list[dict[str, Any]]:
    names = service.schema.names
    return [{"kind": "fixed", "columns": [names[0]]}, {"kind": "range", "column": names[-1], "low": 0}]
