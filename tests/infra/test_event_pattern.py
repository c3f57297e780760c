"""The EventBridge rules match the right events, judged by the emulator's matcher."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from ministack.services.eventbridge import _matches_pattern

from tests.infra.synthesized import ACCOUNT, HEAL_ROLE, OWN_ROLES, PROBE_ROLE, REGION, template_of


def _read_rule(name: str) -> Any:
    return template_of("named").only("AWS::Events::Rule", name)


def _matches(name: str, event: dict[str, Any]) -> bool:
    matches: bool = _matches_pattern(json.dumps(_read_rule(name)["EventPattern"]), event)
    return matches


def _make_event(identity: dict[str, Any], **detail: Any) -> dict[str, Any]:
    """Return a failed call as an entry of PutEvents."""
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


def _make_role_identity(arn: str) -> dict[str, Any]:
    issuer = {"type": "Role", "arn": arn, "accountId": ACCOUNT}
    return {"type": "AssumedRole", "sessionContext": {"sessionIssuer": issuer}}


IAM_USER = {"type": "IAMUser", "arn": f"arn:aws:iam::{ACCOUNT}:user/batch"}
OTHER_ROLE = _make_role_identity(f"arn:aws:iam::{ACCOUNT}:role/consumer")


def _make_session_arn(role_arn: str) -> str:
    """Return the issuer as AWS's only published SQS data event spells it."""
    return role_arn.replace(":iam:", ":sts:").replace(":role/", ":assumed-role/")


def _make_events(roles: Iterable[str]) -> list[dict[str, Any]]:
    """Return a failed call of each role, and one with the ARN of the role's session."""
    events = []
    for role in roles:
        events.append(_make_event(_make_role_identity(role)))
        events.append(_make_event(_make_role_identity(_make_session_arn(role))))
    return events


OWN_CALLS = _make_events(OWN_ROLES)
PROBE_CALL = _make_event(_make_role_identity(PROBE_ROLE), eventName="SendMessage")
PROBE_SESSION_CALL = _make_event(
    _make_role_identity(_make_session_arn(PROBE_ROLE)), eventName="SendMessage"
)
_SIMILAR_ROLES = (f"{HEAL_ROLE}-of-someone-else", HEAL_ROLE.replace("role/", "role/not-"))
SIMILAR_CALLS = _make_events(_SIMILAR_ROLES)
SUCCESSFUL_CALL = _make_event(OTHER_ROLE)
del SUCCESSFUL_CALL["Detail"]["errorCode"]
OTHER_EVENTS = ({"Source": "aws.s3"}, {"Source": "drill"}, {"DetailType": "AWS Console Sign In"})


@pytest.mark.parametrize(
    "event", [*OWN_CALLS, SUCCESSFUL_CALL, *(PROBE_CALL | change for change in OTHER_EVENTS)]
)
def test_failed_calls_rule_ignores_mendqs_own_calls_successful_calls_and_other_events(
    event: dict[str, Any],
) -> None:
    assert not _matches("IntakeFailedCalls", event)


OTHER_CALLS = [_make_event(identity) for identity in (IAM_USER, OTHER_ROLE, {"type": "Root"}, {})]


@pytest.mark.parametrize("event", [*OTHER_CALLS, PROBE_CALL, PROBE_SESSION_CALL, *SIMILAR_CALLS])
def test_failed_calls_rule_matches_failed_calls_of_other_principals_and_of_the_probe(
    event: dict[str, Any],
) -> None:
    assert _matches("IntakeFailedCalls", event)


def _make_object_event(
    key: str = "summary/week=2026-W46/summary.json", **changes: Any
) -> dict[str, Any]:
    """https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html"""
    bucket = template_of("named").outputs["ReportBucket"]["Value"]
    detail = {"bucket": {"name": bucket}, "object": {"key": key, "size": 5}}
    return {"Source": "aws.s3", "DetailType": "Object Created", "Detail": detail, **changes}


def test_report_rule_matches_only_a_new_weekly_summary_in_the_report_bucket() -> None:
    """If the report's own objects started the report, it would run without end."""
    assert _matches("DeliverReport", _make_object_event())
    week = "week=2026-W46"
    for key in (f"report/{week}/report.html", f"report/{week}/delivered/verdict.json"):
        assert not _matches("DeliverReport", _make_object_event(key))
    for key in (f"summary/{week}/_temporary/0/summary.json.part", f"logs/summary/{week}/s.json"):
        assert not _matches("DeliverReport", _make_object_event(key))
    another = {**_make_object_event()["Detail"], "bucket": {"name": "another"}}
    for changes in ({"DetailType": "Object Deleted"}, {"Source": "drill"}, {"Detail": another}):
        assert not _matches("DeliverReport", _make_object_event(**changes))


def _make_mapping_event(**detail: Any) -> dict[str, Any]:
    """Return a refused mapping as an entry of PutEvents."""
    detail = {"eventSource": "lambda.amazonaws.com", **detail}
    return {**_make_event(OTHER_ROLE, **detail), "Source": "aws.lambda"}


def test_refused_mappings_rule_matches_only_failed_calls_that_create_or_change_a_mapping() -> None:
    name = "CreateEventSourceMapping20150331"
    created = _make_mapping_event(eventName=name)
    del created["Detail"]["errorCode"]
    assert not _matches("IntakeRefusedMappings", created)
    for other_name in ("DeleteEventSourceMapping20150331", "CreateFunction20150331"):
        assert not _matches("IntakeRefusedMappings", _make_mapping_event(eventName=other_name))
    assert not _matches("IntakeRefusedMappings", _make_event(OTHER_ROLE, eventName=name))
    assert _matches("IntakeRefusedMappings", _make_mapping_event(eventName=name))
    updated = _make_mapping_event(eventName="UpdateEventSourceMapping20150331")
    assert _matches("IntakeRefusedMappings", updated)


def _make_health_event(**detail: Any) -> dict[str, Any]:
    """https://docs.aws.amazon.com/health/latest/ug/aws-health-events-eventbridge-schema.html"""
    health_detail = {
        "service": "SQS",
        "eventTypeCategory": "issue",
        "eventRegion": REGION,
        **detail,
    }
    return {"Source": "aws.health", "DetailType": "AWS Health Event", "Detail": health_detail}


def test_aws_health_rule_matches_only_issues_and_investigations_of_three_services_here() -> None:
    for service in ("SQS", "KMS", "LAMBDA"):
        assert _matches("IntakeAwsHealth", _make_health_event(service=service))
    assert _matches("IntakeAwsHealth", _make_health_event(eventTypeCategory="investigation"))
    for detail in ({"service": "EC2"}, {"eventRegion": "sa-east-1"}):
        assert not _matches("IntakeAwsHealth", _make_health_event(**detail))
    for kind in ("scheduledChange", "accountNotification"):
        assert not _matches("IntakeAwsHealth", _make_health_event(eventTypeCategory=kind))
    assert not _matches("IntakeAwsHealth", _make_health_event() | {"Source": "mine.health"})
    assert not _matches(
        "IntakeAwsHealth", _make_health_event() | {"DetailType": "AWS Health Abuse Event"}
    )
