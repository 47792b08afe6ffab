"""How many random examples a property is tried on: TREEFOCUS_EXAMPLES times the number that stands in the test.

A plain run is for people who wait for it, and tries a third of them; `.ci/run` tries twice as many.
"""

from __future__ import annotations

import os

from hypothesis import Phase, settings

TIMES = float(os.environ.get("TREEFOCUS_EXAMPLES", "0.3"))


def n_examples(plain: int) -> int:
    return max(1, round(plain * TIMES))


def forests(plain: int) -> settings:
    """As many random forests; a seed is what it is, so that there is nothing to make smaller."""
    return settings(max_examples=n_examples(plain), phases=[Phase.explicit, Phase.reuse, Phase.generate])
