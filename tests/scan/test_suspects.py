"""Test that a scan reads metrics, which CloudWatch bills, only for suspect queues."""

from __future__ import annotations

from typing import Any

import pytest

from mendq.catalogue import CATALOGUE
from mendq.catalogue.consumers.mapping_wastes_receives import MAPPING_WASTES_RECEIVES
from mendq.catalogue.fifo.noisy_message_groups import NOISY_MESSAGE_GROUPS
from mendq.catalogue.symptom import Symptom
from tests.scan.scanner import Scanner, attach_lambda_consumer, start_next_hour


@pytest.fixture
def billed_names(scanner: Scanner) -> list[str]:
    """The queues and functions that GetMetricData was asked about: what AWS bills."""
    names = list[str]()

    def note(params: Any, **_: Any) -> None:
        for query in params["MetricDataQueries"]:
            (dimension,) = query["MetricStat"]["Metric"]["Dimensions"]
            names.append(dimension["Value"])

    events = scanner.account.clients.cloudwatch.meta.events
    events.register("before-parameter-build.cloudwatch.GetMetricData", note)
    return names


def make_queue_with_messages(scanner: Scanner, name: str, messages: int, **attributes: str) -> str:
    """Make a queue that was unchanged for two hours and holds this number of messages."""
    queue_arn = scanner.account.queue(name, **attributes)
    scanner.account.later(hours=2)
    start_next_hour(scanner.account)
    url = scanner.account.url(queue_arn)
    for n in range(messages):
        fifo_parameters: Any = {}
        if name.endswith(".fifo"):
            fifo_parameters = {"MessageGroupId": "g", "MessageDeduplicationId": str(n)}
        scanner.account.clients.sqs.send_message(
            QueueUrl=url, MessageBody="waits", **fifo_parameters
        )
    return queue_arn


def run_scan_for(scanner: Scanner, symptom: Symptom) -> tuple[int, int]:
    done = scanner.run_due_scan([symptom])
    assert done.error_by_target == {}
    return done.suspects, done.metrics


@pytest.mark.parametrize(
    ("name", "messages", "is_suspect"),
    [("orders", 0, False), ("orders", 20, False), ("orders.fifo", 21, False), ("orders", 21, True)],
)
def test_scan_for_noisy_groups_reads_metrics_only_of_standard_queues_with_a_backlog(
    scanner: Scanner, billed_names: list[str], name: str, messages: int, *, is_suspect: bool
) -> None:
    """Fewer than 21 waiting messages are no backlog of quiet groups, and FIFO has no noisy ones."""
    make_queue_with_messages(scanner, name, messages)
    suspects, metrics = run_scan_for(scanner, NOISY_MESSAGE_GROUPS)
    assert suspects == is_suspect
    assert set(billed_names) == ({name} if is_suspect else set())
    assert metrics == len(billed_names), "the budget counts what is billed"


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
def test_scan_reads_metrics_of_wasted_receives_only_if_whole_batches_may_return(
    scanner: Scanner,
    billed_names: list[str],
    messages: int,
    mapping: dict[str, Any] | None,
    *,
    is_suspect: bool,
) -> None:
    queue_arn = make_queue_with_messages(scanner, "orders", messages, VisibilityTimeout="200")
    if mapping is not None:
        attach_lambda_consumer(scanner, queue_arn, **mapping)
    suspects, metrics = run_scan_for(scanner, MAPPING_WASTES_RECEIVES)
    assert suspects == is_suspect
    if is_suspect:
        assert {name.rpartition(":")[2] for name in billed_names} == {"orders", "bill"}
    else:
        assert billed_names == []
    assert metrics == len(billed_names)


def test_scan_for_all_symptoms_reads_no_metric_of_idle_queues(
    scanner: Scanner, billed_names: list[str]
) -> None:
    """Most queues are idle. A symptom that suspects them all would make AWS bill for all."""
    make_queue_with_messages(scanner, "orders", 0, ReceiveMessageWaitTimeSeconds="20")
    make_queue_with_messages(scanner, "orders.fifo", 0, ReceiveMessageWaitTimeSeconds="20")
    done = scanner.run_due_scan(CATALOGUE)
    assert (done.queues_scanned, done.error_by_target) == (2, {})
    assert (done.suspects, done.metrics, billed_names) == (0, 0, [])
