"""Explanations as pictures (matplotlib). Computes nothing: what is drawn comes with the explanation or as an argument.

Every function takes the axes to draw into, or makes its own, and returns them. Colours are told apart by everybody;
what they say is also said by direction, hatching or marker, so that a grey print says the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from treefocus.render.palette import DOWN, REGIONS, SERIES, UP
from treefocus.render.phrases import DEFAULT, Catalogue, catalogue
from treefocus.render.plain import bare
from treefocus.render.table import difference, title
from treefocus.render.text import bare_value, measured, words_of
from treefocus.render.views import AskedView, BatchView, ChangeView, MapView, MenuView, RowView
from treefocus.schema.feature import Feature

if TYPE_CHECKING:
    from treefocus.model.forest import Floats

HATCHES = ("", "////", "....", "xx", "\\\\\\\\", "--")
REGION_HATCHES = ("", "..", "//", "\\\\", "xx", "--")
_BAR_INCHES, _MARGIN_INCHES, _WIDTH_INCHES = 0.55, 1.3, 8.0
_LONGEST = 34  # letters of a name; a longer one is cut
_SMALLEST = 4.0  # points; smaller than that nobody reads


def change_bars(explanation: RowView, ax: Any = None, language: str = DEFAULT) -> Any:
    """Draw a bar a changed feature, and return the matplotlib axes.

    A bar's length is the feature's share of the whole change, to the right where the value grows and to the left
    where it shrinks; the labels say from what to what. Without a counterfactual the picture says why.
    """
    changes = explanation.changes
    axes = _new_axes(len(changes)) if ax is None else ax
    if changes:
        _draw_bars(explanation, axes, language)
    else:
        _say(catalogue(language).reason(explanation.why), axes)
    _entitle(axes, title(explanation, language))
    return axes


def compare_bars(explanations: Mapping[str, RowView], ax: Any = None, language: str = DEFAULT) -> Any:
    """The same row answered several times, say under several distances: a group of bars a feature."""
    if not explanations:
        raise ValueError("compare_bars needs at least one explanation.")
    order = list(dict.fromkeys(change.feature for one in explanations.values() for change in one.changes))
    axes = _new_axes(len(order) * max(1.0, 0.45 * len(explanations))) if ax is None else ax
    first = next(iter(explanations.values()))
    _entitle(axes, title(first, language))
    if not order:
        _say(catalogue(language).reason(first.why), axes)
        return axes
    height = 0.8 / len(explanations)
    for number, (name, one) in enumerate(explanations.items()):
        found = {change.feature: change for change in one.changes}
        own = [feature for feature in order if feature in found]
        places = [order.index(feature) + (number - (len(explanations) - 1) / 2) * height for feature in own]
        axes.barh(
            places,
            [_signed(found[feature]) for feature in own],
            height=0.92 * height,
            label=_key(name),
            color=SERIES[number % len(SERIES)],
            hatch=HATCHES[number % len(HATCHES)],
            edgecolor="white",
            linewidth=0.0,
        )
    _name_bars(axes, [_short(feature) for feature in order])
    signed = [_signed(change) for one in explanations.values() for change in one.changes]
    _share_axis(axes, _limits(axes, signed, "", len(order)), language)
    _legend_beside(axes)
    return axes


def waterfall(explanation: RowView, answers: Sequence[float], ax: Any = None, language: str = DEFAULT) -> Any:
    """The model's probability of the outcome, or its predicted number: of the row, and after each change."""
    phrases, changes = catalogue(language), explanation.changes
    axes = _new_axes(len(changes) + 2) if ax is None else ax
    size = 1.0 if explanation.is_value else 100.0
    ends = [size * answer for answer in (answers[0], *answers, answers[-1])]
    names = [phrases.words["at first"], *(_from_to(explanation, change, language) for change in changes)]
    names.append(phrases.words["in the end"])
    labels = []
    for place in range(len(names)):
        is_total = place in (0, len(names) - 1)
        start, end = (0.0, ends[place]) if is_total else (ends[place], ends[place + 1])
        colour, hatch = ("0.45", "") if is_total else (UP, "") if end >= start else (DOWN, "////")
        axes.barh(place, end - start, left=start, height=0.62, color=colour, hatch=hatch, edgecolor="white",
                  linewidth=0.0)  # fmt: skip
        labels.append(_total(explanation, end, phrases) if is_total else _rise(explanation, end - start, phrases))
        axes.annotate(
            labels[-1], (max(start, end), place), (4, 0), textcoords="offset points", va="center",
            fontsize=_letters(axes, len(names), 1),
        )  # fmt: skip
        if place + 1 < len(names):
            axes.plot([end] * 2, [place - 0.31, place + 1.31], color="0.4", linewidth=0.7, linestyle=":")
    _name_bars(axes, names)
    axes.set_xlim(_limits(axes, ends if explanation.is_value else [100.0], max(labels, key=len), len(names)))
    if explanation.is_value:
        axes.xaxis.set_major_locator(_few_ticks(axes))
        axes.xaxis.set_major_formatter(lambda value, _: phrases.amount(value, 4))
        axes.set_xlabel(phrases.words["predicted number"])
    else:
        ticks = range(0, 101, 20 if _free_width(axes) * 100 / axes.get_xlim()[1] > 300 else 50)
        axes.set_xticks(ticks, [phrases.share(tick / 100) for tick in ticks])
        axes.set_xlabel(phrases.words["probability"].format(outcome=_text(explanation.pictured_class)))
    _entitle(axes, title(explanation, language))
    return axes


