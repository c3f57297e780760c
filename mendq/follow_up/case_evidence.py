"""Gather the evidence that decides if a due case moves: its queue's values, metrics and calls."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from msgspec import Struct

from mendq.aws.cloudwatch import messages_deleted
from mendq.aws.errors import CaseStoreUnreadable, FactsUnavailable, QueueGone, QueueRefusesUs
from mendq.aws.queue import tags_of
from mendq.cases.context import ManagingContext
from mendq.cases.made_dlqs import MadeDlqs
from mendq.cases.view import CaseStoreView
from mendq.catalogue.symptom import Symptom
from mendq.follow_up.harm import signs_since
from mendq.heal.recover import read_written_attributes
from mendq.model.case import MADE_FOR_KEY, STATES_UNDER_VERIFICATION, Case, State
from mendq.model.facts import Facts
from mendq.model.harms import (
    Sign,
    describe_harm_shown,
    find_sign,
    find_step_to_watch,
    make_own_change,
)
from mendq.model.lifecycle import (
    STATES_WATCHED_FOR_HARM,
    WAITING_STATES,
    QueueStatus,
    VerificationEvidence,
    quiet_since,
)
from mendq.model.queue import arn_of, parts_of
from mendq.notifications.own_change import say_what_arrived, say_what_shows


class DueCase(Struct, frozen=True):
    """An open case that is due, with its symptom, the case store's records and the invocation."""

    symptom: Symptom
    case: Case
    view: CaseStoreView
    context: ManagingContext

    @property
    def is_proving(self) -> bool:
        """True if follow_up must verify the fix. A running redrive is verified by its owner."""
        return self.case.state in STATES_UNDER_VERIFICATION and not self.case.is_redriving


def gather_evidence(due: DueCase) -> VerificationEvidence:
    """Read the evidence that the case's state needs, and nothing else."""
    case = due.case
    evidence = VerificationEvidence(due.context.settings.timing, due.view.failures)
    if case.state in (*STATES_UNDER_VERIFICATION, *WAITING_STATES):
        evidence = replace(evidence, queue_status=_compare_queue(due))
    if case.state in STATES_WATCHED_FOR_HARM and not case.is_redriving:
        evidence = replace(evidence, harm=_measure_harm(due))
    if not due.is_proving:
        return evidence
    has_failed_calls = bool(case.evidence["failed_calls"])
    return replace(
        evidence,
        deletes=_count_deletes(due, quiet_since(case, evidence)),
        of_configuration=due.symptom.is_of_configuration and not has_failed_calls,
    )


def _compare_queue(due: DueCase) -> QueueStatus | None:
    """Compare the queue with the values that the case wrote.

    Return None if the queue could not be read, or if its status does not matter for this case.
    """
    case = due.case
    clients = due.context.clients
    try:
        tags = tags_of(clients, case.queue_arn)
        attributes: Mapping[str, str] = {}
        if due.is_proving:
            attributes = read_written_attributes(clients, case.queue_arn, case.steps)
    except QueueGone:
        return QueueStatus.GONE
    except (FactsUnavailable, QueueRefusesUs):
        return None
    if Facts(case.queue_arn, attributes, {}).is_created_after(case.at):
        return QueueStatus.GONE
    if not _is_managed(due, tags or {}):
        return QueueStatus.GONE if tags is None else QueueStatus.UNMANAGED
    if not due.is_proving:
        return _check_if_gone(case, tags)
    return QueueStatus.OURS if _has_our_values(due, attributes) else QueueStatus.OVERRULED


def _check_if_gone(case: Case, tags: Mapping[str, str] | None) -> QueueStatus | None:
    """Return GONE if the queue of a waiting case does not exist, because that ends the case.

    Return None for an overridden or escalated case, because the missing queue may be its subject.
    """
    may_be_about_missing_queue = case.state in (State.OVERRIDDEN, State.ESCALATED)
    if tags is None and not may_be_about_missing_queue:
        return QueueStatus.GONE
    return None


def _is_managed(due: DueCase, tags: Mapping[str, str]) -> bool:
    """Return True if the queue is managed, or is a DLQ that Mendq made for a managed source."""
    name = parts_of(due.case.queue_arn).name
    mode = due.context.settings.consent.mode_of(name, tags)
    return mode is not None or _has_managed_source(due, tags)


def _has_managed_source(due: DueCase, tags: Mapping[str, str]) -> bool:
    """Return True if the queue is a DLQ that Mendq made for a source that is still managed.

    Return True also if the source's tags or the case store cannot be read, so that the case is not
    ended by mistake.
    """
    source_arn = arn_of(str(due.case.evidence.get(MADE_FOR_KEY, "")))
    if source_arn is None:
        return False
    context = due.context
    made_dlqs = context.stored(MadeDlqs)
    try:
        managed_source = made_dlqs.managed_source(
            due.case.queue_arn, tags, [source_arn], context.clients, context.settings.consent
        )
    except (FactsUnavailable, CaseStoreUnreadable):
        return True
    return bool(managed_source)


def _has_our_values(due: DueCase, attributes: Mapping[str, str]) -> bool:
    """Return True if the queue's attributes still have the values that the case wrote."""
    written = {step["attribute"]: step["after"] for step in due.case.steps}
    kinds = [kind for kind in due.symptom.steps if kind.attribute in written]
    return all(kind.value_in(attributes) == written[kind.attribute] for kind in kinds)


def _count_deletes(due: DueCase, since: datetime) -> int | None:
    """Return the number of messages that were deleted from the queue after `since`.

    Return None if CloudWatch does not answer. None is no evidence for or against the fix.
    """
    context = due.context
    with suppress(FactsUnavailable):
        return messages_deleted(context.clients, due.case.queue_arn, since, context.now)
    return None


def _measure_harm(due: DueCase) -> str | None:
    """Return a sentence that names the case's change and the signs that it may do harm.

    Return an empty text if there are no such signs, and None if they could not be measured.
    """
    case = due.case
    context = due.context
    step = find_step_to_watch(case)
    if step is None:
        return ""
    written_at = _find_last_write(due)
    try:
        if not _stands_as_written(due):
            return ""
        signs = signs_since(context.clients, case, written_at, context.now)
    except QueueGone:
        return ""
    except (FactsUnavailable, QueueRefusesUs):
        return None
    shown = describe_harm_shown(case, signs)
    if not shown:
        return ""
    change = make_own_change(replace(case, at=written_at), step, case)
    moves_messages = find_sign(case) is Sign.DLQ_ARRIVALS
    say = say_what_arrived if moves_messages else say_what_shows
    return say(change, shown, context.now)


def _stands_as_written(due: DueCase) -> bool:
    """Return False if a person changed the value that the case wrote.

    Return True while the fix is being verified, because the lifecycle's rules check the value then.

    Raises:
        FactsUnavailable, QueueGone, QueueRefusesUs: The queue could not be read.
    """
    if due.is_proving:
        return True
    attributes = read_written_attributes(due.context.clients, due.case.queue_arn, due.case.steps)
    return _has_our_values(due, attributes)


def _find_last_write(due: DueCase) -> datetime:
    """Return the time of the case's last write to the queue.

    `case.at`, the time of the newest transition, may be later. It is returned only if the case
    store has no write of the case.
    """
    records = [due.view.record_of(step["attribute"]) for step in due.case.steps]
    times = [write.at for record in records for write in record.writes]
    return max(times, default=due.case.at)
