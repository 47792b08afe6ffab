"""The page in a real browser: the whole story, by mouse, by keyboard, on a phone, in the dark, and for screen readers.

Screenshots go to the folder named in TREEFOCUS_ARTEFACTS, or to pytest's own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.pages import (
    CHROMIUM,
    DARK,
    DESKTOP,
    PATIENCE,
    PHONE,
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
from support.servers import command
from treefocus import Explanations, loans, verify
from treefocus.app.demo import demo_service
from treefocus.app.page.picker import PAGE
from treefocus.app.rows import find
from treefocus.app.service import Service
from treefocus.app.visit import Visit

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")

FOCUSED = """(() => {
  const own = document.activeElement, style = getComputedStyle(own);
  const is_seen = style.outlineStyle !== 'none' || style.boxShadow !== 'none' || !!own.closest('.q-field--focused');
  return [(own.getAttribute('aria-label') || own.innerText || '').trim(), is_seen];
})()"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with command("--demo", "--jobs", tmp_path_factory.mktemp("jobs"), "--title", "Loans <b>&</b>") as (_, client):
        yield str(client.base_url).rstrip("/")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as one:
        yield one


@pytest.fixture(scope="module")
def artefacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return artefacts_folder(tmp_path_factory)


@pytest.fixture
def visit(browser: Any, address: str) -> Iterator[Any]:
    with visits(browser, address) as opened:
        yield opened


@pytest.fixture(scope="module")
def service() -> Service:
    return demo_service()


def test_the_story_of_a_declined_applicant(visit: Any, service: Service, artefacts: Path) -> None:
    page = visit()
    assert page.locator("h1").inner_text() == "Loans <b>&</b>"
    # pick a row: filter, search, choose
    choose(page, "Predicted class", "declined")
    page.get_by_label("Search rows").fill("income>40000 late_payments>=1")
    matching = find(service, "income>40000 late_payments>=1", "declined")
    page.get_by_text(f"{len(matching)} of 5,000 rows").wait_for()
    rows = page.locator(".tf-rows tbody tr")
    assert rows.locator("th").all_inner_texts() == [str(i) for i in matching[:PAGE]]
    assert set(rows.locator("td:nth-child(2)").all_inner_texts()) == {"declined"}
    page.get_by_role("button", name="Next", exact=True).click()
    number = matching[PAGE]
    page.get_by_role("button", name=f"Pick row {number}", exact=True).click()
    page.get_by_text(f"Row {number} is predicted").first.wait_for()
    # ask, with time for the proof on a busy machine
    page.get_by_label("Seconds a search").fill("9")
    sentence = asked(page)
    assert sentence.startswith("Your application would be approved if ")
    assert "No smaller change would be enough." in sentence
    assert page.locator("#answer .tf-badge").first.inner_text() == "smallest, proven"
    cells = page.locator("#answer .tf-changes tbody tr")
    assert cells.count() >= 1
    assert page.locator("#answer .tf-bar").count() == cells.count()
    page.screenshot(path=artefacts / "answer.png", full_page=True)
    # take it home
    found = Explanations.from_json(downloaded(page, "JSON"))
    assert found[0].label == number
    assert found[0].to_text() == sentence
    assert not verify(json.loads(downloaded(page, "Certificate")), service.forest).failed
    report = downloaded(page, "HTML")
    assert report.startswith("<!doctype html>")
    assert "Loans &lt;b&gt;&amp;&lt;/b&gt;" in report
    page.get_by_role("button", name="Letter", exact=True).click()
    page.get_by_label("To", exact=True).fill("Ada <Example>")
    page.get_by_label("From", exact=True).fill("The Bank")
    page.get_by_text("Dear Ada <Example>,").wait_for()
    page.screenshot(path=artefacts / "letter.png")
    letter = downloaded(page, "Download")
    assert letter.startswith("Dear Ada <Example>,")
    assert letter.rstrip().endswith("The Bank")
    page.get_by_role("button", name="Close", exact=True).click()


