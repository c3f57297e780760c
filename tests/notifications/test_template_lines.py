"""What people write into a template so that the next deployment keeps it."""

from __future__ import annotations

import json

import botocore.session
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mendq.model.steps import STEPS
from mendq.notifications.change_lines import template_line, terraform_name


def test_every_setting_that_can_be_changed_has_its_name_in_terraform() -> None:
    sqs = botocore.session.get_session().get_service_model("sqs")
    names = set(sqs.shape_for("QueueAttributeName").metadata["enum"])
    read_only = {"All", "QueueArn", "FifoQueue", "CreatedTimestamp", "LastModifiedTimestamp"}
    settable = {each for each in names - read_only if not each.startswith("Approximate")}
    assert {each for each in names if terraform_name(each)} == settable
    assert {each.attribute for each in STEPS if not each.stays} <= settable
    assert terraform_name("QueueArn") is None


@pytest.mark.parametrize(
    ("attribute", "text", "line"),
    [
        ("VisibilityTimeout", "690", "VisibilityTimeout: 690"),
        ("ContentBasedDeduplication", "true", "ContentBasedDeduplication: true"),
        ("FifoThroughputLimit", "perMessageGroupId", 'FifoThroughputLimit: "perMessageGroupId"'),
        ("RedrivePolicy", '{"maxReceiveCount": 5}', 'RedrivePolicy: {"maxReceiveCount":5}'),
        ("Policy", '{"Id":"x"}', 'PolicyDocument (AWS::SQS::QueuePolicy): {"Id":"x"}'),
        ("VisibilityTimeout", "", ""),
        ("Policy", json.dumps({"Id": "x" * 400}), ""),
        ("Policy", "x" * 100_000, ""),
    ],
)
def test_a_line_is_whole_or_empty(attribute: str, text: str, line: str) -> None:
    assert template_line(attribute, text) == line


@given(st.text(min_size=1), st.text(min_size=1))
def test_no_text_leaves_its_line(attribute: str, text: str) -> None:
    line = template_line(attribute, text)
    assert line.isascii()
    assert line.isprintable()
