"""The command line: what a newcomer types, what comes out, and one line when it was wrong."""

import csv
import gzip
import json
import pickle
import re
import signal
import subprocess
import sys
from dataclasses import replace

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

import treefocus
from treefocus import loans
from treefocus.cli import app
from treefocus.commands.file_names import file_names
from treefocus.explainer import Explainer
from treefocus.explanation.batch import Explanations
from treefocus.tables.files import read_table

NAMES = loans.SCHEMA.names
PRICE = np.eye(len(NAMES))[1] + 0.1 * np.eye(len(NAMES))[2]  # what the regression predicts
OWN = ["row", "predicted", "outcome", "status", "distance", "lower_bound", "gap", "reason"]


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def works(*arguments):
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result


def fails(*arguments):
    """One line on stderr, exit code 2, no traceback; returns the line."""
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    lines = result.stderr.strip().splitlines()
    complaints = [line for line in lines if not line.startswith("Note: ")]
    assert len(complaints) == 1, result.stderr
    assert complaints[0].startswith("Error: ")
    assert "Traceback" not in result.output
    assert not result.stdout
    return complaints[0]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with a model in every form and rows in every form."""
    folder = tmp_path_factory.mktemp("cli")
    X, y = loans.generate(400, seed=5)
    model = RandomForestClassifier(12, max_depth=4, random_state=0).fit(X, y)
    forest = replace(Explainer(model, X).forest, feature_names=NAMES)
    forest.save(folder / "model.json")
    forest.save(folder / "model.json.gz")
    replace(forest, feature_names=None).save(folder / "nameless.json")
    numbered = RandomForestClassifier(8, max_depth=3, random_state=0).fit(X, (y == "approved").astype(int))
    replace(Explainer(numbered, X).forest, feature_names=NAMES).save(folder / "numbered.json")
    priced = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X, X @ PRICE)
    replace(Explainer(priced, X).forest, feature_names=NAMES).save(folder / "priced.json")
    joblib.dump(model, folder / "model.joblib")
    (folder / "model.pkl").write_bytes(pickle.dumps(model))
    (folder / "linear.pkl").write_bytes(pickle.dumps(LogisticRegression(max_iter=5000).fit(X[:, :2] / 50, y)))
    declined = X[model.predict(X) == "declined"][:6]
    (folder / "train.csv").write_text(loans.to_csv(X, y))
    labelled = loans.to_csv(declined, np.full(6, "declined"))
    (folder / "labelled.csv").write_text(labelled)
    plain = "".join(line.rpartition(",")[0] + "\n" for line in labelled.splitlines())
    (folder / "rows.csv").write_text(plain)
    (folder / "rows.tsv").write_text(plain.replace(",", "\t"))
    treefocus.tables.files.write_columns(folder / "rows.parquet", dict(zip(NAMES, declined.T.tolist(), strict=True)))
    return folder


@pytest.fixture
def explain(files):
    """`treefocus explain` with the training rows, the label column left out."""
    model, data, train = files / "model.json", files / "rows.csv", files / "train.csv"

    def ask(*arguments, model=model, data=data, check=works):
        return check("explain", model, data, "--train", train, "--ignore", "decision", *arguments)

    return ask


def answers(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


# --- help and version


def test_help_in_a_real_process():
    result = subprocess.run(
        [sys.executable, "-m", "treefocus", "--help"], capture_output=True, text=True, check=True, timeout=60
    )
    assert "treefocus demo" in result.stdout
    assert "smallest change" in result.stdout
    assert not result.stderr


@pytest.mark.parametrize("arguments", [("--help",), ("-h",), ()])
def test_help_names_the_commands(arguments):
    output = works(*arguments).stdout
    assert "demo" in output
    assert "explain" in output


def test_help_of_explain_warns_of_pickles():
    output = works("explain", "--help").stdout
    assert "--allow-pickle" in output
    assert "code" in output


def test_version():
    assert works("--version").stdout.strip() == f"treefocus {treefocus.__version__}"


# --- demo


def test_demo_prints_sentences_and_a_summary():
    output = works("demo", "--rows", 20).stdout
    assert output.count("Your application would be approved if") == 3 * 4
    for distance in ("euclidean", "manhattan", "cosine", "mahalanobis"):
        assert f"{distance} distance" in output
    assert "20 rows" in output
    assert "rows per" in output
    assert "times the smallest change" in output


def test_demo_of_one_row_draws_by_seed():
    texts = {works("demo", "--rows", 1, "--seed", seed).stdout for seed in (1, 2)}
    assert len(texts) == 2
    assert "Applicant 1" not in "".join(texts)


def test_demo_needs_a_row():
    assert "--rows" in fails("demo", "--rows", 0)


# --- explain


def test_explain_prints_table_sentences_and_summary(explain):
    result = explain("--target", "approved", "--fix", "age")
    assert "6 of 6 rows" in result.stdout
    assert result.stdout.count("It would be predicted 'approved' if") == 3
    assert "rows per second" in result.stdout
    assert not result.stderr


def test_letters_ask_for_an_answer_that_holds_unless_told_otherwise(explain, tmp_path):
    for name, more in (("default", ()), ("hold", ("--hold", 0.95)), ("less", ("--hold", 0.6)), ("plain", ())):
        letters = () if name == "plain" else ("--letters", tmp_path / name)
        explain("--target", "approved", "-o", tmp_path / f"{name}.csv", *letters, *more)
    default, held, less, plain = (
        (tmp_path / f"{name}.csv").read_text() for name in ("default", "hold", "less", "plain")
    )
    assert default == held
    assert len({default, less, plain}) == 3
    assert "times the smallest change" in (tmp_path / "default" / "row-1.txt").read_text()


def test_letters_and_certificates_are_named_by_the_id(explain, files, tmp_path):
    ids = ["A-17", "../../etc/x", "a-17", "", "Müller & Söhne", "con"]
    header, *rows = (files / "rows.csv").read_text().splitlines()
    lines = [f"{header},customer", *(f"{row},{own}" for row, own in zip(rows, ids, strict=True))]
    (tmp_path / "named.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    folders = ("--letters", tmp_path / "letters", "--certificates", tmp_path / "proofs")
    explain("--id", "customer", "--hold", "0.6", *folders, data=tmp_path / "named.csv")
    named = {"A-17", "etc_x", "a-17-2", "row-4", "Müller_Söhne", "id-con"}
    assert {path.name for path in (tmp_path / "letters").iterdir()} == {f"{name}.txt" for name in named}
    assert {path.name for path in (tmp_path / "proofs").iterdir()} == {f"{name}.json" for name in named}


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=90), max_size=12))
def test_names_of_files_are_safe_and_apart(ids):
    names = file_names(len(ids), ids)
    assert len({name.casefold() for name in names}) == len(ids)
    for name in names:
        assert re.fullmatch(r"[\w-][\w.-]*", name)
        assert len(name.encode()) < 240


def test_without_training_rows_a_note_says_where_the_scale_comes_from(files):
    result = works("explain", files / "model.json", files / "rows.csv")
    assert result.stderr.startswith("Note: no --train")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("data", ["rows.csv", "rows.tsv", "rows.parquet"])
@pytest.mark.parametrize("model", ["model.json", "model.json.gz", "nameless.json"])
def test_every_kind_of_file_gives_the_same_answers(explain, files, tmp_path, model, data):
    explain("-o", tmp_path / "a.csv")
    explain("-o", tmp_path / "b.csv", model=files / model, data=files / data)
    for one, other in zip(answers(tmp_path / "a.csv"), answers(tmp_path / "b.csv"), strict=True):
        assert float(one["distance"]) == pytest.approx(float(other["distance"]))


@pytest.mark.parametrize("name", ["model.pkl", "model.joblib"])
def test_pickles_are_read_when_allowed(explain, files, tmp_path, name):
    explain("-o", tmp_path / "a.csv")
    explain("-o", tmp_path / "b.csv", "--allow-pickle", model=files / name)
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()


def test_columns_may_stand_in_any_order(explain, files, tmp_path):
    table = [line.split(",") for line in (files / "rows.csv").read_text().splitlines()]
    (tmp_path / "turned.csv").write_text("".join(",".join(cells[::-1]) + "\n" for cells in table))
    explain("-o", tmp_path / "a.csv")
    for model in ("model.json", "nameless.json"):  # without names, the training rows give the order
        explain("-o", tmp_path / "b.csv", model=files / model, data=tmp_path / "turned.csv")
        assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()


def test_constraints_hold(explain, files, tmp_path):
    options = ["--increasing", "income", "--increasing", "savings", "--decreasing", "loan_amount"]
    explain(
        *options, "--fix", "age", "--range", "savings::20000", "--range", "utilisation:0:100", "-o", tmp_path / "a.csv"
    )
    before = read_table(files / "rows.csv").values
    for row, answer in zip(before, answers(tmp_path / "a.csv"), strict=True):
        old = dict(zip(NAMES, row, strict=True))
        new = {name: float(answer[name]) for name in NAMES if answer[name]}
        if not new:
            continue
        assert new["age"] == old["age"]
        assert new["income"] >= old["income"]
        assert old["savings"] <= new["savings"] <= max(20000, old["savings"])
        assert new["loan_amount"] <= old["loan_amount"]


@pytest.mark.parametrize(
    "options",
    [
        ("--distance", "manhattan", "--scale", "std"),
        ("--distance", "mahalanobis", "--scale", "mad"),
        ("--scale", "none", "--bounds", "0:60000"),
        ("--bounds", ":1e6", "--n-jobs", 1, "--time-limit", 5, "--strategy", "focus", "--seed", 3),
    ],
)
def test_options_are_taken(explain, options):
    assert "6 rows:" in explain(*options).stdout


@pytest.mark.parametrize("label", ["1", "1.0"])
def test_target_matches_labels_that_are_not_text(explain, files, tmp_path, label):
    explain("--target", label, "-o", tmp_path / "a.csv", model=files / "numbered.json")
    assert {row["outcome"] for row in answers(tmp_path / "a.csv")} == {"1"}


def test_a_probability_to_reach(explain, tmp_path):
    explain("--target", "approved", "--at-least", 0.7, "-o", tmp_path / "a.json")
    found = Explanations.from_json(tmp_path / "a.json")
    assert found.favoured == "approved"
    assert (found.likelihood[:, 0] < 0.7).all()
    assert (found.likelihood[:, 1] >= 0.7).all()


@pytest.mark.parametrize("output", ["a.csv", "folder/"])
def test_a_number_to_reach(explain, files, tmp_path, output):
    low, high = np.quantile(read_table(files / "train.csv", ["decision"]).values @ PRICE, [0.4, 0.6])
    explain("--between", f"{low}:{high}", "-o", f"{tmp_path}/{output}", model=files / "priced.json")
    if output == "folder/":
        rows = [row for path in tmp_path.glob("folder/*.parquet") for row in parquet.read_table(path).to_pylist()]
    else:
        rows = answers(tmp_path / output)
    assert len(rows) == 6
    assert all(low <= float(row["outcome"]) <= high for row in rows)


def test_several_ways_out(explain, tmp_path):
    explain("--ways", 2, "-o", tmp_path / "a.json")
    first, second = Explanations.from_json(tmp_path / "a.json").ways
    both = first.has_answer & second.has_answer
    assert both.any()
    assert (first.is_moved[both] & ~second.is_moved[both]).any(axis=1).all()


def test_weights_make_changes_dear(explain, tmp_path):
    explain("-o", tmp_path / "plain.json")
    plain = Explanations.from_json(tmp_path / "plain.json")
    name = NAMES[int(plain.is_moved.sum(axis=0).argmax())]
    explain("--weight", f"{name}:1000", "-o", tmp_path / "dear.json")
    dear = Explanations.from_json(tmp_path / "dear.json")
    column = NAMES.index(name)
    assert dear.is_moved[:, column].sum() < plain.is_moved[:, column].sum()


def test_whole_numbers_come_from_the_training_rows(explain, files, tmp_path):
    """One row of whole numbers does not make its columns whole."""
    header, first, *_ = (files / "rows.csv").read_text().splitlines()
    cells = dict(zip(header.split(","), first.split(","), strict=True)) | {"credit_history_years": "3"}
    (tmp_path / "one.csv").write_text(f"{header}\n{','.join(cells.values())}\n")
    explain("-o", tmp_path / "a.json", "--fix", "savings", data=tmp_path / "one.csv")
    found = json.loads((tmp_path / "a.json").read_text())["rows"][0]
    after = dict(zip(NAMES, found["counterfactual"], strict=True))
    assert after["income"] == int(after["income"])
    assert after["credit_history_years"] == 3 or after["credit_history_years"] % 1 != 0


def test_column_names_are_not_markup(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.random((60, 2))
    model = RandomForestClassifier(3, max_depth=2, random_state=0).fit(X, X[:, 0] > 0.5)
    Explainer(model, X).forest.save(tmp_path / "model.json")
    lines = ["[/red],[bold]", *(f"{a},{b}" for a, b in X[:4])]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    output = works("explain", tmp_path / "model.json", tmp_path / "rows.csv").stdout
    assert "[/red] were" in output


# --- output files


def test_csv_and_tsv(explain, tmp_path):
    for name, delimiter in (("a.csv", ","), ("a.tsv", "\t")):
        result = explain("--target", "approved", "-o", tmp_path / name)
        assert f"Written to {tmp_path / name}." in result.stdout
        with (tmp_path / name).open(newline="") as file:
            rows = list(csv.reader(file, delimiter=delimiter))
        assert rows[0] == [*OWN, *NAMES]
        assert len(rows) == 7
        assert {row[2] for row in rows[1:]} <= {"approved", ""}
        assert all("." not in row[OWN.index("gap") + 4] for row in rows[1:])  # income in whole euros


def test_parquet_holds_what_csv_holds(explain, tmp_path):
    explain("-o", tmp_path / "a.csv")
    explain("-o", tmp_path / "a.parquet")
    table = parquet.read_table(tmp_path / "a.parquet")
    assert table.column_names == [*OWN, *NAMES]
    assert str(table.schema.field("income").type) == "int64"
    for row, other in zip(answers(tmp_path / "a.csv"), table.to_pylist(), strict=True):
        assert row["status"] == other["status"]
        assert float(row["distance"]) == other["distance"]
        assert all(float(row[name]) == other[name] for name in NAMES)


def test_json_holds_what_csv_holds(explain, tmp_path):
    explain("-o", tmp_path / "a.csv")
    explain("-o", tmp_path / "a.json")
    record = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert record["format"] == "treefocus-explanations-1"
    for row, other in zip(answers(tmp_path / "a.csv"), record["rows"], strict=True):
        assert row["status"] == other["status"]
        assert [float(row[name]) for name in NAMES] == other["counterfactual"]


def test_answers_can_be_asked_about_again(explain, files, tmp_path):
    """The columns of the answers are rows of the model: it gives them the other class."""
    explain("--target", "approved", "-o", tmp_path / "a.csv")
    options = [option for name in OWN for option in ("--ignore", name)]
    output = explain("--target", "approved", *options, data=tmp_path / "a.csv").stdout
    assert "6 OPTIMAL" in output
    assert "nothing has to change" in output


def test_constraints_can_be_written_as_text(explain, tmp_path):
    texts = ("--constraint", f"{', '.join(NAMES[1:])} fixed", "--constraint", f"{NAMES[0]} within 0%")
    assert "6 rows:" in explain(*texts).stdout
    explain(*texts, "-o", tmp_path / "a.csv")
    assert {row["status"] for row in answers(tmp_path / "a.csv")} == {"INFEASIBLE"}


def test_rows_without_an_answer_are_not_a_failure(explain, tmp_path):
    fixed = [option for name in NAMES for option in ("--fix", name)]
    explain(*fixed, "-o", tmp_path / "a.csv")
    rows = answers(tmp_path / "a.csv")
    assert {row["status"] for row in rows} <= {"INFEASIBLE", "NOT_FOUND"}
    assert {row["income"] for row in rows} == {""}
    assert "6 rows:" in explain(*fixed).stdout


# --- misuse


def test_missing_arguments_are_one_line():
    assert "MODEL" in fails("explain")
    assert "DATA" in fails("explain", "model.json")
    assert "frobnicate" in fails("frobnicate")
    assert "--frobnicate" in fails("explain", "a", "b", "--frobnicate")


def test_missing_files(explain, tmp_path):
    assert "There is no file" in explain(model=tmp_path / "none.json", check=fails)
    assert "There is no file" in explain("--allow-pickle", model=tmp_path / "none.pkl", check=fails)
    assert "There is no file" in explain(data=tmp_path / "none.csv", check=fails)
    assert "There is no file" in explain(model=tmp_path, check=fails)


def test_a_pickle_is_not_read_unasked(explain, files):
    assert "--allow-pickle" in explain(model=files / "model.pkl", check=fails)


def test_files_that_are_something_else(explain, files, tmp_path):
    (tmp_path / "bad.pkl").write_bytes(b"not a pickle")
    assert "unpickled" in explain("--allow-pickle", model=tmp_path / "bad.pkl", check=fails)
    assert "not supported" in explain("--allow-pickle", model=files / "linear.pkl", check=fails)
    (tmp_path / "bad.json").write_text("{")
    assert "JSON" in explain(model=tmp_path / "bad.json", check=fails)
    (tmp_path / "bad.json.gz").write_bytes(gzip.compress(b"[1]"))
    assert "JSON object" in explain(model=tmp_path / "bad.json.gz", check=fails)
    (tmp_path / "other.json").write_text('{"format": "other"}')
    assert "treefocus-forest-1" in explain(model=tmp_path / "other.json", check=fails)
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no")
    assert "cannot be read" in explain(data=tmp_path / "bad.parquet", check=fails)
    (tmp_path / "latin.csv").write_bytes("größe\n1\n".encode("latin-1"))
    assert "line 1: the byte 0xf6 after 'gr' is not utf-8" in explain(data=tmp_path / "latin.csv", check=fails)
    (tmp_path / "rows.xlsx").write_bytes(b"")
    assert ".csv, .tsv, .parquet" in explain(data=tmp_path / "rows.xlsx", check=fails)


def test_bad_rows(explain, files, tmp_path):
    header, first, *_ = (files / "rows.csv").read_text().splitlines()
    bad = tmp_path / "bad.csv"
    for text, part in {
        "": "is empty",
        f"{header}\n{first},1\n": "line 2",
        f"{header}\n{first.replace(first.split(',')[0], 'old', 1)}\n": "'old' is not a number",
        "age\n1\n": "lacks the columns dependants",
    }.items():
        bad.write_text(text)
        assert part in explain(data=bad, check=fails)
    told = works("explain", files / "model.json", files / "labelled.csv").stderr
    assert told.count("Note: decision in ") == 1
    named = works("explain", files / "model.json", files / "labelled.csv", "--id", "decision")
    assert "Note: decision" not in named.stderr
    assert "Row declined is predicted" in named.stdout
    assert "must be a column of" in fails("explain", files / "model.json", files / "rows.csv", "--id", "nobody")
    bad.write_text("age\n1\n")
    assert "12" in fails("explain", files / "nameless.json", bad)
    assert "no column left" in fails("explain", files / "nameless.json", bad, "--ignore", "age")


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (("--distance", "round"), "euclidean, manhattan"),
        (("--strategy", "luck"), "strategy must be"),
        (("--scale", "big"), "scale must be"),
        (("--target", "maybe"), "one of approved, declined, got 'maybe'"),
        (("--fix", "agee"), "Did you mean 'age'?"),
        (("--constraint", "age fixd"), "cannot be read"),
        (("--range", "income"), "COLUMN:LOW:HIGH"),
        (("--range", "income:1:b"), "COLUMN:LOW:HIGH"),
        (("--range", "income:5:1"), "from a low to a high"),
        (("--at-least", "0.5"), "say which with --target"),
        (("--target", "approved", "--at-least", "1.5"), "between 0 and 1"),
        (("--between", "5"), "LOW:HIGH"),
        (("--between", "5:6"), "ask for a class"),
        (("--between", "5:6", "--target", "approved"), "about a class"),
        (("--ways", "2", "-o", "folder/"), "one way out a row"),
        (("--ways", "0"), "--ways"),
        (("--weight", "income"), "COLUMN:NUMBER"),
        (("--weight", "incme:2"), "Did you mean 'income'?"),
        (("--weight", "income:-2"), "weight"),
        (("--bounds", "5"), "LOW:HIGH"),
        (("--bounds", "5:1"), "bounds"),
        (("--time-limit", "0"), "time_limit"),
        (("--time-limit", "soon"), "--time-limit"),
        (("--n-jobs", "0"), "n_jobs"),
        (("-o", "answers.xml"), ".csv, .tsv, .parquet, .json"),
        (("-o", "no/such/folder/answers.csv"), "There is no folder"),
    ],
)
def test_options_with_a_wrong_value(explain, options, part):
    assert part in explain(*options, check=fails)


def test_a_model_of_numbers_needs_a_number_to_reach(explain, files):
    assert "--between LOW:HIGH" in explain(model=files / "priced.json", check=fails)


def test_a_file_that_cannot_be_written(explain, tmp_path):
    (tmp_path / "a.csv").mkdir()
    assert "cannot be written" in explain("-o", tmp_path / "a.csv", check=fails)


def test_parquet_without_pyarrow(explain, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "pip install pyarrow" in explain("-o", tmp_path / "a.parquet", check=fails)
    (tmp_path / "rows.parquet").write_bytes(b"")
    assert "pip install pyarrow" in explain(data=tmp_path / "rows.parquet", check=fails)


def test_interrupting_is_quiet(explain, monkeypatch):
    def interrupted(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(Explainer, "explain", interrupted)

    def check(*arguments):
        result = run(*arguments)
        assert result.exit_code == 128 + signal.SIGINT
        assert "Traceback" not in result.output
        return result

    explain(check=check)


def test_a_bug_is_not_hidden(explain, monkeypatch):
    def broken(*_args, **_options):
        raise RuntimeError("a bug")

    monkeypatch.setattr(Explanations, "to_text", broken)
    result = explain(check=run)
    assert isinstance(result.exception, RuntimeError)


def test_schema_suggests_constraints(tmp_path):
    rng = np.random.default_rng(0)
    gross = rng.uniform(1000, 9000, 200)
    lines = [f"{g * share:.2f},{g:.2f}" for g, share in zip(gross, rng.uniform(0.5, 1, 200), strict=True)]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["net,gross", *lines]))
    result = run("schema", path, "--suggest")
    assert "net - gross <= 0  # holds in all 200 rows" in result.output
    assert "The rows seem to obey" not in run("schema", path).output


def test_schema_reads_decimal_commas_and_leaves_names_of_rows_out(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("person;net\n" + "".join(f"A{i};{i // 4},{25 * (i % 4):02d}\n" for i in range(60)))
    output = run("schema", path, "--decimal", ",", "--id", "person").output
    assert "by 0.25" in output
    assert "person" not in output
