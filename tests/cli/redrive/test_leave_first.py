"""Test `mendq redrive --leave-first`: all but the poisoned message of a FIFO group go back.

Nothing is moved if the first message of a group may not be the poisoned one.
"""

from __future__ import annotations

import shlex
import signal
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import pytest

from mendq.cli.redrive import work
from mendq.redrive.mover import MessageMover
from tests.cli.builders import Operator
from tests.cli.redrive.builders import (
    OrdersQueues,
    make_died_in_attribute,
    make_orders_queues,
    read_redrive_command,
    set_creation,
)

LEAVE = ("--all", "--leave-first")
GOOD = [f"good {number}" for number in range(1, 10)]


@pytest.fixture
def fifo_queues(operator: Operator) -> OrdersQueues:
    return make_orders_queues(operator, fifo=True)


def add_dlq_messages(
    queues: OrdersQueues, group: str, *bodies: str, hours: float = 0, by_hand: bool = False
) -> list[str]:
    """Put messages of a group into the DLQ at one time, `hours` from now. Return their ids."""
    attributes = make_died_in_attribute("nobody") if by_hand else {}
    before = queues.account.now.timestamp() * 1_000
    at = before + hours * 3_600_000
    with patch("moto.sqs.models.unix_time_millis", lambda: at):
        return [queues.write(body, group=group, **attributes) for body in bodies]


def take_bodies(queues: OrdersQueues, arn: str) -> list[str]:
    return [message.body for message in queues.take_messages(arn)]


