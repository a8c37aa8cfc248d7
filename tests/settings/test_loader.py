"""Loading an evaluation: what wins, what is told, where values came from, what is right beside what is wrong."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from lookup.settings import EvaluationFile, describe, examine_settings, load_evaluation
from tests.settings.files import MINIMAL, evaluation, mistakes, places, write

_MARGN = "command line there is no setting verdict.margn; did you mean 'margin'?"
_VARIABLE = "environment variable LOOKUP_EVALUATION__TICK_S"


def test_flags_win_over_variables_over_the_file(tmp_path: Path) -> None:
    """Of three sources for one value the flag counts, of two the variable."""
    path = write(tmp_path, "e.toml", "[verdict]\nmin_units = 1\nmin_events = 1\nblock_s = 1\n" + MINIMAL)
    variables = {"LOOKUP_VERDICT__MIN_UNITS": "2", "LOOKUP_VERDICT__MIN_EVENTS": "2"}

    verdict = load_evaluation(path, {"verdict.min_units": 3}, variables).verdict

    assert (verdict.min_units, verdict.min_events, verdict.block_s) == (3, 2, 1)


def test_a_value_knows_its_source(tmp_path: Path) -> None:
    """Every value is told with the flag, variable, file or default that set it, a named file's values with its name."""
    write(tmp_path, "policies/p.toml", 'name = "p"\nselector = "best"')
    write(tmp_path, "broker.conf", "lookup.rack=a")
    path = write(
        tmp_path,
        "e.toml",
        """
        policies = ["policies/p.toml", { name = "stock", selector = "best" }]
        evaluation = { incumbent = "stock", seeds = [7] }
        brokers = [{ id = "b:8080", profile = "broker.conf" }]
        """,
    )

    settings = load_evaluation(path, {"verdict.margin": 0.5}, {"LOOKUP_EVALUATION__TICK_S": "30"})

    told = {key: (value, source.removeprefix(f"{tmp_path}/")) for key, value, source in describe(settings)}
    assert told["evaluation.seeds"] == ((7,), "e.toml")
    assert told["evaluation.tick_s"] == (30, _VARIABLE)
    assert told["evaluation.load"] == ("simulated", "default")
    assert told["verdict.margin"] == (0.5, "command line")
    assert told["policies[0].name"] == ("p", "policies/p.toml")
    assert told["policies[0].on_error"] == ("stop", "default")
    assert told["policies[1].selector.use"] == ("best", "e.toml")
    assert told['brokers[0].profile.properties."lookup.rack"'] == ("a", "broker.conf")
    assert told["brokers[0].profile.web_service_port"] == (8080, "default")


def test_everything_is_told_once(tmp_path: Path) -> None:
    """`describe` has every key path once, in the order of the models."""
    keys = [key for key, _, _ in describe(evaluation(tmp_path))]

    assert len(keys) == len(set(keys))
    assert keys[0] == "evaluation.incumbent"


