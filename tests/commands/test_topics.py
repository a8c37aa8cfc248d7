"""`lookup topics ...`: topics, labels and properties of a catalog, from one command to the next."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from lookup.cli import commands
from lookup.commands.topics import CREATE, DELETE
from lookup.model.catalog import TopicEntry
from lookup.topics.catalog import Catalog, SqliteStorage
from tests.commands.projects import Ran, Run
from tests.topics.plugins import lister_plugin

Topics = Callable[..., Ran]
HERE = "persistent://public/default/"

#: A lister of somebody's own, which hides what is frozen.
FROZEN = lister_plugin(
    ["labels"],
    thawed="""
        names = catalog.topics(namespace, mode)
        return Listing([name for name in names if "frozen" not in catalog.entry(name).labels])
    """,
)


@pytest.fixture
def topics(lookup: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Topics:
    """Return a function that runs `lookup topics` in a folder with a small catalog."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> Ran:
        return lookup("topics", *words)

    run("create", "orders", "--create-namespace", "--labels", "env=prod,tier=gold", "-p", "team=billing")
    run("create", "orders-eu", "--partitions", "2", "--labels", "env:prod", "-p", "team:billing", "-p", "stage=raw")
    run("create", "audit", "--labels", "frozen=yes")
    run("create", "non-persistent://public/default/fast", "--labels", "env=prod")
    run("create", "__change_events")
    return run


def _locals(ran: Ran) -> list[str]:
    assert (ran.code, ran.err) == (0, "")
    return [name.rpartition("/")[2] for name in ran.out.splitlines()]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("", "audit orders orders-eu-partition-0 orders-eu-partition-1"),
        ("--mode non-persistent", "fast"),
        ("--include-system", "__change_events audit orders orders-eu-partition-0 orders-eu-partition-1"),
        ("--pattern persistent://public/default/orders-.*", "orders-eu-partition-0 orders-eu-partition-1"),
        ("--labels env=prod", "orders orders-eu-partition-0 orders-eu-partition-1"),
        ("--labels env:prod,tier", "orders"),
        ("--labels env=prod --mode all", "fast orders orders-eu-partition-0 orders-eu-partition-1"),
        ("--set topics.lister=indexed -p team=billing", "orders orders-eu-partition-0 orders-eu-partition-1"),
        ("--set topics.lister=indexed -p team=billing,stage:raw", "orders-eu-partition-0 orders-eu-partition-1"),
        ("--set topics.lister=indexed --properties team:billing,stage:raw --pattern .*-0", ""),
        ("--plugin-file mine.py --set topics.lister=thawed", "orders orders-eu-partition-0 orders-eu-partition-1"),
    ],
)
def test_a_list_is_filtered_by_everything_that_is_given(topics: Topics, words: str, wanted: str) -> None:
    """Lister, pattern, labels and mode each leave out what does not fit."""
    Path("mine.py").write_text(FROZEN, encoding="utf-8")

    assert _locals(topics("list", "public/default", *words.split())) == wanted.split()


def test_properties_that_nobody_looks_at_are_warned_of(topics: Topics) -> None:
    """The lister `default` does as Pulsar's."""
    ran = topics("list", "public/default", "-p", "team=billing")

    assert (ran.code, len(ran.out.splitlines())) == (0, 4)
    assert ran.err.startswith("warning: lister 'default' ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("list public/defualt", "public/defualt"),
        (f"list public/default --pattern {'a' * 1001}", "a pattern has 1,001 characters"),
        ("list public/default --pattern=", "--pattern: it is empty"),
        ("watch public/default --pattern=", "--pattern: it is empty"),
        ("list public/default --set topics.lister=idnexed", "no lister named 'idnexed'"),
        ("list public/default --set topics.listre=indexed", "no setting topics.listre"),
        ("list public/default --catalog no.db", "there is no catalog"),
        ("list public/default --mode some", "--mode: there is no 'some'"),
        ("list", "NAMESPACE must be given"),
        ("labels", "`lookup topics labels --help`"),
        ("labels get nothing", "no topic 'persistent://public/default/nothing'"),
        ("labels get ordres", "did you mean 'persistent://public/default/orders'?"),
        ("labels get acme/uk/orders", "no namespace 'acme/uk'"),
        ("labels set orders", "K=V must be given"),
        ("labels set orders a=1 a=2", "'a' is given twice"),
        ("properties set orders a=1 a=2", "'a' is given twice"),
        ("create bills -p a=1,a=2", "'a' is given twice"),
        ("list public/default -p a=1 -p a=2", "'a' is given twice"),
        ("list public/default --catalog .", " is a folder; name a file"),
        ('labels set orders env=prod --set topics.allowed_label_keys=["tier"]', "env"),
        ("labels remove orders", "either KEY or --all"),
        ("labels remove orders env --all", "either KEY or --all"),
        ("properties set orders", "K=V must be given"),
        ("properties remove orders", "either KEY or --all"),
        ("create orders", "orders"),
        ("create persistent://acme/eu/orders", "acme/eu"),
        ("create orders/", "is not of the form"),
        ("delete nothing", "nothing"),
    ],
)
def test_a_mistake_is_a_sentence_and_exit_code_2(topics: Topics, words: str, said: str) -> None:
    """It says what would be right, and changes nothing."""
    before = topics("list", "public/default", "--mode", "all", "--include-system").out
    ran = topics(*words.split())

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: ")
    assert said in ran.err
    assert topics("list", "public/default", "--mode", "all", "--include-system").out == before


