"""What is counted of messages: each once, by what is no part of a body."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mendq.cli.redrive.preview import AGES, MOST_VALUES, Selection, Standing, Tally
from mendq.redrive.message_filter import MessageFilter, message_filter
from mendq.redrive.messages import Message, MessageAttribute

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
SOURCE = "arn:aws:sqs:us-east-1:123456789012:orders"
MESSAGE = Message("m-1", '{"n": 1}', NOW, source_arn=SOURCE)


def _tally(
    expression: str = "exists(body.n) || exists(attributes.type)", *, sole: bool = True
) -> Tally:
    found = message_filter(expression)
    assert isinstance(found, MessageFilter)
    return Tally(Selection(found, SOURCE, sole, NOW))


def _of_type(value: str | bytes, number: int = 0) -> Message:
    kind = "Binary" if isinstance(value, bytes) else "String"
    return replace(
        MESSAGE, message_id=f"t-{number}", attributes={"type": MessageAttribute(kind, value)}
    )


@pytest.mark.parametrize(
    ("source_arn", "sole", "standing"),
    [
        (f"{SOURCE}-2", True, Standing.OF_ANOTHER_SOURCE),
        (f"{SOURCE}-2", False, Standing.OF_ANOTHER_SOURCE),
        (None, False, Standing.OF_NO_SOURCE),
        (None, True, Standing.CHOSEN),
        (SOURCE, False, Standing.CHOSEN),
        (SOURCE, True, Standing.CHOSEN),
    ],
)
def test_whose_a_message_is(source_arn: str | None, sole: bool, standing: Standing) -> None:
    message = replace(MESSAGE, source_arn=source_arn)
    tally = _tally(sole=sole)
    assert tally.add(message) is standing
    assert list(tally.chosen) == (["m-1"] if standing is Standing.CHOSEN else [])
    assert _tally("receive_count == `9`", sole=sole).add(message) is not Standing.CHOSEN


def test_a_message_that_is_seen_again_is_counted_once() -> None:
    tally = _tally()
    for _ in range(3):
        tally.add(MESSAGE)
    assert (len(tally.seen), tally.standings[Standing.CHOSEN]) == (1, 1)
    assert tally.ages.total() == 1
    assert tally.missing["attributes.type"] == 1


def test_ages_are_said_apart_at_their_ends() -> None:
    tally = _tally()
    for number, hours in enumerate((0, 0.99, 1, 23.9, 24, 95, 96, 10_000)):
        sent_at = NOW - timedelta(hours=hours)
        tally.add(replace(MESSAGE, message_id=f"m-{number}", sent_at=sent_at))
    assert [tally.ages[words] for _, words in AGES] == [2, 2, 2]
    assert tally.ages["over 4 d"] == 2


def test_of_very_many_values_the_rest_is_one_line() -> None:
    tally = _tally()
    for number in range(MOST_VALUES + 50):
        tally.add(_of_type(f"tenant-{number}", number))
    counted = tally.values["attributes.type"]
    assert len(counted) == MOST_VALUES + 1
    assert counted["others"] == 50
    assert counted.total() == len(tally.chosen)


def test_values_are_plain_text_and_no_value_is_of_a_body() -> None:
    tally = _tally()
    tally.add(_of_type("a\x1b[31m\nb" + "x" * 500))
    tally.add(_of_type(b"\xff\x00", 1))
    assert set(tally.values) == {"attributes.type"}
    words, in_bytes = tally.values["attributes.type"]
    assert words.isprintable()
    assert len(words) <= 60
    assert in_bytes == "(2 bytes)"
