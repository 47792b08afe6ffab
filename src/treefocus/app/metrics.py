"""Numbers for those who run the server, in the text format of Prometheus; nothing of rows or of who asked."""

from __future__ import annotations

import math
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from treefocus.explanation.batch import Explanations

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SHARES = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0)
_Labels = tuple[tuple[str, str], ...]


class _Histogram:
    """How many values are at most each bound."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds, self._counts, self._sum = bounds, [0] * (len(bounds) + 1), 0.0

    def add(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value if math.isfinite(value) else 0.0

    def lines(self, name: str, labels: _Labels) -> Iterable[str]:
        total = 0
        for bound, count in zip((*self._bounds, math.inf), self._counts, strict=True):
            total += count
            limit = "+Inf" if bound == math.inf else f"{bound:g}"
            yield f"{name}_bucket{_written((*labels, ('le', limit)))} {total}"
        yield f"{name}_sum{_written(labels)} {self._sum:.6f}"
        yield f"{name}_count{_written(labels)} {total}"


class Metrics:
    """Counted since the start."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[_Labels] = Counter()
        self._seconds: dict[_Labels, _Histogram] = {}
        self._statuses: Counter[str] = Counter()
        self._gaps = _Histogram(_SHARES)
        self._searched = 0.0
        self._gauges: dict[str, tuple[str, Callable[[], float]]] = {}

    def watch(self, name: str, told: str, read: Callable[[], float]) -> None:
        """A number that is read when it is asked for."""
        self._gauges[name] = (told, read)

    def answered(self, method: str, path: str, status: int, seconds: float) -> None:
        """A call that was answered; `path` is the route, without what callers wrote into it."""
        with self._lock:
            self._requests[("method", method), ("path", path), ("status", str(status))] += 1
            self._seconds.setdefault((("path", path),), _Histogram(_SECONDS)).add(seconds)

    def explained(self, found: Explanations) -> None:
        """Rows that got their answers."""
        with self._lock:
            self._statuses.update(status.name for status in found.status)
            self._searched += found.seconds
            for gap in found.gap[found.has_answer]:
                if math.isfinite(gap):
                    self._gaps.add(float(gap))

    def to_text(self) -> str:
        """All of it."""
        lines: list[str] = []

        def family(name: str, kind: str, told: str, own: Iterable[str]) -> None:
            lines.extend([f"# HELP {name} {told}", f"# TYPE {name} {kind}", *own])

        with self._lock:
            requests = (f"treefocus_requests_total{_written(key)} {n}" for key, n in sorted(self._requests.items()))
            family("treefocus_requests_total", "counter", "Calls, by method, route and status.", requests)
            name = "treefocus_request_seconds"
            family(name, "histogram", "How long calls took, by route.",
                   (line for key, own in sorted(self._seconds.items()) for line in own.lines(name, key)))  # fmt: skip
            rows = [f"treefocus_rows_total {sum(self._statuses.values())}"]
            family("treefocus_rows_total", "counter", "Rows that were explained.", rows)
            family("treefocus_answers_total", "counter", "Rows that were explained, by what is known of the answer.",
                   (f"treefocus_answers_total{_written((('status', one),))} {n}" for one, n in sorted(self._statuses.items())))  # fmt: skip  # noqa: E501
            searched = [f"treefocus_search_seconds_total {self._searched:.6f}"]
            family("treefocus_search_seconds_total", "counter", "Seconds spent in searches.", searched)
            told = "What could be left to save of an answer's distance, as a share."
            family("treefocus_answer_gap", "histogram", told, self._gaps.lines("treefocus_answer_gap", ()))
        for name, (told, read) in self._gauges.items():
            family(name, "gauge", told, [f"{name} {read():g}"])
        return "\n".join(lines) + "\n"


def _written(labels: Iterable[tuple[str, str]]) -> str:
    own = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{own}}}" if own else ""


def _escaped(value: Any) -> str:
    return str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
