"""Gather the evidence that decides if a due case gets a new transition.

The evidence comes from the queue, its metrics and the failed calls in the case store.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from msgspec import Struct

from mendq.aws.cloudwatch import count_deleted_messages
from mendq.aws.errors import CaseStoreUnreadable, FactsUnavailable, QueueGone, QueueRefusesUs
from mendq.aws.queue import read_queue_tags
from mendq.cases.context import ManagingContext
from mendq.cases.made_dlqs import MadeDlqs
from mendq.cases.view import CaseStoreView
from mendq.catalogue.symptom import Symptom
from mendq.follow_up.harm import measure_harm_signs
from mendq.heal.recover import read_written_attributes
from mendq.model.case import DLQ_MADE_FOR_SOURCE_KEY, Case
from mendq.model.facts import Facts
from mendq.model.harms import (
    HarmSign,
    StepDocument,
    describe_measured_harm,
    find_harm_sign,
    find_step_with_harm_sign,
    make_own_change,
)
from mendq.model.lifecycle import (
    STATES_WATCHED_FOR_HARM,
    WAITING_STATES,
    QueueStatus,
    VerificationEvidence,
    find_start_of_quiet,
)
from mendq.model.queue import parse_queue_arn, queue_arn_or_none
from mendq.model.state import STATES_UNDER_VERIFICATION, State
from mendq.notifications.own_change import describe_change_and_arrivals, describe_change_and_sign


class DueCase(Struct, frozen=True):
    """An open case that follow_up must look at now.

    Args:
        symptom: The case's symptom.
        case: The case.
        view: The case store's records about the queue and the symptom.
        context: This invocation.
    """

    symptom: Symptom
    case: Case
    view: CaseStoreView
    context: ManagingContext

    @property
    def is_verifying(self) -> bool:
        """True if follow_up must verify the fix. The redrive Lambda verifies a running redrive."""
        return self.case.state in STATES_UNDER_VERIFICATION and not self.case.is_redriving


def gather_evidence(due_case: DueCase) -> VerificationEvidence:
    """Return the evidence for the case's next transition. Read only what the case's state needs."""
    case = due_case.case
    evidence = VerificationEvidence(due_case.context.settings.timing, due_case.view.failures)
    if case.state in (*STATES_UNDER_VERIFICATION, *WAITING_STATES):
        evidence = replace(evidence, queue_status=_compare_queue_with_case(due_case))
    if case.state in STATES_WATCHED_FOR_HARM and not case.is_redriving:
        evidence = _add_harm(evidence, due_case)
    if not due_case.is_verifying:
        return evidence
    has_failed_calls = bool(case.evidence["failed_calls"])
    return replace(
        evidence,
        deletes=_count_deletes(due_case, find_start_of_quiet(case, evidence)),
        is_fault_of_configuration=due_case.symptom.is_of_configuration and not has_failed_calls,
    )


def _compare_queue_with_case(due_case: DueCase) -> QueueStatus | None:
    """Return the status of the queue, compared with the values that the case wrote.

    Return None if the queue could not be read. The values are compared only while the fix is being
    verified. At other times return None for a managed queue, unless its case must end.
    """
    case = due_case.case
    clients = due_case.context.clients
    try:
        tags = read_queue_tags(clients, case.queue_arn)
        attributes: Mapping[str, str] = {}
        if due_case.is_verifying:
            attributes = read_written_attributes(clients, case.queue_arn, case.steps)
    except QueueGone:
        return QueueStatus.GONE
    except (FactsUnavailable, QueueRefusesUs):
        return None
    if Facts(case.queue_arn, attributes, {}).is_created_after(case.at):
        return QueueStatus.GONE
    if not _is_managed(due_case, tags or {}):
        return QueueStatus.GONE if tags is None else QueueStatus.UNMANAGED
    if not due_case.is_verifying:
        return _find_status_without_verification(case, tags)
    return QueueStatus.OURS if _has_written_values(due_case, attributes) else QueueStatus.OVERRULED


def _find_status_without_verification(
    case: Case, tags: Mapping[str, str] | None
) -> QueueStatus | None:
    """Return GONE if the case must end because its queue was deleted; otherwise None.

    Call this only for a case whose fix is not being verified. `tags` is None if the queue does not
    exist. An overridden or escalated case does not end, because it may be about the missing queue.
    """
    may_be_about_missing_queue = case.state in (State.OVERRIDDEN, State.ESCALATED)
    if tags is None and not may_be_about_missing_queue:
        return QueueStatus.GONE
    return None


def _is_managed(due_case: DueCase, tags: Mapping[str, str]) -> bool:
    """Return True if the queue is managed, or is a DLQ that Mendq made for a managed source."""
    name = parse_queue_arn(due_case.case.queue_arn).name
    mode = due_case.context.settings.consent.mode_of(name, tags)
    return mode is not None or _has_managed_source(due_case, tags)


def _has_managed_source(due_case: DueCase, tags: Mapping[str, str]) -> bool:
    """Return True if the queue is a DLQ that Mendq made for a source that is still managed.

    If the source's tags or the case store's record of the DLQ cannot be read, return True, so that
    follow_up does not end the case by mistake. Raise CaseStoreUnavailable if the case store does
    not answer.
    """
    source_arn = queue_arn_or_none(str(due_case.case.evidence.get(DLQ_MADE_FOR_SOURCE_KEY, "")))
    if source_arn is None:
        return False
    context = due_case.context
    made_dlqs_store = context.open_store(MadeDlqs)
    try:
        managed_source = made_dlqs_store.find_managed_source(
            due_case.case.queue_arn, tags, [source_arn], context.clients, context.settings.consent
        )
    except (FactsUnavailable, CaseStoreUnreadable):
        return True
    return bool(managed_source)


def _has_written_values(due_case: DueCase, attributes: Mapping[str, str]) -> bool:
    """Return True if the queue's attributes still have the values that the case wrote."""
    written_value_by_attribute = {step["attribute"]: step["after"] for step in due_case.case.steps}
    step_classes = [
        step_class
        for step_class in due_case.symptom.steps
        if step_class.attribute in written_value_by_attribute
    ]
    return all(
        step_class.value_in(attributes) == written_value_by_attribute[step_class.attribute]
        for step_class in step_classes
    )


