"""Audits: what rows say one by one is what their sums say, parts merge, and nothing is concluded that is not proven."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.tree import DecisionTreeClassifier

from support.examples import n_examples
from support.interchange import ROOT
from support.questions import stump
from treefocus import Explainer, Explanations, Fixed, InvalidInput, Status, loans
from treefocus.explanation.audit.audit import Audit
from treefocus.explanation.audit.disparities import corrected, disparities_of
from treefocus.explanation.audit.resampling import weights
from treefocus.explanation.audit.sums import HELPED, OPEN, PRECLUDED, AuditedRows, GroupSums
from treefocus.explanation.audit.suppression import suppressed, totals_of

mpl.use("Agg")

from matplotlib import pyplot

STUCK = Fixed("income", "savings", "loan_amount", "employment_years", "credit_history_years")
SCHEMA = json.loads((ROOT / "docs" / "schema" / "audit-1.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def found() -> Explanations:
    """Declined applicants under constraints that leave some of them without a way out."""
    forest = loans.forest()
    X, _ = loans.load()
    explainer = Explainer(forest, X, constraints=[*loans.CONSTRAINTS, STUCK], schema=loans.SCHEMA)
    return explainer.explain(X[:90], target="approved")


@pytest.fixture(scope="module")
def groups() -> dict[str, list[str]]:
    draw = np.random.default_rng(3)
    return {"sex": draw.choice(["f", "m"], 90).tolist(), "band": draw.choice(["old", "young"], 90).tolist()}


@pytest.fixture(scope="module")
def audit(found: Explanations, groups: dict[str, list[str]]) -> Audit:
    return found.audit(groups, why=5)


def rows_of(kind: Any, low: Any, high: Any, first: int = 0) -> AuditedRows:
    n = len(kind)
    return AuditedRows(
        np.arange(first, first + n, dtype=np.uint64), np.array(kind, np.int8), np.array(low, float),
        np.array(high, float), np.ones((n, 1), bool), np.ones((n, 1)), np.ones((n, 1)),
    )  # fmt: skip


def test_the_counts_are_those_of_the_rows(found: Explanations, groups: dict[str, list[str]], audit: Audit) -> None:
    is_there = found.has_answer & (found.distance == 0)
    for group in audit.groups:
        own = np.all([np.array(groups[c]) == v for c, v in zip(group.columns, group.labels, strict=True)], axis=0)
        status = found.status[own]
        assert group.rows == own.sum()
        assert group.already == (own & is_there).sum()
        assert group.precluded == (status == Status.INFEASIBLE).sum()
        assert group.helped == (own & found.has_answer & ~is_there).sum()
        assert group.asked == group.helped + group.precluded + group.open
        far = found.distance[own & found.has_answer & ~is_there]
        if far.size:
            assert group.burden[1] == pytest.approx(far.mean())
            assert group.burden[0] <= group.burden[1] * (1 + 1e-12)
            assert group.median[1] == pytest.approx(np.quantile(far, 0.5, method="lower"), rel=0.011)
            assert group.sums.variance()[1] == pytest.approx(far.var(ddof=1) if len(far) > 1 else np.nan, nan_ok=True)
    assert audit.whole.precluded > 0


def test_crossings_come_after_the_columns(audit: Audit) -> None:
    assert [group.columns for group in audit.groups] == [("sex",)] * 2 + [("band",)] * 2 + [("sex", "band")] * 4


def test_features_are_those_of_the_summary(found: Explanations, audit: Audit) -> None:
    expected = {one.feature: (one.n_up, one.n_down) for one in found.asked()}
    frame = audit.features_frame()
    own = frame[frame["group"] == "all"]
    assert dict(zip(own["feature"], zip(own["up"], own["down"], strict=True), strict=True)) == expected
    n_helped = audit.whole.helped
    assert own["share_of_burden"].sum() == pytest.approx(1.0)
    assert own["rows"].sum() / n_helped == pytest.approx(audit.whole.changes)


def test_parts_merge_to_the_whole(found: Explanations, groups: dict[str, list[str]], audit: Audit) -> None:
    explainer = Explainer(
        loans.forest(), loans.load()[0], schema=loans.SCHEMA,
        constraints=[*loans.CONSTRAINTS, STUCK],
    )  # fmt: skip
    parts = []
    for begin, end in ((0, 31), (31, 40), (40, 90)):
        own = {name: labels[begin:end] for name, labels in groups.items()}
        parts.append(
            explainer.explain(found.table.native[begin:end], target="approved").audit(own, why=5, first_row=begin)
        )
    last, *others = reversed(parts)
    merged = last.merged(*others)
    one, other = json.loads(merged.to_json()), json.loads(audit.to_json())
    check_close(one, other)
    assert merged.sample == audit.sample


def check_close(one: Any, other: Any) -> None:
    """The same up to the last digits of sums."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            check_close(one[key], other[key])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            check_close(a, b)
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=1e-9, abs=1e-12)
    else:
        assert one == other


