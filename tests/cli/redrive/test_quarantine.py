"""Test `mendq quarantine`: list, peek, return and drop."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from stat import S_ISREG
from typing import Any

import pytest
from botocore.exceptions import ClientError

from mendq.cli.exit_codes import CommandError
from mendq.cli.redrive import quarantine, work
from mendq.model.dlq import arn_of_quarantine
from mendq.redrive.messages import QUARANTINE_MARK_NAME
from mendq.redrive.progress import Stage
from tests.account.receivers import confirm_receiver, open_receivers
from tests.cli.builders import Operator
from tests.cli.redrive.builders import (
    OrdersQueues,
    make_died_in_attribute,
    make_orders_queues,
    make_quarantine_marks,
    read_redrive_command,
    send_in_the_past,
    set_creation,
    write_sealed,
)

ALL = ("--all", "--yes")


@pytest.fixture
def queues(operator: Operator) -> OrdersQueues:
    """`messages` is the quarantine of `source`."""
    made = make_orders_queues(operator)
    made.operator.aws.tag(made.source, mendq="observe")
    made.messages = operator.aws.queue("orders-quarantine", tag=None, VisibilityTimeout="600")
    assert made.messages == arn_of_quarantine(made.source)
    confirm_receiver(operator.aws, made.messages)
    return made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kept.jsonl"


def _write_quarantined(
    queues: OrdersQueues, body: object = "one", source: str = "", redrive_count: int = 1
) -> str:
    return write_sealed(queues, body, source=source, redrive_count=redrive_count, type="order")


def _run_quarantine(queues: OrdersQueues, word: str, *arguments: str, code: int = 0) -> Any:
    return queues.operator.run_json("quarantine", word, "orders", *arguments, code=code)


def _drop(queues: OrdersQueues, path: Path, code: int = 0) -> Any:
    return _run_quarantine(queues, "drop", *ALL, "--file", str(path), code=code)


def test_quarantine_list_leaves_out_a_quarantine_without_a_managed_source(
    operator: Operator,
) -> None:
    operator.aws.queue("strangers-quarantine", tag=None)
    assert operator.run_json("quarantine", "list") == []


def test_quarantine_list_begins_with_the_quarantine_whose_messages_expire_first(
    operator: Operator,
) -> None:
    aws = operator.aws
    metric = "ApproximateAgeOfOldestMessage"
    for name, hours in (("a", 1), ("b", 95), ("c", 0)):
        aws.queue(name, tag="observe")
        url = aws.url(aws.queue(f"{name}-quarantine", tag=None))
        aws.clients.sqs.send_message(QueueUrl=url, MessageBody="one")
        if hours:
            seconds = hours * 3_600 + 60
            at = aws.now - timedelta(minutes=2)
            operator.put_sqs_metric(f"{name}-quarantine", metric, seconds, at)
    document = operator.run_json("quarantine", "list")
    assert [quarantine["source_arn"][-2:] for quarantine in document] == [":b", ":a", ":c"]
    assert [quarantine["messages"] for quarantine in document] == [1, 1, 1]
    assert (document[0]["expires_by"] < document[1]["expires_by"], document[2]["expires_by"]) == (
        True,
        None,
    )
    lines = operator.run("quarantine", "list").output.splitlines()
    assert lines[1].split()[:4] == ["1", "over", "3", "d"]
    assert "within 55 min" in lines[1] or "within 56 min" in lines[1]
    assert "not known" in lines[3]


def test_quarantine_list_names_the_command_that_confirms_an_unconfirmed_quarantine(
    queues: OrdersQueues,
) -> None:
    assert _run_list(queues) == [None]
    assert "mendq confirm" not in queues.read_output("quarantine", "list")
    queues.account.tag(queues.messages, team="others")
    assert "its tags changed" in _run_list(queues)[0]
    open_receivers(queues.account).remove(queues.messages)
    assert "nothing records that Mendq made it" in _run_list(queues)[0]
    output = queues.read_output("quarantine", "list")
    assert "Mendq sends nothing to orders-quarantine: nothing records" in output
    assert "mendq confirm orders-quarantine --region us-east-1" in output


def _run_list(queues: OrdersQueues) -> list[Any]:
    document = queues.operator.run_json("quarantine", "list")
    return [quarantine["objection"] for quarantine in document]


def test_quarantine_peek_shows_the_reason_of_each_message_and_no_body(queues: OrdersQueues) -> None:
    message_id = _write_quarantined(queues, {"card": "4111"})
    (message,) = _run_quarantine(queues, "peek")
    expected = {
        "message_id": message_id,
        "why": "came back",
        "redrive_count": 1,
        "case_id": "case-7",
    }
    assert expected.items() <= message.items()
    assert message["source_arn"] == queues.source
    assert "body" not in message
    output = queues.operator.run("quarantine", "peek", "orders-quarantine").output
    for says in ("came back", "quarantined at  2026-11-21T20:00:00", "type = order"):
        assert says in output
    assert "4111" not in output
    assert queues.read_ids(queues.messages) == {message_id}, "it is visible again"


def test_quarantine_peek_with_bodies_prints_bodies_with_escape_codes_made_visible(
    queues: OrdersQueues,
) -> None:
    queues.write("4111 \x1b[31m\n next", **make_quarantine_marks(queues.source))
    (message,) = _run_quarantine(queues, "peek", "--bodies")
    assert message["body"] == "4111 \x1b[31m\n next"
    output = queues.operator.run("quarantine", "peek", "orders", "--bodies").output
    assert "4111 \\x1b[31m next" in output


@pytest.fixture
def small_peek(monkeypatch: pytest.MonkeyPatch) -> None:
    """`peek` keeps 40,000 bytes of whole messages, so that a test need not write megabytes."""
    monkeypatch.setattr(quarantine, "MOST_WHOLE_BYTES", 40_000)


@pytest.mark.usefixtures("small_peek")
def test_quarantine_peek_shows_messages_whole_up_to_a_size_and_says_what_it_cut(
    queues: OrdersQueues,
) -> None:
    text = "x" * 12_000
    for number in range(4):
        queues.write(f"{number} {text}", **make_quarantine_marks(queues.source))
    result = queues.operator.run("quarantine", "peek", "orders", "--bodies", "--json")
    messages = json.loads(result.stdout)
    (cut,) = (message for message in messages if "cut" in message)
    assert cut["cut"] == ["body"]
    assert (len(cut["body"]), cut["why"]) == (4_096, "came back")
    assert cut["bytes"] > len(text)
    assert sum(len(message["body"]) > len(text) for message in messages) == 3
    assert "1 message is shown in part" in " ".join(result.stderr.split())


@pytest.mark.usefixtures("small_peek")
def test_quarantine_peek_without_bodies_keeps_attributes_whole_beside_large_bodies(
    queues: OrdersQueues,
) -> None:
    marks = make_quarantine_marks(queues.source)
    for number in range(4):
        queues.write(f"{number} {'x' * 30_000}", note="y" * 9_000, **marks)
    messages = _run_quarantine(queues, "peek")
    assert [len(message["attributes"]["note"]["StringValue"]) for message in messages] == [
        9_000
    ] * 4
    assert not any("cut" in message for message in messages)


@pytest.mark.usefixtures("small_peek")
def test_quarantine_peek_cuts_long_attributes_and_keeps_the_mark_of_mendq(
    queues: OrdersQueues,
) -> None:
    reason = "came back " * 40
    mark = json.loads(make_quarantine_marks(queues.source)[QUARANTINE_MARK_NAME])
    marks = {QUARANTINE_MARK_NAME: json.dumps({**mark, "why": reason})}
    for number in range(4):
        queues.write("one", note=f"{number} {'y' * 12_000}", **marks)
    (cut,) = (message for message in _run_quarantine(queues, "peek") if "cut" in message)
    assert (cut["cut"], cut["why"]) == (["attributes.note"], reason)
    assert len(cut["attributes"]["note"]["StringValue"]) == 256


def test_quarantine_peek_says_that_the_reason_of_a_message_with_a_broken_mark_is_not_known(
    queues: OrdersQueues,
) -> None:
    queues.write("one", **make_died_in_attribute("nobody"), **{QUARANTINE_MARK_NAME: "{}"})
    (message,) = _run_quarantine(queues, "peek")
    assert message["why"] is None
    assert "not known" in queues.operator.run("quarantine", "peek", "orders").output


def test_quarantine_peek_counts_messages_that_another_consumer_holds(
    queues: OrdersQueues,
) -> None:
    for number in range(5):
        _write_quarantined(queues, {"n": number})
    peek = ("quarantine", "peek", "orders", "--limit", "1")
    assert "another consumer" not in queues.read_output(*peek)
    url = queues.account.url(queues.messages)
    queues.account.clients.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=3)
    expected = "1 of about 2 messages in orders-quarantine, and 3 more held by another consumer"
    assert expected in queues.read_output(*peek)


def test_quarantine_peek_without_rights_on_the_key_names_kms_decrypt(queues: OrdersQueues) -> None:
    queues.refuse("ReceiveMessage", "KMS.AccessDeniedException", "no")
    assert "kms:Decrypt" in _run_quarantine(queues, "peek", code=1)["error"]["message"]


def test_quarantine_peek_and_return_say_that_the_quarantine_queue_does_not_exist_yet(
    queues: OrdersQueues,
) -> None:
    queues.account.queue("plain", tag=None)
    for named in ("nope-quarantine", "plain"):
        says = f"there is no queue {named.removesuffix('-quarantine')}-quarantine: it is made when"
        for words in (("peek", named), ("return", named, *ALL)):
            assert (
                says in queues.operator.run_json("quarantine", *words, code=4)["error"]["message"]
            )


@pytest.mark.parametrize(
    "words", [("redrive",), ("quarantine", "return"), ("quarantine", "drop")], ids=" ".join
)
def test_redrive_or_quarantine_command_without_yes_or_a_terminal_receives_no_message(
    queues: OrdersQueues, words: tuple[str, ...]
) -> None:
    ids = {_write_quarantined(queues)}
    queues.refuse("ReceiveMessage", "AccessDenied", "nobody is to look")
    error = queues.operator.run_json(*words, "orders", "--all", code=2)["error"]
    assert "--yes confirms" in error["message"]
    queues.refusals.clear()
    assert queues.read_ids(queues.messages) == ids


def test_quarantine_return_or_drop_with_dry_run_changes_nothing_and_writes_no_file(
    queues: OrdersQueues, path: Path
) -> None:
    ids = {_write_quarantined(queues)}
    assert _run_quarantine(queues, "return", *ALL, "--dry-run")["moved"] == 0
    done = _run_quarantine(queues, "drop", *ALL, "--dry-run", "--file", str(path))
    assert done == {"matched": 1, "dropped": 0, "left": 1, "failed": 0}
    assert queues.read_ids(queues.messages) == ids
    assert not path.exists()


def test_quarantine_drop_of_a_fifo_queue_says_that_more_may_stand_behind_the_first_ten(
    operator: Operator,
) -> None:
    fifo_queues = make_orders_queues(operator, fifo=True)
    fifo_queues.messages = operator.aws.queue("orders-quarantine.fifo", tag=None)
    confirm_receiver(operator.aws, fifo_queues.messages)
    for group in ("g1", "g2"):
        fifo_queues.write("one", group=group, **make_quarantine_marks(fifo_queues.source))
    drop = ("quarantine", "drop", "orders.fifo", "--all", "--dry-run")
    output = fifo_queues.read_output(*drop)
    assert "they are 2 messages of 2 groups, and more may stand behind a group's first ten" in (
        output
    )


def test_quarantine_return_removes_the_mark_counts_the_redrive_and_skips_other_sources(
    queues: OrdersQueues,
) -> None:
    _write_quarantined(queues, {"n": 1}, redrive_count=2)
    _write_quarantined(queues, {"n": 2})
    _write_quarantined(queues, {"n": 1}, source=queues.account.queue("refunds", tag=None))
    done = _run_quarantine(queues, "return", "--where", "body.n == `1`", "--yes", "--rate", "9/s")
    assert done == {"matched": 1, "moved": 1, "left": 2, "failed": 0, "unsealed": 0}
    (arrived,) = queues.read_messages(queues.source)
    assert QUARANTINE_MARK_NAME not in arrived.attributes
    assert arrived.redrive_count == 3


def test_quarantine_return_is_refused_if_a_redrive_began_during_the_question(
    queues: OrdersQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message that fails again would be taken for one of that redrive."""
    ids = {_write_quarantined(queues)}
    monkeypatch.setattr(work, "confirm", lambda *_, **__: queues.set_redrive_stage(Stage.SOAK))
    error = _run_quarantine(queues, "return", "--all", code=1)["error"]
    assert error["code"] == "redrive_running"
    assert queues.read_messages(queues.source) == []
    assert queues.read_ids(queues.messages) == ids


