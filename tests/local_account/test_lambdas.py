"""The local account deploys a whole assembly and runs its Lambda as AWS does."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from local_account.process import LocalAccount
from tests.local_account.callers import Function, allow, new_function
from tests.local_account.queues import Queue, eventually, new_queue

pytestmark = pytest.mark.account


def _find_idle_queue(tiny: LocalAccount) -> Queue:
    """That of the mapping; no window that an earlier message opened is open any more."""
    queue = Queue(tiny.client("sqs"), tiny.outputs["Queue"], is_fifo=False)
    counts = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
    eventually(lambda: all(queue.count(name) == 0 for name in counts))
    return queue


def _count_handled(account: LocalAccount, *who: str) -> float:
    now = time.time()
    answer = account.client("cloudwatch").get_metric_statistics(
        Namespace="Test",
        MetricName="Handled",
        Dimensions=[{"Name": "who", "Value": value} for value in who],
        StartTime=now - 3600,
        EndTime=now + 60,
        Period=3600,
        Statistics=["Sum"],
    )
    return float(sum(datapoint["Sum"] for datapoint in answer["Datapoints"]))


def test_resource_types_that_are_not_emulated_are_listed_in_the_log(tiny: LocalAccount) -> None:
    assert "AWS::CloudWatch::AnomalyDetector: accepted, not emulated" in tiny.not_emulated
    assert "AWS::CloudWatch::Alarm with metric math: accepted, not emulated" in tiny.not_emulated
    for deployed in ("AWS::SQS::Queue", "AWS::EMRServerless::Application"):
        assert not any(deployed in line for line in tiny.not_emulated)
    (said,) = (line for line in tiny.log_lines if line.startswith("not emulated: "))
    assert Path(said.split()[-1]).read_text().splitlines() == tiny.not_emulated
    assert tiny.outputs["Detector"]


def test_lambda_sees_only_its_own_environment_variables_and_packages(tiny: LocalAccount) -> None:
    error, seen = Function(tiny.client("lambda"), tiny.outputs["Function"]).invoke({})
    assert (error, seen["variables"]["OWN"]) == (None, "yes")
    assert not {"AUTH", "GATEWAY_PORT", "HOME", "VIRTUAL_ENV"} & seen["variables"].keys()
    assert not seen["aws_lambda_powertools"]


@pytest.mark.clock
def test_event_source_mapping_waits_for_its_batching_window_and_publishes_metrics(
    tiny: LocalAccount,
) -> None:
    queue = _find_idle_queue(tiny)
    before = _count_handled(tiny, "test")
    sent = time.monotonic()
    for _ in range(3):
        queue.send()
    eventually(lambda: _count_handled(tiny, "test") >= before + 3)
    assert time.monotonic() - sent > 1.5
    assert (_count_handled(tiny), _count_handled(tiny, "nobody")) == (
        _count_handled(tiny, "test"),
        0,
    )


def test_event_source_mapping_receives_nothing_without_receive_message_permission(
    tiny: LocalAccount,
) -> None:
    iam = tiny.client("iam")
    queue = _find_idle_queue(tiny)
    named = {"RoleName": "tiny", "PolicyName": "polling"}
    before = iam.get_role_policy(**named)["PolicyDocument"]
    fewer = json.loads(json.dumps(before))
    fewer["Statement"][0]["Action"] = ["sqs:DeleteMessage", "sqs:GetQueueAttributes"]
    iam.put_role_policy(**named, PolicyDocument=json.dumps(fewer))
    try:
        queue.send()
        eventually(lambda: any("perform: sqs:ReceiveMessage" in line for line in tiny.log_lines))
        assert queue.count() == 1
    finally:
        iam.put_role_policy(**named, PolicyDocument=json.dumps(before))
    eventually(lambda: queue.count() == 0)


def test_lambda_exception_and_timeout_are_function_errors_and_the_next_call_succeeds(
    tiny: LocalAccount,
) -> None:
    function = new_function(tiny, Timeout=2)
    error, payload = function.invoke({"raise": "it broke"})
    assert (error, payload["errorMessage"]) == ("Unhandled", "it broke")
    error, payload = function.invoke({"sleep_seconds": 30})
    assert (error, payload["errorType"]) == ("Unhandled", "Sandbox.Timedout")
    assert function.invoke({})[0] is None


def test_failed_async_event_reaches_its_failure_destination_only_if_the_role_may_send(
    tiny: LocalAccount,
) -> None:
    queue = new_queue(tiny)
    closed = new_queue(tiny)
    function = new_function(tiny, allow("sqs:SendMessage", queue.arn))
    for destination in (closed, queue):
        function.client.put_function_event_invoke_config(
            FunctionName=function.name,
            MaximumRetryAttempts=0,
            DestinationConfig={"OnFailure": {"Destination": destination.arn}},
        )
        function.invoke({"raise": "it broke"}, InvocationType="Event")
        eventually(
            lambda: queue.count() == 1 or any(closed.arn in log_line for log_line in tiny.log_lines)
        )
    eventually(lambda: queue.count() == 1)
    (message,) = queue.sqs.receive_message(QueueUrl=queue.url)["Messages"]
    record = json.loads(message["Body"])
    assert record["requestContext"]["condition"] == "RetriesExhausted"
    assert record["requestPayload"] == {"raise": "it broke"}
    assert closed.count() == 0
