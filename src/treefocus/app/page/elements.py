"""Small pieces of the page with their accessibility built in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import TypeVar

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


def title_of(feature: Feature) -> str:
    """A column's name and unit."""
    return f"{feature.name} ({feature.unit})" if feature.unit else feature.name


def button(text: str, on_click: object, *, is_main: bool = False) -> ui.button:
    """A button in the page's style."""
    element = ui.button(text, on_click=on_click, color=None)  # type: ignore[arg-type]
    return element.props("no-caps unelevated").classes("tf-button tf-main" if is_main else "tf-button")