@pytest.mark.parametrize("word", ["return", "drop"])
def test_quarantine_return_and_drop_leave_a_queue_alone_that_nobody_confirmed(
    queues: OrdersQueues, path: Path, word: str
) -> None:
    """Another principal may have made it, with messages that look like quarantined ones."""
    ids = {_write_quarantined(queues)}
    open_receivers(queues.account).remove(queues.messages)
    file = ("--file", str(path)) if word == "drop" else ()
    error = _run_quarantine(queues, word, *ALL, *file, code=1)["error"]
    assert error["code"] == "receiver_unconfirmed"
    assert "`mendq confirm orders-quarantine --region us-east-1`" in error["message"]
    assert queues.read_messages(queues.source) == []
    assert queues.read_ids(queues.messages) == ids
    assert not path.exists()


def test_quarantine_peek_warns_about_a_queue_that_nobody_confirmed(queues: OrdersQueues) -> None:
    _write_quarantined(queues)
    peek = ("quarantine", "peek", "orders")
    assert "may be another person's queue" not in queues.read_output(*peek)
    open_receivers(queues.account).remove(queues.messages)
    output = queues.read_output(*peek)
    assert "orders-quarantine may be another person's queue: nothing records" in output
    assert "came back" in output


OTHER_TEAM_POLICY = json.dumps(
    {
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"AWS": "arn:aws:iam::123456789012:role/other-team"},
                "Action": "sqs:SendMessage",
                "Resource": "*",
            }
        ]
    }
)


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        (lambda queues: queues.configure(queues.messages, Policy=OTHER_TEAM_POLICY), "policy"),
        (lambda queues: queues.account.tag(queues.messages, team="others"), "tags"),
    ],
)
def test_quarantine_return_sends_nothing_out_of_a_quarantine_that_changed_since_its_record(
    queues: OrdersQueues, change: Callable[[OrdersQueues], object], changed: str
) -> None:
    ids = {_write_quarantined(queues)}
    change(queues)
    error = _run_quarantine(queues, "return", *ALL, code=1)["error"]
    assert error["code"] == "receiver_unconfirmed"
    assert f"its {changed} changed since" in error["message"]
    assert "`mendq confirm orders-quarantine --region us-east-1`" in error["message"]
    assert queues.read_messages(queues.source) == []
    assert queues.read_ids(queues.messages) == ids
    confirm_receiver(queues.account, queues.messages)
    assert _run_quarantine(queues, "return", *ALL)["moved"] == 1


