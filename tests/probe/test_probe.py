"""Probes: which calls are one, when a probe counts as seen, and when lost probes are reported."""

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
def test_call_by_another_role_to_another_queue_or_of_another_kind_is_no_probe(
    over: dict[str, Any],
) -> None:
    assert not is_probe(replace(CALL, **over), HOME)


@pytest.mark.parametrize("error_code", ["InvalidParameterValueException", "Whatever"])
def test_send_by_the_probe_role_to_the_probe_queue_is_a_probe_whatever_its_error_code(
    error_code: str,
) -> None:
    assert is_probe(replace(CALL, error_code=error_code), HOME)


CALL_WITHOUT_QUEUE = replace(CALL, queue_arn=None)


def test_send_by_the_probe_role_is_a_probe_even_if_its_record_names_no_queue() -> None:
    assert is_probe(CALL_WITHOUT_QUEUE, HOME)


@pytest.mark.parametrize(
    "over", [{"principal_arn": f"{ROLE}-of-others"}, {"event_name": "DeleteMessage"}]
)
def test_call_without_a_queue_by_another_role_or_of_another_kind_is_no_probe(
    over: dict[str, Any],
) -> None:
    assert not is_probe(replace(CALL_WITHOUT_QUEUE, **over), HOME)


def test_probe_counts_as_seen_until_its_arrival_timeout() -> None:
    assert not SENT.was_seen
    assert _mark_seen(SENT, PROBE_ARRIVAL_TIMEOUT).was_seen
    assert not _mark_seen(SENT, PROBE_ARRIVAL_TIMEOUT + MOMENT).was_seen


def test_probe_counts_as_seen_although_clocks_differ_by_up_to_the_allowed_difference() -> None:
    assert _mark_seen(SENT, MINUTE, made_after=-MOST_CLOCK_DIFFERENCE).was_seen
    assert not _mark_seen(SENT, MINUTE, made_after=-MOST_CLOCK_DIFFERENCE - MOMENT).was_seen


def test_probe_counts_as_seen_although_cloudtrail_cuts_the_fraction_of_its_second() -> None:
    sent = structs.replace(SENT, sent_at=SENT.sent_at + 0.9 * MOMENT)
    assert _mark_seen(sent, MINUTE).was_seen


LOST = SENT.next_probe(AT + AN_HOUR, AT + AN_HOUR)


def test_probe_that_was_not_seen_within_an_hour_is_lost() -> None:
    assert (SENT.lost_in_a_row, LOST.lost_in_a_row) == (0, 1)


@pytest.mark.parametrize(
    ("scheduled_at", "now"),
    [(AT + AN_HOUR, AT + AN_HOUR + MINUTE), (AT, AT + 2 * AN_HOUR)],
    ids=["same schedule again", "earlier schedule that comes late"],
)
def test_repeated_or_late_schedule_does_not_count_a_lost_probe_again(
    scheduled_at: datetime, now: datetime
) -> None:
    assert LOST.next_probe(scheduled_at, now) == LOST


def test_probe_is_not_judged_before_its_arrival_timeout() -> None:
    soon = AT + PROBE_ARRIVAL_TIMEOUT - MINUTE
    assert SENT.next_probe(soon, soon) == SENT


def test_probe_is_judged_at_its_arrival_timeout_although_it_was_sent_some_seconds_late() -> None:
    now = SENT.sent_at + PROBE_ARRIVAL_TIMEOUT - 2 * MOMENT
    assert SENT.next_probe(AT + PROBE_ARRIVAL_TIMEOUT, now).lost_in_a_row == 1


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


def make_two_lost_probes() -> Probe:
    """Return the probe after two that were lost. One before them was seen too late."""
    lost = _mark_seen(SENT, timedelta(minutes=25)).next_probe(AT + AN_HOUR, AT + AN_HOUR)
    return lost.next_probe(AT + 2 * AN_HOUR, AT)


def test_subject_of_the_notification_of_lost_probes_fits_the_longest_region_name() -> None:
    lost = make_two_lost_probes()
    page = describe_lost_probes(lost, "123456789012", "us-gov-northwest-12")
    assert page.subject == "Mendq escalated: no probe in 123456789012 us-gov-northwest-12"
    assert len(page.subject) <= MOST_SUBJECT_CHARACTERS


def test_notification_of_lost_probes_says_how_many_since_when_and_what_to_do() -> None:
    page = describe_lost_probes(make_two_lost_probes(), "123456789012", "us-east-1")
    for said in (
        "the last 2 did not",
        "lost since 2026-11-21 08:00:03 UTC",
        "seen last: 2026-11-21 08:25:03 UTC",
        "mendq doctor",
        "docs/runbooks/probe_lost.md",
    ):
        assert said in page.body


def test_notification_of_lost_probes_says_that_no_probe_was_ever_seen() -> None:
    never = structs.replace(make_two_lost_probes(), seen_at=None, spelled="")
    body = describe_lost_probes(never, "123456789012", "us-east-1").body
    assert "seen last: never" in body
    assert '"not known"' in body
