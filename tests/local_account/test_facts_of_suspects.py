"""Faults that `mendq scan` finds by facts alone, on queues that nobody could have measured yet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from local_account.process import LocalAccount
from tests.local_account.callers import Function, allow, new_function
from tests.local_account.mendq_here import mendq_here
from tests.local_account.queues import Queue, eventually, new_queue

pytestmark = pytest.mark.account


@contextmanager
def mapped(function: Function, queue: Queue) -> Iterator[None]:
    """Make a mapping, and delete it after the block."""
    mapping = function.client.create_event_source_mapping(
        FunctionName=function.name, EventSourceArn=queue.arn
    )
    yield
    function.client.delete_event_source_mapping(UUID=mapping["UUID"])


def scan_queue(account: LocalAccount, queue: Queue) -> dict[str, Any]:
    """Return the sentences that `mendq scan` prints about the queue, by symptom."""
    name = queue.arn.rpartition(":")[2]
    document = json.loads(mendq_here(account, "scan", "--queue", name, "--json").stdout)
    return {finding["symptom"]: finding["reason"] for finding in document["findings"]}


def test_scan_says_that_nobody_reads_a_new_queue_whose_function_was_deleted(
    tiny: LocalAccount,
) -> None:
    queue = new_queue(tiny)
    function = new_function(tiny, allow("sqs:*", "*"))
    with mapped(function, queue):
        function.client.delete_function(FunctionName=function.name)
        for _ in range(4):
            queue.send()
        sentence_by_symptom = scan_queue(tiny, queue)
    assert "4 messages waiting" in sentence_by_symptom["consumer_stopped"]


def test_scan_says_that_the_function_of_a_new_queue_may_not_run(tiny: LocalAccount) -> None:
    queue = new_queue(tiny, VisibilityTimeout="300")
    function = new_function(tiny, allow("sqs:*", "*"))
    with mapped(function, queue):
        limit = {"FunctionName": function.name}
        function.client.put_function_concurrency(**limit, ReservedConcurrentExecutions=0)
        queue.send()
        eventually(lambda: queue.count("ApproximateNumberOfMessagesNotVisible") == 1)
        assert "may not run at all" in scan_queue(tiny, queue)["consumer_throttled"]
        function.client.delete_function_concurrency(**limit)
        eventually(lambda: queue.count("ApproximateNumberOfMessagesNotVisible") == 0)
        assert "consumer_throttled" not in scan_queue(tiny, queue)