@pytest.mark.parametrize("words", ["labels remove orders", "properties remove orders team"])
@pytest.mark.parametrize("where", [(), ("--server", "http://127.0.0.1:1")])
def test_an_empty_key_is_refused(topics: Topics, words: str, where: tuple[str, ...]) -> None:
    """In the words of the command, and before any catalog or server is asked."""
    ran = topics(*words.split(), "", *where)

    assert ran.code == 2
    assert ran.err.startswith("error: KEY must not be")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("create bills", "with --create-namespace"),
        ("create bills --create-namespace --labels env=", "label 'env' is empty"),
        ("create bills --create-namespace --partitions 0", "partitions is 0"),
        ("create a/b/c/d", "there is no namespace 'a/b'"),
    ],
)
def test_a_topic_that_cannot_be_made_makes_no_catalog(topics: Topics, words: str, said: str) -> None:
    """A mistake leaves no file behind if there was none."""
    ran = topics(*words.split(), "--catalog", "new.db")

    assert ran.code == 2
    assert said in ran.err
    assert not list(Path().glob("new.db*"))


def test_a_name_of_a_cluster_with_a_line_feed_is_one_line(topics: Topics) -> None:
    """It can be listed, labelled and deleted, and controls no terminal."""
    odd = TopicEntry(f"{HERE}z\n\x1b[31mz", {}, {"env": "odd"})
    with closing(SqliteStorage("topics.db")) as storage:
        Catalog(storage).mirror(odd.name, odd)

    assert _locals(topics("list", "public/default", "--labels", "env=odd")) == [r"z\n\x1b[31mz"]
    assert json.loads(topics("list", "public/default", "--labels", "env=odd", "--format", "json").out)["topics"] == [
        odd.name
    ]
    assert topics("labels", "set", odd.name, "team=b").code == 0
    assert topics("delete", odd.name).code == 0
    assert _locals(topics("list", "public/default", "--labels", "env=odd")) == []


def test_the_examples_of_the_help_run_as_printed(lookup: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that has no catalog yet: those of `create` first, those that delete in the end."""
    monkeypatch.chdir(tmp_path)
    last = (DELETE,)
    between = [command for command in commands("topics") if command not in (CREATE, *last)]
    for command in (CREATE, *between, *last):
        for line, _ in command.examples:
            # Of a server: `test_topics_at_server.py`.
            if "--server" in line:
                continue
            ran = lookup(*shlex.split(line)[1:])

            assert ran.code == 0, ran.err


def test_labels_are_set_shown_and_removed(topics: Topics) -> None:
    """Setting merges, removing takes keys or everything."""
    topics("labels", "set", "orders", "team=b", "tier:silver")
    assert topics("labels", "get", "orders").out == "env=prod\nteam=b\ntier=silver\n"

    topics("labels", "remove", "orders", "env", "tier", "none")
    assert json.loads(topics("labels", "get", "orders", "--format", "json").out) == {"team": "b"}

    topics("labels", "remove", "orders", "--all")
    assert topics("labels", "get", "orders").out == ""


def test_properties_are_set_shown_and_removed(topics: Topics) -> None:
    """Labels stay what they are."""
    topics("properties", "set", "orders", "team:b", "stage=raw")
    assert topics("properties", "get", "orders").out == "stage=raw\nteam=b\n"

    topics("properties", "remove", "orders", "stage")
    assert json.loads(topics("properties", "get", "orders", "--format", "json").out) == {"team": "b"}

    topics("properties", "remove", "orders", "--all")
    assert topics("properties", "get", "orders").out == ""
    assert topics("labels", "get", "orders").out == "env=prod\ntier=gold\n"


def test_a_deleted_topic_is_gone_with_its_partitions(topics: Topics) -> None:
    """One name stands for all of them."""
    assert topics("delete", "orders-eu").err == f"deleted {HERE}orders-eu\n"

    assert _locals(topics("list", "public/default")) == ["audit", "orders"]
