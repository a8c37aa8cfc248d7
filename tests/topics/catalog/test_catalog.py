"""Every catalog, over each storage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from lookup.errors import ArgumentError, InvalidNameError, NotFoundError, PulsarLookupError, StateError
from lookup.model.catalog import Equals, TopicEntry, TopicEvent
from lookup.topics.catalog import Catalog
from lookup.topics.catalog.pairs import MAX_LENGTH, MAX_PAIRS
from tests.topics.catalogs import (
    NAMESPACE,
    STORAGES,
    MakeStorage,
    everything,
    filled,
    heard,
    in_file,
    index,
    parts,
    rebuilt,
    topic,
)  # fmt: skip


@pytest.fixture(params=list(STORAGES))
def make(request: pytest.FixtureRequest) -> MakeStorage:
    """Return what makes a storage, one kind after the other."""
    return STORAGES[request.param]


@pytest.fixture
def catalog(make: MakeStorage, tmp_path: Path) -> Iterator[Catalog]:
    """Return a filled catalog."""
    made = filled(make(tmp_path, 1_000))
    yield made
    made.close()


def _labels(catalog: Catalog, *names: str) -> list[dict[str, str]]:
    return [dict(entry.labels) for name in names if (entry := catalog.entry(topic(name))) is not None]


def test_topics_are_sorted_with_partitions_and_system_topics(catalog: Catalog) -> None:
    """A listing of the catalog hides nothing: that is a lister's business."""
    names = [topic("__change_events"), topic("p-partition-0"), topic("p-partition-1"), topic("q")]

    assert list(catalog.topics(NAMESPACE)) == names
    assert list(catalog.topics(NAMESPACE, "non-persistent")) == [topic("n", "non-persistent")]
    assert list(catalog.topics(NAMESPACE, "all")) == [topic("n", "non-persistent"), *names]


def test_selectors_read_labels_and_filters_read_properties(catalog: Catalog) -> None:
    """The two maps have two purposes and never mix."""
    catalog.set_pairs("properties", topic("q"), {"env": "prod"})

    assert list(catalog.select(NAMESPACE, (Equals("env", "test"),))) == [topic("q")]
    assert list(catalog.with_properties(NAMESPACE, "persistent", {"env": "prod"})) == [topic("q")]


def test_a_selector_without_conditions_is_refused(catalog: Catalog) -> None:
    """Nothing is ever widened to every topic."""
    with pytest.raises(ArgumentError, match="the selector has no condition"):
        catalog.select(NAMESPACE, ())


def test_no_properties_filter_nothing(catalog: Catalog) -> None:
    """An empty map means every topic of the mode."""
    assert catalog.with_properties(NAMESPACE, "all", {}) == catalog.topics(NAMESPACE, "all")


def test_properties_are_joined_by_and(catalog: Catalog) -> None:
    """Every pair must be there."""
    found = catalog.with_properties(NAMESPACE, "persistent", {"owner": "x", "size": "big"})

    assert list(found) == [topic("q")]


def test_labels_of_a_partitioned_topic_hold_for_each_partition(catalog: Catalog) -> None:
    """A write to the whole topic, or to one partition, is propagated."""
    catalog.set_pairs("labels", topic("p"), {"tier": "b"})
    catalog.set_pairs("labels", topic("p-partition-1"), {"team": "z"})

    assert _labels(catalog, "p-partition-0", "p-partition-1") == [{"env": "prod", "tier": "b", "team": "z"}] * 2


