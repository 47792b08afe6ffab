"""PMML files with trees, read as data: a TreeModel, or a MiningModel that adds up, averages or lets trees vote.

A chain of models, as converters write boosting, is a sum of trees whose score a RegressionModel turns into
probabilities. What a runtime adds up in another order, `Forest.rounding` allows for, but for trees whose leaves are of
one class each: these are counted, and of classes that come out level the first one wins, as at a leaf.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from treefocus.adapters.nodes import check_sizes
from treefocus.adapters.pmml_predicates import INSTEAD, PmmlColumns, elements_of, is_written
from treefocus.adapters.pmml_trees import PmmlTrees
from treefocus.adapters.xml_tree import Element, parse
from treefocus.errors import InvalidInput, UnsupportedModel
from treefocus.model.forest import Forest

_MODELS = ("TreeModel", "MiningModel", "RegressionModel")
_UNITS = 64.0  # in 1: votes, and the shares of small leaves, are whole numbers of them
_METHODS = ("average", "weightedAverage", "majorityVote", "weightedMajorityVote", "sum", "weightedSum")


def is_pmml(data: bytes) -> bool:
    """Whether a file is an XML document that begins as PMML does."""
    head = data[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    return head.startswith(b"<") and b"<PMML" in head


def read(data: bytes) -> Forest:
    """The forest of a PMML file."""
    top = parse(data)
    model = top.first(*_MODELS)
    if model is None or model.name == "RegressionModel":
        found = next((one.name for one in top.inside if one.name.endswith("Model")), "no model")
        raise UnsupportedModel(f"The PMML file has {found}; TreeModel and MiningModel of trees are supported.")
    columns = PmmlColumns.of(top, model)
    ensemble = _PmmlEnsemble(columns, target=_target(model))
    answer = ensemble.answer(model)
    return ensemble.forest(answer, model)


def _target(model: Element) -> str:
    fields = elements_of(model, "MiningSchema", "MiningField")
    return next((one.get("name") for one in fields if one.get("usageType") in ("target", "predicted")), "")


@dataclass
class _PmmlAnswer:
    """What is made of the trees' scores."""

    values: list[np.ndarray[Any, Any]]  # by tree, (n_nodes of the tree, n_outputs)
    base: np.ndarray[Any, Any]
    divisor: float = 1.0
    options: dict[str, Any] = field(default_factory=dict)
    is_single: bool = False
    is_counted: bool = False  # sums of these values are exact in any order


