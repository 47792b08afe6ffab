"""A folder of answers is checked: files by their hashes, answers on the model, proofs by the checker."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from support.streams import loan_explainer, loan_rows
from treefocus import Explainer, InvalidInput
from treefocus.cli import app
from treefocus.scale import manifest as manifests
from treefocus.scale.files import explain_file
from treefocus.scale.manifest import Manifest
from treefocus.scale.merge import merge
from treefocus.scale.verification import verify_folder


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    return loan_explainer()


@pytest.fixture(scope="module")
def original(explainer: Explainer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Answers with proofs."""
    scratch = tmp_path_factory.mktemp("verified")
    parquet.write_table(loan_rows(30), scratch / "rows.parquet")
    options: dict[str, Any] = {"keep": ["customer"], "part_rows": 12, "proof": True}
    explain_file(
        explainer, scratch / "rows.parquet", scratch / "out", certificates=scratch / "out" / "_certificates", **options
    )
    return scratch / "out"


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    shutil.copytree(original, tmp_path / "out")
    return tmp_path / "out"


def test_answers_and_proofs_hold(explainer: Explainer, folder: Path) -> None:
    assert verify_folder(folder).holds
    found = verify_folder(folder, explainer.forest, sample=1000)
    assert found.holds, found.to_text()
    assert "the checker followed" in found.to_text()
    lines = gzip.decompress((folder / "_certificates" / "part-00000.jsonl.gz").read_bytes()).decode().splitlines()
    assert len(lines) == 12
    record = json.loads(next(line for line in lines if line != "null"))
    assert record["columns"] == list(explainer.schema.names)
    assert record["time"] == manifests.load(folder).run["started"]


def zeroed(folder: Path) -> None:
    path = folder / "part-00001.parquet"
    path.write_bytes(bytes(path.stat().st_size))


def lost(folder: Path) -> None:
    (folder / "part-00001.parquet").unlink()


def unfinished(folder: Path) -> None:
    (folder / "_SUCCESS").unlink()


def shortened(folder: Path) -> None:
    """A part that is a good Parquet file of fewer rows, and whose hash was written anew."""
    path = folder / "part-00001.parquet"
    table = parquet.read_table(path)
    parquet.write_table(table.slice(1), path)
    rewrite(folder, path)


def repacked(folder: Path) -> None:
    path = folder / "_certificates" / "part-00000.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-1])


def rewrite(folder: Path, path: Path) -> None:
    """Bring the manifest's hash of a part up to date, as whoever meddles with it would."""
    manifest = manifests.load(folder)
    number = [part.name for part in manifest.parts].index(path.name)
    record = json.loads(manifest.to_bytes())
    record["parts"][number] |= {"sha256": manifests.sha256_of(path), "bytes": path.stat().st_size}
    (folder / "_manifest.json").write_bytes(Manifest.from_bytes(json.dumps(record).encode()).to_bytes())


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (zeroed, "FAILED       part-00001.parquet has the bytes that were written"),
        (lost, "FAILED       part-00001.parquet is there"),
        (unfinished, "FAILED       every row of the input has its answer"),
        (shortened, "FAILED       part-00001.parquet holds the 12 rows"),
        (repacked, "FAILED       the certificates of 3 parts are as they were written, but those of part-00000"),
    ],
)
def test_damage_is_found(folder: Path, damage: Callable[[Path], None], text: str) -> None:
    damage(folder)
    found = verify_folder(folder)
    assert not found.holds
    assert text in found.to_text()


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [("income", 1, "the model says"), ("outcome", "declined", "outcome is declined, the model says approved"),
     ("distance", 0.001, "the certificate tells of another answer"),
     ("recent_inquiries", 1, "the certificate tells of other values")],
)  # fmt: skip
def test_a_forged_answer_is_found(explainer: Explainer, folder: Path, column: str, value: Any, text: str) -> None:
    """Whatever the hashes say: an answer that is none is found on the model, or by its certificate."""
    path = folder / "part-00000.parquet"
    table = parquet.read_table(path)
    wanted = [one == "approved" for one in table["outcome"].to_pylist()]
    cells = table[column].to_pylist()
    forged = [value if is_it else cell for cell, is_it in zip(cells, wanted, strict=True)]
    place, kind = table.column_names.index(column), table.schema.field(column).type
    parquet.write_table(table.set_column(place, table.schema.field(column), pa.array(forged, kind)), path)
    rewrite(folder, path)
    assert verify_folder(folder).holds
    found = verify_folder(folder, explainer.forest, sample=30)
    assert found.failed
    assert text in found.to_text()


