"""Files in, parts out: the same bytes whatever the threads, stops and kills; bad rows told, bad files refused."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv, parquet
from typer.testing import CliRunner

from support import streams
from support.streams import NAMES, answers, contents, explained, loan_explainer, loan_rows
from treefocus import Auto, Explainer, InvalidInput, loans
from treefocus.cli import app
from treefocus.scale import files, sources, work
from treefocus.scale import manifest as manifests
from treefocus.scale.batches import explain_batches
from treefocus.scale.files import explain_file
from treefocus.scale.inputs import RowFile
from treefocus.scale.manifest import Manifest
from treefocus.scale.work import Advance
from treefocus.tables.columns import check_columns
from treefocus.tables.files import read_names
from treefocus.tables.text import TextFormat

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
    monkeypatch.setattr(work, "BATCH_ROWS", 50)
    monkeypatch.setattr(work, "DRAFT_SECONDS", draft_seconds)
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
    manifest = Manifest.from_bytes(whole["_manifest.json"])
    manifest.parts, manifest.is_complete = manifest.parts[:2], False
    (tmp_path / "_manifest.json").write_bytes(manifest.to_bytes())
    (tmp_path / "part-00002.parquet").write_bytes(b"not what it should be")
    (tmp_path / "part-00003.parquet.tmp").write_bytes(b"half")
    (tmp_path / "_manifest.json.tmp").write_bytes(b"half")
    (tmp_path / "_draft.arrow").write_bytes(b"half")
    assert explained(explainer, rows, tmp_path, part_rows=120) == whole


KILLED = """
    import sys
    from support.streams import loan_explainer
    from treefocus.scale import files, work
    work.BATCH_ROWS, work.DRAFT_SECONDS = 40, 0.02
    files.explain_file(loan_explainer(), sys.argv[1], sys.argv[2], part_rows=150, n_jobs=2)
