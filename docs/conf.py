"""Sphinx's settings: the pages are MyST Markdown, a warning is an error (`make check`)."""

from __future__ import annotations

from importlib.metadata import version as version_of

__all__ = ["extensions", "project"]

project = "pulsar-lookup"
author = "the pulsar-lookup authors"
copyright = "the pulsar-lookup authors, Apache-2.0"
version = release = version_of("pulsar-lookup")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
# Types are in the signatures.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
exclude_patterns = ["_build", "changes"]
source_suffix = {".md": "markdown"}
myst_enable_extensions = ["colon_fence", "deflist"]
# Headings are link targets: `policies.md#best`.
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"pulsar-lookup {release}"
