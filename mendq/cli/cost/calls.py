"""Count the calls to each queue, and estimate what they cost and what a trail of them shows.

SQS bills the calls, and CloudTrail bills them again if it logs them.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from msgspec import Struct, field

from mendq.aws.clients import Clients
from mendq.aws.cloudwatch import build_query, make_queue_dimension, read_metric_series
from mendq.catalogue.consumers.mapping_refused import MAPPING_REFUSED
from mendq.cli.doctor.visibility import (
    CALLS_ON_RECEIVED_MESSAGES,
    EventSelector,
    Trail,
    list_symptom_visibility,
)
from mendq.model.names import DATA_EVENT_NAMES
from mendq.model.prices import DATA_EVENT, FIFO_SQS_REQUEST, SQS_REQUEST, Price
from mendq.model.queue import is_fifo_arn

ONE_WEEK = timedelta(days=7)
_DAY_SECONDS = 86_400
_MOST_QUERIES_PER_CALL = 500
EMPTY_RECEIVES_METRIC = "NumberOfEmptyReceives"
# The calls that each metric counts. The first three count messages: a batch of ten counts as ten.
CALLS_BY_METRIC: Mapping[str, frozenset[str]] = {
    "NumberOfMessagesSent": frozenset({"SendMessage", "SendMessageBatch"}),
    "NumberOfMessagesReceived": frozenset({"ReceiveMessage"}),
    "NumberOfMessagesDeleted": frozenset({"DeleteMessage", "DeleteMessageBatch"}),
    EMPTY_RECEIVES_METRIC: frozenset({"ReceiveMessage"}),
}
# Calls that at least one metric counts.
COUNTED_CALLS = frozenset().union(*CALLS_BY_METRIC.values())
ALL_CALL_NAMES = frozenset(DATA_EVENT_NAMES)
RECEIVE_CALLS = frozenset({"ReceiveMessage"})


class QueueCalls(Struct, frozen=True):
    """The number of calls to one queue in a week, as SQS's metrics count them."""

    queue_arn: str
    # Sum of the week by metric. A metric without data is left out, because it is not known to be 0.
    week_sum_by_metric: Mapping[str, int] = field(default_factory=dict)

    def estimate_weekly_calls(self, event_names: Iterable[str]) -> int | None:
        """Estimate how many of the calls in `event_names` were made in the week.

        Only calls in COUNTED_CALLS are counted, because SQS has no metric for the others. For them
        the number is an upper bound: a batch call counts once for each of its messages, and one
        metric counts single and batch calls together. None if no metric that counts these calls has
        data.
        """
        logged_calls = frozenset(event_names)
        week_sums = [
            week_sum
            for metric, week_sum in self.week_sum_by_metric.items()
            if CALLS_BY_METRIC[metric] & logged_calls
        ]
        return sum(week_sums) if week_sums else None

    def estimate_monthly_dollars(self, event_names: Iterable[str]) -> float | None:
        """Estimate the dollars per month of a trail that logs the calls in `event_names`.

        None if no metric that counts these calls has data.
        """
        weekly_calls = self.estimate_weekly_calls(event_names)
        return None if weekly_calls is None else DATA_EVENT.cost(_to_monthly_calls(weekly_calls))

    @property
    def request_price(self) -> Price:
        """The price that SQS bills for the counted calls. It is higher for a FIFO queue."""
        return FIFO_SQS_REQUEST if is_fifo_arn(self.queue_arn) else SQS_REQUEST

    def estimate_monthly_sqs_dollars(self) -> float | None:
        """Estimate the dollars per month that SQS bills for the counted calls.

        The estimate is too high for batch calls, which count once for each message. It is too low
        for calls with more than 64 KB of messages, because SQS bills each started 64 KB. None if no
        metric has data.
        """
        weekly_calls = self.estimate_weekly_calls(COUNTED_CALLS)
        if weekly_calls is None:
            return None
        return self.request_price.cost(_to_monthly_calls(weekly_calls))

    @property
    def empty_share_of_receives(self) -> float | None:
        """Share (0 to 1) of the receive calls that returned no message. None if there were none.

        A receive call of several messages counts once for each message, so the share is too low
        rather than too high.
        """
        receive_count = self.estimate_weekly_calls(RECEIVE_CALLS)
        if not receive_count:
            return None
        return self.week_sum_by_metric.get(EMPTY_RECEIVES_METRIC, 0) / receive_count

    def document(self) -> dict[str, Any]:
        """Return the calls per month and what they cost, for `mendq cost --json`.

        A batch call counts once for each of its messages.
        """
        call_names = ("SendMessage", "ReceiveMessage", "DeleteMessage")
        return {
            "queue_arn": self.queue_arn,
            "a_month": {
                metric: round(_to_monthly_calls(week_sum))
                for metric, week_sum in self.week_sum_by_metric.items()
            },
            "dollars_per_month": {
                call_name: round_if_known(self.estimate_monthly_dollars({call_name}), 4)
                for call_name in call_names
            },
            "sqs_dollars_per_month": round_if_known(self.estimate_monthly_sqs_dollars(), 4),
            "empty_share_of_receives": round_if_known(self.empty_share_of_receives, 4),
        }


def _to_monthly_calls(weekly_calls: float) -> float:
    """Convert calls per week to calls per month of 30 days."""
    return weekly_calls * 30 / 7


def round_if_known(number: float | None, digits: int = 2) -> float | None:
    """Round a number to `digits` decimal places. Return None for None (not known)."""
    return None if number is None else round(number, digits)


