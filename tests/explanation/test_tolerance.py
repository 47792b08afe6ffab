"""Room to move, asked of live models: every point of the box gets the wanted outcome from the model itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.tree import DecisionTreeClassifier

from treefocus import (
    Explainer,
    Feature,
    Increasing,
    Interval,
    InvalidInput,
    IsolationScore,
    Linear,
    MayBeMissing,
    Probability,
    Schema,
    Status,
    Tolerance,
    verify,
)
from treefocus.explanation.certificate import digest
from treefocus.problem.tolerance import as_tolerance

DRAW = np.random.default_rng(5)
N = 240
DATA = pd.DataFrame(
    {
        "income": np.round(DRAW.gamma(4.0, 900.0, N), -1),
        "years": DRAW.integers(0, 20, N),
        "debt": np.where(DRAW.random(N) < 0.15, np.nan, np.round(DRAW.gamma(2.0, 700.0, N), 2)),
        "home": pd.Categorical(DRAW.choice(["rents", "owns", "shares"], N)),
    }
)
WANTED = (DATA["income"] / 900 + DATA["years"] / 4 - DATA["debt"].fillna(3000) / 900 + (DATA["home"] == "owns")) > 5
NUMBERS = DATA[["income", "years", "debt"]].fillna(0.0)
MIXED = HistGradientBoostingClassifier(max_iter=15, max_depth=3, categorical_features="from_dtype").fit(DATA, WANTED)
PLAIN = RandomForestClassifier(15, max_depth=4, random_state=0).fit(NUMBERS, WANTED)
OTHER = RandomForestClassifier(15, max_depth=4, random_state=1).fit(NUMBERS, WANTED)
BOOSTED = GradientBoostingClassifier(n_estimators=10, max_depth=2, random_state=0)
MEAN = VotingClassifier([("a", OTHER), ("b", BOOSTED)], voting="soft").fit(NUMBERS, WANTED)
NUMBER = GradientBoostingRegressor(n_estimators=20, max_depth=3, random_state=0).fit(NUMBERS, NUMBERS["income"])
ROOM = Tolerance(above=0.3, below=0.1)


def drawn_from_boxes(found: Any, n: int = 200) -> list[pd.DataFrame]:
    """Points of the box around each answer, as tables of the model's; corners are among them."""
    tables = []
    for one in found:
        if one.counterfactual is None:
            continue
        problem, point = one.problem, one.counterfactual[None]
        low, high = problem.room.boxes(problem.batch, point)
        share = np.where(DRAW.random((n, 1)) < 0.5, DRAW.random((n, point.shape[1])), DRAW.integers(0, 2, (n, 1)))
        points = np.where(low < high, low + share * (high - low), point)
        whole = np.array([str(kind).startswith("int") for kind in found.counterfactuals.dtypes])
        points[:, whole] = np.clip(np.rint(points[:, whole]), low[:, whole], high[:, whole])
        table = pd.concat([found.counterfactuals.iloc[[one.i]]] * n, ignore_index=True)
        for j, name in enumerate(table.columns):
            if low[0, j] < high[0, j]:
                table[name] = points[:, j].astype(table[name].dtype)
        tables.append(table)
    return tables


CASES: dict[str, tuple[Any, pd.DataFrame, Any, dict[str, Any]]] = {
    "a forest": (PLAIN, NUMBERS, True, {}),
    "missing values and categories": (MIXED, DATA, True, {"constraints": [MayBeMissing("debt"), Increasing("years")]}),
    "a probability": (MIXED, DATA, Probability(True, 0.7), {}),
    "an interval": (NUMBER, NUMBERS, Interval(4000, 6000), {"distance": "euclidean"}),
    "a mean of what models show": (MEAN, NUMBERS, True, {"also": [OTHER]}),
    "several models": (PLAIN, NUMBERS, True, {"also": [OTHER]}),
    "a sum": (PLAIN, NUMBERS, True, {"constraints": [Linear({"income": -1, "debt": 2}, at_most=0)]}),
    "like the data": (PLAIN, NUMBERS, True, {"plausibility": IsolationScore(limit=0.6, trees=10)}),
}


def wanted(target: Any, model: Any, table: pd.DataFrame) -> Any:
    if isinstance(target, Probability):
        return model.predict_proba(table)[:, 1] >= target.at_least
    said = model.predict(table)
    return (said >= target.low) & (said <= target.high) if isinstance(target, Interval) else said == target


