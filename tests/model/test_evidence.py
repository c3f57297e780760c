"""Test the evidence of a case: sightings, the stored document, and the callers' principals."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue.configuration.invalid_request import LATE_DELETE_CALL
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


def make_calls(**seconds: float) -> Evidence:
    """Make one failed call per event id, at these seconds after AT."""
    return Evidence.of(
        Sighting(AT + timedelta(seconds=at), name, f"r-{name}", "arn:role/x")
        for name, at in seconds.items()
    )


@pytest.mark.parametrize(
    ("evidence", "enough"),
    [
        (Evidence(), False),
        (make_calls(a=0, b=5, c=600), True),
        (make_calls(a=0, b=5, c=600.001), False),
        (make_calls(old=-3000, a=0, b=0, c=0), True),
        (Evidence((MEASURED,)), True),
    ],
)
def test_evidence_is_sufficient_with_three_calls_in_ten_minutes_or_one_measurement(
    evidence: Evidence, enough: bool
) -> None:
    assert evidence.is_sufficient is enough


def test_evidence_counts_an_event_delivered_three_times_once() -> None:
    sightings = [make_calls(a=second).sightings[0] for second in range(3)]
    assert len(Evidence.of(sightings).sightings) == 1


def test_evidence_counts_two_measurements_of_the_same_hour_once() -> None:
    same_hour = Sighting.from_scan(AT + timedelta(hours=1, microseconds=9))
    assert len(Evidence.of([MEASURED, same_hour]).sightings) == 1


def test_evidence_keeps_only_the_newest_sightings_up_to_its_maximum() -> None:
    one_a_minute = make_calls(**{f"e{n}": -n * 60 for n in range(70)})
    retained = one_a_minute.without_old_sightings(AT).list_sightings_to_keep()
    assert len(retained) == MAXIMUM_STORED_SIGHTINGS
    assert retained[-1].event_id == "e0"


def test_evidence_drops_a_sighting_older_than_an_hour() -> None:
    assert make_calls(stale=-3601).without_old_sightings(AT).list_sightings_to_keep() == ()
    assert len(make_calls(fresh=-3599).without_old_sightings(AT).list_sightings_to_keep()) == 1


def test_evidence_document_has_first_and_last_time_and_request_id_and_failed_call_count() -> None:
    document = Evidence.of([MEASURED, *make_calls(b=5, a=0).sightings]).document()
    assert document["first_at"] == format_time(AT) == "2026-11-16T09:30:00.000Z"
    assert (document["first_request_id"], document["last_request_id"]) == ("r-a", "r-b")
    assert (document["failed_calls"], document["last_at"]) == (2, "2026-11-16T10:30:00.000Z")


def test_evidence_of_a_measurement_has_no_calls_principals_or_operations() -> None:
    measured = Evidence((MEASURED,))
    assert (measured.calls, measured.principals(), measured.event_names()) == ((), (), ())


def test_failed_calls_merged_into_a_measurement_are_counted_and_keep_its_first_time() -> None:
    measured = Evidence((MEASURED,)).document()
    grown = make_calls(a=9_000).merge_into(measured)
    assert (grown["first_request_id"], grown["failed_calls"]) == ("r-a", 1)
    assert grown["first_at"] == measured["first_at"]


def test_measurement_merged_into_failed_calls_moves_only_the_last_time() -> None:
    calls = make_calls(a=9_000).document()
    again = Evidence((Sighting.from_scan(AT + timedelta(hours=9)),)).merge_into(calls)
    assert again == {**calls, "last_at": "2026-11-16T18:30:00.000Z"}


def test_smallest_requested_visibility_is_that_of_failed_calls_and_none_without_them() -> None:
    first, second = make_calls(a=0, b=0).sightings
    calls = [
        replace(first, requested_visibility_seconds=40),
        replace(second, requested_visibility_seconds=20),
    ]
    assert Evidence.of([*calls, MEASURED]).smallest_requested_visibility_seconds() == 20
    assert Evidence((MEASURED,)).smallest_requested_visibility_seconds() is None


def make_deletes(**seconds_by_caller: tuple[float, ...]) -> Evidence:
    """Make failed deletes of callers with one role, each at its own address."""
    return Evidence.of(
        Sighting(
            AT + timedelta(seconds=seconds),
            f"{source_ip}-{seconds}",
            "r",
            "arn:role/x",
            "DeleteMessage",
            source_ip=source_ip,
        )
        for source_ip, deletes in seconds_by_caller.items()
        for seconds in deletes
    )


@pytest.mark.parametrize(
    ("evidence", "interval_seconds"),
    [
        pytest.param(make_deletes(a=(0, 9)), None, id="two deletes"),
        pytest.param(make_deletes(a=(0, 8, 18)), 9.0, id="three deletes"),
        pytest.param(make_deletes(a=(0, 100, 104, 108, 300)), 4.0, id="the fastest three"),
        pytest.param(make_deletes(a=(0, 60), b=(1, 61), c=(2, 62)), None, id="other addresses"),
        pytest.param(make_calls(a=0, b=1, c=2), None, id="other calls"),
    ],
)
def test_shortest_delete_interval_is_the_mean_of_the_fastest_three_deletes_from_one_address(
    evidence: Evidence, interval_seconds: float | None
) -> None:
    assert evidence.shortest_delete_interval_seconds() == interval_seconds
    assert evidence.sightings
    assert evidence.document().get("delete_interval_seconds") == interval_seconds


def test_evidence_of_many_consumers_keeps_three_deletes_of_one_of_them() -> None:
    """Twenty consumers work on batches at once. A run sees one late delete of each."""
    evidence = Evidence()
    for seconds in (0, 8, 16):
        consumers = {f"10.0.0.{number}": (seconds + number / 10,) for number in range(20)}
        kept = evidence.list_sightings_to_keep()
        evidence = Evidence.of([*kept, *make_deletes(**consumers).sightings])
    assert evidence.shortest_delete_interval_seconds() == 8
    kept = evidence.list_sightings_to_keep()
    assert len(kept) == MAXIMUM_STORED_SIGHTINGS
    assert list(kept) == sorted(kept)
    assert kept[-1] == evidence.sightings[-1]


def test_kept_deletes_of_one_consumer_displace_no_newer_calls_of_others() -> None:
    many = [sighting for seconds in range(9) for sighting in make_deletes(a=(seconds,)).sightings]
    others = [replace(MEASURED, event_id=f"o-{number}") for number in range(9)]
    kept = Evidence.of([*many, *others]).list_sightings_to_keep()
    assert len([sighting for sighting in kept if sighting.source_ip == "a"]) == 3


def make_late_call(
    seconds: float, event_name: str = "ChangeMessageVisibility", principal: str = "arn:role/x"
) -> Sighting:
    """Make a call on a FIFO queue whose receipt handle had expired."""
    return Sighting(
        AT + timedelta(seconds=seconds),
        f"{event_name}-{principal}-{seconds}",
        "r",
        principal,
        event_name,
        error_code="InvalidParameterValueException",
        error_message=LATE_DELETE_CALL.error_message,
    )


@pytest.mark.parametrize(
    ("sightings", "is_enough"),
    [
        pytest.param([make_late_call(n / 10) for n in range(9)], False, id="one burst"),
        pytest.param(
            [make_late_call(n, principal=f"arn:role/{n}") for n in range(9)],
            False,
            id="one burst of a fleet",
        ),
        pytest.param(
            [make_late_call(0), *(make_late_call(n, "DeleteMessage") for n in range(9))],
            False,
            id="the deletes of that burst",
        ),
        pytest.param([make_late_call(n) for n in (0, 1, 60, 61, 119.9)], False, id="two bursts"),
        pytest.param([make_late_call(n) for n in (0, 60, 120)], True, id="three bursts"),
    ],
)
def test_late_visibility_extensions_and_their_deletes_are_sufficient_only_in_three_bursts(
    sightings: list[Sighting], *, is_enough: bool
) -> None:
    """A burst counts as one event."""
    evidence = Evidence.of(sightings)
    assert evidence.is_sufficient is is_enough
    stored = Evidence.of(evidence.list_sightings_to_keep())
    assert stored.is_sufficient is is_enough, "later calls are judged by what is stored"


@pytest.mark.parametrize(
    "sightings",
    [
        pytest.param([make_late_call(n, "DeleteMessage") for n in range(3)], id="deletes"),
        pytest.param(
            [
                make_late_call(0),
                *(make_late_call(n, "DeleteMessage", "arn:role/y") for n in range(3)),
            ],
            id="deletes of another principal",
        ),
        pytest.param(
            [replace(make_late_call(n), error_message="denied") for n in range(3)],
            id="extensions that are not late",
        ),
    ],
)
def test_three_failed_deletes_or_other_extensions_in_seconds_are_sufficient_evidence(
    sightings: list[Sighting],
) -> None:
    evidence = Evidence.of(sightings)
    assert evidence.is_sufficient
    assert Evidence.of(evidence.list_sightings_to_keep()).is_sufficient


def test_burst_of_late_extensions_does_not_push_out_earlier_ones() -> None:
    bursts = [make_late_call(minute * 60 + n / 10) for minute in range(3) for n in range(30)]
    assert Evidence.of(Evidence.of(bursts).list_sightings_to_keep()).is_sufficient


@pytest.mark.parametrize("text", ["[]", "7", "{}", '[1, "e", "r", "p", "d", null, "nobody"]', "x"])
def test_sighting_from_text_raises_for_text_that_no_sighting_wrote(text: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        Sighting.from_text(text)


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=30))
def test_sighting_round_trips_through_its_stored_text(
    event_id: str, request_id: str, principal: str
) -> None:
    sighting = Sighting(AT, event_id, request_id, principal)
    assert Sighting.from_text(sighting.to_text()) == sighting


ROLE = "arn:aws:iam::123456789012:role/team/orders-worker"
USER = "arn:aws:iam::123456789012:user/ann@example.com"
ROLE_OF_OTHER_ACCOUNT = "arn:aws-cn:iam::210987654321:role/x"


NO_ROLES_OR_USERS = pytest.mark.parametrize(
    "principal",
    ["", "events.amazonaws.com", f"{ROLE}\n", f"{ROLE} x", "arn:aws:sts::123456789012:x/y", "AIDA"],
)


@NO_ROLES_OR_USERS
def test_only_iam_roles_and_users_of_another_account_count_as_callers_outside_the_account(
    principal: str,
) -> None:
    own_account = "123456789012"
    assert not has_role_or_user_outside_account(own_account, [principal, ROLE, USER])
    callers = [principal, ROLE, ROLE_OF_OTHER_ACCOUNT]
    assert has_role_or_user_outside_account(own_account, callers)


@NO_ROLES_OR_USERS
def test_first_role_or_user_skips_callers_that_are_neither(principal: str) -> None:
    assert find_first_role_or_user([principal]) is None
    callers = ["sns.amazonaws.com", principal, ROLE_OF_OTHER_ACCOUNT, USER]
    assert find_first_role_or_user(callers) == ROLE_OF_OTHER_ACCOUNT


def test_actions_to_grant_for_batch_calls_are_the_single_message_actions_without_repeats() -> None:
    both = ["ReceiveMessage", "ChangeMessageVisibilityBatch", "ChangeMessageVisibility"]
    assert list_actions_allowing(both) == ("sqs:ChangeMessageVisibility", "sqs:ReceiveMessage")


def test_calls_that_are_no_message_calls_give_no_action_to_grant() -> None:
    assert list_actions_allowing(["GetQueueUrl", "ReceiveMessageBatch", ""]) == ()


def test_first_three_principals_are_named_and_the_rest_counted() -> None:
    assert name_first_principals("abc") == "a, b, c"
    assert name_first_principals("abcd") == "a, b, c and 1 more"


def test_missing_principals_are_named_as_a_caller_that_cloudtrail_does_not_name() -> None:
    assert name_first_principals(()) == "a caller that CloudTrail does not name"


def _make_call(n: int) -> Sighting:
    call = failed_call("SendMessage", "KmsThrottled", "x" * 2_000)
    fields: Any = {"event_id": f"e{n:02}", "request_id": f"r{n}", "user_agent": "sdk"}
    return Sighting.of(replace(call, event_time=AT + timedelta(seconds=n), **fields))


def _read_requests(evidence: Evidence) -> list[dict[str, str]]:
    return evidence.document()["requests"]  # type: ignore[return-value]


def test_evidence_keeps_the_first_five_and_the_last_five_requests() -> None:
    evidence = Evidence.of(map(_make_call, range(12)))
    ids = [request["request_id"] for request in _read_requests(evidence)]
    assert ids == [f"r{n}" for n in (*range(5), *range(7, 12))]


def test_merging_later_calls_keeps_the_first_five_requests_and_the_last_five_of_all() -> None:
    earlier = Evidence.of(map(_make_call, range(12))).document()
    later = Evidence.of(map(_make_call, range(12, 20)))
    grown = Evidence((MEASURED,)).merge_into(later.merge_into(earlier))
    ids = [request["request_id"] for request in grown["requests"]]
    assert ids == [f"r{n}" for n in (*range(5), *range(15, 20))]


def test_evidence_lists_a_requests_time_operation_caller_and_truncated_error_message() -> None:
    (request,) = _read_requests(Evidence.of([_make_call(0)]))
    assert request == {
        "request_id": "r0",
        "at": "2026-11-16T09:30:00.000Z",
        "operation": "SendMessage",
        "error_code": "KmsThrottled",
        "error_message": "x" * MAXIMUM_ERROR_MESSAGE_LENGTH,
        "principal_arn": _make_call(0).principal_arn,
        "source_ip": "10.0.0.7",
        "user_agent": "sdk",
    }


def test_request_of_a_sighting_is_the_same_after_it_was_stored_and_read() -> None:
    sighting = _make_call(0)
    assert Sighting.from_text(sighting.to_text()).request() == sighting.request()


def test_measurement_of_a_scan_is_not_listed_among_the_requests_of_the_evidence() -> None:
    assert _read_requests(Evidence((MEASURED,))) == []


def test_request_leaves_out_the_fields_that_are_unknown() -> None:
    (request,) = _read_requests(Evidence.of([Sighting(AT, "e", "r", "")]))
    assert request == {"request_id": "r", "at": "2026-11-16T09:30:00.000Z"}
