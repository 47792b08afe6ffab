"""Every public name has a complete type: what pyright's --verifytypes says of it, read for the names that users import.

    pip install pyright . && python .ci/public_types.py

Other modules are typed for mypy (strict, in .ci/run); there a type that follows from an assignment needs no annotation.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from tempfile import TemporaryDirectory

PUBLIC = ("treefocus", "treefocus.scale", "treefocus.loans", "treefocus.mlflow")


def main() -> int:
    """Print what is not complete, and how many names are."""
    command = ["pyright", "--pythonpath", sys.executable, "--verifytypes", "treefocus", "--ignoreexternal"]
    installed = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with TemporaryDirectory() as folder:  # not beside pyproject.toml, whose folder would be taken for the package
        told = subprocess.run(
            [*command, "--outputjson"], check=False, capture_output=True, text=True, cwd=folder, env=installed
        )
    said = json.loads(told.stdout)
    if not said["typeCompleteness"].get("packageRootDirectory"):
        print("treefocus is not installed for this Python: pip install .")
        return 2
    symbols = said["typeCompleteness"]["symbols"]
    names = {name for module in PUBLIC for name in places(module)}
    lacking = [
        one["name"]
        for one in symbols
        if (not one["isTypeKnown"] or one["isTypeAmbiguous"])
        and any(one["name"] == name or one["name"].startswith(f"{name}.") for name in names)
    ]
    print(*lacking, sep="\n", end="\n" if lacking else "")
    print(f"{len(names)} public names, {len(lacking)} types incomplete")
    return int(bool(lacking) or not symbols)


def places(module: str) -> list[str]:
    """Where the public names of a module are defined."""
    found = importlib.import_module(module)
    public = getattr(found, "__all__", [name for name in vars(found) if not name.startswith("_")])
    every = [(name, getattr(found, name)) for name in public]
    return [
        f"{getattr(value, '__module__', module)}.{name}"
        for name, value in every
        if str(getattr(value, "__module__", module)).startswith("treefocus")
    ]


if __name__ == "__main__":
    sys.exit(main())
