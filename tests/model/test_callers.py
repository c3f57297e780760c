from __future__ import annotations

import pytest

from mendq.model.evidence import are_strangers_to, first_identity, granted_by, named

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


@pytest.mark.parametrize("principal", [ROLE, USER, STRANGER])
def test_an_identity_is_found_behind_others(principal: str) -> None:
    assert first_identity(["sns.amazonaws.com", principal, "x"]) == principal


def test_one_stranger_is_enough() -> None:
    assert not are_strangers_to("123456789012", [ROLE, USER])
    assert are_strangers_to("123456789012", [ROLE, STRANGER])


def test_calls_that_carry_no_messages_are_granted_by_nothing_here() -> None:
    assert granted_by(["GetQueueUrl", "ReceiveMessageBatch", ""]) == ()


def test_a_batch_is_granted_by_the_single_action_once() -> None:
    assert granted_by(["SendMessageBatch", "SendMessage"]) == ("sqs:SendMessage",)
    assert granted_by(["ReceiveMessage", "ChangeMessageVisibilityBatch"]) == (
        "sqs:ChangeMessageVisibility",
        "sqs:ReceiveMessage",
    )


@pytest.mark.parametrize(
    ("principals", "text"),
    [
        ((), "a caller that CloudTrail does not name"),
        (("a",), "a"),
        (("a", "b", "c"), "a, b, c"),
        (("a", "b", "c", "d"), "a, b, c and 1 more"),
    ],
)
def test_a_few_are_named(principals: tuple[str, ...], text: str) -> None:
    assert named(principals) == text
