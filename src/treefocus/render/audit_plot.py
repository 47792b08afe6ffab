"""An audit as pictures (matplotlib). Computes nothing: it draws the record that `Audit.to_json` writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from treefocus.render.apart import joined_apart
from treefocus.render.audit import MANY, name_parts, share
from treefocus.render.palette import DOWN, UP
from treefocus.render.plot import _LONGEST, _entitle, _name_bars, _new_axes, _say, _short, _text

Record = Mapping[str, Any]
_EDGE = "#4d4d4d"
_MOST_BARS = 41  # all rows, and so many groups less one: more are read in a table


def burden_bars(facts: Record, ax: Any = None) -> Any:
    """A bar a group, as long as its mean distance, its interval across it; the part that is not proven is hatched."""
    axes = _interval_bars(facts, "burden", UP, ax)
    _entitle(axes, f"What is asked of each group{_left_out(facts)}")
    axes.set_xlabel(f"mean {facts['distance']} distance of those with a way out, {share(facts['level'])} interval")
    return axes


def preclusion_bars(facts: Record, ax: Any = None) -> Any:
    """A bar a group, as long as the share without a way out; what is not proven is hatched."""
    axes = _interval_bars(facts, "preclusion", DOWN, ax)
    _entitle(axes, f"Who has no way out{_left_out(facts)}")
    axes.set_xlabel(f"share of rows without a way out, {share(facts['level'])} interval")
    return axes


def feature_bars(facts: Record, ax: Any = None) -> Any:
    """A bar a feature, as long as the share of rows that are asked to change it: to grow, to shrink, otherwise."""
    features = facts["features"][:MANY]
    axes = _new_axes(len(features)) if ax is None else ax
    _entitle(axes, "What is asked to change")
    if not features:
        _say("Nobody is asked to change anything.", axes)
        return axes
    n_helped, before = facts["whole"]["helped"], [0.0] * len(features)
    kinds = (("up", "to grow", UP, ""), ("down", "to shrink", DOWN, "////"), ("other", "otherwise", "#999999", "...."))
    for key, label, colour, hatch in kinds:
        width = [one[key] / n_helped for one in features]
        if any(width):
            axes.barh(
                range(len(features)), width, left=before, height=0.62, color=colour, hatch=hatch, edgecolor="white",
                linewidth=0.0, label=label,
            )  # fmt: skip
        before = [a + b for a, b in zip(before, width, strict=True)]
    _name_bars(axes, [_short(one["feature"]) for one in features])
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of the rows with a way out")
    axes.legend(frameon=False, fontsize="small", loc="lower right")
    return axes


def shown_groups(facts: Record) -> list[Record]:
    """The lines that are drawn: all rows, then the groups that are shown."""
    return [one for one in (facts["whole"], *facts["groups"]) if not one["is_hidden"]]


def _left_out(facts: Record) -> str:
    n_groups = len(shown_groups(facts)) - 1
    return "" if n_groups < _MOST_BARS else f", the first {_MOST_BARS - 1} of {n_groups}"


def _interval_bars(facts: Record, measure: str, colour: str, ax: Any) -> Any:
    groups = shown_groups(facts)[:_MOST_BARS]
    axes = _new_axes(len(groups)) if ax is None else ax
    drawn = [one for one in groups if one[measure][0] is not None]
    if not drawn:
        _say("There is nothing to draw.", axes)
        return axes
    places = range(len(drawn))
    low, high = ([one[measure][end] for one in drawn] for end in (0, 1))
    axes.barh(places, low, height=0.62, color=colour)
    open_part = [b - a for a, b in zip(low, high, strict=True)]
    if max(open_part) > 0:
        axes.barh(
            places, open_part, left=low, height=0.62, color="white", edgecolor=colour, hatch="////", linewidth=0.0
        )
    for place, one in zip(places, drawn, strict=True):
        ends = one[f"{measure}_interval"]
        if ends[0] is not None:
            axes.plot(ends, [place, place], color=_EDGE, marker="|", linewidth=1.2)
    _name_bars(axes, [_text(name) for name in joined_apart(name_parts(drawn), _LONGEST)])
    axes.set_xlim(left=0)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes
