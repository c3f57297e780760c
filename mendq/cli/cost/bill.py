"""Estimate what the stack costs in a month in which nothing fails.

Each resource type has a function that prices it, or a reason why it costs nothing. A type without
either is reported as not priced; it does not count as zero. The assumptions are high rather than
low. None of them was measured in an account.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from typing import Any

from msgspec import Struct, field

from mendq.model import prices
from mendq.model.mapping import (
    DEFAULT_MINIMUM_POLLERS,
    IDLE_POLLERS_WITH_MAXIMUM_CONCURRENCY,
    IDLE_RECEIVES_PER_MINUTE,
)
from mendq.model.names import (
    GAUGE_METRICS,
    HEARTBEAT_METRIC,
    METRICS_SENT_ON_EVENTS,
    OwnMetric,
)
from mendq.model.prices import Price
from mendq.model.settings import DEFAULT_SPARK_WORKER, INITIAL_EXECUTORS
from mendq.nightly.outcome import NightlyMetric
from mendq.notifications.text import format_count

DAYS_PER_MONTH = 30
HOURS_PER_MONTH = 24 * DAYS_PER_MONTH
DASHBOARD_ITEM = "dashboard"
# Assumptions about one run of a Lambda.
SECONDS_PER_LAMBDA_RUN = 1
LOG_BYTES_PER_LAMBDA_RUN = 2_000
TABLE_READS_PER_LAMBDA_RUN = 10
TABLE_WRITES_PER_LAMBDA_RUN = 2
# Assumptions about what is stored, in GB, and about the nightly job.
CASE_TABLE_GB = 0.1
GB_IN_BUCKETS = 1
SECONDS_PER_NIGHTLY_RUN = 120
# A trail writes at most one file every five minutes and one digest every hour.
TRAIL_FILES_PER_MONTH = HOURS_PER_MONTH * (12 + 1)
_MINUTES_BY_UNIT = {"minute": 1, "hour": 60, "day": 1_440}
# A schedule by interval, such as `rate(5 minutes)`.
RATE_SCHEDULE_REGEX = re.compile(r"rate\(([1-9]\d*) (minute|hour|day)s?\)")
# A schedule by time, such as `cron(30 2 * * ? *)` or `cron(0 6 ? * MON *)`: daily or weekly.
CRON_SCHEDULE_REGEX = re.compile(r"cron\((\d+) (\d+) [*?] \* ([*?]|[A-Z]{3}) \*\)")


class NotPriced(Exception):
    """Mendq cannot compute the cost of something in the template."""


class CostLine(Struct, frozen=True):
    """One line of the estimated monthly bill."""

    # The billed thing, such as `alarms`.
    item: str
    # The billed quantity, in words.
    quantity: str
    # The reason for the quantity: it is counted or assumed. In words.
    reason: str
    # Billed units by price.
    units_by_price: Mapping[Price, float] = field(default_factory=dict)

    @property
    def dollars(self) -> float:
        """Dollars per month at list price."""
        return sum(price.cost(units) for price, units in self.units_by_price.items())

    def document(self) -> dict[str, Any]:
        return {
            "what": self.item,
            "quantity": self.quantity,
            "because": self.reason,
            "dollars": round(self.dollars, 4),
        }


class ScheduledLambda(Struct, frozen=True):
    """A Lambda function that a schedule starts, and how often."""

    # Name of the handler's module, such as `follow_up`.
    handler_module: str
    memory_gb: float
    runs_a_month: float


class BilledStack(Struct, frozen=True, dict=True):
    """The CloudFormation template of a Mendq stack, with methods that count what AWS bills.

    The template is synthesized or comes from a deployed stack. All properties and methods raise
    NotPriced if it is not a template with resources.
    """

    template: Mapping[str, Any]

    def list_properties(self, resource_type: str) -> list[Mapping[str, Any]]:
        """Return the properties of each resource of a type such as `AWS::S3::Bucket`."""
        return [
            resource.get("Properties", {})
            for resource in self._resources.values()
            if resource["Type"] == resource_type
        ]

    @property
    def resource_types(self) -> set[str]:
        """The types of the resources in the template."""
        return {resource["Type"] for resource in self._resources.values()}

    def has_lambda(self, handler_module: str) -> bool:
        """Return True if a Lambda function of the stack runs this module, such as `follow_up`."""
        return any(
            function.get("Handler") == f"functions.{handler_module}.handler"
            for function in self.list_properties("AWS::Lambda::Function")
        )

    def count_runs(self, handler_module: str = "") -> float:
        """Return how many times per month schedules start the Lambda of a module.

        `handler_module` is the module's name, such as `follow_up`. If it is empty, the starts of
        all Lambdas are counted.
        """
        return sum(
            scheduled_lambda.runs_a_month
            for scheduled_lambda in self.scheduled_lambdas
            if handler_module in ("", scheduled_lambda.handler_module)
        )

    @property
    def _resources(self) -> Mapping[str, Any]:
        if not isinstance(self.template, Mapping) or "Resources" not in self.template:
            raise NotPriced("it is no JSON template with resources, so none of Mendq's")
        resources: Mapping[str, Mapping[str, Any]] = self.template["Resources"]
        return resources

    @cached_property
    def scheduled_lambdas(self) -> tuple[ScheduledLambda, ...]:
        """The Lambda functions that the template's schedules start, one for each schedule.

        Raises NotPriced if a schedule starts something else, or is written in an unknown form.
        """
        scheduled_lambdas = []
        for schedule in self.list_properties("AWS::Scheduler::Schedule"):
            target_arn = schedule["Target"]["Arn"]
            function_properties = self._resources.get(target_arn["Fn::GetAtt"][0], {}).get(
                "Properties", {}
            )
            handler_module = (
                str(function_properties.get("Handler", ""))
                .removesuffix(".handler")
                .rpartition(".")[2]
            )
            if not handler_module:
                raise NotPriced("a schedule starts something that is no Lambda of the stack")
            runs_a_month = count_runs_a_month(schedule["ScheduleExpression"])
            memory_gb = function_properties.get("MemorySize", 128) / 1_024
            scheduled_lambdas.append(ScheduledLambda(handler_module, memory_gb, runs_a_month))
        return tuple(scheduled_lambdas)


def count_runs_a_month(schedule_expression: str) -> float:
    """Return how many times per month a schedule such as `rate(5 minutes)` starts its target.

    Raises NotPriced if the expression is neither a rate nor a daily or weekly time.

    https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html
    """
    if rate_match := RATE_SCHEDULE_REGEX.fullmatch(schedule_expression):
        return DAYS_PER_MONTH * 1_440 / (int(rate_match[1]) * _MINUTES_BY_UNIT[rate_match[2]])
    if cron_match := CRON_SCHEDULE_REGEX.fullmatch(schedule_expression):
        return DAYS_PER_MONTH / (7 if cron_match[3].isalpha() else 1)
    raise NotPriced(f"the schedule {schedule_expression} cannot be counted")


def list_costs(stack: BilledStack) -> list[CostLine]:
    """Return the lines of the stack's monthly bill, the most expensive first.

    Resource types without a price are left out; `list_unpriced_types` returns them.

    Raises NotPriced if the template has no resources, or if a schedule has an unknown form or
    starts something other than a Lambda of the stack. A damaged template may also raise LookupError
    or TypeError.
    """
    cost_lines = [
        PRICING_FUNCTION_BY_TYPE[resource_type](stack)
        for resource_type in sorted(stack.resource_types & PRICING_FUNCTION_BY_TYPE.keys())
    ]
    metrics_line = _price_metrics(stack)
    if metrics_line.dollars:
        cost_lines.append(metrics_line)
    return sorted(cost_lines, key=lambda line: -line.dollars)


def list_free_types(stack: BilledStack) -> dict[str, str]:
    """Return the stack's resource types that cost nothing while nothing fails, with the reasons."""
    return {
        resource_type: FREE_REASON_BY_TYPE[resource_type]
        for resource_type in sorted(stack.resource_types & FREE_REASON_BY_TYPE.keys())
    }


