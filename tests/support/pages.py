"""The page in Chromium, for the tests: a browser, visits that fail on any complaint of it, and what people do there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 900}}
DARK: dict[str, Any] = DESKTOP | {"color_scheme": "dark"}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
PATIENCE = 240_000  # milliseconds until the page is given up on: machines may be busy

# Two frames, so that what has just been asked for has begun to move; a spinner turns without end and does not count.
SETTLED = """async () => {
  for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame);
  return document.getAnimations().every(
    (one) => one.playState !== 'running' || one.effect.getComputedTiming().endTime === Infinity);
}"""


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; what is expected of its pages may take its time."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@contextmanager
def visits(browser: Any, address: str) -> Iterator[Callable[..., Any]]:
    """Opens the page; whatever goes wrong in the browser fails the test."""
    contexts, complaints = [], []

    def opened(query: str = "", **options: Any) -> Any:
        context = browser.new_context(accept_downloads=True, **(options or DESKTOP))
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.goto(f"{address}/{query}")
        explain(page).wait_for()
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == [], complaints


def artefacts_folder(factory: pytest.TempPathFactory) -> Path:
    """Where screenshots go: the folder named in TREEFOCUS_ARTEFACTS, or pytest's own."""
    named = os.environ.get("TREEFOCUS_ARTEFACTS")
    folder = Path(named) if named else factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def violations(page: Any) -> list[str]:
    """What the rules of axe-core, and the width of the screen, do not allow."""
    from axe_playwright_python.sync_playwright import Axe

    # The thin bar of a request under way is the framework's own, and gone when the page is drawn.
    page.wait_for_function(
        "[...document.querySelectorAll('.q-loading-bar')].every((bar) => getComputedStyle(bar).opacity === '0')"
    )
    found = Axe().run(page).response["violations"]
    told = [f"{one['id']}: {one['nodes'][0]['html'][:200]} {one['nodes'][0]['failureSummary'][:300]}" for one in found]
    overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return [*told, *(["wider than the screen"] if overflow > 0 else [])]


def explain(page: Any) -> Any:
    return page.get_by_role("button", name="Explain", exact=True)


def answered(page: Any) -> str:
    """The first answer, when it is there."""
    page.locator(".tf-sentence").first.wait_for()
    return str(page.locator(".tf-sentence").first.inner_text())


def asked(page: Any) -> str:
    """Press Explain and read the first answer."""
    page.evaluate("document.querySelectorAll('.tf-sentence').forEach((one) => one.classList.add('old'))")
    explain(page).click()
    new = page.locator(".tf-sentence:not(.old)").first
    new.wait_for()
    return str(new.inner_text())


def choose(page: Any, label: str, option: str) -> None:
    page.get_by_role("combobox", name=label, exact=True).first.click()
    page.get_by_role("option", name=option, exact=True).click()


def unfold(page: Any, label: str) -> None:
    """Open a fold, and wait until it has told so; a press on what moves away meanwhile is none, and is repeated."""
    from playwright.sync_api import TimeoutError as NotYetError

    fold = page.get_by_role("button", name=label)
    opened = fold.and_(page.locator("[aria-expanded=true]"))
    for patience in (10_000, 30_000, PATIENCE):
        settled(page)
        fold.click()
        try:
            return opened.wait_for(timeout=patience)
        except NotYetError:
            continue
    raise AssertionError(f"{label} does not unfold")


def settled(page: Any) -> None:
    """Wait until nothing on the page moves any more that comes to rest at all."""
    page.wait_for_function(SETTLED)


def saved(page: Any, name: str, area: Any = None) -> bytes:
    """The file behind a button."""
    with page.expect_download() as caught:
        (area or page).get_by_role("button", name=name, exact=True).first.click()
    return Path(caught.value.path()).read_bytes()


def downloaded(page: Any, name: str, area: Any = None) -> str:
    return saved(page, name, area).decode("utf-8")
