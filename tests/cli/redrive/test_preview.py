"""Whoever is asked knows what would go, what would stay, and what is missing in it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tests.cli.conftest import Operator
from tests.cli.redrive.dlq import Dlq, at_once, dlq

__all__ = ["at_once"]
pytestmark = pytest.mark.usefixtures("at_once")


@pytest.fixture
def queues(operator: Operator) -> Dlq:
    return dlq(operator)


def _retained(queues: Dlq, ending: str = "") -> str:
    return queues.operator.aws.queue(f"orders-quarantine{ending}", tag=None)


def _shown(queues: Dlq, *arguments: str) -> str:
    return " ".join(queues.operator.mendq("quarantine", "drop", *arguments).output.split())


def test_what_would_be_deleted_is_shown_as_what_would_be_sent_is(queues: Dlq) -> None:
    quarantine = _retained(queues)
    ids = {queues.write({"n": number}, queue=quarantine, type="order") for number in range(4)}
    queues.write("no json", queue=quarantine)
    where = ("--where", "body.n < `9` && attributes.type == 'order'")
    shown = _shown(queues, "orders", *where, "--dry-run")
    assert "orders-quarantine -> deleted" in shown
    assert "5 messages seen, 4 match" in shown
    assert "4 attributes.type order" in shown
    assert "body.n is missing in 1 of 5 messages" in shown
    assert any(each in shown for each in ids)
    assert "is in the file alone" in shown
    assert "new message id" not in shown
    assert "goes to" not in shown
    assert len(queues.ids(quarantine)) == 5


def test_of_a_fifo_quarantine_the_groups_are_said(operator: Operator) -> None:
    queues = dlq(operator, fifo=True)
    quarantine = _retained(queues, ".fifo")
    for number in range(4):
        queues.write({"n": number}, queue=quarantine, group=f"g{number % 2}")
    assert "they are 4 messages of 2 groups" in _shown(queues, "orders.fifo", "--all", "--dry-run")


def test_a_file_that_is_there_is_said_before_anything_else_is(queues: Dlq, tmp_path: Path) -> None:
    quarantine = _retained(queues)
    queues.write("one", queue=quarantine)
    path = tmp_path / "kept.jsonl"
    path.symlink_to(tmp_path / "nowhere")
    shown = _shown(queues, "orders", "--all", "--yes", "--file", str(path))
    assert "it is not written over; --file names another" in shown
    assert "before any is deleted" not in shown
    assert len(queues.ids(quarantine)) == 1


def test_the_quarantine_whose_messages_expire_first_is_listed_first(queues: Dlq) -> None:
    aws = queues.operator.aws
    for name, hours in (("a", 1), ("b", 95), ("c", 50), ("d", None)):
        aws.queue(name, tag="observe")
        queues.write("one", queue=aws.queue(f"{name}-quarantine", tag=None))
        if hours is None:
            continue
        queues.operator.account.clients.cloudwatch.put_metric_data(
            Namespace="AWS/SQS",
            MetricData=[
                {
                    "MetricName": "ApproximateAgeOfOldestMessage",
                    "Dimensions": [{"Name": "QueueName", "Value": f"{name}-quarantine"}],
                    "Timestamp": aws.now - timedelta(minutes=2),
                    "Value": hours * 3_600 + 60,
                }
            ],
        )
    found = queues.operator.json("quarantine", "list")
    names = [each["queue_arn"].rpartition(":")[2][0] for each in found]
    assert names == ["b", "c", "a", "d"]
    assert (found[0]["expires_by"] < found[1]["expires_by"], found[3]["expires_by"]) == (True, None)
    shown = queues.operator.mendq("quarantine", "list").output.splitlines()
    assert "within 56 min" in shown[1] or "within 57 min" in shown[1]
    assert "not known" in shown[4]


@pytest.mark.parametrize("words", [("redrive",), ("quarantine", "return"), ("quarantine", "drop")])
def test_a_freeze_is_said_and_holds_nobody(
    queues: Dlq, words: tuple[str, ...], tmp_path: Path
) -> None:
    queues.write("died")
    queues.write("retained", queue=_retained(queues))
    file = ("--file", str(tmp_path / "kept.jsonl")) if words[-1] == "drop" else ()
    announced = "changes are frozen by"
    arguments = (*words, "orders", "--all")
    assert announced not in queues.operator.mendq(*arguments, "--dry-run").output
    queues.operator.json("freeze", "a fire", "--yes")
    result = queues.operator.mendq(*arguments, "--yes", *file)
    said = " ".join(result.output.split())
    assert (announced in said, "a fire. That holds Mendq; this is by your hand" in said) == (
        True,
        True,
    )
    assert result.exit_code == 0
    assert ("1 message sent back" in said) is (words[-1] != "drop")


def test_in_a_pipe_no_line_ends_in_blanks(queues: Dlq) -> None:
    queues.write({"n": 1}, type="order")
    shown = queues.operator.mendq(
        "redrive", "orders", "--where", "body.n == `1`", "--dry-run"
    ).output
    assert "MESSAGES  WHICH\n" in shown
    assert [each for each in shown.splitlines() if each != each.rstrip()] == []
