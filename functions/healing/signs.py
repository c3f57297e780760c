"""What was seen of a case's queue since its last transition, and how long it was quiet."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from functions.healing.case import Case
from functions.healing.evidence import Evidence, EvidenceNeeded
from functions.healing.limits import Timing
from functions.healing.states import State
from functions.healing.steps import SetVisibilityTimeout

# CloudTrail delivers within about five minutes on average and promises nothing.
# https://docs.aws.amazon.com/awscloudtrail/latest/userguide/get-and-view-cloudtrail-log-files.html
CLOUDTRAIL_LAG = timedelta(minutes=15)
# A sweep looks back for six hours and comes round in one: what it has not found by then is gone.
A_SWEEP_AND_ITS_WINDOW = timedelta(hours=7)
A_QUIET_DAY = timedelta(days=1)
# What is written into the queue and has to show that it helps.
PROVING = (State.APPLIED, State.APPLIED_UNPROVEN)


class Stands(Enum):
    """What became of a case's queue and the values that it has written there."""

    OURS = "ours"
    OVERRULED = "overruled"
    GONE = "gone"
    UNMANAGED = "unmanaged"


@dataclass(frozen=True)
class Signs:
    """What was seen of a case's queue since its last transition.

    `stands` is None where nobody looked; `failures` are the newest failed calls from after
    `counts_from`; `deletes` the messages deleted since they ended, None where nobody asked or
    CloudWatch did not say. What was wrong `of_configuration` alone needs none to be proven mended.
    """

    timing: Timing
    needed: EvidenceNeeded = field(default_factory=EvidenceNeeded)
    failures: Evidence = field(default_factory=Evidence)
    deletes: int | None = None
    stands: Stands | None = None
    of_configuration: bool = False


def counts_from(case: Case, timing: Timing) -> datetime:
    """From when on a failed call speaks against what the case did.

    A change takes a while to arrive, and messages in flight keep the lease they were received with;
    their consumers, who take longer than that, are late for as long as the new lease lets them.
    """
    if case.state not in PROVING:
        return case.at
    leases = [
        int(each[value])
        for each in case.steps
        if _is_lease(each["attribute"])
        for value in ("before", "after")
    ]
    wait_seconds = timing.propagation_seconds + max(leases, default=0)
    return case.at + timedelta(seconds=wait_seconds)


def quiet_since(case: Case, signs: Signs) -> datetime:
    """Since when no failed call is known."""
    begins = counts_from(case, signs.timing)
    return max([begins, *(each.event_time for each in signs.failures.sightings)])


def quiet_at(case: Case, signs: Signs) -> datetime:
    """When silence will have lasted long enough: calls that fail now and then need a day of it.

    Where no call ever failed, what was measured has had to be measured anew.
    """
    if signs.failures.sightings:
        return quiet_since(case, signs) + A_QUIET_DAY
    stands_on_calls = bool(case.evidence["failed_calls"])
    return quiet_since(case, signs) + (
        CLOUDTRAIL_LAG if stands_on_calls else A_SWEEP_AND_ITS_WINDOW
    )


def _is_lease(attribute: str) -> bool:
    return attribute == SetVisibilityTimeout.attribute