def test_quarantine_drop_works_on_a_quarantine_whose_policy_changed(
    queues: OrdersQueues, path: Path
) -> None:
    """What is dropped goes to no queue, and the file keeps it."""
    _write_quarantined(queues)
    queues.configure(queues.messages, Policy=OTHER_TEAM_POLICY)
    assert _drop(queues, path)["dropped"] == 1


def test_quarantine_return_leaves_messages_that_bear_no_mark_of_mendq(
    queues: OrdersQueues,
) -> None:
    _write_quarantined(queues, "ours")
    queues.write("theirs", **make_died_in_attribute("nobody"))
    done = _run_quarantine(queues, "return", *ALL)
    assert done == {"matched": 1, "moved": 1, "left": 1, "failed": 0, "unsealed": 1}
    assert queues.read_bodies(queues.source) == {"ours"}
    assert queues.read_bodies(queues.messages) == {"theirs"}


def _copy_attributes(queues: OrdersQueues, quarantine: str) -> dict[str, str]:
    """Return the attributes of the sealed message in a quarantine, as another reader sees them."""
    (message,) = queues.read_messages(quarantine)
    return {name: str(attribute.value) for name, attribute in message.attributes.items()}


def _write_mark_without_seal(queues: OrdersQueues) -> str:
    return queues.write("theirs", **make_quarantine_marks(queues.source))


