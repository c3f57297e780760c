"""Numbers, times, names and values as the report writes them, in English.

Every name, code and reason in a summary is somebody else's text. It is cut, and what nobody can
see is spelled out, before it goes anywhere; within a sentence it is marked, so that each sink can
set it apart. The marks are private characters, which `visible` spells out wherever somebody else's
text has them: nobody can forge one. Markup is the business of each sink: the page escapes, the
mail's text breaks addresses.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from itertools import pairwise

from mendq.report.summary import Summary
from mendq.report.summary_parts import COUNT_ONLY, FIXED, RACE, UNRESOLVED, Incident

# Control, format (bidi, zero width), surrogate, private, unassigned; line and paragraph ends.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_LINE_SPACE = "\t\n\r"
CUT = "…"
MOST_NAME = 80
MOST_PRINCIPAL = 64
MOST_SENTENCE = 300
# Before a letter a dot makes a domain; none ends in `fifo`, as many a queue's name does.
_DOMAIN = r"(?<=\S)[.\u3002\uff0e\uff61](?!fifo\b)(?=[^\W\d_][^\s.,;:)])"
_LINKING = re.compile(rf"(?<=:)//|(?<=www)\.|{_DOMAIN}|(?<=\d)\.(?=\d+\.\d+\.\d)", re.IGNORECASE)


def visible(text: str, most: int = MOST_NAME) -> str:
    """`text` in at most `most` characters of its own, each of which can be seen."""
    shown = "".join(_shown(each) for each in text[:most])
    return f"{shown}{CUT}" if len(text) > most else shown


def unlinked(text: str) -> str:
    """`text` for a mail, whose reader's program makes links of addresses and of bare domains.

    The page and the commands keep theirs whole: no browser does so, and people copy from there.
    """
    return _LINKING.sub(r"[\g<0>]", text)


def quote(sentence: str) -> str:
    """As `visible`, for what somebody else worded; a command in it stands in no backticks."""
    return visible(sentence.replace("`", "'"), MOST_SENTENCE)


def _shown(character: str) -> str:
    category = unicodedata.category(character)
    if character in _LINE_SPACE or category == "Zs":
        return " "
    return f"[U+{ord(character):04X}]" if category in _UNSEEN else character


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_BYTE_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")
_MINUTE, _HOUR, _DAY = 60, 3600, 86400

_UNIT = re.compile(r"(?<=\d) (?=(?:s|min|h|d|%|bytes?|[kMGTPE]B|points?)(?!\w))")


def together(text: str) -> str:
    """`text` for a sink that breaks lines: none between a number and its unit."""
    return _UNIT.sub("\N{NO-BREAK SPACE}", text)


def counted(number: int, one: str, many: str = "") -> str:
    """`1 incident`, `1,204 incidents`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def said_calls(number: int) -> str:
    """`12 failed calls`; without one, what showed it."""
    return counted(number, "failed call") if number else "found by a scan"


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def was(number: int) -> str:
    return "was" if number == 1 else "were"


