"""What is handed out: the source distribution, its description on an index page, the image."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from lookup.cli import root_parser
from lookup.commands.options import parsed
from lookup.settings import load_evaluation

ROOT = Path(__file__).parent.parent
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


def test_the_project_has_addresses(sdist: Path) -> None:
    """Of the source, the pages, the changes and the issues."""
    written = Parser().parsestr((sdist / "PKG-INFO").read_text(encoding="utf-8"))

    labels = {line.partition(",")[0] for line in written.get_all("Project-URL", [])}

    assert labels == {"Source", "Documentation", "Changelog", "Issues"}


def _dockerfile() -> list[tuple[str, str]]:
    """Return instruction and argument of every step."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines]


def test_the_image_is_built_with_care() -> None:
    """Base images have a version, Java is 17, packages leave no lists behind, and it does not run as root."""
    steps = _dockerfile()

    assert all(":latest" not in step and ":" in step for name, step in steps if name == "FROM")
    (apt,) = (step for name, step in steps if "apt-get" in step)
    assert "openjdk-17-jre-headless" in apt
    assert "--no-install-recommends" in apt
    assert apt.endswith("rm -rf /var/lib/apt/lists/*")
    ends = [place for place, (name, _) in enumerate(steps) if name == "CMD"]
    assert len(ends) == 2
    for end in ends:
        assert "useradd --uid 10001" in steps[end - 3][1]
        assert steps[end - 2] == ("USER", "10001")
        assert steps[end - 1] == ("WORKDIR", "/data")


def test_the_image_gets_what_its_build_needs(tmp_path: Path) -> None:
    """The wheel can be built from what `.dockerignore` lets in, with the settings that the demo names."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert lines[0] == "*"
    for name in (line.removeprefix("!") for line in lines if line.startswith("!")):
        (tmp_path / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / "source" / name, ignore=_LEFT_OUT)
        else:
            shutil.copy(ROOT / name, tmp_path / "source" / name)
    wheel = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), "."]

    done = subprocess.run(wheel, cwd=tmp_path / "source", capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    names = zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist()
    assert {"lookup/cli.py", "lookup/configs/evaluation.toml", "lookup_policies/__init__.py"} <= set(names)


def test_the_demo_of_the_image_names_commands_and_settings_there_are() -> None:
    """Its commands are parsed as they stand, and every flag and every key of the settings is known."""
    shell, flags, demo = json.loads(_dockerfile()[-1][1])
    assert (shell, flags) == ("sh", "-ec")
    generate, evaluate = (command.partition("lookup ")[2].split() for command in demo.split("; "))

    assert parsed(root_parser(), generate).output == "sample"
    arguments = parsed(root_parser(), evaluate)
    settings = load_evaluation(arguments.config, dict(pair.split("=") for pair in arguments.set), {})
    assert settings.inputs.lookups == str(Path("sample/lookups").resolve())
