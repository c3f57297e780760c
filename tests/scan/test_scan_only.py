"""The scan of a scan-only stack: what it reports, when, and what it may not touch."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, cast

import pytest
from botocore.exceptions import EndpointConnectionError
from msgspec import structs

from mendq.aws.errors import NotificationNotSent
from mendq.cases.finding import Finding, ScanResult
from mendq.cases.partitions import ACCOUNT_PARTITION
from mendq.model.case import Severity
from mendq.model.mutes import Mute
from mendq.model.settings import ScanOnlySettings
from mendq.scan.reader import Paces
from mendq.scan.report_notes import FORGET_AFTER, REMIND_AFTER
from mendq.scan.scan_only import ScanOnlyContext, scan_and_report
from mendq.scan.store import SCAN_SUMMARY_KEY, ScanStore
from tests.scan.scanner import (
    Scanner,
    deny_operation,
    deny_queue_attributes,
    make_short_retention_dlq,
    start_next_hour,
)

EXPIRES_SOON = "dlq_retention_too_short"


@dataclass
class ScanOnlyRunner:
    """A scan-only stack in a moto account."""

    scanner: Scanner
    remaining_seconds: Callable[[], float] = lambda: 900.0
    chat: tuple[Severity, ...] = ()
    docs_url: str | None = None

    def run(self) -> ScanResult | None:
        """Run the stack's Lambda once."""
        account = self.scanner.account
        account.deliveries += 1
        settings = ScanOnlySettings(
            account=account.settings.account,
            case_table=account.settings.case_table,
            consent=account.settings.consent,
            urgent_topic_arn=account.settings.urgent_topic_arn,
            chat=self.chat,
            docs_url=self.docs_url,
            mutes=account.settings.mutes,
        )
        context = ScanOnlyContext(
            clients=account.clients,
            settings=settings,
            owner=f"scan-{account.deliveries}",
            now=account.now,
            remaining_seconds=self.remaining_seconds,
            paces=Paces(),
        )
        return scan_and_report(context)

    def run_and_count_queues(self) -> int:
        """Run the stack's Lambda once. Return the number of queues that it scanned."""
        result = self.run()
        assert result is not None
        return result.queues_scanned

    def scan_next_hour(self, hours: int = 1) -> list[tuple[str, str]]:
        """Scan in the hour that many hours later. Return the messages that this run sent."""
        before = len(self.messages)
        self.scanner.account.later(hours=hours - 1)
        start_next_hour(self.scanner.account)
        assert self.run() is not None
        return self.messages[before:]

    @property
    def messages(self) -> list[tuple[str, str]]:
        """The messages in the stack's topic: subject and text."""
        return self.scanner.account.pages("urgent")


@pytest.fixture
def stack(scanner: Scanner) -> ScanOnlyRunner:
    return ScanOnlyRunner(scanner)


def _fail_publish(stack: ScanOnlyRunner) -> Any:
    """Make SNS unreachable. Return the function that ends it."""

    def refuse(**_: Any) -> None:
        raise EndpointConnectionError(endpoint_url="sns")

    events = stack.scanner.account.clients.sns.meta.events
    events.register_first("before-call.sns.Publish", refuse)
    return lambda: events.unregister("before-call.sns.Publish", refuse)


def test_new_finding_is_reported_once_with_queue_sentence_runbook_and_command(
    stack: ScanOnlyRunner,
) -> None:
    make_short_retention_dlq(stack.scanner)
    ((subject, text),) = stack.scan_next_hour()
    assert subject.startswith("Mendq found: ")
    assert subject.endswith("in 123456789012 us-east-1")
    assert "orders-dlq: DLQ retention too short: " in text
    assert f"runbook: docs/runbooks/{EXPIRES_SOON}.md" in text
    assert "mendq scan --dry-run --region us-east-1" in text
    assert "nothing was changed" in text
    assert stack.scan_next_hour() == []


def test_second_run_in_the_same_hour_scans_and_reports_nothing(stack: ScanOnlyRunner) -> None:
    make_short_retention_dlq(stack.scanner)
    stack.scan_next_hour()
    assert stack.run() is None
    assert len(stack.messages) == 1


