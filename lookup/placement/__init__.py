"""The best placement of bundles on brokers, and bounds that no placement passes: what every figure can be held against.

Pure arithmetic on arrays: no clock, no dice, no policy. Everything is in `docs/optimum.md`.
"""

from lookup.placement.solving import Placement, best_placement

__all__ = ["Placement", "best_placement"]
