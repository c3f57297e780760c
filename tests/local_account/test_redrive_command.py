"""`mendq redrive` in a shell, on messages that really died."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from local_account.process import LocalAccount
from local_account.where import operator
from mendq.model.queue import Redrive
from mendq.redrive.messages import REDRIVE_COUNT
from tests.local_account.mendq_here import mendq_here
from tests.local_account.queues import Queue, eventually, new_queue

pytestmark = pytest.mark.account
PICTURE = b"\x00\xff"


def _died(account: LocalAccount, bodies: list[Any]) -> tuple[Queue, Queue]:
    """A source and its DLQ, from which whatever is received is hidden long, with messages."""
    dead = new_queue(account, VisibilityTimeout="600")
    source = new_queue(account, RedrivePolicy=Redrive(dead.arn, 1).text)
    for number, body in enumerate(bodies):
        source.sqs.send_message(
            QueueUrl=source.url,
            MessageBody=json.dumps(body),
            MessageAttributes={
                "type": {"DataType": "String", "StringValue": ("order", "refund")[number % 2]},
                "picture": {"DataType": "Binary.png", "BinaryValue": PICTURE},
            },
        )

    def all_died() -> bool:
        source.sqs.receive_message(QueueUrl=source.url, MaxNumberOfMessages=10, VisibilityTimeout=0)
        return dead.count() == len(bodies)

    eventually(all_died)
    return source, dead


def _arrived(queue: Queue) -> Iterator[dict[str, Any]]:
    """Each message that can be received, until none is left."""
    asked = {"MessageAttributeNames": ["All"], "MessageSystemAttributeNames": ["All"]}
    while True:
        answer = queue.sqs.receive_message(QueueUrl=queue.url, MaxNumberOfMessages=10, **asked)
        if not answer.get("Messages"):
            return
        for each in answer["Messages"]:
            yield each
            queue.delete(each["ReceiptHandle"])


def _number(message: dict[str, Any]) -> int:
    return int(json.loads(message["Body"])["n"])


def _none_is_held(queue: Queue) -> None:
    assert queue.count("ApproximateNumberOfMessagesNotVisible") == 0


def test_what_a_person_chooses_goes_back(account: LocalAccount) -> None:
    bodies = [{"n": each, "error": {"code": "XY"[each % 3 == 0]}} for each in range(24)]
    source, dead = _died(account, bodies)
    name = source.url.rpartition("/")[2]
    filtered = "attributes.type == 'order' && age_seconds < `7200` && body.error.code == 'X'"
    asked = ("redrive", name, "--where", filtered)
    shown = mendq_here(account, *asked, "--dry-run", "--yes")
    assert "24 messages seen, 8 match" in shown.output
    assert (dead.count(), source.count()) == (24, 0)
    done = json.loads(mendq_here(account, *asked, "--yes", "--json").stdout)
    assert done == {"matched": 8, "moved": 8, "left": 16, "failed": 0}
    assert (dead.count(), source.count()) == (16, 8)
    _none_is_held(dead)
    arrived = list(_arrived(source))
    for each in arrived:
        assert each["MessageAttributes"][REDRIVE_COUNT]["StringValue"] == "1"
        assert each["MessageAttributes"]["picture"]["BinaryValue"] == PICTURE
    chosen = [each for each in range(24) if each % 2 == 0 and each % 3]
    assert sorted(map(_number, arrived)) == chosen


def test_an_interrupt_lets_go_and_says_what_was_done(account: LocalAccount) -> None:
    source, dead = _died(account, [{"n": each} for each in range(30)])
    shell = operator(account.endpoint_url)
    command = ["redrive", source.arn, "--all", "--yes", "--rate", "2/s", "--json"]
    with subprocess.Popen(
        [sys.executable, "-m", "mendq.cli", *command],
        env={**os.environ, **shell},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        eventually(lambda: source.count() >= 4)
        running.send_signal(signal.SIGTERM)
        began = time.monotonic()
        out, err = running.communicate(timeout=30)
    assert time.monotonic() - began < 10
    assert (running.returncode, "Traceback" in err, "interrupted" in err) == (1, False, True)
    done = json.loads(out)
    assert 4 <= done["moved"] < 30
    assert done["moved"] + done["left"] == 30
    _none_is_held(dead)
    assert (source.count(), dead.count()) == (done["moved"], done["left"])
    assert sorted(map(_number, [*_arrived(source), *_arrived(dead)])) == list(range(30))