def most_first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """The names by their counts, those of equal count by name."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


_PARTS = (("d", _DAY), ("h", _HOUR), ("min", _MINUTE), ("s", 1))


def duration(seconds: float) -> str:
    """Two units at most: `41 s`, `4 min 10 s`, `2 h 5 min`, `3 d 4 h`."""
    whole = round(seconds)
    for (unit, size), (part_unit, part_size) in pairwise(_PARTS):
        if whole >= size:
            part = whole % size // part_size
            return f"{whole // size:,} {unit}" + (f" {part} {part_unit}" if part else "")
    return f"{whole} s" if seconds >= 1 or not seconds else "under 1 s"


def byte_size(size_bytes: int) -> str:
    """Decimal units, one digit: `0 bytes`, `81.2 MB`."""
    size, unit = float(size_bytes), 0
    while round(size, 1) >= 1000 and unit < len(_BYTE_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.1f} {_BYTE_UNITS[unit]}" if unit else counted(size_bytes, "byte")


def share(part: int, whole: int) -> str:
    """Percent of a whole above 0; never 0 % or 100 % where that would hide a part."""
    percent = round(100 * part / whole)
    if part and not percent:
        return "under 1 %"
    return "over 99 %" if part < whole and percent == 100 else f"{percent} %"


def number(value: float) -> str:
    """A median: `21`, `20.5`."""
    return f"{value:,.1f}".removesuffix(".0")


def short_day(day: date) -> str:
    return f"{_DAYS[day.weekday()]} {day.day}"


def day(each: date) -> str:
    return f"{short_day(each)} {_MONTHS[each.month - 1]}"


def moment(at: datetime) -> str:
    return f"{day(at)} {at.year} {clock(at)} UTC"


def clock(at: datetime) -> str:
    return f"{at.hour:02}:{at.minute:02}"


def span(first: datetime, last: datetime) -> str:
    """`Thu 12 14:02`, `Thu 12 14:02-14:09`, `Thu 12 23:58 - Fri 13 00:04`."""
    begin, end = f"{short_day(first)} {clock(first)}", f"{short_day(last)} {clock(last)}"
    if begin == end:
        return begin
    return f"{begin}\N{EN DASH}{clock(last)}" if begin[:-5] == end[:-5] else f"{begin} to {end}"


def days_of(first: date, last: date) -> str:
    """`9 to 15 Nov 2026`, with month and year where they differ."""
    end = f"{last.day} {_MONTHS[last.month - 1]} {last.year}"
    if first.year != last.year:
        return f"{first.day} {_MONTHS[first.month - 1]} {first.year} to {end}"
    month = f" {_MONTHS[first.month - 1]}" if first.month != last.month else ""
    return f"{first.day}{month} to {end}"


def week_name(week: str) -> str:
    """`2026-W46` as `week 46 of 2026`."""
    return f"week {int(week[6:])} of {int(week[:4])}"


def queue_name(queue_arn: str) -> str:
    """The name at an ARN's end, as it may be shown."""
    if queue_arn == UNRESOLVED:
        return "an unknown queue"
    return visible(queue_arn.rpartition(":")[2] or queue_arn)


# Of a symptom's name; the others are words.
_CAPITALS = {"dlq": "DLQ", "kms": "KMS", "fifo": "FIFO", "id": "ID", "tls": "TLS"}


def title(symptom: str) -> str:
    """`DLQ messages waiting` of `dlq_messages_waiting`."""
    if code := symptom.partition("unknown:")[2]:
        return f"Unknown error {visible(code)}"
    said = " ".join(_CAPITALS.get(each, each) for each in visible(symptom).split("_"))
    return said[:1].upper() + said[1:]


def principal_name(principal_arn: str) -> str:
    """`role/orders` of an ARN; what is no ARN as it stands."""
    parts = principal_arn.split(":", 5)
    return visible(parts[5] if len(parts) == 6 and parts[5] else principal_arn, MOST_PRINCIPAL)


_NAME, _QUOTE, _END = "\ue000", "\ue001", "\ue002"
_MARKED = re.compile(f"([{_NAME}{_QUOTE}])([^{_END}]*){_END}")


def marked(name: str, most: int = MOST_NAME) -> str:
    """A name or a value as it may stand in a sentence."""
    return f"{_NAME}{visible(name, most)}{_END}"


def marked_queue(queue_arn: str) -> str:
    return f"{_NAME}{queue_name(queue_arn)}{_END}"


def quoted(sentence: str) -> str:
    """A reason that somebody else worded."""
    return f"{_QUOTE}{quote(sentence)}{_END}"


def plain(sentence: str) -> str:
    """The sentence for a sink that has nothing but text."""
    return _MARKED.sub(r"\2", _ended(sentence))


def _ended(sentence: str) -> str:
    """What was cut ends in dots of its own."""
    return sentence.replace(f"{CUT}{_END}.", f"{CUT}{_END}")


def parts(sentence: str) -> Iterator[tuple[str, str]]:
    """The sentence piece by piece: `text`, `name` or `quote`, and the piece."""
    sentence, at = _ended(sentence), 0
    for found in _MARKED.finditer(sentence):
        if at < found.start():
            yield "text", sentence[at : found.start()]
        yield "name" if found[1] == _NAME else "quote", found[2]
        at = found.end()
    if at < len(sentence):
        yield "text", sentence[at:]


def listed_most(counts: Mapping[str, int], most: int, left_out: int = 0) -> str:
    """`a (9), b (4) and 3 more`: those with most; `left_out` more were not counted."""
    names = [f"{name} ({count:,})" for name, count in most_first(counts)[:most]]
    beyond = len(counts) - len(names) + left_out
    return listed([*names, *[f"{beyond:,} more"] * bool(beyond)])


