"""Series that only some queues have: asked where CloudWatch lists them, and believed so far."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

import pytest

from mendq.catalogue.fifo.noisy_message_groups import NOISY_MESSAGE_GROUPS
from mendq.catalogue.visibility.visibility_timeout_too_short import VISIBILITY_TIMEOUT_TOO_SHORT
from mendq.model.metrics import (
    COUNTER_TOLERANCE_MESSAGES,
    METRIC_KINDS_OF_SOME_QUEUES,
    METRICS_BY_KIND,
    select_series,
)
from tests.scan.scanning import Scanning, an_hour_on

STANDARD = len(select_series(["every queue", "receives"]))
SERIES = select_series(METRIC_KINDS_OF_SOME_QUEUES)


def waiting(scanned: Scanning, name: str, **over: float) -> str:
    """A queue with a backlog, and what CloudWatch has of it in each of the last minutes."""
    arn = scanned.account.queue(name, VisibilityTimeout="30")
    scanned.account.later(hours=2)
    an_hour_on(scanned.account)
    url = scanned.account.url(arn)
    for _ in range(COUNTER_TOLERANCE_MESSAGES + 1):
        scanned.account.clients.sqs.send_message(QueueUrl=url, MessageBody="waits")
    for minutes in range(30, 3, -1):
        at = scanned.account.now - timedelta(minutes=minutes)
        scanned.count(arn, at, visible=900, deleted=4)
        for key, value in over.items():
            published(scanned, arn, key, at, value)
    return arn


def published(scanned: Scanning, arn: str, key: str, at: Any, *values: float) -> None:
    metric, _, namespace, _ = SERIES[key]
    datum: Any = {
        "MetricName": metric,
        "Dimensions": [{"Name": "QueueName", "Value": arn.rpartition(":")[2]}],
        "Timestamp": at,
        "Values": list(values),
        "Counts": [1.0] * len(values),
    }
    scanned.account.clients.cloudwatch.put_metric_data(Namespace=namespace, MetricData=[datum])


def test_quiet_groups_that_wait_beside_a_noisy_one_page(scanned: Scanning) -> None:
    queue = waiting(scanned, "tenants", noisy=1, quiet=400, quiet_age=2_700)
    done = scanned.done([NOISY_MESSAGE_GROUPS])
    assert done.metrics == STANDARD + 3
    assert scanned.named() == [(queue, "noisy_message_groups")]
    scanned.heal()
    (transition,) = scanned.account.transitions()
    assert transition["to"] == "escalated", transition


def test_a_queue_without_groups_costs_no_more(scanned: Scanning) -> None:
    waiting(scanned, "tenants")
    done = scanned.done([NOISY_MESSAGE_GROUPS])
    assert (done.measured, done.metrics, scanned.named()) == (1, STANDARD, [])


@pytest.mark.parametrize(
    ("seconds", "to", "after"),
    [(80.0, "proposed", ["120"]), (43_000.0, "escalated", []), (20.0, "escalated", [])],
)
def test_what_consumers_publish_is_proposed_and_never_written(
    scanned: Scanning, seconds: float, to: str, after: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody who may put metrics could have: what could not be proposed hides no race."""
    with_what_moto_has = SERIES["processing"]._replace(statistic="Maximum")
    in_moto = {"processing": with_what_moto_has}
    monkeypatch.setitem(cast("Any", METRICS_BY_KIND), "processing", in_moto)
    queue = waiting(scanned, "orders")
    at = scanned.account.now - timedelta(minutes=40)
    scanned.count(queue, at - timedelta(minutes=20), visible=0)
    scanned.count(queue, at, sent=1_000, received=1_900, deleted=1_300)
    published(scanned, queue, "processing", at, seconds)
    done = scanned.done([VISIBILITY_TIMEOUT_TOO_SHORT])
    assert done.metrics == STANDARD + 1
    scanned.heal()
    assert scanned.account.attributes(queue)["VisibilityTimeout"] == "30"
    (transition,) = scanned.account.transitions()
    assert transition["to"] == to
    assert [each["after"] for each in transition["steps"]] == after
