"""The command line itself: help, versions, and mistakes in flags, each one sentence with the way to the help."""

from __future__ import annotations

import argparse
import re
import shlex
from importlib.metadata import version
from pathlib import Path

import pytest

from lookup.cli import SUMMARIES, commands, root_parser
from lookup.commands import options
from lookup.commands.options import Command, moment, number, pairs, parse_command, ratio, whole
from lookup.errors import Argument, Sentence, SettingsError
from tests.commands.projects import Run, evaluation
from tests.report.results import result, varied
from tests.report.runs import write_run


def test_help_lists_every_command_in_a_line(lookup: Run) -> None:
    """`lookup --help` goes to stdout and has a line for every command or group."""
    ran = lookup("--help")

    assert (ran.code, ran.err) == (0, "")
    for command in commands():
        assert f"\n   {command.name.partition(' ')[0]} " in ran.out
    assert re.findall(r"^([A-Z][a-z ]+):$", ran.out, re.MULTILINE) == ["Try", "Judge", "Understand", "Run", "Look up"]
    assert "2 an error" in ran.out


@pytest.mark.parametrize("command", commands(), ids=lambda command: command.name)
def test_help_of_a_command_has_examples(lookup: Run, command: Command) -> None:
    """The help of a command says what it does, describes every flag and ends with examples."""
    ran = lookup(*command.name.split(), "-h")

    printed = " ".join(ran.out.replace("\\\n", "").split())
    assert (ran.code, ran.err) == (0, "")
    assert SUMMARIES[command.name][1:] in printed
    assert "examples:" in printed
    assert all(f" {line} {meaning}" in printed for line, meaning in command.examples)


_HELPS = sorted(
    {" ".join(words[:end]) for words in (c.name.split() for c in commands()) for end in range(len(words) + 1)}
)


@pytest.mark.parametrize("words", _HELPS)
@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_help_keeps_within_the_terminal(lookup: Run, monkeypatch: pytest.MonkeyPatch, words: str, width: int) -> None:
    """No line is longer, and lines end at blanks: neither a flag nor a word is cut in two."""
    monkeypatch.setenv("COLUMNS", "1000")
    whole_words = set(re.split(r"[\s|\[\]]+", lookup(*words.split(), "--help").out))
    monkeypatch.setenv("COLUMNS", str(width))

    printed = lookup(*words.split(), "--help").out
    assert [line for line in printed.splitlines() if len(line) > width] == []
    assert set(re.split(r"[\s|\[\]]+", printed)) - whole_words <= {"\\"}


def test_what_must_be_given_is_shown_so(lookup: Run) -> None:
    """Required flags and arguments stand in the usage without brackets, optional and replaceable ones with them."""
    usage = " ".join(lookup("evaluate", "--help").out.partition("\n\n")[0].split())
    ingest = " ".join(lookup("ingest", "--help").out.partition("\n\n")[0].split())

    # `--confirm` does in the place of the file.
    assert usage.endswith("[EVALUATION]")
    assert "[--candidate NAME] --output DIR" in usage
    assert ingest.endswith("SOURCE [SOURCE ...]")
    assert "[-h] --output DIR [--force]" in ingest


@pytest.mark.parametrize("command", commands(), ids=lambda command: command.name)
def test_examples_parse(command: Command) -> None:
    """Every example of a help text is a command line the parser takes."""
    for line, _ in command.examples:
        words = shlex.split(line)
        arguments = parse_command(root_parser(), words[words.index("lookup") + 1 :])

        assert arguments.run is command.run


@pytest.mark.parametrize("words", ["plugins list", "config list", "diff {0} {1} --all", "report {0} --against {1}"])
def test_tables_in_pipes_are_as_wide_as_what_is_in_them(lookup: Run, tmp_path: Path, words: str) -> None:
    """No column is padded to the width of a terminal or of a page."""
    runs = [write_run(tmp_path / name, of) for name, of in (("a", result()), ("b", varied()))]

    printed = lookup(*words.format(*runs).split()).out
    tables = re.findall(r"^\+[+-]+\n((?:[|+].*\n)+)", printed, re.MULTILINE)
    assert tables
    for table in tables:
        rows = [row.strip("|").split("|") for row in table.splitlines() if row.startswith("|")]
        for column in zip(*rows, strict=True):
            assert max(len(cell.strip()) for cell in column) >= len(column[0]) - 2


