"""Every exception of the package. Exceptions are for misuse; finding nothing is a status."""

from __future__ import annotations

from typing import Any, NoReturn


class TreefocusError(Exception):
    """Base of every error treefocus raises on purpose."""


class InvalidInput(TreefocusError, ValueError):  # noqa: N818
    """A parameter, row or file that cannot be used; the text says which, what is allowed and what came."""


class StorageFailed(InvalidInput):
    """A file or a folder that cannot be written, or could not be written any further."""


class UnsupportedModel(TreefocusError, TypeError):  # noqa: N818
    """A model that no adapter can translate exactly."""


class ModelMismatch(TreefocusError):  # noqa: N818
    """The translated forest and the source model disagree on a row."""


def reject(parameter: str, allowed: str, came: Any) -> NoReturn:
    """Raise `InvalidInput` as one sentence: "`parameter` must be `allowed`, got `came`."."""
    raise InvalidInput(f"{parameter} must be {allowed}, got {came}.")