def test_a_plain_topic_shares_nothing_with_topics_that_have_names_of_partitions(catalog: Catalog) -> None:
    """Producers can make such topics in a cluster; each has labels and properties of its own."""
    names = [topic("o"), topic("o-partition-0"), topic("o-partition-1")]
    for name in names:
        catalog.mirror(name, TopicEntry(name, {}, {}))
    for number, name in enumerate(names):
        catalog.set_pairs("labels", name, {"env": str(number)})
        catalog.set_pairs("properties", name, {"owner": str(number)})
    catalog.remove_pairs("properties", names[1], everything=True)

    assert _labels(catalog, "o", "o-partition-0", "o-partition-1") == [{"env": "0"}, {"env": "1"}, {"env": "2"}]
    assert [dict(catalog.describe(name).properties) for name in names] == [{"owner": "0"}, {}, {"owner": "2"}]
    catalog.delete(names[0])
    catalog.set_pairs("labels", names[0], {"env": "3"})
    assert _labels(catalog, "o-partition-0", "o-partition-1") == [{"env": "3"}] * 2


def test_properties_of_a_partitioned_topic_hold_for_each_partition(catalog: Catalog) -> None:
    """Properties are propagated on write, as PIP-451 has it."""
    catalog.set_pairs("properties", topic("p"), {"size": "small"})
    catalog.remove_pairs("properties", topic("p"), ["owner"])

    found = catalog.with_properties(NAMESPACE, "all", {"size": "small"})

    assert list(found) == [topic("p-partition-0"), topic("p-partition-1")]
    assert list(catalog.with_properties(NAMESPACE, "all", {"owner": "x"})) == [topic("q")]


def test_new_partitions_inherit(catalog: Catalog) -> None:
    """One that is created by its own name has the labels of the others."""
    catalog.create(topic("p-partition-2"))

    assert parts(catalog, topic("p")) == [topic(f"p-partition-{number}") for number in range(3)]
    assert _labels(catalog, "p-partition-1", "p-partition-2") == [{"env": "prod", "tier": "a"}] * 2


def test_a_partition_of_a_topic_has_no_labels_of_its_own(catalog: Catalog) -> None:
    """Labels that differ from those of the topic are refused with the partition."""
    with pytest.raises(ArgumentError, match="properties of its topic"):
        catalog.create(topic("p-partition-2"), labels={"env": "test"})


def test_labels_merge_and_go_by_key_or_altogether(catalog: Catalog) -> None:
    """Setting replaces one key; removing passes over keys that are not there."""
    catalog.set_pairs("labels", topic("q"), {"env": "prod", "team": "z"})
    catalog.remove_pairs("labels", topic("q"), ["team", "unheard"])
    after_keys = _labels(catalog, "q")
    catalog.remove_pairs("labels", topic("q"), everything=True)

    assert (after_keys, _labels(catalog, "q")) == ([{"env": "prod"}], [{}])


def test_events_count_up_without_gaps(catalog: Catalog) -> None:
    """One transaction over two partitions is two events in order."""
    events, start = heard(catalog), catalog.revision
    catalog.set_pairs("labels", topic("p"), {"tier": "b"})
    catalog.set_pairs("properties", topic("q"), {"seen": "1"})
    catalog.delete(topic("q"))

    assert [event.revision for event in events] == list(range(start + 1, start + 5))
    assert [event.kind for event in events] == ["labels", "labels", "properties", "deleted"]
    assert list(catalog.events_since(start)) == events


def test_events_carry_old_and_new(catalog: Catalog) -> None:
    """Listeners see the labels before and afterwards; of a new topic its labels and properties."""
    events, start = heard(catalog), catalog.revision
    catalog.create(topic("z"), labels={"a": "1"}, properties={"b": "2"})
    catalog.set_pairs("labels", topic("z"), {"a": "3"})

    assert events == [
        TopicEvent(start + 1, "created", topic("z"), {}, {"a": "1"}, {"b": "2"}),
        TopicEvent(start + 2, "labels", topic("z"), {"a": "1"}, {"a": "3"}),
    ]


def test_nothing_is_said_where_nothing_changes(catalog: Catalog) -> None:
    """Writing what is there already is no event."""
    events = heard(catalog)
    catalog.set_pairs("labels", topic("p"), {"env": "prod"})
    catalog.remove_pairs("properties", topic("q"), ["unheard"])

    assert events == []


