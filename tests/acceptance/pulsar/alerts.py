"""Scrapes running servers and has promtool evaluate the alerts that ship over what was scraped.

Rules speak of minutes and hours. So each scrape stands for one of Prometheus's: it comes 15 s after the one before by
the clock of the rules, and sooner by that of the servers. What was scraped is not changed, apart from ages that are
told to be of the rules' clock as well.
"""

from __future__ import annotations

import re
import subprocess
import threading
import time
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.acceptance.pulsar.jvm import printed_by

__all__ = ["RULES", "Cut", "Scrapes", "assert_alerts"]

RULES = Path(__file__).parents[3] / "configs" / "deploy" / "prometheus-rules.yaml"
#: Seconds between two scrapes by the clock of the rules.
_INTERVAL_S = 15
#: Minutes of the rules for a fault to be noticed, and for one that is repaired to be forgotten.
_SLACK_M = 2
_JOB = "lookup-serve"


@dataclass(frozen=True)
class Cut:
    """What was cut, by the numbers of the first scrapes with the fault and without it, and what that has to raise.

    Args:
        late: scrapes until the fault shows in the servers' figures at all, beside what the rule waits.
        labels: of the alert, beside instance and severity; by default those of the server's target.
    """

    alert: str
    instance: str
    begin: int
    end: int
    late: int = 0
    labels: Mapping[str, str] | None = None


class Scrapes(AbstractContextManager["Scrapes"]):
    """Scrapes servers until the end of the block, in a thread.

    Args:
        targets: address of each server by the name of its instance; one that changes is asked from the next scrape on.
        pace_s: seconds between two scrapes.
        scaled: metrics whose values are ages that pass by the clock of the rules.
    """

    def __init__(self, targets: dict[str, str], pace_s: float, scaled: Sequence[str] = ()) -> None:
        self.targets, self._pace_s, self._scaled = targets, pace_s, scaled
        #: of each scrape, by instance, the figures; None: it did not answer
        self.steps: list[dict[str, dict[str, float] | None]] = []
        self._names = {*re.findall(r"lookup_\w+", RULES.read_text(encoding="utf-8"))}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scrapes", daemon=True)

    def __enter__(self) -> Scrapes:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def now(self) -> int:
        """Return the number of the next scrape."""
        return len(self.steps)

    def wait(self, minutes: float) -> int:
        """Wait for so many minutes of the rules; return the number of the next scrape."""
        until = self.now + round(minutes * 60 / _INTERVAL_S)
        while self.now < until:
            time.sleep(self._pace_s / 4)
        return self.now

    def _run(self) -> None:
        while not self._ended.is_set():
            began = time.monotonic()
            self.steps.append({name: self._scraped(url) for name, url in self.targets.items()})
            self._ended.wait(max(0.0, self._pace_s - (time.monotonic() - began)))

    def _scraped(self, url: str) -> dict[str, float] | None:
        try:
            with urllib.request.urlopen(f"{url}/metrics", timeout=2) as answer:
                text = answer.read().decode()
        except OSError:
            return None
        figures = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name in self._names:
                    labels = "".join(f',{name}="{value}"' for name, value in sample.labels.items())
                    scale = _INTERVAL_S / self._pace_s if sample.name in self._scaled else 1
                    figures[f"{sample.name}{{%s{labels}}}"] = sample.value * scale
        return figures

    def series(self) -> list[dict[str, str]]:
        """Return what was scraped as promtool reads it, with `up`, and stale where a target is gone."""
        found: list[dict[str, str]] = []
        for instance in self.targets:
            seen = [step.get(instance) for step in self.steps]
            target = f'instance="{instance}",job="{_JOB}"'
            up = " ".join(str(int(figures is not None)) for figures in seen)
            found.append({"series": f"up{{{target}}}", "values": up})
            for name in sorted({name for figures in seen if figures for name in figures}):
                values, before = [], False
                for figures in seen:
                    value = None if figures is None else figures.get(name)
                    values.append("stale" if value is None and before else "_" if value is None else f"{value!r}")
                    before = value is not None
                found.append({"series": name % target, "values": " ".join(values)})
        return found


