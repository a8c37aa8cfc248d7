"""Loading an evaluation: what wins, what is told, where values came from, what is right beside what is wrong."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from lookup.settings import EvaluationFile, describe, examine_settings, load_evaluation
from tests.settings.files import MINIMAL, evaluation, mistakes, write

_VARIABLE = "environment variable LOOKUP_EVALUATION__TICK_S"


def test_the_least_evaluation_has_every_default(tmp_path: Path) -> None:
    """Incumbent and policies are all that must be said."""
    settings = evaluation(tmp_path)

    assert settings.evaluation.model_dump() == {
        "incumbent": "stock",
        "owner_loss": "next-lookup",
        "load": "simulated",
        "load_reports": "instant",
        "tick_s": 60,
        "session_s": 60,
        "balance_s": 3600,
        "warmup_s": 0,
        "scored_from": None,
        "since": None,
        "until": None,
        "seeds": 7,
        "draw": 0,
        "default_bundles": 4,
        "reconnect_s": 30,
        "window_s": 3600,
        "overload_threshold": 0.85,
        "bytes_per_weight": None,
        "max_quarantine_ratio": 0.01,
        "slice_rows": 4_000_000,
    }
    assert settings.verdict.model_dump() == {
        "primary": None,
        "margin": 0.01,
        "margins": {},
        "guard_margin": 0.0001,
        "require_decision": False,
        "accept_placement": False,
        "block_s": 3600,
        "min_units": 8,
        "min_events": 5,
    }


def test_flags_win_over_variables_over_the_file(tmp_path: Path) -> None:
    """Of three sources for one value the flag counts, of two the variable."""
    path = write(tmp_path, "e.toml", "[verdict]\nmin_units = 1\nmin_events = 1\nblock_s = 1\n" + MINIMAL)
    variables = {"LOOKUP_VERDICT__MIN_UNITS": "2", "LOOKUP_VERDICT__MIN_EVENTS": "2"}

    verdict = load_evaluation(path, {"verdict.min_units": 3}, variables).verdict

    assert (verdict.min_units, verdict.min_events, verdict.block_s) == (3, 2, 1)


@pytest.mark.parametrize(("text", "expected"), [("3", 3), ("[3]", (3,))])
def test_a_variable_gives_seeds_as_a_number_or_a_list(tmp_path: Path, text: str, expected: object) -> None:
    """As in a file: a number of them, or which."""
    path = write(tmp_path, "e.toml", MINIMAL)

    assert load_evaluation(path, {}, {"LOOKUP_EVALUATION__SEEDS": text}).evaluation.seeds == expected


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


def test_a_topology_file_is_overridden_key_by_key(tmp_path: Path) -> None:
    """What the evaluation says of the topology itself counts, the rest comes from the file it names."""
    write(tmp_path, "t.toml", "distance_ms = { rack = 0.5, zone = 2.0 }\nprice_per_gb = { zone = 0.3 }")

    settings = evaluation(tmp_path, '[topology]\nfile = "t.toml"\ndistance_ms = { zone = 3.0 }')

    assert settings.topology.distance_ms == {"rack": 0.5, "zone": 3.0}
    assert settings.topology.price_per_gb == {"zone": 0.3}


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

    assert mistakes(path, {"verdict.margn": 1}, LOOKUP_VERDICT__MARGIN="-1") == [
        "command line: there is no setting verdict.margn; did you mean 'margin'?",
        "t.toml: distance_ms.rak: should be 'same', 'rack', 'zone' or 'region', not 'rak'",
        "p.toml: selector: is missing",
        "p.toml: selectr: there is no such key; did you mean 'selector'?",
        "b.conf: webServicePort: should be a whole number, not 'http'",
        "e.toml: plugin_files: there is no file mine.py",
        "e.toml: evaluation.tick_s: should be a whole number, not '60'",
        "environment variable LOOKUP_VERDICT__MARGIN: verdict.margin: should be greater than or equal to 0, not -1",
        (
            "e.toml: brokers[0].from: should be a date and time with offset, like 2026-01-01T00:00:00Z,"
            " not 2026-01-01 00:00:00"
        ),
        "e.toml: namespaces[0].name: namespace 'public' is not of the form tenant/namespace",
        "e.toml: policies[1].filter: there is no such key; did you mean 'filters'?",
        'e.toml: evaluation.load: "reported" needs a LOADS table: give inputs.loads',
    ]


def test_an_unknown_key_hides_no_other_mistake(tmp_path: Path) -> None:
    """What holds within and between tables is checked as if unknown keys were not there."""
    text = MINIMAL.replace('"stock"\n\n', '"stok"\nsession_s = 90\ntik_s = 3\n')

    assert mistakes(write(tmp_path, "e.toml", text)) == [
        "e.toml: evaluation.tik_s: there is no such key; did you mean 'tick_s'?",
        "e.toml: evaluation.session_s: 90 should be a multiple of tick_s, which is 60",
        "e.toml: evaluation.incumbent: there is no policy named 'stok'; did you mean 'stock'?",
    ]


def test_a_mistake_in_a_table_hides_no_other_between_tables(tmp_path: Path) -> None:
    """What two tables say is compared wherever both say it, whatever is wrong beside it."""
    text = """
        inputs = { lookups = 3 }
        evaluation = { incumbent = "stok", load = "reported", tick_s = "60" }
        policies = [{ name = "stock", selector = 3 }, { name = "stock", selector = "best" }]
        """

    assert mistakes(write(tmp_path, "e.toml", text)) == [
        "e.toml: evaluation.tick_s: should be a whole number, not '60'",
        "e.toml: inputs.lookups: should be a text, not 3",
        'e.toml: policies[0].selector: should be a part\'s name or a table like { use = "best" }, not 3',
        "e.toml: policies: 2 policies are named 'stock'; a name should occur once",
        "e.toml: evaluation.incumbent: there is no policy named 'stok'; did you mean 'stock'?",
        'e.toml: evaluation.load: "reported" needs a LOADS table: give inputs.loads',
    ]


def test_policies_of_a_file_are_known_beside_a_wrong_one(tmp_path: Path) -> None:
    """The incumbent may be one of them; a name that none has is a mistake all the same."""
    write(tmp_path, "two.toml", '[[policies]]\nname = "a"\nselector = "x"\n[[policies]]\nname = "b"\nselector = "y"')
    text = 'policies = ["two.toml", {{ name = "t", selector = 3 }}]\nevaluation = {{ incumbent = "{}" }}'

    wrong = 'e.toml: policies[1].selector: should be a part\'s name or a table like { use = "best" }, not 3'
    unknown = "e.toml: evaluation.incumbent: there is no policy named 'c'; known: a, b, t"
    assert mistakes(write(tmp_path, "e.toml", text.format("b"))) == [wrong]
    assert mistakes(write(tmp_path, "e.toml", text.format("c"))) == [wrong, unknown]


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


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("x = 1", "x: there is no such key; known: brokers, clients, evaluation, failure_domains, inputs,"),
        ("verdict = 3", "verdict: should be a table, not 3"),
        ("brokers = 3", "brokers: should be a list, not 3"),
        ("brokers = [3]", "brokers[0]: should be a table, not 3"),
        ("inputs = { lookups = 3 }", "inputs.lookups: should be a text, not 3"),
        ("inputs = { lokups = 'x' }", "inputs.lokups: there is no such key; did you mean 'lookups'?"),
        ("verdict = { require_decision = 1 }", "verdict.require_decision: should be true or false, not 1"),
        ("verdict = { margin = nan }", "verdict.margin: should be a finite number, not nan"),
        (
            "verdict = { margins = { moves = -1 } }",
            "verdict.margins.moves: should be greater than or equal to 0, not -1",
        ),
        ("plugin_files = 3", "plugin_files: should be a list, not 3"),
        ("plugin_files = [3]", "plugin_files[0]: should be a text, not 3"),
        ("verdict = { primary = true }", "verdict.primary: should be a list, not true"),
        ("verdict = { min_units = 2026-01-01 }", "verdict.min_units: should be a whole number, not 2026-01-01"),
        ("clients = [{ match = { client = '*' }, properties = {} }]", "clients[0].properties: should not be empty"),
        ("clients = [{ match = { client = '*' }, properties = 3 }]", "clients[0].properties: should be a table, not 3"),
        ("topology = { price_per_gb = 3 }", "topology.price_per_gb: should be a table, not 3"),
        ("brokers = [{ id = 'b:1', clusters = [] }]", "brokers[0].clusters: should not be empty"),
        (
            "brokers = [{ id = 'b:1', until = 'soon' }]",
            "brokers[0].until: should be a date and time with offset, like 2026-01-01T00:00:00Z, not 'soon'",
        ),
        (
            "brokers = [{ id = 'b:1', until = '2026-01-01T00:00:00' }]",
            "brokers[0].until: should be a date and time with offset, like 2026-01-01T00:00:00Z, not '2026-",
        ),
        (
            "brokers = [{ id = 'b:1', properties = { 'lookup.a' = 3 } }]",
            'brokers[0].properties."lookup.a": should be a text or a list of texts, not 3',
        ),
        ("topology = { file = 3 }", "topology.file: should be a text, not 3"),
        ("topology = { file = 'no.toml' }", "no.toml: there is no such file"),
        ("topology = { levels = ['rack', 'zone'] }", 'topology.levels: should be "region", "zone" and "rack"'),
        ("clients = [{ match = {}, properties = { a = 'b' } }]", "clients[0].match: should say either cidr"),
    ],
)
def test_a_mistake_is_told_with_its_place(tmp_path: Path, line: str, sentence: str) -> None:
    """At any depth a mistake names file, key path and what would be right."""
    told = mistakes(write(tmp_path, "e.toml", line + "\n" + MINIMAL))

    assert len(told) == 1
    assert told[0].removeprefix("e.toml: ").startswith(sentence)


@pytest.mark.parametrize("policies", ["", "policies = []", "policies = 3", 'policies = ["no.toml"]', "policies = [3]"])
def test_an_evaluation_without_policies_is_refused(tmp_path: Path, policies: str) -> None:
    """However the policies are missing, it is one sentence."""
    told = mistakes(write(tmp_path, "e.toml", f'{policies}\n[evaluation]\nincumbent = "x"'))

    assert len(told) == 1
    assert "policies" in told[0] or "no.toml: there is no such file" in told[0]


@pytest.mark.parametrize("text", [None, "a = ", ""])
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, text: str | None) -> None:
    """A missing, broken or empty evaluation is told; so is a misspelt variable beside it."""
    path = tmp_path / "e.toml" if text is None else write(tmp_path, "e.toml", text)

    told = mistakes(path, LOOKUP_X="1")

    assert told[0].startswith("environment variable LOOKUP_X: there is no setting x")
    assert all(problem.startswith("e.toml: ") for problem in told[1:])
    assert len(told) > 1


def test_policies_are_a_list_of_tables(tmp_path: Path) -> None:
    """Single brackets make one table; what stands in it is told as it was written."""
    text = '[evaluation]\nincumbent = "x"\n[policies]\nname = "x"\nselector = "best"'

    assert mistakes(write(tmp_path, "e.toml", text)) == [
        "e.toml: policies: should be a list, not {'name': 'x', 'selector': 'best'}"
    ]


def test_right_tables_are_found_beside_wrong_ones(tmp_path: Path) -> None:
    """Whoever has more to check, the registry of parts above all, gets the tables that are right."""
    path = write(tmp_path, "e.toml", "inputs = 3\n" + MINIMAL)

    findings = examine_settings(EvaluationFile, path, environ={})

    assert findings.settings is None
    assert findings.problems == (f"{path}: inputs: should be a table, not 3",)
    assert [policy.name for policy in findings.sound["policies"]] == ["stock"]
    assert "inputs" not in findings.sound


def test_a_table_that_names_a_bad_file_is_not_used(tmp_path: Path) -> None:
    """Policies, brokers or plug-ins that are not all there would only lead to mistakes that are none."""
    text = MINIMAL + '[[brokers]]\nid = "a:1"\nprofile = "no.conf"'
    path = write(tmp_path, "e.toml", 'plugin_files = ["no.py"]\n' + text)

    findings = examine_settings(EvaluationFile, path, environ={})

    assert {"plugin_files", "brokers"} & set(findings.sound) == set()
    assert findings.problems == (
        f"{tmp_path}/no.conf: there is no such file",
        f"{path}: plugin_files: there is no file {tmp_path}/no.py",
    )


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
