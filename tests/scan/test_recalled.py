"""Test that a scan reuses SQS's answers of the hour before, and when it reads them again."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from mendq.catalogue import CATALOGUE
from mendq.catalogue.symptom import QueueExample
from mendq.model.facts import Facts, Need
from mendq.model.queue import RedrivePolicy
from mendq.model.time_text import format_time
from mendq.scan.store import MAXIMUM_OBJECT_BYTES
from tests.scan.scanner import Scanner, make_slow_symptom, start_next_hour

SOURCES = "ListDeadLetterSourceQueues"
ATTRIBUTES = "GetQueueAttributes"


def _make_pair(scanner: Scanner) -> tuple[str, str]:
    """Make a managed queue and its unmanaged DLQ, both empty."""
    dead = scanner.account.queue("orders-dlq", tag=None, MessageRetentionPeriod="1209600")
    queue = scanner.account.queue("orders", RedrivePolicy=RedrivePolicy(dead, 5).text)
    start_next_hour(scanner.account)
    return queue, dead


def _count_calls(scanner: Scanner) -> Counter[tuple[str, str]]:
    """Return a counter that fills with the calls to SQS, by operation and queue."""
    calls = Counter[tuple[str, str]]()

    def note(params: Any, model: Any, **_: Any) -> None:
        url = json.loads(params["body"]).get("QueueUrl", "")
        calls[model.name, url.rpartition("/")[2]] += 1

    scanner.account.clients.sqs.meta.events.register("before-call.sqs", note)
    return calls


def _run_scans(scanner: Scanner, how_many: int = 4) -> None:
    for _ in range(how_many):
        scanner.run_due_scan()
        start_next_hour(scanner.account)


def test_scan_reads_the_dlq_and_sources_of_an_empty_queue_only_every_second_hour(
    scanner: Scanner,
) -> None:
    _make_pair(scanner)
    calls = _count_calls(scanner)
    _run_scans(scanner, 5)
    assert calls[ATTRIBUTES, "orders"] == 5, "itself in each"
    assert calls[ATTRIBUTES, "orders-dlq"] == 3
    assert calls[SOURCES, "orders"] == 3


def test_scan_reads_the_dlq_and_sources_of_a_suspect_queue_every_hour(scanner: Scanner) -> None:
    queue, _ = _make_pair(scanner)
    url = scanner.account.url(queue)
    scanner.account.clients.sqs.send_message(QueueUrl=url, MessageBody="waits")
    scanner.account.later(days=1)
    calls = _count_calls(scanner)
    for _ in range(4):
        scanner.put_metrics(
            queue, scanner.account.now - timedelta(minutes=30), visible=9, received=9
        )
        scanner.run_due_scan()
        start_next_hour(scanner.account)
    assert calls[ATTRIBUTES, "orders-dlq"] == 4
    assert calls[SOURCES, "orders"] == 4


def _put_balanced_traffic(scanner: Scanner, queue: str) -> None:
    """Send metrics of the last hour in which each message was deleted."""
    for minutes in range(1, 60):
        at = scanner.account.now - timedelta(minutes=minutes)
        scanner.put_metrics(queue, at, sent=1, received=1, deleted=1)


def test_scan_reads_the_unmanaged_dlq_of_a_queue_in_use_every_hour(scanner: Scanner) -> None:
    queue, _ = _make_pair(scanner)
    calls = _count_calls(scanner)
    for scan_number in range(6):
        if scan_number == 2:
            # By now an earlier scan knows that the queue is in use.
            calls.clear()
        _put_balanced_traffic(scanner, queue)
        scanner.run_due_scan([make_slow_symptom()])
        start_next_hour(scanner.account)
    assert calls[ATTRIBUTES, "orders-dlq"] == 4


def test_first_message_in_the_dlq_of_a_queue_in_use_is_noticed_within_the_hour(
    scanner: Scanner,
) -> None:
    queue, dead = _make_pair(scanner)
    symptoms = [make_slow_symptom()]
    for _ in range(3):
        _put_balanced_traffic(scanner, queue)
        assert queue not in scanner.run_due_scan(symptoms).measuring_reason_by_arn
        start_next_hour(scanner.account)
    for hour in range(2):
        _put_balanced_traffic(scanner, queue)
        url = scanner.account.url(dead)
        scanner.account.clients.sqs.send_message(QueueUrl=url, MessageBody=f"failed {hour}")
        assert queue in scanner.run_due_scan(symptoms).measuring_reason_by_arn
        start_next_hour(scanner.account)


@pytest.mark.parametrize("hours", [2, 24])
def test_scan_does_not_reuse_answers_older_than_the_hour_before(
    scanner: Scanner, hours: int
) -> None:
    _make_pair(scanner)
    calls = _count_calls(scanner)
    for _ in range(3):
        scanner.run_due_scan()
        start_next_hour(scanner.account)
        scanner.account.later(hours=hours - 1)
    assert (calls[ATTRIBUTES, "orders-dlq"], calls[SOURCES, "orders"]) == (3, 3)


_LONE_SURROGATE = zlib.compress(b'{"round":"\xed\xa0\x80"}')
_DEEP_NESTING = zlib.compress(b'{"x":' + b"[" * 10**5)


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"x\x9c\x03", b"0" * 9, _LONE_SURROGATE, _DEEP_NESTING],
    ids=["empty", "not compressed", "cut off", "no zlib", "lone surrogate", "deep nesting"],
)
def test_scan_ignores_a_damaged_answer_cache_and_reads_again(scanner: Scanner, body: bytes) -> None:
    _make_pair(scanner)
    calls = _count_calls(scanner)
    for _ in range(3):
        assert scanner.run_due_scan().error_by_target == {}
        for turn in (0, 1):
            key = f"findings/answers-{turn}.json.z"
            scanner.account.clients.s3.put_object(Bucket="cases", Key=key, Body=body)
        start_next_hour(scanner.account)
    assert (calls[ATTRIBUTES, "orders-dlq"], calls[SOURCES, "orders"]) == (3, 3)


@pytest.mark.parametrize(
    "forged",
    [
        {"attributes": {"ApproximateNumberOfMessages": "x"}},
        {"attributes": {"ApproximateNumberOfMessagesDelayed": "-1"}},
        {"attributes": {"ApproximateNumberOfMessagesNotVisible": "9" * 5_000}},
        {"attributes": {"CreatedTimestamp": "9" * 12}},
        {"attributes": {"MessageRetentionPeriod": "4 days"}},
        {"sources": ["orders"]},
    ],
    ids=["text", "negative", "too long", "no time", "unit", "no ARN"],
)
def test_scan_ignores_forged_answers_that_sqs_never_gives_and_reads_again(
    scanner: Scanner, forged: dict[str, Any]
) -> None:
    """Who may put one object into the case bucket could otherwise stop every scan."""
    _, dead = _make_pair(scanner)
    calls = _count_calls(scanner)
    for _ in range(3):
        assert scanner.run_due_scan().error_by_target == {}
        hour = scanner.account.now.replace(minute=0, second=0, microsecond=0)
        answers = {
            "round": format_time(hour),
            "attributes": {dead: forged.get("attributes", {})},
            "sources": {dead: forged.get("sources", [])},
        }
        body = zlib.compress(json.dumps(answers).encode())
        for turn in (0, 1):
            key = f"findings/answers-{turn}.json.z"
            scanner.account.clients.s3.put_object(Bucket="cases", Key=key, Body=body)
        start_next_hour(scanner.account)
    assert (calls[ATTRIBUTES, "orders-dlq"], calls[SOURCES, "orders"]) == (3, 3)


def test_scan_ignores_an_answer_cache_above_its_size_limit_and_reads_again(
    scanner: Scanner,
) -> None:
    _make_pair(scanner)
    calls = _count_calls(scanner)
    s3 = scanner.account.clients.s3
    for _ in range(3):
        assert scanner.run_due_scan().error_by_target == {}
        listing = s3.list_objects_v2(Bucket="cases", Prefix="findings/answers-")
        for key in [stored["Key"] for stored in listing["Contents"]]:
            answers = zlib.decompress(s3.get_object(Bucket="cases", Key=key)["Body"].read())
            padded_answers = zlib.compress(b" " * MAXIMUM_OBJECT_BYTES + answers.lstrip())
            s3.put_object(Bucket="cases", Key=key, Body=padded_answers)
        start_next_hour(scanner.account)
    assert (calls[ATTRIBUTES, "orders-dlq"], calls[SOURCES, "orders"]) == (3, 3)


def test_size_limit_of_the_answer_cache_is_below_100_megabytes() -> None:
    """A Lambda has no room for more."""
    assert MAXIMUM_OBJECT_BYTES < 10**8


def test_deleted_dlq_is_found_within_two_scans_despite_the_answer_cache(scanner: Scanner) -> None:
    queue, dead = _make_pair(scanner)
    _run_scans(scanner, 2)
    scanner.account.clients.sqs.delete_queue(QueueUrl=scanner.account.url(dead))
    _run_scans(scanner, 2)
    findings = scanner.read_findings(scanner.account.now - timedelta(hours=1))["findings"]
    faults = {(finding["queue_arn"], finding["symptom"]) for finding in findings}
    assert (queue, "dlq_missing") in faults


def test_scan_reads_a_queue_every_hour_once_the_queue_is_managed(scanner: Scanner) -> None:
    _, dead = _make_pair(scanner)
    _run_scans(scanner, 2)
    scanner.account.tag(dead, mendq="heal")
    calls = _count_calls(scanner)
    _run_scans(scanner, 4)
    assert calls[ATTRIBUTES, "orders-dlq"] == 4


def test_queues_left_over_from_a_cut_off_hour_are_scanned_first_in_the_next_hour(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mendq.scan.scan.QUEUES_PER_BLOCK", 1)
    names = [scanner.account.queue(f"q-{n}").rpartition(":")[2] for n in range(4)]
    symptoms = [make_slow_symptom(is_fault_of_configuration=True)]
    start_next_hour(scanner.account)
    found_by_scan = list[list[str]]()
    for blocks in (2, 9, 9):
        times = iter([900.0] * blocks)
        scanner.remaining_seconds = lambda times=times: next(times, 100.0)  # type: ignore[misc]
        done = scanner.run_due_scan(symptoms)
        found_by_scan.append([finding.queue_arn.rpartition(":")[2] for finding in done.findings])
        if len(found_by_scan) == 1:
            start_next_hour(scanner.account)
        scanner.account.later(minutes=10)
    assert found_by_scan == [names[:2], names[2:], names], "and then all from the first name on"
    assert len(scanner.read_findings()["findings"]) == 4
    assert scanner.scan(symptoms) is None


def _run_scan_of_blocks(scanner: Scanner, blocks: int, symptoms: Sequence[Any]) -> list[str]:
    """Run the scan with time for this many blocks of one queue. Return the scanned queues."""
    times = iter([900.0] * blocks)
    scanner.remaining_seconds = lambda: next(times, 100.0)
    done = scanner.run_due_scan(symptoms)
    scanner.account.later(minutes=10)
    return [finding.queue_arn.rpartition(":")[2] for finding in done.findings]


def test_all_queues_are_scanned_after_left_over_queues_that_took_several_runs(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mendq.scan.scan.QUEUES_PER_BLOCK", 1)
    names = [scanner.account.queue(f"q-{n}").rpartition(":")[2] for n in range(4)]
    symptoms = [make_slow_symptom(is_fault_of_configuration=True)]
    start_next_hour(scanner.account)
    assert _run_scan_of_blocks(scanner, 1, symptoms) == names[:1]
    start_next_hour(scanner.account)
    assert _run_scan_of_blocks(scanner, 1, symptoms) == names[1:2]
    assert _run_scan_of_blocks(scanner, 9, symptoms) == names[2:]
    assert _run_scan_of_blocks(scanner, 9, symptoms) == names
    assert scanner.scan(symptoms) is None


def test_all_queues_are_scanned_after_a_run_died_while_it_scanned_left_over_queues(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mendq.scan.scan.QUEUES_PER_BLOCK", 1)
    names = [scanner.account.queue(f"q-{n}").rpartition(":")[2] for n in range(3)]
    symptoms = [make_slow_symptom(is_fault_of_configuration=True)]
    start_next_hour(scanner.account)
    assert _run_scan_of_blocks(scanner, 1, symptoms) == names[:1]
    start_next_hour(scanner.account)
    assert scanner.context().scan_store.claim_stretch(scanner.account.now)
    scanner.account.later(minutes=20)
    assert _run_scan_of_blocks(scanner, 9, symptoms) == names[1:]
    assert _run_scan_of_blocks(scanner, 9, symptoms) == names


@pytest.mark.parametrize("symptom", CATALOGUE, ids=lambda symptom: symptom.name)
def test_running_redrive_can_only_remove_findings_of_a_symptom_and_never_add_one(
    symptom: Any,
) -> None:
    """So a scan needs to look for a redrive only after it found something."""
    detection = symptom.detection
    if detection is None or Need.MOVE_TASKS not in detection.needs:
        return
    examples = symptom.examples()
    assert any(isinstance(example, QueueExample) for example in examples)
    for example in examples:
        facts = getattr(example, "facts", None)
        if not isinstance(facts, Facts):
            continue
        during_redrive = detection.detect(replace(facts, move_task_running=True))
        without_redrive = detection.detect(replace(facts, move_task_running=False))
        assert without_redrive or not during_redrive, example
