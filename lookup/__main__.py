"""Run the command line for `python -m lookup`; all of it is in `cli.py`."""

import sys

from lookup.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(main())