def test_a_listener_can_leave(catalog: Catalog) -> None:
    """The function that `subscribe` returns ends it, also when it is called twice."""
    events: list[TopicEvent] = []
    leave = catalog.subscribe(events.append)
    leave()
    leave()
    catalog.set_pairs("properties", topic("q"), {"seen": "1"})

    assert events == []


def test_a_block_of_writes_is_told_when_it_ends(catalog: Catalog) -> None:
    """Questions see none of it until then; writes of the block see each other."""
    events = heard(catalog)
    with catalog.together():
        catalog.create(topic("z"))
        with pytest.raises(StateError, match="exists already"):
            catalog.create(topic("z"))
        seen = (topic("z") in catalog.topics(NAMESPACE), list(events))

    assert seen == (False, [])
    assert [event.topic for event in events] == [topic("z")]


def test_a_block_that_raises_leaves_nothing(catalog: Catalog) -> None:
    """Topics, labels, namespaces, revision and events are as before."""
    before, events = everything(catalog), heard(catalog)
    with suppress(ZeroDivisionError), catalog.together():
        catalog.create_namespace("t/other")
        catalog.create("persistent://t/other/x", labels={"env": "x"})
        catalog.set_pairs("labels", topic("p"), {"tier": "b"})
        catalog.delete(topic("q"))
        _ = 1 / 0

    assert (everything(catalog), events) == (before, [])
    assert index(catalog) == rebuilt(catalog)
    catalog.set_pairs("properties", topic("q"), {"seen": "1"})
    assert [event.revision for event in events] == [before[0] + 1]


def test_an_answer_is_the_same_object_until_something_changes(catalog: Catalog) -> None:
    """Properties change no list by names, labels change no list of all names."""
    names, selected = catalog.topics(NAMESPACE), catalog.select(NAMESPACE, (Equals("env", "prod"),))
    catalog.set_pairs("properties", topic("q"), {"seen": "1"})

    assert catalog.topics(NAMESPACE) is names
    assert catalog.select(NAMESPACE, (Equals("env", "prod"),)) is selected
    catalog.set_pairs("labels", topic("q"), {"env": "prod"})
    assert catalog.topics(NAMESPACE) is names
    assert topic("q") in catalog.select(NAMESPACE, (Equals("env", "prod"),))
    catalog.create(topic("z"))
    assert topic("z") in catalog.topics(NAMESPACE)
    assert topic("z") not in names


def test_a_namespace_goes_with_everything_in_it(catalog: Catalog) -> None:
    """Each topic is announced, then the namespace; the name can be used again."""
    names, events = catalog.topics(NAMESPACE, "all"), heard(catalog)
    catalog.delete_namespace(NAMESPACE)

    assert [(event.kind, event.topic) for event in events] == [
        *(("deleted", name) for name in names),
        ("namespace-deleted", NAMESPACE),
    ]
    with pytest.raises(NotFoundError, match="there is no namespace 't/ns'"):
        catalog.delete_namespace(NAMESPACE)
    catalog.create_namespace(NAMESPACE)
    assert list(catalog.topics(NAMESPACE, "all")) == []


def test_only_so_many_events_are_kept(make: MakeStorage, tmp_path: Path) -> None:
    """A question for older ones is an error, never answered with a part of them."""
    catalog = filled(make(tmp_path, 2))

    assert len(catalog.events_since(catalog.revision - 2)) == 2
    with pytest.raises(StateError, match=r"3 events .* last 2"):
        catalog.events_since(catalog.revision - 3)
    with pytest.raises(StateError, match=r"no revision 7: .* 6"):
        catalog.events_since(7)
    catalog.close()


