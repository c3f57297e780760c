from __future__ import annotations

from datetime import timedelta

from mendq.cli.doctor.cost import Cost, costs
from mendq.model.names import DATA_EVENT_NAMES
from tests.cli.conftest import Operator

EVERY = frozenset(DATA_EVENT_NAMES)


def _count(operator: Operator, queue: str, metric: str, value: float, days_ago: int) -> None:
    operator.aws.clients.cloudwatch.put_metric_data(
        Namespace="AWS/SQS",
        MetricData=[
            {
                "MetricName": metric,
                "Dimensions": [{"Name": "QueueName", "Value": queue}],
                "Timestamp": operator.aws.now - timedelta(days=days_ago),
                "Value": value,
            }
        ],
    )


def test_a_queue_without_a_metric_is_not_free(operator: Operator) -> None:
    arn = operator.aws.queue("silent")
    (cost,) = costs(operator.aws.clients, {arn: EVERY}, operator.aws.now)
    assert (cost.calls_per_week, cost.dollars_per_month) == (None, None)


def test_sends_receives_and_deletes_of_the_week_add_up(operator: Operator) -> None:
    arn, other = operator.aws.queue("busy"), operator.aws.queue("other")
    _count(operator, "busy", "NumberOfMessagesSent", 1_000, 1)
    _count(operator, "busy", "NumberOfMessagesDeleted", 500, 3)
    _count(operator, "busy", "NumberOfMessagesSent", 9_999, 9)
    _count(operator, "other", "NumberOfEmptyReceives", 7, 1)
    found = costs(operator.aws.clients, {arn: EVERY, other: EVERY}, operator.aws.now)
    assert [each.calls_per_week for each in found] == [1_500, 7]


def test_the_price_of_a_thousand_calls_a_second() -> None:
    week = 1_000 * 7 * 24 * 3_600
    assert Cost("arn", week).dollars_per_month == 2_592.0


def test_only_what_is_not_logged_yet_is_priced(operator: Operator) -> None:
    arn = operator.aws.queue("busy")
    _count(operator, "busy", "NumberOfMessagesSent", 1_000, 1)
    _count(operator, "busy", "NumberOfMessagesDeleted", 500, 1)
    calls = {arn: frozenset({"DeleteMessage", "ChangeMessageVisibility"})}
    (cost,) = costs(operator.aws.clients, calls, operator.aws.now)
    assert (cost.calls_per_week, cost.uncounted) == (500, ("ChangeMessageVisibility",))


def test_calls_without_any_metric_are_not_free(operator: Operator) -> None:
    arn = operator.aws.queue("busy")
    _count(operator, "busy", "NumberOfMessagesSent", 1_000, 1)
    calls = {arn: frozenset({"ChangeMessageVisibility"})}
    (cost,) = costs(operator.aws.clients, calls, operator.aws.now)
    assert cost.dollars_per_month is None
