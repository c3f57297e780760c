"""What the report was made from and what it could not see: said every week, however little."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import date

from mendq.report.summary import Summary
from mendq.report.summary_parts import NOT_SEEN, PARTIAL, Nightly, NotSeen
from mendq.report.words import (
    byte_size,
    counted,
    day,
    listed,
    listed_most,
    marked,
    number,
    plain,
    quoted,
    share,
    was,
    why_in_words,
)

MOST_CODES = 10
MOST_NAMED = 3
BLIND = (
    "What no trail shows: calls that its selectors leave out, and batch calls that SQS answers "
    "with 200 although entries in them failed."
)
CASES_NOT_READ = (
    "Mendq's cases were not read: who was notified, what scans found and what to do this week are "
    "not known."
)


FAR_FEWER, NOTHING_READ, TORN = "far_fewer", "nothing_read", "torn"


def not_seen(summary: Summary) -> tuple[str, ...]:
    """A sentence for each thing that was not seen; the last is true of every week.

    They hold marked names.
    """
    seen, left_out = summary.not_seen, summary.cases_left_out
    own, case_files = seen.own_incidents, seen.case_files_unreadable
    sentences = (
        *_nightly_runs(summary),
        _files(seen),
        "" if summary.cases_were_read else CASES_NOT_READ,
        f"{counted(case_files, 'case file')} could not be read." if case_files else "",
        _unknown_codes(seen),
        _without_a_case(summary),
        f"{counted(own, 'incident')} of drills and of Mendq's own calls {_are(own)} left out."
        if own
        else "",
        f"The page lists the {counted(len(summary.cases), 'worst incident')}; {left_out:,} more "
        f"{_are(left_out)} in the report bucket, under incidents/."
        if left_out
        else "",
        BLIND,
    )
    return tuple(sentence for sentence in sentences if sentence)


def not_seen_in_short(summary: Summary) -> str:
    """The same on one line, with nothing but text: nightly runs, files, codes."""
    seen = summary.not_seen
    sentences = (*_nightly_runs(summary), _files(seen), _unknown_codes(seen))
    return plain(" ".join(sentence for sentence in sentences if sentence))


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


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


def _unknown_codes(seen: NotSeen) -> str:
    if not seen.unknown_code:
        return ""
    codes = {marked(it.removeprefix("unknown:")): n for it, n in seen.unknown_code.items()}
    calls = sum(seen.unknown_code.values()) + seen.unknown_calls_left_out
    have, them = ("has a code", "it") if calls == 1 else ("have codes", "them")
    unknown = f"{counted(calls, 'failed call')} {have} that the catalogue does not know"
    names = listed_most(codes, MOST_CODES, seen.unknown_codes_left_out)
    return f"{unknown}, so nothing acted on {them}: {names}."


def _without_a_case(summary: Summary) -> str:
    """Incidents that the logs show and no case answers, with the reasons of those listed."""
    count = summary.by_outcome.get(NOT_SEEN, 0)
    if not count:
        return ""
    whys = [why_in_words(it) for it in summary.cases if it.outcome == NOT_SEEN]
    reasons = Counter(quoted(why) if why else "no reason given" for why in whys)
    without = f"{counted(count, 'incident')} {'has' if count == 1 else 'have'} no case"
    if not reasons:
        return f"{without}."
    is_sole = [*reasons.values()] == [count]
    return f"{without}: {next(iter(reasons)) if is_sole else listed_most(reasons, MOST_CODES)}."


def _unread(summary: Summary) -> dict[str, list[date]]:
    """The week's days without tables, by why there are none.

    `silent` ones had a nightly run that found nothing: `_in_doubt` says so.
    """
    seen = summary.not_seen
    silent = {each.day for each in seen.nightly_runs if each.verdict == NOTHING_READ}
    found: dict[str, list[date]] = defaultdict(list)
    for each in seen.nightly_runs_missing:
        if seen.began is not None and each < seen.began:
            found["not_begun"].append(each)
        elif each in summary.to_come:
            found["to_come"].append(each)
        else:
            found["silent" if each in silent else "not_read"].append(each)
    return found


def _nightly_runs(summary: Summary) -> Iterator[str]:
    """How many nightly runs were read, which were not, which could not have been, which are odd."""
    days, seen = _unread(summary), summary.not_seen
    if not summary.days_read:
        yield "No nightly run of the week was read."
    elif missed := days["not_read"]:
        runs = counted(len(missed), "nightly run")
        yield f"{runs} {was(len(missed))} not read: {_named(missed)}."
    else:
        yield _read_whole(summary)
    if days["not_begun"] and seen.began is not None:
        yield f"Mendq had not begun before {day(seen.began)}."
    if not summary.is_over:
        yield f"The week is not over{_coming(days['to_come'])}."
    elsewhere = {*days["not_begun"], *days["to_come"]}
    yield from _in_doubt([each for each in seen.nightly_runs if each.day not in elsewhere])


def _coming(days: Sequence[date]) -> str:
    if not days:
        return ""
    runs = "nightly run" if len(days) == 1 else "nightly runs"
    return f": the {runs} of {_named(days)} {_are(len(days))} still to come"


def _named(days: Sequence[date]) -> str:
    return listed([day(each) for each in days])


def _read_whole(summary: Summary) -> str:
    """A day that was read before it was over is none of them; `_in_doubt` names it."""
    in_part = {each.day for each in summary.not_seen.nightly_runs if each.verdict == PARTIAL}
    count = summary.days_read - len(in_part - {*summary.not_seen.nightly_runs_missing})
    if count == len(summary.days):
        return f"All {count} nightly runs were read."
    read = f"{counted(count, 'nightly run')} {was(count)} read."
    return read if count else "No nightly run was read whole."


def _in_doubt(nightly_runs: Sequence[Nightly]) -> Iterator[str]:
    """A sentence for each nightly run that read far less than others, too early, or is torn."""
    if silent := [each for each in nightly_runs if each.verdict == NOTHING_READ]:
        usually = _usually(silent[0]) if len(silent) == 1 else ""
        yield f"{_named([it.day for it in silent])} had not one record{usually}: is the trail on?"
    for each in nightly_runs:
        name, usually = day(each.day), _usually(each)
        if each.verdict == FAR_FEWER:
            yield f"{name} had far fewer records than usual: {each.records:,}{usually}."
        elif each.verdict == TORN:
            yield f"The tables of {name} are not what its nightly run counted: run it again."
        elif each.verdict == PARTIAL:
            yield f"{name} was read before it was over, and not since."


def _usually(nightly: Nightly) -> str:
    usual = nightly.usual_records
    return "" if usual is None else f", where {number(round(usual))} are usual"


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
