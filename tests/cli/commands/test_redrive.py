"""Only what a person has chosen goes back, once, and what does not is there as it was."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any

import pytest

from mendq.cli.exit_codes import Exit, Stopped
from mendq.cli.redrive import hold
from mendq.cli.redrive import redrive as command
from mendq.model.queue import Redrive
from mendq.redrive.messages import REDRIVE_COUNT
from mendq.redrive.mover import MessageMover
from mendq.redrive.progress import Stage
from mendq.redrive.store import CLAIM_SECONDS, CourseStore
from tests.cli.conftest import Operator
from tests.cli.redrive.dlq import Dlq, at_once, dlq

__all__ = ["at_once"]
pytestmark = pytest.mark.usefixtures("at_once")
ORDERS = "attributes.type == 'order' && age_seconds < `7200` && body.error.code == 'X'"


@pytest.fixture
def queues(operator: Operator) -> Dlq:
    return dlq(operator)


def _mixed(queues: Dlq) -> None:
    for number in range(4):
        queues.write({"error": {"code": "X"}, "n": number}, type="order")
    queues.write({"error": {"code": "Y"}}, type="order")
    queues.write({"error": {"code": "X"}}, type="refund")
    queues.write("no json", type="order")
    queues.write({"error": {"code": "X"}})


def _case_store(queues: Dlq) -> CourseStore:
    return CourseStore(queues.operator.aws.clients.dynamodb, "case_store")


def _nothing_changed(queues: Dlq, ids: set[str]) -> None:
    assert queues.ids(queues.messages) == ids
    assert queues.ids(queues.source) == set()


def test_what_matches_goes_and_the_rest_is_visible_at_once(queues: Dlq) -> None:
    _mixed(queues)
    done = queues.redrive("--where", ORDERS, "--yes")
    assert done == {"matched": 4, "moved": 4, "left": 4, "failed": 0}
    arrived = queues.seen(queues.source)
    assert {each.redrive_count for each in arrived} == {1}
    assert {str(each.attributes["type"].value) for each in arrived} == {"order"}
    assert len(queues.ids(queues.messages)) == 4


def test_a_dry_run_beats_yes_and_leaves_all_visible(queues: Dlq) -> None:
    _mixed(queues)
    ids = queues.ids(queues.messages)
    done = queues.redrive("--where", ORDERS, "--dry-run", "--yes")
    assert done == {"matched": 4, "moved": 0, "left": 8, "failed": 0}
    _nothing_changed(queues, ids)


def test_nothing_is_sent_unasked(queues: Dlq) -> None:
    _mixed(queues)
    ids = queues.ids(queues.messages)
    assert "not confirmed" in queues.redrive("--all", code=2)["error"]["message"]
    _nothing_changed(queues, ids)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "either"),
        (("--all", "--where", "receive_count == `1`"), "either"),
        (("--where", ""), "--where"),
        (("--where", "body.a = 1"), "character 8: body.a  >>> = 1"),
        (("--all", "--rate", "fast"), "--rate"),
        (("--all", "--rate", "0"), "--rate"),
        (("--all", "--rate", "-1/s"), "--rate"),
        (("--all", "--limit", "0"), "--limit"),
    ],
)
def test_what_is_no_request_moves_nothing(
    queues: Dlq, arguments: tuple[str, ...], says: str
) -> None:
    ids = {queues.write()}
    assert says in queues.redrive(*arguments, "--yes", code=2)["error"]["message"]
    _nothing_changed(queues, ids)


def test_a_limit_bounds_what_goes(queues: Dlq) -> None:
    _mixed(queues)
    done = queues.redrive("--where", ORDERS, "--limit", "3", "--yes")
    assert done == {"matched": 4, "moved": 3, "left": 5, "failed": 0}
    assert len(queues.ids(queues.messages)) == 5


def test_a_limit_beyond_what_there_is_bounds_nothing(queues: Dlq) -> None:
    _mixed(queues)
    done = queues.redrive("--all", "--limit", "100", "--yes")
    assert done == {"matched": 8, "moved": 8, "left": 0, "failed": 0}


def test_an_empty_queue_is_no_failure(queues: Dlq) -> None:
    assert queues.redrive("--all", "--yes") == {"matched": 0, "moved": 0, "left": 0, "failed": 0}


def test_more_messages_than_a_batch_all_go(queues: Dlq) -> None:
    sent = {queues.write(f"message {number}") for number in range(33)}
    assert queues.redrive("--all", "--yes")["moved"] == len(sent)
    assert len(queues.seen(queues.source)) == len(sent)
    assert queues.ids(queues.messages) == set()


@pytest.mark.parametrize("held", [10, 20])
def test_more_messages_than_are_held_at_once_are_all_looked_at(
    queues: Dlq, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    monkeypatch.setattr("mendq.redrive.mover.MOST_HELD", held)
    for number in range(33):
        queues.write({"n": number})
    done = queues.redrive("--where", "body.n >= `20`", "--yes")
    assert done == {"matched": 13, "moved": 13, "left": 20, "failed": 0}
    numbers = [json.loads(each.body)["n"] for each in queues.seen(queues.messages)]
    assert sorted(numbers) == list(range(20))


@pytest.mark.parametrize("whose", ["source", "messages"])
@pytest.mark.parametrize("word", ["off", "OFF", "no"])
def test_the_tag_refuses_on_either_queue(queues: Dlq, whose: str, word: str) -> None:
    ids = {queues.write()}
    queues.operator.aws.tag(getattr(queues, whose), **{"mendq:redrive": word})
    for more in ((), ("--dry-run",)):
        error = queues.redrive("--all", "--yes", *more, code=1)["error"]
        assert error["code"] == "redrive_off"
    _nothing_changed(queues, ids)
    queues.operator.aws.tag(getattr(queues, whose), **{"mendq:redrive": "on"})
    assert queues.redrive("--all", "--yes")["moved"] == 1


def test_messages_of_another_source_stay(queues: Dlq) -> None:
    other = queues.operator.aws.queue(
        "refunds",
        tag=None,
        RedrivePolicy=queues.operator.aws.attributes(queues.source)["RedrivePolicy"],
    )
    for each in (queues.source, other, "nobody"):
        queues.write(each.rpartition(":")[2], died_in=each)
    result = queues.operator.mendq("redrive", "orders", "--all", "--yes")
    assert result.exit_code == 0
    assert queues.bodies(queues.source) == ["orders"]
    assert queues.bodies(queues.messages) == ["nobody", "refunds"]
    assert "1 message died in another queue that shares orders-dlq" in result.output
    assert "for which of its 2 sources" in " ".join(result.output.split())


def test_where_there_is_one_source_what_somebody_put_there_goes_along(queues: Dlq) -> None:
    queues.write(died_in="nobody")
    result = queues.operator.mendq("redrive", "orders", "--all", "--yes")
    assert "somebody sent 1 of them to orders-dlq by hand" in " ".join(result.output.split())
    assert len(queues.seen(queues.source)) == 1


@pytest.mark.parametrize(
    ("named", "code"), [("nobodys", 4), ("not a name", 2), ("orders-dlq", 2), ("plain", 4)]
)
def test_a_queue_without_dlq_of_its_own(queues: Dlq, named: str, code: int) -> None:
    ids = {queues.write()}
    queues.operator.aws.queue("plain", tag=None)
    error = queues.operator.json("redrive", named, "--all", "--yes", code=code)["error"]
    if named == "orders-dlq":
        assert "name its source, orders" in error["message"]
    _nothing_changed(queues, ids)


def test_a_dlq_that_is_gone(queues: Dlq) -> None:
    queues.sqs.delete_queue(QueueUrl=queues.operator.aws.url(queues.messages))
    assert "orders-dlq" in queues.redrive("--all", "--yes", code=4)["error"]["message"]


def test_dlq_that_die_again_by_being_looked_at_are_not(queues: Dlq) -> None:
    ids = {queues.write()}
    last = queues.operator.aws.queue("last", tag=None)
    queues.sqs.set_queue_attributes(
        QueueUrl=queues.operator.aws.url(queues.messages),
        Attributes={"RedrivePolicy": Redrive(last, 2).text},
    )
    error = queues.redrive("--all", "--dry-run", code=1)["error"]
    assert error["code"] == "dlq_of_dlq"
    assert queues.ids(queues.messages) == ids


@pytest.mark.parametrize("status", ["RUNNING", "CANCELLING"])
def test_a_move_task_goes_first(queues: Dlq, status: str) -> None:
    ids = {queues.write()}
    queues.tasks.append({"Status": status, "StartedTimestamp": 1})
    assert queues.redrive("--all", "--yes", code=1)["error"]["code"] == "move_task_running"
    _nothing_changed(queues, ids)
    queues.tasks[:] = [{"Status": "COMPLETED", "StartedTimestamp": 1}]
    assert queues.redrive("--all", "--yes")["moved"] == 1


def test_a_redrive_of_mendq_s_own_goes_first(queues: Dlq) -> None:
    ids = {queues.write()}
    queues.course_in(Stage.SOAK)
    error = queues.redrive("--all", "--yes", code=1)["error"]
    assert error["code"] == "redrive_running"
    assert "mendq rollback case-7" in error["message"]
    _nothing_changed(queues, ids)
    queues.course_in(Stage.HALTED)
    assert queues.redrive("--all", "--yes")["moved"] == 1


@pytest.mark.parametrize("what", ["redrive_running", "redrive_off", "move_task_running", "policy"])
def test_what_came_between_while_somebody_thought_forbids_it_still(
    queues: Dlq, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    ids = {queues.write({"n": number}) for number in range(12)}
    aws = queues.operator.aws

    def meanwhile(*_: object, **__: object) -> None:
        if what == "redrive_running":
            queues.course_in(Stage.SOAK)
        elif what == "redrive_off":
            aws.tag(queues.source, **{"mendq:redrive": "off"})
        elif what == "move_task_running":
            queues.tasks.append({"Status": "RUNNING", "StartedTimestamp": 1})
        else:
            policy = Redrive(aws.queue("new-dlq", tag=None), 3).text
            url = aws.url(queues.source)
            queues.sqs.set_queue_attributes(QueueUrl=url, Attributes={"RedrivePolicy": policy})

    monkeypatch.setattr(command, "confirm", meanwhile)
    error = queues.redrive("--all", code=1)["error"]
    assert error["code"] == ("queues_changed" if what == "policy" else what)
    _nothing_changed(queues, ids)


def test_messages_whose_sources_grew_meanwhile_stay(
    queues: Dlq, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What somebody sent there by hand was to go along only while there was no other source."""
    ids = {queues.write(died_in="nobody")}
    aws = queues.operator.aws
    policy = aws.attributes(queues.source)["RedrivePolicy"]
    monkeypatch.setattr(
        command, "confirm", lambda *_, **__: aws.queue("refunds", tag=None, RedrivePolicy=policy)
    )
    assert queues.redrive("--all", code=1)["error"]["code"] == "queues_changed"
    _nothing_changed(queues, ids)


