"""Test the faults that the scan finds by facts alone, on queues that have no measurement."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from mendq.catalogue.consumers.consumer_stopped import CONSUMER_STOPPED
from mendq.catalogue.examples import EXAMPLE_TIME, LAMBDA_FUNCTION, as_dlq, standard_queue
from mendq.catalogue.symptom import DetectedFault
from mendq.model.facts import Facts
from mendq.model.metrics import HALF_HOUR

HALF_AN_HOUR_AGO = EXAMPLE_TIME - HALF_HOUR


def make_stopped_queue(waiting: int = 37, in_flight: int = 0, **overrides: Any) -> Facts:
    """Return a queue that was not measured, whose mapping is disabled for half an hour."""
    facts: dict[str, Any] = {
        "ApproximateNumberOfMessages": waiting,
        "ApproximateNumberOfMessagesNotVisible": in_flight,
        "stopped_consumers": (LAMBDA_FUNCTION.function_arn,),
        "mappings_disabled_at": (HALF_AN_HOUR_AGO,),
        "measurement": None,
    }
    return standard_queue(**{**facts, **overrides})


def find_fault(facts: Facts) -> DetectedFault | None:
    assert CONSUMER_STOPPED.detection is not None
    return CONSUMER_STOPPED.detection.find_fault(facts, EXAMPLE_TIME)


@pytest.mark.parametrize(
    "facts",
    [
        make_stopped_queue(waiting=3),
        make_stopped_queue(in_flight=1),
        make_stopped_queue(mappings_disabled_at=(HALF_AN_HOUR_AGO + timedelta(seconds=1),)),
        make_stopped_queue(mappings_disabled_at=(HALF_AN_HOUR_AGO, None)),
        make_stopped_queue(stopped_consumers=(), mappings_disabled_at=()),
        make_stopped_queue(lambda_consumers=(LAMBDA_FUNCTION,)),
        make_stopped_queue(dlq_sources=None),
        as_dlq(make_stopped_queue()),
    ],
    ids=[
        "few messages wait",
        "a consumer holds a message",
        "disabled for less than half an hour",
        "one mapping's time is not known",
        "no mapping",
        "another function reads it",
        "its sources were not read",
        "DLQ messages",
    ],
)
def test_unmeasured_queue_without_proof_that_nobody_reads_it_has_no_fault(facts: Facts) -> None:
    assert find_fault(facts) is None


def test_unmeasured_queue_whose_mapping_was_disabled_half_an_hour_ago_has_a_stopped_consumer() -> (
    None
):
    fault = find_fault(make_stopped_queue())
    assert fault is not None
    assert "37 messages waiting" in fault.because


def test_unmeasured_queue_whose_function_was_deleted_has_a_stopped_consumer_at_once() -> None:
    assert find_fault(make_stopped_queue(mappings_disabled_at=())) is not None


def test_measured_queue_that_another_consumer_reads_has_no_fault_by_its_old_mapping() -> None:
    facts = standard_queue(
        ApproximateNumberOfMessages=37,
        stopped_consumers=(LAMBDA_FUNCTION.function_arn,),
        mappings_disabled_at=(HALF_AN_HOUR_AGO,),
        sent=300,
        received=300,
        deleted=300,
        visible_now=37,
    )
    assert facts.measurement is not None
    assert find_fault(facts) is None
