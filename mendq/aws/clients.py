"""AWS clients, created on first use.

The module also has a rate limit for calls, and functions that put Mendq's events, read change
calendars and find the regions of buckets.
"""

from __future__ import annotations

import json
import logging
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


_LOG = logging.getLogger(__name__)
# The timeouts are short. If AWS does not answer, the Lambda still has time to record the outcome.
_MOST_ATTEMPTS = 3
_CONNECT_TIMEOUT_SECONDS = 1
_READ_TIMEOUT_SECONDS = 3
# botocore waits at most 2^(n-1) seconds before the n-th retry. This is the sum over all retries.
# https://docs.aws.amazon.com/boto3/latest/guide/retries.html
_RETRY_PAUSES_TOTAL_SECONDS = 2 ** (_MOST_ATTEMPTS - 1) - 1
# The longest that a call with the default configuration takes if AWS does not answer.
LONGEST_CALL_SECONDS = (
    _MOST_ATTEMPTS * (_CONNECT_TIMEOUT_SECONDS + _READ_TIMEOUT_SECONDS)
    + _RETRY_PAUSES_TOTAL_SECONDS
)

_DEFAULT_CLIENT_CONFIG = {
    "connect_timeout": _CONNECT_TIMEOUT_SECONDS,
    "read_timeout": _READ_TIMEOUT_SECONDS,
    "retries": {"mode": "standard", "total_max_attempts": _MOST_ATTEMPTS},
}

_NO_RETRIES = {"mode": "standard", "total_max_attempts": 1}
_SLOW_CALL_CONFIG = {"connect_timeout": 2, "read_timeout": 20, "retries": _NO_RETRIES}


