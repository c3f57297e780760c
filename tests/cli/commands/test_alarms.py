"""Test `mendq alarms`, which prints the missing alarms of a queue."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from statistics import pstdev
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from cfnlint.api import ManualArgs, lint
from msgspec import structs

from mendq.aws.clients import Clients
from mendq.aws.cloudwatch import ALARM_DATAPOINT_PERIOD, FORTNIGHT
from mendq.aws.errors import QueueRefusesUs
from mendq.aws.queue import read_attributes_if_queue_exists
from mendq.catalogue.configuration.alarm_missing import AGE_METRIC, DEPTH_METRIC, IN_FLIGHT_METRIC
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.queues.alarms import (
    FIRST_MESSAGE_ALARM,
    AlarmFormat,
    AlarmLimits,
    choose_alarm_limits,
    make_alarm,
    render_lines,
)
from mendq.cli.region_alarm import compute_alarm_prices
from mendq.cli.region_dlqs import NO_RECEIVE_REASON
from mendq.model.consent import Consent
from mendq.model.queue import RedriveAllowPolicy, RedrivePolicy
from mendq.model.settings import OwnerSettings
from tests.cli.builders import Operator
from tests.scan.scanner import deny_operation

SINCE = datetime(2026, 11, 9, tzinfo=UTC)
TOPIC = "arn:aws:sns:us-east-1:123456789012:on-call"
Value = Callable[[datetime], float]


def make_two_weeks_of_data(value: Value, share: float = 1) -> list[tuple[datetime, float]]:
    times = [
        SINCE + n * ALARM_DATAPOINT_PERIOD
        for n in range(int(share * (FORTNIGHT / ALARM_DATAPOINT_PERIOD)))
    ]
    return [(time, value(time)) for time in times]


def daytime_load(at: datetime) -> float:
    """A load that is high by day and low by night, with small variations."""
    return (600 if 8 <= at.hour < 18 else 60) + at.minute % 7


def make_load_with_daily_peak(days: int) -> Value:
    """Add an hour of high load a day, at a different hour each day, for `days` days."""
    return lambda at: (
        9_000 if (at.day * 5) % 24 == at.hour and at.day < 9 + days else daytime_load(at)
    )


@pytest.mark.parametrize(
    ("value", "width"),
    [
        (daytime_load, 2),
        (make_load_with_daily_peak(2), 2),
        (make_load_with_daily_peak(14), 4),
    ],
    ids=["days alike", "two bad days", "a bad hour a day"],
)
def test_alarm_limits_use_the_narrowest_anomaly_band_that_rings_at_most_once_a_week(
    value: Value, width: int
) -> None:
    limits = choose_alarm_limits(make_two_weeks_of_data(value), normal_value=30)
    assert (limits.width, limits.periods) == (width, 3)


@pytest.mark.parametrize(
    ("value", "share"),
    [(daytime_load, 0.4), (lambda _: 29.0, 1)],
    ids=["mostly idle", "never of concern"],
)
def test_alarm_limits_use_a_threshold_for_a_mostly_idle_queue_or_one_that_is_never_of_concern(
    value: Value, share: float
) -> None:
    limits = choose_alarm_limits(make_two_weeks_of_data(value, share), normal_value=30)
    assert limits.width is None
    assert limits.threshold >= 30


def test_alarm_limits_with_little_data_use_the_maximum_plus_two_standard_deviations() -> None:
    little_data = make_two_weeks_of_data(lambda at: 100 if at.hour else 40, share=0.2)
    limits = choose_alarm_limits(little_data, normal_value=30)
    deviation = pstdev(value for _, value in little_data)
    assert limits.threshold == round(100 + 2 * deviation)


def test_alarm_limits_without_data_use_the_usual_value_and_say_so() -> None:
    limits = choose_alarm_limits((), normal_value=30)
    assert limits.threshold == 30
    assert "0% of two weeks" in limits.because


BANDED = make_alarm("orders.fifo", AGE_METRIC, AlarmLimits("it is so", 3, 4), TOPIC)


def render_banded_alarm(alarm_format: AlarmFormat) -> str:
    return "\n".join(render_lines(BANDED, "us-east-1", alarm_format))


def test_alarm_in_cli_format_is_a_command_with_the_whole_alarm() -> None:
    words = shlex.split(render_banded_alarm(AlarmFormat.CLI))
    assert words[:3] == ["aws", "cloudwatch", "put-metric-alarm"]
    assert json.loads(words[-1]) == BANDED


def test_alarm_in_cloudformation_format_is_a_resource_with_the_same_properties() -> None:
    resources = json.loads("{" + render_banded_alarm(AlarmFormat.CLOUDFORMATION) + "}")
    assert resources["SqsOrdersFifoOldestMessageAge"]["Properties"] == BANDED


def test_alarm_in_cdk_format_is_a_construct_with_the_same_properties() -> None:
    construct = render_banded_alarm(AlarmFormat.CDK)
    given = json.loads(construct[construct.index("{") : construct.rindex("}") + 1])
    assert given == {"type": "AWS::CloudWatch::Alarm", "properties": BANDED}


TERRAFORM = f"""\
resource "aws_cloudwatch_metric_alarm" "sqs_orders_fifo_oldest_message_age" {{
  alarm_name = "sqs-orders.fifo-oldest-message-age"
  alarm_actions = ["{TOPIC}"]
  evaluation_periods = 3
  treat_missing_data = "notBreaching"
  comparison_operator = "GreaterThanUpperThreshold"
  threshold_metric_id = "band"
  metric_query {{
    id = "seen"
    metric {{
      namespace = "AWS/SQS"
      metric_name = "{AGE_METRIC}"
      dimensions = {{ QueueName = "orders.fifo" }}
      period = 300
      stat = "Maximum"
    }}
    return_data = true
  }}
  metric_query {{
    id = "band"
    expression = "ANOMALY_DETECTION_BAND(seen, 4)"
    return_data = true
  }}
}}"""


def test_alarm_in_terraform_format_is_a_whole_resource_with_metric_query_blocks() -> None:
    assert "\n".join(render_lines(BANDED, "us-east-1", AlarmFormat.TERRAFORM)) == TERRAFORM


def test_alarms_prints_the_missing_alarms_of_a_queue_and_its_dlq_and_creates_none(
    operator: Operator,
) -> None:
    dead = operator.aws.queue("orders-dlq")
    arn = operator.aws.queue("orders", RedrivePolicy=RedrivePolicy(dead, 5).text)
    alarms = operator.run_json("alarms", "orders", "--topic", TOPIC)
    assert alarms["queue_arn"] == arn
    missing = [(alarm["queue"], alarm["metric"]) for alarm in alarms["missing"]]
    assert missing == [
        ("orders", AGE_METRIC),
        ("orders", IN_FLIGHT_METRIC),
        ("orders-dlq", DEPTH_METRIC),
    ]
    assert operator.aws.clients.cloudwatch.describe_alarms()["MetricAlarms"] == []


def test_alarms_prints_no_alarm_after_a_person_created_the_printed_ones(
    operator: Operator,
) -> None:
    dead = operator.aws.queue("orders-dlq")
    operator.aws.queue("orders", RedrivePolicy=RedrivePolicy(dead, 5).text)
    for missing_alarm in operator.run_json("alarms", "orders", "--topic", TOPIC)["missing"]:
        operator.aws.clients.cloudwatch.put_metric_alarm(**missing_alarm["alarm"])
    assert operator.run_json("alarms", "orders")["missing"] == []
    assert operator.run_json("alarms", "orders-dlq")["missing"] == []
    assert "is watched by alarms" in operator.read_output("alarms", "orders")


def test_alarms_of_a_dlq_prints_an_alarm_that_rings_at_the_first_message(
    operator: Operator,
) -> None:
    dead = operator.aws.queue("orders-dlq")
    operator.aws.queue("orders", RedrivePolicy=RedrivePolicy(dead, 5).text)
    (missing,) = operator.run_json("alarms", "orders-dlq")["missing"]
    alarm = missing["alarm"]
    assert (alarm["MetricName"], alarm["Threshold"], alarm["Period"]) == (DEPTH_METRIC, 0, 60)
    output = operator.read_output("alarms", "orders-dlq", "--format", "terraform")
    assert "It rings above 0 for 1 min: each message there is news" in output
    assert 'metric_name = "ApproximateNumberOfMessagesVisible"' in output
    assert FIRST_MESSAGE_ALARM.width is None


def test_alarms_takes_the_threshold_from_the_queues_own_metrics(operator: Operator) -> None:
    operator.aws.queue("orders", VisibilityTimeout="30")
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    operator.put_sqs_metric(
        "orders", AGE_METRIC, 700, *(now - timedelta(hours=hours) for hours in (1, 30))
    )
    age, _ = operator.run_json("alarms", "orders")["missing"]
    assert (age["threshold"], age["width"]) == (700, None)


def test_alarms_chooses_another_name_if_an_alarm_of_that_name_exists(operator: Operator) -> None:
    operator.aws.queue("orders")
    first, *_ = (missing["alarm"] for missing in operator.run_json("alarms", "orders")["missing"])
    of_theirs = {**first, "MetricName": "NumberOfMessagesSent"}
    operator.aws.clients.cloudwatch.put_metric_alarm(**of_theirs)
    again, *_ = (missing["alarm"] for missing in operator.run_json("alarms", "orders")["missing"])
    assert again == {**first, "AlarmName": f"{first['AlarmName']}-2"}


def make_region(operator: Operator) -> None:
    """Make two queues with a DLQ and a quarantine, and a queue without a DLQ."""
    dead = operator.aws.queue("orders-dlq")
    policy = RedrivePolicy(dead, 5).text
    sources = tuple(
        operator.aws.queue(name, RedrivePolicy=policy) for name in ("orders", "orders-again")
    )
    operator.aws.set(dead, RedriveAllowPolicy=RedriveAllowPolicy("byQueue", sources).text)
    operator.aws.queue("orders-quarantine")
    operator.aws.queue("bills.fifo")


def test_alarms_for_all_queues_leaves_out_dlqs_and_quarantines_and_creates_none(
    operator: Operator,
) -> None:
    make_region(operator)
    document = operator.run_json("alarms", "--all-older-than", "1800", "--topic", TOPIC)
    assert document["watched_names"] == ["bills.fifo", "orders", "orders-again"]
    assert document["excluded_names"] == ["orders-dlq", "orders-quarantine"]
    alarm = document["alarm"]
    assert (alarm["Threshold"], alarm["AlarmActions"]) == (1_800, [TOPIC])
    (query,) = alarm["Metrics"]
    assert query["Expression"] == (
        'SELECT MAX(ApproximateAgeOfOldestMessage) FROM SCHEMA("AWS/SQS", QueueName) '
        "WHERE QueueName != 'orders-dlq' AND QueueName != 'orders-quarantine' "
        "GROUP BY QueueName ORDER BY MAX() DESC"
    )
    assert operator.aws.clients.cloudwatch.describe_alarms()["MetricAlarms"] == []


def test_alarms_for_all_queues_in_a_region_without_dlqs_prints_a_query_without_conditions(
    operator: Operator,
) -> None:
    operator.aws.queue("orders")
    (query,) = operator.run_json("alarms", "--all-older-than", "1800")["alarm"]["Metrics"]
    assert "WHERE" not in query["Expression"]


def test_alarm_for_all_queues_makes_age_alarms_of_single_queues_needless_but_not_dlq_alarms(
    operator: Operator,
) -> None:
    make_region(operator)
    alarm = operator.run_json("alarms", "--all-older-than", "1800", "--topic", TOPIC)["alarm"]
    operator.aws.clients.cloudwatch.put_metric_alarm(**alarm)
    missing = operator.run_json("alarms", "orders")["missing"]
    assert [(alarm["queue"], alarm["metric"]) for alarm in missing] == [
        ("orders", IN_FLIGHT_METRIC),
        ("orders-dlq", DEPTH_METRIC),
    ]


def test_alarms_for_all_queues_chooses_another_name_if_an_alarm_of_that_name_exists(
    operator: Operator,
) -> None:
    make_region(operator)
    arguments = ("alarms", "--all-older-than", "1800", "--topic", TOPIC)
    alarm = operator.run_json(*arguments)["alarm"]
    operator.aws.clients.cloudwatch.put_metric_alarm(**alarm)
    again = operator.run_json(*arguments)["alarm"]
    assert again == {**alarm, "AlarmName": f"{alarm['AlarmName']}-2"}


def test_alarms_for_all_queues_says_what_the_alarm_costs_and_cannot_do(operator: Operator) -> None:
    make_region(operator)
    output = " ".join(operator.read_output("alarms", "--all-older-than", "1800").split())
    assert "It watches 3 queues, for $0.30 a month" in output
    assert "$0.30 with a threshold ($0.00 while no other alarm uses the 10 metrics" in output
    assert "$0.90 with a band" in output
    assert "one threshold for all queues" in output
    assert "2 queues (DLQs and quarantines)" in output
    assert (
        "orders-dlq is left out because its RedriveAllowPolicy names orders, orders-again" in output
    )
    assert "orders-quarantine is left out because it is a quarantine" in output
    assert "add `--watch orders-dlq`" in output
    assert "describe-alarm-contributors --alarm-name sqs-all-queues-oldest-message-age" in output


@pytest.mark.parametrize(
    ("queue_count", "one_for_all", "thresholds", "thresholds_beyond_free", "bands"),
    [(10, 1, 1, 0, 3), (40, 4, 4, 3, 12), (500, 50, 50, 49, 150)],
)
def test_alarm_for_all_queues_costs_as_much_as_threshold_alarms_and_a_third_of_band_alarms(
    queue_count: int,
    one_for_all: float,
    thresholds: float,
    thresholds_beyond_free: float,
    bands: float,
) -> None:
    prices = compute_alarm_prices(queue_count)
    assert prices.one_alarm_for_all == pytest.approx(one_for_all)
    assert prices.threshold_alarms == pytest.approx(thresholds)
    assert prices.threshold_alarms_beyond_free == pytest.approx(thresholds_beyond_free)
    assert prices.band_alarms == pytest.approx(bands)


def test_alarms_for_all_queues_is_refused_if_one_query_cannot_leave_out_all_dlqs_and_quarantines(
    operator: Operator,
) -> None:
    for number in range(30):
        operator.aws.queue(f"{'a' * 60}-{number}-quarantine")
    refusal = operator.read_refusal("alarms", "--all-older-than", "1800", code=1)
    assert "30 queues (DLQs and quarantines) must be left out by name" in refusal
    assert "CloudWatch takes 2,048. Use one alarm a queue" in refusal


@pytest.mark.parametrize(
    "arguments", [[], ["orders", "--all-older-than", "60"]], ids=["neither", "both"]
)
def test_alarms_with_neither_or_both_of_queue_and_age_is_a_usage_error(
    operator: Operator, arguments: list[str]
) -> None:
    refusal = operator.read_refusal("alarms", *arguments, code=2)
    assert refusal == "give either a QUEUE or --all-older-than SECONDS"


def test_alarms_for_all_queues_names_an_unreadable_queue_prints_the_alarm_and_exits_with_1(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_region(operator)

    def read_attributes(clients: Clients, queue_arn: str) -> Mapping[str, str]:
        if queue_arn.endswith(":orders-again"):
            raise QueueRefusesUs("no")
        return read_attributes_if_queue_exists(clients, queue_arn)

    monkeypatch.setattr("mendq.aws.queue.read_attributes_if_queue_exists", read_attributes)
    output = operator.read_output("alarms", "--all-older-than", "1800", code=1)
    assert "not read: 1 queue, such as orders-again." in output
    assert "put-metric-alarm" in output


def test_cfn_lint_finds_nothing_in_the_alarm_for_all_queues(operator: Operator) -> None:
    make_region(operator)
    alarm = operator.run_json("alarms", "--all-older-than", "1800", "--topic", TOPIC)["alarm"]
    resource = "\n".join(render_lines(alarm, "us-east-1", AlarmFormat.CLOUDFORMATION))
    matches = lint(f'{{"Resources": {{{resource}}}}}', config=ManualArgs(regions=["us-east-1"]))
    assert [str(match) for match in matches] == []


WITHOUT_STACK_ERRORS = {
    "no stack": CommandError("no stack Mendq", Exit.NOT_FOUND),
    "no right": ClientError({"Error": {"Code": "AccessDenied"}}, "DescribeStacks"),
}


@pytest.fixture(params=[None, *WITHOUT_STACK_ERRORS.values()], ids=["stack", *WITHOUT_STACK_ERRORS])
def any_operator(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Operator:
    """Return an operator with a stack, without one, and without the right to ask for one."""

    def raise_error(_: object) -> OwnerSettings:
        raise request.param

    if request.param:
        monkeypatch.setattr(type(operator.account), "settings", property(raise_error))
    return operator


def make_live_queue_named_as_dlq(
    operator: Operator, age_days: int = 0, tag: str | None = None, **attributes: str
) -> dict[str, str]:
    """Make a queue, and one with this tag of Mendq that names it as its DLQ."""
    operator.aws.now = datetime.now(UTC) - timedelta(days=age_days)
    live = operator.aws.queue("live-orders", **attributes)
    source = operator.aws.queue("evil", tag, RedrivePolicy=RedrivePolicy(live, 5).text)
    return {"live": live, "source": source}


def print_region_alarm(operator: Operator, *options: str) -> Any:
    return operator.run_json("alarms", "--all-older-than", "1800", *options)


def allow_redrive_from(operator: Operator, queue_arn: str, source_arn: str) -> None:
    policy = RedriveAllowPolicy("byQueue", (source_arn,)).text
    operator.aws.set(queue_arn, RedriveAllowPolicy=policy)


def receive_from_live_queue(operator: Operator) -> None:
    received_at = datetime.now(UTC) - timedelta(days=10)
    operator.put_sqs_metric("live-orders", "NumberOfEmptyReceives", 1, received_at)


@pytest.mark.parametrize("tag", [None, "observe", "heal"])
def test_alarms_for_all_queues_watches_a_live_queue_that_an_unconfirmed_queue_names_as_its_dlq(
    operator: Operator, tag: str | None
) -> None:
    """Whoever may create a queue may tag it, so the tag confirms nothing."""
    make_live_queue_named_as_dlq(operator, age_days=20, tag=tag)
    receive_from_live_queue(operator)
    document = print_region_alarm(operator)
    assert document["watched_names"] == ["evil", "live-orders"]
    assert document["unconfirmed_dlq_names"] == ["live-orders"]
    assert "live-orders" not in json.dumps(document["alarm"])
    output = operator.read_output("alarms", "--all-older-than", "1800")
    assert "live-orders is watched, although a queue names it as its DLQ" in output
    assert "add `--leave-out live-orders`" in output


@pytest.mark.parametrize(
    ("settings_entry", "excluded_names"), [("ev*", []), ("evi", []), ("evil", ["live-orders"])]
)
def test_alarms_for_all_queues_leaves_out_a_dlq_only_if_settings_have_the_sources_full_name(
    operator: Operator,
    monkeypatch: pytest.MonkeyPatch,
    settings_entry: str,
    excluded_names: list[str],
) -> None:
    """Whoever may create a queue may choose a name that fits a prefix."""
    consent = Consent(queues=(settings_entry,))
    settings = structs.replace(operator.account.settings, consent=consent)
    monkeypatch.setattr(type(operator.account), "settings", property(lambda _: settings))
    make_live_queue_named_as_dlq(operator, age_days=20)
    receive_from_live_queue(operator)
    assert print_region_alarm(operator)["excluded_names"] == excluded_names


def test_alarms_for_all_queues_leaves_out_a_dlq_whose_policy_names_the_source(
    any_operator: Operator,
) -> None:
    arns = make_live_queue_named_as_dlq(any_operator)
    allow_redrive_from(any_operator, arns["live"], arns["source"])
    document = print_region_alarm(any_operator)
    assert document["reason_by_excluded_name"] == {
        "live-orders": "its RedriveAllowPolicy names evil"
    }


def test_alarms_for_all_queues_watches_a_queue_whose_policy_names_other_sources(
    any_operator: Operator,
) -> None:
    arns = make_live_queue_named_as_dlq(any_operator)
    other = any_operator.aws.queue("other")
    allow_redrive_from(any_operator, arns["live"], other)
    assert print_region_alarm(any_operator)["excluded_names"] == []


def test_alarms_for_all_queues_leaves_out_a_dlq_that_nobody_receives_from(
    any_operator: Operator,
) -> None:
    make_live_queue_named_as_dlq(any_operator, age_days=20)
    document = print_region_alarm(any_operator)
    assert document["reason_by_excluded_name"] == {"live-orders": NO_RECEIVE_REASON}
    assert document["unconfirmed_dlq_names"] == []


@pytest.mark.parametrize("metric", ["NumberOfMessagesReceived", "NumberOfEmptyReceives"])
def test_alarms_for_all_queues_watches_a_queue_that_consumers_receive_from(
    any_operator: Operator, metric: str
) -> None:
    make_live_queue_named_as_dlq(any_operator, age_days=20)
    received_at = datetime.now(UTC) - timedelta(days=10)
    any_operator.put_sqs_metric("live-orders", metric, 1, received_at)
    document = print_region_alarm(any_operator)
    assert document["excluded_names"] == []
    assert document["unconfirmed_dlq_names"] == ["live-orders"]


def test_alarms_for_all_queues_watches_a_queue_that_is_younger_than_two_weeks(
    any_operator: Operator,
) -> None:
    make_live_queue_named_as_dlq(any_operator, age_days=13)
    assert print_region_alarm(any_operator)["excluded_names"] == []


def test_alarms_for_all_queues_watches_every_named_queue_if_cloudwatch_refuses(
    any_operator: Operator,
) -> None:
    make_live_queue_named_as_dlq(any_operator, age_days=20)
    clients = any_operator.account.clients
    deny_operation(clients.cloudwatch, "GetMetricData")
    assert print_region_alarm(any_operator)["excluded_names"] == []


def test_alarms_for_all_queues_watches_a_queue_whose_metrics_are_incomplete(
    any_operator: Operator,
) -> None:
    make_live_queue_named_as_dlq(any_operator, age_days=20)
    results = [
        {"Id": "m0", "StatusCode": "Complete", "Timestamps": [], "Values": []},
        {"Id": "m1", "StatusCode": "InternalError", "Timestamps": [], "Values": []},
    ]

    def answer(**_: Any) -> Any:
        return SimpleNamespace(status_code=200), {"MetricDataResults": results}

    cloudwatch: Any = any_operator.account.clients.cloudwatch
    cloudwatch.meta.events.register("before-call.cloudwatch.GetMetricData", answer)
    assert print_region_alarm(any_operator)["excluded_names"] == []


@pytest.mark.parametrize(
    "error",
    [
        CommandError("the settings of heal: unreadable"),
        ClientError({"Error": {"Code": "Throttling"}}, "DescribeStacks"),
    ],
    ids=["unreadable", "throttled"],
)
def test_alarms_for_all_queues_prints_no_alarm_if_the_stacks_settings_cannot_be_read(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def raise_error(_: object) -> OwnerSettings:
        raise error

    make_region(operator)
    monkeypatch.setattr(type(operator.account), "settings", property(raise_error))
    document = operator.run_json("alarms", "--all-older-than", "1800", code=Exit.FAILED)
    assert "alarm" not in document


def test_alarms_for_all_queues_watches_a_dlq_that_the_operator_wants_to_watch(
    operator: Operator,
) -> None:
    make_region(operator)
    document = print_region_alarm(operator, "--watch", "orders-dlq")
    assert document["excluded_names"] == ["orders-quarantine"]
    assert "orders-dlq" in document["watched_names"]
    assert document["unconfirmed_dlq_names"] == []


def test_alarms_for_all_queues_leaves_out_each_queue_that_the_operator_names(
    operator: Operator,
) -> None:
    make_live_queue_named_as_dlq(operator)
    document = print_region_alarm(operator, "--leave-out", "live-orders", "--leave-out", "evil")
    assert document["excluded_names"] == ["evil", "live-orders"]
    (query,) = document["alarm"]["Metrics"]
    assert "QueueName != 'evil' AND QueueName != 'live-orders'" in query["Expression"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--all-older-than", "60", "--watch", "ordres"), "--watch ordres: there is no such queue"),
        (("--all-older-than", "60", "--leave-out", "a' OR 'b"), "there is no such queue"),
        (
            ("--all-older-than", "60", "--watch", "orders", "--leave-out", "orders"),
            "orders: give --watch or --leave-out, not both",
        ),
        (("orders", "--watch", "orders"), "--watch and --leave-out need --all-older-than"),
    ],
)
def test_alarms_refuses_a_choice_of_queues_that_cannot_be_meant(
    operator: Operator, arguments: tuple[str, ...], message: str
) -> None:
    operator.aws.queue("orders")
    assert message in operator.read_refusal("alarms", *arguments, code=Exit.USAGE)
