"""The queues that scans saw messages being moved into."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from mendq.cases import items
from mendq.cases.finding import start_of_hour
from mendq.cases.transactions import Table
from mendq.model.evidence import to_text

BETWEEN_SCANS = timedelta(hours=1)
RETAINED = timedelta(days=1)


class SeenMoves(Table, frozen=True):
    """The moves in the case store, one item for each hour. Methods raise CaseStoreUnavailable."""

    def note(self, queue_arns: Iterable[str], now: datetime) -> None:
        """Add queues to what this hour's scan has seen."""
        self.change_set(_moves_key(now), "into_queues", now + RETAINED, (), sorted(queue_arns))

    def into(self, now: datetime) -> frozenset[str]:
        """Return the queues that this hour's scan and the last hour's saw."""
        hours = [self.get(_moves_key(hour)) for hour in (now, now - BETWEEN_SCANS)]
        with items.reading("the moves that a scan saw"):
            return frozenset(arn for item in hours for arn in items.texts_in(item, "into_queues"))


def _moves_key(now: datetime) -> items.Key:
    return items.key(items.ACCOUNT, f"moves#{to_text(start_of_hour(now))}")
