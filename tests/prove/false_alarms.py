"""Findings of a scan for faulty simulated queues and for healthy look-alikes.

`python -m tests.prove.false_alarms` writes what it heard into docs/precision.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import reduce
from math import comb
from pathlib import Path
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
from tests.prove.look_alikes import HEALTHY, ILL
from tests.prove.proof import Proof, Proving
from tests.prove.scans import clients_of
from tests.prove.simulated_queues import (
    ACCOUNT,
    HOUR,
    NOISY,
    NOW,
    REGION,
    SimulatedQueue,
    SimulatedWorld,
    chance,
)

PAGE = Path(__file__).resolve().parents[2] / "docs" / "precision.md"
MARKED = re.compile(r"(<!-- measured: [^>]+ -->\n).*?(<!-- end measured -->)", re.DOTALL)
SEEDS = range(5)
SCENES = {**HEALTHY, **ILL}
MEASURED = tuple(
    entry.name
    for entry in CATALOGUE
    if entry.detection and Need.MEASUREMENTS in entry.detection.needs
)
# What the numbers of AWS do not tell apart; docs/precision.md says so of each.
INDISTINCT = frozenset(
    {
        ("queue browser left open", "consumer_failing"),
        ("stale readings expire by intent", "messages_about_to_expire"),
        ("stale readings expire by intent", "messages_expire"),
        ("poison, and a tag above the timeout", "visibility_timeout_too_short"),
    }
)
Asked = Mapping[str, Any]
# The share of cases beyond each end of an exact 95 % interval.
TAIL = 0.025


class MeasuredAccount:
    """Answers as SQS, Lambda and CloudWatch would of these worlds, below botocore's parsing."""

    def __init__(self, worlds: Iterable[SimulatedWorld]) -> None:
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
            "GetFunctionConcurrency": lambda _: {},
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
        moving = self.queues[asked["SourceArn"].rpartition(":")[2]].moving
        started = int(NOW.timestamp() - HOUR) * 1000
        return {"Results": [{"Status": "RUNNING", "StartedTimestamp": started}] * moving}

    def _mappings(self, _: Asked) -> dict[str, Any]:
        arn = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:"
        listed = [
            {
                "UUID": name,
                "State": "Enabled" if function.enabled else "Disabled",
                "EventSourceArn": queue.arn,
                "FunctionArn": arn + name,
                "BatchSize": function.batch,
                "FunctionResponseTypes": ["ReportBatchItemFailures"] * function.reports_items,
            }
            for name, (queue, function) in self.functions.items()
        ]
        return {"EventSourceMappings": listed}

    def _function(self, asked: Asked) -> dict[str, Any]:
        _, function = self.functions[asked["FunctionName"].rpartition(":")[2]]
        return {"Timeout": function.timeout_seconds}

    def _metrics(self, asked: Asked) -> dict[str, Any]:
        since = asked["StartTime"]
        until = asked["EndTime"]
        results = list[dict[str, Any]]()
        for metric_data_query in asked["MetricDataQueries"]:
            metric = metric_data_query["MetricStat"]["Metric"]
            statistic = metric_data_query["MetricStat"]["Stat"]
            name = metric["Dimensions"][0]["Value"]
            points = list[tuple[Any, float]]()
            if metric["Namespace"] == "AWS/Lambda":
                queue, function = self.functions[name]
                hour = queue.world.now - HOUR
                values = function.figure(metric["MetricName"], statistic, hour)
                points = [(since, value) for value in values]
            elif metric["Namespace"] == "AWS/SQS":
                series = self.queues[name].series(metric["MetricName"])
                points = [
                    (point_at, value) for point_at, value in series if since <= point_at < until
                ]
            shown = {
                "Timestamps": [point_at for point_at, _ in points],
                "Values": [v for _, v in points],
            }
            results.append({"Id": metric_data_query["Id"], **shown})
        return {"MetricDataResults": results}


