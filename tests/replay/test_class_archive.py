"""The archive of Spark's classes, made and used by a real Java."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lookup.replay import class_archive, class_archiving
from lookup.replay.class_archive import (
    SWITCH,
    archive_name,
    archive_of,
    command_file,
    finished_archive,
    is_being_made,
    java_options,
    kept_command,
)
from tests.processes import output_of

#: Starts Spark, with `-Xshare:on` in place of `auto` if there is an archive: Java then ends if it does not fit.
_START = """
from lookup.replay.class_archive import java_options
from lookup.replay.session import create_session
options = " ".join(java_options())
strict = {"spark.driver.extraJavaOptions": options.replace("auto", "on")} if options else {}
context = create_session("local[1]", settings=strict if __import__("sys").argv[1] == "strict" else None).sparkContext
print(context.parallelize([1], 1).collect(), "SharedArchiveFile" in options)
"""


def _started(folder: Path, how: str = "auto", **variables: str) -> str:
    """Start Spark in a process whose cache is a folder, and return what it prints on stdout."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder), "CI": "true", **variables}
    done = subprocess.run(
        [sys.executable, "-c", _START, how], env=environment, capture_output=True, text=True, check=True, timeout=300
    )
    return done.stdout.strip()


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cache in which the archive has been made."""
    folder = tmp_path_factory.mktemp("cache")
    command = [sys.executable, "-m", "lookup.replay.class_archiving"]
    subprocess.run(command, env={**os.environ, "XDG_CACHE_HOME": str(folder)}, check=True, timeout=600)
    return folder


@pytest.mark.spark
def test_a_command_s_java_starts_from_the_archive(cache: Path) -> None:
    """With the options of the archive, and with a command line that was kept."""
    script = """
from lookup.replay.java import EarlyJava
java = EarlyJava()
java.forward()
words = java.gateway().jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()
print(any("SharedArchiveFile" in word for word in words), "-Xmx2g" in words)
java.stop()
"""
    variables = {"XDG_CACHE_HOME": str(cache), "CI": "true"}

    assert output_of(script, **variables) == "True True\n"


@pytest.mark.spark
@pytest.mark.parametrize("ci", ["", "true"])
def test_an_archive_is_made_once_a_process_has_started_spark_without_one(tmp_path: Path, ci: str) -> None:
    """Not on a machine that is thrown away after its job."""
    script = """
