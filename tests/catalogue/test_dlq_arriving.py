"""A page about messages that nothing explains, and silence about all others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mendq.catalogue import CATALOGUE
from mendq.catalogue._redrive_causes import CAUSES
from mendq.catalogue.dlq_messages_arriving import detect, plan, suspects
from mendq.catalogue.examples import DLQ_ARN, STANDARD_ARN, measured, queue
from mendq.model.facts import SourceQueue
from mendq.model.limits import Limits

ARRIVING = replace(
    queue(queue_arn=DLQ_ARN, ApproximateNumberOfMessages="3"),
    dlq_sources=(SourceQueue(STANDARD_ARN, {}),),
    measured=measured(visible_before=2, visible_now=3, backlog_before=2, backlog_now=3),
)


def test_what_is_called_a_cause_is_a_symptom() -> None:
    assert {each.name for each in CATALOGUE} >= CAUSES


@pytest.mark.parametrize("cause", sorted(CAUSES))
def test_a_known_cause_is_said_once(cause: str) -> None:
    assert detect(ARRIVING)
    assert detect(replace(ARRIVING, open_symptoms=frozenset({cause}))) is None


def test_a_case_that_explains_nothing_keeps_nobody_from_being_paged() -> None:
    assert detect(replace(ARRIVING, open_symptoms=frozenset({"dlq_retention_too_short"})))


def test_the_page_names_the_sources_and_who_reads_them() -> None:
    found = detect(ARRIVING)
    assert found is not None
    refusal = plan(replace(ARRIVING, found=found.because), Limits())
    assert STANDARD_ARN in refusal.reason
    assert refusal.reason.startswith("1 more DLQ message in 6.0 h, 3 in all")
    assert refusal.next_command.endswith(STANDARD_ARN)


def test_an_empty_queue_is_not_measured() -> None:
    assert suspects(ARRIVING)
    assert suspects(replace(ARRIVING, dlq_sources=None))
    assert not suspects(replace(ARRIVING, attributes={}))
    assert not suspects(replace(ARRIVING, dlq_sources=()))
