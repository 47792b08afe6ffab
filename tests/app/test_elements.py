"""The page's small pieces."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from nicegui import Client, ui

import treefocus.app
from treefocus.app.page.elements import NumberField

SOURCES = sorted(Path(treefocus.app.__path__[0]).rglob("*.py"))


def called(source: Path) -> set[str]:
    """What a file calls, as it is written: "ui.number"."""
    tree = ast.parse(source.read_text(encoding="utf-8"))
    return {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}


@pytest.mark.parametrize("source", SOURCES, ids=[source.stem for source in SOURCES])
def test_nobody_uses_the_number_field_that_changes_what_was_typed(source: Path) -> None:
    assert not {"ui.number", "ui.knob"} & called(source)


@pytest.mark.parametrize(
    ("came", "number"),
    [("150", 150.0), ("-5", -5.0), ("1e3", 1000.0), (7, 7.0), ("", None), (None, None), ("nan", None), ("abc", None)],
)
def test_what_was_typed_is_kept_when_the_field_is_left(came: object, number: float | None) -> None:
    with Client(ui.page("/nowhere"), request=None):
        field = NumberField("share", value=1.0, step=1)
        for kind, args in (("update:modelValue", came), ("blur", None)):
            for listener in [one for one in field._event_listeners.values() if one.type == kind]:
                field._handle_event({"listener_id": listener.id, "args": args})
        assert field.value == number
