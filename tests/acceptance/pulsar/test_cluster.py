"""A real cluster does what tests, readers of its logs and collectors rely on."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from lookup.settings.policy import is_path
from lookup.settings.shipped import shipped
from lookup.tuning.advice import dynamic_lines
from tests.acceptance.pulsar.cluster import Cluster
from tests.acceptance.pulsar.jvm import Installation
from tests.processes import awaited, is_gone

pytestmark = pytest.mark.pulsar


_PARENT = """
import sys
from pathlib import Path
from tests.acceptance.pulsar.jvm import Installation, Jvm
folder = Path(sys.argv[3])
installed = Installation(Path(sys.argv[1]), sys.argv[2])
jvm = Jvm(installed, *sys.argv[4:], folder=folder, log_settings=folder / "none.xml", heap_mb=64)
print(jvm.process.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    "command", [("Driver",), ("Node", "services", "{}", "none", "0", "0")], ids=["clients", "server"]
)
def test_jvm_ends_with_the_process_that_started_it(
    installed: Installation, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """A JVM ends even if the tests that started it are killed by SIGKILL and clean nothing up."""
    words = [word.format(tmp_path) for word in command]
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, installed.java, installed.class_path, tmp_path, *words],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert parent.stdout is not None
    jvm = int(parent.stdout.readline())
    assert not is_gone(jvm)

    parent.kill()

    parent.communicate()
    awaited(lambda: is_gone(jvm))


def test_keys_that_a_search_changes_without_a_restart_are_dynamic(cluster: Cluster) -> None:
    """`lookup tune` prints commands for the keys that a broker lists as dynamic, and for no others."""
    listed = cluster.admin("GET", "brokers/configuration")
    paths = [one.path for one in shipped().values() if one.kind == "space of a search"]
    spaces = [tomllib.loads(path.read_text(encoding="utf-8")) for path in paths]
    keys = {key for space in spaces for key in [*space.get("set", {}), *space["vary"]] if not is_path(key)}
    # These can be written, and yet are for a restart.
    written = {key for key in keys if any(dynamic_lines({key: 1}))} | {
        "loadBalancerLoadSheddingStrategy",
        "loadManagerClassName",
    }

    assert len(keys) > 10
    assert keys & set(listed) == written & keys
