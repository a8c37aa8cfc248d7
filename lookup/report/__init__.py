"""Report a scored replay as tables, Markdown, JSON, and a page for a browser, and read a run's folder back."""

__all__: list[str] = []
