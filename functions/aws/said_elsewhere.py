"""People are asked once for a queue that is missing, however many name it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from functions.aws.managed_queues import ManagedQueue
from functions.aws.open_cases import OpenCase
from functions.aws.run import Group, Run
from functions.healing.managed import Consent
from functions.healing.plan import Refusal
from functions.healing.queue_names import parts_of
from functions.healing.shared_target import asks_for, one_for_each
from functions.healing.sweeping import Finding


def said_of_another(group: Group, about: str, run: Run) -> Refusal | None:
    """`about` is the queue that is missing, empty where none is; people are asked once for it.

    A sweep names the queues with such a case; what it asks for, the ledger says. A case of the
    queue's own comes first. Raises LedgerUnavailable or LedgerUnreadable.
    """
    name = group.symptom.name
    for queue_arn in group.shared.open_at if about else ():
        case = run.ledger.look(queue_arn, name, ()).case
        is_open = case is not None and case.is_open(run.now, run.settings.timing)
        if case is not None and is_open and asks_for(case, about):
            reason = f"case {case.case_id} of {queue_arn} asks for {about} already"
            return Refusal("said_of_another", reason, becomes=None)
    return None


def spoken_for(
    findings: Iterable[Finding],
    managed: Iterable[ManagedQueue],
    open_cases: Sequence[OpenCase],
    consent: Consent,
) -> list[Finding]:
    """One finding for each missing queue, with those who may have asked for it before."""
    tags = {each.queue_arn: each.tags for each in managed}
    topics = {f"{each.queue_arn} {each.symptom}" for each in open_cases}
    kept = one_for_each(
        findings, topics, lambda arn: consent.mode_of(parts_of(arn).name, tags.get(arn, {}))
    )
    open_at: dict[str, list[str]] = defaultdict(list)
    for case in open_cases:
        open_at[case.symptom].append(case.queue_arn)
    return [
        replace(each, open_at=tuple(arn for arn in open_at[each.symptom] if arn != each.queue_arn))
        if each.about
        else each
        for each in kept
    ]
