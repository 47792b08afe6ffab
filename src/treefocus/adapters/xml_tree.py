"""XML as plain data: elements, attributes and texts, and nothing that a document could make a parser do.

A document type is refused, and with it every entity: what a file of a few bytes could unfold to, or fetch from
elsewhere, is never looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from treefocus.errors import InvalidInput

MOST_NESTED = 2000  # elements inside each other


@dataclass(slots=True)
class Element:
    """One element: its name without a namespace, attributes, elements inside it, and its text."""

    name: str
    attributes: dict[str, str]
    inside: list[Element] = field(default_factory=list)
    text: str = ""

    def all(self, *names: str) -> list[Element]:
        """The elements directly inside it that have one of these names."""
        return [one for one in self.inside if one.name in names]

    def first(self, *names: str) -> Element | None:
        """The first of them, None where there is none."""
        return next((one for one in self.inside if one.name in names), None)

    def get(self, name: str, default: str = "") -> str:
        """An attribute."""
        return self.attributes.get(name, default)

    def number(self, name: str, default: float | None = None) -> float:
        """An attribute that is a number."""
        text = self.attributes.get(name)
        if text is None and default is not None:
            return default
        try:
            return float(text or "")
        except ValueError:
            raise InvalidInput(f"{self.name}.{name} must be a number, got {text!r}.") from None


def parse(data: bytes) -> Element:
    """The outermost element of a document."""
    parser = expat.ParserCreate()
    parser.buffer_text = True
    top = Element("", {})
    open_elements = [top]

    def begin(name: str, attributes: dict[str, str]) -> None:
        made = Element(name.rpartition(":")[2], attributes)
        open_elements[-1].inside.append(made)
        open_elements.append(made)
        if len(open_elements) > MOST_NESTED:
            raise InvalidInput(f"The XML has more than {MOST_NESTED:,} elements inside each other.")

    def end(_: str) -> None:
        open_elements.pop()

    def text(more: str) -> None:
        open_elements[-1].text += more

    def refuse(*_: Any) -> None:
        raise InvalidInput("The XML has a document type, whose entities are not read; save it without.")

    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = begin, end, text
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise InvalidInput(f"The XML cannot be read: {error}.") from error
    return top.inside[0]
