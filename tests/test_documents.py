"""Every program in the documents runs, one after the other on a page, and every page is on the site.

A page whose programs go on from what the reader has by then says so here (`GIVEN`); a program that cannot run here has
`<!-- not run: why -->` on the line before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

mpl.use("Agg")

from matplotlib import pyplot

import treefocus
from treefocus import Explainer, loans, options

DOCS = Path(__file__).parents[1] / "docs"
PROGRAM = re.compile(r"^(<!-- not run: [^\n]+ -->\n+)?```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
GIVEN = {"letters.md": ("found",)}  # names that a page takes as given
ELSEWHERE = {"explanations.md"}  # pages whose programs another test runs
PAGES = sorted(path.name for path in DOCS.glob("*.md") if PROGRAM.search(path.read_text(encoding="utf-8")))


def given() -> dict[str, Any]:
    """What a reader has after the first page."""
    model, X_train, X_test, _, _ = loans.train()
    explainer = Explainer(model, X_train, constraints=loans.CONSTRAINTS, schema=loans.SCHEMA)
    declined = X_test[model.predict(X_test) == "declined"]
    return {"explainer": explainer, "found": explainer.explain(declined[:2], target="approved"), "declined": declined}


@pytest.fixture(autouse=True)
def no_figures_stay() -> Iterator[None]:
    yield
    pyplot.close("all")


@pytest.mark.parametrize("page", [page for page in PAGES if page not in ELSEWHERE])
def test_the_programs_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = {name: value for name, value in given().items() if name in GIVEN[page]} if page in GIVEN else {}
    for number, found in enumerate(PROGRAM.finditer((DOCS / page).read_text(encoding="utf-8"))):
        if found.group(1) is None:
            exec(compile(found.group(2), f"{page}, program {number}", "exec"), names)


def test_every_page_has_a_place_on_the_site() -> None:
    named = set(re.findall(r"[\w/-]+\.(?:md|ipynb)", (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")))
    written = {path.relative_to(DOCS).as_posix() for suffix in ("md", "ipynb") for path in DOCS.rglob(f"*.{suffix}")}
    assert written <= named


def test_the_index_leads_to_every_page() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    assert not [path.name for path in DOCS.glob("*.md") if path.name != "index.md" and f"({path.name})" not in index]


def test_the_formats_that_are_written_are_those_that_the_pages_name() -> None:
    sources = (path.read_text(encoding="utf-8") for path in (DOCS.parent / "src").rglob("*.py"))
    written = {
        name for source in sources for name in re.findall(r'^FORMAT[^\n=]*= "([a-z0-9-]+)"', source, re.MULTILINE)
    }
    table = (DOCS / "compatibility.md").read_text(encoding="utf-8")
    assert written, "no module says its format any more"
    assert not {name for name in written if f"`{name}`" not in table}
    proofs = set(re.findall(r"treefocus-proof-\d+", (DOCS / "proof.md").read_text(encoding="utf-8")))
    assert proofs & written


def test_the_calls_of_ours_that_others_are_told_of_work() -> None:
    rows = (line.split("|") for line in (DOCS / "migration.md").read_text(encoding="utf-8").splitlines())
    spans = [span for cells in rows if len(cells) == 7 for span in re.findall(r"`([^`]+)`", cells[5])]
    names = {**vars(treefocus), **given(), "model": loans.forest(), "X_train": loans.train().X_train}
    names |= {"rows": names["declined"][:2], "explain": names["explainer"].explain}
    known = {*options.named(options.EXPLAINER), *options.named(options.EXPLAIN), "target"}
    assert len(spans) > 15
    for span in spans:
        option, _, value = span.partition("=")
        if option.isidentifier():
            assert option in known, span
        else:
            value = span
        eval(value.partition("(...)")[0], names)  # what stands for "something" is not called


def test_a_dead_link_of_the_site_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("mkdocs")
    spec = spec_from_file_location("links", DOCS / "links.py")
    assert spec is not None
    assert spec.loader is not None
    links = module_from_spec(spec)
    spec.loader.exec_module(links)
    (tmp_path / "a.html").write_text('<h1 id="top">A</h1><a href="b.html#there"></a><a href="#top"></a>')
    (tmp_path / "b.html").write_text('<h1 id="here">B</h1><a href="c.html"></a><a href="https://example.org/x"></a>')
    links.on_post_build({"site_dir": str(tmp_path)})
    told = sorted(record.getMessage() for record in caplog.records)
    assert [one.rpartition(": ")[2] for one in told] == [
        "a.html leads to b.html#there, which is not there", "b.html leads to c.html, which is not there",
    ]  # fmt: skip
