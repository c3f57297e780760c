"""How a scene ended: every value of queue, case store and case bucket, and the pages sent."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mendq.model.case import Severity
from mendq.model.lifecycle import FOLLOW_UP_TRANSITIONS
from mendq.model.other_transitions import TRANSITIONS_NOT_BY_FOLLOW_UP
from mendq.model.state import State
from tests.account.account import Account

# What differs between two runs that end the same: times, and which invocation it was.
_TIMES = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?(Z|\+00:00)?|\b1\d{9}(\.\d+)?\b"
    r"| +\+\d+ (d|h|min|s)( \d+ (h|min|s))? +"  # how long after the first failure
)
# A page does not wait for CloudTrail: where its answer is lost, the page says that.
_NOT_SAID_BY_CLOUDTRAIL = re.compile(r"not known: CloudTrail did not say \(ReadTimeoutError\)")
_NOBODY = "nobody in the 90 days that CloudTrail keeps; it may lag by minutes"
_INVOCATIONS = re.compile(r"invocation-\d+")


def may_transition(out_of: State | None, into: State) -> bool:
    """Return True if a case may move from one state into the other. None: the case opens."""
    moves = (
        (transition.states_before or (None,), transition.state_after)
        for transition in (*FOLLOW_UP_TRANSITIONS, *TRANSITIONS_NOT_BY_FOLLOW_UP)
    )
    return any(into is to and out_of in states for states, to in moves)


@dataclass(frozen=True)
class Ending:
    """`over` where the last turn said so; `left` by its place, without times and invocations.

    `unlisted` are the transitions that the page of states does not know.
    The account's counters of writes and pages are left out: what is tried twice costs twice.
    """

    left: dict[str, str]
    states: tuple[str, ...]
    over: bool
    claimed: bool = False
    pages: Counter[str] = field(default_factory=Counter)
    unlisted: tuple[str, ...] = ()

    def differs_from(self, other: Ending) -> list[str]:
        """The places where they do."""
        places = self.left.keys() | other.left.keys()
        return sorted(place for place in places if self.left.get(place) != other.left.get(place))

    @property
    def is_overridden(self) -> bool:
        """The careful side: what may be a person's value is told and left."""
        return self.states[-1:] == ("overridden",) and not self.claimed

    @property
    def queue(self) -> dict[str, str]:
        return {place: value for place, value in self.left.items() if place.startswith("/queue/")}


def ending_of(account: Account, queue_arn: str, *, over: bool) -> Ending:
    """As the account stands now."""
    cases = account.transitions()
    case_store = {
        f"{'case' if pk.startswith('case#') else 'queue'} {sk}": item
        for (pk, sk), item in account.case_store_items().items()
        if pk == queue_arn or pk.startswith("case#")
    }
    everything = {
        "queue": account.attributes(queue_arn),
        "others": {
            other_arn: account.attributes(other_arn)
            for other_arn in others_than(queue_arn, account)
        },
        "case_store": case_store,
        "cases": dict(enumerate(cases)),
    }
    pages = [text for severity in Severity for text in account.pages(severity)]
    return Ending(
        left=dict(_places(everything)),
        states=tuple(case["to"] for case in cases),
        over=over,
        claimed=any("claim_owner" in item for item in case_store.values()),
        pages=Counter(_said_by_all(_timeless(json.dumps(page))) for page in pages),
        unlisted=list_unknown_transitions(cases),
    )


def others_than(queue_arn: str, account: Account) -> Iterator[str]:
    """The queues that were made beside it."""
    prefix = queue_arn.rpartition(":")[0]
    for url in account.clients.sqs.list_queues().get("QueueUrls", []):
        other = f"{prefix}:{url.rpartition('/')[2]}"
        if other != queue_arn:
            yield other


def list_unknown_transitions(cases: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    moved = ((case["from"], case["to"]) for case in cases)
    return tuple(
        f"{before} to {after}"
        for before, after in moved
        if not may_transition(State(before) if before else None, State(after))
    )


def _places(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _places(inner, f"{place}/{_timeless(str(name))}")
    else:
        yield place, _timeless(json.dumps(value, sort_keys=True, default=str))


def _said_by_all(page: str) -> str:
    return _NOT_SAID_BY_CLOUDTRAIL.sub(_NOBODY, page)


def _timeless(text: str) -> str:
    return _INVOCATIONS.sub("<invocation>", _TIMES.sub("<time>", text))
