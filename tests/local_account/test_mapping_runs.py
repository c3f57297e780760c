"""What an event source mapping does with messages: throttles, filters and partial failures."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_account.lambdas.batches import find_failed_ids
from local_account.process import LocalAccount
from local_account.where import NO_RETRIES_CONFIGURATION
from mendq.model.queue import RedrivePolicy
from tests.local_account.callers import Function, allow, new_function, policy
from tests.local_account.queues import Queue, eventually, new_queue

POLL_RIGHTS = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]
NOTHING_MATCHES = {"Filters": [{"Pattern": json.dumps({"body": {"kind": ["never sent"]}})}]}


@contextmanager
def mapped(function: Function, queue: Queue, **settings: Any) -> Iterator[str]:
    """Make a mapping, and delete it after the block."""
    mapping = function.client.create_event_source_mapping(
        FunctionName=function.name, EventSourceArn=queue.arn, **settings
    )
    yield mapping["UUID"]
    function.client.delete_event_source_mapping(UUID=mapping["UUID"])


def new_source(account: LocalAccount) -> tuple[Queue, Queue]:
    """A queue with a visibility timeout of one second and two receives, and its DLQ."""
    dlq = new_queue(account)
    redrive_policy = RedrivePolicy(dlq.arn, 2).text
    return new_queue(account, VisibilityTimeout="1", RedrivePolicy=redrive_policy), dlq


def sum_metric(account: LocalAccount, namespace: str, name: str, **dimension: str) -> float:
    """The sum of a metric, 0 if it has no datapoint."""
    ((dimension_name, value),) = dimension.items()
    now = time.time()
    answer = account.client("cloudwatch").get_metric_statistics(
        Namespace=namespace,
        MetricName=name,
        Dimensions=[{"Name": dimension_name, "Value": value}],
        StartTime=now - 3600,
        EndTime=now + 60,
        Period=3600,
        Statistics=["Sum"],
    )
    return float(sum(datapoint["Sum"] for datapoint in answer["Datapoints"]))


def sum_of_function(account: LocalAccount, name: str, function: Function) -> float:
    return sum_metric(account, "AWS/Lambda", name, FunctionName=function.name)


def sum_of_queue(account: LocalAccount, name: str, queue: Queue) -> float:
    return sum_metric(account, "AWS/SQS", name, QueueName=queue.arn.rpartition(":")[2])


@pytest.mark.account
def test_reserved_concurrency_0_throttles_runs_until_the_message_is_in_the_dlq(
    tiny: LocalAccount,
) -> None:
    source, dlq = new_source(tiny)
    function = new_function(tiny, allow("sqs:*", "*"), Timeout=1)
    function.client.put_function_concurrency(
        FunctionName=function.name, ReservedConcurrentExecutions=0
    )
    with mapped(function, source):
        source.send()
        eventually(lambda: dlq.count() == 1)
    assert sum_of_queue(tiny, "NumberOfMessagesReceived", source) == 2
    assert sum_of_queue(tiny, "NumberOfMessagesDeleted", source) == 0
    assert sum_of_function(tiny, "Throttles", function) >= 2
    assert sum_of_function(tiny, "Invocations", function) == 0
    (message,) = dlq.receive_some(AttributeNames=["ApproximateReceiveCount"])
    assert message["Attributes"]["ApproximateReceiveCount"] == "3"


@pytest.mark.account
def test_throttled_message_is_finished_once_the_function_has_concurrency_again(
    tiny: LocalAccount,
) -> None:
    queue = new_queue(tiny, VisibilityTimeout="300")
    function = new_function(tiny, allow("sqs:*", "*"))
    limit = {"FunctionName": function.name}
    function.client.put_function_concurrency(**limit, ReservedConcurrentExecutions=0)
    with mapped(function, queue):
        queue.send()
        eventually(lambda: sum_of_function(tiny, "Throttles", function) >= 1)
        function.client.delete_function_concurrency(**limit)
        eventually(lambda: sum_of_queue(tiny, "NumberOfMessagesDeleted", queue) == 1)
    assert sum_of_queue(tiny, "NumberOfMessagesReceived", queue) == 1
    assert sum_of_function(tiny, "Invocations", function) == 1


@pytest.mark.account
def test_refused_call_to_a_function_counts_one_throttle(tiny: LocalAccount) -> None:
    function = new_function(tiny)
    function.client.put_function_concurrency(
        FunctionName=function.name, ReservedConcurrentExecutions=0
    )
    client = tiny.client("lambda", config=NO_RETRIES_CONFIGURATION)
    with pytest.raises(ClientError, match="TooManyRequestsException"):
        client.invoke(FunctionName=function.name)
    assert sum_of_function(tiny, "Throttles", function) == 1


@pytest.mark.account
def test_messages_that_no_filter_matches_are_deleted_without_an_invocation_and_counted(
    tiny: LocalAccount,
) -> None:
    source, dlq = new_source(tiny)
    function = new_function(tiny, allow("sqs:*", "*"), Timeout=1)
    with mapped(function, source, FilterCriteria=NOTHING_MATCHES):
        for _ in range(3):
            source.send(json.dumps({"kind": "order"}))
        eventually(lambda: sum_of_queue(tiny, "NumberOfMessagesDeleted", source) == 3)
    assert sum_of_queue(tiny, "NumberOfMessagesReceived", source) == 3
    assert sum_of_function(tiny, "Invocations", function) == 0
    assert dlq.count() == 0


@pytest.mark.account
def test_filtered_message_repeats_into_the_dlq_if_the_role_lost_its_delete_right_and_this_is_chosen(
    tiny: LocalAccount,
) -> None:
    source, dlq = new_source(tiny)
    function = new_function(tiny, allow(POLL_RIGHTS, "*"), Timeout=1)
    role_arn = function.client.get_function_configuration(FunctionName=function.name)["Role"]
    tiny.choose_mapping_behavior(lostRight="messagesRepeat")
    try:
        with mapped(function, source, FilterCriteria=NOTHING_MATCHES):
            tiny.client("iam").put_role_policy(
                RoleName=role_arn.rpartition("/")[2],
                PolicyName="p",
                PolicyDocument=policy(allow("sqs:ReceiveMessage", "*")),
            )
            source.send()
            eventually(lambda: dlq.count() == 1)
    finally:
        tiny.choose_mapping_behavior()
    assert sum_of_queue(tiny, "NumberOfMessagesReceived", source) == 2
    assert sum_of_queue(tiny, "NumberOfMessagesDeleted", source) == 0


@pytest.mark.account
@pytest.mark.parametrize("missing_right", POLL_RIGHTS)
def test_mapping_is_refused_if_the_role_lacks_a_right_to_poll(
    missing_right: str, tiny: LocalAccount
) -> None:
    queue = new_queue(tiny)
    rights = [right for right in POLL_RIGHTS if right != missing_right]
    function = new_function(tiny, allow(rights, "*"))
    call = missing_right.removeprefix("sqs:")
    with pytest.raises(ClientError, match=f"does not have permissions to call {call} on SQS"):
        function.client.create_event_source_mapping(
            FunctionName=function.name, EventSourceArn=queue.arn
        )
    listed = function.client.list_event_source_mappings(EventSourceArn=queue.arn)
    assert listed["EventSourceMappings"] == []


def report(*ids: object) -> dict[str, Any]:
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in ids]}


@pytest.mark.parametrize(
    "answer", [None, {}, "", {"batchItemFailures": None}, report(), {"other": 1}], ids=str
)
def test_batch_has_succeeded_if_the_answer_reports_no_failure(answer: object) -> None:
    assert not find_failed_ids(answer, ["a", "b"], is_unknown_id_ignored=False)


@pytest.mark.parametrize(
    "answer",
    [
        report("a", ""),
        report(None),
        {"batchItemFailures": [{"itemId": "a"}]},
        {"batchItemFailures": ["a"]},
        "no JSON",
    ],
    ids=str,
)
@pytest.mark.parametrize("is_unknown_id_ignored", [True, False])
def test_whole_batch_has_failed_if_the_answer_names_no_usable_id(
    answer: object, *, is_unknown_id_ignored: bool
) -> None:
    failed_ids = find_failed_ids(answer, ["a", "b"], is_unknown_id_ignored=is_unknown_id_ignored)
    assert set(failed_ids) == {"a", "b"}


def test_id_outside_the_batch_fails_the_batch_unless_it_is_ignored_by_choice() -> None:
    answer = report("a", "elsewhere")
    assert set(find_failed_ids(answer, ["a", "b"], is_unknown_id_ignored=False)) == {"a", "b"}
    assert set(find_failed_ids(answer, ["a", "b"], is_unknown_id_ignored=True)) == {"a"}


def test_answer_that_is_a_json_text_is_read_as_its_object() -> None:
    answer = json.dumps(report("b"))
    assert set(find_failed_ids(answer, ["a", "b"], is_unknown_id_ignored=False)) == {"b"}