"""


@pytest.mark.campaign
def test_killed_at_random_moments_it_ends_in_the_same_bytes(tmp_path: Path) -> None:
    rows = tmp_path / "rows.parquet"
    parquet.write_table(loan_rows(2000), rows)
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
                if moved and n_killed < 3:
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
    assert sum(Manifest.from_bytes(expected["_manifest.json"]).counts().values()) == 300
    monkeypatch.setattr(work, "BATCH_ROWS", 32)

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
    """Bytes of any kind behind a good header are bad rows; as UTF-8 they are refused with their line."""
    rng = np.random.default_rng(0)
    path = tmp_path / "rows.csv"
    for number in range(20):
        path.write_bytes(",".join(NAMES).encode() + b"\n" + rng.integers(0, 256, 3000, np.uint8).tobytes())
        folder = tmp_path / f"out{number}"
        explain_file(explainer, path, folder, text=TextFormat("latin-1"))
        assert set(answers(folder)["status"].to_pylist()) <= {"INVALID", "OPTIMAL", "BOUNDED"}
        with pytest.raises(InvalidInput, match=r"rows.csv, line \d+: the byte 0x.. after .* is not utf-8"):
            explain_file(explainer, path, tmp_path / f"strict{number}")


def written(path: Path, rows: list[list[str]]) -> list[str]:
    """The file's lines, a row each, with their customers in quotes."""
    lines = [",".join(["customer", *NAMES]), *(",".join([f'"{key}"', *cells]) for key, *cells in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return lines


@pytest.fixture
def customers() -> list[list[str]]:
    X, _ = loans.generate(60, seed=5)
    return [[f"customer {i}", *map(str, row)] for i, row in enumerate(np.asarray(X).tolist())]


@pytest.mark.parametrize("closes", ["", '"', 'x"', '"x'])
def test_a_stray_quote_takes_its_own_row_only(
    explainer: Explainer, tmp_path: Path, customers: list[list[str]], closes: str
) -> None:
    """Whatever the next quote of the file does, every other row has its answer."""
    path = tmp_path / "rows.csv"
    lines = written(path, customers)
    explain_file(explainer, path, tmp_path / "whole", keep=["customer"])
    lines[11] = lines[11].replace('"customer 10"', '"customer 10')
    lines[40] = lines[40].replace('"customer 39"', f"customer 39{closes}")
    for k in (*range(12, 40), *range(41, 61)):
        lines[k] = lines[k].replace('"', "")
    path.write_text("\n".join(lines), encoding="utf-8")
    manifest = explain_file(explainer, path, tmp_path / "out", keep=["customer"], part_rows=25)
    found, expected = answers(tmp_path / "out").to_pylist(), answers(tmp_path / "whole").to_pylist()
    assert sum(manifest.counts().values()) == 60
    assert found[10]["status"] == "INVALID"
    assert found[10]["reason"].startswith("line 12: a quote opens here")
    assert all(found[i] == expected[i] for i in range(60) if i not in (10, 39))


def test_keys_are_what_the_file_says_or_the_file_is_refused(
    explainer: Explainer, tmp_path: Path, customers: list[list[str]]
) -> None:
    path = tmp_path / "rows.csv"
    customers[7][0] = "Müller"
    path.write_bytes("\n".join(written(path, customers)).encode("latin-1"))
    with pytest.raises(InvalidInput, match=r"line 9: the byte 0xfc after '\"M' is not utf-8; say which encoding"):
        explain_file(explainer, path, tmp_path / "strict", keep=["customer"])
    explain_file(explainer, path, tmp_path / "out", keep=["customer"], text=TextFormat("latin-1"))
    assert answers(tmp_path / "out")["customer"][7].as_py() == "Müller"


def test_marks_other_than_the_usual_ones(explainer: Explainer, tmp_path: Path, customers: list[list[str]]) -> None:
    path, other = tmp_path / "rows.csv", tmp_path / "other.csv"
    written(path, customers)
    other.write_text(path.read_text().replace(",", ";").replace(".", ","))
    explain_file(explainer, path, tmp_path / "out")
    explain_file(explainer, other, tmp_path / "other", text=TextFormat(delimiter=";", decimal=","))
    assert answers(tmp_path / "other").equals(answers(tmp_path / "out"))
    explain_file(explainer, other, tmp_path / "wrong", text=TextFormat(delimiter=";"))
    assert "is not a number" in answers(tmp_path / "wrong")["reason"][0].as_py()


@pytest.mark.parametrize(("mark", "typed"), [(";", None), (";", ";"), ("\t", "tab"), ("\t", "\\t"), ("|", "|")])
def test_training_rows_may_be_written_in_the_usual_way(
    explainer: Explainer, tmp_path: Path, customers: list[list[str]], command: list[str], mark: str, typed: str | None
) -> None:
    written(tmp_path / "rows.csv", customers)
    other = (tmp_path / "rows.csv").read_text().replace(",", mark).replace(".", ",")
    (tmp_path / "rows.csv").write_text(other)
    command[2] = str(tmp_path / "rows.csv")
    shape = [*([] if typed is None else ["--delimiter", typed]), "--decimal", ","]
    for name in ("usual", "alike"):
        result = CliRunner().invoke(app, [*command, *shape, "-o", str(tmp_path / name)])
        assert result.exit_code == 0, result.output
        train = tmp_path / "train.csv"
        train.write_text(train.read_text().replace(",", mark).replace(".", ","))
    assert answers(tmp_path / "usual").equals(answers(tmp_path / "alike"))


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ({"encoding": "utf-16"}, "encoding must be one that writes digits and line ends as ASCII does"),
        ({"encoding": "no such"}, "encoding must be one"),
        ({"delimiter": ";;"}, "delimiter must be one character"),
        ({"delimiter": '"'}, "delimiter must be one character"),
        ({"decimal": "'"}, r"decimal must be '.' or ','"),
        ({"delimiter": ",", "decimal": ","}, "delimiter must be another character than decimal"),
    ],
)
def test_a_form_that_no_file_has_is_refused(form: dict[str, str], text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        TextFormat(**form)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda data: data.replace(b",", b";"), "its names stand with ';' between them: say the delimiter ';'"),
        (lambda data: data.replace(b",", b"\t"), r"its names stand with '\\t' between them"),
        (lambda data: data.decode().encode("utf-16"), "is written in UTF-16"),
        (lambda data: data.decode().encode("utf-16-be"), "holds bytes of 0"),
        (lambda data: data.replace(b"\n", b"\r"), "carriage returns alone end its lines"),
    ],
)
def test_files_of_another_kind_are_refused_by_what_they_are(
    explainer: Explainer,
    tmp_path: Path,
    customers: list[list[str]],
    change: Callable[[bytes], bytes],
    told: str,
) -> None:
    path = tmp_path / "rows.csv"
    written(path, customers)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(InvalidInput, match=told):
        explain_file(explainer, path, tmp_path / "out")
    with pytest.raises(InvalidInput, match=told):
        check_columns(str(path), read_names(path), NAMES, may_have_others=True)


