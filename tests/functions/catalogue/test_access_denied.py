"""Which policy refused decides the words; who calls, when and what decides whether it counts."""

from __future__ import annotations

import shlex
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.catalogue import match
from functions.catalogue.access_denied import ACCESS_DENIED, FINDINGS, plan, speaks
from functions.healing import examples
from functions.healing.denials import RefusedBy
from functions.healing.facts import Facts
from functions.healing.limits import Limits
from functions.healing.states import State

ROLE = "arn:aws:iam::123456789012:role/orders-worker"
STRANGER = "arn:aws:iam::210987654321:role/orders-worker"
LIMITS = Limits()
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
    page = plan(facts(*refused), LIMITS)
    assert page.code == code
    assert page.becomes is State.ESCALATED
    assert page.next_command.startswith(f"aws {command} ")


def test_the_grant_names_principal_action_and_queue_and_batches_take_the_single_action() -> None:
    events = ("DeleteMessageBatch", "GetQueueUrl", "ReceiveMessage")
    reason = plan(facts(RefusedBy.NO_RESOURCE_POLICY, event_names=events), LIMITS).reason
    assert reason.startswith(
        f"sqs:DeleteMessage, sqs:ReceiveMessage on {examples.QUEUE_ARN} is refused. "
    )
    assert reason.endswith(f". Who called: {ROLE}")
    assert "Batch" not in reason


def test_long_callers_push_no_finding_off_the_page() -> None:
    longest = tuple(f"arn:aws:iam::210987654321:role/{n}{'x' * 500}" for n in range(10))
    asked = facts(*RefusedBy, principals=longest, event_names=TRAFFIC)
    reason = plan(asked, LIMITS).reason
    finding, _, callers = reason.partition(". Who called: ")
    assert all(each.partition("/")[0] not in finding for each in longest)
    assert callers.endswith(" and 7 more")
    assert len(finding) < 900


def test_only_a_lacking_grant_says_where_it_belongs() -> None:
    for finding in FINDINGS:
        reason = plan(facts(finding.refused_by), LIMITS).reason
        assert ("a caller needs it" in reason) == finding.code.endswith("_lacks_grant")


def test_a_caller_of_another_account_needs_both_policies() -> None:
    reason = plan(facts(RefusedBy.NO_RESOURCE_POLICY, principals=(STRANGER,)), LIMITS).reason
    assert "another account needs it in the queue's policy and in its own" in reason


def test_other_policies_that_refused_are_named_beside_the_first() -> None:
    refused = (RefusedBy.SESSION_POLICY, RefusedBy.NO_RESOURCE_POLICY)
    reason = plan(facts(*refused), LIMITS).reason
    assert "Other calls were refused by a session policy. Who called: " in reason


@pytest.mark.parametrize(
    "principal", ["events.amazonaws.com", "AIDAEXAMPLE", f"{ROLE};rm -rf /", f"{ROLE} --x", ""]
)
def test_only_a_role_or_user_of_iam_is_put_into_a_command(principal: str) -> None:
    asked = facts(RefusedBy.IDENTITY_POLICY, principals=(principal,))
    assert plan(asked, LIMITS).next_command.startswith("aws sqs get-queue-attributes ")


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
    page = plan(asked, LIMITS)
    assert page.becomes is State.ESCALATED
    words = shlex.split(page.next_command)
    assert words[0] == "aws"
    assert not any(each.startswith(("put-", "set-", "add-", "attach-")) for each in words)
