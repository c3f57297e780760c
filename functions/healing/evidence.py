"""The failed calls that speak for a case: distinct, recent, and few enough to keep."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Self

from functions.healing.failed_call import FailedCall

MAXIMUM_PRINCIPALS = 10
MAXIMUM_KEPT = 10
STALE_AFTER = timedelta(minutes=60)


@dataclass(frozen=True)
class EvidenceNeeded:
    """How many distinct events, how close together, before anything is believed."""

    distinct_events: int = 3
    within_seconds: int = 600


@dataclass(frozen=True, order=True)
class Sighting:
    """What the ledger keeps of one failed call; ordered by time."""

    event_time: datetime
    event_id: str
    request_id: str
    principal_arn: str

    @classmethod
    def of(cls, call: FailedCall) -> Self:
        return cls(call.event_time, call.event_id, call.request_id, call.principal_arn)

    def to_text(self) -> str:
        """The same call gives the same text, so that a set of them counts no event twice."""
        at = int(self.event_time.timestamp() * 1000)
        return json.dumps([at, self.event_id, self.request_id, self.principal_arn])

    @classmethod
    def from_text(cls, text: str) -> Self:
        at, event_id, request_id, principal_arn = json.loads(text)
        return cls(datetime.fromtimestamp(at / 1000, UTC), event_id, request_id, principal_arn)


@dataclass(frozen=True)
class Evidence:
    """Distinct sightings in time order."""

    sightings: tuple[Sighting, ...] = ()

    @classmethod
    def of(cls, sightings: Iterable[Sighting]) -> Self:
        """One sighting per event id, the earliest."""
        by_event: dict[str, Sighting] = {}
        for each in sorted(sightings):
            by_event.setdefault(each.event_id, each)
        return cls(tuple(by_event.values()))

    def suffices(self, needed: EvidenceNeeded) -> bool:
        """Whether enough distinct events lie within the window, wherever it is put."""
        times = [each.event_time for each in self.sightings]
        window = timedelta(seconds=needed.within_seconds)
        last = needed.distinct_events - 1
        return any(
            later - first <= window for first, later in zip(times, times[last:], strict=False)
        )

    def worth_keeping(self, now: datetime) -> tuple[Sighting, ...]:
        """The newest that are not stale: enough to complete a window, few enough to store."""
        fresh = (each for each in self.sightings if now - each.event_time <= STALE_AFTER)
        return tuple(fresh)[-MAXIMUM_KEPT:]

    def document(self) -> dict[str, object]:
        """As transitions hold it."""
        first, last = self.sightings[0], self.sightings[-1]
        principals = sorted({each.principal_arn for each in self.sightings})
        return {
            "failed_calls": len(self.sightings),
            "first_request_id": first.request_id,
            "last_request_id": last.request_id,
            "first_at": to_text(first.event_time),
            "last_at": to_text(last.event_time),
            "principals": principals[:MAXIMUM_PRINCIPALS],
        }


def to_text(moment: datetime) -> str:
    """UTC with milliseconds, as every document of ours spells a time."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
