"""Find the shipped settings, data of the package `lookup.configs`, by names such as `shipped:access-log`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import takewhile
from pathlib import Path

from lookup.errors import SettingsError
from lookup.model.quoting import shown, suggestion

__all__ = ["Shipped", "shipped_files", "shipped_path"]

#: A text that begins so names settings that ship, and no file.
_PREFIX = "shipped:"
#: Kinds of files, by their folder, or by their name for files without a folder.
_KINDS = {
    "brokers": "profile of brokers",
    "cluster": "connection to a cluster",
    "mappings": "mapping of a log",
    "policies": "policy",
    "scenarios": "scenario",
    "spaces": "space of a search",
    "nasa": "mapping of a log",
    "serving": "decision server",
    "settings": "decision server",
    "topology": "topology",
}


@dataclass(frozen=True)
class Shipped:
    """A file that ships."""

    name: str
    kind: str
    path: Path
    #: the first sentence of its prose
    summary: str


@lru_cache(maxsize=1)
def shipped_files() -> Mapping[str, Shipped]:
    """List every shipped file by its name, which is that of the file without its ending."""
    root = Path(str(files("lookup.configs")))
    index = {}
    for path in sorted(root.rglob("*")):
        if path.suffix in (".toml", ".conf", ".scenario"):
            kind = _KINDS.get(path.stem if path.parent == root else path.parent.name, "evaluation")
            # A comment at the top, or a scenario's description of itself.
            lines = path.read_text(encoding="utf-8").removeprefix('about = """\n').splitlines()
            prose = " ".join(line.removeprefix("#").strip() for line in takewhile(lambda line: line.strip("# "), lines))
            index[path.stem] = Shipped(path.stem, kind, path, prose.partition('"""')[0].partition(". ")[0].rstrip("."))
    return index


def shipped_path(text: str) -> str:
    """Find the path of the file for `shipped:NAME`. Any other text is returned unchanged."""
    if not text.startswith(_PREFIX):
        return text
    name = text.removeprefix(_PREFIX)
    if name not in shipped_files():
        raise SettingsError(f"nothing ships under the name {shown(name)}; {suggestion(name, shipped_files())}")
    return str(shipped_files()[name].path)
