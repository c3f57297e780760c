"""The commands that make and delete a queue, and where a case's page and undo show them."""

from __future__ import annotations

import json
import shlex

import pytest

from mendq.catalogue.examples import DLQ_ARN
from mendq.model.case import State
from mendq.model.queue import Redrive, RedriveAllow
from mendq.model.steps import AttachDlq, CreateDlq
from mendq.notifications.change_lines import change, template, undo
from mendq.notifications.commands import create_queue_command, delete_queue_command
from tests.heal.test_undo import case

URL = "https://sqs.us-east-1.amazonaws.com/123456789012/orders-dlq"
STEPS = (
    CreateDlq("", DLQ_ARN),
    AttachDlq("", Redrive(DLQ_ARN, 5).text),
)


def test_a_queue_is_made_with_exactly_these_attributes() -> None:
    attributes = {"MessageRetentionPeriod": "1209600", "Policy": '{"a": "\'; ls"}'}
    words = shlex.split(create_queue_command(DLQ_ARN, attributes))
    assert words[:7] == [
        *("aws", "sqs", "create-queue", "--region", "us-east-1", "--queue-name", "orders-dlq")
    ]
    assert words[7] == "--attributes"
    assert json.loads(words[8]) == attributes
    assert len(words) == 9


def test_a_queue_is_deleted_by_its_url() -> None:
    assert shlex.split(delete_queue_command(DLQ_ARN)) == [
        *("aws", "sqs", "delete-queue", "--region", "us-east-1", "--queue-url", URL)
    ]


def test_no_command_is_made_for_what_is_no_queue() -> None:
    with pytest.raises(ValueError, match="not the ARN"):
        create_queue_command("orders; ls", {})
    with pytest.raises(ValueError, match="not the ARN"):
        delete_queue_command("orders; ls")


def commands(lines: tuple[str, ...]) -> list[str]:
    return [line.strip() for line in lines if "aws sqs" in line]


def test_a_proposal_says_both_commands_in_their_order() -> None:
    proposed = case(*STEPS, state=State.PROPOSED)
    make, attach = commands(change(proposed, {"VisibilityTimeout": "30"}))
    given = json.loads(shlex.split(make)[-1])
    assert given["RedriveAllowPolicy"] == RedriveAllow("byQueue", (proposed.queue_arn,)).text
    assert json.loads(shlex.split(attach)[-1]) == {"RedrivePolicy": STEPS[1].after}


def test_its_undo_detaches_and_keeps_the_queue() -> None:
    detach, delete = commands(undo(case(*STEPS, state=State.PROPOSED), {}))
    assert json.loads(shlex.split(detach)[-1]) == {"RedrivePolicy": ""}
    assert delete == delete_queue_command(DLQ_ARN)


def test_a_template_speaks_of_no_attribute_that_sqs_does_not_have() -> None:
    overridden = case(*STEPS, state=State.OVERRIDDEN)
    (section,) = template(overridden, {"RedrivePolicy": ""}, {})
    assert not [line for line in section.lines if "DeadLetterQueue" in line]
    assert [line for line in section.lines if "RedrivePolicy" in line]
