"""`mendq redrive` and `mendq quarantine` in a shell, on messages that really died."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local_account.process import LocalAccount
from local_account.where import ACCESS_KEY, REGION, SECRET_KEY
from mendq.model.queue import Redrive
from mendq.redrive.messages import QUARANTINED, REDRIVE_COUNT
from tests.local_account.queues import Queue, eventually, new_queue
from tests.local_account.test_tour import Shell

pytestmark = pytest.mark.account
HIDDEN_SECONDS = "600"
PICTURE = b"\x00\xff"
TRACE = {"DataType": "String", "StringValue": "Root=1-5759e988-bd862e3fe1be46a994272793"}


@pytest.fixture
def shell(account: LocalAccount) -> Shell:
    return Shell(account)


def _name(queue: Queue) -> str:
    return queue.arn.rpartition(":")[2]


def _pair(shell: Shell, *, fifo: bool = False, **tags: str) -> tuple[Queue, Queue]:
    """A source and its DLQ; whatever is received from the latter is hidden long."""
    messages = new_queue(shell.account, fifo=fifo, VisibilityTimeout=HIDDEN_SECONDS)
    return _source_of(shell, messages, **tags), messages


def _source_of(shell: Shell, messages: Queue, **tags: str) -> Queue:
    policy = Redrive(messages.arn, 1).text
    return new_queue(shell.account, fifo=messages.is_fifo, tags=tags, RedrivePolicy=policy)


def _die(source: Queue, messages: Queue, bodies: list[Any], groups: int = 3) -> None:
    """Each of these is received twice, which is once too often."""
    before = messages.count()
    for number, body in enumerate(bodies):
        fifo = {"MessageGroupId": f"g{number % groups}", "MessageDeduplicationId": f"{number}"}
        source.sqs.send_message(
            QueueUrl=source.url,
            MessageBody=json.dumps(body),
            MessageAttributes={
                "type": {"DataType": "String", "StringValue": ("order", "refund")[number % 2]},
                "picture": {"DataType": "Binary.png", "BinaryValue": PICTURE},
            },
            MessageSystemAttributes={"AWSTraceHeader": TRACE},
            **(fifo if source.is_fifo else {}),
        )

    def all_died() -> bool:
        source.sqs.receive_message(QueueUrl=source.url, MaxNumberOfMessages=10, VisibilityTimeout=0)
        return messages.count() == before + len(bodies)

    eventually(all_died)


def _arrived(queue: Queue) -> Iterator[dict[str, Any]]:
    """Each message that can be received, until none is left."""
    while True:
        answer = queue.sqs.receive_message(
            QueueUrl=queue.url,
            MaxNumberOfMessages=10,
            MessageAttributeNames=["All"],
            MessageSystemAttributeNames=["All"],
        )
        if not answer.get("Messages"):
            return
        for each in answer["Messages"]:
            yield each
            queue.delete(each["ReceiptHandle"])


def _numbers(queue: Queue) -> list[int]:
    return [json.loads(each["Body"])["n"] for each in _arrived(queue)]


def _none_is_held(queue: Queue) -> None:
    assert queue.count("ApproximateNumberOfMessagesNotVisible") == 0


def test_what_a_person_chooses_goes_back(shell: Shell) -> None:
    source, messages = _pair(shell)
    _die(
        source,
        messages,
        [{"n": each, "error": {"code": "XY"[each % 3 == 0]}} for each in range(24)],
    )
    asked = (
        "--where",
        "attributes.type == 'order' && age_seconds < `7200` && body.error.code == 'X'",
    )
    shown = shell.text("redrive", _name(source), *asked, "--dry-run", "--yes")
    assert "24 messages seen, 8 match" in shown
    assert (messages.count(), source.count()) == (24, 0)
    done = shell.json("redrive", source.url, *asked, "--yes")
    assert done == {"matched": 8, "moved": 8, "left": 16, "failed": 0}
    assert (messages.count(), source.count()) == (16, 8)
    _none_is_held(messages)
    arrived = list(_arrived(source))
    for each in arrived:
        assert each["MessageAttributes"][REDRIVE_COUNT]["StringValue"] == "1"
        assert each["MessageAttributes"]["picture"]["BinaryValue"] == PICTURE
        assert each["Attributes"]["AWSTraceHeader"] == TRACE["StringValue"]
    numbers = sorted(json.loads(each["Body"])["n"] for each in arrived)
    assert numbers == [each for each in range(24) if each % 2 == 0 and each % 3]


def test_of_a_shared_dlq_only_its_own_go(shell: Shell) -> None:
    source, messages = _pair(shell)
    other = _source_of(shell, messages)
    _die(source, messages, [{"n": each} for each in range(5)])
    _die(other, messages, [{"n": each} for each in range(10, 17)])
    messages.send("by hand")
    assert shell.json("redrive", _name(source), "--all", "--yes")["moved"] == 5
    assert sorted(_numbers(source)) == list(range(5))
    assert (messages.count(), other.count()) == (8, 0)
    shown = " ".join(shell.text("redrive", _name(other), "--all", "--dry-run").split())
    assert "somebody sent 1 message to" in shown
    assert "for which of its 2 sources" in shown


def test_a_fifo_queue_keeps_each_group_s_order(shell: Shell) -> None:
    source, messages = _pair(shell, fifo=True)
    _die(source, messages, [{"n": each} for each in range(36)])
    done = shell.json("redrive", _name(source), "--where", "body.n >= `3`", "--yes")
    assert (done["moved"], done["left"], done["failed"]) == (33, 3, 0)
    numbers = _numbers(source)
    for group in range(3):
        assert [each for each in numbers if each % 3 == group] == list(range(group + 3, 36, 3))
    _none_is_held(messages)


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_lets_go_and_says_what_was_done(shell: Shell, ending: signal.Signals) -> None:
    source, messages = _pair(shell)
    _die(source, messages, [{"n": each} for each in range(30)])
    environment = {
        **os.environ,
        "AWS_ENDPOINT_URL": shell.account.endpoint_url,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_REGION": REGION,
    }
    command = ["redrive", _name(source), "--all", "--yes", "--rate", "2/s", "--json"]
    with subprocess.Popen(
        [sys.executable, "-m", "mendq.cli", *command],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        eventually(lambda: source.count() >= 4)
        running.send_signal(ending)
        began = time.monotonic()
        out, err = running.communicate(timeout=30)
    assert time.monotonic() - began < 10
    assert running.returncode == 1
    assert "Traceback" not in err
    assert "interrupted" in err
    done = json.loads(out)
    assert 4 <= done["moved"] < 30
    assert done["moved"] + done["left"] == 30
    _none_is_held(messages)
    assert (source.count(), messages.count()) == (done["moved"], done["left"])
    assert sorted(_numbers(source) + _numbers(messages)) == list(range(30))


def test_a_quarantine_is_seen_returned_and_dropped(shell: Shell, tmp_path: Path) -> None:
    source, _ = _pair(shell, mendq="observe")
    name = f"{_name(source)}-quarantine"
    url = source.sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": HIDDEN_SECONDS})[
        "QueueUrl"
    ]
    quarantine = Queue(source.sqs, url, is_fifo=False)
    why = {
        "why": "came back",
        "at": "2026-11-21T20:00:00+00:00",
        "case": "case-1",
        "redrive_count": 1,
    }
    mark = json.dumps({**why, "source": source.arn})
    for number in range(6):
        quarantine.sqs.send_message(
            QueueUrl=url,
            MessageBody=json.dumps({"n": number}),
            MessageAttributes={QUARANTINED: {"DataType": "String", "StringValue": mark}},
        )
    found = {each["queue_arn"]: each for each in shell.json("quarantine", "list")}
    assert found[quarantine.arn]["messages"] == 6
    assert name in "".join(shell.text("quarantine", "list").split())
    assert "came back" in shell.text("quarantine", "peek", _name(source))
    asked = ("--where", "body.n < `2`", "--yes")
    assert shell.json("quarantine", "return", _name(source), *asked)["moved"] == 2
    path = tmp_path / "kept.jsonl"
    done = shell.json("quarantine", "drop", name, "--all", "--yes", "--file", str(path))
    assert (done["dropped"], done["left"], done["failed"]) == (4, 0, 0)
    dropped = [json.loads(json.loads(each)["body"])["n"] for each in path.read_text().splitlines()]
    assert sorted(_numbers(source) + dropped) == list(range(6))
    assert quarantine.count() == 0
