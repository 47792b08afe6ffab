"""Which answer is wanted: a class, with how much probability; or a number, from where to where."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from nicegui import ui

from treefocus.app.page.desk import Desk
from treefocus.app.page.elements import NumberField, named

_ANY = "any"


def build(desk: Desk, changed: Callable[[], object]) -> None:
    """The fields; `changed` is called when the wish is another one."""
    if desk.service.predicts_number:
        _interval(desk, changed)
    else:
        _class(desk, changed)


def _class(desk: Desk, changed: Callable[[], object]) -> None:
    wish, classes, words = desk.visit.wish, desk.service.classes, desk.words
    options = {_ANY: words["any_other"]} | {str(k): str(label) for k, label in enumerate(classes)}

    def aim(event: Any) -> None:
        wish.label = None if event.value == _ANY else classes[int(event.value)]
        percent.set_visibility(wish.label is not None)
        changed()

    def demand(event: Any) -> None:
        wish.percent = event.value
        changed()

    chosen = _ANY if wish.label is None else str(classes.index(wish.label))
    ui.select(options, label=words["wanted"], value=chosen, on_change=aim).props("outlined dense")
    percent = NumberField(words["at_least"], value=wish.percent, step=1, placeholder=words["however"], on_change=demand)
    named(percent, words["at_least_name"])
    percent.set_visibility(wish.label is not None)


def _interval(desk: Desk, changed: Callable[[], object]) -> None:
    wish, words = desk.visit.wish, desk.words

    def reach(name: str, event: Any) -> None:
        setattr(wish, name, event.value)
        changed()

    for name, key in (("low", "wanted_from"), ("high", "wanted_to")):
        NumberField(
            words[key], value=getattr(wish, name), placeholder=words["no_limit"], on_change=partial(reach, name)
        )
