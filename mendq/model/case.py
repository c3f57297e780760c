"""A case: the life of one (queue, symptom), its states, and the severity people are notified
with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import MAXYEAR, datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Any, NotRequired, Self, TypedDict, Unpack

from mendq.model.evidence import Evidence, to_text
from mendq.model.limits import Mode, Timing
from mendq.model.queue import parts_of
from mendq.model.steps import AttributeStep, RedriveMessages


class State(StrEnum):
    """As the case bucket, the case store and the nightly job spell them."""

    OBSERVED = "observed"
    REFUSED = "refused"
    PROPOSED = "proposed"
    APPROVED = "approved"
    DECLINED = "declined"
    EXPIRED = "expired"
    APPLIED = "applied"
    UNVERIFIED = "unverified"
    VERIFIED = "verified"
    WATCHING = "watching"
    CLOSED = "closed"
    INEFFECTIVE = "ineffective"
    OVERRIDDEN = "overridden"
    ESCALATED = "escalated"
    ROLLED_BACK = "rolled_back"


FINAL = frozenset(
    {
        *(State.OBSERVED, State.REFUSED, State.DECLINED, State.EXPIRED),
        *(State.CLOSED, State.ROLLED_BACK),
    }
)
# What is written into the queue and has to show that it helps.
PROVING = (State.APPLIED, State.UNVERIFIED)
# What is written there, and no person has to look at it yet.
WROTE = (*PROVING, State.VERIFIED, State.WATCHING, State.INEFFECTIVE)

SCHEMA = 1
# The events on the account's default bus, which docs/integrations.md describes.
EVENT_SOURCE = "mendq"
TRANSITION_EVENT, NOTIFICATION_EVENT = "Mendq case transition", "Mendq notification"
SILENT_DAYS = 7
GRACE = timedelta(hours=1)


# The code of what came to nothing because its queue was deleted.
QUEUE_DELETED = "queue_deleted"
# In a case's evidence: which case's change did not help or was taken back. Plans for the queue and
# symptom are only proposed from then on, until a person approves one.
LOWERED = "lowered_by"
# In the evidence of a case about a DLQ that Mendq made: the managed source that it was made for, if
# the DLQ itself is not managed.
MADE_FOR = "made_for"

# Fields that a document spells otherwise, and those that stand beside it.
_SPELLED = {"came_from": "from", "state": "to"}
_BESIDE = ("code", "opened_at")


@dataclass(frozen=True, kw_only=True)
class Announced:
    """What people heard of a transition, urgently or not, and what one of them does next.

    `next_step` is a sentence, a command and a runbook; empty where an older Mendq wrote it down.
    """

    notified: bool = False
    urgent: bool = False
    next_step: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Case(Announced):
    """The newest transition of a case, as the case store keeps it; `steps` are step documents.

    `code` is the refusal's, where one was given; the case store keeps it and `opened_at` beside the
    document.
    """

    case_id: str
    n: int
    at: datetime
    came_from: State | None
    state: State
    queue_arn: str
    symptom: str
    reason: str
    evidence: Mapping[str, Any]
    steps: tuple[Mapping[str, str], ...]
    actor: str
    code: str = ""
    opened_at: datetime | None = None

    def document(self) -> dict[str, Any]:
        """The transition as the case bucket holds it."""
        queue = parts_of(self.queue_arn)
        return {
            **{_SPELLED.get(name, name): getattr(self, name) for name in _in_documents()},
            "schema": SCHEMA,
            "at": to_text(self.at),
            "code": self.code,
            "account": queue.account,
            "region": queue.region,
            "evidence": dict(self.evidence),
            "steps": [dict(step) for step in self.steps],
            "next_step": dict(self.next_step),
        }

    @classmethod
    def from_document(
        cls, document: Mapping[str, Any], code: str = "", opened_at: datetime | None = None
    ) -> Self:
        """Raise KeyError, TypeError or ValueError where `document` is none of ours.

        An older Mendq's does not say whether it was urgent, nor what to do next.
        """
        document = {"urgent": False, "next_step": {}, **document}
        said = document.get("code")
        code = code or (said if isinstance(said, str) else "")
        read = {name: document[_SPELLED.get(name, name)] for name in _in_documents()}
        read["n"] = int(read["n"])
        read["at"] = datetime.fromisoformat(read["at"])
        read["came_from"] = State(read["came_from"]) if read["came_from"] else None
        read["state"] = State(read["state"])
        read["steps"] = tuple({**step} for step in read["steps"])
        if not all(isinstance(text, str) for step in read["steps"] for text in step.values()):
            raise TypeError("a step of its is no texts by name")
        step = read["next_step"]
        read["next_step"] = step if isinstance(step, Mapping) else {}
        evidence = read["evidence"]
        if not isinstance(evidence, Mapping):
            raise TypeError("its evidence is no mapping")
        seen = filter(None, map(evidence.get, ("first_at", "last_at")))
        for moment in (read["at"], *map(datetime.fromisoformat, seen)):
            if moment.tzinfo is None or moment.year == MAXYEAR:  # no room for what is due then
                raise ValueError(f"{moment} is no time of a case")
        for name, kind in (("failed_calls", int), ("principals", list), ("requests", list)):
            if not isinstance(evidence.get(name, kind()), kind):
                raise TypeError(f"its evidence's {name} is no {kind.__name__}")
        for each in evidence.get("requests", ()):
            if not isinstance(each, Mapping) or not all(isinstance(e, str) for e in each.values()):
                raise TypeError("its evidence's requests is no list of texts by name")
        parts_of(read["queue_arn"])
        return cls(**read, code=code, opened_at=opened_at)

    def key(self) -> str:
        """Its place in the case bucket: writing it twice changes nothing."""
        return f"cases/dt={self.at:%Y-%m-%d}/{self.transition}.json"

    @property
    def transition(self) -> str:
        """Which case this is and how far it has come."""
        return f"{self.case_id}-{self.n}"

    @property
    def callers(self) -> tuple[str, ...]:
        """Whose calls failed; for what a scan found the symptom stands."""
        return tuple(filter(None, self.evidence.get("principals", ()))) or (self.symptom,)

    @property
    def is_final(self) -> bool:
        return self.state in FINAL

    @property
    def goes_on(self) -> bool:
        """Whether its owner is at work on it for as long as it takes, a little each minute."""
        redrives = (each["attribute"] == RedriveMessages.attribute for each in self.steps)
        return self.state is State.APPLIED and any(redrives)

    def is_open(self, now: datetime, timing: Timing) -> bool:
        """Whether it still speaks for its queue.

        What time alone ends is held to have ended a while later, even if nobody has said so: a
        follow-up that is down must not keep a queue from being fixed for ever.
        """
        if self.is_final:
            return False
        patience = None if self.goes_on else longest_in(self.state, timing)
        return patience is None or now < self.at + patience + GRACE

    def moved(self, to: State, reason: str, now: datetime, **over: Any) -> Case:
        """Its next transition; `over` are fields that change beside the state."""
        evidence = self._evidence_in(to, over.pop("evidence", self.evidence))
        return replace(
            self,
            n=self.n + 1,
            at=now,
            came_from=self.state,
            state=to,
            reason=reason,
            notified=False,
            urgent=False,
            next_step={},
            evidence=evidence,
            **{"code": "", "actor": "follow_up", **over},
        )

    def _evidence_in(self, to: State, evidence: Mapping[str, Any]) -> Mapping[str, Any]:
        """LOWERED is put there by a change that did not help; a person's yes takes it away."""
        if to is State.ROLLED_BACK or (to is State.ESCALATED and self.state in WROTE):
            return {**evidence, LOWERED: self.case_id}
        raised = to is State.APPROVED
        return {name: each for name, each in evidence.items() if not (raised and name == LOWERED)}

    def after(self, newest: Case | None) -> Case:
        """The same transition behind the newest one, where the case has moved meanwhile."""
        if newest is None or newest.case_id != self.case_id or newest.n < self.n:
            return self
        return replace(self, n=newest.n + 1, came_from=newest.state, at=max(self.at, newest.at))

    def says_the_same(self, other: Case) -> bool:
        """Whether `other` would only repeat it.

        The numbers in a reason move, and refusals take turns: neither is news within a cooldown.
        """
        if self.state is other.state is State.REFUSED:
            return True
        return (self.state, self.code, self.steps) == (other.state, other.code, other.steps)

    @property
    def undoes(self) -> bool:
        """Whether its steps take back what the case wrote: no freeze and no budget stops that."""
        return self.state is State.ROLLED_BACK

    @property
    def news(self) -> str:
        """What a page about it says, in a word or two."""
        return f"{self.state}:{self.code}"


