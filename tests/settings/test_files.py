"""Files of settings: reading TOML, and paths that start where they are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from lookup.errors import SettingsError
from lookup.settings.files import anchor_paths, read_toml
from tests.settings.files import write


def test_a_mark_at_the_beginning_of_a_file_is_no_part_of_it(tmp_path: Path) -> None:
    """Editors on Windows put a byte order mark before the first key."""
    (tmp_path / "x.toml").write_bytes(b"\xef\xbb\xbfkey = 1\n")

    assert read_toml(tmp_path / "x.toml") == {"key": 1}


def test_an_empty_path_is_not_the_folder(tmp_path: Path) -> None:
    """A path of nothing is left to the models, which refuse it."""
    assert anchor_paths({"inputs": {"lookups": ""}}, tmp_path) == {"inputs": {"lookups": ""}}


def test_paths_start_from_the_folder_that_names_them(tmp_path: Path) -> None:
    """Inputs, topology, profiles, policy files and plug-ins become absolute; URIs and tables stay."""
    given_paths = {
        "inputs": {"lookups": "a/../b", "loads": "s3://bucket/loads"},
        "topology": {"file": "t.toml", "levels": ["rack"]},
        "brokers": [{"profile": "p.conf"}, {"profile": {"capacity": 1.0}}, {}],
        "policies": ["p.toml", {"name": "x"}],
        "plugin_files": ["x.py"],
    }

    found = anchor_paths(given_paths, tmp_path)

    assert found["inputs"] == {"lookups": f"{tmp_path}/b", "loads": "s3://bucket/loads"}
    assert found["topology"] == {"file": f"{tmp_path}/t.toml", "levels": ["rack"]}
    assert found["brokers"] == [{"profile": f"{tmp_path}/p.conf"}, {"profile": {"capacity": 1.0}}, {}]
    assert found["policies"] == [f"{tmp_path}/p.toml", {"name": "x"}]
    assert found["plugin_files"] == [f"{tmp_path}/x.py"]


@pytest.mark.parametrize("value", [3, "x", [3], {"file": 3}, [[1]], None])
@pytest.mark.parametrize("key", ["inputs", "topology", "brokers", "policies", "plugin_files"])
def test_wrong_shapes_are_left_to_the_models(key: str, value: object) -> None:
    """Making paths absolute never fails, whatever stands where a path or table should."""
    assert set(anchor_paths({key: value}, Path("/"))) == {key}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(None, "there is no such file"), (b"a = 1\nb = \n", "is not valid TOML: "), (b"a = '\xff'", "is not UTF-8 text")],
)
def test_a_file_that_is_no_toml_is_one_sentence(tmp_path: Path, content: bytes | None, sentence: str) -> None:
    """A file that is absent, broken or not text is told with its path, a broken one with the line."""
    path = tmp_path / "x.toml"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(SettingsError) as caught:
        read_toml(path)

    (problem,) = caught.value.problems
    assert problem.startswith(f"{path}: {sentence}")


def test_what_ships_is_named_for_a_file_that_is_absent(tmp_path: Path) -> None:
    """The name of a policy that ships is easily written without its prefix."""
    with pytest.raises(SettingsError, match=r"rack-then-load: .* 'shipped:rack-then-load'\?$"):
        read_toml(tmp_path / "rack-then-load")


@pytest.mark.parametrize("name", ["serving.toml", "rack-then-load.toml"])
def test_nothing_that_ships_is_named_for_a_file_that_is_gone(tmp_path: Path, name: str) -> None:
    """A file of a user's own that was removed is told as that, though something that ships has its name."""
    with pytest.raises(SettingsError, match=r"\.toml: .*such file$"):
        read_toml(tmp_path / name)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    """A folder in a file's place is told as the system tells it."""
    with pytest.raises(SettingsError, match=f"{tmp_path}: cannot be read: Is a directory"):
        read_toml(write(tmp_path, "a/x.toml", "").parent.parent)


@pytest.mark.parametrize(
    ("path", "sentence"), [("a\0b", r"path 'a\\x00b'"), ("~no-such-user/x", "path '~no-such-user/x' leads nowhere")]
)
def test_a_path_that_no_file_has_is_refused(tmp_path: Path, path: str, sentence: str) -> None:
    """A NUL ends a name for the system, and a home needs a user."""
    with pytest.raises(SettingsError, match=sentence):
        anchor_paths({"inputs": {"lookups": path}}, tmp_path)