def _mistakes() -> list[tuple[Callable[[Catalog], object], type[PulsarLookupError], str]]:
    long, many = "x" * (MAX_LENGTH + 1), {f"k{number}": "v" for number in range(MAX_PAIRS)}
    return [
        (lambda c: c.topics("t/nss"), NotFoundError, "there is no namespace 't/nss'; did you mean 't/ns'?"),
        (lambda c: c.create("persistent://t/nss/x"), NotFoundError, "did you mean 't/ns'?"),
        (lambda c: c.set_pairs("labels", topic("qq"), {"a": "b"}), NotFoundError, f"did you mean '{topic('q')}'?"),
        (lambda c: c.create("q"), InvalidNameError, "does not begin with persistent://"),
        (lambda c: c.create(topic("a\x07b")), ArgumentError, "has the character '\\x07', which no name may have"),
        (
            lambda c: c.create(topic("a\u200bb")),
            ArgumentError,
            "the name has the character '\\u200b', which nobody sees",
        ),
        (lambda c: c.create(topic("ab\u00a0")), ArgumentError, "b\\xa0': the name begins or ends with a blank"),
        (lambda c: c.create(topic(" ab"), partitions=2), ArgumentError, "ab': the name begins or ends with a blank"),
        (lambda c: c.create(topic("q")), StateError, "exists already"),
        (lambda c: c.create(topic("p")), StateError, "exists already"),
        (lambda c: c.create(topic("q-partition-0")), StateError, "exists and is not partitioned"),
        (lambda c: c.create(topic("z"), partitions=0), ArgumentError, "partitions is 0, it must be between 1 and"),
        (lambda c: c.create(topic("z-partition-0"), partitions=2), ArgumentError, "is the name of a partition"),
        (lambda c: c.delete(topic("z")), NotFoundError, "there is no topic"),
        (
            lambda c: c.set_pairs("labels", topic("q"), {"a\n": "b"}),
            ArgumentError,
            "must not begin or end with a blank",
        ),
        (
            lambda c: c.set_pairs("labels", topic("q"), {"a\x00b": "b"}),
            ArgumentError,
            "must not have the character '\\x00'",
        ),
        (
            lambda c: c.set_pairs("labels", topic("q"), {"a\u202eb": "b"}),
            ArgumentError,
            "must not have the character '\\u202e'",
        ),
        (
            lambda c: c.set_pairs("properties", topic("q"), {"a": "b\u200bc"}),
            ArgumentError,
            "must not have the character '\\u200b'",
        ),
        (
            lambda c: c.set_pairs("properties", topic("q"), {"a": "b\x85"}),
            ArgumentError,
            "must not begin or end with a blank",
        ),
        (lambda c: c.set_pairs("labels", topic("q"), {"a": "b=c"}), ArgumentError, "must not have the character '='"),
        (
            lambda c: c.set_pairs("labels", topic("q"), {"my key": "b"}),
            ArgumentError,
            "'my key', it must not have the character ' '",
        ),
        (lambda c: c.set_pairs("labels", topic("q"), {"a!": "b"}), ArgumentError, "must not have the character '!'"),
        (lambda c: c.set_pairs("labels", topic("q"), {"a": "b(1)"}), ArgumentError, "must not have the character '('"),
        (lambda c: c.set_pairs("labels", topic("q"), {"a": "b\ud800"}), ArgumentError, "must not have the character"),
        (lambda c: c.set_pairs("labels", topic("q"), {"a": ""}), ArgumentError, "the value of the label 'a' is empty"),
        (lambda c: c.set_pairs("labels", topic("q"), {"a": long}), ArgumentError, "257 characters, at most 256"),
        (lambda c: c.set_pairs("labels", topic("q"), many), ArgumentError, "at most 64 keys of a label, this makes 65"),
        (lambda c: c.set_pairs("properties", topic("q"), {"a:b": "c"}), ArgumentError, "key of a property is 'a:b'"),
        (lambda c: c.remove_pairs("labels", topic("q")), ArgumentError, "say which labels to remove"),
        (lambda c: c.remove_pairs("labels", topic("q"), ["a"], everything=True), ArgumentError, "one of the two"),
        (lambda c: c.remove_pairs("labels", topic("q"), "env"), ArgumentError, "'env', which is one text"),
        (
            lambda c: c.remove_pairs("properties", topic("q"), "env"),
            ArgumentError,
            "the properties to remove are 'env', which is",
        ),
        (lambda c: c.create_namespace("nothing"), InvalidNameError, "is not of the form tenant/namespace"),
        (
            lambda c: c.create_namespace("a/b/c"),
            InvalidNameError,
            "'a/b/c' is not of the form tenant/namespace: it has mo",
        ),
        (
            lambda c: c.create_namespace(f"t/{'n' * 10**6}"),
            ArgumentError,
            "...' has 1,000,002 characters, more than 1,024",
        ),
        (lambda c: c.create(topic("a" * 10**6)), ArgumentError, "characters, more than the 4,096 that a name may have"),
        (
            lambda c: c.create(topic("a" * 4_070), partitions=10),
            ArgumentError,
            "has 4,100 characters, more than the 4,096",
        ),
        (lambda c: c.delete(topic("a" * 10**6)), ArgumentError, "characters, more than the 4,096 that a name may have"),
        (lambda c: c.topics("n" * 10**6), NotFoundError, "nnn...'; known: t/ns"),
    ]


