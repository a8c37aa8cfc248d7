"""`lookup config check`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.commands.projects import EVALUATION, Run, evaluation

CONFIGS = Path(__file__).parents[2] / "configs"


def test_a_good_evaluation_has_no_mistakes(lookup: Run, tmp_path: Path) -> None:
    """`config check` says so on stdout and nothing on stderr."""
    path = evaluation(tmp_path)

    ran = lookup("config", "check", path)

    assert (ran.code, ran.err) == (0, "")
    assert ran.out == f"{path}: no mistakes; 2 policies, 3 brokers\n"


def test_the_shipped_evaluations_are_good(lookup: Run) -> None:
    """Nothing that ships has mistakes."""
    for path in sorted(CONFIGS.glob("*evaluation*.toml")):
        assert lookup("config", "check", path).code == 0


def test_a_splitter_is_noted(lookup: Run, tmp_path: Path) -> None:
    """A replay does not ask it; that is no mistake and no warning."""
    splitting = '[[policies]]\nname = "splits"\nselector = "best"\nsplitter = "default-split"\n'

    ran = lookup("config", "check", evaluation(tmp_path, splitting))

    assert ran.code == 0
    assert ran.err.startswith("note: policy 'splits' has a splitter")


BAD = """
[evaluation]
incumbent = "stok"
tick_s = "60"
seed = [1]

[verdict]
primary = ["match_ratoi:rack"]
margin = -1.0

[[policies]]
name = "stock"
selector = 3

[[policies]]
name = "other"
selector = "bets"

[[policies]]
name = "rack"
scorers = [{ use = "property-match", kye = "rack" }]
selector = { use = "best", min_score = "high" }
"""


def test_all_mistakes_are_found_at_once(lookup: Run, tmp_path: Path) -> None:
    """Settings, parts, parameters and metrics: one run names every mistake, each with its place and what is right."""
    mistakes = lookup("config", "check", evaluation(tmp_path, start=BAD)).mistakes

    for sentence in (
        "evaluation.seed: ",
        "evaluation.tick_s: ",
        "verdict.margin: ",
        "policies[0].selector: ",
        "named 'match_ratoi'",
        "no selector named 'bets'",
        "no parameter 'kye'",
        "min_score = 'high'",
    ):
        assert any(sentence in mistake for mistake in mistakes), (sentence, mistakes)


def test_a_broken_plug_in_file_is_one_sentence(lookup: Run, tmp_path: Path) -> None:
    """A plug-in that raises at import is named beside the other mistakes."""
    (tmp_path / "mine.py").write_text("1 / 0", encoding="utf-8")
    text = 'plugin_files = ["mine.py"]\n' + EVALUATION.replace("default_bundles = 4", "tick = 1")

    mistakes = lookup("config", "check", evaluation(tmp_path, start=text)).mistakes

    assert any("mine.py cannot be loaded: ZeroDivisionError" in mistake for mistake in mistakes)
    assert any("evaluation.tick: " in mistake for mistake in mistakes)


def test_settings_of_topics_are_checked(lookup: Run, tmp_path: Path) -> None:
    """A file with `[topics]` is read as `config show` reads it, flags over it."""
    path = tmp_path / "topics.toml"
    path.write_text("[topics]\n", encoding="utf-8")

    for flags, lister in (((), "default"), (("--set", "topics.lister=indexed"), "indexed")):
        ran = lookup("config", "check", path, *flags)
        assert ran.out.startswith(f"{path}: no mistakes")
        assert f"lister '{lister}'" in ran.out


def test_a_broker_conf_is_checked_for_the_load_manager(lookup: Run, tmp_path: Path) -> None:
    """All mistakes at once, of classes, kinds and ranges; what Pulsar would ignore is a warning."""
    conf = tmp_path / "broker.conf"
    wrong = {
        "loadBalancerLoadSheddingStrategy": ("x.NoSuchShedder", "there is no class 'x.NoSuchShedder'"),
        "loadBalancerBrokerMaxTopics": ("abc", "should be a valid number"),
        "loadBalancerNamespaceBundleMaxTopics": ("-5", "equal to 0"),
    }
    conf.write_text("".join(f"{key}={value}\n" for key, (value, _) in wrong.items()))
    mistakes = lookup("config", "check", conf).mistakes
    evaluation(tmp_path, f'[[brokers]]\nid = "b:8080"\n[[policies]]\nname = "p"\nfrom_broker_conf = "{conf}"\n')
    inside = lookup("config", "check", tmp_path / "evaluation.toml").mistakes
    (flag,) = lookup("config", "check", conf, "--set", "topics.lister=indexed").mistakes

    assert flag.startswith("--set: ")
    assert len(mistakes) == len(inside) == len(wrong)
    for found, (key, (_, sentence)) in zip(mistakes, wrong.items(), strict=True):
        assert found.startswith(f"{conf}: {key}")
        assert sentence in found

    conf.write_text("loadBalancerBrokerThresholdShedderPercentge=10\n")
    ran = lookup("config", "check", conf)

    assert (ran.code, "loadBalancerBrokerThresholdShedderPercentge has no effect: " in ran.err) == (0, True)


_WITH_TABLE = """
evaluation = { incumbent = "stock" }
inputs = { brokers = "brokers" }
policies = [{ name = "stock", selector = "best" }]
"""


def test_no_table_is_read(lookup: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even whether it is one is looked at: `lookup evaluate` says it before it runs."""
    (tmp_path / "brokers").write_text("id,rack\n", encoding="utf-8")
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    ran = lookup("config", "check", evaluation(tmp_path, start=_WITH_TABLE))

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.endswith(": no mistakes; 1 policy, brokers of inputs.brokers\n")