@pytest.mark.parametrize("name", CASES)
def test_every_point_of_the_box_gets_the_outcome_from_the_model_itself(name: str) -> None:
    model, data, target, options = CASES[name]
    explainer = Explainer(model, data, **options)
    rows = data[~wanted(target, model, data)][:10]
    smallest, found = explainer.explain(rows, target), explainer.explain(rows, target, tolerance=ROOM)
    assert found.has_answer.mean() >= 0.5
    both = found.has_answer & smallest.has_answer
    assert (found.distance[both] >= smallest.distance[both] * (1 - 1e-8)).all()
    for table in drawn_from_boxes(found):
        for one in (model, *options.get("also", [])):
            assert wanted(target, one, table).all()
    assert (found.counterfactuals["years"].dropna() % 1 == 0).all()
    if "constraints" in options and name == "a sum":
        table = found.counterfactuals[found.has_answer]
        assert (table["income"] - 2 * table["debt"] >= -1e-9).all()


def test_units_are_the_columns_own_and_infinity_goes_to_the_end_of_the_domain() -> None:
    explainer, rows = Explainer(PLAIN, NUMBERS), NUMBERS[~WANTED][:8]
    found = explainer.explain(rows, True, tolerance="income above 250, income below 100")
    for table in drawn_from_boxes(found):
        assert PLAIN.predict(table).all()
        assert table["income"].max() - table["income"].min() <= 350 + 1e-6
    more = explainer.explain(rows, True, tolerance=np.inf)
    assert more.has_answer.any()
    for one in more:
        if one.status.has_answer:
            point = one.counterfactual.copy()
            for change in one.changes:
                j = one.schema.index(change.feature)
                point[j] = NUMBERS.iloc[:, j].max() if point[j] > one.row[j] else NUMBERS.iloc[:, j].min()
                assert PLAIN.predict(pd.DataFrame([point], columns=NUMBERS.columns))[0]


def test_further_ways_and_shown_numbers_have_room() -> None:
    found = Explainer(PLAIN, NUMBERS).explain(NUMBERS[~WANTED][:4], True, tolerance=ROOM, n=2)
    for one in found:
        for way in (*one.ways, *([one.rounded(2)] if one.status.has_answer else [])):
            assert way.problem.has_room(way.counterfactual[None])[0]
            shown = np.array([way.batch.shown[way.i]])
            assert way.problem.has_room(shown)[0]


def test_a_certificate_says_which_room_and_verify_looks_around() -> None:
    explainer = Explainer(PLAIN, NUMBERS)
    rows = NUMBERS[~WANTED][:12]
    found, smallest = explainer.explain(rows, True, tolerance=ROOM), explainer.explain(rows, True)
    i = int(np.flatnonzero((found.distance > smallest.distance) & (found.status == Status.OPTIMAL))[0])
    certificate = found[i].certificate()
    assert certificate["room"]["above_share"] == [0.3] * 3
    assert verify(certificate, explainer.forest, reprove=True).holds
    forged = certificate | {"point": smallest[i].counterfactual.tolist(), "distance": float(smallest[i].distance)}
    forged |= {"lower_bound": float(smallest[i].distance)}
    del forged["fingerprint"]
    checked = verify(forged | {"fingerprint": digest(forged)}, explainer.forest)
    assert any("room" in one.claim for one in checked.failed)


def test_the_question_is_asked_again_with_its_room() -> None:
    explainer = Explainer(PLAIN, NUMBERS, constraints=["income fixed", "debt fixed"])
    rows = NUMBERS[~WANTED][:20]
    found = explainer.explain(rows, True, tolerance=Tolerance(above={"years": 8}, below={"years": 8}))
    nowhere = [one for one in found if one.status is Status.INFEASIBLE]
    assert nowhere
    why = nowhere[0].why_not()
    if why.explanation is not None:
        assert why.explanation.problem.has_room(why.explanation.counterfactual[None])[0]


