"""Test `mendq redrive`: only the chosen messages go back, each once.

The preview names the messages that go, those that stay, and any obstacle.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from itertools import count
from typing import Any

import pytest

from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.redrive import work
from mendq.model.queue import RedrivePolicy
from mendq.redrive.messages import REDRIVE_MARK_NAME
from mendq.redrive.mover import MessageMover
from mendq.redrive.progress import Stage
from tests.account.receivers import confirm_receiver
from tests.cli.builders import Operator
from tests.cli.redrive.builders import (
    OrdersQueues,
    make_died_in_attribute,
    make_orders_queues,
    read_redrive_command,
    return_newest_messages_first,
    send_in_the_past,
    set_creation,
    write_sealed,
)

ORDERS = "attributes.type == 'order' && age_seconds < `7200` && body.error.code == 'X'"
ALL = ("--all", "--yes")
SHOW = ("redrive", "orders", "--all", "--dry-run")


def _write_mixed_messages(queues: OrdersQueues) -> None:
    for number in range(4):
        queues.write({"error": {"code": "X"}, "n": number}, type="order")
    queues.write({"error": {"code": "Y"}}, type="order")
    queues.write({"error": {"code": "X"}}, type="refund")
    queues.write("no json", type="order")
    queues.write({"error": {"code": "X"}})


def _write_numbered_messages(queues: OrdersQueues, number: int, groups: int = 1) -> set[str]:
    return {queues.write({"n": n}, group=f"g{n % groups}") for n in range(number)}


def _assert_nothing_moved(queues: OrdersQueues, ids: set[str]) -> None:
    assert queues.read_ids(queues.messages) == ids
    assert queues.read_ids(queues.source) == set()


def _read_numbers(messages: list[Any]) -> list[int]:
    return [json.loads(message.body)["n"] for message in messages]


def _answer_yes(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> None:
    """Answer yes, after `meanwhile` has run."""
    monkeypatch.setattr(work, "confirm", lambda *_, **__: meanwhile())


def test_redrive_with_dry_run_or_without_yes_moves_nothing(queues: OrdersQueues) -> None:
    _write_mixed_messages(queues)
    ids = queues.read_ids(queues.messages)
    done = queues.redrive("--where", ORDERS, "--dry-run", "--yes")
    assert done == {"matched": 4, "moved": 0, "left": 8, "failed": 0}
    assert "not confirmed" in queues.redrive("--all", code=2)["error"]["message"]
    _assert_nothing_moved(queues, ids)


def test_redrive_moves_matching_messages_up_to_the_limit_and_releases_the_rest_at_once(
    queues: OrdersQueues,
) -> None:
    _write_mixed_messages(queues)
    done = queues.redrive("--where", ORDERS, "--limit", "3", "--yes")
    assert done == {"matched": 4, "moved": 3, "left": 5, "failed": 0}
    done = queues.redrive("--where", ORDERS, "--limit", "100", "--yes")
    assert done == {"matched": 1, "moved": 1, "left": 4, "failed": 0}
    arrived = queues.read_messages(queues.source)
    assert {message.redrive_count for message in arrived} == {1}
    assert {str(message.attributes["type"].value) for message in arrived} == {"order"}
    assert len(queues.read_ids(queues.messages)) == 4


def test_redrive_that_matches_nothing_says_nothing_about_messages_that_would_move(
    queues: OrdersQueues,
) -> None:
    _write_mixed_messages(queues)
    nothing = ("redrive", "orders", "--where", "body.n == `99`", "--dry-run")
    assert "new message id" not in queues.read_output(*nothing)
    assert "new message id" in queues.read_output(*SHOW)


def test_redrive_with_wrong_options_is_refused_and_moves_nothing(queues: OrdersQueues) -> None:
    ids = {queues.write()}
    wrong: dict[tuple[str, ...], str] = {
        (): "either",
        ("--all", "--where", "receive_count == `1`"): "either",
        ("--where", ""): "--where",
        ("--where", "body.a = 1"): "at character 8",
        ("--all", "--limit", "0"): "--limit",
        **{("--all", "--rate", rate): "no rate" for rate in ("fast", "0/s", "1e3", "nan")},
    }
    for arguments, says in wrong.items():
        assert says in queues.redrive(*arguments, "--yes", code=2)["error"]["message"]
    _assert_nothing_moved(queues, ids)


NATIVE_COMMAND = "aws sqs start-message-move-task"


def test_redrive_offers_sqss_own_redrive_only_without_a_filter_or_a_limit_that_leaves_messages(
    queues: OrdersQueues,
) -> None:
    queues.write()
    native = f"{NATIVE_COMMAND} --region us-east-1 --source-arn {queues.messages}"
    assert native in queues.read_output(*SHOW)
    filtered = ("redrive", "orders", "--where", "exists(body)", "--dry-run")
    assert NATIVE_COMMAND not in queues.read_output(*filtered)
    queues.write()
    assert NATIVE_COMMAND in queues.read_output(*SHOW, "--limit", "2")
    assert NATIVE_COMMAND not in queues.read_output(*SHOW, "--limit", "1")


def test_redrive_does_not_offer_sqss_own_redrive_if_a_message_of_another_source_stays(
    queues: OrdersQueues,
) -> None:
    """SQS's own redrive moves all messages, also those that Mendq says stay."""
    policy = queues.account.attributes(queues.source)["RedrivePolicy"]
    other = queues.account.queue("refunds", tag=None, RedrivePolicy=policy)
    queues.write(**make_died_in_attribute(queues.source))
    assert NATIVE_COMMAND in queues.read_output(*SHOW)
    queues.write(**make_died_in_attribute(other))
    output = queues.read_output(*SHOW)
    assert "it stays here" in output
    assert NATIVE_COMMAND not in output


