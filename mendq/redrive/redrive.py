"""The redrive: one tick at a time, every effect stored before it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

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
from mendq.redrive.machine import Blocked, End, Put, Tick
from mendq.redrive.messages import Message, hopped, marked_quarantined
from mendq.redrive.mover import MessageMover
from mendq.redrive.progress import DlqSample, RedriveProgress, RedriveQueues, sample_of
from mendq.redrive.reads import (
    Queues,
    ReadErrors,
    RedriveRun,
    queues_of,
    situation_of,
    with_makings,
)
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
    """The `Effects` on SQS, by a mover that holds what it has sampled until it is left.

    Never raise for what SQS answers; `save` raises what the case store raises.
    """

    mover: MessageMover
    queues: Queues
    run: RedriveRun

    def save(self, progress: RedriveProgress) -> RedriveProgress:
        return self.run.redrives.save(progress, self.run.owner)

    def take_sample(self, progress: RedriveProgress) -> DlqSample | Blocked:
        """Sample as many messages as bounds, memory and time allow; all of them stay held."""
        errors, messages, is_whole = ReadErrors(), list[Message](), False
        most, weight = self.run.settings.bounds.census, 0
        with errors.noted():
            while len(messages) < most and weight < MOST_BYTES_HELD and self._has_time(half=True):
                asked = min(TAKEN_AT_ONCE, most - len(messages))
                taken = self.mover.take(asked)
                messages += taken
                weight += sum(each.size_bytes for each in taken)
                if is_whole := len(taken) < asked:
                    break
        if errors.blocked.because:
            return errors.blocked
        source, most_bytes = self.queues.source, self.queues.most_bytes
        return sample_of(
            messages, progress, is_fifo=source.is_fifo, most_bytes=most_bytes, is_whole=is_whole
        )

    def quarantine(self, progress: RedriveProgress, messages: tuple[Message, ...]) -> Put:
        """Make the quarantine where there is none yet."""
        errors, source_arn, case_id = ReadErrors(), progress.source_arn, progress.case_id
        if not messages:
            return Put()
        with errors.noted():
            queue_arn = quarantine_of(self.run.clients, self.queues.source)
            if isinstance(queue_arn, Refusal):
                return Put(refused=Blocked(queue_arn.reason, for_good=True))
            mark = partial(
                marked_quarantined, why=WHY, at=self.run.now, source_arn=source_arn, case_id=case_id
            )
            return self._put(messages, self._destination(queue_arn, case_id, mark))
        return Put(refused=errors.blocked)

    def fingerprints(
        self, progress: RedriveProgress, messages: tuple[Message, ...]
    ) -> tuple[str, ...]:
        to = self._source(progress)
        return tuple(each.fingerprint for each in messages if not to.can_mark(each))

    def send_back(self, progress: RedriveProgress, messages: tuple[Message, ...]) -> Put:
        return self._put(messages, self._source(progress))

    def _put(self, messages: Sequence[Message], to: Destination) -> Put:
        done = MoveResult()
        for result in self.mover.put(messages, to):
            done += result
            if not self._has_time():
                break
        unsure = done.copied + sum(each.code == UNANSWERED for each in done.failed)
        failed = next(iter(done.failed), None)
        if failed is None:
            return Put(done.moved, unsure)
        for_good = not done.moved and not failed.passes
        return Put(done.moved, unsure, Blocked(failed.reason or failed.code, for_good))

    def _source(self, progress: RedriveProgress) -> Destination:
        to = self._destination(progress.source_arn, progress.case_id, hopped)
        return replace(to, most_bytes=self.queues.most_bytes)

    def _destination(
        self, queue_arn: str, case_id: str, mark: Callable[[Message], Message]
    ) -> Destination:
        return Destination(queue_arn, queue_url(self.run.clients, queue_arn), case_id, mark)

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
    readers = consuming(mappings_of(clients, queue_arn))
    because = why_unfit_as_quarantine(source, attributes, readers)
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
    symptom, queue_arn, case_id = _named(request, run)
    attributes = tuple(step.attribute for step in symptom.steps)
    view = run.case_store.look(queue_arn, symptom.name, attributes)
    case, is_cancelled = view.case, request.get(CANCEL) is True
    if case is None or case.case_id != case_id or not case.goes_on:
        if not is_cancelled:
            return take_up(request, run)
        return _declined("moved_on", f"case {case_id} sends no messages back")
    if view.held_by_another(run.owner, run.now) or view.intent is not None:
        return _declined("claimed", "another run is at work on this queue", again=True)
    named = {each["attribute"]: each["after"] for each in case.steps}
    source_arn = named.get(RedriveMessages.attribute)
    if source_arn is None:
        return _declined("another_owner", f"case {case_id} sends no messages back")
    claimed = run.redrives.claim(case.queue_arn, run.owner, run.now)
    if claimed is None:
        return _declined("claimed", "another run is at work on these messages", again=True)
    redriven = _RedriveCase(case, symptom, view, source_arn)
    try:
        return redriven.go_on(redriven.progress_after(claimed, run), claimed, run, is_cancelled)
    finally:
        with suppress(CaseStoreUnavailable):
            run.redrives.release(case.queue_arn, run.owner)


def _named(request: Mapping[str, Any], run: RedriveRun) -> tuple[Symptom, str, str]:
    """The symptom, the queue and the case; raises CaseUnreadable for what is no request of ours."""
    asked = request if isinstance(request, Mapping) else {}
    symptom = next((each for each in CATALOGUE if each.name == asked.get("symptom")), None)
    queue_arn, case_id = asked.get("queue_arn"), asked.get("case_id")
    if symptom is None or not isinstance(queue_arn, str) or not isinstance(case_id, str):
        raise CaseUnreadable(f"no case of ours: {request!s:.400}")
    if arn_of(queue_arn) is None or not run.is_here(queue_arn):
        raise CaseUnreadable(f"no queue of this account and region: {queue_arn[:200]}")
    return symptom, queue_arn, case_id


def _declined(code: str, reason: str, *, again: bool = False) -> Ticked:
    return Ticked(refusal=(Retry if again else Ignore)(code, reason))


@dataclass(frozen=True)
class _RedriveCase:
    """An applied case whose step sends DLQ messages back to `source_arn`."""

    case: Case
    symptom: Symptom
    view: CaseStoreView
    source_arn: str

    def progress_after(self, claimed: Claimed, run: RedriveRun) -> RedriveProgress:
        """Its own where it has one, else a new one in the place of what was there before.

        One that cannot be read may have been its own: then nothing more is moved.
        """
        newest, damage, dlq_arn = claimed.progress, claimed.damage, self.case.queue_arn
        if newest is not None and newest.case_id == self.case.case_id:
            if newest.source_arn == self.source_arn:
                return newest
            damage = f"the redrive of {dlq_arn} goes to {newest.source_arn:.200}"
        queues, size = RedriveQueues(dlq_arn, self.source_arn), run.settings.bounds
        new = RedriveProgress.begun(self.case.case_id, queues, size=size.canary, now=run.now)
        new = replace(new, n=claimed.n)
        return new.halted(run.now, f"{UNREADABLE}: {damage}") if damage else new

    def go_on(
        self, before: RedriveProgress, claimed: Claimed, run: RedriveRun, is_cancelled: bool
    ) -> Ticked:
        """Take it one tick further, or stop it."""
        if is_cancelled:
            halted = before.halted(run.now, "a person took it back")
            return Ticked(progress=run.redrives.save(halted, run.owner))
        if before.is_over and before != claimed.progress:
            before = run.redrives.save(before, run.owner)
        queues = queues_of(before, run)
        before = with_makings(before, queues)
        situation = situation_of(before, queues, self.view.frozen, run)
        url = queue_url(run.clients, before.dlq_arn)
        with MessageMover(run.clients.sqs, url) as mover:
            tick = Tick(situation, RedriveEffects(mover, queues, run))
            end = tick.run()
        now = tick.progress
        return Ticked(
            case=self._ended(end, now, queues.dlq, run) if end else None,
            progress=now,
            redriven=now.moved - before.moved,
            quarantined=now.quarantined - before.quarantined,
        )

    def _ended(self, end: End, progress: RedriveProgress, facts: Facts, run: RedriveRun) -> Case:
        """The case as it was written down; raises as `record_transition` does."""
        moved = self.case.moved(end.state, end.because, run.now, actor=run.whose)
        severity = severity_of(moved, Mode.HEAL, of_the_plan=True)
        source = parts_of(progress.source_arn)
        look = f"mendq quarantine peek {source.name} --region {source.region}"
        next_command = look if progress.quarantined else ""
        notification = Notification(self.symptom, facts, severity, next_command=next_command)
        return record_transition(moved, self.view, notification, run, run.owner)
