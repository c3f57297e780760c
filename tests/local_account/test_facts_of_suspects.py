"""Faults that `mendq scan` finds by facts alone, on queues that nobody could have measured yet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_account.process import LocalAccount
from tests.local_account.callers import Function, allow, new_function, user
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


def make_queue_with_key(account: LocalAccount) -> tuple[Queue, str]:
    """Make a queue that a new key encrypts, with one message. Return it and the key's id."""
    key = str(account.client("kms").create_key()["KeyMetadata"]["KeyId"])
    queue = new_queue(account, KmsMasterKeyId=key)
    queue.send()
    return queue, key


def test_scan_says_that_the_key_of_a_queue_is_disabled_and_is_silent_once_it_is_enabled(
    tiny: LocalAccount,
) -> None:
    queue, key = make_queue_with_key(tiny)
    kms = tiny.client("kms")
    kms.disable_key(KeyId=key)
    with pytest.raises(ClientError, match=r"KMS\.DisabledException"):
        queue.send()
    assert "is disabled" in scan_queue(tiny, queue)["kms_key_unusable"]
    kms.enable_key(KeyId=key)
    assert "kms_key_unusable" not in scan_queue(tiny, queue)


def test_scan_says_when_a_key_is_deleted_with_the_messages_of_the_queue(
    tiny: LocalAccount,
) -> None:
    queue, key = make_queue_with_key(tiny)
    kms = tiny.client("kms")
    deletion_at = kms.schedule_key_deletion(KeyId=key, PendingWindowInDays=7)["DeletionDate"]
    sentence = scan_queue(tiny, queue)["kms_key_unusable"]
    assert f"will be deleted on {deletion_at:%Y-%m-%d}" in sentence
    assert "holds 1 message" in sentence


def test_scan_without_the_right_to_read_keys_judges_the_rest_and_says_what_it_did_not_judge(
    tiny: LocalAccount,
) -> None:
    queue, key = make_queue_with_key(tiny)
    tiny.client("kms").disable_key(KeyId=key)
    (statement,) = json.loads(mendq_here(tiny, "scan", "--policy").stdout)["Statement"]
    assert "kms:DescribeKey" in statement["Action"]
    old_actions = [action for action in statement["Action"] if not action.startswith("kms:")]
    _, credentials = user(tiny, allow(old_actions, "*"))
    name = queue.arn.rpartition(":")[2]
    scan = mendq_here(tiny, "scan", "--queue", name, credentials=credentials)
    assert scan.exit_code == 0
    printed_text = " ".join(scan.output.split())
    assert "Not judged: kms_key_unusable, because kms:DescribeKey is denied for 1 key" in (
        printed_text
    )
    document = json.loads(
        mendq_here(tiny, "scan", "--queue", name, "--json", credentials=credentials).stdout
    )
    assert document["not_judged"].keys() == {"kms_key_unusable"}
    assert not any("KMS" in reason for reason in document["not_seen"].values())


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


def test_scan_of_unmeasured_queue_reports_function_with_reserved_concurrency_0(
    tiny: LocalAccount,
) -> None:
    queue = new_queue(tiny, VisibilityTimeout="300")
    function = new_function(tiny, allow("sqs:*", "*"))
    with mapped(function, queue):
        limit = {"FunctionName": function.name}
        function.client.put_function_concurrency(**limit, ReservedConcurrentExecutions=0)
        queue.send()
        eventually(lambda: queue.count("ApproximateNumberOfMessagesNotVisible") == 1)
        assert "Lambda never runs" in scan_queue(tiny, queue)["consumer_throttled"]
        function.client.delete_function_concurrency(**limit)
        eventually(lambda: queue.count("ApproximateNumberOfMessagesNotVisible") == 0)
        assert "consumer_throttled" not in scan_queue(tiny, queue)
