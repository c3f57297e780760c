"""Which policy refused decides the words; who calls, when and what decides whether it counts."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue import examples, match
from mendq.catalogue._restore_policy import FINDINGS
from mendq.catalogue.access_denied import ACCESS_DENIED, plan, speaks
from mendq.model.case import State
from mendq.model.facts import Facts
from mendq.model.failed_call import RefusedBy
from mendq.model.limits import Limits, Mode
from mendq.model.plan import Plan, Refusal
from mendq.model.policy import Pin, Pinned, QueueChange, digest_of
from mendq.model.steps import RestorePolicy

ROLE = "arn:aws:iam::123456789012:role/orders-worker"
STRANGER = "arn:aws:iam::210987654321:role/orders-worker"
LIMITS = Limits()


def notified(asked: Facts) -> Refusal:
    page = plan(asked, LIMITS)
    assert isinstance(page, Refusal)
    return page


TRAFFIC = (
    "SendMessage",
    "SendMessageBatch",
    "ReceiveMessage",
    "DeleteMessage",
    "DeleteMessageBatch",
    "ChangeMessageVisibility",
    "ChangeMessageVisibilityBatch",
)


def facts(
    *refused_by: RefusedBy,
    principals: tuple[str, ...] = (ROLE,),
    event_names: tuple[str, ...] = ("SendMessage",),
) -> Facts:
    return replace(
        examples.queue(),
        refused_by=frozenset(refused_by),
        principals=principals,
        event_names=event_names,
    )


@pytest.mark.parametrize(
    "event_name",
    ["GetQueueAttributes", "SetQueueAttributes", "ListQueues", "CreateQueue", "sendmessage", ""],
)
def test_a_call_that_carries_no_messages_is_labelled_and_no_evidence(event_name: str) -> None:
    call = examples.failed_call(event_name, "AccessDenied")
    assert match(call) is ACCESS_DENIED
    assert not speaks(call)


@pytest.mark.parametrize("event_name", TRAFFIC)
@pytest.mark.parametrize("code", ["AccessDenied", "AccessDeniedException", "VpceAccessDenied"])
def test_a_call_that_carries_messages_speaks(event_name: str, code: str) -> None:
    call = examples.failed_call(event_name, code)
    assert match(call) is ACCESS_DENIED
    assert ACCESS_DENIED.speaks(call)


@pytest.mark.parametrize(
    ("age_seconds", "counts"), [(-1, False), (0, False), (60, False), (61, True), (3600, True)]
)
def test_a_session_that_is_new_is_no_evidence(age_seconds: int, *, counts: bool) -> None:
    call = examples.failed_call("SendMessage", "AccessDenied")
    created = call.event_time - timedelta(seconds=age_seconds)
    assert speaks(replace(call, session_created_at=created)) is counts


def test_every_policy_has_one_finding_and_every_finding_one_code() -> None:
    assert [each.refused_by for each in FINDINGS] == list(RefusedBy)
    assert len({each.code for each in FINDINGS}) == len(RefusedBy)


@pytest.mark.parametrize(
    ("refused", "code", "command"),
    [
        ((), "policy_not_named", "sqs get-queue-attributes"),
        ((RefusedBy.NOT_SAID,), "policy_not_named", "sqs get-queue-attributes"),
        (
            (RefusedBy.RESOURCE_POLICY_DENIES,),
            "queue_policy_denies",
            "sqs get-queue-attributes",
        ),
        ((RefusedBy.NO_RESOURCE_POLICY,), "queue_policy_lacks_grant", "sqs get-queue-attributes"),
        (
            (RefusedBy.IDENTITY_POLICY,),
            "identity_policy_lacks_grant",
            "iam simulate-principal-policy",
        ),
        (
            (RefusedBy.IDENTITY_POLICY_DENIES,),
            "identity_policy_denies",
            "iam simulate-principal-policy",
        ),
        (
            (RefusedBy.ABOVE_THE_ACCOUNT,),
            "organization_refuses",
            "iam simulate-principal-policy",
        ),
        (
            (RefusedBy.PERMISSIONS_BOUNDARY,),
            "boundary_refuses",
            "iam simulate-principal-policy",
        ),
        ((RefusedBy.SESSION_POLICY,), "session_policy_refuses", "cloudtrail lookup-events"),
        ((RefusedBy.VPC_ENDPOINT_POLICY,), "vpc_endpoint_refuses", "ec2 describe-vpc-endpoints"),
        (
            (RefusedBy.NOT_SAID, RefusedBy.IDENTITY_POLICY, RefusedBy.RESOURCE_POLICY_DENIES),
            "queue_policy_denies",
            "sqs get-queue-attributes",
        ),
    ],
)
def test_the_policy_that_refused_decides(
    refused: tuple[RefusedBy, ...], code: str, command: str
) -> None:
    page = notified(facts(*refused))
    assert page.code == code
    assert page.becomes is State.ESCALATED
    assert page.next_command.startswith(f"aws {command} ")


def test_the_grant_names_principal_action_and_queue_and_batches_take_the_single_action() -> None:
    events = ("DeleteMessageBatch", "GetQueueUrl", "ReceiveMessage")
    reason = notified(facts(RefusedBy.NO_RESOURCE_POLICY, event_names=events)).reason
    assert reason.startswith(
        f"sqs:DeleteMessage, sqs:ReceiveMessage on {examples.QUEUE_ARN} is refused. "
    )
    assert reason.endswith(f". Who called: {ROLE}")
    assert "Batch" not in reason


def test_long_callers_push_no_finding_off_the_page() -> None:
    longest = tuple(f"arn:aws:iam::210987654321:role/{n}{'x' * 500}" for n in range(10))
    asked = facts(*RefusedBy, principals=longest, event_names=TRAFFIC)
    reason = notified(asked).reason
    finding, _, callers = reason.partition(". Who called: ")
    assert all(each.partition("/")[0] not in finding for each in longest)
    assert callers.endswith(" and 7 more")
    assert len(finding) < 900


def test_only_a_lacking_grant_says_where_it_belongs() -> None:
    for finding in FINDINGS:
        reason = notified(facts(finding.refused_by)).reason
        assert ("a caller needs it" in reason) == finding.code.endswith("_lacks_grant")


def test_a_caller_of_another_account_needs_both_policies() -> None:
    reason = notified(facts(RefusedBy.NO_RESOURCE_POLICY, principals=(STRANGER,))).reason
    assert "another account needs it in the queue's policy and in its own" in reason


def test_other_policies_that_refused_are_named_beside_the_first() -> None:
    refused = (RefusedBy.SESSION_POLICY, RefusedBy.NO_RESOURCE_POLICY)
    reason = notified(facts(*refused)).reason
    assert "Other calls were refused by a session policy. Who called: " in reason


@pytest.mark.parametrize(
    "principal", ["events.amazonaws.com", "AIDAEXAMPLE", f"{ROLE};rm -rf /", f"{ROLE} --x", ""]
)
def test_only_a_role_or_user_of_iam_is_put_into_a_command(principal: str) -> None:
    asked = facts(RefusedBy.IDENTITY_POLICY, principals=(principal,))
    assert notified(asked).next_command.startswith("aws sqs get-queue-attributes ")


@given(
    st.frozensets(st.sampled_from(RefusedBy)),
    st.lists(st.text(max_size=60) | st.just(ROLE), max_size=10),
    st.lists(st.text(max_size=40) | st.sampled_from(TRAFFIC), max_size=10),
    st.dictionaries(st.text(max_size=20), st.text(max_size=60), max_size=4),
)
def test_whatever_was_called_by_whomever_it_pages_and_offers_no_statement(
    refused: frozenset[RefusedBy],
    principals: list[str],
    event_names: list[str],
    attributes: dict[str, str],
) -> None:
    asked = replace(
        facts(*refused, principals=tuple(principals), event_names=tuple(event_names)),
        attributes=attributes,
    )
    page = notified(asked)
    assert page.becomes is State.ESCALATED
    words = shlex.split(page.next_command)
    assert words[0] == "aws"
    assert not any(each.startswith(("put-", "set-", "add-", "attach-")) for each in words)


STATEMENT = {
    "Effect": "Allow",
    "Principal": {"AWS": [ROLE, STRANGER]},
    "Action": ["sqs:SendMessage", "sqs:ReceiveMessage"],
    "Resource": examples.QUEUE_ARN,
}
GRANTS = json.dumps({"Statement": [STATEMENT]}, indent=1)
OPEN = {**STATEMENT, "Principal": "*"}
EMPTIED = json.dumps({"Statement": []})


def pin_of(policy: str) -> Pin:
    then = examples.AT - timedelta(days=3)
    return Pin(examples.QUEUE_ARN, policy, digest_of(policy), 4, then, "ada", then, then)


GOOD = Pinned(
    pin_of(GRANTS),
    changed=QueueChange(examples.AT, "SetQueueAttributes", ROLE, by_cloudformation=True),
)


def overwritten(pinned: Pinned | None = GOOD, stands: str = EMPTIED, **over: Any) -> Facts:
    asked = facts(RefusedBy.NO_RESOURCE_POLICY, **over)
    return replace(asked, attributes={**asked.attributes, "Policy": stands}, pin=pinned)


def test_a_good_pin_that_grants_the_calls_is_put_back_byte_for_byte() -> None:
    asked = overwritten(
        principals=(ROLE, STRANGER), event_names=("SendMessageBatch", "ReceiveMessage")
    )
    found = plan(asked, LIMITS)
    assert isinstance(found, Plan)
    assert found.steps == (RestorePolicy(EMPTIED, GRANTS),)
    assert "ada pinned on 2026-11-13 (generation 4, sha256 " in found.reason
    assert "CloudFormation overwrote it at 2026-11-16 09:30 UTC" in found.reason


def test_soon_after_a_change_a_person_has_to_see_it() -> None:
    found = plan(overwritten(), LIMITS)
    assert isinstance(found, Plan)
    assert found.at_most is Mode.PROPOSE
    assert found.reason.endswith("a person decides")
    settled = plan(overwritten(replace(GOOD, is_settled=True)), LIMITS)
    assert isinstance(settled, Plan)
    assert settled.at_most is Mode.HEAL
    assert "a person decides" not in settled.reason


def test_a_pin_that_cannot_be_read_is_said_of() -> None:
    page = notified(overwritten(Pinned(None, "its pin cannot be read")))
    assert (page.code, page.becomes) == ("queue_policy_lacks_grant", State.ESCALATED)
    assert "nothing is put back: its pin cannot be read" in page.reason


def test_a_policy_that_was_taken_away_whole_is_put_back_too() -> None:
    gone = overwritten()
    gone = replace(gone, attributes={k: v for k, v in gone.attributes.items() if k != "Policy"})
    found = plan(gone, LIMITS)
    assert isinstance(found, Plan)
    assert found.steps == (RestorePolicy("", GRANTS),)


@pytest.mark.parametrize(
    ("asked", "because"),
    [
        (overwritten(replace(GOOD, doubt="a person has changed it since")), "a person has"),
        (overwritten(stands=GRANTS), "it stands there"),
        (overwritten(principals=()), "by name"),
        (overwritten(event_names=("DeleteMessage",)), "by name"),
        (overwritten(event_names=("GetQueueUrl",)), "by name"),
        (overwritten(event_names=("SendMessage", "DeleteMessage")), "by name"),
        (overwritten(principals=(ROLE, f"{ROLE}2")), "by name"),
        (overwritten(principals=(ROLE, "sns.amazonaws.com")), "by name"),
        (overwritten(replace(GOOD, pin=pin_of("not JSON"))), "by name"),
        (
            overwritten(
                replace(
                    GOOD,
                    pin=pin_of(json.dumps({"Statement": [STATEMENT, OPEN]})),
                )
            ),
            "lets everybody in",
        ),
        (replace(overwritten(), attributes={}), "could not be looked at"),
    ],
)
def test_a_pin_that_is_not_what_they_lack_stays_where_it_is(asked: Facts, because: str) -> None:
    page = notified(asked)
    assert page.code == "queue_policy_lacks_grant"
    assert page.becomes is State.ESCALATED
    assert f"is not put back: {because}" in page.reason or because in page.reason


# The two that say that nobody grants it; all others are somebody's word.
ALONE = {RefusedBy.NO_RESOURCE_POLICY, RefusedBy.IDENTITY_POLICY}


@pytest.mark.parametrize(
    "refused",
    [
        (),
        *((each,) for each in RefusedBy if each not in ALONE),
        (RefusedBy.NO_RESOURCE_POLICY, RefusedBy.IDENTITY_POLICY),
        (RefusedBy.NO_RESOURCE_POLICY, RefusedBy.RESOURCE_POLICY_DENIES),
    ],
)
def test_where_another_policy_refused_no_pin_is_put_back(refused: tuple[RefusedBy, ...]) -> None:
    page = notified(replace(overwritten(), refused_by=frozenset(refused)))
    assert page.becomes is State.ESCALATED
    assert "pinned" not in page.reason


def _of_the_caller(asked: Facts) -> Refusal:
    return notified(replace(asked, refused_by=frozenset({RefusedBy.IDENTITY_POLICY})))


def test_what_the_caller_s_own_policy_could_grant_as_well_is_said_and_left() -> None:
    page = _of_the_caller(overwritten())
    assert page.becomes is State.ESCALATED
    assert "generation 4" in page.reason
    assert "CloudFormation overwrote it" in page.reason
    assert "It is not put back, because IAM names the caller's own policy" in page.reason


@pytest.mark.parametrize(
    "asked",
    [
        overwritten(None),
        overwritten(Pinned(None, "its pin cannot be read")),
        overwritten(replace(GOOD, doubt="a person has changed it since")),
        overwritten(stands=GRANTS),
        overwritten(principals=(STRANGER,)),
        overwritten(event_names=("DeleteMessage",)),
    ],
)
def test_and_nobody_is_pointed_to_a_pin_that_would_not_help(asked: Facts) -> None:
    assert "pin" not in _of_the_caller(asked).reason


def test_without_a_pin_the_page_does_not_speak_of_one() -> None:
    assert "pin" not in notified(overwritten(None)).reason


def test_while_cloudtrail_may_still_tell_the_events_come_again() -> None:
    waiting = notified(overwritten(replace(GOOD, doubt="not told yet", passes=True)))
    assert (waiting.becomes, waiting.again) == (None, True)
    pointless = replace(GOOD, doubt="not told yet", passes=True, pin=pin_of(EMPTIED))
    assert notified(overwritten(pointless, stands="")).becomes is State.ESCALATED


@given(
    st.frozensets(st.sampled_from(RefusedBy)) | st.just(frozenset({RefusedBy.NO_RESOURCE_POLICY})),
    st.lists(st.sampled_from((ROLE, STRANGER, "", "x")), max_size=3).map(tuple),
    st.lists(st.sampled_from(TRAFFIC), max_size=3).map(tuple),
    st.none() | st.builds(Pinned, st.sampled_from((GRANTS, EMPTIED, "x")).map(pin_of), st.text()),
    st.sampled_from((GRANTS, EMPTIED, "")),
)
def test_a_plan_writes_the_pinned_text_or_nothing(
    refused: frozenset[RefusedBy],
    principals: tuple[str, ...],
    event_names: tuple[str, ...],
    pinned: Pinned | None,
    stands: str,
) -> None:
    asked = overwritten(pinned, stands, principals=principals, event_names=event_names)
    found = plan(replace(asked, refused_by=refused), LIMITS)
    if isinstance(found, Plan):
        assert pinned is not None
        assert pinned.pin is not None
        assert pinned.is_good
        assert [step.document() for step in found.steps] == [
            {"attribute": "Policy", "before": stands, "after": pinned.pin.policy}
        ]
