"""docs/exact.md names the file and the function of every step: each of them is there."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "exact.md").read_text(encoding="utf-8")
QUOTED = [token for token in re.findall(r"`([^`\n]+)`", TEXT) if " " not in token]
FILES = sorted({token for token in QUOTED if re.match(r"(cpp|src|tests|benchmarks)/", token)})
MEMBERS = sorted({token for token in QUOTED if re.fullmatch(r"\w+::\w+", token)})
STEPS = [
    (file, name)
    for file, names in re.findall(r"^\|[^|]*\| `([^`]+)` \|([^|]*)\|$", TEXT, re.MULTILINE)
    for name in re.findall(r"`([^`]+)`", names)
]
CORE = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "cpp" / "treefocus").iterdir())}


def body_of(name, text):
    """What stands between the braces of a C++ class, empty if it is not defined here."""
    found = re.search(rf"^(?:class|struct) {name}\b[^;{{]*{{(.*?)^}};", text, re.MULTILINE | re.DOTALL)
    return found.group(1) if found else ""


def has_function(name, text):
    """Whether a C++ file defines a function, or a member: outside of its class or inside."""
    owner, _, function = name.rpartition("::")
    if not owner:
        return bool(re.search(rf"^[\w:<>&* ]+ {function}\(", text, re.MULTILINE))
    is_outside = re.search(rf"^(?:[\w:<>&*, ]+ )?{owner}::{function}\(", text, re.MULTILINE)
    return bool(is_outside or re.search(rf"\b{function}\([^;{{}}]*\)[^;{{}}]*{{", body_of(owner, text)))


def python_names(path):
    """The functions, classes and methods of a module, methods as Class.method."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        if isinstance(node, ast.ClassDef):
            yield from (f"{node.name}.{item.name}" for item in node.body if isinstance(item, ast.FunctionDef))


@pytest.mark.parametrize("file", FILES)
def test_a_named_file_is_there(file):
    assert (ROOT / file).exists()


@pytest.mark.parametrize("member", MEMBERS)
def test_a_named_member_is_in_the_core(member):
    assert any(has_function(member, text) for text in CORE.values())


@pytest.mark.parametrize(("file", "name"), STEPS)
def test_a_step_is_in_its_file(file, name):
    path = ROOT / file
    if path.suffix == ".py":
        assert name in set(python_names(path))
    else:
        assert has_function(name, CORE[path.name])


def test_files_are_named_by_their_path():
    bare = re.findall(r"(?<![\w/])\w+\.(?:cpp|hpp|py)\b", TEXT)
    assert not bare


def test_every_part_of_the_search_has_a_step():
    told = {Path(file).stem for file, _ in STEPS if file.startswith("cpp/")}
    untold = {Path(name).stem for name in CORE if name.endswith(".cpp")} - told
    assert untold == {"distance", "soft"}  # the kernels of the descent, which docs/exact.md does not tell


@pytest.mark.parametrize(
    ("name", "is_there"), [("Search::plain", True), ("Search::plane", False), ("Nobody::run", False), ("solve", True)]
)
def test_names_are_looked_for_as_they_are_written(name, is_there):
    assert any(has_function(name, text) for text in CORE.values()) == is_there
