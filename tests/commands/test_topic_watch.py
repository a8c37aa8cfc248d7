"""`lookup topics watch`: what is told of the topics of servers, and how it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Thread

import pytest

from lookup.topics.catalog import Catalog, SqliteStorage
from lookup.topics.listing import topics_hash
from tests.commands.projects import Ran, Run
from tests.processes import HEEDING
from tests.serve.servers import settings_file, started
from tests.topics.plugins import SHOWN

Watch = Callable[..., Ran]
Write = Callable[[Catalog], None]
HERE = "persistent://public/default/"

#: Seconds in which a server sends what was written; within half a second, and some for a busy machine.
_PAUSE_S = 1.5


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of a small catalog, in the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(SHOWN, encoding="utf-8")
    with _opened(tmp_path / "topics.db") as catalog:
        catalog.create_namespace("public/default")
        catalog.create(f"{HERE}orders", labels={"env": "prod", "tier": "gold"}, properties={"team": "b"})
        catalog.create(f"{HERE}orders-eu", partitions=2, labels={"env": "prod"})
        catalog.create(f"{HERE}audit")
        catalog.create(f"{HERE}__change_events")
    return tmp_path / "topics.db"


@pytest.fixture
def at_server(path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a decision server over the catalog, with a lister that looks at properties, and return its URL."""
    folder = tmp_path_factory.mktemp("served")
    text = f'[topics]\ncatalog = "{path}"\nlister = {{ use = "indexed" }}\n'
    with started(settings_file(folder, text, policies="")) as server:
        yield f"http://127.0.0.1:{server.port}"


@pytest.fixture
def watch(lookup: Run, path: Path, at_server: str) -> Watch:
    """Return a function that watches `public/default` at the server, while others write to the file of its catalog."""

    def run(*words: str, between: tuple[Write, ...] = ()) -> Ran:
        def write_all() -> None:
            for write in between:
                time.sleep(_PAUSE_S)
                with _opened(path) as other, other.together():
                    write(other)

        writer = Thread(target=write_all)
        writer.start()
        try:
            until = str(_PAUSE_S * (len(between) + 1)) if between else "0"
            return lookup("topics", "watch", "public/default", "--server", at_server, "--for", until, *words)
        finally:
            writer.join()

    return run


@contextmanager
def _opened(path: Path) -> Iterator[Catalog]:
    with closing(SqliteStorage(path)) as storage:
        yield Catalog(storage)


def _told(ran: Ran) -> list[dict[str, object]]:
    assert (ran.code, ran.err) == (0, "")
    return [json.loads(line) for line in ran.out.splitlines()]


def _locals(names: object) -> list[str]:
    assert isinstance(names, list)
    return [name.removeprefix(HERE) for name in names]


def test_a_watch_begins_with_the_list(watch: Watch) -> None:
    """Every name has come, and the hash is that of the list; nothing follows where nothing happens."""
    ran = watch("--labels", "env=prod,tier", between=(lambda _: None,))

    assert (ran.code, ran.err) == (0, "")
    assert ran.out == f"+ {HERE}orders\n= {topics_hash([HERE + 'orders'])}, 1 topics\n"


def test_changes_of_another_process_come_as_one_update_per_look(watch: Watch) -> None:
    """Removed before added, with the hash of the whole list; what the list does not show is not told."""

    def change(other: Catalog) -> None:
        other.create(f"{HERE}orders-us")
        other.delete(f"{HERE}orders")
        other.create(f"{HERE}orders-us-2")

    ran = watch("--pattern", ".*/orders.*", between=(lambda other: other.create(f"{HERE}unrelated"), change))

    eu = [f"{HERE}orders-eu-partition-{number}" for number in (0, 1)]
    after = [*eu, f"{HERE}orders-us", f"{HERE}orders-us-2"]
    assert ran.out.splitlines() == [
        *(f"+ {name}" for name in [f"{HERE}orders", *eu]),
        f"= {topics_hash([f'{HERE}orders', *eu])}, 3 topics",
        f"- {HERE}orders",
        f"+ {HERE}orders-us",
        f"+ {HERE}orders-us-2",
        f"= {topics_hash(after)}, 4 topics",
    ]


def test_a_watch_by_labels_hears_of_labels(watch: Watch) -> None:
    """A topic comes when its labels fit and goes when they no longer do."""

    def label(other: Catalog) -> None:
        other.set_pairs("labels", f"{HERE}audit", {"tier": "gold"})
        other.set_pairs("labels", f"{HERE}orders", {"tier": "silver"})

    first, update = _told(watch("--labels", "tier=gold", "--format", "json", between=(label,)))

    assert _locals(first["added"]) == ["orders"]
    assert (_locals(update["removed"]), _locals(update["added"])) == (["orders"], ["audit"])


def test_properties_reach_the_lister(watch: Watch) -> None:
    """A change of properties is printed if the lister looks at them."""
    write = (lambda other: other.set_pairs("properties", f"{HERE}audit", {"team": "b"}),)
    indexed = _told(watch("-p", "team=b", "--format", "json", between=write))

    assert [_locals(one["added"]) for one in indexed] == [["orders"], ["audit"]]


def test_a_namespace_that_is_deleted_leaves_an_empty_list(watch: Watch) -> None:
    """What is created in it later is added; also if a lister decides."""

    def again(other: Catalog) -> None:
        other.create_namespace("public/default")
        other.create(f"{HERE}new")

    between = (lambda other: other.delete_namespace("public/default"), lambda _: None, again)
    ran = watch("--format", "json", between=between)
    first, gone, new = map(json.loads, ran.out.splitlines())

    assert (gone["removed"], gone["count"], gone["hash"]) == (first["added"], 0, topics_hash(()))
    assert (new["removed"], _locals(new["added"])) == ([], ["new"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--for -1", "--for: "),
        ("--pattern a --labels env", "--pattern, --labels: "),
        (f"--pattern {'a' * 1001}", "1,001 characters, at most 1,000"),
        ("-p " + ",".join(f"k{number}=v" for number in range(65)), "65 properties were sent"),
    ],
)
def test_a_mistake_is_a_sentence_and_exit_code_2(watch: Watch, words: str, said: str) -> None:
    """No list is printed, and nothing after the sentence."""
    ran = watch(*words.split())

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines()[-1].startswith("error: ")
    assert said in ran.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "terminated"])
def test_a_watch_goes_on_until_it_is_interrupted(path: Path, at_server: str, number: signal.Signals) -> None:
    """Changes are printed while it runs; Ctrl-C ends with 130, in silence."""
    words = ("topics", "watch", "public/default", "--server", at_server, "--format", "json")
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HEEDING, *words], stdout=pipe, stderr=pipe, text=True) as watching:
        assert watching.stdout is not None
        assert json.loads(watching.stdout.readline())["count"] == 4
        with _opened(path) as other:
            other.create(f"{HERE}new")
        update = json.loads(watching.stdout.readline())
        watching.send_signal(number)
        out, err = watching.communicate(timeout=120)

    assert (update["kind"], _locals(update["added"])) == ("update", ["new"])
    assert (watching.returncode, out, err) == (130, "", "")
