"""Number of calls to each queue, and the cost and use of logging them in CloudTrail.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct, field

from mendq.aws.clients import Clients
from mendq.aws.cloudwatch import build_query, queue_dimension, read_series
from mendq.cli.doctor.visibility import VISIBILITY_CALLS, Selector, Trail, list_symptom_visibility
from mendq.model.names import DATA_EVENT_NAMES
from mendq.model.prices import DATA_EVENT

WEEK = timedelta(days=7)
_DAY_SECONDS = 86_400
_QUERIES_PER_CALL = 500
EMPTY_RECEIVES = "NumberOfEmptyReceives"
# Calls behind each metric. The first three count messages, so that a batch of ten counts as ten.
METRICS: Mapping[str, frozenset[str]] = {
    "NumberOfMessagesSent": frozenset({"SendMessage", "SendMessageBatch"}),
    "NumberOfMessagesReceived": frozenset({"ReceiveMessage"}),
    "NumberOfMessagesDeleted": frozenset({"DeleteMessage", "DeleteMessageBatch"}),
    EMPTY_RECEIVES: frozenset({"ReceiveMessage"}),
}
# Calls that some metric counts.
COUNTED = frozenset().union(*METRICS.values())
EVERY_CALL = frozenset(DATA_EVENT_NAMES)
RECEIVES = frozenset({"ReceiveMessage"})


class Calls(Struct, frozen=True):
    """Number of calls to one queue in a week."""

    queue_arn: str
    # Sum of the week by metric. A metric without any data is left out: that is not the same as 0.
    week_by_metric: Mapping[str, int] = field(default_factory=dict)

    def count_week(self, event_names: Iterable[str]) -> int | None:
        """Return how often these calls were made in the week. None if no metric of theirs has data.

        A batch counts once for each of its messages, and SendMessage and SendMessageBatch have one
        metric (deletes too). So the number is an upper bound for calls in COUNTED. Other calls are
        left out, because no metric counts them.
        """
        names = frozenset(event_names)
        counts = [count for metric, count in self.week_by_metric.items() if METRICS[metric] & names]
        return sum(counts) if counts else None

    def dollars_a_month(self, event_names: Iterable[str]) -> float | None:
        """Return what a trail that logs these calls costs a month. None if not counted."""
        calls = self.count_week(event_names)
        return None if calls is None else DATA_EVENT.cost(_to_month(calls))

    @property
    def empty_share_of_receives(self) -> float | None:
        """Share of the receive calls that returned no message. None if no receive was counted."""
        received = self.count_week(RECEIVES)
        return self.week_by_metric.get(EMPTY_RECEIVES, 0) / received if received else None

    def document(self) -> dict[str, Any]:
        """Return the calls and the dollars a month of logging them, for `mendq cost --json`.

        A batch is counted as its messages.
        """
        names = ("SendMessage", "ReceiveMessage", "DeleteMessage")
        return {
            "queue_arn": self.queue_arn,
            "a_month": {
                metric: round(_to_month(count)) for metric, count in self.week_by_metric.items()
            },
            "dollars_per_month": {
                name: round_dollars(self.dollars_a_month({name}), 4) for name in names
            },
            "empty_share_of_receives": round_dollars(self.empty_share_of_receives, 4),
        }


def _to_month(calls_per_week: float) -> float:
    """Return the calls of a month of 30 days."""
    return calls_per_week * 30 / 7


def round_dollars(dollars: float | None, digits: int = 2) -> float | None:
    """Round a number. None, for a number that is not known, stays None."""
    return None if dollars is None else round(dollars, digits)


def count_calls(clients: Clients, queue_arns: Iterable[str], now: datetime) -> dict[str, Calls]:
    """Return the calls to each queue in the week before `now`, by queue ARN.

    GetMetricData is billed: four metrics for each queue. Raises FactsUnavailable.
    """
    series = [(queue_arn, metric) for queue_arn in queue_arns for metric in METRICS]
    weeks: dict[str, dict[str, int]] = {queue_arn: {} for queue_arn, _ in series}
    for start in range(0, len(series), _QUERIES_PER_CALL):
        batch = dict(_number_queries(series[start : start + _QUERIES_PER_CALL]))
        queries = [
            build_query(query_id, queue_dimension(queue_arn), metric, "Sum", _DAY_SECONDS)
            for query_id, (queue_arn, metric) in batch.items()
        ]
        answers = read_series(clients, queries, now - WEEK, now, of="queues")
        for query_id, points in answers.items():
            if points:
                queue_arn, metric = batch[query_id]
                weeks[queue_arn][metric] = round(sum(value for _, value in points))
    return {queue_arn: Calls(queue_arn, week) for queue_arn, week in weeks.items()}


def _number_queries(series: Iterable[tuple[str, str]]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield an id for CloudWatch with each pair of queue ARN and metric."""
    for number, arn_and_metric in enumerate(series):
        yield f"m{number}", arn_and_metric


class TrailChoice(Struct, frozen=True):
    """A choice of the calls that a trail logs: one value of the setting `trail.eventNames`."""

    # The choice in words, such as `all but receives`.
    name: str
    event_names: frozenset[str]

    @property
    def setting(self) -> list[str]:
        """Value of `trail.eventNames`. An empty list means every call."""
        return [] if self.event_names == EVERY_CALL else sorted(self.event_names)

    @property
    def uncounted_calls(self) -> list[str]:
        """Calls that the trail logs and that no metric of SQS counts."""
        return sorted(self.event_names - COUNTED)

    def dollars(self, calls: Iterable[Calls]) -> float:
        """Return the dollars a month for all queues that were counted."""
        return sum(queue_calls.dollars_a_month(self.event_names) or 0 for queue_calls in calls)


ALL_CALLS = TrailChoice("every call", EVERY_CALL)
NO_RECEIVES = TrailChoice("all but receives", EVERY_CALL - RECEIVES)
VISIBILITY = TrailChoice("deletes and visibility timeouts", VISIBILITY_CALLS)
SENDS = TrailChoice(
    "sends", frozenset(name for name in EVERY_CALL if name.startswith("SendMessage"))
)
CHOICES = (ALL_CALLS, NO_RECEIVES, VISIBILITY, SENDS)


class VisibleSymptoms(Struct, frozen=True):
    """Names of the symptoms that failed calls show, by how much of them a trail would show."""

    wholly: list[str] = field(default_factory=list)
    in_part: list[str] = field(default_factory=list)
    blind: list[str] = field(default_factory=list)


def sort_symptoms_by_visibility(choice: TrailChoice, queue_arns: Sequence[str]) -> VisibleSymptoms:
    """Sort the symptoms by how much a trail with this choice would show of them on these queues.

    A symptom counts by the queue on which the trail shows least of it.
    """
    selector: Selector = {
        "FieldSelectors": [
            {"Field": "eventCategory", "Equals": ["Data"]},
            {"Field": "resources.type", "Equals": ["AWS::SQS::Queue"]},
            {"Field": "eventName", "Equals": sorted(choice.event_names)},
        ]
    }
    symptoms = VisibleSymptoms()
    trail = Trail(choice.name, (selector,))
    for visibility in list_symptom_visibility([trail], queue_arns):
        if visibility.blind:
            symptoms.blind.append(visibility.symptom)
        elif visibility.partly:
            symptoms.in_part.append(visibility.symptom)
        elif visibility.visible:
            symptoms.wholly.append(visibility.symptom)
    return symptoms
