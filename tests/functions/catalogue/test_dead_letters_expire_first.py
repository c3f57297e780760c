"""How long letters are kept, and what is said where that can be no longer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from functions.catalogue.dead_letters_expire_first import detect, plan
from functions.healing.companions import LONGEST_RETENTION_SECONDS
from functions.healing.examples import DEAD_LETTER_ARN, STANDARD_ARN, queue
from functions.healing.facts import Facts, SourceQueue
from functions.healing.limits import Limits
from functions.healing.plan import Plan

FOUR_DAYS = 345_600


def letters(kept_seconds: int, *sources_seconds: int) -> Facts:
    sources = (
        SourceQueue(f"{STANDARD_ARN}-{n}", {"MessageRetentionPeriod": str(each)})
        for n, each in enumerate(sources_seconds)
    )
    return replace(
        queue(queue_arn=DEAD_LETTER_ARN, MessageRetentionPeriod=str(kept_seconds)),
        dead_letter_sources=tuple(sources),
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
def test_that_letters_can_be_kept_no_longer_is_said_where_it_does_not_suffice(
    sources: tuple[int, ...], *, said: bool
) -> None:
    answer = plan(letters(FOUR_DAYS, *sources), Limits())
    assert isinstance(answer, Plan)
    assert ("cannot be longer" in answer.reason) is said


def test_at_the_longest_it_is_not_found_again() -> None:
    assert detect(letters(LONGEST_RETENTION_SECONDS, LONGEST_RETENTION_SECONDS)) is None
    assert detect(letters(LONGEST_RETENTION_SECONDS - 1, LONGEST_RETENTION_SECONDS))


def test_the_source_that_keeps_longest_is_named() -> None:
    found = detect(letters(FOUR_DAYS, FOUR_DAYS, 2 * FOUR_DAYS, 60))
    assert found is not None
    assert f"{STANDARD_ARN}-1" in found.because