_SERVING = '[serving]\ncluster = "c"\nrecord = "record"\n'


def _serving(folder: Path, text: str = "") -> Path:
    (folder / "serving.toml").write_text(_SERVING + text)
    return folder / "serving.toml"


def test_settings_of_the_server_are_checked(lookup: Run, tmp_path: Path) -> None:
    """It says what was looked at; the shipped ones and those without a policy are good."""
    path = _serving(tmp_path)

    ran = lookup("config", "check", path)

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"{path}: no mistakes")
    assert "; 0 policies; " in ran.out
    assert lookup("config", "check", CONFIGS / "serving.toml").code == 0


def test_what_the_server_would_refuse_is_said(lookup: Run, tmp_path: Path) -> None:
    """Policies that cannot be built, a token that is not there and a record that is no folder, all at once."""
    record = tmp_path / "record"
    record.write_text("")
    policy = '[[policies]]\nname = "a"\nselector = "bset"\n'
    text = 'active = "a"\nbind = "0.0.0.0"\ntoken_file = "nowhere"\n' + policy

    ran = lookup("config", "check", _serving(tmp_path, text))

    starts = ("policy 'a' selector: ", f"serving.token_file: {tmp_path}/nowhere", f"serving.record: {record} ")
    for mistake, start in zip(ran.mistakes, starts, strict=True):
        assert mistake.startswith(start)


def test_mistakes_in_the_form_of_the_servers_settings_are_said_first(lookup: Run, tmp_path: Path) -> None:
    """All of them; parts are looked at once the form is right."""
    path = _serving(tmp_path, 'active = "b"\nprot = 1\n[[policies]]\nname = "a"\nselector = "bset"\n')

    ran = lookup("config", "check", path)

    for mistake, start in zip(ran.mistakes, ("serving.prot: ", "serving.active: "), strict=True):
        assert mistake.startswith(f"{path}: {start}")


def test_what_stands_beside_the_policies_is_looked_at(lookup: Run, tmp_path: Path) -> None:
    """A lister that does not exist, and a token for the brokers that is not there."""
    text = '[topics]\nlister = "indxed"\n[collect]\nadmin = "http://broker-0"\ntoken_file = "gone"\n'

    ran = lookup("config", "check", _serving(tmp_path, text))

    starts = ("topics.lister: no lister named 'indxed'", f"collect: {tmp_path}/gone ")
    for mistake, start in zip(ran.mistakes, starts, strict=True):
        assert mistake.startswith(start)


def test_a_policy_that_reads_owners_needs_a_collector(lookup: Run, tmp_path: Path) -> None:
    """It is said before the server is told to load the file; not if it is unknown what the collector would give."""
    path = tmp_path / "serving.toml"
    text = 'policies = ["shipped:stock-extensible-4.2"]\n' + _SERVING + 'active = "stock-extensible-4.2"\n'
    collect = '[collect]\nservice_url = "pulsar://broker-0:6650"\n'
    mistakes = []
    for table in ("", collect, collect.replace("pulsar:", "ftp:")):
        path.write_text(text + table)
        printed = lookup("config", "check", path).err.splitlines()
        mistakes.append([line for line in printed if line.startswith("error: ")])

    path.write_text(text)
    assert lookup("config", "check", path, "--cluster", "shipped:cluster").code == 0
    assert [len(each) for each in mistakes] == [1, 0, 1]
    assert mistakes[0][0].startswith("error: policy 'stock-extensible-4.2': part 'anti-affinity'")
    assert mistakes[2][0].startswith(f"error: {path}: collect.service_url: ")
