"""Configurations in the forms in which people have them: the right values, or a sentence."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest

from lookup.engine.build import build_policies
from lookup.engine.plugins import load_plugins
from lookup.errors import SettingsError
from lookup.settings import PolicySpec, read_broker_conf
from lookup.settings.broker_conf import read_today
from lookup.settings.pulsar_keys import KEYS, LOAD_MANAGER_KEYS
from lookup.settings.releases import RELEASES

_IMPL = "org.apache.pulsar.broker.loadbalance.impl."
_SHEDDING, _PERCENT = "loadBalancerSheddingEnabled", "loadBalancerBrokerOverloadedThresholdPercentage"
_SHEDDER, _UNIFORM = "loadBalancerLoadSheddingStrategy", f"{_IMPL}UniformLoadShedder"

#: Name, text, and values of the load manager by key.
_RIGHT = [
    (
        "broker.conf",
        f"""\
        # shed late
        ! and in few steps
        {_PERCENT} : 92
        maxUnloadPercentage 0.3
        {_SHEDDER}=org.apache.pulsar.broker.loadbalance.\\
            impl.UniformLoadShedder
        """,
        {_PERCENT: 92, "maxUnloadPercentage": 0.3, _SHEDDER: _UNIFORM},
    ),
    ("windows.conf", f"clusterName=west\r\n{_SHEDDING}=FALSE\r\n", {_SHEDDING: False}),
    ("few.properties", "allowAutoTopicCreation=false\nbrokerDeleteInactiveTopicsEnabled=false\n", {}),
    (
        "export.sh",
        f"""\
        #!/bin/bash
        set -e
        export PULSAR_MEM="-Xms2g -Xmx2g"
        export PULSAR_PREFIX_{_SHEDDER}='{_UNIFORM}' PULSAR_PREFIX_{_PERCENT}="70"; bin/apply-config-from-env.py
        exec bin/pulsar broker   # don't fork
        """,
        {_SHEDDER: _UNIFORM, _PERCENT: 70},
    ),
    (
        "broker.env",
        f"# for the brokers\nPULSAR_PREFIX_{_SHEDDING}=false # for now\n{_PERCENT}=81\nPULSAR_GC=-XX:+UseZGC\n",
        {_SHEDDING: False, _PERCENT: 81},
    ),
    (
        "prefix-first.env",
        f"PULSAR_PREFIX_{_PERCENT}=60\n{_PERCENT}=70\nPULSAR_PREFIX_minUnloadMessage=5\n",
        {_PERCENT: 60, "minUnloadMessage": 5},
    ),
    (
        "Dockerfile",
        f"""\
        FROM apachepulsar/pulsar:4.2.4
        ENV PULSAR_PREFIX_{_PERCENT}=65 \\
            PULSAR_PREFIX_{_SHEDDING}="true"
        ENV loadBalancerCPUResourceWeight 0.5
        """,
        {_PERCENT: 65, _SHEDDING: True, "loadBalancerCPUResourceWeight": 0.5},
    ),
    (
        "run.sh",
        f"docker run -d -e PULSAR_PREFIX_{_PERCENT}=77 \\\n  --env=PULSAR_PREFIX_{_SHEDDING}=false image bin/pulsar\n",
        {_PERCENT: 77, _SHEDDING: False},
    ),
    (
        "broker.service",
        f'[Service]\nEnvironment="PULSAR_PREFIX_{_PERCENT}=88"\nEnvironment={_SHEDDING}=false\n',
        {_PERCENT: 88, _SHEDDING: False},
    ),
    (
        "compose-list.yaml",
        f"""\
        services:
          zookeeper: {{image: a, environment: [metadataStoreUrl=zk, {_PERCENT}=1]}}
          broker:
            image: apachepulsar/pulsar
            environment:
              - metadataStoreUrl=zk:zookeeper:2181
              - "PULSAR_PREFIX_{_SHEDDER}={_UNIFORM}"
              - PULSAR_PREFIX_{_PERCENT}=91
        """,
        {_SHEDDER: _UNIFORM, _PERCENT: 91},
    ),
    (
        "compose-map.yml",
        f"""\
        x-common: &common
          PULSAR_PREFIX_{_PERCENT}: 93
          PULSAR_PREFIX_loadBalancerNamespaceBundleMaxMsgRate: 40000
        services:
          proxy:
            environment: {{PULSAR_PREFIX_webServicePort: 80, {_PERCENT}: 5}}
          broker-1:
            environment: {{<<: *common, advertisedAddress: broker-1, PULSAR_PREFIX_{_SHEDDING}: "true"}}
          broker-2:
            environment: {{<<: *common, advertisedAddress: broker-2, PULSAR_PREFIX_{_SHEDDING}: true}}
        """,
        {_PERCENT: 93, "loadBalancerNamespaceBundleMaxMsgRate": 40_000, _SHEDDING: True},
    ),
    (
        "values.yaml",
        f"""\
        clusterName: green
        zookeeper: {{configData: {{PULSAR_MEM: -Xmx1g}}}}
        bookkeeper:
          configData: {{journalMaxBackups: "0", {_PERCENT}: "3"}}
        broker:
          replicaCount: 5
          configData:
            PULSAR_MEM: "-Xms4g"
            {_PERCENT}: "66"
            PULSAR_PREFIX_loadBalancerDistributeBundlesEvenlyEnabled: "false"
        proxy: {{configData: {{httpNumThreads: "8"}}}}
        """,
        {_PERCENT: 66, "loadBalancerDistributeBundlesEvenlyEnabled": False},
    ),
    (
        "configmap.yaml",
        f"""\
        apiVersion: v1
        kind: ConfigMap
        metadata: {{name: west-bookie}}
        data: {{metadataServiceUri: zk, {_PERCENT}: "4"}}
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: west-broker
        data:
          PULSAR_PREFIX_{_PERCENT}: "67"
        """,
        {_PERCENT: 67},
    ),
    (
        "mounted.yaml",
        f"""\
        kind: ConfigMap
        metadata: {{name: settings}}
        data:
          broker.conf: |
            # mounted
            {_PERCENT}=68
            {_SHEDDING}=false
        """,
        {_PERCENT: 68, _SHEDDING: False},
    ),
    (
        "statefulset.yaml",
        f"""\
        kind: StatefulSet
        metadata: {{name: broker}}
        spec:
          template:
            spec:
              initContainers: [{{name: wait-zookeeper, env: [{{name: {_PERCENT}, value: "2"}}]}}]
              containers:
                - name: main
                  env:
                    - {{name: PULSAR_PREFIX_{_PERCENT}, value: "69"}}
                    - {{name: POD, valueFrom: {{fieldRef: {{fieldPath: metadata.name}}}}}}
        """,
        {_PERCENT: 69},
    ),
    (
        "operator.yaml",
        f"""\
        kind: PulsarBroker
        metadata: {{name: east}}
        spec:
          config:
            custom:
              {_SHEDDING}: "true"
              {_PERCENT}: "71"
              minUnloadMessage: "250"
        """,
        {_SHEDDING: True, _PERCENT: 71, "minUnloadMessage": 250},
    ),
    (
        "runtime.json",
        json.dumps(
            {
                "webServicePort": "Optional[8080]",
                "brokerServicePortTls": "Optional.empty",
                "loadBalancerSheddingExcludedNamespaces": "[a/b, c/d]",
                _PERCENT: "72",
                "managedLedgerOffloadDriver": "",
            },
            indent=2,
        ),
        {_PERCENT: 72, "loadBalancerSheddingExcludedNamespaces": "a/b, c/d"},
    ),
    ("dynamic.json", f'{{"{_SHEDDING}": "false", "{_PERCENT}": 73}}', {_SHEDDING: False, _PERCENT: 73}),
    ("printed.txt", f"{_PERCENT}    74\nwebServicePort    Optional[8080]\n", {_PERCENT: 74}),
]

#: Name, text, and what the sentence says.
_REFUSED = [
    ("empty.conf", "", "has no key of Pulsar's brokers"),
    ("rocketmq.conf", "brokerClusterName = DefaultCluster\nbrokerName = broker-a\nbrokerId = 0\n", "has no key of"),
    ("mosquitto.conf", "listener 1883\nallow_anonymous true\n", "has no key of"),
    ("some.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: broker}\n", "has no key of"),
    ("bookies.yaml", f"bookkeeper:\n  configData:\n    {_PERCENT}: '3'\n", "bookkeeper.configData, of no broker"),
    (
        "two.yaml",
        f"services:\n  broker1:\n    environment: [{_PERCENT}=60]\n  broker2:\n    environment: [{_PERCENT}=61]\n",
        f"has several values of {_PERCENT}, in services.broker1.environment, services.broker2.environment",
    ),
    ("names.json", f'["{_SHEDDING}", "{_PERCENT}"]', "has keys without values"),
    ("names.txt", f"{_SHEDDING}\n{_PERCENT}\n", "has keys without values"),
    ("broken.json", f'{{"{_PERCENT}": "60"', "is not valid JSON: "),
    ("broken.yaml", f"broker:\n  configData:\n   {_PERCENT}: '6\n", "is not valid YAML: "),
    ("value.yaml", f"broker:\n  configData:\n    {_PERCENT}: {{{{ .Values.percent }}}}\n", "is a template; give"),
    ("template.yaml", "{{- if .Values.broker }}\nkind: ConfigMap\n{{- end }}\n", "is a template; give"),
    ("deep.json", "[" * 100_000, "is not valid JSON: is nested too deep"),
]


def _written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(dedent(text), encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize(("name", "text", "values"), _RIGHT, ids=[name for name, *_ in _RIGHT])
def test_a_configuration_is_read_as_its_broker_would(
    tmp_path: Path, name: str, text: str, values: dict[str, object]
) -> None:
    """The broker's values of the load manager and no others, and a policy can be built of them."""
    path = _written(tmp_path, name, text)
    today = read_today(str(path))

    assert {key: today.keys[key] for key in today.fates} == values
    assert today.problems == ()
    build_policies(load_plugins(), [PolicySpec.model_validate({"name": "today", "from_broker_conf": str(path)})])


