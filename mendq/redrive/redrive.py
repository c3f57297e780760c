"""Run one tick of a redrive: claim the DLQ, read both queues, act, and record the redrive's end.

A tick is one invocation of the redrive Lambda, once a minute. `mendq.redrive.machine` explains
redrives and decides about the actions. This file stores the progress before each action, and calls
AWS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct, structs
from msgspec.structs import replace

from mendq.aws.clients import Clients
from mendq.aws.consumers import list_active_function_arns, list_mappings
from mendq.aws.errors import (
    CaseStoreUnavailable,
    CaseUnreadable,
    FactsUnavailable,
    QueueRefusesUs,
)
from mendq.aws.queue import queue_url, read_attributes_if_queue_exists, refuse_taken_queue_name
from mendq.cases.receivers import DELETED_OBJECTION, ReceiverMaker, Receivers
from mendq.cases.record import Notification, record_transition
from mendq.cases.seal_keys import SealUse
from mendq.cases.view import CaseStoreView
from mendq.catalogue.dlq.unconfirmed_receiver import refuse_unconfirmed_receiver
from mendq.catalogue.symptom import Symptom
from mendq.heal.outcome import Outcome
from mendq.heal.resume import continue_case, read_case_request
from mendq.model.case import SOURCE_ACCESS_KEY, Case
from mendq.model.dlq import arn_of_quarantine, make_quarantine_attributes, why_unfit_as_quarantine
from mendq.model.facts import Facts, QueueFacts
from mendq.model.mode import Mode
from mendq.model.plan import Ignore, Refusal, Retry
from mendq.model.receiver import find_source_access_change
from mendq.model.state import State
from mendq.model.steps import Owner, find_redrive_destination
from mendq.notifications.announcements import choose_severity
from mendq.notifications.commands import peek_quarantine_command
from mendq.redrive.machine import (
    NO_MESSAGE_TO_SEND_REASON,
    OTHERS_HOLD_MESSAGES_SUFFIX,
    WAITING_ACTIONS,
    Action,
    Blocker,
    RedriveSituation,
    decide,
    describe_staying_messages,
)
from mendq.redrive.messages import Message, MoveResult, RedriveMarker, UnmovedMessage
from mendq.redrive.mover import MOST_BATCH_BYTES, Destination, MessageMover
from mendq.redrive.progress import (
    DlqSample,
    RedriveProgress,
    RedriveQueues,
    Stage,
    classify_messages,
)
from mendq.redrive.reads import RedriveRun, make_read_blocker, read_situation
from mendq.redrive.store import RedriveClaim, RedriveStore

CANCEL_REQUEST_KEY = "cancel"
# A tick calls `decide` at most this many times. No sequence of actions without a wait is longer.
MOST_DECISIONS_PER_TICK = 12
# Message sizes are known only after receiving. Check bytes and remaining time after each batch.
MESSAGES_PER_RECEIVE = 10
MAXIMUM_HELD_BYTES = 100_000_000
# The seconds that are reserved for releasing the held messages: a third of the Lambda's minute.
# Receiving takes another third, and sending the rest.
SECONDS_TO_RELEASE_MESSAGES = 20

# Sentences for operators.
QUARANTINE_REASON = "it came back after it was sent back to its source"
UNREADABLE_PROGRESS_REASON = "what the case store says of how far it has come cannot be read"


class TickOutcome(Outcome, frozen=True):
    """The outcome of a tick.

    Attributes:
        progress: The redrive's progress; None if the tick was refused before it read the progress.
        sent_back_count: The number of messages that this tick sent back.
        quarantined_count: The number of messages that this tick moved to quarantine.
    """

    progress: RedriveProgress | None = None
    sent_back_count: int = 0
    quarantined_count: int = 0

    def document(self) -> dict[str, Any]:
        """Return the Lambda's answer: the outcome and the redrive's progress, as JSON values."""
        document = super().document()
        if self.progress is None:
            return document
        progress = self.progress.document()
        document |= {
            "stage": progress["stage"],
            "moved": progress["moved"],
            "returned": progress["returned"],
            "quarantined": progress["quarantined"],
        }
        document["reason"] = document["reason"] or self.progress.because
        return document


def redrive(request: Mapping[str, Any], run: RedriveRun) -> Outcome:
    """Begin, continue or stop the redrive of a case: run one tick.

    If the case's redrive has not begun, call `continue_case`, which may begin it; but do nothing
    then if the request says `cancel`.

    Args:
        request: `{"case_id", "queue_arn", "symptom"}`, and `"cancel": true` to stop the redrive.
        run: This invocation.

    Raises:
        CaseUnreadable: The request is malformed, or its queue is in another account or region.
        CaseStoreUnavailable: The case store does not answer. After this error, and after other
            errors of the case store, of `continue_case` or of `record_transition`, the next tick
            continues from the stored progress.
    """
    symptom, queue_arn, case_id = read_case_request(request)
    if not run.is_here(queue_arn):
        raise CaseUnreadable(f"no queue of this account and region: {queue_arn}")
    redrive_store = run.open_store(RedriveStore)
    case_store_view = run.case_store.look(queue_arn, symptom.name, symptom.attributes)
    case = case_store_view.case
    is_cancelled = request.get(CANCEL_REQUEST_KEY) is True
    if case is None or case.case_id != case_id or not case.is_redriving:
        if not is_cancelled:
            return continue_case(request, run)
        return TickOutcome(refusal=Ignore("moved_on", f"case {case_id} sends no messages back"))
    if case_store_view.is_held_by_another(run.owner, run.now) or case_store_view.intent is not None:
        return TickOutcome(refusal=Retry("claimed", "another run is at work on this queue"))
    source_arn = find_redrive_destination(case.steps)
    with redrive_store.hold_claim(case.queue_arn, run.owner, run.now) as claim:
        if claim is None:
            return TickOutcome(refusal=Retry("claimed", "another run is at work on these messages"))
        progress = load_or_start_progress(claim, case, source_arn, run)
        if is_cancelled:
            if not progress.is_over:
                progress = progress.enter_stage(Stage.HALTED, run.now, "a person took it back")
            return TickOutcome(progress=redrive_store.save(progress, run.owner))
        if progress.is_over and progress != claim.progress:
            progress = redrive_store.save(progress, run.owner)
        return run_tick(progress, CaseRun(case, symptom, case_store_view, run, redrive_store))


def load_or_start_progress(
    claim: RedriveClaim, case: Case, source_arn: str, run: RedriveRun
) -> RedriveProgress:
    """Return the case's stored progress, or a new progress if the case has none.

    The new progress is halted if the stored one cannot be read, because that may be this case's
    own, with messages in flight. It is also halted if this case's stored progress names another
    source.
    """
    progress = claim.progress
    unreadable_reason = claim.unreadable_reason
    if progress is not None and progress.case_id == case.case_id:
        if progress.source_arn == source_arn:
            return progress
        unreadable_reason = f"the redrive of {case.queue_arn} goes to {progress.source_arn:.200}"
    queues = RedriveQueues(
        case.queue_arn,
        source_arn,
        source_access_digest=str(case.evidence.get(SOURCE_ACCESS_KEY, "")),
    )
    canary_size = run.settings.bounds.canary
    progress = RedriveProgress.start(case.case_id, queues, size=canary_size, now=run.now)
    progress = replace(progress, n=claim.progress_number)
    if unreadable_reason:
        return progress.enter_stage(
            Stage.HALTED, run.now, f"{UNREADABLE_PROGRESS_REASON}: {unreadable_reason}"
        )
    return progress


class CaseRun(Struct, frozen=True):
    """The case of a redrive, and the invocation that runs a tick of it."""

    case: Case
    symptom: Symptom
    view: CaseStoreView
    run: RedriveRun
    store: RedriveStore


def run_tick(progress: RedriveProgress, case_run: CaseRun) -> TickOutcome:
    """Run one tick: read the queues, do the actions of `decide`, and end the case if it is over."""
    run = case_run.run
    situation = read_situation(progress, case_run.view.freeze_reason, run)
    mover = MessageMover(
        run.clients.sqs,
        queue_url(run.clients, progress.dlq_arn),
        remaining_seconds=run.remaining_seconds,
        # Opening thousands of FIFO groups takes longer than the Lambda has.
        may_open_groups=lambda: False,
    )
    seal_key = run.seal_keys.provide(progress.dlq_arn, SealUse.REDRIVE, run.now)
    marker = RedriveMarker(progress.source_arn, progress.case_id, seal_key)
    with mover:
        progress = RedriveTick(situation, mover, marker, case_run.store, run).run_until_wait()
    return TickOutcome(
        case=end_case(progress, situation.dlq, case_run) if progress.is_over else None,
        progress=progress,
        sent_back_count=progress.moved - situation.progress.moved,
        quarantined_count=progress.quarantined - situation.progress.quarantined,
    )


def end_case(progress: RedriveProgress, dlq: Facts, case_run: CaseRun) -> Case:
    """Record that the case is verified or escalated, and notify people.

    Raise the errors of `record_transition`.
    """
    run = case_run.run
    is_verified = progress.stage is Stage.DONE
    case = case_run.case.move_to(
        State.VERIFIED if is_verified else State.ESCALATED,
        progress.because,
        run.now,
        actor=run.writer,
        code="" if is_verified else "redrive_halted",
    )
    next_command = ""
    if progress.quarantined:
        next_command = peek_quarantine_command(progress.source_arn)
    severity = choose_severity(case, Mode.HEAL, is_about_plan=True)
    notification = Notification(case_run.symptom, dlq, severity, next_command=next_command)
    return record_transition(case, case_run.view, notification, run)


class RedriveTick(Struct):
    """One tick of a redrive, which does the actions of `decide` in SQS and in the case store.

    `situation.progress` is the progress that was stored last. Before the first `save`, it is the
    progress at the start of the tick. Until the tick ends, the mover hides the sample's messages
    from other consumers, except those that must stay in the DLQ.

    Errors that SQS returns are not raised. Methods that store the progress may raise the errors of
    the case store.
    """

    situation: RedriveSituation
    mover: MessageMover
    marker: RedriveMarker
    store: RedriveStore
    run: RedriveRun

    @property
    def progress(self) -> RedriveProgress:
        return self.situation.progress

    def run_until_wait(self) -> RedriveProgress:
        """Call `decide` and do its actions until the tick must end. Return the last progress."""
        for _ in range(MOST_DECISIONS_PER_TICK):
            if self.progress.is_over:
                break
            progress, action = decide(self.situation)
            if action is Action.SEND:
                self.send_messages(progress)
                if self.progress.current.remaining_message_count:
                    break
                continue
            self.save(progress)
            if action in WAITING_ACTIONS:
                break
            if action is Action.TAKE_SAMPLE:
                self.take_and_count_sample()
        return self.progress

    def save(self, progress: RedriveProgress) -> None:
        """Store the progress if it has changed or was never stored."""
        if progress == self.progress and progress.n:
            return
        progress = self.store.save(progress, self.run.owner)
        self.situation = structs.replace(self.situation, progress=progress)

    def take_and_count_sample(self) -> None:
        """Take a sample, count the messages that came back, and move them to quarantine.

        Add a blocker if the DLQ cannot be read, or if some of these messages cannot be moved.
        """
        sample = self.take_sample()
        if isinstance(sample, Blocker):
            self.add_blocker(sample)
            return
        self.save(self.progress.count_sample(sample))
        result = self.move_to_quarantine(sample.returned_messages)
        sample = replace(sample, quarantined_count=result.moved_count)
        self.save(self.progress.count_quarantine(sample))
        self.situation = structs.replace(self.situation, sample=sample)
        if sample.unquarantined_count:
            refusal_reason = (
                result.first_failure_reason
                or "there was no time for all of it, or changes were frozen"
            )
            reason = f"what came back cannot be quarantined: {refusal_reason}"
            self.add_blocker(Blocker(reason, result.is_refused_for_good))

    def add_blocker(self, blocker: Blocker) -> None:
        """Add to the situation a reason why the redrive cannot continue."""
        blocker = self.situation.blocker | blocker
        self.situation = structs.replace(self.situation, blocker=blocker)

    def take_sample(self) -> DlqSample | Blocker:
        """Receive and sort as many messages as the settings, memory and time allow.

        The mover releases messages that must stay in the DLQ at once, and holds the others.

        Returns:
            The sample, or a blocker with the reason why the DLQ cannot be read.
        """
        messages = list[Message]()
        is_complete = False
        remaining_sample_messages = self.run.settings.bounds.census
        bytes_left = MAXIMUM_HELD_BYTES
        try:
            while (
                remaining_sample_messages
                and bytes_left > 0
                and not is_complete
                and self.has_time_to_receive()
            ):
                most_messages = min(MESSAGES_PER_RECEIVE, remaining_sample_messages)
                batch = self.mover.receive_new_messages(most_messages)
                is_complete = len(batch) < most_messages
                messages += batch
                remaining_sample_messages -= len(batch)
                bytes_left -= sum(message.size_bytes for message in batch)
        except (QueueRefusesUs, FactsUnavailable) as error:
            return make_read_blocker(error)
        sample = classify_messages(messages, self.progress, self.situation.source, self.marker)
        self.mover.release([message.message_id for message in sample.staying_messages])
        return replace(sample, is_complete=is_complete)

    def move_to_quarantine(self, messages: Sequence[Message]) -> MoveResult:
        """Move messages that came back to the DLQ to the source's quarantine.

        Create the quarantine if needed. If it cannot be used, the result has one unmoved message
        with the reason.
        """
        if not messages:
            return MoveResult()
        try:
            maker = make_receiver_maker(self.run)
            queue_arn = prepare_quarantine(maker, self.situation.source)
            if isinstance(queue_arn, str):
                add_mark = partial(
                    self.marker.mark_quarantined,
                    reason=QUARANTINE_REASON,
                    quarantined_at=self.run.now,
                    quarantine_seal_key=self.run.seal_keys.provide(
                        queue_arn, SealUse.QUARANTINE, self.run.now
                    ),
                )
                gate = QuarantineGate(
                    maker, queue_arn, self.progress.source_arn, self.store.may_send_batch
                )
                result = self.move_messages(messages, queue_arn, add_mark, gate.may_send_batch)
                self.add_blocker(gate.blocker)
                return result
        except (QueueRefusesUs, FactsUnavailable) as error:
            blocker = make_read_blocker(error)
        else:
            # A queue that was just made or deleted can be used later.
            blocker = Blocker(queue_arn.reason, is_for_good=not queue_arn.is_retried)
        unmoved_message = UnmovedMessage(
            messages[0].message_id, "", blocker.reason, is_temporary=not blocker.is_for_good
        )
        return MoveResult(unmoved_messages=(unmoved_message,))

    def send_messages(self, progress: RedriveProgress) -> None:
        """Send messages of the sample back, and store the result.

        At most `progress.current.in_flight` messages are sent.
        """
        planned_message_count = progress.current.in_flight
        messages = self.situation.sample_or_empty.sendable_messages[:planned_message_count]
        self.save(progress.change_current_stage(in_flight=len(messages)))
        source = self.situation.source
        gate = SourceAccessGate(self.run.clients, source, self.store.may_send_batch)
        result = self.move_messages(
            messages,
            progress.source_arn,
            self.marker.mark_redriven,
            gate.may_send_batch,
            source.maximum_message_bytes,
        )
        no_message_reason = gate.stop_reason
        if not messages:
            no_message_reason = NO_MESSAGE_TO_SEND_REASON + (
                describe_staying_messages(self.situation) or OTHERS_HOLD_MESSAGES_SUFFIX
            )
        is_sample_short = (
            len(messages) < planned_message_count
            and not result.unmoved_messages
            and not gate.stop_reason
        )
        now = self.situation.now
        self.save(
            self.progress.count_move(
                result, now, is_sample_short=is_sample_short, because=no_message_reason
            )
        )

    def move_messages(
        self,
        messages: Sequence[Message],
        queue_arn: str,
        add_mark: Callable[[Message], Message],
        may_send_batch: Callable[[int], bool],
        maximum_message_bytes: int = MOST_BATCH_BYTES,
    ) -> MoveResult:
        """Move messages to a queue, until all were tried or the move must stop.

        It stops if time is over, if SQS would refuse every other message, or if `may_send_batch`
        returns False. That function is called before each batch with the number of its messages.
        """
        destination_url = queue_url(self.run.clients, queue_arn)
        destination = Destination(
            queue_arn, destination_url, self.marker.redrive_id, add_mark, maximum_message_bytes
        )
        total_result = MoveResult()
        for result in self.mover.move_messages(messages, destination, may_send_batch):
            total_result += result
            # Check this only after a batch, so that a tick with a slow sample still moves one.
            if not self.has_time_to_send():
                break
        return total_result

    def has_time_to_receive(self) -> bool:
        """Return True if there is time to receive another batch, and then to send and release."""
        return self.run.remaining_seconds() > SECONDS_TO_RELEASE_MESSAGES * 2

    def has_time_to_send(self) -> bool:
        """Return True if there is time for another batch before messages must be released."""
        return self.run.remaining_seconds() > SECONDS_TO_RELEASE_MESSAGES


class SourceAccessGate(Struct):
    """Lets a batch go back only if the source is still open to the same people.

    The source is read before each batch. If its policy, KMS key or creation time differ from what
    the tick read at its start, no further batch goes, and `stop_reason` says why. The next tick
    reads the source anew, and halts the redrive if the change is one that nobody confirmed.
    """

    clients: Clients
    # The source as the tick read it at its start.
    source_at_start: Facts
    # Returns False if people have frozen changes.
    is_batch_allowed: Callable[[int], bool]
    stop_reason: str = ""

    def may_send_batch(self, message_count: int) -> bool:
        """Return True if a batch of this many messages may go. Otherwise set `stop_reason`.

        `stop_reason` stays empty if only a freeze stops the batch.
        """
        if not self.is_batch_allowed(message_count):
            return False
        source_arn = self.source_at_start.queue_arn
        try:
            attributes = read_attributes_if_queue_exists(self.clients, source_arn)
        except (QueueRefusesUs, FactsUnavailable) as error:
            self.stop_reason = str(error)
            return False
        change = find_source_access_change(self.source_at_start, QueueFacts(source_arn, attributes))
        if change:
            self.stop_reason = (
                f"{source_arn} changed while messages went back: {change}. No further message was "
                "sent; the next tick, in a minute, checks the queue again"
            )
        return not self.stop_reason


class QuarantineGate(Struct):
    """Decides before each batch if the quarantine may still receive messages.

    The quarantine must be the queue on record. If it was deleted, created again or changed, no
    further message goes there, and `blocker` says why.
    """

    maker: ReceiverMaker
    quarantine_arn: str
    source_arn: str
    # A function that returns False if people have frozen changes.
    is_batch_allowed: Callable[[int], bool]
    blocker: Blocker = Blocker()

    def may_send_batch(self, message_count: int) -> bool:
        """Return True if a batch of this many messages may be sent.

        If the quarantine is the reason to return False, set `blocker`.
        """
        if not self.is_batch_allowed(message_count):
            return False
        try:
            objection = self.maker.find_objection(self.quarantine_arn, self.source_arn)
        except (QueueRefusesUs, FactsUnavailable) as error:
            self.blocker = make_read_blocker(error)
        except CaseStoreUnavailable as error:
            self.blocker = Blocker(str(error))
        else:
            if objection == DELETED_OBJECTION:
                reason = (
                    f"the quarantine {self.quarantine_arn} was deleted during the redrive, so "
                    "messages that fail again cannot be kept there. Find out who deleted it"
                )
                self.blocker = Blocker(reason, is_for_good=True)
            elif objection:
                refusal = refuse_unconfirmed_receiver(
                    self.quarantine_arn, objection, self.source_arn
                )
                self.blocker = Blocker(refusal.reason, is_for_good=True)
        return not self.blocker.reason


def make_receiver_maker(run: RedriveRun) -> ReceiverMaker:
    return ReceiverMaker(run.clients, run.open_store(Receivers), run.now, Owner.REDRIVE)


def prepare_quarantine(maker: ReceiverMaker, source: Facts) -> str | Refusal:
    """Return the ARN of the source's quarantine. Create the queue if it does not exist.

    Returns:
        The ARN. A refusal if SQS does not create the queue, if the new queue cannot be used yet, if
        the existing queue is not on record as made by Mendq or confirmed by a person, or if
        messages would not be safe there, for example because a Lambda function consumes the queue.

    Raises:
        FactsUnavailable: AWS could not be read, or the queue could not be created. A retry may
            help.
        QueueRefusesUs: The queue's own policy denies Mendq access.
        CaseStoreUnavailable: The case store does not answer.
    """
    queue_arn = arn_of_quarantine(source.queue_arn)
    try:
        quarantine = maker.make_or_check(
            queue_arn, make_quarantine_attributes(source), source.queue_arn
        )
    except (ClientError, BotoCoreError) as error:
        raise FactsUnavailable(f"making {queue_arn}: {error}") from error
    if isinstance(quarantine, Refusal):
        return quarantine
    consumer_arns = list_active_function_arns(list_mappings(maker.clients, queue_arn))
    unfit_reason = why_unfit_as_quarantine(source, quarantine.attributes, consumer_arns)
    return refuse_taken_queue_name(queue_arn, unfit_reason) if unfit_reason else queue_arn
