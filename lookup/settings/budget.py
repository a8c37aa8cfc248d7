"""Model the file of a budget: how far figures may get worse before a pipeline fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from lookup.settings.base import Share, Strict

__all__ = ["BudgetFile"]


class BudgetFile(Strict):
    """Largest tolerated regressions."""

    budget: Annotated[Mapping[str, Share], Field(min_length=1)]
    """By metric, `name` or `name:key`, in the metric's own unit; a name alone means the whole, or else every key."""