def test_another_model_is_noticed(folder: Path) -> None:
    other = loan_explainer().forest
    object.__setattr__(other, "base_score", other.base_score + 1.0)
    assert "FAILED       they speak of this model" in verify_folder(folder, other).to_text()
    with pytest.raises(InvalidInput, match="sample must be 0 without the model"):
        verify_folder(folder, sample=3)


def test_a_folder_of_the_format_before_is_read(folder: Path) -> None:
    """As 0.1 wrote it: manifest.json, without hashes, versions and times."""
    manifest = manifests.load(folder)
    record = json.loads(manifest.to_bytes())
    for name in ("run", "shard"):
        del record[name]
    for part in record["parts"]:
        for name in ("sha256", "bytes", "certificates"):
            del part[name]
        part["next"] = {name: part["next"][name] for name in ("row", "byte", "line", "others")}
    (folder / "manifest.json").write_text(json.dumps(record | {"format": "treefocus-answers-1"}))
    (folder / "_manifest.json").unlink()
    (folder / "_SUCCESS").unlink()
    found = verify_folder(folder)
    assert not found.failed
    assert (
        "NOT CHECKED  3 of 3 parts with 30 rows are as they were written, as far as counts can tell" in found.to_text()
    )
    assert manifests.load(folder).counts() == manifest.counts()


def test_a_folder_of_another_version_is_continued_only_if_wanted(
    explainer: Explainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet.write_table(loan_rows(30), tmp_path / "rows.parquet")

    def stop(_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("treefocus.scale.work.BATCH_ROWS", 12)
    with pytest.raises(KeyboardInterrupt):
        explain_file(explainer, tmp_path / "rows.parquet", tmp_path / "out", part_rows=12, progress=stop)
    manifest = tmp_path / "out" / "_manifest.json"
    if not manifest.exists():  # stopped before the first part: the draft alone says nothing of versions
        explain_file(explainer, tmp_path / "rows.parquet", tmp_path / "out", part_rows=12)
        record = json.loads(manifest.read_text())
        record |= {"complete": False, "parts": record["parts"][:1]}
        manifest.write_text(json.dumps(record))
    record = json.loads(manifest.read_text())
    record["run"]["versions"]["treefocus"] = "0.0.9"
    manifest.write_text(json.dumps(record))
    with pytest.raises(InvalidInput, match=r"begun with treefocus 0.0.9, and this is .*--allow-upgrade"):
        explain_file(explainer, tmp_path / "rows.parquet", tmp_path / "out", part_rows=12)
    done = explain_file(explainer, tmp_path / "rows.parquet", tmp_path / "out", part_rows=12, allow_upgrade=True)
    assert done.is_complete
    assert done.run["upgrades"] == [{"part": 1, "from": "0.0.9"}]


def test_the_commands(explainer: Explainer, folder: Path, tmp_path: Path) -> None:
    explainer.forest.save(tmp_path / "model.json")
    whole = CliRunner().invoke(app, ["verify", str(folder), str(tmp_path / "model.json"), "--sample", "5"])
    assert whole.exit_code == 0, whole.output
    assert "5 answers" in whole.output
    assert CliRunner().invoke(app, ["verify", str(folder), "--sample", "5"]).exit_code == 2
    joined = CliRunner().invoke(app, ["merge", str(folder), "-o", str(tmp_path / "merged")])
    assert joined.exit_code == 0, joined.output
    assert "30 rows: " in joined.output
    assert verify_folder(tmp_path / "merged", explainer.forest, sample=4).holds
    zeroed(folder)
    damaged = CliRunner().invoke(app, ["verify", str(folder)])
    assert damaged.exit_code == 1
    assert "part-00001.parquet has the bytes" in damaged.output
    with pytest.raises(InvalidInput, match="is not the file that was written"):
        merge([folder], tmp_path / "again")