def _write_unreadable_mark(queues: OrdersQueues) -> str:
    return queues.write("theirs", **{**make_died_in_attribute("nobody"), QUARANTINE_MARK_NAME: "1"})


def _copy_mark_to_another_body(queues: OrdersQueues) -> str:
    copied = _copy_attributes(queues, queues.messages)
    return queues.write("theirs", **{**copied, **make_died_in_attribute("nobody")})


def _copy_mark_and_change_an_attribute(queues: OrdersQueues) -> str:
    copied = _copy_attributes(queues, queues.messages)
    changed = {**copied, **make_died_in_attribute("nobody"), "type": "refund"}
    return queues.write("ours", **changed)


def _copy_mark_of_another_quarantine(queues: OrdersQueues) -> str:
    """Let Mendq seal a message for this source in a quarantine that the forger can read."""
    other = queues.account.queue("theirs-quarantine", tag=None, VisibilityTimeout="0")
    write_sealed(queues, "theirs", quarantine=other)
    copied = _copy_attributes(queues, other)
    return queues.write("theirs", **{**copied, **make_died_in_attribute("nobody")})


@pytest.mark.parametrize(
    "forge",
    [
        _write_mark_without_seal,
        _write_unreadable_mark,
        _copy_mark_to_another_body,
        _copy_mark_and_change_an_attribute,
        _copy_mark_of_another_quarantine,
    ],
)
def test_quarantine_return_leaves_a_message_with_a_forged_mark(
    queues: OrdersQueues, forge: Callable[[OrdersQueues], str]
) -> None:
    _write_quarantined(queues, "ours")
    theirs = forge(queues)
    done = _run_quarantine(queues, "return", *ALL)
    assert (done["moved"], done["unsealed"]) == (1, 1)
    assert queues.read_ids(queues.messages) == {theirs}


