"""`lookup init --plugin`: what it writes passes its tests, is compared and decides; impossible names are refused."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Container
from pathlib import Path

import pytest

from lookup.settings import load_evaluation, load_serving
from tests.commands.projects import Run, names_in
from tests.serve.servers import decide, started_apart, view

#: The packages of this environment, in another one; its own come first.
_SHARED = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"


def _environment(folder: Path) -> Path:
    """Make an environment of its own that has all packages of this one; return its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    (site / "shared.pth").write_text(_SHARED, encoding="utf-8")
    return folder / "bin" / "python"


def _typed(python: Path, command: str, folder: Path, *more: str, codes: Container[int] = (0,)) -> str:
    """Type a command that was printed, with flags behind it, in an environment; return what it writes to stdout."""
    words = [python, "-m", *shlex.split(command), *more]
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "JAVA_HOME")}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode in codes, done.stdout + done.stderr
    return done.stdout


@pytest.mark.path
def test_from_a_name_to_a_served_decision(lookup: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands that are printed, in this order: its tests pass, its policy is compared, its scorer has a vote."""
    monkeypatch.chdir(tmp_path)
    ran = lookup("init", "--plugin", "rack-aware")
    assert ran.code == 0, ran.err
    enter, install, test, generate, evaluate, serve = ran.out.splitlines()
    folder, python = tmp_path / enter.removeprefix("cd "), _environment(tmp_path / "environment")

    _typed(python, install, folder, "--quiet", "--no-index", "--no-build-isolation", "--disable-pip-version-check")
    assert " passed" in _typed(python, test, folder)
    _typed(python, generate, folder, "--lookups", "3000")
    # A log as short as this one may leave everything undecided, 4.
    compared = _typed(python, evaluate, folder, "--set", "evaluation.seeds=2", "--format", "json", codes=(0, 4))
    assert "rack-aware" in {figure["policy"] for figure in json.loads(compared)["figures"]}
    assert serve == "lookup serve serving.toml"
    with started_apart(folder / "serving.toml", "--port", "0", python=python) as server:
        _, answer = server.ask("POST", "/decide", decide(view("a", "b"), rack="b"))
        _, explained = server.ask("GET", f"/explain/{answer['decision']}")

    assert answer["broker"] == "b2:8080"
    assert {vote["broker"]: vote["scores"]["rack-aware"] for vote in explained["brokers"]} == {
        "b1:8080": 0.75,
        "b2:8080": 1.0,
    }


def test_what_is_written_is_tidy(lookup: Run, tmp_path: Path) -> None:
    """Linters have nothing to say, settings can be read, and the licence is left open."""
    folder = tmp_path / "mine"
    assert lookup("init", folder, "--plugin", "Acme_Rack.2").code == 0
    ruff = [Path(sys.executable).parent / "ruff", "--isolated"]
    for words in (["check", "--select", "B,D1,E,F,I,SIM,UP", "--ignore", "D103"], ["format", "--check"]):
        done = subprocess.run(
            [*ruff, *words, "--line-length", "120", "."], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout

    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (project["name"], project["entry-points"]) == ("acme-rack-2", {"lookup": {"acme_rack_2": "acme_rack_2"}})
    assert "license" not in project
    assert "class AcmeRack2:" in (folder / "src" / "acme_rack_2" / "__init__.py").read_text(encoding="utf-8")
    assert load_evaluation(str(folder / "evaluation.toml"), {}, {}).policies[1].name == "acme-rack-2"
    assert load_serving(str(folder / "serving.toml"), {}).serving.active == "acme-rack-2"


def test_commands_have_the_name_that_was_typed(lookup: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where `lookup` is somebody else's, `pulsar-lookup` prints commands that work; in the folder itself no `cd`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["/usr/bin/pulsar-lookup"])

    printed = lookup("init", ".", "--plugin", "rack-aware").out.splitlines()

    assert printed[0].startswith("pip install")
    assert printed[-1] == "pulsar-lookup serve serving.toml"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("", "'' is not a name"),
        ("rack aware", "'rack aware' is not a name"),
        ("rack-", "'rack-' is not a name"),
        ("3-racks", "imported as 3_racks"),
        ("class", "imported as class"),
        ("JSON", "imported as json"),
        ("numpy", "imported as numpy"),
        ("Pytest_xdist", "would replace pytest-xdist"),
        ("headroom", "scorer named headroom"),
        ("metrics", "scorer named metrics"),
    ],
)
def test_a_name_that_cannot_be_is_one_sentence(lookup: Run, tmp_path: Path, name: str, sentence: str) -> None:
    """No distribution, no module, hidden modules, taken names: nothing is written."""
    (mistake,) = lookup("init", tmp_path / "mine", "--plugin", name).mistakes

    assert mistake.startswith("--plugin: ")
    assert sentence in mistake
    assert names_in(tmp_path) == []


def test_a_package_replaces_nothing(lookup: Run, tmp_path: Path) -> None:
    """Of many files that are there two are named; what else is in the folder stays."""
    for name in ("LICENSE", "README.md", "evaluation.toml", "pyproject.toml"):
        (tmp_path / name).write_text("mine", encoding="utf-8")

    (mistake,) = lookup("init", tmp_path, "--plugin", "rack-aware").mistakes

    assert mistake.startswith(f"{tmp_path}/README.md and {tmp_path}/evaluation.toml and 1 more")
    assert names_in(tmp_path) == ["LICENSE", "README.md", "evaluation.toml", "pyproject.toml"]


@pytest.mark.parametrize("flag", ["--log", "--plugin-file"])
def test_a_package_has_no_log(lookup: Run, tmp_path: Path, flag: str) -> None:
    """Flags that are about a log are refused beside a plug-in."""
    (mistake,) = lookup("init", tmp_path / "mine", "--plugin", "rack-aware", flag, "x").mistakes

    assert mistake.startswith(f"{flag}: ")
    assert names_in(tmp_path) == []
