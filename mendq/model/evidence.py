"""Evidence for a case: distinct recent failed calls, and who made them."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from mendq.model.failed_call import FailedCall, RefusedBy, refused_by

_WITH_BATCHES = ("ChangeMessageVisibility", "DeleteMessage", "SendMessage")

# A batch takes the permission of the single call.
_GRANTED_BY = {
    "ReceiveMessage": "ReceiveMessage",
    **{each: each for each in _WITH_BATCHES},
    **{f"{each}Batch": each for each in _WITH_BATCHES},
}

MESSAGE_TRAFFIC = frozenset(_GRANTED_BY)
_NAMED_AT_MOST = 3
_NAME_AT_MOST = 96

IDENTITY = re.compile(
    r"arn:aws[a-z-]{0,16}:iam::[0-9]{12}:(?:role|user)/[A-Za-z0-9+=,.@_/-]{1,180}"
)


SEND_MESSAGE, RECEIVE_MESSAGE = (f"sqs:{each}" for each in ("SendMessage", "ReceiveMessage"))


def granted_by(event_names: Iterable[str]) -> tuple[str, ...]:
    """The IAM actions that allow these calls; calls that carry no messages are left out."""
    actions = {_GRANTED_BY[each] for each in event_names if each in _GRANTED_BY}
    return tuple(sorted(f"sqs:{each}" for each in actions))


# What moving messages takes: of the DLQ, and of the source.
MESSAGE_ACTIONS = granted_by(MESSAGE_TRAFFIC)


def named(principals: Collection[str]) -> str:
    """A few of them and how many more; who they are is CloudTrail's word."""
    more = len(principals) - _NAMED_AT_MOST
    first = ", ".join(_shortened(each) for each in list(principals)[:_NAMED_AT_MOST])
    said = first or "a caller that CloudTrail does not name"
    return f"{said} and {more} more" if more > 0 else said


def _shortened(principal: str) -> str:
    """A path may be 512 characters long, and what is said after it must still be read."""
    if len(principal) <= _NAME_AT_MOST:
        return principal
    end = _NAME_AT_MOST // 2
    return f"{principal[: _NAME_AT_MOST - end - 3]}...{principal[-end:]}"


def is_role(principal: str) -> bool:
    """Whether it is the ARN of a role of IAM, and not of a session of one."""
    return IDENTITY.fullmatch(principal) is not None and ":role/" in principal


def first_identity(principals: Iterable[str]) -> str | None:
    """The first that is a role or a user of IAM; services and federated callers are not."""
    return next((each for each in principals if IDENTITY.fullmatch(each)), None)


def are_strangers_to(account: str, principals: Iterable[str]) -> bool:
    """Whether one of them is a role or a user of another account."""
    identities = (each for each in principals if IDENTITY.fullmatch(each))
    return any(each.split(":")[4] != account for each in identities)


MAXIMUM_PRINCIPALS = 10
MAXIMUM_RETAINED = 10
MAXIMUM_MESSAGE = 300
# Of the requests that a case stands on, so many of the first and of the last are kept.
REQUESTS_AT_EACH_END = 5
_ASKED_FOR = ("request_id", "error_code", "error_message")
_OF_REQUESTS = (*_ASKED_FOR, "principal_arn", "source_ip", "user_agent")
STALE_AFTER = timedelta(minutes=60)
# So many distinct events, so close together, before anything is believed.
DISTINCT_EVENTS = 3
WITHIN_SECONDS = 600


