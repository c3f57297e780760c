"""The case bucket: transitions, one object each, which the night reads; a round's findings.

https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from functions.healing.case import Case
from functions.healing.sweeping import findings_key

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


@dataclass(frozen=True)
class CaseBucket:
    """Writing a transition twice leaves one object."""

    client: S3Client
    name: str

    def put(self, case: Case) -> None:
        """Raise botocore's errors as they come."""
        self._put(case.key(), case.document())

    def put_findings(self, hour: datetime, document: Mapping[str, Any]) -> None:
        """What was found in an hour's round. Raise botocore's errors as they come."""
        self._put(findings_key(hour), document)

    def findings(self, hour: datetime) -> dict[str, Any]:
        """What was put there before. Raise botocore's errors as they come."""
        answer = self.client.get_object(Bucket=self.name, Key=findings_key(hour))
        found: dict[str, Any] = json.loads(answer["Body"].read())
        return found

    def _put(self, key: str, document: Mapping[str, Any]) -> None:
        self.client.put_object(
            Bucket=self.name,
            Key=key,
            Body=json.dumps(document, sort_keys=True).encode(),
            ContentType="application/json",
        )
