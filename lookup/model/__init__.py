"""Plain frozen data in Pulsar's words: names, bundles, brokers, requests, views and decisions."""

from lookup.model.broker import AdvertisedListener, Broker, BrokerLookupData, Candidates, Location, Roster
from lookup.model.bundles import BundleRange, IsolationPolicy, NamespaceBundle, NamespacePolicies, bundle_of
from lookup.model.catalog import (
    CatalogView,
    Equals,
    EventKind,
    Exists,
    In,
    Listing,
    Mode,
    Term,
    TopicEntry,
    TopicEvent,
    selects,
)
from lookup.model.decision import (
    Assigned,
    BrokerVote,
    CycleLabel,
    CycleOutcome,
    CycleReason,
    Decision,
    Probe,
    Reason,
    Ruling,
    Shortfall,
    Split,
    Unanswered,
    Unload,
)
from lookup.model.documents import Refuted, Row, Unreadable
from lookup.model.load import (
    NO_TRAFFIC,
    RESOURCES,
    TOPIC_TRAFFIC,
    BundleLoad,
    Load,
    LoadStats,
    Traffic,
    may_be_shed,
    topic_traffic,
    weighted_usage,
)
from lookup.model.load_data import BrokerLoadData, NamespaceBundleStats, ResourceUsage
from lookup.model.names import NamespaceName, TopicName
from lookup.model.request import LookupOptions, LookupRequest
from lookup.model.topology import Edge, Topology
from lookup.model.view import ClusterView, OwnershipView

# Filled by hand: at one name a line, the list would be longer than all else.
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
