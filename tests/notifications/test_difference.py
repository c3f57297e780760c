"""What is no difference first; then every difference is named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.notifications.configuration import configured, differences, in_short

ALLOW = {"Effect": "Allow", "Action": "sqs:SendMessage"}
SNS: dict[str, Any] = {"Sid": "AllowSns", **ALLOW, "Principal": {"Service": "sns.amazonaws.com"}}
READS = ["sqs:ReceiveMessage", "sqs:DeleteMessage"]
WORKERS: dict[str, Any] = {
    **ALLOW,
    "Sid": "Workers",
    "Principal": {"AWS": ["a", "b"]},
    "Action": READS,
}
NAMELESS = {"Effect": "Deny", "Principal": "*", "Action": "sqs:*"}
NAMELESS_TEXT = '{"Effect":"Deny","Principal":"*","Action":"sqs:*"}'
TARGET = "arn:aws:sqs:us-east-1:123456789012:orders-dlq"


def policy(*statements: dict[str, Any], **over: Any) -> dict[str, str]:
    return {"Policy": json.dumps({"Version": "2012-10-17", "Statement": statements, **over})}


def redrive(**members: Any) -> dict[str, str]:
    return {"RedrivePolicy": json.dumps({"deadLetterTargetArn": TARGET, **members})}


@pytest.mark.parametrize(
    ("known", "now"),
    [
        ({"VisibilityTimeout": "30"}, {"VisibilityTimeout": "30"}),
        ({"ApproximateNumberOfMessages": "1"}, {"ApproximateNumberOfMessages": "2"}),
        ({"LastModifiedTimestamp": "1"}, {"CreatedTimestamp": "2"}),
        ({"Policy": ""}, {}),
        (policy(SNS, WORKERS), policy(WORKERS, SNS)),
        (policy(SNS), {"Policy": json.dumps(json.loads(policy(SNS)["Policy"]), indent=4)}),
        (policy(WORKERS), policy({**WORKERS, "Action": WORKERS["Action"][::-1]})),
        (policy({"Action": ["a", "b"]}), policy({"Action": ["b", "a"]})),
        (policy(SNS), policy({**SNS, "Action": ["sqs:SendMessage"]})),
        (policy(SNS), policy(Statement=SNS)),
        (redrive(maxReceiveCount=5), redrive(maxReceiveCount="5")),
    ],
)
def test_no_difference(known: dict[str, str], now: dict[str, str]) -> None:
    assert differences(known, now) == ()
    assert differences(now, known) == ()


@pytest.mark.parametrize(
    ("known", "now", "expected"),
    [
        ({"VisibilityTimeout": "30"}, {"VisibilityTimeout": "45"}, ["VisibilityTimeout: 30 -> 45"]),
        ({"DelaySeconds": "5"}, {}, ["DelaySeconds: 5 -> not set"]),
        (
            redrive(maxReceiveCount=5),
            redrive(maxReceiveCount=100),
            ["RedrivePolicy maxReceiveCount: 5 -> 100"],
        ),
        (
            {},
            redrive(maxReceiveCount=5),
            [f'RedrivePolicy: not set -> {{"deadLetterTargetArn":"{TARGET}","maxReceiveCount":5}}'],
        ),
        (
            {"RedriveAllowPolicy": '{"sourceQueueArns":["a","b"]}'},
            {"RedriveAllowPolicy": '{"sourceQueueArns":["c","a"]}'},
            [
                "RedriveAllowPolicy sourceQueueArns: b is gone",
                "RedriveAllowPolicy sourceQueueArns: c is new",
            ],
        ),
        (
            policy(SNS),
            policy({**SNS, "Principal": "*"}),
            ['Policy statement AllowSns changed, Principal: {"Service":"sns.amazonaws.com"} -> *'],
        ),
        (
            policy(WORKERS),
            policy({**WORKERS, "Principal": {"AWS": "a"}}),
            ["Policy statement Workers changed, Principal AWS: b is gone"],
        ),
        (policy(SNS), policy(SNS, Id="x"), ["Policy Id: not set -> x"]),
        (
            policy(SNS, NAMELESS),
            policy(SNS),
            [f"Policy statement without Sid removed: {NAMELESS_TEXT}"],
        ),
        ({"Policy": "no json"}, {"Policy": "nor this"}, ['Policy: "no json" -> "nor this"']),
        ({"Policy": "[1]"}, {"Policy": "[2]"}, ["Policy: [1] -> [2]"]),
    ],
)
def test_differences(known: dict[str, str], now: dict[str, str], expected: list[str]) -> None:
    assert list(differences(known, now)) == expected


def test_a_policy_from_nothing_names_every_statement_and_each_of_two_equal_ones_counts() -> None:
    lines = differences({}, policy(SNS, NAMELESS))
    assert lines[0] == "Policy Version: not set -> 2012-10-17"
    assert lines[1].startswith('Policy statement AllowSns added: {"Sid":"AllowSns"')
    assert lines[2].startswith("Policy statement without Sid added: ")
    (line,) = differences(policy(NAMELESS, NAMELESS), policy(NAMELESS))
    assert "without Sid removed" in line


@pytest.mark.parametrize(
    ("depth", "begins"), [(600, "RedrivePolicy"), (20_000, "RedrivePolicy: {")]
)
def test_documents_deeper_than_anybody_reads_are_compared_as_text(depth: int, begins: str) -> None:
    """How deep that is depends on the stack that is left: near it, either way will do."""
    deep, deeper = ('{"a":' * each + "1" + "}" * each for each in (depth, depth + 1))
    (line,) = differences({"RedrivePolicy": deep}, {"RedrivePolicy": deeper})
    assert line.startswith(begins)


def test_what_is_configured_is_what_somebody_chose() -> None:
    others = {"QueueArn": "arn", "KmsMasterKeyId": "", "ApproximateNumberOfMessagesDelayed": "0"}
    assert configured({"VisibilityTimeout": "30", **others}) == {"VisibilityTimeout": "30"}


DOCUMENTS = st.recursive(
    st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("name", ["Policy", "RedrivePolicy", "VisibilityTimeout"])
@given(document=DOCUMENTS)
def test_a_document_does_not_differ_from_itself(name: str, document: Any) -> None:
    known, now = {name: json.dumps(document)}, {name: json.dumps(document)}
    assert differences(known, now) == ()


@given(text=st.text(), other=st.text(), more=DOCUMENTS)
def test_one_member_more_is_always_seen(text: str, other: str, more: Any) -> None:
    statement = {"Sid": text, "Condition": {other: "x"}}
    wider = {**statement, "Condition": {other: "x", f"{other}+": more}}
    assert differences(policy(statement), policy(wider))
    assert differences(policy(wider), policy(statement))


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("VisibilityTimeout", "30", "30"),
        ("Policy", "", "nothing"),
        ("Policy", policy(SNS, WORKERS)["Policy"], "a policy of 2 statement(s) (sha256 "),
        ("Policy", '{"Statement":', "a policy (sha256 "),
        ("RedrivePolicy", redrive()["RedrivePolicy"], "a policy (sha256 "),
        ("RedriveAllowPolicy", '{"redrivePermission":"denyAll"}', "a policy (sha256 "),
    ],
)
def test_in_a_sentence_a_policy_is_a_length_and_a_digest(name: str, text: str, said: str) -> None:
    assert in_short(name, text).startswith(said)
    assert len(in_short(name, text)) < 60


@given(st.text(), st.text())
def test_two_policies_are_said_apart(one: str, other: str) -> None:
    assert (in_short("Policy", one) == in_short("Policy", other)) is (one == other)
