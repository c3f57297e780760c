"""What the nights wrote of themselves, below nights/ of the report bucket.

https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING

from functions.healing.nightly import LOOKED_BACK_DAYS, NightRead, night_key, read_night

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

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

    def _keys(self, day: date) -> Iterator[tuple[date, str]]:
        """Listed, because a miss of what is not there would be an error of its own.

        Day by day, a key each: whatever else lies below nights/ crowds none of them out.
        """
        for back in range(LOOKED_BACK_DAYS, -1, -1):
            of_day = day - timedelta(days=back)
            key = night_key(of_day)
            listed = self.client.list_objects_v2(Bucket=self.name, Prefix=key, MaxKeys=1)
            if any(each["Key"] == key for each in listed.get("Contents", [])):
                yield of_day, key

    def _read(self, key: str) -> NightRead | None:
        body = self.client.get_object(Bucket=self.name, Key=key)["Body"]
        return read_night(body.read(_MOST_BYTES))
