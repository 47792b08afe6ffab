"""Explainers and explanations in MLflow: kept with a run, served like a model, without pickles.

    import treefocus.mlflow

    with mlflow.start_run():
        uri = treefocus.mlflow.log_explainer(explainer)
        treefocus.mlflow.log_explanations(found)
    explainer = treefocus.mlflow.load_explainer(uri)

Needs the extra `mlflow`. What is logged is the file of `Explainer.save` under MLflow's generic "python function", so
that `mlflow.pyfunc.load_model(uri).predict(rows)` answers too, with a line a row.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from treefocus.errors import InvalidInput
from treefocus.explainer import Explainer
from treefocus.explainer import load_explainer as read_explainer
from treefocus.explanation.batch import Explanations

FILE = "explainer.json.gz"


def log_explainer(explainer: Explainer, name: str = "explainer") -> str:
    """Keep an explainer with the active run, or with a new one.

    Parameters
    ----------
    explainer : Explainer
        Any that can be saved: its distance is not a function of the user's own.
    name : str
        What it is called in MLflow.

    Returns
    -------
    str
        The URI for `load_explainer`, `mlflow.pyfunc.load_model` and the model registry.

    Examples
    --------
    >>> import treefocus.mlflow
    >>> uri = treefocus.mlflow.log_explainer(explainer)  # doctest: +SKIP
    """
    mlflow = _mlflow()
    from importlib.metadata import version

    with TemporaryDirectory() as folder:
        explainer.save(Path(folder) / FILE)
        logged = mlflow.pyfunc.log_model(
            name=name,
            loader_module=__name__,
            data_path=str(Path(folder) / FILE),
            signature=_signature(explainer),
            pip_requirements=[f"treefocus=={version('treefocus')}"],
        )
    return str(logged.model_uri)


def load_explainer(uri: str) -> Explainer:
    """Read an explainer that `log_explainer` kept.

    Parameters
    ----------
    uri : str
        As `log_explainer` gave it, or of the model registry: "models:/credit/3".

    Examples
    --------
    >>> import treefocus.mlflow
    >>> explainer = treefocus.mlflow.load_explainer("models:/credit/3")  # doctest: +SKIP
    """
    folder = Path(_mlflow().artifacts.download_artifacts(uri))
    files = sorted(folder.rglob(FILE))
    if not files:
        raise InvalidInput(f"There is no explainer at {uri}: no file {FILE} is there.")
    return read_explainer(files[0])


def log_explanations(found: Explanations, name: str = "explanations") -> None:
    """Keep answers with the active run: JSON and a report as artefacts, what is known of them all as metrics.

    Parameters
    ----------
    found : Explanations
        What `explain` gave.
    name : str
        The folder of the artefacts, and the beginning of the metrics' names.

    Examples
    --------
    >>> import treefocus.mlflow
    >>> treefocus.mlflow.log_explanations(found)  # doctest: +SKIP
    """
    mlflow = _mlflow()
    with TemporaryDirectory() as folder:
        found.to_json(Path(folder) / "explanations.json")
        found.to_html(Path(folder) / "report.html")
        mlflow.log_artifacts(folder, name)
    mlflow.log_metrics({f"{name}.{key}": value for key, value in _metrics(found).items()})


def _metrics(found: Explanations) -> dict[str, float]:
    """What a batch comes to, as numbers that runs are compared by."""
    names = [one.name for one in found.status]
    numbers = {"rows": float(len(found)), **{name.lower(): float(names.count(name)) for name in sorted(set(names))}}
    if found.has_answer.any():
        numbers["mean_distance"] = float(found.distance[found.has_answer].mean())
        numbers["mean_gap"] = float(found.gap[found.has_answer].mean())
    return numbers


class ServedExplainer:
    """An explainer as MLflow's "python function": rows in, a line of `Explanations.to_frame` each out."""

    def __init__(self, explainer: Explainer) -> None:
        self.explainer = explainer

    def predict(self, rows: Any, params: dict[str, Any] | None = None) -> Any:
        """The answers; `params` are options of `Explainer.explain`, a target, say."""
        return self.explainer.explain(rows, **(params or {})).to_frame()


def _load_pyfunc(path: str) -> ServedExplainer:
    """What MLflow calls to load the model, by this name."""
    return ServedExplainer(read_explainer(path))


def _signature(explainer: Explainer) -> Any:
    """Names and kinds of the columns, and the target, as MLflow checks them before every call."""
    from mlflow.models.signature import ModelSignature
    from mlflow.types.schema import ColSpec, DataType, ParamSchema, ParamSpec, Schema

    names = explainer.column_names or tuple(map(str, range(len(explainer.column_labels))))
    kinds = [DataType.double if labels is None else DataType.string for labels in explainer.column_labels]
    columns: list[Any] = [ColSpec(kind, name, required=False) for kind, name in zip(kinds, names, strict=True)]
    if explainer.forest.decision == "value":
        return ModelSignature(inputs=Schema(columns))
    target = ParamSchema([ParamSpec("target", DataType.string, None)])
    return ModelSignature(inputs=Schema(columns), params=target)


def _mlflow() -> Any:
    try:
        import mlflow
        import mlflow.pyfunc
    except ModuleNotFoundError as error:
        raise InvalidInput("MLflow is not installed: pip install 'treefocus[mlflow]'.") from error
    return mlflow
