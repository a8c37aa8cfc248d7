"""The door: how plug-ins are found, and every way in which one is refused."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lookup.engine.plugins import KINDS, load_plugins, registry_of
from lookup.errors import PluginError
from lookup_policies.score_selectors import Best
from lookup_policies.scorers import Headroom

ASSETS = Path(__file__).parent.parent / "assets"

HEAD = """
from dataclasses import dataclass
from typing import ClassVar
from lookup.hooks import hookimpl
from lookup.model import Reason
"""
SCORER = """
@dataclass(frozen=True)
class Mine:
    name: ClassVar[str] = "mine"
    def score(self, request, brokers, view):
        return [1.0] * len(brokers)
"""
HOOK = """
@hookimpl
def lookup_register_scorers():
    return [Mine]
"""

SILENT = """
@hookimpl
def lookup_register_filters():
    return ()
"""


def _file(folder: Path, source: str, name: str = "broken.py") -> Path:
    path = folder / name
    path.write_text(HEAD + source, encoding="utf-8")
    return path


# What is found


def test_built_ins_enter_by_their_entry_point() -> None:
    """The framework's own parts, readers and metrics are found like anybody's."""
    registry = load_plugins()

    assert {"builtin", "metrics", "readers"} <= {source.name for source in registry.sources}
    assert registry.find("selectors", "best") is Best
    assert all(registry.classes[kind] for kind in KINDS)
    assert all(list(found) == sorted(found) for found in registry.classes.values())


def test_a_file_enters_by_the_same_hooks() -> None:
    """A plain Python file registers its classes, and its source is its path."""
    path = ASSETS / "plain_policy.py"
    registry = load_plugins([path])

    assert registry.find("scorers", "same-rack").__name__ == "SameRack"
    assert (registry.sources[-1].name, registry.sources[-1].origin) == ("plain_policy", str(path))


def test_an_unknown_name_is_answered_with_the_closest_one() -> None:
    """Or with all there are."""
    registry = registry_of({"selectors": [Best]})

    with pytest.raises(PluginError, match=r"'bset'; did you mean 'best'\?"):
        registry.find("selectors", "bset")
    with pytest.raises(PluginError, match="'xyz'; known: best"):
        registry.find("selectors", "xyz")
    with pytest.raises(PluginError, match="'xyz'; known: none"):
        registry.find("log_readers", "xyz")


def test_a_hook_may_have_parameters_with_defaults(tmp_path: Path) -> None:
    """It is called without arguments, and that it can be."""
    hook = SCORER + HOOK.replace("()", "(more=1, *rest)")

    assert load_plugins([_file(tmp_path, hook)]).find("scorers", "mine").__name__ == "Mine"


# What is refused


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("import nowhere_to_be_found", r"plug-in file .*broken\.py cannot be loaded: ModuleNotFoundError: No module"),
        ("raise SystemExit(3)", r"plug-in file .*broken\.py cannot be loaded: SystemExit: 3"),
        (
            "@hookimpl\ndef lookup_register_scorers():\n    raise SystemExit(3)",
            "plug-in 'broken' failed in lookup_register_scorers: SystemExit: 3",
        ),
        (
            "import itertools\n@hookimpl\ndef lookup_register_scorers():\n    return itertools.count()",
            "plug-in 'broken' failed in lookup_register_scorers: OverflowError: has more than 1,000,000 answers",
        ),
        ("1 / 0", r"plug-in file .*broken\.py cannot be loaded: ZeroDivisionError: division by zero"),
        ("def broken(:", r"plug-in file .*broken\.py cannot be loaded: SyntaxError"),
        (
            "@hookimpl\ndef lookup_register_scorer():\n    return []",
            "plug-in 'broken' has the unknown hook 'lookup_register_scorer'; did you mean 'lookup_register_scorers'?",
        ),
        ("", r"plug-in 'broken' of .*broken\.py implements no hook; put @hookimpl before a function like lookup_reg"),
        (
            SCORER + HOOK.replace("@hookimpl", ""),
            r"plug-in 'broken' of .*broken\.py has lookup_register_scorers without @hookimpl before it",
        ),
        (
            SCORER + HOOK + SILENT.replace("@hookimpl", ""),
            r"plug-in 'broken' of .*broken\.py has lookup_register_filters without @hookimpl before it",
        ),
        (
            "@hookimpl\ndef lookup_register_scorers(pm, config):\n    return []",
            r"plug-in 'broken' of .*broken\.py cannot be registered: .*lookup_register_scorers\(pm, config\)",
        ),
        (
            "@hookimpl\ndef lookup_register_scorers(*, config):\n    return []",
            r"plug-in 'broken' failed in lookup_register_scorers: TypeError: ",
        ),
        (
            "@hookimpl(wrapper=True)\ndef lookup_register_scorers():\n    return []",
            r"plug-in 'broken' of .*broken\.py cannot be registered: ",
        ),
        (
            SCORER + "@hookimpl\ndef lookup_register_scorers():\n    [Mine]",
            "plug-in 'broken' returned None from lookup_register_scorers",
        ),
        (
            SCORER + "@hookimpl\ndef lookup_register_scorers():\n    return Mine",
            "plug-in 'broken' returned <class .*Mine'> from lookup_register_scorers; an iterable of classes would be",
        ),
        (
            "@hookimpl\ndef lookup_register_scorers():\n    raise GeneratorExit",
            r"plug-in 'broken' failed in lookup_register_scorers: GeneratorExit \(broken\.py, line 8\)",
        ),
        (
            "@hookimpl\ndef lookup_register_scorers():\n    return {}['x']",
            "plug-in 'broken' failed in lookup_register_scorers: KeyError: 'x'",
        ),
        (
            SCORER + "@hookimpl\ndef lookup_register_scorers():\n    return [Mine()]",
            r"lookup_register_scorers answered Mine\(\), which is not a class",
        ),
        ("class Mine:\n    pass" + HOOK, "lookup_plugin_broken.Mine, registered under scorers, has no `name`"),
        (
            "class Mine:\n    name = 'mine'" + HOOK,
            "lookup_plugin_broken.Mine, registered under scorers, is not a frozen dataclass",
        ),
        (
            SCORER.replace("(frozen=True)", "") + HOOK,
            "lookup_plugin_broken.Mine, registered under scorers, is not a frozen dataclass",
        ),
        (
            SCORER.replace("def score", "def scores") + HOOK,
            "lookup_plugin_broken.Mine, registered under scorers, has no `score`, which its protocol asks for",
        ),
        (
            SCORER.replace('"mine"', '"headroom"') + HOOK,
            r"(\.Mine|\.Headroom) defines its name as 'headroom', which .*(broken\.Mine|Headroom) already uses",
        ),
        (
            SCORER.replace("    def score", "    weight: float = 1.0\n    def score") + HOOK,
            "lookup_plugin_broken.Mine, registered under scorers, has a parameter 'weight', which settings keep",
        ),
        (
            SCORER.replace("score", "admit") + HOOK.replace("scorers", "filters"),
            "lookup_plugin_broken.Mine, registered under filters, has no `reason`",
        ),
        (
            SCORER.replace("def score", "reason: ClassVar[str] = 'full'\n    def admit")
            + HOOK.replace("scorers", "filters"),
            "lookup_plugin_broken.Mine, registered under filters, rejects by reason 'full'; Reason.FILTERED is there",
        ),
    ],
)
def test_a_broken_file_is_one_sentence(tmp_path: Path, source: str, sentence: str) -> None:
    """Whatever is wrong with a plug-in, the error names it and says what."""
    with pytest.raises(PluginError, match=sentence):
        load_plugins([_file(tmp_path, source)])


@pytest.mark.parametrize("name", ["missing.py", "folder.py", "notes.txt"])
def test_what_is_no_python_file_is_refused(tmp_path: Path, name: str) -> None:
    """A file that is not there, a folder, and a file of another kind."""
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "notes.txt").write_text("no code")

    with pytest.raises(PluginError, match=rf"plug-in file .*{name} is not a Python file"):
        load_plugins([tmp_path / name])


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    """One would take the other's place in the eyes of Spark's workers."""
    (tmp_path / "other").mkdir()
    files = [_file(tmp_path, SILENT, "same.py"), _file(tmp_path / "other", SILENT, "same.py")]

    with pytest.raises(PluginError, match="would be called 'same'"):
        load_plugins(files)
    with pytest.raises(PluginError, match="would be called 'builtin'"):
        load_plugins([_file(tmp_path, "", "builtin.py")])


def _install(folder: Path, *, name: str, entry_point: str, source: str) -> None:
    """Lay a distribution down as pip would."""
    module = entry_point.partition("= ")[2]
    _file(folder, source, f"{module}.py")
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[lookup]\n{entry_point}\n")


def test_an_installed_plug_in_that_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its entry point, its distribution and its version."""
    _install(tmp_path, name="broken-dist", entry_point="broken = broken_dist_a", source="import nowhere_to_be_found")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(PluginError, match=r"'broken' of broken-dist 1\.0 .*: ModuleNotFoundError"):
        load_plugins()


def test_two_distributions_may_not_share_an_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second would be passed over in silence, with all its parts."""
    _install(tmp_path, name="other-dist", entry_point="builtin = broken_dist_b", source=SCORER + HOOK)
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(PluginError, match=r"'builtin' of .* another"):
        load_plugins()


def test_an_installed_plug_in_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And its source is its distribution."""
    _install(tmp_path, name="good-dist", entry_point="good = good_dist", source=SCORER + HOOK)
    monkeypatch.syspath_prepend(tmp_path)
    registry = load_plugins()
    sys.modules.pop("good_dist")

    assert registry.find("scorers", "mine").__name__ == "Mine"
    assert ("good", "good-dist 1.0") in [(source.name, source.origin) for source in registry.sources]


def test_a_registry_of_classes_keeps_the_same_rules() -> None:
    """Authors can try their classes without registering them."""
    assert registry_of({"scorers": [Headroom]}).find("scorers", "headroom") is Headroom
    with pytest.raises(PluginError, match=r"Headroom .*'headroom', which .*Headroom"):
        registry_of({"scorers": [Headroom, Headroom]})
    with pytest.raises(PluginError, match=r"Headroom.* has no `odds`"):
        registry_of({"selectors": [Headroom]})