MOST_LEADERS = 2


def had_most(counts: Sequence[tuple[str, int]], kind: str, total: int) -> str:
    """Which of `counts`, each of a day or of a queue, had most of `total` incidents."""
    most = max(count for _, count in counts)
    leaders = [name for name, count in counts if count == most]
    if most == 1 < total:
        return f"No {kind} had more than one incident."
    if most == total:
        return f"{leaders[0]} had {'the one incident' if most == 1 else f'all {most:,} incidents'}."
    names = listed(leaders) if len(leaders) <= MOST_LEADERS else counted(len(leaders), kind)
    each = " each" if len(leaders) > 1 else ""
    return f"{names} had the most: {most:,} of {counted(total, 'incident')}{each}."


def place_in(summary: Summary, queue_arn: str) -> str:
    """`123456789012, us-east-1`; empty where there is but one place, or no ARN."""
    if len(summary.accounts) * len(summary.regions) <= 1:
        return ""
    parts = queue_arn.split(":")
    return visible(f"{parts[4]}, {parts[3]}") if len(parts) == 6 else ""


_NUMBER = re.compile(r"0|[1-9][0-9]{0,11}", re.ASCII)
_SECONDS = re.compile(r"VisibilityTimeout|MessageRetentionPeriod|\w{1,64}Seconds", re.ASCII)


def written(attribute: str, value: str) -> str:
    """`690 s`, `1,209,600 s (14 d)`, a short text; empty where it is none or too long to say."""
    if not value or len(value) > 40:
        return ""
    if not _NUMBER.fullmatch(value):
        return marked(value)
    number = int(value)
    if _SECONDS.fullmatch(attribute):
        also = f" ({duration(number)})" if number > _HOUR else ""
        return f"{number:,} s{also}"
    if attribute == "MaximumMessageSize":
        return f"{number:,} bytes"
    return f"{number:,}"


def changed(attribute: str, before: str, after: str) -> str:
    """`from 460 s to 690 s`, `to 690 s`; empty where the new value cannot be said."""
    old, new = written(attribute, before), written(attribute, after)
    if not new:
        return ""
    return f"from {old} to {new}" if old else f"to {new}"


# What stands out on the page, beside what is fixed: what needs a person, and one more.
NEEDS_A_PERSON = frozenset({"proposed", "escalated", "overridden"})
_WAITING = NEEDS_A_PERSON | {"ineffective"}

# After a number of incidents that were not healed, in the order in which they are said.
OUTCOMES = {
    "applied": "changed but not verified yet",
    "observed": "only observed (mode observe)",
    "proposed": "waiting for approval",
    "refused": "refused",
    "declined": "declined",
    "expired": "expired without an answer",
    "ineffective": "changed without effect",
    "overridden": "left to whoever set another value",
    "rolled_back": "rolled back",
    "escalated": "left to a person",
    "not_seen": "without a case",
}

# The words of the nightly job, and those that only Mendq itself could know.
WHY = {
    "not_managed": "Mendq does not manage this queue",
    "not_tagged_in_time": "the queue was tagged only after it failed",
    "event_lost": "CloudTrail recorded the calls, and probably no event reached Mendq",
    "no_evidence": "the calls carry no messages, or come from new sessions: Mendq ignores them",
    "elsewhere": "the queue is of another account or region",
    "case_open": "an earlier case of the queue was still open",
    "too_little_evidence": "too few failed calls, or too far apart, for Mendq to believe them",
    "unresolved_queue": "the calls do not say which queue they were about",
    "unknown": "neither the logs nor the cases say why",
    "unknown_code": "no entry of the catalogue knows this error code",
    COUNT_ONLY: "a caller's mistake, counted only",
    RACE: "the message may just have been deleted, so Mendq measures a queue that it manages",
}


def tone(outcome: str) -> str:
    """`good`, `waiting` (for a person) or `plain`."""
    if outcome in FIXED:
        return "good"
    return "waiting" if outcome in _WAITING else "plain"


def why_in_words(incident: Incident) -> str:
    """The nightly job's reasons in words, another's as they came; of a case, what it said last."""
    return WHY.get(incident.why or "") or quote(incident.why or incident.reason)
