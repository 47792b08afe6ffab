"""Wishes of people on the page, in a real browser: a probability, a number, weights, and answers like the data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingRegressor

from support.pages import (
    CHROMIUM,
    DESKTOP,
    PHONE,
    answered,
    artefacts_folder,
    asked,
    choose,
    chromium,
    downloaded,
    explain,
    settled,
    unfold,
    violations,
    visits,
)
from support.servers import command, house_prices
from treefocus import Explainer, Explanations, Interval, IsolationScore, Probability, loans
from treefocus.adapters import translate
from treefocus.app.demo import demo_service
from treefocus.app.service import Service
from treefocus.app.visit import Visit
from treefocus.render.phrases import catalogue
from treefocus.tables.files import write_columns
from treefocus.tables.table import as_table

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")

COLUMNS = ("area", "rooms", "age", "distance")
VIEWS = [("light", DESKTOP), ("phone-dark", PHONE | {"color_scheme": "dark"})]  # each width and each scheme once


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as one:
        yield one


@pytest.fixture(scope="module")
def artefacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return artefacts_folder(tmp_path_factory)


@pytest.fixture(scope="module")
def loan_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with command("--demo", "--jobs", tmp_path_factory.mktemp("jobs")) as (_, client):
        yield str(client.base_url)


@pytest.fixture(scope="module")
def flats() -> Any:
    rows, prices = house_prices()
    return GradientBoostingRegressor(n_estimators=20, random_state=0).fit(rows, prices)


@pytest.fixture(scope="module")
def flat_address(flats: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("flats")
    translate(flats).forest.save(folder / "model.json")
    write_columns(folder / "rows.csv", dict(zip(COLUMNS, house_prices()[0].T.tolist(), strict=True)))
    arguments = (folder / "model.json", "--data", folder / "rows.csv", "--jobs", folder / "jobs", "--title", "Flats")
    with command(*arguments) as (_, client):
        yield str(client.base_url)


@pytest.fixture
def loan_page(browser: Any, loan_address: str) -> Iterator[Any]:
    with visits(browser, loan_address) as opened:
        yield opened


@pytest.fixture
def flat_page(browser: Any, flat_address: str) -> Iterator[Any]:
    with visits(browser, flat_address) as opened:
        yield opened


def as_people_read_it(price: float) -> str:
    return catalogue().amount(price)


# --- a class with some probability


def test_a_probability_can_be_asked_for(loan_page: Any) -> None:
    page = loan_page("?round=0")
    answered(page)
    percent = page.get_by_label("Probability of the wanted answer")
    percent.fill("70")
    sentence = asked(page)
    assert "'approved' with a probability of" in sentence
    (found,) = Explanations.from_json(downloaded(page, "JSON"))
    assert found.likelihood is not None
    assert found.likelihood[1] is not None
    assert found.likelihood[1] >= 0.7
    visit = Visit.begin(demo_service())
    explainer = Explainer(
        loans.forest(), loans.load()[0], distance="manhattan", constraints=loans.CONSTRAINTS, schema=loans.SCHEMA
    )
    direct = explainer.explain(visit.row, Probability("approved", 0.7))
    assert found.distance == direct.distance[0]
    percent.fill("150")
    page.get_by_text("Pick a row, then press Explain").wait_for()
    explain(page).click()
    page.get_by_role("alert").filter(
        has_text="The probability must be above 0 and below 100 per cent, got 150."
    ).wait_for()
    choose(page, "Wanted answer", "any other class")
    percent.wait_for(state="hidden")
    assert asked(page).startswith("Your application would be approved if ")


@pytest.mark.campaign
def test_weights_and_likeness_are_behind_more(loan_page: Any) -> None:
    page = loan_page()
    before = answered(page)
    assert "your savings" in before
    fold = page.get_by_role("button", name="More: margin")
    fold.focus()
    page.keyboard.press("Enter")
    page.get_by_label("Room to move").fill("above inf")
    page.get_by_text("95%, manhattan, above inf").wait_for()
    assert "at least" in asked(page)
    page.get_by_label("Room to move").fill("")
    page.get_by_label("Weight of savings").fill("50")
    page.get_by_text("95%, manhattan, 1 weighted").wait_for()
    assert "your savings" not in asked(page)
    page.get_by_label("Weight of savings").fill("0")
    page.get_by_text("Pick a row, then press Explain").wait_for()
    explain(page).click()
    page.get_by_role("alert").filter(has_text="weights['savings'] must be a finite number above 0, got 0.0.").wait_for()
    page.get_by_label("Weight of savings").fill("1")
    choose(page, "Likeness", "isolation score, at most")
    page.get_by_label("Limit", exact=True).fill("0.44")
    page.get_by_text("manhattan, isolation score, at most 0.44").wait_for()
    assert asked(page) != before
    (found,) = Explanations.from_json(downloaded(page, "JSON"))
    assert found.counterfactual is not None
    service = demo_service()
    problem = service.explain(service.row_of(service.rows.values[1]), service.asked).problem
    assert problem is not None
    assert IsolationScore().score(problem, found.counterfactual[None])[0] <= 0.44


# --- a number


def test_the_story_of_a_flat(flat_page: Any, flats: Any) -> None:
    from playwright.sync_api import expect

    page = flat_page("?round=0")
    rows = house_prices()[0]
    prices = flats.predict(rows)
    answered(page)
    # rows by predicted number
    page.get_by_label("Predicted from").fill("300000")
    dear = np.flatnonzero(prices >= 300_000)
    page.get_by_text(f"{len(dear)} of 300 rows, predicted {as_people_read_it(prices[dear].min())}").wait_for()
    page.get_by_label("Predicted to").fill("1")
    page.get_by_text("Interval must be from a low to a high value").wait_for()
    page.get_by_label("Predicted from").fill("")
    page.get_by_label("Predicted to").fill("150000")
    cheap = int(np.flatnonzero(prices <= 150_000)[0])
    page.get_by_role("button", name=f"Pick row {cheap}", exact=True).click()
    page.get_by_text(f"Row {cheap} is predicted {as_people_read_it(prices[cheap])}.").first.wait_for()
    # from where to where
    page.get_by_label("Wanted number, from").fill("200000")
    page.get_by_label("Wanted number, to").fill("210000")
    sentence = asked(page)
    assert sentence.startswith(f"Row {cheap} is predicted {as_people_read_it(prices[cheap])}. It would be predicted 20")
    (found,) = Explanations.from_json(downloaded(page, "JSON"))
    frame = pd.DataFrame(rows, columns=COLUMNS).astype(dict.fromkeys(COLUMNS[:3], int))
    answer = Explainer(flats, frame, distance="manhattan").explain(frame.iloc[[cheap]], Interval(200e3, 210e3))
    assert (found.outcome, found.distance) == (answer.outcome[0], pytest.approx(answer.distance[0]))
    # the number while sliders move
    unfold(page, "Try your own values")
    page.get_by_role("button", name="Start from the answer").click()
    page.locator("#further").get_by_text(f"is predicted {as_people_read_it(answer.outcome[0])}.").wait_for()
    slider = page.get_by_role("slider", name="area")
    slider.focus()
    page.keyboard.press("End")
    values = np.where(np.arange(4) == 0, rows[:, 0].max(), answer.points[0])
    expected = as_people_read_it(flats.predict(values[None])[0])
    expect(page.locator("#further strong")).to_have_text(expected)


def test_wishes_that_cannot_be_are_told_and_many_rows_are_answered(flat_page: Any, flats: Any) -> None:
    page = flat_page()
    answered(page)
    low, high = page.get_by_label("Wanted number, from"), page.get_by_label("Wanted number, to")
    for one, other, told in (
        ("", "", "Say which number is wanted: from, to, or both."),
        ("5", "1", "The wanted number must be from a low to a high value, got 5 to 1."),
    ):
        low.fill(one)
        high.fill(other)
        explain(page).click()  # at once: what is typed counts although it waits for more
        page.get_by_role("alert").filter(has_text=told).wait_for()
    low.fill("250000")
    high.fill("")
    unfold(page, "Many rows")
    page.get_by_label("At most").fill("10")
    page.get_by_role("button", name="Explain all").click()
    page.get_by_text("10 of 10 rows, done.").wait_for()
    found = Explanations.from_json(downloaded(page, "JSON", page.locator(".tf-job")))
    prices = flats.predict(house_prices()[0])
    np.testing.assert_allclose(found.predicted.astype(float), prices[prices < 250_000][:10])
    assert all(number >= 250_000 for number in found.outcome[found.has_answer])


@pytest.mark.parametrize(("name", "options"), VIEWS)
def test_it_passes_the_rules_of_accessibility(
    flat_page: Any, loan_page: Any, artefacts: Path, name: str, options: dict[str, Any]
) -> None:
    for model, page in (("number", flat_page(**options)), ("probability", loan_page(**options))):
        answered(page)
        if model == "probability":
            page.get_by_label("Probability of the wanted answer").fill("60")
        unfold(page, "More: margin")
        choose(page, "Likeness", "local outlier factor, at most")
        page.get_by_text("manhattan, local outlier factor, at most 1.5").wait_for()
        asked(page)
        settled(page)
        page.screenshot(path=artefacts / f"{model}-{name}.png", full_page=True)
        assert violations(page) == []


def test_a_visit_to_a_model_that_predicts_numbers_begins_with_the_upper_half(flats: Any) -> None:
    rows = house_prices()[0]
    visit = Visit.begin(Service(flats, rows, as_table(rows, "rows")))
    middle = float(np.median(flats.predict(rows)))
    assert visit.question().target == Interval(low=float(f"{middle:.3g}"))
    assert visit.prediction[0] < middle
