"""What users write: evaluations, policies, broker and client profiles, from TOML, broker.conf, environment and flags."""

from __future__ import annotations

__all__: list[str] = []
