"""Every message is in a number: sent, failed, left, and those that nobody could look at."""

from __future__ import annotations

import pytest

from mendq.cli.redrive.passes import Bar, Pace
from tests.cli.conftest import Operator
from tests.cli.redrive.dlq import Dlq, at_once, dlq

__all__ = ["at_once"]
pytestmark = pytest.mark.usefixtures("at_once")


@pytest.fixture
def queues(operator: Operator) -> Dlq:
    return dlq(operator)


@pytest.mark.parametrize("fifo", [False, True])
def test_what_is_in_somebody_else_s_mover_is_said_and_left(operator: Operator, fifo: bool) -> None:
    queues = dlq(operator, fifo=fifo)
    for number in range(12):
        queues.write({"n": number}, group=f"g{number}")
    url = operator.aws.url(queues.messages)
    queues.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=5)
    name = queues.source.rpartition(":")[2]
    shown = " ".join(operator.mendq("redrive", name, "--all", "--dry-run").output.split())
    assert "7 messages seen, 7 match" in shown
    assert "5 more are hidden, in somebody else's hand" in shown
    assert "600 seconds after they were received" in shown
    result = operator.mendq("redrive", name, "--all", "--limit", "3", "--yes")
    words = " ".join(result.output.split())
    assert "3 messages sent back, 0 failed, 9 left in orders-dlq" in words
    assert "4 of them match, 5 of them hidden in somebody else's hand" in words
    done = queues.redrive("--all", "--yes")
    assert done == {"matched": 4, "moved": 4, "left": 5, "failed": 0}
    done = queues.redrive("--all", "--yes")
    assert done == {"matched": 0, "moved": 0, "left": 5, "failed": 0}
    result = operator.mendq("redrive", name, "--all", "--yes")
    assert "no message that can be seen matches" in result.output


def test_of_what_is_left_it_is_said_how_many_match(queues: Dlq) -> None:
    for number in range(8):
        queues.write({"n": number})
    chosen = ("--where", "body.n < `4`", "--limit", "3", "--yes")
    result = queues.operator.mendq("redrive", "orders", *chosen)
    words = " ".join(result.output.split())
    assert "3 messages sent back, 0 failed, 5 left in orders-dlq, 1 of them matches" in words


def test_messages_that_are_seen_after_all_are_not_hidden_as_well(
    queues: Dlq, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQS's counts lag behind what it hands out."""
    for number in range(4):
        queues.write({"n": number})
    monkeypatch.setattr("mendq.cli.redrive.route.Queue.waiting", 1)
    monkeypatch.setattr("mendq.cli.redrive.route.Queue.in_flight", 3)
    done = queues.redrive("--all", "--dry-run")
    assert done == {"matched": 4, "moved": 0, "left": 4, "failed": 0}


def test_the_second_look_is_said_apart_from_the_sending(
    queues: Dlq, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(25):
        queues.write({"n": number})
    announced: list[tuple[str, int]] = []
    monkeypatch.setattr(
        Bar, "_tell", lambda _, words, messages: announced.append((words, messages))
    )
    queues.redrive("--all", "--yes")
    again = "sending back: looking at them again"
    at = announced.index((again, 10))
    looked = [(again, 10), (again, 20), (again, 25)]
    assert announced[at : at + 4] == [*looked, ("sending back", 10)]


def test_what_returns_goes_no_faster_than_somebody_says(
    queues: Dlq, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues.operator.aws.queue("orders-quarantine", tag=None)
    queues.write("retained", queue=f"{queues.source}-quarantine")
    rates: list[float | None] = []
    monkeypatch.setattr(Pace, "before", lambda pace, _: rates.append(pace.per_second))
    returned = ("quarantine", "return", "orders", "--all", "--yes", "--rate")
    assert "no rate" in queues.operator.json(*returned, "0/s", code=2)["error"]["message"]
    assert queues.operator.json(*returned, "5/s")["moved"] == 1
    assert set(rates) == {5.0}


def test_a_peek_counts_what_it_cannot_see(queues: Dlq) -> None:
    aws = queues.operator.aws
    quarantine = aws.queue("orders-quarantine", tag=None)
    for number in range(5):
        queues.write({"n": number}, queue=quarantine)
    peek = ("quarantine", "peek", "orders", "--limit", "1")
    assert "hidden" not in queues.operator.mendq(*peek).output
    queues.sqs.receive_message(QueueUrl=aws.url(quarantine), MaxNumberOfMessages=3)
    said = " ".join(queues.operator.mendq(*peek).output.split())
    assert "1 of about 2 messages in orders-quarantine, and 3 more hidden" in said
