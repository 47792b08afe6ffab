"""Files that only their own library can open, opened in a process of their own: it may crash, hang or eat memory.

    python -m treefocus.adapters.isolated catboost model.cbm forest.json 20

reads the model, translates it and writes the forest; the process that asked reads that. The limit is one of processor
time, so that a file is not refused because the machine is busy; a process that sleeps is waited for ten minutes.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from treefocus.errors import InvalidInput, TreefocusError, UnsupportedModel
from treefocus.model.forest import Forest

SECONDS, SECONDS_PER_MEGABYTE = 20, 5  # of the processor
MOST_WAITING = 600  # seconds by the clock, for whatever waits or has no limit of its own
MEMORY = 8 << 30  # of addresses, of which libraries reserve far more than they use
_RUN = "import sys; from treefocus.adapters.isolated import main; sys.exit(main(*sys.argv[1:]))"
_ONLY_HASHES = (
    "this CatBoost file has categories and keeps only their hashes; save the model with the training rows, "
    "model.save_model('model.json', format='json', pool=Pool(...)), and load that file."
)
_INVALID, _UNSUPPORTED = 3, 4
_OUT_OF_TIME = -getattr(signal, "SIGXCPU", 0) or None  # how the system ends a process that has used up its seconds
_NAMES = {"catboost": "CatBoost", "treelite": "treelite"}


def forest_from(library: str, path: Path) -> Forest:
    """The forest of a model file of this library."""
    if find_spec(library) is None:
        raise InvalidInput(f"Reading {path} needs {library}: pip install {library}.")
    with tempfile.TemporaryDirectory() as folder:
        forest = Path(folder) / "forest.json"
        try:
            code, said = opened(library, path.resolve(), forest)
        except subprocess.TimeoutExpired as late:
            raise InvalidInput(f"{path} took more than {late.timeout:.0f} s to open; it is probably damaged.") from late
        if code == _OUT_OF_TIME:
            seconds = seconds_for(path)
            raise InvalidInput(f"{path} took more than {seconds} s of the processor to open; it is probably damaged.")
        if code == 0 and forest.is_file():
            return Forest.load(forest)
    if code == _UNSUPPORTED:
        raise UnsupportedModel(f"{path}: {said}")
    reason = said if code == _INVALID else "its library gave up on it"
    raise InvalidInput(f"{path} is not a whole {_NAMES[library]} file: {reason.rstrip('.')}.")


def opened(library: str, path: Path, target: Path) -> tuple[int, str]:
    """Run `main` in another process: its exit code, and the last line that it said.

    Warnings of the libraries are nobody's business there, whatever PYTHONWARNINGS makes of them here.
    """
    seconds = seconds_for(path)
    command = [sys.executable, "-W", "ignore", "-c", _RUN, library, str(path), str(target), str(seconds)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=target.parent, env=environment,
        timeout=max(MOST_WAITING, 10 * seconds),
    )  # fmt: skip
    return done.returncode, next(reversed(done.stderr.splitlines()), "")


def seconds_for(path: Path) -> int:
    """How long the processor may work on a file."""
    return math.ceil(SECONDS + SECONDS_PER_MEGABYTE * path.stat().st_size / 1e6)


def main(library: str, path: str, target: str, seconds: str) -> int:
    """Open, translate and save; the exit code says how it went, and stderr why."""
    from treefocus.adapters.registry import translate

    limit_memory()
    limit_seconds(int(seconds))
    try:
        source = translate(_OPEN[library](path))
        if source.with_words is not None:
            raise UnsupportedModel(_ONLY_HASHES)
        source.forest.save(target)
    except UnsupportedModel as error:
        return _said(error, _UNSUPPORTED)
    except (TreefocusError, MemoryError) as error:
        return _said(error, _INVALID)
    except Exception as error:  # whatever the library makes of the file
        return _said(error, _INVALID)
    return 0


def limit_memory() -> None:
    """Stop this process before it takes the machine's memory, where the system can."""
    if os.name == "posix":
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_AS)
        wanted = MEMORY if most == resource.RLIM_INFINITY else min(MEMORY, most)
        resource.setrlimit(resource.RLIMIT_AS, (wanted, most))


def limit_seconds(seconds: int) -> None:
    """End this process after so much more of the processor's time, where the system can."""
    if os.name == "posix":
        import resource

        spent = math.ceil(time.process_time())
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        wanted = spent + seconds if most == resource.RLIM_INFINITY else min(spent + seconds, most)
        resource.setrlimit(resource.RLIMIT_CPU, (wanted, most))


def _open_catboost(path: str) -> Any:
    from catboost import CatBoost

    return CatBoost().load_model(path)


def _open_treelite(path: str) -> Any:
    import treelite

    return treelite.Model.deserialize(path)


_OPEN = {"catboost": _open_catboost, "treelite": _open_treelite}


def _said(error: BaseException, code: int) -> int:
    text = " ".join(str(error).split())[:300] or type(error).__name__
    print(text, file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
