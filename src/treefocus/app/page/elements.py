"""Small pieces of the page with their accessibility built in."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any, TypeVar

from nicegui import ui

from treefocus.schema.schema import Feature

E = TypeVar("E", bound=ui.element)


def heading(level: int, text: str, identifier: str = "") -> ui.html:
    """A heading of the page's outline."""
    element = ui.html(escape(text), tag=f"h{level}", sanitize=False)
    return element.props(f'id="{identifier}"') if identifier else element


@contextmanager
def section(title: str, name: str) -> Iterator[None]:
    """A part of the page that screen readers can jump to."""
    with ui.element("section").props(f'aria-labelledby="heading-{name}" id="{name}"').classes("tf-card"):
        heading(2, title, f"heading-{name}")
        yield


def markup(text: str, *classes: str) -> ui.html:
    """HTML of our own making, in which everything foreign has been escaped."""
    return ui.html(text, sanitize=False).classes(" ".join(classes))


def live(politeness: str = "polite") -> ui.element:
    """A place whose changes are read out."""
    role = "alert" if politeness == "assertive" else "status"
    return ui.element("div").props(f'role="{role}" aria-live="{politeness}"')


def named(element: E, name: str) -> E:
    """The element with a name for screen readers; names may hold any letter."""
    element.props["aria-label"] = name
    return element


def fold(title: str, build: Callable[[], object]) -> ui.expansion:
    """A part that is made when it is first opened: a model of hundreds of columns makes the page no slower."""
    is_built = False

    def opened() -> None:
        nonlocal is_built
        if not is_built:
            is_built = True
            with part:
                build()

    part = ui.expansion(title, on_value_change=opened).classes("tf-fold")
    return part


class NumberField(ui.number):
    """The page's only kind of number field. What was typed stays as it was typed, and whoever asks for it judges it.

    The framework's own field moves a number to its limits when it is left, which may be before or after the press on
    the button that the visitor goes to: the same question would get one answer or another.
    """

    def __init__(
        self, label: str | None = None, *, value: float | None = None, step: float | None = None,
        placeholder: str | None = None, on_change: Callable[..., object] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(label, value=value, placeholder=placeholder, on_change=on_change)
        self.props('outlined dense debounce="250"' + (" stack-label" if placeholder else ""))
        self.props["step"] = step or "any"

    def sanitize(self) -> None:
        """Nothing: a number is not another one because its field was left."""

    def _event_args_to_value(self, e: Any) -> float | None:
        try:
            number = float(e.args)
        except (TypeError, ValueError):
            return None
        return None if math.isnan(number) else number


def title_of(feature: Feature) -> str:
    """A column's name and unit."""
    return f"{feature.name} ({feature.unit})" if feature.unit else feature.name


def button(text: str, on_click: object, *, is_main: bool = False) -> ui.button:
    """A button in the page's style."""
    element = ui.button(text, on_click=on_click, color=None)  # type: ignore[arg-type]
    return element.props("no-caps unelevated").classes("tf-button tf-main" if is_main else "tf-button")
