"""When consumers that crash lose messages, and who is paged about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.catalogue.examples import make_half_hours, queue_with_dlq, standard_queue
from mendq.catalogue.symptom import DetectedFault
from mendq.model.facts import Facts
from mendq.model.limits import Limits
from mendq.model.plan import Escalate, Refusal

CRASHES = SYMPTOM_BY_NAME["consumer_crashes"]
RECEIVES = 3


def make_queue(*, has_dlq: bool = True, **overrides: Any) -> Facts:
    """Return a queue of which 754 receives ended in no delete, and 60 messages left undeleted."""
    counts: dict[str, Any] = {
        "VisibilityTimeout": 600,
        "sent": 957,
        "received": 1_651,
        "deleted": 886,
        "in_flight_now": 11,
        "backlog_now": 11,
        "highest_oldest_age_seconds": 1_178,
        "recent": make_half_hours(*({"received": 137, "deleted": 74},) * 12),
    }
    values = {**counts, **overrides}
    return queue_with_dlq(RECEIVES, **values) if has_dlq else standard_queue(**values)


def find(facts: Facts) -> DetectedFault | None:
    assert CRASHES.detection
    return CRASHES.detection.detect(facts)


def pages(facts: Facts, fault: DetectedFault | None) -> bool:
    """Return True if the plan pages. What the scan says about the page must agree."""
    assert fault
    assert CRASHES.plan
    answer = CRASHES.plan(replace(facts, found=fault.because), Limits())
    assert isinstance(answer, Refusal)
    assert fault.should_page is isinstance(answer, Escalate)
    return fault.should_page


@pytest.mark.parametrize(
    ("sent", "is_page"),
    [
        pytest.param(897, False, id="none"),
        pytest.param(944, False, id="47, as inexact counters may show"),
        pytest.param(946, True, id="49"),
    ],
)
def test_crashes_page_if_their_messages_reach_the_dlq(sent: int, is_page: bool) -> None:
    facts = make_queue(sent=sent)
    fault = find(facts)
    assert pages(facts, fault) is is_page
    assert fault
    assert ("moved to the DLQ" in fault.because) is is_page


@pytest.mark.parametrize(
    ("attributes", "is_page"),
    [
        pytest.param({"highest_oldest_age_seconds": 3_240}, True, id="they expire"),
        pytest.param({"highest_oldest_age_seconds": 3_239}, False, id="they are purged"),
        pytest.param(
            {"highest_oldest_age_seconds": 3_599, "MessageRetentionPeriod": 3_599},
            False,
            id="they expire after less than an hour, maybe on purpose",
        ),
        pytest.param({"highest_oldest_age_seconds": 3_599, "sent": 897}, False, id="none is lost"),
    ],
)
def test_crashes_page_if_their_messages_expire(attributes: dict[str, Any], is_page: bool) -> None:
    facts = make_queue(has_dlq=False, **{"MessageRetentionPeriod": 3_600, **attributes})
    fault = find(facts)
    assert pages(facts, fault) is is_page
    assert fault
    assert (fault.seconds_left == 0.0) is is_page


@pytest.mark.parametrize(
    ("received", "is_found"),
    [
        pytest.param(1_137, False, id="they explain three quarters of the lost receives"),
        pytest.param(1_138, True, id="they explain less"),
    ],
)
def test_crashes_are_found_only_if_dlq_messages_explain_less_than_three_quarters_of_lost_receives(
    received: int, is_found: bool
) -> None:
    """60 messages are received three times each."""
    assert (find(make_queue(received=received)) is not None) is is_found
