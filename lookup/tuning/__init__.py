"""Search for settings: which values are tried, which candidates go on, and what may be recommended in the end.

Nothing here reads a log or runs a policy: `lookup.api.tuning` replays what these modules ask for.
"""

__all__: list[str] = []
