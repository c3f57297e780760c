"""The message of a scan-only stack: order, length, and texts of other parties."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mendq.model.account_and_region import AccountAndRegion
from mendq.notifications.notification import symptom_name_in_words
from mendq.notifications.scan_report import (
    ReportedFinding,
    ScanReport,
    UnmeasuredQueues,
    UnreadableTarget,
    describe_scan_report,
)
from mendq.notifications.sent import (
    MOST_NOTIFICATION_BYTES,
    MOST_SUBJECT_CHARACTERS,
    NotificationText,
)
from tests.clickable import HOSTILE_NAMES, find_links

ACCOUNT = "123456789012"
REGION = "eu-west-1"


def _make_finding(
    queue_name: str = "orders",
    symptom: str = "dlq_missing",
    severity: str = "at risk",
    sentence: str = "it has no DLQ",
    naming_position: int = 0,
) -> ReportedFinding:
    return ReportedFinding(
        f"{queue_name} {symptom}",
        naming_position,
        queue_name,
        symptom,
        sentence,
        severity,
        f"docs/runbooks/{symptom}.md",
    )


def _make_unreadable(name: str, reason: str = "denied") -> UnreadableTarget:
    return UnreadableTarget(f"not looked at: {name}", 0, name, reason)


ALL_MEASURED = UnmeasuredQueues()


def _report(
    *findings: ReportedFinding,
    unreadable: tuple[UnreadableTarget, ...] = (),
    unreported_count: int = 0,
    unmeasured: UnmeasuredQueues = ALL_MEASURED,
) -> ScanReport:
    return describe_scan_report(
        findings, unreadable, unreported_count, unmeasured, AccountAndRegion(ACCOUNT, REGION)
    )


def _describe(
    *findings: ReportedFinding,
    unreadable: tuple[UnreadableTarget, ...] = (),
    unreported_count: int = 0,
    unmeasured: UnmeasuredQueues = ALL_MEASURED,
) -> NotificationText:
    return _report(
        *findings,
        unreadable=unreadable,
        unreported_count=unreported_count,
        unmeasured=unmeasured,
    ).notification


def test_one_finding_is_named_in_the_subject_and_the_first_line() -> None:
    report = _describe(_make_finding())
    assert report.subject == f"Mendq found: DLQ missing on orders in {ACCOUNT} {REGION}"
    assert report.body.startswith("orders: DLQ missing. Please look.\n")
    assert "AT RISK\n  orders: DLQ missing: it has no DLQ\n  runbook: " in report.body


def test_findings_have_one_section_per_severity_in_the_given_order_and_each_runbook_once() -> None:
    report = _describe(
        _make_finding("a", "messages_about_to_expire", "losing messages"),
        _make_finding("b"),
        _make_finding("c"),
    )
    assert report.subject == f"Mendq found: 3 findings in {ACCOUNT} {REGION}"
    assert report.body.index("LOSING MESSAGES") < report.body.index("AT RISK")
    assert report.body.count("runbook: docs/runbooks/dlq_missing.md") == 1


def test_thousand_findings_fit_and_keep_the_command_and_the_number_of_the_rest() -> None:
    report = _describe(
        *(_make_finding(f"orders-{n:04}", sentence="x" * 400) for n in range(1_000)),
        unreported_count=7,
    )
    assert len(report.body.encode()) <= MOST_NOTIFICATION_BYTES
    assert "and 999 other findings" in report.body
    assert "7 more findings: too many to remember" in report.body
    assert f"mendq scan --dry-run --region {REGION}" in report.body


def test_report_says_that_it_named_exactly_what_its_text_names() -> None:
    findings = [
        _make_finding(f"q{number:03}", symptom, sentence="x" * 300, naming_position=100 - number)
        for symptom in ("dlq_missing", "dlq_retention_too_short", "visibility_timeout_too_short")
        for number in range(30)
    ]
    targets = tuple(_make_unreadable(f"u{number:03}", "x" * 300) for number in range(15))
    report = _report(*findings, unreadable=targets)
    body = report.notification.body
    shown_lines = [line for line in body.splitlines() if line.startswith(("  q", "  u"))]
    assert len(shown_lines) == len(report.named_topics)
    for finding in findings:
        line_start = f"  {finding.queue_name}: {symptom_name_in_words(finding.symptom)}: "
        assert (line_start in body) == (finding.topic in report.named_topics)
    assert all(f"  {target.name}: " in body for target in targets[:10])
    assert f"{len(findings) + len(targets) - len(shown_lines)} of them are not named here" in body


def test_findings_with_the_lowest_naming_positions_are_named() -> None:
    findings = [_make_finding(f"q{number:02}", naming_position=99 - number) for number in range(20)]
    named_topics = _report(*findings).named_topics
    assert named_topics == {finding.topic for finding in findings[-10:]}


def test_number_of_findings_without_a_note_is_a_message_of_its_own() -> None:
    report = _describe(unreported_count=3)
    assert report.subject == f"Mendq found: 3 further findings in {ACCOUNT} {REGION}"
    assert "3 more findings: too many to remember" in report.body
    assert f"mendq scan --dry-run --region {REGION}" in report.body


@given(name=HOSTILE_NAMES, other_name=HOSTILE_NAMES, is_unreadable=st.booleans())
def test_hostile_names_sentences_and_reasons_make_no_link_and_no_line_of_their_own(
    name: str, other_name: str, *, is_unreadable: bool
) -> None:
    hostile = _make_unreadable(name, other_name)
    report = _describe(
        _make_finding(name, sentence=other_name),
        unreadable=(hostile,) if is_unreadable else (),
        unmeasured=UnmeasuredQueues((name,), (other_name,)),
    )
    harmless = _make_unreadable("orders")
    expected = _describe(
        _make_finding(),
        unreadable=(harmless,) if is_unreadable else (),
        unmeasured=UnmeasuredQueues(("a",), ("b",)),
    )
    assert find_links(report.subject) == find_links(report.body) == []
    assert report.body.count("\n") == expected.body.count("\n")
    assert report.body.replace("\n", "").isprintable()
    assert report.body.isascii()
    assert report.subject.isascii()
    assert len(report.subject) <= MOST_SUBJECT_CHARACTERS


def test_subject_has_no_link_that_only_the_cut_in_its_middle_made() -> None:
    name = "mailto:a@a.comjohn.doe@x-1.s3.www.xn--p1aimailto:a@evil.evil.evil.com"
    report = _describe(_make_finding(name))
    assert find_links(report.subject) == []
    assert len(report.subject) <= MOST_SUBJECT_CHARACTERS
