"""How well the week's nights read: too little, or with the slower reader."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from functions.report.names import quoted
from functions.report.summary import Summary
from functions.report.summary_parts import Night
from functions.report.words import counted, day, listed, number

SLOWER = "spark_json"


def nights_in_doubt(summary: Summary) -> Iterator[str]:
    """A sentence for each night that failed, or read far less than those before it."""
    for each in summary.not_seen.nights:
        if each.verdict == "failed":
            yield f"The run for {day(each.day)} ended without writing anything."
        elif each.verdict == "nothing_read":
            yield f"{day(each.day)} had not one record{_usually(each)}: is the trail on?"
        elif each.verdict == "far_fewer":
            few = f"far fewer records than usual: {each.records:,}{_usually(each)}"
            yield f"{day(each.day)} had {few}."


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
