"""What a metric may declare about itself, as types."""

from __future__ import annotations

from typing import Literal

__all__ = ["Better", "Grain", "Resample"]

#: Which direction is better.
Better = Literal["up", "down", "info"]
#: What one row of the figures behind a metric is.
Grain = Literal["lookup", "change", "cell"]
#: What intervals draw: bundles, blocks of time, or nothing.
Resample = Literal["bundle", "time", "none"]
