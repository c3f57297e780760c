"""The rule's pattern, asked by a matcher that is not ours (the emulator's)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ministack.services.eventbridge import _matches_pattern

from mendq.catalogue import CATALOGUE
from mendq.catalogue.symptom import Caught
from tests.infra.synthesized import ACCOUNT, HEAL_ROLE, OWN_ROLES, PROBE_ROLE, template_of


def _pattern() -> str:
    return json.dumps(template_of("named").only("AWS::Events::Rule", "Intake")["EventPattern"])


def _event(identity: dict[str, Any], **detail: Any) -> dict[str, Any]:
    """As the bus keeps it: an entry of PutEvents."""
    return {
        "Source": "aws.sqs",
        "DetailType": "AWS API Call via CloudTrail",
        "Detail": {
            "eventSource": "sqs.amazonaws.com",
            "eventName": "DeleteMessage",
            "userIdentity": identity,
            "errorCode": "InvalidParameterValueException",
            **detail,
        },
    }


def _role(arn: str) -> dict[str, Any]:
    issuer = {"type": "Role", "arn": arn, "accountId": ACCOUNT}
    return {"type": "AssumedRole", "sessionContext": {"sessionIssuer": issuer}}


IAM_USER = {"type": "IAMUser", "arn": f"arn:aws:iam::{ACCOUNT}:user/batch"}
OTHER_ROLE = _role(f"arn:aws:iam::{ACCOUNT}:role/consumer")


@pytest.mark.parametrize("role", OWN_ROLES)
def test_a_call_of_our_own_role_stays_out(role: str) -> None:
    assert not _matches_pattern(_pattern(), _event(_role(role)))


def test_a_call_that_did_not_fail_stays_out() -> None:
    event = _event(OTHER_ROLE)
    del event["Detail"]["errorCode"]
    assert not _matches_pattern(_pattern(), event)


@pytest.mark.parametrize(
    "change", [{"Source": "aws.s3"}, {"Source": "drill"}, {"DetailType": "AWS Console Sign In"}]
)
def test_an_event_of_another_kind_stays_out(change: dict[str, str]) -> None:
    assert not _matches_pattern(_pattern(), _event(OTHER_ROLE) | change)


@pytest.mark.parametrize("identity", [IAM_USER, OTHER_ROLE, {"type": "Root"}, {}])
def test_a_call_of_anyone_else_comes_in(identity: dict[str, Any]) -> None:
    assert _matches_pattern(_pattern(), _event(identity))


def test_the_probes_call_comes_in_though_its_role_is_ours() -> None:
    assert _matches_pattern(_pattern(), _event(_role(PROBE_ROLE), eventName="SendMessage"))


def test_a_role_whose_name_only_begins_like_ours_comes_in() -> None:
    assert _matches_pattern(_pattern(), _event(_role(f"{HEAL_ROLE}-of-someone-else")))


@pytest.mark.parametrize(
    "code", ["AWS.SimpleQueueService.NonExistentQueue", "KmsThrottled", "NeverHeardOf"]
)
def test_any_error_code_comes_in(code: str) -> None:
    assert _matches_pattern(_pattern(), _event(OTHER_ROLE, errorCode=code))


CAUGHT = [each for entry in CATALOGUE for each in entry.caught]


def _call(identity: dict[str, Any], caught: Caught) -> dict[str, Any]:
    call = caught.call
    return _event(
        identity,
        eventName=call.event_name,
        errorCode=call.raw_error_code,
        errorMessage=call.error_message,
        resources=[{"type": "AWS::SQS::Queue", "ARN": call.queue_arn}],
    )


@pytest.mark.parametrize("caught", CAUGHT, ids=lambda each: each.title)
def test_what_the_catalogue_catches_comes_in_unless_it_is_ours(caught: Caught) -> None:
    for role in OWN_ROLES:
        assert not _matches_pattern(_pattern(), _call(_role(role), caught))
    assert _matches_pattern(_pattern(), _call(OTHER_ROLE, caught))
    assert _matches_pattern(_pattern(), _call(IAM_USER, caught))
