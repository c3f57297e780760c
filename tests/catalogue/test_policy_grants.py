"""A grant is one only where nothing else can be meant: near-misses first."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue._restore_policy import grants, is_open_to_everybody

WORKER = "arn:aws:iam::123456789012:role/orders-worker"
OTHER = "arn:aws:iam::123456789012:role/billing"
ROOT = "arn:aws:iam::123456789012:root"
QUEUE = "arn:aws:sqs:us-east-1:123456789012:orders"
SEND = "sqs:SendMessage"
ALLOW: dict[str, Any] = {
    "Effect": "Allow",
    "Principal": {"AWS": WORKER},
    "Action": SEND,
    "Resource": QUEUE,
}
DENY = {**ALLOW, "Effect": "Deny"}
WITHOUT_TLS = {
    "Effect": "Deny",
    "Principal": "*",
    "Action": "sqs:*",
    "Resource": QUEUE,
    "Condition": {"Bool": {"aws:SecureTransport": "false"}},
}


def policy(*statements: object) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def _without(name: str) -> dict[str, Any]:
    return {key: value for key, value in ALLOW.items() if key != name}


@pytest.mark.parametrize(
    "statement",
    [
        {**ALLOW, "Principal": {"AWS": OTHER}},
        {**ALLOW, "Principal": {"AWS": ROOT}},
        {**ALLOW, "Principal": {"AWS": "123456789012"}},
        {**ALLOW, "Principal": "*"},
        {**ALLOW, "Principal": {"Service": WORKER}},
        {**ALLOW, "Principal": {"AWS": f"{WORKER}2"}},
        {**_without("Principal"), "NotPrincipal": {"AWS": OTHER}},
        {**ALLOW, "Action": "sqs:ReceiveMessage"},
        {**ALLOW, "Action": "sqs:SendMessageBatch"},
        {**ALLOW, "Action": "sns:*"},
        {**_without("Action"), "NotAction": "sqs:DeleteQueue"},
        {**ALLOW, "Resource": f"{QUEUE}2"},
        {**ALLOW, "Resource": QUEUE.upper()},
        {**ALLOW, "Resource": "arn:aws:sqs:*"},
        {**ALLOW, "Resource": "arn:aws:sqs:us-east-1:*"},
        {**ALLOW, "Resource": "arn:aws:sqs:eu-*:123456789012:orders"},
        {**_without("Resource"), "NotResource": f"{QUEUE}2"},
        {**ALLOW, "Condition": {"ArnLike": {"aws:SourceArn": "*"}}},
        *(_without(each) for each in ("Principal", "Action", "Resource")),
        DENY,
    ],
)
def test_what_may_be_another_s_or_never_hold_is_no_grant(statement: dict[str, Any]) -> None:
    assert not grants(policy(statement), WORKER, SEND, QUEUE)


@pytest.mark.parametrize(
    "denying",
    [
        DENY,
        {**DENY, "Principal": "*"},
        {**DENY, "Principal": {"AWS": ROOT}},
        {**DENY, "Principal": {"AWS": "123456789012"}},
        {**DENY, "Principal": {"AWS": [OTHER, "AROAEXAMPLE"]}},
        {**DENY, "Principal": {"AWS": "arn:aws:sts::123456789012:assumed-role/orders-worker/i-1"}},
        {**_without("Principal"), "Effect": "Deny", "NotPrincipal": {"AWS": WORKER}},
        {**DENY, "Action": "SQS:*"},
        {**DENY, "Action": "*"},
        {**_without("Action"), "Effect": "Deny", "NotAction": "sqs:SendMessage"},
        {**DENY, "Resource": "*"},
        {**DENY, "Resource": "arn:aws:sqs:*"},
        {**_without("Resource"), "Effect": "Deny", "NotResource": QUEUE},
        {**DENY, "Condition": {"IpAddress": {"aws:SourceIp": "192.0.2.0/24"}}},
        {**WITHOUT_TLS, "Condition": {"Bool": {"aws:SecureTransport": "true"}}},
        {
            **WITHOUT_TLS,
            "Condition": {"Bool": {"aws:SecureTransport": ["false", "true"]}},
        },
    ],
)
def test_a_grant_beside_what_may_deny_it_is_none(denying: dict[str, Any]) -> None:
    assert not grants(policy(ALLOW, denying), WORKER, SEND, QUEUE)
    assert not grants(policy(denying, ALLOW), WORKER, SEND, QUEUE)


@pytest.mark.parametrize(
    "statement",
    [
        ALLOW,
        {**ALLOW, "Principal": {"AWS": [OTHER, WORKER]}},
        {**ALLOW, "Action": ["sqs:ReceiveMessage", "SQS:sendmessage"]},
        {**ALLOW, "Action": "sqs:Send*"},
        {**ALLOW, "Action": "*"},
        {**ALLOW, "Resource": "*"},
        {**ALLOW, "Resource": "arn:aws:sqs:*:123456789012:order?"},
    ],
)
def test_a_grant_by_name_is_one(statement: dict[str, Any]) -> None:
    assert grants(policy(statement), WORKER, SEND, QUEUE)
    others = {**DENY, "Principal": {"AWS": OTHER}}
    assert grants(policy(WITHOUT_TLS, others, statement), WORKER, SEND, QUEUE)
    elsewhere = {**DENY, "Action": "sqs:DeleteMessage"}
    assert grants(policy(elsewhere, statement), WORKER, SEND, QUEUE)


@pytest.mark.parametrize("principal", ["events.amazonaws.com", "AIDAEXAMPLE", ROOT, "*", ""])
def test_only_a_role_or_user_is_granted_anything(principal: str) -> None:
    assert not grants(policy({**ALLOW, "Principal": {"AWS": principal}}), principal, SEND, QUEUE)


@pytest.mark.parametrize("text", ["", "{}", "nothing", policy(ALLOW, {"Effect": "Maybe"})])
def test_what_is_no_policy_grants_nothing(text: str) -> None:
    assert not grants(text, WORKER, SEND, QUEUE)


def test_who_is_let_in_without_a_condition() -> None:
    for principal in ({"Principal": "*"}, {"Principal": {"AWS": ["*"]}}):
        assert is_open_to_everybody(policy(ALLOW, {**ALLOW, **principal}))
    assert is_open_to_everybody(policy({**_without("Principal"), "NotPrincipal": {"AWS": OTHER}}))
    assert is_open_to_everybody("no policy")
    from_a_topic = {"ArnEquals": {"aws:SourceArn": "arn:aws:sns:us-east-1:123456789012:orders"}}
    assert not is_open_to_everybody(
        policy(ALLOW, WITHOUT_TLS, {**ALLOW, "Principal": "*", "Condition": from_a_topic})
    )


def test_stars_take_no_time() -> None:
    patterns = ["*a" * 120, "?*" * 120, "[!" * 100]
    hostile = policy(*({**ALLOW, "Resource": each} for each in patterns))
    begun = time.perf_counter()
    assert not grants(hostile, WORKER, SEND, QUEUE)
    assert time.perf_counter() - begun < 1


PARTS = st.sampled_from(
    (WORKER, OTHER, ROOT, "*", SEND, "sqs:*", QUEUE, "Allow", "Deny", "AWS", "x")
)


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "Effect": st.sampled_from(("Allow", "Deny")),
                "Principal": PARTS | st.dictionaries(PARTS, PARTS | st.lists(PARTS), max_size=2),
                "Action": PARTS | st.lists(PARTS, max_size=3),
                "Resource": PARTS,
            }
        ),
        max_size=4,
    )
)
def test_a_grant_stands_by_name_in_a_statement_that_allows(statements: list[Any]) -> None:
    if grants(policy(*statements), WORKER, SEND, QUEUE):
        assert any(
            each["Effect"] == "Allow" and WORKER in json.dumps(each["Principal"])
            for each in statements
        )
