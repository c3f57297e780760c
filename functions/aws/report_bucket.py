"""The report bucket: summaries in, pages out, each week delivered once.

https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from functions.aws.errors import code_of

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_TAKEN = ("PreconditionFailed", "ConditionalRequestConflict")


@dataclass(frozen=True)
class ReportBucket:
    """Raises botocore's errors as they come."""

    client: S3Client
    name: str

    def summary(self, key: str) -> bytes:
        """The summary under a key of an S3 event."""
        return self.client.get_object(Bucket=self.name, Key=key)["Body"].read()

    def put_page(self, week: str, page: str) -> str:
        """Store the page and return its key."""
        key = f"report/week={week}/report.html"
        self.client.put_object(
            Bucket=self.name, Key=key, Body=page.encode(), ContentType="text/html; charset=utf-8"
        )
        return key

    def is_first_delivery(self, week: str) -> bool:
        """Take the week's only place; False where it was taken before."""
        try:
            self.client.put_object(
                Bucket=self.name, Key=f"report/week={week}/delivered", Body=b"", IfNoneMatch="*"
            )
        except ClientError as error:
            if code_of(error) in _TAKEN:
                return False
            raise
        return True

    def give_up_delivery(self, week: str) -> None:
        """Free the week's place again, because nothing was delivered."""
        self.client.delete_object(Bucket=self.name, Key=f"report/week={week}/delivered")
