"""Run the notebooks of this folder again, and keep what they show.

    python docs/examples/run.py                        all of them
    python docs/examples/run.py robustness.ipynb       one

Needs the extras `docs` and `test` (nbclient and the libraries that the notebooks use).
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent
KERNEL = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}


def main() -> None:
    """Run what is asked for, a line each."""
    for path in [FOLDER / name for name in sys.argv[1:]] or sorted(FOLDER.glob("*.ipynb")):
        began = time.perf_counter()
        with TemporaryDirectory() as folder:
            notebook = executed(nbformat.read(path, as_version=4), folder)
        nbformat.write(notebook, path)
        print(f"{path.name:30} {time.perf_counter() - began:5.1f} s")


def executed(notebook: Any, folder: str) -> Any:
    """The notebook with its outputs, and nothing of the machine or of the moment."""
    notebook.metadata = nbformat.from_dict(KERNEL | {"language_info": {"name": "python"}})
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": folder}}).execute()
    for number, cell in enumerate(notebook.cells):
        cell.metadata, cell["id"] = nbformat.from_dict({}), f"cell-{number}"
    return notebook


if __name__ == "__main__":
    main()
