"""An explanation as a picture (matplotlib). Computes nothing: shares and values are in the explanation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from treefocus.render.table import difference
from treefocus.render.text import quantity

if TYPE_CHECKING:
    from treefocus.explanation import Change, Explanation

UP, DOWN = "#0072B2", "#D55E00"  # blue and vermilion: told apart by everybody, also in grey
_BAR_INCHES, _MARGIN_INCHES = 0.55, 1.3


def change_bars(explanation: Explanation, ax: Any = None) -> Any:
    """Draw a bar a changed feature, and return the matplotlib axes.

    A bar's length is the feature's share of the whole change, to the right where the value grows and to the left
    where it shrinks; the labels say from what to what. Without a counterfactual the picture says why.
    """
    axes = _new_axes(len(explanation.changes)) if ax is None else ax
    if explanation.changes:
        _draw(explanation.changes, axes)
    else:
        _say(explanation.reason, axes)
    axes.set_title(_title(explanation), loc="left", fontsize="large", fontweight="bold")
    return axes


def _new_axes(n_bars: int) -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install 'treefocus[plot]'.") from error
    height = _MARGIN_INCHES + _BAR_INCHES * max(n_bars, 2)
    _, axes = pyplot.subplots(figsize=(8.0, height), layout="constrained")
    return axes


def _draw(changes: tuple[Change, ...], axes: Any) -> None:
    signed = [100 * change.share * (1 if change.after > change.before else -1) for change in changes]
    bars = axes.barh(range(len(changes)), signed, height=0.62, color=[UP if s > 0 else DOWN for s in signed])
    axes.bar_label(bars, [f"{difference(c)} {c.unit}".rstrip() for c in changes], padding=4, fontsize="small")
    axes.set_yticks(range(len(changes)), [_label(change) for change in changes])
    axes.invert_yaxis()
    reach = 1.35 * max(abs(s) for s in signed) or 1.0
    axes.set_xlim(-reach if min(signed) < 0 else 0.0, reach if max(signed) > 0 else 0.0)
    axes.xaxis.set_major_formatter(lambda value, _: f"{abs(value):g} %")
    axes.set_xlabel("share of the change (left: less, right: more)")
    axes.axvline(0.0, color="0.3", linewidth=0.8)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)


def _label(change: Change) -> str:
    return f"{change.feature}\n{quantity(change.before)} → {quantity(change.shown, change.unit)}"


def _say(reason: str, axes: Any) -> None:
    axes.text(0.5, 0.5, reason, ha="center", va="center", wrap=True, transform=axes.transAxes)
    axes.set_axis_off()


def _title(explanation: Explanation) -> str:
    if explanation.outcome is None or not explanation.changes:
        return f"Row {explanation.label}: {explanation.predicted}"
    return f"Row {explanation.label}: {explanation.predicted} → {explanation.outcome}"
