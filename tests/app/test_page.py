"""The page in a real browser: the whole story, by mouse, by keyboard, on a phone, in the dark, and for screen readers.

Screenshots go to the folder named in TREEFOCUS_ARTEFACTS, or to pytest's own.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from support.pages import (
    CHROMIUM,
    DARK,
    DESKTOP,
    PATIENCE,
    PHONE,
    answered,
    artefacts_folder,
    asked,
    choose,
    chromium,
    downloaded,
    explain,
    saved,
    settled,
    unfold,
    violations,
    visits,
)
from support.servers import command, wait_until
from treefocus import Explanations, loans, verify
from treefocus.app.demo import demo_service
from treefocus.app.page.picker import PAGE
from treefocus.app.rows import find
from treefocus.app.service import Service
from treefocus.app.visit import Visit
from treefocus.app.workers import Errand

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


def query(page: Any) -> dict[str, str]:
    return {name: own[0] for name, own in parse_qs(urlsplit(page.url).query).items()}


def reached(page: Any, text: str) -> None:
    """Wait until the address tells of it."""
    page.wait_for_function(
        f"[...new URLSearchParams(location.search)].map((pair) => pair.join('=')).join('&').includes({text!r})"
    )


def test_the_answer_is_there_before_anybody_asks(visit: Any, service: Service, artefacts: Path) -> None:
    page = visit()
    assert page.locator("h1").inner_text() == "Loans <b>&</b>"
    first = next(i for i, label in enumerate(service.predictions.labels) if label == "declined")
    new = Visit.begin(service)
    new.found = service.answer(new.row, new.question(), Errand(), first)
    (found,) = new.ways
    assert answered(page) == found.to_text()
    assert "These are round numbers." in found.to_text()
    assert re.search(r"It is [\d.]+ times the smallest change\.$", found.to_text())
    assert page.locator(".tf-headline").inner_text() == f"{len(found.changes)} changes together would be enough."
    shown = page.locator("#answer .tf-changes tbody tr")
    assert shown.locator("th").all_inner_texts() == [change.feature for change in found.changes]
    assert page.locator("#answer .tf-bar").count() == shown.count()
    assert re.fullmatch(r"declined \d+% → approved \d+%", page.locator(".tf-shift").inner_text())
    assert page.locator("#answer .tf-badge").first.inner_text() == "within a proven bound"
    page.get_by_role("button", name="Round numbers", exact=True).click()
    page.locator("#answer .tf-badge", has_text="smallest, proven").wait_for()
    assert not page.locator(".tf-proof").first.is_visible()
    page.get_by_text("How do we know?").click()
    assert "manhattan" in page.locator(".tf-proof").first.inner_text()
    reached(page, f"row={first}")
    reached(page, "round=0")
    page.screenshot(path=artefacts / "answer.png", full_page=True)


def test_who_leaves_is_not_waited_for(visit: Any, address: str) -> None:
    page = visit()
    answered(page)
    assert "treefocus_visitors 0" not in httpx.get(f"{address}/metrics").text.splitlines()
    page.evaluate("window.dispatchEvent(new Event('pagehide'))")  # the socket is still there
    wait_until(lambda: "treefocus_visitors 0" in httpx.get(f"{address}/metrics").text.splitlines())


def test_the_story_of_a_declined_applicant(visit: Any, service: Service, artefacts: Path) -> None:
    page = visit()
    answered(page)
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
    reached(page, f"row={number}")
    sentence = answered(page)
    assert sentence.startswith("Your application would be approved if ")
    focused = page.evaluate("document.activeElement.closest('button')?.getAttribute('aria-label')")
    assert focused == f"Pick row {number}"  # the focus stays where it was
    # take it home
    found = Explanations.from_json(downloaded(page, "JSON"))
    assert found[0].label == number
    assert found[0].to_text() == sentence
    assert not verify(json.loads(downloaded(page, "Certificate")), service.forest).failed  # margin and all
    report = downloaded(page, "HTML")
    assert report.startswith("<!doctype html>")
    assert "Loans &lt;b&gt;&amp;&lt;/b&gt;" in report
    assert downloaded(page, "CSV").lstrip("\ufeff").splitlines()[1].startswith(f"{number},declined,approved,BOUNDED,")
    assert saved(page, "Excel")[:2] == b"PK"
    page.get_by_role("button", name="Letter", exact=True).click()
    page.get_by_label("To", exact=True).fill("Ada <Example>")
    page.get_by_label("From", exact=True).fill("The Bank")
    page.get_by_text("Dear Ada <Example>,").wait_for()
    settled(page)
    page.screenshot(path=artefacts / "letter.png")
    letter = downloaded(page, "Text")
    assert letter.startswith("Dear Ada <Example>,")
    with zipfile.ZipFile(io.BytesIO(saved(page, "Word"))) as archive:
        assert "Dear Ada &lt;Example&gt;," in archive.read("word/document.xml").decode()
    page.get_by_role("button", name="Close", exact=True).click()


@pytest.mark.campaign
def test_what_can_be_done_about_an_answer_stands_beside_it(visit: Any, service: Service) -> None:
    page = visit("?row=5")
    before = answered(page)
    assert "your savings" in before
    page.get_by_role("button", name="Leave savings alone").click()
    reached(page, "savings fixed")
    page.locator("#answer").get_by_text(before).wait_for(state="detached")
    assert "your savings" not in answered(page)
    # more probability has a price
    page.get_by_role("button", name="Make it safer").click()
    offers = page.locator(".tf-told button")
    offers.first.wait_for()
    told = offers.all_inner_texts()
    assert told[0] == "the smallest change"
    percents = [re.fullmatch(r"at least (\d+)%: [\d.]+ times the smallest change", one) for one in told[1:-1]]
    assert [one and one[1] for one in percents] == ["60", "70", "80", "90"]
    assert re.fullmatch(r"holds for 95% of models trained again: [\d.]+ times the smallest change", told[-1])
    assert offers.last.get_attribute("aria-pressed") == "true"  # which is asked for
    offers.nth(2).click()
    reached(page, "p=70")
    share = re.search(r"approved (\d+)%", page.locator(".tf-shift").first.inner_text())
    assert share
    assert int(share[1]) >= 70
    assert "times the smallest change" in answered(page)
    page.get_by_role("button", name="Round numbers", exact=True).click()
    reached(page, "round=0")
    page.get_by_text("These are round numbers.").wait_for(state="detached")
    # the way back, and the same from the address alone
    page.go_back()
    page.wait_for_function("!location.search.includes('round')")
    page.get_by_text("These are round numbers.").wait_for()
    assert answered(page)
    again = visit(f"?{urlsplit(page.url).query}")
    assert answered(again) == answered(page)
    # what was asked is kept, and can be seen side by side
    unfold(page, "Earlier questions")
    ticks = page.get_by_role("checkbox")
    ticks.nth(0).click()
    ticks.nth(1).click()
    page.locator(".tf-compare").wait_for()
    assert page.locator(".tf-compare thead th").count() == 2


def test_a_dead_end_leads_on(visit: Any) -> None:
    everything = " and ".join(loans.SCHEMA.names)
    page = visit(f"?row=5&rules={everything} fixed")
    page.get_by_role("button", name="Why not?").click()
    lift = page.get_by_role("button", name=re.compile("^Lift: "))
    lift.first.wait_for()
    lift.first.click()
    page.locator("#answer .tf-changes").wait_for()
    assert page.locator("#answer .tf-changes tbody tr").count() >= 1


def test_rules_hold_and_several_ways_differ(visit: Any) -> None:
    page = visit("?row=5&ways=3")
    answered(page)
    unfold(page, "Rules: what may change")
    choose(page, "savings", "stays as it is")
    page.get_by_text("Pick a row, then press Explain").wait_for()  # the old answer is to another question
    page.get_by_label("loan_amount from").fill("9000")
    page.get_by_text("3 unchanged, 3 only more, 4 only less, 1 with a range").wait_for()
    after = asked(page)
    page.locator(".tf-answer").nth(1).wait_for()
    ways = [set(way.locator("tbody th").all_inner_texts()) for way in page.locator(".tf-answer").all()]
    assert len(set(map(frozenset, ways))) == len(ways) > 1
    assert all("savings" not in way for way in ways)
    loan = re.search(r"the loan were ([\d,]+) EUR", after)
    assert loan is None or int(loan[1].replace(",", "")) >= 9000
    page.get_by_role("button", name="What do the rules cost?").click()
    page.get_by_role("button", name=re.compile("^Lift: ")).first.click()
    reached(page, "rules=")
    answered(page)


@pytest.mark.campaign
def test_distances_side_by_side_and_other_languages(visit: Any) -> None:
    page = visit()
    answered(page)
    unfold(page, "Under other distances")
    page.get_by_role("button", name="Compare distances").click()
    table = page.locator(".tf-compare")
    table.wait_for()
    assert table.locator("thead th").all_inner_texts() == ["euclidean", "manhattan", "cosine", "mahalanobis"]
    assert table.locator("tbody tr").count() >= 2
    for name, heading, said, language in (
        ("Deutsch", "Die Antwort", "Ihr Antrag", "de"),
        ("Français", "La réponse", "Votre", "fr"),
    ):
        page.get_by_role("button", name=name, exact=True).click()
        page.get_by_role("heading", name=heading).wait_for()
        page.locator(".tf-sentence", has_text=said).first.wait_for()
        page.wait_for_function(f"document.documentElement.lang === {language!r}")
        assert violations(page) == []


def test_a_row_of_ones_own_and_a_rule_that_cannot_be(visit: Any) -> None:
    page = visit()
    answered(page)
    unfold(page, "Values: type in a row of your own")
    page.get_by_label("income (EUR)").fill("90000")
    page.get_by_text("A row of your own is predicted").wait_for()
    asked(page)
    assert "row" not in query(page) or page.evaluate("!location.search.includes('90000')")
    unfold(page, "Rules: what may change")
    page.get_by_label("income from").fill("5")
    page.get_by_label("income to").fill("1")
    explain(page).click()
    page.get_by_role("alert").filter(has_text="must be from a low to a high value, got 5").wait_for()
    unfold(page, "More: margin")
    page.get_by_label("Seconds a search").fill("99")
    page.get_by_label("income to").fill("10")
    explain(page).click()
    page.get_by_role("alert").filter(has_text="at most 10 seconds, got 99").wait_for()
    page.get_by_label("Search rows").fill("incme>3")
    page.get_by_text("There is no column 'incme'. Did you mean 'income'?").wait_for()


def test_what_if_sliders_move_the_prediction(visit: Any, service: Service) -> None:
    from playwright.sync_api import expect

    page = visit()
    answered(page)
    unfold(page, "Try your own values")
    page.get_by_text("With these values the row is predicted declined").wait_for()
    page.get_by_role("button", name="Start from the answer").click()
    page.get_by_text("With these values the row is predicted approved").wait_for()
    page.get_by_role("button", name="Start from the row").click()
    page.get_by_text("With these values the row is predicted declined").wait_for()  # the sliders are new ones now
    slider, typed = page.get_by_role("slider", name="late_payments"), page.get_by_label("late_payments, typed")
    slider.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    late = service.rows.values[int(query(page)["row"]), loans.SCHEMA.index("late_payments")]
    expect(typed).to_have_value(f"{late + 5:.0f}")
    expect(slider).to_have_attribute("aria-valuetext", f"{late + 5:.0f}")
    typed.fill("2")
    expect(slider).to_have_attribute("aria-valuetext", "2")
    page.get_by_role("button", name="Ask about these values").click()
    page.get_by_text("A row of your own is predicted").first.wait_for()


def test_jobs_survive_a_reload_and_keep_the_rows_numbers(visit: Any, service: Service) -> None:
    page = visit("?distance=cosine&ways=3&seconds=10")
    unfold(page, "Many rows, and jobs")
    page.get_by_label("At most").fill("300")
    page.get_by_role("button", name="Explain all").click()
    page.get_by_text(re.compile(r"of 300 rows, running")).wait_for()
    page.reload()
    page.get_by_text(re.compile(r"of 300 rows, running")).wait_for()  # and another can be asked for meanwhile
    page.locator(".tf-job").get_by_role("button", name="Cancel").click()
    page.get_by_text(re.compile(r"of 300 rows, cancelled")).wait_for()
    other = visit("?round=0")
    exact = answered(other)
    unfold(other, "Many rows, and jobs")
    other.get_by_label("At most").fill("30")
    other.get_by_role("button", name="Explain all").click()
    other.get_by_text("30 of 30 rows, done.").wait_for()
    job = other.locator(".tf-job").filter(has_text="30 of 30 rows, done.").first
    found = Explanations.from_json(downloaded(other, "JSON", job))
    assert list(found.labels) == find(service, predicted="declined")[:30]
    assert found.has_answer.all()
    assert found[0].to_text() == exact  # alone and among many the answer is the same
    assert f"Row {found[1].label}" in downloaded(other, "HTML", job)
    job.get_by_role("button", name="Forget").click()
    other.get_by_text("30 of 30 rows, done.").wait_for(state="detached")


def test_by_keyboard_alone(visit: Any) -> None:
    page = visit()
    answered(page)
    seen = []
    for _ in range(10):
        page.keyboard.press("Tab")
        name, is_seen = page.evaluate(FOCUSED)
        seen.append(name)
        assert is_seen, f"{name!r} does not show that it has the focus"
        if name == "Explain":
            break
    assert seen[0] == "Skip to the answer"
    assert seen[-1] == "Explain"
    page.keyboard.press("Enter")
    assert answered(page)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("light", DESKTOP),
        *(pytest.param(*one, marks=pytest.mark.campaign) for one in (("dark", DARK), ("phone", PHONE))),
    ],
)
def test_it_passes_the_rules_of_accessibility(visit: Any, artefacts: Path, name: str, options: dict[str, Any]) -> None:
    page = visit(**options)
    answered(page)
    page.screenshot(path=artefacts / f"{name}-first.png")
    button = explain(page).bounding_box()
    assert button["y"] + button["height"] < options["viewport"]["height"]  # on the first screen
    folds = (
        "Values: type in",
        "Rules: what may",
        "More: margin",
        "Try your own",
        "Many rows",
        "Earlier",
        "Under other",
    )
    for fold in folds:
        unfold(page, fold)
    page.get_by_role("slider", name="late_payments").wait_for()
    settled(page)
    page.screenshot(path=artefacts / f"{name}.png", full_page=True)
    assert violations(page) == []
    page.get_by_role("button", name="Letter").click()
    page.locator(".tf-letter").wait_for()
    settled(page)
    assert violations(page) == []


def test_colours_can_be_chosen(visit: Any) -> None:
    page = visit()
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    page.get_by_role("button", name="dark", exact=True).click()
    page.wait_for_function(f"{background} === 'rgb(13, 17, 23)'")
    page.get_by_role("button", name="auto", exact=True).click()
    page.wait_for_function(f"{background} === 'rgb(255, 255, 255)'")


def test_people_sign_in_where_a_token_is_asked_for_and_only_so_many_at_once(browser: Any, tmp_path: Path) -> None:
    arguments = ("--demo", "--jobs", tmp_path, "--token", "0123456789abcdef", "--max-visitors", "1")
    with command(*arguments) as (_, client):
        context = browser.new_context(**DESKTOP)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.goto(str(client.base_url))
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Sign in").click()
        page.get_by_text("The token is wrong.").wait_for()
        page.get_by_label("Token").fill("0123456789abcdef")
        page.keyboard.press("Enter")
        assert "would be approved" in answered(page)
        refused = context.new_page().goto(str(client.base_url))
        assert refused.status == 503
        context.close()


@pytest.mark.campaign
def test_two_visitors_do_not_disturb_each_other(visit: Any) -> None:
    one, other = visit("?row=1&distance=euclidean"), visit("?row=5")
    first, second = answered(one), answered(other)
    assert first != second
    other.get_by_role("button", name="Pick row 7", exact=True).click()
    reached(other, "row=7")
    assert answered(one) == first


def test_nothing_comes_from_elsewhere(browser: Any, address: str) -> None:
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    asked_for: list[str] = []
    page.on("request", lambda request: asked_for.append(request.url))
    response = page.goto(address)
    answered(page)
    context.close()
    own = re.compile(rf"(http|ws)://{re.escape(address.partition('//')[2])}/|data:|blob:")
    assert [url for url in asked_for if not own.match(url)] == []
    policy = response.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