CELLS = st.one_of(
    st.floats().map(repr), st.integers().map(str),
    st.sampled_from(["", " ", "  7 ", "+4", "5.", ".5", "-nan", "1e400"]),
    st.text(st.sampled_from("0123456789.eE+-_ xinfaN()\t\u00a0\u0663"), max_size=6),
)  # fmt: skip


KEYS = st.text(st.characters(exclude_characters='"\n\r,', codec="utf-8"))
QUOTED = st.one_of(CELLS, CELLS.map('"{}"'.format), st.sampled_from(['""', '"', '"7"8', '7"', '"7""8"', '"7', '7"8"']))


@given(st.lists(st.tuples(QUOTED, CELLS, st.one_of(KEYS, KEYS.map('"{},"'.format)))))
def test_lines_are_read_alike_one_by_one_and_at_once(
    tmp_path_factory: pytest.TempPathFactory, cells: list[tuple[str, str, str]]
) -> None:
    """Which of the two ways a line is read depends on the lines beside it, and must not show."""
    path = tmp_path_factory.mktemp("lines") / "rows.csv"
    path.write_bytes(("\n".join(["a,b,key", *map(",".join, cells)]) + "\n").encode())
    source = sources.TextSource(RowFile(str(path), str(path)), ["a", "b", "key"], ["a", "b"], ["key"], [])

    def read(n_rows: int) -> tuple[pa.Table, list[str]]:
        found = [rows for rows, _ in source.read(sources.Place(), lambda row: n_rows)]
        told = [reason for rows in found for _, reason in sorted(rows.reasons.items())]
        return pa.Table.from_batches([rows.batch for rows in found], source.schema).combine_chunks(), told

    alone, together = read(1), read(1000)
    source._of_plain = lambda lines, place: None  # type: ignore[method-assign]
    by_hand = read(1000)
    assert len(by_hand[0]) == len(cells)  # a quote takes no other line
    for found in (alone, together):
        assert found[1] == by_hand[1]
        for name in ("a", "b"):
            np.testing.assert_array_equal(found[0][name].to_numpy(), by_hand[0][name].to_numpy())
        assert found[0]["key"].to_pylist() == by_hand[0]["key"].to_pylist()


def test_a_file_that_changes_under_the_run_is_noticed(
    explainer: Explainer, tmp_path: Path, customers: list[list[str]]
) -> None:
    path = tmp_path / "rows.csv"
    lines = written(path, customers)

    def grow(_: Advance) -> None:
        (tmp_path / "new").write_text("\n".join([*lines[:30], lines[1], *lines[30:]]) + "\n")
        (tmp_path / "new").replace(path)

    explain_file(explainer, path, tmp_path / "whole")
    with pytest.raises(InvalidInput, match=r"has 62 lines, of which 1 are no rows, but 60 rows were answered"):
        explain_file(explainer, path, tmp_path / "out", progress=grow, n_jobs=1)
    assert not list((tmp_path / "out").glob("part-*"))


