"""Ten thousand queues in one round: how many calls, and how long at the rates that are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import reduce
from io import BytesIO
from itertools import pairwise
from typing import Any, cast

from botocore.exceptions import ClientError

from mendq.aws.clients import CallRateLimit, Clients
from mendq.aws.facts_reader import ONE_HOUR
from mendq.aws.queue import list_managed_queues
from mendq.cases.case_bucket import CaseBucket
from mendq.cases.finding import ScanResult, merge_results
from mendq.catalogue import CATALOGUE
from mendq.catalogue.symptom import Symptom
from mendq.model.consent import Consent
from mendq.model.facts import Need
from mendq.model.limits import Limits, Timing
from mendq.model.metrics import select_series
from mendq.model.mode import Mode
from mendq.model.traffic import SumsShare
from mendq.scan.reader import (
    CLOUDWATCH_CALLS_PER_SECOND,
    LAMBDA_CALLS_PER_SECOND,
    SQS_CALLS_PER_SECOND,
    Paces,
    ScanReader,
)
from mendq.scan.scan import Allowance, scan
from mendq.scan.store import Stretch, read_last_scan_answers, store_answers
from tests.infra.aws_calls import REGION, make_recorder
from tests.prove.proof import Proof, Proving
from tests.prove.simulated_queues import chance

QUEUES = 10_000
# The numbers of queues in every hundred that have a DLQ, a Lambda consumer, waiting messages.
DLQ_SHARE = 50
CONSUMERS_SHARE = 5
WAITING_SHARE = 10
LAMBDA_SECONDS = 900
NOW = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)
_ACCOUNT = "123456789012"
_NONE = (
    *("ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed"),
    "ReceiveMessageWaitTimeSeconds",
)
GONE = "AWS.SimpleQueueService.NonExistentQueue"
_ASKED = ("GetQueueAttributes", "ListDeadLetterSourceQueues")
_ARNS = f"arn:aws:sqs:{REGION}:{_ACCOUNT}:"
# The queue ARNs and symptoms of a scan's findings.
Pairs = set[tuple[str, str]]


@dataclass
class StandStill:
    """A clock that goes only while somebody sleeps: what the kept rates alone would take."""

    seconds: float = 0.0

    def clock(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        self.seconds = max(self.seconds, seconds)


# What a scan asks of every queue, to choose those that it measures.
_SUMS = {metric.metric for metric in select_series(["sums"]).values()}


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
            query["MetricStat"]["Metric"]["Dimensions"][0]["Value"]
            for query in queries
            if query["MetricStat"]["Metric"]["Namespace"] == "AWS/SQS"
            and query["MetricStat"]["Metric"]["MetricName"] not in _SUMS
        )
        self.measured += dict.fromkeys(names)
        at = NOW - timedelta(hours=1)
        return {
            "MetricDataResults": [
                {"Id": query["Id"], "Timestamps": [at], "Values": [1.0]} for query in queries
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
            "GetFunctionConcurrency": lambda _: {},
            "GetMetricData": self.get_metric_data,
            "ListMetrics": lambda _: {"Metrics": []},
            "DescribeAlarms": lambda _: {"MetricAlarms": []},
            "ListDeadLetterSourceQueues": lambda _: {"queueUrls": []},
            "ListMessageMoveTasks": lambda _: {"Results": []},
            "ListQueueTags": lambda _: {"Tags": {}},
        }
        return answers[operation](params)


def _number(name: str) -> int:
    return int(name.removeprefix("q-").removesuffix("-dlq"))


def _waits(n: int) -> bool:
    return n % 100 < WAITING_SHARE


def may_be_harmed(name: str) -> bool:
    """Messages wait. Everything else is suspect of nothing but short polling."""
    return _waits(_number(name))


@dataclass
class _ScanAnswers:
    status_code: int


def clients_of(answered: Callable[[str, Mapping[str, Any]], dict[str, Any]]) -> Clients:
    """Clients that check what they are asked with, and send nothing.

    They raise the error that an answer names under `Error`, as AWS spells it.
    """
    clients = make_recorder({}).clients

    def note(params: Mapping[str, Any], context: dict[str, Any], **_: Any) -> None:
        context["asked"] = params

    def answer(model: Any, context: dict[str, Any], **_: Any) -> tuple[_ScanAnswers, Any]:
        document = answered(model.name, context["asked"])
        return _ScanAnswers(404 if "Error" in document else 200), document

    for client in (clients.sqs, clients.functions, clients.cloudwatch, clients.tagging):
        events: Any = client.meta.events
        events.register("before-parameter-build", note)
        events.register("before-call", answer)
    return clients


class _Bucket:
    """As much of S3 as the answers of a round take."""

    def __init__(self) -> None:
        self.objects = dict[str, bytes]()

    def put_object(self, *, Key: str, Body: bytes, **_: Any) -> None:  # noqa: N803
        self.objects[Key] = Body

    def get_object(self, *, Key: str, **_: Any) -> dict[str, Any]:  # noqa: N803
        if Key not in self.objects:
            raise ClientError({"Error": {"Code": "NoSuchKey"}}, "GetObject")
        return {"Body": BytesIO(self.objects[Key])}


@dataclass
class Rounds:
    """One round after another of an account; `recalls` what the round before was answered."""

    many: ManyQueues
    recalls: bool = True
    waited: list[StandStill] = field(default_factory=list)
    bucket: CaseBucket = field(default_factory=lambda: CaseBucket(cast("Any", _Bucket()), "cases"))

    def round(
        self, hour: datetime, allowance: Allowance, at: Callable[[float], None]
    ) -> ScanResult:
        self.waited = [StandStill() for _ in range(3)]
        rates = (SQS_CALLS_PER_SECOND, LAMBDA_CALLS_PER_SECOND, CLOUDWATCH_CALLS_PER_SECOND)
        both = zip(rates, self.waited, strict=True)
        paces = (CallRateLimit(rate, reader.sleep, reader.clock) for rate, reader in both)
        clients = clients_of(self.many.answer)
        consent = Consent(Mode.OBSERVE, Mode.OBSERVE)
        no_cases = (frozenset, frozenset, lambda _: ())
        managed = list_managed_queues(clients, _ACCOUNT, Consent(Mode.OBSERVE, Mode.HEAL))
        theirs = {queue.queue_arn for queue in managed}
        known = read_last_scan_answers(hour, self.bucket, theirs) if self.recalls else {}
        reader = ScanReader(
            clients, NOW, Timing(), *no_cases, consent, paces=Paces(*paces), last_scan_answers=known
        )
        done = ScanResult()
        for queue in scan(managed, reader, allowance):
            done = reduce(merge_results, (done, queue))
            at(done.queues_scanned / self.many.queues)
        store_answers(Stretch(hour), self.bucket, reader.scan_answers, theirs)
        return done

    @property
    def seconds(self) -> float:
        """The seconds of a round: SQS and Lambda are called in parallel, CloudWatch afterwards."""
        sqs, functions, cloudwatch = (wait.seconds for wait in self.waited)
        return max(sqs, functions) + cloudwatch


def prove_scan(proving: Proving, queues: int = QUEUES) -> None:
    many = ManyQueues(queues)
    limits = Limits()
    rounds = Rounds(many)
    spent = Counter[str]()
    worth_it = sum(may_be_harmed(many.name(n)) for n in range(queues))

    def may_measure(metrics: int) -> bool:
        fits = spent["metrics"] + metrics <= limits.scan_metrics_per_day
        spent["metrics"] += metrics * fits
        return fits

    with proving.measure_seconds("wall_seconds"):
        allowance = Allowance(
            may_measure=may_measure,
            may_measure_last=may_measure,
            sums_share=SumsShare.of_daily_limit(limits.scan_metrics_per_day),
        )
        done = rounds.round(NOW, allowance, proving.progress)
    seconds = rounds.seconds
    harmed = [may_be_harmed(measured_queue) for measured_queue in many.measured]
    asked = max(many.asked.values())
    metrics = many.metrics
    calls = Counter(many.calls)
    nothing = Allowance(may_measure=lambda _: False, may_measure_last=lambda _: False)
    for n in (1, 2):
        rounds.round(NOW + n * ONE_HOUR, nothing, proving.progress)
    later = {name: (number - calls[name]) / 2 for name, number in many.calls.items()}
    proving.note(
        {
            "queues": done.queues_scanned,
            **{f"calls_{name}": number for name, number in sorted(calls.items())},
            **{f"calls_later_{name}": later[name] for name in sorted(later) if later[name]},
            "seconds_at_the_retained_rates": round(seconds),
            "suspects": done.suspects,
            "measured": done.measured,
            "skipped_for_budget": len(done.skipped_arns),
            "metrics_asked": metrics,
        }
    )
    lists = calls["ListEventSourceMappings"]
    timeouts = calls["GetFunctionConfiguration"]
    mapped = queues * CONSUMERS_SHARE
    first = sum(harmed) == worth_it and all(harmed[:worth_it])
    budget = metrics == spent["metrics"] <= limits.scan_metrics_per_day
    left_out = len(done.skipped_arns) + len(done.partly_checked_arns)
    counted = done.measured + left_out >= done.suspects
    proving.holding(
        {
            "every queue is looked at, and none fails": not done.error_by_target,
            "all of them are": done.queues_scanned == queues,
            "no queue's attributes are asked for twice": asked == 1,
            "the mappings are listed once for the account": lists <= 1 + mapped // 10_000,
            "each function's timeout is asked for once": timeouts == mapped // 100,
            "measuring keeps to the day's budget": budget,
            "what is not measured is counted": counted,
            "whose messages may be harmed is measured before what merely polls too often": first,
            "it fits into one run of the Lambda": seconds < LAMBDA_SECONDS,
        }
    )


@dataclass
class Changing(ManyQueues):
    """Queues of which a few change each hour: messages, DLQ or sources."""

    hour: int = 0

    def _is(self, what: str, n: int, share: float = 0.2) -> bool:
        return chance(f"{what} {n} {self.hour}").random() < share

    def attributes(self, name: str) -> dict[str, Any]:
        n = _number(name)
        is_dlq = name.endswith("-dlq")
        if is_dlq and self._is("gone", n):
            raise ClientError({"Error": {"Code": GONE, "Message": "gone"}}, "GetQueueAttributes")
        found = super().attributes(name)
        holds = self._is("dead" if is_dlq else "holds", n)
        found["Attributes"]["ApproximateNumberOfMessages"] = "9" if holds else "0"
        return found

    def answer(self, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        if operation != "ListDeadLetterSourceQueues":
            return super().answer(operation, params)
        name = str(params["QueueUrl"]).rpartition("/")[2]
        strangers = [params["QueueUrl"] + "-stranger"] * self._is("named", _number(name))
        self.calls[operation] += 1
        return {"queueUrls": strangers}

    def get_metric_data(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Let every receive of some queues fail. The others have no traffic."""
        answered = super().get_metric_data(params)
        for query, result in zip(
            params["MetricDataQueries"], answered["MetricDataResults"], strict=True
        ):
            name = query["MetricStat"]["Metric"]["Dimensions"][0]["Value"]
            is_queue = query["MetricStat"]["Metric"]["Namespace"] == "AWS/SQS"
            fails = result["Id"].startswith(("sent", "received", "visible"))
            has_traffic = not is_queue or self._is("fails", _number(name))
            result["Values"] = [10_000.0 * (fails and has_traffic)]
        return answered


