"""What a policy grants and denies; which policy refused; and when a pinned one is put back."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue.access.access_denied import ACCESS_DENIED
from mendq.catalogue.access.restore_policy import (
    FINDING_BY_REFUSING_POLICY,
    is_granted_by_name,
    is_open_to_everybody,
)
from mendq.catalogue.dlq.redrive_causes import (
    RECEIVE_AND_DELETE_ACTIONS,
    SEND_ACTIONS,
    describe_network_deny,
)
from mendq.catalogue.examples import EXAMPLE_TIME, QUEUE_ARN, ROLE_ARN, STANDARD_ARN, queue
from mendq.model.facts import Facts
from mendq.model.failed_call import RefusedBy
from mendq.model.message_calls import MESSAGE_CALLS
from mendq.model.mode import Mode
from mendq.model.plan import Escalate, Plan, Retry
from mendq.model.policy import CheckedPin, Pin, QueueChange, digest_of_policy
from mendq.model.steps import RestorePolicy
from tests.catalogue.asking import answer_to, expect_plan, expect_refusal, read_test_data
from tests.catalogue.asking import policy_of as policy

OTHER = "arn:aws:iam::123456789012:role/billing"
ROOT = "arn:aws:iam::123456789012:root"
SEND = "sqs:SendMessage"
ALLOW: dict[str, Any] = {
    "Effect": "Allow",
    "Principal": {"AWS": ROLE_ARN},
    "Action": SEND,
    "Resource": STANDARD_ARN,
}
DENY = {**ALLOW, "Effect": "Deny"}
WITHOUT_TLS = {
    **DENY,
    "Principal": "*",
    "Action": "sqs:*",
    "Condition": {"Bool": {"aws:SecureTransport": "false"}},
}


def without(name: str, **over: object) -> dict[str, Any]:
    return {**{key: value for key, value in ALLOW.items() if key != name}, **over}


def granted(*statements: object) -> bool:
    return is_granted_by_name(policy(*statements), ROLE_ARN, SEND, STANDARD_ARN)


@pytest.mark.parametrize("statement", read_test_data("statements")["no grant"])
def test_what_may_be_another_s_or_never_hold_is_no_grant(statement: dict[str, Any]) -> None:
    assert not granted(statement)


@pytest.mark.parametrize("denying", read_test_data("statements")["denies"])
def test_a_grant_beside_what_may_deny_it_is_none(denying: dict[str, Any]) -> None:
    assert not granted(ALLOW, denying)
    assert not granted(denying, ALLOW)


@pytest.mark.parametrize("statement", read_test_data("statements")["grants"])
def test_a_grant_by_name_is_one(statement: dict[str, Any]) -> None:
    others = {**DENY, "Principal": {"AWS": OTHER}}
    assert granted(WITHOUT_TLS, others, {**DENY, "Action": "sqs:DeleteMessage"}, statement)


def test_only_a_role_or_user_is_granted_anything_and_by_a_policy() -> None:
    for principal in ("events.amazonaws.com", "AIDAEXAMPLE", ROOT, "*", ""):
        text = policy({**ALLOW, "Principal": {"AWS": principal}})
        assert not is_granted_by_name(text, principal, SEND, STANDARD_ARN)
    for text in ("", "{}", "nothing", policy(ALLOW, {"Effect": "Maybe"})):
        assert not is_granted_by_name(text, ROLE_ARN, SEND, STANDARD_ARN)


def test_who_is_let_in_without_a_condition() -> None:
    for principal in ("*", {"AWS": ["*"]}):
        assert is_open_to_everybody(policy(ALLOW, {**ALLOW, "Principal": principal}))
    assert is_open_to_everybody(policy(without("Principal", NotPrincipal={"AWS": OTHER})))
    assert is_open_to_everybody("no policy")
    topic = {"ArnEquals": {"aws:SourceArn": "arn:aws:sns:us-east-1:123456789012:orders"}}
    from_a_topic = {**ALLOW, "Principal": "*", "Condition": topic}
    assert not is_open_to_everybody(policy(ALLOW, WITHOUT_TLS, from_a_topic))


PARTS = st.sampled_from(
    (ROLE_ARN, OTHER, ROOT, "*", SEND, "sqs:*", STANDARD_ARN, "Allow", "Deny", "AWS", "x")
)
STATEMENTS = st.fixed_dictionaries(
    {
        "Effect": st.sampled_from(("Allow", "Deny")),
        "Principal": PARTS | st.dictionaries(PARTS, PARTS | st.lists(PARTS), max_size=2),
        "Action": PARTS | st.lists(PARTS, max_size=3),
        "Resource": PARTS,
    }
)


@given(st.lists(STATEMENTS, max_size=4))
def test_a_grant_stands_by_name_in_a_statement_that_allows(statements: list[Any]) -> None:
    if granted(*statements):
        assert any(
            statement["Effect"] == "Allow" and ROLE_ARN in json.dumps(statement["Principal"])
            for statement in statements
        )


VPC = {"StringNotEquals": {"aws:SourceVpc": "vpc-0abc"}}


def network_only(condition: dict[str, Any], **over: Any) -> str | None:
    """Why a statement with that condition keeps the redrive role out, None where it does not."""
    statement = {**DENY, "Principal": "*", "Action": "sqs:*", "Condition": condition, **over}
    return describe_network_deny(json.dumps({"Statement": statement}), STANDARD_ARN, SEND_ACTIONS)


@pytest.mark.parametrize("condition", read_test_data("statements")["keeps out"])
def test_one_network_alone_keeps_the_redrive_role_out(condition: dict[str, Any]) -> None:
    assert "one network" in str(network_only(condition))


@pytest.mark.parametrize(("condition", "over"), read_test_data("statements")["lets in"])
def test_what_excepts_it_or_is_no_such_statement_lets_it_in(
    condition: dict[str, Any], over: dict[str, Any]
) -> None:
    assert network_only(condition, **over) is None


def test_what_a_statement_excepts_or_cannot_be_read_keeps_it_out() -> None:
    negated_elements = without("Action", Effect="Deny", NotAction="sqs:GetQueueUrl", Condition=VPC)
    assert describe_network_deny(policy(negated_elements), STANDARD_ARN, RECEIVE_AND_DELETE_ACTIONS)
    assert describe_network_deny("", STANDARD_ARN, RECEIVE_AND_DELETE_ACTIONS) is None
    assert (
        describe_network_deny("{", STANDARD_ARN, RECEIVE_AND_DELETE_ACTIONS)
        == "its policy cannot be read"
    )
    assert f'"{"x" * 64}"' in str(network_only(VPC, Sid="x" * 300))


STRANGER = "arn:aws:iam::210987654321:role/orders-worker"
LACKING = RefusedBy.NO_RESOURCE_POLICY
BOTH = policy({**ALLOW, "Principal": {"AWS": [ROLE_ARN, STRANGER]}, "Resource": QUEUE_ARN})
OPEN = policy(*({**ALLOW, "Principal": who, "Resource": "*"} for who in ({"AWS": ROLE_ARN}, "*")))
EMPTIED = policy()


def called(
    *refused_by: RefusedBy,
    principals: tuple[str, ...] = (ROLE_ARN,),
    event_names: tuple[str, ...] = ("SendMessage",),
    **over: Any,
) -> Facts:
    by: dict[str, Any] = {"principals": principals, "event_names": event_names}
    return queue(refused_by=frozenset(refused_by), **by, **over)


def test_every_policy_has_one_finding_and_every_finding_one_code() -> None:
    assert list(FINDING_BY_REFUSING_POLICY) == list(RefusedBy)
    assert len({finding.code for finding in FINDING_BY_REFUSING_POLICY.values()}) == len(RefusedBy)


COMMANDS = {
    RefusedBy.SESSION_POLICY: "cloudtrail lookup-events",
    RefusedBy.VPC_ENDPOINT_POLICY: "ec2 describe-vpc-endpoints",
    **dict.fromkeys(
        (RefusedBy.POLICY_NOT_NAMED, RefusedBy.RESOURCE_POLICY_DENIES, LACKING),
        "sqs get-queue-attributes",
    ),
}


@pytest.mark.parametrize("policy_of", RefusedBy)
def test_the_policy_that_refused_decides(policy_of: RefusedBy) -> None:
    command = COMMANDS.get(policy_of, "iam simulate-principal-policy")
    page = expect_refusal(ACCESS_DENIED, called(policy_of))
    assert page.code == FINDING_BY_REFUSING_POLICY[policy_of].code
    assert page.next_command.startswith(f"aws {command} ")
    assert ("a caller needs it" in page.reason) == page.code.endswith("_lacks_grant")


def test_of_several_policies_the_first_leads_and_the_others_are_named() -> None:
    page = expect_refusal(ACCESS_DENIED, called(RefusedBy.SESSION_POLICY, LACKING))
    assert page.code == "queue_policy_lacks_grant"
    assert "Other calls were refused by a session policy. Who called: " in page.reason
    assert expect_refusal(ACCESS_DENIED, called()).code == "policy_not_named"


def test_batches_take_the_single_action_and_a_stranger_needs_both_policies() -> None:
    events = ("DeleteMessageBatch", "GetQueueUrl", "ReceiveMessage")
    reason = expect_refusal(
        ACCESS_DENIED, called(LACKING, principals=(STRANGER,), event_names=events)
    ).reason
    assert reason.startswith(f"sqs:DeleteMessage, sqs:ReceiveMessage on {QUEUE_ARN} is refused. ")
    assert "another account needs it in the queue's policy and in its own" in reason


@pytest.mark.parametrize("principal", ["events.amazonaws.com", "AIDAX", f"{ROLE_ARN};rm -rf /", ""])
def test_only_a_role_or_user_of_iam_is_put_into_a_command(principal: str) -> None:
    page = expect_refusal(ACCESS_DENIED, called(RefusedBy.IDENTITY_POLICY, principals=(principal,)))
    assert page.next_command.startswith("aws sqs get-queue-attributes ")


@given(
    st.frozensets(st.sampled_from(RefusedBy)),
    st.lists(st.text(max_size=60) | st.just(ROLE_ARN), max_size=10).map(tuple),
    st.lists(st.text(max_size=40) | st.sampled_from(sorted(MESSAGE_CALLS))).map(tuple),
    st.dictionaries(st.text(max_size=20), st.text(max_size=60), max_size=4),
)
def test_whatever_was_called_by_whomever_it_pages_and_offers_no_statement(
    refused_by: frozenset[RefusedBy],
    principals: tuple[str, ...],
    event_names: tuple[str, ...],
    attributes: dict[str, str],
) -> None:
    asked = called(*refused_by, principals=principals, event_names=event_names)
    page = expect_refusal(ACCESS_DENIED, replace(asked, attributes=attributes))
    assert isinstance(page, Escalate)
    words = shlex.split(page.next_command)
    assert not any(each.startswith(("put-", "set-", "add-", "attach-")) for each in words)


def pin_of(text: str) -> Pin:
    then = EXAMPLE_TIME - timedelta(days=3)
    return Pin(QUEUE_ARN, text, digest_of_policy(text), 4, then, "ada", then, then)


CHANGE = QueueChange(EXAMPLE_TIME, "SetQueueAttributes", ROLE_ARN, by_cloudformation=True)
GOOD = CheckedPin(pin_of(BOTH), changed=CHANGE)
CHANGED = replace(GOOD, doubt="a person has changed it since")
UNREADABLE = CheckedPin(None, "its pin cannot be read")


def overwritten(pinned: CheckedPin | None = GOOD, stands: str = EMPTIED, **over: Any) -> Facts:
    return called(LACKING, Policy=stands, pin=pinned, **over)


@pytest.mark.parametrize("stands", [EMPTIED, ""])
def test_a_good_pin_that_grants_the_calls_is_put_back_byte_for_byte(stands: str) -> None:
    both: dict[str, Any] = {
        "principals": (ROLE_ARN, STRANGER),
        "event_names": ("SendMessageBatch", "SendMessage"),
    }
    answer = expect_plan(ACCESS_DENIED, overwritten(stands=stands, **both))
    assert answer.steps == (RestorePolicy(stands, BOTH),)
    assert answer.at_most is Mode.PROPOSE, "it always adds access"
    assert answer.reason.endswith("a person decides")


@pytest.mark.parametrize(
    ("asked", "because"),
    [
        (overwritten(UNREADABLE), "nothing is put back: its pin cannot be read"),
        (overwritten(CHANGED), "is not put back: a person has"),
        (overwritten(stands=BOTH), "is not put back: it stands there"),
        (overwritten(principals=()), "by name"),
        (overwritten(event_names=("DeleteMessage",)), "by name"),
        (overwritten(event_names=("GetQueueUrl",)), "by name"),
        (overwritten(event_names=("SendMessage", "DeleteMessage")), "by name"),
        (overwritten(principals=(ROLE_ARN, f"{ROLE_ARN}2")), "by name"),
        (overwritten(principals=(ROLE_ARN, "sns.amazonaws.com")), "by name"),
        (overwritten(replace(GOOD, pin=pin_of("not JSON"))), "by name"),
        (overwritten(replace(GOOD, pin=pin_of(OPEN))), "lets everybody in"),
        (replace(overwritten(), attributes={}), "could not be looked at"),
    ],
)
def test_a_pin_that_is_not_what_they_lack_stays_where_it_is(asked: Facts, because: str) -> None:
    page = expect_refusal(ACCESS_DENIED, asked)
    assert page.code == "queue_policy_lacks_grant"
    assert because in page.reason


# The two that say that nobody grants it; all others are somebody's word.
ALONE = {LACKING, RefusedBy.IDENTITY_POLICY}


@pytest.mark.parametrize(
    "refused_by",
    [
        (),
        *((each,) for each in RefusedBy if each not in ALONE),
        tuple(ALONE),
        (LACKING, RefusedBy.RESOURCE_POLICY_DENIES),
    ],
)
def test_where_another_policy_refused_no_pin_is_put_back(refused_by: tuple[RefusedBy, ...]) -> None:
    asked = replace(overwritten(), refused_by=frozenset(refused_by))
    assert "pinned" not in expect_refusal(ACCESS_DENIED, asked).reason


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (overwritten(), True),
        (overwritten(None), False),
        (overwritten(UNREADABLE), False),
        (overwritten(CHANGED), False),
        (overwritten(stands=BOTH), False),
        (overwritten(principals=(STRANGER,)), False),
        (overwritten(event_names=("DeleteMessage",)), False),
    ],
)
def test_what_the_caller_s_own_policy_could_grant_as_well_is_said_and_left(
    asked: Facts, *, said: bool
) -> None:
    asked = replace(asked, refused_by=frozenset({RefusedBy.IDENTITY_POLICY}))
    reason = expect_refusal(ACCESS_DENIED, asked).reason
    assert ("It is not put back, because IAM names the caller's own policy" in reason) is said
    assert ("pin" in reason) is said


def test_while_cloudtrail_may_still_tell_the_events_come_again() -> None:
    waits = replace(GOOD, doubt="not told yet", passes=True)
    assert isinstance(expect_refusal(ACCESS_DENIED, overwritten(waits)), Retry)
    pointless = overwritten(replace(waits, pin=pin_of(EMPTIED)), stands="")
    assert isinstance(expect_refusal(ACCESS_DENIED, pointless), Escalate)
    assert "pin" not in expect_refusal(ACCESS_DENIED, overwritten(None)).reason


@given(
    st.frozensets(st.sampled_from(RefusedBy)) | st.just(frozenset({LACKING})),
    st.lists(st.sampled_from((ROLE_ARN, STRANGER, "", "x")), max_size=3).map(tuple),
    st.lists(st.sampled_from(sorted(MESSAGE_CALLS)), max_size=3).map(tuple),
    st.none() | st.builds(CheckedPin, st.sampled_from((BOTH, EMPTIED, "x")).map(pin_of), st.text()),
    st.sampled_from((BOTH, EMPTIED, "")),
)
def test_a_plan_writes_the_pinned_text_or_nothing(
    refused_by: frozenset[RefusedBy],
    principals: tuple[str, ...],
    event_names: tuple[str, ...],
    pinned: CheckedPin | None,
    stands: str,
) -> None:
    asked = overwritten(pinned, stands, principals=principals, event_names=event_names)
    found = answer_to(ACCESS_DENIED, replace(asked, refused_by=refused_by))
    if isinstance(found, Plan):
        assert pinned is not None
        assert pinned.pin is not None
        assert pinned.is_good
        assert found.steps == (RestorePolicy(stands, pinned.pin.policy),)
