"""Queue names, ARNs and URLs, defaults of attributes, and the names of queues made beside a queue.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-queue-message-identifiers.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

from mendq.model.json_text import finite_float, refuse_constant

QUARANTINE_SUFFIX = "-quarantine"


def is_quarantine(queue_name: str) -> bool:
    """By its name; whose it is, its messages' marks say."""
    return queue_name.removesuffix(FIFO).endswith(QUARANTINE_SUFFIX)


def parse_json_object(text: str | None) -> dict[str, Any] | None:
    """Return the JSON object in `text`; None if there is none, or it is nested too deep to read.

    A text with NaN, Infinity or a number that no double holds is no JSON.
    """
    try:
        document = json.loads(
            text or "{}", parse_constant=refuse_constant, parse_float=finite_float
        )
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def refuse_repeated_keys(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these pairs, as a hook of `json.loads`; ValueError where a key comes again."""
    found: dict[str, Any] = {}
    for key, given in pairs:
        if key in found:
            raise ValueError(f"{key[:40]!r} is there twice")
        found[key] = given
    return found


_NAME = r"(?=.{1,80}\Z)[A-Za-z0-9_-]{1,80}(?:\.fifo)?"
_ACCOUNT = r"[0-9]{12}"
_REGION = r"[a-z0-9-]{1,32}"
ARN = re.compile(rf"arn:(aws[a-z-]{{0,16}}):sqs:({_REGION}):({_ACCOUNT}):({_NAME})")
_URL = re.compile(rf"https?://[A-Za-z0-9.:\[\]-]{{1,255}}/({_ACCOUNT})/({_NAME})")

_REFUSED = re.compile(
    r"\bon resource: (arn:aws[a-z-]{0,16}:sqs:[a-z0-9-]{1,32}:[0-9]{12}:[A-Za-z0-9_.-]{1,80})"
    r"(?=\s|\Z)"
)


class QueueArn(NamedTuple):
    """The parts of a queue's ARN."""

    partition: str
    region: str
    account: str
    name: str


def parts_of(queue_arn: str) -> QueueArn:
    """Raise ValueError where `queue_arn` is none."""
    found = ARN.fullmatch(queue_arn)
    if not found:
        raise ValueError(f"not the ARN of a queue: {queue_arn[:120]!r}")
    return QueueArn(*found.groups())


def arn_of(text: object) -> str | None:
    """`text` if it is exactly the ARN of a queue."""
    return text if isinstance(text, str) and ARN.fullmatch(text) else None


def arn_of_name(name: object, region: str, account: str) -> str | None:
    """The ARN of a queue's name; None where a part is not legal."""
    if not isinstance(name, str):
        return None
    return arn_of(f"arn:{partition_of(region)}:sqs:{region}:{account}:{name}")


def arn_of_url(url: object, region: str) -> str | None:
    """The ARN behind a queue URL; its host is not looked at, because nothing is ever sent there."""
    found = _URL.fullmatch(url) if isinstance(url, str) else None
    return arn_of_name(found.group(2), region, found.group(1)) if found else None


def public_url(queue_arn: str) -> str:
    """The URL that the queue has for everybody; raises ValueError where `queue_arn` is none.

    https://docs.aws.amazon.com/general/latest/gr/sqs-service.html
    """
    queue = parts_of(queue_arn)
    suffix = "amazonaws.com.cn" if queue.region.startswith("cn-") else "amazonaws.com"
    return f"https://sqs.{queue.region}.{suffix}/{queue.account}/{queue.name}"


def arn_refused_in(error_message: str) -> str | None:
    """The queue that IAM's refusal names; the text may be the caller's: the ARN must be exact."""
    found = _REFUSED.search(error_message[-1024:])
    return arn_of(found.group(1)) if found else None


def partition_of(region: str) -> str:
    """AWS's partition of a region."""
    if region.startswith("cn-"):
        return "aws-cn"
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"


def on_fifo(queue_arn: str | None) -> bool:
    """A FIFO queue's name ends so, and no other's may."""
    return queue_arn is not None and queue_arn.endswith(".fifo")


def may_be_fifo(queue_arn: str | None) -> bool:
    """A FIFO queue, or none that the call names."""
    return queue_arn is None or on_fifo(queue_arn)


def not_on_fifo(queue_arn: str | None) -> bool:
    """A standard queue, or none that the call names."""
    return not on_fifo(queue_arn)


DEFAULTS: Mapping[str, int] = {
    "DelaySeconds": 0,
    "KmsDataKeyReusePeriodSeconds": 300,
    "MaximumMessageSize": 1_048_576,
    "MessageRetentionPeriod": 345_600,
    "ReceiveMessageWaitTimeSeconds": 0,
    "VisibilityTimeout": 30,
}


def number_in(attributes: Mapping[str, str], name: str) -> int:
    """The attribute's value, or SQS's own where `attributes` do not say."""
    return int(attributes.get(name, DEFAULTS[name]))


FIFO = ".fifo"
LONGEST_NAME = 80
LONGEST_RETENTION_SECONDS = 1_209_600


def name_with_suffix(source_name: str, suffix: str) -> str:
    """The source's name with a suffix.

    Of a long name the beginning, and a few digits by which no two of them meet.
    """
    ending = FIFO if source_name.endswith(FIFO) else ""
    base = source_name.removesuffix(FIFO)
    if len(base) + len(suffix) + len(ending) > LONGEST_NAME:
        digits = f"-{sha256(base.encode()).hexdigest()[:8]}"
        base = base[: LONGEST_NAME - len(digits) - len(suffix) - len(ending)] + digits
    return f"{base}{suffix}{ending}"


def arn_with_suffix(source_arn: str, suffix: str) -> str:
    """The ARN that goes with it; raises ValueError where `source_arn` is none."""
    source = parts_of(source_arn)
    named = arn_of_name(name_with_suffix(source.name, suffix), source.region, source.account)
    assert named is not None  # noqa: S101 - a queue's name with a suffix is one
    return named


DLQ_SUFFIX = "-dlq"
FEWEST_RECEIVES = 3
MOST_RECEIVES = 100
MAX_RECEIVE_COUNT = 5
# SQS takes no more by name; beyond that it must be allowAll, which Mendq never writes.
MOST_SOURCES = 10


@dataclass(frozen=True)
class Redrive:
    """A RedrivePolicy: after how many receives a message goes to which queue."""

    dlq_arn: str
    max_receive_count: int

    @property
    def text(self) -> str:
        """As Mendq writes it and compares it: sorted, without white space."""
        return to_compact_json(
            {"deadLetterTargetArn": self.dlq_arn, "maxReceiveCount": self.max_receive_count}
        )


@dataclass(frozen=True)
class RedriveAllow:
    """A RedriveAllowPolicy: who may name the queue as their DLQ."""

    permission: str
    sources: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """As Mendq writes it and compares it: sorted, without white space."""
        of_sources = {"sourceQueueArns": list(self.sources)} if self.sources else {}
        return to_compact_json({"redrivePermission": self.permission, **of_sources})

    def allows(self, source_arn: str) -> bool:
        return self.permission == "allowAll" or (
            self.permission == "byQueue" and source_arn in self.sources
        )

    def with_sources(self, *source_arns: str) -> RedriveAllow:
        return RedriveAllow(self.permission, tuple(sorted({*self.sources, *source_arns})))


def to_compact_json(document: Mapping[str, object]) -> str:
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def parse_redrive_policy(text: str) -> Redrive | None:
    """What a RedrivePolicy says; None where SQS would take no such text."""
    document = parse_json_object(text) or {}
    named, count = document.get("deadLetterTargetArn"), document.get("maxReceiveCount")
    if not isinstance(named, str) or isinstance(count, bool | float):
        return None
    try:
        return Redrive(named, int(count))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def parse_redrive_allow_policy(text: str) -> RedriveAllow | None:
    """What a RedriveAllowPolicy says; none means all. None where SQS would take no such text."""
    if not text:
        return RedriveAllow("allowAll")
    document = parse_json_object(text) or {}
    permission, sources = document.get("redrivePermission"), document.get("sourceQueueArns", [])
    if not isinstance(permission, str) or not isinstance(sources, list):
        return None
    if not all(isinstance(each, str) for each in sources):
        return None
    return RedriveAllow(permission, tuple(sorted(set(sources))))


def arn_of_dlq(source_arn: str) -> str:
    """The ARN of the DLQ that Mendq makes for a queue; ValueError where `source_arn` is none."""
    return arn_with_suffix(source_arn, DLQ_SUFFIX)


def why_unfit_as_dlq(source_arn: str, dlq_arn: str) -> str | None:
    """Why SQS takes no such queue as the DLQ of that one; None where it does."""
    if arn_of(dlq_arn) is None:
        return "it names no queue"
    if dlq_arn == source_arn:
        return "it names the queue itself"
    if parts_of(dlq_arn)[:3] != parts_of(source_arn)[:3]:
        return "it names a queue of another account or region"
    if dlq_arn.endswith(FIFO) != source_arn.endswith(FIFO):
        return "it names a queue of the other type: one is FIFO, the other standard"
    return None
