"""`lookup topics ... --server URL`: the same answers from a decision server as from its catalog's file."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands.projects import Ran, Run
from tests.serve.servers import Server, settings_file, started

#: Commands in an order in which the catalog changes; `{}` is the place of the catalog's flags.
COMMANDS = """
list public/default {}
list public/default --mode all --include-system {}
list public/default --format json {}
list public/default -p team=billing {}
list public/default --pattern public/default/orders-.* {}
list public/default --pattern public/default/orders-.* --labels env=prod,region --format json {}
list public/default --labels env=prod --mode all {}
list public/nothing {}
list public/default --pattern (?!a) {}
list public/default --labels = {}
list public {}
labels get orders {}
labels get orders-eu --format json {}
labels get orders-eu-partition-1 {}
labels get nothing {}
labels get ordres {}
labels set orders tier=silver region=eu {}
labels get orders {}
labels set orders-eu --labels region=eu,owner=x {}
labels set nothing a=b {}
labels set orders a= {}
labels set orders forbidden=b {}
labels list public/default {}
labels list public/default --format json {}
labels list public/nothing {}
labels query region=eu {}
labels query region=eu --namespace public/default --namespace acme/eu {}
labels query env=prod --namespace public/nothing {}
labels query env=prod --mode all --format json {}
labels remove orders tier {}
labels remove orders-eu --all {}
labels remove orders {}
labels get orders-eu {}
properties get orders {}
properties set orders team=ops -p stage=raw {}
properties set persistent://acme/eu/bills/of/us -p a=b {}
properties get orders --format json {}
list public/default -p team=ops,stage=raw {}
properties remove orders -k stage {}
properties get orders {}
properties remove orders --all {}
properties get orders {}
labels get persistent://acme/eu/bills/of/us {}
properties get persistent://acme/eu/bills/of/us {}
list acme/eu {}
""".strip().splitlines()


@pytest.fixture
def catalog(lookup: Run, tmp_path: Path) -> Path:
    """Return the path of a small catalog."""
    path = tmp_path / "topics.db"
    for words in (
        "orders --create-namespace --labels env=prod,tier=gold -p team=billing",
        "orders-eu --partitions 2 --labels env=prod -p team=billing",
        "audit",
        "non-persistent://public/default/fast --labels env=prod",
        "__change_events",
        "persistent://acme/eu/bills/of/us --create-namespace --labels region=eu",
    ):
        assert lookup("topics", "create", *words.split(), "--catalog", str(path)).code == 0
    return path


@pytest.fixture
def server(tmp_path: Path, catalog: Path) -> Iterator[Server]:
    """Start a server over a copy of the catalog."""
    (tmp_path / "served").mkdir()
    shutil.copy(catalog, tmp_path / "served" / "topics.db")
    (tmp_path / "served" / "token").write_text("open-sesame\n")
    text = """token_file = "token"
[topics]
catalog = "topics.db"
lister = { use = "indexed" }
allowed_label_keys = ["env", "tier", "region", "owner", "a"]
"""
    with started(settings_file(tmp_path / "served", text, policies="")) as server:
        yield server


def test_server_answers_as_the_file_does(lookup: Run, catalog: Path, server: Server) -> None:
    """Output, exit code and sentence of each command are the same, and so are the catalogs afterwards."""
    settings = catalog.with_name("topics.toml")
    settings.write_text((catalog.parent / "served" / "serving.toml").read_text().partition("[topics]")[2])
    settings.write_text("[topics]" + settings.read_text())
    token = str(catalog.parent / "served" / "token")

    def both(words: str) -> tuple[Ran, Ran]:
        pieces = words.removesuffix(" {}").split()
        here = lookup("topics", *pieces, "--config", str(settings), "--catalog", str(catalog))
        there = lookup("topics", *pieces, "--server", f"http://127.0.0.1:{server.port}", "--token-file", token)
        return here, there

    answers = {words: both(words) for words in COMMANDS}

    assert {words: there for words, (_, there) in answers.items()} == {
        words: here for words, (here, _) in answers.items()
    }
    assert {here.code for here, _ in answers.values()} == {0, 2}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--server http://127.0.0.1:1", "http://127.0.0.1:1 cannot be asked: "),
        ("--server 127.0.0.1:8900", "the server's URL: should be of the form http://HOST:PORT or https://HOST:PORT"),
        ("--server http://me:secret@127.0.0.1", "names a user"),
        ("--server http://127.0.0.1:1 --token-file no", "the token cannot be read from no"),
        ("--token-file no", "--token-file: it is for --server"),
        ("--server http://127.0.0.1:1 --catalog a.db", "--server, --catalog: topics are in one of the two"),
        ("--server http://127.0.0.1:1 --plugin-file a.py", "--server, --plugin-file: the server has listers"),
        ("--server {} --token-file other", "the token is missing or wrong"),
    ],
)
def test_server_that_cannot_be_asked_is_a_sentence(
    lookup: Run, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, said: str
) -> None:
    """It is exit code 2, and no token or password is in it."""
    monkeypatch.chdir(tmp_path)
    Path("other").write_text("secret")

    ran = lookup("topics", "list", "public/default", *words.format(f"http://127.0.0.1:{server.port}").split())

    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert "secret" not in ran.err


def test_properties_that_the_server_ignores_are_warned_of(lookup: Run, tmp_path: Path, catalog: Path) -> None:
    """The lister `default` does as Pulsar's."""
    with started(settings_file(tmp_path, f'[topics]\ncatalog = "{catalog}"\n', policies="")) as server:
        ran = lookup("topics", "list", "public/default", "-p", "a=b", "--server", f"http://127.0.0.1:{server.port}")

    assert (ran.code, len(ran.out.splitlines())) == (0, 4)
    assert "does not look at properties and lists every topic" in ran.err
