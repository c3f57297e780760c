"""What the redrive Lambda is called for: to take a case up, to go on with it, or to stop it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from functions.aws.errors import CaseUnreadable
from functions.aws.redrive_run import RedriveRun
from functions.aws.redrive_tick import cancel, tick
from functions.aws.run import Outcome
from functions.aws.take_up import take_up
from functions.healing.queue_names import arn_of

CANCEL = "cancel"


def redrive(request: Mapping[str, Any], run: RedriveRun) -> Outcome:
    """`{"case_id", "queue_arn", "symptom"}`, with `"cancel": true` to stop what goes on.

    Raises CaseUnreadable, and what taking up or the ledger raises.
    """
    if not isinstance(request, Mapping):
        raise CaseUnreadable(f"no request: {request!r:.400}")
    if request.get(CANCEL) is True:
        return cancel(request, run)
    return tick(request, run) if _goes_on(request, run) else take_up(request, run)


def _goes_on(request: Mapping[str, Any], run: RedriveRun) -> bool:
    """Whether the case that is named is applied: else it waits to be taken up, or is over."""
    queue_arn, symptom = request.get("queue_arn"), request.get("symptom")
    if arn_of(queue_arn) is None or not isinstance(queue_arn, str) or not isinstance(symptom, str):
        raise CaseUnreadable(f"no case of ours: {str(request)[:400]}")
    case = run.ledger.look(queue_arn, symptom, ()).case
    return case is not None and case.case_id == request.get("case_id") and case.goes_on
