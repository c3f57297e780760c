"""The report bucket: summaries in, pages out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


@dataclass(frozen=True)
class ReportBucket:
    """Raises botocore's errors as they come."""

    client: S3Client
    name: str

    def summary(self, key: str, most_bytes: int) -> bytes:
        """The summary under a key of an S3 event, at most its first `most_bytes`."""
        return self.client.get_object(Bucket=self.name, Key=key)["Body"].read(most_bytes)

    def put_page(self, week: str, page: str) -> str:
        """Store the page and return its key."""
        key = f"report/week={week}/report.html"
        self.client.put_object(
            Bucket=self.name, Key=key, Body=page.encode(), ContentType="text/html; charset=utf-8"
        )
        return key
