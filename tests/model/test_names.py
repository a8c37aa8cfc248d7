"""Names of topics and namespaces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.errors import InvalidNameError
from lookup.model import NamespaceName, TopicName
from lookup.model.names import (
    INTERNAL_TOPICS,
    cluster_problem,
    endpoint_problem,
    is_internal_topic,
    is_pinned_bundle,
    is_system_namespace,
    looks_like_pattern,
    pinned_broker,
    split_servers,
    url_problem,
)

_PART = st.text("abcXYZ019-=:._", min_size=1, max_size=8)


@given(st.sampled_from(["persistent", "non-persistent"]), _PART, _PART, st.text("abc/-.é ", min_size=1))
def test_a_topic_prints_as_it_was_read(domain: str, tenant: str, namespace: str, local: str) -> None:
    """Whatever the parts, reading and printing are each other's reverse."""
    text = f"{domain}://{tenant}/{namespace}/{local}"
    topic = TopicName.parse(text)

    assert str(topic) == text
    assert (topic.domain, topic.namespace, topic.local) == (domain, NamespaceName(tenant, namespace), local)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("orders", "begin with persistent:// or non-persistent://"),
        ("kafka://a/b/c", "begin with persistent:// or non-persistent://"),
        ("", "begin with persistent:// or non-persistent://"),
        ("persistent://a/b", "the form persistent://tenant/namespace/topic"),
        ("persistent://a/b/", "the form persistent://tenant/namespace/topic"),
        ("non-persistent://a", "the form non-persistent://tenant/namespace/topic"),
        ("persistent:///b/c", "namespace '/b' "),
        ("persistent://a//c", "namespace 'a/' "),
        ("persistent://a b/n/c", "namespace 'a b/n' "),
        ("persistent://ä/n/c", "namespace 'ä/n' "),
    ],
)
def test_what_is_no_topic_is_refused(text: str, sentence: str) -> None:
    """The sentence quotes the name and says what it should look like."""
    with pytest.raises(InvalidNameError, match=sentence):
        TopicName.parse(text)


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("orders", "persistent://public/default/orders"),
        ("t/n/orders", "persistent://t/n/orders"),
        ("non-persistent://t/n/orders", "non-persistent://t/n/orders"),
    ],
)
def test_short_names_are_completed_as_clients_do(text: str, full: str) -> None:
    """A topic without slashes is in public/default, one without domain is persistent."""
    assert str(TopicName.expand(text)) == full


def test_a_short_name_with_one_slash_is_refused() -> None:
    """It is neither a topic nor a topic with its namespace."""
    with pytest.raises(InvalidNameError, match="is not of the form"):
        TopicName.expand("n/orders")


@pytest.mark.parametrize("text", ["", "tenant", "tenant/", "/n", "a b/n", "a/b//c"])
def test_what_is_no_namespace_is_refused(text: str) -> None:
    """The sentence quotes the name."""
    with pytest.raises(InvalidNameError, match=f"namespace '{text}' is not of "):
        NamespaceName.parse(text)


@pytest.mark.parametrize(
    "topic",
    [
        "persistent://t/n/.*",
        "persistent://t/n/a|b",
        "persistent://t/n/(x)",
        "t[0-9]+",
        "persistent://t/n/a\\.b",
        "persistent://t/n/\\Qa.b\\E",
    ],
)
def test_patterns_are_told_from_names(topic: str) -> None:
    """A watcher's regular expression is no topic."""
    assert looks_like_pattern(topic)


@pytest.mark.parametrize("local", ["my.topic-$a", "orders\\meta", "t4\\data"])
def test_dots_dollars_and_backslashes_make_no_pattern(local: str) -> None:
    """People use them in names."""
    assert not looks_like_pattern(f"persistent://t/n/{local}")


@pytest.mark.parametrize("topic", INTERNAL_TOPICS)
def test_the_managers_own_topics_are_internal(topic: str) -> None:
    """Their partitions too, their neighbours not."""
    assert is_internal_topic(topic)
    assert is_internal_topic(f"{topic}-partition-0")
    assert not is_internal_topic("persistent://pulsar/system/__change_events")


