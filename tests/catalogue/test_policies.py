"""Test what a queue policy grants and denies, and when a pinned policy is restored."""

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


def make_allow_without(name: str, **over: object) -> dict[str, Any]:
    return {**{key: value for key, value in ALLOW.items() if key != name}, **over}


def is_granted(*statements: object) -> bool:
    return is_granted_by_name(policy(*statements), ROLE_ARN, SEND, STANDARD_ARN)


@pytest.mark.parametrize("statement", read_test_data("statements")["no grant"])
def test_statement_that_does_not_plainly_allow_this_role_action_and_queue_is_no_grant_by_name(
    statement: dict[str, Any],
) -> None:
    assert not is_granted(statement)


@pytest.mark.parametrize("denying", read_test_data("statements")["denies"])
def test_grant_by_name_does_not_count_beside_a_statement_that_may_deny_the_call(
    denying: dict[str, Any],
) -> None:
    assert not is_granted(ALLOW, denying)
    assert not is_granted(denying, ALLOW)


@pytest.mark.parametrize("statement", read_test_data("statements")["grants"])
def test_grant_by_name_counts_beside_denials_of_other_principals_actions_and_plain_http(
    statement: dict[str, Any],
) -> None:
    others = {**DENY, "Principal": {"AWS": OTHER}}
    assert is_granted(WITHOUT_TLS, others, {**DENY, "Action": "sqs:DeleteMessage"}, statement)


@pytest.mark.parametrize("principal", ["events.amazonaws.com", "AIDAEXAMPLE", ROOT, "*", ""])
def test_statement_that_names_no_role_or_user_is_no_grant_by_name(principal: str) -> None:
    text = policy({**ALLOW, "Principal": {"AWS": principal}})
    assert not is_granted_by_name(text, principal, SEND, STANDARD_ARN)


@pytest.mark.parametrize("text", ["", "{}", "nothing", policy(ALLOW, {"Effect": "Maybe"})])
def test_missing_or_unreadable_policy_grants_nothing_by_name(text: str) -> None:
    assert not is_granted_by_name(text, ROLE_ARN, SEND, STANDARD_ARN)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(policy(ALLOW, {**ALLOW, "Principal": "*"}), id="star"),
        pytest.param(policy(ALLOW, {**ALLOW, "Principal": {"AWS": ["*"]}}), id="star in a list"),
        pytest.param(
            policy(make_allow_without("Principal", NotPrincipal={"AWS": OTHER})), id="NotPrincipal"
        ),
    ],
)
def test_policy_that_allows_all_principals_without_a_condition_is_open_to_everybody(
    text: str,
) -> None:
    assert is_open_to_everybody(text)


def test_policy_that_cannot_be_read_counts_as_open_to_everybody() -> None:
    assert is_open_to_everybody("no policy")


def test_policy_that_allows_all_principals_only_from_one_topic_is_not_open_to_everybody() -> None:
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
def test_grant_by_name_always_comes_from_an_allow_statement_that_names_the_role(
    statements: list[Any],
) -> None:
    if is_granted(*statements):
        assert any(
            statement["Effect"] == "Allow" and ROLE_ARN in json.dumps(statement["Principal"])
            for statement in statements
        )


VPC = {"StringNotEquals": {"aws:SourceVpc": "vpc-0abc"}}


def describe_denied_network(condition: dict[str, Any], **over: Any) -> str | None:
    """Say why a statement with that condition blocks the redrive role. None if it does not."""
    statement = {**DENY, "Principal": "*", "Action": "sqs:*", "Condition": condition, **over}
    return describe_network_deny(json.dumps({"Statement": statement}), STANDARD_ARN, SEND_ACTIONS)


@pytest.mark.parametrize("condition", read_test_data("statements")["keeps out"])
def test_policy_that_denies_all_but_one_network_blocks_the_redrive_role(
    condition: dict[str, Any],
) -> None:
    assert "one network" in str(describe_denied_network(condition))


@pytest.mark.parametrize("condition", read_test_data("statements")["lets in"])
def test_policy_that_exempts_the_redrive_role_or_denies_only_one_network_does_not_block_it(
    condition: dict[str, Any],
) -> None:
    assert describe_denied_network(condition) is None


@pytest.mark.parametrize(
    "other",
    [
        {"Effect": "Allow"},
        {"Action": "sqs:ReceiveMessage"},
        {"Resource": "arn:aws:sqs:us-east-1:123456789012:orders-2"},
    ],
    ids=str,
)
def test_allow_or_deny_of_another_action_or_queue_does_not_block_the_redrive_role(
    other: dict[str, str],
) -> None:
    assert describe_denied_network(VPC) is not None, "otherwise it would"
    assert describe_denied_network(VPC, **other) is None