def test_redrive_does_not_offer_sqss_own_redrive_while_messages_are_hidden(
    queues: OrdersQueues,
) -> None:
    """A message that another consumer holds may be another source's."""
    queues.write()
    client = queues.account.clients.sqs
    client.receive_message(QueueUrl=queues.account.url(queues.messages))
    queues.write()
    output = queues.read_output(*SHOW)
    assert "1 more are held by another consumer" in output
    assert NATIVE_COMMAND not in output


def test_redrive_dry_run_says_when_the_oldest_message_expires(queues: OrdersQueues) -> None:
    queues.write()
    assert "the oldest expires in 3 d 23 h" in queues.read_output(*SHOW)


def test_redrive_takes_messages_sent_by_hand_if_the_dlq_has_only_one_source(
    queues: OrdersQueues,
) -> None:
    queues.write(**make_died_in_attribute("nobody"))
    assert "somebody sent 1 of them to orders-dlq by hand" in queues.read_output(*SHOW)
    assert queues.redrive(*ALL)["moved"] == 1


def test_redrive_leaves_messages_of_another_source_or_sent_by_hand_in_a_shared_dlq(
    queues: OrdersQueues,
) -> None:
    policy = queues.account.attributes(queues.source)["RedrivePolicy"]
    other = queues.account.queue("refunds", tag=None, RedrivePolicy=policy)
    queues.write(**make_died_in_attribute("nobody"))
    for source in (queues.source, other):
        queues.write(source.rpartition(":")[2], **make_died_in_attribute(source))
    output = queues.read_output("redrive", "orders", *ALL)
    assert queues.read_bodies(queues.source) == {"orders"}
    assert queues.read_bodies(queues.messages) == {"hello", "refunds"}
    assert "1 message died in refunds, which shares orders-dlq: it stays here" in output
    says = "somebody sent 1 message to orders-dlq by hand: SQS does not say for which source"
    assert says in output
    assert "so it stays here. Whoever knows receives them and sends them there" in output


@pytest.fixture
def queues_with_older_message(queues: OrdersQueues) -> OrdersQueues:
    """The DLQ has a message of an earlier queue `orders`, and one of the present queue."""
    set_creation(queues.source, queues.account.now - timedelta(hours=1))
    with send_in_the_past(queues, seconds=7_200):
        queues.write("older")
    with send_in_the_past(queues, seconds=3_600):
        queues.write("as old as the source")
    return queues


def test_redrive_leaves_messages_older_than_their_source_and_says_how_many(
    queues_with_older_message: OrdersQueues,
) -> None:
    queues = queues_with_older_message
    done = queues.redrive(*ALL)
    assert done == {"matched": 1, "moved": 1, "left": 1, "failed": 0, "staying_older": 1}
    assert queues.read_bodies(queues.source) == {"as old as the source"}
    assert queues.read_bodies(queues.messages) == {"older"}
    output = queues.read_output("redrive", "orders", *ALL)
    assert NATIVE_COMMAND not in output
    assert "1 matching message is older than orders, which was created 20" in output
    assert "maybe another person's: it stays here" in output
    assert queues.read_bodies(queues.messages) == {"older"}


def test_redrive_prints_a_command_that_sends_only_the_messages_older_than_their_source(
    queues_with_older_message: OrdersQueues,
) -> None:
    queues = queues_with_older_message
    output = queues.read_output(*SHOW)
    assert "Only if it belongs to orders, send it with:" in output
    assert queues.operator.run_json(*read_redrive_command(output), "--yes")["moved"] == 1
    assert queues.read_bodies(queues.source) == {"older"}
    assert queues.read_bodies(queues.messages) == {"as old as the source"}