def test_quarantine_return_says_how_many_messages_have_no_seal_and_what_to_do(
    queues: OrdersQueues,
) -> None:
    _write_quarantined(queues, "ours")
    for number in range(2):
        queues.write(f"theirs {number}", **make_quarantine_marks(queues.source))
    output = queues.read_output("quarantine", "return", "orders", *ALL)
    for says in (
        "2 messages have no valid seal of Mendq: anyone who may send to orders-quarantine can",
        "`mendq quarantine peek orders-quarantine --region us-east-1`; --unsealed sends those too",
        "0 failed, 2 left in orders-quarantine, 2 of them without a seal of Mendq",
    ):
        assert says in output


def test_quarantine_peek_says_that_a_message_has_a_mark_without_mendqs_seal(
    queues: OrdersQueues,
) -> None:
    queues.write("theirs", **make_quarantine_marks(queues.source))
    (peeked,) = _run_quarantine(queues, "peek")
    assert peeked["is_sealed"] is False
    output = queues.read_output("quarantine", "peek", "orders")
    assert "its mark has no seal of Mendq: anyone who may send here can have written it" in output


def test_quarantine_return_unsealed_sends_messages_that_a_version_before_the_seal_marked(
    queues: OrdersQueues,
) -> None:
    queues.write("old", **make_quarantine_marks(queues.source, 2))
    refunds = queues.account.queue("refunds", tag=None)
    queues.write("of refunds", **make_quarantine_marks(refunds))
    assert _run_quarantine(queues, "return", *ALL)["moved"] == 0
    unsealed = ("quarantine", "return", "orders", "--unsealed")
    assert "1 of them have no valid seal of Mendq" in queues.read_output(
        *unsealed, "--all", "--dry-run"
    )
    done = queues.operator.run_json(*unsealed, *ALL)
    assert done == {"matched": 1, "moved": 1, "left": 1, "failed": 0, "unsealed": 0}
    (arrived,) = queues.read_messages(queues.source)
    assert (arrived.body, arrived.redrive_count) == ("old", 3)


