"""Make sure, before a run, that the workers of Spark can do it: there are some, and each has what it needs.

A worker that lacks something fails its first task, after the log was listed, in a Java stack trace that Spark repeats
four times. Here every worker is asked beforehand, and each trouble is one sentence that names the worker. Workers are
those of a cluster, and those of a session on this machine whose Python is not the one that runs here.

Nothing but wheels has to be installed there: the code that tasks need is sent in one archive, which holds this package
and every installed distribution with plug-ins, and of each the metadata by which plug-ins are found. Distributions with
compiled modules stay behind, since Python loads none of these from an archive. Plug-in files travel with the policies.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import re
import shutil
import socket
import sys
import tempfile
import threading
import time
import warnings
import weakref
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import Distribution, PackageNotFoundError, entry_points, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard
from uuid import uuid4

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # has no annotations
from pyspark import SparkContext
from pyspark.errors import PySparkException

from lookup.errors import Argument, InputError, PulsarLookupError, SettingsError
from lookup.hooks.protocols import ENTRY_POINT_GROUP
from lookup.logs.jobs import InProcess, Workers, stages_of
from lookup.logs.outputs import create_file
from lookup.logs.sources import list_files, locate
from lookup.model.quoting import listed
from lookup.replay.tasks import Recipe, built
from lookup.replay.work import WorkDir

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_reach", "is_elsewhere", "is_foreign", "join_workers", "unshipped"]

#: The name of our own distribution.
_PROJECT_NAME = "pulsar-lookup"
#: Archives remember when a file was written; one date for all, so that equal code has equal bytes.
_DATE = (1980, 1, 1, 0, 0, 0)
#: Seconds to wait for the first worker, by default; after how many that is said, and how often again.
_WAIT_S = 600.0
_FIRST_WORD_S, _NEXT_WORD_S = 15.0, 60.0
#: Seconds between two looks at whether a task has begun.
_LOOK_S = 0.25
#: Seconds a task stays where it is, so that every core gets one; and how often tasks are sent for a worker without any.
_STAY_S, _ROUNDS = 0.3, 4
#: Distributions whose versions decide how figures come out.
_SAME = frozenset({"networkx", "numpy", "pyarrow"})
#: Whose workers have been found to have everything.
_JOINED: weakref.WeakSet[SparkContext] = weakref.WeakSet()
_REQUIREMENT = re.compile(r"""([\w.-]+)[^;]*(?:;\s*extra == ["'](\w+)["'])?""")
_NO_PYTHON = re.compile(r'Cannot run program "([^"]+)"')
#: A program that is no Python says nothing, one that is too old for Spark prints a traceback, whose last line says why.
_NO_START = re.compile(r"pyspark\.daemon's st(andard output|dout)")
_TRACE = re.compile(r"Error from python worker:\n.*?([^\n]+)\nPYTHONPATH was:", re.DOTALL)
_REMEDY = "set PYSPARK_PYTHON, here and before Spark starts, to the path that the right one has on all workers"
_OTHER_PYTHON = re.compile(r"Python in worker has different version:? \(?'?([\d.]+)\D+?([\d.]+)")


def join_workers(
    workers: Workers, *, wait_s: float | None = None, say: Callable[[str], object] = warnings.warn
) -> None:
    """Send the code, wait for a worker, and compare what is installed on every worker with what is here.

    Args:
        workers: nothing is done unless they have a Python of their own and have not been joined before.
        wait_s: how long to wait for the first one, in seconds; default: ten minutes.
        say: called with a sentence while none comes.

    Raises:
        SettingsError: if no worker comes, or one lacks something; a sentence for each worker.
    """
    if not is_foreign(workers) or workers.sparkContext in _JOINED:
        return
    context = workers.sparkContext
    _ship_code(context)
    _await_worker(context, wait_s or _WAIT_S, say)
    compiled = unshipped()
    wanted = {**_wheels(), **compiled}

    def look() -> dict[str, str | None]:
        # It must name nothing of this package, which would be loaded first, with all that this needs.
        found: dict[str, str | None] = {}
        for name in wanted:
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                found[name] = None
        return found

    everywhere = _ask_everywhere(context, look).items()
    same = _SAME.union(compiled)
    right = f"; install there, for {context.pythonExec}, what is installed here, figures depend on it"
    lacks = [f"worker {worker} {lack}{right}" for worker, found in everywhere if (lack := _lack(found, wanted, same))]
    if lacks:
        raise SettingsError(lacks)
    _JOINED.add(context)


def _lack(found: Mapping[str, str | None], wanted: Mapping[str, str], same: frozenset[str]) -> str:
    """Return what a worker lacks or has in another version than here, empty if it is as it should be.

    Args:
        same: distributions whose versions must be those of here; of others any will do.
    """
    missing = [f"{name} {wanted[name]}" for name, has in found.items() if has is None]
    others = [
        f"{name} {has} instead of {wanted[name]}"
        for name, has in found.items()
        if has is not None and has != wanted[name] and name in same
    ]
    return " and ".join(f"{verb} {listed(names)}" for verb, names in (("lacks", missing), ("has", others)) if names)


def check_reach(workers: Workers, paths: Sequence[str], folder: str, recipe: Recipe | None = None) -> None:
    """Let every worker read tables or logs, write and read in a folder, and build the policies.

    Args:
        workers: nothing is done unless they have a Python of their own.
        paths: of what tasks read.
        folder: where tasks are going to write; what is written there for the check is removed.
        recipe: of the policies, if tasks ask any.

    Raises:
        SettingsError: a sentence for each worker and each thing it cannot do.
    """
    if not is_foreign(workers):
        return
    work = WorkDir(f"{folder}/.check")
    try:
        troubles = _troubles(workers.sparkContext, paths, work, recipe)
    finally:
        work.remove()
    if troubles:
        raise SettingsError(troubles)


def _troubles(context: SparkContext, paths: Sequence[str], work: WorkDir, recipe: Recipe | None) -> list[str]:
    """Return what workers cannot do, a sentence each."""
    seen = {path: _sizes(path) for path in paths}
    token = uuid4().hex
    with create_file(f"{work.root}/{token}") as sink:
        sink.write(token.encode())

    def look() -> tuple[str, list[str]]:
        """Return the name of a file that a worker has written, empty if it cannot, and what else it cannot do."""
        reasons = {path: _unreadable(path, sizes) for path, sizes in seen.items()}
        problems = [f"cannot read {path}: {why}" for path, why in reasons.items() if why is not None]
        written, why = _written(work, token)
        if why is not None:
            problems.append(
                f"cannot use the output's work folder {work.root}: {why}; name an output that all workers reach"
            )
        try:
            if recipe is not None:
                built(recipe)
        except PulsarLookupError as error:
            problems.append(f"cannot build the policies: {error}")
        return written, problems

    troubles = list[str]()
    system, root = locate(work.root)
    for worker, (written, problems) in _ask_everywhere(context, look).items():
        troubles.extend(f"worker {worker} {problem}" for problem in problems)
        if written and not system.get_file_info(f"{root}/{written}").is_file:
            troubles.append(
                f"worker {worker} writes into another folder {work.root} than that of here; name an output that all "
                "workers reach"
            )
    return troubles


def is_foreign(workers: Workers) -> TypeGuard[SparkSession]:
    """Return whether tasks run in another Python than this one: on a cluster, or in a session here that names one."""
    if isinstance(workers, InProcess):
        return False
    # A session that somebody else has started may take the path's `python3`.
    return is_elsewhere(workers) or shutil.which(workers.sparkContext.pythonExec) != sys.executable


def is_elsewhere(workers: Workers) -> bool:
    """Return whether tasks run in a cluster, whose workers do not see the files of this machine."""
    return not isinstance(workers, InProcess) and re.match(r"local(\[|$)", workers.sparkContext.master or "") is None


def _wheels() -> dict[str, str]:
    """Return the versions of the distributions that this one needs to replay, as installed here."""
    names = [
        match[1]
        for match in map(_REQUIREMENT.match, requires(_PROJECT_NAME) or ())
        if match is not None and match[2] in {None, "spark"}
    ]
    found = {}
    # Spark brings itself.
    for name in sorted({*names} - {"pyspark"}):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _sizes(path: str) -> dict[str, int]:
    return {file: locate(file)[0].get_file_info(locate(file)[1]).size for file in list_files([path])}


def _unreadable(path: str, sizes: Mapping[str, int]) -> str | None:
    """Return why a table cannot be read here as it was elsewhere, None if it can."""
    try:
        here = _sizes(path)
        if here != sizes:
            missing = [file for file in sizes if here.get(file) != sizes[file]]
            what = f"{missing[0]} is missing or of another size" if missing else "there are more files"
            return f"{what} than where the run was started"
        system, inner = locate(next(iter(sizes)))
        with system.open_input_file(inner) as stream:
            stream.read(1)
    except (OSError, InputError) as error:
        return str(error)
    return None


def _written(work: WorkDir, token: str) -> tuple[str, str | None]:
    """Read the driver's file and write one; return its name, and why one or the other failed."""
    name = f"{token}-{uuid4().hex}"
    system, root = locate(work.root)
    try:
        if not system.get_file_info(f"{root}/{token}").is_file:
            return "", f"{token}, which the driver has written, is not there"
        with system.open_input_file(f"{root}/{token}") as stream:
            stream.read(1)
        with create_file(f"{work.root}/{name}") as sink:
            sink.write(token.encode())
    except OSError as error:
        return "", str(error)
    return name, None


def _ask_everywhere(context: SparkContext, look: Callable[[], Any]) -> dict[str, Any]:
    """Call a function once on every worker at least; return its answers by worker."""
    stay_s = _STAY_S

    def visit(_: Iterable[int]) -> Iterator[tuple[str, Any]]:
        answer = look()
        # Else a core that is quick would take the next task as well.
        time.sleep(stay_s)
        yield f"{socket.gethostname()} ({Path.cwd()})", answer

    answers: dict[str, Any] = {}
    for _ in range(_ROUNDS):
        known, tasks = len(answers), context.defaultParallelism
        try:
            answers |= dict(context.parallelize(range(tasks), tasks).mapPartitions(visit).collect())
        except (Py4JJavaError, PySparkException) as error:
            raise _sentence_of(error, context.pythonExec) from None
        # Of every core there is one task, so that a worker without any is rare, and one twice without any more so.
        if len(answers) == known:
            break
    return answers


def _await_worker(context: SparkContext, wait_s: float, say: Callable[[str], object]) -> None:
    """Wait until a task has begun somewhere."""
    group, failures = f"lookup-first-{uuid4().hex}", list[BaseException]()

    def ask() -> None:
        context.setJobGroup(group, "is there a worker?", interruptOnCancel=True)
        try:
            context.parallelize([0], 1).count()
        except BaseException as error:  # noqa: BLE001  it is raised again where it was waited for
            failures.append(error)

    def has_begun() -> bool:
        return any(stage.numActiveTasks or stage.numCompletedTasks for stage in stages_of(context, group))

    asking = threading.Thread(target=ask, daemon=True)
    began, waited_s, next_word_s = time.monotonic(), 0.0, _FIRST_WORD_S
    asking.start()
    try:
        while asking.is_alive() and not has_begun() and waited_s < wait_s:
            asking.join(_LOOK_S)
            waited_s = time.monotonic() - began
            if waited_s >= next_word_s:
                next_word_s += _NEXT_WORD_S
                say(f"{_no_worker(context, waited_s)}; one is waited for, for {wait_s - waited_s:.0f} s more")
        if waited_s < wait_s:
            asking.join()
    finally:
        if asking.is_alive():
            context.cancelJobGroup(group)
    if waited_s >= wait_s:
        more = "; start one, free one, or allow more than "
        raise SettingsError(_no_worker(context, waited_s), more, Argument("wait_s", f"{wait_s:.0f}s"))
    for failure in failures:
        raise _sentence_of(failure, context.pythonExec) if isinstance(failure, Exception) else failure


def _no_worker(context: SparkContext, waited_s: float) -> str:
    memory = context.getConf().get("spark.executor.memory", "1g")
    return (
        f"no worker of {context.master} has taken a task for {waited_s:.0f} s: none is there, or none has a core and "
        f"{memory} of memory free"
    )


def _sentence_of(error: Exception, python: str) -> Exception:
    """Return what a failure that comes before any code of ours means, the failure itself if that is not known.

    Args:
        python: what workers start as their Python.
    """
    # Of what Python itself raised on a worker a session makes an exception of its own.
    text = str(error.java_exception if isinstance(error, Py4JJavaError) else error)
    program = _NO_PYTHON.search(text)
    if program is not None:
        return SettingsError(f"workers have no Python at {program[1]}; {_REMEDY}")
    here = ".".join(map(str, sys.version_info[:2]))
    other = _OTHER_PYTHON.search(text)
    if other is not None:
        return SettingsError(
            f"workers have Python {other[1]}, and here it is {here}; both must have the same: {_REMEDY}"
        )
    if _NO_START.search(text):
        trace = _TRACE.search(text)
        why = f" ({trace[1].strip()})" if trace else ""
        return SettingsError(f"workers cannot start {python} as a Python of Spark{why}; here it is {here}: {_REMEDY}")
    return error


def _ship_code(context: SparkContext) -> None:
    """Put the archive on the path of all Python workers of a context; of equal code only once."""
    contents = dict(_contents())
    digest = hashlib.sha256()
    for name, content in contents.items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    # Spark refuses a second file of a name.
    name = f"{_PROJECT_NAME}-{digest.hexdigest()[:16]}.zip"
    if any(file.endswith(name) for file in context.listFiles):
        return
    folder = tempfile.mkdtemp(prefix="lookup-code-")
    # Workers that come late are sent it, too, so it stays as long as the context.
    weakref.finalize(context, shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder) / name
    with zipfile.ZipFile(path, "w") as archive:
        for inner, content in contents.items():
            archive.writestr(zipfile.ZipInfo(inner, _DATE), content, zipfile.ZIP_DEFLATED)
    before = list(sys.path)
    try:
        context.addPyFile(str(path))
    finally:
        # Spark puts it before everything else here as well, where the code is installed.
        sys.path[:] = before


def unshipped() -> dict[str, str]:
    """Return the versions of plug-in distributions that cannot be sent, by name."""
    return {
        distribution.name: distribution.version
        for distribution, modules in _distributions()
        if any(file.name.endswith(tuple(EXTENSION_SUFFIXES)) for module in modules for _, file in _files(module))
    }


def _distributions() -> list[tuple[Distribution, list[str]]]:
    """Return the distributions with plug-ins, our own among them, and the top-level modules of each."""
    modules: dict[str, set[str]] = {}
    found: dict[str, Distribution] = {}
    for point in entry_points(group=ENTRY_POINT_GROUP):
        if point.dist is not None:
            found[point.dist.name] = point.dist
            modules.setdefault(point.dist.name, set()).add(point.module.partition(".")[0])
    # What an entry point names may import other modules of its distribution.
    for module, names in importlib.metadata.packages_distributions().items():
        for name in modules.keys() & set(names):
            modules[name].add(module)
    return [(found[name], sorted(modules[name])) for name in sorted(found)]


def _contents() -> Iterator[tuple[str, bytes]]:
    left_out = unshipped()
    for distribution, modules in _distributions():
        if distribution.name in left_out:
            continue
        folder = f"{distribution.name.replace('-', '_')}-{distribution.version}.dist-info"
        metadata = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
        yield f"{folder}/METADATA", metadata.encode()
        yield f"{folder}/entry_points.txt", (distribution.read_text("entry_points.txt") or "").encode()
        for module in modules:
            for name, file in _files(module):
                yield name, file.read_bytes()


def _files(module: str) -> Iterator[tuple[str, Path]]:
    """Yield the files of a top-level module, without bytecode, and the name of each in the archive."""
    spec = importlib.util.find_spec(module)
    if spec is None:
        return
    if spec.submodule_search_locations is None:
        if spec.origin is not None:
            yield Path(spec.origin).name, Path(spec.origin)
        return
    for location in map(Path, spec.submodule_search_locations):
        for file in sorted(location.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                yield f"{module}/{file.relative_to(location).as_posix()}", file
