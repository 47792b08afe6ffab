"""What the site has besides the documents: pages of the project's root, and a reference made from the code itself.

`mkdocs build` calls these functions (`hooks` in mkdocs.yml). The names of the Python reference come from
`treefocus.__all__`, the command line from Typer, the REST API from its OpenAPI document: none of them is written twice.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main
from mkdocs.structure.files import File, Files

import treefocus
from treefocus.app.api import PREFIX
from treefocus.app.demo import demo_service
from treefocus.app.server import create_app
from treefocus.cli import app

ROOT = Path(__file__).parents[1]
PROJECT = {f"{name.upper()}.md": name for name in ("readme", "changelog", "contributing", "security")}
GALLERY = "../examples/from_csv_to_letter.ipynb"  # a folder has no page of its own
ROOMS = {  # the first room that a name's module is in is its chapter
    "explainer": "Explain",
    "explanation": "Answers",
    "constraints": "Constraints",
    "problem.targets": "Targets",
    "problem.distances": "Distances",
    "problem.plausibility": "Plausibility",
    "schema": "What the columns are",
    "search": "Strategies",
    "model": "Models",
    "adapters": "Models",
    "errors": "Errors",
}
MODULES = {  # with public names of their own
    "treefocus.scale.files": ("explain_file",),
    "treefocus.scale.batches": ("explain_batches",),
    "treefocus.scale.ray": ("explain_dataset", "RowsDone"),
    "treefocus.scale.spark": ("explain_frame",),
    "treefocus.scale.progress": ("watched",),
    "treefocus.scale.merge": ("merge",),
    "treefocus.scale.verification": ("verify_folder",),
    "treefocus.scale.audits": ("audit_batches", "audit_answers"),
    "treefocus.mlflow": ("log_explainer", "load_explainer", "log_explanations"),
    "treefocus.check": ("check",),
    "treefocus.loans": ("generate", "load", "train", "forest", "Trained", "to_csv"),
}


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages."""
    pages = {
        **{f"project/{name}.md": (ROOT / path).read_text(encoding="utf-8") for path, name in PROJECT.items()},
        "reference/python.md": "\n".join(python_reference()),
        "reference/command-line.md": "\n".join(command_line()),
        "reference/rest.md": "\n".join(rest()),
    }
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Links between the root and docs/ are links inside the site."""
    path = page.file.src_uri
    if path.startswith("project/"):
        markdown = re.sub(r"\]\(docs/", "](../", markdown.replace("](docs/examples)", f"]({GALLERY})"))
        return re.sub(r'src="docs/', 'src="../', _to_project(markdown, r"\]\(", "](", ""))
    up = "../" * (path.count("/") + 1)
    return _to_project(markdown, rf"\]\({re.escape(up)}", "](", "../" * path.count("/") + "project/")


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """A notebook's links to documents, which others rewrite in documents only."""
    is_notebook = page.file.src_uri.endswith(".ipynb")
    return re.sub(r'(href="\.\./[\w-]+)\.md\b', r"\1.html", html) if is_notebook else html


def _to_project(markdown: str, before: str, opening: str, folder: str) -> str:
    for name, page in PROJECT.items():
        markdown = re.sub(f"{before}{re.escape(name)}", f"{opening}{folder}{page}.md", markdown)
    elsewhere = r"(?:LICENSE|CITATION\.cff|benchmarks/|src/|cpp/|tests/)"  # what the site does not have
    return re.sub(rf"\[([^\]]+)\]\((?:\.\./)*{elsewhere}[^)]*\)", r"`\1`", markdown)


def python_reference() -> Iterator[str]:
    """Every public name under the chapter of its room."""
    yield "# Python\n\nAfter this page you know every public name: what it takes, what it gives, an example.\n"
    chapters: dict[str, list[str]] = {}
    for name in treefocus.__all__:
        module = getattr(getattr(treefocus, name), "__module__", "treefocus").removeprefix("treefocus.")
        chapter = next((told for room, told in ROOMS.items() if f"{module}.".startswith(f"{room}.")), "Others")
        chapters.setdefault(chapter, []).append(f"treefocus.{name}")
    for chapter in dict.fromkeys([*ROOMS.values(), "Others"]):
        if chapter in chapters:
            yield f"## {chapter}\n"
            yield from (f"::: {name}\n" for name in chapters[chapter])
    for path, names in MODULES.items():
        yield f"## `{path}`\n\n{_what_it_is(path)}\n"
        yield from (f"::: {path}.{name}\n" for name in names)


def _what_it_is(path: str) -> str:
    """The first paragraph of a module's text; the module is not loaded, since what it needs may not be here."""
    origin = Path(treefocus.__path__[0], *path.split(".")[1:])
    source = next(one for one in (origin.with_suffix(".py"), origin / "__init__.py") if one.is_file())
    return (ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or "").partition("\n\n")[0]


def command_line() -> Iterator[str]:
    """Every command with its options, as `--help` tells them."""
    yield "# Command line\n\nAfter this page you know every command and every option of `treefocus`.\n"
    group: Any = typer.main.get_command(app)
    for name, command in sorted(group.commands.items()):
        yield f"## treefocus {name}\n\n{_escaped(command.help or '')}\n"
        yield "| word | meaning |\n|---|---|"
        for one in command.params:
            word = str(one.name).upper() if one.param_type_name == "argument" else ", ".join(one.opts)
            yield f"| `{_escaped(word)}` | {_escaped(getattr(one, 'help', None) or '')} |"
        yield ""


def rest() -> Iterator[str]:
    """Every path of the service, what it takes and what it answers."""
    document = create_app(demo_service(), ROOT / "build", with_page=False).openapi()
    yield "# REST\n\nAfter this page you know every path of [the service](../service.md), `treefocus serve`."
    version = f"`{document['info']['title']}` {document['info']['version']}"
    yield f"{version}; the document itself is at `{PREFIX}/openapi.json`.\n"
    for path, methods in document["paths"].items():
        for method, told in methods.items():
            yield f"## {method.upper()} {path}\n\n{_escaped(told.get('description') or told.get('summary') or '')}\n"
            body = told.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            if "$ref" in body:
                yield f"Takes [`{_name(body)}`](#{_name(body).lower()}).\n"
            for code, answer in told["responses"].items():
                yield f"- {code}: {_escaped(answer.get('description', ''))}"
            yield ""
    for name, schema in document.get("components", {}).get("schemas", {}).items():
        yield f"## {name}\n\n{_escaped(schema.get('description', ''))}\n"
        if schema.get("properties"):
            yield "| field | |\n|---|---|"
            for field, told in schema["properties"].items():
                yield f"| `{field}` | {_escaped(told.get('description') or told.get('title') or '')} |"
        yield ""


def _name(reference: dict[str, Any]) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


def _escaped(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