DROP_TYPED_ORDERS = ("--where", "body.n >= `3` && attributes.type == 'order'")


@pytest.fixture
def queues_with_13_quarantined(queues: OrdersQueues) -> OrdersQueues:
    """The quarantine has 12 messages with a type, and one that a person sent without a type."""
    for number in range(12):
        _write_quarantined(queues, {"n": number, "text": "é\u2028"})
    queues.write({"n": 12}, **make_died_in_attribute("nobody"))
    return queues


def test_quarantine_drop_dry_run_says_what_is_deleted_and_that_a_file_keeps_it(
    queues_with_13_quarantined: OrdersQueues,
) -> None:
    drop = ("quarantine", "drop", "orders", *DROP_TYPED_ORDERS, "--dry-run")
    output = queues_with_13_quarantined.read_output(*drop)
    for says in (
        "orders-quarantine -> deleted",
        "13 messages seen, 9 match",
        "9 attributes.type order",
        "attributes.type is missing in 1 of 13 messages",
        "is in the file alone",
    ):
        assert says in output
    assert "new message id" not in output


def test_quarantine_drop_writes_the_dropped_messages_to_a_private_file(
    queues_with_13_quarantined: OrdersQueues, path: Path
) -> None:
    queues = queues_with_13_quarantined
    done = _run_quarantine(queues, "drop", *DROP_TYPED_ORDERS, "--yes", "--file", str(path))
    assert done == {"matched": 9, "dropped": 9, "left": 4, "failed": 0, "file": str(path)}
    bodies = [json.loads(json.loads(line)["body"]) for line in path.read_text().splitlines()]
    assert sorted(body["n"] for body in bodies) == list(range(3, 12))
    assert {body["text"] for body in bodies} == {"é\u2028"}
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(queues.read_messages(queues.messages)) == 4


@pytest.mark.parametrize(
    ("limit", "says"),
    [
        ((), "Write 10 messages, and what matches behind them now (at most 12 in all), to"),
        (
            ("--limit", "11"),
            "Write 10 messages, and what matches behind them now (at most 11 in all",
        ),
        (("--limit", "3"), "Write 3 messages to"),
    ],
)
def test_question_of_drop_on_a_fifo_quarantine_says_how_many_hidden_messages_go_too(
    operator: Operator,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    limit: tuple[str, ...],
    says: str,
) -> None:
    queues = make_orders_queues(operator, fifo=True)
    operator.aws.tag(queues.source, mendq="observe")
    queues.messages = operator.aws.queue(
        "orders-quarantine.fifo", tag=None, VisibilityTimeout="600"
    )
    confirm_receiver(operator.aws, queues.messages)
    # SQS shows the first ten messages of a group.
    for number in range(12):
        _write_quarantined(queues, f"{number}")
    questions = list[str]()

    def decline(question: str, **_: object) -> None:
        questions.append(question)
        raise CommandError("declined", error_code="declined")

    monkeypatch.setattr(work, "confirm", decline)
    drop = ("quarantine", "drop", "orders.fifo", "--all", *limit, "--file", str(path))
    queues.operator.run_json(*drop, code=1)
    (question,) = questions
    assert question.startswith(says)
    assert queues.count_visible_messages(queues.messages) == 12
    assert not path.exists()


