"""The configurations that queues had when a scan found nothing wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from mendq.aws.errors import CaseStoreUnreadable
from mendq.cases import items
from mendq.cases.transactions import Table
from mendq.notifications.configuration import Baseline

# A scan stores an unchanged configuration again, so only those of queues that are gone expire.
BASELINES_LAST = timedelta(days=400)
# About fifty baselines of a usual queue. An item holds 400 KB.
MOST_BASELINE_BYTES = 100_000


class Baselines(Table, frozen=True):
    """The baselines in the case store. Methods raise CaseStoreUnavailable."""

    def of(self, queue_arn: str) -> tuple[Baseline, ...]:
        """Return a queue's baselines, newest first, at most one of a day.

        Return none if the item cannot be read.
        """
        item = self.get(_baselines_key(queue_arn))
        with suppress(CaseStoreUnreadable), items.reading(f"the baselines of {queue_arn}"):
            baselines = items.json_in(item, "baselines", list[Baseline], "[]")
            return tuple(
                replace(baseline, at=baseline.at.astimezone(UTC)) for baseline in baselines
            )
        return ()

    def put(self, queue_arn: str, configuration: Mapping[str, str], now: datetime) -> None:
        """Store a queue's configuration if it differs from the newest baseline.

        The oldest baselines make room for it.
        """
        baselines = [*self.of(queue_arn)]
        if not baselines or baselines[0].attributes != configuration:
            earlier = [known for known in baselines if known.at.date() != now.date()]
            baselines = [Baseline(now, configuration), *earlier]
        text = items.as_json(baselines)
        while len(text) > MOST_BASELINE_BYTES and len(baselines) > 1:
            baselines.pop()
            text = items.as_json(baselines)
        self.change(
            _baselines_key(queue_arn),
            "SET baselines = :baselines, expires_at = :expires",
            baselines=text,
            expires=now + BASELINES_LAST,
        )


def _baselines_key(queue_arn: str) -> items.Key:
    return items.key(queue_arn, "baselines")
