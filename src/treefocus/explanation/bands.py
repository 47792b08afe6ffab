"""Several targets at once, for rating classes: for every row, the smallest change into each band."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from treefocus.errors import reject
from treefocus.explanation.batch import Explanations
from treefocus.render import recourse
from treefocus.render.phrases import DEFAULT
from treefocus.tables.frames import frame_of


@dataclass(frozen=True, eq=False)
class Bands(Mapping[str, Explanations]):
    """The answers of every band, by its name, in the order in which they were asked for."""

    found: Mapping[str, Explanations]

    def __getitem__(self, band: str) -> Explanations:
        return self.found[band]

    def __iter__(self) -> Iterator[str]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    def to_frame(self) -> Any:
        """A line a row and band: status, distance, lower bound, gap, and what would change."""
        return frame_of(self.records(), next(iter(self.found.values())).table.native)

    def records(self) -> dict[str, list[Any]]:
        """Columns of `to_frame`, by name; the bands of a row stand together."""
        n_rows = len(next(iter(self.found.values())))
        lines = [(band, every[i]) for i in range(n_rows) for band, every in self.found.items()]
        return {
            "row": [one.label for _, one in lines],
            "band": [band for band, _ in lines],
            "status": [one.status.name for _, one in lines],
            "distance": [one.distance for _, one in lines],
            "lower_bound": [one.lower_bound for _, one in lines],
            "gap": [one.gap for _, one in lines],
            "changes": [recourse.changes(one) for _, one in lines],
        }

    def to_text(self, i: int = 0, language: str = DEFAULT) -> str:
        """Row i, a line a band."""
        return "\n".join(f"{band}: {every[i].to_text(language)}" for band, every in self.found.items())

    def __repr__(self) -> str:
        return f"Bands({', '.join(f'{band}: {every!r}' for band, every in self.found.items())})"


def named_bands(bands: Any) -> dict[str, Any]:
    """The targets by name; those without a name are called by what they are."""
    given = bands if isinstance(bands, Mapping) else None
    if given is None and isinstance(bands, list | tuple):
        given = {str(target): target for target in bands}
    if not given or not all(isinstance(name, str) for name in given):
        reject("bands", 'targets by name, {"A": Score(low=2), "B": Score(0, 2)}, or a list of them', repr(bands))
    return dict(given)
