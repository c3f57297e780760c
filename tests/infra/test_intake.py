from __future__ import annotations

from typing import Any

import pytest

from functions.aws.ledger_claims import CLAIM_SECONDS
from tests.infra.synthesized import template_of


def _queue(start: str) -> Any:
    return template_of("default").only("AWS::SQS::Queue", start)


def _rule() -> Any:
    return template_of("default").only("AWS::Events::Rule", "Intake")


def _function() -> Any:
    return template_of("default").only("AWS::Lambda::Function", "Heal")


DEAD_LETTERS = (
    "IntakeDeadLetters",
    "IntakeUndelivered",
    "StartNightDeadLetters",
    "WatchNightDeadLetters",
    "DeliverReportDeadLetters",
    "FollowUpDeadLetters",
    "PulseDeadLetters",
)


@pytest.mark.parametrize("start", ["IntakeQueue", "PulseQueue", *DEAD_LETTERS])
def test_a_queue_of_ours_is_encrypted_and_reached_over_tls_alone(start: str) -> None:
    assert _queue(start)["SqsManagedSseEnabled"] is True
    policy = template_of("default").only("AWS::SQS::QueuePolicy", f"{start}Policy")
    denied = [each for each in policy["PolicyDocument"]["Statement"] if each["Effect"] == "Deny"]
    assert [each["Condition"] for each in denied] == [{"Bool": {"aws:SecureTransport": "false"}}]


def test_what_waits_too_long_is_stale_and_goes() -> None:
    assert _queue("IntakeQueue")["MessageRetentionPeriod"] == 4 * 3_600


@pytest.mark.parametrize("start", DEAD_LETTERS)
def test_dead_letters_are_kept_as_long_as_sqs_can(start: str) -> None:
    assert _queue(start)["MessageRetentionPeriod"] == 14 * 86_400


def test_the_lease_covers_the_lambda_as_aws_advises() -> None:
    (mapping,) = template_of("default").all("AWS::Lambda::EventSourceMapping").values()
    window = mapping["Properties"]["MaximumBatchingWindowInSeconds"]
    assert _queue("IntakeQueue")["VisibilityTimeout"] >= 6 * _function()["Timeout"] + window


def test_a_claim_outlives_its_holder_and_ends_before_the_intake_gives_up() -> None:
    """A call of the holder may still be on its way when Lambda ends it."""
    intake = _queue("IntakeQueue")
    patience = intake["VisibilityTimeout"] * intake["RedrivePolicy"]["maxReceiveCount"]
    assert _function()["Timeout"] + 15 < CLAIM_SECONDS < patience
    assert patience < intake["MessageRetentionPeriod"]


def test_poison_and_what_eventbridge_cannot_deliver_end_in_two_places() -> None:
    (target,) = _rule()["Targets"]
    poison = _queue("IntakeQueue")["RedrivePolicy"]["deadLetterTargetArn"]
    undelivered = target["DeadLetterConfig"]["Arn"]
    assert poison.split(":")[-1].startswith("IntakeDeadLetters")
    assert undelivered.split(":")[-1].startswith("IntakeUndelivered")
    assert target["RetryPolicy"]["MaximumEventAgeInSeconds"] == 3_600


def test_the_rule_is_on_and_feeds_the_intake() -> None:
    (target,) = _rule()["Targets"]
    assert _rule()["State"] == "ENABLED"
    assert target["Arn"].split(":")[-1].startswith("IntakeQueue")


@pytest.mark.parametrize("start", ["IntakeQueue", "IntakeUndelivered"])
def test_only_the_rule_may_send_to_the_queues_it_fills(start: str) -> None:
    policy = template_of("default").only("AWS::SQS::QueuePolicy", f"{start}Policy")
    (allowed,) = (
        each for each in policy["PolicyDocument"]["Statement"] if each["Effect"] == "Allow"
    )
    assert allowed["Principal"] == {"Service": "events.amazonaws.com"}
    assert allowed["Condition"]["ArnEquals"]["aws:SourceArn"].startswith("arn:IntakeFailedCalls")
