"""How pages are tested: `conftest.py` over pages of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[1]
_RUN = "<!-- run -->\n```console\n$ echo first\n$ echo one; echo two >&2\n```\n"
_FAILS = "<!-- run: exit 3 -->\n```bash\necho one\necho two >&2\nexit 3\n```\n"


def _shown(text: str, how: str = "prints") -> str:
    return f"\n<!-- {how} -->\n```text\n{text}```\n"


def _shortened(text: str) -> str:
    return _shown(text, "prints: shortened")


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (_RUN + _shown("one\ntwo\n"), None),
        (_FAILS + _shown("one\ntwo\n"), None),
        (_RUN + _shown("one\ntwo\n") + _FAILS, None),
        (_RUN + _shown("one\nthree\n"), "the last command printed"),
        (_RUN + _shown("one\n"), "the last command printed"),
        (_RUN + _shown("first\none\ntwo\n"), "the last command printed"),
        (_FAILS + _shown("three\n"), "the last command printed"),
        (_shown("one\n") + _RUN, "no command ran"),
        (_RUN + _shortened("two\n"), None),
        (_RUN + _shortened("o...\n...\n"), None),
        (_RUN + _shortened("one\n...\ntwo\n"), "did not print 'two'"),
        (_RUN + _shortened("two\none\n"), "did not print 'one'"),
        (_RUN + _shortened("three\n"), "did not print 'three'"),
        (_RUN + _shortened("on\n"), "did not print 'on'"),
    ],
)
def test_a_page_shows_what_its_last_command_prints(tmp_path: Path, page: str, said: str | None) -> None:
    """What it printed and its errors, whole or shortened; a page that shows anything else fails."""
    shutil.copy(_ROOT / "conftest.py", tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text(page, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "--rootdir", ".", "-p", "no:cacheprovider", "docs/page.md"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == (0 if said is None else 1), done.stdout
    assert said is None or said in done.stdout
