"""Files in, parts out: the same bytes whatever the threads, stops and kills; bad rows told, bad files refused."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from typer.testing import CliRunner

from support import streams
from support.streams import NAMES, answers, contents, explained, loan_explainer, loan_rows
from treefocus import Explainer, InvalidInput, loans
from treefocus.cli import app
from treefocus.scale import files, sources
from treefocus.scale import manifest as manifests
from treefocus.scale.batches import explain_batches
from treefocus.scale.files import Advance, explain_file
from treefocus.scale.manifest import Manifest

N_ROWS = 500


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    return loan_explainer()


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    parquet.write_table(loan_rows(N_ROWS), path, row_group_size=130)
    return path


@pytest.fixture(scope="module")
def whole(explainer: Explainer, rows: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The folder that a run without trouble ends in."""
    return explained(explainer, rows, tmp_path_factory.mktemp("whole") / "out", part_rows=120, n_jobs=1)


def test_the_parts_hold_the_answers_in_order(explainer: Explainer, rows: Path, tmp_path: Path) -> None:
    manifest = explain_file(explainer, rows, tmp_path, keep=["customer"], part_rows=120)
    expected = pa.Table.from_batches(
        list(explain_batches(explainer, parquet.read_table(rows).to_batches(), keep=["customer"]))
    )
    assert answers(tmp_path).equals(expected)
    assert [part.rows for part in manifest.parts] == [120, 120, 120, 120, 20]
    assert sum(manifest.counts().values()) == N_ROWS
    assert manifest.counts()["INVALID"] == expected["status"].to_pylist().count("INVALID") > 0
    assert manifest.is_complete


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_threads_change_no_byte(
    explainer: Explainer, rows: Path, whole: dict[str, bytes], n_jobs: int, tmp_path: Path
) -> None:
    assert explained(explainer, rows, tmp_path, part_rows=120, n_jobs=n_jobs) == whole


