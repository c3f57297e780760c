"""What becomes of an event that a Lambda cannot handle, and of its process that takes too long."""

from __future__ import annotations

import json

import pytest

from local_account.process import LocalAccount
from tests.local_account.lambdas.functions import new_function
from tests.local_account.queues import eventually, new_queue
from tests.local_account.roles import allow

pytestmark = pytest.mark.account


def test_an_exception_and_a_timeout_are_answers(account: LocalAccount) -> None:
    function = new_function(account, Timeout=4)
    status, error, payload = function.invoke({"raise": "it broke"})
    assert (status, error, payload["errorType"]) == (200, "Unhandled", "Odd")
    assert payload["errorMessage"] == "it broke"
    status, error, payload = function.invoke({"sleep_seconds": 30})
    assert (status, error, payload["errorType"]) == (200, "Unhandled", "Sandbox.Timedout")
    assert function.invoke({})[:2] == (200, None)


def test_an_event_that_fails_reaches_its_destination_if_the_role_may_send(
    account: LocalAccount,
) -> None:
    queue, closed = new_queue(account), new_queue(account)
    function = new_function(account, allow("sqs:SendMessage", queue.arn))
    for destination in (closed, queue):
        function.client.put_function_event_invoke_config(
            FunctionName=function.name,
            MaximumRetryAttempts=0,
            DestinationConfig={"OnFailure": {"Destination": destination.arn}},
        )
        function.invoke({"raise": "it broke"}, InvocationType="Event")
        eventually(lambda: queue.count() == 1 or any(closed.arn in e for e in account.log_lines))
    eventually(lambda: queue.count() == 1)
    (message,) = queue.sqs.receive_message(QueueUrl=queue.url)["Messages"]
    record = json.loads(message["Body"])
    assert record["requestContext"]["condition"] == "RetriesExhausted"
    assert record["requestPayload"] == {"raise": "it broke"}
    assert closed.count() == 0
