"""Write the policies that show the effect of a Pulsar upgrade, a `broker.conf` after it, and with old defaults."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from lookup.settings.broker_conf import ACTS, PAIR, Today, read_today
from lookup.settings.pulsar_keys import BUNDLES_KEY, Scalar
from lookup.settings.releases import RELEASES, Release

__all__ = ["Upgrade", "upgrade_of"]


@dataclass(frozen=True)
class Upgrade:
    """The effects of a release on the brokers of one file."""

    to: Release
    #: by key, the old default and the new one, of keys that the file does not have
    changed: Mapping[str, tuple[Scalar, Scalar]]
    #: by name of a policy, the old defaults that it keeps, each of which acts under the new release
    kept: Mapping[str, Mapping[str, Scalar]]

    def policies(self, conf: str) -> str:
        """Write the candidates as entries of `policies`.

        Args:
            conf: path of the `broker.conf` from the folder of the evaluation.
        """
        of_release = f'from_broker_conf = {json.dumps(conf)}, pulsar = "{self.to}"'
        lines = [f'    {{ name = "pulsar-{self.to}", {of_release} }},']
        lines += ["    # the same, each with one old default"] if self.kept else []
        for name, keys in self.kept.items():
            table = ", ".join(f"{key} = {json.dumps(value)}" for key, value in keys.items())
            lines.append(f'    {{ name = "{name}", {of_release}, broker_conf = {{ {table} }} }},')
        return "\n".join(lines)

    def notes(self) -> Iterator[str]:
        """Yield a sentence for each default that changes."""
        keeping = {key: name for name, keys in self.kept.items() for key in keys}
        for key, (old, new) in self.changed.items():
            change = f"{key} goes from {_shorten_value(old)} to {_shorten_value(new)}"
            if key == BUNDLES_KEY:
                yield f"{change} for namespaces created after the upgrade. Existing namespaces keep their bundles"
            elif key in keeping:
                yield f"{change}, and {keeping[key]} keeps the old default"
            else:
                yield f"{change}, which alone changes nothing for this file"
        if not self.kept:
            yield f"no default of Pulsar {self.to} changes the placement or shedding of this file"


def upgrade_of(path: str, running: Release, to: Release) -> Upgrade:
    """Compare the defaults of two releases for a `broker.conf`, or raise SettingsError if the file cannot be read."""
    before, after = RELEASES[running].defaults, RELEASES[to].defaults
    written = read_today(path, running).fates
    changed = {
        key: (before[key], value)
        for key, value in after.items()
        if key in before and before[key] != value and key not in written
    }
    olds = {key: old for key, (old, _) in changed.items() if key != BUNDLES_KEY}
    acting = {key for key, old in olds.items() if read_today(path, to, {key: old}).fates[key] == ACTS}
    effects, groups = [_collect_effect(read_today(path, to), acting)], {}
    # Single keys first, since the pair is kept only if neither of its keys is enough.
    for group in chain(((key,) for key in olds), [PAIR]):
        keys = {key: olds[key] for key in group if key in acting}
        effect = _collect_effect(read_today(path, to, keys), acting)
        if effect not in effects:
            effects.append(effect)
            groups[f"keep-{_build_slug(group[0])}"] = keys
    return Upgrade(to, changed, groups)


def _collect_effect(today: Today, acting: Collection[str]) -> Mapping[str, object]:
    values = {key: value for key, value in today.table["broker_conf"].items() if key in acting}
    return {**today.table, "broker_conf": values, "refused": today.refusals}


def _shorten_value(value: Scalar) -> str:
    return value.rpartition(".")[2] if isinstance(value, str) else json.dumps(value)


def _build_slug(key: str) -> str:
    short = re.sub(r"^loadBalancer|Strategy$|Enabled$", "", key)
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", short).lower()
