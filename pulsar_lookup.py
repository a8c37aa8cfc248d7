"""Start the command line, for the scripts `lookup` and `pulsar-lookup`, if nothing hides the package beside this file.

PyPI has another project `lookup`, whose module is a file `lookup.py`. If Python finds that first, no module of the
package can be loaded: so this one is outside of it.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

__all__ = ["main"]


def main() -> int:
    """Run the command of this process and return its exit code; 2 if another `lookup` hides the package."""
    spec = find_spec("lookup")
    origin = Path(spec.origin) if spec and spec.origin else Path("a folder without __init__.py")
    if origin.resolve() != Path(__file__).resolve().parent / "lookup" / "__init__.py":
        sys.stderr.write(
            f"error: Python finds {origin} under the name lookup before the package of pulsar-lookup; rename it, take "
            "its folder off PYTHONPATH or, if it belongs to the other project lookup of PyPI, pip uninstall lookup\n"
        )
        return 2
    from lookup.__main__ import main as start

    return start()
