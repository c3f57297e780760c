"""Write the subject and the text of each kind of notification.

The kinds are: a case, a mass symptom, a flood of calls, held back notifications, and mail that SES
refused. The line that asks people to act comes first, then possible causes, then the rest.
"""

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

# The most characters of the first line, which a locked phone shows.
MOST_FIRST_LINE = 122
# The most characters of a symptom's name; no symptom of the catalogue is longer.
_MOST_SYMPTOM = 28
_ACRONYMS = frozenset({"dlq", "kms", "fifo", "id"})
# The most lines of advice after the change.
_MOST_NAMED = 5
# A notification about callers (a flood, held back notifications) names at most this many.
MOST_CALLERS = 50
# The most lines of advice before the change.
_MOST_FIRST = 4
# The most characters of the reason. The longest reasons are those of a DLQ for a FIFO queue, with
# what a person must know at their end.
_MOST_WHY = 2_000

# The request to the reader by state: in full, and a short one if the queue's name is long.
_ASKS: dict[State, tuple[str, str]] = {
    State.PROPOSED: ("Mendq proposes a change: approve it or decline it.", "Approve?"),
    State.APPROVED: ("It was approved and is held up: please look at it.", "Look at it"),
    State.INEFFECTIVE: ("Mendq's next step is held up: please look at it.", "Look at it"),
    State.EXPIRED: ("You approved it, and it was not done: please look at it.", "Look at it"),
    State.REFUSED: ("Mendq changed nothing: please look at it.", "Look at it"),
    State.ESCALATED: ("Mendq cannot fix this: please act.", "Please act"),
    State.OVERRIDDEN: ("Two values for one setting: please choose one.", "Choose one"),
}

# The states of a case that people may be notified about.
NOTIFIED = frozenset(_ASKS)


class CaseDetails(Struct, frozen=True):
    """Content of a case's notification, besides the case itself.

    `next_command`, `first` and `beyond` are shown unchanged: the code that makes them quotes the
    texts of other parties.

    Args:
        sentence: The symptom's sentence.
        facts: The queue's facts now. They have no attributes if the queue was deleted.
        last_change: The last change that CloudTrail has, None if it has none; or a text that says
            why CloudTrail could not be asked.
        next_command: The command that the refusal itself names. If it is empty, `next_step` chooses
            one by the case's code or state.
        baselines: Configurations with which a scan found the queue healthy, newest first.
        first: Lines about things to do before the change.
        beyond: Lines about things to do after the change.
        shown: Names of attributes to show even if they are not set.
        beside: Further sections, which the symptom adds.
        aws_health: Lines about open events of AWS Health. They come first.
        so_far: The case's timeline.
        spans: Names with seconds: the time that consumers need, and the time that they have.
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


def describe_case(case: Case, details: CaseDetails) -> NotificationText:
    """Return the notification about a case.

    Raises:
        ValueError: The case's state is not in NOTIFIED.
    """
    if case.state not in NOTIFIED:
        raise ValueError(f"a case that is {case.state} is never paged: {case.case_id}")
    facts = details.facts
    attributes = facts.attributes
    first = first_of((_clean_advice(line) for line in details.first), _MOST_FIRST)
    beyond = first_of((_clean_advice(line) for line in details.beyond), _MOST_NAMED)
    spans = tuple("  ".join(line) for line in draw_bars(details.spans))
    sections = (
        Section("FIRST", first, cut=False),
        Section("CHANGE", change(case, attributes), cut=False),
        Section("NEXT", next_lines(case, details.next_command), cut=False),
        Section("UNDO", undo(case, attributes), cut=False),
        Section("SINCE IT WORKED", tuple(baseline_lines(details.baselines, facts, case.at))),
        Section("CHANGED LAST BY", changed_last_lines(details.last_change)),
        Section("EVIDENCE", evidence_lines(case.evidence, facts.event_names)),
        Section("CASE SO FAR (UTC)", _draw_timeline(details.so_far)),
        Section("CONSUMERS NEED, AND HAVE", spans),
        Section("QUEUE NOW", facts_lines(case.steps, facts, tuple(details.shown))),
        *details.beside,
        *template(case, facts),
        Section("BEYOND THAT", beyond),
    )
    queue = parts_of(case.queue_arn)
    where = place(queue.account, queue.region)
    words = symptom_words(case.symptom)
    opening = (
        first_line(f"{queue.name}: {words}.", *_ASKS[case.state]),
        *details.aws_health,
        f"What: {plain(details.sentence, 300)}",
        f"Why: {plain(with_code(case), _MOST_WHY)}",
    )
    subject = subject_of(f"Mendq {case.state}: {words} on", queue.name, where)
    return _join_text(subject, opening, *sections)


def _draw_timeline(points: Sequence[TimelinePoint]) -> tuple[str, ...]:
    """Return the lines of a timeline. Up to two points give none: other lines have them already."""
    if len(points) <= 2:
        return ()
    return tuple("  ".join(line) for line in timeline_lines(points))


def _join_text(subject: str, opening: Sequence[str], *sections: Section) -> NotificationText:
    """Return the notification, without the sections that have no lines."""
    filled = [section for section in sections if section.lines]
    return NotificationText(subject, body(opening, filled, MOST_BYTES))


def symptom_words(symptom: str) -> str:
    """Return a symptom's name in words, such as `DLQ missing` for `dlq_missing`."""
    words = (word.upper() if word in _ACRONYMS else word for word in symptom.split("_"))
    return plain(" ".join(words), _MOST_SYMPTOM)


