"""Notifications: plain text about a case, about many queues, or about the report."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from shlex import quote

from msgspec import Struct

from mendq.model.case import Case, State
from mendq.model.facts import Facts
from mendq.model.policy import QueueChange
from mendq.model.queue import parts_of
from mendq.model.timeline import TimelinePoint
from mendq.notifications.announcements import NOTIFICATIONS_PER_HOUR
from mendq.notifications.change_lines import change, template, undo
from mendq.notifications.configuration import Baseline
from mendq.notifications.next_steps import next_lines, with_code
from mendq.notifications.queue_lines import (
    baseline_lines,
    changed_last_lines,
    draw_bars,
    evidence_lines,
    facts_lines,
    timeline_lines,
)
from mendq.notifications.sent import MOST_BYTES, MOST_SUBJECT, NotificationText
from mendq.notifications.text import (
    Section,
    body,
    command_line,
    first_of,
    format_count,
    moment,
    plain,
    value,
)

MOST_FIRST_LINE = 122
_MOST_SYMPTOM = 28
_ACRONYMS = frozenset({"dlq", "kms", "fifo", "id"})
_MOST_NAMED = 5
# The sum of held back notifications names at most this many callers.
MOST_CALLERS = 50
_MOST_FIRST = 4
# The longest sentences are those of a DLQ for a FIFO queue: what a person has to know comes last.
_MOST_WHY = 2_000

# What is asked of the reader: in full, and where the queue's name is long.
_ASKS: dict[State, tuple[str, str]] = {
    State.PROPOSED: ("Mendq proposes a change: approve it or decline it.", "Approve?"),
    State.APPROVED: ("It was approved and is held up: please look at it.", "Look at it"),
    State.INEFFECTIVE: ("Mendq's next step is held up: please look at it.", "Look at it"),
    State.EXPIRED: ("You approved it, and it was not done: please look at it.", "Look at it"),
    State.REFUSED: ("Mendq changed nothing: please look at it.", "Look at it"),
    State.ESCALATED: ("Mendq cannot fix this: please act.", "Please act"),
    State.OVERRIDDEN: ("Two values for one setting: please choose one.", "Choose one"),
}

NOTIFIED = frozenset(_ASKS)


class CaseDetails(Struct, frozen=True):
    """What a case's page says beyond the case.

    `sentence` is the symptom's; the attributes of `facts` are the queue's now, empty where it is
    gone; `last_change` is None where CloudTrail knows of none, a text where it could not be asked.
    `baselines` are how a scan found the queue well, newest first. `shown` names attributes to show
    whole, set or not; `beside` are the symptom's own sections, and `aws_health` says first what
    troubles AWS. `so_far` is the case's time line, `spans` how long consumers need, and have.
    `first` has to be done before the change, `beyond` after it; they and `next_command` (empty:
    look at the queue) stand as they are given: their maker quotes what is not its own.
    """

    sentence: str
    facts: Facts
    last_change: QueueChange | str | None
    next_command: str
    baselines: tuple[Baseline, ...] = ()
    first: Iterable[str] = ()
    beyond: Iterable[str] = ()
    shown: Iterable[str] = ()
    beside: Iterable[Section] = ()
    aws_health: Iterable[str] = ()
    so_far: Sequence[TimelinePoint] = ()
    spans: Sequence[tuple[str, float]] = ()


def describe_case(case: Case, of: CaseDetails) -> NotificationText:
    """The page of a case in one of the states of NOTIFIED; anything else raises ValueError.

    What is to be done comes first, then what may have caused it, then the rest.
    """
    if case.state not in NOTIFIED:
        raise ValueError(f"a case that is {case.state} is never paged: {case.case_id}")
    attributes = of.facts.attributes
    sections = (
        Section("FIRST", first_of((_advice(each) for each in of.first), _MOST_FIRST), cut=False),
        Section("CHANGE", change(case, attributes), cut=False),
        Section("NEXT", next_lines(case, of.next_command), cut=False),
        Section("UNDO", undo(case, attributes), cut=False),
        Section("SINCE IT WORKED", tuple(baseline_lines(of.baselines, of.facts, case.at))),
        Section("CHANGED LAST BY", changed_last_lines(of.last_change)),
        Section("EVIDENCE", evidence_lines(case.evidence, of.facts.event_names)),
        Section("CASE SO FAR (UTC)", _picture(of.so_far)),
        Section("CONSUMERS NEED, AND HAVE", tuple(map("  ".join, draw_bars(of.spans)))),
        Section("QUEUE NOW", facts_lines(case.steps, of.facts, tuple(of.shown))),
        *of.beside,
        *template(case, of.facts),
        Section("BEYOND THAT", first_of((_advice(each) for each in of.beyond), _MOST_NAMED)),
    )
    arn = parts_of(case.queue_arn)
    name, where = arn.name, place(arn.account, arn.region)
    words = symptom_words(case.symptom)
    opening = (
        first_line(f"{name}: {words}.", *_ASKS[case.state]),
        *of.aws_health,
        f"What: {plain(of.sentence, 300)}",
        f"Why: {plain(with_code(case), _MOST_WHY)}",
    )
    return _text(subject_of(f"Mendq {case.state}: {words} on", name, where), opening, *sections)


def _picture(points: Sequence[TimelinePoint]) -> tuple[str, ...]:
    """Two points are no picture: the lines above say as much."""
    return tuple(map("  ".join, timeline_lines(points))) if len(points) > 2 else ()


def _text(subject: str, opening: Sequence[str], *sections: Section) -> NotificationText:
    """What has nothing to say is left out."""
    filled = [each for each in sections if each.lines]
    return NotificationText(subject, body(opening, filled, MOST_BYTES))


def symptom_words(symptom: str) -> str:
    """`dlq_missing` as `DLQ missing`, whole for every symptom of the catalogue."""
    words = (word.upper() if word in _ACRONYMS else word for word in symptom.split("_"))
    return plain(" ".join(words), _MOST_SYMPTOM)


def first_line(what: str, *asks: str) -> str:
    """What a locked phone shows, with the first of `asks` that fits beside it."""
    fitting = [each for each in asks if len(what) + 1 + len(each) <= MOST_FIRST_LINE]
    return f"{what} {fitting[0] if fitting else asks[-1]}"[:MOST_FIRST_LINE]


def subject_of(what: str, where: str, within: str = "") -> str:
    """A long name keeps its beginning and its end, where names differ; `within` is a `place`."""
    place_text = f" in {within}" if within else ""
    room = MOST_SUBJECT - len(what) - 1 - len(place_text)
    end = (room - 3) // 2
    shown = where if len(where) <= room else f"{where[: room - 3 - end]}...{where[-end:]}"
    return f"{what} {shown}{place_text}"


def place(account: str, region: str) -> str:
    """An account and its region, in words that are theirs alone."""
    return f"{plain(account, 12)} {plain(region, 32)}"


def _advice(text: str) -> str:
    return text if command_line(text) == text else plain(text, 300)


_MOST_QUEUES = 10


class MassSymptom(Struct, frozen=True):
    """A symptom that many queues have, and how to find their common cause.

    `own_changes` are lines about changes by Mendq that may be this cause.
    """

    name: str
    sentence: str
    runbook: str
    advice: str
    next_command: str = ""
    aws_health: Iterable[str] = ()
    own_changes: Iterable[str] = ()


def describe_mass_symptom(
    of: MassSymptom, queue_arns: Collection[str], managed_queues: int, now: datetime, where: str
) -> NotificationText:
    """One page for many queues, in that order; `managed_queues` 0: not counted; in a `place`."""
    words = symptom_words(of.name)
    of_all = f"{len(queue_arns)} of {managed_queues}" if managed_queues else f"{len(queue_arns)}"
    names = (plain(each.rpartition(":")[2], 80) for each in queue_arns)
    opening = (
        first_line(f"{of_all} queues: {words}.", "One cause elsewhere is likely: please look."),
        *(plain(each, 600) for each in of.own_changes),
        *of.aws_health,
        f"What: {plain(of.sentence, 300)}",
        "Why: many queues at once have a cause that is not theirs. Mendq changes none of them now.",
    )
    steps = (
        plain(of.advice, 600),
        *([command_line(of.next_command)] if of.next_command else []),
        f"runbook: {plain(of.runbook)}",
        f"seen {moment(now)} in {where}",
    )
    queues = Section("QUEUES", first_of(names, _MOST_QUEUES))
    subject = subject_of(f"Mendq stopped: {words} on", f"{of_all} queues in {where}")
    return _text(subject, opening, queues, Section("NEXT", steps, cut=False))


def describe_flood(
    left_out: Iterable[tuple[str, int]], now: datetime, where: str
) -> NotificationText:
    """Callers whose failed calls name more unmanaged queues than are looked at, with how many."""
    opening = (
        first_line(f"Mendq in {where}:", "calls name ever other queues: please look who calls."),
        "What: failed calls name more queues than Mendq looks at. It manages none of these.",
        "Why: managed queues come first, other names in turns, caller by caller; the rest is left.",
    )
    callers = (f"{value(arn)}: {format_count(n, 'name')}" for arn, n in left_out)
    steps = ("runbook: docs/runbooks/intake_late.md", f"seen {moment(now)} in {where}")
    return _in_sum("Mendq sees a flood of calls:", where, opening, callers, steps)


def describe_held_back(callers: Iterable[str], account: str, region: str) -> NotificationText:
    """Whose calls failed where pages wait."""
    where = place(account, region)
    opening = (
        first_line(f"Mendq in {where}:", "more pages than people can read: see the open cases."),
        "What: in this hour pages waited, about calls of these callers or what a scan found.",
        f"Why: nobody reads more than {NOTIFICATIONS_PER_HOUR} an hour. Each case is written down.",
    )
    steps = (command_line(f"mendq cases --open --region {quote(plain(region))}"),)
    return _in_sum("Mendq holds pages back:", where, opening, map(value, callers), steps)


def _in_sum(
    subject: str, where: str, opening: Sequence[str], who: Iterable[str], steps: tuple[str, ...]
) -> NotificationText:
    sections = (Section("WHO", first_of(who, MOST_CALLERS)), Section("NEXT", steps, cut=False))
    return _text(subject_of(subject, where), opening, *sections)


RUNBOOK = "docs/runbooks/report_not_mailed.md"
_MOST_ADDRESSES = 20


class Redelivery(Struct, frozen=True):
    """How to deliver once more: the function, the region, and the summary's key in its event."""

    function: str
    region: str
    key: str


NOTHING_COUNTED = "the nightly job is off (nightly.enabled: false), so nobody counts incidents"


def describe_refused_mail(
    week: str, whom: Mapping[str, str], again: Redelivery
) -> NotificationText:
    """`whom` are the addresses that were refused, each with SES's own words."""
    opening = (
        f"SES refused to mail the report of week {plain(week, 10)}. Please act.",
        f"To: {format_count(len(whom), 'address', 'addresses')}; nobody else is kept waiting.",
    )
    words = (f"{plain(address, 100)}: {plain(why, 400)}" for address, why in whom.items())
    region = plain(again.region, 32)
    event = json.dumps({"detail": {"object": {"key": again.key}}}, separators=(",", ":"))
    commands = (
        f"aws sesv2 list-email-identities --region {region}",
        command_line(
            f"aws lambda invoke --function-name {again.function} --region {region} "
            f"--cli-binary-format raw-in-base64-out --payload {quote(event)} /dev/stdout"
        ),
        f"runbook: {RUNBOOK}",
    )
    refused = Section("REFUSED", first_of(words, _MOST_ADDRESSES))
    subject = f"Mendq: the report of week {plain(week, 10)} was not mailed"
    return _text(subject, opening, refused, Section("NEXT", commands, cut=False))
