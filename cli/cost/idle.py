"""What the stack costs in a month in which nothing fails: a line for each kind of resource.

A resource type that is neither priced nor free here is not zero: it is named as not priced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cli.cost.deployed import MONTH_DAYS, MONTH_HOURS, Deployed
from cli.cost.series import hours_a_month
from functions.healing.night_workers import WORKER
from functions.healing.plain_text import counted
from infra import prices
from infra.prices import Price

# Assumptions, on the high side; none was measured in an account.
SECONDS_OF_A_RUN = 1
READS_OF_A_RUN, WRITES_OF_A_RUN = 10, 2
LOG_BYTES_OF_A_RUN = 2_000
TABLE_GB, BUCKETS_GB = 0.1, 1
TRAIL_FILES = MONTH_DAYS * 24 * (12 + 1)
SECONDS_OF_A_NIGHT = 120
# Lambda asks an idle queue by that many calls at once, each of which waits 20 s.
POLLERS = 5
_GB = 10**9


@dataclass(frozen=True)
class Line:
    """What is billed of one thing, in a month where it is the stack's.

    `because` says what is counted or assumed; `billed` are units of prices.
    """

    what: str
    quantity: str
    because: str
    billed: tuple[tuple[Price, float], ...] = ()

    @property
    def dollars(self) -> float:
        """At list price."""
        return sum(price.of(units) for price, units in self.billed)

    @property
    def beyond(self) -> float:
        """Where nothing else on the payer's bill uses up what AWS gives."""
        return sum(price.beyond(units) for price, units in self.billed)

    def document(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "quantity": self.quantity,
            "dollars": round(self.dollars, 4),
            "dollars_beyond_what_is_given": round(self.beyond, 4),
            "because": self.because,
        }


def lines(stack: Deployed) -> list[Line]:
    """The dearest first. Raises NotPriced."""
    found = [PRICED[each](stack) for each in sorted(stack.types & PRICED.keys())]
    return sorted([*found, _metrics(stack)], key=lambda line: -line.dollars)


def free(stack: Deployed) -> dict[str, str]:
    """Resource types that cost nothing while nothing fails, and why."""
    return {each: FREE[each] for each in sorted(stack.types & FREE.keys())}


def not_priced(stack: Deployed) -> list[str]:
    """Resource types of which nothing is known here."""
    return sorted(stack.types - PRICED.keys() - FREE.keys())


def _metrics(stack: Deployed) -> Line:
    runs = {each.handler: stack.times(each.handler) for each in stack.started}
    runs["deliver_report"] = MONTH_DAYS / 7
    hours = hours_a_month(runs, MONTH_HOURS)
    always = sum(each >= MONTH_HOURS for each in hours.values())
    return Line(
        "custom metrics",
        f"{always} all month, {len(hours) - always} some hours of it",
        "what the Lambdas send when nothing happens; a symptom's own series come with it",
        ((prices.METRIC_MONTH, sum(hours.values()) / MONTH_HOURS),),
    )


def _alarms(stack: Deployed) -> Line:
    every = stack.all("AWS::CloudWatch::Alarm")
    slow = sum(_metrics_of(each) for each in every if not _is_fast(each))
    fast = sum(_metrics_of(each) for each in every if _is_fast(each))
    return Line(
        "alarms",
        f"{len(every)} over {counted(slow + fast, 'metric')}",
        "a metric each, but an anomaly band makes three of one",
        ((prices.ALARM_METRIC_MONTH, slow), (prices.FAST_ALARM_METRIC_MONTH, fast)),
    )


def _metrics_of(alarm: Mapping[str, Any]) -> int:
    """Those that it is billed for: a band is two more."""
    metrics = alarm.get("Metrics", ())
    measured = sum("MetricStat" in each for each in metrics)
    bands = sum("ANOMALY_DETECTION_BAND" in str(each.get("Expression")) for each in metrics)
    return max(1, measured) + 2 * bands


def _is_fast(alarm: Mapping[str, Any]) -> bool:
    measured = (each.get("MetricStat", {}) for each in alarm.get("Metrics", ()))
    return any(each.get("Period", 60) < 60 for each in (alarm, *measured))


def _composites(stack: Deployed) -> Line:
    number = len(stack.all("AWS::CloudWatch::CompositeAlarm"))
    billed = ((prices.COMPOSITE_MONTH, number),)
    return Line("composite alarms", f"{number}", "it is these that page people", billed)


def _dashboards(stack: Deployed) -> Line:
    number = len(stack.all("AWS::CloudWatch::Dashboard"))
    billed = ((prices.DASHBOARD_MONTH, number),)
    return Line("dashboard", f"{number}", "nothing while the payer has no three others", billed)


def _trail(stack: Deployed) -> Line:
    pulses = stack.times("pulse")
    because = "the pulse's own calls alone; your queues' calls come on top"
    if "Management" in str(stack.all("AWS::CloudTrail::Trail")):
        again = prices.MANAGEMENT_EVENT_AGAIN.words
        because += f"; management events cost {again} where another trail logs them too"
    return Line("the trail", f"{pulses:,.0f} data events", because, ((prices.DATA_EVENT, pulses),))


