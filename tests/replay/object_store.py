"""An object store that speaks S3, the Versity gateway over a folder of its own; it ends with the tests."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyarrow import fs

from tests.processes import awaited

__all__ = ["BUCKET", "ObjectStore", "running_object_store"]

BUCKET = "lookups"
_SCRIPT = Path(__file__).parents[2] / "scripts" / "ensure-object-store.sh"
_KEY, _SECRET = "tests", "a-secret-never-printed"


@dataclass(frozen=True)
class ObjectStore:
    """A store that runs, with one bucket."""

    endpoint: str
    #: what it has written to its log
    log: Path

    @property
    def variables(self) -> dict[str, str]:
        """Return what a process needs in its environment to use it."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": _KEY,
            "AWS_SECRET_ACCESS_KEY": _SECRET,
            # Nothing but these: no settings of the account that runs the tests, and no address of a cloud.
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    @property
    def system(self) -> fs.S3FileSystem:
        """Return it as a file system, to look at it from outside."""
        return fs.S3FileSystem(access_key=_KEY, secret_key=_SECRET, endpoint_override=self.endpoint)

    def names(self, folder: str) -> list[str]:
        """Return the names of all objects below a folder of the bucket, in order."""
        selector = fs.FileSelector(f"{BUCKET}/{folder}", recursive=True, allow_not_found=True)
        base = len(f"{BUCKET}/{folder}/")
        return sorted(info.path[base:] for info in self.system.get_file_info(selector) if info.is_file)


@contextmanager
def running_object_store(folder: Path, host: str = "127.0.0.1") -> Iterator[ObjectStore]:
    """Start a store that listens on an address of this machine; end it when the block does.

    Raises:
        RuntimeError: a sentence that says what is missing.
    """
    done = subprocess.run([_SCRIPT], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    data, sidecar, log = folder / "data", folder / "sidecar", folder / "gateway.log"
    # A bucket is a folder of the gateway's; what else it knows of an object goes beside, as not every disk can hold it.
    for made in (data / BUCKET, sidecar):
        made.mkdir(parents=True)
    with socket.create_server((host, 0)) as free:
        port = int(free.getsockname()[1])
    command = [
        done.stdout.strip(), "--port", f"{host}:{port}", "--access", _KEY, "--secret", _SECRET,
        "posix", "--sidecar", str(sidecar), str(data),
    ]  # fmt: skip
    with log.open("ab") as output:
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    store = ObjectStore(f"http://{host}:{port}", log)
    try:
        awaited(lambda: _answers(host, port, process, log), f"the object store, {log}")
        yield store
    finally:
        process.kill()
        process.wait()


def _answers(host: str, port: int, process: subprocess.Popen[bytes], log: Path) -> bool:
    if process.poll() is not None:
        raise RuntimeError(f"the object store ended: {log.read_text(errors='replace')[-1_000:]}")
    with socket.socket() as tried:
        return tried.connect_ex((host, port)) == 0
