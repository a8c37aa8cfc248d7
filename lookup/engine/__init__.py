"""Run policies: the registry of parts, decisions, ownership, shedding."""

__all__: list[str] = []
