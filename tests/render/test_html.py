"""The page: one file, nothing foreign becomes markup, and in a real browser it opens, searches, sorts and turns."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from support.pages import CHROMIUM, PATIENCE, chromium
from support.questions import stump
from treefocus import Explainer, Explanations, Feature, Focus, Range, Schema, loans
from treefocus.render.phrases import catalogue, languages

NASTY = '</script><script>window.hit=1</script><img src=x onerror="window.hit=1">'
NAMES = (NASTY, "שכר דירה \u202egnissel", "💰 'quoted\" & <b>", "plain")


@pytest.fixture(scope="module")
def found() -> Explanations:
    trained = loans.train()
    rows = pd.DataFrame(trained.X_test[:150], columns=loans.SCHEMA.names)
    rows.iloc[3, 2] = np.inf
    explainer = Explainer(
        trained.model, trained.X_train, distance="manhattan", constraints=loans.CONSTRAINTS, schema=loans.SCHEMA
    )
    return explainer.explain(rows, target="approved", strategy=Focus(iterations=200))


@pytest.fixture(scope="module")
def nasty() -> Explanations:
    schema = Schema([Feature(name, unit=NASTY) for name in NAMES])
    forest = stump(n_features=4, classes=[NASTY, "'\"><svg onload=alert(1)>"])
    data = np.array([[0.0] * 4, [1.0] * 4])
    explainer = Explainer(forest, data, schema=schema, constraints=Range(NAMES[1], low=0.5))
    rows = pd.DataFrame([[0.2, 0.3, 0.1, 0.1]] * 3, columns=NAMES, index=[NASTY, "שורה", "🙂"])
    return explainer.explain(rows)


class Reader(HTMLParser):
    """Which elements and attributes a page has, as a browser would see them."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def elements(page: str) -> list[tuple[str, dict[str, str | None]]]:
    reader = Reader()
    reader.feed(page)
    return reader.seen


def data_of(page: str) -> Any:
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(text)


def test_the_page_is_one_file_without_addresses(found: Explanations, tmp_path: Path) -> None:
    path = found.to_html(tmp_path / "report.html", title="Loans", groups="dependants")
    page = path.read_text(encoding="utf-8")
    assert path == tmp_path / "report.html"
    for tag, attributes in elements(page):
        assert tag not in ("link", "img", "iframe", "object", "embed", "base")
        assert not {"src", "href", "style"} & set(attributes), tag
    outside = re.findall(r"(?:https?:)?//[\w.]+", page)
    assert set(outside) <= {"http://www.w3.org"}  # the name of SVG's namespace
    assert "default-src 'none'" in page
    assert "@@" not in page
    assert "<title>Loans</title>" in page
    for group in sorted(set(found.table.values[:, 1].astype(int))):
        assert f'<th scope="row">{group}</th>' in page


def test_the_page_holds_every_row_as_python_tells_it(found: Explanations, tmp_path: Path) -> None:
    for language in languages():
        page = found.to_html(tmp_path / "report.html", language=language).read_text(encoding="utf-8")
        assert f'<html lang="{language}">' in page
        rows = data_of(page)["rows"]
        assert [row[2] for row in rows] == [one.to_text(language) for one in found]
        assert [row[1] for row in rows] == [status.name for status in found.status]
        assert [len(row[7]) for row in rows] == [len(one.changes) for one in found]
        assert catalogue(language).words["report"] in page


def test_nothing_foreign_becomes_markup(nasty: Explanations, tmp_path: Path) -> None:
    page = nasty.to_html(tmp_path / "report.html", title=NASTY, groups=[NASTY, "b", "b"]).read_text(encoding="utf-8")
    clean = nasty.to_html(tmp_path / "clean.html", title="x", groups=["a", "b", "b"]).read_text(encoding="utf-8")
    count = [tag for tag, _ in elements(page)]
    assert count.count("script") == 2
    assert set(count) <= {tag for tag, _ in elements(clean)} | {"bdi"}
    assert "\u202e" not in page
    for html in (nasty._repr_html_(), nasty[0]._repr_html_()):
        assert {tag for tag, _ in elements(html)} <= {
            "div", "p", "table", "caption", "thead", "tbody", "tr", "th", "td", "bdi",
        }  # fmt: skip
        assert "\u202e" not in html