@pytest.mark.parametrize("part_rows", [1, 77, 10_000])
def test_the_size_of_parts_changes_no_answer(
    explainer: Explainer, rows: Path, whole: dict[str, bytes], part_rows: int, tmp_path: Path
) -> None:
    few = rows if part_rows > 1 else tmp_path / "few.parquet"
    if part_rows == 1:
        parquet.write_table(parquet.read_table(rows).slice(0, 9), few)
    explain_file(explainer, few, tmp_path / "out", part_rows=part_rows)
    expected = pa.concat_tables(
        [parquet.read_table(pa.BufferReader(data)) for name, data in whole.items() if name.startswith("part")]
    )
    found = answers(tmp_path / "out")
    assert found.equals(expected.slice(0, len(found)))
    assert len(list((tmp_path / "out").glob("part-*"))) == -(-len(found) // part_rows)


class Interrupted(Exception):  # noqa: N818
    """Stands for Ctrl-C."""


@pytest.mark.parametrize("draft_seconds", [0.0, 1e9])
def test_stopped_after_any_batch_it_goes_on_to_the_same_bytes(
    explainer: Explainer, rows: Path, whole: dict[str, bytes], tmp_path: Path, monkeypatch, draft_seconds: float
) -> None:
    monkeypatch.setattr(files, "BATCH_ROWS", 50)
    monkeypatch.setattr(files, "DRAFT_SECONDS", draft_seconds)
    done: list[Advance] = []

    def stop_after_one(advance: Advance) -> None:
        done.append(advance)
        raise Interrupted

    for _ in range(100):
        try:
            explain_file(explainer, rows, tmp_path, part_rows=120, progress=stop_after_one)
        except Interrupted:
            continue
        break
    assert contents(tmp_path) == whole
    counted = [advance.rows for advance in done]
    assert counted == sorted(set(counted))  # no row twice: what a stop had answered was kept
    assert counted[-1] == N_ROWS
    assert all(advance.rows_now <= 50 for advance in done)


@pytest.mark.parametrize("is_saved", [False, True], ids=["before", "after"])
def test_stopped_while_the_manifest_is_told_of_a_part_no_row_comes_twice(
    explainer: Explainer, rows: Path, whole: dict[str, bytes], tmp_path: Path, monkeypatch, is_saved: bool
) -> None:
    save, parts = manifests.save, []

    def stopped(told: Manifest, folder: Path) -> None:
        is_first = not parts
        parts.append(len(told.parts))
        if is_saved or not is_first:
            save(told, folder)
        if is_first:
            raise KeyboardInterrupt

    monkeypatch.setattr(manifests, "save", stopped)
    with pytest.raises(KeyboardInterrupt):
        explain_file(explainer, rows, tmp_path, part_rows=120)
    assert explained(explainer, rows, tmp_path, part_rows=120) == whole
    assert parts[:2] == [1, 1]  # the part that was written is kept


def test_a_finished_folder_is_left_alone(
    explainer: Explainer, rows: Path, whole: dict[str, bytes], tmp_path: Path, monkeypatch
) -> None:
    explained(explainer, rows, tmp_path, part_rows=120)
    monkeypatch.setattr(Explainer, "explain", None)
    assert explained(explainer, rows, tmp_path, part_rows=120) == whole


def test_leftovers_of_a_kill_are_cleared(
    explainer: Explainer, rows: Path, whole: dict[str, bytes], tmp_path: Path
) -> None:
    explained(explainer, rows, tmp_path, part_rows=120)
    manifest = Manifest.from_bytes(whole["manifest.json"])
    manifest.parts, manifest.is_complete = manifest.parts[:2], False
    (tmp_path / "manifest.json").write_bytes(manifest.to_bytes())
    (tmp_path / "part-00002.parquet").write_bytes(b"not what it should be")
    (tmp_path / "part-00003.parquet.tmp").write_bytes(b"half")
    (tmp_path / "manifest.json.tmp").write_bytes(b"half")
    (tmp_path / "draft.arrow").write_bytes(b"half")
    assert explained(explainer, rows, tmp_path, part_rows=120) == whole


KILLED = """
    import sys
    from support.streams import loan_explainer
    from treefocus.scale import files, sources
    files.BATCH_ROWS, files.DRAFT_SECONDS = 40, 0.02
    files.explain_file(loan_explainer(), sys.argv[1], sys.argv[2], part_rows=150, n_jobs=2)
"""


def test_killed_at_random_moments_it_ends_in_the_same_bytes(tmp_path: Path) -> None:
    rows = tmp_path / "rows.parquet"
    parquet.write_table(loan_rows(4000), rows)
    program = tmp_path / "program.py"
    program.write_text("\n".join(line[4:] for line in KILLED.splitlines()))
    command = [sys.executable, program, rows, tmp_path / "out"]
    environment = {
        **__import__("os").environ,
        "PYTHONPATH": f"{Path(streams.__file__).parents[1]}:" + ":".join(sys.path),
    }
    rng, n_killed = random.Random(5), 0
    for _ in range(60):
        process = subprocess.Popen(command, env=environment)
        try:
            until = rng.choice([None, None, rng.uniform(0.0, 0.4)])
            n_parts = len(list((tmp_path / "out").glob("part-*")))
            while process.poll() is None:  # let it do something, then kill it
                moved = len(list((tmp_path / "out").glob("part-*"))) > n_parts
                if moved and n_killed < 5:
                    time.sleep(until or 0.0)
                    process.send_signal(signal.SIGKILL)
                    n_killed += 1
                    break
                time.sleep(0.002)
        finally:
            code = process.wait(timeout=60)
        if code == 0:
            break
    assert code == 0
    assert n_killed > 0
    assert contents(tmp_path / "out") == explained(loan_explainer(), rows, tmp_path / "whole", part_rows=150)


# --- text


def test_text_gives_the_answers_of_parquet(explainer: Explainer, rows: Path, tmp_path: Path) -> None:
    table = parquet.read_table(rows)
    for suffix, mark in ((".csv", ","), (".tsv", "\t")):
        path = tmp_path / f"rows{suffix}"
        csv.write_csv(table, path, csv.WriteOptions(delimiter=mark))
        explain_file(explainer, path, tmp_path / suffix[1:], keep=["customer"], part_rows=120)
        found = answers(tmp_path / suffix[1:])
        assert found["customer"].to_pylist() == list(map(str, table["customer"].to_pylist()))
        explain_file(explainer, rows, tmp_path / f"{suffix}.whole", part_rows=120)
        expected = answers(tmp_path / f"{suffix}.whole")
        assert found.drop_columns(["customer"]).equals(expected)


def test_stopped_text_goes_on_to_the_same_bytes(explainer: Explainer, rows: Path, tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "rows.csv"
    lines = loans.to_csv(*loans.generate(300, seed=2)).replace("\n", "\r\n").splitlines(keepends=True)
    path.write_bytes(
        (
            "\ufeff"
            + lines[0].rstrip()
            + ',"a\r\nb"\r\n'
            + "".join(line.rstrip() + ',"x,\ny"\r\n' for line in lines[1:])
        ).encode()
    )
    expected = explained(explainer, path, tmp_path / "whole", part_rows=70)
    assert sum(Manifest.from_bytes(expected["manifest.json"]).counts().values()) == 300
    monkeypatch.setattr(files, "BATCH_ROWS", 32)

    def stop(_: Advance) -> None:
        raise Interrupted

    for _ in range(50):
        try:
            explain_file(explainer, path, tmp_path / "out", part_rows=70, progress=stop)
        except Interrupted:
            continue
        break
    assert contents(tmp_path / "out") == expected


def test_a_bad_row_has_a_status_and_a_reason(explainer: Explainer, tmp_path: Path) -> None:
    X, _ = loans.generate(6, seed=1)
    lines = [",".join(NAMES), *(",".join(map(str, row)) for row in np.asarray(X).tolist())]
    lines[2] = lines[2].replace(lines[2].split(",")[0], "elderly", 1)
    lines[3] += ",1,2"
    lines[4] = lines[4].rpartition(",")[0]
    lines[5] = "," + lines[5].partition(",")[2]
    lines.insert(3, "")
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(lines))
    explain_file(explainer, path, tmp_path / "out")
    found = answers(tmp_path / "out")
    assert found["status"].to_pylist() == ["OPTIMAL", *["INVALID"] * 4, "OPTIMAL"]
    width = len(NAMES)
    assert found["reason"].to_pylist()[1:5] == [
        f"line 3, column {NAMES[0]!r}: 'elderly' is not a number",
        f"line 5: {width} cells were expected, {width + 2} came",
        f"line 6: {width} cells were expected, {width - 1} came",
        f"the model cannot read {NAMES[0]} = nan",
    ]
    assert found["distance"].to_pylist()[1] is None
    assert found["changes"].to_pylist()[1] is None


def test_text_that_is_no_text(explainer: Explainer, tmp_path: Path) -> None:
    """Bytes of any kind behind a good header are bad rows, never an exception."""
    rng = np.random.default_rng(0)
    path = tmp_path / "rows.csv"
    for _ in range(20):
        path.write_bytes(",".join(NAMES).encode() + b"\n" + rng.integers(0, 256, 3000, np.uint8).tobytes())
        folder = tmp_path / f"out{_}"
        explain_file(explainer, path, folder)
        assert set(answers(folder)["status"].to_pylist()) <= {"INVALID", "OPTIMAL", "BOUNDED"}


# --- what is refused


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("rows.parquet", b"", "cannot be read as a table"),
        ("rows.parquet", b"PAR1 and then nothing", "cannot be read as a table"),
        ("rows.csv", b"", "is empty"),
        ("rows.csv", b"a,b\n1,2\n", "lacks the columns"),
        ("rows.csv", ",".join([*NAMES, NAMES[0]]).encode() + b"\n", "more than once"),
        ("rows.xlsx", b"", "whose name ends in"),
    ],
)
def test_a_bad_file_is_refused_before_any_work(
    explainer: Explainer, tmp_path: Path, name: str, content: bytes, text: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidInput, match=text):
        explain_file(explainer, tmp_path / name, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_cut_off_parquet_file_is_refused(explainer: Explainer, rows: Path, tmp_path: Path) -> None:
    data = rows.read_bytes()
    for keep in (0.3, 0.9, 0.999):
        (tmp_path / "cut.parquet").write_bytes(data[: int(len(data) * keep)])
        with pytest.raises(InvalidInput, match="cannot be read as a table"):
            explain_file(explainer, tmp_path / "cut.parquet", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_column_of_words_is_refused(explainer: Explainer, rows: Path, tmp_path: Path) -> None:
    table = parquet.read_table(rows)
    parquet.write_table(table.set_column(1, NAMES[0], pa.array(["x"] * N_ROWS)), tmp_path / "rows.parquet")
    with pytest.raises(InvalidInput, match="of numbers, got string"):
        explain_file(explainer, tmp_path / "rows.parquet", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_parquet_file_that_breaks_on_the_way_keeps_what_was_done(
    explainer: Explainer, rows: Path, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(sources, "_BLOCK_ROWS", 50)
    data = bytearray(rows.read_bytes())
    metadata = parquet.ParquetFile(rows).metadata
    page = metadata.row_group(3).column(1).data_page_offset
    data[page : page + 40] = b"\xff" * 40
    (tmp_path / "rows.parquet").write_bytes(data)
    with pytest.raises(InvalidInput, match="cannot be read beyond row"):
        explain_file(explainer, tmp_path / "rows.parquet", tmp_path / "out", part_rows=100, n_jobs=1)
    assert (tmp_path / "out" / "part-00000.parquet").is_file()


def test_a_folder_with_other_answers_is_refused(explainer: Explainer, rows: Path, tmp_path: Path) -> None:
    explain_file(explainer, rows, tmp_path, part_rows=120)
    before = contents(tmp_path)
    other = tmp_path.parent / "other.parquet"
    parquet.write_table(loan_rows(N_ROWS, seed=8), other)
    for asked, path, options, word in (
        (explainer, rows, {"part_rows": 121}, "part_rows"),
        (explainer, rows, {"part_rows": 120, "target": "approved"}, "target"),
        (explainer, other, {"part_rows": 120}, "input"),
        (loan_explainer(distance="manhattan"), rows, {"part_rows": 120}, "question"),
    ):
        with pytest.raises(InvalidInput, match=f"another question.*{word}"):
            explain_file(asked, path, tmp_path, **options)
    assert contents(tmp_path) == before


def test_a_folder_of_something_else_is_refused(explainer: Explainer, rows: Path, tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("Dear")
    with pytest.raises(InvalidInput, match=r"not empty .* letters.txt"):
        explain_file(explainer, rows, tmp_path)
    (tmp_path / "letters.txt").unlink()
    (tmp_path / "manifest.json").write_text("[]")
    with pytest.raises(InvalidInput, match="not a manifest"):
        explain_file(explainer, rows, tmp_path)


def test_a_lost_part_is_noticed(explainer: Explainer, rows: Path, tmp_path: Path) -> None:
    explain_file(explainer, rows, tmp_path, part_rows=120)
    (tmp_path / "part-00001.parquet").unlink()
    with pytest.raises(InvalidInput, match="lacks part-00001"):
        explain_file(explainer, rows, tmp_path, part_rows=120)


@pytest.mark.skipif(sys.platform == "win32", reason="a folder cannot be locked there")
def test_two_runs_do_not_share_a_folder(explainer: Explainer, rows: Path, tmp_path: Path) -> None:
    def again(_: Advance) -> None:
        explain_file(explainer, rows, tmp_path, part_rows=120)

    with pytest.raises(InvalidInput, match="Another run"):
        explain_file(explainer, rows, tmp_path, part_rows=120, progress=again)


def test_a_file_without_rows(explainer: Explainer, tmp_path: Path) -> None:
    parquet.write_table(loan_rows(5).slice(0, 0), tmp_path / "rows.parquet")
    manifest = explain_file(explainer, tmp_path / "rows.parquet", tmp_path / "out")
    assert manifest.is_complete
    assert len(answers(tmp_path / "out")) == 0


# --- the command


@pytest.fixture
def command(explainer: Explainer, rows: Path, tmp_path: Path) -> list[str]:
    explainer.forest.save(tmp_path / "model.json")
    X, y = loans.generate(600, seed=3)
    (tmp_path / "train.csv").write_text(loans.to_csv(X, y))
    train = ["--train", str(tmp_path / "train.csv"), "--ignore", "decision"]
    return ["explain", str(tmp_path / "model.json"), str(rows), *train]


def test_the_command_writes_a_folder(command: list[str], tmp_path: Path) -> None:
    for name in ("out", "out.d/"):
        result = CliRunner().invoke(app, [*command, "--keep", "customer", "-o", str(tmp_path) + f"/{name}"])
        assert result.exit_code == 0, result.output
        assert f"{N_ROWS} rows: " in result.stdout
        assert "in 1 part." in result.stdout
        assert len(answers(tmp_path / name)) == N_ROWS
    again = CliRunner().invoke(app, [*command, "--keep", "customer", "-o", str(tmp_path / "out")])
    assert again.exit_code == 0
    record = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert record["complete"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ([], "--keep customer"),
        (["--keep", "nobody", "--ignore", "customer"], "lacks the columns nobody"),
        (["--keep", "customer", "--target", "rich"], "--target"),
    ],
)
def test_the_command_says_what_is_wrong(command: list[str], tmp_path: Path, options: list[str], text: str) -> None:
    result = CliRunner().invoke(app, [*command, *options, "-o", str(tmp_path / "out")])
    assert result.exit_code == 2
    assert text in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_folder_needs_training_rows_or_no_scale(command: list[str], tmp_path: Path) -> None:
    bare = [*command[:3], "--keep", "customer", "-o", str(tmp_path / "out")]
    assert "--train" in CliRunner().invoke(app, bare).stderr
    result = CliRunner().invoke(app, [*bare, "--scale", "none"])
    assert "lacks the columns" not in result.stderr


def test_ctrl_c_keeps_what_is_done(command: list[str], tmp_path: Path, monkeypatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "explain_file", stopped)
    result = CliRunner().invoke(app, [*command, "--keep", "customer", "-o", str(tmp_path / "out")])
    assert result.exit_code == 130
    assert "goes on from there" in result.stderr
