"""A pin holds for one queue, thirty days, until somebody decides anew; a doubt ends it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

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
MOMENT, HOUR = timedelta(seconds=1), timedelta(hours=1)
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


def good(*changes: QueueChange, pin: Pin = PIN, now: datetime = NOW) -> bool:
    """Whether the pin may be restored after these, the last of which SQS knows of as well."""
    return check_pin(pin, changes, max(each.at for each in changes), now).is_good


def test_a_pin_s_document_gives_the_pin_back_and_its_digest_is_of_each_byte() -> None:
    assert read_pin(json.dumps(PIN.document())) == PIN
    assert PIN.document()["expires_at"] == "2026-12-02T09:10:00.000Z"
    assert (
        digest_of_policy("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    )
    assert len({*map(digest_of_policy, (POLICY, POLICY.replace(" ", ""), f"{POLICY}\n"))}) == 3


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
def test_what_is_wrong_with_a_pin_itself(
    pin: Pin, queue_arn: str, created_at: datetime | None, now: datetime, doubt: str | None
) -> None:
    found = find_pin_doubt_without_history(pin, queue_arn, created_at, now)
    assert (doubt in str(found)) if doubt else (found is None)


@pytest.mark.parametrize("event_name", ["SetQueueAttributes", "AddPermission", "DeleteQueue"])
def test_anybody_s_change_of_the_policy_ends_it(event_name: str) -> None:
    found = check_pin(PIN, [replace(BY_ALICE, event_name=event_name)], CHANGED, NOW + HOUR)
    assert (found.is_good, found.passes) == (False, False)
    assert f"{ALICE} has changed it since ({event_name}, 2026-11-09 12:00:00 UTC)" in found.doubt


def test_a_deployment_does_not_end_it_nor_do_other_attributes() -> None:
    by_role, before = replace(BY_ALICE, principal_arn=DEPLOYS), replace(DEPLOYED, at=CHANGED - HOUR)
    assert check_pin(PIN, [DEPLOYED], CHANGED, NOW).changed == DEPLOYED
    assert good(by_role)
    assert good(DEPLOYED, before)
    assert good(DEPLOYED, VISIBILITY)
    assert not good(by_role, pin=replace(PIN, automation=()))
    between = replace(BY_ALICE, at=CHANGED - HOUR / 2)
    assert not good(DEPLOYED, between, before), "a person between two deployments"
    alone = check_pin(PIN, [VISIBILITY], VISIBILITY.at, NOW)
    assert "knows nobody who changed it" in alone.doubt


@pytest.mark.parametrize("principal", [f"{DEPLOYS}2", DEPLOYS.upper(), "cloudformation", ""])
def test_a_name_like_a_deployment_s_is_none(principal: str) -> None:
    assert not good(replace(BY_ALICE, principal_arn=principal))


def test_the_change_that_stood_when_it_was_pinned_does_not_count() -> None:
    assert good(replace(BY_ALICE, at=MODIFIED + CLOCK_SKEW), DEPLOYED)
    assert not good(replace(BY_ALICE, at=MODIFIED + CLOCK_SKEW + MOMENT), DEPLOYED)


@pytest.mark.parametrize("seconds", [2, 4, 300])
def test_a_change_that_cloudtrail_has_not_said_of_yet_is_waited_for_and_never_overruled(
    seconds: int,
) -> None:
    """T3: somebody revokes right after a deployment, and only that is told of."""
    a_person_after_it = CHANGED + timedelta(seconds=seconds)
    for changes in ([], [DEPLOYED]):
        for minutes, passes in ((19, True), (20, False)):
            at = a_person_after_it + timedelta(minutes=minutes)
            found = check_pin(PIN, changes, a_person_after_it, at)
            assert (found.is_good, found.passes) == (False, passes)


def test_a_deployment_that_may_go_on_is_waited_for() -> None:
    announced = CHANGED + CLOUDTRAIL_DELIVERY_TIME
    soon = check_pin(PIN, [DEPLOYED], CHANGED, announced - MOMENT)
    assert (soon.is_good, soon.passes) == (False, True)
    assert "2026-11-09 12:20:00 UTC" in soon.doubt
    assert good(DEPLOYED, now=announced)


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


@pytest.mark.parametrize("field", WRONG)
def test_what_is_no_document_of_a_pin_is_none(field: str) -> None:
    whole: dict[str, Any] = PIN.document()
    for given_instead in WRONG[field]:
        with pytest.raises(ValueError):
            read_pin(json.dumps({**whole, field: given_instead}))
    if field != "automation":
        with pytest.raises(ValueError, match=field):
            read_pin(json.dumps({name: each for name, each in whole.items() if name != field}))


def test_what_is_not_known_is_no_good() -> None:
    unknown = check_pin(PIN, "CloudTrail did not say", CHANGED, NOW)
    assert "CloudTrail did not say" in unknown.doubt
    assert not unknown.passes
    assert not check_pin(PIN, [DEPLOYED], None, NOW).is_good


def test_the_history_is_asked_for_by_sqs_s_clock_and_not_further_back_than_it_goes() -> None:
    assert PIN.since == MODIFIED
    years_ago = replace(PIN, queue_modified_at=datetime(2020, 1, 1, tzinfo=UTC))
    assert years_ago.since == PINNED - timedelta(days=1)


SINCE_THEN = st.timedeltas(timedelta(), NOW - MODIFIED).map(lambda each: MODIFIED + each)
CHANGES = st.builds(
    QueueChange,
    at=SINCE_THEN,
    event_name=st.just("AddPermission"),
    principal_arn=st.sampled_from((ALICE, DEPLOYS)),
    may_change_policy=st.booleans(),
    by_cloudformation=st.booleans(),
)


@given(st.lists(CHANGES, max_size=5), SINCE_THEN)
def test_a_good_pin_was_only_overwritten_by_deployments(
    changes: list[QueueChange], modified_at: datetime
) -> None:
    found = check_pin(PIN, changes, modified_at, NOW)
    if not found.is_good:
        return
    assert found.changed in changes
    for each in changes:
        if each.may_change_policy and each.at > MODIFIED + CLOCK_SKEW:
            assert each.by_cloudformation or each.principal_arn == DEPLOYS
    assert max(each.at for each in changes) >= modified_at - CLOCK_SKEW