def _count_deletes(due_case: DueCase, since: datetime) -> int | None:
    """Return the number of messages that were deleted from the queue after `since`.

    Return None if CloudWatch does not answer. None is no evidence for or against the fix.
    """
    context = due_case.context
    with suppress(FactsUnavailable):
        return count_deleted_messages(context.clients, due_case.case.queue_arn, since, context.now)
    return None


def _add_harm(evidence: VerificationEvidence, due_case: DueCase) -> VerificationEvidence:
    """Return the evidence with the harm of the case's change.

    - `harm` is empty if the step has no sign, if the data shows none, if someone else changed the
      value, or if the queue was deleted. It names the change and the sign if the data shows one.
    - `harm` is None if AWS could not be read, or if CloudWatch has too little data to show the
      sign. In the second case `lacks_harm_data` is True.
    """
    case = due_case.case
    context = due_case.context
    step = find_step_with_harm_sign(case)
    if step is None:
        return evidence
    written_at = _find_last_write(due_case)
    try:
        if not _still_has_written_values(due_case):
            return evidence
        signs = measure_harm_signs(context.clients, case, written_at, context.now)
    except QueueGone:
        return evidence
    except (FactsUnavailable, QueueRefusesUs):
        return replace(evidence, harm=None)
    sign_text = describe_measured_harm(case, signs)
    if sign_text:
        return replace(evidence, harm=_describe_harm(due_case, step, written_at, sign_text))
    if signs.lacks_data:
        return replace(evidence, harm=None, lacks_harm_data=True)
    return evidence


def _describe_harm(
    due_case: DueCase, step: StepDocument, written_at: datetime, sign_text: str
) -> str:
    """Return sentences that name the case's change and the measured sign that it does harm."""
    case = due_case.case
    own_change = make_own_change(replace(case, at=written_at), step, case)
    shows_dlq_arrivals = find_harm_sign(case) is HarmSign.DLQ_ARRIVALS
    change_description_function = (
        describe_change_and_arrivals if shows_dlq_arrivals else describe_change_and_sign
    )
    return change_description_function(own_change, sign_text, due_case.context.now)


def _still_has_written_values(due_case: DueCase) -> bool:
    """Return True if the queue still has the values that the case wrote.

    While the fix is being verified, return True without a check, because the rules of
    `mendq.model.lifecycle` check the values then.

    Raises:
        FactsUnavailable, QueueGone, QueueRefusesUs: The queue could not be read.
    """
    if due_case.is_verifying:
        return True
    attributes = read_written_attributes(
        due_case.context.clients, due_case.case.queue_arn, due_case.case.steps
    )
    return _has_written_values(due_case, attributes)


def _find_last_write(due_case: DueCase) -> datetime:
    """Return the time of the last write to the attributes that the case changes.

    If the case store has no such write, return the time of the case's newest transition, which may
    be later than the write.
    """
    attribute_records = [due_case.view.record_of(step["attribute"]) for step in due_case.case.steps]
    write_times = [write.at for record in attribute_records for write in record.writes]
    return max(write_times, default=due_case.case.at)