def test_hour_after_a_cut_off_scan_scans_the_left_over_queue_then_all_queues_and_ends(
    stack: ScanOnlyRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mendq.scan.scan.QUEUES_PER_BLOCK", 1)
    for name in ("a", "b"):
        stack.scanner.account.queue(name)
    start_next_hour(stack.scanner.account)
    time_for_one_queue = iter([900.0])
    stack.remaining_seconds = lambda: next(time_for_one_queue, 0.0)
    assert stack.run_and_count_queues() == 1
    stack.remaining_seconds = lambda: 900.0
    start_next_hour(stack.scanner.account)
    assert stack.run_and_count_queues() == 1, "the queue that was left over"
    assert stack.run_and_count_queues() == 2
    assert stack.run() is None
    start_next_hour(stack.scanner.account)
    assert stack.run_and_count_queues() == 2
    assert stack.run() is None


def test_fault_that_lasts_is_reported_again_after_seven_days_and_not_before(
    stack: ScanOnlyRunner,
) -> None:
    make_short_retention_dlq(stack.scanner)
    assert len(stack.scan_next_hour()) == 1
    hours_between_scans = 12
    last_quiet_scan = REMIND_AFTER // timedelta(hours=hours_between_scans) - 1
    for _ in range(last_quiet_scan):
        assert stack.scan_next_hour(hours_between_scans) == []
    ((_, text),) = stack.scan_next_hour(hours_between_scans)
    assert "orders-dlq" in text


def test_fault_that_comes_back_after_a_day_without_it_is_reported_again(
    stack: ScanOnlyRunner,
) -> None:
    dlq_arn = make_short_retention_dlq(stack.scanner)
    assert len(stack.scan_next_hour()) == 1
    stack.scanner.account.set(dlq_arn, MessageRetentionPeriod="1209600")
    stack.scan_next_hour()
    stack.scanner.account.set(dlq_arn, MessageRetentionPeriod="86400")
    assert stack.scan_next_hour() == [], "it was away for an hour only"
    stack.scanner.account.set(dlq_arn, MessageRetentionPeriod="1209600")
    stack.scan_next_hour(FORGET_AFTER // timedelta(hours=1))
    stack.scanner.account.set(dlq_arn, MessageRetentionPeriod="86400")
    assert len(stack.scan_next_hour()) == 1


def test_finding_is_reported_by_the_next_run_if_sns_does_not_take_the_message(
    stack: ScanOnlyRunner,
) -> None:
    make_short_retention_dlq(stack.scanner)
    start_next_hour(stack.scanner.account)
    end_failure = _fail_publish(stack)
    with pytest.raises(NotificationNotSent):
        stack.run()
    end_failure()
    assert stack.messages == []
    stack.scanner.account.later(minutes=10)
    assert stack.run() is not None
    assert len(stack.messages) == 1


def test_queue_that_cannot_be_read_is_reported_after_two_hours_and_not_before(
    stack: ScanOnlyRunner,
) -> None:
    stack.scanner.account.queue("good", tag="observe")
    bad = stack.scanner.account.queue("bad", tag="observe")
    stack.scan_next_hour()
    deny_queue_attributes(stack.scanner, bad)
    assert [stack.scan_next_hour(), stack.scan_next_hour()] == [[], []]
    ((subject, text),) = stack.scan_next_hour()
    assert "1 queue or name it cannot look at" in subject
    assert "NOT LOOKED AT\n  bad: " in text


def test_queue_read_again_within_two_hours_is_never_reported_as_unreadable(
    stack: ScanOnlyRunner,
) -> None:
    stack.scanner.account.queue("good", tag="observe")
    bad = stack.scanner.account.queue("bad", tag="observe")
    stack.scan_next_hour()
    end_denial = deny_queue_attributes(stack.scanner, bad)
    assert stack.scan_next_hour() == []
    end_denial()
    assert [stack.scan_next_hour() for _ in range(3)] == [[], [], []]


def test_unread_consumers_of_all_queues_are_reported_as_one_target(stack: ScanOnlyRunner) -> None:
    for name in ("one", "other"):
        stack.scanner.account.queue(name, tag="observe")
    away = EndpointConnectionError(endpoint_url="lambda")
    functions = stack.scanner.account.clients.functions
    deny_operation(functions, "ListEventSourceMappings", unreachable=away)
    texts = [text for _ in range(4) for _, text in stack.scan_next_hour()]
    (line,) = [line for text in texts for line in text.splitlines() if "not judged" in line]
    assert line.startswith("  Lambda consumers: consumers not judged: ")
    assert "This concerns 2 queues; symptoms that do not depend on consumers were checked" in line


def test_scan_only_run_writes_only_the_case_stores_account_partition_and_no_queue(
    stack: ScanOnlyRunner,
) -> None:
    dlq_arn = make_short_retention_dlq(stack.scanner)
    attributes_before = stack.scanner.account.attributes(dlq_arn)
    items_before = set(stack.scanner.account.case_store_items())
    stack.scan_next_hour()
    new_items = set(stack.scanner.account.case_store_items()) - items_before
    assert {partition for partition, _ in new_items} == {ACCOUNT_PARTITION}
    assert stack.scanner.account.attributes(dlq_arn) == attributes_before
    assert stack.scanner.heal_requests == []
    assert stack.scanner.account.transitions() == []


def test_scan_only_run_calls_no_s3_and_reads_only_the_case_stores_account_partition(
    stack: ScanOnlyRunner,
) -> None:
    make_short_retention_dlq(stack.scanner)
    clients = stack.scanner.account.clients
    partitions: set[str] = set()

    def refuse_s3(**_: Any) -> None:
        raise AssertionError("a scan-only stack has no bucket")

    def note_partition(params: Any, **_: Any) -> None:
        partitions.add(params["Key"]["pk"]["S"])

    clients.s3.meta.events.register_first("before-call", refuse_s3)
    note = cast("Any", note_partition)
    for operation in ("GetItem", "UpdateItem"):
        clients.dynamodb.meta.events.register(f"provide-client-params.dynamodb.{operation}", note)
    stack.scan_next_hour()
    assert partitions == {ACCOUNT_PARTITION}


def test_message_has_the_runbooks_web_address_and_the_chat_format_if_the_settings_ask_for_them(
    scanner: Scanner,
) -> None:
    docs_url = "https://wiki.example.com/docs/*.md"
    stack = ScanOnlyRunner(scanner, chat=(Severity.URGENT,), docs_url=docs_url)
    make_short_retention_dlq(scanner)
    ((_, text),) = stack.scan_next_hour()
    assert "https://wiki.example.com/docs/runbooks/" in text
    assert '"version":"1.0"' in text.replace("\\", "").replace(" ", "")


def test_notes_that_cannot_be_read_are_replaced_and_the_fault_is_reported_again(
    stack: ScanOnlyRunner,
) -> None:
    make_short_retention_dlq(stack.scanner)
    stack.scan_next_hour()
    account = stack.scanner.account
    account.clients.dynamodb.update_item(
        TableName=account.settings.case_table,
        Key={"pk": {"S": ACCOUNT_PARTITION}, "sk": {"S": "reported"}},
        UpdateExpression="SET notes = :notes",
        ExpressionAttributeValues={":notes": {"S": '{"a": ["x"]}'}},
    )
    assert len(stack.scan_next_hour()) == 1
    assert stack.scan_next_hour() == []


def test_finding_that_a_message_did_not_name_is_named_by_the_next_one(
    stack: ScanOnlyRunner,
) -> None:
    """Twelve queues of somebody else, whose names come first, cannot hide `orders-dlq`."""
    for number in range(12):
        make_short_retention_dlq(stack.scanner, f"aa{number:02}")
    make_short_retention_dlq(stack.scanner)
    ((_, first_text),) = stack.scan_next_hour()
    assert " of them are not named here" in first_text
    ((_, second_text),) = stack.scan_next_hour()
    names = ["orders-dlq", *(f"aa{number:02}-dlq" for number in range(12))]
    for name in names:
        line_start = f"  {name}: DLQ retention too short: "
        assert (first_text + second_text).count(line_start) == 1


def test_stack_without_space_for_notes_still_reports_the_number_of_new_findings(
    stack: ScanOnlyRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_short_retention_dlq(stack.scanner)
    stack.scan_next_hour()
    account = stack.scanner.account
    store = ScanStore(account.clients.dynamodb, account.settings.case_table, "reader")
    monkeypatch.setattr("mendq.scan.report_notes.MAXIMUM_NOTES", len(store.read_report_notes()))
    # Its findings are hygiene, so they replace no note.
    account.queue("payments", tag="heal")
    ((subject, text),) = stack.scan_next_hour()
    assert "further finding" in subject
    assert ": too many to remember" in text
    assert "payments" not in text
    assert stack.scan_next_hour() == []


def test_summary_names_queues_that_the_budget_left_out_with_the_reason(
    stack: ScanOnlyRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue_arn = stack.scanner.account.queue("orders", tag="observe")
    skipped = ScanResult(skip_reason_by_arn={queue_arn: "no metrics are left"})
    monkeypatch.setattr("mendq.scan.scan_only.scan", lambda *_: iter([skipped]))
    stack.scan_next_hour()
    summary = _read_summary(stack)
    assert summary["skipped_because"] == {queue_arn: "no metrics are left"}


def _read_summary(stack: ScanOnlyRunner) -> dict[str, Any]:
    store = ScanStore(stack.scanner.account.clients.dynamodb, "case_store", "test")
    summary: dict[str, Any] = json.loads(store.get(SCAN_SUMMARY_KEY)["summary"]["S"])
    return summary


def _mute_dlq(stack: ScanOnlyRunner, until: date) -> None:
    account = stack.scanner.account
    mute = Mute("orders-dlq", EXPIRES_SOON, "nobody needs these messages", until)
    account.settings = structs.replace(account.settings, mutes=(mute,))


def test_muted_finding_is_not_reported_until_its_mute_has_ended(stack: ScanOnlyRunner) -> None:
    make_short_retention_dlq(stack.scanner)
    today = stack.scanner.account.now.date()
    _mute_dlq(stack, today)
    assert [text for _, text in stack.scan_next_hour() if "retention too short" in text] == []
    messages = stack.scan_next_hour(hours=24)
    assert ["retention too short" in text for _, text in messages] == [True]


def test_summary_counts_muted_findings_by_class_and_says_what_each_mute_is_for(
    stack: ScanOnlyRunner,
) -> None:
    make_short_retention_dlq(stack.scanner)
    _mute_dlq(stack, stack.scanner.account.now.date())
    stack.scan_next_hour()
    summary = _read_summary(stack)
    assert summary["muted"] == [{"class": "will_lose"}]
    assert [(use["findings"], use["checked"]) for use in summary["mutes"]] == [(1, 1)]


def test_run_that_did_not_reach_all_queues_calls_no_mute_stale(
    stack: ScanOnlyRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mendq.scan.scan.QUEUES_PER_BLOCK", 1)
    make_short_retention_dlq(stack.scanner)
    stack.scanner.account.queue("payments")
    _mute_dlq(stack, stack.scanner.account.now.date())
    times = iter([900.0])
    stack.remaining_seconds = lambda: next(times, 100.0)
    stack.scan_next_hour()
    summary = _read_summary(stack)
    assert (summary["queues_scanned"], summary["mutes"]) == (1, [])


def test_message_names_at_most_ten_of_the_queues_that_were_not_measured_in_one_line(
    stack: ScanOnlyRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    dlq_arn = make_short_retention_dlq(stack.scanner)
    finding = Finding(dlq_arn, EXPIRES_SOON, "it keeps messages for 1 d")
    prefix = dlq_arn.removesuffix("orders-dlq")
    skipped = {f"{prefix}q-{number:02}": "no metrics are left" for number in range(12)}
    result = ScanResult(findings=(finding,), skip_reason_by_arn=skipped)
    monkeypatch.setattr("mendq.scan.scan_only.scan", lambda *_: iter([result]))
    ((_, text),) = stack.scan_next_hour()
    names = ", ".join(f"q-{number:02}" for number in range(10))
    assert (
        f"Not measured, because the scan's budget of metrics or time was spent: {names} and 2 more "
        "queues. If that repeats, raise limits.scanMetricsPerDay."
    ) in text.splitlines()


def test_message_does_not_ask_for_more_metrics_if_cloudwatch_lacks_counts_of_a_queue(
    stack: ScanOnlyRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    dlq_arn = make_short_retention_dlq(stack.scanner)
    finding = Finding(dlq_arn, EXPIRES_SOON, "it keeps messages for 1 d")
    gaps = {dlq_arn.removesuffix("-dlq"): "CloudWatch has no datapoint"}
    result = ScanResult(findings=(finding,), gap_reason_by_arn=gaps)
    monkeypatch.setattr("mendq.scan.scan_only.scan", lambda *_: iter([result]))
    ((_, text),) = stack.scan_next_hour()
    assert "scanMetricsPerDay" not in text
    assert "Not measured, because CloudWatch lacks some of their counts: orders." in text


def test_message_has_no_line_about_unmeasured_queues_if_all_were_measured(
    stack: ScanOnlyRunner,
) -> None:
    make_short_retention_dlq(stack.scanner)
    ((_, text),) = stack.scan_next_hour()
    assert "Not measured" not in text


def test_unmeasured_queues_alone_send_no_message(
    stack: ScanOnlyRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue_arn = stack.scanner.account.queue("orders", tag="observe")
    skipped = ScanResult(skip_reason_by_arn={queue_arn: "no metrics are left"})
    monkeypatch.setattr("mendq.scan.scan_only.scan", lambda *_: iter([skipped]))
    assert stack.scan_next_hour() == []
