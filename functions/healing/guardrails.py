"""Every reason not to act, in the order they are asked; each answers with a refusal or None.

They apply to every plan alike. What is asked of a call, of the queue, of the case and of the plan
comes in four rows, because each row needs a further look at the account.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from functions.healing.evidence import STALE_AFTER, Evidence, EvidenceNeeded
from functions.healing.failed_call import FailedCall
from functions.healing.ledger_view import LedgerView
from functions.healing.limits import Limits, Timing
from functions.healing.mode import Mode
from functions.healing.plan import Refusal
from functions.healing.proposal import Proposal
from functions.healing.queue_names import partition_of, parts_of
from functions.healing.write_guardrails import contested, too_often, too_soon

FUTURE_AFTER = timedelta(minutes=5)
# What a claim, two reads, a write and a record may take together.
SECONDS_TO_WRITE = 15
# What a write, once claimed, and its record may still take.
SECONDS_TO_RECORD = 8
# So few queues are a coincidence, however small the account.
FEW_QUEUES = 3
# So many drills of an hour are practice; beyond it somebody has tagged other queues.
MOST_DRILLS = 20


@dataclass(frozen=True)
class Home:
    """Where this Mendq runs, and the role ARNs it runs under."""

    account: str
    region: str
    own_roles: tuple[str, ...]


def own_call(call: FailedCall, home: Home) -> Refusal | None:
    if call.principal_arn in home.own_roles:
        return Refusal("own_call", "the call was Mendq's own", becomes=None)
    return None


def elsewhere(call: FailedCall, home: Home) -> Refusal | None:
    queue = parts_of(call.queue_arn) if call.queue_arn else None
    here = (partition_of(home.region), home.region, home.account)
    if queue is None or queue[:3] != here:
        return Refusal("elsewhere", "the queue is in another account or region", becomes=None)
    return None


def not_managed(mode: Mode | None) -> Refusal | None:
    if mode is None:
        return Refusal("not_managed", "the queue is not managed by Mendq", becomes=None)
    return None


@dataclass(frozen=True)
class Situation:
    """All that is known before the queue itself is looked at.

    `writes`: whether a plan would be carried out; where it is only told, nothing is to be frozen.
    """

    view: LedgerView
    fresh_calls: int
    evidence: Evidence
    evidence_needed: EvidenceNeeded
    owner: str
    now: datetime
    timing: Timing
    writes: bool = True


def frozen(situation: Situation) -> Refusal | None:
    if situation.writes and situation.view.frozen is not None:
        return Refusal("frozen", f"changes are frozen: {situation.view.frozen}")
    return None


def stale_or_future(situation: Situation) -> Refusal | None:
    if not situation.fresh_calls:
        reason = "every failed call is older than 60 minutes, ahead of the clock, or says nothing"
        return Refusal("stale_or_future", reason, becomes=None)
    return None


def too_little_evidence(situation: Situation) -> Refusal | None:
    if not situation.evidence.suffices(situation.evidence_needed):
        needed = situation.evidence_needed
        return Refusal(
            "too_little_evidence",
            f"fewer than {needed.distinct_events} distinct failed calls "
            f"in {needed.within_seconds} s",
            becomes=None,
        )
    return None


def case_already_open(situation: Situation) -> Refusal | None:
    case = situation.view.case
    if case is not None and case.is_open(situation.now, situation.timing):
        return Refusal("case_already_open", f"case {case.case_id} is {case.state}", becomes=None)
    return None


def claimed_by_another(situation: Situation) -> Refusal | None:
    if situation.view.held_by_another(situation.owner, situation.now):
        return Refusal("claimed", "another run is at work on it", becomes=None, again=True)
    return None


def out_of_bounds(proposal: Proposal) -> Refusal | None:
    for step in proposal.plan.steps:
        fault = step.out_of_bounds()
        if fault:
            return Refusal("out_of_bounds", fault)
    return None


def are_many(queues: int, managed_queues: int, limits: Limits) -> bool:
    """Whether so many of the managed queues show a symptom that it cannot be theirs alone."""
    return queues > max(FEW_QUEUES, limits.mass_symptom_share * managed_queues)


def mass_symptom(proposal: Proposal) -> Refusal | None:
    """What many queues show at once has a cause that is not theirs.

    It is about what would be written, so of itself it is nothing to tell where Mendq only watches.
    """
    if proposal.is_drill:
        return _too_many_drills(proposal.queues_with_symptom)
    if not are_many(proposal.queues_with_symptom, proposal.managed_queues, proposal.limits):
        return None
    reason = (
        f"{proposal.queues_with_symptom} of {proposal.managed_queues} managed queues show it "
        "within the hour: the cause is not this queue's"
    )
    return Refusal("mass_symptom", reason, silent_in_observe=True)


def _too_many_drills(queues: int) -> Refusal | None:
    if queues <= MOST_DRILLS:
        return None
    reason = f"{queues} drills within the hour: at most {MOST_DRILLS} are mended"
    return Refusal("mass_symptom", reason, silent_in_observe=True)


def too_little_time(proposal: Proposal) -> Refusal | None:
    if proposal.remaining_seconds < SECONDS_TO_WRITE:
        reason = "too little of the Lambda's time is left to write and record"
        return Refusal("too_little_time", reason, becomes=None, again=True)
    return None


def is_fresh(call: FailedCall, now: datetime) -> bool:
    """Whether a call says something about the queue as it is now."""
    return -FUTURE_AFTER <= now - call.event_time <= STALE_AFTER


ON_CALL = (own_call, elsewhere)
ON_CASE = (frozen, stale_or_future, too_little_evidence, case_already_open, claimed_by_another)
ON_PLAN = (contested, out_of_bounds, too_soon, too_often, mass_symptom, too_little_time)


Subject = TypeVar("Subject")


def first_refusal(
    guardrails: Iterable[Callable[[Subject], Refusal | None]], subject: Subject
) -> Refusal | None:
    """The answer of the first guardrail that has one."""
    return next((refusal for each in guardrails if (refusal := each(subject))), None)


def first_refusal_of_call(call: FailedCall, home: Home) -> Refusal | None:
    """What speaks against a call before anything is looked at."""
    return next((refusal for each in ON_CALL if (refusal := each(call, home))), None)