class Said(TypedDict):
    """What a transition says of itself: why, by whom, and the code of the refusal, if one."""

    reason: str
    actor: str
    code: NotRequired[str]


def opened(  # noqa: PLR0913 - each is one column of the transition
    state: State,
    *,
    queue_arn: str,
    symptom: str,
    evidence: Evidence,
    steps: tuple[AttributeStep, ...],
    now: datetime,
    previous: Case | None = None,
    **said: Unpack[Said],
) -> Case:
    """The first transition of a new case, named after the case before it.

    So two runs that open one at once, or one that died and its second delivery, name the same case.
    """
    after = previous.case_id if previous else ""
    digest = sha256(f"{queue_arn} {symptom} {after} {now:%Y-%m-%d}".encode()).hexdigest()
    return Case(
        case_id=f"{symptom}-{digest[:12]}",
        n=1,
        at=now,
        came_from=None,
        state=state,
        queue_arn=queue_arn,
        symptom=symptom,
        evidence=evidence.document(),
        steps=tuple(step.document() for step in steps),
        opened_at=now,
        **said,
    )


def longest_in(state: State, timing: Timing) -> timedelta | None:
    """How long a case may be in a state by itself; None: until a person or the queue ends it."""
    hours = {
        State.PROPOSED: timing.proposal_hours,
        State.APPROVED: timing.proposal_hours,
        State.INEFFECTIVE: 24,
        State.APPLIED: timing.watch_hours,
        State.UNVERIFIED: 24 * SILENT_DAYS,
        State.VERIFIED: timing.watch_hours,
        State.WATCHING: timing.watch_hours,
    }
    return timedelta(hours=hours[state]) if state in hours else None


