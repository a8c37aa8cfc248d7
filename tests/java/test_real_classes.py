"""Pulsar's own classes as parts, if `make parts` and `make parity` have got them; `make parity` has many more."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lookup_java import jvm
from tests.parity.java import BESIDE, beside, in_java
from tests.parity.loops import drawn_scenario, policy_of

_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser(), "pulsar-lookup")
_PATHS = sorted(_CACHE.glob("parts-4.2.4-*/classpath"))


@pytest.mark.long
@pytest.mark.process
@pytest.mark.skipif(not (_CACHE / "pulsar-parts.jar").exists() or not _PATHS, reason="no jars: make parts, make parity")
@pytest.mark.parametrize("name", BESIDE)
def test_decisions_are_those_of_the_parts_that_stand_for_them(tmp_path: Path, name: str) -> None:
    """An hour of load with jitter, with a broker that leaves and comes back, and with second choices."""
    lib = _PATHS[-1].read_text(encoding="utf-8").strip().partition(os.pathsep)[2]
    conf = {"loadBalancerAutoBundleSplitEnabled": "false", **BESIDE[name]}

    found = beside(
        drawn_scenario(2, is_steady=False), (policy_of(conf, "4.2", tmp_path), in_java(conf, "4.2", tmp_path, lib))
    )
    jvm.end()

    assert found == (True, True)