def test_audits_made_otherwise_do_not_merge(found: Explanations, audit: Audit) -> None:
    with pytest.raises(InvalidInput, match="same groups"):
        audit.merged(found.audit(why=0))


def test_obstacles_are_what_each_row_says() -> None:
    X, _ = loans.load()
    found = Explainer(loans.forest(), X, constraints=[*loans.CONSTRAINTS, STUCK], schema=loans.SCHEMA).explain(
        X[:25], target="approved"
    )
    precluded = [i for i, status in enumerate(found.status) if status is Status.INFEASIBLE]
    assert precluded
    audit = found.audit(why=1000)
    assert sum(one.rows for one in audit.obstacles) == len(precluded)
    sizes = sorted(len(one.constraints) for one in audit.obstacles for _ in range(one.rows))
    each = [found[i].why_not() for i in precluded]
    assert sizes == sorted(len(one.constraints or ("the range",)) for one in each)
    assert {text for one in audit.obstacles for text in one.constraints} >= {w for one in each[:3] for w in one.written}
    assert found.audit(why=0).obstacles == ()


def test_groups_come_in_every_form(found: Explanations, groups: dict[str, list[str]]) -> None:
    expected = found.audit(groups, why=0).to_json()
    for frame in (pd.DataFrame(groups), pl.DataFrame(groups)):
        assert found.audit(frame, why=0).to_json() == expected
    alone = found.audit({"sex": groups["sex"]}, why=0).to_json()
    assert found.audit(pd.Series(groups["sex"], name="sex"), why=0).to_json() == alone
    assert found.audit(pl.Series("sex", groups["sex"]), why=0).to_json() == alone
    own = found.audit(["dependants", "loan_years"], why=0)
    assert own.frame.columns == ("dependants", "loan_years")
    assert found.audit("dependants", why=0).groups[0].labels == (0,)
    missing = found.audit([None if sex == "f" else sex for sex in groups["sex"]], why=0)
    assert [group.labels for group in missing.groups] == [("m",), (None,)]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"groups": ["a", "b"]}, "'a'"),
        ({"groups": {"a": [1]}}, "a label for each of the 90 rows"),
        ({"min_group": -1}, "min_group"),
        ({"level": 1.0}, "level"),
        ({"why": -1}, "why"),
        ({"reference": {"sex": "x"}}, "reference"),
    ],
)
def test_misuse_is_told(found: Explanations, options: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidInput, match=word):
        found.audit(**{"groups": None, "why": 0} | options)


def test_a_reference_that_is_not_there_is_told(found: Explanations, groups: dict[str, list[str]]) -> None:
    audit = found.audit(groups, why=0, reference={"sex": "x"})
    with pytest.raises(InvalidInput, match="reference"):
        audit.to_text()
    named = found.audit(groups, why=0, reference={"sex": "f"})
    assert {one.reference for one in named.disparities if one.columns == ("sex",)} == {("f",)}


def test_groups_that_are_none_are_refused() -> None:
    data = np.arange(1200.0)[:, None]
    found = Explainer(stump(600.0, n_features=1), data, bounds=(0, 1200)).explain(data)
    with pytest.raises(InvalidInput, match="bands"):
        found.audit(groups=list(range(1200)))


def test_the_search_knows_nothing_of_groups(found: Explanations, groups: dict[str, list[str]]) -> None:
    before = found.points.copy()
    found.audit(groups, why=1)
    np.testing.assert_array_equal(found.points, before)
    assert not set(groups) & set(found.schema.names)


def test_json_obeys_its_schema(found: Explanations, audit: Audit, groups: dict[str, list[str]]) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    few = found.audit(groups, min_group=25, why=0)
    assert any(group.is_hidden for group in few.groups)
    for one in (audit, few, found.audit(why=0), found.audit(groups, min_group=1000, why=0)):
        jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(one.to_json()))