def first_line(what: str, *asks: str) -> str:
    """Return the first line, with the first of `asks` that fits into it, or the last of them.

    A locked phone shows only this line.
    """
    fitting = [ask for ask in asks if len(what) + 1 + len(ask) <= MOST_FIRST_LINE]
    ask = fitting[0] if fitting else asks[-1]
    return f"{what} {ask}"[:MOST_FIRST_LINE]


def subject_of(what: str, where: str, within: str = "") -> str:
    """Return a subject of at most MOST_SUBJECT characters: `WHAT WHERE in WITHIN`.

    `in WITHIN` is left out if `within` is empty. If `where` is too long, its middle is left out,
    because long names differ at their ends.
    """
    place_text = f" in {within}" if within else ""
    room = MOST_SUBJECT - len(what) - 1 - len(place_text)
    end = (room - 3) // 2
    shown = where if len(where) <= room else f"{where[: room - 3 - end]}...{where[-end:]}"
    return f"{what} {shown}{place_text}"


def place(account: str, region: str) -> str:
    """Return an account and its region for a subject or a line."""
    return f"{plain(account, 12)} {plain(region, 32)}"


def _clean_advice(text: str) -> str:
    """Return a line of advice: unchanged if it is a printable command, otherwise made safe."""
    return text if command_line(text) == text else plain(text, 300)


# The most queues that a notification about a mass symptom names.
_MOST_QUEUES = 10


class MassSymptom(Struct, frozen=True):
    """A symptom that many queues show at once.

    Args:
        name: The symptom's name.
        sentence: The symptom's sentence.
        runbook: The path of its runbook.
        advice: A sentence that says how to find the common cause.
        next_command: The command to type first, empty if there is none.
        aws_health: Lines about open events of AWS Health.
        own_changes: Lines about changes by Mendq that may be the common cause.
    """

    name: str
    sentence: str
    runbook: str
    advice: str
    next_command: str = ""
    aws_health: Iterable[str] = ()
    own_changes: Iterable[str] = ()


def describe_mass_symptom(
    symptom: MassSymptom,
    queue_arns: Collection[str],
    managed_queues: int,
    now: datetime,
    where: str,
) -> NotificationText:
    """Return one notification about all queues that show a mass symptom.

    Args:
        symptom: The symptom.
        queue_arns: The queues, in the order in which they are named.
        managed_queues: The number of managed queues. 0 if they were not counted.
        now: The time of the notification.
        where: The account and region, from `place`.
    """
    words = symptom_words(symptom.name)
    count = f"{len(queue_arns)}"
    if managed_queues:
        count = f"{len(queue_arns)} of {managed_queues}"
    names = (plain(queue_arn.rpartition(":")[2], 80) for queue_arn in queue_arns)
    opening = (
        first_line(f"{count} queues: {words}.", "One cause elsewhere is likely: please look."),
        *(plain(line, 600) for line in symptom.own_changes),
        *symptom.aws_health,
        f"What: {plain(symptom.sentence, 300)}",
        "Why: many queues at once have a cause that is not theirs. Mendq changes none of them now.",
    )
    steps = [plain(symptom.advice, 600)]
    if symptom.next_command:
        steps.append(command_line(symptom.next_command))
    steps += [f"runbook: {plain(symptom.runbook)}", f"seen {moment(now)} in {where}"]
    queues = Section("QUEUES", first_of(names, _MOST_QUEUES))
    subject = subject_of(f"Mendq stopped: {words} on", f"{count} queues in {where}")
    return _join_text(subject, opening, queues, Section("NEXT", tuple(steps), cut=False))


