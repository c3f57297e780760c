"""What a round goes by that the one before was answered, and what it asks all the same."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from mendq.catalogue import CATALOGUE
from mendq.catalogue.symptom import QueueExample
from mendq.model.facts import Facts, Need
from mendq.model.queue import RedrivePolicy
from mendq.scan.store import MAXIMUM_OBJECT_BYTES
from tests.scan.scanner import Scanner, make_slow_symptom, start_next_hour

SOURCES, ATTRIBUTES = "ListDeadLetterSourceQueues", "GetQueueAttributes"


def _pair(scanner: Scanner) -> tuple[str, str]:
    """A managed queue and its DLQ, which is not managed; both empty."""
    dead = scanner.account.queue("orders-dlq", tag=None, MessageRetentionPeriod="1209600")
    queue = scanner.account.queue("orders", RedrivePolicy=RedrivePolicy(dead, 5).text)
    start_next_hour(scanner.account)
    return queue, dead


def _asked(scanner: Scanner) -> Counter[tuple[str, str]]:
    """Fills with what SQS is asked about which queue."""
    asked = Counter[tuple[str, str]]()

    def note(params: Any, model: Any, **_: Any) -> None:
        url = json.loads(params["body"]).get("QueueUrl", "")
        asked[model.name, url.rpartition("/")[2]] += 1

    scanner.account.clients.sqs.meta.events.register("before-call.sqs", note)
    return asked


def _rounds(scanner: Scanner, how_many: int = 4) -> None:
    for _ in range(how_many):
        scanner.run_due_scan()
        start_next_hour(scanner.account)


def test_what_is_around_an_empty_queue_is_asked_in_every_second_round(scanner: Scanner) -> None:
    _pair(scanner)
    asked = _asked(scanner)
    _rounds(scanner, 5)
    assert asked[ATTRIBUTES, "orders"] == 5, "itself in each"
    assert asked[ATTRIBUTES, "orders-dlq"] == 3
    assert asked[SOURCES, "orders"] == 3


def test_around_a_queue_that_is_to_be_measured_all_is_asked_in_each(scanner: Scanner) -> None:
    queue, _ = _pair(scanner)
    url = scanner.account.url(queue)
    scanner.account.clients.sqs.send_message(QueueUrl=url, MessageBody="waits")
    scanner.account.later(days=1)
    asked = _asked(scanner)
    for _ in range(4):
        scanner.put_metrics(
            queue, scanner.account.now - timedelta(minutes=30), visible=9, received=9
        )
        scanner.run_due_scan()
        start_next_hour(scanner.account)
    assert asked[ATTRIBUTES, "orders-dlq"] >= 3
    assert asked[SOURCES, "orders"] == 4


@pytest.mark.parametrize("hours", [2, 24])
def test_an_answer_of_an_older_round_is_asked_for_again(scanner: Scanner, hours: int) -> None:
    _pair(scanner)
    asked = _asked(scanner)
    for _ in range(3):
        scanner.run_due_scan()
        start_next_hour(scanner.account)
        scanner.account.later(hours=hours - 1)
    assert (asked[ATTRIBUTES, "orders-dlq"], asked[SOURCES, "orders"]) == (3, 3)


_JSON = [zlib.compress(each) for each in (b'{"round":"\xed\xa0\x80"}', b'{"x":' + b"[" * 10**5)]


@pytest.mark.parametrize("body", [b"", b"{}", b"x\x9c\x03", b"0" * 9, *_JSON], ids=range(6))
def test_what_is_no_answer_is_not_believed(scanner: Scanner, body: bytes) -> None:
    _pair(scanner)
    asked = _asked(scanner)
    for _ in range(3):
        assert scanner.run_due_scan().error_by_target == {}
        for turn in (0, 1):
            key = f"findings/answers-{turn}.json.z"
            scanner.account.clients.s3.put_object(Bucket="cases", Key=key, Body=body)
        start_next_hour(scanner.account)
    assert (asked[ATTRIBUTES, "orders-dlq"], asked[SOURCES, "orders"]) == (3, 3)
    assert MAXIMUM_OBJECT_BYTES < 10**8, "what a Lambda has room for"


def test_a_dlq_that_is_gone_is_found_a_round_late_at_most(scanner: Scanner) -> None:
    queue, dead = _pair(scanner)
    _rounds(scanner, 2)
    scanner.account.clients.sqs.delete_queue(QueueUrl=scanner.account.url(dead))
    _rounds(scanner, 2)
    found = scanner.read_findings(scanner.account.now - timedelta(hours=1))["findings"]
    assert (queue, "dlq_missing") in {(each["queue_arn"], each["symptom"]) for each in found}


def test_a_queue_that_is_managed_by_now_is_asked_itself(scanner: Scanner) -> None:
    _, dead = _pair(scanner)
    _rounds(scanner, 2)
    scanner.account.tag(dead, mendq="heal")
    asked = _asked(scanner)
    _rounds(scanner, 4)
    assert asked[ATTRIBUTES, "orders-dlq"] == 4


def test_what_an_hour_was_too_short_for_comes_first_in_the_next(
    scanner: Scanner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mendq.scan.scan.QUEUES_PER_BLOCK", 1)
    names = [scanner.account.queue(f"q-{n}").rpartition(":")[2] for n in range(4)]
    symptoms, seen = [make_slow_symptom(of_configuration=True)], list[list[str]]()
    start_next_hour(scanner.account)
    for stretches in (2, 9, 9):
        left = iter([900.0] * stretches)
        scanner.remaining_seconds = lambda left=left: next(left, 100.0)  # type: ignore[misc]
        done = scanner.run_due_scan(symptoms)
        seen.append([each.queue_arn.rpartition(":")[2] for each in done.findings])
        if len(seen) == 1:
            start_next_hour(scanner.account)
        scanner.account.later(minutes=10)
    assert seen == [names[:2], names[2:], names], "and then from the first name on"
    assert len(scanner.read_findings()["findings"]) == 4
    assert scanner.scan(symptoms) is None


@pytest.mark.parametrize("symptom", CATALOGUE, ids=lambda each: each.name)
def test_a_redrive_takes_findings_away_and_makes_none(symptom: Any) -> None:
    """So that nobody asks for one where nothing would be found."""
    detection = symptom.detection
    if detection is None or Need.MOVE_TASKS not in detection.needs:
        return
    for each in symptom.examples():
        if isinstance(facts := getattr(each, "facts", None), Facts):
            moved, stands = (
                detection.detect(replace(facts, move_task_running=moving))
                for moving in (True, False)
            )
            assert not moved or stands, each
    assert any(isinstance(each, QueueExample) for each in symptom.examples())
