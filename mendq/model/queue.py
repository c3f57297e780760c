"""Queue ARNs, URLs and names, default attributes, and redrive policies.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-queue-message-identifiers.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

from mendq.model.json_text import parse_finite_float, refuse_nan_constant
from mendq.model.partitions import dns_suffix_of, partition_of

QUARANTINE_SUFFIX = "-quarantine"


def is_quarantine(queue_name: str) -> bool:
    """Return True if the queue's name is that of a quarantine.

    A quarantine is a queue for messages that failed again after a redrive.
    """
    return queue_name.removesuffix(FIFO_SUFFIX).endswith(QUARANTINE_SUFFIX)


def parse_json_object(text: str | None) -> dict[str, Any] | None:
    """Return the JSON object in `text`; an empty object if `text` is empty or None.

    Return None if `text` is not a JSON object, is nested too deep, or contains NaN, Infinity, or a
    number with a fraction or exponent that is too large for a double.
    """
    try:
        document = json.loads(
            text or "{}", parse_constant=refuse_nan_constant, parse_float=parse_finite_float
        )
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def refuse_repeated_keys(keys_and_values: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return a dict of these keys and values. Raise ValueError if a key is repeated.

    Pass this function to `json.loads` as `object_pairs_hook`.
    """
    document: dict[str, Any] = {}
    for key, value in keys_and_values:
        if key in document:
            raise ValueError(f"{key[:40]!r} is there twice")
        document[key] = value
    return document


_QUEUE_NAME_PATTERN = r"(?=.{1,80}\Z)[A-Za-z0-9_-]{1,80}(?:\.fifo)?"
_ACCOUNT_PATTERN = r"[0-9]{12}"
_REGION_PATTERN = r"[a-z0-9-]{1,32}"
QUEUE_ARN_PATTERN = re.compile(
    rf"arn:(aws[a-z-]{{0,16}}):sqs:({_REGION_PATTERN}):({_ACCOUNT_PATTERN}):({_QUEUE_NAME_PATTERN})"
)
_QUEUE_URL_PATTERN = re.compile(
    rf"https?://[A-Za-z0-9.:\[\]-]{{1,255}}/({_ACCOUNT_PATTERN})/({_QUEUE_NAME_PATTERN})"
)

_REFUSED_RESOURCE_PATTERN = re.compile(
    r"\bon resource: (arn:aws[a-z-]{0,16}:sqs:[a-z0-9-]{1,32}:[0-9]{12}:[A-Za-z0-9_.-]{1,80})"
    r"(?=\s|\Z)"
)


class QueueArn(NamedTuple):
    """The parts of a queue's ARN."""

    partition: str
    region: str
    account: str
    name: str


def parse_queue_arn(queue_arn: str) -> QueueArn:
    """Return the parts of a queue's ARN. Raise ValueError if it is not the ARN of a queue."""
    match = QUEUE_ARN_PATTERN.fullmatch(queue_arn)
    if not match:
        raise ValueError(f"not the ARN of a queue: {queue_arn[:120]!r}")
    return QueueArn(*match.groups())


def queue_arn_or_none(text: object) -> str | None:
    """Return `text` if it is exactly the ARN of a queue, else None."""
    return text if isinstance(text, str) and QUEUE_ARN_PATTERN.fullmatch(text) else None


def arn_of_name(name: object, region: str, account: str) -> str | None:
    """Return the ARN of the queue with this name; None if name, region or account is not valid."""
    if not isinstance(name, str):
        return None
    return queue_arn_or_none(f"arn:{partition_of(region)}:sqs:{region}:{account}:{name}")


def arn_of_url(url: object, region: str) -> str | None:
    """Return the ARN of the queue with this URL; None if `url` is not a queue URL.

    The account and the name come from the URL; the region is `region`. The URL's host is not
    checked, because Mendq sends nothing to this URL.
    """
    match = _QUEUE_URL_PATTERN.fullmatch(url) if isinstance(url, str) else None
    if match is None:
        return None
    account, name = match.groups()
    return arn_of_name(name, region, account)


