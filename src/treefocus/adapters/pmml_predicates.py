"""The columns of a PMML model and its predicates: what a comparison says of a value, and where it can change.

A predicate asks for one column here. Of a missing value it says nothing, None, as PMML has it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from treefocus.adapters.xml_tree import Element
from treefocus.errors import InvalidInput, UnsupportedModel
from treefocus.model.grid import cell_ends, floor_to

INSTEAD = "Convert the model without it, or give treefocus the model itself."
PREDICATES = ("SimplePredicate", "SimpleSetPredicate", "CompoundPredicate", "True", "False")
MISSING = None  # as a value of a predicate
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "equal": lambda a, b: a == b, "notEqual": lambda a, b: a != b, "lessThan": lambda a, b: a < b,
    "lessOrEqual": lambda a, b: a <= b, "greaterThan": lambda a, b: a > b, "greaterOrEqual": lambda a, b: a >= b,
}  # fmt: skip


@dataclass(frozen=True)
class PmmlColumn:
    """One column: its number, its categories where it holds such, and whether the model reads it as float32."""

    number: int
    labels: tuple[Any, ...] | None = None
    is_single: bool = False
    replacement: Any = MISSING  # what stands for a missing value


@dataclass
class PmmlColumns:
    """The fields that predicates may name."""

    names: tuple[str, ...]
    by_name: dict[str, PmmlColumn]
    classes: dict[str, tuple[Any, ...]]  # the values of every field that has some
    refuses_missing: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, top: Element, model: Element) -> PmmlColumns:
        """The columns of the model's mining schema, and what is only another name of one."""
        known = {one.get("name"): one for one in elements_of(top, "DataDictionary", "DataField")}
        classes = {name: _values(one) for name, one in known.items()}
        made: dict[str, PmmlColumn] = {}
        for one in elements_of(model, "MiningSchema", "MiningField"):
            name = one.get("name")
            if one.get("usageType", "active") != "active":
                continue
            if name not in known:
                raise InvalidInput(f"The PMML file is damaged: {name!r} is no field of its data dictionary.")
            if one.get("outliers", "asIs") != "asIs":
                raise UnsupportedModel(f"The PMML field {name!r} moves outliers, which is not supported. {INSTEAD}")
            is_word = (
                known[name].get("optype") in ("categorical", "ordinal") and known[name].get("dataType") != "boolean"
            )
            labels = classes[name] if is_word or classes[name] else None
            if is_word and not classes[name]:
                raise UnsupportedModel(f"The PMML field {name!r} is categorical and names no value. {INSTEAD}")
            replacement = one.attributes.get("missingValueReplacement")
            own = MISSING if replacement is None else _value(replacement, known[name].get("dataType"))
            made[name] = PmmlColumn(len(made), labels, known[name].get("dataType") == "float", own)
        columns = cls(tuple(made), made, classes)
        for place in (top.first("TransformationDictionary"), model.first("LocalTransformations")):
            columns.learn(place)
        return columns

    def learn(self, place: Element | None) -> None:
        """Fields that are derived from one: the same, perhaps rounded to float32."""
        for one in () if place is None else place.all("DerivedField"):
            source = one.first("FieldRef")
            if source is None or source.get("field") not in self.by_name or source.get("mapMissingTo"):
                raise UnsupportedModel(f"The PMML field {one.get('name')!r} is computed from others. {INSTEAD}")
            own = self.by_name[source.get("field")]
            is_single = own.is_single or one.get("dataType") == "float"
            self.by_name[one.get("name")] = PmmlColumn(own.number, own.labels, is_single, own.replacement)

    def column(self, name: str) -> PmmlColumn:
        """A column by its name."""
        if name not in self.by_name:
            raise UnsupportedModel(f"The PMML model asks for {name!r}, which is none of its columns. {INSTEAD}")
        return self.by_name[name]


def elements_of(element: Element, outer: str, inner: str) -> list[Element]:
    """The elements of one name inside the first element of another."""
    place = element.first(outer)
    return [] if place is None else place.all(inner)


def _values(declared: Element) -> tuple[Any, ...]:
    kept = [one for one in declared.all("Value") if one.get("property", "valid") == "valid"]
    return tuple(_value(one.get("value"), declared.get("dataType")) for one in kept)


def _value(text: str, kind: str) -> Any:
    """A value as people know it: numbers as such."""
    if kind in ("integer", "double", "float"):
        number = float(text)
        return int(number) if kind == "integer" and number.is_integer() else number
    return {"true": True, "false": False}.get(text, text) if kind == "boolean" else text


