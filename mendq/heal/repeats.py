"""Repeats: tell whether a case would only say again what people have heard."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Self

from mendq.cases.finding import Finding, Shared
from mendq.model.case import SILENT_DAYS, Case, State
from mendq.model.lifecycle import WATCHED
from mendq.model.limits import Consent, Mode, Timing
from mendq.model.queue import parts_of
from mendq.notifications.text import counted

if TYPE_CHECKING:
    from mendq.aws.queue import ManagedQueue
    from mendq.cases.open_cases import OpenCase

NEW_FAULTS_A_DAY = 10
# What is still found after so long is news again.
REMEMBERED = timedelta(days=30)


@dataclass(frozen=True)
class DailyPace:
    """Notes of (day, topic): which faults of which queues were told of, and when first."""

    notes: frozenset[tuple[date, str]] = frozenset()

    @classmethod
    def from_texts(cls, texts: Iterable[str]) -> Self:
        """A note that cannot be read is no note."""
        return cls(frozenset(note for text in texts if (note := _note_of(text))))

    def admitted(self, topics: Sequence[str], now: datetime) -> tuple[str, ...]:
        """Those of them that may be told of now: known ones, and new ones while the day has room.

        Known ones go on being told of, because a case stays open only while it is found again.
        """
        known = {topic for day, topic in self.notes if day > (now - REMEMBERED).date()}
        room = NEW_FAULTS_A_DAY - sum(day == now.date() for day, _ in self.notes)
        new = [each for each in dict.fromkeys(topics) if each not in known]
        admitted = known | set(new[: max(0, room)])
        return tuple(each for each in dict.fromkeys(topics) if each in admitted)

    def missing(self, admitted: Iterable[str], now: datetime) -> list[str]:
        """The texts to note."""
        known = {topic for day, topic in self.notes if day > (now - REMEMBERED).date()}
        return [f"{now:%Y-%m-%d} {each}" for each in sorted(set(admitted) - known)]

    def outdated(self, now: datetime) -> list[str]:
        """The texts that mean nothing any more."""
        oldest = (now - REMEMBERED).date()
        return [f"{day.isoformat()} {topic}" for day, topic in sorted(self.notes) if day <= oldest]


def _note_of(text: str) -> tuple[date, str] | None:
    day, _, topic = text.partition(" ")
    try:
        return date.fromisoformat(day), topic
    except ValueError:
        return None


A_DAY = timedelta(days=1)
# A scan comes round in an hour: a little less than a day, so that it is no day and an hour.
NOTED_EVERY = timedelta(hours=23)
SILENT_UNANSWERED = REMEMBERED


def is_repeat(case: Case, last: Case | None, now: datetime, timing: Timing) -> bool:
    """True where `case` opens on failed calls as `last` did, less than a cooldown ago."""
    cooldown = timedelta(minutes=timing.cooldown_minutes)
    return last is not None and last.says_the_same(case) and now - last.at < cooldown


def is_repeat_of_a_scan(
    case: Case, last: Case | None, now: datetime, *, of_configuration: bool = False
) -> bool:
    """The same of what a scan found: it finds it each hour, so it is told once a day.

    What a person declined is left alone for a week; what nobody answered, or a person closed
    unfixed, for a day, and of a fault in configuration, which nobody is in a hurry about, for
    SILENT_UNANSWERED.
    """
    if last is None:
        return False
    if last.says_the_same(case):
        return now - last.at < A_DAY
    return last.steps == case.steps and now - last.at < _silence_after(last, of_configuration)


def needs_no_look(
    last: Case | None, mode: Mode, now: datetime, modified_at: datetime | None
) -> bool:
    """True where a fault in configuration would be a repeat, whatever CloudWatch says.

    Its plan is the same as long as nobody has changed the queue.
    """
    if last is None or (modified_at is not None and modified_at > last.at):
        return False
    if last.state is State.OBSERVED and mode is Mode.OBSERVE:
        return now - last.at < A_DAY
    return now - last.at < _silence_after(last, of_configuration=True)


def was_noted_lately(open_case: Case, noted_at: datetime | None, now: datetime) -> bool:
    """True where an open case that waits has heard within the day that it is still found."""
    waits = open_case.state not in WATCHED
    return waits and now - max(open_case.at, noted_at or open_case.at) < NOTED_EVERY


def _silence_after(last: Case, of_configuration: bool) -> timedelta:
    """Zero for a case that ended in any other way."""
    if last.state is State.DECLINED:
        return timedelta(days=SILENT_DAYS)
    if last.state is State.EXPIRED:
        unanswered = last.came_from is State.PROPOSED
        return SILENT_UNANSWERED if of_configuration and unanswered else A_DAY
    unmended = last.state is State.CLOSED and last.came_from is State.ESCALATED
    return A_DAY if unmended else timedelta(0)


def one_for_each(
    findings: Iterable[Finding],
    open_topics: Container[str],
    mode_of: Callable[[str], Mode | None],
) -> list[Finding]:
    """The findings without those about a missing queue that another speaks for already.

    That is the one whose case is open, then the one whose queue's mode goes furthest, then the
    first by name. Its `sources` are all who name that queue: what is wrong with any of them goes
    first, because making the queue would dump the backlogs of all.
    """
    alike: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for each in sorted(findings):
        alike[each.symptom, each.about or each.queue_arn].append(each)
    retained = list[Finding]()
    for same in alike.values():
        first = min(
            same,
            key=lambda e: (e.topic not in open_topics, -(mode_of(e.queue_arn) or Mode.OBSERVE)),
        )
        others = tuple(each.queue_arn for each in same if each != first)
        retained.append(replace(first, sources=(*first.sources, *others), others=others))
    return retained


def spoken_for(
    findings: Iterable[Finding],
    managed: Iterable[ManagedQueue],
    open_cases: Sequence[OpenCase],
    consent: Consent,
) -> list[Finding]:
    """One finding for each missing queue, with those who may have asked for it before."""
    tags = {each.queue_arn: each.tags for each in managed}
    topics = {f"{each.queue_arn} {each.symptom}" for each in open_cases}
    retained = one_for_each(
        findings, topics, lambda arn: consent.mode_of(parts_of(arn).name, tags.get(arn, {}))
    )
    open_at: dict[str, list[str]] = defaultdict(list)
    for case in open_cases:
        open_at[case.symptom].append(case.queue_arn)
    return [
        replace(each, open_at=tuple(arn for arn in open_at[each.symptom] if arn != each.queue_arn))
        if each.about
        else each
        for each in retained
    ]


def silent_for(
    findings: Iterable[Finding], retained: Iterable[Finding]
) -> Mapping[Finding, Finding]:
    """The findings that were left out, each with the one that speaks for it."""
    speaks = {(each.symptom, each.about): each for each in retained if each.about}
    alike = ((each, speaks.get((each.symptom, each.about))) for each in findings)
    return {each: first for each, first in alike if first is not None and first != each}


def with_others(because: str, shared: Shared) -> str:
    """The sentence of a finding, with a few of the queues that it is said for as well."""
    if not shared.others:
        return because
    names = [parts_of(each).name for each in shared.others]
    number = counted(len(names) + shared.more, "other queue")
    verb = "names" if len(names) + shared.more == 1 else "name"
    rest = f" and {shared.more:,} more" if shared.more else ""
    return f"{because}. {number} {verb} it too: {', '.join(names)}{rest}"


def asks_for(case: Case, about: str) -> bool:
    """True where a plan of the case makes this queue."""
    return any(each.get("after") == about for each in case.steps)
