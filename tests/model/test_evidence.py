"""What failed calls and findings amount to, and who called."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue.examples import failed_call
from mendq.model.evidence import (
    MAXIMUM_ERROR_MESSAGE_LENGTH,
    MAXIMUM_STORED_SIGHTINGS,
    Evidence,
    Sighting,
)
from mendq.model.message_calls import list_actions_allowing
from mendq.model.principals import (
    find_first_role_or_user,
    has_role_or_user_outside_account,
    name_first_principals,
)
from mendq.model.time_text import format_time

AT = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)
MEASURED = Sighting.from_scan(AT + timedelta(hours=1, microseconds=7))


def seen(**seconds: float) -> Evidence:
    """Calls by their event id, so many seconds after AT."""
    return Evidence.of(
        Sighting(AT + timedelta(seconds=at), name, f"r-{name}", "arn:role/x")
        for name, at in seconds.items()
    )


@pytest.mark.parametrize(
    ("evidence", "enough"),
    [
        (Evidence(), False),
        (seen(a=0, b=5, c=600), True),
        (seen(a=0, b=5, c=600.001), False),
        (seen(old=-3000, a=0, b=0, c=0), True),
        (Evidence((MEASURED,)), True),
    ],
)
def test_three_events_within_ten_minutes_are_enough_or_one_measurement(
    evidence: Evidence, enough: bool
) -> None:
    assert evidence.is_sufficient is enough


def test_one_event_seen_three_times_is_one_and_so_is_a_scan_s_finding() -> None:
    thrice = Evidence.of(each for n in range(3) for each in seen(a=n).sightings)
    assert len(thrice.sightings) == 1
    again = Sighting.from_scan(AT + timedelta(hours=1, microseconds=9))
    assert len(Evidence.of([MEASURED, again]).sightings) == 1


def test_what_is_retained_is_fresh_and_bounded() -> None:
    retained = seen(**{f"e{n}": -n * 60 for n in range(70)}).fresh(AT).list_sightings_to_keep()
    assert len(retained) == MAXIMUM_STORED_SIGHTINGS
    assert retained[-1].event_id == "e0"
    assert seen(stale=-3601).fresh(AT).list_sightings_to_keep() == ()


def test_the_document_names_first_and_last_and_requests_are_those_of_failed_calls() -> None:
    document = Evidence.of([MEASURED, *seen(b=5, a=0).sightings]).document()
    assert document["first_at"] == format_time(AT) == "2026-11-16T09:30:00.000Z"
    assert (document["first_request_id"], document["last_request_id"]) == ("r-a", "r-b")
    assert (document["failed_calls"], document["last_at"]) == (2, "2026-11-16T10:30:00.000Z")


def test_a_measured_case_grows_by_the_calls_that_fail_later() -> None:
    measured = Evidence((MEASURED,))
    assert (measured.calls, measured.principals(), measured.event_names()) == ((), (), ())
    grown = seen(a=9_000).merge_into(measured.document())
    assert (grown["first_request_id"], grown["failed_calls"]) == ("r-a", 1)
    assert grown["first_at"] == measured.document()["first_at"]
    again = Evidence((Sighting.from_scan(AT + timedelta(hours=9)),)).merge_into(grown)
    assert (again["last_request_id"], again["failed_calls"]) == ("r-a", 1)
    assert again["last_at"] == "2026-11-16T18:30:00.000Z"


def test_a_scan_s_finding_says_nothing_of_the_visibility_that_readers_ask_for() -> None:
    calls = [replace(e, requested_visibility_seconds=20) for e in seen(a=0, b=0).sightings]
    assert Evidence.of([*calls, MEASURED]).smallest_requested_visibility_seconds() == 20
    assert Evidence((MEASURED,)).smallest_requested_visibility_seconds() is None


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
def test_who_is_an_identity_of_iam_and_who_a_stranger(principal: str) -> None:
    assert not has_role_or_user_outside_account("123456789012", [principal, ROLE, USER])
    assert has_role_or_user_outside_account("123456789012", [principal, ROLE, STRANGER])
    assert find_first_role_or_user([principal]) is None
    assert find_first_role_or_user(["sns.amazonaws.com", principal, STRANGER, USER]) == STRANGER


def test_a_batch_is_granted_by_the_single_action_once() -> None:
    assert list_actions_allowing(["GetQueueUrl", "ReceiveMessageBatch", ""]) == ()
    both = ["ReceiveMessage", "ChangeMessageVisibilityBatch", "ChangeMessageVisibility"]
    assert list_actions_allowing(both) == ("sqs:ChangeMessageVisibility", "sqs:ReceiveMessage")


def test_a_few_are_named() -> None:
    assert name_first_principals(()) == "a caller that CloudTrail does not name"
    assert name_first_principals("abc") == "a, b, c"
    assert name_first_principals("abcd") == "a, b, c and 1 more"


def _called(n: int) -> Sighting:
    call = failed_call("SendMessage", "KmsThrottled", "x" * 2_000)
    over: Any = {"event_id": f"e{n:02}", "request_id": f"r{n}", "user_agent": "sdk"}
    return Sighting.of(replace(call, event_time=AT + timedelta(seconds=n), **over))


def _requests(evidence: Evidence) -> list[dict[str, str]]:
    return evidence.document()["requests"]  # type: ignore[return-value]


def test_the_requests_of_either_end_are_kept_however_a_case_grows() -> None:
    evidence, later = (Evidence.of(map(_called, range(*each))) for each in ((12,), (12, 20)))
    ids = [each["request_id"] for each in _requests(evidence)]
    assert ids == [f"r{n}" for n in (*range(5), *range(7, 12))]
    grown = Evidence((MEASURED,)).merge_into(later.merge_into(evidence.document()))["requests"]
    assert [each["request_id"] for each in grown] == [f"r{n}" for n in (*range(5), *range(15, 20))]
    assert grown[0] == {
        "request_id": "r0",
        "at": "2026-11-16T09:30:00.000Z",
        "operation": "SendMessage",
        "error_code": "KmsThrottled",
        "error_message": "x" * MAXIMUM_ERROR_MESSAGE_LENGTH,
        "principal_arn": _called(0).principal_arn,
        "source_ip": "10.0.0.7",
        "user_agent": "sdk",
    }
    assert Sighting.from_text(_called(0).to_text()).request() == grown[0]


def test_what_a_scan_found_has_no_request_and_what_is_not_known_is_left_out() -> None:
    assert _requests(Evidence((MEASURED,))) == []
    (request,) = _requests(Evidence.of([Sighting(AT, "e", "r", "")]))
    assert request == {"request_id": "r", "at": "2026-11-16T09:30:00.000Z"}
