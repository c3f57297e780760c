"""An account with simulated queues, as SQS, Lambda and CloudWatch describe it to a scan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import reduce
from math import ceil
from typing import Any

from mendq.aws.clients import CallRateLimit
from mendq.aws.queue import ManagedQueue
from mendq.cases.finding import ScanResult, find_waiting_findings, merge_results
from mendq.catalogue import CATALOGUE
from mendq.model.consent import Consent
from mendq.model.facts import Need
from mendq.model.limits import Timing
from mendq.model.mode import Mode
from mendq.scan.reader import Paces, ScanReader
from mendq.scan.scan import Allowance, scan
from tests.prove.scans import clients_of
from tests.prove.simulated_queues import (
    ACCOUNT,
    HOUR,
    MINUTE,
    NOISY,
    NOW,
    REGION,
    SimulatedFunction,
    SimulatedQueue,
    SimulatedWorld,
)

# Symptoms that a scan knows only from what CloudWatch counted.
MEASURED = tuple(
    entry.name
    for entry in CATALOGUE
    if entry.detection and Need.MEASUREMENTS in entry.detection.needs
)
Asked = Mapping[str, Any]
Points = list[tuple[datetime, float]]
# Gets the name of a queue and of its metric, and the datapoints. Returns those that CloudWatch has.
LosePoints = Callable[[str, str, Points], Points]


def lose_nothing(_queue_name: str, _metric: str, points: Points) -> Points:
    """Return all datapoints."""
    return points


class MeasuredAccount:
    """Answers as SQS, Lambda and CloudWatch would of these worlds, below botocore's parsing."""

    def __init__(
        self, worlds: Iterable[SimulatedWorld], lose_points: LosePoints = lose_nothing
    ) -> None:
        self.lose_points = lose_points
        self.queues = {queue.name: queue for world in worlds for queue in world.queues}
        self.functions = {
            reader.function.name: (queue, reader.function)
            for queue in self.queues.values()
            for reader in queue.readers
            if reader.function
        }

    def answer(self, operation: str, params: Asked) -> dict[str, Any]:
        answers: dict[str, Callable[[Asked], dict[str, Any]]] = {
            "GetQueueAttributes": lambda asked: {"Attributes": self._queue(asked).attributes()},
            "ListQueueTags": lambda asked: {"Tags": dict(self._queue(asked).tags)},
            "ListDeadLetterSourceQueues": self._sources,
            "ListMessageMoveTasks": self._move_tasks,
            "ListEventSourceMappings": self._mappings,
            "GetFunctionConfiguration": self._function,
            "GetFunctionConcurrency": self._function_concurrency,
            "ListMetrics": self._list_metrics,
            "DescribeAlarms": lambda _: {"MetricAlarms": []},
            "GetMetricData": self._metrics,
        }
        return answers[operation](params)

    def _list_metrics(self, asked: Asked) -> dict[str, Any]:
        fair = [queue.name for queue in self.queues.values() if queue.is_fair]
        shown = fair if asked["MetricName"] == NOISY else []
        return {
            "Metrics": [
                {"Dimensions": [{"Name": "QueueName", "Value": finding}]} for finding in shown
            ]
        }

    def _queue(self, asked: Asked) -> SimulatedQueue:
        return self.queues[str(asked["QueueUrl"]).rpartition("/")[2]]

    def _sources(self, asked: Asked) -> dict[str, Any]:
        dlq = self._queue(asked)
        url = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/"
        return {"queueUrls": [url + queue.name for queue in dlq.world.queues if queue.dlq is dlq]}

    def _move_tasks(self, asked: Asked) -> dict[str, Any]:
        """Return the running move task and those that have ended, the newest first."""
        queue = self.queues[asked["SourceArn"].rpartition(":")[2]]
        started = int(NOW.timestamp() - HOUR) * 1000
        results: list[dict[str, Any]] = [
            {"Status": "RUNNING", "StartedTimestamp": started}
        ] * queue.moving
        for started_at, messages in reversed(queue.moves):
            started = int(queue.world.moment(started_at).timestamp()) * 1000
            results.append(
                {
                    "Status": "COMPLETED",
                    "StartedTimestamp": started,
                    "ApproximateNumberOfMessagesMoved": messages,
                }
            )
        return {"Results": results[: asked["MaxResults"]]}

    def _mappings(self, asked: Asked) -> dict[str, Any]:
        queue_arn = asked.get("EventSourceArn")
        listed = [
            _describe_mapping(name, queue, function)
            for name, (queue, function) in self.functions.items()
            if queue_arn in (None, queue.arn)
        ]
        return {"EventSourceMappings": listed}

    def _function(self, asked: Asked) -> dict[str, Any]:
        _, function = self.functions[asked["FunctionName"].rpartition(":")[2]]
        if function.is_deleted:
            return {"Error": {"Code": "ResourceNotFoundException", "Message": "Function not found"}}
        return {"Timeout": function.timeout_seconds}

    def _function_concurrency(self, asked: Asked) -> dict[str, Any]:
        _, function = self.functions[asked["FunctionName"].rpartition(":")[2]]
        if function.reserved is None:
            return {}
        return {"ReservedConcurrentExecutions": function.reserved}

    def _metrics(self, asked: Asked) -> dict[str, Any]:
        results = list[dict[str, Any]]()
        for metric_data_query in asked["MetricDataQueries"]:
            points = self._read_points(
                metric_data_query["MetricStat"], asked["StartTime"], asked["EndTime"]
            )
            shown = {
                "Timestamps": [point_at for point_at, _ in points],
                "Values": [value for _, value in points],
            }
            results.append({"Id": metric_data_query["Id"], **shown})
        return {"MetricDataResults": results}

    def _read_points(self, metric_stat: Asked, since: datetime, until: datetime) -> Points:
        """Return the datapoints of one metric. Their periods are counted from `since`.

        AWS does not document where the periods of a query begin whose start is no whole period.
        """
        metric = metric_stat["Metric"]
        name = metric["Dimensions"][0]["Value"]
        samples: Iterable[tuple[datetime, float]] = ()
        if metric["Namespace"] == "AWS/Lambda":
            queue, function = self.functions[name]
            samples = [
                (queue.world.moment(sampled_at), value)
                for sampled_at, value in function.list_samples(metric["MetricName"])
            ]
        elif metric["Namespace"] == "AWS/SQS":
            samples = self.queues[name].series(metric["MetricName"])
            samples = self.lose_points(name, metric["MetricName"], list(samples))
            if metric_stat["Period"] == MINUTE:
                return [(at, value) for at, value in samples if since <= at < until]
        values_by_period = defaultdict[int, list[float]](list)
        period = timedelta(seconds=metric_stat["Period"])
        for sampled_at, value in samples:
            if since <= sampled_at < until:
                values_by_period[(sampled_at - since) // period].append(value)
        return [
            (since + number * period, summarize(values, metric_stat["Stat"]))
            for number, values in sorted(values_by_period.items())
        ]


def summarize(values: Sequence[float], statistic: str) -> float:
    """Return a CloudWatch statistic of the values, such as `Sum` or `p99`."""
    if statistic.startswith("p"):
        rank = ceil(float(statistic[1:]) / 100 * len(values))
        return sorted(values)[rank - 1]
    summaries: dict[str, Callable[[Sequence[float]], float]] = {
        "Sum": sum,
        "Maximum": max,
        "Minimum": min,
        "SampleCount": len,
        "Average": lambda samples: sum(samples) / len(samples),
    }
    return float(summaries[statistic](values))


def _describe_mapping(
    name: str, queue: SimulatedQueue, function: SimulatedFunction
) -> dict[str, Any]:
    """Return an event source mapping as Lambda lists it."""
    mapping: dict[str, Any] = {
        "UUID": name,
        "State": "Enabled" if function.enabled else "Disabled",
        "EventSourceArn": queue.arn,
        "FunctionArn": f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}",
        "BatchSize": function.batch,
        "FunctionResponseTypes": ["ReportBatchItemFailures"] * function.reports_items,
    }
    if function.mapping_changed_at is not None:
        mapping["LastModified"] = queue.world.moment(function.mapping_changed_at)
        mapping["StateTransitionReason"] = "USER_INITIATED"
    return mapping


