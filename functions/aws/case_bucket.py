"""Transitions in the case bucket, one object each: what the night reads.

https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from functions.healing.case import Case

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


@dataclass(frozen=True)
class CaseBucket:
    """Writing a transition twice leaves one object."""

    client: S3Client
    name: str

    def put(self, case: Case) -> None:
        """Raise botocore's errors as they come."""
        self.client.put_object(
            Bucket=self.name,
            Key=case.key(),
            Body=json.dumps(case.document(), sort_keys=True).encode(),
            ContentType="application/json",
        )
