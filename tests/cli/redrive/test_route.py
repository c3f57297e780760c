"""What stands in the way names the way around it."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Operator
from tests.cli.redrive.dlq import Dlq, at_once, dlq

__all__ = ["at_once"]
pytestmark = pytest.mark.usefixtures("at_once")


@pytest.fixture
def queues(operator: Operator) -> Dlq:
    return dlq(operator)


def test_a_move_task_is_ended_by_two_commands(queues: Dlq) -> None:
    queues.tasks.append({"Status": "RUNNING", "StartedTimestamp": 1, "TaskHandle": "abc"})
    message = queues.redrive("--all", "--yes", code=1)["error"]["message"]
    assert f"`aws sqs list-message-move-tasks --source-arn {queues.messages}`" in message
    assert "`aws sqs cancel-message-move-task --task-handle HANDLE`" in message


def test_a_queue_without_dlq_says_what_to_name(queues: Dlq) -> None:
    queues.operator.aws.queue("lonely", tag=None)
    error = queues.operator.json("redrive", "lonely", "--all", "--yes", code=4)["error"]
    assert "lonely has no DLQ" in error["message"]
    assert "Name the queue that the messages died in" in error["message"]


@pytest.mark.parametrize(
    ("named", "says"),
    [
        ("nope", "there is no queue nope, and no nope-quarantine"),
        ("nope-quarantine", "there is no queue nope-quarantine"),
        ("orders", "orders has no quarantine: there is no orders-quarantine until"),
    ],
)
def test_what_is_missing_of_a_quarantine_is_said(queues: Dlq, named: str, says: str) -> None:
    for words in (("peek", named), ("drop", named, "--all", "--yes")):
        error = queues.operator.json("quarantine", *words, code=4)["error"]
        assert says in error["message"]


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        (1, "somebody sent 1 message to orders-dlq by hand: SQS does not say for which of its 2"),
        (2, "somebody sent 2 messages to orders-dlq by hand: SQS does not say for which of its 2"),
    ],
)
def test_what_nobody_can_send_back_names_the_way_out(queues: Dlq, messages: int, says: str) -> None:
    policy = queues.operator.aws.attributes(queues.source)["RedrivePolicy"]
    queues.operator.aws.queue("refunds", tag=None, RedrivePolicy=policy)
    for number in range(messages):
        queues.write({"n": number}, died_in="nobody")
    shown = " ".join(
        queues.operator.mendq("redrive", "orders", "--all", "--dry-run").output.split()
    )
    assert says in shown
    assert ("so it stays here" if messages == 1 else "so they stay here") in shown
    assert "sends them there by hand" in shown