def scan_worlds(
    worlds: Sequence[SimulatedWorld],
    seconds_ago: float,
    symptoms: Collection[str] = MEASURED,
    lose_points: LosePoints = lose_nothing,
) -> ScanResult:
    """Run the product's scan over all queues and return its findings.

    Findings that wait for another one are left out, as they are for people.

    Args:
        worlds: The queues. None of them may have been scanned at a later time before.
        seconds_ago: The time of the scan, before NOW.
        symptoms: The names of the symptoms to look for. Those that do not exist are not found.
        lose_points: Leaves datapoints out of CloudWatch's answers.
    """
    now = NOW - timedelta(seconds=seconds_ago)
    for world in worlds:
        world.run(world.end - seconds_ago)
    clients = clients_of(MeasuredAccount(worlds, lose_points).answer)
    clients.__dict__["event_history_pace"] = CallRateLimit(None)
    no_cases = (frozenset, frozenset, lambda _queue_arns: ())
    paces = Paces(CallRateLimit(None), CallRateLimit(None), CallRateLimit(None))
    consent = Consent(Mode.OBSERVE, Mode.OBSERVE)
    reader = ScanReader(clients, now, Timing(), *no_cases, consent, paces=paces)
    queues = [ManagedQueue(queue.arn, queue.tags) for world in worlds for queue in world.queues]
    detected = [entry for entry in CATALOGUE if entry.name in symptoms]
    done = reduce(merge_results, scan(queues, reader, Allowance(), detected), ScanResult())
    assert not done.error_by_target, done.error_by_target
    waits = find_waiting_findings(
        done.findings, {finding.name: finding.gives_way_to for finding in detected}
    )
    return replace(
        done, findings=tuple(finding for finding in done.findings if finding not in waits)
    )