@dataclass
class CallRateLimit:
    """A rate limit that all threads share: at most `per_second` calls, evenly spaced.

    Attributes:
        per_second: The rate in calls per second; None for no limit.
        sleep: Function that waits for a number of seconds. It returns True if it was interrupted.
        clock: Function that returns the time in seconds.
    """

    per_second: float | None
    sleep: Callable[[float], bool | None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    _next_start_at: float = field(default=0.0, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def wait(self, call_count: int = 1) -> bool:
        """Wait until `call_count` calls may begin. Return False if the wait was interrupted."""
        with self._lock:
            now = self.clock()
            start_at = max(now, self._next_start_at)
            self._next_start_at = start_at + (
                call_count / self.per_second if self.per_second else 0
            )
        return not self.sleep(start_at - now)


def _make_model_loader() -> Any:
    """Return a loader for botocore's service models that is faster than botocore's own.

    It decodes JSON with msgspec, and does not check that the folder of each service has a model.
    With botocore's own loader, decoding takes half of the time until the first client is created,
    and the check a sixth.
    """
    from botocore.loaders import JSONFileLoader, Loader  # noqa: PLC0415 - as for Config

    class FastJSONLoader(JSONFileLoader):
        def load_file(self, file_path: str) -> Any:
            """Return the decoded JSON file; None if there is no file. `file_path` has no suffix."""
            for suffix, decompress_content in ((".json", bytes), (".json.gz", decompress)):
                with suppress(FileNotFoundError):
                    return msgspec.json.decode(
                        decompress_content(Path(file_path + suffix).read_bytes())
                    )
            return None

    class FastModelLoader(Loader):
        FILE_LOADER_CLASS = FastJSONLoader

        def list_available_services(self, type_name: str) -> list[str]:  # noqa: ARG002
            return os.listdir(self.BUILTIN_DATA_PATH)  # noqa: PTH208 - names are all it takes

    return FastModelLoader()


_SLOW_LOADER_WARNING = (
    "Mendq's loader of service models failed for %s, so botocore's own is used: Mendq works, but "
    "each cold start is slower. Report it with the version of botocore"
)


class LambdaSession(Struct, frozen=True):
    """A replacement for `boto3.Session` that needs only botocore.

    Lambdas start faster without boto3, which imports modules for S3. This class has only the
    methods that Mendq uses.
    """

    session: Session

    def client(self, service_name: str, *, config: Config) -> Any:
        """Create a client for a service.

        If Mendq's faster loader fails, botocore's own loader is used. The faster loader may not fit
        a new version of botocore, and Lambda updates botocore automatically. Raise the errors of
        botocore's own loader.
        """
        try:
            return self.session.create_client(service_name, config=config)
        except Exception:  # noqa: BLE001 - a loader that does not fit may raise anything
            _LOG.warning(_SLOW_LOADER_WARNING, service_name, exc_info=True)
        from botocore.session import get_session  # noqa: PLC0415 - as for Config

        return get_session().create_client(service_name, config=config)

    @property
    def region_name(self) -> str:
        """The region of the session."""
        return str(self.session.get_config_variable("region"))


def _make_client_property(service_name: str, **config_overrides: Any) -> Any:
    """Return a property that creates an AWS client on first use.

    The client has Mendq's timeouts and retries. `config_overrides` are arguments of botocore's
    `Config` that replace some of them.
    """

    def create_client(clients: Clients) -> Any:
        from botocore.config import Config  # noqa: PLC0415 - a command's help does without

        config = Config(**(_DEFAULT_CLIENT_CONFIG | config_overrides))  # type: ignore[arg-type]
        return clients.session.client(service_name, config=config)

    return cached_property(create_client)


class MetricCount(Struct):
    """The number of metrics that CloudWatch was asked for. AWS bills each of them."""

    asked: int = 0

    def take(self) -> int:
        """Return the number since the last call of this method."""
        count = self.asked
        self.asked = 0
        return count


class Clients(Struct, frozen=True, dict=True):
    """The AWS clients. Creating a client takes milliseconds, so it happens on first use."""

    session: boto3.Session | LambdaSession

    sqs = cast("cached_property[SQSClient]", _make_client_property("sqs"))
    # No retries: an automatic retry could overwrite a person's change that was made in between.
    sqs_for_writing = cast(
        "cached_property[SQSClient]", _make_client_property("sqs", retries=_NO_RETRIES)
    )
    dynamodb = cast("cached_property[DynamoDBClient]", _make_client_property("dynamodb"))
    functions = cast("cached_property[LambdaClient]", _make_client_property("lambda"))
    # Waits as long as a Lambda that applies a fix may run. No retries, because that Lambda would do
    # its work a second time.
    functions_with_long_timeout = cast(
        "cached_property[LambdaClient]",
        _make_client_property("lambda", read_timeout=65, retries=_NO_RETRIES),
    )
    cloudwatch = cast("cached_property[CloudWatchClient]", _make_client_property("cloudwatch"))
    # Reads who changed a queue, for a sentence in a notification. The read must not delay the
    # notification.
    cloudtrail = cast(
        "cached_property[CloudTrailClient]",
        _make_client_property("cloudtrail", read_timeout=2, retries=_NO_RETRIES),
    )
    # Reads who changed a queue, if Mendq's decision depends on the answer.
    cloudtrail_in_full = cast(
        "cached_property[CloudTrailClient]",
        _make_client_property("cloudtrail", retries={"mode": "standard", "total_max_attempts": 5}),
    )
    iam = cast("cached_property[Any]", _make_client_property("iam", retries=_NO_RETRIES))
    # The state of a key is one symptom of a queue: it must not delay the scan of the others.
    kms = cast(
        "cached_property[Any]", _make_client_property("kms", read_timeout=2, retries=_NO_RETRIES)
    )
    access_analyzer = cast("cached_property[Any]", _make_client_property("accessanalyzer"))
    s3 = cast("cached_property[S3Client]", _make_client_property("s3"))
    # S3 answers a copy between regions only when the copy is complete.
    s3_copying = cast("cached_property[S3Client]", _make_client_property("s3", read_timeout=20))
    events = cast("cached_property[EventBridgeClient]", _make_client_property("events"))
    ssm = cast("cached_property[SSMClient]", _make_client_property("ssm"))
    emr = cast("cached_property[EMRServerlessClient]", _make_client_property("emr-serverless"))
    sns = cast("cached_property[SNSClient]", _make_client_property("sns"))
    # No retries: SNS or SES may have accepted the message, so the caller decides about sending it
    # again. The timeout is long, because a mail with pictures takes some time.
    sns_once = cast("cached_property[SNSClient]", _make_client_property("sns", **_SLOW_CALL_CONFIG))
    mail = cast("cached_property[Any]", _make_client_property("sesv2", **_SLOW_CALL_CONFIG))
    tagging = cast(
        "cached_property[ResourceGroupsTaggingAPIClient]",
        _make_client_property("resourcegroupstaggingapi"),
    )

    @cached_property
    def metric_count(self) -> MetricCount:
        """The metrics that these clients asked CloudWatch for."""
        return MetricCount()

    @cached_property
    def event_history_pace(self) -> CallRateLimit:
        """The rate limit for CloudTrail's event history (LookupEvents).

        AWS allows an account two calls per second, for all callers together.
        """
        return CallRateLimit(per_second=2)

    @classmethod
    def for_lambda(cls) -> Clients:
        """Return clients with the role, region and endpoint that Lambda provides."""
        from botocore.session import get_session  # noqa: PLC0415 - as for Config

        session = get_session()
        try:
            session.register_component("data_loader", _make_model_loader())
        except Exception:  # noqa: BLE001 - another botocore may lack what the loader builds on
            _LOG.warning(_SLOW_LOADER_WARNING, "every service", exc_info=True)
        return cls(LambdaSession(session))

    @property
    def region(self) -> str:
        """The region of the clients."""
        return self.session.region_name


def put_event(clients: Clients, detail_type: str, detail: Mapping[str, Any]) -> None:
    """Put an event of Mendq on the account's default event bus.

    Raise ClientError or BotoCoreError if that fails.
    """
    detail_text = json.dumps(detail, sort_keys=True)
    response = clients.events.put_events(
        Entries=[{"Source": EVENT_SOURCE, "DetailType": detail_type, "Detail": detail_text}]
    )
    for response_entry in response["Entries"]:
        if error_code := response_entry.get("ErrorCode"):
            error_details = {"Code": error_code, "Message": response_entry.get("ErrorMessage", "")}
            raise ClientError({"Error": error_details}, "PutEvents")  # type: ignore[typeddict-item]


def explain_closed_calendars(clients: Clients, calendars: Sequence[str]) -> str | None:
    """Return why changes are forbidden now: a change calendar is closed or cannot be read.

    Return None if all calendars allow changes, or if there are no calendars.
    """
    if not calendars:
        return None
    try:
        is_any_closed = is_any_calendar_closed(clients, calendars)
    except (ClientError, BotoCoreError) as error:
        return f"the change calendar cannot be read ({type(error).__name__})"
    return "the change calendar is closed" if is_any_closed else None


def is_any_calendar_closed(clients: Clients, calendars: Sequence[str]) -> bool:
    """Return True if at least one of the change calendars is closed.

    Raise ClientError or BotoCoreError if a calendar cannot be read.
    """
    return clients.ssm.get_calendar_state(CalendarNames=list(calendars))["State"] != "OPEN"


_BUCKET_REGION_HEADER = "x-amz-bucket-region"


def find_bucket_region(client: S3Client, bucket: str) -> str | None:
    """Return the region of an S3 bucket; None if S3's answer does not name it.

    S3 normally names the region even if it redirects or refuses the call. Raise ClientError if S3
    refuses and names no region, and BotoCoreError if S3 cannot be reached.
    """
    try:
        response_headers = client.head_bucket(Bucket=bucket)["ResponseMetadata"]["HTTPHeaders"]
    except ClientError as error:
        response_headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
        if not response_headers.get(_BUCKET_REGION_HEADER):
            raise
    return response_headers.get(_BUCKET_REGION_HEADER)
