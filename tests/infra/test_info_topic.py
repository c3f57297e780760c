from __future__ import annotations

from typing import Any

from tests.infra.synthesized import ACCOUNT, template_of, templates


def _key_statements() -> list[dict[str, Any]]:
    key = template_of("default").only("AWS::KMS::Key", "Info")
    statements: list[dict[str, Any]] = key["KeyPolicy"]["Statement"]
    return statements


def test_without_addresses_nobody_is_subscribed() -> None:
    assert template_of("default").all("AWS::SNS::Subscription") == {}


def test_people_and_urls_of_the_settings_are_subscribed() -> None:
    subscribed = {
        (each["Properties"]["Protocol"], each["Properties"]["Endpoint"])
        for each in template_of("named").all("AWS::SNS::Subscription").values()
    }
    assert subscribed == {
        ("email", "sqs@example.com"),
        ("https", "https://events.example.com/key"),
    }


def test_the_topic_is_encrypted_with_our_key_and_reached_over_tls_alone() -> None:
    topic = template_of("default").only("AWS::SNS::Topic")
    policy = template_of("default").only("AWS::SNS::TopicPolicy")
    assert topic["KmsMasterKeyId"] == template_of("default").arn_of("AWS::KMS::Key", "Info")
    assert "TopicName" not in topic
    (denied,) = policy["PolicyDocument"]["Statement"]
    assert (denied["Effect"], denied["Action"]) == ("Deny", "sns:Publish")
    assert denied["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_the_key_rotates_and_iam_says_who_uses_it() -> None:
    key = template_of("default").only("AWS::KMS::Key", "Info")
    (root,) = _key_statements()
    assert key["EnableKeyRotation"] is True
    assert root["Principal"]["AWS"].endswith(f":iam::{ACCOUNT}:root")


def test_one_key_is_all_that_each_stack_has() -> None:
    assert {len(template.all("AWS::KMS::Key")) for template in templates()} == {1}
