"""Test the reading of answers from Lambda and CloudWatch, given in AWS's shapes."""

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
from mendq.model.mapping import ProvisionedPollers
from mendq.model.metrics import (
    METRIC_KINDS_OF_SOME_QUEUES,
    Measurement,
    MetricGap,
    Window,
    select_series,
)
from mendq.model.mode import Mode

NOW = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)
QUEUE = "arn:aws:sqs:us-east-1:123456789012:orders"
FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:bill"
CLIENTS = Clients(boto3.Session("x", "x", region_name="us-east-1"))
OBSERVE_ONLY = Consent(Mode.OBSERVE, Mode.OBSERVE)
RESERVED_CONCURRENCY = "ReservedConcurrentExecutions"
READER = FactsReader(CLIENTS, NOW, Timing(), frozenset, frozenset, lambda _arns: (), OBSERVE_ONLY)


def make_mapping(**over: Any) -> dict[str, Any]:
    return {
        "FunctionArn": FUNCTION,
        "State": "Enabled",
        "MaximumBatchingWindowInSeconds": 5,
        **over,
    }


def read_consumers(*mappings: dict[str, Any], **values: list[float]) -> Facts:
    """Read the Lambda consumers from these mappings, and their metrics if a mapping is enabled."""
    with Stubber(CLIENTS.functions) as functions, Stubber(CLIENTS.cloudwatch) as cloudwatch:
        listed = {"EventSourceMappings": list(mappings)}
        functions.add_response("list_event_source_mappings", listed, {"EventSourceArn": QUEUE})
        request = {"FunctionName": FUNCTION}
        functions.add_response("get_function_configuration", {"Timeout": 30}, request)
        results = [
            {"Id": f"{name}_0", "Values": points, "Timestamps": [NOW] * len(points)}
            for name, points in values.items()
        ]
        window = {"StartTime": ANY, "EndTime": NOW, "MetricDataQueries": ANY, "ScanBy": ANY}
        cloudwatch.add_response("get_metric_data", {"MetricDataResults": results}, window)
        return READER.with_function_metrics(READER.with_consumers(Facts(QUEUE, {}, {})))


def test_event_source_mapping_is_read_with_id_batch_size_failure_reports_and_concurrency() -> None:
    uuid = "91eaeb7e-c976-4939-9430-8013c8c2c5bd"
    mapping = make_mapping(
        UUID=uuid,
        BatchSize=50,
        FunctionResponseTypes=["ReportBatchItemFailures"],
        ScalingConfig={"MaximumConcurrency": 7},
    )
    (consumer,) = read_consumers(mapping).lambda_consumers
    assert consumer.mapping_id == uuid
    assert consumer.batch_size == 50
    assert consumer.reports_item_failures is True
    assert consumer.maximum_concurrency == 7


def test_event_source_mapping_in_provisioned_mode_is_read_with_its_pollers_and_ten_runs_each() -> (
    None
):
    poller_config = {"MinimumPollers": 3, "MaximumPollers": 40}
    (consumer,) = read_consumers(
        make_mapping(ProvisionedPollerConfig=poller_config)
    ).lambda_consumers
    assert consumer.provisioned_pollers == ProvisionedPollers(3, 40)
    assert consumer.most_runs == 400
    assert consumer.maximum_concurrency is None


def test_number_of_pollers_that_lambda_does_not_return_is_its_default() -> None:
    (consumer,) = read_consumers(
        make_mapping(ProvisionedPollerConfig={"MinimumPollers": 3})
    ).lambda_consumers
    assert consumer.provisioned_pollers == ProvisionedPollers(3, 200)


@pytest.mark.parametrize("over", [{}, {"ProvisionedPollerConfig": {}}, {"ScalingConfig": {}}])
def test_event_source_mapping_without_pollers_is_not_in_provisioned_mode(
    over: dict[str, Any],
) -> None:
    """Botocore leaves out the field if it does not know it, and Lambda if the mode is off."""
    (consumer,) = read_consumers(make_mapping(**over)).lambda_consumers
    assert consumer.provisioned_pollers is None
    assert consumer.most_runs is None


def test_reserved_concurrency_is_read_for_a_function_whose_mapping_is_in_provisioned_mode() -> None:
    consumer = LambdaConsumer(FUNCTION, 30, 5, provisioned_pollers=ProvisionedPollers())
    with Stubber(CLIENTS.functions) as functions:
        answer = {RESERVED_CONCURRENCY: 9}
        functions.add_response("get_function_concurrency", answer, {"FunctionName": "bill"})
        facts = READER.with_reserved_concurrency(Facts(QUEUE, {}, {}, lambda_consumers=(consumer,)))
    assert facts.lambda_consumers == (replace(consumer, reserved_concurrency=9),)


