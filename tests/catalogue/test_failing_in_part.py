"""Test `consumer_failing` if consumers fail at a part of the messages and a DLQ takes it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.catalogue.dlq.attach import find_failing_consumers
from mendq.catalogue.examples import queue_with_dlq
from mendq.model.facts import Facts
from mendq.model.plan import Escalate, Refuse
from tests.catalogue.asking import answer_to

FAILING = SYMPTOM_BY_NAME["consumer_failing"]


def make_queue(sent: int, dead: int, receives: int = 3) -> Facts:
    """Return a queue whose DLQ took `dead` of the messages of six hours."""
    deleted = sent - dead
    return queue_with_dlq(receives, sent=sent, received=deleted + receives * dead, deleted=deleted)


def describe(facts: Facts) -> str:
    """Return if the consumers are found to fail, and if people are paged."""
    fault = find_failing_consumers(facts)
    if fault is None:
        return "quiet"
    return "page" if fault.should_page else "no page"


@pytest.mark.parametrize(
    ("sent", "dead", "expected"),
    [
        (100, 3, "quiet"),
        (100, 4, "no page"),
        (100, 20, "no page"),
        (100, 21, "page"),
        (2_000, 30, "quiet"),
        (2_000, 31, "no page"),
        (2_000, 400, "no page"),
        (2_000, 401, "page"),
        (100_000, 1_500, "quiet"),
        (100_000, 1_501, "no page"),
    ],
)
def test_consumer_that_fails_at_up_to_a_fifth_is_named_without_a_page(
    sent: int, dead: int, expected: str
) -> None:
    assert describe(make_queue(sent, dead)) == expected


def test_messages_of_one_minute_that_gauges_miss_are_no_failing_consumer() -> None:
    """20 minutes of 30 messages each: the last gauge may be a minute old."""
    facts = make_queue(600, 33)
    assert facts.measurement is not None
    short = replace(
        facts.measurement, since=facts.measurement.until - facts.measurement.duration / 18
    )
    assert describe(replace(facts, measurement=short)) == "quiet"
    assert describe(facts) == "no page"


def test_messages_that_expired_unread_are_no_failing_consumer() -> None:
    """Each dead message was received, so fewer receives than dead messages mean expiry."""
    facts = make_queue(1_000, 100, receives=1)
    assert describe(facts) == "no page"
    assert facts.measurement is not None
    fewer_receives = replace(facts.measurement, received=facts.measurement.received - 1)
    assert describe(replace(facts, measurement=fewer_receives)) == "quiet"


@pytest.mark.parametrize(("received", "expected"), [(2_147, "no page"), (2_146, "quiet")])
def test_dead_messages_need_nearly_all_their_receives(received: int, expected: str) -> None:
    """100 messages left, and gauges explain 9 of them: nine tenths of 3 receives for 91."""
    facts = make_queue(2_000, 100)
    assert facts.measurement is not None
    measurement = replace(facts.measurement, received=received)
    assert describe(replace(facts, measurement=measurement)) == expected


@pytest.mark.parametrize(("dead", "kind"), [(400, Refuse), (401, Escalate)])
def test_plan_for_failing_consumers_pages_only_above_a_fifth(dead: int, kind: type) -> None:
    facts = make_queue(2_000, dead)
    fault = find_failing_consumers(facts)
    assert fault is not None
    assert type(answer_to(FAILING, replace(facts, found=fault.because))) is kind
