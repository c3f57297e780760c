"""A queue's policy that a person called good, and whether that word still holds.

It holds for one queue, 30 days and as long as nobody changed the policy: who did has decided anew.
CloudFormation's own changes, and those of the roles that the pin names, are not taken for a
person's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

from functions.healing.evidence import to_text

HOLDS = timedelta(days=30)
# Clocks of SQS's, CloudTrail's and whoever pins may differ by so much.
CLOCK_SKEW = timedelta(seconds=5)
MOST_CLOCK_AHEAD = timedelta(minutes=5)
MOST_CLOCK_BEHIND = timedelta(days=1)
# "On average within about 5 minutes of an API call", and not guaranteed:
# https://docs.aws.amazon.com/awscloudtrail/latest/userguide/get-and-view-cloudtrail-log-files.html
CLOUDTRAIL_TELLS_MOSTLY = timedelta(minutes=5)
CLOUDTRAIL_TELLS_WITHIN = timedelta(minutes=20)


def digest_of(policy: str) -> str:
    """Of the text byte for byte, as `sha256sum` prints it."""
    return hashlib.sha256(policy.encode()).hexdigest()


@dataclass(frozen=True)
class Pin:
    """A policy's text byte for byte, of the queue that was created and last modified then.

    `automation` are the ARNs of roles that deploy: a change of theirs may be undone.
    """

    queue_arn: str
    policy: str
    digest: str
    generation: int
    pinned_at: datetime
    pinned_by: str
    queue_created_at: datetime
    queue_modified_at: datetime
    automation: tuple[str, ...] = ()

    @property
    def expires_at(self) -> datetime:
        return self.pinned_at + HOLDS

    @property
    def since(self) -> datetime:
        """From when on changes speak against it: SQS's own clock, not that of whoever pinned."""
        return max(self.queue_modified_at, self.pinned_at - MOST_CLOCK_BEHIND)

    def document(self) -> dict[str, Any]:
        """As the ledger holds it and `mendq pin --json` prints it."""
        return {
            "queue_arn": self.queue_arn,
            "policy": self.policy,
            "digest": self.digest,
            "generation": self.generation,
            "pinned_at": to_text(self.pinned_at),
            "pinned_by": self.pinned_by,
            "expires_at": to_text(self.expires_at),
            "queue_created_at": to_text(self.queue_created_at),
            "queue_modified_at": to_text(self.queue_modified_at),
            "automation": list(self.automation),
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Raise KeyError, TypeError or ValueError where it is none of ours."""
        return cls(
            queue_arn=str(document["queue_arn"]),
            policy=str(document["policy"]),
            digest=str(document["digest"]),
            generation=int(document["generation"]),
            pinned_at=datetime.fromisoformat(document["pinned_at"]),
            pinned_by=str(document["pinned_by"]),
            queue_created_at=datetime.fromisoformat(document["queue_created_at"]),
            queue_modified_at=datetime.fromisoformat(document["queue_modified_at"]),
            automation=tuple(map(str, document["automation"])),
        )


@dataclass(frozen=True)
class QueueChange:
    """A change of the queue that went through, as CloudTrail tells.

    `of_policy` where it may have changed the policy too; `by_cloudformation` where AWS itself says
    so, and not the caller.
    """

    at: datetime
    event_name: str
    principal_arn: str
    of_policy: bool = True
    by_cloudformation: bool = False

    @property
    def who(self) -> str:
        return "CloudFormation" if self.by_cloudformation else self.principal_arn


@dataclass(frozen=True)
class Pinned:
    """A pin as it was found: `doubt` says why it may not be restored, and is empty where it may.

    `passes` where CloudTrail will say more by itself; `changed` is the deployment that it would
    undo.
    """

    pin: Pin
    doubt: str = ""
    passes: bool = False
    changed: QueueChange | None = None

    @property
    def is_good(self) -> bool:
        return not self.doubt


def doubt_at_sight(
    pin: Pin, queue_arn: str, created_at: datetime | None, now: datetime
) -> str | None:
    """What speaks against a pin before anybody is asked who changed the queue."""
    if digest_of(pin.policy) != pin.digest:
        return "its text is not the one that its digest is of"
    if (pin.queue_arn, pin.queue_created_at) != (queue_arn, created_at):
        return "it is of another queue of that name"
    if now >= pin.expires_at:
        return f"it expired at {pin.expires_at:%Y-%m-%d %H:%M} UTC"
    if pin.pinned_at > now + MOST_CLOCK_AHEAD:
        return "it was pinned in the future: the clock of whoever pinned it is wrong"
    return None


def judged(
    pin: Pin, changes: Sequence[QueueChange] | str, modified_at: datetime | None, now: datetime
) -> Pinned:
    """The pin of a queue whose policy is another one now, after all that CloudTrail tells.

    `changes` are those since `pin.since` in any order, or why they are not known; `modified_at` is
    when SQS says that the queue was changed last: CloudTrail lags by minutes, and a person's change
    must not be undone before it is heard of.
    """
    if isinstance(changes, str):
        return Pinned(pin, f"nobody can say who changed the policy since: {changes}")
    later = sorted(
        (each for each in changes if each.at > pin.queue_modified_at + CLOCK_SKEW),
        key=lambda each: each.at,
    )
    of_policy = [each for each in later if each.of_policy]
    of_others = [each for each in of_policy if not _deploys(each, pin)]
    if of_others:
        last = of_others[-1]
        return Pinned(pin, f"{last.who} has changed it since ({last.event_name}, {_at(last.at)})")
    unheard = _unheard_of(later, modified_at, now)
    if unheard:
        return Pinned(pin, *unheard)
    if not of_policy:
        return Pinned(pin, "the policy is another one, and CloudTrail knows nobody who changed it")
    return Pinned(pin, changed=of_policy[-1])


def _deploys(change: QueueChange, pin: Pin) -> bool:
    return change.by_cloudformation or change.principal_arn in pin.automation


def _unheard_of(
    later: Sequence[QueueChange], modified_at: datetime | None, now: datetime
) -> tuple[str, bool] | None:
    """What CloudTrail may not have told of yet, and whether it is worth waiting for."""
    if modified_at is None:
        return "SQS does not say when the queue was last changed", False
    age = now - modified_at
    if not later or later[-1].at < modified_at - CLOCK_SKEW:
        doubt = f"CloudTrail does not tell who changed the queue at {_at(modified_at)}"
        return doubt, age < CLOUDTRAIL_TELLS_WITHIN
    if age < CLOUDTRAIL_TELLS_MOSTLY:
        return f"the queue was changed a moment ago, at {_at(modified_at)}: more may follow", True
    return None


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
