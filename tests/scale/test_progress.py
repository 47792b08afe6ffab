"""What is said of a long run: lines, JSON, metrics, spans; a cluster's rows while they come."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from support.streams import loan_explainer, loan_rows
from treefocus import InvalidInput, loans
from treefocus.cli import STORAGE, app
from treefocus.commands.monitoring import Monitor, metrics_of
from treefocus.scale.progress import Report, Stopwatch, clock, watched


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_time_left_is_of_this_run_alone() -> None:
    """Half was done by an earlier run: what this one has done since its first word says how fast it is."""
    hand = Clock()
    watch = Stopwatch(hand)
    hand.now = 10.0
    assert watch.report(500, 0, 0.5).seconds_left is None
    hand.now = 30.0
    report = watch.report(700, 200, 0.7, {"OPTIMAL": 690, "INVALID": 10})
    assert report.seconds_left == pytest.approx(30.0)
    assert report.rows_per_second == pytest.approx(200 / 30)
    assert report.to_text() == "700 rows, 7 rows/s, 0:30 left (690 OPTIMAL, 10 INVALID)"
    assert json.loads(report.to_json())["status"] == {"OPTIMAL": 690, "INVALID": 10}
    assert watch.report(700, 200, None).to_text() == "700 rows, 7 rows/s"
    assert clock(3723) == "1:02:03"


def test_metrics_are_what_prometheus_reads() -> None:
    report = Report(7, 2.5, 3.0, None, {"OPTIMAL": 5, "INVALID": 2})
    text = metrics_of(report)
    assert 'treefocus_rows_total{status="INVALID"} 2\n' in text
    assert "treefocus_run_complete 0\n" in text
    form = re.compile(r'(# (HELP|TYPE) [a-z_]+ .+|[a-z_]+(\{status="[A-Z_]+"\})? (NaN|[0-9.e+-]+))')
    assert all(form.fullmatch(line) for line in text.splitlines())


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="--log-format must be text or json, got 'xml'"):
        Monitor("xml")
    with pytest.raises(InvalidInput, match="--metrics-file must be a file in a folder that is there"):
        Monitor("text", tmp_path / "nowhere" / "m.prom")


def test_a_cluster_is_watched() -> None:
    class Done:
        value = 40

    told: list[str] = []
    with watched(Done(), 80, say=told.append):
        pass
    assert len(told) == 1
    assert told[0].startswith("40 rows, ")


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    loan_explainer().forest.save(tmp_path / "model.json")
    (tmp_path / "train.csv").write_text(loans.to_csv(*loans.generate(200, seed=3)))
    parquet.write_table(loan_rows(40, n_bad=0), tmp_path / "rows.parquet")
    files = [str(tmp_path / "model.json"), str(tmp_path / "rows.parquet"), "--train", str(tmp_path / "train.csv")]
    return ["explain", *files, "--ignore", "decision", "--keep", "customer"]


def test_the_command_without_a_terminal(command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treefocus.scale.progress.SECONDS", 0.0)
    options = ["--log-format", "json", "--metrics-file", str(tmp_path / "m.prom"), "-o", str(tmp_path / "out")]
    result = CliRunner().invoke(app, [*command, *options])
    assert result.exit_code == 0, result.output
    lines = [json.loads(line) for line in result.stderr.splitlines() if line.startswith("{")]
    assert lines[-1]["rows"] == 40
    assert lines[-1]["is_done"]
    assert not lines[0]["is_done"]
    assert "treefocus_run_complete 1\n" in (tmp_path / "m.prom").read_text()


def test_spans_where_somebody_traces(command: list[str], tmp_path: Path) -> None:
    trace = pytest.importorskip("opentelemetry.sdk.trace", reason="an optional package")
    from opentelemetry import trace as api
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    provider = api.get_tracer_provider()
    if not isinstance(provider, trace.TracerProvider):
        provider = trace.TracerProvider()
        api.set_tracer_provider(provider)
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    assert CliRunner().invoke(app, [*command, "-o", str(tmp_path / "out")]).exit_code == 0
    spans = [span for span in exporter.get_finished_spans() if span.name == "treefocus.explain"]
    assert [event.attributes["treefocus.rows"] for span in spans for event in span.events][-1] == 40


def test_a_folder_that_cannot_be_written_has_its_own_code(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(app, [*command, "-o", str(tmp_path / "file" / "out")])
    assert result.exit_code == STORAGE, result.output
    assert "cannot be written" in result.stderr


def test_shards_and_certificates_at_the_command_line(command: list[str], tmp_path: Path) -> None:
    for number in (1, 2):
        shard = ["--shard", f"{number}/2", "--part-rows", "15", "-o", str(tmp_path / f"s{number}")]
        proofs = ["--certificates", str(tmp_path / f"s{number}" / "_certificates"), "--proof"]
        result = CliRunner().invoke(app, [*command, *shard, *proofs])
        assert result.exit_code == 0, result.output
    shards = [str(tmp_path / "s1"), str(tmp_path / "s2")]
    assert CliRunner().invoke(app, ["merge", *shards, "-o", str(tmp_path / "all")]).exit_code == 0
    checked = CliRunner().invoke(app, ["verify", str(tmp_path / "all"), str(tmp_path / "model.json"), "--sample", "9"])
    assert checked.exit_code == 0, checked.output
    record = json.loads((tmp_path / "all" / "_manifest.json").read_text())
    assert record["run"]["options"]["train"].endswith("train.csv")
    assert record["run"]["options"]["scale"] == "range"
    refused = CliRunner().invoke(app, [*command[:3], "--shard", "1/2"])
    assert refused.exit_code == 2
    assert "are for answers in a folder" in refused.stderr
