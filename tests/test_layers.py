"""Imports point downward, modules form no circle, a class name is one class, and a few other things about the house."""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "treefocus"
TESTS = ROOT / "tests"

# Packages and modules directly under treefocus, from the top down. A module imports from its own package and from lower
# lines only, for type checkers too.
LAYERS = (
    ("cli",),
    ("commands",),
    ("app", "scale", "evaluation", "mlflow"),
    ("explainer", "loans"),
    ("options",),
    ("explanation",),
    ("render",),
    ("search",),
    ("problem",),
    ("constraints", "adapters"),
    ("kernels", "tables"),
    ("schema",),
    ("model", "storage"),
    ("errors",),
    ("check",),
)
HEIGHT = {name: -depth for depth, layer in enumerate(LAYERS) for name in layer}
ROOT_PACKAGE = "treefocus"  # its __init__ imports nearly everything, so only the top may import from it
FREE = {"__init__", "__main__"}  # entry points: they stand outside the order
MOST_AT_THE_TOP = 8
FRAMEWORKS = {"torch", "tensorflow", "jax"}
# What goes over the wire under the name of what it is in Python.
WIRE_FORMS = {"Change": "app.answers", "Job": "app.answers"}


def sources(package: Path) -> list[Path]:
    return sorted(package.rglob("*.py"))


def module_of(path: Path, package: Path) -> str:
    """The dotted name of a file, "treefocus.kernels.reference"; a package's `__init__` has the package's."""
    parts = path.relative_to(package).with_suffix("").parts
    return ".".join([ROOT_PACKAGE, *(part for part in parts if part != "__init__")])


