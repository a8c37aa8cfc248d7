"""Plan the moves to make now in a cluster, or open a plan that was written. Programs call this, and the commands."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lookup.api.arguments import names_of, require_path
from lookup.collect.collector import Endpoints
from lookup.engine.build import build_policies
from lookup.engine.foreign import refuse_foreign
from lookup.engine.plugins import load_plugins
from lookup.engine.policy import Policy
from lookup.errors import Argument, InputError, SettingsError
from lookup.logs.sources import list_log
from lookup.model.quoting import join_names
from lookup.moving.origins import with_lookups
from lookup.moving.plan import PLAN, Limits, MovePlan, plan_bytes, read_plan
from lookup.moving.planning import make_plan
from lookup.moving.reading import Rows, read_now, read_record
from lookup.moving.state import state_of
from lookup.settings import PolicySpec, policy_warnings
from lookup.settings.files import anchor_paths, load_policies, namespaces_in, policies_in, read_text
from lookup.settings.releases import release_of_all
from lookup.settings.shipped import shipped_path

__all__ = ["DEFAULT_POLICY", "ClusterSource", "Plan", "open_plan", "plan"]

#: The policy whose shedder plans unless another is named.
DEFAULT_POLICY = "shipped:rebalance"


@dataclass(frozen=True)
class ClusterSource:
    """The source of a cluster's state, either its record at an instant, or the running cluster now."""

    #: folder of `lookup collect`, path or URI, None for the cluster itself
    record: str | None = None
    #: instant of the record, µs, None for its end
    at_us: int | None = None
    endpoints: Endpoints = Endpoints()
    #: seconds that reading a cluster may take
    wait_s: float = 60.0
    #: TOML with `[[namespaces]]` for isolation policies and anti-affinity groups
    namespaces: str | None = None
    #: LOOKUPS of the cluster, path or URI: where clients are
    lookups: str | None = None

    @classmethod
    def of(cls, given: ClusterSource | str | os.PathLike[str]) -> ClusterSource:
        """Return the given source, or for a path a record at its end."""
        if isinstance(given, ClusterSource):
            return given
        return cls(require_path("source", given))

    def rows(self, progress: Callable[[str], None]) -> Rows:
        """Read the rows."""
        # Before a cluster is read, which may take a minute.
        if self.lookups is not None:
            with _name_argument():
                list_log(self.lookups)
        text = None
        if self.namespaces is not None:
            text = read_text(Path(self.namespaces))
            namespaces_in(text, self.namespaces)
        rows = self._read_rows(text, progress)
        if self.lookups is None:
            return rows
        progress(f"reading {self.lookups}")
        with _name_argument():
            return with_lookups(rows, self.lookups)

    def _read_rows(self, text: str | None, progress: Callable[[str], None]) -> Rows:
        if self.record is not None:
            progress(f"reading {self.record}")
            return read_record(self.record, self.at_us, self.endpoints.cluster, text)
        if self.at_us is not None:
            raise SettingsError(Argument("at"), " is an instant of a record; give ", Argument("record"), " as well")
        return read_now(self.endpoints, self.wait_s, text, progress=progress)


@contextmanager
def _name_argument() -> Iterator[None]:
    try:
        yield
    except InputError as error:
        problem = f": {error}; name LOOKUPS, as `lookup serve` records it or `lookup ingest` writes it"
        raise InputError(Argument("lookups"), problem) from None


