"""What `mendq lint` shows to people, and to GitHub beside the lines of a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from cli.lint.findings import Finding, Linted, NotJudged, Severity
from cli.lint.template import Place
from cli.output import Output
from functions.healing.plain_text import counted, plain, visible

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow"}
_MOST_NAMES = 4
_MOST_ANNOTATION = 1_000


def show(out: Output, templates: Sequence[Linted]) -> None:
    for each in templates:
        out.whole(f"{visible(each.file, 300)}: {counted(each.queues, 'queue')}", "bold")
        for finding in each.findings:
            _show_finding(out, finding)
        if each.ignored:
            out.say("")
            out.say("ignored, as Metadata says", "bold")
            out.lines([(_symptom(one), "dim", _at(one.place)) for one in each.ignored])
        if each.not_judged:
            out.say("")
            out.say("not judged", "bold")
            for one in each.not_judged:
                _show_not_judged(out, one)
        if each.defaults:
            out.say("")
            taken = ", ".join(f"{name} = {text}" for name, text in each.defaults)
            out.say(f"parameters taken at their defaults: {taken}")
        out.say("")
    out.say(_summary(templates), "bold")


def _show_finding(out: Output, finding: Finding) -> None:
    out.say("")
    head = Text(finding.severity.value, style=_STYLES[finding.severity])
    out.show(Text.assemble(head, "  ", plain(finding.resource), "  ", (_symptom(finding), "bold")))
    out.under(_at(finding.place), "dim")
    out.under(f"{finding.symptom.sentence} Here: {finding.because}.")
    if finding.cure:
        out.under("cure:", "dim")
        for line in finding.cure:
            out.command(f"  {line}")
    out.under(f"runbook: {finding.symptom.runbook}", "dim")


def _show_not_judged(out: Output, one: NotJudged) -> None:
    out.under(_at(one.place))
    out.under(f"{one.because}{_of(one.symptoms)}", "dim", indent=4)


def _of(symptoms: Sequence[str]) -> str:
    if not symptoms:
        return ""
    more = len(symptoms) - _MOST_NAMES
    return f" ({', '.join(symptoms[:_MOST_NAMES])}{f' and {more} more' if more > 0 else ''})"


def _symptom(finding: Finding) -> str:
    return finding.symptom.name


def _at(place: Place) -> str:
    return f"line {place.line}: {place.path}" if place.line else place.path


def _summary(templates: Sequence[Linted]) -> str:
    findings = [each for one in templates for each in one.findings]
    errors = sum(each.severity is Severity.ERROR for each in findings)
    ignored = sum(len(each.ignored) for each in templates)
    not_judged = sum(len(each.not_judged) for each in templates)
    kinds = f" ({counted(errors, 'error')}, {counted(len(findings) - errors, 'warning')})"
    return (
        f"{counted(len(findings), 'finding')}{kinds if findings else ''}, "
        f"{ignored} ignored, {counted(not_judged, 'place')} not judged"
    )


def github_lines(templates: Sequence[Linted]) -> Iterator[str]:
    """GitHub's workflow commands, which put a finding beside its line.

    https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
    """
    for each in templates:
        for one in each.findings:
            line = f",line={one.place.line}" if one.place.line else ""
            where = f"file={_property(each.file)}{line},title={_property(_symptom(one))}"
            said = f"{one.resource}: {one.because}"
            lines = [_escaped(said), *map(_indented, one.cure), _escaped(one.symptom.runbook)]
            yield f"::{one.severity.value} {where}::{'%0A'.join(lines)}"


def _indented(line: str) -> str:
    """A line of YAML, which is another line without the blanks that it begins with."""
    return " " * (len(line) - len(line.lstrip(" "))) + _escaped(line)


def _escaped(text: str) -> str:
    return visible(text, _MOST_ANNOTATION).replace("%", "%25")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
