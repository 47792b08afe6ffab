"""The container files: what they promise, read from them; they are built where Docker is."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from treefocus.cli import app

ROOT = Path(__file__).parents[1]
yaml = pytest.importorskip("yaml")


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split()[0], line.partition(" ")[2].strip()) for line in lines]


def serve_options() -> set[str]:
    return {name for one in get_command(app).commands["serve"].params for name in one.opts}  # type: ignore[attr-defined]


def test_the_image_runs_without_rights_and_can_be_asked_how_it_is() -> None:
    steps = instructions()
    names = [name for name, _ in steps]
    known = {
        "FROM",
        "RUN",
        "WORKDIR",
        "COPY",
        "USER",
        "ENV",
        "VOLUME",
        "EXPOSE",
        "HEALTHCHECK",
        "STOPSIGNAL",
        "ENTRYPOINT",
        "CMD",
    }
    assert set(names) <= known
    images = [text for name, text in steps if name == "FROM"]
    assert all(re.fullmatch(r"python:3\.\d+-slim( AS \w+)?", image) for image in images)
    last = steps[len(names) - 1 - names[::-1].index("FROM") :]
    (user,) = [text for name, text in last if name == "USER"]
    assert user not in ("root", "0")
    after = [name for name, _ in last[[name for name, _ in last].index("USER") :]]
    assert "RUN" not in after
    assert {"HEALTHCHECK", "ENTRYPOINT", "STOPSIGNAL"} <= set(after)


def test_what_the_container_files_call_is_there() -> None:
    own = dict(instructions())
    entry = shlex.split(own["ENTRYPOINT"].strip("[]").replace(",", " "))
    assert entry[:2] == ["treefocus", "serve"]
    service: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"][
        "treefocus"
    ]
    for word in [*entry, *service["command"]]:
        if word.startswith("--"):
            assert word in serve_options(), word
    code = own["HEALTHCHECK"].partition("CMD ")[2]
    compile(yaml.safe_load(code)[2], "HEALTHCHECK", "exec")
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])


def test_the_unit_in_the_documents_calls_options_that_are_there() -> None:
    text = (ROOT / "docs/service.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)
    words = shlex.split(line)
    assert words[1] == "serve"
    assert {word for word in words if word.startswith("--")} <= serve_options()