def test_an_empty_batch_has_a_page(found: Explanations, tmp_path: Path) -> None:
    explainer = Explainer(stump(), np.array([[0.0, 0.0], [1.0, 1.0]]))
    page = explainer.explain(np.empty((0, 2))).to_html(tmp_path / "report.html").read_text(encoding="utf-8")
    assert data_of(page)["rows"] == []


def test_notebooks_show_tables(found: Explanations) -> None:
    html = found._repr_html_()
    assert html.count("<tr>") == 11
    assert "10 of 150 rows" in html
    one = next(one for one in found if one.changes)
    assert one._repr_html_().count("<tr>") == 1 + len(one.changes)
    none = next(one for one in found if not one.changes)
    assert "<table>" not in none._repr_html_()


# In a browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    with chromium() as one:
        yield one


@pytest.fixture
def visit(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """Opens a batch's page; afterwards nothing may have been written to the console or asked of the network."""
    troubles: list[str] = []
    contexts = []

    def go(found: Explanations, scheme: str = "light", **options: Any) -> Any:
        context = browser.new_context(color_scheme=scheme, viewport={"width": 1100, "height": 900})
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        page.on("request", lambda asked: asked.url.startswith("file:") or troubles.append(f"request: {asked.url}"))
        path = found.to_html(tmp_path / "report.html", **options)
        page.goto(path.as_uri())
        return page

    yield go
    for context in contexts:
        context.close()
    assert not troubles


def titles(page: Any) -> list[str]:
    return page.locator("article h3").all_inner_texts()  # type: ignore[no-any-return]


def test_it_fits_on_a_phone(found: Explanations, visit: Any) -> None:
    page = visit(found)
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


def test_it_opens_with_a_page_of_rows(found: Explanations, visit: Any) -> None:
    page = visit(found)
    assert page.locator("article").count() == 25
    assert titles(page)[0].startswith("Row 0: ")
    assert page.locator("#matches").inner_text() == "150 of 150 rows match"
    assert page.locator("article p").first.inner_text() == found[0].to_text()


def test_it_searches_and_filters(found: Explanations, visit: Any) -> None:
    page = visit(found)
    page.fill("#search", "ROW 3: ")
    assert titles(page)[0].startswith("Row 3: ")
    page.fill("#search", "cannot read")
    assert page.locator("article").count() == 1
    page.fill("#search", "no such thing anywhere")
    assert page.locator("article").count() == 0
    assert page.locator("#matches").inner_text() == "0 of 150 rows match"
    page.fill("#search", "")
    page.select_option("#status", "INVALID")
    assert page.locator("article").count() == 1


def test_it_sorts(found: Explanations, visit: Any) -> None:
    page = visit(found)
    page.select_option("#size", "500")
    page.select_option("#sort", "distance")
    shown = [int(number) for number in page.locator("article").evaluate_all("all => all.map(a => a.dataset.row)")]
    far = np.where(np.isnan(found.distance), np.inf, found.distance)
    assert shown == sorted(range(150), key=lambda i: (far[i], i))
    page.check("#descending")
    shown = [int(number) for number in page.locator("article").evaluate_all("all => all.map(a => a.dataset.row)")]
    assert shown == sorted(range(150), key=lambda i: (-far[i], i))


def test_it_turns_pages_by_keyboard(found: Explanations, visit: Any) -> None:
    page = visit(found)
    assert page.locator("#previous").is_disabled()
    page.focus("#next")
    page.keyboard.press("Enter")
    assert titles(page)[0].startswith("Row 25: ")
    assert page.locator("#page").inner_text() == "Page 2 of 6"


def test_a_row_unfolds_to_table_and_picture(found: Explanations, visit: Any) -> None:
    page = visit(found)
    i = next(i for i in range(25) if found[i].changes)
    article = page.locator(f'article[data-row="{i}"]')
    assert article.locator("table").count() == 0
    article.locator("summary").first.focus()
    page.keyboard.press("Enter")
    article.locator("table").wait_for()
    cells = article.locator("tbody tr").first.locator("th, td").all_inner_texts()
    assert cells[0] == found[i].changes[0].feature
    picture = article.locator("svg[role=img]")
    assert found[i].changes[0].feature in picture.get_attribute("aria-label")
    assert picture.locator("rect").count() == len(found[i].changes)
    assert found[i].status.name in ("OPTIMAL", "BOUNDED", "FOUND")
    assert catalogue("en").statuses[found[i].status.name] in article.locator(".status").inner_text()


def test_foreign_text_is_shown_and_does_nothing(nasty: Explanations, visit: Any) -> None:
    page = visit(nasty, title=NASTY, groups=[NASTY, "b", "b"])
    page.locator("article summary").first.click()
    page.locator("article table").first.wait_for()
    assert page.evaluate("window.hit") is None
    assert page.locator("h1").inner_text() == NASTY
    assert NASTY in page.locator("article h3").first.inner_text()
    assert page.locator("article tbody th").first.inner_text() == NASTY
    assert page.locator("img, iframe, svg[onload]").count() == 0


def test_headings_labels_and_names_for_those_who_cannot_see(found: Explanations, visit: Any) -> None:
    page = visit(found)
    levels = page.locator("h1, h2, h3").evaluate_all("all => all.map(h => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    unnamed = page.locator("input, select").evaluate_all("all => all.filter(e => !e.labels.length).length")
    assert unnamed == 0
    assert page.locator("#matches").get_attribute("aria-live") == "polite"


CONTRAST = """() => {
  const light = c => { const v = c.match(/[\\d.]+/g).slice(0, 3).map(x => x / 255)
    .map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
  const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
    if (c !== "rgba(0, 0, 0, 0)") return c; } return "rgb(255, 255, 255)"; };
  const ratios = [...document.querySelectorAll("h1, h2, h3, p, dt, dd, th, td, label, summary, button:enabled, select")]
    .filter(e => e.offsetParent && e.innerText.trim())
    .map(e => { const a = light(getComputedStyle(e).color), b = light(behind(e));
      return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); });
  return Math.min(...ratios); }"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_is_enough_by_day_and_by_night(found: Explanations, visit: Any, scheme: str) -> None:
    page = visit(found, scheme)
    page.locator("article summary").first.click()
    page.locator("article table").first.wait_for()
    assert page.evaluate(CONTRAST) >= 4.5


def test_it_prints_what_is_unfolded_and_no_controls(found: Explanations, visit: Any) -> None:
    page = visit(found)
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert not page.locator("#controls").is_visible()
    assert not page.locator("#pages").is_visible()
    n_changed = sum(bool(found[i].changes) for i in range(25))
    assert page.locator("article table:visible").count() == n_changed
    assert page.locator("article svg:visible").count() == n_changed
    assert len(page.pdf()) > 10_000


def test_of_ten_thousand_rows_only_a_page_is_ever_drawn(found: Explanations, visit: Any) -> None:
    """What makes a large report quick; a row whose search text and picture were made early would show as elements."""
    record = json.loads(found.to_json())
    rows = [record["rows"][i % len(found)] | {"row": i} for i in range(10_000)]
    page = visit(Explanations.from_json(json.dumps(record | {"rows": rows})))
    n_elements = "document.querySelectorAll('*').length"
    opened = page.evaluate(n_elements)
    assert page.locator("article").count() == 25
    assert opened < 2_000
    page.fill("#search", "row 9999:")
    assert page.locator("article").count() == 1
    page.fill("#search", "")
    page.select_option("#sort", "distance")
    assert page.locator("article").count() == 25
    far = np.where(np.isnan(found.distance), np.inf, found.distance)[np.arange(10_000) % len(found)]
    shown = [int(number) for number in page.locator("article").evaluate_all("all => all.map(a => a.dataset.row)")]
    assert shown == np.argsort(far, kind="stable")[:25].tolist()
    assert page.evaluate(n_elements) < 2 * opened


@pytest.mark.parametrize("language", languages())
def test_it_opens_in_every_language(found: Explanations, visit: Any, language: str) -> None:
    page = visit(found, language=language)
    words = catalogue(language).words
    assert page.locator("h1").inner_text() == words["report"]
    assert page.locator("#next").inner_text() == words["next"]
