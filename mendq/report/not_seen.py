"""Sentences about the sources of the report and about what it could not see."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import date

from mendq.report.summary import Summary
from mendq.report.summary_parts import NOT_SEEN, PARTIAL, NightlyCoverage, NotSeen
from mendq.report.words import (
    byte_size,
    day,
    describe_reason,
    format_count,
    join_most_frequent,
    join_names,
    mark_name,
    mark_quote,
    number,
    remove_marks,
    share,
    was_or_were,
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


# Verdicts on a nightly run, as the summary has them.
FAR_FEWER = "far_fewer"
NOTHING_READ = "nothing_read"
TORN = "torn"


def list_not_seen(summary: Summary) -> tuple[str, ...]:
    """Return the sentences about what was read and what could not be seen.

    The last sentence, about what no trail shows, is the same every week. Names in the sentences are
    marked (see `words`).
    """
    seen = summary.not_seen
    sentences = [*_describe_nightly_runs(summary), _describe_files(seen)]
    if not summary.cases_were_read:
        sentences.append(CASES_NOT_READ)
    if seen.case_files_unreadable:
        files = format_count(seen.case_files_unreadable, "case file")
        sentences.append(f"{files} could not be read.")
    sentences.append(_describe_unknown_codes(seen))
    sentences.append(_describe_without_case(summary))
    if seen.own_incidents:
        incidents = format_count(seen.own_incidents, "incident")
        verb = _is_or_are(seen.own_incidents)
        sentences.append(f"{incidents} of drills and of Mendq's own calls {verb} left out.")
    if summary.cases_left_out:
        worst = format_count(len(summary.cases), "worst incident")
        left_out = f"{summary.cases_left_out:,} more {_is_or_are(summary.cases_left_out)}"
        sentences.append(
            f"The page lists the {worst}; {left_out} in the report bucket, under incidents/."
        )
    sentences.append(BLIND)
    return tuple(sentence for sentence in sentences if sentence)


def summarize_not_seen(summary: Summary) -> str:
    """Return one line of plain text about nightly runs, files and unknown error codes."""
    seen = summary.not_seen
    sentences = [
        *_describe_nightly_runs(summary),
        _describe_files(seen),
        _describe_unknown_codes(seen),
    ]
    return remove_marks(" ".join(sentence for sentence in sentences if sentence))


def _is_or_are(number: int) -> str:
    return "is" if number == 1 else "are"


def _describe_files(seen: NotSeen) -> str:
    """Return how many of the trail's files were read, with their size."""
    files = seen.files_read + seen.files_unreadable
    size_bytes = seen.bytes_read + seen.bytes_unreadable
    if not files:
        return "There was no trail file to read."
    if not seen.files_unreadable:
        were = "it was" if files == 1 else "all were"
        return f"{format_count(files, 'trail file')} ({byte_size(size_bytes)}): {were} readable."
    part = f", {share(seen.bytes_unreadable, size_bytes)}" if size_bytes else ""
    return (
        f"{seen.files_unreadable:,} of {format_count(files, 'trail file')} could not be read "
        f"({byte_size(seen.bytes_unreadable)} of {byte_size(size_bytes)}{part})."
    )


def _describe_unknown_codes(seen: NotSeen) -> str:
    """Return which error codes the catalogue does not know. Empty if it knows all."""
    if not seen.unknown_code:
        return ""
    count_by_code = {}
    for symptom, count in seen.unknown_code.items():
        count_by_code[mark_name(symptom.removeprefix("unknown:"))] = count
    calls = sum(seen.unknown_code.values()) + seen.unknown_calls_left_out
    codes = join_most_frequent(count_by_code, MOST_CODES, seen.unknown_codes_left_out)
    text = format_count(calls, "failed call")
    if calls == 1:
        text += " has a code that the catalogue does not know, so nothing acted on it"
    else:
        text += " have codes that the catalogue does not know, so nothing acted on them"
    return f"{text}: {codes}."


def _describe_without_case(summary: Summary) -> str:
    """Return how many incidents in the logs have no case, with the reasons of the listed ones.

    Empty if all have a case.
    """
    count = summary.by_outcome.get(NOT_SEEN, 0)
    if not count:
        return ""
    reasons = Counter[str]()
    for incident in summary.cases:
        if incident.outcome == NOT_SEEN:
            reason = describe_reason(incident)
            reasons[mark_quote(reason) if reason else "no reason given"] += 1
    text = f"{format_count(count, 'incident')} {'has' if count == 1 else 'have'} no case"
    if not reasons:
        return f"{text}."
    if list(reasons.values()) == [count]:
        # All incidents have the same reason, so its number would say nothing new.
        return f"{text}: {next(iter(reasons))}."
    return f"{text}: {join_most_frequent(reasons, MOST_CODES)}."