def describe_flood(
    left_out: Iterable[tuple[str, int]], now: datetime, where: str
) -> NotificationText:
    """Return the notification about failed calls that name more queues than Mendq looks at.

    Args:
        left_out: Each caller with the number of unmanaged queue names that were left out.
        now: The time of the notification.
        where: The account and region, from `place`.
    """
    opening = (
        first_line(f"Mendq in {where}:", "calls name ever other queues: please look who calls."),
        "What: failed calls name more queues than Mendq looks at. It manages none of these.",
        "Why: managed queues come first, other names in turns, caller by caller; the rest is left.",
    )
    callers = (f"{value(caller)}: {format_count(names, 'name')}" for caller, names in left_out)
    steps = ("runbook: docs/runbooks/intake_late.md", f"seen {moment(now)} in {where}")
    return _describe_callers("Mendq sees a flood of calls:", where, opening, callers, steps)


def describe_held_back(callers: Iterable[str], account: str, region: str) -> NotificationText:
    """Return the notification that names the callers whose notifications are held back."""
    where = place(account, region)
    opening = (
        first_line(f"Mendq in {where}:", "more pages than people can read: see the open cases."),
        "What: in this hour pages waited, about calls of these callers or what a scan found.",
        f"Why: nobody reads more than {NOTIFICATIONS_PER_HOUR} an hour. Each case is written down.",
    )
    names = (value(caller) for caller in callers)
    steps = (command_line(f"mendq cases --open --region {quote(plain(region))}"),)
    return _describe_callers("Mendq holds pages back:", where, opening, names, steps)


def _describe_callers(
    subject: str,
    where: str,
    opening: Sequence[str],
    callers: Iterable[str],
    steps: tuple[str, ...],
) -> NotificationText:
    """Return a notification with a section of callers and one of next steps."""
    who = Section("WHO", first_of(callers, MOST_CALLERS))
    return _join_text(subject_of(subject, where), opening, who, Section("NEXT", steps, cut=False))


RUNBOOK = "docs/runbooks/report_not_mailed.md"
# The most refused addresses that a notification names.
_MOST_ADDRESSES = 20


class Redelivery(Struct, frozen=True):
    """Data for the command that delivers a report again.

    `function` is the name of the Lambda function that delivers reports. `key` is the S3 key of the
    report's summary, which the function gets in its event.
    """

    function: str
    region: str
    key: str


# The reason why there is no report, for `mendq report` and `mendq doctor`.
NOTHING_COUNTED = "the nightly job is off (nightly.enabled: false), so nobody counts incidents"


def describe_refused_mail(
    week: str, refused: Mapping[str, str], redelivery: Redelivery
) -> NotificationText:
    """Return the notification that SES refused to mail the report to some addresses.

    Args:
        week: The ISO week of the report.
        refused: Each refused address with SES's error message.
        redelivery: Data for the command that delivers the report again.
    """
    opening = (
        f"SES refused to mail the report of week {plain(week, 10)}. Please act.",
        f"To: {format_count(len(refused), 'address', 'addresses')}; nobody else is kept waiting.",
    )
    refusals = (f"{plain(address, 100)}: {plain(why, 400)}" for address, why in refused.items())
    region = plain(redelivery.region, 32)
    event = json.dumps({"detail": {"object": {"key": redelivery.key}}}, separators=(",", ":"))
    commands = (
        f"aws sesv2 list-email-identities --region {region}",
        command_line(
            f"aws lambda invoke --function-name {redelivery.function} --region {region} "
            f"--cli-binary-format raw-in-base64-out --payload {quote(event)} /dev/stdout"
        ),
        f"runbook: {RUNBOOK}",
    )
    section = Section("REFUSED", first_of(refusals, _MOST_ADDRESSES))
    subject = f"Mendq: the report of week {plain(week, 10)} was not mailed"
    return _join_text(subject, opening, section, Section("NEXT", commands, cut=False))
