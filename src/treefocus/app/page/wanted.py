"""Which answer is wanted: a class, with how much probability; or a number, from where to where."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from nicegui import ui

from treefocus.app.page.desk import Desk
from treefocus.app.page.elements import named

_ANY = "any"


def build(desk: Desk, changed: Callable[[], object]) -> None:
    """The fields; `changed` is called when the wish is another one."""
    if desk.service.predicts_number:
        _interval(desk, changed)
    else:
        _class(desk, changed)


def _class(desk: Desk, changed: Callable[[], object]) -> None:
    wish, classes = desk.visit.wish, desk.service.classes
    options = {_ANY: "any other class"} | {str(k): str(label) for k, label in enumerate(classes)}

    def aim(event: Any) -> None:
        wish.label = None if event.value == _ANY else classes[int(event.value)]
        percent.set_visibility(wish.label is not None)
        changed()

    def demand(event: Any) -> None:
        wish.percent = event.value
        changed()

    chosen = _ANY if wish.label is None else str(classes.index(wish.label))
    ui.select(options, label="Wanted answer", value=chosen, on_change=aim).props("outlined dense")
    percent = ui.number("At least (%)", value=wish.percent, min=0, max=100, on_change=demand)
    percent.props('outlined dense stack-label placeholder="however likely" debounce="250"')
    named(percent, "Probability of the wanted answer: At least (%)")
    percent.set_visibility(wish.label is not None)


def _interval(desk: Desk, changed: Callable[[], object]) -> None:
    wish = desk.visit.wish

    def reach(name: str, event: Any) -> None:
        setattr(wish, name, event.value)
        changed()

    for name, side in (("low", "from"), ("high", "to")):
        field = ui.number(f"Wanted number, {side}", value=getattr(wish, name), on_change=partial(reach, name))
        field.props('outlined dense stack-label placeholder="no limit" debounce="250"')
