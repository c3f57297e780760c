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
from tests.scan.scanning import Scanning, an_hour_on
from tests.scan.test_scan import slow

SOURCES, ATTRIBUTES = "ListDeadLetterSourceQueues", "GetQueueAttributes"


def _pair(scanned: Scanning) -> tuple[str, str]:
    """A managed queue and its DLQ, which is not managed; both empty."""
    dead = scanned.account.queue("orders-dlq", tag=None, MessageRetentionPeriod="1209600")
    queue = scanned.account.queue("orders", RedrivePolicy=RedrivePolicy(dead, 5).text)
    an_hour_on(scanned.account)
    return queue, dead


def _asked(scanned: Scanning) -> Counter[tuple[str, str]]:
    """Fills with what SQS is asked about which queue."""
    asked = Counter[tuple[str, str]]()

    def note(params: Any, model: Any, **_: Any) -> None:
        url = json.loads(params["body"]).get("QueueUrl", "")
        asked[model.name, url.rpartition("/")[2]] += 1

    scanned.account.clients.sqs.meta.events.register("before-call.sqs", note)
    return asked


def _rounds(scanned: Scanning, how_many: int = 4) -> None:
    for _ in range(how_many):
        scanned.done()
        an_hour_on(scanned.account)


def test_what_is_around_an_empty_queue_is_asked_in_every_second_round(scanned: Scanning) -> None:
    _pair(scanned)
    asked = _asked(scanned)
    _rounds(scanned, 5)
    assert asked[ATTRIBUTES, "orders"] == 5, "itself in each"
    assert asked[ATTRIBUTES, "orders-dlq"] == 3
    assert asked[SOURCES, "orders"] == 3


def test_around_a_queue_that_is_to_be_measured_all_is_asked_in_each(scanned: Scanning) -> None:
    queue, _ = _pair(scanned)
    url = scanned.account.url(queue)
    scanned.account.clients.sqs.send_message(QueueUrl=url, MessageBody="waits")
    scanned.account.later(days=1)
    asked = _asked(scanned)
    for _ in range(4):
        scanned.count(queue, scanned.account.now - timedelta(minutes=30), visible=9, received=9)
        scanned.done()
        an_hour_on(scanned.account)
    assert asked[ATTRIBUTES, "orders-dlq"] >= 3
    assert asked[SOURCES, "orders"] == 4


@pytest.mark.parametrize("hours", [2, 24])
def test_an_answer_of_an_older_round_is_asked_for_again(scanned: Scanning, hours: int) -> None:
    _pair(scanned)
    asked = _asked(scanned)
    for _ in range(3):
        scanned.done()
        an_hour_on(scanned.account)
        scanned.account.later(hours=hours - 1)
    assert (asked[ATTRIBUTES, "orders-dlq"], asked[SOURCES, "orders"]) == (3, 3)


_JSON = [zlib.compress(each) for each in (b'{"round":"\xed\xa0\x80"}', b'{"x":' + b"[" * 10**5)]


@pytest.mark.parametrize("body", [b"", b"{}", b"x\x9c\x03", b"0" * 9, *_JSON], ids=range(6))
def test_what_is_no_answer_is_not_believed(scanned: Scanning, body: bytes) -> None:
    _pair(scanned)
    asked = _asked(scanned)
    for _ in range(3):
        assert scanned.done().error_by_target == {}
        for turn in (0, 1):
            key = f"findings/answers-{turn}.json.z"
            scanned.account.clients.s3.put_object(Bucket="cases", Key=key, Body=body)
        an_hour_on(scanned.account)
    assert (asked[ATTRIBUTES, "orders-dlq"], asked[SOURCES, "orders"]) == (3, 3)
    assert MAXIMUM_OBJECT_BYTES < 10**8, "what a Lambda has room for"


def test_a_dlq_that_is_gone_is_found_a_round_late_at_most(scanned: Scanning) -> None:
    queue, dead = _pair(scanned)
    _rounds(scanned, 2)
    scanned.account.clients.sqs.delete_queue(QueueUrl=scanned.account.url(dead))
    _rounds(scanned, 2)
    found = scanned.findings(scanned.account.now - timedelta(hours=1))["findings"]
    assert (queue, "dlq_missing") in {(each["queue_arn"], each["symptom"]) for each in found}


def test_a_queue_that_is_managed_by_now_is_asked_itself(scanned: Scanning) -> None:
    _, dead = _pair(scanned)
    _rounds(scanned, 2)
    scanned.account.tag(dead, mendq="heal")
    asked = _asked(scanned)
    _rounds(scanned, 4)
    assert asked[ATTRIBUTES, "orders-dlq"] == 4


def test_what_an_hour_was_too_short_for_comes_first_in_the_next(
    scanned: Scanning, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mendq.scan.scan.QUEUES_PER_BLOCK", 1)
    names = [scanned.account.queue(f"q-{n}").rpartition(":")[2] for n in range(4)]
    symptoms, seen = [slow(of_configuration=True)], list[list[str]]()
    an_hour_on(scanned.account)
    for stretches in (2, 9, 9):
        left = iter([900.0] * stretches)
        scanned.remaining_seconds = lambda left=left: next(left, 100.0)  # type: ignore[misc]
        done = scanned.done(symptoms)
        seen.append([each.queue_arn.rpartition(":")[2] for each in done.findings])
        if len(seen) == 1:
            an_hour_on(scanned.account)
        scanned.account.later(minutes=10)
    assert seen == [names[:2], names[2:], names], "and then from the first name on"
    assert len(scanned.findings()["findings"]) == 4
    assert scanned.scan(symptoms) is None


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
