"""The case bucket: transitions and findings, one object each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from mendq.cases.finding import findings_key
from mendq.model.case import Case

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
