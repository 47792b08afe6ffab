"""Take docs/images/page.png, page-dark.png and page-phone.png: the demo page with an answer, in Chromium.

Run it from anywhere: python docs/images/page.py
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

DESK = {"viewport": {"width": 1280, "height": 860}}
LOOKS: dict[str, dict[str, Any]] = {
    "page": DESK,
    "page-dark": DESK | {"color_scheme": "dark"},
    "page-phone": {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True},
}


def main() -> None:
    """Serve, ask, take the picture."""
    with tempfile.TemporaryDirectory() as jobs, sync_playwright() as playwright:
        server = subprocess.Popen(
            [sys.executable, "-m", "treefocus", "serve", "--demo", "--port", "0", "--jobs", jobs],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert server.stdout is not None
            (address,) = re.findall(r"http://\S+:\d+", server.stdout.readline())
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            for name, options in LOOKS.items():
                page = browser.new_page(**options)
                page.goto(address)
                page.get_by_role("button", name="Explain", exact=True).click()
                page.locator(".tf-sentence").first.wait_for()
                page.mouse.move(0, 0)
                page.wait_for_timeout(1500)  # until it has scrolled to the answer, where it does
                page.screenshot(path=Path(__file__).with_name(f"{name}.png"))
                page.close()
            browser.close()
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
