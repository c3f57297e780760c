"""The pages that people get: the one place that writes them. Plain text, for a phone at night."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from shlex import quote
from typing import Any

from functions.healing.case import Case
from functions.healing.change_lines import change, template, undo, with_unit
from functions.healing.difference import NOT_SET, configured, differences
from functions.healing.next_lines import next_lines
from functions.healing.plain_text import Section, body, command_line, first_of, plain, value
from functions.healing.queue_names import parts_of
from functions.healing.states import State

# SNS takes 262,144 bytes and a subject of less than 100 characters, ASCII where it goes by mail:
# https://docs.aws.amazon.com/sns/latest/api/API_Publish.html
MOST_BYTES = 8_000
MOST_SUBJECT = 99
MOST_FIRST_LINE = 120
_MOST_LINES = 20
_MOST_NAMED = 5
_MOST_QUEUES = 10
_MOST_FIRST = 2
_MOST_WHY = 1_000
_MOST_SHOWN = 1_000

# What is asked of the reader: in full, and where the queue's name is long.
_ASKS: dict[State, tuple[str, str]] = {
    State.PROPOSED: ("Mendq proposes a change: approve it or decline it.", "Approve?"),
    State.REFUSED: ("Mendq changed nothing: please look at it.", "Look at it"),
    State.ESCALATED: ("Mendq cannot mend this: please act.", "Please act"),
    State.CONTESTED: ("Two values for one setting: please choose one.", "Choose one"),
}
PAGED = frozenset(_ASKS)
_FACTS = (
    "VisibilityTimeout",
    "MessageRetentionPeriod",
    "RedrivePolicy",
    "KmsMasterKeyId",
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
)


@dataclass(frozen=True)
class Change:
    """Who changed the queue last, as CloudTrail's LookupEvents tells; the attributes it set."""

    at: datetime
    event_name: str
    principal_arn: str
    attributes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Known:
    """The last known configuration of a queue."""

    at: datetime
    attributes: Mapping[str, str]


@dataclass(frozen=True)
class Page:
    """What SNS is given: printable ASCII, within its limits whatever went in."""

    subject: str
    body: str


def of_case(  # noqa: PLR0913 - each is one thing that a reader asks
    case: Case,
    *,
    sentence: str,
    runbook: str,
    attributes: Mapping[str, str],
    tags: Mapping[str, str],
    event_names: Iterable[str],
    known: Known | None,
    last_change: Change | str | None,
    next_command: str,
    first: Iterable[str] = (),
    beyond: Iterable[str] = (),
    shown: Iterable[str] = (),
) -> Page:
    """The page of a case in one of the states of PAGED; anything else raises ValueError.

    `sentence` is the symptom's; `attributes` the queue's now, empty where it is gone;
    `last_change` is None where CloudTrail knows of none, a text where it could not be asked.
    `shown` names attributes to show whole, set or not. `first` has to be done before the change,
    `beyond` after it; they and `next_command` (empty: look at the queue) stand as they are given:
    their maker quotes what is not its own.
    """
    if case.state not in PAGED:
        raise ValueError(f"a case that is {case.state} is never paged: {case.case_id}")
    sections = (
        Section("EVIDENCE", _evidence(case.evidence, event_names)),
        Section("QUEUE NOW", _facts(case.steps, attributes, tags, tuple(shown))),
        Section("FIRST", first_of((_advice(each) for each in first), _MOST_FIRST), cut=False),
        Section("CHANGE", change(case, attributes), cut=False),
        Section("UNDO", undo(case, attributes), cut=False),
        *template(case, attributes, tags),
        Section("BEYOND THAT", first_of((_advice(each) for each in beyond), _MOST_NAMED)),
        Section("SINCE LAST KNOWN", _since(known, attributes)),
        Section("CHANGED LAST BY", _who(last_change)),
        Section("NEXT", next_lines(case, runbook, next_command), cut=False),
    )
    name = parts_of(case.queue_arn).name
    words = plain(case.symptom.replace("_", " "), 26)
    opening = (
        _first_line(f"{name}: {words}.", *_ASKS[case.state]),
        f"What: {plain(sentence, 300)}",
        f"Why: {plain(case.reason, _MOST_WHY)}",
    )
    return Page(
        _subject(f"Mendq {case.state}: {words} on", name),
        body(opening, [each for each in sections if each.lines], MOST_BYTES),
    )


def of_mass_symptom(  # noqa: PLR0913 - each is one thing that a reader asks
    symptom: str,
    sentence: str,
    runbook: str,
    *,
    queue_arns: Collection[str],
    managed_queues: int,
    now: datetime,
    account: str,
    region: str,
    advice: str,
    next_command: str = "",
) -> Page:
    """One page for many queues at once; `managed_queues` 0: not counted."""
    words, where = plain(symptom.replace("_", " "), 26), _where(account, region)
    of_all = f"{len(queue_arns)} of {managed_queues}" if managed_queues else f"{len(queue_arns)}"
    names = sorted(plain(each.rpartition(":")[2], 80) for each in queue_arns)
    opening = (
        _first_line(f"{of_all} queues: {words}.", "One cause elsewhere is likely: please look."),
        f"What: {plain(sentence, 300)}",
        "Why: many queues at once have a cause that is not theirs. Mendq changes none of them now.",
    )
    sections = (
        Section("QUEUES", first_of(names, _MOST_QUEUES)),
        Section(
            "NEXT",
            (
                plain(advice, 600),
                *([command_line(next_command)] if next_command else []),
                f"runbook: {plain(runbook)}",
                f"seen {_moment(now)} in {where}",
            ),
            cut=False,
        ),
    )
    subject = _subject(f"Mendq stopped: {words} on", f"{of_all} queues in {where}")
    return Page(subject, body(opening, sections, MOST_BYTES))