def list_unpriced_types(stack: BilledStack) -> list[str]:
    """Return the stack's resource types whose cost Mendq does not know, in alphabetical order.

    The bill leaves them out.
    """
    return sorted(
        stack.resource_types - PRICING_FUNCTION_BY_TYPE.keys() - FREE_REASON_BY_TYPE.keys()
    )


def sum_with_and_without_dashboard(cost_lines: Iterable[CostLine]) -> tuple[float, float]:
    """Return the dollars per month at list price, first with a dashboard and then without one.

    Both sums are correct whether or not `cost_lines` contains a dashboard.
    """
    dollars_without_dashboard = sum(
        line.dollars for line in cost_lines if line.item != DASHBOARD_ITEM
    )
    return dollars_without_dashboard + prices.DASHBOARD_MONTH.cost(1), dollars_without_dashboard


# The module of the Lambda that sends a metric while nothing happens.
_SENDER_BY_METRIC: Mapping[OwnMetric, str] = {
    OwnMetric.AUTO_FIXES: "follow_up",
    HEARTBEAT_METRIC: "follow_up",
    **dict.fromkeys(GAUGE_METRICS, "follow_up"),
    OwnMetric.PROBES_LOST: "probe",
}
# Metrics that are sent for one hour: at the end of a nightly run, and with a weekly report.
_NIGHTLY_METRICS = (*NightlyMetric, OwnMetric.WEEKS_FAILED)
_WEEKLY_METRICS = (OwnMetric.REPORTS_DELIVERED, OwnMetric.REPORTS_NOT_DELIVERED)


