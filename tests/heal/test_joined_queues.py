"""Which of a scan's queues are joined into a shared default, and in which order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from msgspec import structs

from mendq.catalogue.dlq.dlq_retention_too_short import DLQ_RETENTION_TOO_SHORT
from mendq.catalogue.examples import STANDARD_ARN, dlq, sources
from mendq.heal.shared_default import join_shared_defaults, leave_shared_default_without_first
from mendq.heal.situation import Situation
from mendq.model.evidence import Evidence, Sighting
from mendq.model.mode import Mode
from tests.heal.situations import NOW, make_situation

DAY = "86400"


def make_dlq_situation(name: str, mode: Mode = Mode.PROPOSE, **attributes: str) -> Situation:
    """Return the situation of a DLQ that keeps messages for one day, and its source for four."""
    source_queues = sources(STANDARD_ARN, MessageRetentionPeriod="345600")
    values: dict[str, Any] = {"MessageRetentionPeriod": DAY, **attributes}
    facts = dlq(dlq_sources=source_queues, **values)
    facts = replace(facts, queue_arn=f"arn:aws:sqs:us-east-1:123456789012:{name}")
    sighting = Sighting.from_scan(NOW)
    return make_situation(
        symptom=DLQ_RETENTION_TOO_SHORT,
        facts=facts,
        mode=mode,
        evidence=Evidence((sighting,)),
        fresh_sightings=(sighting,),
        are_facts_read=True,
    )


def join(*situations: Situation) -> list[Situation]:
    return list(join_shared_defaults(dict(enumerate(situations))).values())


def test_queues_with_one_value_are_joined_and_the_one_with_fewest_messages_goes_first() -> None:
    waiting = {"a": "7", "b": "3", "c": "9", "d": "4"}
    situations = [
        make_dlq_situation(name, ApproximateNumberOfMessages=count)
        for name, count in waiting.items()
    ]
    joined = join(*situations)
    shared_default = joined[0].shared_default
    assert shared_default is not None
    assert shared_default.queue_names == ("b", "d", "a", "c")
    assert all(situation.shared_default == shared_default for situation in joined)


def test_drills_and_queues_with_another_value_are_not_joined() -> None:
    drill = make_dlq_situation("drill")
    drill = structs.replace(drill, facts=replace(drill.facts, tags={"mendq:drill": "on"}))
    other = make_dlq_situation("other", MessageRetentionPeriod="86401")
    joined = join(*(make_dlq_situation(name) for name in "abc"), drill, other)
    assert [situation.shared_default for situation in joined] == [None] * 5


def test_observed_queues_do_not_make_three_others_a_shared_default() -> None:
    observed = make_dlq_situation("d", Mode.OBSERVE)
    joined = join(*(make_dlq_situation(name) for name in "abc"), observed)
    assert [situation.shared_default for situation in joined] == [None] * 4


def test_queue_is_proposed_alone_if_the_first_case_could_not_be_opened() -> None:
    """Otherwise, nobody could approve its case."""
    first, second, *_ = join(*(make_dlq_situation(name) for name in "abcd"))
    shared_default = first.shared_default
    assert shared_default is not None
    assert leave_shared_default_without_first(second, set()).shared_default is None
    assert leave_shared_default_without_first(first, set()) == first
    opened_case_ids = {shared_default.first_case_id}
    assert leave_shared_default_without_first(second, opened_case_ids) == second
