"""Test when a pinned policy may be restored, and which doubts forbid it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.cases.pins import read_pin
from mendq.model.policy import (
    CLOCK_SKEW,
    CLOUDTRAIL_DELIVERY_TIME,
    PIN_LIFETIME,
    Pin,
    QueueChange,
    check_pin,
    digest_of_policy,
    find_pin_doubt_without_history,
)

QUEUE = "arn:aws:sqs:us-east-1:123456789012:orders"
ALICE = "arn:aws:iam::123456789012:role/operators"
DEPLOYS = "arn:aws:iam::123456789012:role/deploys"
CREATED = datetime(2026, 1, 5, 8, tzinfo=UTC)
MODIFIED = datetime(2026, 11, 2, 9, tzinfo=UTC)
PINNED = datetime(2026, 11, 2, 9, 10, tzinfo=UTC)
CHANGED = datetime(2026, 11, 9, 12, tzinfo=UTC)
NOW = CHANGED + timedelta(minutes=30)
MOMENT = timedelta(seconds=1)
HOUR = timedelta(hours=1)
POLICY = '{"Statement": []}'
PIN = Pin(
    QUEUE,
    POLICY,
    digest_of_policy(POLICY),
    3,
    PINNED,
    ALICE,
    CREATED,
    MODIFIED,
    automation=(DEPLOYS,),
)
DEPLOYED = QueueChange(CHANGED, "SetQueueAttributes", ALICE, by_cloudformation=True)
BY_ALICE = QueueChange(CHANGED, "SetQueueAttributes", ALICE)
VISIBILITY = replace(BY_ALICE, at=CHANGED + MOMENT, may_change_policy=False)


def is_restorable(*changes: QueueChange, pin: Pin = PIN, now: datetime = NOW) -> bool:
    """Return True if the pin may be restored after these changes of the queue."""
    modified_at = max(change.at for change in changes)
    return check_pin(pin, changes, modified_at, now).is_good


def test_pin_round_trips_through_its_document() -> None:
    assert read_pin(json.dumps(PIN.document())) == PIN


def test_pin_document_expires_thirty_days_after_the_pin() -> None:
    assert PIN.document()["expires_at"] == "2026-12-02T09:10:00.000Z"


def test_digest_of_a_policy_changes_with_every_byte() -> None:
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert digest_of_policy("") == empty
    spellings = (POLICY, POLICY.replace(" ", ""), f"{POLICY}\n")
    assert len({digest_of_policy(spelling) for spelling in spellings}) == len(spellings)


@pytest.mark.parametrize(
    ("pin", "queue_arn", "created_at", "now", "doubt"),
    [
        (PIN, QUEUE, CREATED, PINNED + PIN_LIFETIME - MOMENT, None),
        (replace(PIN, policy="{}"), QUEUE, CREATED, NOW, "digest"),
        (replace(PIN, digest=""), QUEUE, CREATED, NOW, "digest"),
        (PIN, f"{QUEUE}2", CREATED, NOW, "another queue"),
        (PIN, QUEUE, CREATED + MOMENT, NOW, "another queue"),
        (PIN, QUEUE, None, NOW, "another queue"),
        (PIN, QUEUE, CREATED, PINNED + PIN_LIFETIME, "expired"),
        (PIN, QUEUE, CREATED, PINNED - timedelta(minutes=6), "future"),
    ],
)
def test_pin_is_doubted_if_its_digest_queue_creation_time_or_age_does_not_fit(
    pin: Pin, queue_arn: str, created_at: datetime | None, now: datetime, doubt: str | None
) -> None:
    found = find_pin_doubt_without_history(pin, queue_arn, created_at, now)
    assert (doubt in str(found)) if doubt else (found is None)


@pytest.mark.parametrize("event_name", ["SetQueueAttributes", "AddPermission", "DeleteQueue"])
def test_pin_is_not_restored_over_a_persons_change_and_the_reason_names_person_call_and_time(
    event_name: str,
) -> None:
    found = check_pin(PIN, [replace(BY_ALICE, event_name=event_name)], CHANGED, NOW + HOUR)
    assert (found.is_good, found.may_doubt_pass) == (False, False)
    assert f"{ALICE} has changed it since ({event_name}, 2026-11-09 12:00:00 UTC)" in found.doubt


DEPLOYED_BY_ROLE = replace(BY_ALICE, principal_arn=DEPLOYS)
DEPLOYED_BEFORE = replace(DEPLOYED, at=CHANGED - HOUR)


def test_pin_is_restored_after_a_deployment_and_the_check_names_that_deployment() -> None:
    assert check_pin(PIN, [DEPLOYED], CHANGED, NOW).deployment_change == DEPLOYED
    assert is_restorable(DEPLOYED, DEPLOYED_BEFORE)


def test_pin_is_restored_over_a_roles_change_only_if_the_pin_lists_it_as_automation() -> None:
    assert is_restorable(DEPLOYED_BY_ROLE)
    assert not is_restorable(DEPLOYED_BY_ROLE, pin=replace(PIN, automation=()))


def test_pin_is_restored_after_a_deployment_and_a_persons_change_of_another_attribute() -> None:
    assert is_restorable(DEPLOYED, VISIBILITY)


def test_pin_is_not_restored_over_a_persons_change_between_two_deployments() -> None:
    between = replace(BY_ALICE, at=CHANGED - HOUR / 2)
    assert not is_restorable(DEPLOYED, between, DEPLOYED_BEFORE)


def test_pin_is_not_restored_if_no_change_of_the_policy_is_known() -> None:
    alone = check_pin(PIN, [VISIBILITY], VISIBILITY.at, NOW)
    assert not alone.is_good
    assert "knows nobody who changed it" in alone.doubt


@pytest.mark.parametrize("principal", [f"{DEPLOYS}2", DEPLOYS.upper(), "cloudformation", ""])
def test_pin_is_not_restored_if_the_principal_only_resembles_a_deployment_role(
    principal: str,
) -> None:
    assert not is_restorable(replace(BY_ALICE, principal_arn=principal))


def test_pin_ignores_changes_up_to_clock_skew_after_the_pinned_policy_was_written() -> None:
    assert is_restorable(replace(BY_ALICE, at=MODIFIED + CLOCK_SKEW), DEPLOYED)
    assert not is_restorable(replace(BY_ALICE, at=MODIFIED + CLOCK_SKEW + MOMENT), DEPLOYED)


@pytest.mark.parametrize("seconds", [2, 4, 300])
def test_pin_is_not_restored_over_an_unknown_change_and_the_doubt_is_final_after_20_minutes(
    seconds: int,
) -> None:
    """Threat T3: a person revokes a grant right after a deployment.

    CloudTrail lists only the deployment.

    `may_doubt_pass` is True while the doubt may still pass.
    """
    modified_at = CHANGED + timedelta(seconds=seconds)
    for changes in ([], [DEPLOYED]):
        for minutes, passes in ((19, True), (20, False)):
            check = check_pin(PIN, changes, modified_at, modified_at + timedelta(minutes=minutes))
            assert (check.is_good, check.may_doubt_pass) == (False, passes)


def test_pin_is_restored_only_after_cloudtrail_had_time_to_report_later_changes() -> None:
    announced = CHANGED + CLOUDTRAIL_DELIVERY_TIME
    soon = check_pin(PIN, [DEPLOYED], CHANGED, announced - MOMENT)
    assert (soon.is_good, soon.may_doubt_pass) == (False, True)
    assert "2026-11-09 12:20:00 UTC" in soon.doubt
    assert is_restorable(DEPLOYED, now=announced)


NO_TEXTS: Sequence[object] = (None, 5, [], {}, "\ud800")
WRONG: dict[str, Sequence[object]] = {
    **dict.fromkeys(("queue_arn", "policy", "digest", "pinned_by"), NO_TEXTS),
    **dict.fromkeys(
        ("pinned_at", "queue_created_at", "queue_modified_at"),
        ("", "x", "2026-01-01T00:00:00", "9999-12-31T00:00:00Z", "0001-01-01T00:00:00Z", None, 5),
    ),
    "generation": ("x", "3", None, True, 3.0, float("inf"), []),
    "automation": (5, None, "ARN", {}, [5], [None], ["\ud800"]),
}


WRONG_VALUES = [(field, value) for field, values in WRONG.items() for value in values]


@pytest.mark.parametrize(
    ("field", "value"), WRONG_VALUES, ids=[f"{field}={value!a}" for field, value in WRONG_VALUES]
)
def test_read_pin_raises_for_a_wrong_value_in_any_field(field: str, value: object) -> None:
    with pytest.raises(ValueError):
        read_pin(json.dumps({**PIN.document(), field: value}))


@pytest.mark.parametrize("field", sorted(WRONG.keys() - {"automation"}))
def test_read_pin_raises_and_names_a_missing_field(field: str) -> None:
    whole = PIN.document()
    with pytest.raises(ValueError, match=field):
        read_pin(json.dumps({name: whole[name] for name in whole if name != field}))


def test_pin_is_not_restored_if_cloudtrail_is_unavailable() -> None:
    unknown = check_pin(PIN, "CloudTrail did not say", CHANGED, NOW)
    assert not unknown.is_good
    assert "CloudTrail did not say" in unknown.doubt
    assert not unknown.may_doubt_pass


def test_pin_is_not_restored_if_the_queues_modification_time_is_unknown() -> None:
    assert not check_pin(PIN, [DEPLOYED], None, NOW).is_good


def test_history_checked_for_a_pin_begins_at_the_last_change_but_at_most_a_day_before() -> None:
    assert PIN.since == MODIFIED
    years_ago = replace(PIN, queue_modified_at=datetime(2020, 1, 1, tzinfo=UTC))
    assert years_ago.since == PINNED - timedelta(days=1)


TIMES_SINCE_PIN = st.timedeltas(timedelta(), NOW - MODIFIED).map(lambda elapsed: MODIFIED + elapsed)
CHANGES = st.builds(
    QueueChange,
    at=TIMES_SINCE_PIN,
    event_name=st.just("AddPermission"),
    principal_arn=st.sampled_from((ALICE, DEPLOYS)),
    may_change_policy=st.booleans(),
    by_cloudformation=st.booleans(),
)


@given(st.lists(CHANGES, max_size=5), TIMES_SINCE_PIN)
def test_policy_of_a_restorable_pin_was_changed_only_by_deployments_in_any_history(
    changes: list[QueueChange], modified_at: datetime
) -> None:
    found = check_pin(PIN, changes, modified_at, NOW)
    if not found.is_good:
        return
    assert found.deployment_change in changes
    for change in changes:
        if change.may_change_policy and change.at > MODIFIED + CLOCK_SKEW:
            assert change.by_cloudformation or change.principal_arn == DEPLOYS
    assert max(change.at for change in changes) >= modified_at - CLOCK_SKEW
