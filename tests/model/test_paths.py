"""What a path names if it is neither a file nor a folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lookup.model.paths import is_device, special_kind


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/dev/zero", "a device"),
        ("/dev/../dev/null", "a device"),
        ("/dev/stdin", "a stream of this process"),
        ("/dev/fd/0", "a stream of this process"),
        ("/proc/self/fd/7", "a stream of this process"),
        ("/dev", None),
        ("/no/such/path", None),
        ("a\0b", None),
    ],
)
def test_devices_and_streams_are_special(path: str, kind: str | None) -> None:
    """Files, folders and what is not there are not."""
    assert special_kind(path) == kind
    assert is_device(Path(path)) == (kind == "a device") or kind == "a stream of this process"


def test_a_link_is_what_it_leads_to(tmp_path: Path) -> None:
    """A link to a pipe is a pipe, one to a file a file."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("")
    for name in ("pipe", "file"):
        (tmp_path / f"to-{name}").symlink_to(name)

    assert (special_kind(f"{tmp_path}/to-pipe"), special_kind(f"{tmp_path}/to-file")) == ("a pipe", None)
