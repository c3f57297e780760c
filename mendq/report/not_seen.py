"""What the report was made from and what it could not see: said every week, however little."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import date

from mendq.report.outcomes import why_in_words
from mendq.report.summary import NOT_SEEN, PARTIAL, Nightly, NotSeen, Summary
from mendq.report.words import (
    byte_size,
    counted,
    day,
    listed,
    marked,
    most_first,
    number,
    plain,
    quoted,
    share,
)

MOST_CODES = 10
MOST_NAMED = 3
NONE_WHOLE = "No nightly run was read whole."
BLIND = (
    "What no trail shows: calls that its selectors leave out, and batch calls that SQS answers "
    "with 200 although entries in them failed."
)
CASES_NOT_READ = (
    "Mendq's cases were not read: who was paged, what scans found and what to do this week are "
    "not known."
)


def not_seen(summary: Summary) -> tuple[str, ...]:
    """A sentence for each thing that was not seen; the last is true of every week.

    They hold marked names.
    """
    sentences = (
        *nightly_runs_read(summary),
        *nightly_runs_in_doubt(summary),
        *_slower_reader(summary),
        _files(summary.not_seen),
        _case_files(summary),
        _unknown_codes(summary.not_seen),
        _without_a_case(summary),
        _drills(summary.not_seen.drill_incidents),
        _left_out(summary),
        BLIND,
    )
    return tuple(sentence for sentence in sentences if sentence)


def not_seen_in_short(summary: Summary) -> str:
    """The same on one line, with nothing but text: nightly runs, files, codes."""
    sentences = (
        *nightly_runs_read(summary),
        *nightly_runs_in_doubt(summary),
        _files(summary.not_seen),
        _unknown_codes(summary.not_seen),
    )
    return plain(" ".join(sentence for sentence in sentences if sentence))


def _files(seen: NotSeen) -> str:
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


def _unknown_codes(seen: NotSeen) -> str:
    codes = most_first(seen.unknown_code)
    if not codes:
        return ""
    names = [
        f"{marked(symptom.removeprefix('unknown:'))} ({count:,})"
        for symptom, count in codes[:MOST_CODES]
    ]
    beyond = len(codes) - len(names) + seen.unknown_codes_left_out
    rest = [f"{beyond:,} more"] if beyond else []
    calls = sum(count for _, count in codes) + seen.unknown_calls_left_out
    have, them = ("has a code", "it") if calls == 1 else ("have codes", "them")
    unknown = f"{counted(calls, 'failed call')} {have} that the catalogue does not know"
    return f"{unknown}, so nothing acted on {them}: {listed([*names, *rest])}."


def _without_a_case(summary: Summary) -> str:
    """Incidents that the logs show and no case answers, with the reasons of those listed."""
    count = summary.by_outcome.get(NOT_SEEN, 0)
    if not count:
        return ""
    whys = [why_in_words(it) for it in summary.cases if it.outcome == NOT_SEEN]
    reasons = most_first(Counter(quoted(why) if why else "no reason given" for why in whys))
    said = [f"{reason} ({number:,})" for reason, number in reasons[:MOST_CODES]]
    if len(reasons) == 1 and reasons[0][1] == count:
        said = [reasons[0][0]]
    without = f"{counted(count, 'incident')} {'has' if count == 1 else 'have'} no case"
    return f"{without}: {listed(said)}." if said else f"{without}."


def _drills(incidents: int) -> str:
    are = "is" if incidents == 1 else "are"
    return f"{counted(incidents, 'incident')} of drills {are} left out." if incidents else ""


def _left_out(summary: Summary) -> str:
    are = "is" if summary.cases_left_out == 1 else "are"
    more = (
        f"The page lists the {counted(len(summary.cases), 'worst incident')}; "
        f"{summary.cases_left_out:,} more {are} in the report bucket, under incidents/."
    )
    return more if summary.cases_left_out else ""


SLOWER = "standard_library"
FAR_FEWER, NOTHING_READ, TORN = "far_fewer", "nothing_read", "torn"


def unread(summary: Summary) -> dict[str, list[date]]:
    """The week's days without tables, by why there are none.

    `silent` ones had a nightly run that found nothing: `nightly_runs_in_doubt` says so.
    """
    seen = summary.not_seen
    silent = {each.day for each in seen.nightly_runs if each.verdict == NOTHING_READ}
    made_on = summary.made_at.date()
    found: dict[str, list[date]] = defaultdict(list)
    for each in seen.nightly_runs_missing:
        if seen.began is not None and each < seen.began:
            found["not_begun"].append(each)
        elif not seen.week_is_over and (each >= made_on or each == summary.last_day):
            found["to_come"].append(each)
        else:
            found["silent" if each in silent else "not_read"].append(each)
    return found


def nightly_runs_read(summary: Summary) -> Iterator[str]:
    """How many nightly runs were read, which were not, and which could not have been."""
    days = unread(summary)
    if not summary.days_read:
        yield "No nightly run of the week was read."
    elif days["not_read"]:
        were = "was" if len(days["not_read"]) == 1 else "were"
        yield f"{_runs(days['not_read'])} {were} not read: {_named(days['not_read'])}."
    else:
        yield _read_whole(summary)
    if days["not_begun"] and summary.not_seen.began is not None:
        yield f"Mendq had not begun before {day(summary.not_seen.began)}."
    if not summary.not_seen.week_is_over:
        to_come = days["to_come"]
        runs, are = ("nightly run", "is") if len(to_come) == 1 else ("nightly runs", "are")
        coming = f": the {runs} of {_named(to_come)} {are} still to come" if to_come else ""
        yield f"The week is not over{coming}."


def _runs(days: Sequence[date]) -> str:
    return counted(len(days), "nightly run")


def _named(days: Sequence[date]) -> str:
    return listed([day(each) for each in days])


def _read_whole(summary: Summary) -> str:
    """A day that was read before it was over is none of them; `nightly_runs_in_doubt` names it."""
    in_part = {each.day for each in summary.not_seen.nightly_runs if each.verdict == PARTIAL}
    count = summary.days_read - len(in_part - {*summary.not_seen.nightly_runs_missing})
    if count == len(summary.days):
        return f"All {count} nightly runs were read."
    were = "was" if count == 1 else "were"
    return f"{counted(count, 'nightly run')} {were} read." if count else NONE_WHOLE


def nightly_runs_in_doubt(summary: Summary) -> Iterator[str]:
    """A sentence for each nightly run that read far less than others, too early, or is torn."""
    days = unread(summary)
    elsewhere = {*days["not_begun"], *days["to_come"]}
    judged = [each for each in summary.not_seen.nightly_runs if each.day not in elsewhere]
    silent = [each for each in judged if each.verdict == NOTHING_READ]
    if silent:
        usually = _usually(silent[0]) if len(silent) == 1 else ""
        days_silent = _named([each.day for each in silent])
        yield f"{days_silent} had not one record{usually}: is the trail on?"
    for each in judged:
        if each.verdict == FAR_FEWER:
            few = f"far fewer records than usual: {each.records:,}{_usually(each)}"
            yield f"{day(each.day)} had {few}."
        elif each.verdict == TORN:
            theirs = f"The tables of {day(each.day)}"
            yield f"{theirs} are not what its nightly run counted: run it again."
        elif each.verdict == PARTIAL:
            yield f"{day(each.day)} was read before it was over, and not since."


def _usually(nightly: Nightly) -> str:
    usual = nightly.usual_records
    return "" if usual is None else f", where {number(round(usual))} are usual"


def _slower_reader(summary: Summary) -> Iterator[str]:
    """A sentence for each reason why the fast reader was not used; the rows are the same."""
    slow: dict[str, list[date]] = defaultdict(list)
    for nightly in summary.not_seen.nightly_runs:
        if nightly.reader == SLOWER:
            slow[nightly.why_fallback].append(nightly.day)
    for why, days in sorted(slow.items()):
        which = "" if len(days) == len(summary.days) else f" ({_named(days)})"
        were = "was" if len(days) == 1 else "were"
        because = f": {quoted(why)}" if why else ""
        yield f"{_runs(days)}{which} {were} read without native code, which is slower{because}."


def made_from(summary: Summary) -> str:
    """A part of a sentence, with marked names."""
    seen = summary.not_seen
    read = (
        f"{counted(seen.files_read, 'trail file')} ({byte_size(seen.bytes_read)}) "
        f"with {counted(seen.records_read, 'record')}"
    )
    accounts = _places(summary.accounts, summary.accounts_left_out, "account")
    regions = _places(summary.regions, summary.regions_left_out, "region")
    return f"{read}, of {accounts} in {regions}"


def _places(names: tuple[str, ...], left_out: int, what: str) -> str:
    if not names:
        return f"no {what}"
    if len(names) + left_out > MOST_NAMED:
        return counted(len(names) + left_out, what)
    word = what if len(names) == 1 else f"{what}s"
    return f"{word} {listed([quoted(name) for name in names])}"
