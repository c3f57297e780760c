"""A pin holds for one queue, thirty days, until somebody decides anew; a doubt ends it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.model.policy import (
    CLOCK_SKEW,
    CLOUDTRAIL_TELLS_WITHIN,
    HOLDS,
    SETTLED_AFTER,
    Pin,
    QueueChange,
    digest_of,
    doubt_at_once,
    judged,
)

QUEUE = "arn:aws:sqs:us-east-1:123456789012:orders"
ALICE = "arn:aws:iam::123456789012:role/operators"
DEPLOYS = "arn:aws:iam::123456789012:role/deploys"
CREATED = datetime(2026, 1, 5, 8, tzinfo=UTC)
MODIFIED = datetime(2026, 11, 2, 9, tzinfo=UTC)
PINNED = datetime(2026, 11, 2, 9, 10, tzinfo=UTC)
CHANGED = datetime(2026, 11, 9, 12, tzinfo=UTC)
NOW = CHANGED + timedelta(minutes=30)
POLICY = '{"Statement": []}'
PIN = Pin(
    QUEUE, POLICY, digest_of(POLICY), 3, PINNED, ALICE, CREATED, MODIFIED, automation=(DEPLOYS,)
)
BY_CLOUDFORMATION = QueueChange(CHANGED, "SetQueueAttributes", ALICE, by_cloudformation=True)
BY_ALICE = QueueChange(CHANGED, "SetQueueAttributes", ALICE)

MOMENTS = ("pinned_at", "queue_created_at", "queue_modified_at")
TEXTS = ("queue_arn", "policy", "digest", "pinned_by")
NO_TEXTS: tuple[object, ...] = (None, 5, [], {})
NO_NUMBERS: tuple[object, ...] = ("x", "3", None, True, 3.0, float("inf"), [])
NO_ROLES: tuple[object, ...] = (5, None, "ARN", {}, [5], [None], ["\ud800"])
NO_MOMENTS = ("", "x", "2026-01-01T00:00:00", "9999-12-31T00:00:00Z", "0001-01-01T00:00:00Z")


def test_a_pin_s_document_gives_the_pin_back() -> None:
    assert Pin.from_document(PIN.document()) == PIN
    assert PIN.document()["expires_at"] == "2026-12-02T09:10:00.000Z"


def test_the_digest_is_of_the_text_byte_for_byte() -> None:
    assert digest_of("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert len({*map(digest_of, (POLICY, POLICY.replace(" ", ""), f"{POLICY}\n"))}) == 3


@pytest.mark.parametrize("now", [NOW, PINNED + HOLDS - timedelta(seconds=1)])
def test_a_pin_of_this_queue_is_not_doubted(now: datetime) -> None:
    assert doubt_at_once(PIN, QUEUE, CREATED, now) is None


@pytest.mark.parametrize(
    ("pin", "queue_arn", "created_at", "now", "doubt"),
    [
        (replace(PIN, policy="{}"), QUEUE, CREATED, NOW, "digest"),
        (replace(PIN, digest=""), QUEUE, CREATED, NOW, "digest"),
        (PIN, f"{QUEUE}2", CREATED, NOW, "another queue"),
        (PIN, QUEUE, CREATED + timedelta(seconds=1), NOW, "another queue"),
        (PIN, QUEUE, None, NOW, "another queue"),
        (PIN, QUEUE, CREATED, PINNED + HOLDS, "expired"),
        (PIN, QUEUE, CREATED, PINNED - timedelta(minutes=6), "future"),
    ],
)
def test_what_is_wrong_with_a_pin_itself(
    pin: Pin, queue_arn: str, created_at: datetime | None, now: datetime, doubt: str
) -> None:
    assert doubt in (doubt_at_once(pin, queue_arn, created_at, now) or "")


@pytest.mark.parametrize("event_name", ["SetQueueAttributes", "AddPermission", "DeleteQueue"])
def test_anybody_s_change_of_the_policy_ends_it(event_name: str) -> None:
    found = judged(PIN, [replace(BY_ALICE, event_name=event_name)], CHANGED, NOW)
    assert (found.is_good, found.passes) == (False, False)
    assert f"{ALICE} has changed it since ({event_name}, 2026-11-09 12:00:00 UTC)" in found.doubt


def test_a_person_between_two_deployments_ends_it() -> None:
    hour = timedelta(hours=1)
    before = replace(BY_CLOUDFORMATION, at=CHANGED - hour)
    between = replace(BY_ALICE, at=CHANGED - hour / 2)
    assert not judged(PIN, [BY_CLOUDFORMATION, between, before], CHANGED, NOW).is_good
    assert judged(PIN, [BY_CLOUDFORMATION, before], CHANGED, NOW).is_good


def test_a_deployment_does_not_end_it() -> None:
    assert judged(PIN, [BY_CLOUDFORMATION], CHANGED, NOW).changed == BY_CLOUDFORMATION
    by_role = replace(BY_ALICE, principal_arn=DEPLOYS)
    assert judged(PIN, [by_role], CHANGED, NOW).is_good
    assert not judged(replace(PIN, automation=()), [by_role], CHANGED, NOW).is_good


@pytest.mark.parametrize("principal", [f"{DEPLOYS}2", DEPLOYS.upper(), "cloudformation", ""])
def test_a_name_like_a_deployment_s_is_none(principal: str) -> None:
    change = replace(BY_ALICE, principal_arn=principal)
    assert not judged(PIN, [change], CHANGED, NOW).is_good


def test_other_attributes_are_no_change_of_the_policy() -> None:
    later = CHANGED + timedelta(minutes=2)
    visibility = replace(BY_ALICE, at=later, of_policy=False)
    assert judged(PIN, [BY_CLOUDFORMATION, visibility], later, NOW).is_good
    alone = judged(PIN, [visibility], later, NOW)
    assert "knows nobody who changed it" in alone.doubt


def test_the_change_that_stood_when_it_was_pinned_does_not_count() -> None:
    before = replace(BY_ALICE, at=MODIFIED + timedelta(seconds=1))
    assert judged(PIN, [before, BY_CLOUDFORMATION], CHANGED, NOW).is_good
    after = replace(BY_ALICE, at=MODIFIED + CLOCK_SKEW + timedelta(seconds=1))
    assert not judged(PIN, [after, BY_CLOUDFORMATION], CHANGED, NOW).is_good


@pytest.mark.parametrize("seconds", [2, 4, 300])
def test_a_change_that_cloudtrail_has_not_said_of_yet_is_waited_for_and_never_overruled(
    seconds: int,
) -> None:
    """T3: somebody revokes right after a deployment, and only that is told of."""
    a_person_after_it = CHANGED + timedelta(seconds=seconds)
    for changes in ([], [BY_CLOUDFORMATION]):
        for minutes, passes in ((19, True), (20, False)):
            at = a_person_after_it + timedelta(minutes=minutes)
            found = judged(PIN, changes, a_person_after_it, at)
            assert (found.is_good, found.passes) == (False, passes)


def test_a_deployment_that_may_go_on_is_waited_for() -> None:
    announced = CHANGED + CLOUDTRAIL_TELLS_WITHIN
    soon = judged(PIN, [BY_CLOUDFORMATION], CHANGED, announced - timedelta(seconds=1))
    assert (soon.is_good, soon.passes) == (False, True)
    assert "2026-11-09 12:20:00 UTC" in soon.doubt
    assert judged(PIN, [BY_CLOUDFORMATION], CHANGED, announced).is_good


def test_only_an_hour_after_the_last_change_nobody_has_to_be_asked() -> None:
    settled = CHANGED + SETTLED_AFTER
    moment = timedelta(seconds=1)
    assert judged(PIN, [BY_CLOUDFORMATION], CHANGED, settled).is_settled
    assert not judged(PIN, [BY_CLOUDFORMATION], CHANGED, settled - moment).is_settled
    visibility = replace(BY_ALICE, at=CHANGED + moment, of_policy=False)
    assert not judged(PIN, [BY_CLOUDFORMATION, visibility], CHANGED, settled).is_settled
    doubted = judged(PIN, [BY_ALICE], CHANGED, settled)
    assert (doubted.is_good, doubted.is_settled) == (False, False)


@pytest.mark.parametrize(
    "over",
    [
        *({each: at} for each in MOMENTS for at in (*NO_MOMENTS, None, 5)),
        *({each: given} for each in TEXTS for given in (*NO_TEXTS, "\ud800")),
        *({"generation": given} for given in NO_NUMBERS),
        *({"automation": given} for given in NO_ROLES),
    ],
    ids=str,
)
def test_what_is_no_document_of_a_pin_is_none(over: dict[str, object]) -> None:
    with pytest.raises((TypeError, ValueError)):
        Pin.from_document({**PIN.document(), **over})


@pytest.mark.parametrize("missing", sorted(PIN.document().keys() - {"expires_at"}))
def test_half_a_document_is_none(missing: str) -> None:
    with pytest.raises(KeyError):
        Pin.from_document({k: v for k, v in PIN.document().items() if k != missing})


def test_what_is_not_known_is_no_good() -> None:
    unknown = judged(PIN, "CloudTrail did not say", CHANGED, NOW)
    assert "CloudTrail did not say" in unknown.doubt
    assert not unknown.passes
    assert not judged(PIN, [BY_CLOUDFORMATION], None, NOW).is_good


def test_the_history_is_asked_for_by_sqs_s_clock_and_not_further_back_than_it_goes() -> None:
    assert PIN.since == MODIFIED
    years_ago = replace(PIN, queue_modified_at=datetime(2020, 1, 1, tzinfo=UTC))
    assert years_ago.since == PINNED - timedelta(days=1)


CHANGES = st.lists(
    st.builds(
        QueueChange,
        at=st.timedeltas(timedelta(), NOW - MODIFIED).map(lambda each: MODIFIED + each),
        event_name=st.sampled_from(("SetQueueAttributes", "AddPermission")),
        principal_arn=st.sampled_from((ALICE, DEPLOYS)),
        of_policy=st.booleans(),
        by_cloudformation=st.booleans(),
    ),
    max_size=5,
)


@given(CHANGES, st.timedeltas(timedelta(), NOW - MODIFIED).map(lambda each: MODIFIED + each))
def test_a_good_pin_was_only_overwritten_by_deployments(
    changes: list[QueueChange], modified_at: datetime
) -> None:
    found = judged(PIN, changes, modified_at, NOW)
    if not found.is_good:
        return
    assert found.changed in changes
    for each in changes:
        if each.of_policy and each.at > MODIFIED + CLOCK_SKEW:
            assert each.by_cloudformation or each.principal_arn == DEPLOYS
    assert max(each.at for each in changes) >= modified_at - CLOCK_SKEW
