"""The findings of `mendq lint` as text for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.cli.output import Output
from mendq.lint.judging import LintFinding, LintResult, LintSeverity, UncheckedPlace
from mendq.lint.run import LintRun
from mendq.notifications.text import format_count, to_terminal_text

_STYLE_BY_SEVERITY = {
    LintSeverity.ERROR: "bold red",
    LintSeverity.WARNING: "bold yellow",
    LintSeverity.NOTE: "bold",
}


def print_run(out: Output, run: LintRun) -> None:
    """Print each template's findings, what was ignored and what was not judged, and the counts."""
    for result in run.results:
        _print_result(out, result)
    stale_entries = run.list_stale_entries()
    if stale_entries:
        out.say_heading("stale")
    for entry in stale_entries:
        out.say_indented(f"{entry.symptom}: {to_terminal_text(entry.where, 300)}")
        out.say_indented(to_terminal_text(entry.because, 1_000), "dim", indent=4)
    out.say(_summarize_results(run), "bold")


def _print_result(out: Output, result: LintResult) -> None:
    out.say_unwrapped(
        f"{to_terminal_text(result.file, 300)}: {format_count(result.queues, 'queue')}", "bold"
    )
    if result.nested_files:
        files_text = ", ".join(to_terminal_text(file, 300) for file in result.nested_files)
        out.say(f"nested templates that were checked too: {files_text}")
    for finding in result.findings:
        _print_finding(out, finding)
    if result.ignored:
        out.say_heading("ignored (by the template, --ignore or mendq.toml)")
        out.say_labelled(
            [(finding.symptom, "dim", _describe_ignored(finding)) for finding in result.ignored]
        )
    _print_unchecked_places(out, result.not_judged)
    if result.defaults:
        defaults_text = ", ".join(
            f"{parameter_default['parameter']} = {parameter_default['value']}"
            for parameter_default in result.defaults
        )
        out.say("")
        out.say(f"parameters taken at their defaults: {defaults_text}")
    out.say("")


def _print_unchecked_places(out: Output, unchecked_places: Sequence[UncheckedPlace]) -> None:
    if unchecked_places:
        out.say_heading("not judged")
    for unchecked_place in unchecked_places:
        symptoms_text = (
            f" ({', '.join(unchecked_place.symptoms)})" if unchecked_place.symptoms else ""
        )
        out.say_indented(_describe_place(unchecked_place))
        out.say_indented(f"{unchecked_place.because}{symptoms_text}", "dim", indent=4)


def _print_finding(out: Output, finding: LintFinding) -> None:
    out.say("")
    severity_text = Text(finding.severity.value, style=_STYLE_BY_SEVERITY[finding.severity])
    symptom_text = (finding.symptom, "bold")
    out.show(
        Text.assemble(
            severity_text,
            "  ",
            to_terminal_text(finding.resource),
            "  ",
            symptom_text,
            (f"  {finding.severity_class.title}", "dim"),
        )
    )
    construct_text = f", construct {finding.construct}" if finding.construct else ""
    out.say_indented(f"{_describe_place(finding)}{construct_text}", "dim")
    out.say_indented(f"{SYMPTOM_BY_NAME[finding.symptom].sentence} Here: {finding.because}.")
    if finding.remedy:
        out.say_indented("remedy:", "dim")
        for remedy_line in finding.remedy:
            out.say_template_line(f"  {remedy_line}")
    out.say_indented(f"runbook: {finding.runbook}", "dim")


def _describe_ignored(finding: LintFinding) -> str:
    """Return where an ignored finding is, and the reason if a person gave one."""
    if not finding.ignore_reason:
        return _describe_place(finding)
    return f"{_describe_place(finding)}: {to_terminal_text(finding.ignore_reason, 300)}"


def _describe_place(finding: LintFinding | UncheckedPlace) -> str:
    """Return where in the template something is: the path, and the line if it is known.

    The line may be in a file beside the template.
    """
    if not finding.line:
        return finding.path
    file_text = f" of {finding.file}" if finding.file else ""
    return f"line {finding.line}{file_text}: {finding.path}"


def _summarize_results(run: LintRun) -> str:
    results = run.results
    finding_severities = [finding.severity for result in results for finding in result.findings]
    count_texts = [
        format_count(finding_severities.count(severity), severity.value)
        for severity in LintSeverity
    ]
    severity_counts_text = f" ({', '.join(count_texts)})" if finding_severities else ""
    ignored_count = sum(len(result.ignored) for result in results)
    known_text = f"{run.known_count:,} in the baseline, " if run.known_count else ""
    unchecked_count = sum(len(result.not_judged) for result in results)
    return (
        f"{format_count(len(finding_severities), 'finding')}{severity_counts_text}, "
        f"{ignored_count} ignored, {known_text}"
        f"{format_count(unchecked_count, 'place')} not judged"
    )
