"""The page with all parts is up to date."""

from __future__ import annotations

from scripts.gallery import PAGE, page


def test_the_gallery_is_up_to_date() -> None:
    """`python scripts/gallery.py` writes it anew."""
    assert PAGE.read_text(encoding="utf-8") == page()
