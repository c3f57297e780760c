"""Looks at everything that decides about the next tick of a redrive; reads only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta

from functions.aws.dead_letters_look import source_arns_of
from functions.aws.errors import FactsUnavailable, QueueGone, QueueRefusesUs
from functions.aws.messages_deleted import messages_deleted
from functions.aws.move_tasks import newest_task
from functions.aws.queue_look import attributes_of, tags_of
from functions.aws.redrive_run import RedriveRun
from functions.healing.causes import CAUSES, still_shows
from functions.healing.facts import Facts
from functions.healing.measuring import CLOUDWATCH_LAG
from functions.healing.queue_defaults import number_in
from functions.healing.redrive_consent import why_not_between
from functions.healing.redrive_course import Course, Stage
from functions.healing.redrive_look import Look, Source

_WAITING = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)


@dataclass(frozen=True)
class Queues:
    """Both queues as they are now; without attributes where one is gone, or was not shown.

    `refused` says which keeps us out, and how; `hindered` why one was not shown this time.
    """

    dead_letters: Facts
    source: Facts
    refused: str = ""
    hindered: str = ""

    @property
    def most_bytes(self) -> int:
        """The longest letter that the source takes."""
        return number_in(self.source.attributes, "MaximumMessageSize")

    @property
    def waiting(self) -> int:
        return sum(int(self.dead_letters.attributes.get(name, "0")) for name in _WAITING)


@dataclass
class Faults:
    """Why looks failed: the first that a queue's own policy forbids, the first that may pass."""

    refused: str = ""
    hindered: str = ""

    @contextmanager
    def met(self) -> Iterator[None]:
        try:
            yield
        except QueueRefusesUs as error:
            self.refused = self.refused or str(error)
        except FactsUnavailable as error:
            self.hindered = self.hindered or str(error)


def queues_of(course: Course, run: RedriveRun) -> Queues:
    """Never raises for what SQS answers."""
    faults = Faults()
    with faults.met():
        return Queues(_facts(course.dead_letter_arn, run), _facts(course.source_arn, run))
    unseen = (Facts(each, {}, {}) for each in (course.dead_letter_arn, course.source_arn))
    return Queues(*unseen, faults.refused, faults.hindered)


def with_makings(course: Course, queues: Queues) -> Course:
    """With when its queues were made, from the first time that they were seen."""
    return replace(
        course,
        dead_letters_made_at=course.dead_letters_made_at or queues.dead_letters.created_at,
        source_made_at=course.source_made_at or queues.source.created_at,
    )


def look_of(course: Course, queues: Queues, frozen: str | None, run: RedriveRun) -> Look:
    """What is seen of it; `frozen` as the ledger says. Raises the ledger's errors."""
    faults, task, misfit = Faults(queues.refused, queues.hindered), None, ""
    tasks_unseen = True
    with faults.met():
        task = newest_task(run.clients, course.dead_letter_arn)
        tasks_unseen = False
    with faults.met():
        misfit = _misfit(course, queues, run)
    refused = faults.refused and f"a queue keeps Mendq out: {faults.refused}"
    return Look(
        run.now,
        queues.waiting,
        _source(queues.source, course, run),
        task,
        is_fifo=queues.source.is_fifo,
        frozen=frozen or run.closed_calendars or "",
        forbidden=refused or misfit or _cause_is_back(course, run),
        hindered=faults.hindered,
        tasks_unseen=tasks_unseen,
    )


def _facts(queue_arn: str, run: RedriveRun) -> Facts:
    try:
        attributes = attributes_of(run.clients, queue_arn)
        return Facts(queue_arn, attributes, tags_of(run.clients, queue_arn) or {})
    except QueueGone:
        return Facts(queue_arn, {}, {})


def _source(source: Facts, course: Course, run: RedriveRun) -> Source:
    return Source(
        lease_seconds=number_in(source.attributes, "VisibilityTimeout"),
        receives=source.max_receive_count or 1,
        delay_seconds=number_in(source.attributes, "DelaySeconds"),
        visible=int(source.attributes.get("ApproximateNumberOfMessages", "0")),
        deletes_per_second=_deletes_per_second(course, run),
        deleted_since=_deleted_since(course, run),
    )


def _deleted_since(course: Course, run: RedriveRun) -> int | None:
    """Asked in a soak alone: whole minutes, after the one in which letters last went."""
    if course.stage is not Stage.SOAK or course.moved_at is None:
        return None
    since = course.moved_at.replace(second=0, microsecond=0) + timedelta(minutes=1)
    try:
        return messages_deleted(run.clients, course.source_arn, since, run.now - CLOUDWATCH_LAG)
    except FactsUnavailable:
        return None


def _deletes_per_second(course: Course, run: RedriveRun) -> float | None:
    """Since what went back last was there to be deleted; None where CloudWatch does not say."""
    bounds, until = run.settings.bounds, run.now - CLOUDWATCH_LAG
    shortest = bounds.measuring_seconds if course.moved_at else bounds.measuring_first_seconds
    since = min(until - timedelta(seconds=shortest), course.moved_at or until)
    try:
        deleted = messages_deleted(run.clients, course.source_arn, since, until)
    except FactsUnavailable:
        return None
    return deleted / (until - since).total_seconds()


def _misfit(course: Course, queues: Queues, run: RedriveRun) -> str:
    """Why letters may not go from the one to the other any more; raises as looks do."""
    if queues.refused or queues.hindered:
        return ""
    dead_letters, source = queues.dead_letters, queues.source
    for queue, made_at in (
        (dead_letters, course.dead_letters_made_at),
        (source, course.source_made_at),
    ):
        if queue.exists and made_at is not None and queue.created_at != made_at:
            return f"{queue.queue_arn} was deleted meanwhile, and made again"
    arns = source_arns_of(run.clients, dead_letters.queue_arn) if dead_letters.exists else ()
    return why_not_between(dead_letters, source, arns, run.consent) or ""


def _cause_is_back(course: Course, run: RedriveRun) -> str:
    """The first open case of a cause at the source."""
    cases = run.open_cases.newest_about([course.source_arn])
    back = (each for each in cases if each.symptom in CAUSES and still_shows(each))
    case = next(back, None)
    return f"case {case.case_id} says that {case.symptom} shows at the source" if case else ""