@pytest.mark.parametrize(
    ("namespace", "broker"),
    [
        ("pulsar/b1:8080", "b1:8080"),
        ("pulsar/cluster/b1.example.org:8080", "b1.example.org:8080"),
        ("sla-monitor/cluster/b1:8080", "b1:8080"),
        ("pulsar/system", None),
        ("pulsar/b1", None),
        ("pulsar/b1:x", None),
        ("mine/b1:8080", None),
        ("pulsar/b1:8080/more", None),
    ],
)
def test_heartbeat_and_sla_namespaces_name_their_broker(namespace: str, broker: str | None) -> None:
    """Both versions of heartbeats; what merely looks similar is ordinary."""
    assert pinned_broker(namespace) == broker
    assert is_system_namespace(namespace) == (broker is not None or namespace == "pulsar/system")
    assert is_pinned_bundle(f"{namespace}/0x00000000_0xffffffff") == (broker is not None)


@pytest.mark.parametrize("name", ["east", "us-west-2", "a b", "a/b", "é", "...", "=", "c" * 247])
def test_any_name_that_people_see_names_a_cluster(name: str) -> None:
    """What a folder's name may not have is encoded there."""
    assert cluster_problem(name) is None


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "the cluster is empty"),
        (" ", "cluster ' ' begins or ends"),
        ("east ", "cluster 'east ' begins or ends"),
        ("ea\x00st", r"cluster 'ea\x00st' has the character '\x00'"),
        ("ea\u200bst", r"cluster 'ea\u200bst' has the character '\u200b'"),
        ("..", "cluster '..' can name no folder"),
    ],
)
def test_what_nobody_sees_names_no_cluster(name: str, problem: str) -> None:
    """A cluster that is empty or hidden would be taken for another, or for all of them."""
    assert str(cluster_problem(name)).startswith(problem)


@pytest.mark.parametrize("name", ["c" * 248, "é" * 42])
def test_a_cluster_s_name_fits_into_a_folder_s(name: str) -> None:
    """File systems end names at 255 bytes, `cluster=` and the encoding of other characters included."""
    assert str(cluster_problem(name)).endswith("; 247 would do")


@pytest.mark.parametrize(
    "url",
    [
        "http://a:80", "http://a", "https://a:80/", "http://[::1]:80", "http://a:80,b:81", "http://a:80, b/x",
        "http://a:80,http://b:81",
    ],
)  # fmt: skip
def test_a_url_may_name_several_hosts(url: str) -> None:
    """With ports, paths and blanks between them, or without."""
    assert url_problem(url, "http", "https") is None


@pytest.mark.parametrize(
    ("url", "scheme", "servers"),
    [
        ("http://a:80,b:81", "http://", ["a:80", "b:81"]),
        ("http://a:80/, http://b:81/x/", "http://", ["a:80", "b:81/x"]),
        ("pulsar+ssl://a,pulsar+ssl://b", "pulsar+ssl://", ["a", "b"]),
        ("a:1,tls://b", "", ["a:1", "tls://b"]),
    ],
)
def test_each_server_of_a_url_may_repeat_the_scheme(url: str, scheme: str, servers: list[str]) -> None:
    """People write a list of servers in either way."""
    assert split_servers(url) == (scheme, servers)


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("admin", "http://a:80,https://b", "names servers of several schemes; all should have http://"),
        ("service_url", "pulsar://a,pulsar+ssl://b", "names servers of several schemes; all should have pulsar://"),
        ("service_url", "http://a", "should be of the form pulsar://HOST:PORT or pulsar+ssl://HOST:PORT"),
        ("zookeeper", "zk-0:2181,zk-1/pulsar/east", None),
        ("zookeeper", "tls://zk-0:2182,tls://zk-1:2182", None),
        *(
            ("zookeeper", text, "should be of the form HOST:PORT,HOST:PORT, with /CHROOT behind or tls:// before them")
            for text in ("", "zk:x", "zk:99999", "a,,b", "zk://a:1", "a:1/x,b:2/x", "a/../b", "[::1", "a b:1", "/x")
        ),
    ],
)
def test_an_endpoint_is_one_that_its_client_takes(name: str, text: str, problem: str | None) -> None:
    """ZooKeeper's have no scheme, and a chroot behind the last server."""
    assert endpoint_problem(name, text) == problem


@pytest.mark.parametrize(
    "url",
    [
        "", "a:80", "ftp://a:80", "http://", "http://:8900", "http:///x", "http://?x", "http://a b:80", "http://a/b c",
        "http://a:80,", "http://a:80 ,", "http://a,,b", "http://a:x", "http://a:0", "http://a:65536", "http://[::1",
        "http://a:,b:80",
    ],
)  # fmt: skip
def test_a_text_without_a_host_is_no_url(url: str) -> None:
    """Of none of several either, so that no server is blamed for it."""
    problem = url_problem(url, "http", "https")

    assert str(problem).endswith("http://HOST:PORT or https://HOST:PORT")
