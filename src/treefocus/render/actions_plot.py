"""A plan of actions as pictures (matplotlib). Computes nothing but the order in which people stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from treefocus.model.forest import Floats
from treefocus.render.palette import DOWN, UP
from treefocus.render.plot import _entitle, _new_axes, _say


def coverage_curve(facts: Mapping[str, Any], ax: Any = None) -> Any:
    """The share of people helped by the best one action, two, and so on, below the proven bound."""
    axes = _new_axes(4) if ax is None else ax
    _entitle(axes, "How many people a few actions help")
    if not facts["curve"]:
        _say("No action helps anybody.", axes)
        return axes
    numbers, shares = zip(*facts["curve"], strict=True)
    axes.plot(numbers, shares, color=UP, marker="o", label="helped")
    axes.axhline(facts["upper_bound"], color=DOWN, linestyle="--", label="no actions can help more (proven)")
    axes.set_xticks(numbers)
    axes.set_ylim(0, 1.05)
    axes.set_xlabel("actions")
    axes.set_ylabel("share of people")
    axes.legend(frameon=False, fontsize="small", loc="lower right")
    return axes


def people_map(cost: Floats, ax: Any = None) -> Any:
    """A line an action, a column a person: dark where the action helps cheaply, blank where it does not help."""
    axes = _new_axes(max(len(cost), 2)) if ax is None else ax
    _entitle(axes, "Which action helps whom")
    if not np.isfinite(cost).any():
        _say("No action helps anybody.", axes)
        return axes
    helps = np.isfinite(cost)
    order = np.lexsort((np.where(helps, cost, np.inf).min(axis=0), *(~helps[::-1])))
    shown = np.ma.masked_invalid(np.where(helps, cost, np.nan)[:, order])
    drawn = axes.imshow(shown, aspect="auto", interpolation="nearest", cmap="viridis")
    axes.set_yticks(range(len(cost)), [f"action {k + 1}" for k in range(len(cost))])
    axes.set_xlabel("people, those whom the first action helps first")
    axes.figure.colorbar(drawn, ax=axes, label="cost")
    return axes