def answer_yes(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> None:
    monkeypatch.setattr(work, "confirm", lambda *_, **__: meanwhile())


def read_refusal_commands(queues: OrdersQueues, *arguments: str) -> list[list[str]]:
    """Return the commands that a refusal prints, without `mendq`."""
    error = queues.redrive(*arguments, "--yes", code=1)["error"]
    assert error["code"] == "first_unclear"
    result = queues.operator.run("redrive", "orders.fifo", *arguments, "--yes")
    lines = (line.strip() for line in result.output.splitlines())
    return [shlex.split(line)[1:] for line in lines if line.startswith("mendq redrive")]


def test_leave_first_dry_run_names_the_message_that_stays_and_moves_nothing(
    fifo_queues: OrdersQueues,
) -> None:
    poisoned, *_ = add_dlq_messages(fifo_queues, "customer-7", "poison", *GOOD)
    before = fifo_queues.read_ids(fifo_queues.messages)
    assert fifo_queues.redrive(*LEAVE, "--dry-run") == {
        "matched": 9,
        "moved": 0,
        "left": 10,
        "failed": 0,
        "staying_first": [poisoned],
    }
    assert fifo_queues.read_ids(fifo_queues.messages) == before


def test_leave_first_sends_nine_back_in_order_and_leaves_the_poisoned_message(
    fifo_queues: OrdersQueues,
) -> None:
    poisoned, *_ = add_dlq_messages(fifo_queues, "customer-7", "poison", *GOOD)
    done = fifo_queues.redrive(*LEAVE, "--yes")
    assert (done["moved"], done["left"], done["failed"]) == (9, 1, 0)
    assert take_bodies(fifo_queues, fifo_queues.source) == GOOD
    (left,) = fifo_queues.read_messages(fifo_queues.messages)
    assert (left.message_id, left.body) == (poisoned, "poison")


def test_leave_first_run_again_moves_nothing(fifo_queues: OrdersQueues) -> None:
    add_dlq_messages(fifo_queues, "g", "poison", *GOOD)
    fifo_queues.redrive(*LEAVE, "--yes")
    again = fifo_queues.redrive(*LEAVE, "--yes")
    assert (again["matched"], again["moved"], again["left"]) == (0, 0, 1)
    output = fifo_queues.read_output("redrive", "orders.fifo", *LEAVE, "--yes")
    assert "no message stands behind the first of its group" in output
    assert fifo_queues.read_bodies(fifo_queues.messages) == {"poison"}


def test_leave_first_finishes_an_interrupted_run_in_order(
    fifo_queues: OrdersQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dlq_messages(fifo_queues, "g", "poison", *GOOD)
    move_messages = MessageMover.move_messages

    def interrupt_after_four(*arguments: Any) -> Any:
        for number, moved in enumerate(move_messages(*arguments)):
            yield moved
            if number == 3:
                signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as once:
        once.setattr(MessageMover, "move_messages", interrupt_after_four)
        fifo_queues.operator.run("redrive", "orders.fifo", *LEAVE, "--yes")
    assert take_bodies(fifo_queues, fifo_queues.source) == GOOD[:4]
    assert fifo_queues.redrive(*LEAVE, "--yes")["moved"] == 5
    assert take_bodies(fifo_queues, fifo_queues.source) == GOOD[4:]
    assert fifo_queues.read_bodies(fifo_queues.messages) == {"poison"}


def test_leave_first_with_a_limit_leaves_the_rest_in_order(fifo_queues: OrdersQueues) -> None:
    add_dlq_messages(fifo_queues, "g", "poison", *GOOD)
    assert fifo_queues.redrive(*LEAVE, "--limit", "4", "--yes")["moved"] == 4
    assert take_bodies(fifo_queues, fifo_queues.source) == GOOD[:4]
    assert take_bodies(fifo_queues, fifo_queues.messages) == ["poison", *GOOD[4:]]


def test_leave_first_dry_run_prints_which_message_stays_and_no_command_that_would_move_it(
    fifo_queues: OrdersQueues,
) -> None:
    poisoned, *_ = add_dlq_messages(fifo_queues, "customer-7", "poison", *GOOD)
    output = fifo_queues.read_output("redrive", "orders.fifo", *LEAVE, "--dry-run")
    assert f"the first message of group customer-7 stays here: {poisoned}" in output
    assert "start-message-move-task" not in output


def test_leave_first_without_yes_or_a_terminal_is_refused_and_moves_nothing(
    fifo_queues: OrdersQueues,
) -> None:
    add_dlq_messages(fifo_queues, "customer-7", "poison", *GOOD)
    error = fifo_queues.redrive(*LEAVE, code=2)["error"]
    assert "not confirmed" in error["message"]
    assert len(fifo_queues.read_ids(fifo_queues.messages)) == 10


def test_leave_first_refuses_a_group_whose_messages_died_at_different_times(
    fifo_queues: OrdersQueues,
) -> None:
    add_dlq_messages(fifo_queues, "g", "older", hours=-3)
    add_dlq_messages(fifo_queues, "g", "poison", *GOOD[:3])
    assert read_refusal_commands(fifo_queues, *LEAVE) == [
        [
            *("redrive", "orders.fifo", "--region", "us-east-1"),
            *("--where", "group_id == `\"g\"` && message_id != 'ID'"),
        ]
    ]
    assert len(fifo_queues.read_ids(fifo_queues.messages)) == 5
    assert fifo_queues.read_ids(fifo_queues.source) == set()
    named = ("--where", "group_id == 'g'", "--leave-first")
    assert fifo_queues.redrive(*named, "--yes", code=1)["error"]["code"] == "first_unclear"
    dry = fifo_queues.redrive(*LEAVE, "--dry-run", code=1)["error"]
    assert "different times" in dry["message"]


def test_leave_first_refuses_two_groups_that_died_in_one_batch_until_a_command_names_one(
    fifo_queues: OrdersQueues,
) -> None:
    """A consumer that gives a whole batch back kills the good messages of other groups."""
    add_dlq_messages(fifo_queues, "a'b", "poison", "a 1", "a 2")
    add_dlq_messages(fifo_queues, "b", "b 1", "b 2")
    commands = read_refusal_commands(fifo_queues, *LEAVE)
    assert fifo_queues.read_ids(fifo_queues.source) == set()
    by_name = next(command for command in commands if "--leave-first" in command)
    assert fifo_queues.operator.run_json(*by_name, "--yes")["moved"] == 2
    assert take_bodies(fifo_queues, fifo_queues.source) == ["a 1", "a 2"]
    assert take_bodies(fifo_queues, fifo_queues.messages) == ["poison", "b 1", "b 2"]


def test_leave_first_refuses_all_groups_if_another_group_has_a_single_message(
    fifo_queues: OrdersQueues,
) -> None:
    """The single message may be the poisoned one, and the group of nine only its neighbours."""
    add_dlq_messages(fifo_queues, "a", "poison")
    add_dlq_messages(fifo_queues, "b", *GOOD)
    assert fifo_queues.redrive(*LEAVE, "--yes", code=1)["error"]["code"] == "first_unclear"
    assert fifo_queues.read_ids(fifo_queues.source) == set()


def test_leave_first_refuses_a_group_if_the_filter_hides_another_of_its_batch(
    fifo_queues: OrdersQueues,
) -> None:
    add_dlq_messages(fifo_queues, "a", "poison")
    add_dlq_messages(fifo_queues, "b", *GOOD)
    where = ("--where", "starts_with(body_text, 'good')", "--leave-first", "--yes")
    assert fifo_queues.redrive(*where, code=1)["error"]["code"] == "first_unclear"
    assert fifo_queues.read_ids(fifo_queues.source) == set()


def test_leave_first_is_not_refused_because_of_another_group_that_a_person_sent_by_hand(
    fifo_queues: OrdersQueues,
) -> None:
    add_dlq_messages(fifo_queues, "a", "by hand", by_hand=True)
    add_dlq_messages(fifo_queues, "b", "poison", "good")
    where = ("--where", "starts_with(body_text, 'good')", "--leave-first", "--yes")
    assert fifo_queues.redrive(*where)["moved"] == 1


def test_leave_first_leaves_the_first_message_of_each_of_two_groups_that_died_hours_apart(
    fifo_queues: OrdersQueues,
) -> None:
    add_dlq_messages(fifo_queues, "old", "old poison", "old 1", hours=-5)
    add_dlq_messages(fifo_queues, "new", "new poison", "new 1")
    assert fifo_queues.redrive(*LEAVE, "--yes")["moved"] == 2
    assert set(take_bodies(fifo_queues, fifo_queues.source)) == {"old 1", "new 1"}
    assert set(take_bodies(fifo_queues, fifo_queues.messages)) == {"old poison", "new poison"}


def test_leave_first_refuses_a_group_with_messages_that_were_sent_by_hand(
    fifo_queues: OrdersQueues,
) -> None:
    add_dlq_messages(fifo_queues, "g", "by hand", by_hand=True)
    add_dlq_messages(fifo_queues, "g", "poison", "good")
    error = fifo_queues.redrive(*LEAVE, "--yes", code=1)["error"]
    assert "a person sent them there" in error["message"]
    assert fifo_queues.read_ids(fifo_queues.source) == set()


def test_leave_first_keeps_a_groups_first_message_that_the_filter_does_not_match(
    fifo_queues: OrdersQueues,
) -> None:
    add_dlq_messages(fifo_queues, "g", "poison", "good 1", "other", "good 2")
    where = ("--where", "starts_with(body_text, 'good')", "--leave-first", "--yes")
    assert fifo_queues.redrive(*where)["moved"] == 2
    assert take_bodies(fifo_queues, fifo_queues.source) == ["good 1", "good 2"]
    assert take_bodies(fifo_queues, fifo_queues.messages) == ["poison", "other"]


def test_leave_first_moves_nothing_of_a_group_whose_first_message_left_during_the_question(
    fifo_queues: OrdersQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another operator deletes the poisoned message before the question is answered."""
    add_dlq_messages(fifo_queues, "g", "poison", *GOOD[:3])
    add_dlq_messages(fifo_queues, "later", "poison 2", "good", hours=2)

    def delete_poisoned() -> None:
        url = fifo_queues.account.url(fifo_queues.messages)
        sqs = fifo_queues.account.clients.sqs
        answer: Any = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
        for message in answer["Messages"]:
            handle = message["ReceiptHandle"]
            if message["Body"] == "poison":
                sqs.delete_message(QueueUrl=url, ReceiptHandle=handle)
            else:
                sqs.change_message_visibility(
                    QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=0
                )

    answer_yes(monkeypatch, delete_poisoned)
    result = fifo_queues.operator.run("redrive", "orders.fifo", *LEAVE)
    assert result.exit_code == 1
    assert "look again" in " ".join(result.output.split())
    assert take_bodies(fifo_queues, fifo_queues.source) == ["good"]
    assert take_bodies(fifo_queues, fifo_queues.messages) == [*GOOD[:3], "poison 2"]


def test_leave_first_moves_no_message_that_arrives_during_the_question(
    fifo_queues: OrdersQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The preview did not show that group, so another message may have failed in it."""
    add_dlq_messages(fifo_queues, "g", "poison", "good")
    answer_yes(monkeypatch, lambda: add_dlq_messages(fifo_queues, "g", "poison 2", "good 2"))
    assert fifo_queues.redrive(*LEAVE)["moved"] == 1
    assert take_bodies(fifo_queues, fifo_queues.source) == ["good"]
    assert take_bodies(fifo_queues, fifo_queues.messages) == ["poison", "poison 2", "good 2"]


def test_leave_first_moves_only_previewed_messages_of_a_group_longer_than_ten(
    fifo_queues: OrdersQueues,
) -> None:
    """SQS shows the eleventh message of a group only once others have gone."""
    add_dlq_messages(fifo_queues, "g", "poison", *GOOD)
    add_dlq_messages(fifo_queues, "g", "poison 2", "good 11", hours=1)
    assert fifo_queues.redrive(*LEAVE, "--yes")["moved"] == 9
    assert take_bodies(fifo_queues, fifo_queues.source) == GOOD
    assert fifo_queues.redrive(*LEAVE, "--yes", code=1)["error"]["code"] == "first_unclear"
    assert take_bodies(fifo_queues, fifo_queues.messages) == ["poison", "poison 2", "good 11"]


def test_leave_first_stops_a_group_at_a_message_that_is_too_long_for_the_source(
    fifo_queues: OrdersQueues,
) -> None:
    add_dlq_messages(fifo_queues, "g", "poison", "good 1", "x" * 2_000, "good 2")
    fifo_queues.configure(fifo_queues.source, MaximumMessageSize="1024")
    done = fifo_queues.redrive(*LEAVE, "--yes", code=1)
    assert (done["moved"], done["failed"]) == (1, 1)
    assert take_bodies(fifo_queues, fifo_queues.source) == ["good 1"]
    assert take_bodies(fifo_queues, fifo_queues.messages) == ["poison", "x" * 2_000, "good 2"]


def test_leave_first_is_refused_for_a_standard_queue(queues: OrdersQueues) -> None:
    ids = {queues.write(), queues.write()}
    assert "FIFO" in queues.redrive(*LEAVE, "--yes", code=2)["error"]["message"]
    assert queues.read_ids(queues.messages) == ids


def test_leave_first_without_all_or_where_is_refused(fifo_queues: OrdersQueues) -> None:
    add_dlq_messages(fifo_queues, "g", "poison", "good")
    assert "either" in fifo_queues.redrive("--leave-first", "--yes", code=2)["error"]["message"]
    assert len(fifo_queues.read_ids(fifo_queues.messages)) == 2


def test_leave_first_works_with_to_and_from_after_the_redrive_policy_was_removed(
    fifo_queues: OrdersQueues,
) -> None:
    """A rollback leaves this state: no queue names the DLQ, which keeps its messages."""
    add_dlq_messages(fifo_queues, "g", "poison", "good 1", "good 2")
    fifo_queues.configure(fifo_queues.source, RedrivePolicy="")
    back = ("redrive", "orders-dlq.fifo", "--to", "orders.fifo", "--from", "orders.fifo")
    assert fifo_queues.operator.run_json(*back, *LEAVE, "--yes")["moved"] == 2
    assert take_bodies(fifo_queues, fifo_queues.source) == ["good 1", "good 2"]
    assert fifo_queues.read_bodies(fifo_queues.messages) == {"poison"}


def test_leave_first_refusal_prints_commands_with_the_given_to_and_from(
    fifo_queues: OrdersQueues,
) -> None:
    add_dlq_messages(fifo_queues, "g", "older", hours=-3)
    add_dlq_messages(fifo_queues, "g", "poison", "good")
    fifo_queues.configure(fifo_queues.source, RedrivePolicy="")
    back = ("redrive", "orders-dlq.fifo", "--to", "orders.fifo", "--from", "orders.fifo")
    output = fifo_queues.operator.run(*back, *LEAVE, "--yes").output
    assert f"mendq {' '.join(back)} --region us-east-1 --where " in output
    assert fifo_queues.read_ids(fifo_queues.source) == set()


def test_leave_first_refusal_prints_commands_with_the_given_filter_limit_and_rate(
    fifo_queues: OrdersQueues,
) -> None:
    add_dlq_messages(fifo_queues, "g", "older", hours=-3)
    add_dlq_messages(fifo_queues, "g", "poison", *GOOD, "bad")
    options = ("--where", "starts_with(body_text, 'good')", "--limit", "2", "--rate", "10/s")
    (command,) = read_refusal_commands(fifo_queues, *options, "--leave-first")
    assert fifo_queues.operator.run_json(*command, "--yes")["moved"] == 2
    assert take_bodies(fifo_queues, fifo_queues.source) == ["good 1", "good 2"]


def test_leave_first_prints_a_command_for_older_messages_that_leaves_the_first_of_each_group(
    fifo_queues: OrdersQueues,
) -> None:
    add_dlq_messages(fifo_queues, "g", "poison", "good 1", "good 2", hours=-3)
    set_creation(fifo_queues.source, fifo_queues.account.now - timedelta(hours=1))
    output = fifo_queues.read_output("redrive", "orders.fifo", *LEAVE, "--dry-run")
    assert "2 matching messages are older than orders.fifo" in output
    assert fifo_queues.operator.run_json(*read_redrive_command(output), "--yes")["moved"] == 2
    assert take_bodies(fifo_queues, fifo_queues.source) == ["good 1", "good 2"]
    assert fifo_queues.read_bodies(fifo_queues.messages) == {"poison"}