class _PmmlEnsemble:
    """Trees on their way to a forest."""

    def __init__(self, columns: PmmlColumns, target: str) -> None:
        self.columns, self.target, self.trees = columns, target, PmmlTrees(columns)
        self.is_single = False  # whether some tree says that sums are taken in float32

    def forest(self, answer: _PmmlAnswer, model: Element) -> Forest:
        """The forest of an answer."""
        columns, n_trees = self.columns, len(self.trees.sizes)
        n_features = len(columns.names)
        labels = [next((own.labels for own in columns.by_name.values() if own.number == j), None)
                  for j in range(n_features)]  # fmt: skip
        check_sizes(n_features, 1, n_trees, max((len(own) for own in labels if own is not None), default=0))
        value = np.concatenate(answer.values)
        nodes, n_leaves = self.trees.nodes(value), np.abs(value).max(initial=0.0)
        eps = float(np.finfo(np.float32 if answer.is_single else np.float64).eps)
        rounding = 4 * eps * (n_trees + 4) * (n_trees * float(n_leaves) + float(np.abs(answer.base).max(initial=0.0)))
        rounding = 0.0 if answer.is_counted else rounding
        refuses = np.array([j in columns.refuses_missing for j in range(n_features)])
        return nodes.to_forest(
            tuple(labels), refuses_unseen=np.array([own is not None for own in labels]),
            base_score=answer.base, n_features=n_features, divisor=answer.divisor, rounding=rounding / answer.divisor,
            takes_missing=not refuses.all(), refuses_missing=refuses if refuses.any() and not refuses.all() else None,
            feature_names=columns.names, source=f"PMML {model.name}", **answer.options,
        )  # fmt: skip

    def answer(self, model: Element) -> _PmmlAnswer:
        """Read a model: a tree, an ensemble, or a chain that ends in a RegressionModel."""
        if model.name == "MiningModel" and _method(model) in ("modelChain", "selectFirst"):
            return self._chain(model)
        if model.get("functionName") == "classification":
            return self._classes(model)
        if model.get("functionName") != "regression":
            raise UnsupportedModel(f"A PMML model for {model.get('functionName')!r} is not supported. {INSTEAD}")
        answer = self._number(model)
        answer.options = {"classes": np.empty(0), "decision": "value", "link": "identity"}
        return answer

    def _members(self, model: Element) -> list[tuple[Element, float]]:
        """The trees of a model and their weights."""
        if model.name == "TreeModel":
            return [(model, 1.0)]
        self.columns.learn(model.first("LocalTransformations"))
        found = []
        for segment in _segments(model):
            own = segment.first(*_MODELS)
            if own is None or own.name != "TreeModel":
                raise UnsupportedModel(
                    f"The PMML model has {'no model' if own is None else own.name} among its trees. {INSTEAD}"
                )
            found.append((own, segment.number("weight", 1.0)))
        return found

    def _begun(self, model: Element) -> tuple[int, list[Element | None]]:
        """Read a tree; its first node, and what its leaves say."""
        begin = len(self.trees.feature)
        self.columns.learn(model.first("LocalTransformations"))
        if model.get("x-mathContext") == "float":
            self.is_single = True
        self.trees.add(model)
        return begin, self.trees.score[begin:]

    def _number(self, model: Element, n_outputs: int = 1, output: int = 0) -> _PmmlAnswer:
        """Trees that predict numbers."""
        method, members = _method(model), self._members(model)
        is_weighted = method.startswith("weighted")
        if model.name == "MiningModel" and method not in ("average", "weightedAverage", "sum", "weightedSum"):
            raise UnsupportedModel(f"A PMML ensemble by {method!r} of numbers is not supported. {INSTEAD}")
        values = []
        for tree, weight in members:
            _, scores = self._begun(tree)
            factor, constant = _rescaled(tree, self.target)
            value = np.zeros((len(scores), n_outputs))
            for k, leaf in enumerate(scores):
                if leaf is not None:
                    value[k, output] = (factor * leaf.number("score") + constant) * (weight if is_weighted else 1.0)
            values.append(value)
        weights = sum(weight for _, weight in members) if is_weighted else float(len(members))
        divisor = weights if "verage" in method else 1.0
        if not divisor > 0:
            raise InvalidInput("The PMML file is damaged: the weights of its trees add up to nothing.")
        factor, constant = _rescaled(model, self.target) if model.name == "MiningModel" else (1.0, 0.0)
        base = np.zeros(n_outputs)
        base[output] = constant * divisor
        return _PmmlAnswer([factor * value for value in values], base, divisor, {}, self._is_single(model))

    def _is_single(self, model: Element) -> bool:
        return self.is_single or model.get("x-mathContext") == "float"

    def _classes(self, model: Element) -> _PmmlAnswer:
        """Trees that predict classes: votes, or the mean of what their leaves hold."""
        method, members = _method(model), self._members(model)
        if model.name == "MiningModel" and (method not in _METHODS or "um" in method):
            raise UnsupportedModel(f"A PMML ensemble by {method!r} of classes is not supported. {INSTEAD}")
        is_vote = method.endswith("Vote")
        read = [(tree, weight, self._begun(tree)[1]) for tree, weight in members]
        classes = self._labels([leaf for _, _, scores in read for leaf in scores if leaf is not None])
        kind = np.array(classes).dtype.kind
        shares = [[None if leaf is None else _shares(leaf, classes, is_vote) for leaf in scores] for *_, scores in read]
        is_alone = len(read) == 1
        if is_alone:  # its own word counts, also where its leaf holds others as often
            shares = [[self._decided(leaf, own, classes) for leaf, own in zip(read[0][2], shares[0], strict=True)]]
        values = []
        for (_, weight, _scores), own in zip(read, shares, strict=True):
            factor = weight if method.startswith("weighted") else 1.0
            nothing = np.zeros(len(classes))
            values.append(np.array([factor * (nothing if one is None else one) for one in own]))
        weights = sum(weight for _, weight, _ in read) if method.startswith("weighted") else float(len(read))
        if not weights > 0:
            raise InvalidInput("The PMML file is damaged: the weights of its trees add up to nothing.")
        labels = np.array(classes) if kind in "iufbU" else np.array(classes, object)
        options = {"classes": labels, "decision": "argmax", "link": "identity"}
        is_counted = not method.startswith("weighted") and _is_counted(values)
        return _PmmlAnswer(values, np.zeros(len(classes)), weights, options, self._is_single(model), is_counted)

    def _labels(self, leaves: list[Element]) -> tuple[Any, ...]:
        """The classes: as the data dictionary has them, else as the leaves come."""
        known = self.columns.classes.get(self.target, ())
        if known:
            return known
        words = [leaf.get("score") for leaf in leaves]
        words += [one.get("value") for leaf in leaves for one in leaf.all("ScoreDistribution")]
        return tuple(sorted({word for word in words if word}))

    def _decided(self, leaf: Element | None, shares: Any, classes: tuple[Any, ...]) -> Any:
        """What a leaf holds, if the first largest of it is what it says; else its word alone."""
        if leaf is None or not leaf.get("score"):
            return shares
        own = _class_of(leaf.get("score"), classes)
        return shares if int(np.argmax(shares)) == own else np.eye(len(classes))[own]

    def _chain(self, model: Element) -> _PmmlAnswer:
        """Sums of trees, and a RegressionModel that makes classes of them; or only one model."""
        self.columns.learn(model.first("LocalTransformations"))
        *before, last = [_inner(segment) for segment in _segments(model)]
        if not before:
            return self.answer(last)
        if last.name != "RegressionModel" or any(one.name == "RegressionModel" for one in before):
            raise UnsupportedModel(f"A PMML chain that ends in a {last.name} is not supported. {INSTEAD}")
        place = {_output(one): k for k, one in enumerate(before)}
        parts = [self._number(one, len(before), k) for k, one in enumerate(before)]
        divisors = {part.divisor for part in parts}
        if len(divisors) > 1:
            raise UnsupportedModel(f"A PMML chain of sums and means is not supported; of either it is. {INSTEAD}")
        divisor = divisors.pop()
        values, base = [value for part in parts for value in part.values], sum(part.base for part in parts)
        link = _PmmlLink.of(last, place, self.columns.classes.get(self.target, ()))
        scaled = [value * link.factor for value in values]
        is_single = any(part.is_single for part in parts)
        base = np.asarray(base * link.factor + link.constant * divisor)
        return _PmmlAnswer(scaled, base, divisor, link.options, is_single)


