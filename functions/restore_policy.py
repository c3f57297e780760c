"""Restore the pinned policy of a case that waits for it."""

from __future__ import annotations

from functions.entry import Event, LambdaInvocation, entry
from mendq.cases.context import FixContext
from mendq.cases.pins import Pins
from mendq.heal.restore_policy import PolicyWriter, check_restored_policy
from mendq.heal.resume import continue_case
from mendq.model.settings import OwnerSettings
from mendq.model.steps import Owner


@entry(OwnerSettings)
def handler(event: Event, invocation: LambdaInvocation[OwnerSettings]) -> Event:
    """Continue the case that `event` names: `{"case_id", "queue_arn", "symptom"}`.

    After a restore, Access Analyzer checks the queue's policy. If the policy does not pass, the
    case is escalated.

    Returns:
        The outcome (`Outcome.document`).

    Raises:
        CaseUnreadable: The event names no case (`read_case_request`).
        FactsUnavailable, CaseStoreUnavailable, StepFailed, NotificationNotSent: The caller must
            try again.
    """
    pins = Pins(invocation.clients.dynamodb, invocation.settings.case_table)
    write_policy = PolicyWriter(pins, invocation.now).write
    fix_context = invocation.make_writing_context(
        FixContext, write_steps=write_policy, writer=Owner.RESTORE_POLICY
    )
    return invocation.answer_case(
        event, check_restored_policy(continue_case(event, fix_context), fix_context)
    )
