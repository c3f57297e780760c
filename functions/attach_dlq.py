"""Create a DLQ and attach it to its queue, for a case that waits for this."""

from __future__ import annotations

from functions.entry import Event, LambdaInvocation, entry
from mendq.cases.context import FixContext
from mendq.cases.receivers import Receivers
from mendq.heal.apply import DlqWriter
from mendq.heal.resume import continue_case
from mendq.model.settings import OwnerSettings
from mendq.model.steps import Owner


@entry(OwnerSettings)
def handler(event: Event, invocation: LambdaInvocation[OwnerSettings]) -> Event:
    """Continue the case that `event` names: `{"case_id", "queue_arn", "symptom"}`.

    Returns:
        The outcome (`Outcome.document`).

    Raises:
        CaseUnreadable: The event names no case (`read_case_request`).
        FactsUnavailable, CaseStoreUnavailable, StepFailed, NotificationNotSent: The caller must
            try again.
    """
    receivers = Receivers(invocation.clients.dynamodb, invocation.settings.case_table)
    attach_dlq = DlqWriter(receivers, invocation.now).write
    fix_context = invocation.make_writing_context(
        FixContext, write_steps=attach_dlq, writer=Owner.ATTACH_DLQ
    )
    return invocation.answer_case(event, continue_case(event, fix_context))