@dataclass(frozen=True)
class _PmmlLink:
    """What a RegressionModel makes of scores: factor and constant of each, and the decision."""

    factor: Any
    constant: Any
    options: dict[str, Any]

    @classmethod
    def of(cls, model: Element, place: dict[str, int], known: tuple[Any, ...]) -> _PmmlLink:
        """place: the number of every score by its name. known: the classes as the data dictionary has them."""
        method, n = model.get("normalizationMethod", "none"), len(place)
        tables = model.all("RegressionTable")
        factor, constant, classes = np.zeros(n), np.zeros(n), [""] * n
        others = []
        for table in tables:
            terms = [one for one in table.inside if one.name.endswith("Predictor") or one.name == "PredictorTerm"]
            if not terms:
                others.append(table)
                continue
            name = terms[0].get("name")
            is_plain = len(terms) == 1 and terms[0].name == "NumericPredictor" and terms[0].number("exponent", 1.0) == 1
            if not is_plain or name not in place or factor[place[name]]:
                raise UnsupportedModel(f"The PMML model's RegressionModel adds up more than a score. {INSTEAD}")
            factor[place[name]], constant[place[name]] = terms[0].number("coefficient"), table.number("intercept", 0.0)
            classes[place[name]] = table.get("targetCategory")
        if model.get("functionName") == "regression" and method == "none" and n == 1 and factor[0]:
            return cls(factor, constant, {"classes": np.empty(0), "decision": "value", "link": "identity"})
        if (factor == 0).any() or model.get("functionName") != "classification":
            raise UnsupportedModel(f"The PMML model's RegressionModel leaves out a score. {INSTEAD}")
        if method == "logit" and n == 1 and len(others) == 1 and others[0].number("intercept", 0.0) == 0:
            words = others[0].get("targetCategory"), classes[0]
            pair = [known[_class_of(one, known)] if known else one for one in words]
            return cls(factor, constant, {"classes": np.array(pair), "decision": "above", "link": "sigmoid"})
        if method == "softmax" and n > 1 and not others:
            labels = [known[_class_of(one, known)] if known else one for one in classes]
            return cls(factor, constant, {"classes": np.array(labels), "decision": "argmax", "link": "softmax"})
        raise UnsupportedModel(
            f"A PMML RegressionModel with {method!r} of {n} scores is not supported; 'logit' of one and 'softmax' of "
            f"several are. {INSTEAD}"
        )