def test_deny_without_a_condition_is_no_deny_of_a_network() -> None:
    assert describe_denied_network({}) is None


def test_deny_of_all_but_one_action_from_other_networks_blocks_the_redrive_role() -> None:
    negated_elements = make_allow_without(
        "Action", Effect="Deny", NotAction="sqs:GetQueueUrl", Condition=VPC
    )
    assert describe_network_deny(policy(negated_elements), STANDARD_ARN, RECEIVE_AND_DELETE_ACTIONS)


def test_unreadable_policy_blocks_the_redrive_role_and_a_missing_one_does_not() -> None:
    unreadable = describe_network_deny("{", STANDARD_ARN, RECEIVE_AND_DELETE_ACTIONS)
    assert unreadable == "its policy cannot be read"
    assert describe_network_deny("", STANDARD_ARN, RECEIVE_AND_DELETE_ACTIONS) is None


def test_statement_that_blocks_the_redrive_role_is_named_by_a_shortened_sid() -> None:
    assert f'"{"x" * 64}"' in str(describe_denied_network(VPC, Sid="x" * 300))


ROLE_OF_OTHER_ACCOUNT = "arn:aws:iam::210987654321:role/orders-worker"
NO_GRANT = RefusedBy.NO_RESOURCE_POLICY
BOTH = policy(
    {**ALLOW, "Principal": {"AWS": [ROLE_ARN, ROLE_OF_OTHER_ACCOUNT]}, "Resource": QUEUE_ARN}
)
OPEN = policy(
    {**ALLOW, "Principal": {"AWS": ROLE_ARN}, "Resource": "*"},
    {**ALLOW, "Principal": "*", "Resource": "*"},
)
EMPTY_POLICY = policy()


def make_denied_queue(
    *refused_by: RefusedBy,
    principals: tuple[str, ...] = (ROLE_ARN,),
    event_names: tuple[str, ...] = ("SendMessage",),
    **over: Any,
) -> Facts:
    by: dict[str, Any] = {"principals": principals, "event_names": event_names}
    return queue(refused_by=frozenset(refused_by), **by, **over)


def test_every_kind_of_refusing_policy_has_its_own_finding_and_code() -> None:
    assert list(FINDING_BY_REFUSING_POLICY) == list(RefusedBy)
    assert len({finding.code for finding in FINDING_BY_REFUSING_POLICY.values()}) == len(RefusedBy)


COMMANDS = {
    RefusedBy.SESSION_POLICY: "cloudtrail lookup-events",
    RefusedBy.VPC_ENDPOINT_POLICY: "ec2 describe-vpc-endpoints",
    **dict.fromkeys(
        (RefusedBy.POLICY_NOT_NAMED, RefusedBy.RESOURCE_POLICY_DENIES, NO_GRANT),
        "sqs get-queue-attributes",
    ),
}


@pytest.mark.parametrize("policy_of", RefusedBy)
def test_access_denied_page_has_the_code_and_command_of_the_refusing_policy(
    policy_of: RefusedBy,
) -> None:
    command = COMMANDS.get(policy_of, "iam simulate-principal-policy")
    page = expect_refusal(ACCESS_DENIED, make_denied_queue(policy_of))
    assert page.code == FINDING_BY_REFUSING_POLICY[policy_of].code
    assert page.next_command.startswith(f"aws {command} ")
    assert ("a caller needs it" in page.reason) == page.code.endswith("_lacks_grant")


def test_access_denied_page_leads_with_the_first_refusing_policy_and_names_the_others() -> None:
    page = expect_refusal(ACCESS_DENIED, make_denied_queue(RefusedBy.SESSION_POLICY, NO_GRANT))
    assert page.code == "queue_policy_lacks_grant"
    assert "Other calls were refused by a session policy. Who called: " in page.reason


def test_access_denied_page_has_its_own_code_if_no_error_message_named_a_policy() -> None:
    assert expect_refusal(ACCESS_DENIED, make_denied_queue()).code == "policy_not_named"


def test_access_denied_page_names_single_actions_and_both_policies_for_another_account() -> None:
    events = ("DeleteMessageBatch", "GetQueueUrl", "ReceiveMessage")
    reason = expect_refusal(
        ACCESS_DENIED,
        make_denied_queue(NO_GRANT, principals=(ROLE_OF_OTHER_ACCOUNT,), event_names=events),
    ).reason
    assert reason.startswith(f"sqs:DeleteMessage, sqs:ReceiveMessage on {QUEUE_ARN} is refused. ")
    assert "another account needs it in the queue's policy and in its own" in reason