def _price_metrics(stack: BilledStack) -> CostLine:
    """Price Mendq's own metrics, which no resource of the template declares.

    CloudWatch bills a metric for each hour in which it is sent.
    """
    sometimes_sent_metrics = {*_NIGHTLY_METRICS, *_WEEKLY_METRICS}
    always_sent_metrics = {
        metric
        for metric in {*OwnMetric} - METRICS_SENT_ON_EVENTS - sometimes_sent_metrics
        if stack.has_lambda(_SENDER_BY_METRIC[metric])
    }
    # A gauge is sent only if an alarm of the stack watches it.
    metrics_watched_by_alarms = {
        alarm.get("MetricName") for alarm in stack.list_properties("AWS::CloudWatch::Alarm")
    }
    always_sent_metrics -= GAUGE_METRICS - metrics_watched_by_alarms
    nightly_run_count = stack.count_runs("start_nightly")
    sends_weekly_metrics = stack.has_lambda("deliver_report")
    sometimes_sent_metric_count = len(_WEEKLY_METRICS) if sends_weekly_metrics else 0
    if nightly_run_count:
        sometimes_sent_metric_count += len(_NIGHTLY_METRICS)
    nightly_metric_hours = len(_NIGHTLY_METRICS) * nightly_run_count
    weekly_metric_hours = 0.0
    if sends_weekly_metrics:
        weekly_metric_hours = len(_WEEKLY_METRICS) * DAYS_PER_MONTH / 7
    metric_hours = (
        len(always_sent_metrics) * HOURS_PER_MONTH + nightly_metric_hours + weekly_metric_hours
    )
    quantity = (
        f"{len(always_sent_metrics)} all month, {sometimes_sent_metric_count} some hours of it"
    )
    reason = "what the Lambdas send when nothing happens; a symptom's own series come with it"
    units_by_price = {prices.METRIC_MONTH: metric_hours / HOURS_PER_MONTH}
    return CostLine("custom metrics", quantity, reason, units_by_price)


