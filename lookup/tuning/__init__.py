"""Search for settings with rules for the values to try, the candidates to continue, and the final recommendation.

This package does not read logs or run policies. `lookup.api.tuning` replays the batches of these modules.
"""

__all__: list[str] = []
