"""Arguments of calls from Python that are no such thing are refused in a sentence that names them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lookup import evaluate, explain, explain_cycle, explain_owners, ingest, open_run
from lookup.api.arguments import names_of
from lookup.errors import PulsarLookupError
from lookup.logs.jobs import InProcess

SETTINGS = {
    "evaluation": {"incumbent": "p"},
    "brokers": [{"id": "a:1"}, {"id": "b:1"}],
    "policies": [{"name": "p", "selector": "best"}, {"name": "q", "selector": "random"}],
}


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: evaluate(settings=42), "settings is 42"),
        (lambda: evaluate(settings={}, workers="none"), "workers: is 'none'; a Spark session, InProcess() of "),
        (lambda: explain_cycle("here", 0, workers=InProcess), "workers: is "),
        (lambda: ingest("x", "y", workers=2), "workers: is 2; "),
        (lambda: evaluate(settings=SETTINGS, overrides=["a"]), "overrides is ['a']"),
        (lambda: evaluate(settings=SETTINGS, by=3), "by is 3"),
        (lambda: explain(SETTINGS, "t", properties="rack=b"), "properties is 'rack=b'"),
        (lambda: explain(SETTINGS, "t", policy="r"), "policy: "),
        (lambda: explain_owners(42, topic="t"), "run is 42"),
        (lambda: open_run(7), "run is 7"),
        (lambda: ingest("x", 42), "output is 42"),
        (lambda: ingest("x", "y", mapping=42), "mapping is 42"),
        (lambda: ingest("x", "y", mapping={"use": "delimted"}), "mapping: "),
    ],
)
def test_a_wrong_kind_of_argument_is_one_sentence(call: Callable[[], object], sentence: str) -> None:
    """What was given, for which argument, and what it takes."""
    with pytest.raises(PulsarLookupError) as raised:
        call()

    assert str(raised.value).startswith(sentence)


def test_a_text_is_one_name() -> None:
    """The name of one policy or dimension need not stand in a list."""
    assert names_of("policy", "rack") == ("rack",)
    assert names_of("policy", ["rack", "stock"]) == ("rack", "stock")
    assert list(explain(SETTINGS, "persistent://t/n/x", policy="q").policies) == ["q"]


def test_a_mapping_of_a_log_may_be_given_as_it_would_stand_in_its_file(tmp_path: Any) -> None:
    """As settings may."""
    (tmp_path / "log.csv").write_text("when,what\n1767225600,a\n")
    mapping = {
        "use": "delimited",
        "delimiter": ",",
        "timestamp": {"column": "when", "format": "unix"},
        "topic": "persistent://t/n/{what}",
    }
    report = ingest(str(tmp_path / "log.csv"), tmp_path / "out", mapping=mapping, cluster="c", workers=InProcess())

    assert report.rows["lookups"] == 1
