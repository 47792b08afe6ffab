"""The notebook in docs/examples and the programs of docs/explanations.md run, and give what they promise."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

mpl.use("Agg")

from matplotlib import pyplot

NOTEBOOK = Path(__file__).parents[1] / "docs" / "examples" / "from_csv_to_letter.ipynb"
CELLS = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
CODE = ["".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"]


@pytest.fixture(scope="module")
def names() -> Iterator[dict[str, Any]]:
    """What all cells together have defined."""
    result: dict[str, Any] = {}
    for number, source in enumerate(CODE):
        exec(compile(source, f"{NOTEBOOK.name}, cell {number}", "exec"), result)
    yield result
    pyplot.close("all")


def test_it_goes_from_the_file_to_the_letter(names: dict[str, Any]) -> None:
    assert (names["folder"] / "applications.csv").is_file()
    assert names["found"].has_answer.all()
    letter = names["letter"]
    assert letter.startswith(
        "Dear Ada Example,\n\nYour application was declined.\n\nYour application would be approved if"
    )
    assert letter.endswith("The Bank\n")
    assert "Ihr Antrag würde bewilligt, wenn" in names["brief"]
    assert names["kept"].to_json() == names["found"].to_json()
    assert names["page"].stat().st_size > 10_000


def test_what_it_shows_is_what_it_gives_now(names: dict[str, Any]) -> None:
    printed = [
        "".join(output["text"])
        for cell in CELLS
        for output in cell.get("outputs", [])
        if output["output_type"] == "stream"
    ]
    assert f"{names['letter']}\n" in printed
    assert f"{names['brief']}\n" in printed


def test_it_has_pictures_and_no_errors() -> None:
    outputs = [output for cell in CELLS for output in cell.get("outputs", [])]
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert len([output for output in outputs if "image/png" in output.get("data", {})]) == 4
    assert not re.search(r"/(?:tmp|home|root|work)/", NOTEBOOK.read_text(encoding="utf-8"))


def test_the_programs_of_the_document_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (NOTEBOOK.parents[1] / "explanations.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for number, block in enumerate(re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)):
        exec(compile(block, f"explanations.md, block {number}", "exec"), names)
    assert (tmp_path / "report.html").is_file()
    assert names["again"].to_json() == names["found"].to_json()
    for method in re.findall(r"`found\.(\w+)\(", text):
        assert hasattr(names["found"], method)
    for method in re.findall(r"`found\[0\]\.(\w+)\(", text):
        assert hasattr(names["found"][0], method)