def test_paths_of_a_file_start_from_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file's paths start from the file's folder, those of flags and variables from the working folder."""
    path = write(tmp_path, "deep/e.toml", MINIMAL + '[inputs]\nlookups = "../l"\nloads = "x"\nbundles = "x"')
    monkeypatch.chdir(tmp_path)

    inputs = load_evaluation(path, {"inputs.loads": "y"}, {"LOOKUP_INPUTS__BUNDLES": "z"}).inputs

    assert (inputs.lookups, inputs.loads, inputs.bundles) == tuple(f"{tmp_path}/{name}" for name in "lyz")


def test_the_topology_file_that_is_named_last_counts(tmp_path: Path) -> None:
    """A file that a flag names takes the place of the one that the evaluation names."""
    right = write(tmp_path, "t.toml", "distance_ms = { rack = 0.5, zone = 2.0 }")
    text = '[topology]\nfile = "no.toml"\ndistance_ms = { zone = 3.0 }'

    settings = evaluation(tmp_path, text, {"topology.file": str(right)})

    assert settings.topology.distance_ms == {"rack": 0.5, "zone": 3.0}
    assert settings.sources["topology.distance_ms.rack"] == str(right)


def test_policies_come_from_tables_and_files_alike(tmp_path: Path) -> None:
    """A list may mix tables, files of one policy and files of several; their order is kept."""
    write(tmp_path, "one.toml", 'name = "one"\nselector = "best"')
    write(tmp_path, "two.toml", '[[policies]]\nname = "a"\nselector = "x"\n[[policies]]\nname = "b"\nselector = "y"')
    text = 'policies = ["two.toml", { name = "t", selector = "z" }, "one.toml"]\nevaluation = { incumbent = "a" }'

    settings = load_evaluation(write(tmp_path, "e.toml", text), environ={})

    assert [policy.name for policy in settings.policies] == ["a", "b", "t", "one"]


def test_all_mistakes_of_all_sources_are_told_together(tmp_path: Path) -> None:
    """Flags, variables, the file, the files it names, and what holds between tables: one list of sentences."""
    write(tmp_path, "p.toml", 'name = "p"\nselectr = "best"')
    write(tmp_path, "t.toml", "distance_ms = { rak = 1.0 }")
    write(tmp_path, "b.conf", "webServicePort=http")
    path = write(
        tmp_path,
        "e.toml",
        """
        policies = ["p.toml", { name = "stock", selector = "best", filter = [] }]
        plugin_files = ["mine.py"]
        [evaluation]
        incumbent = "stock"
        tick_s = "60"
        load = "reported"
        [topology]
        file = "t.toml"
        [[brokers]]
        id = "b:8080"
        profile = "b.conf"
        from = 2026-01-01T00:00:00
        [[namespaces]]
        name = "public"
        """,
    )

    assert places(path, {"verdict.margn": 1}, LOOKUP_VERDICT__MARGIN="-1") == [
        _MARGN,
        "t.toml distance_ms.rak",
        "p.toml selector",
        "p.toml selectr",
        "b.conf webServicePort",
        "e.toml plugin_files",
        "e.toml evaluation.tick_s",
        "environment variable LOOKUP_VERDICT__MARGIN verdict.margin",
        "e.toml brokers[0].from",
        "e.toml namespaces[0].name",
        "e.toml policies[1].filter",
        "e.toml evaluation.load",
    ]


def test_a_mistake_in_a_table_hides_no_other_between_tables(tmp_path: Path) -> None:
    """What two tables say is compared wherever both say it, whatever is wrong beside it."""
    text = """
        inputs = { lookups = 3 }
        evaluation = { incumbent = "stok", load = "reported", tick_s = "60" }
        policies = [{ name = "stock", selector = 3 }, { name = "stock", selector = "best" }]
        """

    assert places(write(tmp_path, "e.toml", text)) == [
        "e.toml evaluation.tick_s",
        "e.toml inputs.lookups",
        "e.toml policies[0].selector",
        "e.toml policies",
        "e.toml evaluation.incumbent",
        "e.toml evaluation.load",
    ]


def test_policies_of_a_file_are_known_beside_a_wrong_one(tmp_path: Path) -> None:
    """The incumbent may be one of them; a name that none has is a mistake all the same."""
    write(tmp_path, "two.toml", '[[policies]]\nname = "a"\nselector = "x"\n[[policies]]\nname = "b"\nselector = "y"')
    text = 'policies = ["two.toml", {{ name = "t", selector = 3 }}]\nevaluation = {{ incumbent = "{}" }}'

    wrong, unknown = "e.toml policies[1].selector", "e.toml evaluation.incumbent"
    assert places(write(tmp_path, "e.toml", text.format("b"))) == [wrong]
    assert places(write(tmp_path, "e.toml", text.format("c"))) == [wrong, unknown]
    assert mistakes(tmp_path / "e.toml")[1].endswith("'c'; known: a, b, t")


@pytest.mark.parametrize(
    "text",
    [
        'policies = ["no.toml", { name = "a", selector = "x" }]\nevaluation = { incumbent = "stock" }',
        'policies = [{ selector = "x" }, { name = "a", selector = "x" }]\nevaluation = { incumbent = "stock" }',
        'policies = [3, { name = "a", selector = "x" }]\nevaluation = { incumbent = "stock" }',
        'policies = [{ name = "a", selector = "x" }]\nevaluation = { incumbent = 3 }',
        'policies = [{ name = "a", selector = "x" }]\nevaluation = 3',
        "inputs = { loads = 3 }\n" + MINIMAL.replace('"stock"\n\n', '"stock"\nload = "reported"\n\n'),
        "inputs = 3\n" + MINIMAL.replace('"stock"\n\n', '"stock"\nload = "reported"\n\n'),
    ],
)
def test_what_is_not_known_is_not_compared(tmp_path: Path, text: str) -> None:
    """No mistake follows from another: whose names or values cannot be read is not blamed for them."""
    assert len(mistakes(write(tmp_path, "e.toml", text))) == 1


def test_the_right_part_of_a_wrong_table_is_found(tmp_path: Path) -> None:
    """Whoever checks parts gets the policies beside a wrong one, and the keys beside a wrong one."""
    text = """
        evaluation = { incumbent = "a", owner_loss = "leader", session_s = 90 }
        verdict = { primary = ["moves"], margin = -1.0 }
        policies = [{ name = "a", selector = 3 }, { name = "b", selector = "x" }, "no.toml"]
        """

    findings = examine_settings(EvaluationFile, write(tmp_path, "e.toml", text), environ={})

    assert [policy.name for policy in findings.sound["policies"]] == ["b"]
    assert (findings.sound["evaluation"].owner_loss, findings.sound["evaluation"].tick_s) == ("leader", 60)
    assert findings.sound["verdict"].primary == ("moves",)
    assert not hasattr(findings.sound["verdict"], "margin")
    assert findings.sound["clients"] == ()


@pytest.mark.parametrize("policies", ["", "policies = []", "policies = 3", 'policies = ["no.toml"]', "policies = [3]"])
def test_an_evaluation_without_policies_is_refused(tmp_path: Path, policies: str) -> None:
    """However the policies are missing, it is one sentence."""
    told = mistakes(write(tmp_path, "e.toml", f'{policies}\n[evaluation]\nincumbent = "x"'))

    assert len(told) == 1
    assert "policies" in told[0] or told[0].startswith("no.toml: ")


@pytest.mark.parametrize("text", [None, "a = ", ""])
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, text: str | None) -> None:
    """A missing, broken or empty evaluation is told; so is a misspelt variable beside it."""
    path = tmp_path / "e.toml" if text is None else write(tmp_path, "e.toml", text)

    told = mistakes(path, LOOKUP_X="1")

    assert told[0].startswith("environment variable LOOKUP_X: ")
    assert all(problem.startswith("e.toml: ") for problem in told[1:])
    assert len(told) > 1


def test_policies_are_a_list_of_tables(tmp_path: Path) -> None:
    """Single brackets make one table; what stands in it is told as it was written."""
    text = '[evaluation]\nincumbent = "x"\n[policies]\nname = "x"\nselector = "best"'

    (mistake,) = mistakes(write(tmp_path, "e.toml", text))
    assert mistake.startswith("e.toml: policies: ")
    assert mistake.endswith("not {'name': 'x', 'selector': 'best'}")


def test_a_table_that_names_a_bad_file_is_not_used(tmp_path: Path) -> None:
    """Policies, brokers or plug-ins that are not all there would only lead to mistakes that are none."""
    text = MINIMAL + '[[brokers]]\nid = "a:1"\nprofile = "no.conf"'
    path = write(tmp_path, "e.toml", 'plugin_files = ["no.py"]\n' + text)

    findings = examine_settings(EvaluationFile, path, environ={})

    assert {"plugin_files", "brokers"} & set(findings.sound) == set()
    conf, plugin = findings.problems
    assert conf.startswith(f"{tmp_path}/no.conf: ")
    assert plugin.startswith(f"{path}: plugin_files: ")
    assert plugin.endswith(f" {tmp_path}/no.py")


def test_settings_survive_pickle_and_json(tmp_path: Path) -> None:
    """Settings travel to Spark's workers and into manifests, and mean the same when they come back."""
    settings = evaluation(
        tmp_path,
        """
        [[brokers]]
        id = "b-{n}:8080"
        count = 2
        from = 2026-01-01T00:00:00.000001Z
        properties = { "lookup.rack" = ["a", "b"] }
        """,
    )

    written = json.loads(settings.model_dump_json())

    assert pickle.loads(pickle.dumps(settings)) == settings
    assert EvaluationFile.model_validate(written).model_dump() == settings.model_dump()


def test_the_process_s_own_variables_count_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no environment is given, the process's is read."""
    monkeypatch.setenv("LOOKUP_VERDICT__MIN_UNITS", "5")

    assert load_evaluation(write(tmp_path, "e.toml", MINIMAL)).verdict.min_units == 5


def test_what_a_table_finds_wrong_is_told_with_what_set_it(tmp_path: Path) -> None:
    """Also where the table as a whole comes from the file."""
    path = write(tmp_path, "evaluation.toml", MINIMAL)
    flags = {"evaluation.seeds": "[1, 1]", "topology.levels": '["zone", "region"]'}

    problems = examine_settings(EvaluationFile, path, flags, {"LOOKUP_EVALUATION__SESSION_S": "7"}).problems
    assert sorted(" ".join(problem.split(": ")[:2]) for problem in problems) == [
        "command line evaluation.seeds",
        "command line topology.levels",
        "environment variable LOOKUP_EVALUATION__SESSION_S evaluation.session_s",
    ]