@pytest.mark.parametrize("principal", ["events.amazonaws.com", "AIDAX", f"{ROLE_ARN};rm -rf /", ""])
def test_access_denied_command_never_contains_a_principal_that_is_no_iam_role_or_user(
    principal: str,
) -> None:
    page = expect_refusal(
        ACCESS_DENIED, make_denied_queue(RefusedBy.IDENTITY_POLICY, principals=(principal,))
    )
    assert page.next_command.startswith("aws sqs get-queue-attributes ")
    assert not principal or principal not in page.next_command


@given(
    st.frozensets(st.sampled_from(RefusedBy)),
    st.lists(st.text(max_size=60) | st.just(ROLE_ARN), max_size=10).map(tuple),
    st.lists(st.text(max_size=40) | st.sampled_from(sorted(MESSAGE_CALLS))).map(tuple),
    st.dictionaries(st.text(max_size=20), st.text(max_size=60), max_size=4),
)
def test_access_denied_without_a_pin_notifies_people_with_a_command_that_only_reads(
    refused_by: frozenset[RefusedBy],
    principals: tuple[str, ...],
    event_names: tuple[str, ...],
    attributes: dict[str, str],
) -> None:
    asked = make_denied_queue(*refused_by, principals=principals, event_names=event_names)
    page = expect_refusal(ACCESS_DENIED, replace(asked, attributes=attributes))
    assert isinstance(page, Escalate)
    _aws, _service, operation, *_ = shlex.split(page.next_command)
    assert operation.startswith(("get-", "list-", "describe-", "simulate-", "lookup-"))


def make_pin(text: str) -> Pin:
    then = EXAMPLE_TIME - timedelta(days=3)
    return Pin(QUEUE_ARN, text, digest_of_policy(text), 4, then, "ada", then, then)


CHANGE = QueueChange(EXAMPLE_TIME, "SetQueueAttributes", ROLE_ARN, by_cloudformation=True)
GOOD_PIN = CheckedPin(make_pin(BOTH), deployment_change=CHANGE)
DOUBTED_PIN = replace(GOOD_PIN, doubt="a person has changed it since")
UNREADABLE_PIN = CheckedPin(None, "its pin cannot be read")


def make_overwritten_queue(
    pinned: CheckedPin | None = GOOD_PIN, stands: str = EMPTY_POLICY, **over: Any
) -> Facts:
    return make_denied_queue(NO_GRANT, Policy=stands, pin=pinned, **over)


@pytest.mark.parametrize("stands", [EMPTY_POLICY, ""])
def test_good_pin_that_grants_the_denied_calls_is_proposed_unchanged_and_never_automatic(
    stands: str,
) -> None:
    both: dict[str, Any] = {
        "principals": (ROLE_ARN, ROLE_OF_OTHER_ACCOUNT),
        "event_names": ("SendMessageBatch", "SendMessage"),
    }
    answer = expect_plan(ACCESS_DENIED, make_overwritten_queue(stands=stands, **both))
    assert answer.steps == (RestorePolicy(stands, BOTH),)
    assert answer.highest_mode is Mode.PROPOSE, "it always adds access"
    assert answer.reason.endswith("a person decides")


def assert_pin_is_not_restored(asked: Facts, because: str) -> None:
    page = expect_refusal(ACCESS_DENIED, asked)
    assert page.code == "queue_policy_lacks_grant"
    assert because in page.reason


@pytest.mark.parametrize(
    ("asked", "because"),
    [
        (make_overwritten_queue(UNREADABLE_PIN), "nothing is put back: its pin cannot be read"),
        (make_overwritten_queue(DOUBTED_PIN), "is not put back: a person has"),
        (make_overwritten_queue(stands=BOTH), "is not put back: it stands there"),
    ],
)
def test_pin_that_is_unreadable_doubted_or_already_the_current_policy_is_not_restored(
    asked: Facts, because: str
) -> None:
    assert_pin_is_not_restored(asked, because)


@pytest.mark.parametrize(
    "asked",
    [
        make_overwritten_queue(principals=()),
        make_overwritten_queue(event_names=("DeleteMessage",)),
        make_overwritten_queue(event_names=("GetQueueUrl",)),
        make_overwritten_queue(event_names=("SendMessage", "DeleteMessage")),
        make_overwritten_queue(principals=(ROLE_ARN, f"{ROLE_ARN}2")),
        make_overwritten_queue(principals=(ROLE_ARN, "sns.amazonaws.com")),
        make_overwritten_queue(replace(GOOD_PIN, pin=make_pin("not JSON"))),
    ],
)
def test_pin_that_does_not_grant_every_denied_call_by_name_is_not_restored(asked: Facts) -> None:
    assert_pin_is_not_restored(asked, "by name")


