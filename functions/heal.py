"""Heal queues: after failed calls, after a scan's findings, or when a case continues."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

from functions.entry import Event, LambdaInvocation, entry, send_counts_by_symptom
from mendq.aws.errors import CaseStoreUnavailable, CaseUnreadable
from mendq.cases.context import FixContext
from mendq.cases.spent_metrics import SpentMetrics
from mendq.heal.apply import write_attributes
from mendq.heal.batch import BatchResult, heal_failed_calls, heal_findings
from mendq.heal.resume import continue_case
from mendq.model.settings import OwnerSettings
from mendq.model.steps import Owner

HealInvocation = LambdaInvocation[OwnerSettings]
# A log line names at most this many error codes, or callers.
MAXIMUM_LOGGED_NAMES = 20


@entry(OwnerSettings)
def handler(event: Event, invocation: HealInvocation) -> Event:
    """Call the handler for this kind of event, and return its answer.

    Count the metrics that were read in the case store, so that the scan reads fewer.

    Raises:
        CaseUnreadable: The event is of no kind that heal knows, or it names no case. The errors of
            `handle_case` are raised too.
    """
    try:
        return _handle_event(event, invocation)
    finally:
        _note_read_metrics(invocation)


def _note_read_metrics(invocation: HealInvocation) -> None:
    """Add the metrics that this invocation has read to the day's number.

    If the case store does not answer, they are not counted: the case is handled already.
    """
    clients = invocation.clients
    metric_count = clients.metric_count.take()
    if metric_count:
        store = SpentMetrics(clients.dynamodb, invocation.settings.case_table)
        with suppress(CaseStoreUnavailable):
            store.note_spent_metrics(metric_count, invocation.now)


def _handle_event(event: Event, invocation: HealInvocation) -> Event:
    if "found" in event:
        return handle_findings(event, invocation)
    if "Records" in event:
        return handle_failed_calls(event, invocation)
    if "case_id" in event:
        return handle_case(event, invocation)
    raise CaseUnreadable(f"neither failed calls, nor findings, nor a case: {event!s:.400}")


def handle_failed_calls(event: Event, invocation: HealInvocation) -> Event:
    """Heal the queues of a batch of failed calls.

    Args:
        event: Messages of the intake queue, as Lambda's poller passes them.
        invocation: This invocation of the Lambda.

    Returns:
        The messages that SQS must deliver again. A message that Mendq cannot read ends in the
        intake queue's DLQ.
    """
    body_by_message_id = {record["messageId"]: record["body"] for record in event["Records"]}
    return _answer_batch(
        heal_failed_calls(body_by_message_id, _make_context(invocation)), invocation
    )


def handle_findings(event: Event, invocation: HealInvocation) -> Event:
    """Heal the queues in which a scan found a symptom.

    Args:
        event: `{"found": [{"queue_arn", "symptom"}]}`.
        invocation: This invocation of the Lambda.

    Returns:
        An answer in the form of `handle_failed_calls`. The scan does not use it.
    """
    return _answer_batch(heal_findings(event, _make_context(invocation)), invocation)


def handle_case(event: Event, invocation: HealInvocation) -> Event:
    """Continue the case that `event` names: `{"case_id", "queue_arn", "symptom"}`.

    Returns:
        The outcome (`Outcome.document`).

    Raises:
        CaseUnreadable: The event names no case (`read_case_request`).
        QueueRefusesUs, CaseStoreUnreadable: The queue or the case store's items cannot be read.
        FactsUnavailable, CaseStoreUnavailable, StepFailed, NotificationNotSent: The caller must
            try again.
    """
    return invocation.answer_case(event, continue_case(event, _make_context(invocation)))


def _make_context(invocation: HealInvocation) -> FixContext:
    return invocation.make_writing_context(
        FixContext, write_steps=write_attributes, writer=Owner.HEAL
    )


def _answer_batch(batch_result: BatchResult, invocation: HealInvocation) -> Event:
    """Count and log the batch's outcomes. Return the messages that SQS must deliver again."""
    invocation.send_counts(batch_result.count_by_metric())
    for metric, count_by_symptom_name in batch_result.count_by_symptom_by_metric().items():
        send_counts_by_symptom(metric, count_by_symptom_name)
    _log_batch(invocation, batch_result)
    return batch_result.make_lambda_answer()


def _log_batch(invocation: HealInvocation, batch_result: BatchResult) -> None:
    """Log one line for each unexpected error, each outcome and each probe.

    If there are any, queue names that were not checked, unknown error codes and unreadable messages
    get one line each.
    """
    for error in batch_result.unexpected_errors:
        invocation.log.error(
            "a queue could not be fixed; its events are delivered again", exc_info=error
        )
    for call_group, outcome in batch_result.outcome_by_group.items():
        case = outcome.case
        refusal = outcome.refusal
        invocation.log.info(
            "looked at a queue",
            queue_arn=call_group.queue_arn,
            symptom=call_group.symptom.name,
            failed_calls=len(call_group.calls),
            refusal={"code": refusal.code, "reason": refusal.reason} if refusal else None,
            case=case.document() if case else None,
        )
    for probe in batch_result.probe_by_message_id.values():
        invocation.log.info("saw the probe", made_at=probe.event_time, spelled=probe.raw_error_code)
    if callers_with_most_skipped_names := batch_result.skipped_name_count_by_caller.most_common(
        MAXIMUM_LOGGED_NAMES
    ):
        invocation.log.warning(
            "queue names that nobody manages were left out",
            left_out=callers_with_most_skipped_names,
        )
    if unknown_error_codes := sorted(set(batch_result.unknown_error_codes)):
        invocation.log.warning(
            "error codes that Mendq does not know",
            codes=unknown_error_codes[:MAXIMUM_LOGGED_NAMES],
            all=len(unknown_error_codes),
        )
    if batch_result.unreadable_by_message_id:
        count_by_reason = Counter(
            unreadable_message.reason
            for unreadable_message in batch_result.unreadable_by_message_id.values()
        )
        invocation.log.warning(
            "unreadable events, which end in the intake queue's DLQ", reasons=count_by_reason
        )
