"""How often queues are called, and what logging which calls costs and shows.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
# A message is at most one call to send, one to receive, one to delete; a batch is fewer.
METRICS: Mapping[str, frozenset[str]] = {
    "NumberOfMessagesSent": frozenset({"SendMessage", "SendMessageBatch"}),
    "NumberOfMessagesReceived": frozenset({"ReceiveMessage"}),
    "NumberOfMessagesDeleted": frozenset({"DeleteMessage", "DeleteMessageBatch"}),
    EMPTY_RECEIVES: frozenset({"ReceiveMessage"}),
}
COUNTED = frozenset().union(*METRICS.values())
EVERY_CALL = frozenset(DATA_EVENT_NAMES)
RECEIVES = frozenset({"ReceiveMessage"})


class Calls(Struct, frozen=True):
    """A queue's week by metric; what is not there was not counted, which is not none."""

    queue_arn: str
    of_the_week: Mapping[str, int] = field(default_factory=dict)

    def a_week(self, event_names: Iterable[str]) -> int | None:
        """Of these calls, an upper bound where they are batches; None: no metric of any."""
        asked = frozenset(event_names)
        found = [value for metric, value in self.of_the_week.items() if METRICS[metric] & asked]
        return sum(found) if found else None

    def dollars_a_month(self, event_names: Iterable[str]) -> float | None:
        """Of one trail that logs them."""
        calls = self.a_week(event_names)
        return None if calls is None else DATA_EVENT.of(a_month(calls))

    @property
    def empty_share_of_receives(self) -> float | None:
        received = self.a_week(RECEIVES)
        return self.of_the_week.get(EMPTY_RECEIVES, 0) / received if received else None

    def document(self) -> dict[str, Any]:
        """By call what a month of logging it costs; a batch is counted as its messages."""
        names = ("SendMessage", "ReceiveMessage", "DeleteMessage")
        return {
            "queue_arn": self.queue_arn,
            "a_month": {name: round(a_month(each)) for name, each in self.of_the_week.items()},
            "dollars_per_month": {
                name: round_dollars(self.dollars_a_month({name}), 4) for name in names
            },
            "empty_share_of_receives": round_dollars(self.empty_share_of_receives, 4),
        }


def a_month(calls_per_week: float) -> float:
    return calls_per_week * 30 / 7


def round_dollars(dollars: float | None, digits: int = 2) -> float | None:
    return None if dollars is None else round(dollars, digits)


def count_calls(clients: Clients, queue_arns: Iterable[str], now: datetime) -> dict[str, Calls]:
    """The calls of each queue; GetMetricData is billed by the metric. Raises FactsUnavailable."""
    asked = [(arn, metric) for arn in queue_arns for metric in METRICS]
    found: dict[str, dict[str, int]] = {arn: {} for arn, _ in asked}
    for start in range(0, len(asked), _QUERIES_PER_CALL):
        part = {f"m{n}": each for n, each in enumerate(asked[start : start + _QUERIES_PER_CALL])}
        queries = [
            build_query(key, queue_dimension(arn), metric, "Sum", _DAY_SECONDS)
            for key, (arn, metric) in part.items()
        ]
        for key, points in read_series(clients, queries, now - WEEK, now, of="queues").items():
            if points:
                arn, metric = part[key]
                found[arn][metric] = round(sum(value for _, value in points))
    return {arn: Calls(arn, week) for arn, week in found.items()}


class TrailChoice(Struct, frozen=True):
    """A value of `trail.eventNames`, in words."""

    name: str
    event_names: frozenset[str]

    @property
    def setting(self) -> list[str]:
        """As `trail.eventNames` has it: none named is every one."""
        return [] if self.event_names == EVERY_CALL else sorted(self.event_names)

    @property
    def uncounted(self) -> list[str]:
        """Calls that it logs and of which SQS counts nothing."""
        return sorted(self.event_names - COUNTED)

    def dollars(self, calls: Iterable[Calls]) -> float:
        """A month, of the queues that were counted."""
        return sum(each.dollars_a_month(self.event_names) or 0 for each in calls)


ALL_CALLS = TrailChoice("every call", EVERY_CALL)
NO_RECEIVES = TrailChoice("all but receives", EVERY_CALL - RECEIVES)
VISIBILITY = TrailChoice("deletes and visibility timeouts", VISIBILITY_CALLS)
SENDS = TrailChoice(
    "sends", frozenset(name for name in EVERY_CALL if name.startswith("SendMessage"))
)
CHOICES = (ALL_CALLS, NO_RECEIVES, VISIBILITY, SENDS)


class VisibleSymptoms(Struct, frozen=True):
    """What is seen of the symptoms that calls show, on these queues; each by its names."""

    wholly: list[str] = field(default_factory=list)
    in_part: list[str] = field(default_factory=list)
    blind: list[str] = field(default_factory=list)


def sort_symptoms_by_visibility(choice: TrailChoice, queue_arns: Sequence[str]) -> VisibleSymptoms:
    """A symptom counts as the worst of what is seen of it on any of the queues."""
    selector: Selector = {
        "FieldSelectors": [
            {"Field": "eventCategory", "Equals": ["Data"]},
            {"Field": "resources.type", "Equals": ["AWS::SQS::Queue"]},
            {"Field": "eventName", "Equals": sorted(choice.event_names)},
        ]
    }
    shown = VisibleSymptoms()
    for each in list_symptom_visibility([Trail(choice.name, (selector,))], queue_arns):
        if each.visible or each.partly or each.blind:
            worst = shown.in_part if each.partly else shown.wholly
            (shown.blind if each.blind else worst).append(each.symptom)
    return shown
