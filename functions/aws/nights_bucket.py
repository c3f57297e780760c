"""What nights wrote of themselves, below nights/ of the report bucket, and weeks below summary/.

https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from functions.healing.nightly import LOOKED_BACK_DAYS, NightRead, night_key, read_night

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# What a week is summed up as lies here, below a folder for each.
SUMMARY = "summary/week={week}/summary.json"
# In so many days before a day a report was begun; its week is the one before.
_BEGUN_WITHIN, _A_WEEK = 8, 7
# A night is some 300 bytes.
_MOST_BYTES = 10_000


@dataclass(frozen=True)
class NightsBucket:
    """Raises botocore's errors as they come."""

    client: S3Client
    name: str

    def until(self, day: date) -> dict[date, NightRead]:
        """The nights of `day` and the fourteen before it; what is no night is left out."""
        found = {each: self._read(key) for each, key in self._keys(day)}
        return {each: night for each, night in found.items() if night and night.day == each}

    def summed_up_at(self, *weeks: str) -> datetime | None:
        """When the newest summary of those weeks was written; None where none of them was."""
        found = [each for week in weeks if (each := self._written_at(SUMMARY.format(week=week)))]
        return max(found, default=None)

    def _written_at(self, key: str) -> datetime | None:
        listed = self.client.list_objects_v2(Bucket=self.name, Prefix=key, MaxKeys=1)
        there = (each for each in listed.get("Contents", []) if each["Key"] == key)
        return next((each["LastModified"] for each in there), None)

    def _keys(self, day: date) -> Iterator[tuple[date, str]]:
        """Listed, because a miss of what is not there would be an error of its own.

        Day by day, a key each: whatever else lies below nights/ crowds none of them out.
        """
        for back in range(LOOKED_BACK_DAYS, -1, -1):
            of_day = day - timedelta(days=back)
            key = night_key(of_day)
            if self._written_at(key):
                yield of_day, key

    def _read(self, key: str) -> NightRead | None:
        body = self.client.get_object(Bucket=self.name, Key=key)["Body"]
        return read_night(body.read(_MOST_BYTES))


def weeks_due(on: date) -> tuple[str, ...]:
    """The weeks that a report of the days up to `on` can be about."""
    begun = (on - timedelta(days=each) for each in range(_BEGUN_WITHIN + 1))
    of = ((each - timedelta(days=_A_WEEK)).isocalendar() for each in begun)
    return tuple(dict.fromkeys(f"{each.year}-W{each.week:02d}" for each in of))
