"""The engine that runs policies, with the registry of parts, decisions, ownership and shedding."""

__all__: list[str] = []
