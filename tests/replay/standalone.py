"""A standalone Spark cluster: a master here, and workers that are machines of their own as far as Linux allows.

A worker has the extra's wheels and neither this package nor plug-ins. Where network and mount namespaces can be made it
has an address, a host name and a folder `private` of its own as well; elsewhere it is a process beside the others.
"""

from __future__ import annotations

import itertools
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from tests.processes import awaited

__all__ = [
    "SPARK",
    "Standalone",
    "Worker",
    "running_connect",
    "running_standalone",
    "write_older_python",
    "write_python",
]

#: Home of the Spark that is installed here.
SPARK = Path(pyspark.__file__).parent
_ROOT = Path(__file__).parents[2]
_LOOPBACK = "127.0.0.1"
_NUMBERS = itertools.count()
#: In a worker's namespaces: what is not its own is covered.
_ENTER = """
mount --make-rprivate /
mount -t tmpfs tmpfs {private}
for folder in {source}/lookup {source}/plugins; do mount -t tmpfs tmpfs $folder; done
mount --bind {hosts} /etc/hosts
hostname {name}
exec {command}
"""


@dataclass
class Worker:
    """A worker, or None in place of its process when it has been killed."""

    name: str
    host: str
    log: Path
    process: subprocess.Popen[bytes] | None = None

    def kill(self) -> None:
        """End the worker with its executors at once."""
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None


@dataclass
class Standalone:
    """A cluster that runs."""

    folder: Path
    host: str
    port: int
    is_apart: bool
    #: of this cluster among those of this process
    number: int = 0
    workers: list[Worker] = field(default_factory=list)

    @property
    def master(self) -> str:
        """Return Spark's URL."""
        return f"spark://{self.host}:{self.port}"

    @property
    def private(self) -> Path:
        """Return a folder that is another one on every worker."""
        return self.folder / "private"

    def start_worker(self, number: int) -> None:
        """Start a worker with one core; return when the master knows it."""
        name = f"worker-{number}"
        host = f"{self.host.rpartition('.')[0]}.{number + 1}" if self.is_apart else _LOOPBACK
        worker = Worker(name, host, self.folder / f"{name}.log")
        command: list[str] = [
            *_spark_class("worker.Worker", host, 0), "--cores", "1", "--memory", "1g",
            "--work-dir", str(self.folder / name), self.master,
        ]  # fmt: skip
        if self.is_apart:
            # Spark looks its own name up, where the environment has credentials of an object store.
            hosts = self.folder / f"{name}.hosts"
            hosts.write_text(f"{_LOOPBACK} localhost\n{host} {name}\n")
            words = " ".join(map(shlex.quote, command))
            entered = _ENTER.format(private=self.private, source=_ROOT, hosts=hosts, name=name, command=words)
            command = [
                "ip",
                "netns",
                "exec",
                _namespace(self.number, number),
                "unshare",
                "--mount",
                "--uts",
                "--pid",
                "--fork",
            ]
            command += ["--kill-child", "--mount-proc", "sh", "-ec", entered]
        worker.process = _begun(command, host, worker.log)
        self.workers.append(worker)
        awaited(lambda: "Successfully registered with master" in worker.log.read_text())

    def variables(self) -> dict[str, str]:
        """Return the environment of a driver."""
        return {**os.environ, "SPARK_LOCAL_IP": self.host, "PYSPARK_PYTHON": str(self.folder / "python")}


