"""Measures the prose of pages, docstrings and comments, and exits with 1 if a figure is out of its bounds.

`python scripts/prose.py README.md docs`, part of `make check`, measures pages. Without paths code is measured too.
Counts are per 1,000 words, shares in percent. Code blocks, tables and generated pages are left out.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["CODE", "PAGES", "Prose", "main", "prose_of"]

_ROOT = Path(__file__).parents[1]
#: Written by programs, so their sentences are measured where they come from; and settings of the docs.
_GENERATED = ("gallery.md", "api.md", "changes", "schema", "_build", "conf.py")
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
_COUNTED = {
    "what": re.compile(r"\bwhat\b", re.IGNORECASE),
    "semicolons": re.compile(";"),
    "mid-sentence colons": re.compile(r"[a-z)]: [a-z]"),
    "one that": re.compile(r"\b(?:one|ones|those|that) (?:that|which|who)\b|\bof those\b", re.IGNORECASE),
    "you": re.compile(r"\byou(?:r|rs)?\b", re.IGNORECASE),
}
_PARTICIPLE = re.compile(
    r"_?(?:[a-z]+ed|told|taken|written|known|held|given|drawn|kept|made|said|found|left|seen|cut|put|sent|read)"
)
#: Bounds by figure; `you` is a least value, the others are largest ones.
PAGES: Mapping[str, float] = {
    "what": 2.0, "semicolons": 3.0, "mid-sentence colons": 8.0, "sentences over 30 words, %": 5.0, "you": 8.0,
}  # fmt: skip
CODE: Mapping[str, float] = {
    "what": 2.0, "semicolons": 3.0, "one that": 0.4, "docstrings that begin with Return, %": 25.0,
    "functions named by a participle, %": 1.5,
}  # fmt: skip


@dataclass
class Prose:
    """The prose of some files, and the names and first words of their functions."""

    texts: list[str] = field(default_factory=list)
    first_words: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def figures(self) -> Mapping[str, float]:
        """Count everything that has a bound."""
        text = "\n\n".join(self.texts)
        words = len(_WORD.findall(text)) or 1
        lengths = [len(_WORD.findall(part)) for part in re.split(r"(?<=[.!?])\s+|\n\n+", text)]
        sentences = [length for length in lengths if length > 2]
        returning = [word for word in self.first_words if word.lower() == "return"]
        participles = [name for name in self.names if _PARTICIPLE.fullmatch(name)]
        return {name: 1000 * len(form.findall(text)) / words for name, form in _COUNTED.items()} | {
            "sentences over 30 words, %": _share(sum(length > 30 for length in sentences), len(sentences)),
            "docstrings that begin with Return, %": _share(len(returning), len(self.first_words)),
            "functions named by a participle, %": _share(len(participles), len(self.names)),
        }


def _share(count: int, of: int) -> float:
    return 100 * count / of if of else 0.0


def prose_of(files: Sequence[Path]) -> Prose:
    """Read the prose of pages and modules."""
    prose = Prose()
    for file in files:
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".md":
            prose.texts.append(_page(text))
        else:
            _add_module(prose, text)
    return prose


def _page(text: str) -> str:
    text = re.sub(r"```.*?```|<!--.*?-->", "", text, flags=re.DOTALL)
    skipped = ("|", "#", "    ", "![", ":::", "+", "- `", "{")
    text = "\n".join(line for line in text.splitlines() if not line.lstrip(" ").startswith(skipped) or line[:1] == " ")
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "x", text))


def _add_module(prose: Prose, source: str) -> None:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            doc = ast.get_docstring(node)
            if doc is not None:
                prose.texts.append(re.sub(r"`[^`]*`", "x", doc))
                if not isinstance(node, ast.Module):
                    prose.first_words.append(doc.split(None, 1)[0].strip(".,:"))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            prose.names.append(node.name)
    comments = (
        token.string
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    )
    prose.texts += (re.sub(r"`[^`]*`", "x", comment.lstrip("#: ")) + "." for comment in comments)


def _files(paths: Sequence[Path], suffix: str) -> Iterator[Path]:
    for path in paths:
        for file in sorted(path.rglob(f"*{suffix}")) if path.is_dir() else [path]:
            if file.suffix == suffix and not {*_GENERATED} & {*file.relative_to(_ROOT).parts}:
                yield file


def main(arguments: Sequence[str]) -> int:
    """Print the figures of pages and of code; return 1 if one is out of bounds."""
    paths = [Path(argument).resolve() for argument in arguments]
    code = 0
    for what, suffix, bounds, default in (
        ("pages", ".md", PAGES, ["README.md", "docs"]),
        ("code", ".py", CODE, ["lookup", "plugins"]),
    ):
        files = [*_files(paths or [_ROOT / name for name in default], suffix)]
        if not files:
            continue
        figures = prose_of(files).figures()
        for name, bound in bounds.items():
            is_kept = figures[name] >= bound if name == "you" else figures[name] <= bound
            if not is_kept or paths:
                limit = f"{'at least' if name == 'you' else 'at most'} {bound:g}"
                sys.stdout.write(f"{what}: {name} {figures[name]:.1f}, {limit}{'' if is_kept else ': out of bounds'}\n")
            code |= not is_kept
    return code


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
