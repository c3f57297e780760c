from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from mendq.catalogue.examples import failed_call
from mendq.heal.batch import is_probe
from mendq.model.account_and_region import AccountAndRegion
from mendq.notifications.announcements import LOST_PROBES_TO_REPORT
from mendq.notifications.sent import MOST_SUBJECT_CHARACTERS
from mendq.probe.probe import (
    MOST_CLOCK_DIFFERENCE,
    PROBE_ARRIVAL_TIMEOUT,
    PROBE_QUEUE_NAME,
    Probe,
    describe_lost_probes,
)

ROLE = "arn:aws:iam::123456789012:role/mendq-probe-us-east-1"
HOME = AccountAndRegion("123456789012", "us-east-1")
QUEUE = f"arn:aws:sqs:us-east-1:123456789012:{PROBE_QUEUE_NAME}"
AT = datetime(2026, 11, 21, 8, tzinfo=UTC)
AN_HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
MOMENT = timedelta(seconds=1)
SENT = Probe(scheduled_at=AT, sent_at=AT + timedelta(seconds=3))


CALL = replace(
    failed_call("SendMessage", "InvalidParameterValueException", "", QUEUE),
    principal_arn=ROLE,
)


def _mark_seen(probe: Probe, after: timedelta, made_after: timedelta = timedelta()) -> Probe:
    made_at = (probe.sent_at + made_after).replace(microsecond=0)
    return structs.replace(probe, made_at=made_at, seen_at=probe.sent_at + after, spelled="X")


@pytest.mark.parametrize(
    "over",
    [
        {"principal_arn": "arn:aws:iam::123456789012:role/attacker"},
        {"principal_arn": "arn:aws:iam::444455556666:role/mendq-probe-us-east-1"},
        {"queue_arn": "arn:aws:sqs:us-east-1:123456789012:mendq-probe"},
        {"queue_arn": "arn:aws:sqs:us-east-1:444455556666:mendq-probe.fifo"},
        {"event_name": "DeleteMessage"},
    ],
)
def test_only_the_probe_roles_send_to_the_probe_queue_is_a_probe(over: dict[str, Any]) -> None:
    assert not is_probe(replace(CALL, **over), HOME)
    assert is_probe(replace(CALL, error_code="Whatever"), HOME), "however the error is spelled"


def test_probe_roles_send_without_a_queue_in_its_record_is_a_probe() -> None:
    nowhere = replace(CALL, queue_arn=None)
    assert is_probe(nowhere, HOME)
    assert not is_probe(replace(nowhere, principal_arn=f"{ROLE}-of-others"), HOME)
    assert not is_probe(replace(nowhere, event_name="DeleteMessage"), HOME)


@pytest.mark.parametrize(
    ("probe", "was_seen"),
    [
        (SENT, False),
        (_mark_seen(SENT, PROBE_ARRIVAL_TIMEOUT), True),
        (_mark_seen(SENT, PROBE_ARRIVAL_TIMEOUT + MOMENT), False),
        # Clocks differ a little, and CloudTrail cuts the second. A call of an earlier probe does
        # not count.
        (_mark_seen(SENT, MINUTE, made_after=-MOST_CLOCK_DIFFERENCE), True),
        (_mark_seen(structs.replace(SENT, sent_at=SENT.sent_at + 0.9 * MOMENT), MINUTE), True),
        (_mark_seen(SENT, MINUTE, made_after=-MOST_CLOCK_DIFFERENCE - MOMENT), False),
    ],
)
def test_probe_counts_as_seen_only_within_the_arrival_timeout(
    probe: Probe, *, was_seen: bool
) -> None:
    assert probe.was_seen is was_seen


def test_next_probe_judges_each_scheduled_probe_once_and_not_before_the_arrival_timeout() -> None:
    lost = SENT.next_probe(AT + AN_HOUR, AT + AN_HOUR)
    assert lost.next_probe(AT + AN_HOUR, AT + AN_HOUR + MINUTE) == lost
    assert lost.next_probe(AT, AT + 2 * AN_HOUR) == lost, "nor does one that comes after the next"
    soon = AT + PROBE_ARRIVAL_TIMEOUT - MINUTE
    assert SENT.next_probe(soon, soon) == SENT
    late = SENT.next_probe(
        AT + PROBE_ARRIVAL_TIMEOUT, SENT.sent_at + PROBE_ARRIVAL_TIMEOUT - 2 * MOMENT
    )
    assert late.lost_in_a_row == 1, "though the schedule is some seconds off"


@given(st.lists(st.tuples(st.integers(0, 90), st.booleans()), max_size=30))
def test_lost_probes_are_reported_exactly_if_two_in_a_row_were_lost(
    ticks: list[tuple[int, bool]],
) -> None:
    probe = SENT
    sent = []
    now = AT
    for minutes, seen in ticks:
        if seen and not probe.was_seen:
            probe = _mark_seen(probe, timedelta(minutes=1))
        now += timedelta(minutes=minutes)
        before = probe
        probe = probe.next_probe(now, now)
        if probe != before:
            sent.append(before.was_seen)
            lost = probe.lost_in_a_row >= LOST_PROBES_TO_REPORT
            assert lost == (sent[-2:] == [False, False])


def test_lost_probe_notification_says_how_many_since_when_and_what_to_do() -> None:
    lost = _mark_seen(SENT, timedelta(minutes=25)).next_probe(AT + AN_HOUR, AT + AN_HOUR)
    lost = lost.next_probe(AT + 2 * AN_HOUR, AT)
    page = describe_lost_probes(lost, "123456789012", "us-gov-northwest-12")
    assert page.subject == "Mendq escalated: no probe in 123456789012 us-gov-northwest-12"
    assert len(page.subject) <= MOST_SUBJECT_CHARACTERS
    for said in (
        "the last 2 did not",
        "lost since 2026-11-21 08:00:03 UTC",
        "seen last: 2026-11-21 08:25:03 UTC",
        "mendq doctor",
        "docs/runbooks/probe_lost.md",
    ):
        assert said in page.body
    never = structs.replace(lost, seen_at=None, spelled="")
    body = describe_lost_probes(never, "123456789012", "us-east-1").body
    assert "seen last: never" in body
    assert '"not known"' in body