def test_empty_lines_and_lines_inside_cells_are_counted(explainer: Explainer, tmp_path: Path) -> None:
    X, _ = loans.generate(3, seed=1)
    rows = [",".join(map(str, row)) for row in np.asarray(X).tolist()]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["", ",".join([*NAMES, "key"]), "", f'{rows[0]},"a\nb\n"', "", f"{rows[1]},c", "", ""]))
    manifest = explain_file(explainer, path, tmp_path / "out", keep=["key"])
    assert answers(tmp_path / "out")["key"].to_pylist() == ["a\nb\n", "c"]
    assert manifest.counts() == {"OPTIMAL": 2}
    path.write_text(",".join(NAMES))
    assert explain_file(explainer, path, tmp_path / "none").counts() == {}


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ((), 3, "2 of 60 rows are INVALID, more than --max-invalid 1% allows. The first:\n  row 3: line 5, column"),
        (("--max-invalid", "5%"), 0, ""),
        (("--max-invalid", "2"), 0, ""),
        (("--max-invalid", "1"), 3, "2 of 60 rows are INVALID, more than --max-invalid 1 allows"),
        (("--max-invalid", "0.5"), 2, "--max-invalid must be a share from 0% to 100%, or a whole number of rows"),
        (("--encoding", "utf-16"), 2, "encoding must be one that writes digits"),
        (("--decimal", ",", "--delimiter", ","), 2, "delimiter must be another character than decimal"),
    ],
)
def test_too_many_bad_rows_are_not_an_end_like_another(
    explainer: Explainer, tmp_path: Path, customers: list[list[str]], arguments: tuple[str, ...], code: int, told: str
) -> None:
    customers[3][1], customers[50][2] = "elderly", "3_012000"
    data, train, model = tmp_path / "rows.csv", tmp_path / "train.csv", tmp_path / "model.json"
    written(data, customers)
    train.write_text(loans.to_csv(*loans.generate(50, seed=1)))
    explainer.forest.save(model)
    command = ["explain", str(model), str(data), "--train", str(train), "--ignore", "decision", "--ignore", "customer"]
    result = CliRunner().invoke(app, [*command, "-o", str(tmp_path / "out"), *arguments])
    assert result.exit_code == code, result.output
    assert told in result.output
    if code == 3:
        assert len(answers(tmp_path / "out")) == 60  # nothing is lost


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
        (loan_explainer(distance="euclidean"), rows, {"part_rows": 120}, "question"),
    ):
        with pytest.raises(InvalidInput, match=f"another question.*{word}"):
            explain_file(asked, path, tmp_path, **options)
    assert contents(tmp_path) == before


def test_a_limit_that_gives_way_is_another_question_than_one_that_does_not(
    explainer: Explainer, rows: Path, tmp_path: Path
) -> None:
    """Auto() has a second where nobody says more; Auto(time_limit=1.0) has one whatever is said."""
    explain_file(explainer, rows, tmp_path, part_rows=N_ROWS, strategy=Auto(node_limit=5), time_limit=9.0)
    strict = Auto(time_limit=1.0, node_limit=5)
    with pytest.raises(InvalidInput, match=r"another question \(other: strategy\)"):
        explain_file(explainer, rows, tmp_path, part_rows=N_ROWS, strategy=strict, time_limit=9.0)


def test_a_folder_of_something_else_is_refused(explainer: Explainer, rows: Path, tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("Dear")
    with pytest.raises(InvalidInput, match=r"not empty .* letters.txt"):
        explain_file(explainer, rows, tmp_path)
    (tmp_path / "letters.txt").unlink()
    (tmp_path / "_manifest.json").write_text("[]")
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
    record = json.loads((tmp_path / "out" / "_manifest.json").read_text())
    assert record["complete"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
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