def of_held_back(account: str, region: str, now: datetime, pages_per_hour: int) -> Page:
    """The last page of an hour that had more of them than people can read."""
    where = _where(account, region)
    opening = (
        _first_line(f"Mendq in {where}:", "more pages than people can read: see the open cases."),
        f"What: {pages_per_hour} pages went out in the hour of {_moment(now)}; more are held back.",
        "Why: nobody reads more. Every case is written down, paged or not.",
    )
    prefix = f"cases/dt={now.astimezone(UTC):%Y-%m-%d}/"
    bucket = (
        f"aws cloudformation describe-stacks --region {quote(plain(region))} --stack-name Mendq"
        " --query \"Stacks[0].Outputs[?OutputKey=='CaseBucket'].OutputValue\" --output text"
    )
    lines = (
        "the cases of today; the first command prints CASE_BUCKET:",
        bucket,
        f"aws s3api list-objects-v2 --bucket CASE_BUCKET --prefix {prefix}",
    )
    subject = _subject("Mendq holds pages back:", f"over {pages_per_hour} in an hour, {where}")
    return Page(subject, body(opening, (Section("NEXT", lines, cut=False),), MOST_BYTES))


def _first_line(what: str, *asks: str) -> str:
    fitting = [each for each in asks if len(what) + 1 + len(each) <= MOST_FIRST_LINE]
    return f"{what} {fitting[0] if fitting else asks[-1]}"[:MOST_FIRST_LINE]


def _subject(what: str, where: str) -> str:
    room = MOST_SUBJECT - len(what) - 1
    end = (room - 3) // 2
    shown = where if len(where) <= room else f"{where[: room - 3 - end]}...{where[-end:]}"
    return f"{what} {shown}"


def _where(account: str, region: str) -> str:
    return f"{plain(account, 12)} {plain(region, 32)}"


def _moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _read_moment(text: object) -> str:
    try:
        return _moment(datetime.fromisoformat(str(text)))
    except (ValueError, OverflowError):
        return value(text, 40)


def _evidence(evidence: Mapping[str, Any], event_names: Iterable[str]) -> tuple[str, ...]:
    if not evidence.get("failed_calls"):
        return ("no failed call: the queue's own settings or metrics show it",)
    calls = ", ".join(first_of((value(each, 64) for each in sorted(event_names)), _MOST_NAMED))
    principals = (f"by {value(each)}" for each in evidence.get("principals", ()))
    return (
        f"{plain(evidence['failed_calls'], 12)} failed calls: {calls or 'names not kept'}",
        f"from {_sighting(evidence, 'first')}",
        f"to   {_sighting(evidence, 'last')}",
        *first_of(principals, _MOST_NAMED),
    )


def _sighting(evidence: Mapping[str, Any], which: str) -> str:
    at, request_id = evidence.get(f"{which}_at"), evidence.get(f"{which}_request_id")
    return f"{_read_moment(at)}, request {value(request_id, 64)}"


def _facts(
    steps: Iterable[Mapping[str, str]],
    attributes: Mapping[str, str],
    tags: Mapping[str, str],
    shown: tuple[str, ...],
) -> tuple[str, ...]:
    if not attributes:
        return ("the queue is gone, or its attributes could not be read",)
    names = dict.fromkeys((*shown, *(each["attribute"] for each in steps), *_FACTS))
    lines = [
        f"{plain(name, 64)}: {_standing(attributes.get(name), name)}"
        for name in names
        if attributes.get(name) or name in shown
    ]
    ours = sorted(key for key in tags if key == "mendq" or key.startswith("mendq:"))
    tagged = (f"tag {value(key, 64)} = {value(tags[key], 64)}" for key in ours)
    lines = lines or ["nothing of what matters here is set"]
    return (*first_of(lines, _MOST_LINES), *first_of(tagged, _MOST_NAMED))


def _standing(text: str | None, name: str) -> str:
    return with_unit(name, text, _MOST_SHOWN) if text else NOT_SET


def _advice(text: str) -> str:
    return text if command_line(text) == text else plain(text, 300)


def _since(known: Known | None, attributes: Mapping[str, str]) -> tuple[str, ...]:
    if known is None:
        return ("nothing is known from before",)
    at = _moment(known.at)
    if not attributes:
        stood = (
            f"{plain(k, 64)}: {value(v, 300)}" for k, v in configured(known.attributes).items()
        )
        return (f"what stood there at {at}:", *first_of(stood, _MOST_LINES))
    lines = first_of(differences(known.attributes, attributes), _MOST_LINES)
    if not lines:
        return (f"no difference to what stood there at {at}",)
    return (f"what stood there at {at} -> what stands there now:", *lines)


def _who(last_change: Change | str | None) -> tuple[str, ...]:
    if last_change is None:
        return ("nobody in the 90 days that CloudTrail keeps; it may lag by minutes",)
    if isinstance(last_change, str):
        return (f"not known: {plain(last_change, 300)}",)
    names = ", ".join(first_of((value(each, 64) for each in last_change.attributes), _MOST_NAMED))
    return (
        value(last_change.principal_arn),
        f"{value(last_change.event_name, 64)} at {_moment(last_change.at)}"
        + (f": {names}" if names else ""),
    )
