"""Other models that have to give the wanted outcome, too, in the columns and categories of the first one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from treefocus.adapters import translate
from treefocus.adapters.aligned import aligned
from treefocus.adapters.trust import trusted
from treefocus.errors import InvalidInput
from treefocus.model.forest import Forest
from treefocus.model.source import Source
from treefocus.problem.words import widened
from treefocus.tables.onehot import Folding
from treefocus.tables.table import Table


def companions(
    also: Any, model: Forest, names: Sequence[str] | None, table: Table | None, folding: Folding | None
) -> tuple[Source, ...]:
    """The models of `also=` as rows of the first model take them; `model` is its forest before groups are folded."""
    models = list(also) if isinstance(also, list | tuple) else [also]
    labels = (None,) * model.n_features if model.categories is None else model.categories.labels
    found = []
    for number, one in enumerate(models):
        source = aligned(widened(trusted(translate(one)), table), names, labels, f"also[{number}]")
        _check_kind(source.forest, model, f"also[{number}]")
        found.append(source if folding is None else replace(folding, model=source.forest).source(source))
    return tuple(found)


def _check_kind(own: Forest, model: Forest, which: str) -> None:
    """Models that predict numbers and models that predict classes have no outcome in common."""
    if (own.decision == "value") != (model.decision == "value"):
        kinds = ["a class", "a number"]
        said, wanted = kinds[own.decision == "value"], kinds[model.decision == "value"]
        raise InvalidInput(f"{which} predicts {said}, the model {wanted}: they have no outcome in common.")
    if own.decision != "value" and not set(own.classes.tolist()) & set(model.classes.tolist()):
        raise InvalidInput(f"{which} has the classes {own.classes.tolist()}, the model {model.classes.tolist()}.")
