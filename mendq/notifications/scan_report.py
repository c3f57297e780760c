"""Write the notification of a scan-only stack: what its scan found and nobody has heard of yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from shlex import quote

from msgspec import Struct

from mendq.notifications.notification import (
    format_account_and_region,
    make_first_line,
    make_subject,
    symptom_name_in_words,
)
from mendq.notifications.sent import MOST_NOTIFICATION_BYTES, NotificationText
from mendq.notifications.text import (
    Section,
    command_or_note,
    format_count,
    limit_lines,
    make_body,
    to_plain_text,
)

# The most queues that are named for one symptom, and the most queues that could not be looked at.
_MOST_QUEUES_PER_SYMPTOM = 10
_MOST_UNREADABLE_QUEUES = 10
_MOST_SENTENCE_CHARACTERS = 300
_MOST_NAME_CHARACTERS = 80


class ReportedFinding(Struct, frozen=True):
    """A finding as the notification shows it.

    Attributes:
        queue_name: the queue's name.
        symptom: the symptom's name.
        sentence: the sentence with the measured numbers.
        severity: how much it harms, in words, such as `losing messages`.
        runbook: the path of the symptom's runbook.
    """

    queue_name: str
    symptom: str
    sentence: str
    severity: str
    runbook: str


class UnreadableTarget(Struct, frozen=True):
    """A queue, or a name in the settings, that could not be looked at, with the reason."""

    name: str
    reason: str


def describe_scan_report(
    findings: Sequence[ReportedFinding],
    unreadable_targets: Sequence[UnreadableTarget],
    unreported_count: int,
    account: str,
    region: str,
) -> NotificationText:
    """Return the notification about findings that are new, or that people are reminded of.

    Args:
        findings: the findings, the worst first.
        unreadable_targets: what could not be looked at for hours.
        unreported_count: the number of further findings for which Mendq has no space to note that
            they were reported.
        account: the account's id.
        region: the region.
    """
    account_and_region_text = format_account_and_region(account, region)
    opening_lines = [
        make_first_line(f"{_summarize(findings, unreadable_targets)}.", "Please look."),
        "This stack only scans and reports (scanOnly: true): nothing was changed.",
    ]
    if unreported_count:
        opening_lines.append(
            f"{format_count(unreported_count, 'more finding')}: too many to remember, so they are "
            "not reported one by one."
        )
    sections = [
        Section(severity.upper(), tuple(_list_finding_lines(findings_of_severity)))
        for severity, findings_of_severity in groupby(findings, lambda finding: finding.severity)
    ]
    unreadable_lines = (
        f"{to_plain_text(target.name, _MOST_NAME_CHARACTERS)}: "
        f"{to_plain_text(target.reason, _MOST_SENTENCE_CHARACTERS)}"
        for target in unreadable_targets
    )
    if unreadable_targets:
        sections.append(
            Section("NOT LOOKED AT", limit_lines(unreadable_lines, _MOST_UNREADABLE_QUEUES))
        )
    next_step_lines = (
        command_or_note(f"mendq scan --dry-run --region {quote(to_plain_text(region, 32))}"),
        "It shows every finding as it is now, and the change that would help.",
        "What is still found is reported again in 7 days.",
    )
    sections.append(Section("NEXT", next_step_lines, can_be_cut=False))
    subject = make_subject(
        "Mendq found:", _name_subject(findings, unreadable_targets), account_and_region_text
    )
    return NotificationText(subject, make_body(opening_lines, sections, MOST_NOTIFICATION_BYTES))


def _summarize(
    findings: Sequence[ReportedFinding], unreadable_targets: Sequence[UnreadableTarget]
) -> str:
    """Return the notification's first line without its end: the worst finding, and the numbers."""
    if not findings:
        return f"{_count_targets(unreadable_targets)} cannot be looked at"
    worst_finding = findings[0]
    worst_finding_text = (
        f"{to_plain_text(worst_finding.queue_name, _MOST_NAME_CHARACTERS)}: "
        f"{symptom_name_in_words(worst_finding.symptom)}"
    )
    other_count = len(findings) - 1
    if not other_count:
        return worst_finding_text
    return f"{worst_finding_text}, and {format_count(other_count, 'other finding')}"


def _name_subject(
    findings: Sequence[ReportedFinding], unreadable_targets: Sequence[UnreadableTarget]
) -> str:
    """Return the subject's words between its beginning and the account."""
    if len(findings) == 1 and not unreadable_targets:
        (finding,) = findings
        queue_name = to_plain_text(finding.queue_name, _MOST_NAME_CHARACTERS)
        return f"{symptom_name_in_words(finding.symptom)} on {queue_name}"
    if findings:
        return format_count(len(findings), "finding")
    return f"{_count_targets(unreadable_targets)} it cannot look at"


def _count_targets(unreadable_targets: Sequence[UnreadableTarget]) -> str:
    """Return the number of targets in words. A target may be a name that is not a queue's."""
    return format_count(len(unreadable_targets), "queue or name", "queues or names")


def _list_finding_lines(findings: Iterable[ReportedFinding]) -> Iterable[str]:
    """Yield a line for each finding, and the runbook after the findings of a symptom."""
    for symptom, findings_of_symptom in groupby(findings, lambda finding: finding.symptom):
        all_findings = list(findings_of_symptom)
        finding_lines = (
            f"{to_plain_text(finding.queue_name, _MOST_NAME_CHARACTERS)}: "
            f"{symptom_name_in_words(symptom)}: "
            f"{to_plain_text(finding.sentence, _MOST_SENTENCE_CHARACTERS)}"
            for finding in all_findings
        )
        yield from limit_lines(finding_lines, _MOST_QUEUES_PER_SYMPTOM)
        yield f"runbook: {to_plain_text(all_findings[0].runbook)}"