def make_public_queue_url(queue_arn: str) -> str:
    """Return the queue's public URL. Raise ValueError if `queue_arn` is not the ARN of a queue.

    https://docs.aws.amazon.com/general/latest/gr/sqs-service.html
    """
    queue = parse_queue_arn(queue_arn)
    return f"https://sqs.{queue.region}.{dns_suffix_of(queue.region)}/{queue.account}/{queue.name}"


def find_refused_arn(error_message: str) -> str | None:
    """Return the ARN of the queue that IAM's error message names; None if it names none.

    The message may contain the caller's text, so only an exact ARN counts.
    """
    match = _REFUSED_RESOURCE_PATTERN.search(error_message[-1024:])
    return queue_arn_or_none(match.group(1)) if match else None


def is_fifo_arn(queue_arn: str | None) -> bool:
    """Return True if `queue_arn` is the ARN of a FIFO queue, which ends with `.fifo`."""
    return queue_arn is not None and queue_arn.endswith(".fifo")


def may_be_fifo_arn(queue_arn: str | None) -> bool:
    """Return True if `queue_arn` is the ARN of a FIFO queue, or None (the queue is not known)."""
    return queue_arn is None or is_fifo_arn(queue_arn)


def is_standard_arn(queue_arn: str | None) -> bool:
    """Return True if `queue_arn` is the ARN of a standard queue, or None (not known)."""
    return not is_fifo_arn(queue_arn)


DEFAULT_NUMBER_BY_ATTRIBUTE: Mapping[str, int] = {
    "DelaySeconds": 0,
    "KmsDataKeyReusePeriodSeconds": 300,
    "MaximumMessageSize": 1_048_576,
    "MessageRetentionPeriod": 345_600,
    "ReceiveMessageWaitTimeSeconds": 0,
    "VisibilityTimeout": 30,
}


def read_number_attribute(attributes: Mapping[str, str], name: str) -> int:
    """Return the value of the attribute `name`, or SQS's default if the attribute is missing."""
    return int(attributes.get(name, DEFAULT_NUMBER_BY_ATTRIBUTE[name]))


FIFO_SUFFIX = ".fifo"
MAXIMUM_QUEUE_NAME_LENGTH = 80
LONGEST_RETENTION_SECONDS = 1_209_600


def make_name_with_suffix(source_name: str, suffix: str) -> str:
    """Return `source_name` with `suffix` at its end, but before `.fifo`.

    If the result would be longer than 80 characters, the source's name is cut and gets 8 digits of
    a hash, so that different queues get different names.
    """
    fifo_suffix = FIFO_SUFFIX if source_name.endswith(FIFO_SUFFIX) else ""
    base_name = source_name.removesuffix(FIFO_SUFFIX)
    if len(base_name) + len(suffix) + len(fifo_suffix) > MAXIMUM_QUEUE_NAME_LENGTH:
        hash_suffix = f"-{sha256(base_name.encode()).hexdigest()[:8]}"
        base_name = (
            base_name[
                : MAXIMUM_QUEUE_NAME_LENGTH - len(hash_suffix) - len(suffix) - len(fifo_suffix)
            ]
            + hash_suffix
        )
    return f"{base_name}{suffix}{fifo_suffix}"


def make_arn_with_suffix(source_arn: str, suffix: str) -> str:
    """Return the source's ARN with a suffix added to the name (see `make_name_with_suffix`).

    Raise ValueError if `source_arn` is not the ARN of a queue.
    """
    source_parts = parse_queue_arn(source_arn)
    suffixed_arn = arn_of_name(
        make_name_with_suffix(source_parts.name, suffix), source_parts.region, source_parts.account
    )
    assert suffixed_arn is not None  # noqa: S101 - a queue's name with a suffix is a valid name
    return suffixed_arn


DLQ_SUFFIX = "-dlq"
FEWEST_RECEIVES_BEFORE_DLQ = 3
MOST_RECEIVES_BEFORE_DLQ = 100
DEFAULT_MAX_RECEIVE_COUNT = 5
# The most sources that SQS accepts by name. More sources need the permission `allowAll`, which
# Mendq never writes.
MOST_SOURCES_IN_ALLOW_POLICY = 10


