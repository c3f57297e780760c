"""What `mendq lint` shows to people, to scripts, and beside the lines of a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.text import Text

from mendq.catalogue import BY_NAME
from mendq.cli.output import Output
from mendq.lint.judging import Finding, Linted, NotJudged, Severity
from mendq.notifications.text import counted, plain, visible

SCHEMA = 1
_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow"}
_MOST_ANNOTATION = 1_000
_SARIF = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas"


def document(templates: Sequence[Linted]) -> dict[str, Any]:
    """The command's answer to a script."""
    counted_by = ("findings", "ignored", "not_judged")
    return {
        "schema": SCHEMA,
        **{name: sum(len(getattr(each, name)) for each in templates) for name in counted_by},
        "templates": [asdict(each) for each in templates],
    }


def sarif(templates: Sequence[Linted]) -> dict[str, Any]:
    """The findings as SARIF 2.1.0, which code scanning takes.

    https://docs.github.com/en/code-security/reference/code-scanning/sarif-files/sarif-support
    """
    found = _findings(templates)
    rules = [
        {"id": each.name, "shortDescription": {"text": each.sentence}, "helpUri": each.aws_page}
        for each in (BY_NAME[name] for name in sorted({one.symptom for _, one in found}))
    ]
    driver = {"name": "mendq", "rules": rules}
    run = {"tool": {"driver": driver}, "results": [_sarif_result(*each) for each in found]}
    return {"$schema": f"{_SARIF}/sarif-schema-2.1.0.json", "version": "2.1.0", "runs": [run]}


def _sarif_result(file: str, one: Finding) -> Mapping[str, Any]:
    region = {"region": {"startLine": one.line}} if one.line else {}
    where = {"artifactLocation": {"uri": Path(file).as_posix()}, **region}
    said = "\n".join((f"{one.construct or one.resource}: {one.because}.", *one.remedy, one.runbook))
    return {
        "ruleId": one.symptom,
        "level": one.severity.value,
        "message": {"text": said},
        "locations": [{"physicalLocation": where}],
    }


def show(out: Output, templates: Sequence[Linted]) -> None:
    for each in templates:
        out.whole(f"{visible(each.file, 300)}: {counted(each.queues, 'queue')}", "bold")
        for finding in each.findings:
            _show_finding(out, finding)
        if each.ignored:
            out.heading("ignored, as Metadata or --ignore says")
            out.lines([(one.symptom, "dim", _at(one)) for one in each.ignored])
        if each.not_judged:
            out.heading("not judged")
        for one in each.not_judged:
            named = f" ({', '.join(one.symptoms)})" if one.symptoms else ""
            out.under(_at(one))
            out.under(f"{one.because}{named}", "dim", indent=4)
        if each.defaults:
            taken = ", ".join(f"{one['parameter']} = {one['value']}" for one in each.defaults)
            out.say("")
            out.say(f"parameters taken at their defaults: {taken}")
        out.say("")
    out.say(_summary(templates), "bold")


def _show_finding(out: Output, finding: Finding) -> None:
    out.say("")
    head = Text(finding.severity.value, style=_STYLES[finding.severity])
    out.show(Text.assemble(head, "  ", plain(finding.resource), "  ", (finding.symptom, "bold")))
    out.under(f"{_at(finding)}{finding.construct and f', construct {finding.construct}'}", "dim")
    out.under(f"{BY_NAME[finding.symptom].sentence} Here: {finding.because}.")
    if finding.remedy:
        out.under("remedy:", "dim")
        for line in finding.remedy:
            out.command(f"  {line}")
    out.under(f"runbook: {finding.runbook}", "dim")


def _at(said: Finding | NotJudged) -> str:
    return f"line {said.line}: {said.path}" if said.line else said.path


def _summary(templates: Sequence[Linted]) -> str:
    severities = [one.severity for _, one in _findings(templates)]
    errors, found = severities.count(Severity.ERROR), len(severities)
    kinds = f" ({counted(errors, 'error')}, {counted(found - errors, 'warning')})"
    not_judged = counted(sum(len(each.not_judged) for each in templates), "place")
    return (
        f"{counted(found, 'finding')}{kinds if found else ''}, "
        f"{sum(len(each.ignored) for each in templates)} ignored, {not_judged} not judged"
    )


def github_lines(templates: Sequence[Linted]) -> Iterator[str]:
    """GitHub's workflow commands, which put a finding beside its line.

    https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
    """
    for file, one in _findings(templates):
        line = f",line={one.line}" if one.line else ""
        where = f"file={_property(file)}{line},title={_property(one.symptom)}"
        lines = (f"{one.construct or one.resource}: {one.because}", *one.remedy, one.runbook)
        yield f"::{one.severity.value} {where}::{'%0A'.join(map(_escaped, lines))}"


def _findings(templates: Sequence[Linted]) -> list[tuple[str, Finding]]:
    return [(each.file, one) for each in templates for one in each.findings]


def _escaped(text: str) -> str:
    """Its indentation stays: a remedy is YAML."""
    indentation = " " * (len(text) - len(text.lstrip(" ")))
    return indentation + visible(text, _MOST_ANNOTATION).replace("%", "%25")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
