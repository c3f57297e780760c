"""Write to the case bucket: a JSON object for each transition, and one for each hour's scan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mendq.model.json_text import to_json

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class CaseBucket(Struct, frozen=True):
    """The S3 bucket with a copy of every transition and of the findings of each scan.

    Writing an object again replaces it. Methods raise botocore's errors.
    """

    client: S3Client
    name: str

    def put(self, key: str, document: Mapping[str, Any]) -> None:
        """Write a document as the object `key`."""
        self.client.put_object(
            Bucket=self.name,
            Key=key,
            Body=to_json(document, sort_keys=True).encode(),
            ContentType="application/json",
        )
