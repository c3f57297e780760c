"""What Mendq reads of SQS's own redrives, also where SQS has none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError

from mendq.aws.clients import Clients
from mendq.aws.errors import FactsUnavailable
from mendq.redrive.reads import is_move_task_running

DLQ_ARN = "arn:aws:sqs:eu-west-1:123456789012:orders-dlq"
DLQ_ARN_IN_CHINA = "arn:aws-cn:sqs:cn-north-1:123456789012:orders-dlq"
UNKNOWN_ACTION_CODES = (
    "AWS.SimpleQueueService.UnsupportedOperation",
    "com.amazonaws.sqs#UnsupportedOperation",
    "InvalidAction",
    "UnknownOperationException",
)


def _make_clients(answer: str | list[dict[str, str]]) -> Clients:
    """Make clients whose SQS answers with move tasks, or with an error of this code."""

    def list_message_move_tasks(**_: object) -> dict[str, Any]:
        if isinstance(answer, str):
            error = {"Error": {"Code": answer, "Message": "no"}}
            raise ClientError(cast("Any", error), "ListMessageMoveTasks")
        return {"Results": answer}

    sqs = SimpleNamespace(list_message_move_tasks=list_message_move_tasks)
    return cast("Clients", SimpleNamespace(sqs=sqs))


@pytest.mark.parametrize("code", UNKNOWN_ACTION_CODES)
def test_no_move_task_runs_in_china_if_sqs_does_not_know_the_action(code: str) -> None:
    assert not is_move_task_running(_make_clients(code), DLQ_ARN_IN_CHINA)


@pytest.mark.parametrize("code", UNKNOWN_ACTION_CODES)
def test_move_tasks_are_unknown_elsewhere_if_sqs_does_not_know_the_action(code: str) -> None:
    with pytest.raises(FactsUnavailable):
        is_move_task_running(_make_clients(code), DLQ_ARN)


def test_move_tasks_are_unknown_in_china_if_the_call_is_denied() -> None:
    with pytest.raises(FactsUnavailable):
        is_move_task_running(_make_clients("AccessDenied"), DLQ_ARN_IN_CHINA)


def test_running_move_task_is_seen_in_china_too() -> None:
    assert is_move_task_running(_make_clients([{"Status": "RUNNING"}]), DLQ_ARN_IN_CHINA)
