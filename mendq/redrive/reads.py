"""Look at everything that decides about a redrive, and take one up: nothing is moved here.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ListMessageMoveTasks.html
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from mendq.aws.clients import Clients
from mendq.aws.cloudwatch import messages_deleted
from mendq.aws.dlqs import OVER, confirmed_sources_of, move_tasks_of
from mendq.aws.errors import FactsUnavailable, QueueRefusesUs
from mendq.aws.queue import attributes_if_there, attributes_of, tags_of
from mendq.catalogue.dlq.redrive_causes import CAUSES, still_shows, why_not_between
from mendq.heal.apply import changed_meanwhile, write
from mendq.heal.context import FixContext
from mendq.model.facts import Facts
from mendq.model.limits import Consent
from mendq.model.metrics import CLOUDWATCH_LAG
from mendq.model.plan import Refusal, Refuse
from mendq.model.settings import RedriveSettings
from mendq.model.steps import AttributeStep, RedriveMessages
from mendq.redrive.machine import Blocked, RedriveSituation
from mendq.redrive.progress import RedriveProgress, Stage

# Of a queue that is nobody's DLQ, or is gone.
_NONE = frozenset({"ResourceNotFound", "NonExistentQueue"})


class RedriveRun(FixContext, frozen=True, kw_only=True):
    """One invocation of the redrive Lambda."""

    settings: RedriveSettings


class ReadErrors(Struct):
    """Why reading failed: what a queue's own policy forbids, else the first that may pass."""

    blocked: Blocked = Blocked()

    @contextmanager
    def noted(self) -> Iterator[None]:
        try:
            yield
        except QueueRefusesUs as error:
            self.blocked |= Blocked(f"a queue keeps Mendq out: {error}", for_good=True)
        except FactsUnavailable as error:
            self.blocked |= Blocked(str(error))


def move_task_runs(clients: Clients, dlq_arn: str, none_where: Collection[str] = _NONE) -> bool:
    """True where a message movement task runs: somebody else's, as we start none.

    Raises FactsUnavailable or QueueRefusesUs.
    """
    tasks = move_tasks_of(clients, dlq_arn, none_where)
    return any(each.get("Status") not in OVER for each in tasks)


def situation_of(
    progress: RedriveProgress, frozen: str | None, run: RedriveRun
) -> RedriveSituation:
    """What is seen of it; `frozen` as the case store says. Raises the case store's errors."""
    errors, task_runs = ReadErrors(), False
    dlq, source = Facts(progress.dlq_arn, {}, {}), Facts(progress.source_arn, {}, {})
    with errors.noted():
        dlq, source = _facts(dlq.queue_arn, run.clients), _facts(source.queue_arn, run.clients)
        progress = _with_makings(progress, dlq, source)
        errors.blocked |= _for_good(_misfit(progress, dlq, source, run))
    with errors.noted():
        task_runs = move_task_runs(run.clients, progress.dlq_arn)
    return RedriveSituation(
        progress,
        run.now,
        dlq,
        source,
        run.settings.bounds,
        deletes_per_second=_deletes_per_second(progress, run),
        deleted_since=_deleted_since(progress, run),
        has_foreign_task=task_runs,
        frozen=frozen or run.closed_calendars or "",
        blocked=errors.blocked | _for_good(_cause_is_back(progress, run)),
    )


def _for_good(because: str) -> Blocked:
    return Blocked(because, for_good=bool(because))


def _facts(queue_arn: str, clients: Clients) -> Facts:
    """A queue that is gone has no attributes."""
    attributes = attributes_if_there(clients, queue_arn)
    return Facts(queue_arn, attributes, tags_of(clients, queue_arn) or {})


def _with_makings(progress: RedriveProgress, dlq: Facts, source: Facts) -> RedriveProgress:
    """With when its queues were made, from the first time that they were seen."""
    known = progress.queues
    dlq_made_at = known.dlq_made_at or dlq.created_at
    source_made_at = known.source_made_at or source.created_at
    made = replace(known, dlq_made_at=dlq_made_at, source_made_at=source_made_at)
    return replace(progress, queues=made)