def names_in(predicate: Element) -> set[str]:
    """The columns that a predicate asks for; of a surrogate the first, for what stands in only if it is missing."""
    if predicate.name == "CompoundPredicate":
        parts = predicate.all(*PREDICATES)
        parts = parts[:1] if predicate.get("booleanOperator") == "surrogate" else parts
        return {name for part in parts for name in names_in(part)}
    return {predicate.get("field")} if predicate.name.startswith("Simple") else set()


def holds(predicate: Element, value: Any, column: PmmlColumn) -> bool | None:
    """Whether a predicate is true of its column's value; None where nobody knows, because that is missing."""
    if predicate.name in ("True", "False"):
        return predicate.name == "True"
    if predicate.name == "CompoundPredicate":
        return _compound(predicate, value, column)
    operator = predicate.get("operator") or predicate.get("booleanOperator")
    if operator in ("isMissing", "isNotMissing"):
        return (value is MISSING) == (operator == "isMissing")
    if value is MISSING:
        return None
    if predicate.name == "SimpleSetPredicate":
        return (value in _listed(predicate, column)) == (operator == "isIn")
    if operator not in _COMPARE:
        raise UnsupportedModel(f"The PMML predicate {operator!r} is not known. {INSTEAD}")
    return _COMPARE[operator](value, _own(predicate.get("value"), column))


def _compound(predicate: Element, value: Any, column: PmmlColumn) -> bool | None:
    parts = [holds(part, value, column) for part in predicate.all(*PREDICATES)[: _n_parts(predicate)]]
    operator = predicate.get("booleanOperator")
    if operator == "surrogate":
        return parts[0]
    if operator == "and":
        return False if False in parts else None if None in parts else True
    if operator == "or":
        return True if True in parts else None if None in parts else False
    if operator == "xor":
        return None if None in parts else sum(map(bool, parts)) % 2 == 1
    raise UnsupportedModel(f"The PMML predicate {operator!r} is not known. {INSTEAD}")


def _n_parts(predicate: Element) -> int | None:
    return 1 if predicate.get("booleanOperator") == "surrogate" else None


def _own(text: str, column: PmmlColumn) -> Any:
    """The value of a predicate as the column's values are written."""
    if column.labels is None:
        number = float({"true": "1", "false": "0"}.get(text, text))
        return float(np.float32(number)) if column.is_single else number
    return next((label for label in column.labels if str(label) == text or is_written(label, text)), text)


def is_written(label: Any, text: str) -> bool:
    """Whether a label that is a number, or a truth, is written like this."""
    if isinstance(label, bool):
        return text.lower() == str(label).lower()
    try:
        return not isinstance(label, str) and float(label) == float(text)
    except ValueError:
        return False


def _listed(predicate: Element, column: PmmlColumn) -> list[Any]:
    """The values of a SimpleSetPredicate; texts with spaces stand in quotes."""
    array = predicate.first("Array")
    found: list[str] = []
    if array is None:
        return []
    if array.get("type") != "string":
        return [_own(text, column) for text in array.text.split()]
    word, is_quoted, is_open = "", False, False
    text = array.text + " "
    for k, letter in enumerate(text):
        if letter == '"' and text[k - 1 : k] != "\\":
            is_quoted, is_open = not is_quoted, True
        elif letter.isspace() and not is_quoted:
            found += [word.replace('\\"', '"')] if word or is_open else []
            word, is_open = "", False
        else:
            word += letter
    return [_own(one, column) for one in found]


def numbers_in(predicate: Element, column: PmmlColumn) -> list[float]:
    """The numbers at which a predicate of a column of numbers may change."""
    if predicate.name == "CompoundPredicate":
        parts = predicate.all(*PREDICATES)[: _n_parts(predicate)]
        return [number for part in parts for number in numbers_in(part, column)]
    if predicate.name == "SimpleSetPredicate":
        return [float(number) for number in _listed(predicate, column)]
    has_value = predicate.name == "SimplePredicate" and "value" in predicate.attributes
    return [_own(predicate.get("value"), column)] if has_value else []


def last_of(end: float, column: PmmlColumn) -> float:
    """The last float64 of an interval that ends there; a number that is read as float32 is rounded first."""
    if not column.is_single:
        return end
    return float(cell_ends(floor_to(np.array([end]), "float32"), "float32")[0][0])