def test_pin_that_lets_everybody_in_is_not_restored() -> None:
    open_pin = replace(GOOD_PIN, pin=make_pin(OPEN))
    assert_pin_is_not_restored(make_overwritten_queue(open_pin), "lets everybody in")


def test_pin_is_not_restored_if_the_current_policy_was_not_read() -> None:
    unread = replace(make_overwritten_queue(), attributes={})
    assert_pin_is_not_restored(unread, "could not be looked at")


# With these two, a grant is missing. All others are a policy that denies on purpose.
MISSING_GRANTS = {NO_GRANT, RefusedBy.IDENTITY_POLICY}


@pytest.mark.parametrize(
    "refused_by",
    [
        (),
        *((policy_kind,) for policy_kind in RefusedBy if policy_kind not in MISSING_GRANTS),
        tuple(MISSING_GRANTS),
        (NO_GRANT, RefusedBy.RESOURCE_POLICY_DENIES),
    ],
)
def test_pin_is_not_restored_unless_only_a_missing_queue_policy_grant_refused_the_calls(
    refused_by: tuple[RefusedBy, ...],
) -> None:
    asked = replace(make_overwritten_queue(), refused_by=frozenset(refused_by))
    assert "pinned" not in expect_refusal(ACCESS_DENIED, asked).reason


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (make_overwritten_queue(), True),
        (make_overwritten_queue(None), False),
        (make_overwritten_queue(UNREADABLE_PIN), False),
        (make_overwritten_queue(DOUBTED_PIN), False),
        (make_overwritten_queue(stands=BOTH), False),
        (make_overwritten_queue(principals=(ROLE_OF_OTHER_ACCOUNT,)), False),
        (make_overwritten_queue(event_names=("DeleteMessage",)), False),
    ],
)
def test_page_about_the_callers_own_policy_mentions_a_pin_only_if_it_would_grant_the_calls(
    asked: Facts, *, said: bool
) -> None:
    asked = replace(asked, refused_by=frozenset({RefusedBy.IDENTITY_POLICY}))
    reason = expect_refusal(ACCESS_DENIED, asked).reason
    assert ("It is not put back, because IAM names the caller's own policy" in reason) is said
    assert ("pin" in reason) is said


WAITING_PIN = replace(GOOD_PIN, doubt="not told yet", may_doubt_pass=True)


def test_access_denied_is_retried_while_cloudtrail_may_still_report_the_pins_change() -> None:
    assert isinstance(expect_refusal(ACCESS_DENIED, make_overwritten_queue(WAITING_PIN)), Retry)


def test_access_denied_is_not_retried_if_the_pinned_policy_would_grant_nothing() -> None:
    pointless = replace(WAITING_PIN, pin=make_pin(EMPTY_POLICY))
    facts = make_overwritten_queue(pointless, stands="")
    assert isinstance(expect_refusal(ACCESS_DENIED, facts), Escalate)


def test_access_denied_page_of_a_queue_without_a_pin_does_not_mention_one() -> None:
    assert "pin" not in expect_refusal(ACCESS_DENIED, make_overwritten_queue(None)).reason


@given(
    st.frozensets(st.sampled_from(RefusedBy)) | st.just(frozenset({NO_GRANT})),
    st.lists(st.sampled_from((ROLE_ARN, ROLE_OF_OTHER_ACCOUNT, "", "x")), max_size=3).map(tuple),
    st.lists(st.sampled_from(sorted(MESSAGE_CALLS)), max_size=3).map(tuple),
    st.none()
    | st.builds(CheckedPin, st.sampled_from((BOTH, EMPTY_POLICY, "x")).map(make_pin), st.text()),
    st.sampled_from((BOTH, EMPTY_POLICY, "")),
)
def test_access_denied_plan_writes_only_the_text_of_a_good_pin(
    refused_by: frozenset[RefusedBy],
    principals: tuple[str, ...],
    event_names: tuple[str, ...],
    pinned: CheckedPin | None,
    stands: str,
) -> None:
    asked = make_overwritten_queue(pinned, stands, principals=principals, event_names=event_names)
    found = answer_to(ACCESS_DENIED, replace(asked, refused_by=refused_by))
    if isinstance(found, Plan):
        assert pinned is not None
        assert pinned.pin is not None
        assert pinned.is_good
        assert found.steps == (RestorePolicy(stands, pinned.pin.policy),)
