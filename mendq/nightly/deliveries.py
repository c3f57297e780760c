"""Claims on the channels that deliver a week's report: one S3 object for each channel.

A channel is one way to send the report: the SNS topic, or mail to one recipient. A run claims the
channel for CLAIM_SECONDS right before it sends, and marks the claim as sent right after that. S3
writes the object only if nobody has changed it meanwhile, so two runs cannot hold the same claim.

If a run dies between the two writes, its claim expires and a later run sends the report again,
because neither SES nor SNS can tell if the report was sent. A report that arrives twice does less
harm than one that never arrives.

The conditions are sent as headers, not as parameters of PutObject. Botocore has the parameter
IfMatch only since November 2024, and the version in Lambda's runtime depends on the runtime and the
region. S3 obeys the headers with every version.

https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
https://docs.aws.amazon.com/lambda/latest/dg/lambda-python.html
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError
from msgspec import Struct

from mendq.aws.errors import RetryLater, error_code_of

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# How long a claim is valid. It is longer than an invocation may take, so that no other run takes a
# claim in use. It is shorter than the 3 minutes until Lambda's last retry, so that the last retry
# can send if the first try died. Lambda retries 1 minute after the first try, and 2 minutes after
# the second.
CLAIM_SECONDS = 150
# S3's error codes if the condition of a write is not met. NoSuchKey means that the object was
# removed meanwhile.
_CONDITION_FAILED_CODES = ("PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey")
# The event of botocore before a PutObject is signed, in which its headers can be changed.
_BEFORE_PUT_OBJECT_EVENT = "before-call.s3.PutObject"
# The most bytes of a claim that Mendq reads. A claim has about 200.
_MAXIMUM_CLAIM_BYTES = 10_000
# The states of a claim.
SENT_STATE = "sent"
TAKEN_STATE = "taken"
FAILED_STATE = "failed"


class ClaimHeldByAnotherRun(RetryLater):
    """Another run is sending through this channel, or died while sending. Retry the event later."""


class DeliveryClaims(Struct, frozen=True):
    """Claims (locks in S3), so that two runs do not send a week's report to the same channel.

    `owner` is this run's token. Methods raise botocore's errors.
    """

    client: S3Client
    bucket: str
    week: str
    owner: str
    clock: Callable[[], datetime]

    def claim_channel(self, channel: str) -> str | None:
        """Claim a channel. Return the claim's ETag, or None if the channel has sent the report.

        A run may take its own claim again, for example in a retry. Any run may take a claim that is
        marked as failed or has expired.

        Raises:
            ClaimHeldByAnotherRun: Another run holds the claim, or has just taken it.
        """
        claim_etag = self._write_claim(channel, TAKEN_STATE, {"If-None-Match": "*"})
        if claim_etag is not None:
            return claim_etag
        response = self.client.get_object(Bucket=self.bucket, Key=self._make_claim_key(channel))
        claim = _read_claim(response["Body"].read(_MAXIMUM_CLAIM_BYTES))
        if claim["state"] not in (TAKEN_STATE, FAILED_STATE):
            return None
        if (
            claim["state"] == TAKEN_STATE
            and claim["owner"] != self.owner
            and self._is_unexpired(claim)
        ):
            raise ClaimHeldByAnotherRun(f"{channel}: another run has it until {claim['until']}")
        claim_etag = self._write_claim(channel, TAKEN_STATE, {"If-Match": response["ETag"]})
        if claim_etag is None:
            raise ClaimHeldByAnotherRun(f"{channel}: another run has taken it just now")
        return claim_etag

    def record_outcome(self, channel: str, claim_etag: str, failure_name: str = "") -> None:
        """Mark a claimed channel as sent, so that it never sends this week's report again.

        With a `failure_name`, mark it as failed instead, so that the next run may claim it at once.
        Do nothing if another run has claimed the channel meanwhile. `claim_etag` is the result of
        `claim_channel`.
        """
        state = FAILED_STATE if failure_name else SENT_STATE
        self._write_claim(channel, state, {"If-Match": claim_etag}, failure_name)

    def _write_claim(
        self,
        channel: str,
        state: str,
        condition_headers: Mapping[str, str],
        failure_name: str = "",
    ) -> str | None:
        """Write a claim and return its ETag. Return None if the condition is not met."""
        now = self.clock()
        claim = {
            "schema": 1,
            "state": state,
            "owner": self.owner,
            "at": now.isoformat(),
            "until": (now + timedelta(seconds=CLAIM_SECONDS)).isoformat(),
            "why": failure_name,
        }
        try:
            with _adding_headers(self.client, condition_headers):
                response = self.client.put_object(
                    Bucket=self.bucket,
                    Key=self._make_claim_key(channel),
                    Body=json.dumps(claim).encode(),
                    ContentType="application/json",
                )
        except ClientError as error:
            if error_code_of(error) in _CONDITION_FAILED_CODES:
                return None
            raise
        return response["ETag"]

    def _is_unexpired(self, claim: Mapping[str, Any]) -> bool:
        """Return True if a claim has not expired. Without a readable time, it counts as expired."""
        with suppress(TypeError, ValueError):
            return datetime.fromisoformat(claim["until"]) > self.clock()
        return False

    def _make_claim_key(self, channel: str) -> str:
        return f"report/week={self.week}/delivered/{channel}.json"


@contextmanager
def _adding_headers(client: S3Client, headers: Mapping[str, str]) -> Iterator[None]:
    """Add headers to each PutObject that the client sends in the `with` block.

    No other thread may write with this client meanwhile.
    """

    def add_headers(params: dict[str, Any], **_: Any) -> None:
        params["headers"].update(headers)

    client.meta.events.register(_BEFORE_PUT_OBJECT_EVENT, add_headers)
    try:
        yield
    finally:
        client.meta.events.unregister(_BEFORE_PUT_OBJECT_EVENT, add_headers)


def _read_claim(claim_body: bytes) -> dict[str, Any]:
    """Return the claim in an S3 object, with at least `state`, `owner` and `until`.

    An object that is not a claim means `sent`. So a person can stop a delivery by writing any other
    object.
    """
    default_claim = {"state": SENT_STATE, "owner": "", "until": ""}
    with suppress(ValueError, RecursionError):
        claim = json.loads(claim_body)
        return {**default_claim, **claim} if isinstance(claim, dict) else default_claim
    return default_claim
