"""What is said where the extra is not installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

_SCRIPT = """
import sys
sys.modules[{package!r}] = None
from lookup.errors import SettingsError
from lookup.topics.hashing import topics_hash
from lookup.topics.patterns import TopicsPattern
try:
    {call}
except SettingsError as error:
    sys.exit(str(error))
"""


@pytest.mark.parametrize(
    ("package", "call", "said"),
    [
        ("google_crc32c", "topics_hash([])", "the hash of a topic list needs google_crc32c: install it with pip"),
        (
            "re2",
            "TopicsPattern('a')",
            "a topics pattern needs re2: install it with pip install 'pulsar-lookup[topics]'",
        ),
    ],
)
def test_a_missing_package_is_named_when_it_is_needed(package: str, call: str, said: str) -> None:
    """The modules import without the extra; only what needs it says what to install."""
    script = _SCRIPT.format(package=package, call=call)

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)

    assert (done.returncode, done.stderr.startswith(said)) == (1, True), done.stderr