def _total(explanation: RowView, value: float, phrases: Catalogue) -> str:
    return phrases.amount(value) if explanation.is_value else phrases.share(value / 100, 1)


def _rise(explanation: RowView, value: float, phrases: Catalogue) -> str:
    if explanation.is_value:
        return phrases.difference(value)
    return phrases.percent.format(number=phrases.difference(round(value, 1)))


def decision_map(explanation: RowView, drawn: MapView, ax: Any = None, language: str = DEFAULT) -> Any:
    """Where the model says what over two features, with the row, the answer and the way FOCUS took."""
    from matplotlib.patches import Patch

    words = catalogue(language).words
    axes = _new_axes(8) if ax is None else ax
    names = drawn.classes
    if explanation.is_value or explanation.likelihood is not None:
        names = (words["not wanted"], words["wanted"])
    present = [k for k in range(len(drawn.classes)) if (drawn.answer == k).any()]
    x, y = drawn.x_edges, drawn.y_edges
    axes.pcolormesh(x, y, drawn.answer, cmap=_region_colours(len(drawn.classes)), vmin=-0.5,
                    vmax=len(drawn.classes) - 0.5)  # fmt: skip
    # Every rectangle by its four corners, so that the hatching ends where the colour does.
    corners = [axis.repeat(2)[1:-1] for axis in (x, y)]
    answer = drawn.answer.repeat(2, axis=0).repeat(2, axis=1)
    for k in present[1:]:
        hatch = REGION_HATCHES[k % len(REGION_HATCHES)] or "++"
        region = axes.contourf(*corners, answer == k, levels=[0.5, 1.5], colors="none", hatches=[hatch])
        region.set_edgecolor("0.6")
        region.set_linewidth(0.0)
    handles = [
        Patch(facecolor=REGIONS[k % len(REGIONS)], edgecolor="0.6", label=_key(names[k]),
              hatch="" if k == present[0] else REGION_HATCHES[k % len(REGION_HATCHES)] or "++")
        for k in present
    ]  # fmt: skip
    if drawn.path is not None and len(drawn.path):
        handles += axes.plot(drawn.path[:, 0], drawn.path[:, 1], color="0.25", linewidth=1.2, label=words["path"])
    marks = [(drawn.row, "o", words["the row"]), (drawn.point, "*", words["the answer"])]
    for place, marker, label in marks:
        if place is not None and not any(value != value for value in place):  # a missing value has no place
            size = 15 if marker == "*" else 9
            handles += axes.plot(*place, marker, color="black", markerfacecolor="white", markersize=size, label=label)
    axes.set_xlim(x[0], x[-1])
    axes.set_ylim(y[0], y[-1])
    note = f"\n({words['others as in the answer']})" if drawn.is_through_answer else ""
    axes.set_xlabel(_short(drawn.x_name) + note)
    axes.set_ylabel(_short(drawn.y_name))
    axes.xaxis.set_major_locator(_few_ticks(axes))
    for axis, labels in ((axes.xaxis, drawn.x_labels), (axes.yaxis, drawn.y_labels)):
        if labels is not None:
            axis.set_ticks(range(len(labels)), [_short(str(label)) for label in labels])
    _legend_beside(axes, handles)
    axes.set_axisbelow(False)
    _entitle(axes, title(explanation, language))
    return axes