@pytest.mark.parametrize(
    ("answer", "reserved"),
    [({}, None), ({RESERVED_CONCURRENCY: 0}, 0), ({RESERVED_CONCURRENCY: 3}, 3)],
)
def test_reserved_concurrency_is_read_only_for_functions_whose_mapping_sets_a_maximum(
    answer: dict[str, int], reserved: int | None
) -> None:
    without_maximum = LambdaConsumer(f"{FUNCTION}-2", 30, 5)
    with_maximum = LambdaConsumer(f"{FUNCTION}:live", 30, 5, maximum_concurrency=7)
    facts = Facts(QUEUE, {}, {}, lambda_consumers=(without_maximum, with_maximum))
    with Stubber(CLIENTS.functions) as functions:
        functions.add_response("get_function_concurrency", answer, {"FunctionName": "bill"})
        facts = READER.with_reserved_concurrency(facts)
    expected = replace(with_maximum, reserved_concurrency=reserved)
    assert facts.lambda_consumers == (without_maximum, expected)


@pytest.mark.parametrize(
    ("metrics", "is_read"),
    [
        ({"invocations": 5, "throttled_share": 0.0}, False),
        ({"invocations": 5, "throttled_share": 0.01}, True),
        ({"invocations": 0, "throttled_share": 1.0}, True),
        ({"invocations": 0}, True),
    ],
)
def test_function_is_asked_if_it_is_switched_off_unless_it_ran_without_being_throttled(
    metrics: dict[str, Any], *, is_read: bool
) -> None:
    consumer = LambdaConsumer(FUNCTION, 30, 5, **metrics)
    with Stubber(CLIENTS.functions) as functions:
        if is_read:
            answer = {RESERVED_CONCURRENCY: 0}
            functions.add_response("get_function_concurrency", answer, {"FunctionName": "bill"})
        facts = READER.with_switched_off_functions(
            Facts(QUEUE, {}, {}, lambda_consumers=(consumer,))
        )
    (read_consumer,) = facts.lambda_consumers
    assert read_consumer.is_switched_off == is_read


def test_disabled_event_source_mapping_is_no_consumer_and_is_listed_as_stopped() -> None:
    facts = read_consumers(make_mapping(State="Disabled"), make_mapping(State="Disabling"))
    assert facts.lambda_consumers == ()
    assert facts.stopped_consumers == (FUNCTION, FUNCTION)


FUNCTION_METRICS = {
    "duration_p99": [900.0, 27_500.0],
    "duration_p50": [400.0, 380.0],
    "errors_sum": [1.0, 2.0],
    "invocations_sum": [4.0, 8.0],
    "throttles_sum": [4.0],
}


def read_only_consumer(**values: list[float]) -> LambdaConsumer:
    """Read the Lambda consumer whose CloudWatch metrics have these values."""
    (consumer,) = read_consumers(make_mapping(), **values).lambda_consumers
    return consumer


def test_function_durations_are_the_longest_p99_and_the_last_p50_in_seconds() -> None:
    consumer = read_only_consumer(**FUNCTION_METRICS)
    assert consumer.duration_p99_seconds == 27.5
    assert consumer.duration_p50_seconds == 0.38


def test_function_errors_and_throttles_are_shares_of_its_invocations() -> None:
    consumer = read_only_consumer(**FUNCTION_METRICS)
    assert consumer.invocations == 12
    assert consumer.error_share == 3 / 12
    assert consumer.throttled_share == 4 / (12 + 4)


def test_function_without_datapoints_has_no_durations_and_no_shares() -> None:
    consumer = read_only_consumer(**{name: [] for name in FUNCTION_METRICS})
    assert consumer.invocations == 0
    assert consumer.duration_p99_seconds is None
    assert consumer.duration_p50_seconds is None
    assert consumer.error_share is None
    assert consumer.throttled_share is None


def test_function_that_was_always_throttled_has_a_throttled_share_of_one() -> None:
    consumer = read_only_consumer(invocations_sum=[], throttles_sum=[9.0])
    assert consumer.throttled_share == 1
    assert consumer.error_share is None


def test_deleted_function_counts_as_stopped_on_every_page_of_mappings() -> None:
    first = {"EventSourceMappings": [make_mapping(State="Disabled")], "NextMarker": "second"}
    last = {"EventSourceMappings": [make_mapping()]}
    request = {"EventSourceArn": QUEUE}
    with Stubber(CLIENTS.functions) as functions:
        functions.add_response("list_event_source_mappings", first, request)
        functions.add_response("list_event_source_mappings", last, {**request, "Marker": "second"})
        functions.add_client_error("get_function_configuration", "ResourceNotFoundException")
        facts = READER.with_consumers(Facts(QUEUE, {}, {}))
    assert facts.stopped_consumers == (FUNCTION, FUNCTION)
    assert facts.lambda_consumers == ()


