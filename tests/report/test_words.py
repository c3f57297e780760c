from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from mendq.report import words


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"),
        (0.2, "under 1 s"),
        (1, "1 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (60, "1 min"),
        (250, "4 min 10 s"),
        (3_600, "1 h"),
        (7_500, "2 h 5 min"),
        (7_259, "2 h"),
        (273_600, "3 d 4 h"),
        (864_000_000, "10,000 d"),
    ],
)
def test_a_duration_has_two_units_at_most(seconds: float, said: str) -> None:
    assert words.duration(seconds) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("the ceiling of 900 s; raise it", "the ceiling of 900~s; raise it"),
        ("4 min 10 s", "4~min 10~s"),
        ("81.2 MB, 2 %", "81.2~MB, 2~%"),
        ("2 h 5 min, 3 d, 1 byte", "2~h 5~min, 3~d, 1~byte"),
        ("10 points above", "10~points above"),
        ("9 to 15 Nov, 3 stacks, 4 seconds", "9 to 15 Nov, 3 stacks, 4 seconds"),
        ("a s", "a s"),
    ],
)
def test_a_number_and_its_unit_stay_together(text: str, said: str) -> None:
    assert words.together(text) == said.replace("~", "\N{NO-BREAK SPACE}")


@pytest.mark.parametrize(
    ("size_bytes", "said"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1_000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (81_200_000, "81.2 MB"),
        (2**63 - 1, "9.2 EB"),
    ],
)
def test_a_size_has_one_decimal(size_bytes: int, said: str) -> None:
    assert words.byte_size(size_bytes) == said


@pytest.mark.parametrize(
    ("part", "whole", "said"),
    [
        (0, 7, "0 %"),
        (1, 1_000, "under 1 %"),
        (26, 29, "90 %"),
        (999, 1_000, "over 99 %"),
        (7, 7, "100 %"),
    ],
)
def test_a_share_hides_no_part(part: int, whole: int, said: str) -> None:
    assert words.share(part, whole) == said


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 queues"), (1, "1 queue"), (2, "2 queues"), (1_204, "1,204 queues")]
)
def test_one_is_singular(number: int, said: str) -> None:
    assert words.counted(number, "queue") == said


@pytest.mark.parametrize(
    ("names", "said"), [(["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")]
)
def test_a_list_ends_in_and(names: list[str], said: str) -> None:
    assert words.listed(names) == said


@pytest.mark.parametrize(
    ("lasting", "said"),
    [
        (timedelta(), "Thu 12 23:50"),
        (timedelta(seconds=40), "Thu 12 23:50"),
        (timedelta(minutes=9), "Thu 12 23:50\N{EN DASH}23:59"),
        (timedelta(minutes=10), "Thu 12 23:50 to Fri 13 00:00"),
        (timedelta(days=1), "Thu 12 23:50 to Fri 13 23:50"),
    ],
)
def test_a_span_names_the_second_day_where_it_differs(lasting: timedelta, said: str) -> None:
    first = datetime(2026, 11, 12, 23, 50, tzinfo=UTC)
    assert words.span(first, first + lasting) == said


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (date(2026, 11, 9), "9 to 15 Nov 2026"),
        (date(2026, 11, 30), "30 Nov to 6 Dec 2026"),
        (date(2026, 12, 28), "28 Dec 2026 to 3 Jan 2027"),
    ],
)
def test_the_days_of_a_week(first: date, said: str) -> None:
    assert words.days_of(first, first + timedelta(days=6)) == said


@pytest.mark.parametrize(
    ("queue_arn", "name"),
    [
        ("unresolved", "an unknown queue"),
        ("arn:aws:sqs:us-east-1:123456789012:orders.fifo", "orders.fifo"),
        ("orders", "orders"),
        ("arn:", "arn:"),
        ("", ""),
    ],
)
def test_a_queue_goes_by_its_name(queue_arn: str, name: str) -> None:
    assert words.queue_name(queue_arn) == name


@pytest.mark.parametrize(
    ("principal", "name"),
    [
        ("arn:aws:iam::123456789012:role/team/orders", "role/team/orders"),
        ("arn:aws:iam::123456789012:", "arn:aws:iam::123456789012:"),
        ("events.amazonaws.com", "events.amazonaws.com"),
        (f"arn:aws:iam::123456789012:role/{'r' * 90}", f"role/{'r' * 59}…"),
    ],
)
def test_a_principal_goes_by_what_its_arn_ends_in(principal: str, name: str) -> None:
    assert words.principal_name(principal) == name
