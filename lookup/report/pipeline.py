"""Write what a pipeline reads of a run: JUnit XML, annotations of GitHub Actions, a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.etree import ElementTree as ET

from lookup.model.quoting import one_line, quantity
from lookup.report.blocks import Block, Bullets, Heading, Paragraph, Table
from lookup.report.gate import CHECK_HEADS, Gate
from lookup.report.markdown import markdown
from lookup.report.wording import outcomes
from lookup.score.scoring import Scored

__all__ = ["COMMENT_MARK", "comment_markdown", "github_annotations", "junit_xml"]

#: Last line of a comment, which no reader sees: a workflow finds its comment of the run before by it.
COMMENT_MARK = "<!-- pulsar-lookup -->"
#: Rows of a comment's table; GitHub refuses comments of more than 65,536 characters.
_MOST_ROWS = 40
_LEVELS = {"failed": "error", "undecided": "warning", "not judged": "warning"}


def junit_xml(gate: Gate) -> bytes:
    """Write the checks as JUnit XML, a suite per policy; what is undecided is skipped, with the reason."""
    root = ET.Element("testsuites", _counts(gate, None) | {"name": one_line(gate.headline)})
    for policy in dict.fromkeys(check.policy for check in gate.checks):
        suite = ET.SubElement(root, "testsuite", {"name": one_line(policy)} | _counts(gate, policy))
        for check in (check for check in gate.checks if check.policy == policy):
            case = ET.SubElement(suite, "testcase", classname=one_line(policy), name=one_line(check.name))
            if check.outcome == "passed":
                continue
            kind = "failure" if check.outcome == "failed" else "skipped"
            message = one_line(f"{check.outcome}: {check.reason}")
            ET.SubElement(case, kind, message=message).text = one_line(", ".join(filter(None, check.row)))
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _counts(gate: Gate, policy: str | None) -> dict[str, str]:
    outcomes_of = [check.outcome for check in gate.checks if policy in (None, check.policy)]
    failed, passed = outcomes_of.count("failed"), outcomes_of.count("passed")
    counts = {"tests": len(outcomes_of), "failures": failed, "errors": 0, "skipped": len(outcomes_of) - failed - passed}
    return {name: str(count) for name, count in counts.items()}


def github_annotations(gate: Gate) -> Iterator[str]:
    """Yield workflow commands: the headline, and one for each policy and outcome that is not passed.

    GitHub shows ten annotations of a kind for a step, so that one for each figure would hide some.
    """
    level = "error" if gate.of("failed") else "warning" if len(gate.checks) > len(gate.of("passed")) else "notice"
    yield _command(level, "lookup", gate.headline)
    groups: dict[tuple[str, str], list[str]] = {}
    for check in (check for check in gate.checks if check.outcome in _LEVELS):
        groups.setdefault((check.outcome, check.policy), []).append(f"{check.name}: {check.reason}")
    for (outcome, policy), texts in groups.items():
        yield _command(_LEVELS[outcome], f"{policy}: {quantity(len(texts), 'figure')} {outcome}", "\n".join(texts))


def _command(level: str, title: str, message: str) -> str:
    # GitHub: actions/toolkit, escapeData and escapeProperty of packages/core/src/command.ts
    text = "\n".join(map(one_line, message.split("\n"))).replace("%", "%25").replace("\n", "%0A")
    name = one_line(title).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={name}::{text}"


def comment_markdown(scored: Scored, gate: Gate, page: str, notes: Sequence[str] = ()) -> str:
    """Write a short comment on a pull request: the headline, the checks, the candidates, where the page is.

    Args:
        page: a URL, which becomes a link, or a path.
        notes: further sentences, of what differs from an earlier run.
    """
    blocks: list[Block] = [Heading(gate.headline, 3)]
    if gate.checks:
        interval = "intervals hold together with 95 %" if gate.has_budget else "95 % intervals"
        blocks.append(Table(CHECK_HEADS, [check.row for check in gate.checks[:_MOST_ROWS]]))
        blocks.append(Paragraph(f"Changes are from {gate.reference}; {interval}."))
    if len(gate.checks) > _MOST_ROWS:
        blocks.append(Paragraph(f"{len(gate.checks) - _MOST_ROWS} more figures are left out."))
    texts = [*(f"against {scored.incumbent}: {text}" for text in outcomes(scored)), *notes]
    if texts:
        blocks.append(Bullets(texts))
    link = f"[The page of this run]({page})" if "://" in page else f"The page of this run is `{page}`."
    return f"{markdown(blocks)}\n{link}\n\n{COMMENT_MARK}\n"
