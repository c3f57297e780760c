"""The number of metrics that Mendq has asked CloudWatch for on a day. AWS bills each of them."""

from __future__ import annotations

from datetime import datetime, timedelta

from mendq.cases import items
from mendq.cases.partitions import ACCOUNT_PARTITION
from mendq.cases.transactions import Table


class SpentMetrics(Table, frozen=True):
    """The day's number of read metrics: one item of the case store for each day (UTC).

    The scan counts what it asks for before it asks, up to a limit. Heal adds what it has read.
    Methods raise CaseStoreUnavailable.
    """

    def spend_metrics(self, metric_count: int, daily_limit: int, now: datetime) -> bool:
        """Count metrics as read on this day.

        Return False, and count none, if more than `daily_limit` would then be read on this day.
        """
        limit_condition = "attribute_not_exists(asked) OR asked <= :left"
        return metric_count <= daily_limit and self._add_spent_metrics(
            metric_count, now, limit_condition, left=daily_limit - metric_count
        )

    def note_spent_metrics(self, metric_count: int, now: datetime) -> None:
        """Add to the day's number of read metrics, even if that exceeds the daily limit."""
        if metric_count:
            self._add_spent_metrics(metric_count, now)

    def read_spent_metrics(self, now: datetime) -> int:
        """Return the day's number of read metrics. Raise CaseStoreUnreadable."""
        with items.convert_decode_errors("the day's number of read metrics"):
            return int(self.get(_metrics_key(now)).get("asked", {"N": "0"})["N"])

    def _add_spent_metrics(
        self, metric_count: int, now: datetime, condition: str = "", **values: int
    ) -> bool:
        """Add `metric_count` to the day's number of read metrics.

        Return False, and add nothing, if DynamoDB finds `condition` false. `values` are the values
        that the condition uses.
        """
        expires_at = now + timedelta(days=2)
        update_expression = "ADD asked :n SET expires_at = :expires"
        return self.change(
            _metrics_key(now),
            update_expression,
            condition,
            n=metric_count,
            expires=expires_at,
            **values,
        )


def _metrics_key(now: datetime) -> items.Key:
    return items.item_key(ACCOUNT_PARTITION, f"metrics#{now:%Y-%m-%d}")
