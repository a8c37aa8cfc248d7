"""Documents that were edited anywhere: whatever reads them ends in its answer or in one sentence, never in a traceback.

Every 50th byte is edited of what is read in milliseconds, every 1,000th of the rest; `FUZZ_STEP=50` edits all alike.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import lookup
from lookup.cli import main
from lookup.logs.generator.generate import GenerateSettings, generate
from lookup.moving.journal import Journal
from lookup.topics.catalog import Catalog, SqliteStorage
from tests.moving.standin import running
from tests.moving.worlds import World, carried_out

_STEP = int(os.environ.get("FUZZ_STEP", "0"))
_TUNE = """
[tune]
evaluation = "evaluation.toml"
objectives = ["imbalance_max_mean"]
candidates = 4
[[spaces]]
name = "near"
vary = { "scorers[1].weight" = { low = 0.0, high = 4.0 } }
"""
_EVALUATION = """
policies = ["policies.toml"]
[evaluation]
incumbent = "today"
seeds = 5
session_s = 3600
balance_s = 900
tick_s = 300
[verdict]
block_s = 900
[inputs]
lookups = "sample/lookups"
brokers = "sample/brokers"
"""
_POLICIES = """
[[policies]]
name = "today"
scorers = ["headroom", { use = "property-match", key = "rack", weight = 0.0 }]
selector = "best"
"""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with one document of each kind, and what it is read with."""
    folder = tmp_path_factory.mktemp("documents")
    world = World.crowded()
    world.write(folder / "record")
    (folder / "record" / "namespaces.toml").write_text(
        '[[namespaces]]\nname = "shop/orders"\nisolation = [{ primary = ["broker-0", "broker-1"], min_limit = 1 }]\n'
    )
    made = lookup.plan(folder / "record", policy={"name": "even", "selector": "best", "shedder": "rebalance"})
    made.write(folder / "plan")
    carried_out(made.plan, folder / "journal")
    with Journal(folder / "journal") as journal:
        journal.write("freezing", found="true")
    with_catalog = Catalog(SqliteStorage(folder / "topics.db"))
    with_catalog.create_namespace("a/b")
    for number in range(20):
        with_catalog.create(f"persistent://a/b/t-{number}", labels={"env": "prod"}, properties={"k": "v"})
    with_catalog.close()
    sizes = {
        "lookups": 2_000,
        "clusters": 1,
        "hours": 8.0,
        "topics": 60,
        "namespaces": 24,
        "tenants": 12,
        "clients": 60,
    }
    generate(GenerateSettings(**sizes), folder / "sample")  # type: ignore[arg-type]
    for name, text in (("evaluation", _EVALUATION), ("tune", _TUNE), ("policies", _POLICIES)):
        (folder / f"{name}.toml").write_text(text)
    for words in ("tune tune.toml --output tuned", "evaluate evaluation.toml --output run"):
        before = Path.cwd()
        os.chdir(folder)
        try:
            assert main([*words.split(), "--master", "none", "--quiet"]) in (0, 3, 4)
        finally:
            os.chdir(before)
    return folder


#: By document: the commands that read it in turn, and whether that takes long.
_READ: dict[str, tuple[tuple[str, ...], bool]] = {
    "plan/plan.json": (("plan show plan",), False),
    "journal": (("apply --recover journal",), False),
    "tuned/tune.json": (("tune tune.toml --output tuned --master none",), True),
    "tuned/search.json": (("tune tune.toml --output tuned --master none",), True),
    "topics.db": (("topics list a/b --labels env=prod --catalog topics.db",), False),
    "run/summary.json": (("report run", "diff run run"), True),
    "run/manifest.json": (("report run", "diff run run"), True),
    "record/namespaces.toml": (("plan --record record",), False),
}  # fmt: skip


def _edits(content: bytes, step: int) -> Iterator[bytes]:
    """Yield a content with one edit at each of some bytes: gone, another one, one more, the rest cut off."""
    for number, place in enumerate(range(0, len(content), step)):
        head, tail = content[:place], content[place + 1 :]
        other = b'x09"[\xff-}'[number % 8 : number % 8 + 1]
        yield (head + tail, head + other + tail, head + other + content[place:], head)[number // 2 % 4]


@pytest.mark.parametrize("name", _READ)
def test_edited_documents_are_sentences(
    sound: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error is one line that begins with its name."""
    monkeypatch.chdir(sound)
    monkeypatch.setenv("NO_COLOR", "1")
    path, (commands, is_slow) = Path(name), _READ[name]
    content = path.read_bytes()

    with running() as standin:
        monkeypatch.setenv("LOOKUP_CLUSTER__ADMIN", standin.url)
        words = [[*command.split(), "--quiet"] for command in commands]
        # A finished search is refused, as an edited one is.
        assert [main(one) for one in words] == [2 if "tune" in one else 0 for one in words]
        try:
            faults = [
                *filter(None, (
                    _fault(path, edited, words[number % len(words)], capsys)
                    for number, edited in enumerate(_edits(content, _STEP or (1_000 if is_slow else 50)))
                ))
            ]  # fmt: skip
        finally:
            path.write_bytes(content)

    assert not faults, f"{len(faults)}: " + "\n".join(faults[:5])


def _fault(path: Path, edited: bytes, words: list[str], capsys: pytest.CaptureFixture[str]) -> str | None:
    """Return what a command does with an edited file that no command may do, None if it does well."""
    path.write_bytes(edited)
    for log in Path.cwd().glob("topics.db-*"):
        log.unlink()
    with suppress(OSError):
        capsys.readouterr()
    try:
        code = main(words)
    except BaseException:  # noqa: BLE001  # whatever it is, it is the finding
        return f"{words}: {traceback.format_exc(limit=-4)}"
    err = capsys.readouterr().err
    errors = [line for line in err.splitlines() if line.startswith("error: ")]
    is_well = code in (0, 3, 4) or (code, len(errors)) == (2, 1)
    return None if is_well and "Traceback" not in err else f"{words}: {code}: {err}"
