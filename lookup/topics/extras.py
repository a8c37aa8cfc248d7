"""What discovery takes from the extra `[topics]`, fetched when it is first needed: the core installs without it."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

from lookup.errors import SettingsError

__all__ = ["extra_module"]


@lru_cache
def extra_module(package: str, purpose: str) -> Any:
    """Return a module of the extra.

    Args:
        purpose: what needs it, as the sentence begins.

    Raises:
        SettingsError: naming the package and what to install, where it is not there.
    """
    try:
        return import_module(package)
    except ImportError:
        message = f"{purpose} needs {package}: install it with pip install 'pulsar-lookup[topics]'"
        raise SettingsError(message) from None