def _price_alarms(stack: BilledStack) -> CostLine:
    alarms = stack.list_properties("AWS::CloudWatch::Alarm")
    metric_count = sum(map(_count_billed_metrics, alarms))
    quantity = f"{len(alarms)} over {format_count(metric_count, 'metric')}"
    reason = "a metric each, but of those that compare several; an anomaly band is two more"
    return CostLine("alarms", quantity, reason, {prices.ALARM_METRIC_MONTH: metric_count})


def _count_billed_metrics(alarm: Mapping[str, Any]) -> int:
    """Return the number of metrics for which CloudWatch bills an alarm, at least 1.

    An anomaly detection band counts as two metrics more.
    """
    metric_queries = alarm.get("Metrics", ())
    anomaly_band_count = sum(
        "ANOMALY_DETECTION_BAND" in str(metric_query.get("Expression"))
        for metric_query in metric_queries
    )
    metric_count = sum("MetricStat" in metric_query for metric_query in metric_queries)
    return max(1, metric_count) + 2 * anomaly_band_count


# Resource types with one price for each resource: the name in the bill, the reason and the price.
_FLAT_PRICE_BY_TYPE: Mapping[str, tuple[str, str, Price]] = {
    "AWS::CloudWatch::CompositeAlarm": (
        "composite alarms",
        "they page people for several alarms at once, or are what such a page stands on",
        prices.COMPOSITE_ALARM_MONTH,
    ),
    "AWS::CloudWatch::Dashboard": (
        DASHBOARD_ITEM,
        "nothing while the payer has no three others",
        prices.DASHBOARD_MONTH,
    ),
    "AWS::KMS::Key": (
        "KMS key",
        "a dollar more after its first yearly rotation, and another after its second",
        prices.KMS_KEY_MONTH,
    ),
}


def _price_per_resource(resource_type: str, stack: BilledStack) -> CostLine:
    resource_count = len(stack.list_properties(resource_type))
    item, reason, price = _FLAT_PRICE_BY_TYPE[resource_type]
    return CostLine(item, f"{resource_count}", reason, {price: resource_count})


def _price_buckets(stack: BilledStack) -> CostLine:
    bucket_count = len(stack.list_properties("AWS::S3::Bucket"))
    quantity = (
        f"{GB_IN_BUCKETS} GB in {bucket_count} buckets, {TRAIL_FILES_PER_MONTH:,} files written"
    )
    reason = "at most a trail's file every five minutes, and its digest every hour"
    units_by_price = {prices.S3_GB_MONTH: GB_IN_BUCKETS, prices.S3_PUT: TRAIL_FILES_PER_MONTH}
    return CostLine("S3", quantity, reason, units_by_price)


def _price_trail(stack: BilledStack) -> CostLine:
    probe_count = stack.count_runs("probe")
    reason = "the probe's own calls alone; your queues' calls come on top"
    if "Management" in str(stack.list_properties("AWS::CloudTrail::Trail")):
        repeated_event_price = prices.SECOND_COPY_OF_MANAGEMENT_EVENT.words
        reason += (
            f"; management events cost {repeated_event_price} where another trail logs them too"
        )
    quantity = f"{probe_count:,.0f} data events"
    return CostLine("the trail", quantity, reason, {prices.DATA_EVENT: probe_count})