def _misfit(progress: RedriveProgress, dlq: Facts, source: Facts, run: RedriveRun) -> str:
    """Why messages may not go from the one to the other any more; raises as reading does."""
    known = progress.queues
    for queue, made_at in ((dlq, known.dlq_made_at), (source, known.source_made_at)):
        if queue.exists and queue.created_at != made_at:
            return f"{queue.queue_arn} was deleted meanwhile, and made again"
    if dlq.exists and not source.exists:
        gone = f"is gone, and with it what nobody took of {progress.moved:,} messages sent there"
        name, left = dlq.name, dlq.visible + dlq.in_flight
        others = f"{left:,} are in {name}: `mendq redrive {name} --to OTHER --all` sends them on"
        return f"{source.queue_arn} {gone}; {others}"
    consent = run.settings.consent
    arns = confirmed_sources_of(run.clients, dlq, consent) if dlq.exists else ()
    return why_not_between(dlq, source, arns, consent) or ""


def _cause_is_back(progress: RedriveProgress, run: RedriveRun) -> str:
    """The first open case of a cause at the source."""
    for each in run.open_cases.newest_about([progress.source_arn]):
        if each.symptom in CAUSES and still_shows(each):
            return f"case {each.case_id} says that {each.symptom} shows at the source"
    return ""


def _deleted_since(progress: RedriveProgress, run: RedriveRun) -> int | None:
    """Asked in a soak alone: whole minutes, after the one in which messages last went."""
    if progress.stage is not Stage.SOAK or progress.moved_at is None:
        return None
    since = progress.moved_at.replace(second=0, microsecond=0) + timedelta(minutes=1)
    return _deleted(progress, since, run)


def _deletes_per_second(progress: RedriveProgress, run: RedriveRun) -> float | None:
    """Since what went back last was there to be deleted; None where CloudWatch does not say."""
    bounds, until = run.settings.bounds, run.now - CLOUDWATCH_LAG
    shortest = bounds.measuring_seconds if progress.moved_at else bounds.measuring_first_seconds
    since = min(until - timedelta(seconds=shortest), progress.moved_at or until)
    deleted = _deleted(progress, since, run)
    return None if deleted is None else deleted / (until - since).total_seconds()


def _deleted(progress: RedriveProgress, since: datetime, run: RedriveRun) -> int | None:
    with suppress(FactsUnavailable):
        return messages_deleted(run.clients, progress.source_arn, since, run.now - CLOUDWATCH_LAG)
    return None


class RedriveStart(Struct, frozen=True):
    """Take up a redrive: ask whether all fits, and move nothing; each tick asks again.

    What is written is at most the DLQ's retention, where messages would otherwise
    expire on the way. `consent` says of both queues whether messages may be moved between them.
    """

    consent: Consent

    def write(
        self, clients: Clients, seen: Facts, steps: Sequence[AttributeStep]
    ) -> Refusal | None:
        """Check that the messages may go back; refuses and raises as `apply.write` does."""
        now = Facts(seen.queue_arn, attributes_of(clients, seen.queue_arn), seen.tags)
        if refusal := changed_meanwhile(now, seen, steps):
            return refusal
        if fault := self._misfit(clients, now, steps):
            return Refuse("redrive_unfit", f"no message goes back: {fault}")
        to_set = [step for step in steps if step.leaves_a_value]
        return write(clients, seen, to_set) if to_set else None

    def _misfit(self, clients: Clients, now: Facts, steps: Sequence[AttributeStep]) -> str | None:
        redrives = [step for step in steps if isinstance(step, RedriveMessages)]
        if len(redrives) != 1:
            return "the plan does not send messages back to one queue"
        source = _facts(redrives[0].after, clients)
        sources = confirmed_sources_of(clients, now, self.consent)
        if fault := why_not_between(now, source, sources, self.consent):
            return fault
        runs = move_task_runs(clients, now.queue_arn)
        return "a message movement task runs on it already" if runs else None
