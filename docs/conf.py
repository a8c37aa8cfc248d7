"""Sphinx's settings: the pages are MyST Markdown, a warning is an error (`make check`).

Search finds keys, flags, metrics and parts by name: the contents of reference tables and help texts become
objects of Sphinx, and `scorer.js` puts the object of the query first.
"""

from __future__ import annotations

import re
from importlib.metadata import version as version_of
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

__all__ = ["extensions", "project", "setup"]

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
# Beside the pages' search. A release has put all that is in `changes` into the changelog.
_SINCE = ", and changes since" if [*Path(__file__).parent.glob("changes/*.*.md")] else ""
html_title = f"pulsar-lookup {release}{_SINCE}"
html_search_scorer = str(Path(__file__).with_name("scorer.js"))

#: What the tables of a page list, by page and first word of the table's head.
_LISTED = {
    ("settings", "key"): "setting",
    ("cli", "flag"): "flag",
    ("policies", "name"): "part",
    ("pulsar-parity", "key"): "Pulsar key",
    ("scenarios", "key"): "key of a scenario",
    ("scoring", "metric"): "metric",
    ("topics", "lister"): "part",
}


def setup(app: Sphinx) -> None:
    """Have the rows of reference tables noted as objects, with which Sphinx's search begins."""
    for kind in {*_LISTED.values()}:
        app.add_object_type(kind, kind)
    app.connect("doctree-read", _note_rows)
    app.connect("doctree-read", _note_help)
    app.connect("autodoc-process-docstring", _rejoin, priority=600)


def _rejoin(_app: Sphinx, what: str, _name: str, _thing: object, _options: object, lines: list[str]) -> None:
    """Undo what napoleon does to `#: ratio: 1 is full`, of which it takes `ratio` for the type of the attribute."""
    for line in [line for line in lines if what in {"attribute", "data", "property"} and line.startswith(":type: ")]:
        lines.remove(line)
        lines[0] = f"{line.removeprefix(':type: ')}: {lines[0]}"


def _note_rows(app: Sphinx, page: nodes.document) -> None:
    """Give each name that a table lists an anchor, and note it."""
    standard = app.env.domains.standard_domain
    for table in page.findall(nodes.table):
        head, *rows = table.findall(nodes.row)
        kind = _LISTED.get((app.env.docname, head[0].astext().partition(" ")[0]))
        for literal in (literal for row in rows if kind for literal in row[0].findall(nodes.literal)):
            word = literal.astext().strip("[]").split()[0].partition("[")[0]
            name = _prefix(kind, table, head) + word
            # A file about topics and one for a server may have tables that an evaluation has: the first place counts.
            if (kind, name) in standard.objects or (kind == "flag" and word[0] != "-"):
                continue
            literal["ids"].append(nodes.make_id(f"{kind} {name}"))
            standard.note_object(kind, name, literal["ids"][-1], location=literal)


def _note_help(app: Sphinx, page: nodes.document) -> None:
    """Note each flag in a help text of the page about commands, except those of every command."""
    standard = app.env.domains.standard_domain
    for block in [*page.findall(nodes.literal_block)] if app.env.docname == "cli" else ():
        text = block.astext()
        if not text.startswith("usage: lookup"):
            continue
        command = block.parent.children[0].astext()
        block.children.clear()
        # The writer highlights a block whose source is its text, without anchors.
        block.rawsource = ""
        for piece in re.split(r"(?m)^  (?!-[hqv],)(-.*)", text):
            if not piece.startswith("-"):
                block += nodes.Text(piece)
                continue
            flag = f"{command} {piece[piece.index('--') :].split()[0]}"
            row = nodes.inline("", piece, ids=[nodes.make_id(f"flag {flag}")])
            block += [nodes.Text("  "), row]
            standard.note_object("flag", flag, row["ids"][0], location=row)


def _prefix(kind: str, table: nodes.table, head: nodes.row) -> str:
    """Return what a name begins with: the command in the section's title, or the table of settings that has a key."""
    siblings = table.parent.children
    if kind == "flag":
        return f"{siblings[0].astext()} "
    if kind == "setting":
        # Marks of generated tables are raw HTML.
        before = [node for node in siblings[: siblings.index(table)] if not isinstance(node, nodes.comment | nodes.raw)]
        for node in (*head[0].findall(nodes.literal), before[-1][0]):
            if isinstance(node, nodes.literal):
                return node.astext().strip("[]") + "."
    return ""