def asked_bars(found: BatchView, asked: Sequence[AskedView], ax: Any = None, language: str = DEFAULT) -> Any:
    """How often each feature is asked to change in a batch, down to the left and up to the right, and by how much."""
    phrases = catalogue(language)
    axes = _new_axes(len(asked)) if ax is None else ax
    _entitle(axes, phrases.words["asked-for features"])
    if not asked:
        _say(phrases.words["no changes"], axes)
        return axes
    places = range(len(asked))
    size = _letters(axes, len(asked), 1)
    style: dict[str, Any] = {"height": 0.62, "edgecolor": "white", "linewidth": 0.0}
    up = axes.barh(places, [one.n_up + one.n_other for one in asked], color=UP, **style)
    down = axes.barh(places, [-one.n_down for one in asked], color=DOWN, hatch="////", **style)
    schema = found.schema.in_language(language)
    longest = ""
    for bars, attribute in ((up, "typical_up"), (down, "typical_down")):
        told = []
        for one in asked:
            step = getattr(one, attribute)
            unit = schema[one.feature].unit
            if step is None and bars is up and one.n_other:
                told.append(phrases.words["to"].format(value=measured(one.typical_other, Feature(""), phrases)))
            else:
                told.append("" if step is None else phrases.step(phrases.difference(step), bare(unit)))
        axes.bar_label(bars, [_text(label) for label in told], padding=4, fontsize=size)
        longest = max([longest, *told], key=len)
    _name_bars(axes, [_short(one.feature) for one in asked])
    lengths = [length for one in asked for length in (one.n_up + one.n_other, -one.n_down)]
    axes.set_xlim(_limits(axes, lengths, longest, len(asked)))
    axes.xaxis.set_major_locator(_few_ticks(axes, whole=True))
    axes.xaxis.set_major_formatter(lambda value, _: phrases.number(abs(value)))
    axes.axvline(0.0, color="0.3", linewidth=0.8)
    words = phrases.words
    axes.set_xlabel(f"{words['asked to change']} ({words['less']} ← → {words['more']})")
    return axes


def menu_bars(items: Sequence[MenuView], ax: Any = None, language: str = DEFAULT) -> Any:
    """How far the change is that each lever can do with, alone and in unions; what can do nothing is named so."""
    phrases = catalogue(language)
    axes = _new_axes(len(items)) if ax is None else ax
    _entitle(axes, phrases.words["menu"])
    lengths = [item.explanation.distance or 0.0 for item in items]
    is_sure = [item.explanation.status.name in ("OPTIMAL", "INFEASIBLE") for item in items]
    bars = axes.barh(range(len(items)), lengths, height=0.62, color=UP, edgecolor="white", linewidth=0.0)
    for bar, sure in zip(bars, is_sure, strict=True):
        bar.set_hatch("" if sure else "////")
    has_answer = [item.explanation.status.has_answer for item in items]
    told = [
        phrases.rounded(length) if is_there else phrases.words["no way"] + ("" if sure else "?")
        for length, is_there, sure in zip(lengths, has_answer, is_sure, strict=True)
    ]
    axes.bar_label(bars, [_text(label) for label in told], padding=4, fontsize=_letters(axes, len(items), 1))
    _name_bars(axes, [_short(" + ".join(item.levers)) for item in items])
    axes.set_xlim(_limits(axes, [*lengths, 1e-12], max(told, key=len), len(items)))
    axes.xaxis.set_major_locator(_few_ticks(axes))
    axes.set_xlabel(phrases.words["distance"])
    return axes