@dataclass(frozen=True)
class Plan:
    """A plan of moves."""

    plan: MovePlan

    @property
    def exit_code(self) -> int:
        """0 with moves to make, 4 with none."""
        return 0 if self.plan.steps else 4

    def document(self) -> dict[str, Any]:
        """Return the content of `plan.json` without its checksum."""
        return self.plan.model_dump(mode="json")

    def write(self, folder: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write `plan.json` into a folder.

        Args:
            folder: path or URI, which must not exist or be empty.
            force: replace an earlier plan. Other files stay.

        Raises:
            InputError: if it cannot be written.
        """
        from lookup.logs.outputs import draft

        with draft(os.fspath(folder), (PLAN,), force=force) as into:
            into.write(PLAN, plan_bytes(self.plan))


def plan(  # noqa: PLR0913  what a plan is made of, by keyword
    source: ClusterSource | str | os.PathLike[str],
    *,
    policy: str | os.PathLike[str] | Mapping[str, object] = DEFAULT_POLICY,
    max_moves: int | None = None,
    max_weight: float | None = None,
    only: str | Sequence[str] = (),
    drain: str | Sequence[str] = (),
    plugin_files: str | Sequence[str] = (),
    progress: Callable[[str], None] = lambda message: None,
) -> Plan:
    """Plan the moves to make now, without moving anything.

    Args:
        source: a running cluster, or its record. A path is a record, at its end.
        policy: path of a TOML file with a policy that has a shedder, `shipped:NAME`, or the content of such a file.
        max_moves: most bundles that move, 1 or more. Either limit replaces the shedder's own budget for a cycle.
        max_weight: greatest load that moves, bytes per second, above 0.
        only: one or several namespaces whose bundles may move.
        drain: one or several ids of brokers that give up all bundles and take none. A host with one broker suffices.
        plugin_files: one or several Python files that register parts.
        progress: called with one short sentence at each step.
    """
    source = ClusterSource.of(source)
    limits = _build_limits(max_moves, max_weight, names_of("only", only), names_of("drain", drain))
    plugins = names_of("plugin_files", plugin_files)
    specs = _read_specs(policy)
    if all(spec.release_note is None for spec in specs):
        # Mistakes are found before a cluster is read, which may take a minute.
        built = _choose_policy(specs, plugins)
        state = state_of(source.rows(progress))
    else:
        state = state_of(source.rows(progress))
        release, why = release_of_all(broker.lookup_data.broker_version for broker in state.view.brokers)
        specs = [spec.under(release, why) for spec in specs]
        for sentence in policy_warnings(specs):
            progress(sentence)
        built = _choose_policy(specs, plugins)
    progress("planning moves")
    return Plan(make_plan(state, built, limits))


def open_plan(path: str | os.PathLike[str]) -> Plan:
    """Read a written plan from the path of `plan.json`, or of its folder.

    Raises:
        InputError: if it is not a plan, or was edited.
    """
    return Plan(read_plan(require_path("path", path)))


def _build_limits(
    max_moves: int | None, max_weight: float | None, only: tuple[str, ...], drain: tuple[str, ...]
) -> Limits:
    if max_moves is not None and max_moves < 1:
        raise SettingsError(Argument("max_moves"), f": {max_moves} is not a limit; give 1 or more")
    if max_weight is not None and not 0.0 < max_weight < float("inf"):
        raise SettingsError(Argument("max_weight"), f": {max_weight} is not a limit; give bytes per second above 0")
    return Limits(max_moves=max_moves, max_weight=max_weight, only=only, drain=drain)


def _choose_policy(specs: Sequence[PolicySpec], plugin_files: Sequence[str]) -> Policy:
    policies = build_policies(load_plugins(plugin_files), specs)
    refuse_foreign(policies, "and a plan asks its policy about more than once; evaluate it with a log")
    with_shedder = [policy for policy in policies if policy.shedder is not None]
    if len(with_shedder) != 1:
        names = join_names(policy.name for policy in with_shedder or policies)
        problem = f"policies {names} have shedders; name a file with one" if with_shedder else f"{names} has no shedder"
        right = "" if with_shedder else ", which plans the moves; shipped:rebalance has one"
        raise SettingsError(Argument("policy"), f": {problem}{right}")
    (policy,) = with_shedder
    if policy.bundles is not None:
        raise SettingsError(
            f"policy {policy.name!r}: bundles = {policy.bundles}: a plan moves the bundles that the cluster has; "
            "divide these with `pulsar-admin namespaces split-bundle`, and plan by a policy without it"
        )
    return policy


def _read_specs(policies: str | os.PathLike[str] | Mapping[str, object]) -> Sequence[PolicySpec]:
    if isinstance(policies, Mapping):
        return policies_in(anchor_paths(policies, Path.cwd()), "policy")
    return load_policies(shipped_path(require_path("policy", policies, or_mapping=True)))
