"""The documents: what they print runs, what they name exists, and what they point to is there."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor
from typer.testing import CliRunner

from treefocus import Explainer, Forest, Status, kernels, load_forest, loans
from treefocus.adapters import supported
from treefocus.cli import app
from treefocus.constraints import kinds
from treefocus.problem.distances import NAMED
from treefocus.tables.files import write_columns

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TOUR = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
SITE = set(re.findall(r"[\w/.-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))  # a strict build holds these


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def tour(tmp_path_factory):
    """A folder in which all of the tour's programs have run, one after the other."""
    folder = tmp_path_factory.mktemp("tour")
    names = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for number, block in enumerate(blocks(TOUR, "python")):
            exec(compile(block, f"tour.md, block {number}", "exec"), names)
    return folder, names


def test_the_programs_of_the_tour_run(tour):
    _, names = tour
    assert names["found"].has_answer.all()
    assert set(names["found"].outcome) == {"approved"}
    assert names["quick"].has_answer.all()
    assert names["same"].has_answer.all()


def test_the_programs_of_the_readme_run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, *others = blocks(README, "python")
    assert len([line for line in first.splitlines() if line]) <= 10
    names = {}
    exec(compile(first, "README.md", "exec"), names)
    assert "Your application would be approved if" in capsys.readouterr().out
    for block in others:
        exec(compile(block, "README.md", "exec"), names)


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 120


def test_the_commands_of_the_tour_run(tour, monkeypatch):
    folder, names = tour
    monkeypatch.chdir(folder)
    names["explainer"].forest.save("model.json")
    income = list(loans.SCHEMA.names).index("income")
    predicts_a_number = DecisionTreeRegressor(max_depth=3).fit(names["X_train"], names["X_train"][:, income])
    replace(Explainer(predicts_a_number, names["X_train"]).forest, feature_names=loans.SCHEMA.names).save(
        "incomes.json"
    )
    for file, rows in (("train.csv", names["X_train"][:300]), ("rows.csv", names["declined"][:3])):
        write_columns(file, dict(zip(loans.SCHEMA.names, rows.T.tolist(), strict=True)))
    commands = [line for block in blocks(TOUR, "console") for line in block.splitlines()]
    own = [shlex.split(line, comments=True)[1:] for line in commands if line.startswith("treefocus explain")]
    assert len(own) == 4
    for arguments in own:
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.output


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document):
    text = document.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    local = [target.partition("#")[0] for target in targets if "://" not in target]
    missing = [target for target in local if target not in SITE and not (document.parent / target).exists()]
    assert not missing


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_programs_in_documents_are_valid(document):
    for block in blocks(document.read_text(encoding="utf-8"), "python"):
        compile(block, document.name, "exec")


@pytest.mark.parametrize(
    "name",
    [
        *(status.name for status in Status),
        *(name for name in supported() if "." not in name),
        *NAMED,
        *(kind.__name__ for kind in vars(kinds).values()
          if isinstance(kind, type) and issubclass(kind, kinds.Constraint)
          and kind is not kinds.Constraint and not kind.__name__.startswith("_")),
    ],
)  # fmt: skip
def test_the_tour_names_everything_there_is(name):
    assert name in TOUR


def test_the_picture_is_small():
    picture = ROOT / "docs" / "images" / "explanation.png"
    data = picture.read_bytes()
    assert len(data) < 150_000
    assert 1000 <= int.from_bytes(data[16:20], "big") <= 1400  # width in the PNG header


def test_the_example_of_the_format_is_a_forest(tmp_path):
    (text,) = blocks((ROOT / "docs" / "forest-format.md").read_text(encoding="utf-8"), "json")
    (tmp_path / "forest.json").write_text(text)
    forest = load_forest(tmp_path / "forest.json")
    predicted = kernels.predict(forest, np.array([[1.8], [1.81]]))
    assert forest.classes[predicted].tolist() == ["short", "tall"]


def test_the_format_describes_every_field(tmp_path):
    text = (ROOT / "docs" / "forest-format.md").read_text(encoding="utf-8")
    (example,) = blocks(text, "json")
    forest = Forest.from_record(json.loads(example))
    forest.save(tmp_path / "again.json")
    fields = json.loads((tmp_path / "again.json").read_text())
    assert not [name for name in fields if f"`{name}`" not in text]


def test_the_method_names_the_parameters_as_they_are():
    from treefocus import Focus

    text = (ROOT / "docs" / "method.md").read_text(encoding="utf-8")
    names = {}
    for block in blocks(text, "python"):
        exec(compile(block, "method.md", "exec"), names)
    assert isinstance(names["authors"], Focus)
    defaults = Focus()
    for name in ("sigma", "tau", "beta", "alpha", "iterations"):
        row = re.search(rf"^\| `{name}` \|.*\| ([\d.]+) \|$", text, re.MULTILINE)
        assert row is not None, name
        assert float(row[1]) == getattr(defaults, name)