@pytest.fixture
def queues_with_older_types(queues: OrdersQueues) -> OrdersQueues:
    """The DLQ has three orders, a refund and an order sent by hand, all older than `orders`."""
    set_creation(queues.source, queues.account.now - timedelta(hours=1))
    with send_in_the_past(queues, seconds=7_200):
        for number in range(3):
            queues.write(f"order {number}", type="order")
        queues.write("refund", type="refund")
        queues.write("by hand", type="order", **make_died_in_attribute("nobody"))
    return queues


OLDER_ORDERS = (
    *("redrive", "orders", "--where", "attributes.type == 'order' || body_text == 'x'"),
    *("--limit", "2", "--rate", "2.5/s"),
)


def test_redrive_prints_a_command_for_older_messages_that_keeps_filter_limit_and_rate(
    queues_with_older_types: OrdersQueues,
) -> None:
    queues = queues_with_older_types
    command = read_redrive_command(queues.read_output(*OLDER_ORDERS, "--dry-run"))
    assert command[command.index("--rate") + 1] == "2.5/s"
    done = queues.operator.run_json(*command, "--yes")
    assert (done["matched"], done["moved"]) == (3, 2)
    assert len(queues.read_bodies(queues.source) - {"order 0", "order 1", "order 2"}) == 0
    assert {"refund", "by hand"} < queues.read_bodies(queues.messages)


def test_redrive_counts_older_messages_that_match_and_those_sent_by_hand_apart(
    queues_with_older_types: OrdersQueues,
) -> None:
    queues = queues_with_older_types
    output = " ".join(queues.read_output(*OLDER_ORDERS, "--dry-run").split())
    assert "3 matching messages are older than orders, which was created 20" in output
    assert "1 matching message is older than orders, which was created 20" in output
    assert "somebody sent it to orders-dlq by hand: SQS does not say for which queue" in output
    assert queues.redrive(*OLDER_ORDERS[2:], "--yes")["staying_older"] == 4
    assert queues.read_bodies(queues.source) == set()


def test_redrive_leaves_a_message_sent_by_hand_that_is_older_than_the_source(
    queues: OrdersQueues,
) -> None:
    set_creation(queues.source, queues.account.now - timedelta(hours=1))
    with send_in_the_past(queues, seconds=7_200):
        ids = {queues.write(**make_died_in_attribute("nobody"))}
    assert queues.redrive(*ALL)["staying_older"] == 1
    assert "mendq redrive" not in queues.read_output(*SHOW)
    _assert_nothing_moved(queues, ids)


@pytest.mark.parametrize(
    ("named", "code", "says"),
    [
        ("nobodys", 4, "there is no queue"),
        ("not a name", 2, "is not a queue's name"),
        ("orders-dlq", 2, "name its source, orders"),
        ("plain", 4, "plain has no DLQ"),
    ],
)
def test_redrive_of_a_queue_that_is_missing_misnamed_a_dlq_or_without_dlq_moves_nothing(
    queues: OrdersQueues, named: str, code: int, says: str
) -> None:
    ids = {queues.write()}
    queues.account.queue("plain", tag=None)
    error = queues.operator.run_json("redrive", named, *ALL, code=code)["error"]
    assert says in error["message"]
    _assert_nothing_moved(queues, ids)


@pytest.mark.parametrize("ending", ["", ".fifo"])
def test_redrive_takes_no_message_out_of_a_quarantine_that_a_queue_names_as_its_dlq(
    operator: Operator, ending: str
) -> None:
    """Anyone who may create queues can make `orders-x`, and ask for a redrive of it."""
    queues = make_orders_queues(operator, fifo=bool(ending))
    quarantine = operator.aws.queue(f"orders-quarantine{ending}", tag=None)
    confirm_receiver(operator.aws, quarantine)
    redrive_policy = RedrivePolicy(quarantine, 3).text
    theirs = operator.aws.queue(f"orders-x{ending}", tag=None, RedrivePolicy=redrive_policy)
    set_creation(theirs, operator.aws.now - timedelta(days=1))
    ids = {
        write_sealed(queues, "customer data", quarantine=quarantine),
        queues.write("by hand", quarantine, **make_died_in_attribute("nobody")),
    }
    for arguments in (ALL, ("--all", "--dry-run")):
        error = operator.run_json("redrive", f"orders-x{ending}", *arguments, code=1)["error"]
        assert error["code"] == "dlq_is_quarantine"
        assert f"`mendq quarantine return orders-quarantine{ending} --all" in error["message"]
    assert queues.read_ids(theirs) == set()
    assert queues.read_ids(quarantine) == ids


