"""The channels that a week's report has gone out by: one object each, written on condition.

A claim is taken, for CLAIM_SECONDS, right before its channel sends, and says `sent` right after.
Whoever dies in between leaves a claim that runs out, so the report is never lost for good; it may
have gone out already, and then goes out again: neither SES nor SNS can be asked, and a report that
comes twice is the lesser harm.

https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError
from msgspec import Struct

from mendq.aws.errors import ComeAgain, code_of

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

# Longer than an invocation may take, shorter than Lambda waits until its last try (1 and 2 minutes
# after the one before): whatever a dead run had taken, a later try of the same event sends.
CLAIM_SECONDS = 150
# 404: of a condition on what was removed meanwhile.
_TAKEN = ("PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey")
# A claim is some 200 bytes.
_MOST_BYTES = 10_000
SENT, TAKEN, FAILED = "sent", "taken", "failed"


class HeldByAnother(ComeAgain):
    """Another run is sending by this channel, or died at it; the event is to come again."""


class DeliveryClaims(Struct, frozen=True):
    """The claims of one week, for the run called `owner`. Raises botocore's errors as they come."""

    client: S3Client
    bucket: str
    week: str
    owner: str
    clock: Callable[[], datetime]

    def take(self, channel: str) -> str | None:
        """The ETag of our claim on the channel; None where the week has gone out by it.

        Raises HeldByAnother. A run takes again what it had taken itself, as a retry of it does.
        """
        if (etag := self._write(channel, TAKEN, IfNoneMatch="*")) is not None:
            return etag
        found = self.client.get_object(Bucket=self.bucket, Key=self._key(channel))
        claim = _read(found["Body"].read(_MOST_BYTES))
        if claim["state"] not in (TAKEN, FAILED):
            return None
        if claim["state"] == TAKEN and claim["owner"] != self.owner and self._holds(claim):
            raise HeldByAnother(f"{channel}: another run has it until {claim['until']}")
        if (etag := self._write(channel, TAKEN, IfMatch=found["ETag"])) is None:
            raise HeldByAnother(f"{channel}: another run has taken it just now")
        return etag

    def note(self, channel: str, etag: str, failure: str = "") -> None:
        """The week has gone out by this channel and never does again, or may be tried at once."""
        self._write(channel, FAILED if failure else SENT, failure, IfMatch=etag)

    def _write(self, channel: str, state: str, why: str = "", **condition: str) -> str | None:
        """The ETag of the claim; None where the condition does not hold."""
        now = self.clock()
        until = (now + timedelta(seconds=CLAIM_SECONDS)).isoformat()
        claim = {"schema": 1, "state": state, "owner": self.owner, "at": now.isoformat()}
        body = json.dumps({**claim, "until": until, "why": why}).encode()
        request: Any = {"Body": body, "ContentType": "application/json", **condition}
        try:
            answer = self.client.put_object(Bucket=self.bucket, Key=self._key(channel), **request)
        except ClientError as error:
            if code_of(error) in _TAKEN:
                return None
            raise
        return answer["ETag"]

    def _holds(self, claim: Mapping[str, Any]) -> bool:
        with suppress(TypeError, ValueError):
            return datetime.fromisoformat(claim["until"]) > self.clock()
        return False

    def _key(self, channel: str) -> str:
        return f"report/week={self.week}/delivered/{channel}.json"


def _read(body: bytes) -> dict[str, Any]:
    """A claim; what is none of ours stands for `sent`, so that a person can stop a delivery."""
    nothing = {"state": SENT, "owner": "", "until": ""}
    with suppress(ValueError, RecursionError):
        claim = json.loads(body)
        return {**nothing, **claim} if isinstance(claim, dict) else nothing
    return nothing
