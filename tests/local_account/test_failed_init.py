"""A function that cannot start says why, in its answer and in its log."""

from __future__ import annotations

import io
import re
import uuid
import zipfile
from typing import Any

import pytest

from local_account.lambdas.failed_init import WorkerError, make_init_error
from local_account.process import LocalAccount
from tests.local_account.callers import ALL_OF_SQS, Function, new_role
from tests.local_account.queues import eventually, new_queue


def _new_function(account: LocalAccount, code: str, handler: str = "index.handler") -> Function:
    """A function with this code in index.py, and with all rights on SQS."""
    archive_bytes = io.BytesIO()
    with zipfile.ZipFile(archive_bytes, "w") as archive:
        archive.writestr("index.py", code)
    name = f"test-{uuid.uuid4().hex[:8]}"
    client = account.client("lambda")
    client.create_function(
        FunctionName=name,
        Runtime="python3.13",
        Handler=handler,
        Role=new_role(account, {"Service": "lambda.amazonaws.com"}, ALL_OF_SQS),
        Code={"ZipFile": archive_bytes.getvalue()},
        Timeout=20,
    )
    return Function(client, name)


def _read_log(account: LocalAccount, function: Function) -> list[str]:
    pages = account.client("logs").get_paginator("filter_log_events")
    events = [
        event
        for page in pages.paginate(logGroupName=f"/aws/lambda/{function.name}")
        for event in page["events"]
    ]
    return [event["message"] for event in events]


@pytest.mark.account
@pytest.mark.parametrize(
    ("code", "handler", "error_type", "message"),
    [
        (
            "import never_installed",
            "index.handler",
            "Runtime.ImportModuleError",
            "Unable to import module 'index': No module named 'never_installed'",
        ),
        (
            "x = 1",
            "index.handler",
            "Runtime.HandlerNotFound",
            "Handler 'handler' missing on module 'index'",
        ),
        (
            "x = 1",
            "other.handler",
            "Runtime.ImportModuleError",
            "Unable to import module 'other': No module named 'other'",
        ),
        ("x = (", "index.handler", "Runtime.UserCodeSyntaxError", "Syntax error in module 'index'"),
        ("raise SystemExit", "index.handler", "Runtime.ExitError", "Runtime exited"),
    ],
)
def test_log_and_answer_say_why_a_function_cannot_start(
    tiny: LocalAccount, code: str, handler: str, error_type: str, message: str
) -> None:
    function = _new_function(tiny, code, handler)
    error, payload = function.invoke({})
    assert (error, payload["errorType"]) == ("Unhandled", error_type)
    assert payload["errorMessage"].startswith(message)
    log = _read_log(tiny, function)
    assert log[0] == f"[ERROR] {error_type}: {payload['errorMessage']}"
    status = rf"\tStatus: error\tError Type: {re.escape(error_type)}"
    assert re.fullmatch(rf"INIT_REPORT Init Duration: [\d.]+ ms\tPhase: init{status}", log[-4])
    request_id = payload["requestId"]
    assert log[-3].startswith(f"START RequestId: {request_id}")
    assert log[-2] == f"END RequestId: {request_id}"
    assert re.fullmatch(rf"REPORT RequestId: {request_id}\tDuration: .+ MB{status}", log[-1])


@pytest.mark.account
def test_log_names_the_place_in_the_module_that_fails_while_it_is_imported(
    tiny: LocalAccount,
) -> None:
    function = _new_function(tiny, 'import os\nTABLE = os.environ["TABLE"]\n')
    error, payload = function.invoke({})
    assert (error, payload["errorType"], payload["errorMessage"]) == (
        "Unhandled",
        "KeyError",
        "'TABLE'",
    )
    log = _read_log(tiny, function)
    assert log[:2] == ["[ERROR] KeyError: 'TABLE'", "Traceback (most recent call last):"]
    assert log[2] == '  File "/var/task/index.py", line 2, in <module>'
    assert log[-1].endswith("\tStatus: error\tError Type: Runtime.Unknown")


@pytest.mark.account
def test_message_comes_back_while_the_function_of_its_mapping_cannot_start(
    tiny: LocalAccount,
) -> None:
    queue = new_queue(tiny, VisibilityTimeout="20")
    function = _new_function(tiny, "import never_installed")
    mapping_id = function.client.create_event_source_mapping(
        FunctionName=function.name, EventSourceArn=queue.arn
    )["UUID"]
    queue.send()
    eventually(lambda: any("INIT_REPORT" in line for line in _try_log(tiny, function)))
    function.client.delete_event_source_mapping(UUID=mapping_id)
    counts = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
    assert sum(queue.count(name) for name in counts) == 1


def _try_log(account: LocalAccount, function: Function) -> list[str]:
    """The log; empty before the function's first run."""
    logs = account.client("logs")
    groups: Any = logs.describe_log_groups(logGroupNamePrefix=f"/aws/lambda/{function.name}")
    return _read_log(account, function) if groups["logGroups"] else []


def test_import_error_in_a_package_names_the_module_with_dots() -> None:
    worker_error = WorkerError("ImportError", "no x", [], True, False, False)
    error = make_init_error(worker_error, "functions/orders.handler")
    assert error.message == "Unable to import module 'functions.orders': no x"
