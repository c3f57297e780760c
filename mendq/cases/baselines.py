"""Baselines: configurations that a queue had while a scan found nothing wrong with it.

Notifications and `mendq history` compare the queue with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from mendq.aws.errors import CaseStoreUnreadable
from mendq.cases import items
from mendq.cases.partitions import BASELINE_PARTITION_PREFIX
from mendq.cases.transactions import Table
from mendq.notifications.configuration import Baseline

# The scan stores an unchanged configuration again once a year. So only the baselines of deleted
# queues expire.
BASELINE_LIFETIME = timedelta(days=400)
# Enough for about fifty baselines of a typical queue. DynamoDB allows 400 KB in one item.
MAXIMUM_BASELINE_BYTES = 100_000


class Baselines(Table, frozen=True):
    """The baselines in the case store. Methods raise CaseStoreUnavailable."""

    def load(self, queue_arn: str) -> tuple[Baseline, ...]:
        """Return a queue's baselines, newest first, at most one per day.

        Return an empty tuple if none are stored, or if Mendq cannot read the item.
        """
        baselines_item = self.get(_make_baselines_key(queue_arn))
        if not baselines_item:
            baselines_item = self.get(_make_earlier_baselines_key(queue_arn))
        with (
            suppress(CaseStoreUnreadable),
            items.convert_decode_errors(f"the baselines of {queue_arn}"),
        ):
            baselines = items.read_json(baselines_item, "baselines", list[Baseline], "[]")
            return tuple(
                replace(baseline, at=baseline.at.astimezone(UTC)) for baseline in baselines
            )
        return ()

    def put(self, queue_arn: str, configuration: Mapping[str, str], now: datetime) -> None:
        """Store a queue's configuration as its newest baseline if it differs from the last one.

        A new baseline replaces an earlier one of the same day. If all baselines together are larger
        than MAXIMUM_BASELINE_BYTES, the oldest are dropped, but never the newest. The item expires
        BASELINE_LIFETIME after the last call, even if that call changed nothing else.
        """
        baselines = [*self.load(queue_arn)]
        if not baselines or baselines[0].attributes != configuration:
            baselines_of_other_days = [
                baseline for baseline in baselines if baseline.at.date() != now.date()
            ]
            baselines = [Baseline(now, configuration), *baselines_of_other_days]
        baselines_text = items.encode_json(baselines)
        while len(baselines_text) > MAXIMUM_BASELINE_BYTES and len(baselines) > 1:
            baselines.pop()
            baselines_text = items.encode_json(baselines)
        self.change(
            _make_baselines_key(queue_arn),
            "SET baselines = :baselines, expires_at = :expires",
            baselines=baselines_text,
            expires=now + BASELINE_LIFETIME,
        )


def _make_baselines_key(queue_arn: str) -> items.Key:
    return items.item_key(f"{BASELINE_PARTITION_PREFIX}{queue_arn}", "baselines")


def _make_earlier_baselines_key(queue_arn: str) -> items.Key:
    """Return the key under which earlier versions of Mendq stored a queue's baselines."""
    return items.item_key(queue_arn, "baselines")
