"""Begin, continue or stop the redrive of a case."""

from __future__ import annotations

from functions.entry import Event, LambdaInvocation, entry
from mendq.cases.receivers import Receivers
from mendq.model.names import OwnMetric
from mendq.model.settings import RedriveSettings
from mendq.model.steps import Owner
from mendq.redrive.reads import RedriveRun, RedriveStart
from mendq.redrive.redrive import TickOutcome, redrive


@entry(RedriveSettings)
def handler(event: Event, invocation: LambdaInvocation[RedriveSettings]) -> Event:
    """Begin the redrive of a case, run one tick (one short run) of it, or stop it.

    Args:
        event: `{"case_id", "queue_arn", "symptom"}`, and `"cancel": true` to stop the redrive.
        invocation: This invocation of the Lambda.

    Returns:
        The case's new state and the redrive's progress, or the reason why nothing was done.

    Raises:
        CaseUnreadable: The event names no case of this account and region.
        CaseStoreUnavailable: The case store does not answer. The next tick continues from the
            stored progress, as after each other error of `redrive` except CaseUnreadable.
    """
    receivers = Receivers(invocation.clients.dynamodb, invocation.settings.case_table)
    start_redrive = RedriveStart(invocation.settings.consent, receivers, invocation.now).write
    outcome = redrive(
        event,
        invocation.make_writing_context(
            RedriveRun, write_steps=start_redrive, writer=Owner.REDRIVE
        ),
    )
    if not isinstance(outcome, TickOutcome):
        return invocation.answer_case(event, outcome)
    # Zeros are sent only while a redrive runs, because each metric costs money in every month in
    # which it is sent.
    moved_message_counts = {
        OwnMetric.REDRIVEN_MESSAGES: outcome.sent_back_count,
        OwnMetric.QUARANTINED_MESSAGES: outcome.quarantined_count,
    }
    invocation.send_counts(moved_message_counts, should_send_zeros=True)
    invocation.send_counts({OwnMetric.ESCALATIONS: outcome.is_escalation})
    progress_document = outcome.progress.document() if outcome.progress else {}
    invocation.log.info(
        "ran a tick of a redrive", request=event, progress=progress_document, **outcome.document()
    )
    return outcome.document()
