"""The errors that can be switched on: which calls give each, until which attribute is mended.

Statuses and calls: SQS's service model. No text was recorded from SQS; KmsThrottled's is the one
that KMS documents, KmsAccessDenied's the form in SQS's troubleshooting page, the rest are guesses.
https://docs.aws.amazon.com/kms/latest/developerguide/throttling.html
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/troubleshooting-api-errors.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

RECEIVE = "ReceiveMessage"
SENDING = frozenset({"SendMessage", "SendMessageBatch"})
DELETING = frozenset({"DeleteMessage", "DeleteMessageBatch"})
ACTIONS = SENDING | DELETING | {RECEIVE}


@dataclass(frozen=True)
class Moment:
    """A call and the queue as it is when the call comes."""

    action: str
    queue_arn: str
    is_fifo: bool
    attributes: Mapping[str, str]
    wait_seconds: int | None  # as the call says; the queue's own where it says nothing
    caller_arn: str

    @property
    def queue_name(self) -> str:
        return self.queue_arn.rpartition(":")[2]

    @property
    def is_short_poll(self) -> bool:
        """Whether it is a receive that waits for nothing."""
        waits = self.wait_seconds
        if waits is None:
            waits = int(self.attributes.get("ReceiveMessageWaitTimeSeconds", "0"))
        return self.action == RECEIVE and waits == 0

    @property
    def key_arn(self) -> str:
        """The queue's KMS key, or empty text."""
        key = self.attributes.get("KmsMasterKeyId", "")
        if not key or key.startswith("arn:"):
            return key
        scope = self.queue_arn.rpartition(":")[0].replace(":sqs:", ":kms:")
        return f"{scope}:{key}" if key.startswith("alias/") else f"{scope}:key/{key}"

    @property
    def kms_action(self) -> str:
        return "kms:Decrypt" if self.action == RECEIVE else "kms:GenerateDataKey"


@dataclass(frozen=True)
class Kind:
    """One error: its code in the query protocol, its HTTP status, when it arises, what it says."""

    query_code: str
    status: int
    arises: Callable[[Moment, int], bool]
    text: Callable[[Moment], str]


def _uses_key(moment: Moment, _: int = 0) -> bool:
    return bool(moment.key_arn) and moment.action in SENDING | {RECEIVE}


def _asks_key_often(moment: Moment, below_seconds: int) -> bool:
    reused_seconds = int(moment.attributes.get("KmsDataKeyReusePeriodSeconds", "300"))
    return _uses_key(moment) and reused_seconds < below_seconds


def _calls_often(moment: Moment, _: int) -> bool:
    """FIFO: any call without high throughput. Standard: receives that poll short."""
    if not moment.is_fifo:
        return moment.is_short_poll
    return (
        moment.attributes.get("FifoThroughputLimit") != "perMessageGroupId"
        or moment.attributes.get("DeduplicationScope") != "messageGroup"
    )


def _holds_too_many(moment: Moment, _: int) -> bool:
    """Long polls are answered without messages instead; FIFO queues give no error at all."""
    return moment.is_short_poll and not moment.is_fifo


def _no_key_access(moment: Moment) -> str:
    return (
        f"User: {moment.caller_arn} is not authorized to perform: {moment.kms_action} "
        f"on resource: {moment.key_arn} because no identity-based policy allows "
        f"the {moment.kms_action} action"
    )


# By the name in the JSON protocol.
KINDS: Mapping[str, Kind] = {
    "KmsThrottled": Kind(
        "KMS.ThrottlingException",
        400,
        _asks_key_often,
        lambda _: (
            "You have exceeded the rate at which you may call KMS. "
            "Reduce the frequency of your calls."
        ),
    ),
    "KmsAccessDenied": Kind("KMS.AccessDeniedException", 400, _uses_key, _no_key_access),
    "KmsDisabled": Kind(
        "KMS.DisabledException", 400, _uses_key, lambda moment: f"{moment.key_arn} is disabled."
    ),
    "KmsInvalidState": Kind(
        "KMS.InvalidStateException",
        400,
        _uses_key,
        lambda moment: f"{moment.key_arn} is pending deletion.",
    ),
    "KmsNotFound": Kind(
        "KMS.NotFoundException",
        400,
        _uses_key,
        lambda moment: f"Key '{moment.key_arn}' does not exist",
    ),
    "RequestThrottled": Kind(
        "RequestThrottled", 403, _calls_often, lambda _: "Request is throttled."
    ),
    "ThrottlingException": Kind(
        "ThrottlingException", 400, _calls_often, lambda _: "Rate exceeded"
    ),
    "OverLimit": Kind(
        "OverLimit", 403, _holds_too_many, lambda _: "Too many messages are in flight."
    ),
}