def _days_by_reason(summary: Summary) -> dict[str, list[date]]:
    """Return the week's days without tables, by the reason.

    The reasons are `not_begun` (before Mendq's first day), `to_come`, `not_read`, and `silent` (the
    nightly run found no records). `_describe_doubts` has the sentence for silent days.
    """
    seen = summary.not_seen
    silent_days = {run.day for run in seen.nightly_runs if run.verdict == NOTHING_READ}
    days_by_reason: dict[str, list[date]] = defaultdict(list)
    for missing_day in seen.nightly_runs_missing:
        if seen.began is not None and missing_day < seen.began:
            reason = "not_begun"
        elif missing_day in summary.to_come:
            reason = "to_come"
        elif missing_day in silent_days:
            reason = "silent"
        else:
            reason = "not_read"
        days_by_reason[reason].append(missing_day)
    return days_by_reason


def _describe_nightly_runs(summary: Summary) -> Iterator[str]:
    """Yield sentences: which nightly runs were read or missing, still to come, or doubtful."""
    days_by_reason = _days_by_reason(summary)
    seen = summary.not_seen
    not_read = days_by_reason["not_read"]
    if not summary.days_read:
        yield "No nightly run of the week was read."
    elif not_read:
        runs = format_count(len(not_read), "nightly run")
        yield f"{runs} {was_or_were(len(not_read))} not read: {_join_days(not_read)}."
    else:
        yield _describe_whole_runs(summary)
    if days_by_reason["not_begun"] and seen.began is not None:
        yield f"Mendq had not begun before {day(seen.began)}."
    if not summary.is_over:
        yield f"The week is not over{_describe_days_to_come(days_by_reason['to_come'])}."
    explained_days = {*days_by_reason["not_begun"], *days_by_reason["to_come"]}
    yield from _describe_doubts([run for run in seen.nightly_runs if run.day not in explained_days])


def _describe_days_to_come(days: Sequence[date]) -> str:
    """Return the end of a sentence that names the days still to come. Empty if there are none."""
    if not days:
        return ""
    runs = "nightly run" if len(days) == 1 else "nightly runs"
    return f": the {runs} of {_join_days(days)} {_is_or_are(len(days))} still to come"


def _join_days(days: Sequence[date]) -> str:
    return join_names([day(at) for at in days])


def _describe_whole_runs(summary: Summary) -> str:
    """Return how many nightly runs were read whole.

    A day that was read before it was over does not count; `_describe_doubts` names it.
    """
    seen = summary.not_seen
    partial_days = {run.day for run in seen.nightly_runs if run.verdict == PARTIAL}
    count = summary.days_read - len(partial_days - {*seen.nightly_runs_missing})
    if count == len(summary.days):
        return f"All {count} nightly runs were read."
    if not count:
        return "No nightly run was read whole."
    return f"{format_count(count, 'nightly run')} {was_or_were(count)} read."


def _describe_doubts(nightly_runs: Sequence[NightlyCoverage]) -> Iterator[str]:
    """Yield sentences about doubtful nightly runs.

    Such a run read far fewer records than usual, ran before its day was over, or has tables that do
    not match its counts. All runs without any record share one sentence.
    """
    silent = [run for run in nightly_runs if run.verdict == NOTHING_READ]
    if silent:
        usual = _describe_usual(silent[0]) if len(silent) == 1 else ""
        days = _join_days([run.day for run in silent])
        yield f"{days} had not one record{usual}: is the trail on?"
    for run in nightly_runs:
        name = day(run.day)
        if run.verdict == FAR_FEWER:
            usual = _describe_usual(run)
            yield f"{name} had far fewer records than usual: {run.records:,}{usual}."
        elif run.verdict == TORN:
            yield f"The tables of {name} are not what its nightly run counted: run it again."
        elif run.verdict == PARTIAL:
            yield f"{name} was read before it was over, and not since."


def _describe_usual(run: NightlyCoverage) -> str:
    """Return the usual number of records as the end of a sentence. Empty if it is not known."""
    usual = run.usual_records
    return "" if usual is None else f", where {number(round(usual))} are usual"


def describe_sources(summary: Summary) -> str:
    """Return the files, records, accounts and regions of the report, as a part of a sentence.

    Names in it are marked.
    """
    seen = summary.not_seen
    files = f"{format_count(seen.files_read, 'trail file')} ({byte_size(seen.bytes_read)})"
    records = format_count(seen.records_read, "record")
    accounts = _describe_places(summary.accounts, summary.accounts_left_out, "account")
    regions = _describe_places(summary.regions, summary.regions_left_out, "region")
    return f"{files} with {records}, of {accounts} in {regions}"


def _describe_places(names: tuple[str, ...], left_out: int, noun: str) -> str:
    """Return the names of accounts or regions, or only their number if there are many.

    `left_out` is how many further ones are not in `names`. `noun` is the word for one of them.
    """
    if not names:
        return f"no {noun}"
    if len(names) + left_out > MOST_NAMED:
        return format_count(len(names) + left_out, noun)
    word = noun if len(names) == 1 else f"{noun}s"
    return f"{word} {join_names([mark_quote(name) for name in names])}"