def _segments(model: Element) -> list[Element]:
    found = elements_of(model, "Segmentation", "Segment")
    if not found:
        raise InvalidInput("The PMML file is damaged: a MiningModel has no segments.")
    for one in found:
        if one.first("True") is None:
            raise UnsupportedModel(f"The PMML model asks which of its segments count. {INSTEAD}")
    return found


def _inner(segment: Element) -> Element:
    found = segment.first(*_MODELS)
    if found is None:
        raise UnsupportedModel(f"A segment of the PMML model holds no tree. {INSTEAD}")
    return found


def _method(model: Element) -> str:
    place = model.first("Segmentation")
    return "sum" if place is None else place.get("multipleModelMethod")


def _rescaled(model: Element, target: str) -> tuple[float, float]:
    """By what a model's number is multiplied, and what is added to it."""
    factor, constant = 1.0, 0.0
    for one in elements_of(model, "Targets", "Target"):
        if one.get("castInteger") or "min" in one.attributes or "max" in one.attributes:
            raise UnsupportedModel(f"The PMML model rounds or bounds what it predicts. {INSTEAD}")
        factor, constant = one.number("rescaleFactor", 1.0), one.number("rescaleConstant", 0.0)
    return factor, constant


def _output(model: Element) -> str:
    """The name under which a later model knows what this one predicts."""
    for one in elements_of(model, "Output", "OutputField"):
        if one.get("feature", "predictedValue") == "predictedValue" and not one.inside:
            return one.get("name")
    raise UnsupportedModel(f"A model of the PMML chain has no output that is its number. {INSTEAD}")


def _is_counted(values: list[np.ndarray[Any, Any]]) -> bool:
    """Whether the values are multiples of a unit, and so few that not even float32 rounds a sum of them."""
    size = sum(float(np.abs(own).max(initial=0.0)) for own in values)
    return size * _UNITS < 2.0**24 and all((np.mod(own * _UNITS, 1.0) == 0).all() for own in values)


def _class_of(text: str, classes: tuple[Any, ...]) -> int:
    for k, label in enumerate(classes):
        if str(label) == text or is_written(label, text):
            return k
    raise InvalidInput(f"The PMML file is damaged: {text!r} is none of its classes.")


def _shares(leaf: Element, classes: tuple[Any, ...], is_vote: bool) -> Any:
    """(n_classes,) how often each class is at a leaf; of a vote, the one that it says."""
    found, given = np.zeros(len(classes)), leaf.all("ScoreDistribution")
    if given and not (is_vote and leaf.get("score")):
        has_shares = all("probability" in one.attributes for one in given)
        for one in given:
            number = one.number("probability" if has_shares else "recordCount")
            found[_class_of(one.get("value"), classes)] = number
        total = found.sum()
        if not total > 0:
            raise InvalidInput("The PMML file is damaged: a leaf holds no class.")
        return found if has_shares else found / total
    found[_class_of(leaf.get("score"), classes)] = 1.0
    return found
