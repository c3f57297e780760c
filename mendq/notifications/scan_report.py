"""Write the notification of a scan-only stack: its new findings, and reminders of earlier ones."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from shlex import quote

from msgspec import Struct

from mendq.model.account_and_region import AccountAndRegion
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
    make_body,
    to_plain_text,
)

# The most findings that are named, the most queues that are named for one symptom, and the most
# queues that could not be looked at.
_MOST_FINDINGS = 40
_MOST_QUEUES_PER_SYMPTOM = 10
_MOST_UNREADABLE_QUEUES = 10
_MOST_UNMEASURED_QUEUES = 10
_MOST_SENTENCE_CHARACTERS = 300
_MOST_NAME_CHARACTERS = 80


class ReportedFinding(Struct, frozen=True):
    """A finding as the notification shows it.

    Attributes:
        topic: the key of the finding: its queue and symptom.
        naming_position: the order of naming. If there is no space for all findings, those with the
            lowest positions are named.
        queue_name: the queue's name.
        symptom: the symptom's name.
        sentence: the sentence with the measured numbers.
        severity: the title of its severity class, such as `will lose messages`.
        runbook: the path of the symptom's runbook.
    """

    topic: str
    naming_position: int
    queue_name: str
    symptom: str
    sentence: str
    severity: str
    runbook: str


class UnreadableTarget(Struct, frozen=True):
    """A queue, or a name in the settings, that could not be looked at, with the reason.

    `topic` and `naming_position` are as in ReportedFinding.
    """

    topic: str
    naming_position: int
    name: str
    reason: str


class UnmeasuredQueues(Struct, frozen=True):
    """The names of the queues that a scan did not measure, by the reason.

    Attributes:
        without_budget: the budget of metrics or the time was spent.
        with_metric_gap: CloudWatch lacks some of their counts.
    """

    without_budget: Sequence[str] = ()
    with_metric_gap: Sequence[str] = ()


class ScanReport(Struct, frozen=True):
    """The notification, and the topics (queue and symptom) of the findings that it names.

    Other findings are only counted.
    """

    notification: NotificationText
    named_topics: frozenset[str]


def describe_scan_report(
    findings: Sequence[ReportedFinding],
    unreadable_targets: Sequence[UnreadableTarget],
    unreported_count: int,
    unmeasured_queues: UnmeasuredQueues,
    place: AccountAndRegion,
) -> ScanReport:
    """Return the notification about findings that are new, or that people are reminded of.

    Args:
        findings: the findings, the worst first.
        unreadable_targets: what could not be looked at for hours, in the order of naming.
        unreported_count: the number of further findings for which Mendq has no space to note that
            they were reported.
        unmeasured_queues: the queues that this scan did not measure.
        place: the account and the region.
    """
    subject = make_subject(
        "Mendq found:",
        _name_subject(findings, unreadable_targets, unreported_count),
        format_account_and_region(place.account, place.region),
    )
    named_targets = unreadable_targets[:_MOST_UNREADABLE_QUEUES]
    findings_to_name = _choose_findings_to_name(findings)
    while True:
        named_topics = frozenset(
            [finding.topic for finding in findings_to_name]
            + [target.topic for target in named_targets]
        )
        opening_lines = _make_opening_lines(
            findings, unreadable_targets, len(named_topics), unreported_count
        )
        opening_lines += _describe_unmeasured_queues(unmeasured_queues)
        named_findings = [finding for finding in findings if finding.topic in named_topics]
        sections = _make_sections(named_findings, named_targets, place.region)
        whole_body = make_body(opening_lines, sections, sys.maxsize)
        if len(whole_body.encode()) <= MOST_NOTIFICATION_BYTES or not findings_to_name:
            body = make_body(opening_lines, sections, MOST_NOTIFICATION_BYTES)
            return ScanReport(NotificationText(subject, body), named_topics)
        findings_to_name.pop()


def _choose_findings_to_name(findings: Iterable[ReportedFinding]) -> list[ReportedFinding]:
    """Return the findings to name, in the order of naming, with a limit for each symptom."""
    findings_to_name: list[ReportedFinding] = []
    count_by_symptom = Counter[str]()
    for finding in sorted(findings, key=lambda finding: finding.naming_position):
        if count_by_symptom[finding.symptom] < _MOST_QUEUES_PER_SYMPTOM:
            count_by_symptom[finding.symptom] += 1
            findings_to_name.append(finding)
    return findings_to_name[:_MOST_FINDINGS]


def _make_opening_lines(
    findings: Sequence[ReportedFinding],
    unreadable_targets: Sequence[UnreadableTarget],
    named_count: int,
    unreported_count: int,
) -> list[str]:
    """Return the first lines: a summary, and the numbers of what is not named."""
    summary = _summarize(findings, unreadable_targets, unreported_count)
    opening_lines = [
        make_first_line(f"{summary}.", "Please look."),
        "This stack only scans and reports (scanOnly: true): nothing was changed.",
    ]
    waiting_count = len(findings) + len(unreadable_targets) - named_count
    if waiting_count:
        opening_lines.append(
            f"{waiting_count:,} of them are not named here. The next messages name them."
        )
    if unreported_count:
        opening_lines.append(
            f"{format_count(unreported_count, 'more finding')}: too many to remember, so they are "
            "not reported one by one."
        )
    return opening_lines


def _describe_unmeasured_queues(unmeasured_queues: UnmeasuredQueues) -> list[str]:
    """Return a line for each reason why queues were not measured, with the queues' names."""
    lines = list[str]()
    if unmeasured_queues.without_budget:
        lines.append(
            "Not measured, because the scan's budget of metrics or time was spent: "
            f"{_list_names(unmeasured_queues.without_budget)}. If that repeats, raise "
            "limits.scanMetricsPerDay."
        )
    if unmeasured_queues.with_metric_gap:
        lines.append(
            "Not measured, because CloudWatch lacks some of their counts: "
            f"{_list_names(unmeasured_queues.with_metric_gap)}. The next scan tries again."
        )
    return lines


