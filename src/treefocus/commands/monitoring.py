"""What a run without a terminal says: a line every 30 seconds, a file of metrics, a span where somebody traces."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treefocus.commands.showing import console_of, rate_bar
from treefocus.errors import reject

if TYPE_CHECKING:
    from treefocus.scale.progress import Report
    from treefocus.scale.work import Advance

FORMATS = ("text", "json")
_METRICS = (  # of Prometheus' text format: name, kind, meaning
    ("treefocus_rows_total", "counter", "Rows answered in the folder, by status."),
    ("treefocus_rows_per_second", "gauge", "Rows answered a second by this run."),
    ("treefocus_seconds_left", "gauge", "Seconds until the run is done, at this pace."),
    ("treefocus_run_seconds", "gauge", "Seconds since this run began."),
    ("treefocus_run_complete", "gauge", "1 once every row has its answer."),
    ("treefocus_last_report_timestamp_seconds", "gauge", "When this was written, in seconds of the epoch."),
)


@dataclass(frozen=True)
class Monitor:
    """Where the reports of a run go."""

    log_format: str = "text"
    metrics_file: Path | None = None

    def __post_init__(self) -> None:
        if self.log_format not in FORMATS:
            reject("--log-format", " or ".join(FORMATS), repr(self.log_format))
        if self.metrics_file is not None and not self.metrics_file.parent.is_dir():
            reject("--metrics-file", "a file in a folder that is there", repr(str(self.metrics_file)))

    @contextmanager
    def running(self) -> Iterator[Callable[[Advance], None]]:
        """Who hears of every batch while a run goes on; a bar where somebody watches, else lines."""
        from treefocus.scale import progress

        watch, told_at, last = progress.Stopwatch(), time.monotonic(), None
        is_watched = self.log_format == "text" and console_of(stderr=True).is_terminal
        with rate_bar() as show, _span() as span:

            def hear(advance: Advance) -> None:
                nonlocal told_at, last
                last = advance
                show(advance)
                report = watch.report(advance.rows, advance.rows_now, advance.share, advance.status)
                if time.monotonic() - told_at >= progress.SECONDS:
                    told_at = time.monotonic()
                    self._tell(report, is_watched, span)

            try:
                yield hear
                is_done = True
            except BaseException:
                is_done = False
                raise
            finally:
                if last is not None:
                    report = watch.report(last.rows, last.rows_now, last.share, last.status, is_done)
                    self._tell(report, is_watched, span)

    def _tell(self, report: Report, is_watched: bool, span: Any) -> None:
        if not is_watched:
            line = report.to_json() if self.log_format == "json" else report.to_text()
            print(line, file=sys.stderr, flush=True)
        if self.metrics_file is not None:
            from treefocus.storage.atomic import write_whole

            write_whole(self.metrics_file, metrics_of(report))
        if span is not None:
            counts = {f"treefocus.status.{name}": count for name, count in report.status.items()}
            told = {"treefocus.rows": report.rows, "treefocus.rows_per_second": report.rows_per_second}
            span.add_event("progress", told | counts)


def metrics_of(report: Report) -> str:
    """The report in Prometheus' text format, for its textfile collector."""
    left = "NaN" if report.seconds_left is None else repr(float(report.seconds_left))
    values = {
        "treefocus_rows_per_second": repr(float(report.rows_per_second)),
        "treefocus_seconds_left": "0.0" if report.is_done else left,
        "treefocus_run_seconds": repr(float(report.seconds)),
        "treefocus_run_complete": str(int(report.is_done)),
        "treefocus_last_report_timestamp_seconds": repr(time.time()),
    }
    lines = []
    for name, kind, meaning in _METRICS:
        lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
        if name in values:
            lines.append(f"{name} {values[name]}")
        else:
            lines += [f'{name}{{status="{status}"}} {count}' for status, count in report.status.items()]
    return "\n".join(lines) + "\n"


@contextmanager
def _span() -> Iterator[Any]:
    """A span of OpenTelemetry's where that is installed; it goes wherever the environment sends spans."""
    try:
        from opentelemetry import trace
    except ImportError:
        yield None
        return
    with trace.get_tracer("treefocus").start_as_current_span("treefocus.explain") as span:
        yield span
