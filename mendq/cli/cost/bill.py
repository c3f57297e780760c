"""What the stack costs in a month in which nothing fails: one function per resource type.

A resource type that is neither priced nor free here is not zero: it is named as not priced.
Assumptions are on the high side; none was measured in an account.
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
SECONDS_OF_A_RUN, LOG_BYTES_OF_A_RUN = 1, 2_000
READS_OF_A_RUN, WRITES_OF_A_RUN, TABLE_GB = 10, 2, 0.1
SECONDS_OF_A_NIGHTLY_RUN = 120
BUCKETS_GB, TRAIL_FILES = 1, MONTH_HOURS * (12 + 1)
# Lambda asks an idle queue by that many calls at once, each of which waits 20 s.
POLLERS = 5
_MINUTES = {"minute": 1, "hour": 60, "day": 1_440}
# Each so much time, or each day or week: minute, hour and weekday.
RATE = re.compile(r"rate\(([1-9]\d*) (minute|hour|day)s?\)")
CRON = re.compile(r"cron\((\d+) (\d+) [*?] \* ([*?]|[A-Z]{3}) \*\)")


class NotPriced(Exception):
    """The template says something here that this version cannot count."""


class CostLine(Struct, frozen=True):
    """Units of prices `billed` for one thing; `because` says what is counted or assumed."""

    what: str
    quantity: str
    because: str
    billed: Mapping[Price, float] = field(default_factory=dict)

    @property
    def dollars(self) -> float:
        """At list price."""
        return sum(price.of(units) for price, units in self.billed.items())

    def document(self) -> dict[str, Any]:
        said = {name: getattr(self, name) for name in ("what", "quantity", "because")}
        return {**said, "dollars": round(self.dollars, 4)}


class ScheduledLambda(Struct, frozen=True):
    """A Lambda that a schedule starts so many times a month."""

    handler: str
    memory_gb: float
    times: float


class BilledStack(Struct, frozen=True, dict=True):
    """A template, synthesized or of a deployed stack, as what is billed of it."""

    template: Mapping[str, Any]

    def all(self, resource_type: str) -> list[Mapping[str, Any]]:
        """The properties of the resources of a type."""
        every = self._resources.values()
        return [each.get("Properties", {}) for each in every if each["Type"] == resource_type]

    @property
    def types(self) -> set[str]:
        return {each["Type"] for each in self._resources.values()}

    def times(self, handler: str = "") -> float:
        """How often a month the clock starts a handler; none named: any."""
        return sum(each.times for each in self.started if handler in ("", each.handler))

    @property
    def _resources(self) -> Mapping[str, Any]:
        if not isinstance(self.template, Mapping) or "Resources" not in self.template:
            raise NotPriced("it is no JSON template with resources, so none of Mendq's")
        found: Mapping[str, Mapping[str, Any]] = self.template["Resources"]
        return found

    @cached_property
    def started(self) -> tuple[ScheduledLambda, ...]:
        """What each schedule starts. Raises NotPriced."""
        found = []
        for schedule in self.all("AWS::Scheduler::Schedule"):
            target = schedule["Target"]["Arn"]
            function = self._resources.get(target["Fn::GetAtt"][0], {}).get("Properties", {})
            name = str(function.get("Handler", "")).removesuffix(".handler").rpartition(".")[2]
            if not name:
                raise NotPriced("a schedule starts something that is no Lambda of the stack")
            times = count_runs_a_month(schedule["ScheduleExpression"])
            found.append(ScheduledLambda(name, function.get("MemorySize", 128) / 1_024, times))
        return tuple(found)


def count_runs_a_month(expression: str) -> float:
    """Of a schedule; raise NotPriced where it is of a kind that Mendq does not make.

    https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html
    """
    if rate := RATE.fullmatch(expression):
        return MONTH_DAYS * 1_440 / (int(rate[1]) * _MINUTES[rate[2]])
    if cron := CRON.fullmatch(expression):
        return MONTH_DAYS / (7 if cron[3].isalpha() else 1)
    raise NotPriced(f"the schedule {expression} cannot be counted")


def list_costs(stack: BilledStack) -> list[CostLine]:
    """The dearest first. Raises NotPriced."""
    found = [PRICED[each](stack) for each in sorted(stack.types & PRICED.keys())]
    return sorted([*found, _metrics(stack)], key=lambda line: -line.dollars)


def list_free_types(stack: BilledStack) -> dict[str, str]:
    """Resource types that cost nothing while nothing fails, and why."""
    return {each: FREE[each] for each in sorted(stack.types & FREE.keys())}


def list_unpriced_types(stack: BilledStack) -> list[str]:
    """Resource types of which nothing is known here."""
    return sorted(stack.types - PRICED.keys() - FREE.keys())


def with_and_without_dashboard(found: Iterable[CostLine]) -> tuple[float, float]:
    """Dollars a month at list price of a stack with these lines, whichever of both it is."""
    without = sum(each.dollars for each in found if each.what != DASHBOARD)
    return without + prices.DASHBOARD_MONTH.of(1), without


# What is sent where nothing happens, but all month long: at a nightly run's end, with a report.
_OF_A_RUN = (*NightlyMetric, OwnMetric.WEEKS_FAILED)
_OF_A_WEEK = (OwnMetric.REPORTS_DELIVERED, OwnMetric.REPORTS_NOT_DELIVERED)


def _metrics(stack: BilledStack) -> CostLine:
    """Mendq's own, of which no resource tells; CloudWatch bills the hours in which each is sent."""
    always = {*OwnMetric} - WHEN_SOMETHING_HAPPENS - {*_OF_A_RUN, *_OF_A_WEEK}
    always -= GAUGES - {each.get("MetricName") for each in stack.all("AWS::CloudWatch::Alarm")}
    runs = stack.times("start_nightly")
    sometimes = len(_OF_A_WEEK) + (len(_OF_A_RUN) if runs else 0)
    of_weeks = len(_OF_A_WEEK) * MONTH_DAYS / 7
    hours = len(always) * MONTH_HOURS + len(_OF_A_RUN) * runs + of_weeks
    quantity = f"{len(always)} all month, {sometimes} some hours of it"
    because = "what the Lambdas send when nothing happens; a symptom's own series come with it"
    return CostLine("custom metrics", quantity, because, {prices.METRIC_MONTH: hours / MONTH_HOURS})


