"""Test `mendq redrive --to`: messages of a deleted source go to another queue."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from mendq.cli.redrive import work
from mendq.model.queue import RedrivePolicy
from mendq.redrive.messages import REDRIVE_MARK_NAME
from mendq.redrive.progress import Stage
from tests.account.receivers import confirm_receiver
from tests.cli.builders import Operator
from tests.cli.redrive.builders import (
    OrdersQueues,
    make_died_in_attribute,
    make_orders_queues,
    make_quarantine_marks,
    write_sealed,
)

ALL = ("--all", "--yes")


@pytest.fixture
def replaced_queues(queues: OrdersQueues) -> OrdersQueues:
    """`orders` was deleted, `orders-v2` exists, and `refunds` shares the DLQ."""
    policy = queues.account.attributes(queues.source)["RedrivePolicy"]
    queues.account.queue("refunds", tag=None, RedrivePolicy=policy)
    queues.account.queue("orders-v2", tag=None)
    _delete_queue(queues)
    return queues


def _delete_queue(queues: OrdersQueues, arn: str = "") -> None:
    queues.account.clients.sqs.delete_queue(QueueUrl=queues.account.url(arn or queues.source))


def _make_arn(queues: OrdersQueues, name: str) -> str:
    return queues.source.replace("orders", name)


def _redrive_to(queues: OrdersQueues, *arguments: str, code: int = 0) -> Any:
    return queues.operator.run_json("redrive", "orders-dlq", "--to", *arguments, code=code)


@pytest.fixture
def queues_with_five_origins(replaced_queues: OrdersQueues) -> OrdersQueues:
    """The DLQ has a message of a deleted queue, of orders-v2, refunds, no queue, and elsewhere."""
    origins = {
        "of its own": _make_arn(replaced_queues, "orders-v2"),
        "living": _make_arn(replaced_queues, "refunds"),
        "by hand": "nobody",
        "elsewhere": "arn:aws:sqs:eu-west-1:123456789012:orders",
    }
    replaced_queues.write("gone", type="order")
    for body, origin in origins.items():
        replaced_queues.write(body, **make_died_in_attribute(origin))
    return replaced_queues


def test_redrive_to_dry_run_says_what_goes_what_stays_and_that_the_destination_has_no_dlq(
    queues_with_five_origins: OrdersQueues,
) -> None:
    queues = queues_with_five_origins
    output = queues.read_output("redrive", "orders-dlq", "--to", "orders-v2", "--all", "--dry-run")
    for says in (
        "orders-dlq -> orders-v2",
        "1 died in orders",
        "1 message died in refunds, which is there: it stays here",
        "SQS does not say for which source, so it stays here",
        "orders-v2 has no DLQ: what fails there comes again until it expires",
    ):
        assert says in output
    assert "start-message-move-task" not in output, "it would move those that stay too"


def test_redrive_to_dry_run_offers_sqss_own_redrive_with_the_destination_if_all_messages_go(
    replaced_queues: OrdersQueues,
) -> None:
    queues = replaced_queues
    queues.write("gone")
    output = queues.read_output("redrive", "orders-dlq", "--to", "orders-v2", "--all", "--dry-run")
    orders_v2 = _make_arn(queues, "orders-v2")
    assert f"--source-arn {queues.messages} --destination-arn {orders_v2}" in output


def test_redrive_to_moves_messages_of_a_deleted_source_and_marks_where_each_message_died(
    queues_with_five_origins: OrdersQueues,
) -> None:
    queues = queues_with_five_origins
    orders_v2 = _make_arn(queues, "orders-v2")
    done = _redrive_to(queues, "orders-v2", *ALL)
    assert done == {"matched": 2, "moved": 2, "left": 3, "failed": 0}
    marks = {
        message.body: json.loads(message.attributes[REDRIVE_MARK_NAME].value)
        for message in queues.read_messages(orders_v2)
    }
    assert marks.keys() == {"gone", "of its own"}
    assert marks["gone"]["died_in"] == queues.source
    assert "died_in" not in marks["of its own"]
    assert {mark["source"] for mark in marks.values()} == {orders_v2}
    assert queues.read_bodies(queues.messages) == {"living", "by hand", "elsewhere"}


@pytest.fixture
def queues_with_copy(queues: OrdersQueues) -> OrdersQueues:
    """`orders-v2` exists beside `orders`. The DLQ has a message of orders and one of refunds."""
    queues.account.queue("orders-v2", tag=None)
    queues.write("one")
    queues.write("other", **make_died_in_attribute(_make_arn(queues, "refunds")))
    return queues


def test_redrive_to_moves_no_message_of_an_existing_source_without_from(
    queues_with_copy: OrdersQueues,
) -> None:
    operator = queues_with_copy.operator
    ids = queues_with_copy.read_ids(queues_with_copy.messages)
    refused = operator.read_refusal("redrive", "orders", "--to", "orders-v2", *ALL, code=2)
    assert "with --from orders they go to orders-v2 all the same" in refused
    one = ("--where", "body_text == 'one'", "--yes")
    assert _redrive_to(queues_with_copy, "orders-v2", *one)["matched"] == 0
    assert queues_with_copy.read_ids(queues_with_copy.messages) == ids


def test_redrive_from_without_to_is_refused_and_moves_nothing(
    queues_with_copy: OrdersQueues,
) -> None:
    ids = queues_with_copy.read_ids(queues_with_copy.messages)
    from_orders = ("redrive", "orders", "--from", "orders", *ALL)
    assert "give both" in queues_with_copy.operator.read_refusal(*from_orders, code=2)
    assert queues_with_copy.read_ids(queues_with_copy.messages) == ids


@pytest.mark.parametrize("named", ["orders", "orders-dlq"])
def test_redrive_to_with_from_moves_only_messages_of_that_source(
    queues_with_copy: OrdersQueues, named: str
) -> None:
    arguments = ("redrive", named, "--to", "orders-v2", "--from", "orders")
    run_json = queues_with_copy.operator.run_json
    assert run_json(*arguments, "--all", "--dry-run")["matched"] == 1
    assert run_json(*arguments, *ALL)["moved"] == 1
    assert queues_with_copy.read_bodies(queues_with_copy.messages) == {"other"}


@pytest.mark.parametrize("empty", ["", " "])
def test_redrive_to_with_an_empty_from_is_refused_and_moves_nothing(
    replaced_queues: OrdersQueues, empty: str
) -> None:
    """An unset shell variable names no source. It must not stand for every source."""
    written = {replaced_queues.write("one"), replaced_queues.write("other")}
    arguments = ("redrive", "orders-dlq", "--to", "orders-v2", "--from", empty, *ALL)
    assert "is not a queue's name" in replaced_queues.operator.read_refusal(*arguments, code=2)
    assert replaced_queues.read_ids(replaced_queues.messages) == written
    assert replaced_queues.read_ids(_make_arn(replaced_queues, "orders-v2")) == set()


def _forbid_redrive(here: OrdersQueues, arn: str) -> None:
    here.account.tag(arn, **{"mendq:redrive": "off"})


UNFIT: dict[str, tuple[str, Callable[[OrdersQueues], object]]] = {
    "DLQ or a quarantine": ("orders-dlq", lambda _: None),
    "or a quarantine": ("x-quarantine", lambda here: here.account.queue("x-quarantine")),
    "other type": ("orders.fifo", lambda here: here.account.queue("orders.fifo")),
    "there is no queue": ("nobodys", lambda _: None),
    "of orders-v2 forbids it": (
        "orders-v2",
        lambda h: _forbid_redrive(h, _make_arn(h, "orders-v2")),
    ),
    "of orders-dlq forbids it": ("orders-v2", lambda here: _forbid_redrive(here, here.dlq)),
    "a message movement": ("orders-v2", lambda here: here.move_tasks.append({"Status": "RUNNING"})),
    "sending back": ("orders-v2", lambda here: here.set_redrive_stage(Stage.RAMP)),
}


@pytest.mark.parametrize("says", UNFIT)
def test_redrive_to_an_unfit_or_forbidden_queue_is_refused_and_moves_nothing(
    replaced_queues: OrdersQueues, says: str
) -> None:
    ids = {replaced_queues.write()}
    other, makes = UNFIT[says]
    makes(replaced_queues)
    error = _redrive_to(replaced_queues, other, *ALL, code=4 if says == "there is no queue" else 1)[
        "error"
    ]
    assert says in error["message"]
    assert replaced_queues.read_ids(replaced_queues.messages) == ids


def test_redrive_to_takes_messages_only_out_of_a_quarantine_that_is_confirmed_and_unchanged(
    operator: Operator,
) -> None:
    queues = make_orders_queues(operator)
    quarantine = queues.account.queue("orders-quarantine", tag=None)
    ids = {write_sealed(queues, {"n": 1}, quarantine=quarantine)}
    words = ("redrive", "orders-quarantine", "--to", "orders", "--from", "orders", *ALL)
    error = operator.run_json(*words, code=1)["error"]
    assert error["code"] == "receiver_unconfirmed"
    assert queues.read_messages(queues.source) == []
    assert queues.read_ids(quarantine) == ids
    confirm_receiver(queues.account, quarantine)
    queues.account.tag(quarantine, team="others")
    assert "its tags changed" in operator.run_json(*words, code=1)["error"]["message"]
    assert queues.read_ids(quarantine) == ids
    confirm_receiver(queues.account, quarantine)
    assert operator.run_json(*words)["moved"] == 1


def test_redrive_to_takes_messages_without_mendqs_seal_out_of_a_quarantine_only_with_unsealed(
    operator: Operator,
) -> None:
    queues = make_orders_queues(operator)
    quarantine = queues.account.queue("orders-quarantine", tag=None)
    confirm_receiver(queues.account, quarantine)
    write_sealed(queues, "ours", quarantine=quarantine)
    queues.write("theirs", quarantine, **make_quarantine_marks(queues.source))
    words = ("redrive", "orders-quarantine", "--to", "orders", "--from", "orders")
    done = operator.run_json(*words, *ALL)
    assert done == {"matched": 1, "moved": 1, "left": 1, "failed": 0, "unsealed": 1}
    assert queues.read_bodies(queues.source) == {"ours"}
    assert queues.read_bodies(quarantine) == {"theirs"}
    assert operator.run_json(*words, "--unsealed", *ALL)["moved"] == 1
    assert queues.read_bodies(queues.source) == {"ours", "theirs"}


@pytest.mark.parametrize("option", [(), ("--unsealed",)], ids=["sealed only", "unsealed too"])
def test_redrive_to_out_of_a_quarantine_does_not_offer_sqss_own_redrive(
    operator: Operator, option: tuple[str, ...]
) -> None:
    """SQS's own redrive does not look at Mendq's seals."""
    queues = make_orders_queues(operator)
    quarantine = queues.account.queue("orders-quarantine", tag=None)
    confirm_receiver(queues.account, quarantine)
    write_sealed(queues, "ours", quarantine=quarantine)
    queues.write("theirs", quarantine, **make_quarantine_marks(queues.source))
    words = ("redrive", "orders-quarantine", "--to", "orders", "--from", "orders")
    preview = operator.read_output(*words, "--all", "--dry-run", *option)
    assert "orders-quarantine -> orders" in preview
    assert "start-message-move-task" not in preview


@pytest.mark.parametrize("words", [("orders",), ("orders-dlq", "--to", "orders-v2")])
def test_redrive_unsealed_is_refused_if_the_messages_are_in_no_quarantine(
    replaced_queues: OrdersQueues, words: tuple[str, ...]
) -> None:
    ids = {replaced_queues.write()}
    error = replaced_queues.operator.read_refusal("redrive", *words, "--unsealed", *ALL, code=2)
    assert "--unsealed" in error
    assert replaced_queues.read_ids(replaced_queues.messages) == ids


def test_redrive_to_is_refused_while_another_run_has_claimed_the_dlq(
    replaced_queues: OrdersQueues,
) -> None:
    ids = {replaced_queues.write()}
    assert replaced_queues.claim_dlq()
    assert (
        "another run is at work"
        in _redrive_to(replaced_queues, "orders-v2", *ALL, code=1)["error"]["message"]
    )
    assert replaced_queues.read_ids(replaced_queues.messages) == ids


def test_redrive_to_is_refused_if_the_deleted_source_is_created_again_during_the_question(
    replaced_queues: OrdersQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = {replaced_queues.write()}
    policy = RedrivePolicy(replaced_queues.dlq, 3).text
    monkeypatch.setattr(
        work,
        "confirm",
        lambda *_, **__: replaced_queues.account.queue("orders", RedrivePolicy=policy),
    )
    assert (
        _redrive_to(replaced_queues, "orders-v2", "--all", code=1)["error"]["code"]
        == "queues_changed"
    )
    assert replaced_queues.read_ids(replaced_queues.messages) == ids


@pytest.mark.parametrize("fifo", [False, True])
@pytest.mark.parametrize("before", [0, 1, 2])
def test_redrive_stops_and_loses_no_message_if_its_source_is_deleted_meanwhile(
    operator: Operator, before: int, *, fifo: bool
) -> None:
    queues = make_orders_queues(operator, fifo=fifo)
    ids = [queues.write({"n": n}, group=f"g{n % 10}") for n in range(35)]
    sends: list[str] = []
    arrived: list[Any] = []

    def delete_source(call: str, _: Any) -> None:
        if call == "SendMessageBatch":
            if len(sends) == before:
                arrived.extend(queues.take_messages(queues.source))
                _delete_queue(queues)
            sends.append(call)

    queues.refusals.append(delete_source)
    name = queues.source.rpartition(":")[2]
    output = queues.read_output("redrive", name, "--where", "exists(body.n)", "--yes", code=1)
    went = 10 * before
    assert len(sends) == before + 1, "it stops at the first send to the deleted queue"
    assert f"{went} messages sent back, 10 failed, {25 - went} left in" in output
    assert f"{name} is gone: stopped. Of {went} messages sent there" in output
    dlq_name = queues.messages.rpartition(":")[2]
    assert f"`mendq redrive {dlq_name} --to OTHER --all --region " in output
    left = queues.take_messages(queues.messages)
    numbers = [json.loads(message.body)["n"] for message in (*arrived, *left)]
    assert sorted(numbers) == list(range(35)), "no message is lost or doubled"
    assert {message.message_id for message in left} <= set(ids), "visible again, as they were"
