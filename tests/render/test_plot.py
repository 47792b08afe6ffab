"""Pictures: they show what the explanation says, nothing is computed on the way, and no label covers another."""

import builtins
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

from matplotlib import pyplot

from support.rows import ShownRow
from treefocus import Explainer, Explanations, Feature, Focus, InvalidInput, Schema, loans
from treefocus.explanation.batch import Change
from treefocus.explanation.reasons import ByStatus
from treefocus.explanation.summary import AskedFeature
from treefocus.render.palette import DOWN, UP
from treefocus.render.phrases import languages
from treefocus.render.plot import asked_bars, change_bars, compare_bars, waterfall
from treefocus.search.base import Status

CHANGES = (
    Change("savings", 2100.0, 7609.0, 7609.0, 0.6, "EUR"),
    Change("late_payments", 3.0, 2.0, 2.0, 0.3),
    Change("utilisation", 80.0, 78.5, 78.5, 0.1, "%"),
)


def explanation(changes=CHANGES, status=Status.OPTIMAL, outcome="approved"):
    return ShownRow(changes=changes, outcome=outcome, status=status, why=ByStatus(status))


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
    assert [text.get_text() for text in axes.texts] == ["+5,509 EUR", "-1", "-1.5 percentage points"]
    assert axes.get_title(loc="left") == "Row 4: declined → approved"


def texts_of(axes):
    """Every text that is drawn, with its box."""
    axes.figure.canvas.draw()
    legend = axes.get_legend()
    texts = [*axes.texts, axes.xaxis.label, axes.yaxis.label, axes._left_title]
    for side, limits, labels in (
        (0, axes.get_xlim(), axes.get_xticklabels()),
        (1, axes.get_ylim(), axes.get_yticklabels()),
    ):
        texts += [label for label in labels if min(limits) <= label.get_position()[side] <= max(limits)]
    texts += [] if legend is None else legend.get_texts()
    return [(text.get_text(), text.get_window_extent()) for text in texts if text.get_visible() and text.get_text()]


def check_layout(axes, is_inside=True):
    """No text covers another and, in a picture of our own, all lie inside."""
    shown = texts_of(axes)
    width, height = axes.figure.canvas.get_width_height()
    assert shown
    for text, box in shown:
        if is_inside:
            assert box.x0 >= -1, text
            assert box.y0 >= -1, text
            assert box.x1 <= width + 1, text
            assert box.y1 <= height + 1, text
    for i, (text, box) in enumerate(shown):
        for other, covered in shown[i + 1 :]:
            both = mpl.transforms.Bbox.intersection(box, covered)
            assert both is None or both.width < 0.5 or both.height < 0.5, (text, other)


def many(n_changes):
    """Changes of both signs, large and small numbers, short and long names."""
    shares = np.linspace(1.0, 0.02, n_changes)
    shares /= shares.sum()
    names = [
        f"feature {k}" if k % 3 else f"a rather long name of feature number {k}, in full" for k in range(n_changes)
    ]
    return tuple(
        Change(name, 1000.0, 1000.0 + (-1) ** k * 123456.789 / (k + 1), 1000.0 + (-1) ** k * 123456.789 / (k + 1),
               float(shares[k]), "EUR" if k % 2 else "")
        for k, name in enumerate(names)
    )  # fmt: skip


def test_everything_fits_and_nothing_overlaps():
    check_layout(change_bars(explanation()))


@pytest.mark.parametrize("n_changes", [1, 12, 30])
@pytest.mark.parametrize("language", languages())
def test_labels_never_overlap_whatever_the_number_of_features(n_changes, language):
    one = explanation(many(n_changes))
    check_layout(change_bars(one, language=language))
    check_layout(compare_bars({"euclidean": one, "manhattan": one, "cosine": one}, language=language))
    climbing = list(np.linspace(0.1, 0.9, n_changes + 1))
    check_layout(waterfall(one, climbing, language=language))


@pytest.mark.parametrize("n_changes", [5, 15, 30])
@pytest.mark.parametrize("size", [(6.4, 4.8), (12.0, 9.0)])
def test_labels_do_not_overlap_in_given_axes_either(n_changes, size):
    one = explanation(many(n_changes))
    for draw in (change_bars, lambda one, ax: waterfall(one, list(np.linspace(0.1, 0.9, n_changes + 1)), ax)):
        _, axes = pyplot.subplots(figsize=size, layout="constrained")
        check_layout(draw(one, axes))


def test_in_grey_the_directions_still_differ():
    axes = change_bars(explanation())
    assert [bool(bar.get_hatch()) for bar in axes.patches] == [False, True, True]


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
    assert (low if sign > 0 else high) == 0.0
    assert 100.0 < (high if sign > 0 else -low) < 150.0


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


