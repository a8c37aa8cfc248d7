"""Report a scored replay: tables, Markdown, JSON, and a page for a browser; read a run's folder back."""

__all__: list[str] = []
