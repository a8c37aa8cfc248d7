"""Read and check settings, like evaluations, policies and brokers, from TOML, broker.conf, environment and flags."""

from lookup.settings.broker import BrokerEntry, BrokerProfile, LocationEntry
from lookup.settings.broker_conf import read_broker_conf
from lookup.settings.cluster import (
    ClientEntry,
    ClientMatch,
    EdgeEntry,
    IsolationEntry,
    NamespaceEntry,
    TopologyFile,
    TopologySection,
)
from lookup.settings.evaluation import EvaluationFile, EvaluationSection, InputsSection, VerdictSection
from lookup.settings.files import BudgetFile, load_broker_profile, load_budget, load_policies, load_topology
from lookup.settings.loader import (
    SettingsFindings,
    describe,
    examine_settings,
    load_evaluation,
    load_serving,
    load_topics,
)
from lookup.settings.policy import PartSpec, PolicyFile, PolicySpec, policy_warnings
from lookup.settings.resolve import (
    BrokerInterval,
    ClientRule,
    broker_intervals,
    client_rules,
    label_client,
    load_manager_keys,
    load_manager_sources,
    lookup_data,
    namespace_policies,
    topology,
)
from lookup.settings.serving import CollectSection, ServingFile, ServingSection
from lookup.settings.topics import ListingSection, TopicsFile

__all__ = [
    "BrokerEntry", "BrokerInterval", "BrokerProfile", "BudgetFile", "ClientEntry", "ClientMatch",
    "ClientRule", "CollectSection", "EdgeEntry", "EvaluationFile", "EvaluationSection", "InputsSection",
    "IsolationEntry", "ListingSection", "LocationEntry", "NamespaceEntry", "PartSpec", "PolicyFile",
    "PolicySpec", "ServingFile", "ServingSection", "SettingsFindings", "TopicsFile", "TopologyFile",
    "TopologySection", "VerdictSection", "broker_intervals", "client_rules", "describe",
    "examine_settings", "label_client", "load_broker_profile", "load_budget", "load_evaluation", "load_manager_keys",
    "load_manager_sources", "load_policies", "load_serving", "load_topics", "load_topology", "lookup_data",
    "namespace_policies", "policy_warnings", "read_broker_conf", "topology",
]  # fmt: skip
