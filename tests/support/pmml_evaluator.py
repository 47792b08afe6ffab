"""PMML as its specification says it, by hand and slowly: what the reader of PMML files is held against.

It follows the text of PMML 4.4 about TreeModel, MiningModel and RegressionModel element by element, for one row at a
time, with `xml.etree`; it shares nothing with the reader.
"""

from __future__ import annotations

import math
from typing import Any
from xml.etree import ElementTree

import numpy as np

Row = dict[str, Any]  # by field; None where missing
NODE, MODELS = "Node", ("TreeModel", "MiningModel", "RegressionModel")
PREDICATES = ("SimplePredicate", "SimpleSetPredicate", "CompoundPredicate", "True", "False")


class Evaluator:
    """A PMML document."""

    def __init__(self, text: bytes) -> None:
        root = ElementTree.fromstring(text)
        for element in root.iter():
            element.tag = element.tag.rpartition("}")[2]
        self.kinds = {one.get("name"): one.get("dataType") for one in root.iter("DataField")}
        self.model = next(one for one in root if one.tag in MODELS)

    def __call__(self, row: Row) -> Any:
        """A number, or the probabilities by class; None where nothing is predicted."""
        given = dict(row)
        for one in self.model.find("MiningSchema"):
            if given.get(one.get("name"), 0) is None and one.get("missingValueReplacement") is not None:
                given[one.get("name")] = one.get("missingValueReplacement")
        return self._model(self.model, given)

    def _model(self, model: Any, row: Row) -> Any:
        for one in model.findall("LocalTransformations/DerivedField"):
            value = row.get(one.find("FieldRef").get("field"))
            single = one.get("dataType") == "float" and value is not None
            row = row | {one.get("name"): float(np.float32(value)) if single else value}
        found = {"TreeModel": self._tree, "MiningModel": self._mining, "RegressionModel": self._regression}[model.tag](
            model, row
        )
        for one in model.findall("Targets/Target"):
            found = found * float(one.get("rescaleFactor", 1)) + float(one.get("rescaleConstant", 0))
        return found

    # --- trees

    def _tree(self, model: Any, row: Row) -> Any:
        node, strategy = model.find(NODE), model.get("missingValueStrategy", "none")
        while node is not None and node.find(NODE) is not None:
            chosen: Any = None
            is_unknown = False
            for child in node.findall(NODE):
                truth = self._predicate(next(one for one in child if one.tag in PREDICATES), row)
                if truth is None and strategy != "none":
                    is_unknown = True
                    break
                if truth:
                    chosen = child
                    break
            if is_unknown and strategy == "defaultChild":
                chosen = next((one for one in node.findall(NODE) if one.get("id") == node.get("defaultChild")), None)
            elif is_unknown and strategy == "lastPrediction":
                return self._score(model, node)
            elif is_unknown:
                return None
            if chosen is None and not is_unknown and model.get("noTrueChildStrategy") == "returnLastPrediction":
                return self._score(model, node)
            node = chosen
        return None if node is None else self._score(model, node)

    def _score(self, model: Any, node: Any) -> Any:
        if model.get("functionName") == "regression":
            return float(node.get("score"))
        given = node.findall("ScoreDistribution")
        counts = {one.get("value"): float(one.get("probability", one.get("recordCount"))) for one in given}
        counts = counts or {node.get("score"): 1.0}
        total = sum(counts.values())
        return {"winner": node.get("score")} | {name: count / total for name, count in counts.items()}

    def _predicate(self, one: Any, row: Row) -> bool | None:
        if one.tag in ("True", "False"):
            return one.tag == "True"
        if one.tag == "CompoundPredicate":
            parts = [self._predicate(part, row) for part in one]
            operator = one.get("booleanOperator")
            if operator == "surrogate":
                return next((part for part in parts if part is not None), None)
            if operator == "and":
                return False if False in parts else None if None in parts else True
            if operator == "or":
                return True if True in parts else None if None in parts else False
            return None if None in parts else bool(sum(parts) % 2)
        value, operator = row[one.get("field")], one.get("operator") or one.get("booleanOperator")
        if operator in ("isMissing", "isNotMissing"):
            return (value is None) == (operator == "isMissing")
        if value is None:
            return None
        if one.tag == "SimpleSetPredicate":
            words = (one.find("Array").text or "").replace('"', "").split()
            return (str(value) in words) == (operator == "isIn")
        told: Any = one.get("value")
        if not isinstance(value, str):
            value, told = float(value), float(told)
            if self._is_single(one.get("field")):
                value, told = float(np.float32(value)), float(np.float32(told))
        compared = {
            "equal": value == told, "notEqual": value != told, "lessThan": value < told, "lessOrEqual": value <= told,
            "greaterThan": value > told, "greaterOrEqual": value >= told,
        }  # fmt: skip
        return bool(compared[operator])

    def _is_single(self, name: str) -> bool:
        return name.startswith("float(") or self.kinds.get(name) == "float"

    # --- ensembles

    def _mining(self, model: Any, row: Row) -> Any:
        segments = model.findall("Segmentation/Segment")
        method = model.find("Segmentation").get("multipleModelMethod")
        inner = [next(one for one in segment if one.tag in MODELS) for segment in segments]
        if method == "modelChain":
            for one in inner:
                found = self._model(one, row)
                names = [
                    own.get("name") for own in one.findall("Output/OutputField") if own.get("isFinalResult") == "false"
                ]
                names += [own.get("name") for own in one.findall("Output/OutputField") if own.get("name") not in names]
                row = row | dict.fromkeys(names[:1], found)
            return found
        found = [self._model(one, row) for one in inner]
        weights = [float(one.get("weight", 1)) if method.startswith("weighted") else 1.0 for one in segments]
        if any(one is None for one in found):
            return None
        if method in ("sum", "weightedSum", "average", "weightedAverage") and not isinstance(found[0], dict):
            total = math.fsum(w * one for w, one in zip(weights, found, strict=True))
            return total / sum(weights) if "verage" in method else total
        shares: dict[str, float] = {}
        for weight, one in zip(weights, found, strict=True):
            own = {one["winner"]: 1.0} if method.endswith("Vote") else {k: v for k, v in one.items() if k != "winner"}
            for name, share in own.items():
                shares[name] = shares.get(name, 0.0) + weight * share / sum(weights)
        return {"winner": max(shares, key=lambda name: shares[name])} | shares

    def _regression(self, model: Any, row: Row) -> Any:
        scores = {}
        for table in model.findall("RegressionTable"):
            terms = [
                float(one.get("coefficient")) * float(row[one.get("name")]) for one in table.findall("NumericPredictor")
            ]
            scores[table.get("targetCategory")] = float(table.get("intercept", 0)) + sum(terms)
        method = model.get("normalizationMethod", "none")
        if model.get("functionName") == "regression":
            return next(iter(scores.values()))
        if method == "softmax":
            top = max(scores.values())
            shares = {name: math.exp(score - top) for name, score in scores.items()}
            total = sum(shares.values())
            shares = {name: share / total for name, share in shares.items()}
        else:
            (first, score), (second, _) = scores.items()
            share = 1 / (1 + math.exp(-score)) if score > -700 else 0.0
            shares = {first: share, second: 1 - share}
        return {"winner": max(shares, key=lambda name: shares[name])} | shares