def test_redrive_of_a_quarantine_itself_names_the_command_that_returns_its_messages(
    operator: Operator,
) -> None:
    """The queue that names it as its DLQ is not proposed as the source: anyone may have made it."""
    make_orders_queues(operator)
    quarantine = operator.aws.queue("orders-quarantine", tag=None)
    redrive_policy = RedrivePolicy(quarantine, 3).text
    operator.aws.queue("orders-x", tag=None, RedrivePolicy=redrive_policy)
    error = operator.run_json("redrive", "orders-quarantine", *ALL, code=2)["error"]
    assert "`mendq quarantine return orders-quarantine --all --dry-run" in error["message"]
    assert "orders-x" not in error["message"]


def test_redrive_of_a_queue_whose_dlq_was_deleted_is_refused_and_names_the_dlq(
    queues: OrdersQueues,
) -> None:
    queues.account.clients.sqs.delete_queue(QueueUrl=queues.account.url(queues.messages))
    assert "orders-dlq" in queues.redrive(*ALL, code=4)["error"]["message"]


FORBIDS: dict[str, Callable[[OrdersQueues], object]] = {
    "redrive_running": lambda queues: queues.set_redrive_stage(Stage.SOAK),
    "redrive_off": lambda queues: queues.account.tag(queues.source, **{"mendq:redrive": "no"}),
    "redrive_off of the DLQ": lambda queues: queues.account.tag(
        queues.dlq, **{"mendq:redrive": "off"}
    ),
    # A receive could move a message to the DLQ's own DLQ.
    "dlq_of_dlq": lambda queues: queues.configure(
        queues.messages, RedrivePolicy=RedrivePolicy(queues.account.queue("last", tag=None), 9).text
    ),
    "move_task_running": lambda queues: queues.move_tasks.append({"Status": "CANCELLING"}),
    "queues_changed": lambda queues: queues.configure(
        queues.source, RedrivePolicy=RedrivePolicy(queues.account.queue("new-dlq"), 3).text
    ),
    # Messages sent by hand may go back only if the DLQ has no other source.
    "queues_changed by another": lambda queues: queues.account.queue(
        "refunds", RedrivePolicy=queues.account.attributes(queues.source)["RedrivePolicy"]
    ),
}