@pytest.mark.parametrize("text", ["above 20%", "above inf", "above 20%, below 5%", "a b above 500, c below 2.5"])
def test_a_tolerance_reads_its_own_text_and_record(text: str) -> None:
    one = as_tolerance(text)
    assert one is not None
    assert as_tolerance(one.to_text()) == one
    assert as_tolerance(one.to_record()) == one


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (-0.1, "Tolerance.above"),
        ("above", "tolerance must be"),
        ("income above 5%", "tolerance must be"),
        ("above 500", "tolerance must be"),
        ({"beside": 1}, "tolerance must be"),
        (Tolerance(above={"nothing": 3}), "nothing"),
    ],
)
def test_what_is_no_tolerance_is_refused(given: Any, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        Explainer(PLAIN, NUMBERS).explain(NUMBERS[:1], True, tolerance=given)
    with pytest.raises(InvalidInput, match=r"Tolerance\.below"):
        Tolerance(below=1.0)


def test_sentences_say_how_far_one_may_go() -> None:
    explainer, rows = Explainer(PLAIN, NUMBERS), NUMBERS[~WANTED][:3]
    one = explainer.explain(rows, True, tolerance=ROOM)[0]
    assert "No smaller change would hold as well." in one.to_text()
    assert "up to 30% of the change further" in one.to_text()
    assert "bis zu 10 % der Änderung davor" in one.to_text("de").replace("\u202f", " ").replace("\xa0", " ")
    more = explainer.explain(rows, True, tolerance=np.inf)[0].to_text("fr")
    assert "aussi loin que vont les valeurs" in more
    price = one.distance / explainer.explain(rows, True)[0].distance
    assert one.price == pytest.approx(price)
    assert f"It is {price:.2g} times the smallest change." in one.to_text()
    assert "further" not in explainer.explain(rows, True)[0].to_text()
    assert "(income)" in explainer.explain(rows, True, tolerance="income above 250")[0].to_text()


def test_where_any_more_is_fine_sentences_say_at_least() -> None:
    years = Feature("years", one="year", many="years")
    schema = Schema((Feature("income", unit="EUR"), years, Feature("debt", unit="EUR")))
    explainer = Explainer(PLAIN, NUMBERS, schema=schema)
    rows = NUMBERS[~WANTED][:20]
    for one in explainer.explain(rows, True, tolerance=np.inf):
        told = [one.to_text(language) for language in ("en", "de", "fr")]
        details = one.to_letter(digits=None).split("In detail:")[1]
        for change in one.changes:
            if change.feature == "years":
                assert f"at least {abs(change.moved):.0f} " in told[0] or change.before != int(change.before)
                continue
            words = ("at most", "höchstens", "au plus") if change.is_down else ("at least", "mindestens", "au moins")
            assert all(word in text for word, text in zip(words, told, strict=True))
            assert f"{change.feature}: {words[0]} " in details
        assert "était d’au" in told[2] or all(change.feature == "years" for change in one.changes)
    for room in (Tolerance(above=0.2), Tolerance(above=np.inf, below=0.1), "debt above 5"):
        assert "at least" not in explainer.explain(rows[:1], True, tolerance=room)[0].to_text()
    own = explainer.explain(rows, True, tolerance="income above inf, debt above 5")
    for one in own:
        told = one.to_text()
        assert "as far as the values go (income)" in told
        assert "Going up to 5 (debt) further" in told
        changed = {change.feature: change for change in one.changes}
        assert ("income were at" in told) == ("income" in changed)
        assert "debt were at" not in told


def test_dates_may_be_later_or_earlier() -> None:
    days = pd.date_range("2020-01-01", periods=40)
    table, wanted = pd.DataFrame({"since": days, "x": np.arange(40.0)}), np.arange(40) > 20
    numbers = table.assign(since=(table["since"] - pd.Timestamp("1970-01-01")).dt.days)[["since"]]
    schema = Schema((Feature("since", "date", counts="days"),))
    explainer = Explainer(DecisionTreeClassifier().fit(numbers, wanted), numbers, schema=schema)
    later = explainer.explain(numbers[:1], True, tolerance=np.inf)[0]
    assert "since were 22 January 2020 or later instead of 1 January 2020" in later.to_text()
    earlier = explainer.explain(numbers[-1:], False, tolerance=np.inf)[0].to_text("de")
    assert "am 21. Januar 2020 oder früher statt am 9. Februar 2020" in earlier


def test_a_sliver_is_narrower_than_the_numbers_of_the_data_are_apart() -> None:
    data = np.sqrt(np.arange(2.0, 12.0))[:, None] * 100
    labels = np.where(data[:, 0] > 300, 1, 0)
    wide = DecisionTreeClassifier().fit(data, labels)
    middle = (data[3] + data[4]) / 2  # which no number of the data hits
    between = np.concatenate([data, [middle - 1.7, middle, middle + 1.7], data])
    thin = DecisionTreeClassifier().fit(between, np.concatenate([labels, [0, 1, 0], labels]))
    found = Explainer(thin, data).explain(data[:1], 1)[0]
    assert found.is_sliver
    assert "narrower than the numbers of the data" in found.to_text(proof=True)
    assert not Explainer(wide, data).explain(data[:1], 1)[0].is_sliver
    assert not Explainer(thin, None, scale=None).explain(data[:1], 1)[0].is_sliver
