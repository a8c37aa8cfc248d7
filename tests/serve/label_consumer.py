"""The program of `docs/label-consumer.md`, as tests run it."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

__all__ = ["consumer_page"]

_PAGE = Path(__file__).parents[2] / "docs" / "label-consumer.md"


def consumer_page(folder: Path) -> ModuleType:
    """Write the program into a folder, and return it as a module."""
    text = re.search(
        r"<!-- file: topic_consumer.py -->\n```python\n(.*?)^```", _PAGE.read_text(), re.DOTALL | re.MULTILINE
    )
    assert text is not None
    path = folder / "topic_consumer.py"
    path.write_text(text[1])
    spec = importlib.util.spec_from_file_location("topic_consumer", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