# A real batch


@pytest.fixture(scope="module")
def found():
    trained = loans.train()
    declined = trained.X_test[trained.model.predict(trained.X_test) == "declined"]
    explainer = Explainer(
        trained.model, trained.X_train, distance="manhattan", constraints=loans.CONSTRAINTS, schema=loans.SCHEMA
    )
    return explainer.explain(declined[:40], target="approved", strategy=Focus(iterations=200))


@pytest.mark.parametrize("language", languages())
def test_every_picture_of_a_real_batch_is_laid_out_well(found, language):
    one = found[0]
    pictures = [
        one.plot(language=language),
        one.plot_waterfall(language=language),
        one.plot_map(language=language),
        found.plot(language=language),
        found.plot_distances(language=language),
    ]
    for axes in pictures:
        check_layout(axes)
        assert axes.get_title(loc="left")
        assert axes.has_data()


def test_the_same_picture_twice_has_the_same_bytes(found):
    def drawn():
        axes = found[0].plot()
        axes.figure.canvas.draw()
        return bytes(axes.figure.canvas.buffer_rgba())

    assert drawn() == drawn()


def test_every_picture_goes_into_given_axes(found):
    figure, given = pyplot.subplots(2, 3)
    one = found[0]
    draws = [
        one.plot, one.plot_waterfall, lambda ax: one.plot_map(ax=ax), found.plot, found.plot_distances,
        lambda ax: compare_bars({"a": one}, ax),
    ]  # fmt: skip
    for draw, axes in zip(draws, given.flat, strict=True):
        assert draw(axes) is axes
    assert pyplot.get_fignums() == [figure.number]


def test_a_waterfall_climbs_from_the_row_to_the_outcome(found):
    one = found[0]
    probability = one.probabilities()
    assert len(probability) == len(one.changes) + 1
    axes = one.plot_waterfall()
    ends = [bar.get_x() + bar.get_width() for bar in axes.patches]
    np.testing.assert_allclose(ends, [100 * p for p in (*probability, probability[-1])])
    assert probability[-1] >= 0.5


def test_a_map_shows_row_answer_and_path(found):
    one = found[0]
    axes = one.plot_map("savings", "loan_amount")
    assert axes.get_xlabel().startswith("savings")
    assert axes.get_ylabel() == "loan_amount"
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert set(legend) == {"approved", "declined", "the row", "the answer", "path of FOCUS"}
    assert "path of FOCUS" not in [text.get_text() for text in one.plot_map(path=False).get_legend().get_texts()]


def test_a_batch_without_changes_says_so(found):
    explainer = Explainer(found.problem.forest, schema=loans.SCHEMA, scale=None)
    none = explainer.explain(found.counterfactuals[:2], target="approved")
    for axes in (none.plot(), compare_bars({"a": none[0]})):
        axes.figure.canvas.draw()
        assert len(axes.texts) == 1
    unreadable = explainer.explain(np.full((1, 12), np.inf))
    for axes in (unreadable.plot_distances(), unreadable[0].plot()):
        assert len(axes.texts) == 1
    with pytest.raises(ValueError, match="at least one"):
        compare_bars({})


@pytest.mark.parametrize("n_features", [5, 12, 30])
def test_asked_features_never_overlap(found, n_features):
    names = [f"column {k}" if k % 3 else f"a rather long name of a column, number {k}" for k in range(n_features)]
    schema = Schema([Feature(name, unit="EUR") for name in names])
    asked = [
        AskedFeature(name, "EUR", 100 - 3 * k, 0.5, 60 - 2 * k, 40 - k, 12345.678 / (k + 1), -98765.4 / (k + 1))
        for k, name in enumerate(names)
    ]
    check_layout(asked_bars(replace(found, schema=schema), asked))


@pytest.mark.parametrize("name", ["$x$ and $\\frac{", "{x}", "<b>", "a\nb", "שכר דירה", "💰🏠", "x\u202ey", "_^\\"])
def test_nasty_names_are_drawn_as_they_are(name):
    changes = (replace(CHANGES[0], feature=name, unit=name), CHANGES[1])
    one = replace(explanation(changes), label=name, predicted=name, outcome=name)
    for axes in (change_bars(one), compare_bars({name: one}), waterfall(one, [0.1, 0.4, 0.6])):
        check_layout(axes)


def test_pictures_that_ask_the_model_say_that_there_is_none(found):
    again = Explanations.from_json(found.to_json())
    assert again[0].plot() is not None
    assert again.plot() is not None
    for draw in (again[0].plot_waterfall, again[0].plot_map, again.plot_distances):
        with pytest.raises(InvalidInput, match="read from JSON have none"):
            draw()
