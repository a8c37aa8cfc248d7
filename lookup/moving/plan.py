"""The document of a plan, `plan.json`, with the moves to make now, their basis, and their expected gain.

Loads are bytes per second, in plus out. An imbalance is a broker's highest load / capacity over total load / total
capacity, so 1.0 is even. Unknown figures are None. A checksum protects a plan, carried out unchanged or made again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, ValidationError

from lookup.errors import InputError, InvalidNameError
from lookup.model.bundles import NamespaceBundle
from lookup.model.documents import json_value
from lookup.model.names import endpoint_problem
from lookup.model.quoting import shown
from lookup.settings.base import Count, Moment, Number, Positive, Strict, Text, Truth, held_to
from lookup.settings.problems import place, problems_of

__all__ = [
    "PLAN", "VERSION", "Fingerprint", "Limits", "MoveCosts", "MovePlan", "PlannedBroker", "PlannedFigure",
    "RefusedMove", "Step", "digest", "plan_bytes", "plan_file", "plan_of", "read_plan",
]  # fmt: skip

#: The file of a plan in its folder.
PLAN = "plan.json"
#: Version of the document.
VERSION: Final = 2
_AGAIN = "make another with `lookup plan`"


class _Part(Strict):
    """A part of the document. In Python it has its fields' names, in JSON their aliases if they have one."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)


class Limits(_Part):
    """The limits of a plan."""

    #: maximum number of bundles that move, None for no limit
    max_moves: Count | None = None
    #: maximum load that moves, bytes per second, None for no limit
    max_weight: Number | None = None
    #: namespaces whose bundles may move, empty for all
    only: tuple[Text, ...] = ()
    #: ids of brokers that give up their bundles
    drain: tuple[Text, ...] = ()


class Fingerprint(_Part):
    """The state of a bundle when the plan was made."""

    #: when its owner took it, as the state topic or the record has it
    since: Moment
    #: `startTimestamp` of the owner, ms since the Unix epoch, 0 if missing. Another value is another registration
    epoch: Count


class MoveCosts(_Part):
    """The clients that reconnect when a bundle moves, by its last report, None where the report lacks them."""

    topics: Count | None = None
    producers: Count | None = None
    consumers: Count | None = None


def _bundle_problem(name: str) -> str | None:
    # It becomes part of a path of the admin REST.
    try:
        NamespaceBundle.parse(name)
    except InvalidNameError as error:
        return str(error)
    return None


class Step(_Part):
    """One move."""

    #: from 1, in the order in which steps are made
    number: Positive
    bundle: Annotated[Text, held_to(_bundle_problem)]
    #: ids of brokers
    source: Text = Field(validation_alias="from", serialization_alias="from")
    destination: Text = Field(validation_alias="to", serialization_alias="to")
    #: load that the plan used, None if it is not known, for example for a drained broker's quiet bundle
    weight: Number | None
    #: `drain`, or the reason from the shedder
    reason: Text
    fingerprint: Fingerprint
    costs: MoveCosts = MoveCosts()
    #: after this step
    imbalance: Number
    #: whether the cluster is less even after this step than at the start
    worse: Truth = False


class RefusedMove(_Part):
    """A move that the policy proposed and that may not be made."""

    bundle: Text
    source: Text = Field(validation_alias="from", serialization_alias="from")
    #: None for any destination
    destination: Text | None = Field(validation_alias="to", serialization_alias="to")
    reason: Text


class PlannedBroker(_Part):
    """A broker of the registry."""

    #: host:webPort, as `destinationBroker` takes it
    id: Text
    #: used for reading metrics, so a file or another protocol is not allowed
    web_url: Annotated[Text, held_to(lambda url: endpoint_problem("admin", url))] | None
    #: load before and after the plan, including load outside bundles, None if it has not reported
    load: Number | None
    load_after: Number | None
    #: how many it owns
    bundles: Count = 0


class PlannedFigure(_Part):
    """A figure of the cluster, with the columns of an evaluation's FIGURES that it has, and its value before."""

    metric: Text
    #: of `near` the client property that brokers publish, as `rack`
    key: Text | None = None
    #: after the plan
    value: Number
    unit: Text
    better: Literal["up", "down"]
    before: Number

    @property
    def label(self) -> str:
        """The name in tables, for example `near[rack]`."""
        return self.metric if self.key is None else f"{self.metric}[{self.key}]"


class MovePlan(_Part):
    """A plan. `made` is in UTC."""

    version: Literal[2] = Field(default=VERSION, validation_alias="plan", serialization_alias="plan")
    cluster: Text
    #: the instant that the plan is of
    made: Moment
    #: settings of the shedder, with the policy's name under `policy`
    policy: Mapping[str, Any]
    limits: Limits = Limits()
    brokers: tuple[PlannedBroker, ...]
    steps: tuple[Step, ...]
    refused: tuple[RefusedMove, ...] = ()
    #: `imbalance`, `deviation` of load / capacity as a share of its mean, `outside_isolation` if there are policies,
    #: and `near` by the lookups of the day before if they were read
    figures: tuple[PlannedFigure, ...]
    #: reason for these steps, or for none, in one sentence
    why: Text = "planned"
    #: data that was missing when the plan was made, a sentence each
    missing: tuple[Text, ...] = ()

    def figure(self, metric: str, key: str | None = None) -> PlannedFigure:
        """Find a figure that every plan has."""
        return next(figure for figure in self.figures if (figure.metric, figure.key) == (metric, key))


def plan_bytes(plan: MovePlan) -> bytes:
    """Write a plan as JSON text in UTF-8. The same plan gives the same bytes."""
    content = plan.model_dump(mode="json")
    content["checksum"] = digest(content)
    return (json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def plan_file(path: str | os.PathLike[str]) -> Path:
    """Build the path of a plan from its folder, or from the file itself."""
    return Path(path, PLAN) if Path(path).is_dir() else Path(path)


def read_plan(path: str | os.PathLike[str]) -> MovePlan:
    """Read a plan from the path of `plan.json`, or of its folder.

    Raises:
        InputError: in one sentence, if there is none, or it has another version, was cut off or edited.
        OSError: if it cannot be read.
    """
    file = plan_file(path)
    if not file.is_file():
        raise InputError(f"{file}: there is no such file; `lookup plan` writes one")
    try:
        content = json_value(file.read_bytes().decode())
    except ValueError as error:
        raise InputError(f"{file} is not a complete JSON document: {error}; copy the plan again, or {_AGAIN}") from None
    return plan_of(content, str(file))


def plan_of(content: object, name: str) -> MovePlan:
    """Read a plan from a document.

    Args:
        content: as read from JSON.
        name: name of the document in messages.

    Raises:
        InputError: as `read_plan` does.
    """
    if not isinstance(content, dict) or "plan" not in content:
        raise InputError(f"{name} is not a plan: `lookup plan` writes an object with the key plan; name its plan.json")
    if content["plan"] != VERSION:
        raise InputError(f"{name} is a plan of version {shown(content['plan'])}, and {VERSION} can be read; {_AGAIN}")
    content = dict(content)
    if content.pop("checksum", None) != digest(content):
        raise InputError(f"{name} was changed since it was written: its checksum does not fit; {_AGAIN}")
    try:
        # The comparison is in JSON, where a list may replace a tuple.
        return MovePlan.model_validate_json(json.dumps(content))
    except ValidationError as error:
        loc, sentence = next(problems_of(error, MovePlan))
        raise InputError(f"{name}: {place(loc, sentence)}; {_AGAIN}") from None


def digest(content: object) -> str:
    """Hash a JSON value, regardless of the order of its keys and its spaces."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