def assert_alerts(scrapes: Scrapes, cuts: Sequence[Cut], folder: Path, *, quiet: Sequence[str] = ()) -> None:
    """Assert that every cut raises its alert in time, and for as long as it lasts; and that there is no other alert.

    Args:
        folder: for the files of promtool.
        quiet: names of alerts that may come or not.
    """
    document = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    rules: dict[str, Any] = {rule["alert"]: rule for group in document["groups"] for rule in group["rules"]}
    for rule in rules.values():
        # Texts for operators, which promtool would compare as well.
        del rule["annotations"]
    (folder / "rules.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    tests: list[dict[str, Any]] = []
    for name, rule in rules.items():
        if name in quiet:
            continue
        for step in range(scrapes.now - 1):
            expected, is_sure = [], True
            for cut in (cut for cut in cuts if cut.alert == name):
                first = cut.begin + cut.late + _steps(rule.get("for", "0m")) + _SLACK_M * 60 // _INTERVAL_S
                window = max(map(_steps, re.findall(r"\[(\w+)\]", rule["expr"])), default=0)
                if first <= step < cut.end:
                    labels = {"job": _JOB} if cut.labels is None else cut.labels
                    expected.append({"exp_labels": {"instance": cut.instance, **rule["labels"], **labels}})
                elif cut.begin <= step < cut.end + window + _SLACK_M * 60 // _INTERVAL_S:
                    is_sure = False
            if is_sure:
                tests.append({"eval_time": f"{step * _INTERVAL_S}s", "alertname": name, "exp_alerts": expected})
    every = f"{_INTERVAL_S}s"
    test = {"interval": every, "input_series": scrapes.series(), "alert_rule_test": tests}
    (folder / "tests.yaml").write_text(
        yaml.safe_dump({"rule_files": ["rules.yaml"], "evaluation_interval": every, "tests": [test]}, width=1 << 20),
        encoding="utf-8",
    )
    done = subprocess.run(
        [_promtool(), "test", "rules", "tests.yaml"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{cuts}\n{_summary(done.stdout + done.stderr)}"
    # Each was seen to be there, and to be gone later on.
    for cut in cuts:
        of_cut = [entry for entry in tests if entry["alertname"] == cut.alert]
        at = [int(entry["eval_time"][:-1]) // _INTERVAL_S for entry in of_cut if entry["exp_alerts"]]
        gone = [int(entry["eval_time"][:-1]) // _INTERVAL_S for entry in of_cut if not entry["exp_alerts"]]
        assert any(cut.begin <= step < cut.end for step in at), f"{cut} did not last for its alert"
        assert any(step >= cut.end for step in gone), f"nothing was scraped after {cut}"


def _summary(output: str) -> str:
    """Return what promtool says is wrong, a line for each alert, with the scrapes at which it was or was not there."""
    wrong: dict[str, list[str]] = {}
    for name, hours, minutes, seconds, got in re.findall(
        r"alertname: (\w+), time: (?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?,\s+exp:\[.*?got:\[(.*?)\]\s", output, re.DOTALL
    ):
        step = ((int(hours or 0) * 60 + int(minutes or 0)) * 60 + int(seconds or 0)) // _INTERVAL_S
        labels = re.findall(r"Labels:\{(.*)\}", got)
        wrong.setdefault(f"{name} got {labels}", []).append(str(step))
    return "\n".join(f"{what} at {' '.join(steps)}" for what, steps in wrong.items()) or output[:5_000]


def _steps(duration: str) -> int:
    """Return a duration of Prometheus in scrapes."""
    return int(duration[:-1]) * {"s": 1, "m": 60, "h": 3600}[duration[-1]] // _INTERVAL_S


def _promtool() -> Path:
    return Path(printed_by("ensure-prometheus.sh")) / "promtool"
