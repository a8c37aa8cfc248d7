"""The page at `/` of the decision server: what it shows, for whom, and that nothing of a client becomes markup."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from html.parser import HTMLParser
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.processes import awaited
from tests.serve.servers import Server, decide, settings_file, started, view


class _Page(HTMLParser):
    """The tags of a page, and its text without the style sheet."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        if self.tags[-1:] != ["style"]:
            self.text += data


def _page(server: Server) -> _Page:
    status, text = server.ask("GET", "/")
    assert status == 200, text
    return _Page(text)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a policy and another in its shadow."""
    with started(settings_file(tmp_path_factory.mktemp("page"), 'masked = ["properties.email"]')) as server:
        yield server


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a token."""
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "token").write_text("s3cret:ü\n", encoding="utf-8")
    with started(settings_file(folder, 'token_file = "token"')) as server:
        yield server


def _basic(password: str, user: str = "") -> dict[str, str]:
    return {"Authorization": "Basic " + b64encode(f"{user}:{password}".encode()).decode()}


def test_the_page_says_how_the_server_stands(server: Server) -> None:
    """Policy, health, agreement of the shadow and the latest decisions, the latest first."""
    for number in range(25):
        body = decide(view("a", "b"), topic=f"persistent://public/default/orders-{number}")
        decision = server.ask("POST", "/decide", body)[1]["decision"]

    page = awaited(lambda: page if "%" in (page := _page(server)).text else None)

    assert "by-rack decides; healthy" in page.text
    assert "anywhere" in page.text
    assert decision in page.text
    assert [number for number in range(25) if f"orders-{number}{{" in page.text] == [*range(5, 25)]
    assert page.text.index("orders-24{") < page.text.index("orders-23{")


def test_nothing_of_a_client_becomes_markup(server: Server) -> None:
    """Topics and properties come from outside: tags in them are text, and masked values are not shown."""
    before = _page(server).tags
    topic = "persistent://public/default/<img src=x onerror=alert(1)>`"
    properties = {"</td><script>alert(1)</script>": '"><svg onload=alert(1)>', "email": "x@y"}
    status, _ = server.ask("POST", "/decide", decide(view("a", "b"), topic=topic, properties=properties))

    page = _page(server)

    assert status == 200
    assert topic in page.text
    assert "<svg onload=alert(1)>" in page.text
    assert "x@y" not in page.text
    assert {*page.tags} <= {*before, "tr", "td", "th", "table", "small", "thead", "tbody", "caption"}


def test_the_page_needs_and_permits_no_script(server: Server) -> None:
    """It loads nothing, runs nothing, cannot be framed, and is dark where the system is."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request("GET", "/")
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()

    assert "<script" not in text
    assert "default-src &#39;none&#39;; script-src &#39;none&#39;" in text
    assert response.getheader("Content-Security-Policy") == "frame-ancestors 'none'"
    assert "@media screen and (prefers-color-scheme: dark)" in text


def test_a_browser_is_asked_for_the_token(guarded: Server) -> None:
    """Without it the page is a 401 that lets a browser ask for a password, which is the token, whatever the user is."""
    connection = HTTPConnection("127.0.0.1", guarded.port, timeout=20)
    connection.request("GET", "/")
    response = connection.getresponse()
    asked = response.getheader("WWW-Authenticate", "")
    connection.close()

    assert response.status == 401
    assert asked.startswith("Basic ")
    assert guarded.ask("GET", "/", headers=_basic("s3cret:ü"))[0] == 200
    assert guarded.ask("GET", "/", headers=_basic("s3cret:ü", "me"))[0] == 200
    for wrong in (_basic("s3cret"), _basic(""), {"Authorization": "Basic ???"}, {"Authorization": "s3cret:ü"[:6]}):
        assert guarded.ask("GET", "/", headers=wrong)[0] == 401


@pytest.mark.parametrize(("method", "path"), [("POST", "/decide"), ("POST", "/record"), ("GET", "/metrics")])
def test_a_password_opens_what_a_person_reads_and_nothing_else(guarded: Server, method: str, path: str) -> None:
    """A page of another site that has the browser send the password along can change nothing."""
    connection = HTTPConnection("127.0.0.1", guarded.port, timeout=20)
    connection.request(method, path, headers=_basic("s3cret:ü"))
    response = connection.getresponse()
    connection.close()

    assert (response.status, response.getheader("WWW-Authenticate")) == (401, None)


def test_the_page_of_a_server_without_policy_says_so(tmp_path: Path) -> None:
    """Nothing was decided, nothing asked in shadow, and owners are not known: no section fails."""
    with started(settings_file(tmp_path, policies="")) as server:
        text = _page(server).text

    for sentence in ("no policy decides; healthy", "None since the start.", "No policy has been asked in shadow."):
        assert sentence in text
    assert "Owners" not in text
