"""Settings that ship with the framework, read as data of the package `lookup.configs`; there is no code here."""

from __future__ import annotations

__all__: list[str] = []