def _list_names(queue_names: Sequence[str]) -> str:
    """Return the first names as a list, and how many more there are."""
    named = [
        to_plain_text(name, _MOST_NAME_CHARACTERS) for name in queue_names[:_MOST_UNMEASURED_QUEUES]
    ]
    more_count = len(queue_names) - len(named)
    more_text = f" and {format_count(more_count, 'more queue')}" if more_count else ""
    return f"{', '.join(named)}{more_text}"


def _make_sections(
    findings: Sequence[ReportedFinding],
    unreadable_targets: Sequence[UnreadableTarget],
    region: str,
) -> list[Section]:
    """Return a section for each severity, for what could not be looked at, and what to do next."""
    sections = [
        Section(severity.upper(), tuple(_list_finding_lines(findings_of_severity)))
        for severity, findings_of_severity in groupby(findings, lambda finding: finding.severity)
    ]
    unreadable_lines = tuple(
        f"{to_plain_text(target.name, _MOST_NAME_CHARACTERS)}: "
        f"{to_plain_text(target.reason, _MOST_SENTENCE_CHARACTERS)}"
        for target in unreadable_targets
    )
    if unreadable_lines:
        sections.append(Section("NOT LOOKED AT", unreadable_lines))
    next_step_lines = (
        command_or_note(f"mendq scan --dry-run --region {quote(to_plain_text(region, 32))}"),
        "It shows every finding as it is now, and the change that would help.",
        "What is still found is reported again in 7 days.",
    )
    sections.append(Section("NEXT", next_step_lines, can_be_cut=False))
    return sections


def _summarize(
    findings: Sequence[ReportedFinding],
    unreadable_targets: Sequence[UnreadableTarget],
    unreported_count: int,
) -> str:
    """Return the notification's first line without its end: the worst finding, and the numbers."""
    if not findings and not unreadable_targets:
        return f"{format_count(unreported_count, 'finding')} beyond those that Mendq remembers"
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
    findings: Sequence[ReportedFinding],
    unreadable_targets: Sequence[UnreadableTarget],
    unreported_count: int,
) -> str:
    """Return the subject's words between its beginning and the account."""
    if len(findings) == 1 and not unreadable_targets:
        (finding,) = findings
        queue_name = to_plain_text(finding.queue_name, _MOST_NAME_CHARACTERS)
        return f"{symptom_name_in_words(finding.symptom)} on {queue_name}"
    if findings:
        return format_count(len(findings), "finding")
    if unreadable_targets:
        return f"{_count_targets(unreadable_targets)} it cannot look at"
    return format_count(unreported_count, "further finding")


def _count_targets(unreadable_targets: Sequence[UnreadableTarget]) -> str:
    """Return the number of targets in words. A target may be a name that is not a queue's."""
    return format_count(len(unreadable_targets), "queue or name", "queues or names")


def _list_finding_lines(findings: Iterable[ReportedFinding]) -> Iterable[str]:
    """Yield a line for each finding, and the runbook after the findings of a symptom."""
    for symptom, findings_of_symptom in groupby(findings, lambda finding: finding.symptom):
        all_findings = list(findings_of_symptom)
        yield from (
            f"{to_plain_text(finding.queue_name, _MOST_NAME_CHARACTERS)}: "
            f"{symptom_name_in_words(symptom)}: "
            f"{to_plain_text(finding.sentence, _MOST_SENTENCE_CHARACTERS)}"
            for finding in all_findings
        )
        yield f"runbook: {to_plain_text(all_findings[0].runbook)}"
