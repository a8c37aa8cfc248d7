"""Prints the oldest release of every dependency that `setup.cfg` permits, as constraints for pip."""

from __future__ import annotations

import configparser
import re
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["lowest"]

_SETUP = Path(__file__).parents[1] / "setup.cfg"
#: A requirement with a lower bound; the first of its bounds is that.
_BOUNDED = re.compile(r"([\w.-]+)(?:\[\w+\])?>=([\d.]+)")


def lowest(text: str) -> Iterator[str]:
    """Yield a constraint for each dependency of the package and of its extras that has a lower bound."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(text)
    extras = parser["options.extras_require"]
    lines = [parser["options"]["install_requires"], *(extras[name] for name in extras if name not in {"test", "docs"})]
    found = {match[1]: match[2] for match in map(_BOUNDED.match, "\n".join(lines).split()) if match}
    yield from (f"{name}=={release}" for name, release in sorted(found.items()))


if __name__ == "__main__":
    sys.stdout.write("".join(f"{line}\n" for line in lowest(_SETUP.read_text(encoding="utf-8"))))
