"""The paper's figures, drawn from real runs with matplotlib. Draws what `illustrations` computed, and no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from treefocus.evaluation import illustrations
from treefocus.evaluation.illustrations import Boundary, CaseStudy, Twin
from treefocus.model.forest import Floats
from treefocus.render.palette import DOWN, REGIONS, SERIES, THEMES, UP
from treefocus.render.text import quantity
from treefocus.search.base import History

NEGATIVE, POSITIVE = REGIONS[:2]
INK, FAINT = THEMES["light"]["ink"], "#8a939c"


def draw_all(folder: Path) -> list[Path]:
    """Every figure as a .png file, and the case study as sentences; returns the files."""
    pyplot = _pyplot()
    folder.mkdir(parents=True, exist_ok=True)
    study = illustrations.case_study()
    drawn = {
        "tree-and-twin": tree_and_twin(illustrations.twin()),
        "boundary": boundary(illustrations.boundary()),
        "iterations": iterations(illustrations.loan_history()),
        "four-distances": four_distances(study),
    }
    files = []
    for name, figure in drawn.items():
        files.append(folder / f"{name}.png")
        figure.savefig(files[-1], dpi=100, metadata={"Software": None})
        pyplot.close(figure)
    text = folder / "case-study.md"
    text.write_text(case_study_text(study), encoding="utf-8")
    return [*files, text]


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError("Figures need matplotlib: pip install 'treefocus[plot]'.") from error
    matplotlib.use("Agg", force=False)
    from matplotlib import pyplot

    return pyplot


def tree_and_twin(twin: Twin) -> Any:
    """A tree and its differentiable copy, every node with its activation for one row."""
    figure, axes = _pyplot().subplots(1, 2, figsize=(12.0, 4.6), layout="constrained")
    place = _layout(twin)
    for ax, activation, title in (
        (axes[0], twin.hard, "A tree: one leaf is active"),
        (axes[1], twin.soft, f"Its soft twin (σ = {twin.sigma:g}): every leaf is, a little"),
    ):
        _draw_tree(ax, twin, place, activation)
        ax.set_title(title, loc="left", fontweight="bold")
    row = ", ".join(
        f"{name} {quantity(float(value), unit)}"
        for name, value, unit in zip(twin.names, twin.row, twin.units, strict=True)
    )
    figure.supxlabel(f"The applicant: {row}", fontsize="medium")
    return figure


def _layout(twin: Twin) -> Floats:
    """(n_nodes, 2) leaves evenly from left to right, parents above the middle of their children."""
    forest = twin.forest
    place = np.zeros((len(forest.left), 2))
    place[forest.left < 0, 0] = np.arange(forest.n_leaves)
    for node in np.flatnonzero(forest.left >= 0):
        for child in (forest.left[node], forest.right[node]):
            place[child, 1] = place[node, 1] - 1.0
    for node in np.flatnonzero(forest.left >= 0)[::-1]:
        place[node, 0] = (place[forest.left[node], 0] + place[forest.right[node], 0]) / 2
    return place


def _draw_tree(ax: Any, twin: Twin, place: Floats, activation: Floats) -> None:
    forest = twin.forest
    for node in np.flatnonzero(forest.left >= 0):
        for child, side in ((forest.left[node], "yes"), (forest.right[node], "no")):
            (x0, y0), (x1, y1) = place[node], place[child]
            shade = 0.15 + 0.85 * activation[child]
            ax.plot([x0, x1], [y0, y1], color=INK, alpha=shade, linewidth=0.8 + 3.5 * activation[child], zorder=1)
            ax.text(
                0.45 * x0 + 0.55 * x1, 0.45 * y0 + 0.55 * y1, side, fontsize=8, color=FAINT, ha="center", va="center",
                zorder=2, bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"},
            )  # fmt: skip
    leaf_number = np.cumsum(forest.left < 0) - 1
    for node in np.arange(len(place)):
        x, y = place[node]
        if forest.left[node] >= 0:
            f = forest.feature[node]
            limit = quantity(round(float(forest.threshold[node]), 1), twin.units[f])
            text, colour = f"{twin.names[f]}\n≤ {limit}?", "white"
        else:
            share = forest.leaf_value[leaf_number[node]]
            best = int(share.argmax())
            text = f"{forest.classes[best]}\n{share[best]:.0%}"
            colour = POSITIVE if forest.classes[best] == "approved" else NEGATIVE
        strength = float(activation[node])
        ax.text(
            x, y, f"{text}\nactivation {strength:.2f}", ha="center", va="center", fontsize=8.5, zorder=3,
            color=INK, alpha=0.4 + 0.6 * strength,
            bbox={"boxstyle": "round,pad=0.4", "facecolor": colour, "edgecolor": INK, "linewidth": 0.5 + 2 * strength},
        )  # fmt: skip
    ax.set_xlim(place[:, 0].min() - 0.6, place[:, 0].max() + 0.6)
    ax.set_ylim(place[:, 1].min() - 0.5, 0.45)
    ax.set_axis_off()


def boundary(shown: Boundary) -> Any:
    """A three-tree AdaBoost: its boundary, Feature Tweaking's failed candidates, and FOCUS's way."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Rectangle

    figure, axes = _pyplot().subplots(1, 3, figsize=(13.0, 4.7), layout="constrained", sharex=True, sharey=True)
    extent = (0.0, 1.0, 0.0, 1.0)
    for ax in axes[:2]:
        colours = ListedColormap([NEGATIVE, POSITIVE])
        ax.imshow(shown.predicted, origin="lower", extent=extent, cmap=colours, vmin=0, vmax=1, aspect="auto")
    axes[0].set_title("The ensemble's decision", loc="left", fontweight="bold")
    for x0, y0, x1, y1 in shown.leaves:
        axes[1].add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, edgecolor=UP, linewidth=1.6, alpha=0.8))
    for candidate in shown.candidates:
        axes[1].annotate(
            "", candidate, shown.row, arrowprops={"arrowstyle": "-", "color": FAINT, "linestyle": ":", "linewidth": 1.2}
        )
    axes[1].scatter(*shown.candidates.T, marker="X", s=70, color=DOWN, edgecolor="white", zorder=4,
                    label="into one tree's leaf: no flip")  # fmt: skip
    axes[1].set_title("Feature Tweaking: nothing flips", loc="left", fontweight="bold")
    picture = axes[2].imshow(shown.loss, origin="lower", extent=extent, cmap="PuBu", vmax=1.25, aspect="auto")
    size = np.linalg.norm(shown.arrows, axis=2)
    axes[2].quiver(
        shown.arrow_axis, shown.arrow_axis, shown.arrows[..., 0], shown.arrows[..., 1], color=INK, alpha=0.55,
        scale=14 * size.max(), width=0.0035,
    )  # fmt: skip
    axes[2].contour(shown.axis, shown.axis, shown.predicted, levels=[0.5], colors=INK, linewidths=1.4)
    axes[2].plot(*shown.path.T, color=DOWN, linewidth=1.8)
    axes[2].scatter(*shown.found, marker="o", s=60, color=DOWN, edgecolor="white", zorder=5, label="FOCUS")
    axes[2].scatter(*shown.optimum, marker="D", s=48, color=UP, edgecolor="white", zorder=4, label="proven optimum")
    axes[2].set_title("FOCUS: downhill on the soft loss", loc="left", fontweight="bold")
    scale = figure.colorbar(picture, ax=axes[2], label="soft prediction loss", shrink=0.85)
    scale.ax.set_ylim(float(shown.loss.min()), float(shown.loss.max()))
    for ax in axes:
        ax.scatter(*shown.row, marker="*", s=170, color=INK, edgecolor="white", zorder=6, label="the row")
        ax.set_xlabel("first feature")
        ax.legend(loc="lower left", fontsize="small", framealpha=0.9)
    axes[0].set_ylabel("second feature")
    return figure