@pytest.mark.parametrize("local", ["z\u200bz", "z\u00a0", "z\nz", "z\u2028z", "z" * 5_000])
def test_what_was_stored_before_it_was_refused_can_be_read_and_removed(tmp_path: Path, local: str) -> None:
    """A catalog of an earlier release, or one that follows another, opens; names and pairs can be seen and let go."""
    odd = TopicEntry(topic(local), {"team\x1c": "b\u202e"}, {"env\u200b": "prod\u00a0", "tier": "a"})
    catalog = Catalog(in_file(tmp_path))
    catalog.mirror(odd.name, odd)
    catalog.close()
    catalog = Catalog(in_file(tmp_path))

    assert (catalog.topics(NAMESPACE), catalog.entry(odd.name)) == ((odd.name,), odd)
    assert catalog.select(NAMESPACE, (Equals("env\u200b", "prod\u00a0"), Equals("tier", "a"))) == (odd.name,)
    catalog.set_pairs("labels", odd.name, {"tier": "b"})
    catalog.remove_pairs("labels", odd.name, ["env\u200b"])
    catalog.remove_pairs("properties", odd.name, ["team\x1c"])
    assert catalog.entry(odd.name) == TopicEntry(odd.name, {}, {"tier": "b"})
    catalog.delete(odd.name)
    assert catalog.topics(NAMESPACE) == ()
    catalog.close()


@pytest.mark.parametrize("number", range(len(_mistakes())))
def test_mistakes_are_sentences_and_store_nothing(catalog: Catalog, number: int) -> None:
    """Whatever is refused leaves the catalog, its events and its storage as they were."""
    mistake, kind, sentence = _mistakes()[number]
    before, events = everything(catalog), heard(catalog)

    with pytest.raises(kind) as caught:
        mistake(catalog)

    assert sentence in str(caught.value)
    assert len(str(caught.value)) < 400
    assert (everything(catalog), events) == (before, [])


def test_only_allowed_keys_are_stored(make: MakeStorage, tmp_path: Path) -> None:
    """With `allowed_label_keys` any other key is refused, for new topics too; properties are free."""
    catalog = Catalog(make(tmp_path, 10), allowed_label_keys=["env", "team"])
    catalog.create_namespace(NAMESPACE)
    catalog.create(topic("q"), labels={"env": "x"}, properties={"other": "y"})

    with pytest.raises(ArgumentError, match=r"'tem' .* allowed_label_keys; did you mean 'team'"):
        catalog.set_pairs("labels", topic("q"), {"tem": "z"})
    with pytest.raises(ArgumentError, match=r"'tier' .* allowed_label_keys"):
        catalog.create(topic("z"), labels={"tier": "z"})
    catalog.close()
