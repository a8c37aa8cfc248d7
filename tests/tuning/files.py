"""Files of a search as a test wants them, with a checksum that fits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["write_search_file"]


def write_search_file(path: Path, content: Mapping[str, Any]) -> None:
    """Write `tune.json` or `search.json`."""
    content = {key: value for key, value in content.items() if key != "checksum"}
    text = json.dumps([path.name, content], sort_keys=True)
    checksum = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    path.write_text(json.dumps({**content, "checksum": checksum}))
