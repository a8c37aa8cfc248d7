"""Published helpers for plug-in authors: clusters to test with and the conformance kit."""

from __future__ import annotations

__all__: list[str] = []
