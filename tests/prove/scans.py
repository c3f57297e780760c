"""Ten thousand queues in one round: how many calls, and how long at the rates that are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Any

from mendq.aws.clients import Clients, Pace
from mendq.aws.queue import managed_queues
from mendq.cases.finding import Scanned, together
from mendq.model.limits import Consent, Limits, Mode, Timing
from mendq.scan.reader import (
    CLOUDWATCH_CALLS_PER_SECOND,
    LAMBDA_CALLS_PER_SECOND,
    SQS_CALLS_PER_SECOND,
    Paces,
    ScanReader,
)
from mendq.scan.scan import Allowance, scan
from tests.infra.aws_calls import REGION, recording
from tests.prove.proof import Proof, Proving

QUEUES = 10_000
# Of every hundred: so many have a DLQ, a Lambda consumer, and messages that wait.
DLQ_SHARE, CONSUMERS_SHARE, WAITING_SHARE = 50, 5, 10
LAMBDA_SECONDS = 900
NOW = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)
_ACCOUNT = "123456789012"
_NONE = (
    *("ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed"),
    "ReceiveMessageWaitTimeSeconds",
)
_ARNS = f"arn:aws:sqs:{REGION}:{_ACCOUNT}:"


@dataclass
class StandStill:
    """A clock that goes only while somebody sleeps: what the kept rates alone would take."""

    seconds: float = 0.0

    def clock(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        self.seconds = max(self.seconds, seconds)


@dataclass
class ManyQueues:
    """Answers as SQS, Lambda, CloudWatch and tagging would, below botocore's parsing."""

    queues: int
    calls: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    metrics: int = 0
    measured: list[str] = field(default_factory=list)

    def name(self, n: int) -> str:
        return f"q-{n:05}"

    def get_resources(self, params: Mapping[str, Any]) -> dict[str, Any]:
        first = int(params.get("PaginationToken") or 0)
        last = min(first + 100, self.queues)
        tagged = [
            {"ResourceARN": _ARNS + self.name(n), "Tags": [{"Key": "mendq", "Value": "heal"}]}
            for n in range(first, last)
        ]
        token = str(last) if last < self.queues else ""
        return {"ResourceTagMappingList": tagged, "PaginationToken": token}

    def list_event_source_mappings(self, params: Mapping[str, Any]) -> dict[str, Any]:
        every = range(0, self.queues, 100 // CONSUMERS_SHARE)
        first = int(params.get("Marker") or 0)
        some = every[first : first + 100]
        function = f"arn:aws:lambda:{REGION}:{_ACCOUNT}:function:reads-"
        found = [
            {
                "State": "Enabled",
                "EventSourceArn": _ARNS + self.name(n),
                "FunctionArn": f"{function}{n}",
            }
            for n in some
        ]
        more = {"NextMarker": str(first + 100)} if first + 100 < len(every) else {}
        return {"EventSourceMappings": found, **more}

    def attributes(self, name: str) -> dict[str, Any]:
        self.asked[name] += 1
        n = _number(name)
        attributes = {
            "QueueArn": _ARNS + name,
            "VisibilityTimeout": "30",
            "MessageRetentionPeriod": "345600",
            "ApproximateNumberOfMessages": "9" if _waits(n) else "0",
            **dict.fromkeys(_NONE, "0"),
            **dict.fromkeys(("CreatedTimestamp", "LastModifiedTimestamp"), "1700000000"),
            "SqsManagedSseEnabled": "true",
        }
        if n % 100 < DLQ_SHARE and not name.endswith("-dlq"):
            dead = f'{{"deadLetterTargetArn":"{_ARNS}{name}-dlq","maxReceiveCount":5}}'
            attributes["RedrivePolicy"] = dead
        return {"Attributes": attributes}

    def get_metric_data(self, params: Mapping[str, Any]) -> dict[str, Any]:
        queries = params["MetricDataQueries"]
        self.metrics += len(queries)
        names = (
            each["MetricStat"]["Metric"]["Dimensions"][0]["Value"]
            for each in queries
            if each["MetricStat"]["Metric"]["Namespace"] == "AWS/SQS"
        )
        self.measured += dict.fromkeys(names)
        at = NOW - timedelta(hours=1)
        return {
            "MetricDataResults": [
                {"Id": each["Id"], "Timestamps": [at], "Values": [1.0]} for each in queries
            ]
        }

    def answer(self, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self.calls[operation] += 1
        if operation == "GetQueueAttributes":
            return self.attributes(str(params["QueueUrl"]).rpartition("/")[2])
        answers: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "GetResources": self.get_resources,
            "ListEventSourceMappings": self.list_event_source_mappings,
            "GetFunctionConfiguration": lambda _: {"FunctionName": "reads", "Timeout": 60},
            "GetMetricData": self.get_metric_data,
            "ListMetrics": lambda _: {"Metrics": []},
            "DescribeAlarms": lambda _: {"MetricAlarms": []},
            "ListDeadLetterSourceQueues": lambda _: {"queueUrls": []},
            "ListMessageMoveTasks": lambda _: {"Results": []},
        }
        return answers[operation](params)


def _number(name: str) -> int:
    return int(name.removeprefix("q-").removesuffix("-dlq"))


def _waits(n: int) -> bool:
    return n % 100 < WAITING_SHARE


def may_be_harmed(name: str) -> bool:
    """Messages wait, or a Lambda function reads with a longer timeout than the visibility timeout.

    Everything else is suspect of nothing but short polling.
    """
    n = _number(name)
    return _waits(n) or n % (100 // CONSUMERS_SHARE) == 0


class _Answered:
    status_code = 200


def clients_of(answered: Callable[[str, Mapping[str, Any]], dict[str, Any]]) -> Clients:
    """Clients that check what they are asked with, and send nothing."""
    clients = recording({}).clients

    def note(params: Mapping[str, Any], context: dict[str, Any], **_: Any) -> None:
        context["asked"] = params

    def answer(model: Any, context: dict[str, Any], **_: Any) -> tuple[_Answered, Any]:
        return _Answered(), answered(model.name, context["asked"])

    for client in (clients.sqs, clients.functions, clients.cloudwatch, clients.tagging):
        events: Any = client.meta.events
        events.register("before-parameter-build", note)
        events.register("before-call", answer)
    return clients


def scanned(proving: Proving, queues: int = QUEUES) -> None:
    many, limits = ManyQueues(queues), Limits()
    clients = clients_of(many.answer)
    waited = [StandStill() for _ in range(3)]
    rates = (SQS_CALLS_PER_SECOND, LAMBDA_CALLS_PER_SECOND, CLOUDWATCH_CALLS_PER_SECOND)
    paces = Paces(*(Pace(rate, w.sleep, w.clock) for rate, w in zip(rates, waited, strict=True)))
    consent = Consent(Mode.OBSERVE, Mode.OBSERVE)
    no_cases = (frozenset, frozenset, lambda _queue_arns: ())
    reader = ScanReader(clients, NOW, Timing(), *no_cases, consent, paces=paces)
    spent = Counter[str]()
    worth_it = sum(may_be_harmed(many.name(n)) for n in range(queues))

    def may_measure(metrics: int) -> bool:
        fits = spent["metrics"] + metrics <= limits.scan_metrics_per_day
        spent["metrics"] += metrics * fits
        return fits

    done = Scanned()
    with proving.timed("wall_seconds"):
        managed = managed_queues(clients, _ACCOUNT, Consent(Mode.OBSERVE, Mode.HEAL))
        for each in scan(managed, reader, Allowance(may_measure=may_measure)):
            done = reduce(together, (done, each))
            proving.progress(done.queues_scanned / queues)
    # Each service has a rate of its own; SQS and Lambda are asked side by side, CloudWatch after.
    sqs, functions, cloudwatch = (each.seconds for each in waited)
    seconds = max(sqs, functions) + cloudwatch
    harmed = [may_be_harmed(each) for each in many.measured]
    proving.note(
        {
            "queues": done.queues_scanned,
            **{f"calls_{name}": calls for name, calls in sorted(many.calls.items())},
            "seconds_at_the_retained_rates": round(seconds),
            "suspects": done.suspects,
            "measured": done.measured,
            "skipped_for_budget": len(done.skipped),
            "metrics_asked": many.metrics,
        }
    )
    lists, timeouts = many.calls["ListEventSourceMappings"], many.calls["GetFunctionConfiguration"]
    mapped, first = queues * CONSUMERS_SHARE, sum(harmed) == worth_it and all(harmed[:worth_it])
    budget = many.metrics == spent["metrics"] <= limits.scan_metrics_per_day
    counted = done.measured + len(done.skipped) == done.suspects
    proving.holding(
        {
            "every queue is looked at, and none fails": not done.failed,
            "all of them are": done.queues_scanned == queues,
            "no queue's attributes are asked for twice": max(many.asked.values()) == 1,
            "the mappings are listed once for the account": lists <= 1 + mapped // 10_000,
            "each function's timeout is asked for once": timeouts == mapped // 100,
            "measuring keeps to the day's budget": budget,
            "what is not measured is counted": counted,
            "whose messages may be harmed is measured before what merely polls too often": first,
            "it fits into one run of the Lambda": seconds < LAMBDA_SECONDS,
        }
    )


SCANS = (
    Proof(
        "scan",
        "Ten thousand queues are scanned in one run, and measured within the day's budget.",
        scanned,
    ),
)
