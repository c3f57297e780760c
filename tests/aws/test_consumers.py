"""What Lambda and CloudWatch say of a queue's consumers, in AWS's shapes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.stub import ANY, Stubber

from mendq.aws.clients import Clients
from mendq.aws.consumers import Consumers
from mendq.aws.errors import FactsUnavailable
from mendq.aws.facts import FactsReader
from mendq.model.facts import Facts, LambdaConsumer
from mendq.model.limits import Timing

NOW = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)
QUEUE = "arn:aws:sqs:us-east-1:123456789012:orders.fifo"
FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:bill"


@pytest.fixture
def clients() -> Clients:
    return Clients(boto3.Session(region_name="us-east-1"))


def mapping(**over: Any) -> dict[str, Any]:
    return {
        "FunctionArn": FUNCTION,
        "State": "Enabled",
        "MaximumBatchingWindowInSeconds": 5,
        **over,
    }


def metric(name: str, *values: float) -> dict[str, Any]:
    return {"Id": name, "Values": list(values)}


def reader(clients: Clients) -> FactsReader:
    return FactsReader(clients, NOW, Timing(), lambda _queues: frozenset())


def consumers(clients: Clients, *mappings: dict[str, Any], **values: list[float]) -> Consumers:
    """What comes out of the mappings, and of the metrics where any is enabled."""
    with Stubber(clients.functions) as functions, Stubber(clients.cloudwatch) as cloudwatch:
        functions.add_response(
            "list_event_source_mappings",
            {"EventSourceMappings": list(mappings)},
            {"EventSourceArn": QUEUE},
        )
        functions.add_response(
            "get_function_configuration",
            {"FunctionName": "bill", "Timeout": 30},
            {"FunctionName": FUNCTION},
        )
        cloudwatch.add_response(
            "get_metric_data",
            {"MetricDataResults": [metric(f"{name}0", *each) for name, each in values.items()]},
            {"StartTime": ANY, "EndTime": NOW, "MetricDataQueries": ANY},
        )
        asked = reader(clients)
        facts = asked.with_figures(asked.consumers(Facts(QUEUE, {}, {})))
    return Consumers(facts.lambda_consumers, facts.stopped_consumers)


def test_a_disabled_mapping_consumes_nothing_and_is_named(clients: Clients) -> None:
    got = consumers(clients, mapping(State="Disabled"), mapping(State="Disabling"))
    assert got == Consumers((), (FUNCTION, FUNCTION))


def test_a_function_that_never_ran_has_no_figures(clients: Clients) -> None:
    got = consumers(clients, mapping(), duration=[], errors=[], invocations=[])
    assert got.enabled == (LambdaConsumer(FUNCTION, 30, 5),)


def test_figures_come_in_seconds_and_shares(clients: Clients) -> None:
    got = consumers(
        clients,
        mapping(),
        duration=[900.0, 27_500.0],
        errors=[1.0, 2.0],
        invocations=[4.0, 8.0],
        throttles=[4.0],
    )
    assert got.enabled == (LambdaConsumer(FUNCTION, 30, 5, 27.5, 0.25, 0.25),)


def test_a_function_that_is_throttled_to_a_stop_never_ran(clients: Clients) -> None:
    got = consumers(clients, mapping(), invocations=[], throttles=[9.0])
    assert got.enabled == (LambdaConsumer(FUNCTION, 30, 5, throttled_share=1.0),)


def test_mappings_on_further_pages_count_too(clients: Clients) -> None:
    stopped = {"EventSourceMappings": [mapping(State="Disabled")]}
    pages: tuple[tuple[dict[str, Any], dict[str, str]], ...] = (
        ({**stopped, "NextMarker": "second"}, {}),
        ({**stopped, "NextMarker": "third"}, {"Marker": "second"}),
        ({"EventSourceMappings": []}, {"Marker": "third"}),
    )
    with Stubber(clients.functions) as functions:
        for page, marker in pages:
            asked = {"EventSourceArn": QUEUE, **marker}
            functions.add_response("list_event_source_mappings", page, asked)
        found = reader(clients).consumers(Facts(QUEUE, {}, {}))
        functions.assert_no_pending_responses()
    assert found.stopped_consumers == (FUNCTION, FUNCTION)


def test_a_function_that_is_gone_consumes_nothing(clients: Clients) -> None:
    with Stubber(clients.functions) as functions:
        functions.add_response("list_event_source_mappings", {"EventSourceMappings": [mapping()]})
        functions.add_client_error("get_function_configuration", "ResourceNotFoundException")
        assert reader(clients).consumers(Facts(QUEUE, {}, {})).lambda_consumers == ()


def test_what_cannot_be_looked_at_is_reported_and_nothing_guessed(clients: Clients) -> None:
    with Stubber(clients.functions) as functions:
        functions.add_client_error("list_event_source_mappings", "AccessDeniedException")
        with pytest.raises(FactsUnavailable, match="Lambda consumers of"):
            reader(clients).consumers(Facts(QUEUE, {}, {}))
