"""What is asked about rows, in the library's own words. Knows neither the model nor the wire."""

from __future__ import annotations

from dataclasses import dataclass

from treefocus.options import OPTIONS, SERVICE, ExplainerOptions, names_at
from treefocus.search.plausible import FURTHER


@dataclass(frozen=True)
class ExplainOptions(ExplainerOptions):
    """The options of `Explainer` and of `Explainer.explain`, with a service's defaults."""

    distance: str = "manhattan"

    @property
    def text(self) -> str:
        """All that a caller can say as text; jobs that an earlier server left behind are known by it.

        A plain option that is not used is left out, so that one which is new does not make old jobs another server's.
        """
        names = [name for name in names_at(SERVICE) if OPTIONS[name].wire is None or getattr(self, name) is not None]
        return f"Question({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    @property
    def n_searches(self) -> int:
        """How often a row may be searched: once a way out, and for further ones where an answer must be plausible; once
        more for the smallest change, where more is asked for.
        """
        n_ways = self.n + (self.hold is not None or self.tolerance is not None)
        return n_ways * (1 if self.plausibility is None else 1 + FURTHER)