def _price_table(stack: BilledStack) -> CostLine:
    table_read_count = stack.count_runs() * TABLE_READS_PER_LAMBDA_RUN
    table_write_count = stack.count_runs() * TABLE_WRITES_PER_LAMBDA_RUN
    quantity = f"{table_read_count:,.0f} reads, {table_write_count:,.0f} writes, {CASE_TABLE_GB} GB"
    reason = (
        f"at most {TABLE_READS_PER_LAMBDA_RUN} reads and {TABLE_WRITES_PER_LAMBDA_RUN} writes in a "
        "run of a Lambda"
    )
    if stack.has_lambda("redrive"):
        reason += "; nothing calls the table of seal keys while no message is redriven"
    units_by_price = {
        prices.READ_UNIT: table_read_count,
        prices.WRITE_UNIT: table_write_count,
        prices.TABLE_GB_MONTH: CASE_TABLE_GB,
        prices.RECOVERY_GB_MONTH: CASE_TABLE_GB,
    }
    return CostLine("the case store", quantity, reason, units_by_price)


def _price_nightly_job(stack: BilledStack) -> CostLine:
    run_count = stack.count_runs("start_nightly")
    # The driver and the executors that a run starts with. An idle account needs no more workers.
    worker_count = 1 + INITIAL_EXECUTORS
    worker_hours = run_count * worker_count * SECONDS_PER_NIGHTLY_RUN / 3_600
    quantity = f"{run_count:.0f} runs of a driver and an executor, {SECONDS_PER_NIGHTLY_RUN} s each"
    reason = "of an idle account; the application stops between them and costs nothing"
    units_by_price = {
        prices.EMR_VCPU_HOUR: worker_hours * DEFAULT_SPARK_WORKER.vcpu,
        prices.EMR_GB_HOUR: worker_hours * DEFAULT_SPARK_WORKER.memory_gb,
    }
    return CostLine("EMR Serverless", quantity, reason, units_by_price)


def count_idle_receives(poller_count: int) -> int:
    """Return how many ReceiveMessage calls a month these Lambda pollers make on an idle queue."""
    return poller_count * IDLE_RECEIVES_PER_MINUTE * 60 * HOURS_PER_MONTH


def _price_polling(stack: BilledStack) -> CostLine:
    """Price Lambda's ReceiveMessage calls on idle queues, and its pollers in provisioned mode.

    A mapping in the default mode counts as 5 calls at a time. Without MaximumConcurrency, Lambda
    may go down to 2, but it need not.
    """
    mappings = stack.list_properties("AWS::Lambda::EventSourceMapping")
    receive_count = 0
    provisioned_poller_count = 0
    for mapping in mappings:
        poller_count = IDLE_POLLERS_WITH_MAXIMUM_CONCURRENCY
        poller_config = mapping.get("ProvisionedPollerConfig")
        if poller_config:
            poller_count = poller_config.get("MinimumPollers", DEFAULT_MINIMUM_POLLERS)
            provisioned_poller_count += poller_count
        receive_count += count_idle_receives(poller_count)
    units_by_price: dict[Price, float] = {prices.SQS_REQUEST: receive_count}
    reason = (
        f"Lambda waits with {IDLE_POLLERS_WITH_MAXIMUM_CONCURRENCY} calls of 20 s at once where a "
        "mapping sets MaximumConcurrency, as this one does"
    )
    if provisioned_poller_count:
        reason = (
            f"{format_count(provisioned_poller_count, 'provisioned poller')}, counted as one Event "
            "Poller Unit and one call of 20 s at a time each: AWS does not say how many both are"
        )
        units_by_price[prices.POLLER_UNIT_HOUR] = provisioned_poller_count * HOURS_PER_MONTH
    return CostLine("polling the intake queue", f"{receive_count:,} calls", reason, units_by_price)


def _price_invocations(stack: BilledStack) -> CostLine:
    gb_seconds = 0.0
    for scheduled_lambda in stack.scheduled_lambdas:
        run_seconds = scheduled_lambda.runs_a_month * SECONDS_PER_LAMBDA_RUN
        gb_seconds += run_seconds * scheduled_lambda.memory_gb
    quantity = f"{stack.count_runs():,.0f} runs, {gb_seconds:,.0f} GB-seconds"
    reason = f"what the schedules start, {SECONDS_PER_LAMBDA_RUN} s each"
    units_by_price = {
        prices.LAMBDA_REQUEST: stack.count_runs(),
        prices.LAMBDA_GB_SECOND: gb_seconds,
    }
    return CostLine("Lambda", quantity, reason, units_by_price)


