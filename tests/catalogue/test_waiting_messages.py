"""Since when messages wait decides what may explain them, and when the first expires."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from mendq.catalogue._redrive import age_is_known, explained, time_left
from mendq.catalogue.examples import AT, recounted
from mendq.model.facts import Facts
from tests.model.dlq import DAY, WATCHED, fifo


def is_explained(facts: Facts) -> bool:
    return bool(explained(facts).fixed)


def test_messages_that_began_to_come_after_it_was_fixed_are_another_matter() -> None:
    """To the minute: the age is measured within the last one."""
    age = timedelta(seconds=7_200)
    for late, expected in ((timedelta(minutes=1), True), (timedelta(minutes=1, seconds=1), False)):
        assert WATCHED.measured is not None
        facts = replace(WATCHED, measured=replace(WATCHED.measured, until=AT + age + late))
        assert is_explained(facts) is expected


def test_messages_that_lay_there_all_the_while_are_no_younger_than_that() -> None:
    """SQS leaves what was received often out of the age of the oldest."""
    assert WATCHED.measured is not None
    over = recounted(WATCHED.measured, oldest_age_seconds_now=60, least_visible=200)
    fixed_at = over.since + timedelta(seconds=1)
    facts = replace(
        WATCHED,
        measured=over,
        source_cases=tuple(replace(each, at=fixed_at) for each in WATCHED.source_cases),
    )
    assert is_explained(facts)
    for unsure in (replace(over, least_visible=0), replace(over, deleted=1)):
        assert not is_explained(replace(facts, measured=unsure))


def test_on_fifo_the_time_begins_at_the_move() -> None:
    retained = {**fifo().attributes, "MessageRetentionPeriod": str(4 * DAY)}
    left = time_left(replace(fifo(), attributes=retained))
    assert left.is_exact
    assert left.at_least == timedelta(days=4) - timedelta(seconds=7_200)


def test_where_sqs_says_no_age_any_cause_of_that_time_may_explain() -> None:
    """No message is older than the queue keeps one, and one may expire at once."""
    assert WATCHED.measured is not None
    facts = replace(WATCHED, measured=recounted(WATCHED.measured, oldest_age_seconds_now=0))
    assert not age_is_known(facts)
    assert time_left(facts).at_least == timedelta(0)
    long_ago = tuple(replace(each, at=AT - timedelta(days=14)) for each in facts.source_cases)
    assert is_explained(replace(facts, source_cases=long_ago))
    longer_ago = tuple(replace(each, at=AT - timedelta(days=15)) for each in facts.source_cases)
    assert not is_explained(replace(facts, source_cases=longer_ago))


def test_without_a_measurement_whatever_was_fixed_may_explain() -> None:
    facts = replace(WATCHED, measured=None)
    assert not age_is_known(facts)
    assert is_explained(facts)
    assert time_left(facts).at_least == timedelta(0)
