"""How long messages are kept, and what is said where that can be no longer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mendq.catalogue.dlq_retention_too_short import detect, plan
from mendq.catalogue.examples import DLQ_ARN, STANDARD_ARN, queue
from mendq.model.facts import Facts, SourceQueue
from mendq.model.limits import Limits
from mendq.model.plan import Plan
from mendq.model.queue import LONGEST_RETENTION_SECONDS

FOUR_DAYS = 345_600


def messages(retained_seconds: int, *sources_seconds: int) -> Facts:
    sources = (
        SourceQueue(f"{STANDARD_ARN}-{n}", {"MessageRetentionPeriod": str(each)})
        for n, each in enumerate(sources_seconds)
    )
    return replace(
        queue(queue_arn=DLQ_ARN, MessageRetentionPeriod=str(retained_seconds)),
        dlq_sources=tuple(sources),
    )


@pytest.mark.parametrize(
    ("sources", "said"),
    [
        ((LONGEST_RETENTION_SECONDS,), True),
        ((FOUR_DAYS, LONGEST_RETENTION_SECONDS), True),
        ((LONGEST_RETENTION_SECONDS - 1,), False),
        ((FOUR_DAYS,), False),
    ],
)
def test_that_messages_can_be_retained_no_longer_is_said_where_it_does_not_suffice(
    sources: tuple[int, ...], *, said: bool
) -> None:
    answer = plan(messages(FOUR_DAYS, *sources), Limits())
    assert isinstance(answer, Plan)
    assert ("cannot be longer" in answer.reason) is said


def test_at_the_longest_it_is_not_found_again() -> None:
    assert detect(messages(LONGEST_RETENTION_SECONDS, LONGEST_RETENTION_SECONDS)) is None
    assert detect(messages(LONGEST_RETENTION_SECONDS - 1, LONGEST_RETENTION_SECONDS))


def test_the_source_that_keeps_longest_is_named() -> None:
    found = detect(messages(FOUR_DAYS, FOUR_DAYS, 2 * FOUR_DAYS, 60))
    assert found is not None
    assert f"{STANDARD_ARN}-1" in found.because
