"""Reasons to ignore a failed call, whatever its queue is like.

The heal Lambda and the nightly job both ask for them: what heal ignores, the report counts as
ignored for the same reason.
"""

from __future__ import annotations

from mendq.catalogue import match
from mendq.model.account_and_region import AccountAndRegion
from mendq.model.failed_call import FailedCall


def why_ignored(call: FailedCall, here: AccountAndRegion) -> str | None:
    """Return the code of the first reason to ignore `call`, or None if Mendq must handle it.

    `docs/runbooks/README.md` explains each code. A call that may be a race is no evidence of a
    fault, but its queue is measured.
    """
    symptom = match(call)
    is_race = call.may_be_a_race
    if here.purpose_of(call.principal_arn) is not None:
        return "own_call"
    if symptom is None:
        return "unknown_code"
    if symptom.plan is None and not is_race:
        return "count_only"
    if call.queue_arn is None:
        return "unresolved_queue"
    if not here.holds(call.queue_arn):
        return "elsewhere"
    if is_race:
        return "may_be_a_race"
    if not symptom.speaks(call):
        return "no_evidence"
    return None
