"""Writes the sizes of the rooms into `docs/architecture.md`, and refuses a room that has outgrown what it was given.

`python scripts/rooms.py` writes the table and fails if a room is larger than its bound; raising a bound is a decision,
with a page of its own in `docs/decisions/`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

__all__ = ["BOUNDS", "PAGE", "outgrown", "page_with_rooms", "sizes"]

_ROOT = Path(__file__).parents[1]
PAGE = _ROOT / "docs" / "architecture.md"
_BEGIN, _END = "<!-- rooms: written by scripts/rooms.py -->\n", "<!-- end of rooms -->\n"
#: Lines of Python that a room may have.
BOUNDS: Mapping[str, int] = {
    "lookup/api": 1_700,
    "lookup/collect": 1_500,
    "lookup/commands": 5_500,
    "lookup/engine": 6_000,
    "lookup/hooks": 500,
    "lookup/logs": 7_700,
    "lookup/model": 3_200,
    "lookup/replay": 9_500,
    "lookup/report": 4_800,
    "lookup/score": 2_300,
    "lookup/serve": 3_200,
    "lookup/settings": 3_500,
    "lookup/simulate": 1_100,
    "lookup/spark": 800,
    "lookup/testing": 1_300,
    "lookup/topics": 7_000,
    "plugins/lookup_policies": 4_000,
}


def sizes(root: Path = _ROOT) -> dict[str, tuple[int, int]]:
    """Return the number of files and of lines of Python in every room, by its folder."""
    rooms = [*sorted(path for path in (root / "lookup").iterdir() if (path / "__init__.py").exists())]
    found = {}
    for room in [*rooms, root / "plugins" / "lookup_policies"]:
        files = sorted(room.rglob("*.py"))
        lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
        found[room.relative_to(root).as_posix()] = len(files), lines
    return found


def outgrown(found: Mapping[str, tuple[int, int]]) -> list[str]:
    """Return a sentence for each room that is larger than its bound, or has none."""
    return [
        f"{room}: {lines:,} lines, at most {BOUNDS.get(room, 0):,} are agreed on; cut it, or decide on more in "
        "docs/decisions and scripts/rooms.py"
        for room, (_, lines) in found.items()
        if lines > BOUNDS.get(room, 0)
    ]


def page_with_rooms(page: str, found: Mapping[str, tuple[int, int]]) -> str:
    """Return the page with its table of sizes as the tree has them."""
    rows = [f"| `{room}/` | {files} | {lines:,} | {BOUNDS.get(room, 0):,} |" for room, (files, lines) in found.items()]
    total = f"| all | {sum(files for files, _ in found.values())} | {sum(lines for _, lines in found.values()):,} | |"
    table = "\n".join(["| room | files | lines of Python | at most |", "|---|---|---|---|", *rows, total])
    before, _, rest = page.partition(_BEGIN)
    return f"{before}{_BEGIN}\n{table}\n\n{_END}{rest.partition(_END)[2]}"


if __name__ == "__main__":
    now = sizes()
    PAGE.write_text(page_with_rooms(PAGE.read_text(encoding="utf-8"), now), encoding="utf-8")
    sys.exit("\n".join(outgrown(now)) or None)
