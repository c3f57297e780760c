"""The rules' patterns, asked by a matcher that is not ours (the emulator's)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ministack.services.eventbridge import _matches_pattern

from tests.infra.synthesized import ACCOUNT, HEAL_ROLE, OWN_ROLES, PROBE_ROLE, REGION, template_of


def _rule(name: str) -> Any:
    return template_of("named").only("AWS::Events::Rule", name)


def _starts(name: str, event: dict[str, Any]) -> bool:
    matches: bool = _matches_pattern(json.dumps(_rule(name)["EventPattern"]), event)
    return matches


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


def _of_session(role_arn: str) -> str:
    """As AWS's one published SQS data event spells the issuer."""
    return role_arn.replace(":iam:", ":sts:").replace(":role/", ":assumed-role/")


OF_OURS = [_event(_role(each)) for role in OWN_ROLES for each in (role, _of_session(role))]
PROBED = _event(_role(PROBE_ROLE), eventName="SendMessage")
PROBED_TOO = _event(_role(_of_session(PROBE_ROLE)), eventName="SendMessage")
_ALIKE = (f"{HEAL_ROLE}-of-someone-else", HEAL_ROLE.replace("role/", "role/not-"))
ALIKE = [_event(_role(each)) for role in _ALIKE for each in (role, _of_session(role))]
SUCCEEDED = _event(OTHER_ROLE)
del SUCCEEDED["Detail"]["errorCode"]
KINDS = ({"Source": "aws.s3"}, {"Source": "drill"}, {"DetailType": "AWS Console Sign In"})


@pytest.mark.parametrize("event", [*OF_OURS, SUCCEEDED, *(PROBED | each for each in KINDS)])
def test_failed_calls_rule_ignores_mendqs_own_calls_successful_calls_and_other_events(
    event: dict[str, Any],
) -> None:
    assert not _starts("IntakeFailedCalls", event)


ANYONE = [_event(each) for each in (IAM_USER, OTHER_ROLE, {"type": "Root"}, {})]


@pytest.mark.parametrize("event", [*ANYONE, PROBED, PROBED_TOO, *ALIKE])
def test_failed_calls_rule_matches_failed_calls_of_other_principals_and_of_the_probe(
    event: dict[str, Any],
) -> None:
    assert _starts("IntakeFailedCalls", event)


def _written(key: str = "summary/week=2026-W46/summary.json", **changes: Any) -> dict[str, Any]:
    """https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html"""
    bucket = template_of("named").outputs["ReportBucket"]["Value"]
    detail = {"bucket": {"name": bucket}, "object": {"key": key, "size": 5}}
    return {"Source": "aws.s3", "DetailType": "Object Created", "Detail": detail, **changes}


def test_report_rule_matches_only_a_new_weekly_summary_in_the_report_bucket() -> None:
    """What it writes itself would go round and round."""
    assert _starts("DeliverReport", _written())
    week = "week=2026-W46"
    for key in (f"report/{week}/report.html", f"report/{week}/delivered/verdict.json"):
        assert not _starts("DeliverReport", _written(key))
    for key in (f"summary/{week}/_temporary/0/summary.json.part", f"logs/summary/{week}/s.json"):
        assert not _starts("DeliverReport", _written(key))
    another = {**_written()["Detail"], "bucket": {"name": "another"}}
    for changes in ({"DetailType": "Object Deleted"}, {"Source": "drill"}, {"Detail": another}):
        assert not _starts("DeliverReport", _written(**changes))


def _health(**detail: Any) -> dict[str, Any]:
    """https://docs.aws.amazon.com/health/latest/ug/aws-health-events-eventbridge-schema.html"""
    told = {"service": "SQS", "eventTypeCategory": "issue", "eventRegion": REGION, **detail}
    return {"Source": "aws.health", "DetailType": "AWS Health Event", "Detail": told}


def test_aws_health_rule_matches_only_issues_of_sqs_kms_and_lambda_in_this_region() -> None:
    for service in ("SQS", "KMS", "LAMBDA"):
        assert _starts("IntakeAwsHealth", _health(service=service))
    assert _starts("IntakeAwsHealth", _health(eventTypeCategory="investigation"))
    for detail in ({"service": "EC2"}, {"eventRegion": "sa-east-1"}):
        assert not _starts("IntakeAwsHealth", _health(**detail))
    for kind in ("scheduledChange", "accountNotification"):
        assert not _starts("IntakeAwsHealth", _health(eventTypeCategory=kind))
    assert not _starts("IntakeAwsHealth", _health() | {"Source": "mine.health"})
    assert not _starts("IntakeAwsHealth", _health() | {"DetailType": "AWS Health Abuse Event"})
