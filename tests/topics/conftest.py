"""Fixtures of the tests of topics."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture
def many_switches() -> Iterator[None]:
    """Let threads take turns every 10 µs in place of every 5 ms."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)
