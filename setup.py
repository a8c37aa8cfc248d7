"""Build the distribution: setup.cfg has all of it but the description, whose links are absolute for index pages."""

import configparser
import re
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent


def described(readme: str, source: str) -> str:
    """Return README.md with links into the repository as addresses below its home; images as their raw files."""

    def absolute(link: re.Match[str]) -> str:
        return f"{link['head']}{source}/{'raw' if link['head'].startswith('!') else 'blob'}/main/{link['path']})"

    return re.sub(r"(?P<head>!?\[[^\]]*\]\()(?!https?:|#)(?P<path>[^)\s]+)\)", absolute, readme)


if __name__ == "__main__":
    config = configparser.ConfigParser(interpolation=None)
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    urls = dict(line.split(" = ") for line in config["metadata"]["project_urls"].strip().splitlines())
    setup(long_description=described((ROOT / "README.md").read_text(encoding="utf-8"), urls["Source"]))
