"""The results of a reproduction as a report: the paper's tables, published and measured side by side.

Takes finished results (results.json) and computes nothing but the layout; the same tables go into Markdown and HTML.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from treefocus.evaluation.paper import DATASETS, MODELS, TITLES

MARKS = {"-": "▼", "+": "▲", "=": "○"}
INCOMPLETE = "⊗"
LEGEND = (
    f"{MARKS['-']} FOCUS significantly closer than the baseline, {MARKS['+']} significantly farther, "
    f"{MARKS['=']} neither (p < 0.05, two-tailed t-test); {INCOMPLETE} not every row found, with the number found. "
    "Means are over the rows found; ratio, share closer and marks over the rows that both methods found."
)
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1b1f23; margin: 2rem auto; max-width: 80rem; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; font-size: 13px; display: block;
        overflow-x: auto; }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid #d8dee4; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
thead th { border-bottom: 2px solid #1b1f23; }
tr.group td { font-weight: 600; background: #f3f5f7; }
p.note { color: #57606a; max-width: 60rem; }
img { max-width: 100%; }
@media (prefers-color-scheme: dark) {
  body { background: #14171a; color: #e6e9ec; } th, td { border-color: #30363d; } thead th { border-color: #e6e9ec; }
  tr.group td { background: #1f2429; } p.note { color: #9aa4ae; } img { background: white; }
}
"""

