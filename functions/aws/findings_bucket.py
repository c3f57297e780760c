"""What each hour's round found, one object each, beside the cases.

https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from functions.healing.sweeping import findings_key

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


@dataclass(frozen=True)
class FindingsBucket:
    """All methods raise botocore's errors as they come."""

    client: S3Client
    name: str

    def put(self, hour: datetime, document: Mapping[str, Any]) -> None:
        """A round's findings; putting them twice leaves one object."""
        self.client.put_object(
            Bucket=self.name,
            Key=findings_key(hour),
            Body=json.dumps(document, sort_keys=True).encode(),
            ContentType="application/json",
        )

    def get(self, hour: datetime) -> dict[str, Any]:
        """What was put there before."""
        answer = self.client.get_object(Bucket=self.name, Key=findings_key(hour))
        document: dict[str, Any] = json.loads(answer["Body"].read())
        return document