def test_every_form_of_output(audit: Audit, tmp_path: Path) -> None:
    text = audit.to_text()
    assert f"{audit.whole.precluded} have provably none" in text
    assert "sex = f, band = old" in text
    page = audit.to_html(tmp_path / "audit.html", title="<b>").read_text(encoding="utf-8")
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert "<script" not in page
    assert len(audit.to_frame()) == 9
    assert len(audit.disparities_frame()) == len(audit.disparities)
    assert audit.to_json(tmp_path / "audit.json") == (tmp_path / "audit.json").read_text(encoding="utf-8")
    for drawn in (audit.plot(), audit.plot_preclusion(), audit.plot_features()):
        drawn.figure.canvas.draw()
    pyplot.close("all")


def test_nothing_to_audit() -> None:
    data = np.array([[0.0, 0.0], [1.0, 1.0]])
    found = Explainer(stump(), data).explain(data[:0])
    audit = found.audit()
    assert audit.whole.rows == 0
    assert "0 rows" in audit.to_text()
    audit.plot()
    pyplot.close("all")


# --- proven ends


@given(st.integers(0, 10_000))
def test_a_finding_holds_whatever_the_smallest_distances_are(seed: int) -> None:
    """The p of bounded rows is no smaller than that of any distances between their ends."""
    draw = np.random.default_rng(seed)
    low = draw.uniform(0, 1, (2, 25)) + np.array([[0.0], [draw.uniform(0, 1)]])
    high = low + draw.uniform(0, 0.3, (2, 25)) * draw.integers(0, 2)
    sums = [GroupSums.of(rows_of([HELPED] * 25, low[k], high[k])) for k in (0, 1)]
    burden, _ = disparities_of(("g",), ("a",), sums[1], ("b",), sums[0], 0.95)
    inside = low + draw.uniform(0, 1, low.shape) * (high - low)
    difference = inside[1].mean() - inside[0].mean()
    assert burden.difference[0] - 1e-12 <= difference <= burden.difference[1] + 1e-12
    if burden.difference[0] > 0:
        assert difference > 0
    if (low == high).all():
        assert burden.p == pytest.approx(stats.ttest_ind(low[1], low[0], equal_var=False).pvalue)
    elif burden.difference[0] <= 0 <= burden.difference[1]:
        assert burden.p == 1.0


def test_open_rows_are_on_the_side_that_speaks_against_a_finding() -> None:
    a = GroupSums.of(rows_of([PRECLUDED] * 30 + [HELPED] * 30, [1.0] * 60, [1.0] * 60))
    b = GroupSums.of(rows_of([OPEN] * 30 + [HELPED] * 30, [1.0] * 60, [1.0] * 60))
    _, preclusion = disparities_of(("g",), ("a",), a, ("b",), b, 0.95)
    assert preclusion.difference == (0.0, 0.5)
    assert preclusion.p == 1.0
    c = GroupSums.of(rows_of([HELPED] * 60, [1.0] * 60, [1.0] * 60))
    _, preclusion = disparities_of(("g",), ("a",), a, ("c",), c, 0.95)
    assert preclusion.p == pytest.approx(stats.fisher_exact([[30, 30], [0, 60]])[1])


def test_small_groups_are_not_tested() -> None:
    few = GroupSums.of(rows_of([HELPED] * 19, [9.0] * 19, [9.0] * 19))
    many = GroupSums.of(rows_of([HELPED] * 50, [1.0] * 50, [1.0] * 50))
    assert all(
        np.isnan(one.p) and not one.is_found
        for one in corrected(disparities_of(("g",), ("a",), few, ("b",), many, 0.95), 0.95)
    )


def test_many_tests_are_corrected_as_by_hand() -> None:
    draw = np.random.default_rng(0)
    sums = [
        GroupSums.of(rows_of([HELPED] * 40, d, d, 40 * k))
        for k in range(6)
        for d in [draw.uniform(0.2 * (k == 5), 1, 40)]
    ]
    found = [disparities_of(("g",), (k,), sums[k], (0,), sums[0], 0.95)[0] for k in range(1, 6)]
    p = np.array([one.p for one in found])
    order, expected, worst = np.argsort(p), np.empty(5), 0.0
    for rank, k in enumerate(order):
        worst = max(worst, min(1.0, p[k] * (5 - rank)))
        expected[k] = worst
    assert [one.adjusted for one in corrected(found, 0.95)] == pytest.approx(expected.tolist())


