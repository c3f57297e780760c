"""Cost of the stack in a month in which nothing fails, by one function per resource type.

A resource type that has neither a price nor a reason to be free here does not count as zero: it is
reported as not priced. All assumptions are on the high side. None was measured in an account.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from typing import Any

from msgspec import Struct, field

from mendq.model import prices
from mendq.model.names import GAUGES, WHEN_SOMETHING_HAPPENS, OwnMetric
from mendq.model.prices import Price
from mendq.model.settings import WORKER
from mendq.nightly.outcome import NightlyMetric
from mendq.notifications.text import format_count

MONTH_DAYS = 30
MONTH_HOURS = 24 * MONTH_DAYS
DASHBOARD = "dashboard"
# Assumptions about one run of a Lambda.
SECONDS_OF_A_RUN = 1
LOG_BYTES_OF_A_RUN = 2_000
READS_OF_A_RUN = 10
WRITES_OF_A_RUN = 2
# Assumptions about what is stored, and about the nightly job.
TABLE_GB = 0.1
BUCKETS_GB = 1
SECONDS_OF_A_NIGHTLY_RUN = 120
# A trail writes at most one file every five minutes and one digest every hour.
TRAIL_FILES = MONTH_HOURS * (12 + 1)
# Lambda polls an idle queue with this many calls at once, and each call waits 20 s.
POLLERS = 5
_MINUTES = {"minute": 1, "hour": 60, "day": 1_440}
# A schedule by interval, such as `rate(5 minutes)`.
RATE = re.compile(r"rate\(([1-9]\d*) (minute|hour|day)s?\)")
# A schedule by time, such as `cron(30 2 * * ? *)` or `cron(0 6 ? * MON *)`: daily or weekly.
CRON = re.compile(r"cron\((\d+) (\d+) [*?] \* ([*?]|[A-Z]{3}) \*\)")


class NotPriced(Exception):
    """The template contains something whose cost this version cannot compute."""


class CostLine(Struct, frozen=True):
    """One line of the monthly bill."""

    # The billed thing, such as `alarms`.
    what: str
    # The billed quantity, in words.
    quantity: str
    # The reason for the quantity: it is counted or assumed. In words.
    because: str
    # Billed units by price.
    billed: Mapping[Price, float] = field(default_factory=dict)

    @property
    def dollars(self) -> float:
        """Dollars a month at list price."""
        return sum(price.cost(units) for price, units in self.billed.items())

    def document(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "quantity": self.quantity,
            "because": self.because,
            "dollars": round(self.dollars, 4),
        }


class ScheduledLambda(Struct, frozen=True):
    """A Lambda that a schedule starts."""

    # Name of the handler's module, such as `follow_up`.
    handler: str
    memory_gb: float
    runs_a_month: float


class BilledStack(Struct, frozen=True, dict=True):
    """The parts of a CloudFormation template that are billed.

    The template is synthesized or comes from a deployed stack. Properties raise NotPriced if it is
    not one of Mendq's.
    """

    template: Mapping[str, Any]

    def list_properties(self, resource_type: str) -> list[Mapping[str, Any]]:
        """Return the properties of each resource of this type."""
        return [
            resource.get("Properties", {})
            for resource in self._resources.values()
            if resource["Type"] == resource_type
        ]

    @property
    def types(self) -> set[str]:
        """Resource types in the template."""
        return {resource["Type"] for resource in self._resources.values()}

    def count_runs(self, handler: str = "") -> float:
        """Return how many times a month schedules start `handler`, or any Lambda if it is empty."""
        return sum(
            scheduled.runs_a_month
            for scheduled in self.scheduled_lambdas
            if handler in ("", scheduled.handler)
        )

    @property
    def _resources(self) -> Mapping[str, Any]:
        if not isinstance(self.template, Mapping) or "Resources" not in self.template:
            raise NotPriced("it is no JSON template with resources, so none of Mendq's")
        resources: Mapping[str, Mapping[str, Any]] = self.template["Resources"]
        return resources

    @cached_property
    def scheduled_lambdas(self) -> tuple[ScheduledLambda, ...]:
        """The Lambda that each schedule starts.

        Raises NotPriced if a schedule starts anything else or has a form that Mendq does not use.
        """
        scheduled_lambdas = []
        for schedule in self.list_properties("AWS::Scheduler::Schedule"):
            target = schedule["Target"]["Arn"]
            function = self._resources.get(target["Fn::GetAtt"][0], {}).get("Properties", {})
            name = str(function.get("Handler", "")).removesuffix(".handler").rpartition(".")[2]
            if not name:
                raise NotPriced("a schedule starts something that is no Lambda of the stack")
            runs_a_month = count_runs_a_month(schedule["ScheduleExpression"])
            memory_gb = function.get("MemorySize", 128) / 1_024
            scheduled_lambdas.append(ScheduledLambda(name, memory_gb, runs_a_month))
        return tuple(scheduled_lambdas)


def count_runs_a_month(expression: str) -> float:
    """Return how often a month a schedule starts its target.

    Raises NotPriced if the schedule has a form that Mendq does not use.

    https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html
    """
    if rate := RATE.fullmatch(expression):
        return MONTH_DAYS * 1_440 / (int(rate[1]) * _MINUTES[rate[2]])
    if cron := CRON.fullmatch(expression):
        return MONTH_DAYS / (7 if cron[3].isalpha() else 1)
    raise NotPriced(f"the schedule {expression} cannot be counted")


def list_costs(stack: BilledStack) -> list[CostLine]:
    """Return the lines of the bill, the most expensive first.

    Resource types that this version has no price for are left out: see `list_unpriced_types`.
    Raises NotPriced if the template or a schedule in it has a form that Mendq does not use. A
    damaged template may also raise LookupError or TypeError.
    """
    costs = [PRICED[resource_type](stack) for resource_type in sorted(stack.types & PRICED.keys())]
    costs.append(_price_metrics(stack))
    return sorted(costs, key=lambda cost: -cost.dollars)


def list_free_types(stack: BilledStack) -> dict[str, str]:
    """Return the resource types that cost nothing while nothing fails, each with the reason."""
    return {
        resource_type: FREE[resource_type] for resource_type in sorted(stack.types & FREE.keys())
    }


def list_unpriced_types(stack: BilledStack) -> list[str]:
    """Return the stack's resource types that are neither in PRICED nor in FREE, sorted.

    The bill leaves them out.
    """
    return sorted(stack.types - PRICED.keys() - FREE.keys())


def with_and_without_dashboard(costs: Iterable[CostLine]) -> tuple[float, float]:
    """Return dollars a month at list price with a dashboard and without one.

    `costs` may contain the dashboard or not.
    """
    without = sum(cost.dollars for cost in costs if cost.what != DASHBOARD)
    return without + prices.DASHBOARD_MONTH.cost(1), without


# Metrics that are sent for one hour: at the end of a nightly run, and with a weekly report.
_METRICS_OF_A_NIGHT = (*NightlyMetric, OwnMetric.WEEKS_FAILED)
_METRICS_OF_A_WEEK = (OwnMetric.REPORTS_DELIVERED, OwnMetric.REPORTS_NOT_DELIVERED)


def _price_metrics(stack: BilledStack) -> CostLine:
    """Price Mendq's own metrics, which no resource of the template declares.

    CloudWatch bills a metric for the hours in which it is sent.
    """
    sometimes_sent = {*_METRICS_OF_A_NIGHT, *_METRICS_OF_A_WEEK}
    always_sent = {*OwnMetric} - WHEN_SOMETHING_HAPPENS - sometimes_sent
    # A gauge is sent only if an alarm of the stack watches it.
    watched = {alarm.get("MetricName") for alarm in stack.list_properties("AWS::CloudWatch::Alarm")}
    always_sent -= GAUGES - watched
    nightly_runs = stack.count_runs("start_nightly")
    sometimes = len(_METRICS_OF_A_WEEK)
    if nightly_runs:
        sometimes += len(_METRICS_OF_A_NIGHT)
    nightly_hours = len(_METRICS_OF_A_NIGHT) * nightly_runs
    weekly_hours = len(_METRICS_OF_A_WEEK) * MONTH_DAYS / 7
    hours = len(always_sent) * MONTH_HOURS + nightly_hours + weekly_hours
    quantity = f"{len(always_sent)} all month, {sometimes} some hours of it"
    because = "what the Lambdas send when nothing happens; a symptom's own series come with it"
    billed = {prices.METRIC_MONTH: hours / MONTH_HOURS}
    return CostLine("custom metrics", quantity, because, billed)


def _price_alarms(stack: BilledStack) -> CostLine:
    alarms = stack.list_properties("AWS::CloudWatch::Alarm")
    metrics = sum(map(_count_billed_metrics, alarms))
    quantity = f"{len(alarms)} over {format_count(metrics, 'metric')}"
    because = "a metric each, but of those that compare several; an anomaly band is two more"
    return CostLine("alarms", quantity, because, {prices.ALARM_METRIC_MONTH: metrics})


def _count_billed_metrics(alarm: Mapping[str, Any]) -> int:
    """Return how many metrics an alarm is billed for. An anomaly band counts as two more."""
    metrics = alarm.get("Metrics", ())
    bands = sum("ANOMALY_DETECTION_BAND" in str(metric.get("Expression")) for metric in metrics)
    return max(1, sum("MetricStat" in metric for metric in metrics)) + 2 * bands


# Resource types with one price for each resource: the name in the bill, the reason and the price.
_PRICED_BY_NUMBER: Mapping[str, tuple[str, str, Price]] = {
    "AWS::CloudWatch::CompositeAlarm": (
        "composite alarms",
        "they page people for several alarms at once, or are what such a page stands on",
        prices.COMPOSITE_MONTH,
    ),
    "AWS::CloudWatch::Dashboard": (
        DASHBOARD,
        "nothing while the payer has no three others",
        prices.DASHBOARD_MONTH,
    ),
    "AWS::KMS::Key": (
        "KMS key",
        "a dollar more after its first yearly rotation, and another after its second",
        prices.KEY_MONTH,
    ),
}


def _price_by_number(resource_type: str, stack: BilledStack) -> CostLine:
    number = len(stack.list_properties(resource_type))
    what, because, price = _PRICED_BY_NUMBER[resource_type]
    return CostLine(what, f"{number}", because, {price: number})


def _price_buckets(stack: BilledStack) -> CostLine:
    number = len(stack.list_properties("AWS::S3::Bucket"))
    quantity = f"{BUCKETS_GB} GB in {number} buckets, {TRAIL_FILES:,} files written"
    because = "at most a trail's file every five minutes, and its digest every hour"
    billed = {prices.S3_GB_MONTH: BUCKETS_GB, prices.S3_PUT: TRAIL_FILES}
    return CostLine("S3", quantity, because, billed)


def _price_trail(stack: BilledStack) -> CostLine:
    probes = stack.count_runs("probe")
    because = "the probe's own calls alone; your queues' calls come on top"
    if "Management" in str(stack.list_properties("AWS::CloudTrail::Trail")):
        again = prices.MANAGEMENT_EVENT_AGAIN.words
        because += f"; management events cost {again} where another trail logs them too"
    quantity = f"{probes:,.0f} data events"
    return CostLine("the trail", quantity, because, {prices.DATA_EVENT: probes})


def _price_table(stack: BilledStack) -> CostLine:
    reads = stack.count_runs() * READS_OF_A_RUN
    writes = stack.count_runs() * WRITES_OF_A_RUN
    quantity = f"{reads:,.0f} reads, {writes:,.0f} writes, {TABLE_GB} GB"
    because = f"at most {READS_OF_A_RUN} reads and {WRITES_OF_A_RUN} writes in a run of a Lambda"
    billed = {
        prices.READ_UNIT: reads,
        prices.WRITE_UNIT: writes,
        prices.TABLE_GB_MONTH: TABLE_GB,
        prices.RECOVERY_GB_MONTH: TABLE_GB,
    }
    return CostLine("the case store", quantity, because, billed)


def _price_nightly_job(stack: BilledStack) -> CostLine:
    runs = stack.count_runs("start_nightly")
    # A driver and an executor run at the same time.
    hours = runs * 2 * SECONDS_OF_A_NIGHTLY_RUN / 3_600
    quantity = f"{runs:.0f} runs of a driver and an executor, {SECONDS_OF_A_NIGHTLY_RUN} s each"
    because = "of an idle account; the application stops between them and costs nothing"
    billed = {
        prices.EMR_VCPU_HOUR: hours * WORKER.vcpu,
        prices.EMR_GB_HOUR: hours * WORKER.memory_gb,
    }
    return CostLine("EMR Serverless", quantity, because, billed)


def _price_polling(stack: BilledStack) -> CostLine:
    polled_queues = len(stack.list_properties("AWS::Lambda::EventSourceMapping"))
    # A call of 20 s is three calls a minute.
    calls = polled_queues * POLLERS * 3 * 60 * MONTH_HOURS
    because = f"Lambda waits with {POLLERS} calls of 20 s at once"
    billed = {prices.SQS_REQUEST: calls}
    return CostLine("polling the intake queue", f"{calls:,} calls", because, billed)


def _price_invocations(stack: BilledStack) -> CostLine:
    gb_seconds = (
        sum(scheduled.runs_a_month * scheduled.memory_gb for scheduled in stack.scheduled_lambdas)
        * SECONDS_OF_A_RUN
    )
    quantity = f"{stack.count_runs():,.0f} runs, {gb_seconds:,.0f} GB-seconds"
    because = f"what the schedules start, {SECONDS_OF_A_RUN} s each"
    billed = {prices.LAMBDA_REQUEST: stack.count_runs(), prices.LAMBDA_GB_SECOND: gb_seconds}
    return CostLine("Lambda", quantity, because, billed)


def _price_logs(stack: BilledStack) -> CostLine:
    written_gb = stack.count_runs() * LOG_BYTES_OF_A_RUN / 1e9
    log_groups = stack.list_properties("AWS::Logs::LogGroup")
    days = max(log_group.get("RetentionInDays", 365) for log_group in log_groups)
    quantity = f"{written_gb:.2f} GB, kept {days} days"
    because = f"{LOG_BYTES_OF_A_RUN:,} bytes a run"
    billed = {prices.LOG_GB: written_gb, prices.LOG_GB_MONTH: written_gb * days / MONTH_DAYS}
    return CostLine("logs, and metrics on their way", quantity, because, billed)


def _price_schedules(stack: BilledStack) -> CostLine:
    billed = {prices.SCHEDULED: stack.count_runs()}
    quantity = f"{stack.count_runs():,.0f} invocations"
    return CostLine("Scheduler", quantity, "follow_up's each minute above all", billed)


# The function that prices all resources of a type.
PRICED: Mapping[str, Callable[[BilledStack], CostLine]] = {
    **{
        resource_type: partial(_price_by_number, resource_type)
        for resource_type in _PRICED_BY_NUMBER
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
_NO_CHARGE = "AWS does not charge for it"
# Resource types that cost nothing while nothing fails, each with the reason.
FREE: Mapping[str, str] = {
    "AWS::CDK::Metadata": _NO_CHARGE,
    "AWS::CloudWatch::AnomalyDetector": "billed with the alarm that watches its band",
    "AWS::Events::ApiDestination": "billed by the call: nobody is paged while nothing fails",
    "AWS::Events::Connection": _NO_CHARGE,
    "AWS::Events::Rule": "rules cost nothing, nor does what AWS's services send by themselves",
    "AWS::IAM::ManagedPolicy": _NO_CHARGE,
    "AWS::IAM::Policy": _NO_CHARGE,
    "AWS::IAM::Role": _NO_CHARGE,
    "AWS::KMS::Alias": _NO_CHARGE,
    "AWS::Lambda::EventInvokeConfig": _NO_CHARGE,
    "AWS::Lambda::Permission": _NO_CHARGE,
    "AWS::S3::BucketPolicy": _NO_CHARGE,
    "AWS::SNS::Subscription": "billed by the message: 100,000 mails are two dollars",
    "AWS::SNS::Topic": "billed by the message: nothing is sent while nothing fails",
    "AWS::SNS::TopicPolicy": _NO_CHARGE,
    "AWS::SQS::Queue": "billed by the call: idle ones are called by nobody but Lambda's pollers",
    "AWS::SQS::QueuePolicy": _NO_CHARGE,
}