@pytest.mark.parametrize("what", FORBIDS)
def test_redrive_moves_nothing_if_a_guardrail_forbids_it_before_or_during_the_question(
    queues: OrdersQueues, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    ids = {queues.write(**make_died_in_attribute("nobody")), *_write_numbered_messages(queues, 11)}
    _answer_yes(monkeypatch, lambda: FORBIDS[what](queues))
    error = queues.redrive("--all", code=1)["error"]
    if not what.startswith("queues_changed"):
        assert queues.redrive("--all", "--dry-run", code=1)["error"] == error
    if queues.move_tasks:
        region_option = f"--region {queues.messages.split(':')[3]}"
        listing = f"aws sqs list-message-move-tasks {region_option} --source-arn {queues.messages}"
        cancelling = f"aws sqs cancel-message-move-task {region_option} --task-handle HANDLE"
        assert f"`{listing}`" in error["message"]
        assert f"`{cancelling}`" in error["message"]
    assert error["code"] == what.partition(" ")[0]
    _assert_nothing_moved(queues, ids)


def test_redrive_during_a_freeze_warns_the_operator_and_still_moves_messages(
    queues: OrdersQueues,
) -> None:
    queues.write("died")
    queues.operator.run_json("freeze", "a fire", "--yes")
    output = queues.read_output("redrive", "orders", *ALL)
    assert "changes are frozen by" in output
    assert "a fire. That holds Mendq; this is by your hand" in output
    assert "1 message sent back" in output


def test_redrive_is_refused_while_another_run_has_claimed_the_dlq_but_not_a_dry_run(
    queues: OrdersQueues,
) -> None:
    ids = {queues.write("one")}
    assert queues.claim_dlq()
    assert queues.redrive("--all", "--dry-run")["matched"] == 1
    error = queues.redrive(*ALL, code=1)["error"]
    assert error["code"] == "redrive_running"
    assert "another run is at work" in error["message"]
    _assert_nothing_moved(queues, ids)


def test_redrive_claims_the_dlq_while_messages_move_and_releases_it_at_once(
    queues: OrdersQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues.write("one")
    move_messages = MessageMover.move_messages
    claims: list[object] = []

    def claim_and_move(*arguments: Any) -> Any:
        claims.append(queues.claim_dlq())
        return move_messages(*arguments)

    monkeypatch.setattr(MessageMover, "move_messages", claim_and_move)
    assert queues.redrive(*ALL)["moved"] == 1
    assert claims == [None], "nobody else could claim it"
    assert queues.claim_dlq()


def test_redrive_without_a_stack_moves_messages_without_claiming_the_dlq(
    queues: OrdersQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_stack(*_: object) -> str:
        raise CommandError("no stack", Exit.NOT_FOUND)

    monkeypatch.setattr(type(queues.operator.account), "output", no_stack)
    queues.write()
    assert queues.redrive(*ALL)["moved"] == 1


def _set_source_policy(queues: OrdersQueues, queue_arn: str) -> None:
    reader = {"AWS": "arn:aws:iam::123456789012:role/other-team"}
    statement = {"Effect": "Allow", "Principal": reader, "Action": "sqs:*", "Resource": "*"}
    queues.configure(queue_arn, Policy=json.dumps({"Statement": [statement]}))


def _tag_source(queues: OrdersQueues, queue_arn: str) -> None:
    queues.account.tag(queue_arn, team="others")


def _make_source_again(queues: OrdersQueues, queue_arn: str) -> None:
    """Delete the queue and create one of its name two minutes later, with the same attributes."""
    policy = queues.account.attributes(queue_arn).get("RedrivePolicy")
    queues.account.clients.sqs.delete_queue(QueueUrl=queues.account.url(queue_arn))
    queues.account.later(minutes=2)
    attributes = {"RedrivePolicy": policy} if policy else {}
    queues.account.queue(queue_arn.rpartition(":")[2], tag=None, **attributes)


SOURCE_CHANGES: dict[str, tuple[Callable[[OrdersQueues, str], None], str]] = {
    "policy": (_set_source_policy, "the policy of {} changed since you agreed"),
    "tags": (_tag_source, "the tags of {} changed since you agreed"),
    "made again": (_make_source_again, "{} was deleted and created again since you agreed"),
}


@pytest.mark.parametrize("change", SOURCE_CHANGES)
@pytest.mark.parametrize("is_replacement", [False, True])
def test_redrive_stops_before_the_next_batch_if_the_queue_that_takes_messages_changed(
    queues: OrdersQueues, change: str, is_replacement: bool
) -> None:
    _write_numbered_messages(queues, 25)
    change_source, reason = SOURCE_CHANGES[change]
    target = queues.account.queue("orders-new", tag=None) if is_replacement else queues.source
    sqs = queues.operator.account.clients.sqs
    sent_counts = list[int]()

    def change_after_first_batch(parsed: dict[str, Any], **_: Any) -> None:
        sent_counts.append(len(parsed["Successful"]))
        if len(sent_counts) == 1:
            change_source(queues, target)

    sqs.meta.events.register("after-call.sqs.SendMessageBatch", change_after_first_batch)
    words = ("redrive", "orders", "--to", "orders-new", "--from", "orders")
    output = queues.read_output(*(words if is_replacement else words[:2]), *ALL, code=1)
    assert reason.format(target.rpartition(":")[2]) in output
    assert sent_counts == [10], "no batch after the change"
    assert len(queues.read_messages(queues.messages)) == 15


def test_redrive_moves_nothing_if_the_source_got_another_policy_during_the_question(
    queues: OrdersQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues.write()
    _answer_yes(monkeypatch, lambda: _set_source_policy(queues, queues.source))
    output = queues.read_output("redrive", "orders", "--all", code=1)
    assert "the policy of orders changed since you agreed" in output
    assert queues.read_messages(queues.source) == []


def test_redrive_moves_a_message_once_even_if_it_returns_to_the_dlq_during_the_run(
    queues: OrdersQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each moved message is back in the DLQ before the next batch, with a new message id."""
    _write_numbered_messages(queues, 25)
    move_messages = MessageMover.move_messages

    def return_moved_messages(*arguments: Any) -> Any:
        for moved in move_messages(*arguments):
            for message in queues.take_messages(queues.source):
                queues.write(
                    message.body,
                    **{REDRIVE_MARK_NAME: str(message.attributes[REDRIVE_MARK_NAME].value)},
                )
            yield moved

    monkeypatch.setattr(MessageMover, "move_messages", return_moved_messages)
    assert queues.redrive(*ALL)["moved"] == 25
    assert {message.redrive_count for message in queues.read_messages(queues.messages)} == {1}
    assert "25 of them were sent back before (mendq.redrive)" in queues.read_output(*SHOW)


def test_redrive_leaves_messages_that_came_during_the_question(
    queues: OrdersQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues.write("asked for")
    _answer_yes(monkeypatch, lambda: queues.write("came since"))
    done = queues.redrive("--all")
    assert (done["matched"], done["moved"]) == (1, 1)
    assert queues.read_bodies(queues.source) == {"asked for"}
    assert queues.read_bodies(queues.messages) == {"came since"}


def test_redrive_of_messages_that_left_during_the_question_moves_and_fails_none(
    queues: OrdersQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues.write("asked for")
    _answer_yes(monkeypatch, lambda: queues.take_messages(queues.messages))
    done = queues.redrive("--all")
    assert (done["matched"], done["moved"], done["failed"]) == (1, 0, 0)
    assert queues.read_bodies(queues.source) == set()


def test_redrive_keeps_and_reports_a_message_that_is_too_long_for_the_source(
    operator: Operator,
) -> None:
    queues = make_orders_queues(operator, MaximumMessageSize="1024")
    queues.write("small")
    queues.write("x" * 2_000)
    done = queues.redrive(*ALL, code=1)
    assert done == {"matched": 2, "moved": 1, "left": 0, "failed": 1}
    assert queues.read_bodies(queues.messages) == {"x" * 2_000}
    assert "must be shorter than 1024 bytes" in queues.read_output(
        "redrive", "orders", *ALL, code=1
    )


def test_redrive_dry_run_shows_no_body_and_counts_messages_without_a_filtered_field(
    queues: OrdersQueues,
) -> None:
    sample = queues.write({"secret": "s3cret"}, type="order")
    queues.write({"secret": "s3cret"}, type="re\x1bfund\n")
    queues.write({"n": 1})
    where = "body.secret == 's3cret' && exists(attributes.type)"
    output = queues.operator.run("redrive", "orders", "--where", where, "--dry-run").output
    assert "s3cret" not in output
    assert "\x1b" not in output
    assert "MESSAGES  WHICH\n" in output
    assert [line for line in output.splitlines() if line != line.rstrip()] == []
    assert sample in output
    for says in ("1 attributes.type order", "is missing in 1 of 3 messages"):
        assert says in " ".join(output.split())


def test_redrive_dry_run_of_a_fifo_dlq_counts_ten_messages_of_each_group_and_those_ahead(
    operator: Operator,
) -> None:
    queues = make_orders_queues(operator, fifo=True)
    _write_numbered_messages(queues, 36, groups=3)
    queues.write("newer", queue=queues.source)
    output = queues.read_output("redrive", "orders.fifo", "--all", "--dry-run")
    assert "30 messages of 3 groups go behind the 1 that wait in orders.fifo" in output


def test_redrive_of_a_fifo_dlq_moves_the_messages_of_every_group_in_order(
    operator: Operator,
) -> None:
    queues = make_orders_queues(operator, fifo=True)
    with send_in_the_past(queues, seconds=60):
        _write_numbered_messages(queues, 36, groups=3)
    done = queues.redrive("--where", "body.n >= `6`", "--yes")
    assert done == {"matched": 30, "moved": 30, "left": 6, "failed": 0}
    arrived = _read_numbers(queues.take_messages(queues.source))
    for group in range(3):
        of_group = [number for number in arrived if number % 3 == group]
        assert (of_group, len(of_group)) == (sorted(of_group), 10)


@pytest.fixture
def long_group(operator: Operator) -> OrdersQueues:
    """A FIFO DLQ with twelve messages of one group, of which SQS shows the first ten."""
    queues = make_orders_queues(operator, fifo=True)
    with send_in_the_past(queues, seconds=60):
        _write_numbered_messages(queues, 12)
    return queues


def test_redrive_of_a_fifo_dlq_leaves_messages_that_came_during_the_question(
    long_group: OrdersQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    def send_late_messages() -> None:
        long_group.write({"n": 12}, group="g0")
        long_group.write({"n": 13}, group="new")

    _answer_yes(monkeypatch, send_late_messages)
    output = long_group.read_output("redrive", "orders.fifo", "--all")
    assert "12 messages sent back, 0 failed" in output
    assert "2 of them came in the second of the question or later" in output
    assert _read_numbers(long_group.take_messages(long_group.source)) == list(range(12))
    assert sorted(_read_numbers(long_group.take_messages(long_group.messages))) == [12, 13]


def test_redrive_of_a_fifo_dlq_moves_at_most_as_many_messages_as_the_question_says(
    long_group: OrdersQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The messages came before the question, but after SQS had counted."""
    questions = list[str]()

    def send_uncounted_messages(question: str, **_: object) -> None:
        questions.append(question)
        with send_in_the_past(long_group, seconds=50):
            for number in range(12, 15):
                long_group.write({"n": number}, group="g0")

    monkeypatch.setattr(work, "confirm", send_uncounted_messages)
    assert long_group.redrive("--all")["moved"] == 12
    assert "and what matches behind them now (at most 12 in all)" in questions[0]
    assert _read_numbers(long_group.take_messages(long_group.messages)) == [12, 13, 14]


def keep_sending(queues: OrdersQueues, most: int = 400) -> list[int]:
    """Send a message to the DLQ before each receive. Return the list of their numbers.

    After `most` messages it ends, so that a test that fails ends too.
    """
    sent = list[int]()

    def send_one(**_: Any) -> None:
        if len(sent) < most:
            sent.append(1_000 + len(sent))
            queues.write({"n": sent[-1]}, group=f"late-{sent[-1]}", type="late")

    sqs: Any = queues.operator.account.clients.sqs
    sqs.meta.events.register("before-call.sqs.ReceiveMessage", send_one)
    return sent


@pytest.mark.parametrize("fifo", [True, False], ids=["fifo", "standard"])
def test_look_before_a_redrive_ends_although_messages_keep_coming_and_says_so(
    operator: Operator, fifo: bool
) -> None:
    queues = make_orders_queues(operator, fifo=fifo)
    _write_numbered_messages(queues, 5)
    sent = keep_sending(queues)
    name = queues.source.rpartition(":")[2]
    output = queues.read_output("redrive", name, "--all", "--dry-run")
    assert "105 messages seen" in output
    assert "the look ended there: SQS had counted 5 waiting messages, and more keep" in output
    assert "start-message-move-task" not in output
    assert len(sent) < 400


def test_look_before_a_redrive_that_sees_all_messages_does_not_say_that_more_keep_coming(
    operator: Operator,
) -> None:
    queues = make_orders_queues(operator)
    _write_numbered_messages(queues, 5)
    assert "ended there" not in queues.read_output("redrive", "orders", "--all", "--dry-run")


@pytest.mark.parametrize("filter_text", ["body.n < `5`", "body.n != `5`"])
def test_redrive_of_a_fifo_dlq_ends_after_the_last_chosen_message_although_messages_keep_coming(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, filter_text: str
) -> None:
    """A message that does not match stays, so fewer are moved than SQS counted."""
    queues = make_orders_queues(operator, fifo=True)
    with send_in_the_past(queues, seconds=60):
        _write_numbered_messages(queues, 6)
    sent = list[list[int]]()
    _answer_yes(monkeypatch, lambda: sent.append(keep_sending(queues)))
    assert queues.redrive("--where", filter_text)["moved"] == 5
    assert _read_numbers(queues.take_messages(queues.source)) == list(range(5))
    assert len(sent[0]) <= 15


def test_redrive_ends_although_a_chosen_message_is_gone_and_others_keep_coming(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues = make_orders_queues(operator)
    _write_numbered_messages(queues, 5)

    def take_chosen_and_keep_sending() -> None:
        queues.take_messages(queues.messages)
        keep_sending(queues)

    _answer_yes(monkeypatch, take_chosen_and_keep_sending)
    output = queues.read_output("redrive", "orders", "--all")
    assert "0 messages sent back" in output
    assert "more messages came to orders-dlq than SQS had counted" in output
    assert queues.take_messages(queues.source) == []


def test_redrive_of_a_fifo_dlq_moves_hidden_messages_of_all_groups_although_others_keep_coming(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues = make_orders_queues(operator, fifo=True)
    with send_in_the_past(queues, seconds=60):
        _write_numbered_messages(queues, 36, groups=3)
    _answer_yes(monkeypatch, lambda: keep_sending(queues))
    assert queues.redrive("--all")["moved"] == 36


def test_redrive_of_a_fifo_dlq_moves_hidden_messages_after_a_receive_of_only_late_ones(
    long_group: OrdersQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQS returns message groups in any order, so a receive may bring only late groups."""
    receives = count(1)

    def send_late_groups(**_: Any) -> None:
        if next(receives) == 2:
            for number in range(10):
                long_group.write({"n": 1_000 + number}, group=f"late-{number}")
            return_newest_messages_first(long_group.messages, 10)

    def watch_receives() -> None:
        sqs: Any = long_group.operator.account.clients.sqs
        sqs.meta.events.register("before-call.sqs.ReceiveMessage", send_late_groups)

    _answer_yes(monkeypatch, watch_receives)
    assert long_group.redrive("--all")["moved"] == 12
    assert _read_numbers(long_group.take_messages(long_group.source)) == list(range(12))


def test_redrive_of_a_fifo_dlq_takes_no_hidden_message_if_sqs_does_not_say_its_time(
    long_group: OrdersQueues,
) -> None:
    def remove_date(parsed: dict[str, Any], **_: Any) -> None:
        parsed["ResponseMetadata"].get("HTTPHeaders", {}).pop("date", None)

    sqs = long_group.operator.account.clients.sqs
    sqs.meta.events.register("after-call.sqs.GetQueueAttributes", remove_date)
    assert long_group.redrive(*ALL)["moved"] == 10
    assert _read_numbers(long_group.take_messages(long_group.messages)) == [10, 11]


def test_redrive_of_a_fifo_dlq_leaves_a_message_that_matches_only_at_the_second_look(
    operator: Operator,
) -> None:
    """A look raises the receive count, so the filter fits another message at the next look."""
    queues = make_orders_queues(operator, fifo=True)
    with send_in_the_past(queues, seconds=60):
        first = queues.write("first", group="g1")
        queues.read_messages(queues.messages)
        second = queues.write("second", group="g2")
    done = queues.redrive("--where", "receive_count == `2`", "--yes")
    assert (done["matched"], done["moved"]) == (1, 1)
    assert queues.read_bodies(queues.source) == {"first"}
    assert queues.read_ids(queues.messages) == {second}
    assert first != second


@pytest.mark.parametrize(
    ("code", "message", "says"),
    [
        ("KMS.AccessDeniedException", "kms", "kms:GenerateDataKey on alias/orders (orders)"),
        ("AccessDenied", "not allowed", "SendMessage on orders"),
    ],
)
def test_redrive_names_the_missing_sqs_or_kms_right_and_moves_nothing(
    operator: Operator, code: str, message: str, says: str
) -> None:
    queues = make_orders_queues(operator, KmsMasterKeyId="alias/orders")
    ids = {queues.write()}
    queues.refuse("SendMessageBatch", code, message)
    assert says in queues.read_output("redrive", "orders", *ALL, code=1)
    _assert_nothing_moved(queues, ids)


@pytest.fixture
def slow_redrive(queues: OrdersQueues) -> tuple[str, ...]:
    """Fill the DLQ with 20 messages that expire in an hour. Return options of a slow redrive."""
    _write_numbered_messages(queues, 20)
    queues.configure(queues.messages, MessageRetentionPeriod="3600")
    return (*ALL, "--rate", "0.001/s")


def test_redrive_is_refused_at_a_rate_that_would_let_messages_expire(
    queues: OrdersQueues, slow_redrive: tuple[str, ...]
) -> None:
    ids = queues.read_ids(queues.messages)
    error = queues.redrive(*slow_redrive, code=1)["error"]
    assert error["code"] == "redrive_too_slow"
    assert "20 messages at 0.001 a second take 5 h 33 min" in error["message"]
    _assert_nothing_moved(queues, ids)


def test_redrive_at_a_slow_rate_is_allowed_if_its_limit_ends_it_before_messages_expire(
    queues: OrdersQueues, slow_redrive: tuple[str, ...]
) -> None:
    assert queues.redrive(*slow_redrive, "--limit", "1")["moved"] == 1


@pytest.mark.parametrize("fifo", [False, True])
def test_redrive_reports_messages_in_flight_elsewhere_and_leaves_them_in_the_dlq(
    operator: Operator, fifo: bool
) -> None:
    queues = make_orders_queues(operator, fifo=fifo)
    _write_numbered_messages(queues, 12, groups=12)
    url = operator.aws.url(queues.messages)
    queues.account.clients.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=5)
    name = queues.source.rpartition(":")[2]
    output = queues.read_output("redrive", name, "--all", "--dry-run")
    assert "7 messages seen, 7 match" in output
    assert "5 more are held by another consumer" in output
    assert "600 seconds after they were received" in output
    words = queues.read_output("redrive", name, *ALL, "--limit", "3")
    assert "3 messages sent back, 0 failed, 9 left in orders-dlq" in words
    assert "4 of them match, 5 of them held by another consumer" in words
    assert queues.redrive(*ALL) == {"matched": 4, "moved": 4, "left": 5, "failed": 0}
    assert queues.redrive(*ALL) == {"matched": 0, "moved": 0, "left": 5, "failed": 0}
    assert "no message that can be seen matches" in queues.read_output("redrive", name, *ALL)
