"""Looks at everything that decides about the next tick of a redrive; reads only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from functions.aws.dead_letters_look import source_arns_of
from functions.aws.errors import FactsUnavailable, QueueGone
from functions.aws.messages_deleted import messages_deleted
from functions.aws.move_tasks import newest_task
from functions.aws.queue_look import attributes_of, tags_of
from functions.aws.redrive_run import RedriveRun
from functions.healing.causes import CAUSES, still_shows
from functions.healing.facts import Facts
from functions.healing.measuring import CLOUDWATCH_LAG
from functions.healing.plain_text import counted
from functions.healing.redrive_consent import why_not_to_move
from functions.healing.redrive_course import Course
from functions.healing.redrive_look import Look, Source

_WAITING = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)
_AS_SHIPPED = {"VisibilityTimeout": "30", "DelaySeconds": "0", "MaximumMessageSize": "1048576"}


@dataclass(frozen=True)
class Queues:
    """Both queues as they are now; without attributes where one is gone."""

    dead_letters: Facts
    source: Facts

    @property
    def most_bytes(self) -> int:
        """The longest letter that the source takes."""
        return _number(self.source, "MaximumMessageSize")

    @property
    def waiting(self) -> int:
        return sum(int(self.dead_letters.attributes.get(name, "0")) for name in _WAITING)


def queues_of(course: Course, run: RedriveRun) -> Queues:
    """Raises FactsUnavailable or QueueRefusesUs."""
    return Queues(_facts(course.dead_letter_arn, run), _facts(course.source_arn, run))


def look_of(course: Course, queues: Queues, frozen: str | None, run: RedriveRun) -> Look:
    """What is seen of it; `frozen` as the ledger says. Raises as `queues_of`, and the ledger's."""
    return Look(
        run.now,
        queues.waiting,
        _source(queues.source, run),
        newest_task(run.clients, course.dead_letter_arn),
        is_fifo=queues.source.is_fifo,
        frozen=frozen or run.closed_calendars or "",
        forbidden=_misfit(queues, run) or _cause_is_back(course, run),
    )


def _facts(queue_arn: str, run: RedriveRun) -> Facts:
    try:
        attributes = attributes_of(run.clients, queue_arn)
        return Facts(queue_arn, attributes, tags_of(run.clients, queue_arn) or {})
    except QueueGone:
        return Facts(queue_arn, {}, {})


def _source(source: Facts, run: RedriveRun) -> Source:
    return Source(
        lease_seconds=_number(source, "VisibilityTimeout"),
        receives=source.max_receive_count or 1,
        delay_seconds=_number(source, "DelaySeconds"),
        visible=int(source.attributes.get("ApproximateNumberOfMessages", "0")),
        deletes_per_second=_deletes_per_second(source.queue_arn, run),
    )


def _deletes_per_second(queue_arn: str, run: RedriveRun) -> float | None:
    """None where CloudWatch does not say."""
    seconds = run.settings.bounds.measuring_seconds
    until = run.now - CLOUDWATCH_LAG
    since = until - timedelta(seconds=seconds)
    try:
        return messages_deleted(run.clients, queue_arn, since, until) / seconds
    except FactsUnavailable:
        return None


def _misfit(queues: Queues, run: RedriveRun) -> str:
    """Why letters may not go from the one to the other any more."""
    dead_letters, source = queues.dead_letters, queues.source
    if not dead_letters.exists or not source.exists:
        gone = source if dead_letters.exists else dead_letters
        return f"there is no queue {gone.queue_arn} any more"
    if source.dead_letter_arn != dead_letters.queue_arn:
        return f"{source.queue_arn} does not name it as its dead-letter queue any more"
    consent = run.consent
    why_not = why_not_to_move(dead_letters, consent) or why_not_to_move(source, consent)
    sources = source_arns_of(run.clients, dead_letters.queue_arn)
    if not why_not and sources != (source.queue_arn,):
        return f"it is the dead-letter queue of {counted(len(sources), 'queue')} by now"
    return why_not or ""


def _cause_is_back(course: Course, run: RedriveRun) -> str:
    """The first open case of a cause at the source."""
    cases = run.open_cases.newest_about([course.source_arn])
    back = (each for each in cases if each.symptom in CAUSES and still_shows(each))
    case = next(back, None)
    return f"case {case.case_id} says that {case.symptom} shows at the source" if case else ""


def _number(facts: Facts, attribute: str) -> int:
    return int(facts.attributes.get(attribute, _AS_SHIPPED[attribute]))
