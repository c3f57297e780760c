"""Puts a queue and its past back in time: hours of measuring need not be waited for.

What was counted stays what was counted; it merely happened earlier. So do the queue's making, its
last change, what CloudTrail's event history tells of it and the messages in it. `"of":
"last_change"` puts back nothing but that change: CloudTrail's twenty minutes need not be waited
for. What lies in a trail's bucket already keeps its times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ministack.services import sqs

from local_account.cloudtrail.event_history import EventHistory
from local_account.sqs.counting import put_back_arrivals
from local_account.sqs.queue_metrics import MINUTE_SECONDS, QueueMetrics
from local_account.switch import SwitchRefused

CREATED, MODIFIED = "CreatedTimestamp", "LastModifiedTimestamp"
ALL, LAST_CHANGE = "all", "last_change"
PutBack = Callable[[object], Mapping[str, Any]]
Queue = dict[str, Any]


@dataclass(frozen=True)
class _Asked:
    queue_arn: str
    seconds: int
    of: str


def putting_back(
    metrics: QueueMetrics, history: EventHistory, measure: Callable[[], None]
) -> PutBack:
    """A function that takes `{"queue_arn": .., "minutes": ..}`; it raises SwitchRefused."""

    def put_back(given: object) -> Mapping[str, Any]:
        asked = _read(given)
        queue = sqs._queue_by_arn(asked.queue_arn)
        if queue is None:
            raise SwitchRefused(f"queue_arn: there is no queue {asked.queue_arn}")
        if asked.of == LAST_CHANGE:
            _last_change(queue, asked, history)
        else:
            measure()  # how it stands now belongs to its past
            _all(queue, asked, metrics)
            history.put_back(asked.queue_arn, asked.seconds)
        return {name: queue["attributes"][name] for name in (CREATED, MODIFIED)}

    return put_back


def _all(queue: Queue, asked: _Asked, metrics: QueueMetrics) -> None:
    with sqs._queues_lock:
        for name in (CREATED, MODIFIED):
            _move(queue, name, asked.seconds)
        put_back_arrivals(queue, asked.seconds)
        metrics.put_back(asked.queue_arn, asked.seconds)


def _last_change(queue: Queue, asked: _Asked, history: EventHistory) -> None:
    """Not beyond what happened to the queue before."""
    modified = int(queue["attributes"][MODIFIED])
    told = (each for each in history.changed_at(asked.queue_arn) if each < modified)
    before = max(told, default=float(queue["attributes"][CREATED]))
    if modified - asked.seconds <= before:
        minutes = int(modified - before) // MINUTE_SECONDS
        raise SwitchRefused(
            f"minutes: something else happened to the queue {minutes} minutes before its last "
            'change; put the queue back as a whole first, without "of"'
        )
    with sqs._queues_lock:
        _move(queue, MODIFIED, asked.seconds)
    history.put_back(asked.queue_arn, asked.seconds, since_seconds=modified)


def _move(queue: Queue, name: str, seconds: int) -> None:
    queue["attributes"][name] = str(int(queue["attributes"][name]) - seconds)


def _read(given: object) -> _Asked:
    """Whole minutes, as metrics have one value in each."""
    if not isinstance(given, Mapping) or set(given) - {"of"} != {"queue_arn", "minutes"}:
        raise SwitchRefused('send {"queue_arn": "arn:aws:sqs:..", "minutes": 90}')
    minutes, of = given["minutes"], given.get("of", ALL)
    if type(minutes) is not int or minutes < 1:
        raise SwitchRefused("minutes: give a whole number of at least 1")
    if of not in (ALL, LAST_CHANGE):
        raise SwitchRefused(f"of: say {ALL} (or leave it out) or {LAST_CHANGE}")
    return _Asked(str(given["queue_arn"]), minutes * MINUTE_SECONDS, of)