def distance_points(found: BatchView, answers: Floats, ax: Any = None, language: str = DEFAULT) -> Any:
    """Every answer's distance against the model's probability, before, of what the row would become, or its number."""
    phrases = catalogue(language)
    axes = _new_axes(7) if ax is None else ax
    _entitle(axes, phrases.words["distance and number" if found.is_value else "distance and probability"])
    size = 1.0 if found.is_value else 100.0
    markers = {"OPTIMAL": ("o", UP), "BOUNDED": ("^", SERIES[1]), "FOUND": ("x", DOWN)}
    for name, (marker, colour) in markers.items():
        own = [i for i, status in enumerate(found.status) if status.name == name]
        if own:
            axes.scatter(
                size * answers[own], found.distance[own], marker=marker, color=colour, s=22, alpha=0.7,
                linewidth=1.0, label=phrases.statuses[name],
            )  # fmt: skip
    if not found.has_answer.any():
        _say(phrases.words["no changes"], axes)
        return axes
    axes.set_xlabel(phrases.words["predicted number" if found.is_value else "probability before"])
    axes.set_ylabel(phrases.distance.format(name=_text(found.distance_name), value="").rstrip(" ,").replace(" ,", ","))
    axes.xaxis.set_major_locator(_few_ticks(axes))
    axes.xaxis.set_major_formatter(
        lambda value, _: phrases.amount(value, 4) if found.is_value else phrases.share(value / 100)
    )
    axes.spines[["top", "right"]].set_visible(False)
    _legend_beside(axes)
    return axes


# --- parts


def _new_axes(n_bars: float) -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install 'treefocus[plot]'.") from error
    height = _MARGIN_INCHES + _BAR_INCHES * max(n_bars, 2)
    _, axes = pyplot.subplots(figsize=(_WIDTH_INCHES, height), layout="constrained")
    return axes


def _draw_bars(explanation: RowView, axes: Any, language: str) -> None:
    changes = explanation.changes
    signed = [_signed(change) for change in changes]
    bars = axes.barh(
        range(len(changes)), signed, height=0.62, color=[UP if s > 0 else DOWN for s in signed],
        edgecolor="white", linewidth=0.0,
    )  # fmt: skip
    for bar, share in zip(bars, signed, strict=True):
        bar.set_hatch("" if share > 0 else "////")
    told = [_text(_step(explanation, change, language)) for change in changes]
    axes.bar_label(bars, told, padding=4, fontsize=_letters(axes, len(changes), 1))
    _name_bars(axes, [_from_to(explanation, change, language) for change in changes])
    _share_axis(axes, _limits(axes, signed, max(told, key=len), len(changes)), language)


def _step(explanation: RowView, change: ChangeView, language: str) -> str:
    """How far a number moves, with its unit; nothing for a category."""
    moved = difference(change, language)
    return catalogue(language).step(moved, words_of(explanation, change, language).unit) if moved else ""


def _signed(change: ChangeView) -> float:
    return 100 * change.share * (-1 if change.is_down else 1)


def _share_axis(axes: Any, limits: tuple[float, float], language: str) -> None:
    phrases = catalogue(language)
    digits = 0 if max(limits[1], -limits[0]) > 4 else 1

    def told(value: float, _: Any) -> str:
        return phrases.share(abs(value) / 100, digits) if abs(value) < 100.5 else ""  # there is no larger share

    axes.set_xlim(limits)
    axes.xaxis.set_major_locator(_few_ticks(axes))
    axes.xaxis.set_major_formatter(told)
    axes.set_xlabel(phrases.words["share of the change"])
    axes.axvline(0.0, color="0.3", linewidth=0.8)


