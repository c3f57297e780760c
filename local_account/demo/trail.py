"""Whether the trail's files hold every failing call of a story already."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


@dataclass
class Trail:
    """The files in a trail's bucket, each read once."""

    s3: S3Client
    bucket: str
    failed_calls: Counter[str] = field(default_factory=Counter)
    _keys: set[str] = field(default_factory=set)

    def look(self) -> Counter[str]:
        """The failed calls so far, by queue ARN."""
        for record in self._new_records():
            if record.get("errorCode"):
                self.failed_calls.update(each["ARN"] for each in record.get("resources") or ())
        return self.failed_calls

    def _new_records(self) -> Iterator[dict[str, Any]]:
        for page in self.s3.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix="AWSLogs/"
        ):
            for listed in page.get("Contents", []):
                if listed["Key"] not in self._keys:
                    self._keys.add(listed["Key"])
                    body = self.s3.get_object(Bucket=self.bucket, Key=listed["Key"])["Body"]
                    yield from json.loads(gzip.decompress(body.read()))["Records"]
