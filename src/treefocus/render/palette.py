"""Every colour, once: of pictures, of the report and of the page, in the light and in the dark.

Blue and vermilion, and the series after them, are told apart by everybody (Okabe and Ito).
"""

from __future__ import annotations

import re

UP, DOWN = "#0072B2", "#D55E00"  # blue and vermilion
SERIES = (UP, "#E69F00", "#009E73", "#CC79A7", "#56B4E9", DOWN)
REGIONS = ("#F3DCCB", "#CFE3F0", "#D9EAD3", "#EADCF0", "#FFF2CC", "#E2E2E2")  # pale vermilion, pale blue, ...

THEMES = {
    "light": {
        "ink": "#1b1f23",
        "faint": "#57606a",
        "paper": "#ffffff",
        "card": "#f6f8fa",
        "line": "#d0d7de",
        "edge": "#6e7781",
        "up": UP.lower(),
        "down": DOWN.lower(),
        "link": "#0b5394",
        "on-link": "#ffffff",
        "good": "#1a7f37",
        "fair": "#8a5a00",
        "bad": "#b3261e",
    },
    "dark": {
        "ink": "#e6edf3",
        "faint": "#9da7b3",
        "paper": "#0d1117",
        "card": "#161b22",
        "line": "#3d444d",
        "edge": "#9da7b3",
        "up": "#56b4e9",
        "down": "#ff9a56",
        "link": "#79c0ff",
        "on-link": "#0d1117",
        "good": "#57d364",
        "fair": "#e3b341",
        "bad": "#ff8b83",
    },
}


def coloured(style: str) -> str:
    """A style sheet with `@light.ink` and `@dark.ink` in it, with the colours in their place."""
    return re.sub(r"@(light|dark)\.([\w-]+)", lambda found: THEMES[found[1]][found[2]], style)
