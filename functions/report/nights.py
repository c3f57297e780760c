"""Which of the week's nights were read, and how well: too little, or with the slower reader."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import date

from functions.report.names import quoted
from functions.report.summary import PARTIAL, Night, Summary
from functions.report.words import counted, day, listed, number

SLOWER = "spark_json"
FAR_FEWER, NOTHING_READ, TORN = "far_fewer", "nothing_read", "torn"


@dataclass(frozen=True)
class Unread:
    """The week's days without a night, by why there is none; no day is in two.

    `silent` ones had a night that found nothing: `nights_in_doubt` says so.
    """

    not_begun: tuple[date, ...]
    to_come: tuple[date, ...]
    silent: tuple[date, ...]
    not_read: tuple[date, ...]


def unread(summary: Summary) -> Unread:
    """Why each day without tables has none."""
    seen = summary.not_seen
    silent = {each.day for each in seen.nights if each.verdict == NOTHING_READ}
    made_on = summary.made_at.date()
    found: dict[str, list[date]] = defaultdict(list)
    for each in seen.nights_missing:
        if seen.began is not None and each < seen.began:
            found["not_begun"].append(each)
        elif not seen.week_is_over and (each >= made_on or each == summary.last_day):
            found["to_come"].append(each)
        else:
            found["silent" if each in silent else "not_read"].append(each)
    return Unread(*(tuple(found[each.name]) for each in fields(Unread)))


def nights_read(summary: Summary) -> Iterator[str]:
    """How many nights were read, which were not, and which could not have been."""
    days = unread(summary)
    if not summary.days_read:
        yield "No night of the week was read."
    elif days.not_read:
        were = "was" if len(days.not_read) == 1 else "were"
        nights = listed([day(each) for each in days.not_read])
        yield f"{counted(len(days.not_read), 'night')} {were} not read: {nights}."
    else:
        yield _read_whole(summary)
    if days.not_begun and summary.not_seen.began is not None:
        yield f"Mendq had not begun before {day(summary.not_seen.began)}."
    if not summary.not_seen.week_is_over:
        yield f"The week is not over{_coming(days.to_come)}."


def _read_whole(summary: Summary) -> str:
    """A day that was read before it was over is none of them; `nights_in_doubt` tells of it."""
    in_part = {each.day for each in summary.not_seen.nights if each.verdict == PARTIAL}
    count = summary.days_read - len(in_part - {*summary.not_seen.nights_missing})
    if count == len(summary.days):
        return f"All {count} nights were read."
    if not count:
        return "No night was read whole."
    return f"{counted(count, 'night')} {'was' if count == 1 else 'were'} read."


def _coming(days: tuple[date, ...]) -> str:
    if not days:
        return ""
    nights, are = ("night", "is") if len(days) == 1 else ("nights", "are")
    return f": the {nights} of {listed([day(each) for each in days])} {are} still to come"


def nights_in_doubt(summary: Summary) -> Iterator[str]:
    """A sentence for each night that read far less than others, too early, or is torn."""
    days = unread(summary)
    judged = [
        each for each in summary.not_seen.nights if each.day not in {*days.not_begun, *days.to_come}
    ]
    yield from _silent([each for each in judged if each.verdict == NOTHING_READ])
    for each in judged:
        if each.verdict == FAR_FEWER:
            few = f"far fewer records than usual: {each.records:,}{_usually(each)}"
            yield f"{day(each.day)} had {few}."
        elif each.verdict == TORN:
            yield f"The tables of {day(each.day)} are not what its night counted: run it again."
        elif each.verdict == PARTIAL:
            yield f"{day(each.day)} was read before it was over, and not since."


def _silent(nights: list[Night]) -> Iterator[str]:
    if len(nights) == 1:
        yield f"{day(nights[0].day)} had not one record{_usually(nights[0])}: is the trail on?"
    elif nights:
        days = listed([day(each.day) for each in nights])
        yield f"{days} had not one record: is the trail on?"


def _usually(night: Night) -> str:
    usual = night.usual_records
    return "" if usual is None else f", where {number(round(usual))} are usual"


def slower_reader(summary: Summary) -> Iterator[str]:
    """A sentence for each reason why nights went without the fast reader: the rows are the same."""
    nights: dict[str, list[Night]] = defaultdict(list)
    for each in summary.not_seen.nights:
        if each.reader == SLOWER:
            nights[each.why_fallback].append(each)
    for why, slow in sorted(nights.items()):
        because = f": {quoted(why)}" if why else ""
        were = "was" if len(slow) == 1 else "were"
        which = counted(len(slow), "night")
        days = (
            "" if len(slow) == len(summary.days) else f" ({listed([day(it.day) for it in slow])})"
        )
        yield f"{which}{days} {were} read by Spark's JSON reader, which is slower{because}."