Records = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class ReportTable:
    """A table with a title and a note; a row of one cell heads a group."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def tables(results: dict[str, Any]) -> list[ReportTable]:
    """All tables of the report, those without a result left out."""
    records: Records = {record["id"]: record for record in results["settings"]}
    made = [_first(records), _second(records), _fidelity(records), _parameters(records), _times(records)]
    return [table for table in made if table.rows]


def _first(records: Records) -> ReportTable:
    """Table 1: FOCUS and Feature Tweaking."""
    places = [(distance, model) for distance in ("euclidean", "cosine", "manhattan") for model in MODELS]
    lines: list[tuple[str, Callable[[dict[str, Any]], str]]] = [
        ("FT, published", lambda r: _number(r["published"]["baseline_mean"], 3) + _gap(r["published"]["is_complete"])),
        ("FT, measured", lambda r: _mean(r["feature_tweaking"])),
        ("RP, measured", lambda r: _mean(r["random_perturbation"])),
        ("FOCUS, published", lambda r: _number(r["published"]["mean"], 3) + MARKS[r["published"]["mark"]]),
        ("FOCUS, faithful", lambda r: _mean(r["faithful"]) + _mark(r, "faithful")),
        ("FOCUS, faithful, where FT found", lambda r: _number(r["comparison"]["faithful"]["mean"])),
        ("FOCUS, as written", lambda r: _mean(r["as_written"]) + _mark(r, "as_written")),
        *_OPTIMUM,
        ("FOCUS / FT, published", lambda r: _number(r["published"]["relative_mean"], 3)),
        ("FOCUS / FT, faithful", lambda r: _number(r["comparison"]["faithful"]["relative_mean"], 3)),
        ("% closer, published", lambda r: _number(r["published"]["percent_closer"], 1)),
        ("% closer, faithful", lambda r: _number(r["comparison"]["faithful"]["percent_closer"], 1)),
    ]
    rows: list[tuple[str, ...]] = []
    for dataset in DATASETS:
        own = [records.get(f"{dataset}-{model}-{distance}") for distance, model in places]
        if any(own):
            rows.append((TITLES[dataset],))
            rows += [(title, *("" if r is None else cell(r) for r in own)) for title, cell in lines]
    header = ("d_mean", *(f"{distance.capitalize()} {model.upper()}" for distance, model in places))
    return ReportTable("Table 1: FOCUS and Feature Tweaking", header, tuple(rows), LEGEND)


def _second(records: Records) -> ReportTable:
    """Table 2: FOCUS and DACE."""
    own = [record for record in records.values() if record["experiment"] == 2]
    lines: list[tuple[str, Callable[[dict[str, Any]], str]]] = [
        ("DACE, published", lambda r: _number(r["published"]["baseline_mean"], 3)),
        ("DACE, measured", lambda r: _mean(r["dace"])),
        ("FOCUS, published", lambda r: _number(r["published"]["mean"], 3) + MARKS[r["published"]["mark"]]),
        ("FOCUS, faithful", lambda r: _mean(r["faithful"])),
        (
            "FOCUS, faithful, where DACE was asked",
            lambda r: _number(r["comparison"]["faithful"]["mean"]) + _mark(r, "faithful"),
        ),
        ("FOCUS, as written", lambda r: _mean(r["as_written"])),
        *_OPTIMUM,
        ("FOCUS / DACE, published", lambda r: _number(r["published"]["relative_mean"], 3)),
        ("FOCUS / DACE, faithful", lambda r: _number(r["comparison"]["faithful"]["relative_mean"], 3)),
        ("% closer, published", lambda r: _number(r["published"]["percent_closer"], 1)),
        ("% closer, faithful", lambda r: _number(r["comparison"]["faithful"]["percent_closer"], 1)),
        ("found by DACE, published", lambda r: f"{r['published']['baseline_found']:,} of {r['faithful']['rows']:,}"),
        ("found by DACE, measured", lambda r: f"{r['dace']['found']:,} of {r['dace']['rows']:,}"),
        ("found by FOCUS, faithful", lambda r: f"{r['faithful']['found']:,} of {r['faithful']['rows']:,}"),
    ]
    rows = tuple((title, *(cell(r) for r in own)) for title, cell in lines) if own else ()
    header = ("d_mean (squared Mahalanobis)", *(f"{TITLES[r['dataset']]} {r['model'].upper()}" for r in own))
    note = (
        "The published means are over the rows that DACE solved, which were never published; here DACE is asked a "
        "fixed sample of rows, and the lines that compare are over those it answered."
    )
    return ReportTable("Table 2: FOCUS and DACE", header, rows, note)


def _proven(record: dict[str, Any]) -> str:
    optimum = record["optimum"]
    return f"{optimum['proven']:,} of {optimum['rows']:,}"


_OPTIMUM: list[tuple[str, Callable[[dict[str, Any]], str]]] = [
    ("optimum", lambda r: _number(r["optimum"]["mean"])),
    ("optimum, proven lower bound", lambda r: _number(r["optimum"]["lower_bound"])),
    ("optimum, rows proven", _proven),
    ("FOCUS, faithful, on those rows", lambda r: _number(r["optimum"]["faithful_on_these_rows"])),
]


def _fidelity(records: Records) -> ReportTable:
    distances = ("euclidean", "cosine", "manhattan", "mahalanobis")
    rows: list[tuple[str, ...]] = []
    for dataset in DATASETS:
        for model in MODELS:
            own = [records.get(f"{dataset}-{model}-{distance}") for distance in distances]
            if any(own):
                cells = ["" if r is None else _pair(r["published"]["fidelity"], r["faithful"]["fidelity"]) for r in own]
                rows.append((f"{TITLES[dataset]} {model.upper()}", *cells))
    header = ("published / faithful", *(distance.capitalize() for distance in distances))
    note = "Share of the test rows on which the soft forest gives the model's own class."
    return ReportTable("Fidelity of the soft forests", header, tuple(rows), note)


def _pair(published: float, measured: float) -> str:
    return f"{published:.3f} / {measured:.3f}" + ("" if abs(published - measured) < 0.00151 else " ≠")


def _parameters(records: Records) -> ReportTable:
    rows = tuple(
        (
            record["id"],
            *(f"{record['parameters'][name]:g}" for name in ("sigma", "tau", "beta", "alpha")),
            f"{record['feature_tweaking']['epsilon']:g}",
            f"{record['dace']['lambda_']:g}" if "dace" in record else "",
        )
        for record in records.values()
    )
    return ReportTable(
        "Hyperparameters", ("setting", "sigma", "tau", "beta", "alpha", "FT epsilon", "DACE lambda"), rows
    )


def _times(records: Records) -> ReportTable:
    names = ("faithful", "as_written", "feature_tweaking", "random_perturbation", "dace", "optimum")
    rows = [
        (record["id"], *(_seconds(record.get(name)) for name in names), f"{record['seconds']:,.1f}")
        for record in records.values()
    ]
    if rows:
        total = [sum(r.get(name, {}).get("seconds", 0.0) for r in records.values()) for name in names]
        everything = sum(record["seconds"] for record in records.values())
        rows.append(("all", *(f"{seconds:,.1f}" for seconds in total), f"{everything:,.1f}"))
    header = ("seconds", "faithful", "as written", "FT", "RP", "DACE", "optimum", "all")
    return ReportTable("Wall time", header, tuple(rows), _machine(records))


def _machine(records: Records) -> str:
    seen = {tuple(sorted(record["machine"].items())) for record in records.values() if "machine" in record}
    texts = [
        f"{m['processor']}, {m['cores']} cores, {m['threads']} threads, {m['system']}, Python {m['python']}, "
        f"NumPy {m['numpy']}"
        for m in map(dict, sorted(seen, key=str))
    ]
    return "Measured on " + "; ".join(texts) + "." if texts else ""


def _number(value: float | None, digits: int = 4) -> str:
    return "none" if value is None else f"{value:.{digits}f}"


def _mean(column: dict[str, Any]) -> str:
    return _number(column["mean"]) + _gap(column["found"] == column["rows"], column["found"])


def _gap(is_complete: bool, found: int | None = None) -> str:
    return "" if is_complete else INCOMPLETE if found is None else f" {INCOMPLETE}{found:,}"


def _mark(record: dict[str, Any], name: str) -> str:
    return MARKS[record["comparison"][name]["mark"]]


def _seconds(column: dict[str, Any] | None) -> str:
    return "" if column is None else f"{column['seconds']:,.1f}"


def to_markdown(results: dict[str, Any], figures: Iterable[Path] = ()) -> str:
    """The report as Markdown."""
    parts = ["# The paper's experiments, reproduced", _opening(results)]
    for table in tables(results):
        parts.append(f"## {table.title}")
        parts.append(markdown_table(table))
        parts += [table.note] if table.note else []
    for figure in figures:
        parts.append(f"![{figure.stem.replace('-', ' ')}]({figure.as_posix()})")
    return "\n\n".join(parts) + "\n"


def markdown_table(table: ReportTable) -> str:
    """One table as Markdown."""
    width = len(table.header)
    lines = ["| " + " | ".join(table.header) + " |", "|---" + "|---:" * (width - 1) + "|"]
    for row in table.rows:
        cells = (f"**{row[0]}**",) + ("",) * (width - 1) if len(row) == 1 else row
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def to_html(results: dict[str, Any], figures: Iterable[Path] = ()) -> str:
    """The report as a page of its own."""
    title = "The paper's experiments, reproduced"
    parts = [f"<h1>{title}</h1>", f"<p>{escape(_opening(results))}</p>"]
    for table in tables(results):
        parts.append(f"<h2>{escape(table.title)}</h2>")
        parts.append(_html_table(table))
        parts += [f'<p class="note">{escape(table.note)}</p>'] if table.note else []
    for figure in figures:
        parts.append(f'<p><img src="{escape(figure.as_posix())}" alt="{escape(figure.stem.replace("-", " "))}"></p>')
    return (
        f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{title}</title>\n'
        f'<meta name="viewport" content="width=device-width">\n<style>{_STYLE}</style></head>\n<body>\n'
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


def _html_table(table: ReportTable) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.header)
    lines = []
    for row in table.rows:
        if len(row) == 1:
            lines.append(f'<tr class="group"><td colspan="{len(table.header)}">{escape(row[0])}</td></tr>')
        else:
            lines.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n" + "\n".join(lines) + "\n</tbody></table>"


def _opening(results: dict[str, Any]) -> str:
    records = results["settings"]
    iterations = sorted({record["options"]["iterations"] for record in records})
    counts = " and ".join(f"{n:,}" for n in iterations)
    return (
        f"{len(records)} of the paper's 42 settings, FOCUS with {counts or 'no'} iterations. Published: the paper's "
        "figure. Faithful: with the particularities of the authors' program. As written: by the paper's equations. "
        "Optimum: the smallest change there is, or the smallest known where the proof ran out of time."
    )
