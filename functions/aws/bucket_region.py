"""Where a bucket lies, which its name does not tell.

https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadBucket.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_HEADER = "x-amz-bucket-region"


def region_of_bucket(client: S3Client, bucket: str) -> str | None:
    """None where S3 does not say; raises ClientError where it does not answer for the bucket.

    S3 names the region even to whom it does not let in, and where it sends elsewhere.
    """
    try:
        headers = client.head_bucket(Bucket=bucket)["ResponseMetadata"]["HTTPHeaders"]
    except ClientError as refused:
        headers = refused.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
        if not headers.get(_HEADER):
            raise
    return headers.get(_HEADER)
