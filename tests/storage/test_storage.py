"""Storage: a file is there whole or not at all, and a folder has one writer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from treefocus import InvalidInput
from treefocus.storage import atomic
from treefocus.storage.atomic import TEMPORARY, write_atomically, write_whole
from treefocus.storage.lock import held, locked
from treefocus.storage.parts import Parts

BUSY = "Another run is writing here"


@pytest.mark.parametrize("content", ["text with ü", b"bytes"])
def test_what_is_written_is_there(tmp_path: Path, content: str | bytes) -> None:
    path = tmp_path / "file"
    for _ in range(2):  # new, and in place of another
        write_whole(path, content)
        assert path.read_bytes() == (content.encode() if isinstance(content, str) else content)
    assert os.listdir(tmp_path) == ["file"]


def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_whole(path, "before")

    def full(_: int) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(atomic.os, "fsync", full)
        with pytest.raises(OSError, match="disk full"):
            write_whole(path, "after")
    assert path.read_text() == "before"

    def half(beside: Path) -> None:
        assert beside == path.with_name(path.name + TEMPORARY)
        beside.write_text("aft")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_atomically(path, half)
    assert path.read_text() == "before"


@pytest.mark.parametrize("name", [".", "lock"])
def test_one_at_a_time(tmp_path: Path, name: str) -> None:
    with held(tmp_path / name, BUSY), pytest.raises(InvalidInput, match=BUSY):
        locked(tmp_path / name, BUSY)
    os.close(locked(tmp_path / name, BUSY))


@pytest.mark.skipif(os.name != "posix", reason="a folder cannot be locked there")
def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    program = f"""
import os, signal, pathlib
from treefocus.storage.lock import locked
locked(pathlib.Path({str(tmp_path)!r}), "busy")
os.kill(os.getpid(), signal.SIGKILL)
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    ended = subprocess.run([sys.executable, "-c", program], env=environment, check=False)
    assert ended.returncode == -9
    os.close(locked(tmp_path, BUSY))


# --- work in parts


def test_parts_are_found_again(tmp_path: Path) -> None:
    parts = Parts(tmp_path, ".json", 6)
    assert not parts.has(0)
    parts.write(0, "{}")
    parts.write(12, lambda path: path.write_text("[]") and None)
    assert sorted(os.listdir(tmp_path)) == ["part-000000.json", "part-000012.json"]
    again = Parts(tmp_path, ".json", 6)
    assert [again.has(number) for number in (0, 1, 12)] == [True, False, True]
    assert again.path(12).read_text() == "[]"


def test_a_part_that_is_being_written_is_no_part(tmp_path: Path) -> None:
    parts = Parts(tmp_path, ".parquet", 5)

    def stopped(path: Path) -> None:
        path.write_bytes(b"hal")
        assert [parts.is_one(own) for own in tmp_path.iterdir()] == [True]  # of a killed run, it may be removed
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        parts.write(3, stopped)
    assert not parts.has(3)
    assert not list(tmp_path.iterdir())


def test_only_parts_are_removed(tmp_path: Path) -> None:
    parts = Parts(tmp_path, ".json", 6)
    strangers = ["request.json", "part-1.parquet", "part-x.json", "apart-000001.json", "part-000001.json.bak"]
    for name in ["part-000000.json", "part-000001.json", "part-000002.json.tmp", *strangers]:
        (tmp_path / name).write_text("")
    parts.keep_only({"part-000001.json"})
    assert set(os.listdir(tmp_path)) == {"part-000001.json", *strangers}
