from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.model.failed_call import FailedCall, read
from mendq.notifications.sent import MOST_SUBJECT
from mendq.probe.probe import (
    SEEN_WITHIN,
    SKEW,
    Probe,
    ProbeSource,
    notification_of_lost,
)

ROLE = "arn:aws:iam::123456789012:role/mendq-probe-us-east-1"
SOURCE = ProbeSource.at("123456789012", "us-east-1", ROLE)
AT = datetime(2026, 11, 21, 8, tzinfo=UTC)
AN_HOUR = timedelta(hours=1)
SENT = Probe(scheduled_at=AT, sent_at=AT + timedelta(seconds=3))


def _call(role: str = ROLE, queue_arn: str = SOURCE.queue_arn, **over: Any) -> FailedCall:
    session = "arn:aws:sts::123456789012:assumed-role/mendq-probe-us-east-1/session"
    issuer = {"sessionIssuer": {"arn": role}}
    record = {
        "eventSource": "sqs.amazonaws.com",
        "eventName": "SendMessage",
        "eventTime": "2026-11-21T08:00:03Z",
        "eventID": "1",
        "errorCode": "InvalidParameterValueException",
        "awsRegion": "us-east-1",
        "recipientAccountId": "123456789012",
        "userIdentity": {"type": "AssumedRole", "arn": session, "sessionContext": issuer},
        "resources": [{"ARN": queue_arn}],
    }
    call = read({**record, **over})
    assert isinstance(call, FailedCall)
    return call


def _seen(probe: Probe, after: timedelta, made_after: timedelta = timedelta()) -> Probe:
    made_at = (probe.sent_at + made_after).replace(microsecond=0)
    return replace(probe, made_at=made_at, seen_at=probe.sent_at + after, spelled="X")


@pytest.mark.parametrize(
    "over",
    [
        {"role": "arn:aws:iam::123456789012:role/attacker"},
        {"role": "arn:aws:iam::444455556666:role/mendq-probe-us-east-1"},
        {"role": f"{ROLE}-of-others"},
        {"queue_arn": "arn:aws:sqs:us-east-1:123456789012:orders.fifo"},
        {"queue_arn": "arn:aws:sqs:us-east-1:123456789012:mendq-probe"},
        {"queue_arn": "arn:aws:sqs:us-east-1:444455556666:mendq-probe.fifo"},
        {"queue_arn": "arn:aws:sqs:eu-west-1:123456789012:mendq-probe.fifo"},
        {"eventName": "DeleteMessage"},
        {
            "userIdentity": {
                "type": "IAMUser",
                "arn": "arn:aws:iam::123456789012:user/mendq-probe-us-east-1",
            }
        },
    ],
)
def test_a_call_of_another_on_another_queue_or_of_another_kind_is_no_probe(
    over: dict[str, Any],
) -> None:
    assert not SOURCE.made(_call(**over))


@pytest.mark.parametrize("code", ["InvalidParameterValueException", "Whatever", "AccessDenied"])
def test_the_roles_own_call_on_its_queue_is_one_however_the_error_is_spelled(code: str) -> None:
    assert SOURCE.made(_call(errorCode=code))


def test_what_came_too_late_or_belongs_to_an_earlier_one_was_not_seen() -> None:
    moment = timedelta(seconds=1)
    assert not SENT.was_seen
    assert not _seen(SENT, SEEN_WITHIN + moment).was_seen
    assert not _seen(SENT, moment, made_after=-SKEW - moment).was_seen


def test_what_came_in_time_was_seen_though_clocks_differ_a_little() -> None:
    assert _seen(SENT, SEEN_WITHIN).was_seen
    assert _seen(SENT, timedelta(minutes=5), made_after=-SKEW).was_seen
    half = replace(SENT, sent_at=SENT.sent_at + timedelta(microseconds=900_000))
    assert _seen(half, timedelta(minutes=5)).was_seen, "CloudTrail cuts the second"


def test_a_second_delivery_of_the_same_time_judges_nothing() -> None:
    lost = SENT.next_one(AT + AN_HOUR, AT + AN_HOUR)
    again = lost.next_one(AT + AN_HOUR, AT + AN_HOUR + timedelta(minutes=1))
    assert again == lost
    assert lost.next_one(AT, AT + 2 * AN_HOUR) == lost, "nor does one that comes after the next"


def test_one_that_may_still_be_seen_is_waited_for() -> None:
    soon = AT + SEEN_WITHIN - timedelta(minutes=1)
    assert SENT.next_one(soon, soon) == SENT


def test_every_twenty_minutes_is_judged_though_the_schedule_is_some_seconds_off() -> None:
    at = AT + SEEN_WITHIN
    assert SENT.next_one(at, SENT.sent_at + SEEN_WITHIN - timedelta(seconds=2)).lost_in_a_row == 1


@given(st.lists(st.tuples(st.integers(0, 90), st.booleans()), max_size=30))
def test_it_pages_exactly_when_two_in_a_row_were_lost(ticks: list[tuple[int, bool]]) -> None:
    probe, sent, now = SENT, [], AT
    for minutes, seen in ticks:
        if seen and not probe.was_seen:
            probe = _seen(probe, timedelta(minutes=1))
        now += timedelta(minutes=minutes)
        before, probe = probe, probe.next_one(now, now)
        if probe != before:
            sent.append(before.was_seen)
            assert probe.wants_a_page == (sent[-2:] == [False, False])


def test_the_page_says_what_is_at_stake_since_when_and_what_to_do() -> None:
    with pytest.raises(ValueError, match="no probe"):
        notification_of_lost(SENT, "123456789012", "us-east-1")
    lost = _seen(SENT, timedelta(minutes=25)).next_one(AT + AN_HOUR, AT + AN_HOUR)
    lost = lost.next_one(AT + 2 * AN_HOUR, AT)
    page = notification_of_lost(lost, "123456789012", "us-gov-northwest-12")
    assert page.subject == "Mendq escalated: no probe in 123456789012 us-gov-northwest-12"
    assert len(page.subject) <= MOST_SUBJECT
    for said in (
        "the last 2 did not",
        "lost since 2026-11-21 08:00:03 UTC",
        "seen last: 2026-11-21 08:25:03 UTC",
        "mendq doctor",
        "docs/runbooks/probe_lost.md",
    ):
        assert said in page.body
    never = replace(lost, seen_at=None, spelled="")
    body = notification_of_lost(never, "123456789012", "us-east-1").body
    assert "seen last: never" in body
    assert '"not known"' in body
