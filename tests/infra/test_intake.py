from __future__ import annotations

from typing import Any

import pytest

from tests.infra.synthesized import template_of


def _queue(start: str) -> Any:
    return template_of("default").only("AWS::SQS::Queue", start)


def _rule() -> Any:
    return template_of("default").only("AWS::Events::Rule", "Intake")


DLQ = (
    "IntakeDlq",
    "IntakeUndelivered",
    "StartNightlyDlq",
    "WatchNightlyDlq",
    "DeliverReportDlq",
    "FollowUpDlq",
    "ProbeDlq",
)


@pytest.mark.parametrize("start", ["IntakeQueue", "ProbeQueue", *DLQ])
def test_a_queue_of_ours_is_encrypted_and_reached_over_tls_alone(start: str) -> None:
    assert _queue(start)["SqsManagedSseEnabled"] is True
    policy = template_of("default").only("AWS::SQS::QueuePolicy", f"{start}Policy")
    denied = [each for each in policy["PolicyDocument"]["Statement"] if each["Effect"] == "Deny"]
    assert [each["Condition"] for each in denied] == [{"Bool": {"aws:SecureTransport": "false"}}]


def test_what_waits_too_long_is_stale_and_goes() -> None:
    assert _queue("IntakeQueue")["MessageRetentionPeriod"] == 4 * 3_600


@pytest.mark.parametrize("start", DLQ)
def test_dlq_are_retained_as_long_as_sqs_can(start: str) -> None:
    assert _queue(start)["MessageRetentionPeriod"] == 14 * 86_400


def test_poison_and_what_eventbridge_cannot_deliver_end_in_two_places() -> None:
    (target,) = _rule()["Targets"]
    poison = _queue("IntakeQueue")["RedrivePolicy"]["deadLetterTargetArn"]
    undelivered = target["DeadLetterConfig"]["Arn"]
    assert poison.split(":")[-1].startswith("IntakeDlq")
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