@dataclass(frozen=True)
class RedrivePolicy:
    """A RedrivePolicy: SQS moves a message to `dlq_arn` after `max_receive_count` receives."""

    dlq_arn: str
    max_receive_count: int

    @property
    def text(self) -> str:
        """The policy as Mendq writes and compares it: JSON, sorted keys, no white space."""
        return to_compact_json(
            {"deadLetterTargetArn": self.dlq_arn, "maxReceiveCount": self.max_receive_count}
        )


@dataclass(frozen=True)
class RedriveAllowPolicy:
    """A RedriveAllowPolicy: the queues that may use this queue as their DLQ."""

    permission: str
    sources: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The policy as Mendq writes and compares it: JSON, sorted keys, no white space."""
        document: dict[str, object] = {"redrivePermission": self.permission}
        if self.sources:
            document["sourceQueueArns"] = list(self.sources)
        return to_compact_json(document)

    def allows(self, source_arn: str) -> bool:
        """Return True if the source may use this queue as its DLQ."""
        return self.permission == "allowAll" or (
            self.permission == "byQueue" and source_arn in self.sources
        )

    def with_sources(self, *source_arns: str) -> RedriveAllowPolicy:
        """Return the policy with these sources added."""
        return RedriveAllowPolicy(self.permission, tuple(sorted({*self.sources, *source_arns})))


def to_compact_json(document: Mapping[str, object]) -> str:
    """Return JSON with sorted keys and without white space."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def parse_redrive_policy(text: str) -> RedrivePolicy | None:
    """Return the parsed RedrivePolicy; None if `text` is empty or not a RedrivePolicy.

    A RedrivePolicy is a JSON object with `deadLetterTargetArn`, a text, and `maxReceiveCount`, an
    integer or a text with an integer. The values are not checked further.
    """
    document = parse_json_object(text) or {}
    dlq_arn = document.get("deadLetterTargetArn")
    receive_count = document.get("maxReceiveCount")
    if not isinstance(dlq_arn, str) or isinstance(receive_count, bool | float):
        return None
    try:
        return RedrivePolicy(dlq_arn, int(receive_count))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def parse_redrive_allow_policy(text: str) -> RedriveAllowPolicy | None:
    """Return the parsed RedriveAllowPolicy; None if `text` is not a RedriveAllowPolicy.

    A RedriveAllowPolicy is a JSON object with `redrivePermission`, a text, and optionally
    `sourceQueueArns`, a list of texts. An empty text means `allowAll`, SQS's default.
    """
    if not text:
        return RedriveAllowPolicy("allowAll")
    document = parse_json_object(text) or {}
    permission = document.get("redrivePermission")
    source_arns = document.get("sourceQueueArns", [])
    if not isinstance(permission, str) or not isinstance(source_arns, list):
        return None
    if not all(isinstance(arn, str) for arn in source_arns):
        return None
    return RedriveAllowPolicy(permission, tuple(sorted(set(source_arns))))


def arn_of_dlq(source_arn: str) -> str:
    """Return the ARN of the DLQ that Mendq would create for this queue.

    Raise ValueError if `source_arn` is not the ARN of a queue.
    """
    return make_arn_with_suffix(source_arn, DLQ_SUFFIX)


def why_unfit_as_dlq(source_arn: str, dlq_arn: str) -> str | None:
    """Return why `dlq_arn` cannot be the DLQ of the source, by the two ARNs; None if it can.

    May raise ValueError if `source_arn` is not the ARN of a queue.
    """
    if queue_arn_or_none(dlq_arn) is None:
        return "it names no queue"
    if dlq_arn == source_arn:
        return "it names the queue itself"
    if parse_queue_arn(dlq_arn)[:3] != parse_queue_arn(source_arn)[:3]:
        return "it names a queue of another account or region"
    if dlq_arn.endswith(FIFO_SUFFIX) != source_arn.endswith(FIFO_SUFFIX):
        return "it names a queue of the other type: one is FIFO, the other standard"
    return None
