"""Lambda invoked by clients and by Lambda, at once and later, permissions enforced."""

from __future__ import annotations

import json
from typing import Any

import pytest

from local_account.process import LocalAccount
from tests.local_account.callers import user
from tests.local_account.lambdas.functions import Function, new_function
from tests.local_account.queues import Queue, error_of, eventually, new_queue
from tests.local_account.roles import allow

pytestmark = pytest.mark.account
INVOKE = "lambda:InvokeFunction"


@pytest.fixture(scope="module")
def callee(account: LocalAccount) -> Function:
    return new_function(account)


def _message(queue: Queue) -> dict[str, Any]:
    eventually(lambda: queue.count() == 1)
    answer = queue.sqs.receive_message(QueueUrl=queue.url, MessageAttributeNames=["All"])
    (message,) = answer["Messages"]
    return dict(message)


def test_who_may_not_invoke_is_refused(account: LocalAccount, callee: Function) -> None:
    _, stranger = user(account)
    _, other = user(account, allow(INVOKE, callee.arn + "-other"))
    for identity in (stranger, other):
        refused = Function(account.client("lambda", **identity), callee.arn)
        code, message = error_of(lambda refused=refused: refused.invoke({}))  # type: ignore[misc]
        assert (code, INVOKE in message) == ("AccessDeniedException", True)


def test_a_lambda_that_may_not_invoke_is_refused(account: LocalAccount, callee: Function) -> None:
    caller = new_function(account)
    status, error, payload = caller.invoke({"invoke": callee.name, "with": {}})
    assert (status, error) == (200, "Unhandled")
    assert "(AccessDeniedException)" in payload["errorMessage"]
    assert INVOKE in payload["errorMessage"]


def test_the_payload_comes_back(account: LocalAccount, callee: Function) -> None:
    _, identity = user(account, allow(INVOKE, callee.arn))
    invoked = Function(account.client("lambda", **identity), callee.arn)
    assert invoked.invoke({"a": [1]}) == (200, None, {"got": {"a": [1]}})


def test_an_exception_is_an_answer(callee: Function) -> None:
    status, error, payload = callee.invoke({"raise": "it broke"})
    assert (status, error) == (200, "Unhandled")
    assert (payload["errorMessage"], payload["errorType"]) == ("it broke", "Odd")
    (frame,) = payload["stackTrace"]
    assert 'raise Odd(event["raise"])' in frame
    assert payload["requestId"]
    assert callee.invoke({"a": 1}) == (200, None, {"got": {"a": 1}})


def test_a_timeout_is_an_answer(account: LocalAccount) -> None:
    status, error, payload = new_function(account, Timeout=1).invoke({"sleep": 30})
    assert (status, error, payload["errorType"]) == (200, "Unhandled", "Sandbox.Timedout")
    assert payload["errorMessage"].endswith("Error: Task timed out after 1.00 seconds")


def test_lambda_invokes_lambda(account: LocalAccount, callee: Function) -> None:
    caller = new_function(account, allow(INVOKE, callee.arn))
    _, _, good = caller.invoke({"invoke": callee.name, "with": {"b": 2}})
    assert good == {"status": 200, "error": None, "payload": {"got": {"b": 2}}}
    _, _, bad = caller.invoke({"invoke": callee.name, "with": {"raise": "it broke"}})
    assert (bad["error"], bad["payload"]["errorType"]) == ("Unhandled", "Odd")
    _, _, later = caller.invoke({"invoke": callee.name, "type": "Event", "with": {}})
    assert later == {"status": 202, "error": None, "payload": None}


@pytest.mark.parametrize("retries", [0, 1])
def test_an_event_that_fails_reaches_its_destination(account: LocalAccount, retries: int) -> None:
    queue = new_queue(account)
    function = new_function(account, allow("sqs:SendMessage", queue.arn))
    function.client.put_function_event_invoke_config(
        FunctionName=function.name,
        MaximumRetryAttempts=retries,
        DestinationConfig={"OnFailure": {"Destination": queue.arn}},
    )
    assert function.invoke({"raise": "it broke"}, InvocationType="Event") == (202, None, None)
    record = json.loads(_message(queue)["Body"])
    assert record["requestContext"]["condition"] == "RetriesExhausted"
    assert record["requestContext"]["approximateInvokeCount"] == 1 + retries
    assert record["requestContext"]["functionArn"] == f"{function.arn}:$LATEST"
    assert record["requestPayload"] == {"raise": "it broke"}
    assert record["responseContext"]["functionError"] == "Unhandled"
    assert record["responsePayload"]["errorType"] == "Odd"


def test_a_dlq_gets_the_event_itself(account: LocalAccount) -> None:
    queue = new_queue(account)
    function = new_function(
        account,
        allow("sqs:SendMessage", queue.arn),
        DeadLetterConfig={"TargetArn": queue.arn},
    )
    function.client.put_function_event_invoke_config(
        FunctionName=function.name, MaximumRetryAttempts=0
    )
    function.invoke({"raise": "it broke"}, InvocationType="Event")
    assert json.loads(_message(queue)["Body"]) == {"raise": "it broke"}