def test_quarantine_drop_of_a_fifo_queue_leaves_messages_that_came_during_the_question(
    operator: Operator, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queues = make_orders_queues(operator, fifo=True)
    queues.messages = operator.aws.queue("orders-quarantine.fifo", tag=None)
    confirm_receiver(operator.aws, queues.messages)
    with send_in_the_past(queues, seconds=60):
        # SQS shows the first ten messages of a group.
        for number in range(12):
            _write_quarantined(queues, f"{number}")
    monkeypatch.setattr(work, "confirm", lambda *_, **__: _write_quarantined(queues, "late"))
    done = operator.run_json("quarantine", "drop", "orders.fifo", "--all", "--file", str(path))
    assert (done["matched"], done["dropped"]) == (12, 12)
    assert len(path.read_text().splitlines()) == 12
    assert queues.read_bodies(queues.messages) == {"late"}


def test_quarantine_return_leaves_messages_older_than_the_source(queues: OrdersQueues) -> None:
    set_creation(queues.source, queues.account.now - timedelta(hours=1))
    with send_in_the_past(queues, seconds=7_200):
        _write_quarantined(queues, "older")
    _write_quarantined(queues, "younger")
    done = _run_quarantine(queues, "return", *ALL)
    assert (done["moved"], done["staying_older"]) == (1, 1)
    assert queues.read_bodies(queues.source) == {"younger"}
    assert queues.read_bodies(queues.messages) == {"older"}


def test_quarantine_return_unsealed_prints_a_command_for_older_messages_that_sends_unsealed_ones(
    queues: OrdersQueues,
) -> None:
    set_creation(queues.source, queues.account.now - timedelta(hours=1))
    with send_in_the_past(queues, seconds=7_200):
        queues.write("unsealed", **make_quarantine_marks(queues.source))
    arguments = ("quarantine", "return", "orders", "--all", "--unsealed", "--dry-run")
    output = queues.read_output(*arguments)
    assert queues.operator.run_json(*read_redrive_command(output), "--yes")["moved"] == 1
    assert queues.read_bodies(queues.source) == {"unsealed"}


def test_quarantine_drop_takes_messages_older_than_the_source(
    queues: OrdersQueues, path: Path
) -> None:
    with send_in_the_past(queues, seconds=7_200):
        _write_quarantined(queues, "older")
    set_creation(queues.source, queues.account.now)
    assert _drop(queues, path)["dropped"] == 1


@pytest.mark.parametrize("is_link", [False, True])
def test_quarantine_drop_refuses_to_overwrite_an_existing_file_or_link(
    queues: OrdersQueues, path: Path, is_link: bool
) -> None:
    ids = {_write_quarantined(queues)}
    if is_link:
        path.symlink_to(path.parent / "nowhere")
    else:
        path.write_text("mine")
    output = queues.read_output("quarantine", "drop", "orders", *ALL, "--file", str(path), code=2)
    assert (
        "cannot be made: the file exists already and is not overwritten; --file names another"
        in output
    )
    assert is_link or path.read_text() == "mine"
    assert queues.read_ids(queues.messages) == ids


@contextmanager
def _limit_file_size(most_bytes: int) -> Iterator[None]:
    """Let no file grow beyond `most_bytes`, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_quarantine_drop_on_a_full_disk_deletes_only_the_messages_that_were_written(
    queues: OrdersQueues, path: Path
) -> None:
    ids = {_write_quarantined(queues, {"n": n, "text": "x" * 3_000}) for n in range(40)}
    with _limit_file_size(85_000):
        done = _drop(queues, path, code=1)
    assert done == {"matched": 40, "dropped": 20, "left": 20, "failed": 0, "file": str(path)}
    written = {json.loads(line)["message_id"] for line in path.read_text().splitlines()}
    left = queues.read_ids(queues.messages)
    assert (len(left), written | left, written & left) == (20, ids, set())


def _break_system_call(
    monkeypatch: pytest.MonkeyPatch, name: str, *, of_file: bool = True
) -> list[int]:
    """Let a system call fail for files, or for folders. Return the list of failed handles."""
    broken: list[int] = []
    real = getattr(os, name)

    def fail(handle: int, *more: Any) -> Any:
        if S_ISREG(os.fstat(handle).st_mode) is of_file:
            broken.append(handle)
            raise OSError(5, "Input/output error")
        return real(handle, *more)

    monkeypatch.setattr(os, name, fail)
    return broken


@pytest.mark.parametrize("broken_calls", [("fsync",), ("fsync", "ftruncate", "close")])
def test_quarantine_drop_deletes_nothing_if_the_file_cannot_be_synced_to_disk(
    queues: OrdersQueues,
    path: Path,
    broken_calls: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not even if the half-written file can neither be cut nor closed."""
    ids = {_write_quarantined(queues, "one"), _write_quarantined(queues, "two")}
    broken = [_break_system_call(monkeypatch, call) for call in broken_calls]
    done = _drop(queues, path, code=1)
    assert all(broken)
    assert (done["dropped"], done["failed"]) == (0, 0)
    assert queues.read_ids(queues.messages) == ids
    monkeypatch.undo()
    if "close" in broken_calls:
        os.close(broken[-1][0])


def test_quarantine_drop_deletes_nothing_and_leaves_no_file_if_its_folder_cannot_be_synced(
    queues: OrdersQueues, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = {_write_quarantined(queues, "one")}
    with monkeypatch.context() as broken_disk:
        broken = _break_system_call(broken_disk, "fsync", of_file=False)
        output = queues.read_output(
            "quarantine", "drop", "orders", *ALL, "--file", str(path), code=2
        )
    assert broken
    assert "cannot be made: Input/output error" in output
    assert not path.exists()
    assert queues.read_ids(queues.messages) == ids
    assert _drop(queues, path)["dropped"] == 1, "the same name can be used again"


def _deny_seal_keys(queues: OrdersQueues) -> None:
    """Let AWS refuse to read the table of seal keys, as without the right to it."""

    def deny(params: dict[str, Any], **_: Any) -> None:
        if b'"seals"' in params["body"]:
            answer: Any = {"Error": {"Code": "AccessDeniedException", "Message": "no GetItem"}}
            raise ClientError(answer, "GetItem")

    events: Any = queues.operator.account.clients.dynamodb.meta.events
    events.register("before-call.dynamodb.GetItem", deny)


def test_quarantine_return_without_the_right_to_the_seal_key_moves_nothing_and_says_what_to_do(
    queues: OrdersQueues,
) -> None:
    _write_quarantined(queues)
    _deny_seal_keys(queues)
    result = queues.operator.run("quarantine", "return", "orders", "--all", "--yes")
    assert result.exit_code == 1
    output = " ".join(result.output.split())
    for part in ("AccessDeniedException", "dynamodb:GetItem", "SealTable", "--unsealed"):
        assert part in output
    assert queues.count_visible_messages(queues.messages) == 1
    assert queues.count_visible_messages(queues.source) == 0


def test_quarantine_return_with_unsealed_needs_no_right_to_the_seal_key(
    queues: OrdersQueues,
) -> None:
    _write_quarantined(queues)
    _deny_seal_keys(queues)
    assert _run_quarantine(queues, "return", "--all", "--yes", "--unsealed")["moved"] == 1
    assert queues.count_visible_messages(queues.source) == 1


def test_quarantine_peek_without_the_right_to_the_seal_key_shows_messages_and_warns(
    queues: OrdersQueues,
) -> None:
    _write_quarantined(queues)
    _deny_seal_keys(queues)
    result = queues.operator.run("quarantine", "peek", "orders", "--json")
    (message,) = json.loads(result.stdout)
    assert message["is_sealed"] is None
    warning = " ".join(result.output.split())
    assert "could not read the seal key" in warning
    assert "You need dynamodb:GetItem on the stack's table SealTable" in warning