# --- the bootstrap


def test_weights_are_poisson_and_belong_to_the_row() -> None:
    every = weights(np.arange(2000, dtype=np.uint64))
    assert every.mean() == pytest.approx(1.0, abs=0.01)
    assert every.var() == pytest.approx(1.0, abs=0.02)
    assert abs(np.corrcoef(every[:, 0], every[:, 1])[0, 1]) < 0.1
    assert abs(np.corrcoef(every[0], every[1])[0, 1]) < 0.2
    np.testing.assert_array_equal(weights(np.array([1234], np.uint64))[0], every[1234])


def test_intervals_hold_the_true_mean_about_as_often_as_they_say() -> None:
    draw, n_held = np.random.default_rng(1), 0
    for k in range(200):
        d = draw.exponential(1.0, 60)
        sums = GroupSums.of(rows_of([HELPED] * 60, d, d, 1000 * k))
        low, high = np.quantile(sums.resampled_burden()[0], [0.025, 0.975])
        n_held += low <= 1.0 <= high
    assert 178 <= n_held <= 199


# --- nobody is told of


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(0, 60)), min_size=2, max_size=6), st.integers(2, 30))
def test_what_is_hidden_cannot_be_computed(sizes: list[tuple[int, int]], min_group: int) -> None:
    counts = {(k,): (rows, min(rows, asked)) for k, (rows, asked) in enumerate(sizes)}
    hidden = suppressed(counts, [list(counts)], min_group)
    assert hidden >= {key for key, own in counts.items() if any(0 < count < min_group for count in own)}
    total = np.sum([counts[key] for key in hidden], axis=0)
    is_few = hidden and any(0 < count < min_group for count in total.tolist())
    assert not hidden or hidden == set(counts) or (len(hidden) > 1 and not is_few)


@settings(max_examples=n_examples(20))
@given(st.integers(0, 10_000))
def test_no_sums_taken_together_give_a_hidden_group_away(seed: int) -> None:
    """Of three columns and their crossings: two tables that agree in all that is shown differ in what is hidden."""
    draw = np.random.default_rng(seed)
    shape = [int(size) for size in draw.integers(2, 5, draw.integers(1, 4))]
    names = tuple("abc"[: len(shape)])
    counts = {tuple(map(int, key)): (int(draw.choice([3, 12, 40])),) for key in np.ndindex(*shape)}
    hidden: set[Any] = set()
    for k, name in enumerate(names if len(names) > 1 else ()):
        margin = {
            (label,): (sum(own[0] for key, own in counts.items() if key[k] == label),) for label in range(shape[k])
        }
        hidden |= {((name,), key) for key in suppressed(margin, totals_of(list(margin), (name,), ()), 20)}
    gone = {key for key in counts if any(((name,), (key[k],)) in hidden for k, name in enumerate(names))}
    totals = totals_of(list(counts), names, hidden)
    left_out = suppressed(counts, totals, 20, gone)
    unknown = sorted(left_out)
    sums = np.array([[float(key in own) for key in unknown] for own in totals])
    for k, _ in enumerate(unknown if len(left_out) < len(counts) else ()):
        alone = np.zeros(len(unknown))
        alone[k] = 1.0
        assert np.linalg.matrix_rank(np.vstack([sums, alone])) > np.linalg.matrix_rank(sums)


@settings(max_examples=n_examples(5))
@given(st.integers(0, 10_000))
def test_no_number_is_of_few_people(seed: int) -> None:
    """Means of what is asked are of as many people, and so are those that the rest of a total gives away."""
    draw = np.random.default_rng(seed)
    n, few = 80, 7
    data = pd.DataFrame({"x": draw.integers(0, 9, n), "y": draw.integers(0, 9, n)}).astype(float)
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(data, data["x"] + draw.integers(0, 4, n) > 7)
    label = draw.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    audit = Explainer(model, data).explain(data, target=True).audit(label.tolist(), min_group=few, why=0)
    for group in (audit.whole, *audit.groups):
        if not group.is_hidden:
            assert all(count == 0 or count >= few for count in (group.rows, group.asked, group.helped))
    frame = pd.DataFrame(audit.features_frame().to_dict())
    for way in ("up", "down"):
        is_told = frame[f"mean_{way}"].notna()
        assert (frame[way][is_told] >= few).all()
        for _, own in frame.groupby("feature"):
            whole, parts = own[own["group"] == own["group"].iloc[0]], own.iloc[1:]
            if whole[f"mean_{way}"].notna().all():
                rest = int(whole[way].iloc[0] - parts[way][parts[f"mean_{way}"].notna()].sum())
                assert rest == 0 or rest >= few


