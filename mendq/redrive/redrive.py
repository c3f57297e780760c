"""The redrive: one tick at a time, every effect stored before it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct
from msgspec.structs import replace

from mendq.aws.clients import Clients
from mendq.aws.consumers import consuming, mappings_of
from mendq.aws.errors import CaseStoreUnavailable, CaseUnreadable, FactsUnavailable
from mendq.aws.queue import attributes_if_there, make_queue, queue_url, taken
from mendq.cases.record import Notification, record_transition
from mendq.cases.view import CaseStoreView
from mendq.catalogue.symptom import Symptom
from mendq.heal.context import Outcome
from mendq.heal.resume import named_in, take_up
from mendq.model.case import Case, State, severity_of
from mendq.model.dlq import arn_of_quarantine, attributes_of_quarantine, why_unfit_as_quarantine
from mendq.model.facts import Facts
from mendq.model.limits import Mode
from mendq.model.plan import Ignore, Refusal, Retry
from mendq.model.queue import parts_of
from mendq.model.steps import RedriveMessages
from mendq.redrive.machine import Blocked, Tick
from mendq.redrive.messages import Message, MoveResult, NotMoved, RedriveMarker
from mendq.redrive.mover import MessageMover
from mendq.redrive.progress import DlqSample, RedriveProgress, RedriveQueues, Stage, sample_of
from mendq.redrive.reads import ReadErrors, RedriveRun, situation_of
from mendq.redrive.send_batches import MOST_BYTES, Destination
from mendq.redrive.store import Claimed, RedriveStore

# What they weigh is known when they are there, and whether there is time for more is asked then.
TAKEN_AT_ONCE = 10
MOST_BYTES_HELD = 100_000_000
# A third of the Lambda's minute: letting go takes as long as taking did, and between they go.
SECONDS_TO_LET_GO = 20
WHY = "it came back after it was sent back to its source"


class RedriveEffects(Struct):
    """The `Effects` on SQS, by a mover that holds what it has sampled until it is left.

    Never raise for what SQS answers; `save` raises what the case store raises.
    """

    mover: MessageMover
    source: Facts
    run: RedriveRun
    marker: RedriveMarker

    def save(self, progress: RedriveProgress) -> RedriveProgress:
        return self.run.stored(RedriveStore).save(progress, self.run.owner)

    def take_sample(self, progress: RedriveProgress) -> DlqSample | Blocked:
        """Sample as many messages as bounds, memory and time allow; what may move stays held."""
        errors, messages, is_whole = ReadErrors(), list[Message](), False
        left, room = self.run.settings.bounds.census, MOST_BYTES_HELD
        with errors.noted():
            while left and room > 0 and not is_whole and self._has_time(half=True):
                taken = self.mover.take(min(TAKEN_AT_ONCE, left))
                is_whole = len(taken) < min(TAKEN_AT_ONCE, left)
                messages += taken
                left -= len(taken)
                room -= sum(each.size_bytes for each in taken)
        if errors.blocked.because:
            return errors.blocked
        sample = sample_of(messages, progress, self.source, self.marker)
        self.mover.release([each.message_id for each in sample.stays])
        return replace(sample, is_whole=is_whole)

    def quarantine(self, messages: tuple[Message, ...]) -> MoveResult:
        """Make the quarantine where there is none yet."""
        errors = ReadErrors()
        if not messages:
            return MoveResult()
        with errors.noted():
            queue_arn = quarantine_of(self.run.clients, self.source)
            if isinstance(queue_arn, str):
                mark = partial(self.marker.quarantined, why=WHY, at=self.run.now)
                return self._put(messages, queue_arn, mark)
            # A queue made or deleted a moment ago can be used later.
            errors.blocked = Blocked(queue_arn.reason, for_good=not queue_arn.again)
        why = errors.blocked
        stays = NotMoved(messages[0].message_id, "", why.because, passes=not why.for_good)
        return MoveResult(failed=(stays,))

    def send_back(self, progress: RedriveProgress, messages: tuple[Message, ...]) -> MoveResult:
        most_bytes = self.source.maximum_message_bytes
        return self._put(messages, progress.source_arn, self.marker.marked, most_bytes)

    def _put(
        self,
        messages: Sequence[Message],
        queue_arn: str,
        mark: Callable[[Message], Message],
        most_bytes: int = MOST_BYTES,
    ) -> MoveResult:
        url = queue_url(self.run.clients, queue_arn)
        to = Destination(queue_arn, url, self.marker.redrive_id, mark, most_bytes)
        done = MoveResult()
        for result in self.mover.put(messages, to, self._may_go):
            done += result
            # Asked after a batch, so that a tick whose look took long moves one all the same.
            if not self._has_time():
                break
        return done

    def _has_time(self, *, half: bool = False) -> bool:
        """`half`: what is taken is to be sent on as well."""
        return self.run.remaining_seconds() > SECONDS_TO_LET_GO * (2 if half else 1)

    def _may_go(self, _messages: int) -> bool:
        """A freeze ends the tick under way; so does a case store that does not say."""
        with suppress(CaseStoreUnavailable):
            return not self.run.stored(RedriveStore).is_frozen()
        return False


def quarantine_of(clients: Clients, source: Facts) -> str | Refusal:
    """The ARN of the source's quarantine, made where there is none yet.

    Refuses where a queue of that name would not keep the messages safe, or a Lambda function
    consumes it. Raises FactsUnavailable where asking again may help.
    """
    queue_arn = arn_of_quarantine(source.queue_arn)
    attributes = attributes_if_there(clients, queue_arn)
    if not attributes:
        try:
            made = make_queue(clients, queue_arn, attributes_of_quarantine(source))
        except (ClientError, BotoCoreError) as error:
            raise FactsUnavailable(f"making {queue_arn}: {error}") from error
        if isinstance(made, Refusal):
            return made
        attributes = made
    readers = consuming(mappings_of(clients, queue_arn))
    because = why_unfit_as_quarantine(source, attributes, readers)
    return taken(queue_arn, because) if because else queue_arn


CANCEL = "cancel"
UNREADABLE = "what the case store says of how far it has come cannot be read"


class Ticked(Outcome, frozen=True):
    """With how far the redrive has come, and how many messages this tick moved."""

    progress: RedriveProgress | None = None
    redriven: int = 0
    quarantined: int = 0

    def document(self) -> dict[str, Any]:
        """The document of every outcome, with the progress."""
        document = super().document()
        if self.progress is None:
            return document
        far = self.progress.document()
        counts = {name: far[name] for name in ("stage", "moved", "returned", "quarantined")}
        return document | counts | {"reason": document["reason"] or self.progress.because}


def redrive(request: Mapping[str, Any], run: RedriveRun) -> Outcome:
    """`{"case_id", "queue_arn", "symptom"}`, with `"cancel": true` to stop what goes on.

    Raises CaseUnreadable, and what taking up or the case store raises: then the next minute's tick
    goes on from what is written down.
    """
    symptom, queue_arn, case_id = named_in(request)
    if not run.is_here(queue_arn):
        raise CaseUnreadable(f"no queue of this account and region: {queue_arn}")
    view = run.case_store.look(queue_arn, symptom.name, symptom.attributes)
    case, is_cancelled = view.case, request.get(CANCEL) is True
    if case is None or case.case_id != case_id or not case.goes_on:
        if not is_cancelled:
            return take_up(request, run)
        return Ticked(refusal=Ignore("moved_on", f"case {case_id} sends no messages back"))
    if view.held_by_another(run.owner, run.now) or view.intent is not None:
        return Ticked(refusal=Retry("claimed", "another run is at work on this queue"))
    # A case goes on only if one of its steps sends messages back.
    after = {step["attribute"]: step["after"] for step in case.steps}
    source_arn = after[RedriveMessages.attribute]
    claimed = run.stored(RedriveStore).claim(case.queue_arn, run.owner, run.now)
    if claimed is None:
        return Ticked(refusal=Retry("claimed", "another run is at work on these messages"))
    try:
        redriven = _RedriveCase(case, symptom, view, run)
        return redriven.go_on(redriven.progress_after(claimed, source_arn), claimed, is_cancelled)
    finally:
        with suppress(CaseStoreUnavailable):
            run.stored(RedriveStore).release(case.queue_arn, run.owner)


class _RedriveCase(Struct, frozen=True):
    """An applied case whose step sends DLQ messages back to their source."""

    case: Case
    symptom: Symptom
    view: CaseStoreView
    run: RedriveRun

    def progress_after(self, claimed: Claimed, source_arn: str) -> RedriveProgress:
        """Its own where it has one, else a new one in the place of what was there before.

        One that cannot be read may have been its own: then nothing more is moved.
        """
        newest, damage, dlq_arn = claimed.progress, claimed.damage, self.case.queue_arn
        if newest is not None and newest.case_id == self.case.case_id:
            if newest.source_arn == source_arn:
                return newest
            damage = f"the redrive of {dlq_arn} goes to {newest.source_arn:.200}"
        queues, now = RedriveQueues(dlq_arn, source_arn), self.run.now
        size = self.run.settings.bounds
        new = RedriveProgress.begun(self.case.case_id, queues, size=size.canary, now=now)
        new = replace(new, n=claimed.n)
        return new.now_in(Stage.HALTED, now, f"{UNREADABLE}: {damage}") if damage else new

    def go_on(self, before: RedriveProgress, claimed: Claimed, is_cancelled: bool) -> Ticked:
        """Take it one tick further, or stop it."""
        run = self.run
        if is_cancelled:
            if not before.is_over:
                before = before.now_in(Stage.HALTED, run.now, "a person took it back")
            return Ticked(progress=run.stored(RedriveStore).save(before, run.owner))
        if before.is_over and before != claimed.progress:
            before = run.stored(RedriveStore).save(before, run.owner)
        situation = situation_of(before, self.view.frozen, run)
        url = queue_url(run.clients, before.dlq_arn)
        marker = RedriveMarker(before.source_arn, before.case_id, claimed.seal_key)
        # It looks at what each FIFO group shows: to open thousands takes longer than there is.
        bounded: Any = {"remaining_seconds": run.remaining_seconds, "may_open": lambda: False}
        with MessageMover(run.clients.sqs, url, **bounded) as mover:
            now = Tick(situation, RedriveEffects(mover, situation.source, run, marker)).run()
        return Ticked(
            case=self._ended(now, situation.dlq) if now.is_over else None,
            progress=now,
            redriven=now.moved - before.moved,
            quarantined=now.quarantined - before.quarantined,
        )

    def _ended(self, progress: RedriveProgress, dlq: Facts) -> Case:
        """The case as it was written down; raises as `record_transition` does."""
        run = self.run
        state = State.VERIFIED if progress.stage is Stage.DONE else State.ESCALATED
        code = "redrive_halted" if state is State.ESCALATED else ""
        moved = self.case.moved(state, progress.because, run.now, actor=run.whose, code=code)
        severity = severity_of(moved, Mode.HEAL, of_the_plan=True)
        source = parts_of(progress.source_arn)
        look = f"mendq quarantine peek {source.name} --region {source.region}"
        next_command = look if progress.quarantined else ""
        notification = Notification(self.symptom, dlq, severity, next_command=next_command)
        return record_transition(moved, self.view, notification, run)
