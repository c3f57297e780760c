"""Whether the nightly job can reach the trail's files: it has no VPC, so in its region alone."""

from __future__ import annotations

from collections.abc import Iterator

from botocore.exceptions import ClientError

from cli.account import Account
from cli.doctor.check import Check, Command, Status
from functions.aws.bucket_region import region_of_bucket
from functions.aws.errors import code_of

NAME = "bucket of the trail"


def look(account: Account) -> Iterator[Check]:
    """One check; raises ClientError, and Stopped where the stack does not say which bucket."""
    bucket = account.output("TrailBucket")
    try:
        region = region_of_bucket(account.clients.s3, bucket)
    except ClientError as error:
        if code_of(error) not in ("404", "NoSuchBucket"):
            raise
        says = f"there is no bucket {bucket}: every night fails"
        yield Check(NAME, Status.FAIL, says, "name one that is there in trail.bucket, and deploy")
        return
    if region is None:
        says = f"S3 does not say in which region {bucket} lies"
        ask = Command.aws(account.region, "s3api", "get-bucket-location", "--bucket", bucket)
        yield Check(NAME, Status.UNKNOWN, says, ask)
    elif region != account.region:
        says = f"{bucket} lies in {region}, which the nightly job does not reach: every night fails"
        cure = f"deploy to {region}, or let Mendq make its own with trail.create: true"
        yield Check(NAME, Status.FAIL, says, cure)
    else:
        yield Check(NAME, Status.OK, f"{bucket} lies in {region}")
