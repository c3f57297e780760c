"""AWS clients of a Lambda, made once at cold start; SSM change calendars and bucket regions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import Session, get_session

if TYPE_CHECKING:
    import boto3
    from mypy_boto3_cloudtrail import CloudTrailClient
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_emr_serverless import EMRServerlessClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_resourcegroupstaggingapi import ResourceGroupsTaggingAPIClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_ssm import SSMClient


# A hung call must not eat the time to record.
_TRIES, _SECONDS_TO_CONNECT, _SECONDS_TO_READ = 3, 1, 3
# Before the n-th retry at most 2^(n-1) seconds.
# https://docs.aws.amazon.com/boto3/latest/guide/retries.html
_SECONDS_BETWEEN_TRIES = 2 ** (_TRIES - 1) - 1
SECONDS_OF_A_HUNG_CALL = _TRIES * (_SECONDS_TO_CONNECT + _SECONDS_TO_READ) + _SECONDS_BETWEEN_TRIES

_CONFIG = Config(
    connect_timeout=_SECONDS_TO_CONNECT,
    read_timeout=_SECONDS_TO_READ,
    retries={"mode": "standard", "total_max_attempts": _TRIES},
)

_PATIENT_ONCE = Config(connect_timeout=2, read_timeout=20, retries={"total_max_attempts": 1})


@dataclass(frozen=True)
class LambdaSession:
    """What boto3's session does for us, without what boto3 imports for S3: starts are shorter."""

    session: Session

    def client(self, service_name: str, *, config: Config) -> Any:
        return self.session.create_client(service_name, config=config)

    @property
    def region_name(self) -> str:
        return str(self.session.get_config_variable("region"))


@dataclass(frozen=True)
class Clients:
    """Each is made when first used: it takes some milliseconds of a cold start."""

    session: boto3.Session | LambdaSession

    @classmethod
    def of_this_lambda(cls) -> Clients:
        """With the role, region and endpoint that Lambda gives."""
        return cls(LambdaSession(get_session()))

    @cached_property
    def sqs(self) -> SQSClient:
        client: SQSClient = self.session.client("sqs", config=_CONFIG)
        return client

    @cached_property
    def sqs_for_writing(self) -> SQSClient:
        """Sends once: sent again by itself, a write could land on top of a person's."""
        once = _CONFIG.merge(Config(retries={"mode": "standard", "total_max_attempts": 1}))
        client: SQSClient = self.session.client("sqs", config=once)
        return client

    @cached_property
    def dynamodb(self) -> DynamoDBClient:
        client: DynamoDBClient = self.session.client("dynamodb", config=_CONFIG)
        return client

    @cached_property
    def functions(self) -> LambdaClient:
        client: LambdaClient = self.session.client("lambda", config=_CONFIG)
        return client

    @cached_property
    def functions_that_answer(self) -> LambdaClient:
        """Waits as long as an owner may run, and asks once: it would do it a second time."""
        patient = _CONFIG.merge(Config(read_timeout=65, retries={"total_max_attempts": 1}))
        client: LambdaClient = self.session.client("lambda", config=patient)
        return client

    @cached_property
    def cloudwatch(self) -> CloudWatchClient:
        client: CloudWatchClient = self.session.client("cloudwatch", config=_CONFIG)
        return client

    @cached_property
    def cloudtrail(self) -> CloudTrailClient:
        """Asked for a notification's sake alone, which must not wait for it."""
        once = Config(connect_timeout=1, read_timeout=2, retries={"total_max_attempts": 1})
        client: CloudTrailClient = self.session.client("cloudtrail", config=once)
        return client

    @cached_property
    def cloudtrail_in_full(self) -> CloudTrailClient:
        """Asked for an answer that decides; an account gets two requests a second."""
        patient = _CONFIG.merge(Config(retries={"mode": "standard", "total_max_attempts": 5}))
        client: CloudTrailClient = self.session.client("cloudtrail", config=patient)
        return client

    @cached_property
    def access_analyzer(self) -> Any:
        return self.session.client("accessanalyzer", config=_CONFIG)

    @cached_property
    def s3(self) -> S3Client:
        client: S3Client = self.session.client("s3", config=_CONFIG)
        return client

    @cached_property
    def ssm(self) -> SSMClient:
        client: SSMClient = self.session.client("ssm", config=_CONFIG)
        return client

    @cached_property
    def emr(self) -> EMRServerlessClient:
        client: EMRServerlessClient = self.session.client("emr-serverless", config=_CONFIG)
        return client

    @cached_property
    def sns(self) -> SNSClient:
        client: SNSClient = self.session.client("sns", config=_CONFIG)
        return client

    @cached_property
    def sns_once(self) -> SNSClient:
        """Sends once: what SNS may have taken, whoever calls decides whether to send again."""
        client: SNSClient = self.session.client("sns", config=_PATIENT_ONCE)
        return client

    @cached_property
    def mail(self) -> Any:
        """SES; it sends once, for the same reason, and a mail with pictures takes its time."""
        return self.session.client("sesv2", config=_PATIENT_ONCE)

    @cached_property
    def tagging(self) -> ResourceGroupsTaggingAPIClient:
        client: ResourceGroupsTaggingAPIClient = self.session.client(
            "resourcegroupstaggingapi", config=_CONFIG
        )
        return client

    @property
    def region(self) -> str:
        return self.session.region_name


def closed_calendars(clients: Clients, calendars: Sequence[str]) -> str | None:
    """Why changes are frozen, or None; asks nothing where no calendar is set."""
    if not calendars:
        return None
    try:
        closed = is_closed(clients, calendars)
    except (ClientError, BotoCoreError) as error:
        return f"the change calendar cannot be read ({type(error).__name__})"
    return "the change calendar is closed" if closed else None


def is_closed(clients: Clients, calendars: Sequence[str]) -> bool:
    """True where any of them is; raises ClientError or BotoCoreError where one is unreadable."""
    return clients.ssm.get_calendar_state(CalendarNames=list(calendars))["State"] != "OPEN"


if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


_HEADER = "x-amz-bucket-region"


def region_of_bucket(client: S3Client, bucket: str) -> str | None:
    """The region of a bucket, None where S3 does not say; raises ClientError where it refuses.

    S3 names the region even to whom it does not let in, and where it sends elsewhere.
    """
    try:
        headers = client.head_bucket(Bucket=bucket)["ResponseMetadata"]["HTTPHeaders"]
    except ClientError as refused:
        headers = refused.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
        if not headers.get(_HEADER):
            raise
    return headers.get(_HEADER)
