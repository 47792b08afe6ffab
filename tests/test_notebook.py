"""The notebooks in docs/examples and the programs of docs/explanations.md run, and give what they promise."""

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

DOCS = Path(__file__).parents[1] / "docs"
NOTEBOOKS = sorted((DOCS / "examples").glob("*.ipynb"))
LETTER = DOCS / "examples" / "from_csv_to_letter.ipynb"
SECONDS = re.compile(r"^[\d.,]+ s$")  # a line of a summary that is another one each time


def cells(notebook: Path) -> list[dict[str, Any]]:
    return list(json.loads(notebook.read_text(encoding="utf-8"))["cells"])


def run(notebook: Path) -> dict[str, Any]:
    """What all cells together have defined."""
    names: dict[str, Any] = {}
    for number, cell in enumerate(cells(notebook)):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{notebook.name}, cell {number}", "exec"), names)
    return names


@pytest.fixture(autouse=True)
def no_figures_stay() -> Iterator[None]:
    yield
    pyplot.close("all")


@pytest.mark.parametrize("notebook", [one for one in NOTEBOOKS if one != LETTER], ids=lambda path: path.stem)
def test_a_notebook_prints_what_it_shows(
    notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run(notebook)
    shown = [
        line
        for cell in cells(notebook)
        for output in cell.get("outputs", [])
        if output["output_type"] == "stream"
        for line in "".join(output["text"]).splitlines()
    ]
    printed = capsys.readouterr().out.splitlines()
    assert [one for one in printed if not SECONDS.match(one)] == [one for one in shown if not SECONDS.match(one)]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_ends_in_a_picture(notebook: Path) -> None:
    code = [cell for cell in cells(notebook) if cell["cell_type"] == "code"]
    outputs = [output for cell in code for output in cell["outputs"]]
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert not [output for output in outputs if output.get("name") == "stderr"]
    if notebook != LETTER:  # which ends in what is kept
        assert any("image/png" in output.get("data", {}) for output in code[-1]["outputs"])
    assert not re.search(r"/(?:tmp|home|root|work)/", notebook.read_text(encoding="utf-8"))


def test_the_letter_comes_from_the_file() -> None:
    names = run(LETTER)
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
    printed = [
        "".join(output["text"])
        for cell in cells(LETTER)
        for output in cell.get("outputs", [])
        if output["output_type"] == "stream"
    ]
    assert f"{letter}\n" in printed
    assert f"{names['brief']}\n" in printed


def test_the_programs_of_the_document_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "explanations.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for number, block in enumerate(re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)):
        exec(compile(block, f"explanations.md, block {number}", "exec"), names)
    assert (tmp_path / "report.html").is_file()
    assert names["again"].to_json() == names["found"].to_json()
    for method in re.findall(r"`found\.(\w+)\(", text):
        assert hasattr(names["found"], method)
    for method in re.findall(r"`found\[0\]\.(\w+)\(", text):
        assert hasattr(names["found"][0], method)
