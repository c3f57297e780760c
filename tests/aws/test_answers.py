"""What is made of the answers of Lambda, CloudWatch and CloudTrail, in AWS's shapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.stub import ANY, Stubber

from mendq.aws.clients import Clients
from mendq.aws.cloudwatch import measure_queues
from mendq.aws.errors import FactsUnavailable
from mendq.aws.facts_reader import FactsReader
from mendq.model.consent import Consent
from mendq.model.facts import Facts, LambdaConsumer
from mendq.model.limits import Timing
from mendq.model.metrics import METRIC_KINDS_OF_SOME_QUEUES, Window, select_series
from mendq.model.mode import Mode

NOW = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)
QUEUE = "arn:aws:sqs:us-east-1:123456789012:orders"
FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:bill"
CLIENTS = Clients(boto3.Session("x", "x", region_name="us-east-1"))
NOBODYS = Consent(Mode.OBSERVE, Mode.OBSERVE)
KEY = "ReservedConcurrentExecutions"
READER = FactsReader(CLIENTS, NOW, Timing(), frozenset, frozenset, lambda _arns: (), NOBODYS)


def mapping(**over: Any) -> dict[str, Any]:
    return {
        "FunctionArn": FUNCTION,
        "State": "Enabled",
        "MaximumBatchingWindowInSeconds": 5,
        **over,
    }


def consumed(*mappings: dict[str, Any], **values: list[float]) -> Facts:
    """What comes out of the mappings, and of the metrics where any is enabled."""
    with Stubber(CLIENTS.functions) as functions, Stubber(CLIENTS.cloudwatch) as cloudwatch:
        listed = {"EventSourceMappings": list(mappings)}
        functions.add_response("list_event_source_mappings", listed, {"EventSourceArn": QUEUE})
        asked = {"FunctionName": FUNCTION}
        functions.add_response("get_function_configuration", {"Timeout": 30}, asked)
        results = [
            {"Id": f"{name}_0", "Values": each, "Timestamps": [NOW] * len(each)}
            for name, each in values.items()
        ]
        window = {"StartTime": ANY, "EndTime": NOW, "MetricDataQueries": ANY, "ScanBy": ANY}
        cloudwatch.add_response("get_metric_data", {"MetricDataResults": results}, window)
        return READER.with_function_metrics(READER.with_consumers(Facts(QUEUE, {}, {})))


def test_a_mapping_is_read_whole() -> None:
    uuid = "91eaeb7e-c976-4939-9430-8013c8c2c5bd"
    said = {"UUID": uuid, "BatchSize": 50, "FunctionResponseTypes": ["ReportBatchItemFailures"]}
    limited = {**said, "ScalingConfig": {"MaximumConcurrency": 7}}
    (found,) = consumed(mapping(**limited)).lambda_consumers
    assert (found.mapping_id, found.batch_size, found.reports_item_failures) == (uuid, 50, True)
    assert found.maximum_concurrency == 7


@pytest.mark.parametrize(("answer", "reserved"), [({}, None), ({KEY: 0}, 0), ({KEY: 3}, 3)])
def test_what_is_reserved_is_asked_of_functions_whose_mapping_sets_a_maximum(
    answer: dict[str, int], reserved: int | None
) -> None:
    without, version = LambdaConsumer(f"{FUNCTION}-2", 30, 5), f"{FUNCTION}:live"
    sets_one = LambdaConsumer(version, 30, 5, maximum_concurrency=7)
    facts = Facts(QUEUE, {}, {}, lambda_consumers=(without, sets_one))
    with Stubber(CLIENTS.functions) as functions:
        functions.add_response("get_function_concurrency", answer, {"FunctionName": "bill"})
        found = READER.with_reserved_concurrency(facts)
    assert found.lambda_consumers == (without, replace(sets_one, reserved_concurrency=reserved))


def test_a_disabled_mapping_consumes_nothing_and_is_named() -> None:
    got = consumed(mapping(State="Disabled"), mapping(State="Disabling"))
    assert (got.lambda_consumers, got.stopped_consumers) == ((), (FUNCTION, FUNCTION))


RAN = {
    "duration_p99": [900.0, 27_500.0],
    "duration_p50": [400.0, 380.0],
    "errors_sum": [1.0, 2.0],
    "invocations_sum": [4.0, 8.0],
}


@pytest.mark.parametrize(
    ("values", "figures"),
    [
        ({key: [] for key in RAN}, (None, None, None, None, 0)),
        ({**RAN, "throttles_sum": [4.0]}, (27.5, 0.25, 0.25, 0.38, 12)),
        ({"invocations_sum": [], "throttles_sum": [9.0]}, (None, None, 1.0, None, 0)),
    ],
)
def test_figures_come_in_seconds_and_shares(
    values: dict[str, list[float]], figures: tuple[Any, ...]
) -> None:
    p99_seconds, error_share, throttled_share, p50_seconds, invocations = figures
    assert consumed(mapping(BatchSize=20), **values).lambda_consumers == (
        LambdaConsumer(
            *(FUNCTION, 30, 5),
            duration_p99_seconds=p99_seconds,
            error_share=error_share,
            throttled_share=throttled_share,
            batch_size=20,
            duration_p50_seconds=p50_seconds,
            invocations=invocations,
        ),
    )


def test_mappings_on_further_pages_count_too_and_a_function_that_is_gone_does_not() -> None:
    first = {"EventSourceMappings": [mapping(State="Disabled")], "NextMarker": "second"}
    asked = {"EventSourceArn": QUEUE}
    with Stubber(CLIENTS.functions) as functions:
        functions.add_response("list_event_source_mappings", first, asked)
        last, marked = {"EventSourceMappings": [mapping()]}, {**asked, "Marker": "second"}
        functions.add_response("list_event_source_mappings", last, marked)
        functions.add_client_error("get_function_configuration", "ResourceNotFoundException")
        found = READER.with_consumers(Facts(QUEUE, {}, {}))
    assert (found.stopped_consumers, found.lambda_consumers) == ((FUNCTION,), ())


def test_what_cannot_be_looked_at_is_reported_and_nothing_guessed() -> None:
    with Stubber(CLIENTS.functions) as functions:
        functions.add_client_error("list_event_source_mappings", "AccessDeniedException")
        with pytest.raises(FactsUnavailable, match="Lambda consumers of"):
            READER.with_consumers(Facts(QUEUE, {}, {}))


TWO = [QUEUE, f"{QUEUE}-2"]
MINUTES = [NOW - timedelta(minutes=n) for n in range(40, 30, -1)]
Answers = list[dict[str, Any]]


def answers(**over: Any) -> Answers:
    """Ten minutes of one each, of every metric of both queues."""
    whole = {"StatusCode": "Complete", "Timestamps": MINUTES, "Values": [1.0] * 10, **over}
    return [
        {"Id": f"{key}{n}", **whole} for n in range(2) for key in select_series(["every queue"])
    ]


def one_wrong(answers: Answers, over: Mapping[str, Any]) -> Answers:
    return [{**each, **over} if each["Id"] == "deleted0" else each for each in answers]


WRONG: list[dict[str, Any]] = [
    *({"StatusCode": code} for code in ("PartialData", "InternalError", "Forbidden")),
    *({"Values": [value, *[1.0] * 9]} for value in (float("nan"), float("inf"), -1.0)),
    {"Id": "nobody_asked"},
]


@pytest.mark.parametrize(
    ("pages", "known"),
    [
        ([answers()], [True, True]),
        ([answers(StatusCode="PartialData"), answers(Timestamps=[], Values=[])], [True, True]),
        *(([one_wrong(answers(), over)], [False, True]) for over in WRONG),
        *(
            (
                [one_wrong(answers(StatusCode="PartialData"), {"StatusCode": code}), answers()],
                [False, True],
            )
            for code in ("InternalError", "Forbidden")
        ),
    ],
)
def test_what_cloudwatch_did_not_say_whole_says_nothing_of_its_queue_alone(
    pages: list[Answers], known: list[bool]
) -> None:
    window = Window.choose(NOW, None, timedelta(hours=1))
    assert window is not None
    with Stubber(CLIENTS.cloudwatch) as cloudwatch:
        for n, page in enumerate(pages):
            more = {"NextToken": "more"} if n + 1 < len(pages) else {}
            cloudwatch.add_response("get_metric_data", {"MetricDataResults": page, **more})
        found = measure_queues(CLIENTS, dict.fromkeys(TWO, window))
    assert [found[each] is not None for each in TWO] == known
    second = found[TWO[1]]
    assert second is not None
    assert second.sent in (10, 20)


@pytest.mark.parametrize(
    ("queue_arn", "seconds", "asked"),
    [(f"{QUEUE}.fifo", 301, True), (f"{QUEUE}.fifo", 300, False), (QUEUE, 301, False)],
)
def test_repeated_sends_are_asked_for_where_work_outlasts_their_interval(
    queue_arn: str, seconds: int, *, asked: bool
) -> None:
    with Stubber(CLIENTS.cloudwatch) as cloudwatch:
        for _kind in METRIC_KINDS_OF_SOME_QUEUES:
            cloudwatch.add_response("list_metrics", {"Metrics": []})
        window = READER.choose_window(Facts(queue_arn, {"VisibilityTimeout": str(seconds)}))
    assert window is not None
    assert ("deduplicated" in window.series) is asked
