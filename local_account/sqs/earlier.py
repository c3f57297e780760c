"""Puts a queue and its past back in time: hours of measuring need not be waited for.

What was counted stays what was counted; it merely happened earlier. So do the queue's making, its
last change and the messages in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ministack.services import sqs

from local_account.sqs.counting import put_back_arrivals
from local_account.sqs.queue_metrics import MINUTE_SECONDS, QueueMetrics
from local_account.switch import SwitchRefused

_TIMES = ("CreatedTimestamp", "LastModifiedTimestamp")
PutBack = Callable[[object], Mapping[str, Any]]


def putting_back(metrics: QueueMetrics, measure: Callable[[], None]) -> PutBack:
    """A function that takes `{"queue_arn": .., "minutes": ..}`; it raises SwitchRefused."""

    def put_back(asked: object) -> Mapping[str, Any]:
        queue_arn, seconds = _read(asked)
        queue = sqs._queue_by_arn(queue_arn)
        if queue is None:
            raise SwitchRefused(f"queue_arn: there is no queue {queue_arn}")
        measure()  # how it stands now belongs to its past
        with sqs._queues_lock:
            for name in _TIMES:
                queue["attributes"][name] = str(int(queue["attributes"][name]) - seconds)
            put_back_arrivals(queue, seconds)
            metrics.put_back(queue_arn, seconds)
        return {name: queue["attributes"][name] for name in _TIMES}

    return put_back


def _read(asked: object) -> tuple[str, int]:
    """Whole minutes, as metrics have one value in each."""
    if not isinstance(asked, Mapping) or set(asked) != {"queue_arn", "minutes"}:
        raise SwitchRefused('send {"queue_arn": "arn:aws:sqs:..", "minutes": 90}')
    minutes = asked["minutes"]
    if type(minutes) is not int or minutes < 1:
        raise SwitchRefused("minutes: give a whole number of at least 1")
    return str(asked["queue_arn"]), minutes * MINUTE_SECONDS