from lookup.replay import class_archive
from lookup.replay.java import EarlyJava
from lookup.replay.quick_start import quick_context
class_archive._make_apart = lambda: print("made", flush=True)
java = EarlyJava()
java.forward()
quick_context("local[1]", java, None).stop()
java.stop()
"""
    assert output_of(script, XDG_CACHE_HOME=str(tmp_path), CI=ci) == ("" if ci else "made\n")


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the name that an archive has in a cache in which there is none, for a process that sets no Spark up."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    # A kept command line is not for a process whose environment says something to Spark, as after an earlier session.
    for name in [name for name in os.environ if name.startswith("SPARK_")]:
        monkeypatch.delenv(name)
    found = archive_of()
    if found is None:
        pytest.skip("there is no Java")
    return found


@pytest.mark.spark
def test_an_archive_is_made_once_and_fits(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It and a command line beside it, from which Java starts; it is not made a second time."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    (archive,) = (cache / "pulsar-lookup").glob("*.jsa")
    assert set((cache / "pulsar-lookup").iterdir()) == {archive, command_file(archive)}
    made = archive.stat().st_mtime_ns

    assert archive == finished_archive()
    assert _started(cache, "strict") == "[1] True"
    assert class_archiving.main() == 0
    assert archive.stat().st_mtime_ns == made


@pytest.mark.spark
def test_an_archive_that_does_not_fit_is_passed_over(cache: Path, tmp_path: Path) -> None:
    """A part of one is not used, with which Java would crash; what is none is, and Java says nothing on stdout."""
    (archive,) = (cache / "pulsar-lookup").glob("*.jsa")
    prefix = archive.with_name(archive.name.rpartition("-")[0])
    torn, other = tmp_path / "torn" / "pulsar-lookup", tmp_path / "other" / "pulsar-lookup"
    for folder, name, content in (
        (torn, archive.name, archive.read_bytes()[:1_000_000]),
        (other, archive_name(prefix, 10), b"no archive"),
    ):
        folder.mkdir(parents=True)
        (folder / name).write_bytes(content)

    assert _started(torn.parent) == "[1] False"
    assert _started(other.parent) == "[1] True"


def test_without_an_archive_or_with_it_switched_off_java_starts_as_ever(
    prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No option is given; nor is one for the archive of another user."""
    assert java_options() == []
    prefix.parent.mkdir()
    archive = prefix.with_name(archive_name(prefix, 0))
    archive.touch()

    assert java_options() == [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", "-Xlog:disable"]
    monkeypatch.setattr(os, "getuid", lambda: archive.stat().st_uid + 1)
    assert java_options() == []
    monkeypatch.setenv(SWITCH, "off")
    assert archive_of() is None


def test_a_kept_command_line_is_for_an_archive_of_this_user_and_untouched_settings(
    prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's script is asked where it could say something else: of its variables it reads more than can be known."""
    prefix.parent.mkdir()
    archive = prefix.with_name(archive_name(prefix, 0))
    command_file(archive).write_text("java\0-Xmx2g", encoding="utf-8")

    assert kept_command() is None
    archive.touch()
    assert kept_command() == ["java", "-Xmx2g"]
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    assert kept_command() == ["java", "-Xmx2g"]
    for variable in ("SPARK_CONF_DIR", "HADOOP_CONF_DIR"):
        monkeypatch.setenv(variable, "/etc")
        assert kept_command() is None
        monkeypatch.delenv(variable)
    command_file(archive).write_text("", encoding="utf-8")
    assert kept_command() is None
    command_file(archive).unlink()
    assert kept_command() is None


def test_a_spark_that_is_set_up_in_its_own_folder_is_started_by_its_script(
    prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its `conf` says holds at every start, with an archive and without."""
    prefix.parent.mkdir()
    archive = prefix.with_name(archive_name(prefix, 0))
    archive.touch()
    command_file(archive).write_text("java", encoding="utf-8")
    installed = tmp_path / "pyspark"
    installed.mkdir()
    monkeypatch.setattr(class_archive, "finished_archive", lambda: archive)
    monkeypatch.setattr(class_archive, "pyspark_home", lambda: installed)

    assert kept_command() == ["java"]
    (installed / "conf").mkdir()
    assert kept_command() is None


def test_archives_of_earlier_versions_are_removed(tmp_path: Path) -> None:
    """The two latest are kept; what a process was killed over goes once it is old."""
    for age, name in enumerate(("a", "b", "c")):
        path = tmp_path / f"spark-{name}.jsa"
        path.touch()
        command_file(path).touch()
        os.utime(path, (1_000 - age, 1_000 - age))
    for name in ("spark-d.17", "spark-d.18"):
        (tmp_path / name).touch()
    os.utime(tmp_path / "spark-d.17", (1_000, 1_000))

    class_archiving._prune(tmp_path)

    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "spark-a.command", "spark-a.jsa", "spark-b.command", "spark-b.jsa", "spark-d.18",
    ]  # fmt: skip


def test_an_archive_that_is_too_large_is_not_kept(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache is not filled, whatever a Java writes."""
    monkeypatch.setattr(class_archiving, "_LARGEST", 1)
    monkeypatch.setattr(class_archiving, "_dump", lambda draft: draft.write_bytes(b"xx") and ["java"])

    assert class_archiving.main() == 1
    assert finished_archive() is None
    assert [path.suffix for path in prefix.parent.iterdir()] == [".making"]


def test_an_archive_of_a_spark_that_was_installed_anew_is_another(
    prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java would pass over the one of before at each start."""
    jar = tmp_path / "jars" / "spark-core_2.13-4.3.0.jar"
    jar.parent.mkdir()
    jar.touch()
    monkeypatch.setattr(class_archive, "pyspark_home", lambda: tmp_path)
    before = archive_of()

    os.utime(jar, (1, 1))
    assert before not in {archive_of(), prefix}


def test_a_cache_that_is_no_absolute_path_is_none(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's usual one is used."""
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")

    assert archive_of() == Path.home() / ".cache" / "pulsar-lookup" / prefix.name


def test_only_one_process_makes_an_archive(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another one does nothing is started; what was left behind long ago does not count."""
    monkeypatch.setattr(class_archiving, "_dump", lambda draft: draft.write_bytes(b"x") and ["java"])
    prefix.parent.mkdir()
    making = prefix.with_suffix(".making")
    making.touch()

    assert class_archiving.main() == 1
    os.utime(making, (1.0, 1.0))
    assert class_archiving.main() == 0
    archive = prefix.with_name(archive_name(prefix, 1))
    assert {*prefix.parent.iterdir()} == {archive, command_file(archive)}
    assert kept_command() == ["java"]


def test_a_java_that_makes_no_archive_is_left_alone_for_a_month(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else every command would leave a process behind that tries once more."""
    monkeypatch.setattr(class_archiving, "_dump", lambda draft: [])

    assert class_archiving.main() == 1
    (mark,) = prefix.parent.iterdir()
    assert 29 * 86_400 < mark.stat().st_mtime - time.time() < 31 * 86_400
    assert is_being_made(prefix)


def test_without_a_home_no_archive_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user of a container may have none."""
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", _no_home)

    assert (archive_of(), java_options()) == (None, [])


def _no_home() -> Path:
    raise RuntimeError("no home")
