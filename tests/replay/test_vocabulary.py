"""The tasks' codes put together."""

from __future__ import annotations

from pathlib import Path

from tests.replay.plans import lookup, planned

ROWS = [
    lookup(0, topic="persistent://t/z/1", properties='{"rack":"b"}', broker="b:1", client="x"),
    lookup(1, topic="persistent://t/a/1", properties="{}", broker="nobody", client="y"),
    lookup(2, topic="persistent://t/z/1", properties="{}", broker=None, client=None),
    lookup(3, topic="persistent://t/a/2", properties='{"rack":"a"}', broker="a:1", client="x"),
]


def test_words_are_sorted_and_do_not_depend_on_the_tasks(tmp_path: Path) -> None:
    """However many tasks read the log, it has the same vocabularies and the same rows."""
    one, four = (planned(tmp_path / str(tasks), ROWS, tasks=tasks) for tasks in (1, 4))

    assert len(four.shares) == 4
    assert one.cluster.words.properties == four.cluster.words.properties == ({"rack": "a"}, {"rack": "b"}, {})
    assert one.cluster.words.extras == four.cluster.words.extras
    for name in ("atom", "properties", "broker", "client"):
        whole = slice(None)
        assert one.rows.column(name, whole).tolist() == four.rows.column(name, whole).tolist()


def test_topics_are_counted_once_over_all_tasks(tmp_path: Path) -> None:
    """A topic that several tasks met is one topic."""
    assert planned(tmp_path, ROWS, tasks=4).cluster.words.topics.tolist() == [2, 1]


def test_brokers_are_roster_numbers(tmp_path: Path) -> None:
    """-1 stands for no broker, -2 for one that the roster does not know."""
    assert planned(tmp_path, ROWS).rows.column("broker", slice(None)).tolist() == [1, -2, -1, 0]


def test_absent_texts_come_first(tmp_path: Path) -> None:
    """None is a word, sorted before all others, which ascend."""
    names = [f"client-{number}" for number in range(9)]
    rows = [lookup(number, client=name) for number, name in enumerate([*reversed(names), None])]

    assert planned(tmp_path, rows).cluster.words.extras["client"] == (None, *names)
