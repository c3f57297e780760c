"""Test `mendq dlq`, which groups the messages of a DLQ."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from mendq.model.queue import RedrivePolicy
from mendq.redrive.message_filter import SOURCE_ARN_ATTRIBUTE
from tests.account.receivers import confirm_receiver
from tests.cli.builders import Operator
from tests.cli.redrive.builders import (
    OrdersQueues,
    make_died_in_attribute,
    make_orders_queues,
    write_sealed,
)

LOOK = ("dlq", "orders")


def _fill_dlq(queues: OrdersQueues) -> set[str]:
    """Write 19 messages of three shapes, two types and two errors, one of them sent by hand."""
    ids = {queues.write({"card": "4111", "n": n}, type="order") for n in range(12)}
    ids |= {queues.write(f"4111 at {n}", ErrorMessage=f"no {n} found") for n in range(5)}
    ids |= {queues.write({"card": "4111"}, type="refund", ErrorMessage="declined")}
    return ids | {queues.write("by hand", **make_died_in_attribute("nobody"))}


def _count_by_group(report: Any) -> dict[str, dict[str, int]]:
    ways: dict[str, dict[str, int]] = {}
    for group in report["groups"]:
        ways.setdefault(group["by"], {})[group["what"]] = group["messages"]
    return ways


@pytest.mark.parametrize("named", ["orders", "orders-dlq"])
def test_dlq_groups_messages_by_body_error_attribute_source_and_receive_count(
    queues: OrdersQueues, named: str
) -> None:
    ids = _fill_dlq(queues)
    report = queues.operator.run_json("dlq", named)
    assert (report["messages"], report["sampled"]) == (19, 19)
    assert report["source_arns"] == [queues.source]
    assert _count_by_group(report) == {
        "body": {'{"card": "string", "n": "number"}': 12, "not JSON": 6, '{"card": "string"}': 1},
        "error": {"ErrorMessage: no # found": 5, "ErrorMessage: declined": 1},
        "attribute": {"type = order": 12, "type = refund": 1},
        "source": {queues.source: 18, "SQS names none: it was sent here": 1},
        "receive count": {"1 receive": 19},
    }
    assert queues.read_ids(queues.messages) == ids


def test_dlq_prints_for_each_group_but_receive_counts_a_redrive_command_for_exactly_its_messages(
    queues: OrdersQueues,
) -> None:
    _fill_dlq(queues)
    report = queues.operator.run_json(*LOOK)
    groups_with_command = [group for group in report["groups"] if group["command"]]
    assert groups_with_command
    for group in groups_with_command:
        words = shlex.split(group["command"])
        assert words[:3] == ["mendq", "redrive", "orders"]
        assert queues.operator.run_json(*words[1:], "--dry-run")["matched"] == group["messages"]
    assert [group["by"] for group in report["groups"] if not group["where"]] == ["receive count"]


def test_dlq_prints_the_source_and_every_group_under_the_heading_of_its_kind(
    queues: OrdersQueues,
) -> None:
    _fill_dlq(queues)
    output = queues.operator.run(*LOOK).output
    assert "orders-dlq <- orders\n" in output
    headings = [line for line in output.splitlines() if line.startswith("By ")]
    assert headings == ["By body", "By error", "By attribute", "By source", "By receive count"]
    report = queues.operator.run_json(*LOOK)
    printed_text = " ".join(output.split())
    for group in report["groups"]:
        if group["by"] != "receive count":  # the second look has one receive more
            assert f"{group['messages']:,} {group['what']}" in printed_text
            assert group["command"] in printed_text


def test_dlq_of_an_empty_dlq_says_that_it_looked_at_no_message(queues: OrdersQueues) -> None:
    assert "about 0 messages, 0 looked at" in queues.read_output(*LOOK)


def test_dlq_shows_which_three_messages_expire_first_and_when_messages_were_sent(
    queues: OrdersQueues,
) -> None:
    _fill_dlq(queues)
    queues.configure(queues.messages, MessageRetentionPeriod="7200")
    document = queues.operator.run_json(*LOOK)
    assert document["oldest_sent_at"] <= document["newest_sent_at"] <= document["first_received_at"]
    assert document["oldest_sent_at"] < min(document["expire_first"].values())
    assert len(document["expire_first"]) == 3
    output = queues.read_output(*LOOK)
    for message_id, expires_at in document["expire_first"].items():
        assert f"{message_id} expires {expires_at[:10]} {expires_at[11:16]} UTC" in output
    assert "about 19 messages, 19 looked at: given back at once, a receive more each" in output


BODY_WITH_CARD_NUMBER = {"card": "4111", "name": "Turing", "x": {"deep": "4111"}}


@pytest.fixture
def queues_with_card_numbers(queues: OrdersQueues) -> OrdersQueues:
    """The DLQ has two messages with a card number, escape codes and an error."""
    queues.write(BODY_WITH_CARD_NUMBER, ErrorMessage="\x1b[31m bad\n")
    queues.write("4111 Turing \x1b[31m plain")
    return queues


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_dlq_shows_no_value_of_a_message_body_and_no_escape_code(
    queues_with_card_numbers: OrdersQueues, options: tuple[str, ...]
) -> None:
    output = queues_with_card_numbers.operator.run(*LOOK, *options).output
    assert "4111" not in output
    assert "Turing" not in output
    assert "\x1b" not in output
    assert [line for line in output.splitlines() if line != line.rstrip()] == []


def test_dlq_shows_a_body_that_is_no_json_with_letters_as_a_and_digits_as_9(
    queues_with_card_numbers: OrdersQueues,
) -> None:
    assert "9999 aaaaaa " in queues_with_card_numbers.read_output(*LOOK)


def test_dlq_with_the_bodies_option_shows_whole_bodies_with_escape_codes_made_visible(
    queues_with_card_numbers: OrdersQueues,
) -> None:
    output = queues_with_card_numbers.read_output(*LOOK, "--bodies")
    assert json.dumps(BODY_WITH_CARD_NUMBER) in output
    assert "4111 Turing \\x1b[31m plain" in output


def test_dlq_receives_from_a_queue_that_is_no_dlq_only_with_yes(
    queues: OrdersQueues,
) -> None:
    queues.write(queue=queues.account.queue("plain", tag=None))
    queues.refuse("ReceiveMessage", "AccessDenied", "nobody is to look")
    assert "no terminal" in queues.operator.read_refusal("dlq", "plain", code=2)
    queues.refusals.clear()
    report = queues.operator.run_json("dlq", "plain", "--yes")
    assert (report["sampled"], report["source_arns"]) == (1, [])


def test_dlq_of_a_queue_that_does_not_exist_fails_as_not_found(queues: OrdersQueues) -> None:
    assert queues.operator.run_json("dlq", "nobodys", code=4)["error"]["code"] == "not_found"


def test_dlq_that_has_a_dlq_itself_is_refused_so_that_no_receive_moves_a_message(
    queues: OrdersQueues,
) -> None:
    ids = _fill_dlq(queues)
    last = queues.account.queue("last", tag=None)
    queues.configure(queues.messages, RedrivePolicy=RedrivePolicy(last, 1).text)
    assert queues.operator.run_json(*LOOK, code=1)["error"]["code"] == "dlq_of_dlq"
    queues.configure(queues.messages, RedrivePolicy="")
    assert queues.read_ids(queues.messages) == ids


def test_dlq_of_a_deleted_source_prints_redrive_to_commands_except_for_messages_sent_by_hand(
    queues: OrdersQueues,
) -> None:
    _fill_dlq(queues)
    queues.account.clients.sqs.delete_queue(QueueUrl=queues.account.url(queues.source))
    report = queues.operator.run_json("dlq", "orders-dlq", "--yes")
    (largest, *_) = report["groups"]
    assert largest["command"].startswith("mendq redrive orders-dlq --to OTHER --where ")
    by_hand = next(
        group for group in report["groups"] if group["what"].startswith("SQS names none")
    )
    assert (by_hand["where"], by_hand["command"]) == (
        f"!exists(system.{SOURCE_ARN_ATTRIBUTE})",
        "",
    )


def test_dlq_of_a_quarantine_prints_quarantine_return_commands(queues: OrdersQueues) -> None:
    quarantine = queues.account.queue("orders-quarantine", tag=None)
    confirm_receiver(queues.account, quarantine)
    write_sealed(queues, {"n": 1}, quarantine=quarantine)
    report = queues.operator.run_json("dlq", "orders-quarantine")
    words = shlex.split(report["groups"][0]["command"])
    assert words[:4] == ["mendq", "quarantine", "return", "orders-quarantine"]
    assert queues.operator.run_json(*words[1:], "--dry-run")["matched"] == 1


@pytest.mark.parametrize(("seconds", "says"), [("600", "died sooner"), ("0", "may have died")])
def test_dlq_hints_at_the_visibility_timeout_only_after_more_receives_than_allowed(
    queues: OrdersQueues, seconds: str, says: str
) -> None:
    _fill_dlq(queues)
    queues.configure(queues.source, VisibilityTimeout=seconds)
    for _ in range(3):
        assert queues.operator.run_json(*LOOK)["hints"] == [], "three receives do not kill"
    (hint,) = queues.operator.run_json(*LOOK)["hints"]
    assert says in hint
    assert f"3 x {seconds} s" in hint
    assert f"3 x {seconds} s" in queues.read_output(*LOOK)


def test_dlq_reads_ten_messages_of_each_fifo_group_and_keeps_their_order(
    operator: Operator,
) -> None:
    queues = make_orders_queues(operator, fifo=True)
    for n in range(36):
        queues.write({"n": n}, group=f"g{n % 3}")
    report = operator.run_json("dlq", "orders.fifo")
    assert report["sampled"] == 30, "ten of each group"
    assert _count_by_group(report)["message group"] == {"g0": 10, "g1": 10, "g2": 10}
    arrived = [json.loads(message.body)["n"] for message in queues.take_messages(queues.messages)]
    for group in range(3):
        assert [number for number in arrived if number % 3 == group] == list(range(group, 36, 3))
