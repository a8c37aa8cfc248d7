"""A lister at work in threads: each gets the list of its request."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from lookup.topics.listing import TopicLister, TopicQuery
from lookup_policies.listers import Indexed
from tests.topics.filled import HERE, catalog_of, name_of

#: For a longer run by hand, s.
_SECONDS = float(os.environ.get("CATALOG_THREADS_S", "1"))
_LATE = 30.0


@pytest.mark.usefixtures("many_switches")
def test_threads_ask_while_another_writes() -> None:
    """Every list has each topic that is there all the time, and nothing is raised."""
    stable = [f"a-{number}" for number in range(200)]
    catalog = catalog_of(**{local: {"k": "v"} for local in stable})
    names, ends = set(map(name_of, stable)), time.monotonic() + _SECONDS

    def ask(lister: TopicLister) -> int:
        n_asked = 0
        while time.monotonic() < ends:
            assert names <= set(lister.answer(TopicQuery(HERE, properties={"k": "v"})).topics)
            n_asked += 1
        return n_asked

    with TopicLister(Indexed(), catalog) as lister, ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask, lister) for _ in range(4)]
        n_writes = 0
        while time.monotonic() < ends:
            catalog.create(name_of("b"), properties={"k": "v"})
            catalog.delete(name_of("b"))
            n_writes += 1

        assert all(asked.result(_LATE) for asked in asking)
        assert n_writes > 1
