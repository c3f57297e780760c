"""What failed calls and findings amount to, and who called."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.model.evidence import (
    MAXIMUM_RETAINED,
    Evidence,
    EvidenceNeeded,
    Sighting,
    are_strangers_to,
    first_identity,
    granted_by,
    named,
    to_text,
)

AT = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)


def sighting(event_id: str, seconds: float = 0) -> Sighting:
    return Sighting(AT + timedelta(seconds=seconds), event_id, f"r-{event_id}", "arn:role/x")


def test_one_event_seen_three_times_is_one() -> None:
    evidence = Evidence.of([sighting("a"), sighting("a", 1), sighting("a", 2)])
    assert len(evidence.sightings) == 1
    assert not evidence.suffices(EvidenceNeeded())


@pytest.mark.parametrize(("last_seconds", "enough"), [(600, True), (600.001, False)])
def test_the_window_is_ten_minutes_inclusive(last_seconds: float, enough: bool) -> None:
    evidence = Evidence.of([sighting("a"), sighting("b", 5), sighting("c", last_seconds)])
    assert evidence.suffices(EvidenceNeeded()) is enough


def test_the_window_may_lie_anywhere() -> None:
    evidence = Evidence.of([sighting("old", -3000), *(sighting(each) for each in "abc")])
    assert evidence.suffices(EvidenceNeeded())
    assert not Evidence().suffices(EvidenceNeeded())


def test_what_is_retained_is_fresh_and_bounded() -> None:
    many = Evidence.of(sighting(str(n), -n * 60) for n in range(70))
    retained = many.fresh(AT).worth_keeping()
    assert len(retained) == MAXIMUM_RETAINED
    assert retained[-1].event_id == "0"
    assert Evidence.of([sighting("stale", -3601)]).fresh(AT).worth_keeping() == ()


MEASURED = Sighting.of_measurement(AT + timedelta(hours=1, microseconds=7))


def test_one_measurement_is_enough_and_no_failed_call() -> None:
    evidence = Evidence((MEASURED,))
    assert evidence.suffices(EvidenceNeeded())
    assert (evidence.failed_calls, evidence.principals(), evidence.event_names()) == (0, (), ())
    assert evidence.document()["first_at"] == "2026-11-16T10:30:00.000Z"
    again = Sighting.of_measurement(AT + timedelta(hours=1, microseconds=9))
    assert len(Evidence.of([MEASURED, again]).sightings) == 1, "the same scan's finding"


def test_the_document_names_first_and_last_and_requests_are_those_of_failed_calls() -> None:
    document = Evidence.of([MEASURED, sighting("b", 5), sighting("a")]).document()
    assert document["first_at"] == to_text(AT) == "2026-11-16T09:30:00.000Z"
    assert (document["first_request_id"], document["last_request_id"]) == ("r-a", "r-b")
    assert document["failed_calls"] == 2
    assert document["last_at"] == "2026-11-16T10:30:00.000Z"


def test_a_measured_case_grows_by_the_calls_that_fail_later() -> None:
    measured = Evidence((MEASURED,)).document()
    grown = Evidence.of([sighting("a", 9_000)]).added_to(measured)
    assert (grown["first_request_id"], grown["failed_calls"]) == ("r-a", 1)
    assert grown["first_at"] == measured["first_at"]
    again = Evidence((Sighting.of_measurement(AT + timedelta(hours=9)),)).added_to(grown)
    assert (again["last_request_id"], again["failed_calls"]) == ("r-a", 1)
    assert again["last_at"] == "2026-11-16T18:30:00.000Z"


def test_a_scan_s_finding_says_nothing_of_the_visibility_that_readers_ask_for() -> None:
    calls = [replace(sighting(each), requested_visibility_seconds=20) for each in "ab"]
    assert Evidence.of([*calls, MEASURED]).reader_visibility_seconds() == 20
    assert Evidence((MEASURED,)).reader_visibility_seconds() is None


def test_what_the_case_store_retained_before_there_were_scans_is_read() -> None:
    older = json.dumps([int(AT.timestamp() * 1000), "e", "r", "p", "DeleteMessage", 30, None])
    read = Sighting.from_text(older)
    assert (read.requested_visibility_seconds, read.refused_by, read.measured) == (30, None, False)
    assert Sighting.from_text(MEASURED.to_text()).measured


@pytest.mark.parametrize("text", ["[]", "7", "{}", '[1, "e", "r", "p", "d", null, "nobody"]', "x"])
def test_what_is_none_of_ours_is_refused(text: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        Sighting.from_text(text)


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=30))
def test_a_sighting_survives_the_case_store(event_id: str, request_id: str, principal: str) -> None:
    one = Sighting(AT, event_id, request_id, principal)
    assert Sighting.from_text(one.to_text()) == one


ROLE = "arn:aws:iam::123456789012:role/team/orders-worker"
USER = "arn:aws:iam::123456789012:user/ann@example.com"
STRANGER = "arn:aws-cn:iam::210987654321:role/x"


@pytest.mark.parametrize(
    "principal",
    ["", "events.amazonaws.com", f"{ROLE}\n", f"{ROLE} x", "arn:aws:sts::123456789012:x/y", "AIDA"],
)
def test_what_is_no_identity_of_iam(principal: str) -> None:
    assert first_identity([principal]) is None
    assert not are_strangers_to("123456789012", [principal])
    assert first_identity(["sns.amazonaws.com", principal, STRANGER, "x"]) == STRANGER


def test_one_stranger_is_enough() -> None:
    assert first_identity([USER, ROLE]) == USER
    assert not are_strangers_to("123456789012", [ROLE, USER])
    assert are_strangers_to("123456789012", [ROLE, STRANGER])


@pytest.mark.parametrize(
    ("event_names", "actions"),
    [
        (["GetQueueUrl", "ReceiveMessageBatch", ""], ()),
        (["SendMessageBatch", "SendMessage"], ("SendMessage",)),
        (
            ["ReceiveMessage", "ChangeMessageVisibilityBatch"],
            ("ChangeMessageVisibility", "ReceiveMessage"),
        ),
    ],
)
def test_a_batch_is_granted_by_the_single_action_once(
    event_names: list[str], actions: tuple[str, ...]
) -> None:
    assert granted_by(event_names) == tuple(f"sqs:{each}" for each in actions)


@pytest.mark.parametrize(
    ("principals", "text"),
    [
        ((), "a caller that CloudTrail does not name"),
        (("a", "b", "c"), "a, b, c"),
        (("a", "b", "c", "d"), "a, b, c and 1 more"),
    ],
)
def test_a_few_are_named(principals: tuple[str, ...], text: str) -> None:
    assert named(principals) == text
