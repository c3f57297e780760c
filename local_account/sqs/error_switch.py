"""Errors of SQS that cannot arise here by themselves, on when somebody asks for them.

`{"errors": [{"error": "KmsThrottled", "queues": ["orders-*"], "below_seconds": 300}]}`: `queues`
are names or prefixes ending in `*`; `below_seconds` is KmsThrottled's alone, 300 if left out. An
error arises until the attribute is right that it is about. A call that fails is recorded like any
other. Statuses and calls: SQS's service model. No text was recorded from SQS; KmsThrottled's is the
one that KMS documents, KmsAccessDenied's the form in SQS's troubleshooting page, the rest guesses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from local_account.switch import SwitchRefused

RECEIVE = "ReceiveMessage"
SENDING = frozenset({"SendMessage", "SendMessageBatch"})
DELETING = frozenset({"DeleteMessage", "DeleteMessageBatch"})
BELOW_SECONDS = 300
THROTTLED_BY_KMS = "KmsThrottled"
# The stack's queues come with its name, the probe's with this one; what they do is nobody's test.
OWN_PREFIX = "mendq-"
_LEAST_SECONDS, _MOST_SECONDS = 60, 86_400


@dataclass(frozen=True)
class Moment:
    """A call and the queue as it is when the call comes."""

    action: str
    queue_arn: str
    is_fifo: bool
    attributes: Mapping[str, str]
    wait_seconds: int | None  # as the call says; the queue's own where it says nothing
    caller_arn: str = ""

    @property
    def is_short_poll(self) -> bool:
        """Tell whether it is a receive that waits for nothing."""
        own = int(self.attributes.get("ReceiveMessageWaitTimeSeconds", "0"))
        return self.action == RECEIVE and not (
            own if self.wait_seconds is None else self.wait_seconds
        )

    @property
    def key_arn(self) -> str:
        """The queue's KMS key where the call uses it, or empty text."""
        key = self.attributes.get("KmsMasterKeyId", "")
        if self.action in DELETING or not key or key.startswith("arn:"):
            return "" if self.action in DELETING else key
        scope = self.queue_arn.rpartition(":")[0].replace(":sqs:", ":kms:")
        return f"{scope}:{key}" if key.startswith("alias/") else f"{scope}:key/{key}"

    @property
    def kms_refusal(self) -> str:
        action = "kms:Decrypt" if self.action == RECEIVE else "kms:GenerateDataKey"
        return (
            f"User: {self.caller_arn} is not authorized to perform: {action} on resource: "
            f"{self.key_arn} because no identity-based policy allows the {action} action"
        )


def _uses_key(moment: Moment, _: int = 0) -> bool:
    return bool(moment.key_arn)


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


@dataclass(frozen=True)
class Kind:
    """One error: its code in the query protocol, its HTTP status, when it arises, what it says."""

    query_code: str
    status: int
    arises: Callable[[Moment, int], bool]
    text: str


# By the name in the JSON protocol.
KINDS: Mapping[str, Kind] = {
    THROTTLED_BY_KMS: Kind(
        "KMS.ThrottlingException",
        400,
        _asks_key_often,
        "You have exceeded the rate at which you may call KMS. Reduce the frequency of your calls.",
    ),
    "KmsAccessDenied": Kind("KMS.AccessDeniedException", 400, _uses_key, "{0.kms_refusal}"),
    "KmsDisabled": Kind("KMS.DisabledException", 400, _uses_key, "{0.key_arn} is disabled."),
    "KmsInvalidState": Kind(
        "KMS.InvalidStateException", 400, _uses_key, "{0.key_arn} is pending deletion."
    ),
    "KmsNotFound": Kind(
        "KMS.NotFoundException", 400, _uses_key, "Key '{0.key_arn}' does not exist"
    ),
    "RequestThrottled": Kind("RequestThrottled", 403, _calls_often, "Request is throttled."),
    "ThrottlingException": Kind("ThrottlingException", 400, _calls_often, "Rate exceeded"),
    "OverLimit": Kind("OverLimit", 403, _holds_too_many, "Too many messages are in flight."),
}


@dataclass(frozen=True)
class SwitchedError:
    """One error and the queues that give it."""

    error: str
    queues: tuple[str, ...]
    below_seconds: int = BELOW_SECONDS

    def applies(self, moment: Moment) -> bool:
        """Tell whether a call fails: while the configuration of a chosen queue earns it."""
        name = moment.queue_arn.rpartition(":")[2]
        chosen = any(
            name.startswith(each[:-1]) if each.endswith("*") else name == each
            for each in self.queues
        )
        is_theirs = chosen and not _is_own(name)
        return is_theirs and KINDS[self.error].arises(moment, self.below_seconds)

    def as_json(self) -> dict[str, Any]:
        """As it can be given to `read` again."""
        below = {"below_seconds": self.below_seconds} if self.error == THROTTLED_BY_KMS else {}
        return {"error": self.error, "queues": list(self.queues), **below}


class ErrorSwitch:
    """What is on now: nothing at first. Read by every call, replaced as a whole."""

    def __init__(self) -> None:
        self.errors: tuple[SwitchedError, ...] = ()

    def error_of(self, moment: Moment) -> str | None:
        """The name of the first error that applies to a call."""
        return next((each.error for each in self.errors if each.applies(moment)), None)

    def replace(self, asked: object) -> None:
        """Have exactly the errors that were asked for; raises SwitchRefused and changes nothing."""
        self.errors = read(asked)

    def end(self) -> None:
        self.errors = ()

    def as_json(self) -> dict[str, Any]:
        """As it can be given to `replace` again."""
        return {"errors": [each.as_json() for each in self.errors]}


def _is_own(queue_name: str) -> bool:
    return queue_name.lower().startswith(OWN_PREFIX)


def read(asked: object) -> tuple[SwitchedError, ...]:
    """Read what was asked, the errors in their order; raises SwitchRefused at the first mistake."""
    errors = asked.get("errors") if isinstance(asked, Mapping) and len(asked) == 1 else None
    if not isinstance(errors, list) or not all(isinstance(each, Mapping) for each in errors):
        raise SwitchRefused('send {"errors": [{"error": "KmsThrottled", "queues": ["orders-*"]}]}')
    return tuple(_read_one(each) for each in errors)


def _read_one(asked: Mapping[str, Any]) -> SwitchedError:
    if unknown := sorted(set(asked) - {"error", "queues", "below_seconds"}):
        raise SwitchRefused(f"{unknown[0]}: not known; there are error, queues and below_seconds")
    error, queues = asked.get("error"), asked.get("queues")
    if not isinstance(error, str) or error not in KINDS:
        raise SwitchRefused(f"error: give one of {', '.join(sorted(KINDS))}")
    if not isinstance(queues, list) or not queues or not all(map(_is_pattern, queues)):
        raise SwitchRefused('queues: list names, or prefixes such as "orders-*"; none of Mendq\'s')
    below = asked.get("below_seconds", BELOW_SECONDS)
    is_number = type(below) is int and _LEAST_SECONDS < below <= _MOST_SECONDS
    if not is_number or ("below_seconds" in asked and error != THROTTLED_BY_KMS):
        numbers = f"a number above {_LEAST_SECONDS}, at most {_MOST_SECONDS}"
        raise SwitchRefused(f"below_seconds: give {THROTTLED_BY_KMS} {numbers}, others none")
    return SwitchedError(error, tuple(queues), below)


def _is_pattern(text: object) -> bool:
    return isinstance(text, str) and bool(text) and "*" not in text[:-1] and not _is_own(text)
