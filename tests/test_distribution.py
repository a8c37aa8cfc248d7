"""What is handed out: the source distribution, its description on an index page, the wheel, the image."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from lookup.cli import root_parser
from lookup.commands.options import parse_command
from lookup.settings import load_evaluation

ROOT = Path(__file__).parent.parent
POLICIES = ROOT / "plugins" / "lookup_policies"
JAVA = ROOT / "plugins" / "lookup_java"
_LEFT_OUT = shutil.ignore_patterns(
    ".*", "_build", "*.egg-info", "__pycache__", "build", "dist", "target", "sample", "report-*"
)


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the source distribution from a copy of the tree, unpack it and return its folder."""
    folder = tmp_path_factory.mktemp("sdist")
    shutil.copytree(ROOT, folder / "tree", ignore=_LEFT_OUT, symlinks=True)
    build = "import sys, setuptools.build_meta as b; b.build_sdist(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", build, str(folder)],
        cwd=folder / "tree",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    return next((folder / "unpacked").iterdir())


def test_the_source_distribution_has_pages_tests_and_settings(sdist: Path) -> None:
    """Everything that the repository has below these folders, and what its tests read beside them."""
    for name in ("docs", "configs", "scripts", "plugins/lookup_policies", "tests/report"):
        wanted = {
            path.relative_to(ROOT)
            for path in (ROOT / name).rglob("*")
            if path.is_file() and not {"__pycache__", "_build"} & {*path.parts}
        }
        assert {path for path in wanted if not (sdist / path).is_file()} == set()
    assert all(
        (sdist / name).is_file() for name in ("Dockerfile", "CHANGELOG.md", "LICENSE", "Makefile", "conftest.py")
    )


def test_links_of_the_description_lead_somewhere_on_an_index_page(sdist: Path) -> None:
    """Every link is an address or stays on the page, and names a file of the repository; images are raw files."""
    written = Parser().parsestr((sdist / "PKG-INFO").read_text(encoding="utf-8"))
    source = dict(line.split(", ") for line in written.get_all("Project-URL", []))["Source"]
    description = str(written.get_payload())

    targets = re.findall(r"(!?)\[[^\]]*\]\(([^)\s]+)\)", description)

    assert len(targets) > 20
    for image, target in targets:
        if target.startswith("#"):
            continue
        assert target.startswith("https://")
        below = f"{source}/{'raw' if image else 'blob'}/main/"
        if target.startswith(source):
            assert (ROOT / target.removeprefix(below).partition("#")[0]).is_file()


def _dockerfile() -> list[tuple[str, str]]:
    """Return instruction and argument of every step."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Build the wheel as the image does, from what `.dockerignore` lets in; return the names in it."""
    folder = tmp_path_factory.mktemp("wheel")
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert lines[0] == "*"
    for name in (line.removeprefix("!") for line in lines if line.startswith("!")):
        (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / "source" / name, ignore=_LEFT_OUT)
        else:
            shutil.copy(ROOT / name, folder / "source" / name)
    words = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", str(folder), "."]
    done = subprocess.run(words, cwd=folder / "source", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {*zipfile.ZipFile(next(folder.glob("*.whl"))).namelist()}


def test_wheel_has_no_other_top_level_names(wheel: set[str]) -> None:
    """Nothing called `plugins`, `configs` or `tests` reaches anyone's site-packages."""
    top = {name.split("/")[0] for name in wheel if ".dist-info/" not in name}

    assert top == {"lookup", "lookup_java", "lookup_policies", "pulsar_lookup.py"}


def test_wheel_holds_every_module(wheel: set[str]) -> None:
    """No module of the tree is missing from the wheel."""
    wanted = {path.relative_to(ROOT).as_posix() for path in (ROOT / "lookup").rglob("*.py")}
    for folder in (POLICIES, JAVA):
        wanted |= {path.relative_to(ROOT / "plugins").as_posix() for path in folder.rglob("*.py")}

    assert wanted - wheel == set()


def test_wheel_holds_settings_licence_and_the_mark_of_types(wheel: set[str]) -> None:
    """Settings ship as data, the licence beside the metadata, and type checkers are told to look."""
    configs = ROOT / "configs"
    data = {
        f"lookup/configs/{p.relative_to(configs).as_posix()}"
        for p in configs.rglob("*")
        if p.suffix in (".toml", ".conf", ".sh", ".service", ".timer")
    }

    assert data - wheel == set()
    assert {"lookup/py.typed", "lookup_policies/py.typed"} <= wheel
    for folder in (ROOT / "lookup" / "report" / "assets", ROOT / "lookup" / "commands" / "plugin_template"):
        assert {path.relative_to(ROOT).as_posix() for path in folder.rglob("*") if path.is_file()} <= wheel
    assert any(name.endswith("licenses/LICENSE") for name in wheel)
    # Vega's as well, which the wheel holds.
    assert sum("licenses/" in name and "LICENSE-vega" in name for name in wheel) == 3


_WITHOUT_EXTRAS = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"altair", "google_crc32c", "jinja2", "pandas", "pyarrow", "pyspark", "re2"}:
            raise ImportError(f"{name} comes with an extra")

sys.meta_path.insert(0, Refuse())
import importlib
for name in sys.argv[1:]:
    importlib.import_module(name)
"""


def test_the_core_imports_without_extras(tmp_path: Path) -> None:
    """Neither it nor the readers and metrics that register need Spark, Arrow and pandas."""
    rooms = ("hooks", "engine", "settings", "testing", "topics", "cli")
    own = [point.module for point in entry_points(group="lookup") if point.dist and point.dist.name == "pulsar-lookup"]
    modules = ["lookup", *(f"lookup.{room}" for room in rooms), "lookup_policies", *own]
    command = [sys.executable, "-c", _WITHOUT_EXTRAS, *modules]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def test_the_demo_of_the_image_names_commands_and_settings_there_are() -> None:
    """Its commands are parsed as they stand, and every flag and every key of the settings is known."""
    shell, flags, demo = json.loads(_dockerfile()[-1][1])
    assert (shell, flags) == ("sh", "-ec")
    generate, evaluate = (command.partition("lookup ")[2].split() for command in demo.split("; "))

    assert parse_command(root_parser(), generate).output == "sample"
    arguments = parse_command(root_parser(), evaluate)
    settings = load_evaluation(arguments.config, dict(pair.split("=") for pair in arguments.set), {})
    assert settings.inputs.lookups == str(Path("sample/lookups").resolve())
