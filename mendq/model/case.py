"""Cases: Mendq's record of one symptom of one queue.

A case lasts from the transition that opens it to the transition that ends it. A `Case` describes
the case after one of its transitions, usually the newest. `mendq.model.state` lists the states of a
case, `mendq.model.lifecycle` decides when a case moves, and `mendq.model.evidence` defines the
failed calls and scan findings on which a case is based.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import MAXYEAR, datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Any, NotRequired, Self, TypedDict, Unpack

from mendq.model.evidence import Evidence
from mendq.model.limits import Timing
from mendq.model.queue import parse_queue_arn
from mendq.model.shared_default import SharedDefault, read_shared_default
from mendq.model.state import (
    FINAL_STATES,
    STATES_UNDER_VERIFICATION,
    STATES_WITH_FIX_IN_PLACE,
    TIME_LIMIT_GRACE,
    State,
    find_state_time_limit,
)
from mendq.model.steps import AttributeStep, RedriveMessages
from mendq.model.time_text import format_time

TRANSITION_SCHEMA_NUMBER = 1
# The events on the account's default bus. docs/integrations.md describes them.
EVENT_SOURCE = "mendq"
TRANSITION_EVENT = "Mendq case transition"
NOTIFICATION_EVENT = "Mendq notification"
# The refusal code of a case that ended because its queue was deleted.
QUEUE_DELETED_CODE = "queue_deleted"
# A key in a case's evidence. The value is the id of a case whose change did not help or was rolled
# back. While the key is there, Mendq only proposes plans for the queue and symptom. A person's
# approval removes it.
MODE_LOWERED_BY_CASE_KEY = "lowered_by"
# A key in the evidence of a case about an unmanaged DLQ that Mendq made. The value is the managed
# source for which Mendq made the DLQ.
DLQ_MADE_FOR_SOURCE_KEY = "made_for"
# A key in the evidence of a case that plans a redrive. The value is the digest of the source's
# policy and KMS key when the redrive was planned (`mendq.model.receiver.make_access_digest`).
SOURCE_ACCESS_KEY = "source_access"

# The keys that a transition's document must have.
_DOCUMENT_KEYS = (
    "notified",
    "urgent",
    "next_step",
    "case_id",
    "n",
    "at",
    "from",
    "to",
    "queue_arn",
    "symptom",
    "reason",
    "evidence",
    "steps",
    "actor",
)
# Documents of older versions do not have these keys.
_DEFAULT_VALUE_BY_KEY: Mapping[str, Any] = {"urgent": False, "next_step": {}}


@dataclass(frozen=True, kw_only=True)
class NotificationState:
    """The notification about a transition: if people get one, and what they can do next.

    Attributes:
        notified: True if people are notified of the transition. Mendq may send the notification
            later.
        urgent: True if the notification is urgent.
        next_step: A sentence, a command and a runbook. Empty if the transition is not recorded yet,
            or if an older version recorded it.
    """

    notified: bool = False
    urgent: bool = False
    next_step: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Case(NotificationState):
    """A case after one of its transitions, usually the newest.

    Attributes:
        case_id: The case's id. It begins with the symptom.
        n: The number of the transition, from 1.
        at: When the transition happened.
        came_from: The state before the transition; None if it opened the case.
        state: The state after the transition.
        queue_arn: The queue.
        symptom: The symptom's name.
        reason: Why the case moved, for people.
        evidence: The failed calls, or a scan's measurement, as a JSON object.
        steps: The plan's steps as JSON objects.
        actor: Who moved the case: a Lambda, or the name or ARN of a person.
        code: The refusal's code; empty without a refusal.
        opened_at: When the case opened; None if it is not known. It is not part of the document,
            because the case store keeps it in an attribute of its own.
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
        """Return the transition as a JSON object for the case bucket and the case store.

        The order of the keys must not change, because the case store compares documents as text.
        """
        queue = parse_queue_arn(self.queue_arn)
        return {
            "notified": self.notified,
            "urgent": self.urgent,
            "next_step": dict(self.next_step),
            "case_id": self.case_id,
            "n": self.n,
            "at": format_time(self.at),
            "from": self.came_from,
            "to": self.state,
            "queue_arn": self.queue_arn,
            "symptom": self.symptom,
            "reason": self.reason,
            "evidence": dict(self.evidence),
            "steps": [dict(step) for step in self.steps],
            "actor": self.actor,
            "schema": TRANSITION_SCHEMA_NUMBER,
            "code": self.code,
            "account": queue.account,
            "region": queue.region,
        }

    @classmethod
    def from_document(
        cls, document: Mapping[str, Any], code: str = "", opened_at: datetime | None = None
    ) -> Self:
        """Return the transition in a stored document. This is the inverse of `document`.

        Raise KeyError, TypeError or ValueError if the document is not valid.

        Args:
            document: The stored document, perhaps by an older version of Mendq.
            code: The refusal's code. If it is empty, the code in the document is used.
            opened_at: When the case opened; None if the caller does not know it.
        """
        document = {**_DEFAULT_VALUE_BY_KEY, **document}
        for key in _DOCUMENT_KEYS:
            if key not in document:
                raise KeyError(key)
        stored_code = document.get("code")
        if not code and isinstance(stored_code, str):
            code = stored_code
        transition_number = int(document["n"])
        transition_at = datetime.fromisoformat(document["at"])
        came_from = State(document["from"]) if document["from"] else None
        state = State(document["to"])
        steps = _read_steps(document["steps"])
        evidence = document["evidence"]
        _check_evidence(evidence, transition_at)
        next_step = document["next_step"]
        parse_queue_arn(document["queue_arn"])
        return cls(
            notified=document["notified"],
            urgent=document["urgent"],
            next_step=next_step if isinstance(next_step, Mapping) else {},
            case_id=document["case_id"],
            n=transition_number,
            at=transition_at,
            came_from=came_from,
            state=state,
            queue_arn=document["queue_arn"],
            symptom=document["symptom"],
            reason=document["reason"],
            evidence=evidence,
            steps=steps,
            actor=document["actor"],
            code=code,
            opened_at=opened_at,
        )

    def key(self) -> str:
        """Return the S3 key of this transition in the case bucket.

        The key depends only on the transition, so storing a transition twice writes one object.
        """
        return f"cases/dt={self.at:%Y-%m-%d}/{self.transition}.json"

    @property
    def transition(self) -> str:
        """The name of this transition: the case's id and the transition's number."""
        return f"{self.case_id}-{self.n}"

    @property
    def callers(self) -> tuple[str, ...]:
        """The principals whose calls failed, or only the symptom's name if none is known.

        For example, no principal is known if a scan found the fault.
        """
        principals = self.evidence.get("principals", ())
        return tuple(principal for principal in principals if principal) or (self.symptom,)

    @property
    def is_final(self) -> bool:
        """True if the case has ended."""
        return self.state in FINAL_STATES

    @property
    def is_approved_by_person(self) -> bool:
        """True if the case is approved by a person, and not by the settings."""
        return self.state is State.APPROVED and self.came_from is State.PROPOSED

    @property
    def is_redriving(self) -> bool:
        """True if the case's redrive is running.

        The redrive Lambda continues a redrive each minute until it ends. Until then, the case's
        state has no time limit.
        """
        if self.state is not State.APPLIED:
            return False
        return any(step["attribute"] == RedriveMessages.attribute for step in self.steps)

    @property
    def shared_default(self) -> SharedDefault | None:
        """The shared default to which the case belongs; None if it belongs to none."""
        return read_shared_default(self.evidence)

    @property
    def follows_first_case(self) -> bool:
        """True if the case belongs to a shared default and another queue of it is fixed first."""
        shared_default = self.shared_default
        return shared_default is not None and shared_default.first_case_id != self.case_id

    def find_time_limit(self, timing: Timing) -> timedelta | None:
        """Return how long the case may stay in its state; None if there is no limit.

        A running redrive has no limit. An approved case of a shared default also has the time in
        which the first queue may be approved, fixed and verified.
        """
        if self.is_redriving:
            return None
        time_limit = find_state_time_limit(self.state, timing)
        if time_limit is None or self.state is not State.APPROVED or not self.follows_first_case:
            return time_limit
        for state in (State.APPROVED, *STATES_UNDER_VERIFICATION):
            time_limit += find_state_time_limit(state, timing) or timedelta(0)
        return time_limit

    def is_open(self, now: datetime, timing: Timing) -> bool:
        """Return True if the case is open. No second case of its queue and symptom may open then.

        A case counts as ended TIME_LIMIT_GRACE after its state's time limit, even if follow_up has
        not ended it. Otherwise Mendq could not fix the queue while follow_up is down.
        """
        if self.is_final:
            return False
        time_limit = self.find_time_limit(timing)
        return time_limit is None or now < self.at + time_limit + TIME_LIMIT_GRACE

    def move_to(self, state: State, reason: str, now: datetime, **changes: Any) -> Case:
        """Return the case with a further transition.

        Args:
            state: The new state.
            reason: Why the case moves, for people.
            now: The time of the transition.
            changes: Values of `actor`, `code`, `evidence` and `steps`. By default, `actor` is
                `follow_up`, `code` is empty, and the others stay the same.
        """
        evidence = self._make_next_evidence(state, changes.pop("evidence", self.evidence))
        code_and_actor = {"code": "", "actor": "follow_up", **changes}
        return replace(
            self,
            n=self.n + 1,
            at=now,
            came_from=self.state,
            state=state,
            reason=reason,
            notified=False,
            urgent=False,
            next_step={},
            evidence=evidence,
            **code_and_actor,
        )

    def _make_next_evidence(self, state: State, evidence: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the evidence for the next state, with MODE_LOWERED_BY_CASE_KEY added or removed.

        It is added if the case's change did not help, may do harm or was rolled back, and removed
        by an approval.
        """
        has_fix_failed = state is State.ESCALATED and self.state in STATES_WITH_FIX_IN_PLACE
        if state is State.ROLLED_BACK or has_fix_failed:
            return {**evidence, MODE_LOWERED_BY_CASE_KEY: self.case_id}
        is_approved = state is State.APPROVED
        return {
            name: value
            for name, value in evidence.items()
            if not (is_approved and name == MODE_LOWERED_BY_CASE_KEY)
        }

    def renumber_after(self, newest_case: Case | None) -> Case:
        """Return this transition, changed to follow `newest_case`, the newest stored transition.

        If another transition of the same case was stored meanwhile, this transition gets the next
        number, the stored state as `came_from`, and a time that is not before the stored one.
        Otherwise it is returned unchanged.
        """
        if newest_case is None or newest_case.case_id != self.case_id or newest_case.n < self.n:
            return self
        return replace(
            self, n=newest_case.n + 1, came_from=newest_case.state, at=max(self.at, newest_case.at)
        )

    def is_repeated_by(self, newer_case: Case) -> bool:
        """Return True if `newer_case`, a newer case or transition, would tell people nothing new.

        State, code and steps are compared. Reasons are not, because often only numbers in them
        differ. Two refused cases count as the same even with different codes, because the refusals
        of a queue alternate.
        """
        if self.state is newer_case.state is State.REFUSED:
            return True
        return (self.state, self.code, self.steps) == (
            newer_case.state,
            newer_case.code,
            newer_case.steps,
        )

    @property
    def is_rollback(self) -> bool:
        """True if this transition rolled the case's change back.

        An operator's rollback is done even during a freeze, and if the limit of writes is reached.
        An automatic rollback is not.
        """
        return self.state is State.ROLLED_BACK

    @property
    def news(self) -> str:
        """The state and the refusal code as one text.

        Of two notifications about a case with the same text, the second repeats the first.
        """
        return f"{self.state}:{self.code}"


def _read_steps(stored_steps: Any) -> tuple[Mapping[str, str], ...]:
    """Return copies of the stored steps. Raise TypeError or ValueError if they are not valid."""
    step_documents = tuple({**step} for step in stored_steps)
    if not all(isinstance(text, str) for step in step_documents for text in step.values()):
        raise TypeError("a step of its is no texts by name")
    return step_documents


def _check_evidence(evidence: Any, transition_at: datetime) -> None:
    """Raise TypeError or ValueError if the stored evidence or one of its times is not valid.

    `transition_at` is the time of the transition, which is checked too.
    """
    if not isinstance(evidence, Mapping):
        raise TypeError("its evidence is no mapping")
    stored_times = [evidence[name] for name in ("first_at", "last_at") if evidence.get(name)]
    for time in (transition_at, *map(datetime.fromisoformat, stored_times)):
        # Mendq adds durations to these times, which could raise an error in the last year.
        if time.tzinfo is None or time.year == MAXYEAR:
            raise ValueError(f"{time} is no time of a case")
    read_shared_default(evidence)
    for name, expected_type in (("failed_calls", int), ("principals", list), ("requests", list)):
        if not isinstance(evidence.get(name, expected_type()), expected_type):
            raise TypeError(f"its evidence's {name} is no {expected_type.__name__}")
    for request in evidence.get("requests", ()):
        is_mapping = isinstance(request, Mapping)
        if not is_mapping or not all(isinstance(text, str) for text in request.values()):
            raise TypeError("its evidence's requests is no list of texts by name")


class OpeningDetails(TypedDict):
    """Details of a case's first transition: reason, actor, and optionally a refusal's code."""

    reason: str
    actor: str
    code: NotRequired[str]


def start_case(  # noqa: PLR0913 - each is one column of the transition
    state: State,
    *,
    queue_arn: str,
    symptom: str,
    evidence: Evidence,
    steps: tuple[AttributeStep, ...],
    now: datetime,
    previous: Case | None = None,
    **details: Unpack[OpeningDetails],
) -> Case:
    """Return the first transition of a new case.

    The case's id depends on the queue, the symptom, the day, and the previous case of the queue and
    symptom. So two runs that open the case at the same time give it the same id, and so does a run
    that repeats the work of a dead run.
    """
    previous_id = previous.case_id if previous else ""
    case_digest = sha256(f"{queue_arn} {symptom} {previous_id} {now:%Y-%m-%d}".encode()).hexdigest()
    return Case(
        case_id=f"{symptom}-{case_digest[:12]}",
        n=1,
        at=now,
        came_from=None,
        state=state,
        queue_arn=queue_arn,
        symptom=symptom,
        evidence=evidence.document(),
        steps=tuple(step.document() for step in steps),
        opened_at=now,
        **details,
    )


# The time after which a notification about a case may be repeated.
# `mendq.notifications.announcements` gives the reason.
REPEAT_NOTIFICATION_AFTER = timedelta(hours=24)


class Severity(StrEnum):
    """The urgency of a notification. Each severity has its own topic."""

    URGENT = "urgent"
    INFO = "info"
