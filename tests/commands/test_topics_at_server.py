"""`lookup topics ... --server URL`: the same answers from a decision server as from its catalog's file."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.answering import answering, http_answer
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
labels set orders-eu region=eu,owner=x {}
labels set nothing a=b {}
labels set orders a= {}
labels set orders forbidden=b {}
labels remove orders tier {}
labels remove orders-eu --all {}
labels remove orders {}
labels get orders-eu {}
properties get orders {}
properties set orders team=ops stage=raw {}
properties set persistent://acme/eu/bills/of/us a=b {}
properties get orders --format json {}
list public/default -p team=ops,stage=raw {}
properties remove orders stage {}
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

    answers = [both(words) for words in COMMANDS]

    for words, (here, there) in zip(COMMANDS, answers, strict=True):
        assert there == here, words
    assert {here.code for here, _ in answers} == {0, 2}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--server http://127.0.0.1:1", "http://127.0.0.1:1 cannot be asked: "),
        ("--server 127.0.0.1:8900", "the server's URL: "),
        ("--server http://:8900", "the server's URL: "),
        ("--server http://127.0.0.1:1,127.0.0.1:2", "the server's URL: names several servers; give one"),
        ("--server http://me:secret@127.0.0.1", "names a user"),
        ("--server http://127.0.0.1:1 --token-file no", "cannot be read from no"),
        ("--token-file no", "--token-file: it is for --server"),
        ("--server http://127.0.0.1:1 --catalog a.db", "--server, --catalog: "),
        ("--server http://127.0.0.1:1 --plugin-file a.py", "--server, --plugin-file: "),
        ("--server http://[::1", "the server's URL: "),
        ("--server http://h\u00f6st:8900", "the server's URL: has characters"),
        ("--server http://127.0.0.1:1 --token-file empty", "the token in empty"),
        ("--server http://127.0.0.1:1 --token-file lines", "the token in lines"),
        ("--server {} --token-file other", "the token is missing"),
    ],
)
def test_server_that_cannot_be_asked_is_a_sentence(
    lookup: Run, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, said: str
) -> None:
    """It is exit code 2, and no token or password is in it."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("other", "secret"), ("empty", "\n"), ("lines", "secret\nsecret")):
        Path(name).write_text(text)

    ran = lookup("topics", "list", "public/default", *words.format(f"http://127.0.0.1:{server.port}").split())

    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert "secret" not in ran.err


#: What asks a server: for a list, pairs, and to write.
_ASKING = ("list public/default", "labels get orders", "labels set orders a=b", "properties remove orders --all")


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n{",
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
        http_answer('{"topics": ["persistent://public/default/a"', missing=9),
        http_answer('{"error": "cut', status=503, missing=9),
        http_answer('{"error": {"a": 1}}', status=400),
        http_answer("[" * 200_000, status=500),
        http_answer('{"error": "what is a teapot"}', status=418),
        http_answer("<html></html>"),
        *map(http_answer, ("", "null", "[]", '"x"', "[" * 200_000, '{"env": 1, "tier": ["a", 2]}', '{"a": "\\ud800"}')),
        http_answer('{"topics": [1], "topicsHash": "x", "changed": true, "readsProperties": true}'),
        http_answer('{"topics": ["persistent://public/default/a"], "changed": true}'),
        http_answer('{"topics": [], "topicsHash": "1", "changed": true, "readsProperties": true}'),
        http_answer('{"topics": [], "topicsHash": "1", "changed": false, "readsProperties": true}'),
    ],
)
def test_answer_of_another_server_is_a_sentence(lookup: Run, answer: bytes) -> None:
    """Nothing is printed from it, and nothing is said to be done."""
    with answering(answer) as port:
        for words in _ASKING:
            ran = lookup("topics", *words.split(), "--server", f"http://127.0.0.1:{port}")

            assert (words, ran.code, ran.out) == (words, 2, "")
            assert len(ran.err.splitlines()) == 1
            assert "is it a decision server?" in ran.err or "cannot be asked" in ran.err


def test_properties_that_the_server_ignores_are_warned_of(lookup: Run, tmp_path: Path, catalog: Path) -> None:
    """The lister `default` does as Pulsar's."""
    with started(settings_file(tmp_path, f'[topics]\ncatalog = "{catalog}"\n', policies="")) as server:
        ran = lookup("topics", "list", "public/default", "-p", "a=b", "--server", f"http://127.0.0.1:{server.port}")

    assert (ran.code, len(ran.out.splitlines())) == (0, 4)
    assert "does not look at properties" in ran.err
