"""What each day's night tells of its own reading: nights/dt=D/night.json, written last."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from analytics.storage import Storage
from functions.healing.nightly import NightRead, night_key, read_night


@dataclass(frozen=True)
class Run:
    """When a run began to write, and what it read with; `why_fallback` as the reader says it."""

    made_at: datetime
    reader: str
    why_fallback: str

    def read(
        self, day: date, files: Collection[Mapping[str, Any]], failed_calls: int, incidents: int
    ) -> NightRead:
        """A day's night, from the day's rows of `quality` and the lengths of the other tables."""
        unreadable = [each["bytes"] for each in files if each["reason"]]
        return NightRead(
            day,
            self.made_at,
            self.reader,
            self.why_fallback,
            files=len(files),
            files_unreadable=len(unreadable),
            bytes=sum(each["bytes"] for each in files),
            bytes_unreadable=sum(unreadable),
            records=sum(each["records"] for each in files),
            failed_calls=failed_calls,
            incidents=incidents,
        )

    def silent(self, days: Iterable[date], since: date | None) -> Iterator[NightRead]:
        """A night of zeros for each of `days` on which the trail, active `since`, wrote nothing."""
        for day in days:
            if since is not None and since <= day <= self.made_at.date():
                yield self.read(day, (), 0, 0)


def put(out: Storage, nights: Iterable[NightRead]) -> None:
    """Replace each day's night."""
    for night in nights:
        out.put(night_key(night.day), json.dumps(night.document(), indent=1).encode())


def put_silent(out: Storage, nights: Iterable[NightRead]) -> None:
    """Replace no night that read something by one that read nothing.

    The trail's files expire: an old night, run again, says nothing about what was there.
    """
    for night in nights:
        there = read_night(out.read(night_key(night.day)) or b"")
        if there is None or there.read_nothing:
            put(out, [night])
