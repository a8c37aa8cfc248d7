"""Score replays with metrics, intervals, verdicts and fidelity."""

__all__: list[str] = []