def rounds_alike(proving: Proving, queues: int = 400, rounds: int = 8) -> None:
    """Prove that recalled answers only delay some findings, by at most one round."""
    forgetful = Rounds(Changing(queues), recalls=False)
    recalling = Rounds(Changing(queues), recalls=True)
    forgetful_rounds: list[Pairs] = []
    recalling_rounds: list[Pairs] = []
    for hour in range(rounds):
        forgetful_rounds.append(_find_pairs(forgetful, hour))
        recalling_rounds.append(_find_pairs(recalling, hour))
        proving.progress(hour / rounds)
    both = list(zip(forgetful_rounds, recalling_rounds, strict=True))
    measured = [_select_measured(pairs) for pairs in forgetful_rounds]
    late = sum(len(pairs - recalled) for pairs, recalled in both)
    calls = _count_asked(forgetful)
    calls_of_recalling = _count_asked(recalling)
    proving.note(
        {
            "rounds": rounds,
            "findings": sum(map(len, forgetful_rounds)),
            "found_by_measuring": sum(map(len, measured)),
            "found_a_round_late": late,
            "calls": calls,
            "calls_where_it_recalls": calls_of_recalling,
        }
    )
    are_measured_same = measured == [_select_measured(pairs) for pairs in recalling_rounds]
    are_in_time = all(
        pairs & last_pairs <= recalled <= pairs | last_pairs
        for (last_pairs, _), (pairs, recalled) in pairwise(both)
    )
    proving.holding(
        {
            "what is measured is found in the same round": are_measured_same,
            "the others within a round": are_in_time,
            "something was late, or nothing was tried": late > 0,
            "fewer are asked": calls_of_recalling < calls,
            "something was measured": any(measured),
        }
    )


def _find_pairs(scans: Rounds, hour: int) -> Pairs:
    """Scan the queues as they are in this hour."""
    cast("Changing", scans.many).hour = hour
    result = scans.round(NOW + hour * ONE_HOUR, Allowance(), lambda _: None)
    return {(finding.queue_arn, finding.symptom) for finding in result.findings}


def _select_measured(pairs: Pairs) -> Pairs:
    """Select the findings that a scan may not report a round later."""
    at_once = {entry.name for entry in CATALOGUE if entry.detection and not _may_wait(entry)}
    return {(queue_arn, symptom) for queue_arn, symptom in pairs if symptom in at_once}


def _count_asked(scans: Rounds) -> int:
    return sum(scans.many.calls[name] for name in _ASKED)


def _may_wait(symptom: Symptom) -> bool:
    assert symptom.detection
    return Need.MEASUREMENTS not in symptom.detection.needs or symptom.is_of_configuration


SCANS = (
    Proof(
        "scan",
        "Ten thousand queues are scanned in one run, and measured within the day's budget.",
        prove_scan,
    ),
    Proof(
        "recalled",
        "What a round recalls delays no page: what is measured is found in the same round.",
        rounds_alike,
    ),
)