def _price_logs(stack: BilledStack) -> CostLine:
    written_gb = stack.count_runs() * LOG_BYTES_PER_LAMBDA_RUN / 1e9
    log_groups = stack.list_properties("AWS::Logs::LogGroup")
    retention_days = max(log_group.get("RetentionInDays", 365) for log_group in log_groups)
    quantity = f"{written_gb:.2f} GB, kept {retention_days} days"
    reason = f"{LOG_BYTES_PER_LAMBDA_RUN:,} bytes a run"
    units_by_price = {
        prices.LOG_GB: written_gb,
        prices.LOG_GB_MONTH: written_gb * retention_days / DAYS_PER_MONTH,
    }
    return CostLine("logs, and metrics on their way", quantity, reason, units_by_price)


def _price_schedules(stack: BilledStack) -> CostLine:
    units_by_price = {prices.SCHEDULED_INVOCATION: stack.count_runs()}
    quantity = f"{stack.count_runs():,.0f} invocations"
    reason = "the scan's each ten minutes"
    if stack.has_lambda("follow_up"):
        reason = "follow_up's each minute above all"
    return CostLine("Scheduler", quantity, reason, units_by_price)


# The function that prices all resources of a type.
PRICING_FUNCTION_BY_TYPE: Mapping[str, Callable[[BilledStack], CostLine]] = {
    **{
        resource_type: partial(_price_per_resource, resource_type)
        for resource_type in _FLAT_PRICE_BY_TYPE
    },
    "AWS::CloudTrail::Trail": _price_trail,
    "AWS::CloudWatch::Alarm": _price_alarms,
    "AWS::DynamoDB::Table": _price_table,
    "AWS::EMRServerless::Application": _price_nightly_job,
    "AWS::Lambda::EventSourceMapping": _price_polling,
    "AWS::Lambda::Function": _price_invocations,
    "AWS::Logs::LogGroup": _price_logs,
    "AWS::S3::Bucket": _price_buckets,
    "AWS::Scheduler::Schedule": _price_schedules,
}
_NO_CHARGE_REASON = "AWS does not charge for it"
# Resource types that cost nothing while nothing fails, each with the reason.
FREE_REASON_BY_TYPE: Mapping[str, str] = {
    "AWS::CDK::Metadata": _NO_CHARGE_REASON,
    "AWS::CloudWatch::AnomalyDetector": "billed with the alarm that watches its band",
    "AWS::Events::ApiDestination": "billed by the call: nobody is paged while nothing fails",
    "AWS::Events::Connection": _NO_CHARGE_REASON,
    "AWS::Events::Rule": "rules cost nothing, nor does what AWS's services send by themselves",
    "AWS::IAM::ManagedPolicy": _NO_CHARGE_REASON,
    "AWS::IAM::Policy": _NO_CHARGE_REASON,
    "AWS::IAM::Role": _NO_CHARGE_REASON,
    "AWS::KMS::Alias": _NO_CHARGE_REASON,
    "AWS::Lambda::EventInvokeConfig": _NO_CHARGE_REASON,
    "AWS::Lambda::Permission": _NO_CHARGE_REASON,
    "AWS::S3::BucketPolicy": _NO_CHARGE_REASON,
    "AWS::SNS::Subscription": "billed by the message: 100,000 mails are two dollars",
    "AWS::SNS::Topic": "billed by the message: nothing is sent while nothing fails",
    "AWS::SNS::TopicPolicy": _NO_CHARGE_REASON,
    "AWS::SQS::Queue": "billed by the call: idle ones are called by nobody but Lambda's pollers",
    "AWS::SQS::QueuePolicy": _NO_CHARGE_REASON,
}
