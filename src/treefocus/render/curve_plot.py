"""A curve of promises as a picture (matplotlib). Computes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treefocus.render.palette import UP
from treefocus.render.phrases import DEFAULT, catalogue
from treefocus.render.plot import _entitle, _new_axes
from treefocus.render.views import CurvePointView

_ROWS = 6.0  # the picture is as high as one of so many bars


def curve_line(points: Sequence[CurvePointView], ax: Any = None, language: str = DEFAULT) -> Any:
    """The share of models that confirm the answers against their distance, each with its interval and its promise."""
    phrases = catalogue(language)
    axes = _new_axes(_ROWS) if ax is None else ax
    shares = [100 * one.validity for one in points]
    ends = [[100 * end for end in one.stability.interval] for one in points]
    off = [
        [max(share - low, 0.0) for share, (low, _) in zip(shares, ends, strict=True)],
        [max(high - share, 0.0) for share, (_, high) in zip(shares, ends, strict=True)],
    ]
    prices = [one.price for one in points]
    axes.errorbar(prices, shares, yerr=off, color=UP, marker="o", markersize=5, capsize=3, linewidth=1.5)
    for one, price, share in zip(points, prices, shares, strict=True):
        told = phrases.recourse["smallest point"] if one.hold is None else phrases.share(one.hold)
        axes.annotate(told, (price, share), xytext=(8, -12), textcoords="offset points", fontsize="small")
    _entitle(axes, phrases.recourse["curve"])
    axes.set_xlabel(phrases.recourse["in smallest changes"])
    axes.set_ylabel(phrases.recourse["confirm"])
    axes.yaxis.set_major_formatter(lambda value, _: phrases.share(value / 100) if value <= 100 else "")
    axes.margins(x=0.12)
    axes.spines[["top", "right"]].set_visible(False)
    return axes
