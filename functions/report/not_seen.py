"""What this report could not see: said every week, also when it is little."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from functions.report.names import marked, plain, quoted
from functions.report.nights import nights_in_doubt, nights_read, slower_reader
from functions.report.outcomes import why_in_words
from functions.report.summary import NOT_SEEN, Incident, NotSeen, Summary
from functions.report.words import byte_size, counted, listed, share

MOST_CODES = 10
BLIND = (
    "What no trail shows: calls that its selectors leave out, and batch calls that SQS answers "
    "with 200 although entries in them failed."
)
CASES_NOT_READ = (
    "Mendq's cases were not read: who was paged, what sweeps found and what to do this week are "
    "not known."
)


def not_seen(summary: Summary) -> tuple[str, ...]:
    """A sentence for each thing that was not seen; the last is true of every week.

    They hold marked names.
    """
    sentences = (
        *nights_read(summary),
        *nights_in_doubt(summary),
        *slower_reader(summary),
        _files(summary),
        _case_files(summary),
        _unlabelled(summary.not_seen),
        _without_a_case(summary),
        _drills(summary.not_seen.drill_incidents),
        _left_out(summary),
    )
    return (*(each for each in sentences if each), BLIND)


def not_seen_in_short(summary: Summary) -> str:
    """The same on one line, with nothing but text: nights, files, codes."""
    sentences = (
        *nights_read(summary),
        *nights_in_doubt(summary),
        _files(summary),
        _unlabelled(summary.not_seen),
    )
    return plain(" ".join(each for each in sentences if each))


def _files(summary: Summary) -> str:
    seen = summary.not_seen
    files = seen.files_read + seen.files_unreadable
    size_bytes = seen.bytes_read + seen.bytes_unreadable
    if not files:
        return "There was no trail file to read."
    if not seen.files_unreadable:
        were = "it was" if files == 1 else "all were"
        return f"{counted(files, 'trail file')} ({byte_size(size_bytes)}): {were} readable."
    part = f", {share(seen.bytes_unreadable, size_bytes)}" if size_bytes else ""
    return (
        f"{seen.files_unreadable:,} of {counted(files, 'trail file')} could not be read "
        f"({byte_size(seen.bytes_unreadable)} of {byte_size(size_bytes)}{part})."
    )


def _case_files(summary: Summary) -> str:
    if not summary.cases_were_read:
        return CASES_NOT_READ
    count = summary.not_seen.case_files_unreadable
    return f"{counted(count, 'case file')} could not be read." if count else ""


def _unlabelled(seen: NotSeen) -> str:
    codes = seen.unlabelled.items()
    if not codes:
        return ""
    most_first = sorted(codes, key=lambda item: (-item[1], item[0]))
    names = [f"{marked(_code(code))} ({count:,})" for code, count in most_first[:MOST_CODES]]
    beyond = len(codes) - len(names) + seen.unlabelled_codes_left_out
    rest = [f"{beyond:,} more"] if beyond else []
    calls = sum(count for _, count in codes) + seen.unlabelled_calls_left_out
    have, them = ("has a code", "it") if calls == 1 else ("have codes", "them")
    unknown = f"{counted(calls, 'failed call')} {have} that the catalogue does not know"
    return f"{unknown}, so nothing acted on {them}: {listed([*names, *rest])}."


def _code(label: str) -> str:
    return label.removeprefix("unlabelled:")


def _without_a_case(summary: Summary) -> str:
    """Incidents that the logs show and no case answers, with the reasons of those listed."""
    count = summary.by_outcome.get(NOT_SEEN, 0)
    if not count:
        return ""
    listed_ones = [each for each in summary.cases if each.outcome == NOT_SEEN]
    reasons = Counter(_reason(each) for each in listed_ones)
    without = f"{counted(count, 'incident')} {'has' if count == 1 else 'have'} no case"
    return f"{without}: {listed(_weighed(reasons, count))}." if reasons else f"{without}."


def _reason(incident: Incident) -> str:
    why = why_in_words(incident)
    return quoted(why) if why else "no reason given"


def _weighed(reasons: Counter[str], count: int) -> Sequence[str]:
    most_first = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    if len(most_first) == 1 and most_first[0][1] == count:
        return [most_first[0][0]]
    return [f"{reason} ({number:,})" for reason, number in most_first[:MOST_CODES]]


def _drills(incidents: int) -> str:
    if not incidents:
        return ""
    return (
        f"{counted(incidents, 'incident')} of drills {'is' if incidents == 1 else 'are'} left out."
    )


def _left_out(summary: Summary) -> str:
    if not summary.cases_left_out:
        return ""
    are = "is" if summary.cases_left_out == 1 else "are"
    return (
        f"The page lists the {counted(len(summary.cases), 'worst incident')}; "
        f"{summary.cases_left_out:,} more {are} in the report bucket, under incidents/."
    )
