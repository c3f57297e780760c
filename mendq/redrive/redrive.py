"""The redrive: one tick at a time, every effect stored before it is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

from botocore.exceptions import BotoCoreError, ClientError

from mendq.aws.clients import Clients
from mendq.aws.consumers import consuming, mappings_of
from mendq.aws.errors import CaseStoreUnavailable, CaseUnreadable, FactsUnavailable, QueueGone
from mendq.aws.queue import attributes_of, make_queue, queue_url, taken
from mendq.cases.record import Notification, record_transition
from mendq.cases.view import CaseStoreView
from mendq.catalogue import CATALOGUE
from mendq.catalogue.symptom import Symptom
from mendq.heal.context import Outcome
from mendq.heal.resume import take_up
from mendq.model.case import Case, severity_of
from mendq.model.dlq import arn_of_quarantine, attributes_of_quarantine, why_unfit_as_quarantine
from mendq.model.facts import Facts
from mendq.model.limits import Mode
from mendq.model.plan import Ignore, Refusal, Retry
from mendq.model.queue import arn_of, parts_of
from mendq.model.steps import RedriveMessages
from mendq.redrive.machine import End, Put, Refused, Tick
from mendq.redrive.messages import Message, hopped, marked_quarantined
from mendq.redrive.mover import MessageMover
from mendq.redrive.progress import DlqSample, RedriveProgress, RedriveQueues, sample_of
from mendq.redrive.reads import Faults, Queues, RedriveRun, queues_of, situation_of, with_makings
from mendq.redrive.send_batches import UNANSWERED, Destination, MoveResult
from mendq.redrive.store import Claimed

# As many at a time; what they weigh is known when they are there.
TAKEN_AT_ONCE = 100
MOST_BYTES_HELD = 100_000_000
# What is held is to be let go and written down before the run is ended.
SECONDS_TO_LET_GO = 15
WHY = "it came back after it was sent back to its source"


@dataclass
class RedriveEffects:
    """The `Effects` on SQS; leaving the context makes visible again what is still held.

    Never raise for what SQS answers; `save` raises what the case store raises.
    """

    dlq_arn: str
    queues: Queues
    run: RedriveRun

    def __enter__(self) -> Self:
        sqs = self.run.clients.sqs
        self._mover = MessageMover(sqs, queue_url(self.run.clients, self.dlq_arn))
        self._mover.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._mover.__exit__(kind, error, traceback)

    def save(self, progress: RedriveProgress) -> RedriveProgress:
        return self.run.courses.save(progress, self.run.owner)

    def take_sample(self, progress: RedriveProgress) -> DlqSample | Refused:
        """Sample as many messages as bounds, memory and time allow; all of them stay held."""
        faults = Faults()
        with faults.met():
            return self._sample(progress)
        return faults.refused

    def _sample(self, progress: RedriveProgress) -> DlqSample:
        messages, is_whole = list[Message](), False
        most, weight = self.run.settings.bounds.census, 0
        while len(messages) < most and weight < MOST_BYTES_HELD and self._has_time(half=True):
            asked = min(TAKEN_AT_ONCE, most - len(messages))
            taken = self._mover.take(asked)
            messages += taken
            weight += sum(each.size_bytes for each in taken)
            if is_whole := len(taken) < asked:
                break
        source, most_bytes = self.queues.source, self.queues.most_bytes
        return sample_of(
            messages, progress, is_fifo=source.is_fifo, most_bytes=most_bytes, is_whole=is_whole
        )

    def quarantine(self, progress: RedriveProgress, messages: tuple[Message, ...]) -> Put:
        """Make the quarantine where there is none yet."""
        if not messages:
            return Put()
        faults = Faults()
        with faults.met():
            quarantine_arn = quarantine_of(self.run.clients, self.queues.source)
            if isinstance(quarantine_arn, Refusal):
                return Put(refused=quarantine_arn.reason, for_good=True)
            return self._put(messages, self._quarantine(quarantine_arn, progress))
        return Put(refused=faults.refused.because, for_good=faults.refused.for_good)

    def fingerprints(
        self, progress: RedriveProgress, messages: tuple[Message, ...]
    ) -> tuple[str, ...]:
        to = self._source(progress)
        return tuple(each.fingerprint for each in messages if not to.can_mark(each))

    def send_back(self, progress: RedriveProgress, messages: tuple[Message, ...]) -> Put:
        return self._put(messages, self._source(progress))

    def _put(self, messages: Sequence[Message], to: Destination) -> Put:
        done = MoveResult()
        for result in self._mover.put(messages, to):
            done += result
            if not self._has_time():
                break
        unanswered = sum(each.code == UNANSWERED for each in done.failed)
        failed = next(iter(done.failed), None)
        return Put(
            done.moved,
            done.copied + unanswered,
            (failed.reason or failed.code) if failed else "",
            for_good=failed is not None and not done.moved and not failed.passes,
        )

    def _source(self, progress: RedriveProgress) -> Destination:
        arn, url = progress.source_arn, queue_url(self.run.clients, progress.source_arn)
        return Destination(arn, url, progress.case_id, hopped, self.queues.most_bytes)

    def _quarantine(self, queue_arn: str, progress: RedriveProgress) -> Destination:
        def retained(message: Message) -> Message:
            source_arn, case_id = progress.source_arn, progress.case_id
            return marked_quarantined(
                message, WHY, at=self.run.now, source_arn=source_arn, case_id=case_id
            )

        return Destination(
            queue_arn, queue_url(self.run.clients, queue_arn), progress.case_id, retained
        )

    def _has_time(self, *, half: bool = False) -> bool:
        """`half`: what is taken is to be sent on as well."""
        return self.run.remaining_seconds() > SECONDS_TO_LET_GO * (2 if half else 1)


def quarantine_of(clients: Clients, source: Facts) -> str | Refusal:
    """The ARN of the source's quarantine, made where there is none yet.

    Refuses where a queue of that name would not keep the messages safe, or a Lambda function
    consumes it. Raises FactsUnavailable where asking again may help.
    """
    queue_arn = arn_of_quarantine(source.queue_arn)
    try:
        attributes = attributes_of(clients, queue_arn)
    except QueueGone:
        try:
            made = make_queue(clients, queue_arn, attributes_of_quarantine(source))
        except (ClientError, BotoCoreError) as error:
            raise FactsUnavailable(f"making {queue_arn}: {error}") from error
        if isinstance(made, Refusal):
            return made
        attributes = made
    because = why_unfit_as_quarantine(
        source, attributes, consuming(mappings_of(clients, queue_arn))
    )
    return taken(queue_arn, because) if because else queue_arn


CANCEL = "cancel"
UNREADABLE = "what the case store says of how far it has come cannot be read"


@dataclass(frozen=True)
class Ticked(Outcome):
    """With how far the redrive has come, and how many messages this tick moved."""

    progress: RedriveProgress | None = None
    redriven: int = 0
    quarantined: int = 0

    def document(self) -> dict[str, Any]:
        """The document of every outcome, with the progress."""
        progress = self.progress
        document = super().document()
        if progress is None:
            return document
        return document | {
            "reason": document["reason"] or progress.because,
            "stage": str(progress.stage),
            "moved": progress.moved,
            "returned": progress.returned,
            "quarantined": progress.quarantined,
        }


def redrive(request: Mapping[str, Any], run: RedriveRun) -> Outcome:
    """`{"case_id", "queue_arn", "symptom"}`, with `"cancel": true` to stop what goes on.

    Raises CaseUnreadable, and what taking up or the case store raises: then the next minute's tick
    goes on from what is written down.
    """
    if not isinstance(request, Mapping):
        raise CaseUnreadable(f"no request: {request!r:.400}")
    if request.get(CANCEL) is not True and not _goes_on(request, run):
        return take_up(request, run)
    case = _case_of(request, run)
    if isinstance(case, Refusal):
        return Ticked(refusal=case)
    with _claimed(case.dlq_arn, run) as claimed:
        if isinstance(claimed, Refusal):
            return Ticked(refusal=claimed)
        progress = case.progress_after(claimed, run)
        if request.get(CANCEL) is True:
            halted = progress.halted(run.now, "a person took it back")
            return Ticked(progress=run.courses.save(halted, run.owner))
        if progress.is_over and progress != claimed.course:
            progress = run.courses.save(progress, run.owner)
        return _ticked(case, progress, run)


@dataclass(frozen=True)
class _RedriveCase:
    """An applied case whose step sends DLQ messages back to `source_arn`."""

    case: Case
    symptom: Symptom
    view: CaseStoreView
    source_arn: str

    @property
    def dlq_arn(self) -> str:
        return self.case.queue_arn

    def progress_after(self, claimed: Claimed, run: RedriveRun) -> RedriveProgress:
        """Its own where it has one, else a new one in the place of what was there before.

        One that cannot be read may have been its own: then nothing more is moved.
        """
        newest, damage = claimed.course, claimed.damage
        if newest is not None and newest.case_id == self.case.case_id:
            if newest.source_arn == self.source_arn:
                return newest
            damage = f"the redrive of {self.dlq_arn} goes to {newest.source_arn:.200}"
        queues, size = RedriveQueues(self.dlq_arn, self.source_arn), run.settings.bounds
        new = RedriveProgress.begun(self.case.case_id, queues, size=size.canary, now=run.now)
        new = replace(new, n=claimed.n)
        return new.halted(run.now, f"{UNREADABLE}: {damage}") if damage else new

    def end(self, end: End, progress: RedriveProgress, facts: Facts, run: RedriveRun) -> Case:
        """The case as it was written down; raises as `record_transition` does."""
        moved = self.case.moved(end.state, end.because, run.now, actor=run.whose)
        severity = severity_of(moved, Mode.HEAL, of_the_plan=True)
        source = parts_of(progress.source_arn)
        look = f"mendq quarantine peek {source.name} --region {source.region}"
        next_command = look if progress.quarantined else ""
        notification = Notification(self.symptom, facts, severity, next_command=next_command)
        return record_transition(moved, self.view, notification, run, run.owner)


def _ticked(case: _RedriveCase, progress: RedriveProgress, run: RedriveRun) -> Ticked:
    queues = queues_of(progress, run)
    progress = with_makings(progress, queues)
    situation = situation_of(progress, queues, case.view.frozen, run)
    with RedriveEffects(progress.dlq_arn, queues, run) as effects:
        tick = Tick(situation, effects)
        end = tick.run()
    now = tick.progress
    return Ticked(
        case=case.end(end, now, queues.dlq, run) if end else None,
        progress=now,
        redriven=now.moved - progress.moved,
        quarantined=now.quarantined - progress.quarantined,
    )


def _goes_on(request: Mapping[str, Any], run: RedriveRun) -> bool:
    """True where the named case is applied; else it waits to be taken up, or is over."""
    queue_arn, symptom = request.get("queue_arn"), request.get("symptom")
    if arn_of(queue_arn) is None or not isinstance(queue_arn, str) or not isinstance(symptom, str):
        raise CaseUnreadable(f"no case of ours: {str(request)[:400]}")
    case = run.case_store.look(queue_arn, symptom, ()).case
    return case is not None and case.case_id == request.get("case_id") and case.goes_on


def _case_of(request: Mapping[str, Any], run: RedriveRun) -> _RedriveCase | Refusal:
    """CaseUnreadable for what is no request of ours."""
    symptom = next((each for each in CATALOGUE if each.name == request.get("symptom")), None)
    queue_arn, case_id = request.get("queue_arn"), request.get("case_id")
    if symptom is None or not isinstance(queue_arn, str) or not isinstance(case_id, str):
        raise CaseUnreadable(f"no case of ours: {str(request)[:400]}")
    if arn_of(queue_arn) is None or not run.is_here(queue_arn):
        raise CaseUnreadable(f"no queue of this account and region: {queue_arn[:200]}")
    attributes = tuple(step.attribute for step in symptom.steps)
    view = run.case_store.look(queue_arn, symptom.name, attributes)
    case = view.case
    if case is None or case.case_id != case_id or not case.goes_on:
        return _declined("moved_on", f"case {case_id} sends no messages back")
    if view.held_by_another(run.owner, run.now) or view.intent is not None:
        return _declined("claimed", "another run is at work on this queue", again=True)
    named = {each["attribute"]: each["after"] for each in case.steps}
    source_arn = named.get(RedriveMessages.attribute)
    if source_arn is None:
        return _declined("another_owner", f"case {case_id} sends no messages back")
    return _RedriveCase(case, symptom, view, source_arn)


@contextmanager
def _claimed(dlq_arn: str, run: RedriveRun) -> Iterator[Claimed | Refusal]:
    """Claimed, or a refusal; let go at the end, however it comes."""
    claimed = run.courses.claim(dlq_arn, run.owner, run.now)
    if claimed is None:
        yield _declined("claimed", "another run is at work on these messages", again=True)
        return
    try:
        yield claimed
    finally:
        with suppress(CaseStoreUnavailable):
            run.courses.release(dlq_arn, run.owner)


def _declined(code: str, reason: str, *, again: bool = False) -> Refusal:
    return (Retry if again else Ignore)(code, reason)
