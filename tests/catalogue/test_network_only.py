"""Which policies keep the redrive role out, because it comes from no network of theirs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue._redrive_causes import ARRIVING, LEAVING, keeps_out
from mendq.catalogue.examples import STANDARD_ARN

VPC = {"StringNotEquals": {"aws:SourceVpc": "vpc-0abc"}}
DENY: dict[str, Any] = {
    "Effect": "Deny",
    "Principal": "*",
    "Action": "sqs:*",
    "Resource": STANDARD_ARN,
}


def fault(condition: dict[str, Any] | None = None, **over: Any) -> str | None:
    conditions = {} if condition is None else {"Condition": condition}
    statement = {**DENY, **conditions, **over}
    return keeps_out(json.dumps({"Statement": statement}), STANDARD_ARN, ARRIVING)


@pytest.mark.parametrize(
    "condition",
    [
        VPC,
        {"StringNotEquals": {"aws:SourceVpce": ["vpce-1", "vpce-2"]}},
        {"StringNotEqualsIfExists": {"AWS:sourceVPC": "vpc-0abc"}},
        {"ForAllValues:StringNotLike": {"aws:SourceVpc": "vpc-*"}},
        {"NotIpAddress": {"aws:SourceIp": "10.0.0.0/8"}},
        {"NotIpAddressIfExists": {"aws:VpcSourceIp": "10.0.0.0/8"}},
        {"Null": {"aws:SourceVpc": "true"}},
        {**VPC, "Bool": {"aws:SecureTransport": "false"}},
    ],
)
def test_one_network_alone_keeps_it_out(condition: dict[str, Any]) -> None:
    found = fault(condition)
    assert found is not None
    assert "one network" in found


ROLE = "arn:aws:iam::123456789012:role/mendq-redrive-us-east-1"


@pytest.mark.parametrize(
    "exception",
    [
        {"ArnNotEquals": {"aws:PrincipalArn": ROLE}},
        {"ArnNotLikeIfExists": {"aws:principalarn": ["arn:aws:iam::1:role/x", ROLE]}},
        {"StringNotEquals": {"aws:PrincipalArn": ROLE}},
        {"StringNotLike": {"aws:PrincipalArn": "arn:aws:iam::*:role/mendq-*"}},
    ],
)
def test_an_exception_for_the_redrive_role_lets_it_in(exception: dict[str, Any]) -> None:
    merged = {**VPC}
    for operator, asked in exception.items():
        merged[operator] = {**merged.get(operator, {}), **asked}
    assert fault(merged) is None


@pytest.mark.parametrize(
    "exception",
    [
        {"ArnNotEquals": {"aws:PrincipalArn": ROLE.replace("redrive", "heal")}},
        {"ArnNotEquals": {"aws:PrincipalArn": ROLE.replace("us-east-1", "eu-west-1")}},
        {"ArnEquals": {"aws:PrincipalArn": ROLE}},
        {"ArnNotEquals": {"aws:SourceArn": ROLE}},
        {"StringNotEqualsIfExists": {"aws:CalledViaLast": "sqs.amazonaws.com"}},
        {"Bool": {"aws:ViaAWSService": "false"}},
    ],
)
def test_another_exception_does_not(exception: dict[str, Any]) -> None:
    assert fault({**VPC, **exception}) is not None


@pytest.mark.parametrize(
    ("condition", "over"),
    [
        (VPC, {"Effect": "Allow"}),
        (VPC, {"Action": "sqs:ReceiveMessage"}),
        (VPC, {"Resource": f"{STANDARD_ARN}-2"}),
        ({"Bool": {"aws:SecureTransport": "false"}}, {}),
        ({"IpAddress": {"aws:SourceIp": "192.0.2.0/24"}}, {}),
        ({"StringEquals": {"aws:SourceVpc": "vpc-bad"}}, {}),
        (None, {}),
    ],
)
def test_what_is_no_such_statement_is_not_taken_for_one(
    condition: dict[str, Any] | None, over: dict[str, Any]
) -> None:
    assert fault(condition, **over) is None


def test_what_it_denies_besides_decides_nothing() -> None:
    everything_but = {"NotAction": "sqs:GetQueueUrl", "Action": None}
    statement = {**DENY, **everything_but, "Condition": VPC}
    del statement["Action"]
    text = json.dumps({"Statement": statement})
    assert keeps_out(text, STANDARD_ARN, LEAVING)


def test_no_policy_keeps_nobody_out_and_an_unreadable_one_does() -> None:
    assert keeps_out("", STANDARD_ARN, LEAVING) is None
    assert keeps_out("{", STANDARD_ARN, LEAVING) == "its policy cannot be read"


def test_it_names_the_statement_in_short() -> None:
    found = fault(VPC, Sid="x" * 300)
    assert found is not None
    assert f'"{"x" * 64}"' in found


TEXTS = st.text(max_size=12) | st.sampled_from(["aws:SourceVpc", "Null", "true", "sqs:*", "*"])
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda each: st.lists(each, max_size=3) | st.dictionaries(TEXTS, each, max_size=3),
    max_leaves=12,
)


@given(st.text(max_size=200) | st.builds(lambda each: json.dumps({"Statement": each}), ANY))
def test_no_text_makes_it_raise(policy: str) -> None:
    found = keeps_out(policy, STANDARD_ARN, ARRIVING)
    assert found is None or found


@given(ANY)
def test_no_condition_makes_it_raise(condition: object) -> None:
    text = json.dumps({"Statement": {**DENY, "Condition": condition}})
    found = keeps_out(text, STANDARD_ARN, ARRIVING)
    assert found is None or found
