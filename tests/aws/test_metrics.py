"""What CloudWatch did not say whole says nothing of its queue, and takes nothing from others."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import pytest

from mendq.aws.metrics import measure
from mendq.model.metrics import Measured, Window
from tests.heal.conftest import ACCOUNT, REGION, Account

QUEUES = [f"arn:aws:sqs:{REGION}:{ACCOUNT}:orders{n}" for n in range(2)]
KEYS = ("sent", "received", "deleted", "empty", "visible", "in_flight", "delayed", "age")
Answer = dict[str, Any]


class _Ok:
    status_code = 200


def _answers(account: Account) -> list[Answer]:
    """Of every metric of both queues: ten minutes of one each."""
    minutes = [account.now - timedelta(minutes=n) for n in range(40, 30, -1)]
    return [
        {"Id": f"{key}{n}", "StatusCode": "Complete", "Timestamps": minutes, "Values": [1.0] * 10}
        for n in range(len(QUEUES))
        for key in KEYS
    ]


def _measured(account: Account, *pages: list[Answer]) -> dict[str, Measured | None]:
    left = list(pages)

    def answer(model: Any, **_: Any) -> tuple[_Ok, Answer] | None:
        if model.name != "GetMetricData":
            return None
        results = left.pop(0)
        return _Ok(), {"MetricDataResults": results, **({"NextToken": "more"} if left else {})}

    events = account.clients.cloudwatch.meta.events
    events.register_first("before-call", cast("Callable[..., None]", answer))
    window = Window.ending(account.now, None, timedelta(hours=1))
    assert window is not None
    return measure(account.clients, dict.fromkeys(QUEUES, window))


def _known(found: dict[str, Measured | None]) -> list[bool]:
    return [found[each] is not None for each in QUEUES]


def test_what_is_complete_is_known(account: Account) -> None:
    found = _measured(account, _answers(account))
    assert _known(found) == [True, True]
    first = found[QUEUES[0]]
    assert first is not None
    assert (first.sent, first.received) == (10, 9)


def test_what_goes_on_on_the_next_page_is_whole_by_then(account: Account) -> None:
    some = [{**each, "StatusCode": "PartialData"} for each in _answers(account)]
    rest = [{**each, "Timestamps": [], "Values": []} for each in _answers(account)]
    assert _known(_measured(account, some, rest)) == [True, True]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    "over",
    [
        {"StatusCode": "PartialData"},
        {"StatusCode": "InternalError"},
        {"StatusCode": "Forbidden"},
        {"Values": [float("nan"), *[1.0] * 9]},
        {"Values": [*[1.0] * 9, float("inf")]},
        {"Values": [*[1.0] * 9, -1.0]},
        {"Id": "nobody_asked"},
    ],
    ids=str,
)
def test_one_metric_that_is_not_whole_costs_its_queue_alone(
    account: Account, key: str, over: Answer
) -> None:
    answers = [{**each, **over} if each["Id"] == f"{key}0" else each for each in _answers(account)]
    assert _known(_measured(account, answers)) == [False, True]


@pytest.mark.parametrize("status", ["InternalError", "Forbidden"])
def test_an_error_on_one_page_is_not_made_good_by_the_next(account: Account, status: str) -> None:
    some = [{**each, "StatusCode": "PartialData"} for each in _answers(account)]
    some[0]["StatusCode"] = status
    assert _known(_measured(account, some, _answers(account))) == [False, True]