@given(st.integers(0, 10_000))
def test_no_margin_gives_a_hidden_crossing_away(seed: int) -> None:
    draw = np.random.default_rng(seed)
    n, min_group = 60, 8
    labels = {"a": draw.integers(0, 3, n).tolist(), "b": draw.choice(4, n, p=[0.5, 0.3, 0.15, 0.05]).tolist()}
    data = np.stack([np.zeros(n), np.arange(n, dtype=float)], axis=1)
    audit = Explainer(stump(), data, bounds=(0, 100)).explain(data).audit(labels, min_group=min_group, why=0)
    shown = {(group.columns, group.labels): group for group in audit.groups if not group.is_hidden}
    assert all(group.rows >= min_group for group in shown.values())
    for columns, names in (("a", 0), ("b", 1)):
        for label in set(labels[columns]):
            cells = [g for g in audit.groups if len(g.columns) == 2 and g.labels[names] == label]
            hidden = [g for g in cells if g.is_hidden]
            if ((columns,), (label,)) in shown and hidden and len(hidden) < len(cells):
                assert len(hidden) > 1
                assert sum(g.rows for g in hidden) >= min_group
            if ((columns,), (label,)) not in shown:
                assert len(hidden) == len(cells)
    assert not any(group["is_hidden"] and "rows" in group for group in json.loads(audit.to_json())["groups"])


def test_too_few_rows_are_not_shown_at_all(found: Explanations, groups: dict[str, list[str]]) -> None:
    audit = found.audit(groups, min_group=1000, why=0)
    assert audit.to_text() == "Fewer than 1000 rows: nothing is shown."
    assert audit.disparities == ()
    assert not any(word in audit.to_json() for word in ("income", "savings", '"rows": 90'))


# --- comparing


def test_comparing_tells_who_lost_and_who_gained(found: Explanations) -> None:
    X = found.table.native
    free = Explainer(loans.forest(), loans.load()[0], constraints=loans.CONSTRAINTS, schema=loans.SCHEMA)
    after = free.explain(X, target="approved")
    told = found.audit(why=0).compare(after.audit(why=0))
    counts = told.counts
    assert counts is not None
    assert sum(counts.values()) == len(found)
    gained = (found.status == Status.INFEASIBLE) & after.has_answer
    assert counts["gained"] == gained.sum() > 0
    assert counts["lost"] == 0
    assert counts["dearer"] == 0  # fewer constraints make nothing dearer
    back = after.audit(why=0).compare(found.audit(why=0))
    assert back.counts is not None
    assert back.counts["lost"] == counts["gained"]
    assert back.counts["dearer"] == counts["cheaper"]
    frame = told.to_frame()
    assert (frame["fate"] == "gained").tolist() == gained.tolist()
    assert f"{counts['gained']} gained one" in told.to_text()


def test_an_audit_beside_itself_has_not_changed(audit: Audit) -> None:
    counts = audit.compare(audit).counts
    assert counts is not None
    assert counts["same"] + counts["unknown"] == audit.whole.rows
    assert audit.compare(audit).preclusion["interval"][0] <= 0 <= audit.compare(audit).preclusion["interval"][1]


def test_comparing_takes_the_same_people(found: Explanations, audit: Audit) -> None:
    other = found.labelled([f"n{i}" for i in range(len(found))]).audit(why=0)
    with pytest.raises(InvalidInput, match="same rows"):
        audit.compare(other)
    with pytest.raises(InvalidInput, match="twice"):
        found.labelled(["a"] * len(found)).audit(why=0).compare(audit)
    merged = audit.merged()
    assert merged.compare(audit).counts is None
    assert "share without" in merged.compare(audit).to_text()
    with pytest.raises(InvalidInput, match="streams"):
        merged.compare(audit).to_frame()
