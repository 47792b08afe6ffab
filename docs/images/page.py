"""Take every view of the page in Chromium: three widths, two themes, and the demo's pictures for docs/service.md.

    python docs/images/page.py                # the pictures that the documents show, here
    python docs/images/page.py --all FOLDER   # every view, to look at; --only names some

Run it from anywhere.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

WIDTHS: dict[str, dict[str, Any]] = {
    "desk": {"viewport": {"width": 1280, "height": 860}},
    "tablet": {"viewport": {"width": 768, "height": 1024}},
    "phone": {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True},
}
THEMES = ("light", "dark")
SHOWN = {"page": ("desk", "light"), "page-dark": ("desk", "dark"), "page-phone": ("phone", "light")}
SETTLED = "() => document.getAnimations().every((one) => one.effect.getComputedTiming().endTime === Infinity)"


def unfold(page: Any, name: str) -> None:
    """Open a fold; that of the jobs is open already where one runs."""
    fold = page.get_by_role("button", name=name)
    fold.wait_for()
    if fold.get_attribute("aria-expanded") != "true":
        fold.click()
    fold.and_(page.locator("[aria-expanded=true]")).wait_for()


def choose(page: Any, field: str, option: str) -> None:
    """Choose from a list."""
    page.get_by_role("combobox", name=field).click()
    page.get_by_role("option", name=option).click()


def answer(page: Any) -> None:
    """As it is on arrival."""


def safer(page: Any) -> None:
    """What more probability costs."""
    page.get_by_role("button", name="Make it safer").click()
    page.locator(".tf-told button").first.wait_for()


def rules(page: Any) -> None:
    """The rules and their prices."""
    unfold(page, "Rules: what")
    page.get_by_role("button", name="What do the rules cost?").click()
    page.get_by_text("cost nothing").first.wait_for()


def sliders(page: Any) -> None:
    """Values of one's own."""
    unfold(page, "Try your own")
    page.get_by_role("slider").first.wait_for()


def compared(page: Any) -> None:
    """The four distances."""
    unfold(page, "Under other")
    page.get_by_role("button", name="Compare distances").click()
    page.locator(".tf-compare").wait_for()


def many(page: Any) -> None:
    """Many rows, done."""
    unfold(page, "Many rows")
    page.get_by_label("At most").fill("20")
    page.get_by_role("button", name="Explain all").click()
    page.get_by_text("20 of 20 rows, done.").first.wait_for()


def letter(page: Any) -> None:
    """The letter."""
    page.get_by_role("button", name="Letter", exact=True).click()
    page.locator(".tf-letter").wait_for()


def audit(page: Any) -> None:
    """Everyone, by groups."""
    unfold(page, "Audit by groups")
    choose(page, "Groups by", "dependants")
    page.get_by_label("People at most").fill("60")
    page.get_by_role("button", name="Audit everyone").click()
    page.get_by_text("Audited 60 people.").wait_for()
    page.get_by_role("button", name="People behind savings").click()
    page.get_by_role("button", name="Ask about row").first.wait_for()


def german(page: Any) -> None:
    """In another language."""
    page.get_by_role("button", name="Deutsch", exact=True).click()
    page.get_by_role("heading", name="Die Antwort").wait_for()
    page.locator(".tf-sentence").first.wait_for()


def french(page: Any) -> None:
    """And in a third."""
    page.get_by_role("button", name="Français", exact=True).click()
    page.get_by_role("heading", name="La réponse").wait_for()
    page.locator(".tf-sentence").first.wait_for()


VIEWS: tuple[Callable[[Any], None], ...] = (
    answer,
    safer,
    rules,
    sliders,
    compared,
    many,
    audit,
    letter,
    german,
    french,
)


@contextmanager
def served() -> Iterator[str]:
    """The demo, and where it is."""
    with tempfile.TemporaryDirectory() as jobs:
        server = subprocess.Popen(
            [sys.executable, "-m", "treefocus", "serve", "--demo", "--port", "0", "--jobs", jobs],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert server.stdout is not None
            (address,) = re.findall(r"http://\S+:\d+", server.stdout.readline())
            yield address
        finally:
            server.terminate()
            server.wait()


def take(
    browser: Any, address: str, width: str, theme: str, view: Callable[[Any], None], path: Path, full: bool
) -> None:
    """One picture, when nothing moves any more."""
    page = browser.new_page(**WIDTHS[width], color_scheme=theme)
    page.set_default_timeout(120_000)
    page.goto(address)
    page.locator(".tf-sentence").first.wait_for()
    view(page)
    page.mouse.move(0, 0)
    page.wait_for_function(SETTLED)
    page.screenshot(path=path, full_page=full)
    page.close()


def main() -> None:
    """Serve, ask, take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", type=Path, metavar="FOLDER")
    parser.add_argument("--only", nargs="+", metavar="VIEW", choices=[view.__name__ for view in VIEWS])
    asked = parser.parse_args()
    with served() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        if asked.all is None:
            for name, (width, theme) in SHOWN.items():
                take(browser, address, width, theme, answer, Path(__file__).with_name(f"{name}.png"), full=False)
        else:
            asked.all.mkdir(parents=True, exist_ok=True)
            for view in [one for one in VIEWS if asked.only is None or one.__name__ in asked.only]:
                for width in WIDTHS:
                    for theme in THEMES:
                        path = asked.all / f"{view.__name__}-{width}-{theme}.png"
                        take(browser, address, width, theme, view, path, full=view is not letter)
        browser.close()


if __name__ == "__main__":
    main()