def test_rules_hold_and_several_ways_differ(visit: Any) -> None:
    page = visit()
    page.get_by_role("button", name="Pick row 5", exact=True).click()
    page.get_by_text("Row 5 is predicted declined").wait_for()
    before = asked(page)
    assert "your savings" in before
    page.get_by_text("Rules: what may change").click()
    choose(page, "savings", "stays as it is")
    page.get_by_text("Pick a row, then press Explain").wait_for()  # the old answer is to another question
    page.get_by_label("loan_amount from").fill("9000")
    page.get_by_text("3 stays as it is, 3 only more, 4 only less, 1 with a range").wait_for()
    choose(page, "Answers", "up to 3 ways")
    after = asked(page)
    page.locator(".tf-answer").nth(1).wait_for()
    ways = [set(way.locator("tbody th").all_inner_texts()) for way in page.locator(".tf-answer").all()]
    assert len(ways) > 1
    assert len(set(map(frozenset, ways))) == len(ways)
    assert all("savings" not in way for way in ways)
    assert "your savings" not in after
    loan = re.search(r"the loan were ([\d,]+) EUR", after)
    assert loan is None or int(loan[1].replace(",", "")) >= 9000


def test_distances_side_by_side_and_other_languages(visit: Any) -> None:
    page = visit()
    page.get_by_role("button", name="Compare distances").click()
    table = page.locator(".tf-compare")
    table.wait_for()
    assert table.locator("thead th").all_inner_texts() == ["euclidean", "manhattan", "cosine", "mahalanobis"]
    assert table.locator("tbody tr").count() >= 2
    asked(page)
    choose(page, "Language of the answer", "German")
    page.get_by_text(re.compile("Ihr Antrag")).first.wait_for()
    choose(page, "Distance", "l0")
    assert "(l0-Distanz" in asked(page) or "l0" in page.locator("#answer .tf-proof").inner_text()


def test_a_row_of_ones_own_and_a_rule_that_cannot_be(visit: Any) -> None:
    page = visit()
    page.get_by_text("Values: type in a row of your own").click()
    page.get_by_label("income (EUR)").fill("90000")
    page.get_by_text("A row of your own is predicted").wait_for()
    page.get_by_label("income (EUR)").fill("")
    page.get_by_label("late_payments", exact=True).first.fill("9")
    page.get_by_text("A row of your own is predicted").wait_for()
    page.get_by_text("Rules: what may change").click()
    page.get_by_label("income from").fill("5")
    page.get_by_label("income to").fill("1")
    explain(page).click()
    alert = page.get_by_role("alert").filter(has_text="Range('income') must be from a low to a high value, got 5")
    alert.wait_for()
    page.get_by_label("Seconds a search").fill("99")
    page.get_by_label("income to").fill("10")
    explain(page).click()
    page.get_by_role("alert").filter(
        has_text="The time limit must be above 0 and at most 10 seconds, got 99"
    ).wait_for()
    page.get_by_label("Search rows").fill("incme>3")
    page.get_by_text("There is no column 'incme'. Did you mean 'income'?").wait_for()


def test_what_if_sliders_move_the_prediction(visit: Any, service: Service) -> None:
    from playwright.sync_api import expect

    page = visit()
    asked(page)
    page.get_by_text("Sliders: move them").click()
    page.get_by_text("With these values the row is predicted declined").wait_for()
    page.get_by_role("button", name="Start from the answer").click()
    page.get_by_text("With these values the row is predicted approved").wait_for()
    page.get_by_role("button", name="Start from the row").click()
    page.get_by_text("With these values the row is predicted declined").wait_for()  # the sliders are new ones now
    slider = page.get_by_role("slider", name="late_payments")
    slider.wait_for()
    slider.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    shown = page.locator("#trying .tf-slider").filter(has=slider).locator(".tf-value")
    late = Visit.begin(service).values[loans.SCHEMA.index("late_payments")]
    expect(shown).to_have_text(f"{late + 5:.0f}")
    page.get_by_role("button", name="Ask about these values").click()
    page.get_by_text("A row of your own is predicted").first.wait_for()
    values = [float(text.replace(",", "")) for text in page.locator("#trying .tf-value").all_inner_texts()]
    shares = page.locator("#row .tf-meter > span:last-child").all_inner_texts()
    expected = service.predict(np.array([values]))
    assert shares == [f"{100 * share:.0f}%" for share in expected.probabilities[0] or ()]
    page.get_by_text(f"A row of your own is predicted {expected.labels[0]}").first.wait_for()


