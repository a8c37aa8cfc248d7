"""The client of watches: whatever a server sends, its list is current or said to be lost."""

from __future__ import annotations

from lookup.serve.client import TopicServer, Watching
from lookup.topics.listing import TopicQuery
from lookup.topics.watching import Trouble
from tests.answering import answering


def test_an_event_that_cannot_be_read_at_all_is_a_lost_watch() -> None:
    """Lists in lists that are deeper than Python goes: the thread that reads them goes on, and says so."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    deep = b'id: 1-1\nevent: snapshot\ndata: {"topics":' + b"[" * 200_000 + b"\n\n"
    with answering(head + deep) as port:
        url = f"http://127.0.0.1:{port}"
        with Watching(TopicServer(url), TopicQuery("public/default"), retry_s=0.05) as watching:
            heard = [next(iter(watching.messages(20))) for _ in range(2)]

    assert [type(news) for news in heard] == [Trouble] * 2
