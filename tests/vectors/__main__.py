"""Lets `python -m tests.vectors` run vectors; all of it is in `run.py`."""

from __future__ import annotations

import sys

from tests.vectors.run import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(main())
