"""Plain frozen data in Pulsar's words, such as names, bundles, brokers, requests, views and decisions.

A name is loaded at its first use, since the help of a command does not need numpy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lookup.model.broker import *
    from lookup.model.bundles import *
    from lookup.model.catalog import *
    from lookup.model.decision import *
    from lookup.model.documents import *
    from lookup.model.load import *
    from lookup.model.load_data import *
    from lookup.model.names import *
    from lookup.model.request import *
    from lookup.model.topology import *
    from lookup.model.view import *

_MODULES = "broker bundles catalog decision documents load load_data names request topology view".split()
# Filled by hand, since the list would be longer than the rest of the module with one name a line.
__all__ = [
    "NO_TRAFFIC", "RESOURCES", "TOPIC_TRAFFIC", "AdvertisedListener", "Assigned", "Broker", "BrokerLoadData",
    "BrokerLookupData", "BrokerVote", "BundleLoad", "BundleRange", "Candidates", "CatalogView", "ClusterView",
    "CycleLabel", "CycleOutcome", "CycleReason", "Decision", "Edge", "Equals", "EventKind", "Exists", "In",
    "IsolationPolicy", "Listing", "Load", "LoadStats", "Location", "LookupOptions", "LookupRequest", "Mode",
    "NamespaceBundle", "NamespaceBundleStats", "NamespaceName", "NamespacePolicies", "OwnershipView", "Probe", "Reason",
    "Refuted", "ResourceUsage", "Roster", "Row", "Ruling", "Shortfall", "Split", "Term", "TopicEntry", "TopicEvent",
    "TopicName", "Topology", "Traffic", "Unanswered", "Unload", "Unreadable", "bundle_of", "may_be_shed", "selects",
    "topic_traffic", "weighted_usage",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for."""
    if name in __all__:
        for module in _MODULES:
            if name in (loaded := import_module(f"lookup.model.{module}")).__all__:
                return getattr(loaded, name)
    raise AttributeError(f"module 'lookup.model' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names, whether they have been loaded or not."""
    return sorted({*globals(), *__all__})
