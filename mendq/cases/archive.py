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
class _Bucket:
    """All methods raise botocore's errors as they come; writing twice leaves one object."""

    client: S3Client
    name: str

    def _put(self, key: str, document: Mapping[str, Any]) -> None:
        body, kind = json.dumps(document, sort_keys=True).encode(), "application/json"
        self.client.put_object(Bucket=self.name, Key=key, Body=body, ContentType=kind)


@dataclass(frozen=True)
class CaseBucket(_Bucket):
    """The transitions of cases."""

    def put(self, case: Case) -> None:
        self._put(case.key(), case.document())


@dataclass(frozen=True)
class FindingsBucket(_Bucket):
    """The findings of each round."""

    def put(self, hour: datetime, document: Mapping[str, Any]) -> None:
        self._put(findings_key(hour), document)

    def get(self, hour: datetime) -> dict[str, Any]:
        """What was put there before."""
        answer = self.client.get_object(Bucket=self.name, Key=findings_key(hour))
        document: dict[str, Any] = json.loads(answer["Body"].read())
        return document