def _name_bars(axes: Any, names: Sequence[str]) -> None:
    """Names at the left, two lines each where there is room, one line and smaller where there is not."""
    lines = max(name.count("\n") for name in names) + 1
    size = _letters(axes, len(names), lines)
    if lines > 1 and size < 8.0:
        names = [name.replace("\n", "  ") for name in names]
        widest = 72 * 0.45 * axes.figure.get_figwidth() / (0.6 * max(map(len, names)))  # at most about half the width
        size = max(_SMALLEST, min(_letters(axes, len(names), 1), widest))
    axes.set_yticks(range(len(names)), names, fontsize=size)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)


def _letters(axes: Any, n_bars: int, lines: int) -> float:
    """The size of letters, in points, at which so many labels of so many lines do not touch."""
    figure = axes.figure
    # The title and the axis below take about an inch from axes that fill their figure.
    room = 72 * max(axes.get_position().height * figure.get_figheight() - 0.5, 0.5)
    return float(max(_SMALLEST, min(10.0, room / (max(n_bars, 1) * lines * 1.35))))


def _limits(axes: Any, values: Sequence[float], longest: str, n_bars: int) -> tuple[float, float]:
    """From where to where an axis goes so that bars of these lengths have room for a label at their ends."""
    less, more = max(0.0, -min(values)), max(0.0, max(values))
    label = 0.65 * len(longest) * _letters(axes, n_bars, 1) + 10
    free = _free_width(axes)
    unit = (less + more or 1.0) / max(free - label * ((less > 0) + (more > 0)), 0.15 * free)  # a point's worth
    return (-less - label * unit if less else 0.0), (more + label * unit if more else 0.0)


def _free_width(axes: Any) -> float:
    """The width, in points, that the names at the left leave; an estimate, for the layout is made when drawn."""
    names = axes.get_yticklabels()
    taken = max((0.6 * len(line) * n.get_fontsize() for n in names for line in n.get_text().split("\n")), default=0.0)
    width = 72 * axes.get_position().width * axes.figure.get_figwidth()
    return float(max(width - taken, 0.3 * width))


def _few_ticks(axes: Any, whole: bool = False) -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=max(2, min(7, int(_free_width(axes) / 60))), integer=whole)


def _region_colours(n_classes: int) -> Any:
    from matplotlib.colors import ListedColormap

    return ListedColormap([REGIONS[k % len(REGIONS)] for k in range(n_classes)])


def _legend_beside(axes: Any, handles: Any = None) -> None:
    given = {} if handles is None else {"handles": handles}
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize="small", **given)


def _from_to(explanation: RowView, change: ChangeView, language: str) -> str:
    phrases, feature = catalogue(language), words_of(explanation, change, language)
    values = f"{bare_value(change.before_shown, feature, phrases)} → {measured(change.shown, feature, phrases)}"
    return f"{_short(change.feature)}\n{_text(values)}"


def _short(name: str) -> str:
    text = bare(name)
    return _text(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…")


def _key(name: Any) -> str:
    """A name in a legend, where a leading underscore would hide it."""
    text = _text(name)
    return f" {text}" if text.startswith("_") else text


def _say(reason: str, axes: Any) -> None:
    axes.text(0.5, 0.5, _text(reason), ha="center", va="center", wrap=True, transform=axes.transAxes)
    axes.set_axis_off()


def _entitle(axes: Any, words: str) -> None:
    text = bare(words)
    axes.set_title(_text(text if len(text) <= 70 else f"{text[:69]}…"), loc="left", fontsize="large", fontweight="bold")


def _text(value: Any) -> str:
    """Text that matplotlib draws as it is: dollars are not formulas, and a letter its font lacks is a �."""
    return "".join(letter if _has_glyph(letter) else "�" for letter in bare(value)).replace("$", r"\$")


@lru_cache(maxsize=5000)
def _has_glyph(letter: str) -> bool:
    if letter.isascii():
        return True
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return bool(get_font(findfont(FontProperties())).get_char_index(ord(letter)))