def test_mendq_s_own_redrive_waits_for_a_person_s(
    queues: Dlq, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues.write("one")
    case_store, put = _case_store(queues), MessageMover.put
    found: list[object] = []

    def watched(mover: MessageMover, messages: Any, to: Any) -> Any:
        found.append(case_store.claim(queues.messages, "a tick", datetime.now(UTC)))
        return put(mover, messages, to)

    monkeypatch.setattr(MessageMover, "put", watched)
    assert queues.redrive("--all", "--yes")["moved"] == 1
    assert found == [None], "it was held while messages went"
    assert case_store.claim(queues.messages, "a tick", datetime.now(UTC)), "and is free at once"


def test_nobody_redrives_beside_another_run(queues: Dlq) -> None:
    ids = {queues.write()}
    assert _case_store(queues).claim(queues.messages, "a tick", datetime.now(UTC))
    assert queues.redrive("--all", "--dry-run")["matched"] == 1
    error = queues.redrive("--all", "--yes", code=1)["error"]
    assert error["code"] == "redrive_running"
    assert "another run is at work" in error["message"]
    _nothing_changed(queues, ids)


def test_a_run_that_lost_its_hold_ends_and_says_why(
    queues: Dlq, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(25):
        queues.write(f"message {number}")
    monkeypatch.setattr(hold, "BEAT_SECONDS", 0.01)
    put, ends, stops = MessageMover.put, hold.Hold.ends, list[Event]()

    def noted(held: hold.Hold, stop: Event) -> None:
        stops.append(stop)
        ends(held, stop)

    def stolen(mover: MessageMover, messages: Any, to: Any) -> Any:
        yield from put(mover, messages, to)
        later = datetime.now(UTC) + timedelta(seconds=CLAIM_SECONDS + 1)
        assert _case_store(queues).claim(queues.messages, "a tick", later)
        assert stops[0].wait(10), "the next beat finds that out"

    monkeypatch.setattr(hold.Hold, "ends", noted)
    monkeypatch.setattr(MessageMover, "put", stolen)
    result = queues.operator.mendq("redrive", "orders", "--all", "--yes")
    said = " ".join(result.output.split())
    assert result.exit_code == 1
    assert "10 messages sent back, 0 failed, 15 left" in said
    assert "another run is at work on the messages of orders-dlq" in said
    assert len(queues.ids(queues.messages)) == 15, "nothing is hidden"


def test_an_account_without_mendq_needs_no_hold(
    queues: Dlq, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_stack(*_: object) -> str:
        raise Stopped("no stack", Exit.NOT_FOUND)

    monkeypatch.setattr(type(queues.operator.account), "output", no_stack)
    queues.write()
    assert queues.redrive("--all", "--yes")["moved"] == 1


@pytest.mark.parametrize(
    ("retained", "says"),
    [
        ("1209600", "the oldest expires in 13 d 23 h"),
        ("172800", "the oldest expires in 1 d 23 h"),
        ("3600", "the oldest expires in 59 min"),
    ],
)
def test_when_the_first_expires_is_said(queues: Dlq, retained: str, says: str) -> None:
    queues.write()
    queues.sqs.set_queue_attributes(
        QueueUrl=queues.operator.aws.url(queues.messages),
        Attributes={"MessageRetentionPeriod": retained},
    )
    shown = queues.operator.mendq("redrive", "orders", "--all", "--dry-run").output
    assert says in shown


def test_a_message_that_was_sent_before_is_said_and_counted_on(queues: Dlq) -> None:
    queues.write(**{REDRIVE_COUNT: "2"})
    result = queues.operator.mendq("redrive", "orders", "--all", "--yes")
    assert "were sent back before (mendq.redrive)" in " ".join(result.output.split())
    assert [each.redrive_count for each in queues.seen(queues.source)] == [3]


def test_a_message_that_dies_again_meanwhile_is_not_sent_twice(
    queues: Dlq, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each that goes back is a DLQ message again before the next batch, under its new id."""
    for number in range(25):
        queues.write(f"poison {number}")
    put = MessageMover.put

    def poisoned(mover: MessageMover, messages: Any, to: Any) -> Any:
        for moved in put(mover, messages, to):
            for each in queues.seen(queues.source):
                queues.write(
                    each.body, queue=queues.messages, **{REDRIVE_COUNT: str(each.redrive_count)}
                )
            queues.taken(queues.source)
            yield moved

    monkeypatch.setattr(MessageMover, "put", poisoned)
    assert queues.redrive("--all", "--yes")["moved"] == 25
    assert {each.redrive_count for each in queues.seen(queues.messages)} == {1}


def test_what_came_while_somebody_thought_is_not_sent(
    queues: Dlq, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues.write("asked for")
    monkeypatch.setattr(command, "confirm", lambda *_, **__: queues.write("came since"))
    done = queues.redrive("--all")
    assert (done["matched"], done["moved"]) == (1, 1)
    assert queues.bodies(queues.source) == ["asked for"]
    assert queues.bodies(queues.messages) == ["came since"]


def test_what_was_gone_when_somebody_said_yes_is_neither_moved_nor_failed(
    queues: Dlq, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues.write("gone")
    monkeypatch.setattr(command, "confirm", lambda *_, **__: queues.taken(queues.messages))
    done = queues.redrive("--all")
    assert (done["matched"], done["moved"], done["failed"]) == (1, 0, 0)


def test_a_message_that_the_source_does_not_take_stays_and_is_said(operator: Operator) -> None:
    queues = dlq(operator, MaximumMessageSize="1024")
    queues.write("small")
    queues.write("x" * 2_000)
    done = queues.redrive("--all", "--yes", code=1)
    assert done == {"matched": 2, "moved": 1, "left": 0, "failed": 1}
    assert queues.bodies(queues.messages) == ["x" * 2_000]
    result = operator.mendq("redrive", "orders", "--all", "--yes")
    assert "too_long" in result.output


def test_no_body_and_no_part_of_one_is_shown(queues: Dlq) -> None:
    sample = queues.write({"secret": "s3cret"}, type="order")
    queues.write({"secret": "s3cret"}, type="re\x1bfund\n")
    result = queues.operator.mendq(
        "redrive",
        "orders",
        "--where",
        "body.secret == 's3cret' && exists(attributes.type)",
        "--dry-run",
    )
    assert "s3cret" not in result.output
    assert "\x1b" not in result.output
    assert "1  attributes.type order" in result.output
    assert sample in result.output


def test_what_is_missing_is_counted(queues: Dlq) -> None:
    _mixed(queues)
    shown = queues.operator.mendq("redrive", "orders", "--where", ORDERS, "--dry-run").output
    assert "attributes.type is missing in 1 of 8 messages" in shown
    assert "body.error.code is missing in 1 of 8 messages" in shown


def test_a_fifo_queue_is_seen_to_its_end_in_order(operator: Operator) -> None:
    queues = dlq(operator, fifo=True)
    for number in range(36):
        queues.write({"n": number}, group=f"g{number % 3}")
    done = queues.redrive("--where", "body.n >= `6`", "--yes")
    assert (done["moved"], done["left"], done["failed"]) == (30, 6, 0)
    assert done["matched"] == 30
    arrived = [json.loads(each.body)["n"] for each in queues.taken(queues.source)]
    for group in range(3):
        of_group = [each for each in arrived if each % 3 == group]
        assert of_group == sorted(of_group)
        assert len(of_group) == 10


def test_what_a_fifo_queue_hides_is_left_too(operator: Operator) -> None:
    queues = dlq(operator, fifo=True)
    for number in range(24):
        queues.write({"n": number})
    done = queues.redrive("--where", "body.n == `23`", "--dry-run")
    assert (done["moved"], done["left"], done["failed"]) == (0, 24, 0)
    done = queues.redrive("--where", "body.n == `3`", "--yes")
    assert done == {"matched": 1, "moved": 1, "left": 23, "failed": 0}


def test_a_fifo_queue_s_order_is_warned_of_with_the_numbers(operator: Operator) -> None:
    queues = dlq(operator, fifo=True)
    for number in range(4):
        queues.write(f"message {number}", group=f"g{number % 2}")
    queues.write("newer", queue=queues.source)
    shown = " ".join(operator.mendq("redrive", "orders.fifo", "--all", "--dry-run").output.split())
    assert "4 messages of 2 groups go behind the 1 that wait in orders.fifo" in shown
    assert "no more of a group than its first ten messages" in shown


@pytest.mark.parametrize(
    ("code", "message", "says"),
    [
        ("KMS.AccessDeniedException", "kms", "kms:GenerateDataKey on alias/orders (orders)"),
        ("AccessDenied", "not allowed", "SendMessage on orders"),
    ],
)
def test_the_grant_that_is_missing_is_named(
    operator: Operator, code: str, message: str, says: str
) -> None:
    queues = dlq(operator, KmsMasterKeyId="alias/orders")
    ids = {queues.write()}
    queues.refused["SendMessageBatch"] = (code, message)
    result = operator.mendq("redrive", "orders", "--all", "--yes")
    assert result.exit_code == 1
    assert says in " ".join(result.output.split())
    _nothing_changed(queues, ids)


def test_a_queue_that_only_a_network_may_read_says_where_to_go(queues: Dlq) -> None:
    ids = {queues.write()}
    policy = '{"Statement": [{"Condition": {"StringNotEquals": {"aws:SourceVpce": "vpce-1"}}}]}'
    url = queues.operator.aws.url(queues.messages)
    queues.sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
    who = (
        "User: arn:aws:iam::123456789012:user/ada is not authorized to perform: sqs:receivemessage"
    )
    refusal = (
        f"{who} on resource: {queues.messages} with an explicit deny in a resource-based policy"
    )
    queues.refused["ReceiveMessage"] = ("AccessDenied", refusal)
    error = queues.redrive("--all", "--yes", code=1)["error"]
    assert error["code"] == "AccessDenied"
    assert "run this command there" in error["message"]
    queues.refused.clear()
    _nothing_changed(queues, ids)


def test_at_a_rate_that_lets_them_expire_nothing_goes(queues: Dlq) -> None:
    for number in range(20):
        queues.write({"n": number})
    ids = queues.ids(queues.messages)
    slow = ("--all", "--rate", "0.001/s", "--yes")
    queues.sqs.set_queue_attributes(
        QueueUrl=queues.operator.aws.url(queues.messages),
        Attributes={"MessageRetentionPeriod": "3600"},
    )
    error = queues.redrive(*slow, code=1)["error"]
    assert error["code"] == "redrive_too_slow"
    assert "20 messages at 0.001 a second take 5 h 33 min" in error["message"]
    _nothing_changed(queues, ids)
    assert queues.redrive(*slow, "--limit", "1")["moved"] == 1


def test_sqs_s_own_command_is_printed_for_all_and_not_for_some(queues: Dlq) -> None:
    queues.write({"n": 1})
    native = f"aws sqs start-message-move-task --source-arn {queues.messages}"
    for chosen, is_printed in ((("--all",), True), (("--where", "body.n == `1`"), False)):
        shown = queues.operator.mendq("redrive", "orders", *chosen, "--dry-run").output
        assert (native in " ".join(shown.split())) is is_printed
