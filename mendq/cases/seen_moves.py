"""Queues that the hourly scan saw as the named destination of a message movement task.

Such a queue may receive messages that came from other queues. SQS lists tasks only by the queue
that the messages leave, so the destination's own facts do not show them:
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ListMessageMoveTasks.html
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from mendq.cases import items
from mendq.cases.finding import start_of_hour
from mendq.cases.partitions import ACCOUNT_PARTITION
from mendq.cases.transactions import Table
from mendq.model.time_text import format_time

SCAN_INTERVAL = timedelta(hours=1)
# An item expires this long after its last change.
MOVES_LIFETIME = timedelta(days=1)


class SeenMoves(Table, frozen=True):
    """Destinations of message movement tasks, one item of the case store for each hour.

    Methods raise CaseStoreUnavailable.
    """

    def note_destinations(self, queue_arns: Iterable[str], now: datetime) -> None:
        """Add these destination queues to the item for the hour of `now`."""
        self.change_set(
            _moves_key(now), "into_queues", now + MOVES_LIFETIME, (), sorted(queue_arns)
        )

    def list_destinations(self, now: datetime) -> frozenset[str]:
        """Return the destination queues stored in the hour of `now` and in the hour before.

        Raise CaseStoreUnreadable if Mendq cannot read one of the two items.
        """
        hourly_items = [self.get(_moves_key(hour)) for hour in (now, now - SCAN_INTERVAL)]
        queue_arns: set[str] = set()
        with items.convert_decode_errors("the moves that a scan saw"):
            for item in hourly_items:
                queue_arns.update(items.read_texts(item, "into_queues"))
        return frozenset(queue_arns)


def _moves_key(now: datetime) -> items.Key:
    return items.item_key(ACCOUNT_PARTITION, f"moves#{format_time(start_of_hour(now))}")
