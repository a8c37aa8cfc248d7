"""The replay equals a plain loop over the load manager, row for row and figure for figure, however the log is cut."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lookup.logs.jobs import InProcess
from lookup.replay.run import replay
from tests.replay.proving import hashing_world, mixed, prove, prove_mixed, prove_settings, rows_of
from tests.replay.worlds import START_US, World, earlier, moving_world, world_of, worlds


@pytest.mark.path
@pytest.mark.parametrize("seed", range(20))
def test_a_few_worlds_equal_a_plain_loop(seed: int) -> None:
    """The small design, which runs always: a world of any kind, from 1 task and from 8."""
    prove(InProcess(), world_of(seed, 100), partitions=(1, 8), whole=seed % 2 == 0)


@pytest.mark.path
def test_a_few_moves_hashes_and_other_bundles_equal_a_plain_loop(tmp_path: Path) -> None:
    """Of each kind of world one, in the small design."""
    prove_settings(InProcess(), moving_world(8, "leader").written(tmp_path), tmp_path, partitions=(8,))
    prove(InProcess(), hashing_world(23), partitions=(8,))
    prove_mixed(InProcess(), mixed(world_of(23, 100), (None, 6, 4)), partitions=(8,))


@given(worlds(), st.booleans())
@settings(max_examples=150, derandomize=True, suppress_health_check=list(HealthCheck))
def test_the_jobs_equal_a_plain_loop(world: World, whole: bool) -> None:
    """The jobs of a replay, run one after the other, decide and count what a loop over single lookups does."""
    prove(InProcess(), world, partitions=(64,), whole=whole)


def test_reports_of_strangers_tell_nothing_of_a_cluster() -> None:
    """Topics are counted where only brokers that were never registered have reported how many they have."""
    prove(InProcess(), world_of(4660, 20), partitions=(1,), whole=True)


@given(worlds())
@settings(max_examples=25, derandomize=True, suppress_health_check=list(HealthCheck))
def test_no_figure_depends_on_how_the_log_is_divided(world: World) -> None:
    """Decisions, owners and sums are the same to the byte from 1, 8 and 64 tasks."""
    prove(InProcess(), world, partitions=(1, 8, 64))


@pytest.mark.parametrize("owner_loss", ["leader", "next-lookup"])
def test_moves_are_replayed_exactly(tmp_path: Path, owner_loss: str) -> None:
    """Under both kinds of owner loss; every way to lose a bundle is among the worlds."""
    endings: set[str] = set()
    for seed in (0, 2, 3, 4, 8, 20, 23):
        file = moving_world(seed, owner_loss).written(tmp_path / str(seed))
        tale = prove_settings(InProcess(), file, tmp_path / str(seed), partitions=(8,))
        endings |= {row["ended_by"] for told in tale.runs.values() for row in told.owners}

    assert endings == {None, "admin", "forced", "shed", "split"}


@pytest.mark.parametrize("owner_loss", ["leader", "next-lookup"])
def test_a_log_from_before_1970_is_replayed_exactly(tmp_path: Path, owner_loss: str) -> None:
    """Instants below 0 are instants like others."""
    file = earlier(moving_world(8, owner_loss), 2 * START_US).written(tmp_path)
    tale = prove_settings(InProcess(), file, tmp_path, partitions=(8,))

    assert all(told.decisions and told.owners for told in tale.runs.values())


def test_replicates_of_policies_that_hash_are_replayed_exactly() -> None:
    """Each seed has the decisions, owners and figures of a loop with its salt, from 1, 8 and 64 tasks."""
    for seed in (0, 5, 23, 77):
        prove(InProcess(), hashing_world(seed), partitions=(1, 8, 64))


def test_replicates_of_a_hash_differ(tmp_path: Path) -> None:
    """A policy that only hashes rolls no dice, and still has another outcome with every seed."""
    file = hashing_world(23).written(tmp_path)
    replay(InProcess(), file, str(tmp_path / "output"))
    brokers = {
        run: [(row["bundle"], row["broker"]) for row in rows]
        for run, rows in rows_of(tmp_path / "output", "decisions").items()
    }

    for cluster in {cluster for cluster, _, _ in brokers}:
        assert brokers[cluster, "topics", 7] != brokers[cluster, "topics", 3]


#: Numbers of bundles of which some divide each other, and some do not.
_COUNTS = (None, 1, 2, 3, 4, 6, 16)


@given(worlds(), st.lists(st.sampled_from(_COUNTS), min_size=3, max_size=3))
@settings(max_examples=20, derandomize=True, suppress_health_check=list(HealthCheck))
def test_policies_with_other_bundles_are_as_if_alone(world: World, counts: list[int | None]) -> None:
    """Decisions, owners, cycles and figures are those of a run of its own whose namespaces have these bundles."""
    prove_mixed(InProcess(), mixed(world, counts), partitions=(1, 8))


@pytest.mark.parametrize("owner_loss", ["leader", "next-lookup"])
def test_other_bundles_are_shed_as_if_alone(owner_loss: str) -> None:
    """Shedders that move bundles in most ticks, splits and unloads, with bundles that cross each other."""
    for seed in (0, 2, 3):
        prove_mixed(InProcess(), mixed(moving_world(seed, owner_loss), (4, 6)), partitions=(8,))
