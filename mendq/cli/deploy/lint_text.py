"""The findings of `mendq lint` as text for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from mendq.catalogue import BY_NAME
from mendq.cli.output import Output
from mendq.lint.judging import LintFinding, LintResult, LintSeverity, UncheckedPlace
from mendq.notifications.text import format_count, plain, visible

_STYLES = {LintSeverity.ERROR: "bold red", LintSeverity.WARNING: "bold yellow"}


def show_findings(out: Output, templates: Sequence[LintResult]) -> None:
    """Print each template's findings, what was ignored and what could not be judged."""
    for template in templates:
        out.say_unwrapped(
            f"{visible(template.file, 300)}: {format_count(template.queues, 'queue')}", "bold"
        )
        for finding in template.findings:
            _show_finding(out, finding)
        if template.ignored:
            out.say_heading("ignored, as Metadata or --ignore says")
            out.say_labelled(
                [(finding.symptom, "dim", _place(finding)) for finding in template.ignored]
            )
        if template.not_judged:
            out.say_heading("not judged")
        for not_judged in template.not_judged:
            symptoms = f" ({', '.join(not_judged.symptoms)})" if not_judged.symptoms else ""
            out.say_indented(_place(not_judged))
            out.say_indented(f"{not_judged.because}{symptoms}", "dim", indent=4)
        if template.defaults:
            defaults = ", ".join(
                f"{default['parameter']} = {default['value']}" for default in template.defaults
            )
            out.say("")
            out.say(f"parameters taken at their defaults: {defaults}")
        out.say("")
    out.say(_summary(templates), "bold")


def _show_finding(out: Output, finding: LintFinding) -> None:
    out.say("")
    severity = Text(finding.severity.value, style=_STYLES[finding.severity])
    symptom = (finding.symptom, "bold")
    out.show(Text.assemble(severity, "  ", plain(finding.resource), "  ", symptom))
    construct = f", construct {finding.construct}" if finding.construct else ""
    out.say_indented(f"{_place(finding)}{construct}", "dim")
    out.say_indented(f"{BY_NAME[finding.symptom].sentence} Here: {finding.because}.")
    if finding.remedy:
        out.say_indented("remedy:", "dim")
        for line in finding.remedy:
            out.say_command(f"  {line}")
    out.say_indented(f"runbook: {finding.runbook}", "dim")


def _place(finding: LintFinding | UncheckedPlace) -> str:
    """Return where in the template it is: the path, and the line if it is known."""
    return f"line {finding.line}: {finding.path}" if finding.line else finding.path


def _summary(templates: Sequence[LintResult]) -> str:
    severities = [finding.severity for template in templates for finding in template.findings]
    errors = severities.count(LintSeverity.ERROR)
    warnings = len(severities) - errors
    kinds = (
        f" ({format_count(errors, 'error')}, {format_count(warnings, 'warning')})"
        if severities
        else ""
    )
    ignored = sum(len(template.ignored) for template in templates)
    not_judged = sum(len(template.not_judged) for template in templates)
    return (
        f"{format_count(len(severities), 'finding')}{kinds}, {ignored} ignored, "
        f"{format_count(not_judged, 'place')} not judged"
    )