@pytest.mark.parametrize(("name", "text", "sentence"), _REFUSED, ids=[name for name, *_ in _REFUSED])
def test_what_is_no_configuration_of_a_broker_is_one_sentence(
    tmp_path: Path, name: str, text: str, sentence: str
) -> None:
    """It names the file, for a policy as for the profile of a broker."""
    path = _written(tmp_path, name, text)

    for read in (read_today, read_broker_conf):
        with pytest.raises(SettingsError) as caught:
            read(str(path))
        (problem,) = caught.value.problems
        assert problem.startswith(f"{path}: ")
        assert sentence in problem


def test_a_profile_is_of_one_broker(tmp_path: Path) -> None:
    """Brokers of a file may differ in their address, which no policy reads and every profile does."""
    text = next(text for name, text, _ in _RIGHT if name == "compose-map.yml")

    with pytest.raises(SettingsError, match="its brokers differ in advertisedAddress"):
        read_broker_conf(_written(tmp_path, "compose.yml", text))


@pytest.mark.parametrize(
    ("line", "warnings"),
    [
        (f'{_SHEDDING}="true"', [f"{_SHEDDING} = '\"true\"' is neither true nor false"]),
        (f"{_SHEDDING}=yes", [f"{_SHEDDING} = 'yes' is neither true nor false"]),
        (
            "enablePersistentTopics=1",
            ["enablePersistentTopics = '1' is neither true nor false", "has no key of the load manager"],
        ),
        ("preferLaterVersions=true # new", ["preferLaterVersions = 'true # new' is neither true nor false"]),
        ("loadBalancerServiceUnitTableViewSyncer=None # no", ["Syncer = 'None # no' is its whole value", "no effect"]),
        ("maxUnloadPercentage=0.7", ["under ThresholdShedder; it is for UniformLoadShedder or AvgShedder"]),
        ("loadBalancerTransferEnabled=false", ["has no effect under ThresholdShedder; it is for TransferShedder"]),
        ("loadBalancerTransferEnabled=true", []),
        ("loadBalancerSplitIntervalMinutes=9", ["under ModularLoadManagerImpl; it is for ExtensibleLoadManagerImpl"]),
        ("loadBalancerHostUsageCheckIntervalMinutes=3", ["IntervalMinutes is not modelled"]),
        ("scalableTopicMaxSegments=8", ["scalableTopicMaxSegments is not modelled"]),
        ("loadBalancerMaxNumberOfBundlesInBundleLoadReport=-1", ["is not modelled under ModularLoadManagerImpl"]),
        ("loadBalancerQuux=1", ["loadBalancerQuux is not modelled: no release"]),
        ("flowOrQpsDifferenceThresholdPercentage=50", ["has no effect under range_equally_divide"]),
        (
            "loadBalancerAutoBundleSplitEnabled=false\nloadBalancerNamespaceBundleMaxTopics=5",
            ["MaxTopics has no effect without automatic splits"],
        ),
        (f"{_SHEDDING}=false\nmaxUnloadPercentage=0.7", ["maxUnloadPercentage has no effect without shedding"]),
        (f"{_SHEDDING}=true\n{_SHEDDING}=false", ["is given more than once"]),
        ("clusterName=a", ["has no key of the load manager"]),
        (
            "loadBalancerBandwidthInResourceWeight=0.5\nloadBalancerBandwithInResourceWeight=0.4",
            ["loadBalancerBandwithInResourceWeight has no effect beside"],
        ),
    ],
)
def test_a_key_in_vain_is_warned_of(tmp_path: Path, line: str, warnings: list[str]) -> None:
    """Unless its value is the default; Java reads every text but true as false, with what stands behind it."""
    path = _written(tmp_path, "broker.conf", line)
    today = read_today(str(path))

    assert len(today.warnings) == len(warnings)
    for said, expected in zip(today.warnings, warnings, strict=True):
        assert said.startswith(f"{path}: ")
        assert expected in said