def iterations(histories: dict[str, History]) -> Any:
    """Mean distance of the answers so far and share of rows found, after every iteration."""
    figure, axes = _pyplot().subplots(2, 1, figsize=(8.0, 5.4), layout="constrained", sharex=True)
    for (name, history), colour in zip(histories.items(), (UP, DOWN, *SERIES[2:4]) * 12, strict=False):
        steps = np.arange(1, len(history.share_found) + 1)
        axes[0].plot(steps, history.mean_distance, color=colour, linewidth=1.8, label=name)
        axes[1].plot(steps, 100 * history.share_found, color=colour, linewidth=1.8)
    axes[0].set_ylabel("mean distance\nof the answers so far")
    axes[0].legend(frameon=False, fontsize="small")
    axes[1].set_ylabel("rows with an answer, %")
    axes[1].set_ylim(0, 103)
    axes[1].set_xlabel("iteration")
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", color="0.9")
    axes[0].set_title("FOCUS finds first, then comes closer", loc="left", fontweight="bold")
    return figure


def four_distances(study: CaseStudy) -> Any:
    """One row's explanation under the four distances: a signed bar a feature."""
    moves, any_moves = illustrations.signed_moves(study)
    chosen = np.flatnonzero(any_moves)
    figure, axes = _pyplot().subplots(
        1, len(moves), figsize=(13.0, 1.4 + 0.42 * max(len(chosen), 3)), layout="constrained", sharey=True, sharex=True
    )
    reach = 100 * max(float(np.abs(move).max()) for move in moves.values())
    for ax, (name, move) in zip(axes, moves.items(), strict=True):
        values = 100 * move[chosen]
        bars = ax.barh(range(len(chosen)), values, height=0.65, color=[UP if v > 0 else DOWN for v in values])
        ax.bar_label(bars, [f"{v:+.2g}" if abs(v) >= 0.005 else "" for v in values], padding=3, fontsize="small")
        ax.axvline(0.0, color="0.3", linewidth=0.8)
        ax.set_xlim(-1.3 * reach, 1.3 * reach)
        ax.set_title(name.capitalize(), loc="left", fontweight="bold")
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
    axes[0].set_yticks(range(len(chosen)), [study.names[j] for j in chosen])
    axes[0].invert_yaxis()
    figure.supxlabel("change, % of the feature's range (blue: more, orange: less)", fontsize="medium")
    return figure


def case_study_text(study: CaseStudy) -> str:
    """What the applicant is told under each distance, as Markdown."""
    lines = [f"- **{name.capitalize()}.** {sentence}" for name, sentence in study.sentences().items()]
    return "# One declined loan applicant, under the four distances\n\n" + "\n".join(lines) + "\n"
