from __future__ import annotations

from typing import Any

import pytest

from tests.infra.permissions import decision
from tests.infra.synthesized import ACCOUNT, template_of, templates

SEVERITIES = ("Urgent", "Info")


def _key_statements() -> list[dict[str, Any]]:
    key = template_of("default").only("AWS::KMS::Key", "Topics")
    statements: list[dict[str, Any]] = key["KeyPolicy"]["Statement"]
    return statements


def _key_statement_of(service: str) -> dict[str, Any]:
    (found,) = (each for each in _key_statements() if each["Principal"] == {"Service": service})
    return found


def test_without_addresses_nobody_is_subscribed() -> None:
    assert template_of("default").all("AWS::SNS::Subscription") == {}


def test_people_and_urls_hear_what_the_settings_name_them_for_and_nothing_else() -> None:
    template = template_of("named")
    subscribed = {
        (severity, each["Properties"]["Protocol"], each["Properties"]["Endpoint"])
        for each in template.all("AWS::SNS::Subscription").values()
        for severity in SEVERITIES
        if each["Properties"]["TopicArn"].startswith(f"Topics{severity}Topic")
    }
    assert subscribed == {
        ("Urgent", "email", "on-call@example.com"),
        ("Urgent", "https", "https://events.example.com/key"),
        ("Info", "email", "sqs@example.com"),
        ("Info", "https", "https://events.example.com/key"),
    }


@pytest.mark.parametrize("severity", SEVERITIES)
def test_a_topic_is_encrypted_with_our_key_and_reached_over_tls_alone(severity: str) -> None:
    template = template_of("default")
    topic = template.only("AWS::SNS::Topic", f"Topics{severity}")
    policy = template.only("AWS::SNS::TopicPolicy", f"Topics{severity}")
    assert topic["KmsMasterKeyId"] == template.arn_of("AWS::KMS::Key", "Topics")
    assert "TopicName" not in topic
    denied, _alarms = policy["PolicyDocument"]["Statement"]
    assert (denied["Effect"], denied["Action"]) == ("Deny", "sns:Publish")
    assert denied["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize(
    ("account", "alarm", "expected"),
    [
        (ACCOUNT, f"{ACCOUNT}:alarm:mendq-not-healing", "Allow"),
        (ACCOUNT, f"{ACCOUNT}:alarm:another", "ImplicitDeny"),
        ("444455556666", "444455556666:alarm:mendq-not-healing", "ImplicitDeny"),
    ],
)
def test_alarms_of_ours_alone_may_publish(
    severity: str, account: str, alarm: str, expected: str
) -> None:
    policy = template_of("default").only("AWS::SNS::TopicPolicy", f"Topics{severity}")
    _denied, statement = policy["PolicyDocument"]["Statement"]
    assert statement["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    without = {name: value for name, value in statement.items() if name != "Principal"}
    keys = {
        "aws:SourceAccount": account,
        "aws:SourceArn": f"arn:aws:cloudwatch:us-east-1:{alarm}",
    }
    assert decision([without], "sns:Publish", statement["Resource"], keys=keys) == expected


def test_the_key_rotates_and_iam_says_who_uses_it() -> None:
    key = template_of("default").only("AWS::KMS::Key", "Topics")
    (root,) = (each for each in _key_statements() if "AWS" in each["Principal"])
    assert key["EnableKeyRotation"] is True
    assert root["Principal"]["AWS"].endswith(f":iam::{ACCOUNT}:root")


def test_alarms_of_this_account_alone_may_use_the_key() -> None:
    statement = _key_statement_of("cloudwatch.amazonaws.com")
    for account, expected in (("444455556666", "ImplicitDeny"), (ACCOUNT, "Allow")):
        keys = {"aws:SourceAccount": account}
        assert _of_a_service(statement, keys) == {expected}


def test_rules_may_use_the_key_though_they_do_not_say_for_whom() -> None:
    """SNS's page: a key's policy with aws:SourceAccount does not work for EventBridge."""
    assert _of_a_service(_key_statement_of("events.amazonaws.com"), {}) == {"Allow"}


def test_no_other_service_may_use_the_key() -> None:
    services = {each["Principal"].get("Service") for each in _key_statements()}
    assert services == {None, "cloudwatch.amazonaws.com", "events.amazonaws.com"}


def test_one_key_is_all_that_each_stack_has() -> None:
    assert {len(template.all("AWS::KMS::Key")) for template in templates()} == {1}


def _of_a_service(statement: dict[str, Any], keys: dict[str, str]) -> set[str]:
    """What becomes of the two calls that publishing to an encrypted topic takes."""
    without = {name: value for name, value in statement.items() if name != "Principal"}
    actions = ("kms:GenerateDataKey", "kms:Decrypt")
    return {decision([without], action, "arn:key", keys=keys) for action in actions}
