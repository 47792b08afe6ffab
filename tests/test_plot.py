"""The picture of an explanation: it shows what the explanation says, and nothing is computed on the way."""

import builtins

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

from matplotlib import pyplot

from treefocus.explanation import Change, Explanation
from treefocus.render.plot import DOWN, UP, change_bars
from treefocus.search.base import Status

CHANGES = (
    Change("savings", 2100.0, 7609.0, 7609.0, 0.6, "EUR"),
    Change("late_payments", 3.0, 2.0, 2.0, 0.3),
    Change("utilisation", 80.0, 78.5, 78.5, 0.1, "%"),
)


def explanation(changes=CHANGES, status=Status.OPTIMAL, outcome="approved"):
    return Explanation(
        label=4,
        row=np.zeros(3),
        counterfactual=np.zeros(3),
        changes=changes,
        predicted="declined",
        outcome=outcome,
        status=status,
        reason=status.value,
        distance=0.5,
        lower_bound=0.5,
        distance_name="manhattan",
    )


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    pyplot.close("all")


def test_a_bar_a_change_signed_and_in_order():
    axes = change_bars(explanation())
    np.testing.assert_allclose([bar.get_width() for bar in axes.patches], [60.0, -30.0, -10.0])
    assert [mpl.colors.to_hex(bar.get_facecolor()).upper() for bar in axes.patches] == [UP, DOWN, DOWN]
    assert axes.yaxis_inverted()


def test_labels_say_from_what_to_what():
    axes = change_bars(explanation())
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "savings\n2,100 → 7,609 EUR",
        "late_payments\n3 → 2",
        "utilisation\n80 → 78.5 %",
    ]
    assert [text.get_text() for text in axes.texts] == ["+5,509 EUR", "-1", "-1.5 %"]
    assert axes.get_title(loc="left") == "Row 4: declined → approved"


def test_everything_fits_and_nothing_overlaps():
    axes = change_bars(explanation())
    figure = axes.figure
    figure.canvas.draw()
    shown = [text.get_window_extent() for text in (*axes.texts, *axes.get_yticklabels())]
    width, height = figure.canvas.get_width_height()
    for box in shown:
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= width
        assert box.y1 <= height
    for i, box in enumerate(shown):
        assert not any(box.overlaps(other) for other in shown[i + 1 :])


def test_draws_into_given_axes():
    _, given = pyplot.subplots()
    assert change_bars(explanation(), ax=given) is given


def test_the_figure_grows_with_the_number_of_changes():
    many = tuple(Change(f"f{i}", 0.0, 1.0, 1.0, 0.05) for i in range(20))
    few, tall = change_bars(explanation()), change_bars(explanation(many))
    assert tall.figure.get_figheight() > few.figure.get_figheight()


@pytest.mark.parametrize("sign", [1, -1])
def test_changes_of_one_sign_start_at_the_edge(sign):
    axes = change_bars(explanation((Change("a", 0.0, sign * 1.0, sign * 1.0, 1.0),)))
    low, high = axes.get_xlim()
    assert (low, high) == pytest.approx((0.0, 135.0) if sign > 0 else (-135.0, 0.0))


def test_without_an_answer_it_says_why():
    axes = change_bars(explanation((), Status.INFEASIBLE, None))
    assert [text.get_text() for text in axes.texts] == [Status.INFEASIBLE.value]
    assert axes.get_title(loc="left") == "Row 4: declined"
    axes.figure.canvas.draw()


def test_missing_matplotlib_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"treefocus\[plot\]"):
        change_bars(explanation())
