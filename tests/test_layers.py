"""Imports point downward, and a few other things that hold the layers apart."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "treefocus"

# Modules and packages directly under treefocus, from the top down. A module imports from lower lines only.
LAYERS = (
    ("cli",),
    ("commands",),
    ("app", "scale", "evaluation"),
    ("explainer",),
    ("folding",),
    ("explanation",),
    ("answer",),
    ("obstacles", "told"),
    ("certificate", "frames", "interchange", "summaries"),
    ("region",),
    ("search", "render", "rounding", "friendly"),
    ("question",),
    ("plausibility",),
    ("constraint_text",),
    ("constraint_words",),
    ("problem",),
    ("allowed",),
    ("choices", "words"),
    ("distances", "constraints", "targets", "space"),
    ("adapters",),
    ("kernels",),
    ("tables",),
    ("likeness",),
    ("coding",),
    ("schema",),
    ("feature", "guesses", "located"),
    ("grid",),
    ("forest",),
    ("categories",),
    ("errors",),
)
HEIGHT = {name: -depth for depth, layer in enumerate(LAYERS) for name in layer}
ROOT_PACKAGE = "treefocus"  # its __init__ imports nearly everything, so only the top may import from it
FREE = {
    "__init__",
    "__main__",
    "demo",
    "loan_schema",
    "loans",
}  # entry points and examples: they stand outside the order
FRAMEWORKS = {"torch", "tensorflow", "jax"}


def sources(package: Path) -> list[Path]:
    return sorted(package.rglob("*.py"))


def module_of(path: Path, package: Path) -> str:
    """The dotted name of a file, "treefocus.kernels.reference"; a package's `__init__` keeps its name."""
    return ".".join([ROOT_PACKAGE, *path.relative_to(package).with_suffix("").parts])


def is_for_types_only(node: ast.If) -> bool:
    return ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node that runs, which leaves out `if TYPE_CHECKING:`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and is_for_types_only(node):
            for other in node.orelse:
                yield other
                yield from statements(other)
        else:
            yield node
            yield from statements(node)


def imports(path: Path, package: Path) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything a file imports; `from a import b` counts as a.b."""
    parents = module_of(path, package).split(".")[:-1]
    for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
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
        own = layer_of(module_of(path, package), package)
        if own in FREE:
            continue
        place = path.relative_to(package.parent).as_posix()
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


def report(found: list[str]) -> str:
    return "\n" + "\n".join(found)


def test_imports_point_downward() -> None:
    found = violations(PACKAGE)
    assert not found, report(found)


@pytest.mark.parametrize(
    ("path", "code", "names"),
    [
        ("forest.py", "from treefocus.grid import Grid", ["forest.py:1", "treefocus.grid.Grid"]),
        ("forest.py", "from treefocus import grid", ["forest.py:1", "treefocus.grid"]),
        ("forest.py", "import treefocus.grid", ["forest.py:1", "treefocus.grid"]),
        ("forest.py", "from .grid import Grid", ["forest.py:1", "treefocus.grid.Grid"]),
        ("forest.py", "from . import grid", ["forest.py:1", "treefocus.grid"]),
        ("forest.py", "def f():\n    from treefocus.problem import x", ["forest.py:2", "treefocus.problem.x"]),
        ("forest.py", "from treefocus import Explainer", ["forest.py:1", "treefocus.Explainer"]),
        ("forest.py", "import treefocus", ["forest.py:1", "treefocus"]),
        ("search/focus.py", "from ..render import text", ["search/focus.py:1", "treefocus.render.text"]),
        ("render/text.py", "from treefocus.search import base", ["render/text.py:1", "treefocus.search.base"]),
        ("targets.py", "from treefocus.distances import x", ["targets.py:1", "treefocus.distances.x"]),
        ("helpers.py", "", ["helpers.py", "no layer"]),
        ("helpers/__init__.py", "", ["helpers/__init__.py", "no layer"]),
    ],
)
def test_an_upward_import_is_found(tmp_path: Path, path: str, code: str, names: list[str]) -> None:
    found = violations(a_package(tmp_path, path, code))
    assert len(found) == 1
    assert all(name in found[0] for name in names), found


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("search/focus.py", "from treefocus.problem import Problem\nfrom . import base\nimport numpy.linalg"),
        ("search/focus.py", "from treefocus.search.base import Run"),
        ("grid.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from treefocus.problem import Problem"),
        ("cli.py", "from treefocus import __version__\nfrom treefocus.loans import rows"),
        ("__init__.py", "from treefocus.cli import main"),
        ("loans.py", "from treefocus.explainer import Explainer"),
    ],
)
def test_a_downward_import_is_fine(tmp_path: Path, path: str, code: str) -> None:
    assert violations(a_package(tmp_path, path, code)) == []


def a_package(folder: Path, path: str, code: str) -> Path:
    package = folder / "treefocus"
    (package / path).parent.mkdir(parents=True)
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