def _alarms(stack: BilledStack) -> CostLine:
    every = stack.all("AWS::CloudWatch::Alarm")
    metrics = sum(map(_metrics_of, every))
    quantity = f"{len(every)} over {format_count(metrics, 'metric')}"
    because = "a metric each, but of those that compare several; an anomaly band is two more"
    return CostLine("alarms", quantity, because, {prices.ALARM_METRIC_MONTH: metrics})


def _metrics_of(alarm: Mapping[str, Any]) -> int:
    """Those that it is billed for: a band is two more."""
    metrics = alarm.get("Metrics", ())
    bands = sum("ANOMALY_DETECTION_BAND" in str(each.get("Expression")) for each in metrics)
    return max(1, sum("MetricStat" in each for each in metrics)) + 2 * bands


# What costs the same each: what it is called, why it is so many dollars, and its price.
_EACH: Mapping[str, tuple[str, str, Price]] = {
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


def _counted(kind: str, stack: BilledStack) -> CostLine:
    number, (what, because, price) = len(stack.all(kind)), _EACH[kind]
    return CostLine(what, f"{number}", because, {price: number})


def _buckets(stack: BilledStack) -> CostLine:
    number = len(stack.all("AWS::S3::Bucket"))
    quantity = f"{BUCKETS_GB} GB in {number} buckets, {TRAIL_FILES:,} files written"
    because = "at most a trail's file every five minutes, and its digest every hour"
    billed = {prices.S3_GB_MONTH: BUCKETS_GB, prices.S3_PUT: TRAIL_FILES}
    return CostLine("S3", quantity, because, billed)


def _trail(stack: BilledStack) -> CostLine:
    probes = stack.times("probe")
    because = "the probe's own calls alone; your queues' calls come on top"
    if "Management" in str(stack.all("AWS::CloudTrail::Trail")):
        again = prices.MANAGEMENT_EVENT_AGAIN.words
        because += f"; management events cost {again} where another trail logs them too"
    return CostLine("the trail", f"{probes:,.0f} data events", because, {prices.DATA_EVENT: probes})


def _table(stack: BilledStack) -> CostLine:
    reads, writes = (stack.times() * each for each in (READS_OF_A_RUN, WRITES_OF_A_RUN))
    quantity = f"{reads:,.0f} reads, {writes:,.0f} writes, {TABLE_GB} GB"
    because = f"at most {READS_OF_A_RUN} reads and {WRITES_OF_A_RUN} writes in a run of a Lambda"
    billed = {prices.READ_UNIT: reads, prices.WRITE_UNIT: writes}
    stored = {prices.TABLE_GB_MONTH: TABLE_GB, prices.RECOVERY_GB_MONTH: TABLE_GB}
    return CostLine("the case store", quantity, because, billed | stored)


def _nightly(stack: BilledStack) -> CostLine:
    runs = stack.times("start_nightly")
    hours = runs * 2 * SECONDS_OF_A_NIGHTLY_RUN / 3_600
    quantity = f"{runs:.0f} runs of a driver and an executor, {SECONDS_OF_A_NIGHTLY_RUN} s each"
    because = "of an idle account; the application stops between them and costs nothing"
    billed = {
        prices.EMR_VCPU_HOUR: hours * WORKER.vcpu,
        prices.EMR_GB_HOUR: hours * WORKER.memory_gb,
    }
    return CostLine("EMR Serverless", quantity, because, billed)


def _polling(stack: BilledStack) -> CostLine:
    asked = len(stack.all("AWS::Lambda::EventSourceMapping")) * POLLERS * 3 * 60 * MONTH_HOURS
    because = f"Lambda waits with {POLLERS} calls of 20 s at once"
    quantity, billed = f"{asked:,} calls", {prices.SQS_REQUEST: asked}
    return CostLine("polling the intake queue", quantity, because, billed)


def _invocations(stack: BilledStack) -> CostLine:
    seconds = sum(each.times * each.memory_gb for each in stack.started) * SECONDS_OF_A_RUN
    quantity = f"{stack.times():,.0f} runs, {seconds:,.0f} GB-seconds"
    billed = {prices.LAMBDA_REQUEST: stack.times(), prices.LAMBDA_GB_SECOND: seconds}
    return CostLine(
        "Lambda", quantity, f"what the schedules start, {SECONDS_OF_A_RUN} s each", billed
    )


def _logs(stack: BilledStack) -> CostLine:
    written = stack.times() * LOG_BYTES_OF_A_RUN / 1e9
    days = max(each.get("RetentionInDays", 365) for each in stack.all("AWS::Logs::LogGroup"))
    quantity, because = f"{written:.2f} GB, kept {days} days", f"{LOG_BYTES_OF_A_RUN:,} bytes a run"
    billed = {prices.LOG_GB: written, prices.LOG_GB_MONTH: written * days / MONTH_DAYS}
    return CostLine("logs, and metrics on their way", quantity, because, billed)


def _schedules(stack: BilledStack) -> CostLine:
    billed = {prices.SCHEDULED: stack.times()}
    quantity = f"{stack.times():,.0f} invocations"
    return CostLine("Scheduler", quantity, "follow_up's each minute above all", billed)


PRICED: Mapping[str, Callable[[BilledStack], CostLine]] = {
    **{kind: partial(_counted, kind) for kind in _EACH},
    "AWS::CloudTrail::Trail": _trail,
    "AWS::CloudWatch::Alarm": _alarms,
    "AWS::DynamoDB::Table": _table,
    "AWS::EMRServerless::Application": _nightly,
    "AWS::Lambda::EventSourceMapping": _polling,
    "AWS::Lambda::Function": _invocations,
    "AWS::Logs::LogGroup": _logs,
    "AWS::S3::Bucket": _buckets,
    "AWS::Scheduler::Schedule": _schedules,
}
_NO_CHARGE = """
    AWS::CDK::Metadata AWS::Events::Connection AWS::IAM::ManagedPolicy AWS::IAM::Policy
    AWS::IAM::Role AWS::KMS::Alias AWS::Lambda::EventInvokeConfig AWS::Lambda::Permission
    AWS::S3::BucketPolicy AWS::SNS::TopicPolicy AWS::SQS::QueuePolicy
"""
FREE: Mapping[str, str] = {
    **dict.fromkeys(_NO_CHARGE.split(), "AWS does not charge for it"),
    "AWS::CloudWatch::AnomalyDetector": "billed with the alarm that watches its band",
    "AWS::Events::ApiDestination": "billed by the call: nobody is paged while nothing fails",
    "AWS::Events::Rule": "rules cost nothing, nor does what AWS's services send by themselves",
    "AWS::SNS::Subscription": "billed by the message: 100,000 mails are two dollars",
    "AWS::SNS::Topic": "billed by the message: nothing is sent while nothing fails",
    "AWS::SQS::Queue": "billed by the call: idle ones are called by nobody but Lambda's pollers",
}
