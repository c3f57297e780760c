"""Read everything on which a redrive depends, check if it may begin, and begin it.

To begin a redrive, Mendq raises the DLQ's retention if the plan says so. This file moves no
messages.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ListMessageMoveTasks.html
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from mendq.aws.clients import Clients
from mendq.aws.cloudwatch import count_deleted_messages
from mendq.aws.dlqs import ENDED_MOVE_TASK_STATUSES, list_confirmed_sources, list_move_tasks
from mendq.aws.errors import FactsUnavailable, QueueRefusesUs
from mendq.aws.queue import read_attributes_if_queue_exists, read_queue_attributes, read_queue_tags
from mendq.cases.context import FixContext
from mendq.cases.receivers import ReceiverMaker, Receivers
from mendq.cases.seal_keys import SealKeys
from mendq.catalogue.access.access_denied import ACCESS_DENIED
from mendq.catalogue.dlq.redrive_causes import (
    CAUSE_SYMPTOMS,
    find_redrive_objection,
    is_case_unresolved,
)
from mendq.heal.apply import refuse_if_changed_meanwhile, write_attributes
from mendq.model.consent import Consent
from mendq.model.dlq import arn_of_quarantine
from mendq.model.facts import Facts
from mendq.model.metrics import CLOUDWATCH_LAG
from mendq.model.plan import Refusal, Refuse
from mendq.model.receiver import make_access_digest
from mendq.model.settings import RedriveSettings
from mendq.model.steps import AttributeStep, Owner, RedriveMessages, RestorePolicy
from mendq.notifications.commands import redrive_elsewhere_command
from mendq.redrive.machine import Blocker, RedriveSituation
from mendq.redrive.progress import RedriveProgress, Stage

# SQS's error codes for a queue that is not a DLQ or was deleted. Such a queue has no move tasks.
_NO_MOVE_TASK_ERROR_CODES = frozenset({"ResourceNotFound", "NonExistentQueue"})


class RedriveRun(FixContext, frozen=True, kw_only=True):
    """One invocation of the redrive Lambda."""

    settings: RedriveSettings

    @property
    def seal_keys(self) -> SealKeys:
        """The keys with which Mendq seals its marks on messages."""
        return SealKeys(self.clients.dynamodb, self.settings.case_table, self.settings.seal_table)


def make_read_blocker(error: FactsUnavailable | QueueRefusesUs) -> Blocker:
    """Return the blocker for a queue that cannot be read.

    It is lasting (`is_for_good`) if the queue's own policy denies Mendq access.
    """
    if isinstance(error, QueueRefusesUs):
        return Blocker(f"a queue keeps Mendq out: {error}", is_for_good=True)
    return Blocker(str(error))


def is_move_task_running(
    clients: Clients, dlq_arn: str, no_task_error_codes: Collection[str] = _NO_MOVE_TASK_ERROR_CODES
) -> bool:
    """Return True if a message movement task runs on the DLQ. Mendq itself never starts one.

    Args:
        clients: The AWS clients.
        dlq_arn: The DLQ.
        no_task_error_codes: SQS's error codes that mean that no task runs.

    Raises:
        FactsUnavailable: SQS does not answer, or returns another error.
        QueueRefusesUs: The queue's own policy denies Mendq access.
    """
    move_tasks = list_move_tasks(clients, dlq_arn, no_task_error_codes)
    return any(move_task.get("Status") not in ENDED_MOVE_TASK_STATUSES for move_task in move_tasks)


def read_situation(
    progress: RedriveProgress, freeze_reason: str | None, run: RedriveRun
) -> RedriveSituation:
    """Return the situation of a redrive: both queues, move tasks, metrics and open cases.

    If a queue cannot be read, no error is raised, and the situation has a blocker.

    Args:
        progress: The stored progress.
        freeze_reason: Why people froze all changes, from the case store; None or empty if they did
            not.
        run: This invocation.

    Raises:
        CaseStoreUnavailable: The case store does not answer.
        CaseStoreUnreadable: The newest case of a symptom on the source, or Mendq's writes to its
            policy, cannot be read.
    """
    dlq = Facts(progress.dlq_arn, {}, {})
    source = Facts(progress.source_arn, {}, {})
    source_arns: Sequence[str] = ()
    redrive_objection = ""
    blocker = Blocker()
    try:
        dlq, source = read_both_queues(progress, run)
        progress = add_creation_times(progress, dlq, source)
        redrive_objection = describe_replaced_queue(progress, dlq, source)
        if not redrive_objection:
            redrive_objection = describe_opened_source(progress, source, run)
        if dlq.exists and not redrive_objection:
            source_arns = list_confirmed_sources(run.clients, dlq, run.settings.consent)
    except (QueueRefusesUs, FactsUnavailable) as error:
        blocker = make_read_blocker(error)
    has_other_move_task_running = False
    move_task_blocker = Blocker()
    try:
        has_other_move_task_running = is_move_task_running(run.clients, progress.dlq_arn)
    except (QueueRefusesUs, FactsUnavailable) as error:
        move_task_blocker = make_read_blocker(error)
    if not redrive_objection and not blocker.reason:
        redrive_objection = (
            find_redrive_objection(dlq, source, source_arns, run.settings.consent) or ""
        )
    deletes_per_second = measure_deletes_per_second(progress, run)
    deletes_since_send = count_deletes_in_soak(progress, run)
    freeze_reason = freeze_reason or run.calendar_freeze_reason or ""
    recurred_cause_text = describe_recurred_cause(progress, run)
    blocker = (
        blocker
        | make_lasting_blocker(redrive_objection)
        | move_task_blocker
        | make_lasting_blocker(recurred_cause_text)
    )
    return RedriveSituation(
        progress,
        run.now,
        dlq,
        source,
        run.settings.bounds,
        deletes_per_second=deletes_per_second,
        deletes_since_send=deletes_since_send,
        has_other_move_task_running=has_other_move_task_running,
        freeze_reason=freeze_reason,
        blocker=blocker,
    )


def make_lasting_blocker(reason: str) -> Blocker:
    """Return a blocker that waiting cannot end, or an empty blocker if `reason` is empty."""
    return Blocker(reason, is_for_good=bool(reason))


def read_both_queues(progress: RedriveProgress, run: RedriveRun) -> tuple[Facts, Facts]:
    """Return the facts of the DLQ and of the source. Raise the errors of `read_queue`."""
    dlq = read_queue(progress.dlq_arn, run.clients)
    source = read_queue(progress.source_arn, run.clients)
    return dlq, source


def read_queue(queue_arn: str, clients: Clients) -> Facts:
    """Return the queue's attributes and tags. Both are empty if the queue was deleted.

    Raise FactsUnavailable or QueueRefusesUs if the queue cannot be read.
    """
    attributes = read_attributes_if_queue_exists(clients, queue_arn)
    return Facts(queue_arn, attributes, read_queue_tags(clients, queue_arn) or {})


def add_creation_times(progress: RedriveProgress, dlq: Facts, source: Facts) -> RedriveProgress:
    """Return the progress with both queues' creation times and the source's access digest.

    Keep values that are already known.
    """
    queues = progress.queues
    queues = replace(
        queues,
        dlq_made_at=queues.dlq_made_at or dlq.created_at,
        source_made_at=queues.source_made_at or source.created_at,
    )
    if source.exists and not queues.source_access_digest:
        queues = replace(queues, source_access_digest=make_access_digest(source.attributes))
    return replace(progress, queues=queues)


def describe_replaced_queue(progress: RedriveProgress, dlq: Facts, source: Facts) -> str:
    """Return a sentence if one of the queues was created again, or if only the source was deleted.

    Otherwise return an empty text. A deleted DLQ is not reported here.
    """
    queues = progress.queues
    for queue, recorded_creation_time in (
        (dlq, queues.dlq_made_at),
        (source, queues.source_made_at),
    ):
        if queue.exists and queue.created_at != recorded_creation_time:
            return f"{queue.queue_arn} was deleted meanwhile, and made again"
    if dlq.exists and not source.exists:
        lost_messages_text = (
            f"is gone, and with it what nobody took of {progress.moved:,} messages sent there"
        )
        dlq_message_count = dlq.visible + dlq.in_flight
        remedy_text = (
            f"{dlq_message_count:,} are in {dlq.name}: "
            f"`{redrive_elsewhere_command(dlq.queue_arn)}` sends them on"
        )
        return f"{source.queue_arn} {lost_messages_text}; {remedy_text}"
    return ""


def describe_opened_source(progress: RedriveProgress, source: Facts, run: RedriveRun) -> str:
    """Return a sentence if the source's policy or key changed since the redrive was planned.

    Other people may then read what goes back. Empty if nothing changed, if the source was deleted,
    if Mendq itself put a pinned policy back, or if a person confirmed the queue as it is now.
    Raises CaseStoreUnavailable, and CaseStoreUnreadable if Mendq's own writes cannot be read.
    """
    access_digest = make_access_digest(source.attributes)
    if not source.exists or access_digest == progress.queues.source_access_digest:
        return ""
    if is_policy_restored_meanwhile(progress, source, run):
        return ""
    receiver = run.open_store(Receivers).load(source.queue_arn)
    if (
        receiver is not None
        and receiver.created_at == source.created_at
        and make_access_digest(receiver.access) == access_digest
    ):
        return ""
    return (
        f"the policy or the KMS key of {source.queue_arn} changed since this redrive was "
        "planned, so others might read what goes back. See who changed it and who can read it. If "
        "it is right, start a new redrive"
    )


def is_policy_restored_meanwhile(progress: RedriveProgress, source: Facts, run: RedriveRun) -> bool:
    """Return True if the source's policy is new only because Mendq put the pinned one back.

    A person approved that text. The write must be newer than the redrive, and must have replaced
    the policy of the redrive's beginning. A rollback of an older restore leaves no such write, so
    it halts the redrive: the fix that let the redrive begin is gone.
    """
    policy = RestorePolicy.attribute
    view = run.case_store.look(source.queue_arn, ACCESS_DENIED.name, (policy,))
    record = view.record_of(policy).restrict_to_queue(source.created_at)
    if record.last_written_value != RestorePolicy.value_in(source.attributes):
        return False
    for write in record.writes:
        digest_before = make_access_digest({**source.attributes, policy: write.before})
        if write.at >= progress.began_at and digest_before == progress.queues.source_access_digest:
            return True
    return False


def describe_recurred_cause(progress: RedriveProgress, run: RedriveRun) -> str:
    """Return a sentence if the source's newest cases show that the cause of the failures is back.

    Return an empty text if no such case is unresolved.
    """
    for case in run.open_cases.list_newest_cases([progress.source_arn]):
        if case.symptom in CAUSE_SYMPTOMS and is_case_unresolved(case):
            return f"case {case.case_id} says that {case.symptom} shows at the source"
    return ""


def count_deletes_in_soak(progress: RedriveProgress, run: RedriveRun) -> int | None:
    """Return the number of messages that were deleted in the source since the redrive's last send.

    CloudWatch counts whole minutes, so the count begins after the minute of the last send. Return
    None outside a soak, before the first send, or if CloudWatch does not answer.
    """
    if progress.stage is not Stage.SOAK or progress.moved_at is None:
        return None
    counted_since = progress.moved_at.replace(second=0, microsecond=0) + timedelta(minutes=1)
    return count_deletes(progress, counted_since, run)


def measure_deletes_per_second(progress: RedriveProgress, run: RedriveRun) -> float | None:
    """Return the mean number of messages per second that the source's consumers delete.

    The measured time ends CLOUDWATCH_LAG ago. It begins at the redrive's last send, or earlier so
    that it is at least `measuring_seconds` long. Before the first send, it is
    `measuring_first_seconds` long. Return None if CloudWatch does not answer.
    """
    bounds = run.settings.bounds
    measured_until = run.now - CLOUDWATCH_LAG
    shortest_measured_seconds = (
        bounds.measuring_seconds if progress.moved_at else bounds.measuring_first_seconds
    )
    measured_since = min(
        measured_until - timedelta(seconds=shortest_measured_seconds),
        progress.moved_at or measured_until,
    )
    delete_count = count_deletes(progress, measured_since, run)
    return (
        None
        if delete_count is None
        else delete_count / (measured_until - measured_since).total_seconds()
    )


def count_deletes(
    progress: RedriveProgress, counted_since: datetime, run: RedriveRun
) -> int | None:
    """Return the number of messages deleted in the source since `counted_since`.

    Return None if CloudWatch does not answer.
    """
    with suppress(FactsUnavailable):
        return count_deleted_messages(
            run.clients, progress.source_arn, counted_since, run.now - CLOUDWATCH_LAG
        )
    return None


class RedriveStart(Struct, frozen=True):
    """The start of a redrive: a last check of the queues. The ticks move messages later.

    The start writes only the DLQ's retention, and only if a step of the plan says so. It refuses
    the redrive if the source's quarantine exists and must not receive messages, because messages
    that come back could not be kept then.

    Attributes:
        consent: The settings that say which queues Mendq manages.
        receivers: The records of the quarantines that Mendq made or a person confirmed.
        now: The time of this invocation.
    """

    consent: Consent
    receivers: Receivers
    now: datetime

    def write(
        self, clients: Clients, planned_dlq: Facts, steps: Sequence[AttributeStep]
    ) -> Refusal | None:
        """Check the queues, and write the DLQ's retention if a step says so.

        Return None if messages may go back, else a refusal. `planned_dlq` is the DLQ when the steps
        were planned; if it has changed since, the result is a refusal.

        Raises:
            FactsUnavailable, QueueRefusesUs: A queue could not be read.
            CaseStoreUnavailable: The case store does not answer.
            StepFailed: The retention could not be written. A retry may succeed.
        """
        dlq = Facts(
            planned_dlq.queue_arn,
            read_queue_attributes(clients, planned_dlq.queue_arn),
            planned_dlq.tags,
        )
        if refusal := refuse_if_changed_meanwhile(dlq, planned_dlq, steps):
            return refusal
        if objection := self._find_objection(clients, dlq, steps):
            return Refuse("redrive_unfit", f"no message goes back: {objection}")
        if refusal := self._refuse_unconfirmed_quarantine(clients, steps):
            return refusal
        attribute_value_steps = [step for step in steps if step.has_value_in_queue]
        return (
            write_attributes(clients, planned_dlq, attribute_value_steps)
            if attribute_value_steps
            else None
        )

    def _refuse_unconfirmed_quarantine(
        self, clients: Clients, steps: Sequence[AttributeStep]
    ) -> Refusal | None:
        """Return a refusal if the source's quarantine exists and must not receive messages."""
        maker = ReceiverMaker(clients, self.receivers, self.now, Owner.REDRIVE)
        for step in steps:
            if isinstance(step, RedriveMessages):
                refusal = maker.refuse_unconfirmed_queue(arn_of_quarantine(step.after), step.after)
                if refusal:
                    return refusal
        return None

    def _find_objection(
        self, clients: Clients, dlq: Facts, steps: Sequence[AttributeStep]
    ) -> str | None:
        """Return why messages may not go back now; None if they may."""
        redrive_steps = [step for step in steps if isinstance(step, RedriveMessages)]
        if len(redrive_steps) != 1:
            return "the plan does not send messages back to one queue"
        source = read_queue(redrive_steps[0].after, clients)
        source_arns = list_confirmed_sources(clients, dlq, self.consent)
        if objection := find_redrive_objection(dlq, source, source_arns, self.consent):
            return objection
        if is_move_task_running(clients, dlq.queue_arn):
            return "a message movement task runs on it already"
        return None
