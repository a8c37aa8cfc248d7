"""Score replays: metrics, intervals, verdicts and fidelity."""

__all__: list[str] = []
