"""`mendq redrive` in a shell, broken off among messages that really died."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest

from local_account.process import LocalAccount
from local_account.where import shell
from mendq.model.queue import Redrive
from tests.local_account.queues import Queue, eventually, new_queue

pytestmark = pytest.mark.account
MESSAGES = 30


def _died(account: LocalAccount) -> tuple[Queue, Queue]:
    """A source and its DLQ with messages, from which whatever is received is hidden long."""
    dead = new_queue(account, VisibilityTimeout="600")
    source = new_queue(account, RedrivePolicy=Redrive(dead.arn, 1).text)
    for number in range(MESSAGES):
        source.send(str(number))

    def all_died() -> bool:
        source.sqs.receive_message(QueueUrl=source.url, MaxNumberOfMessages=10, VisibilityTimeout=0)
        return dead.count() == MESSAGES

    eventually(all_died)
    return source, dead


def _arrived(*queues: Queue) -> list[int]:
    """The numbers of all messages that can be received."""
    found = list[int]()
    for queue in queues:
        while received := queue.receive_some():
            found += [int(each["Body"]) for each in received]
    return sorted(found)


def test_an_interrupt_lets_go_and_says_what_was_done(account: LocalAccount) -> None:
    source, dead = _died(account)
    command = ["redrive", source.arn, "--all", "--yes", "--rate", "2/s", "--json"]
    with subprocess.Popen(
        [sys.executable, "-m", "mendq.cli", *command],
        env=shell(account.endpoint_url),
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
    assert 4 <= done["moved"] < MESSAGES
    assert done["moved"] + done["left"] == MESSAGES
    assert dead.count("ApproximateNumberOfMessagesNotVisible") == 0
    assert (source.count(), dead.count()) == (done["moved"], done["left"])
    assert _arrived(source, dead) == list(range(MESSAGES))
