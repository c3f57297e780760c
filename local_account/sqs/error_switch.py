"""Errors of SQS that cannot arise here by themselves, on when somebody asks: what may be asked.

`{"errors": [{"error": "KmsThrottled", "queues": ["orders-*"], "below_seconds": 300}]}`: `queues`
are names or prefixes ending in `*`; `below_seconds` is KmsThrottled's alone, 300 if left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from local_account.sqs.attributes import RANGES
from local_account.sqs.refusal import Refusal
from local_account.sqs.switched_errors import KINDS, Moment
from local_account.switch import SwitchRefused

BELOW_SECONDS = 300
THROTTLED_BY_KMS = "KmsThrottled"
# The stack's queues come with its name, the pulse's with this one; what they do is nobody's test.
OWN_PREFIX = "mendq-"
_LEAST_SECONDS, _MOST_SECONDS = RANGES["KmsDataKeyReusePeriodSeconds"]


@dataclass(frozen=True)
class SwitchedError:
    """One error and the queues that give it."""

    error: str
    queues: tuple[str, ...]
    below_seconds: int = BELOW_SECONDS

    def refusal(self, moment: Moment) -> Refusal | None:
        """The error for a call on one of its queues while the queue's configuration earns it."""
        name = moment.queue_name
        if is_own(name) or not any(_fits(pattern, name) for pattern in self.queues):
            return None
        kind = KINDS[self.error]
        if not kind.arises(moment, self.below_seconds):
            return None
        return Refusal(self.error, kind.text(moment), kind.status)

    def as_json(self) -> dict[str, Any]:
        """As it can be given to `read` again."""
        shown: dict[str, Any] = {"error": self.error, "queues": list(self.queues)}
        if self.error == THROTTLED_BY_KMS:
            shown["below_seconds"] = self.below_seconds
        return shown


class ErrorSwitch:
    """What is on now: nothing at first. Read by every call, replaced as a whole."""

    def __init__(self) -> None:
        self.errors: tuple[SwitchedError, ...] = ()

    def refusal(self, moment: Moment) -> Refusal | None:
        """The first error that applies to a call."""
        found = (each.refusal(moment) for each in self.errors)
        return next((each for each in found if each), None)

    def replace(self, asked: object) -> None:
        """Have exactly the errors that were asked for; raises SwitchRefused and changes nothing."""
        self.errors = read(asked)

    def end(self) -> None:
        self.errors = ()

    def as_json(self) -> dict[str, Any]:
        """As it can be given to `replace` again."""
        return {"errors": [each.as_json() for each in self.errors]}


def is_own(queue_name: str) -> bool:
    """Whether a queue is one of Mendq's own."""
    return queue_name.lower().startswith(OWN_PREFIX)


def read(asked: object) -> tuple[SwitchedError, ...]:
    """Read what was asked, the errors in their order; raises SwitchRefused at the first mistake."""
    if not isinstance(asked, Mapping) or set(asked) != {"errors"}:
        raise SwitchRefused('send {"errors": [{"error": "KmsThrottled", "queues": ["orders-*"]}]}')
    if not isinstance(asked["errors"], list):
        raise SwitchRefused("errors: give a list")
    return tuple(_read_one(each) for each in asked["errors"])


def _read_one(asked: object) -> SwitchedError:
    if not isinstance(asked, Mapping):
        raise SwitchRefused('errors: give objects such as {"error": .., "queues": [..]}')
    if unknown := sorted(set(asked) - {"error", "queues", "below_seconds"}):
        raise SwitchRefused(f"{unknown[0]}: not known; there are error, queues and below_seconds")
    error = asked.get("error")
    if not isinstance(error, str) or error not in KINDS:
        raise SwitchRefused(f"error: give one of {', '.join(sorted(KINDS))}")
    queues = asked.get("queues")
    if not isinstance(queues, list) or not queues:
        raise SwitchRefused('queues: list names, or prefixes such as "orders-*"')
    return SwitchedError(error, tuple(_pattern(each) for each in queues), _below(asked))


def _pattern(asked: object) -> str:
    if not isinstance(asked, str) or not asked or "*" in asked[:-1]:
        raise SwitchRefused('queues: give names, or prefixes such as "orders-*"')
    if is_own(asked):
        raise SwitchRefused(f"queues: {asked} is Mendq's own, which give no such errors")
    return asked


def _below(asked: Mapping[str, Any]) -> int:
    if "below_seconds" not in asked:
        return BELOW_SECONDS
    if asked["error"] != THROTTLED_BY_KMS:
        raise SwitchRefused(f"below_seconds: leave it out, it belongs to {THROTTLED_BY_KMS}")
    seconds = asked["below_seconds"]
    if type(seconds) is not int or not _LEAST_SECONDS < seconds <= _MOST_SECONDS:
        raise SwitchRefused(
            f"below_seconds: give a number above {_LEAST_SECONDS}, at most {_MOST_SECONDS}"
        )
    return seconds


def _fits(pattern: str, name: str) -> bool:
    if pattern.endswith("*"):
        return name.startswith(pattern[:-1])
    return name == pattern
