"""Files that only their own library can open, opened in a process of their own: it may crash, hang or eat memory.

    python -m treefocus.adapters.isolated catboost model.cbm forest.json

reads the model, translates it and writes the forest; the process that asked reads that.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from treefocus.errors import InvalidInput, TreefocusError, UnsupportedModel
from treefocus.model.forest import Forest

SECONDS, SECONDS_PER_MEGABYTE = 20, 5
MEMORY = 8 << 30  # of addresses, of which libraries reserve far more than they use
_INVALID, _UNSUPPORTED = 3, 4
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
            seconds = f"{late.timeout:.0f} s"
            raise InvalidInput(f"{path} took more than {seconds} to open; it is probably damaged.") from late
        if code == 0 and forest.is_file():
            return Forest.load(forest)
    if code == _UNSUPPORTED:
        raise UnsupportedModel(f"{path}: {said}")
    reason = said if code == _INVALID else "its library gave up on it"
    raise InvalidInput(f"{path} is not a whole {_NAMES[library]} file: {reason.rstrip('.')}.")


def opened(library: str, path: Path, target: Path) -> tuple[int, str]:
    """Run `main` in another process: its exit code, and what it said."""
    seconds = SECONDS + SECONDS_PER_MEGABYTE * path.stat().st_size / 1e6
    command = [sys.executable, "-m", "treefocus.adapters.isolated", library, str(path), str(target)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False, cwd=target.parent)
    return done.returncode, " ".join(done.stderr.split())


def main(library: str, path: str, target: str) -> int:
    """Open, translate and save; the exit code says how it went, and stderr why."""
    from treefocus.adapters.registry import translate

    limit_memory()
    try:
        translate(_OPEN[library](path)).forest.save(target)
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