def test_denied_listing_of_event_source_mappings_raises_facts_unavailable() -> None:
    with Stubber(CLIENTS.functions) as functions:
        functions.add_client_error("list_event_source_mappings", "AccessDeniedException")
        with pytest.raises(FactsUnavailable, match="Lambda consumers of"):
            READER.with_consumers(Facts(QUEUE, {}, {}))


QUEUES = [QUEUE, f"{QUEUE}-2"]
MINUTES = [NOW - timedelta(minutes=n) for n in range(40, 30, -1)]
Answers = list[dict[str, Any]]


def make_answers(**over: Any) -> Answers:
    """Make CloudWatch's answers for every metric of both queues: ten minutes of value 1."""
    whole = {"StatusCode": "Complete", "Timestamps": MINUTES, "Values": [1.0] * 10, **over}
    return [
        {"Id": f"{key}{n}", **whole} for n in range(2) for key in select_series(["every queue"])
    ]


def replace_deletes_answer(answers: Answers, over: Mapping[str, Any]) -> Answers:
    """Replace fields of the answer for the first queue's deletes."""
    return [{**answer, **over} if answer["Id"] == "deleted0" else answer for answer in answers]


@pytest.mark.parametrize("series", ["sent0", "received0", "deleted0"])
def test_queue_of_which_cloudwatch_lacks_a_count_is_not_measured_instead_of_counted_as_0(
    series: str,
) -> None:
    no_points: dict[str, Any] = {"Timestamps": [], "Values": []}
    answers = [
        {**answer, **no_points} if answer["Id"] == series else answer for answer in make_answers()
    ]
    first, second = measure_from_pages([answers])
    assert isinstance(first, MetricGap)
    assert isinstance(second, Measurement)


WRONG_ANSWERS: list[dict[str, Any]] = [
    *({"StatusCode": code} for code in ("PartialData", "InternalError", "Forbidden")),
    *({"Values": [value, *[1.0] * 9]} for value in (float("nan"), float("inf"), -1.0)),
    {"Id": "nobody_asked"},
]


def measure_from_pages(pages: list[Answers]) -> list[Measurement | MetricGap | None]:
    """Measure both queues from these pages of CloudWatch's answer."""
    window = Window.choose(NOW, None, timedelta(hours=1))
    assert window is not None
    with Stubber(CLIENTS.cloudwatch) as cloudwatch:
        for n, page in enumerate(pages):
            more = {"NextToken": "more"} if n + 1 < len(pages) else {}
            cloudwatch.add_response("get_metric_data", {"MetricDataResults": page, **more})
        measurements = measure_queues(CLIENTS, dict.fromkeys(QUEUES, window))
    return [measurements[queue_arn] for queue_arn in QUEUES]


@pytest.mark.parametrize(
    "pages",
    [
        [make_answers()],
        [make_answers(StatusCode="PartialData"), make_answers(Timestamps=[], Values=[])],
    ],
    ids=["one page", "two pages"],
)
def test_complete_cloudwatch_answer_on_one_or_two_pages_measures_each_queue(
    pages: list[Answers],
) -> None:
    measurements = measure_from_pages(pages)
    assert [
        measurement.sent for measurement in measurements if isinstance(measurement, Measurement)
    ] == [10, 10]


@pytest.mark.parametrize(
    ("pages", "sent"),
    [
        *(([replace_deletes_answer(make_answers(), over)], 10) for over in WRONG_ANSWERS),
        *(
            (
                [
                    replace_deletes_answer(
                        make_answers(StatusCode="PartialData"), {"StatusCode": code}
                    ),
                    make_answers(),
                ],
                20,
            )
            for code in ("InternalError", "Forbidden")
        ),
    ],
)
def test_incomplete_or_invalid_cloudwatch_answer_hides_only_the_measurement_of_its_queue(
    pages: list[Answers], sent: int
) -> None:
    first, second = measure_from_pages(pages)
    assert first is None
    assert isinstance(second, Measurement)
    assert second.sent == sent


@pytest.mark.parametrize(
    ("queue_arn", "seconds", "asked"),
    [(f"{QUEUE}.fifo", 301, True), (f"{QUEUE}.fifo", 300, False), (QUEUE, 301, False)],
)
def test_deduplicated_sends_are_read_only_for_fifo_queues_with_a_timeout_above_300_seconds(
    queue_arn: str, seconds: int, *, asked: bool
) -> None:
    with Stubber(CLIENTS.cloudwatch) as cloudwatch:
        for _kind in METRIC_KINDS_OF_SOME_QUEUES:
            cloudwatch.add_response("list_metrics", {"Metrics": []})
        window = READER.choose_window(Facts(queue_arn, {"VisibilityTimeout": str(seconds)}))
    assert window is not None
    assert ("deduplicated" in window.series) is asked
