"""`python -m treefocus` is the command `treefocus`."""

from __future__ import annotations

from treefocus.cli import main

if __name__ == "__main__":
    main()
