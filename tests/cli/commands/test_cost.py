"""Test `mendq cost`, which prices the stack and the logging of calls."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from mendq.probe.probe import PROBE_QUEUE_NAME as PROBE_QUEUE
from tests.cli.builders import Operator
from tests.infra.synthesized import template_of

_ONCE_EACH = ("NumberOfMessagesSent", "NumberOfMessagesReceived", "NumberOfMessagesDeleted")
WEEK = {**dict.fromkeys(_ONCE_EACH, 1e6), "NumberOfEmptyReceives": 20e6}


@pytest.fixture
def operator(operator: Operator) -> Operator:
    """An operator with a stack and three queues: busy, silent, and unmanaged."""
    operator.set_template(template_of("default").raw)
    operator.aws.queue("busy")
    operator.aws.queue("silent.fifo")
    operator.aws.queue("unmanaged", tag=None)
    put_weekly_counts(operator, "busy")
    put_weekly_counts(operator, "unmanaged", times=2)
    return operator


def deny_operation(operator: Operator, service: str, operation: str) -> None:
    action = f"{service}:{operation}"
    message = f"not authorized to perform: {action}"

    def refuse(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": message}}, operation)

    events = operator.account.session.events
    events.register_first(f"before-call.{service}.{operation}", refuse)


def put_weekly_counts(operator: Operator, queue: str, times: float = 1) -> None:
    at = datetime.now(UTC) - timedelta(days=2)
    of: Any = {"Dimensions": [{"Name": "QueueName", "Value": queue}], "Timestamp": at}
    data: Any = [{**of, "MetricName": name, "Value": times * n} for name, n in WEEK.items()]
    operator.aws.clients.cloudwatch.put_metric_data(Namespace="AWS/SQS", MetricData=data)


def list_queue_names(document: Any) -> set[str]:
    return {queue["queue_arn"].rpartition(":")[2] for queue in document["queues"]}


def test_cost_counts_the_calls_of_managed_queues_only(operator: Operator) -> None:
    costs = operator.run_json("cost")
    assert list_queue_names(costs) == {"busy", "silent.fifo"}
    busy, silent = sorted(costs["queues"], key=lambda each: each["queue_arn"])
    assert busy["a_month"] == {
        name: round(week_count * 30 / 7) for name, week_count in WEEK.items()
    }
    assert busy["dollars_per_month"]["ReceiveMessage"] == 90
    assert busy["empty_share_of_receives"] == pytest.approx(20 / 21, abs=1e-4)
    assert silent["a_month"] == {}
    assert set(silent["dollars_per_month"].values()) == {None}


def test_cost_shows_what_sqs_bills_for_a_standard_queue_and_for_a_fifo_queue(
    operator: Operator,
) -> None:
    put_weekly_counts(operator, "silent.fifo")
    standard, fifo = sorted(operator.run_json("cost")["queues"], key=lambda each: each["queue_arn"])
    assert (standard["sqs_dollars_per_month"], fifo["sqs_dollars_per_month"]) == (39.4286, 49.2857)
    output = operator.read_output("cost")
    assert "$39.43" in output
    assert "$49.29" in output
    assert "on FIFO queues $0.50 per 1,000,000 (high throughput too)" in " ".join(output.split())


def test_cost_prices_each_choice_of_logged_calls_and_names_the_symptoms_that_it_cannot_show(
    operator: Operator,
) -> None:
    costs = operator.run_json("cost")
    every, without, deletes, sends = costs["choices"]
    prices = [choice["dollars_per_month"] for choice in (every, without, deletes, sends)]
    assert prices == [98.57, 8.57, 4.29, 4.29]
    assert "ReceiveMessage" not in without["event_names"]
    assert without["symptoms"]["blind"] == ["in_flight_limit"]


def test_cost_with_all_counts_every_queue_but_mendqs_own_even_if_the_template_is_denied(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(operator.account), "outputs", {})
    deny_operation(operator, "cloudformation", "GetTemplate")
    for own in ("Mendq-IntakeQueue6FB53B87", PROBE_QUEUE):
        operator.aws.queue(own, tag=None)
    costs = operator.run_json("cost", "--all", code=1)
    assert list_queue_names(costs) == {"busy", "silent.fifo", "unmanaged"}
    (fault,) = costs["not_looked_at"]
    assert (fault["check"], fault["remedy"]) == ("the stack", "allow cloudformation:GetTemplate")
    assert costs["stack"]["dollars_per_month_without_dashboard"] is None


def test_cost_with_most_counts_that_many_queues_and_says_that_more_exist(
    operator: Operator,
) -> None:
    costs = operator.run_json("cost", "--most", "1")
    assert costs["are_more_queues"] is True
    assert len(costs["queues"]) == 1
    assert costs["asking_cost_dollars"] == 0.00004
    assert "the first 1 were counted" in operator.run("cost", "--most", "1").stdout


def test_cost_without_cloudwatch_rights_reports_unknown_prices_instead_of_zero(
    operator: Operator,
) -> None:
    deny_operation(operator, "cloudwatch", "GetMetricData")
    costs = operator.run_json("cost", code=1)
    assert [fault["check"] for fault in costs["not_looked_at"]] == ["the calls of the queues"]
    assert {choice["dollars_per_month"] for choice in costs["choices"]} == {None}
    assert costs["stack"]["lines"]
    output = operator.run("cost").stdout
    assert "not known" in output
    assert "-> allow cloudwatch:GetMetricData" in output


@pytest.mark.parametrize(
    "template",
    [{"Description": "no resources"}, "Resources: [}", None],
    ids=["no resources", "malformed YAML", "no template"],
)
def test_cost_counts_calls_if_the_template_of_the_stack_cannot_be_priced(
    operator: Operator, template: object
) -> None:
    operator.set_template(template)
    costs = operator.run_json("cost", code=1)
    (fault,) = costs["not_looked_at"]
    assert fault["check"] == "the stack"
    assert "its template cannot be priced" in fault["says"]
    assert costs["stack"]["dollars_per_month_without_dashboard"] is None
    assert list_queue_names(costs) == {"busy", "silent.fifo"}
    assert {choice["dollars_per_month"] for choice in costs["choices"]} != {None}
