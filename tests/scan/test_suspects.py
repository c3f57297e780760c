"""CloudWatch bills each metric that is asked for: only of a suspect are any asked."""

from __future__ import annotations

from typing import Any

import pytest

from mendq.catalogue import CATALOGUE
from mendq.catalogue.consumers.mapping_wastes_receives import MAPPING_WASTES_RECEIVES
from mendq.catalogue.fifo.noisy_message_groups import NOISY_MESSAGE_GROUPS
from mendq.catalogue.symptom import Symptom
from tests.scan.scanner import Scanner, attach_lambda_consumer, start_next_hour


@pytest.fixture
def measured(scanner: Scanner) -> list[str]:
    """The queues and functions that GetMetricData was asked about: what AWS bills."""
    names = list[str]()

    def note(params: Any, **_: Any) -> None:
        for asked in params["MetricDataQueries"]:
            (dimension,) = asked["MetricStat"]["Metric"]["Dimensions"]
            names.append(dimension["Value"])

    events = scanner.account.clients.cloudwatch.meta.events
    events.register("before-parameter-build.cloudwatch.GetMetricData", note)
    return names


def queue_with(scanner: Scanner, name: str, messages: int, **attributes: str) -> str:
    """A queue that has been as it is for hours, in which so many messages wait."""
    queue_arn = scanner.account.queue(name, **attributes)
    scanner.account.later(hours=2)
    start_next_hour(scanner.account)
    url, fifo = scanner.account.url(queue_arn), name.endswith(".fifo")
    for n in range(messages):
        one: Any = {"MessageGroupId": "g", "MessageDeduplicationId": str(n)} if fifo else {}
        scanner.account.clients.sqs.send_message(QueueUrl=url, MessageBody="waits", **one)
    return queue_arn


def asked_of(scanner: Scanner, symptom: Symptom) -> tuple[int, int]:
    done = scanner.run_due_scan([symptom])
    assert done.error_by_target == {}
    return done.suspects, done.metrics


@pytest.mark.parametrize(
    ("name", "messages", "is_suspect"),
    [("orders", 0, False), ("orders", 20, False), ("orders.fifo", 21, False), ("orders", 21, True)],
)
def test_scan_for_noisy_groups_asks_of_standard_queues_with_a_backlog_alone(
    scanner: Scanner, measured: list[str], name: str, messages: int, *, is_suspect: bool
) -> None:
    """Fewer than 21 waiting messages are no backlog of quiet groups, and FIFO has no noisy ones."""
    queue_with(scanner, name, messages)
    suspects, metrics = asked_of(scanner, NOISY_MESSAGE_GROUPS)
    assert suspects == is_suspect
    assert (metrics, set(measured)) == ((metrics, {name}) if is_suspect else (0, set()))
    assert metrics == len(measured), "the budget counts what is billed"


@pytest.mark.parametrize(
    ("messages", "mapping", "is_suspect"),
    [
        (0, {"BatchSize": 10}, False),
        (1, {"BatchSize": 1}, False),
        (1, {"BatchSize": 10, "FunctionResponseTypes": ["ReportBatchItemFailures"]}, False),
        (1, {"BatchSize": 10, "State": "Disabled"}, False),
        (1, None, False),
        (1, {"BatchSize": 10}, True),
    ],
)
def test_scan_for_wasted_receives_asks_of_queues_whose_batches_may_come_back_alone(
    scanner: Scanner,
    measured: list[str],
    messages: int,
    mapping: dict[str, Any] | None,
    *,
    is_suspect: bool,
) -> None:
    queue_arn = queue_with(scanner, "orders", messages, VisibilityTimeout="200")
    if mapping is not None:
        attach_lambda_consumer(scanner, queue_arn, **mapping)
    suspects, metrics = asked_of(scanner, MAPPING_WASTES_RECEIVES)
    assert suspects == is_suspect
    if is_suspect:
        assert {each.rpartition(":")[2] for each in measured} == {"orders", "bill"}
    else:
        assert measured == []
    assert metrics == len(measured)


def test_scan_for_everything_asks_no_metric_of_an_idle_queue(
    scanner: Scanner, measured: list[str]
) -> None:
    """Most queues of an account are idle: one entry without suspects would bill all of them."""
    queue_with(scanner, "orders", 0, ReceiveMessageWaitTimeSeconds="20")
    queue_with(scanner, "orders.fifo", 0, ReceiveMessageWaitTimeSeconds="20")
    done = scanner.run_due_scan(CATALOGUE)
    assert (done.queues_scanned, done.error_by_target) == (2, {})
    assert (done.suspects, done.metrics, measured) == (0, 0, [])
