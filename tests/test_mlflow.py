"""Explainers and explanations in MLflow, with a local store."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import treefocus.mlflow
from treefocus import Explainer, InvalidInput

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of MLflow's own
    mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed")

DATA = pd.DataFrame({"income": [20.0, 30.0, 50.0, 60.0], "debt": [5.0, 1.0, 4.0, 2.0]})
pytestmark = pytest.mark.filterwarnings("ignore")  # MLflow warns of what it does itself


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("mlflow")
    logging.getLogger("mlflow").setLevel(logging.ERROR)
    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    mlflow.create_experiment("treefocus", artifact_location=(folder / "artifacts").as_uri())
    mlflow.set_experiment("treefocus")
    yield mlflow
    mlflow.set_tracking_uri(None)


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    model = DecisionTreeClassifier().fit(DATA, ["declined", "declined", "approved", "approved"])
    return Explainer(model, DATA, constraints="debt fixed")


def test_an_explainer_is_kept_and_served(store: Any, explainer: Explainer) -> None:
    found = explainer.explain(DATA[:2], "approved")
    with store.start_run():
        uri = treefocus.mlflow.log_explainer(explainer)
    loaded = treefocus.mlflow.load_explainer(uri)
    assert loaded.constraints == explainer.constraints
    np.testing.assert_array_equal(loaded.explain(DATA[:2], "approved").points, found.points)
    served = store.pyfunc.load_model(uri)
    assert served.metadata.signature.inputs.input_names() == ["income", "debt"]
    answers = served.predict(DATA[:2], params={"target": "approved"})
    assert answers["outcome"].tolist() == ["approved", "approved"]
    with pytest.raises(Exception, match="income"):  # MLflow's own complaint, by the signature
        served.predict(DATA[["debt"]].assign(income="much")[:1])


def test_answers_are_kept_with_their_numbers(store: Any, explainer: Explainer, tmp_path: Path) -> None:
    found = explainer.explain(DATA[:2])
    with store.start_run() as run:
        treefocus.mlflow.log_explanations(found)
    kept = store.get_run(run.info.run_id).data.metrics
    assert kept["explanations.rows"] == kept["explanations.optimal"] == 2
    assert kept["explanations.mean_distance"] == pytest.approx(found.distance.mean())
    folder = store.artifacts.download_artifacts(
        run_id=run.info.run_id, artifact_path="explanations", dst_path=str(tmp_path)
    )
    assert sorted(path.name for path in Path(folder).iterdir()) == ["explanations.json", "report.html"]


def test_another_model_is_no_explainer(store: Any, tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("other")
    with store.start_run() as run:
        store.log_artifact(str(tmp_path / "other.txt"), "other")
    with pytest.raises(InvalidInput, match=r"no explainer at runs:/.*: no file explainer\.json\.gz"):
        treefocus.mlflow.load_explainer(f"runs:/{run.info.run_id}/other")