def count_calls(
    clients: Clients, queue_arns: Iterable[str], now: datetime
) -> dict[str, QueueCalls]:
    """Return the calls to each queue in the week before `now`, by queue ARN.

    Reads four metrics per queue with GetMetricData, which AWS bills. Raises FactsUnavailable if
    CloudWatch cannot be read.
    """
    queue_metrics = [
        CallMetric(queue_arn, metric) for queue_arn in queue_arns for metric in CALLS_BY_METRIC
    ]
    week_sums_by_queue: dict[str, dict[str, int]] = {
        queue_metric.queue_arn: {} for queue_metric in queue_metrics
    }
    for first_index in range(0, len(queue_metrics), _MOST_QUERIES_PER_CALL):
        queue_metrics_of_one_request = queue_metrics[
            first_index : first_index + _MOST_QUERIES_PER_CALL
        ]
        for queue_metric, week_sum in _read_week_sums(clients, queue_metrics_of_one_request, now):
            week_sums_by_queue[queue_metric.queue_arn][queue_metric.metric] = week_sum
    return {
        queue_arn: QueueCalls(queue_arn, week_sum_by_metric)
        for queue_arn, week_sum_by_metric in week_sums_by_queue.items()
    }


class CallMetric(NamedTuple):
    """A metric of SQS that counts calls, or messages in calls, to one queue."""

    queue_arn: str
    metric: str


def _read_week_sums(
    clients: Clients, queue_metrics: Sequence[CallMetric], now: datetime
) -> Iterator[tuple[CallMetric, int]]:
    """Yield each metric that has data in the week before `now`, with its sum of the week."""
    queue_metric_by_query_id = {
        f"m{query_number}": queue_metric for query_number, queue_metric in enumerate(queue_metrics)
    }
    queries = [
        build_query(
            query_id,
            make_queue_dimension(queue_metric.queue_arn),
            queue_metric.metric,
            "Sum",
            _DAY_SECONDS,
        )
        for query_id, queue_metric in queue_metric_by_query_id.items()
    ]
    points_by_query_id = read_metric_series(clients, queries, now - ONE_WEEK, now, subject="queues")
    for query_id, points in points_by_query_id.items():
        if points:
            week_sum = round(sum(data_point_sum for _, data_point_sum in points))
            yield queue_metric_by_query_id[query_id], week_sum


class TrailChoice(Struct, frozen=True):
    """A choice of which calls a trail logs, such as all calls except receives."""

    # The choice in words, such as `all but receives`.
    name: str
    event_names: frozenset[str]

    @property
    def event_names_setting(self) -> list[str]:
        """The choice as a value of the setting `trail.eventNames`. Empty means every call."""
        return [] if self.event_names == ALL_CALL_NAMES else sorted(self.event_names)

    @property
    def uncounted_calls(self) -> list[str]:
        """Names of the calls that the trail would log and that no SQS metric counts, sorted."""
        return sorted(self.event_names - COUNTED_CALLS)

    def estimate_monthly_dollars(self, counted_queues: Iterable[QueueCalls]) -> float:
        """Estimate the dollars per month to log the chosen calls to all these queues together.

        A queue for which no metric has data counts as 0.
        """
        return sum(
            queue_calls.estimate_monthly_dollars(self.event_names) or 0
            for queue_calls in counted_queues
        )


ALL_CALLS_CHOICE = TrailChoice("every call", ALL_CALL_NAMES)
NO_RECEIVES_CHOICE = TrailChoice("all but receives", ALL_CALL_NAMES - RECEIVE_CALLS)
DELETES_AND_TIMEOUTS_CHOICE = TrailChoice(
    "deletes and visibility timeouts", CALLS_ON_RECEIVED_MESSAGES
)
SENDS_CHOICE = TrailChoice(
    "sends", frozenset(name for name in ALL_CALL_NAMES if name.startswith("SendMessage"))
)
TRAIL_CHOICES = (ALL_CALLS_CHOICE, NO_RECEIVES_CHOICE, DELETES_AND_TIMEOUTS_CHOICE, SENDS_CHOICE)


class SymptomsByVisibility(Struct, frozen=True):
    """Names of symptoms, in three lists by how well a trail would show them.

    wholly: The trail shows the symptom completely on all queues.
    in_part: On at least one queue, the trail shows the symptom only in part.
    blind: On at least one queue, the trail does not show the symptom.
    """

    wholly: list[str] = field(default_factory=list)
    in_part: list[str] = field(default_factory=list)
    blind: list[str] = field(default_factory=list)


def sort_symptoms_by_visibility(
    trail_choice: TrailChoice, queue_arns: Sequence[str]
) -> SymptomsByVisibility:
    """Sort the symptoms by how well a trail that logs the chosen calls would show them.

    The queue on which the trail shows a symptom worst decides. Symptoms that failed calls to SQS
    cannot show on any of these queues are left out.
    """
    event_selector: EventSelector = {
        "FieldSelectors": [
            {"Field": "eventCategory", "Equals": ["Data"]},
            {"Field": "resources.type", "Equals": ["AWS::SQS::Queue"]},
            {"Field": "eventName", "Equals": sorted(trail_choice.event_names)},
        ]
    }
    symptoms_by_visibility = SymptomsByVisibility()
    trail = Trail(trail_choice.name, (event_selector,))
    for symptom_visibility in list_symptom_visibility([trail], queue_arns):
        if symptom_visibility.symptom == MAPPING_REFUSED.name:
            continue  # a failed call to Lambda shows it, and none to SQS
        if symptom_visibility.blind:
            symptoms_by_visibility.blind.append(symptom_visibility.symptom)
        elif symptom_visibility.partly:
            symptoms_by_visibility.in_part.append(symptom_visibility.symptom)
        elif symptom_visibility.visible:
            symptoms_by_visibility.wholly.append(symptom_visibility.symptom)
    return symptoms_by_visibility