def scan_worlds(worlds: Sequence[SimulatedWorld], seconds_ago: float) -> ScanResult:
    """Run the product's scan over all queues and return its findings."""
    now = NOW - timedelta(seconds=seconds_ago)
    for world in worlds:
        world.run(world.end - seconds_ago)
    clients = clients_of(MeasuredAccount(worlds).answer)
    clients.__dict__["event_history_pace"] = CallRateLimit(None)
    no_cases = (frozenset, frozenset, lambda _queue_arns: ())
    paces = Paces(CallRateLimit(None), CallRateLimit(None), CallRateLimit(None))
    consent = Consent(Mode.OBSERVE, Mode.OBSERVE)
    reader = ScanReader(clients, now, Timing(), *no_cases, consent, paces=paces)
    queues = [ManagedQueue(queue.arn, queue.tags) for world in worlds for queue in world.queues]
    detected = [entry for entry in CATALOGUE if entry.name in MEASURED]
    done = reduce(merge_results, scan(queues, reader, Allowance(), detected), ScanResult())
    assert not done.error_by_target, done.error_by_target
    waits = find_waiting_findings(
        done.findings, {finding.name: finding.gives_way_to for finding in detected}
    )
    return replace(
        done, findings=tuple(finding for finding in done.findings if finding not in waits)
    )


def describe_share(part: int, whole: int) -> str:
    """Return a share with its exact 95 % interval, such as `0.86 (0.70-0.95)`."""
    low, high = find_exact_interval(part, whole)
    return f"{part / whole:.2f} ({low:.2f}-{high:.2f})"


def find_exact_interval(part: int, whole: int) -> tuple[float, float]:
    """Return the Clopper-Pearson interval of a share, which covers the true one 95 times in 100.

    https://en.wikipedia.org/wiki/Binomial_proportion_confidence_interval
    """
    # The lower bound is the chance at which `part` or more hits of `whole` happen in 2.5 % of all
    # cases; the upper one that at which `part` or fewer do.
    low = find_chance(lambda chance_of_hit: count_tail(part, whole, chance_of_hit) < TAIL)
    high = 1 - find_chance(
        lambda chance_of_miss: count_tail(whole - part, whole, chance_of_miss) < TAIL
    )
    return (low if part else 0.0), (high if part < whole else 1.0)


def count_tail(fewest: int, whole: int, chance_of_hit: float) -> float:
    """Return the probability of at least `fewest` hits in `whole` independent tries."""
    return sum(
        comb(whole, hits) * chance_of_hit**hits * (1 - chance_of_hit) ** (whole - hits)
        for hits in range(fewest, whole + 1)
    )


def find_chance(is_too_low: Callable[[float], bool]) -> float:
    """Return the chance between 0 and 1 up to which `is_too_low` is true, by halving."""
    low = 0.0
    high = 1.0
    for _ in range(50):
        middle = (low + high) / 2
        if is_too_low(middle):
            low = middle
        else:
            high = middle
    return low


@dataclass(frozen=True)
class ScanTally:
    """Findings by scene and seed over three scans, and the number of measured queues."""

    scanned: Mapping[tuple[str, int], Collection[str]]
    measured: int

    def strays(self, symptom: str, scenes: Collection[str]) -> Counter[str]:
        """Count the false findings of a symptom by scene."""
        return Counter(
            name
            for (name, _), said in self.scanned.items()
            if name in scenes
            and symptom in said
            and symptom not in (*SCENES[name].ill, *SCENES[name].also)
        )

    def count_misses(self, symptom: str) -> Counter[str]:
        return Counter(
            name
            for (name, _), said in self.scanned.items()
            if symptom in SCENES[name].ill and symptom not in said
        )

    def row(self, symptom: str) -> str:
        """A line of the table on the page."""
        ill = sum(symptom in SCENES[name].ill for name, _ in self.scanned)
        found = ill - self.count_misses(symptom).total()
        alike = sum(
            name in HEALTHY and symptom not in SCENES[name].also for name, _ in self.scanned
        )
        healthy, others = (self.strays(symptom, scenes).total() for scenes in (HEALTHY, ILL))
        heard = found + healthy + others
        precision = describe_share(found, heard) if ill and heard else "-"
        recall = describe_share(found, ill) if ill else "-"
        shown = f"{found} of {ill} | {healthy} of {alike} | {others}"
        return f"| `{symptom}` | {shown} | {precision} | {recall} |"

    def text(self) -> str:
        """The table, and below it every scene that was not told as it is."""
        titles = ("symptom", "ill: found", "look-alikes: told of", "other ills: told of")
        head = " | ".join((*titles, "precision", "recall"))
        lines = [f"| {head} |", f"|---|{'---:|' * 5}", *map(self.row, MEASURED), ""]
        for symptom in MEASURED:
            for name, times in sorted(self.strays(symptom, SCENES).items()):
                lines.append(f"- *{name}*: told of `{symptom}` in {times} of {self.seeds}")
            for name, times in sorted(self.count_misses(symptom).items()):
                lines.append(f"- *{name}*: `{symptom}` missed in {times} of {self.seeds}")
        return "\n".join([*lines, ""])

    @property
    def seeds(self) -> int:
        return len({seed for _, seed in self.scanned})


