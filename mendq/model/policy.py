"""Queue policies statement by statement, and the pin: the policy that a person called good."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from mendq.model.evidence import to_text
from mendq.model.queue import each_key_once

EVERYBODY = "*"
# SQS takes no longer one; what is longer is not read.
_MOST_CHARACTERS = 20_480

_EITHER_WAY = ("Principal", "Action", "Resource")
_KNOWN = {"Sid", "Effect", "Condition", *_EITHER_WAY, *(f"Not{each}" for each in _EITHER_WAY)}


@dataclass(frozen=True)
class Statement:
    """One statement as it stands; nothing is resolved, and texts are in their own spelling.

    `principals` by kind (`AWS`, `Service`, `Federated`, ...), of which `"Principal": "*"` is
    `AWS`'s EVERYBODY; `conditions` by operator and key; `excepting` names what is given by what it
    is not: `Principal`, `Action`, `Resource`.
    """

    allows: bool
    principals: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    actions: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    conditions: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    excepting: frozenset[str] = frozenset()
    sid: str = ""

    @property
    def is_for_everybody(self) -> bool:
        return EVERYBODY in self.principals.get("AWS", ())


def statements_of(policy: str) -> tuple[Statement, ...] | None:
    """The statements of a policy's text; none where it is empty, None where it is unreadable.

    What is spelled twice, unknown or of another kind than IAM's grammar has is unreadable as a
    whole: half of a policy says nothing.
    """
    if not policy:
        return ()
    if len(policy) > _MOST_CHARACTERS:
        return None
    try:
        document = json.loads(policy, object_pairs_hook=each_key_once, parse_constant=_refuse)
        found = document["Statement"]
        return tuple(map(_statement, found if isinstance(found, list) else [found]))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return None


def _statement(found: dict[str, Any]) -> Statement:
    if found.keys() - _KNOWN or found["Effect"] not in ("Allow", "Deny"):
        raise ValueError("no statement of IAM's grammar")
    if any(each in found and f"Not{each}" in found for each in _EITHER_WAY):
        raise ValueError("what is given is also given by what it is not")
    principal, actions, resources = (
        found.get(each, found.get(f"Not{each}", [])) for each in _EITHER_WAY
    )
    return Statement(
        allows=found["Effect"] == "Allow",
        principals=_principals(principal),
        actions=_texts(actions),
        resources=_texts(resources),
        conditions={
            operator: {key: _texts(values) for key, values in asked.items()}
            for operator, asked in found.get("Condition", {}).items()
        },
        excepting=frozenset(each for each in _EITHER_WAY if f"Not{each}" in found),
        sid=str(found.get("Sid", "")),
    )


def _principals(given: Any) -> dict[str, tuple[str, ...]]:
    if given == EVERYBODY:
        return {"AWS": (EVERYBODY,)}
    return {kind: _texts(each) for kind, each in given.items()} if given else {}


def _texts(given: Any) -> tuple[str, ...]:
    return tuple(map(_policies_text, given if isinstance(given, list) else [given]))


def _policies_text(given: Any) -> str:
    """Conditions may hold numbers and booleans, which mean the same as their text."""
    if isinstance(given, bool):
        return str(given).lower()
    if not isinstance(given, str | int | float):
        raise TypeError("neither a text nor a number")
    return str(given)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


HOLDS = timedelta(days=30)
# Clocks of SQS's, CloudTrail's and whoever pins may differ by so much.
# Both round to the second: a second of difference is one moment, two may be two people.
CLOCK_SKEW = timedelta(seconds=1)
MOST_CLOCK_AHEAD = timedelta(minutes=5)
MOST_CLOCK_BEHIND = timedelta(days=1)
# "On average within about 5 minutes of an API call", and not guaranteed:
# https://docs.aws.amazon.com/awscloudtrail/latest/userguide/get-and-view-cloudtrail-log-files.html
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
        """As the case store holds it and `mendq policy pin --json` prints it."""
        values = {**vars(self), "expires_at": self.expires_at, "automation": list(self.automation)}
        times = {name: to_text(at) for name, at in values.items() if isinstance(at, datetime)}
        return values | times


@dataclass(frozen=True)
class QueueChange:
    """A change of the queue that went through, as CloudTrail tells.

    `attributes` are those that it set; `of_policy` where it may have changed the policy too;
    `by_cloudformation` where AWS itself says
    so, and not the caller. `earlier` are some before it, newest first, where it was asked for last.
    """

    at: datetime
    event_name: str
    principal_arn: str
    attributes: tuple[str, ...] = ()
    of_policy: bool = True
    by_cloudformation: bool = False
    earlier: tuple[QueueChange, ...] = ()

    @property
    def who(self) -> str:
        return "CloudFormation" if self.by_cloudformation else self.principal_arn


@dataclass(frozen=True)
class Pinned:
    """A pin as it was found: `doubt` says why it may not be restored, and is empty where it may.

    `pin` is None where it cannot be read; `passes` where CloudTrail will say more by itself;
    `changed` is the deployment that it would undo.
    """

    pin: Pin | None
    doubt: str = ""
    passes: bool = False
    changed: QueueChange | None = None

    @property
    def is_good(self) -> bool:
        return not self.doubt


def doubt_at_once(
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
    if modified_at is None:
        return Pinned(pin, "SQS does not say when the queue was last changed")
    unheard = _unheard_of(later, modified_at, now)
    if unheard:
        return Pinned(pin, *unheard)
    if not of_policy:
        return Pinned(pin, "the policy is another one, and CloudTrail knows nobody who changed it")
    return Pinned(pin, changed=of_policy[-1])


def _deploys(change: QueueChange, pin: Pin) -> bool:
    return change.by_cloudformation or change.principal_arn in pin.automation


def _unheard_of(
    later: Sequence[QueueChange], modified_at: datetime, now: datetime
) -> tuple[str, bool] | None:
    """What CloudTrail may not have told of yet, and whether it is worth waiting for."""
    if not later or later[-1].at < modified_at - CLOCK_SKEW:
        doubt = f"CloudTrail does not tell who changed the queue at {_at(modified_at)}"
        return doubt, now - modified_at < CLOUDTRAIL_TELLS_WITHIN
    last = max(later[-1].at, modified_at)
    if now - last < CLOUDTRAIL_TELLS_WITHIN:
        until = _at(last + CLOUDTRAIL_TELLS_WITHIN)
        doubt = f"the queue was changed at {_at(last)}, and CloudTrail may tell of more until"
        return f"{doubt} {until}", True
    return None


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
