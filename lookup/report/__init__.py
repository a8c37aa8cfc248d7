"""Report a scored replay: tables, Markdown and JSON."""

__all__: list[str] = []
