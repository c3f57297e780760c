"""What the report was made from and what it could not see: said every week, however little."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import date

from mendq.report.outcomes import why_in_words
from mendq.report.summary import NOT_SEEN, PARTIAL, Incident, Nightly, NotSeen, Summary
from mendq.report.words import byte_size, counted, day, listed, marked, number, plain, quoted, share

MOST_CODES = 10
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
        *slower_reader(summary),
        _files(summary),
        _case_files(summary),
        _unknown_codes(summary.not_seen),
        _without_a_case(summary),
        _drills(summary.not_seen.drill_incidents),
        _left_out(summary),
    )
    return (*(each for each in sentences if each), BLIND)


def not_seen_in_short(summary: Summary) -> str:
    """The same on one line, with nothing but text: nightly runs, files, codes."""
    sentences = (
        *nightly_runs_read(summary),
        *nightly_runs_in_doubt(summary),
        _files(summary),
        _unknown_codes(summary.not_seen),
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


def _unknown_codes(seen: NotSeen) -> str:
    codes = seen.unknown_code.items()
    if not codes:
        return ""
    most_first = sorted(codes, key=lambda item: (-item[1], item[0]))
    names = [f"{marked(_code(code))} ({count:,})" for code, count in most_first[:MOST_CODES]]
    beyond = len(codes) - len(names) + seen.unknown_codes_left_out
    rest = [f"{beyond:,} more"] if beyond else []
    calls = sum(count for _, count in codes) + seen.unknown_calls_left_out
    have, them = ("has a code", "it") if calls == 1 else ("have codes", "them")
    unknown = f"{counted(calls, 'failed call')} {have} that the catalogue does not know"
    return f"{unknown}, so nothing acted on {them}: {listed([*names, *rest])}."


def _code(symptom: str) -> str:
    return symptom.removeprefix("unknown:")


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
        names = listed([day(each) for each in days["not_read"]])
        yield f"{counted(len(days['not_read']), 'nightly run')} {were} not read: {names}."
    else:
        yield _read_whole(summary)
    if days["not_begun"] and summary.not_seen.began is not None:
        yield f"Mendq had not begun before {day(summary.not_seen.began)}."
    if not summary.not_seen.week_is_over:
        yield f"The week is not over{_coming(days['to_come'])}."


def _read_whole(summary: Summary) -> str:
    """A day that was read before it was over is none of them; `nightly_runs_in_doubt` names it."""
    in_part = {each.day for each in summary.not_seen.nightly_runs if each.verdict == PARTIAL}
    count = summary.days_read - len(in_part - {*summary.not_seen.nightly_runs_missing})
    if count == len(summary.days):
        return f"All {count} nightly runs were read."
    if not count:
        return "No nightly run was read whole."
    return f"{counted(count, 'nightly run')} {'was' if count == 1 else 'were'} read."


def _coming(days: list[date]) -> str:
    if not days:
        return ""
    runs, are = ("nightly run", "is") if len(days) == 1 else ("nightly runs", "are")
    return f": the {runs} of {listed([day(each) for each in days])} {are} still to come"


def nightly_runs_in_doubt(summary: Summary) -> Iterator[str]:
    """A sentence for each nightly run that read far less than others, too early, or is torn."""
    days = unread(summary)
    judged = [
        each
        for each in summary.not_seen.nightly_runs
        if each.day not in {*days["not_begun"], *days["to_come"]}
    ]
    yield from _silent([each for each in judged if each.verdict == NOTHING_READ])
    for each in judged:
        if each.verdict == FAR_FEWER:
            few = f"far fewer records than usual: {each.records:,}{_usually(each)}"
            yield f"{day(each.day)} had {few}."
        elif each.verdict == TORN:
            theirs = f"The tables of {day(each.day)}"
            yield f"{theirs} are not what its nightly run counted: run it again."
        elif each.verdict == PARTIAL:
            yield f"{day(each.day)} was read before it was over, and not since."


def _silent(runs: list[Nightly]) -> Iterator[str]:
    if len(runs) == 1:
        yield f"{day(runs[0].day)} had not one record{_usually(runs[0])}: is the trail on?"
    elif runs:
        days = listed([day(each.day) for each in runs])
        yield f"{days} had not one record: is the trail on?"


def _usually(nightly: Nightly) -> str:
    usual = nightly.usual_records
    return "" if usual is None else f", where {number(round(usual))} are usual"


def slower_reader(summary: Summary) -> Iterator[str]:
    """A sentence for each reason why the fast reader was not used; the rows are the same."""
    nightly_runs: dict[str, list[Nightly]] = defaultdict(list)
    for each in summary.not_seen.nightly_runs:
        if each.reader == SLOWER:
            nightly_runs[each.why_fallback].append(each)
    for why, slow in sorted(nightly_runs.items()):
        because = f": {quoted(why)}" if why else ""
        were = "was" if len(slow) == 1 else "were"
        which = counted(len(slow), "nightly run")
        days = (
            "" if len(slow) == len(summary.days) else f" ({listed([day(it.day) for it in slow])})"
        )
        yield f"{which}{days} {were} read by Spark's JSON reader, which is slower{because}."


MOST_NAMED = 3


def made_from(summary: Summary) -> str:
    """A part of a sentence, with marked names."""
    seen = summary.not_seen
    read = (
        f"{counted(seen.files_read, 'trail file')} ({byte_size(seen.bytes_read)}) "
        f"with {counted(seen.records_read, 'record')}"
    )
    accounts = _named(summary.accounts, summary.accounts_left_out, "account")
    regions = _named(summary.regions, summary.regions_left_out, "region")
    return f"{read}, of {accounts} in {regions}"


def _named(names: tuple[str, ...], left_out: int, what: str) -> str:
    if not names:
        return f"no {what}"
    if len(names) + left_out > MOST_NAMED:
        return counted(len(names) + left_out, what)
    word = what if len(names) == 1 else f"{what}s"
    return f"{word} {listed([quoted(each) for each in names])}"
