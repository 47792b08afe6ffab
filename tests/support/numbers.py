"""Numbers of every language, read back."""

from __future__ import annotations

from treefocus.render.phrases import catalogue


def read(text: str, language: str) -> float:
    """A number of that language."""
    phrases = catalogue(language)
    return float(text.replace(phrases.group, "").replace(phrases.decimal, "."))