def tally_scans(
    seeds: Sequence[int], progress: Callable[[float], None] = lambda _: None
) -> ScanTally:
    """Three rounds over every scene for each seed, within two hours."""
    said = dict[tuple[str, int], set[str]]()
    measured = 0
    for n, seed in enumerate(seeds):
        worlds = {name: scene.play(name, seed) for name, scene in SCENES.items()}
        scene_of = {
            queue.arn: (name, seed) for name, world in worlds.items() for queue in world.queues
        }
        said |= {(name, seed): set() for name in SCENES}
        random = chance(f"{seed}")
        for seconds_ago in (random.uniform(HOUR, 2 * HOUR), random.uniform(60, HOUR), 0):
            done = scan_worlds(tuple(worlds.values()), seconds_ago)
            measured += done.measured
            for finding in done.findings:
                said[scene_of[finding.queue_arn]].add(finding.symptom)
        progress((n + 1) / len(seeds))
    return ScanTally(said, measured)


def false_alarms(proving: Proving) -> ScanTally:
    heard = tally_scans(SEEDS, proving.progress)
    for symptom in MEASURED:
        figures = [cell.strip() for cell in heard.row(symptom).split("|")[2:-1]]
        proving.figure(
            symptom, "found {}, told of {}, {}; precision {}, recall {}".format(*figures)
        )
    proving.note({"seeds": heard.seeds, "look_alikes": len(HEALTHY), "ills": len(ILL)})
    proving.figure("queues_measured", heard.measured)
    strays = {(name, symptom) for symptom in MEASURED for name in heard.strays(symptom, SCENES)}
    known = {symptom for name in ILL for symptom in ILL[name].ill} & set(MEASURED)
    often = {
        scene_name
        for scene_name in known
        if heard.row(scene_name).startswith(f"| `{scene_name}` | 0 of")
    }
    proving.holding(
        {
            f"nothing healthy is told of, but what is indistinct: {strays - INDISTINCT}": not (
                strays - INDISTINCT
            ),
            f"each ill that a scene shows is found at times: {often}": not often,
            "at least twenty look-alikes": len(HEALTHY) >= 20,
            "most are told apart by measuring": heard.measured > len(HEALTHY) * heard.seeds,
        }
    )
    return heard


def page_says(heard: ScanTally, text: str) -> str:
    """The page with what was heard."""
    return MARKED.sub(lambda found: found[1] + heard.text() + found[2], text)


def prove_precision(proving: Proving) -> None:
    text = PAGE.read_text()
    says = page_says(false_alarms(proving), text) == text
    proving.holds("docs/precision.md says what was heard", whether=says)


FALSE_ALARMS = (
    Proof(
        "false_alarms",
        "A scan finds simulated queues that are ill, and tells of no healthy one that looks alike.",
        prove_precision,
    ),
)

if __name__ == "__main__":
    PAGE.write_text(page_says(tally_scans(SEEDS), PAGE.read_text()))