@dataclass(frozen=True, order=True)
class Sighting:
    """What the case store keeps of one failed call; ordered by time.

    `requested_visibility_seconds` is the visibility timeout that the call itself asked for, if it
    did; `refused_by` the policy that refused it, if one did. `measured` tells what a scan found
    from a failed call: one is enough, because it stands on hours of counting. Message and user
    agent are others' text.
    """

    event_time: datetime
    event_id: str
    request_id: str
    principal_arn: str
    event_name: str = field(default="", compare=False)
    requested_visibility_seconds: int | None = field(default=None, compare=False)
    refused_by: RefusedBy | None = field(default=None, compare=False)
    measured: bool = field(default=False, compare=False)
    error_code: str = field(default="", compare=False)
    error_message: str = field(default="", compare=False)
    source_ip: str = field(default="", compare=False)
    user_agent: str = field(default="", compare=False)

    @classmethod
    def of_measurement(cls, at: datetime) -> Self:
        """What a scan found at that moment; the same scan's twice is one."""
        to_the_second = at.replace(microsecond=0)
        return cls(to_the_second, f"scan:{to_text(to_the_second)}", "", "", measured=True)

    @classmethod
    def of(cls, call: FailedCall) -> Self:
        to_the_millisecond = call.event_time.microsecond // 1_000 * 1_000
        return cls(
            call.event_time.replace(microsecond=to_the_millisecond),
            call.event_id,
            call.request_id,
            call.principal_arn,
            call.event_name,
            call.requested_visibility_seconds,
            refused_by(call.error_code, call.error_message),
            error_code=call.raw_error_code,
            error_message=call.error_message[:MAXIMUM_MESSAGE],
            source_ip=call.source_ip,
            user_agent=call.user_agent,
        )

    def to_text(self) -> str:
        """The same call gives the same text, so that a set of them counts no event twice."""
        at, *others = (getattr(self, each.name) for each in fields(self))
        return json.dumps([int(at.timestamp() * 1000), *others])

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Raise ValueError or TypeError where `text` is none of ours."""
        at, event_id, request_id, principal, name, visibility, refused, *more = json.loads(text)
        seen_at = datetime.fromtimestamp(at / 1000, UTC)
        refused_by = None if refused is None else RefusedBy(refused)
        return cls(seen_at, event_id, request_id, principal, name, visibility, refused_by, *more)

    def request(self) -> dict[str, str]:
        """What AWS Support asks for, and where it came from; what is not known is left out."""
        said = {"at": to_text(self.event_time), "operation": self.event_name}
        said |= {name: getattr(self, name) for name in _OF_REQUESTS}
        return {name: text for name, text in said.items() if text}


@dataclass(frozen=True)
class Evidence:
    """Distinct sightings in time order."""

    sightings: tuple[Sighting, ...] = ()

    @classmethod
    def of(cls, sightings: Iterable[Sighting]) -> Self:
        """One sighting per event id, the earliest."""
        by_event: dict[str, Sighting] = {}
        for each in sorted(sightings):
            by_event.setdefault(each.event_id, each)
        return cls(tuple(by_event.values()))

    @property
    def suffices(self) -> bool:
        """Whether enough distinct events lie within the window, or a scan has measured it."""
        if any(each.measured for each in self.sightings):
            return True
        times = [each.event_time for each in self.sightings]
        window = timedelta(seconds=WITHIN_SECONDS)
        last = DISTINCT_EVENTS - 1
        return any(
            later - first <= window for first, later in zip(times, times[last:], strict=False)
        )

    def since(self, moment: datetime | None) -> Evidence:
        """What was seen from `moment` on; all of it where that is None."""
        if moment is None:
            return self
        return Evidence(tuple(each for each in self.sightings if each.event_time >= moment))

    def fresh(self, now: datetime) -> Evidence:
        """What is not stale; a case store keeps things longer than they mean something."""
        return self.since(now - STALE_AFTER)

    def worth_keeping(self) -> tuple[Sighting, ...]:
        """The newest: enough to complete a window, few enough to store."""
        return self.sightings[-MAXIMUM_RETAINED:]

    def reader_visibility_seconds(self) -> int | None:
        """The least visibility timeout that every one of the calls itself asked for; 0 gives a
        message back.
        """
        asked = [each.requested_visibility_seconds or 0 for each in self.calls]
        return min(asked, default=0) or None

    def principals(self) -> tuple[str, ...]:
        named = {each.principal_arn for each in self.sightings if each.principal_arn}
        return tuple(sorted(named)[:MAXIMUM_PRINCIPALS])

    @property
    def calls(self) -> tuple[Sighting, ...]:
        """Those that are failed calls, and not what a scan measured."""
        return tuple(each for each in self.sightings if not each.measured)

    def event_names(self) -> tuple[str, ...]:
        return tuple(sorted({each.event_name for each in self.sightings if each.event_name}))

    def refused_by(self) -> frozenset[RefusedBy]:
        """The policies that refused the calls."""
        return frozenset(each.refused_by for each in self.sightings if each.refused_by is not None)

    def document(self) -> dict[str, object]:
        """As transitions hold it; what a scan measured is no request."""
        first, last = self.sightings[0], self.sightings[-1]
        requests = [each.request_id for each in self.calls] or [""]
        refused = sorted(self.refused_by())
        return {
            "failed_calls": len(self.calls),
            "first_request_id": requests[0],
            "last_request_id": requests[-1],
            "first_at": to_text(first.event_time),
            "last_at": to_text(last.event_time),
            "principals": list(self.principals()),
            "requests": first_and_last([each.request() for each in self.calls]),
            # What a case about callers is planned by once more, when a person has approved it.
            **({"event_names": list(self.event_names()), "refused_by": refused} if refused else {}),
        }

    def added_to(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """An older evidence's document with what was seen since: what a case stands on grows."""
        if not self.sightings:
            return dict(document)
        newer = self.document()
        requests: Any = newer.pop("requests")
        both = {
            name: sorted({*document.get(name, ()), *some})
            for name, some in newer.items()
            if isinstance(some, list)
        }
        return {
            **document,
            **both,
            "failed_calls": document["failed_calls"] + len(self.calls),
            "first_request_id": document["first_request_id"] or newer["first_request_id"],
            "last_request_id": newer["last_request_id"] or document["last_request_id"],
            "last_at": newer["last_at"],
            "principals": both["principals"][:MAXIMUM_PRINCIPALS],
            "requests": first_and_last([*document.get("requests", ()), *requests]),
        }


def first_and_last(requests: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """A few of either end, in their order."""
    first, later = requests[:REQUESTS_AT_EACH_END], requests[REQUESTS_AT_EACH_END:]
    return [*first, *later[-REQUESTS_AT_EACH_END:]]


def to_text(moment: datetime) -> str:
    """UTC with milliseconds, as every document of ours spells a time."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