def _begun(command: Sequence[str], host: str, log: Path, **more: str) -> subprocess.Popen[bytes]:
    variables = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")} | more
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            env={**variables, "SPARK_LOCAL_IP": host, "SPARK_HOME": str(SPARK), "SPARK_NO_DAEMONIZE": "1"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def _spark_class(name: str, host: str, port: int) -> list[str]:
    program = [str(SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
    return [*program, "--host", host, "--port", str(port), "--webui-port", "0"]


def _namespace(cluster: int, number: int) -> str:
    return f"lookup-{os.getpid()}-{cluster}-{number}"


def _bridge(cluster: int, pid: int | None = None) -> str:
    # Linux allows 15 characters.
    return f"lkp{(pid or os.getpid()) % 1_000_000}-{cluster}"


def _ip(*words: str) -> bool:
    return subprocess.run(["ip", *words], capture_output=True, check=False).returncode == 0


def _network(cluster: int, workers: int) -> str | None:
    """Connect a network namespace for each worker to this one; return our address, None if that is not allowed."""
    if sys.platform != "linux" or os.geteuid() != 0 or not all(map(shutil.which, ("ip", "unshare"))):
        return None
    _remove_left_behind()
    subnet, bridge = f"10.213.{(os.getpid() + cluster) % 250}", _bridge(cluster)
    done = [_ip("link", "add", bridge, "type", "bridge")]
    done += [_ip("addr", "add", f"{subnet}.1/24", "dev", bridge), _ip("link", "set", bridge, "up")]
    for number in range(1, workers + 1):
        inside, cable = _namespace(cluster, number), f"{bridge}-{number}"
        done += [
            _ip("netns", "add", inside),
            _ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", inside),
            _ip("link", "set", cable, "master", bridge, "up"),
            _ip("-n", inside, "addr", "add", f"{subnet}.{number + 1}/24", "dev", "eth0"),
            _ip("-n", inside, "link", "set", "eth0", "up"),
            _ip("-n", inside, "link", "set", "lo", "up"),
        ]
    can_cover = subprocess.run(["unshare", "--mount", "--uts", "--pid", "--fork", "true"], check=False).returncode == 0
    if all(done) and can_cover:
        return f"{subnet}.1"
    _remove_network(cluster, workers)
    return None


def _remove_left_behind() -> None:
    """Remove the networks of test runs that were killed, and could not remove them themselves."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False).stdout
    # Each line may have a number behind the name.
    for name in [line.split()[0] for line in listed.splitlines() if line.startswith("lookup-")]:
        pid, cluster = name.split("-")[1:3]
        if not Path("/proc", pid).exists():
            _ip("netns", "del", name)
            _ip("link", "del", _bridge(int(cluster), int(pid)))


def _remove_network(cluster: int, workers: int) -> None:
    for number in range(1, workers + 1):
        _ip("netns", "del", _namespace(cluster, number))
    _ip("link", "del", _bridge(cluster))


def write_python(folder: Path) -> None:
    """Write a program that runs Python with the wheels that are installed here, and without what is ours."""
    wheels = folder / "wheels"
    wheels.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not entry.name.startswith(("pulsar_lookup", "__editable__", "lookup")) and entry.suffix != ".pth":
            (wheels / entry.name).symlink_to(entry)
    program = folder / "python"
    interpreter = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    # -S: the interpreter's own site-packages are no worker's.
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{wheels}:$PYTHONPATH" exec {interpreter} -S "$@"\n')
    program.chmod(0o755)


def write_older_python(folder: Path) -> Path:
    """Write one beside it that has a numpy of before."""
    about = folder / "older" / "numpy-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 1.0\n")
    other = folder / "other"
    other.write_text((folder / "python").read_text().replace(str(folder / "wheels"), f"{about.parent}:{folder}/wheels"))
    other.chmod(0o755)
    return other


@contextmanager
def running_standalone(folder: Path, *, most_workers: int = 2) -> Iterator[Standalone]:
    """Start a master; end it and all workers, which may be so many, when the block does."""
    (folder / "private").mkdir()
    write_python(folder)
    # A network of one that has ended lasts until the last of its processes has.
    number = next(_NUMBERS)
    address = _network(number, most_workers)
    host = address or _LOOPBACK
    with socket.create_server((host, 0)) as free:
        port = int(free.getsockname()[1])
    log = folder / "master.log"
    master = Worker("master", host, log, _begun(_spark_class("master.Master", host, port), host, log))
    cluster = Standalone(folder, host, port, is_apart=address is not None, number=number)
    try:
        awaited(lambda: "I have been elected leader" in log.read_text())
        yield cluster
    finally:
        for process in (*cluster.workers, master):
            process.kill()
        if address is not None:
            _remove_network(number, most_workers)


@contextmanager
def running_connect(folder: Path, python: Path) -> Iterator[str]:
    """Start a Connect server of one core, whose workers run a Python; yield its URL, end it when the block does."""
    with socket.create_server((_LOOPBACK, 0)) as free:
        port = int(free.getsockname()[1])
    log, settings = folder / "connect.log", {"ui.enabled": "false", "connect.grpc.binding.port": str(port)}
    command = [str(SPARK / "sbin" / "start-connect-server.sh"), "--master", "local[1]"]
    command += [word for name, value in settings.items() for word in ("--conf", f"spark.{name}={value}")]
    folders = {"SPARK_LOG_DIR": str(folder / "logs"), "SPARK_PID_DIR": str(folder)}
    server = Worker("connect", _LOOPBACK, log, _begun(command, _LOOPBACK, log, PYSPARK_PYTHON=str(python), **folders))
    try:
        awaited(lambda: "Spark Connect server started" in log.read_text())
        yield f"sc://{_LOOPBACK}:{port}"
    finally:
        server.kill()
