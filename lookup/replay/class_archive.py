"""Keep an archive of Spark's classes in the user's cache, with which its JVM starts sooner.

Java reads, checks and links some twenty thousand classes at each start of Spark. An archive holds them as they are in
memory afterwards. It fits one Java and one pyspark only, and Java passes over one that does not fit; each version of
this package makes its own, since it asks other things of Spark. The first process that starts Spark without one leaves
behind another, of low priority, that makes it.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

__all__ = [
    "PATIENCE_S", "SILENT", "SWITCH", "archive_name", "archive_of", "command_file", "finished_archive", "is_being_made",
    "java_options", "kept_command", "make_later", "marked", "pyspark_home",
]  # fmt: skip

#: Environment variable; "off": no archive is used or made.
SWITCH = "PULSAR_LOOKUP_CLASS_ARCHIVE"
#: After so long, s, a file that says an archive is being made was left by a process that was killed.
PATIENCE_S = 600.0
#: Beginnings of variables that Spark's script reads; the one of them that this process sets.
_SCRIPTS, _OWN = ("SPARK_", "HADOOP_CONF_DIR", "YARN_CONF_DIR"), frozenset({"SPARK_LOCAL_IP"})
#: Without it Java writes to stdout, among a command's data, that an archive does not fit.
SILENT = "-Xlog:disable"


def java_options() -> list[str]:
    """Return what Java is to be started with: an archive that was made before, else nothing."""
    archive = finished_archive()
    return [] if archive is None else [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", SILENT]


def kept_command() -> list[str] | None:
    """Return the words of Java's command line, before the options of `java_options`, that are kept with the archive.

    Spark's own script finds them anew at every start, for which it starts a Java as well. It has to do so where it
    reads settings or variables of the user's, which may be others than when the words were kept.
    """
    archive, home = finished_archive(), pyspark_home()
    is_set_up = any(name.startswith(_SCRIPTS) and name not in _OWN for name in os.environ)
    # Whoever sets the installed package up makes this folder.
    if archive is None or home is None or is_set_up or (home / "conf").exists():
        return None
    file = command_file(archive)
    try:
        # Empty where the system does not say what the words were.
        kept = file.read_text(encoding="utf-8") if file.stat().st_uid == os.getuid() else ""
    except OSError:
        return None
    return kept.split("\0") if kept else None


def command_file(archive: Path) -> Path:
    """Return the file beside an archive that keeps a command line."""
    return archive.with_suffix(".command")


def pyspark_home() -> Path | None:
    """Return the folder of the installed pyspark, which is not loaded for that: Java starts before."""
    found = find_spec("pyspark")
    places = (found.submodule_search_locations if found else None) or ()
    return next(map(Path, places), None)


def make_later() -> None:
    """Have an archive made once this process has ended, if it has started Spark without one."""
    # Where a machine is thrown away after its job it would never be used.
    if archive_of() is not None and finished_archive() is None and not os.environ.get("CI"):
        atexit.register(_make_apart)


def archive_of() -> Path | None:
    """Return the name that fitting archives begin with; None if none is wanted, or there is no Java.

    Behind it comes the size: Java ends in a crash if one was cut short.
    """
    java, cache = _java(), _cache()
    # Options of Java are cut at blanks.
    if os.environ.get(SWITCH) == "off" or java is None or cache is None or " " in str(cache):
        return None
    # Written by the build of a Java: its version and its maker.
    release = java.parent.parent / "release"
    build = release.read_text(errors="replace") if release.exists() else str(java.stat().st_mtime_ns)
    home = pyspark_home()
    # Java compares the times of jars as well: of a pyspark that was installed anew none fits.
    jars = [] if home is None else sorted((home / "jars").glob("spark-core*.jar"))
    written = [str(jar.stat().st_mtime_ns) for jar in jars]
    of = "\n".join((str(java), build, version("pulsar-lookup"), version("pyspark"), str(home), *written))
    return cache / f"spark-{hashlib.blake2b(of.encode(), digest_size=8).hexdigest()}"


def finished_archive() -> Path | None:
    """Return the archive that fits if it is there as it was made, by this user."""
    prefix = archive_of()
    if prefix is None:
        return None
    for path in sorted(prefix.parent.glob(f"{prefix.name}-*.jsa")):
        # Another process may remove it just now.
        with suppress(OSError):
            about = path.stat()
            # Its code runs with our rights.
            if path.name == archive_name(prefix, about.st_size) and about.st_uid == os.getuid():
                return path
    return None


def is_being_made(prefix: Path) -> bool:
    """Return whether another process makes an archive just now."""
    try:
        return time.time() - _making(prefix).stat().st_mtime < PATIENCE_S
    except OSError:
        return False


def marked(prefix: Path) -> Path | None:
    """Say that this process makes an archive, by a file that it has to remove; None if another process does."""
    mark = _making(prefix)
    if is_being_made(prefix):
        return None
    mark.unlink(missing_ok=True)
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return None
    return mark


def _making(prefix: Path) -> Path:
    return prefix.with_suffix(".making")


def archive_name(prefix: Path, size: int) -> str:
    """Return the name of an archive of a size in bytes."""
    return f"{prefix.name}-{size}.jsa"


def _make_apart() -> None:
    """Start a process that makes the archive, unless it is there by now, and do not wait for it."""
    prefix = archive_of()
    if prefix is None or finished_archive() is not None or is_being_made(prefix):
        return
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    nice = ["nice", "-n", "19"] if shutil.which("nice") else []
    command = [*nice, sys.executable, "-m", "lookup.replay.class_archiving"]
    # A cache that cannot be written is no reason to trouble who has got his results.
    with suppress(OSError):
        prefix.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        subprocess.Popen(command, start_new_session=True, cwd=prefix.parent, **quiet)  # type: ignore[call-overload]  # files by name


def _cache() -> Path | None:
    """Return the user's folder for what can be made again, None if the user has no home."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        # A relative one is none, by the rules for that variable.
        return (base if base.is_absolute() else Path.home() / ".cache") / "pulsar-lookup"
    except RuntimeError:
        return None


def _java() -> Path | None:
    """Return the Java that Spark will be started with."""
    home = os.environ.get("JAVA_HOME")
    found = f"{home}/bin/java" if home else shutil.which("java")
    return Path(found).resolve() if found and Path(found).exists() else None
