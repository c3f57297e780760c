"""AWS clients of a Lambda, made once at cold start; rates of calls; change calendars, regions."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from gzip import decompress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mendq.model.case import EVENT_SOURCE

if TYPE_CHECKING:
    import boto3
    from botocore.config import Config
    from botocore.session import Session
    from mypy_boto3_cloudtrail import CloudTrailClient
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_emr_serverless import EMRServerlessClient
    from mypy_boto3_events import EventBridgeClient
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

_PATIENCE = {
    "connect_timeout": _SECONDS_TO_CONNECT,
    "read_timeout": _SECONDS_TO_READ,
    "retries": {"mode": "standard", "total_max_attempts": _TRIES},
}

_ONCE = {"mode": "standard", "total_max_attempts": 1}
_PATIENT_ONCE = {"connect_timeout": 2, "read_timeout": 20, "retries": _ONCE}


@dataclass
class Pace:
    """At most so many a second, evenly, whichever thread asks; None: as fast as it goes.

    `clock` and `sleep` are in seconds; where somebody interrupts the sleep, it says so by True.
    """

    per_second: float | None
    sleep: Callable[[float], bool | None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    _free_at: float = field(default=0.0, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def wait(self, number: int = 1) -> bool:
        """Return True when so many more may go; False where somebody interrupted that."""
        with self._lock:
            now = self.clock()
            turn = max(now, self._free_at)
            self._free_at = turn + (number / self.per_second if self.per_second else 0)
        return not self.sleep(turn - now)


def _models() -> Any:
    """botocore's models for whom names no service that there is not, decoded by msgspec.

    With json that is half of what a first client costs, with a look into each service's folder two
    thirds.
    """
    from botocore.loaders import JSONFileLoader, Loader  # noqa: PLC0415 - as for Config

    class JSON(JSONFileLoader):
        def load_file(self, file_path: str) -> Any:
            """None where there is no such file."""
            for suffix, inflate in ((".json", bytes), (".json.gz", decompress)):
                with suppress(FileNotFoundError):
                    return msgspec.json.decode(inflate(Path(file_path + suffix).read_bytes()))
            return None

    class Models(Loader):
        FILE_LOADER_CLASS = JSON

        def list_available_services(self, type_name: str) -> list[str]:  # noqa: ARG002
            return os.listdir(self.BUILTIN_DATA_PATH)  # noqa: PTH208 - names are all it takes

    return Models()


class LambdaSession(Struct, frozen=True):
    """What boto3's session does for us, without what boto3 imports for S3: starts are shorter."""

    session: Session

    def client(self, service_name: str, *, config: Config) -> Any:
        return self.session.create_client(service_name, config=config)

    @property
    def region_name(self) -> str:
        return str(self.session.get_config_variable("region"))


def _client(service_name: str, **over: Any) -> Any:
    """With the usual patience, but for what is given."""

    def made(clients: Clients) -> Any:
        from botocore.config import Config  # noqa: PLC0415 - a command's help does without

        config = Config(**(_PATIENCE | over))  # type: ignore[arg-type]
        return clients.session.client(service_name, config=config)

    return cached_property(made)


class Clients(Struct, frozen=True, dict=True):
    """Each is made when first used: it takes some milliseconds of a cold start."""

    session: boto3.Session | LambdaSession

    sqs = cast("cached_property[SQSClient]", _client("sqs"))
    # Sends once: sent again by itself, a write could land on top of a person's.
    sqs_for_writing = cast("cached_property[SQSClient]", _client("sqs", retries=_ONCE))
    dynamodb = cast("cached_property[DynamoDBClient]", _client("dynamodb"))
    functions = cast("cached_property[LambdaClient]", _client("lambda"))
    # Waits as long as an owner may run, and asks once: it would do it a second time.
    functions_that_answer = cast(
        "cached_property[LambdaClient]", _client("lambda", read_timeout=65, retries=_ONCE)
    )
    cloudwatch = cast("cached_property[CloudWatchClient]", _client("cloudwatch"))
    # Asked for a notification's sake alone, which must not wait for it.
    cloudtrail = cast(
        "cached_property[CloudTrailClient]", _client("cloudtrail", read_timeout=2, retries=_ONCE)
    )
    # Asked for an answer that decides.
    cloudtrail_in_full = cast(
        "cached_property[CloudTrailClient]",
        _client("cloudtrail", retries={"mode": "standard", "total_max_attempts": 5}),
    )
    iam = cast("cached_property[Any]", _client("iam", retries=_ONCE))
    access_analyzer = cast("cached_property[Any]", _client("accessanalyzer"))
    s3 = cast("cached_property[S3Client]", _client("s3"))
    # Copies from region to region answer when they are through.
    s3_copying = cast("cached_property[S3Client]", _client("s3", read_timeout=20))
    events = cast("cached_property[EventBridgeClient]", _client("events"))
    ssm = cast("cached_property[SSMClient]", _client("ssm"))
    emr = cast("cached_property[EMRServerlessClient]", _client("emr-serverless"))
    sns = cast("cached_property[SNSClient]", _client("sns"))
    # What SNS may have taken, whoever calls decides whether to send again; SES likewise, and a
    # mail with pictures takes its time.
    sns_once = cast("cached_property[SNSClient]", _client("sns", **_PATIENT_ONCE))
    mail = cast("cached_property[Any]", _client("sesv2", **_PATIENT_ONCE))
    tagging = cast(
        "cached_property[ResourceGroupsTaggingAPIClient]", _client("resourcegroupstaggingapi")
    )

    @cached_property
    def look_ups(self) -> Pace:
        """Of CloudTrail's event history: an account gets two a second, of all who ask."""
        return Pace(per_second=2)

    @classmethod
    def for_lambda(cls) -> Clients:
        """With the role, region and endpoint that Lambda gives."""
        from botocore.session import get_session  # noqa: PLC0415 - as for Config

        session = get_session()
        session.register_component("data_loader", _models())
        return cls(LambdaSession(session))

    @property
    def region(self) -> str:
        return self.session.region_name


def put_event(clients: Clients, detail_type: str, detail: Mapping[str, Any]) -> None:
    """Put an event of ours on the account's default bus; raises ClientError or BotoCoreError."""
    text = json.dumps(detail, sort_keys=True)
    answer = clients.events.put_events(
        Entries=[{"Source": EVENT_SOURCE, "DetailType": detail_type, "Detail": text}]
    )
    for each in answer["Entries"]:
        if code := each.get("ErrorCode"):
            error = {"Code": code, "Message": each.get("ErrorMessage", "")}
            raise ClientError({"Error": error}, "PutEvents")  # type: ignore[typeddict-item]


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