@cache
def parsed(path: Path) -> tuple[ast.AST, ...]:
    """Every node of a file, read once for all tests."""
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def imports(path: Path, package: Path) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything a file imports; `from a import b` counts as a.b."""
    parents = [ROOT_PACKAGE, *path.relative_to(package).parts[:-1]]
    for node in parsed(path):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = parents[: len(parents) - node.level + 1] if node.level else []
            origin = ".".join([*base, node.module] if node.module else base)
            yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)


def layer_of(module: str, package: Path) -> str:
    """The name under treefocus that a dotted name falls into, or "treefocus" for names of the root package."""
    name = module.split(".")[1] if "." in module else ""
    is_module = name in HEIGHT or name in FREE or (package / name).is_dir() or (package / f"{name}.py").is_file()
    return name if name and is_module else ROOT_PACKAGE


def violations(package: Path) -> list[str]:
    """A sentence for every import that does not point downward, and for every module without a layer."""
    found = []
    for path in sources(package):
        place = path.relative_to(package.parent).as_posix()
        own = path.relative_to(package).with_suffix("").parts[0]
        if own in FREE:
            continue
        if own not in HEIGHT:
            found.append(f"{place}: {own} has no layer; add it to LAYERS in tests/test_layers.py")
            continue
        for line, module in imports(path, package):
            target = layer_of(module, package)
            if module.split(".")[0] != ROOT_PACKAGE or target == own or target in FREE:
                continue
            if target == ROOT_PACKAGE and own not in LAYERS[0]:
                found.append(f"{place}:{line}: {own} imports {module} from the root; name the module it lives in")
            elif target in HEIGHT and HEIGHT[target] >= HEIGHT[own]:
                found.append(f"{place}:{line}: {own} imports {module}, but {target} does not stand below {own}")
    return found


def circles(package: Path) -> list[str]:
    """The groups of modules of which each leads to every other, by imports anywhere in them."""
    modules = {module_of(path, package): path for path in sources(package)}
    edges: dict[str, set[str]] = {}
    for name, path in modules.items():
        named = {module for _, module in imports(path, package)}
        met = {module if module in modules else module.rpartition(".")[0] for module in named}
        edges[name] = {module for module in met if module in modules and module != name}
    reached = {name: _reachable(name, edges) for name in modules}
    groups = {tuple(sorted(one for one in reached[name] if name in reached[one])) for name in modules}
    return sorted(" and ".join(group) for group in groups if group)


def _reachable(start: str, edges: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = [*edges[start]]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += edges[name]
    return seen


def doubles(package: Path) -> list[str]:
    """Class names that stand in two modules, wire forms left out."""
    places = defaultdict(list)
    for path in sources(package):
        own = module_of(path, package).removeprefix(f"{ROOT_PACKAGE}.")
        for node in parsed(path):
            if isinstance(node, ast.ClassDef) and WIRE_FORMS.get(node.name) != own:
                places[node.name].append(own)
    return [f"{name} is a class in {' and '.join(own)}" for name, own in sorted(places.items()) if len(own) > 1]


def report(found: list[str]) -> str:
    return "\n" + "\n".join(found)


def test_imports_point_downward() -> None:
    found = violations(PACKAGE)
    assert not found, report(found)


def test_modules_form_no_circle() -> None:
    found = circles(PACKAGE)
    assert not found, report(found)


def test_a_class_name_is_one_class() -> None:
    found = doubles(PACKAGE)
    assert not found, report(found)


def test_every_wire_form_is_one() -> None:
    for name, place in WIRE_FORMS.items():
        text = PACKAGE.joinpath(*place.split(".")).with_suffix(".py").read_text(encoding="utf-8")
        assert f"class {name}(BaseModel)" in text


def test_the_checker_stands_alone() -> None:
    """It is one file, for an auditor to read, and needs nothing but Python."""
    path = PACKAGE / "check.py"
    found = {name.split(".")[0] for _, name in imports(path, PACKAGE)}
    assert not found - set(sys.stdlib_module_names)


def test_few_modules_stand_at_the_top() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= MOST_AT_THE_TOP


@pytest.mark.parametrize(
    ("path", "code", "names"),
    [
        ("model/forest.py", "from treefocus.schema.feature import x", ["forest.py:1", "treefocus.schema.feature.x"]),
        ("model/forest.py", "from treefocus import schema", ["forest.py:1", "treefocus.schema"]),
        ("model/forest.py", "import treefocus.schema", ["forest.py:1", "treefocus.schema"]),
        ("model/forest.py", "from ..schema import feature", ["forest.py:1", "treefocus.schema.feature"]),
        ("model/forest.py", "from .. import schema", ["forest.py:1", "treefocus.schema"]),
        ("model/forest.py", "def f():\n    from treefocus.problem import x", ["forest.py:2", "treefocus.problem.x"]),
        ("model/forest.py", "from treefocus import Explainer", ["forest.py:1", "treefocus.Explainer"]),
        ("model/forest.py", "import treefocus", ["forest.py:1", "treefocus"]),
        ("search/focus.py", "from ..render import text", ["search/focus.py:1", "treefocus.render.text"]),
        ("app/jobs.py", "from treefocus.scale import files", ["app/jobs.py:1", "treefocus.scale.files"]),
        (
            "model/grid.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from treefocus.problem.problem import Problem",
            ["grid.py:3", "treefocus.problem.problem.Problem"],
        ),
        ("loans/__init__.py", "from treefocus.explainer import x", ["loans/__init__.py:1", "treefocus.explainer.x"]),
        ("helpers.py", "", ["helpers.py", "no layer"]),
        ("helpers/__init__.py", "", ["helpers/__init__.py", "no layer"]),
    ],
)
def test_an_upward_import_is_found(tmp_path: Path, path: str, code: str, names: list[str]) -> None:
    found = violations(a_package(tmp_path, {path: code}))
    assert len(found) == 1
    assert all(name in found[0] for name in names), found


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("search/focus.py", "from treefocus.problem.problem import Problem\nfrom . import base\nimport numpy.linalg"),
        ("search/focus.py", "from treefocus.search.base import Run"),
        ("cli.py", "from treefocus import __version__\nfrom treefocus.loans import rows"),
        ("__init__.py", "from treefocus.cli import main"),
        ("loans/__init__.py", "from treefocus.loans.schema import SCHEMA"),
    ],
)
def test_a_downward_import_is_fine(tmp_path: Path, path: str, code: str) -> None:
    assert violations(a_package(tmp_path, {path: code})) == []


def test_a_circle_is_found(tmp_path: Path) -> None:
    package = a_package(
        tmp_path,
        {
            "model/forest.py": "from treefocus.model import grid",
            "model/grid.py": "def f():\n    from treefocus.model.leaf import x",
            "model/leaf.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .forest import Forest",
            "model/tree.py": "from treefocus.model.grid import x",
        },
    )
    assert circles(package) == ["treefocus.model.forest and treefocus.model.grid and treefocus.model.leaf"]


def test_a_second_class_of_a_name_is_found(tmp_path: Path) -> None:
    code = "class Table: ...\nclass Job: ..."
    package = a_package(tmp_path, {"tables/table.py": code, "app/answers.py": code})
    assert doubles(package) == ["Table is a class in app.answers and tables.table"]


def a_package(folder: Path, codes: dict[str, str]) -> Path:
    package = folder / "treefocus"
    for path, code in codes.items():
        (package / path).parent.mkdir(parents=True, exist_ok=True)
        (package / path).write_text(code)
    return package


def test_only_one_module_imports_the_compiled_core() -> None:
    importers = {
        path.relative_to(PACKAGE).as_posix()
        for path in sources(PACKAGE)
        for _, module in imports(path, PACKAGE)
        if "_core" in module.split(".")
    }
    assert importers == {"kernels/__init__.py"}


def test_no_module_imports_a_deep_learning_framework() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: imports {module}"
        for path in sources(PACKAGE)
        for line, module in imports(path, PACKAGE)
        if module.split(".")[0] in FRAMEWORKS
    ]
    assert not found, report(found)


def test_no_test_imports_from_another_one() -> None:
    tests = {path.stem for path in TESTS.rglob("test_*.py")}
    found = [
        f"{path.relative_to(ROOT)}:{line}: imports {module}"
        for path in sources(TESTS)
        for line, module in imports(path, TESTS)
        if tests & set(module.split("."))
    ]
    assert not found, report(found)


def test_every_room_has_its_tests() -> None:
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    homes = {path.name for path in TESTS.iterdir() if path.is_dir() and any(path.glob("test_*.py"))}
    assert homes - rooms <= {"truth"}  # the judge of what is claimed
    assert rooms - homes <= {"commands", "loans"}  # tested at the top, by what users type


def test_every_module_opens_with_a_docstring() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in sources(PACKAGE)
        if ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) is None
    ]
    assert not silent, report(silent)


def test_the_core_knows_no_python() -> None:
    files = sorted((ROOT / "cpp" / "treefocus").rglob("*.[ch]pp"))
    assert files
    included = re.compile(r"""^\s*#\s*include\s*[<"](Python\.h|nanobind|pybind11|numpy)""", re.MULTILINE)
    found = [
        f"{path.relative_to(ROOT)}: {match.group().strip()}"
        for path in files
        for match in included.finditer(path.read_text(encoding="utf-8"))
    ]
    assert not found, report(found)