def _table(stack: Deployed) -> Line:
    reads, writes = (_runs(stack) * each for each in (READS_OF_A_RUN, WRITES_OF_A_RUN))
    return Line(
        "the ledger",
        f"{reads:,.0f} reads, {writes:,.0f} writes, {TABLE_GB} GB",
        f"at most {READS_OF_A_RUN} reads and {WRITES_OF_A_RUN} writes in a run of a Lambda",
        (
            (prices.READ_UNIT, reads),
            (prices.WRITE_UNIT, writes),
            (prices.TABLE_GB_MONTH, TABLE_GB),
            (prices.RECOVERY_GB_MONTH, TABLE_GB),
        ),
    )


def _nights(stack: Deployed) -> Line:
    runs = stack.times("start_night")
    workers = 2
    hours = runs * workers * SECONDS_OF_A_NIGHT / 3_600
    return Line(
        "EMR Serverless",
        f"{runs:.0f} runs of a driver and an executor, {SECONDS_OF_A_NIGHT} s each",
        "of an idle account; the application stops between them and costs nothing",
        (
            (prices.EMR_VCPU_HOUR, hours * WORKER.vcpu),
            (prices.EMR_GB_HOUR, hours * WORKER.memory_gb),
        ),
    )


def _keys(stack: Deployed) -> Line:
    number = len(stack.all("AWS::KMS::Key"))
    because = "a dollar more after its first yearly rotation, and another after its second"
    return Line("KMS key", f"{number}", because, ((prices.KEY_MONTH, number),))


def _polling(stack: Deployed) -> Line:
    mappings = len(stack.all("AWS::Lambda::EventSourceMapping"))
    asked = mappings * POLLERS * 3 * 60 * MONTH_HOURS
    because = f"Lambda waits with {POLLERS} calls of 20 s at once"
    return Line(
        "polling the intake queue", f"{asked:,} calls", because, ((prices.SQS_REQUEST, asked),)
    )


def _invocations(stack: Deployed) -> Line:
    seconds = sum(each.times * each.memory_gb for each in stack.started) * SECONDS_OF_A_RUN
    runs = _runs(stack)
    return Line(
        "Lambda",
        f"{runs:,.0f} runs, {seconds:,.0f} GB-seconds",
        f"what the schedules start, {SECONDS_OF_A_RUN} s each",
        ((prices.LAMBDA_REQUEST, runs), (prices.LAMBDA_GB_SECOND, seconds)),
    )


def _logs(stack: Deployed) -> Line:
    written = _runs(stack) * LOG_BYTES_OF_A_RUN / _GB
    days = max(each.get("RetentionInDays", 365) for each in stack.all("AWS::Logs::LogGroup"))
    return Line(
        "logs, and metrics on their way",
        f"{written:.2f} GB, kept {days} days",
        f"{LOG_BYTES_OF_A_RUN:,} bytes a run",
        ((prices.LOG_GB, written), (prices.LOG_GB_MONTH, written * days / MONTH_DAYS)),
    )


def _buckets(stack: Deployed) -> Line:
    number = len(stack.all("AWS::S3::Bucket"))
    return Line(
        "S3",
        f"{BUCKETS_GB} GB in {number} buckets, {TRAIL_FILES:,} files written",
        "at most a trail's file every five minutes, and its digest every hour",
        ((prices.S3_GB_MONTH, BUCKETS_GB), (prices.S3_PUT, TRAIL_FILES)),
    )


def _schedules(stack: Deployed) -> Line:
    runs = _runs(stack)
    billed = ((prices.SCHEDULED, runs),)
    return Line(
        "Scheduler", f"{runs:,.0f} invocations", "follow_up's each minute above all", billed
    )


def _runs(stack: Deployed) -> float:
    return sum(each.times for each in stack.started)


PRICED: Mapping[str, Callable[[Deployed], Line]] = {
    "AWS::CloudTrail::Trail": _trail,
    "AWS::CloudWatch::Alarm": _alarms,
    "AWS::CloudWatch::CompositeAlarm": _composites,
    "AWS::CloudWatch::Dashboard": _dashboards,
    "AWS::DynamoDB::Table": _table,
    "AWS::EMRServerless::Application": _nights,
    "AWS::KMS::Key": _keys,
    "AWS::Lambda::EventSourceMapping": _polling,
    "AWS::Lambda::Function": _invocations,
    "AWS::Logs::LogGroup": _logs,
    "AWS::S3::Bucket": _buckets,
    "AWS::Scheduler::Schedule": _schedules,
}
_NO_CHARGE = "AWS does not charge for it"
FREE: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "AWS::CDK::Metadata",
            "AWS::IAM::ManagedPolicy",
            "AWS::IAM::Policy",
            "AWS::IAM::Role",
            "AWS::KMS::Alias",
            "AWS::Lambda::EventInvokeConfig",
            "AWS::Lambda::Permission",
            "AWS::S3::BucketPolicy",
            "AWS::SNS::TopicPolicy",
            "AWS::SQS::QueuePolicy",
        ),
        _NO_CHARGE,
    ),
    "AWS::CloudWatch::AnomalyDetector": "billed with the alarm that watches its band",
    "AWS::Events::Rule": "rules cost nothing, nor does what AWS's services send by themselves",
    "AWS::SNS::Subscription": "billed by the message: 100,000 mails are two dollars",
    "AWS::SNS::Topic": "billed by the message: nothing is told while nothing fails",
    "AWS::SQS::Queue": "billed by the call: idle ones are called by nobody but Lambda's pollers",
}