def _in_documents() -> list[str]:
    return [each.name for each in fields(Case) if each.name not in _BESIDE]


# More than this in an hour is read by nobody; the rest are held back, which is said in sum. Of the
# urgent ones some are kept for queues that people have not heard of, one for each caller.
NOTIFICATIONS_PER_HOUR = 20
RESERVED_FOR_NEW_CALLERS = 10
# So many callers, and the queues of as many, are named in sum.
MOST_CALLERS = 50
NOTIFIED_AGAIN_AFTER = timedelta(hours=24)


class Severity(StrEnum):
    """The topics, one each."""

    URGENT = "urgent"
    INFO = "info"


def severity_of(case: Case, mode: Mode, *, of_the_plan: bool) -> Severity | None:
    """Whom a case reaches as it stands; None: it is only written down.

    `of_the_plan` is a refusal that the queue's own facts gave: a freeze, a budget or a mass symptom
    is no news about this queue. In observe mode nothing is proposed and so nothing is declined.
    A person who approved a plan waits to hear that it came to nothing; a proposal that nobody
    answered only runs out.
    """
    is_news = {
        State.OVERRIDDEN: True,
        State.PROPOSED: True,
        State.EXPIRED: case.came_from is State.APPROVED,
        State.REFUSED: of_the_plan and mode >= Mode.PROPOSE,
    }
    if case.state is State.ESCALATED:
        return Severity.URGENT
    return Severity.INFO if is_news.get(case.state) else None
