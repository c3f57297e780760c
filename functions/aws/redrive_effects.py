"""What a tick of a redrive does to the world: receive, sort out, quarantine, send back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from botocore.exceptions import BotoCoreError, ClientError

from functions.aws.clients import Clients
from functions.aws.consumers import consuming, mappings_of
from functions.aws.errors import FactsUnavailable, QueueGone
from functions.aws.make_queue import make_queue, taken
from functions.aws.message_mover import MessageMover
from functions.aws.queue_look import attributes_of, queue_url
from functions.aws.redrive_looks import Faults, Queues, RedriveRun
from functions.aws.send_batches import UNANSWERED, Destination, MoveResult
from functions.healing.facts import Facts
from functions.healing.letters import Letter
from functions.healing.marks import hopped, kept_apart
from functions.healing.plan import Refusal
from functions.healing.quarantines import arn_for, attributes_of_new, unfit
from functions.healing.redrive_machine import Put, Refused
from functions.healing.redrive_progress import DlqSample, RedriveProgress, sample_of

# As many at a time; what they weigh is known when they are there.
TAKEN_AT_ONCE = 100
MOST_BYTES_HELD = 100_000_000
# What is held is to be let go and written down before the run is ended.
SECONDS_TO_LET_GO = 15
WHY = "it came back after it was sent back to its source"


@dataclass
class RedriveEffects:
    """As `Effects` says; leaving the context makes visible again whatever is still held.

    Never raise for what SQS answers; `save` raises what the ledger raises.
    """

    dead_letter_arn: str
    queues: Queues
    run: RedriveRun

    def __enter__(self) -> Self:
        sqs = self.run.clients.sqs
        self._mover = MessageMover(sqs, queue_url(self.run.clients, self.dead_letter_arn))
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
        """Of as many messages as bounds, memory and time allow; all of them stay held."""
        faults = Faults()
        with faults.met():
            return self._sample(progress)
        return faults.refused

    def _sample(self, progress: RedriveProgress) -> DlqSample:
        messages, is_whole = list[Letter](), False
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

    def quarantine(self, progress: RedriveProgress, messages: tuple[Letter, ...]) -> Put:
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
        self, progress: RedriveProgress, messages: tuple[Letter, ...]
    ) -> tuple[str, ...]:
        to = self._source(progress)
        return tuple(each.fingerprint for each in messages if not to.can_mark(each))

    def send_back(self, progress: RedriveProgress, messages: tuple[Letter, ...]) -> Put:
        return self._put(messages, self._source(progress))

    def _put(self, messages: Sequence[Letter], to: Destination) -> Put:
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
        def kept(message: Letter) -> Letter:
            source_arn, case_id = progress.source_arn, progress.case_id
            return kept_apart(message, WHY, at=self.run.now, source_arn=source_arn, case_id=case_id)

        return Destination(
            queue_arn, queue_url(self.run.clients, queue_arn), progress.case_id, kept
        )

    def _has_time(self, *, half: bool = False) -> bool:
        """`half`: what is taken is to be sent on as well."""
        return self.run.remaining_seconds() > SECONDS_TO_LET_GO * (2 if half else 1)


def quarantine_of(clients: Clients, source: Facts) -> str | Refusal:
    """The ARN of the source's quarantine, made where there is none yet.

    Refuses where a queue of that name would not keep the letters safe, or a Lambda function
    consumes it. Raises FactsUnavailable where asking again may help.
    """
    queue_arn = arn_for(source.queue_arn)
    try:
        attributes = attributes_of(clients, queue_arn)
    except QueueGone:
        try:
            made = make_queue(clients, queue_arn, attributes_of_new(source))
        except (ClientError, BotoCoreError) as error:
            raise FactsUnavailable(f"making {queue_arn}: {error}") from error
        if isinstance(made, Refusal):
            return made
        attributes = made
    because = unfit(source, attributes, consuming(mappings_of(clients, queue_arn)))
    return taken(queue_arn, because) if because else queue_arn