def test_version(lookup: Run) -> None:
    """`lookup --version` prints name and version."""
    assert lookup("--version").out == f"pulsar-lookup {version('pulsar-lookup')}\n"


#: The sentences that users meet most, each with a command line that ends in it; the evaluation is that of this room.
SENTENCES = [
    ("", "no command is given; see `lookup --help`"),
    ("plugins", "no command is given; see `lookup plugins --help`"),
    ("evalute", "there is no command 'evalute'; did you mean 'evaluate'?; see `lookup --help`"),
    ("config chek", "there is no command 'chek'; did you mean 'check'?; see `lookup config --help`"),
    ("evaluate --conf x", "there is no flag --conf; did you mean '--confirm'?; see `lookup evaluate --help`"),
    (
        "plan --record=a show b",
        "--record stands before the command; it comes after `lookup plan show`; see `lookup plan show --help`",
    ),
    (
        "--quiet config show",
        "--quiet stands before the command; it comes after `lookup config show`; see `lookup config show --help`",
    ),
    ("evaluate", "EVALUATION and --output must be given; see `lookup evaluate --help`"),
    ("ingest --output o", "SOURCE must be given; see `lookup ingest --help`"),
    (
        "inspect log --config a",
        (
            "--config: give the file without this flag, as in `lookup inspect LOOKUPS EVALUATION`; "
            "see `lookup inspect --help`"
        ),
    ),
    ("config check a b", "'b' is one argument too many; see `lookup config check --help`"),
    (
        "explain a --topic t --format tabel",
        "--format: there is no 'tabel'; did you mean 'table'?; see `lookup explain --help`",
    ),
    ("generate --output o --lookups 1e6", "--lookups: '1e6' is not a whole number; see `lookup generate --help`"),
    ("config check nowhere.toml", "nowhere.toml: there is no such file"),
    (
        "evaluate evaluation.toml --output o --set evaluation.tick=1",
        "command line: there is no setting evaluation.tick; did you mean 'tick_s'?",
    ),
    (
        "evaluate evaluation.toml --output o --set evaluation.seeds",
        "--set: 'evaluation.seeds' should be of the form evaluation.tick_s=30",
    ),
    (
        "evaluate evaluation.toml --output o",
        "there is no log: give --lookups PATH, or inputs.lookups in the evaluation",
    ),
    (
        "evaluate evaluation.toml --output o --lookups /no/log",
        "inputs.lookups: /no/log: there is no such file or directory; `lookup ingest` writes it from a log",
    ),
    (
        "evaluate evaluation.toml --output o --set policies=[{name='stock',selector='bets'}]",
        "policy 'stock' selector: no selector named 'bets'; did you mean 'best'?",
    ),
    (
        "ingest evaluation.toml --output o",
        'which log reader? give --reader NAME, or a --mapping file that says use = "NAME"',
    ),
    (
        "ingest evaluation.toml --reader delimted --output o",
        "--reader: no log reader named 'delimted'; did you mean 'delimited'?",
    ),
    (
        "ingest evaluation.toml --reader csv --output .",
        "--output: . is not empty; name another folder, or replace earlier results with --force",
    ),
    ("explain evaluation.toml --topic t --policy rak", "--policy: there is no policy 'rak'; did you mean 'rack'?"),
    ("report .", ".: has no manifest.json; name a folder that `lookup evaluate` has written"),
    ("plan", "no cluster is given: give --record DIR or --cluster FILE"),
    ("collect --output o", "--cluster: give a file with an address: admin, service_url, zookeeper"),
]