def test_a_variable_without_prefix_changes_only_lines_that_are_there(tmp_path: Path) -> None:
    """The start script of Pulsar's image adds keys with the prefix alone."""
    keys = ("DistributeBundlesEvenlyEnabled=false", "SheddingEnabled=false", "ShedingIntervalMinutes=5")
    text = "".join(f"- loadBalancer{key}\n" for key in keys)
    today = read_today(str(_written(tmp_path, "compose.yaml", text)))

    assert today.keys["loadBalancerDistributeBundlesEvenlyEnabled"] is True
    assert today.keys[_SHEDDING] is False
    (warning, slip) = today.warnings
    assert "write PULSAR_PREFIX_loadBalancerDistributeBundlesEvenlyEnabled" in warning
    assert "loadBalancerShedingIntervalMinutes has no effect: Pulsar does not know it" in slip


@pytest.mark.parametrize("release", ["4.0", "4.2", "5.0"])
def test_a_file_with_every_key_at_its_default_has_no_warning(tmp_path: Path, release: str) -> None:
    """As the broker.conf that ships, whose release is known by the keys that it added; every key has a fate."""
    defaults = {**dict.fromkeys(KEYS, ""), **_defaults(release)}
    text = "".join(
        f"# about {key}\n{key}={value}\n\n" for key, value in defaults.items() if not _is_newer(key, release)
    )
    today = read_today(str(_written(tmp_path, "broker.conf", text)))

    assert today.warnings == ()
    assert today.release[0] == ("5.0" if release == "5.0" else "4.2")
    assert set(today.fates) == {*(LOAD_MANAGER_KEYS & KEYS.keys()), "loadManagerClassName"} - {
        key for key in KEYS if _is_newer(key, release)
    }


def _defaults(release: str) -> dict[str, str]:
    own = {key: word[1:] for key, words in KEYS.items() for word in words if word[0] in "=:~"}
    changed = {key: str(value) for key, value in RELEASES[release].defaults.items()}
    return own | {key: value.lower() if value in ("True", "False") else value for key, value in changed.items()}


def _is_newer(key: str, release: str) -> bool:
    return release != "5.0" and "5.0" in KEYS[key]
