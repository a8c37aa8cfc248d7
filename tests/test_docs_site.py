"""The site of `docs/`: search finds keys, flags and metrics, the API has all public names, and its version is said."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.report import test_browser

inventory = pytest.importorskip("sphinx.util.inventory", reason="sphinx, of the extra `docs`, is not installed")

_ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)

#: Starts Chromium, with its network refused.
browser = test_browser.browser


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html", _ROOT / "docs", folder / "html"]
    subprocess.run([*command, "-d", folder / "doctrees"], check=True)
    return folder / "html"


def test_the_site_says_its_version(site: Path) -> None:
    """Above the search, and in the title of every page."""
    page = (site / "cli.html").read_text(encoding="utf-8")

    assert len(re.findall(rf"<title>.* pulsar-lookup {re.escape(version('pulsar-lookup'))}\b.*</title>", page)) == 1
    assert f'<span class="sidebar-brand-text">pulsar-lookup {version("pulsar-lookup")}' in page


def _imported() -> set[str]:
    """Return the names that the code blocks of pages import from the framework."""
    pages = [_ROOT / "README.md", *(_ROOT / "docs").rglob("*.md")]
    blocks = [block for page in pages for block in _BLOCK.findall(page.read_text(encoding="utf-8"))]
    code = [re.sub(r"^(>>>|\.\.\.) ?", "", block, flags=re.MULTILINE) for block in blocks]
    imports = re.findall(r"^from lookup(?!_)[\w.]* import (?:\([^)]*\)|.*)", "\n".join(code), re.MULTILINE)
    nodes = [node for node in ast.walk(ast.parse("\n".join(imports))) if isinstance(node, ast.ImportFrom)]
    return {alias.name for node in nodes for alias in node.names}


def test_the_api_has_every_public_name(site: Path) -> None:
    """Those of the package, of hooks and of tests, and all that the pages import; built-in parts have a page."""
    with (site / "objects.inv").open("rb") as file:
        entries = inventory.InventoryFile.load(file, "", lambda base, path: path)
    known = {
        name.rpartition(".")[2] for kind in ("class", "data", "exception", "function") for name in entries[f"py:{kind}"]
    }
    package = import_module("lookup")
    functions = {
        name for name in dir(package) if getattr(getattr(package, name), "__module__", "").startswith("lookup.")
    }
    rooms = ("lookup.hooks", "lookup.model", "lookup.testing")
    public = functions.union(*(import_module(room).__all__ for room in rooms), _imported())

    assert len(public) > 100
    assert public - known == set()


def _hits(browser: Any, site: Path, words: str) -> list[tuple[str, str]]:
    """Search the site and return title and link of the hits."""
    page = browser.new_page()
    page.goto(f"{(site / 'search.html').as_uri()}?q={quote(words)}")
    page.wait_for_function("document.querySelector('.search-summary')?.innerText")
    links = page.locator("ul.search > li > a")
    hits = links.evaluate_all("all => all.map(one => [one.textContent, one.getAttribute('href')])")
    page.close()
    return [(title, link) for title, link in hits]


@pytest.mark.browser
@pytest.mark.parametrize(
    ("words", "titles"),
    [
        ("evaluation.tick_s", ["evaluation.tick_s"]),
        ("owner_loss", ["evaluation.owner_loss"]),
        ("min_units", ["verdict.min_units"]),
        ("verdict.guard_margin", ["verdict.guard_margin"]),
        ("second_choice.overloaded", ["second_choice.overloaded"]),
        ("--budget", ["lookup evaluate --budget", "lookup report --budget"]),
        ("--against", [f"lookup {command} --against" for command in ("evaluate", "report")]),
        ("--confirm", ["lookup evaluate --confirm"]),
        ("evaluate --all", ["lookup evaluate --all"]),
        ("--quiet", ["Every command --quiet"]),
        ("match_ratio", ["match_ratio"]),
        ("imbalance_max_mean", ["imbalance_max_mean"]),
        ("property-match", ["property-match"]),
        ("loadBalancerBrokerMaxTopics", ["loadBalancerBrokerMaxTopics"]),
        ("three_racks", ["lookup.testing.three_racks"]),
    ],
)
def test_search_begins_with_what_was_asked_for(browser: Any, site: Path, words: str, titles: list[str]) -> None:
    """A key, flag, metric, part or function comes before all pages that mention it, and leads to its own row."""
    hits = _hits(browser, site, words)[: len(titles)]

    assert [title for title, _ in hits] == titles
    for title, link in hits:
        page = browser.new_page()
        page.goto(f"{site.as_uri()}/{link}")
        assert re.split(r"[. ]", title)[-1] in page.locator(":target").inner_text()
        page.close()
