"""What users see and keep, byte for byte as it was recorded: texts, tables, pages, JSON, the command line, REST, files.

    TREEFOCUS_RECORD=1 python -m pytest tests/test_recorded.py

records anew; what changed shows in the files of `tests/recorded`. Clock times, random names and the package's version
are left out. Every search is limited in boxes or ends long before its seconds do, so that no machine is too slow.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from pyarrow import parquet
from typer.main import get_command
from typer.testing import CliRunner

from support.servers import serving, wait_until
from treefocus import (
    AtMost,
    Auto,
    Condition,
    Explainer,
    Explanations,
    Feature,
    Fixed,
    Forest,
    Implies,
    Increasing,
    Interval,
    InvalidInput,
    Linear,
    LocalOutlierFactor,
    MayBeMissing,
    OneOf,
    Probability,
    Range,
    Schema,
    Together,
    explain,
    kernels,
    loans,
    verify,
)
from treefocus.app.demo import demo_service
from treefocus.cli import app
from treefocus.scale.files import explain_file

FOLDER = Path(__file__).parent / "recorded"
IS_RECORDING = bool(os.environ.get("TREEFOCUS_RECORD"))
BOXES = Auto(time_limit=None, node_limit=20_000)
HOUSING = ("own", "rent", "free")
Texts = dict[str, str]


# --- models and rows


@cache
def applicants() -> Any:
    """Eight declined applications and an approved one."""
    X, _ = loans.load()
    answer = loans.forest().classes[kernels.predict(loans.forest(), X)]
    return np.concatenate([X[answer == "declined"][:8], X[answer == "approved"][:1]])


@cache
def loan_explainer(distance: str = "manhattan") -> Explainer:
    X, _ = loans.load()
    return Explainer(loans.forest(), X, distance=distance, schema=loans.SCHEMA, constraints=loans.CONSTRAINTS)


@cache
def loan_answers(n: int = 1) -> Explanations:
    found = loan_explainer().explain(applicants(), target="approved", strategy=BOXES, n=n, n_jobs=1)
    return timeless(found)


def timeless(found: Explanations) -> Explanations:
    return replace(found, seconds=0.0, others=tuple(replace(other, seconds=0.0) for other in found.others))


def homes(**changes: Any) -> Forest:
    """Income, home and age: three small trees, one of them on categories, missing values welcome."""
    record: dict[str, Any] = {
        "feature": [0, -1, -1, 1, -1, -1, 2, -1, 0, -1, -1],
        "threshold": [30_000.0, 0.0, 0.0, 0.0, 0.0, 0.0, 40.0, 0.0, 52_000.0, 0.0, 0.0],
        "left": [1, -1, -1, 4, -1, -1, 7, -1, 9, -1, -1],
        "right": [2, -1, -1, 5, -1, -1, 8, -1, 10, -1, -1],
        "default_left": [True] * 11,
        "tree_start": [0, 3, 6, 11],
        "leaf_value": [[1.0, 0.0], [0.2, 0.8], [0.1, 0.9], [0.7, 0.3], [0.6, 0.4], [0.5, 0.5], [0.0, 1.0]],
        "base_score": [0.0, 0.0],
        "classes": ["no", "yes"],
        "n_features": 3,
        "divisor": 3.0,
        "takes_missing": True,
        "feature_names": ["income", "home", "age"],
        "categories": {
            "labels": [None, list(HOUSING), None], "set_start": [0, 1], "set_member": [0],
            "set_of_node": [-1, -1, -1, 0, -1, -1, -1, -1, -1, -1, -1],
        },
        "source": "forest by hand",
    }  # fmt: skip
    return Forest.from_record(record | changes)


DATA = pd.DataFrame(
    {"income": [0.0, 90_000.0, 30_000.0, 45_000.0], "home": ["own", "rent", "free", "own"], "age": [18, 90, 40, 41]}
)
ROWS = pd.DataFrame(
    {
        "income": [20_000.0, 25_000.0, np.nan, 29_000.5, 80_000.0],
        "home": ["rent", "own", "castle", None, "own"],
        "age": [30, 50, 44, 20, 66],
    },
    index=["Ann", "Bob", "Çağ", "<b>", "ok"],
)
HOME_SCHEMA = Schema(
    [
        Feature("income", unit="EUR", label="your income", up="higher", down="lower"),
        Feature("home", "categorical", values=HOUSING, label="your home"),
        Feature("age", "integer", "years"),
    ],
    "your application",
    {"no": "declined", "yes": "approved"},
)


def prices() -> Forest:
    """A number for area and rooms."""
    record = {
        "feature": [0, -1, 1, -1, -1], "threshold": [80.0, 0.0, 3.5, 0.0, 0.0], "left": [1, -1, 3, -1, -1],
        "right": [2, -1, 4, -1, -1], "default_left": [False] * 5, "tree_start": [0, 5],
        "leaf_value": [[100_000.0], [180_000.0], [250_000.0]], "base_score": [10_000.0], "classes": [],
        "n_features": 2, "decision": "value", "feature_names": ["area", "rooms"], "source": "prices by hand",
    }  # fmt: skip
    return Forest.from_record(record)


# --- what is recorded: a function a kind, its texts by file name


def loan_texts() -> Texts:
    found, ways = loan_answers(), loan_answers(3)
    lines = [repr(found), repr(found[0]), *(found.to_text(language=code) for code in ("en", "de", "fr"))]
    lines += [ways.to_text(language=code, proof=True) for code in ("en", "de", "fr")]
    lines += [ways.to_text(), json.dumps(found.summary(), default=str), json.dumps(found.summary("dependants"))]
    letters = [
        found[i].to_letter(code, recipient="Ms Hall", sender="The bank") for i in (0, 8) for code in ("en", "de", "fr")
    ]
    lines += letters
    for one in found[:2]:
        lines += [one.region().to_text(code) for code in ("en", "de", "fr")]
        lines += [repr(one.rounded(2)), one.rounded(2).to_text(), repr(one.rounded(2).larger)]
        lines += [str(one.probabilities()), *likeness(one)]
    lines += [str(found.probabilities().tolist()), str(found.gap.tolist())]
    return {"loans.txt": "\n".join(lines)}


def loan_tables() -> Texts:
    found = loan_answers()
    frames = [found.to_frame(), found.changes_frame(), found[0].to_frame(), loan_answers(3).to_frame()]
    return {
        "loans.csv": "\n".join(written_frame(frame) for frame in frames) + written_frame(found.counterfactuals),
        "loans.json": found.to_json() + "\n" + loan_answers(3).to_json(),
        "loans-table.html": found._repr_html_() + "\n" + found[0]._repr_html_(),
    }


def loan_page(folder: Path) -> Texts:
    path = loan_answers().to_html(folder / "report.html", groups="dependants", title="Loans")
    return {"report.html": path.read_text("utf-8")}


def certificates() -> Texts:
    texts = []
    for one in (loan_answers()[0], loan_answers()[8]):
        certificate = one.certificate()
        texts.append(verify(certificate, loans.forest()).to_text())
        texts.append(json.dumps({k: v for k, v in certificate.items() if k not in ("version", "fingerprint")}))
    return {"certificate.txt": "\n".join(texts)}


def category_answers() -> Texts:
    lines = []
    explainer = Explainer(homes(), DATA, distance="manhattan", schema=HOME_SCHEMA)
    for target in ("yes", None, Probability("yes", at_least=0.6)):
        found = timeless(explainer.explain(ROWS, target=target, strategy=BOXES, n=2))
        lines += [found.to_text(language=code) for code in ("en", "de", "fr")]
        lines += [written_frame(found.to_frame()), written_frame(found.counterfactuals), found.to_json()]
        lines += [
            written_frame(found.changes_frame()),
            written_frame(Explanations.from_json(found.to_json()).to_frame()),
        ]
    frame = explainer.explain(pl.from_pandas(ROWS), target="yes", strategy=BOXES).to_frame()
    return {"categories.txt": "\n".join([*lines, str(frame.schema), frame.write_csv()])}


def constraint_answers() -> Texts:
    """Every kind of constraint, what it costs, and which of them leave no answer."""
    kinds: list[Any] = [
        Fixed("income"), Increasing("age"), Range("income", 0, 50_000), Range("age", -0.2, 0.2, relative=True),
        OneOf("home", ["own", "free"]), AtMost(1), Linear({"income": 1, "age": -1000}, at_most=0),
        Together("income", "age"), MayBeMissing("income"),
        Implies(Condition("age", high=35), Condition("home", values=["rent"])), "income within 10%", "age fixed",
    ]  # fmt: skip
    lines = []
    for kind in kinds:
        found = Explainer(homes(), DATA, constraints=kind).explain(ROWS, target="yes", strategy=BOXES)
        lines += [str(kind), found.to_text(), *(price.to_text() for price in found[0].price_of_constraints())]
        lines += [one.why_not(time_limit=30).to_text(code) for one in found[:2] for code in ("en", "de", "fr")]
    return {"constraints.txt": "\n".join(lines)}


def number_answers() -> Texts:
    rows = np.array([[60, 3], [90, 2], [120, 5]])
    explainer = Explainer(prices(), np.array([[20, 1], [200, 8]]), weights={"rooms": 2.0})
    found = timeless(explainer.explain(rows, target=Interval(low=150_000, high=230_000), strategy=BOXES))
    texts = [found.to_text(language=code) for code in ("en", "de", "fr")]
    return {
        "numbers.txt": "\n".join([*texts, found.to_json(), str(found.counterfactuals), str(found[0].predictions())])
    }


def folded_answers() -> Texts:
    schema = Schema([Feature("home", "one-hot", columns=("home_own", "home_rent")), Feature("age", "integer")])
    record = {
        "feature": [0, -1, 2, -1, -1], "threshold": [0.5, 0.0, 40.5, 0.0, 0.0], "left": [1, -1, 3, -1, -1],
        "right": [2, -1, 4, -1, -1], "default_left": [False] * 5, "tree_start": [0, 5],
        "leaf_value": [[1.0, 0.0], [0.8, 0.2], [0.0, 1.0]], "base_score": [0.0, 0.0], "classes": ["no", "yes"],
        "n_features": 3, "feature_names": ["home_own", "home_rent", "age"], "source": "groups by hand",
    }  # fmt: skip
    data = pd.DataFrame({"home_own": [1, 0, 0], "home_rent": [0, 1, 1], "age": [20, 60, 40]})
    explainer = Explainer(Forest.from_record(record), data, schema=schema)
    found = timeless(explainer.explain(data, target="yes", strategy=BOXES))
    return {"one-hot.txt": "\n".join([found.to_text(), found.to_json(), written_frame(found.counterfactuals)])}


def plausible_answers() -> Texts:
    X, _ = loans.load()
    found = explain(
        loans.forest(), applicants()[:2], data=X[:400], schema=loans.SCHEMA, constraints=loans.CONSTRAINTS,
        plausibility=LocalOutlierFactor(limit=1.5), strategy=BOXES, target="approved",
    )  # fmt: skip
    return {"plausible.txt": "\n".join([found.to_text(), *(line for one in found for line in likeness(one))])}


def model_files(folder: Path) -> Texts:
    homes().save(folder / "homes.json")
    HOME_SCHEMA.save(folder / "homes.yaml")
    loans.SCHEMA.save(folder / "loans.yaml")
    return {
        "model-files.txt": "\n".join(
            (folder / name).read_text("utf-8") for name in ("homes.json", "homes.yaml", "loans.yaml")
        )
    }


def complaints() -> Texts:
    """What misuse is told."""
    explainer = loan_explainer()
    calls: list[Callable[[], Any]] = [
        lambda: Explainer(loans.forest(), np.zeros((2, 3))),
        lambda: Explainer(loans.forest(), loans.load()[0], scale="ranges"),
        lambda: Explainer(loans.forest(), loans.load()[0], distance="euclid"),
        lambda: Explainer(loans.forest(), loans.load()[0], constraints="age fixt"),
        lambda: Explainer(loans.forest(), loans.load()[0], schema=loans.SCHEMA, constraints=Fixed("agee")),
        lambda: Explainer(loans.forest(), loans.load()[0], plausibility=3),
        lambda: Explainer(homes(), DATA.drop(columns="age")),
        lambda: Explainer(homes(), DATA).explain(ROWS.rename(columns={"age": "years"})),
        lambda: Explainer(homes(), DATA).explain(ROWS.assign(age="old")),
        lambda: explainer.explain(applicants(), target="maybe"),
        lambda: explainer.explain(applicants(), time_limit=-1),
        lambda: explainer.explain(applicants(), strategy="magic"),
        lambda: explainer.explain(applicants(), n=0),
        lambda: explainer.explain(applicants()[0]),
    ]
    lines = []
    for call in calls:
        with pytest.raises(InvalidInput) as raised:
            call()
        lines.append(str(raised.value))
    return {"complaints.txt": "\n".join(lines)}


def command_line(folder: Path) -> Texts:
    X, y = loans.load()
    (folder / "train.csv").write_text(loans.to_csv(X[:500], y[:500]))
    (folder / "rows.csv").write_text(loans.to_csv(applicants()[:3], np.array(["?"] * 3)))
    loans.forest().save(folder / "model.json")
    (folder / "certificate.json").write_text(json.dumps(loan_answers()[0].certificate()))
    files = (
        "explain",
        folder / "model.json",
        folder / "rows.csv",
        "--train",
        folder / "train.csv",
        "--ignore",
        "decision",
    )
    search = ("--target", "approved", "--time-limit", "60", "--n-jobs", "1")
    words = (
        "--constraint",
        "age fixed",
        "--fix",
        "dependants",
        "--increasing",
        "savings",
        "--range",
        "income:0:200000",
    )
    calls: list[tuple[Any, ...]] = [
        (*files, *search), (*files, *search, *words, "--ways", "2", "--distance", "manhattan", "--weight", "income:2"),
        (*files, *search, "-o", folder / "answers.csv"), (*files, *search, "-o", folder / "answers.json"),
        (*files, *search, "-o", folder / "answers.xlsx"), (*files[:3], *search),
        (*files, *search[2:], "--target", "maybe"), (*files, *search, "-o", f"{folder}/parts", "--part-rows", "2"),
        ("schema", folder / "train.csv"), ("verify", folder / "certificate.json", folder / "model.json"),
    ]  # fmt: skip
    lines = []
    for call in calls:
        result = CliRunner().invoke(
            app, [str(word) for word in call], env={"COLUMNS": "110", "TERM": "dumb", "NO_COLOR": "1"}
        )
        lines.append(f"$ treefocus {' '.join(map(str, call))}\n{result.stdout}{result.stderr}exit {result.exit_code}\n")
    lines.append((folder / "answers.csv").read_text("utf-8"))
    lines.append((folder / "answers.json").read_text("utf-8"))
    return {"command-line.txt": _without_times("\n".join([*_options(), *lines])).replace(str(folder), "FOLDER")}


def _options() -> list[str]:
    """Every command with its help and every option, whatever the library draws around them."""
    commands: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]
    lines = []
    for name, command in commands.items():
        lines += [name, command.short_help or "", command.help or ""]
        for one in command.params:
            told = getattr(one, "help", None)
            lines.append(f"{one.opts} {one.default!r} {one.metavar} {one.required} {one.multiple} {told}")
    return lines


def streamed_files(folder: Path) -> Texts:
    rows = pd.DataFrame(applicants(), columns=loans.SCHEMA.names)
    rows.insert(0, "customer", range(100, 100 + len(rows)))
    rows.to_csv(folder / "rows.csv", index=False)
    lines = []
    for number, (explainer, path) in enumerate(
        [(loan_explainer(), folder / "rows.csv"), (homes_explainer(), _home_rows(folder))]
    ):
        explain_file(explainer, path, folder / str(number), part_rows=4, keep=["customer"], n_jobs=1)
        for name in sorted(os.listdir(folder / str(number))):
            file = folder / str(number) / name
            lines.append(name)
            if name.endswith(".parquet"):
                table = parquet.read_table(file)
                lines += [str(table.schema.remove_metadata()), *(json.dumps(line) for line in table.to_pylist())]
            elif name.endswith(".json"):
                lines.append(_without_run(file.read_text("utf-8")))
    return {"parts.txt": "\n".join(lines)}


def _without_run(manifest: str) -> str:
    """Without what tells of this machine and this day, and hashes of files that hold the version."""
    record = json.loads(manifest)
    del record["run"]
    for part in record["parts"]:
        del part["sha256"], part["bytes"]
    return json.dumps(record, indent=1) + "\n"


def homes_explainer() -> Explainer:
    return Explainer(homes(), DATA, distance="manhattan", schema=HOME_SCHEMA)


def _home_rows(folder: Path) -> Path:
    path = folder / "homes.csv"
    ROWS.assign(customer=range(5)).to_csv(path, index=False)
    with path.open("a") as file:
        file.write("much,own,30,5\n1,own\n")
    return path


def rest_calls(folder: Path) -> Texts:
    service = demo_service(time_limit=10.0)
    row = dict(zip(loans.SCHEMA.names, applicants()[0].tolist(), strict=True))
    rows = applicants()[:2].tolist()
    bodies: list[Any] = [
        {"rows": [row]},
        {"rows": rows, "distance": "euclidean", "target": "approved", "n": 2, "time_limit": 10},
        {"rows": rows, "constraints": ["age fixed", {"kind": "range", "column": "income", "low": 0, "high": 90_000}]},
        {"rows": rows, "target": {"kind": "probability", "label": "approved", "at_least": 0.7}},
        {"rows": rows, "weights": {"income": 2}, "scale": "std", "bounds": None, "seed": 1, "strategy": "exact"},
        {"rows": rows, "plausibility": {"kind": "local_outlier_factor", "limit": 2}},
        {"rows": rows, "plausibility": {"kind": "lof", "limit": 2}},
        {"rows": [[1, 2]]}, {"rows": [{"agee": 3}]}, {"rows": "none"}, {}, {"rows": rows, "distance": "near"},
        {"rows": rows, "constraints": ["agee fixed"]}, {"rows": rows, "time_limit": 1e9}, {"rows": rows, "colour": 1},
    ]  # fmt: skip
    texts = []
    with serving(service, folder / "jobs") as client:
        for path in ("/v1/health", "/v1/model", "/v1/jobs", "/v1/nothing", "/v1/jobs/none"):
            answer = client.get(path)
            texts.append(f"GET {path} {answer.status_code}\n{answer.text}")
        for path in ("/v1/predict", "/v1/explain"):
            for body in bodies if path.endswith("explain") else [{"rows": rows}, {"rows": [row]}, {"rows": [[1]]}]:
                answer = client.post(path, json=body)
                texts.append(f"POST {path} {json.dumps(body)} {answer.status_code}\n{answer.text}")
        place = client.post("/v1/jobs", json=bodies[1]).headers["Location"]
        wait_until(lambda: client.get(place).json()["status"] == "done")
        texts += [client.get(place).text, client.get(f"{place}/result").text]
        texts.append((folder / "jobs" / place.rpartition("/")[2] / "request.json").read_text("utf-8"))
        texts.append(", ".join(sorted(os.listdir(folder / "jobs" / place.rpartition("/")[2]))))
        document = client.get("/v1/openapi.json").json()
    return {"rest.txt": _without_times("\n".join(texts)), "openapi.txt": "\n".join(_described(document))}


def _described(value: Any, place: str = "", key: str = "") -> Iterator[str]:
    """What the document says in our own words and names, a line each; how the library puts it is its business."""
    if isinstance(value, dict):
        for name in sorted(value):
            yield from _described(value[name], f"{place}/{name}", name)
    elif key in ("description", "summary", "$ref", "default", "enum", "const", "required", "tags", "type"):
        yield f"{place}: {value}"
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from _described(one, f"{place}/{number}", key)


def likeness(one: Any) -> list[str]:
    """Without the isolation, whose forest another version of scikit-learn may grow otherwise."""
    like = one.plausibility
    return [f"{name} {getattr(like, name):.9g}" for name in ("local_outlier_factor", "nearest", "nearest_alike")]


def written_frame(frame: Any) -> str:
    if isinstance(frame, np.ndarray):
        return f"{frame.dtype} {frame.tolist()}"
    file = StringIO()
    frame.to_csv(file)
    kinds = {name: str(kind).replace("object", "str") for name, kind in frame.dtypes.items()}
    return f"{kinds}\n{file.getvalue()}"


def _without_times(text: str) -> str:
    text = re.sub(r"(\"seconds\": )[\d.e-]+", r"\1TIME", text)
    text = re.sub(r"[\d,.]+( rows per second|  *rows/s)", r"TIME\1", text)
    text = re.sub(r"in [\d.]+ (ms|s)\b", "in TIME", text)
    text = re.sub(r"\"\d{4}-\d\d-\d\dT[^\"]+\"", '"WHEN"', text)
    return re.sub(r"\b[0-9a-f]{32}\b", "ID", text)


RECORDED: list[Callable[..., Texts]] = [
    loan_texts, loan_tables, loan_page, certificates, category_answers, constraint_answers, number_answers,
    folded_answers, plausible_answers, model_files, complaints, command_line, streamed_files, rest_calls,
]  # fmt: skip


@pytest.mark.parametrize("record", RECORDED, ids=lambda record: record.__name__)
def test_every_byte_is_as_it_was(record: Callable[..., Texts], tmp_path: Path) -> None:
    texts = record(tmp_path) if record.__code__.co_argcount else record()
    assert texts
    for name, text in texts.items():
        path = FOLDER / name
        if IS_RECORDING:
            FOLDER.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
        with path.open(encoding="utf-8", newline="") as file:
            was = file.read()
        assert text.splitlines() == was.splitlines(), name
        assert text == was, name