def test_long_work_shows_progress_and_can_be_cancelled(visit: Any) -> None:
    page = visit()
    choose(page, "Distance", "cosine")
    choose(page, "Answers", "up to 3 ways")
    page.get_by_label("Seconds a search").fill("10")
    page.get_by_label("At most").fill("300")
    page.get_by_role("button", name="Explain all").click()
    page.get_by_text(re.compile(r"of 300 rows, running")).wait_for()
    page.locator("#many").get_by_role("button", name="Cancel").click()
    page.get_by_text(re.compile(r"of 300 rows, cancelled")).wait_for()


def test_many_rows_end_in_a_report(visit: Any) -> None:
    page = visit()
    page.get_by_label("At most").fill("30")
    page.get_by_role("button", name="Explain all").click()
    page.get_by_text("30 of 30 rows, done.").wait_for()
    found = Explanations.from_json(downloaded(page, "All answers as JSON"))
    assert len(found) == 30
    assert found.has_answer.all()
    assert downloaded(page, "Report").startswith("<!doctype html>")


def test_by_keyboard_alone(visit: Any) -> None:
    page = visit()
    seen = []
    for _ in range(120):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement === document.body"):
            continue  # a part of the page was drawn anew under the focus
        name, is_seen = page.evaluate(FOCUSED)
        seen.append(name)
        assert is_seen, f"{name!r} does not show that it has the focus"
        if name == "Explain":
            break
    order = [seen.index(name) for name in ("Search rows", "Pick row 0", "Next", "Wanted answer", "Explain")]
    assert order == sorted(order)
    page.keyboard.press("Enter")
    page.locator(".tf-sentence").first.wait_for()


@pytest.mark.parametrize(("name", "options"), [("light", DESKTOP), ("dark", DARK), ("phone", PHONE)])
def test_it_passes_the_rules_of_accessibility(visit: Any, artefacts: Path, name: str, options: dict[str, Any]) -> None:
    page = visit(**options)
    page.screenshot(path=artefacts / f"{name}-first.png")
    asked(page)
    page.get_by_role("button", name="Compare distances").click()
    page.locator(".tf-compare").wait_for()
    for fold in ("Values: type in", "Rules: what may", "More: weights", "Sliders: move"):
        unfold(page, fold)
    page.get_by_role("slider", name="late_payments").wait_for()
    settled(page)
    page.screenshot(path=artefacts / f"{name}.png", full_page=True)
    assert violations(page) == []


def test_colours_can_be_chosen(visit: Any) -> None:
    page = visit()
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    page.get_by_role("button", name="dark", exact=True).click()
    page.wait_for_function(f"{background} === 'rgb(13, 17, 23)'")
    page.get_by_role("button", name="auto", exact=True).click()
    page.wait_for_function(f"{background} === 'rgb(255, 255, 255)'")


def test_people_sign_in_where_a_token_is_asked_for(browser: Any, tmp_path: Path) -> None:
    with command("--demo", "--jobs", tmp_path, "--token", "0123456789abcdef") as (_, client):
        context = browser.new_context(**DESKTOP)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.goto(str(client.base_url))
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Sign in").click()
        page.get_by_text("The token is wrong.").wait_for()
        page.get_by_label("Token").fill("0123456789abcdef")
        page.keyboard.press("Enter")
        assert "would be approved" in asked(page)
        context.close()


def test_two_visitors_do_not_disturb_each_other(visit: Any) -> None:
    one, other = visit(), visit()
    asked(one)
    choose(one, "Distance", "euclidean")
    assert other.locator(".tf-sentence").count() == 0
    asked(other)
    other.locator(".tf-answer", has_text=re.compile("manhattan", re.IGNORECASE)).first.wait_for()
    asked(one)
    one.locator(".tf-answer", has_text=re.compile("euclidean", re.IGNORECASE)).first.wait_for()


def test_nothing_comes_from_elsewhere(browser: Any, address: str) -> None:
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    asked_for: list[str] = []
    page.on("request", lambda request: asked_for.append(request.url))
    response = page.goto(address)
    explain(page).wait_for()
    context.close()
    own = re.compile(rf"(http|ws)://{re.escape(address.partition('//')[2])}/|data:|blob:")
    assert [url for url in asked_for if not own.match(url)] == []
    policy = response.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
