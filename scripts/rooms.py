"""Writes the sizes of the rooms into `docs/architecture.md`, and refuses a room that has outgrown what it was given.

`python scripts/rooms.py` writes the table and fails if a room is larger than its bound. Only a page in
`docs/decisions/` that names what else went raises a bound.
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
    "lookup/api": 3_300,
    "lookup/collect": 1_500,
    "lookup/commands": 4_900,
    "lookup/engine": 4_700,
    "lookup/hooks": 500,
    "lookup/logs": 7_750,
    "lookup/model": 2_950,
    "lookup/moving": 2_550,
    "lookup/replay": 7_400,
    "lookup/report": 4_750,
    "lookup/score": 2_600,
    "lookup/serve": 3_500,
    "lookup/settings": 3_700,
    "lookup/simulation": 1_050,
    "lookup/spark": 500,
    "lookup/testing": 1_100,
    "lookup/topics": 2_650,
    "lookup/tuning": 1_600,
    "plugins/lookup_java": 650,
    "plugins/lookup_policies": 3_950,
}


def sizes(root: Path = _ROOT) -> dict[str, int]:
    """Return the lines of Python in every room, by its folder."""
    rooms = [*sorted(path for path in (root / "lookup").iterdir() if (path / "__init__.py").exists())]
    found = {}
    for room in [*rooms, root / "plugins" / "lookup_java", root / "plugins" / "lookup_policies"]:
        lines = (len(file.read_text(encoding="utf-8").splitlines()) for file in room.rglob("*.py"))
        found[room.relative_to(root).as_posix()] = sum(lines)
    return found


def outgrown(found: Mapping[str, int]) -> list[str]:
    """Return a sentence for each room that is larger than its bound, or has none."""
    return [
        f"{room}: {lines:,} lines, at most {BOUNDS.get(room, 0):,} are agreed on; cut it, or say in docs/decisions "
        "what else went and raise the bound in scripts/rooms.py"
        for room, lines in found.items()
        if lines > BOUNDS.get(room, 0)
    ]


def page_with_rooms(page: str, found: Mapping[str, int]) -> str:
    """Return the page with its table of sizes as the tree has them."""
    # In hundreds: a line more or less is no news.
    rows = [f"| `{room}/` | {round(lines, -2):,} | {BOUNDS.get(room, 0):,} |" for room, lines in found.items()]
    rows.append(f"| all | {round(sum(found.values()), -2):,} | {sum(BOUNDS.values()):,} |")
    table = "\n".join(["| room | lines of Python | at most |", "|---|---|---|", *rows])
    before, _, rest = page.partition(_BEGIN)
    return f"{before}{_BEGIN}\n{table}\n\n{_END}{rest.partition(_END)[2]}"


if __name__ == "__main__":
    now = sizes()
    PAGE.write_text(page_with_rooms(PAGE.read_text(encoding="utf-8"), now), encoding="utf-8")
    sys.exit("\n".join(outgrown(now)) or None)