@pytest.mark.parametrize(("words", "sentence"), SENTENCES)
def test_a_wrong_command_line_is_one_sentence(
    lookup: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, sentence: str
) -> None:
    """A flag or value that is unknown, missing or wrong is named, with a suggestion; no flag is abbreviated."""
    evaluation(tmp_path)
    monkeypatch.chdir(tmp_path)

    assert lookup(*words.split()).mistakes == [sentence]


@pytest.mark.parametrize(
    ("command", "sentence", "said"),
    [
        (
            "ingest",
            Sentence(Argument("output"), ": o; give ", Argument("force", value=True)),
            "--output: o; give --force",
        ),
        ("ingest", Sentence("give ", Argument("reader", "NAME")), "give --reader NAME"),
        ("evaluate", Sentence(Argument("by", "city"), ": no"), "--by city: no"),
        ("evaluate", Sentence("give ", Argument("partitions", 4)), "give partitions=4"),
        ("ingest", Sentence(Argument("output"), ": output/force is full"), "--output: output/force is full"),
    ],
)
def test_sentences_of_the_library_are_said_in_flags(command: str, sentence: str, said: str) -> None:
    """An argument that the command has a flag for is named as the flag; what a user wrote stays as it is."""
    parser = root_parser().parse_known_args([command])[0].parser

    assert parser.in_flags(sentence) == said


def test_pairs_keep_what_follows_the_first_equals_sign() -> None:
    """A value may be empty and may have equals signs of its own."""
    assert pairs("--property", ["a=b=c", "d="], "k=v") == [("a", "b=c"), ("d", "")]


@pytest.mark.parametrize("text", ["rack", "=a", " =a"])
def test_pairs_without_key_are_refused(text: str) -> None:
    """A text without key or equals sign is named with an example of what would be right."""
    with pytest.raises(SettingsError, match=r"--property: .* rack=a"):
        pairs("--property", [text], "rack=a")


def test_numbers() -> None:
    """Digits may be grouped; shares include both ends."""
    assert (whole("20_000"), number("-1.5"), ratio("0"), ratio("1")) == (20_000, -1.5, 0.0, 1.0)


@pytest.mark.parametrize(
    ("read", "text", "sentence"),
    [
        (whole, "1.0", "is not a whole number"),
        (number, "nan", "is not a number"),
        (number, "x", "is not a number"),
        (ratio, "1.1", "is not a number between"),
        (ratio, "nan", "is not a number between"),
        (moment, "yesterday", "is not a time like"),
        (moment, "2026-01-01T12:00:00", "has no offset"),
        (moment, "9999-12-31T23:00:00-10:00", "does not lie"),
    ],
)
def test_wrong_values_say_what_would_be_right(read: object, text: str, sentence: str) -> None:
    """A value that cannot be read is repeated, with what it should be."""
    with pytest.raises(argparse.ArgumentTypeError, match=f"'{text}' {sentence}"):
        read(text)  # type: ignore[operator]  # one of the readers above


def test_moments_are_microseconds() -> None:
    """A time with any offset is µs since the Unix epoch."""
    assert moment("1970-01-01T01:00:00.000001+01:00") == 1


@pytest.mark.parametrize(
    ("words", "package", "extra"),
    [
        ("evaluate FILE --output o", "pyspark", "spark"),
        ("ingest log --reader csv --output o", "pyspark", "spark"),
        ("generate --output out", "pyarrow", "spark"),
        ("report run", "jinja2", "report"),
    ],
)
def test_without_an_extra_it_says_what_to_install(
    lookup: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, package: str, extra: str
) -> None:
    """A core installation says in one sentence what to install."""
    monkeypatch.setattr(options, "find_spec", lambda name: None)
    monkeypatch.chdir(tmp_path)

    ran = lookup(*words.replace("FILE", str(evaluation(tmp_path))).split())

    command = words.partition(" ")[0]
    (mistake,) = ran.mistakes
    assert mistake.startswith(f"`lookup {command}` needs {package}: ")
    assert f"'pulsar-lookup[{extra}]'" in mistake
