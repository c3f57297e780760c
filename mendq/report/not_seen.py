"""Sentences about the report's sources: what was read, and what could not be read."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import date

from mendq.report.summary import Summary
from mendq.report.summary_parts import (
    NOT_SEEN_OUTCOME,
    READ_BEFORE_DAY_END_VERDICT,
    NightlyCoverage,
    ReportCoverage,
)
from mendq.report.words import (
    describe_reason,
    format_bytes,
    format_count,
    format_day,
    format_number,
    format_percent,
    join_most_frequent,
    join_names,
    mark_name,
    mark_quote,
    remove_marks,
    was_or_were,
)

MAXIMUM_LISTED_CODES = 10
MAXIMUM_NAMED_ACCOUNTS_OR_REGIONS = 3
BLIND_SPOTS_SENTENCE = (
    "What no trail shows: calls that its selectors leave out, and batch calls that SQS answers "
    "with 200 although entries in them failed."
)
CASES_NOT_READ_SENTENCE = (
    "Mendq's cases were not read: who was notified, what scans found and what to do this week are "
    "not known."
)


# Verdicts on a nightly run, as the summary has them.
FAR_FEWER_RECORDS_VERDICT = "far_fewer"
NO_RECORDS_VERDICT = "nothing_read"
TABLES_DIFFER_FROM_COUNTS_VERDICT = "torn"


def list_not_seen(summary: Summary) -> tuple[str, ...]:
    """Return sentences about the files and days that were read, and about what is not known.

    The last sentence says what no trail records; it is the same every week. Names in the sentences
    are marked (see `words`).
    """
    coverage = summary.not_seen
    sentences = [*_describe_nightly_runs(summary), _describe_files(coverage)]
    if not summary.cases_were_read:
        sentences.append(CASES_NOT_READ_SENTENCE)
    if coverage.case_files_unreadable:
        case_files_text = format_count(coverage.case_files_unreadable, "case file")
        sentences.append(f"{case_files_text} could not be read.")
    sentences.append(_describe_unknown_codes(coverage))
    sentences.append(_describe_incidents_without_case(summary))
    if coverage.own_incidents:
        incidents_text = format_count(coverage.own_incidents, "incident")
        verb_form = _is_or_are(coverage.own_incidents)
        sentences.append(
            f"{incidents_text} of drills and of Mendq's own calls {verb_form} left out."
        )
    if summary.cases_left_out:
        worst_incidents_text = format_count(len(summary.cases), "worst incident")
        left_out_incidents_text = (
            f"{summary.cases_left_out:,} more {_is_or_are(summary.cases_left_out)}"
        )
        sentences.append(
            f"The page lists the {worst_incidents_text}; {left_out_incidents_text} in the report "
            "bucket, under incidents/."
        )
    sentences.append(BLIND_SPOTS_SENTENCE)
    return tuple(sentence for sentence in sentences if sentence)


def summarize_not_seen(summary: Summary) -> str:
    """Return one line of plain text about nightly runs, files and unknown error codes."""
    coverage = summary.not_seen
    sentences = [
        *_describe_nightly_runs(summary),
        _describe_files(coverage),
        _describe_unknown_codes(coverage),
    ]
    return remove_marks(" ".join(sentence for sentence in sentences if sentence))


def _is_or_are(count: int) -> str:
    return "is" if count == 1 else "are"


def _describe_files(coverage: ReportCoverage) -> str:
    """Return a sentence: how many of the trail's files could be read, and their size."""
    file_count = coverage.files_read + coverage.files_unreadable
    size_bytes = coverage.bytes_read + coverage.bytes_unreadable
    if not file_count:
        return "There was no trail file to read."
    if not coverage.files_unreadable:
        subject_and_verb = "it was" if file_count == 1 else "all were"
        files_text = format_count(file_count, "trail file")
        return f"{files_text} ({format_bytes(size_bytes)}): {subject_and_verb} readable."
    unreadable_percent = (
        f", {format_percent(coverage.bytes_unreadable, size_bytes)}" if size_bytes else ""
    )
    return (
        f"{coverage.files_unreadable:,} of {format_count(file_count, 'trail file')} could not be "
        f"read ({format_bytes(coverage.bytes_unreadable)} of "
        f"{format_bytes(size_bytes)}{unreadable_percent})."
    )


def _describe_unknown_codes(coverage: ReportCoverage) -> str:
    """Return a sentence about failed calls whose error codes the catalogue does not know.

    Empty if it knows all codes.
    """
    if not coverage.unknown_code:
        return ""
    call_count_by_code = {}
    for symptom, call_count_of_code in coverage.unknown_code.items():
        call_count_by_code[mark_name(symptom.removeprefix("unknown:"))] = call_count_of_code
    call_count = sum(coverage.unknown_code.values()) + coverage.unknown_calls_left_out
    codes_text = join_most_frequent(
        call_count_by_code, MAXIMUM_LISTED_CODES, coverage.unknown_codes_left_out
    )
    calls_text = format_count(call_count, "failed call")
    if call_count == 1:
        calls_text += " has a code that the catalogue does not know, so nothing acted on it"
    else:
        calls_text += " have codes that the catalogue does not know, so nothing acted on them"
    return f"{calls_text}: {codes_text}."


def _describe_incidents_without_case(summary: Summary) -> str:
    """Return a sentence: how many incidents have no case in Mendq, and why.

    The reasons are those of the incidents that the summary lists. Empty if every incident has a
    case.
    """
    incident_count = summary.by_outcome.get(NOT_SEEN_OUTCOME, 0)
    if not incident_count:
        return ""
    incident_count_by_reason = Counter[str]()
    for incident in summary.cases:
        if incident.outcome == NOT_SEEN_OUTCOME:
            reason = describe_reason(incident)
            incident_count_by_reason[mark_quote(reason) if reason else "no reason given"] += 1
    verb_form = "has" if incident_count == 1 else "have"
    incidents_text = f"{format_count(incident_count, 'incident')} {verb_form} no case"
    if not incident_count_by_reason:
        return f"{incidents_text}."
    if list(incident_count_by_reason.values()) == [incident_count]:
        # All incidents have the same reason, so its number would say nothing new.
        return f"{incidents_text}: {next(iter(incident_count_by_reason))}."
    return (
        f"{incidents_text}: {join_most_frequent(incident_count_by_reason, MAXIMUM_LISTED_CODES)}."
    )


def _group_missing_days(summary: Summary) -> dict[str, list[date]]:
    """Return the days of the week for which the nightly job has no tables, grouped by reason.

    The reasons are `not_begun` (before Mendq's first day), `to_come` (the nightly run is not due
    yet), `silent` (the nightly run found no record) and `not_read` (any other day).
    """
    coverage = summary.not_seen
    days_without_records = {
        nightly_run.day
        for nightly_run in coverage.nightly_runs
        if nightly_run.verdict == NO_RECORDS_VERDICT
    }
    missing_days_by_reason: dict[str, list[date]] = defaultdict(list)
    for missing_day in coverage.nightly_runs_missing:
        if coverage.began is not None and missing_day < coverage.began:
            missing_reason = "not_begun"
        elif missing_day in summary.days_to_come:
            missing_reason = "to_come"
        elif missing_day in days_without_records:
            missing_reason = "silent"
        else:
            missing_reason = "not_read"
        missing_days_by_reason[missing_reason].append(missing_day)
    return missing_days_by_reason


def _describe_nightly_runs(summary: Summary) -> Iterator[str]:
    """Yield sentences about the week's nightly runs: read, missing, still to come, or doubtful."""
    days_by_reason = _group_missing_days(summary)
    coverage = summary.not_seen
    unread_days = days_by_reason["not_read"]
    if not summary.read_day_count:
        yield "No nightly run of the week was read."
    elif unread_days:
        runs_text = format_count(len(unread_days), "nightly run")
        yield f"{runs_text} {was_or_were(len(unread_days))} not read: {_join_days(unread_days)}."
    else:
        yield _describe_whole_runs(summary)
    if days_by_reason["not_begun"] and coverage.began is not None:
        yield f"Mendq had not begun before {format_day(coverage.began)}."
    if not summary.is_over:
        yield f"The week is not over{_describe_days_to_come(days_by_reason['to_come'])}."
    days_not_begun_or_to_come = {*days_by_reason["not_begun"], *days_by_reason["to_come"]}
    yield from _describe_doubtful_runs(
        [
            nightly_run
            for nightly_run in coverage.nightly_runs
            if nightly_run.day not in days_not_begun_or_to_come
        ]
    )


def _describe_days_to_come(days_to_come: Sequence[date]) -> str:
    """Return the end of a sentence: the days whose nightly runs are not due yet.

    Empty if there are none.
    """
    if not days_to_come:
        return ""
    runs_word = "nightly run" if len(days_to_come) == 1 else "nightly runs"
    verb_form = _is_or_are(len(days_to_come))
    return f": the {runs_word} of {_join_days(days_to_come)} {verb_form} still to come"


def _join_days(days: Sequence[date]) -> str:
    return join_names([format_day(day) for day in days])


def _describe_whole_runs(summary: Summary) -> str:
    """Return a sentence with the number of nightly runs that read their whole day.

    A run that read its day before the day was over does not count. `_describe_doubtful_runs`
    reports such a run.
    """
    coverage = summary.not_seen
    partly_read_days = {
        nightly_run.day
        for nightly_run in coverage.nightly_runs
        if nightly_run.verdict == READ_BEFORE_DAY_END_VERDICT
    }
    whole_run_count = summary.read_day_count - len(
        partly_read_days - {*coverage.nightly_runs_missing}
    )
    if whole_run_count == len(summary.days):
        return f"All {whole_run_count} nightly runs were read."
    if not whole_run_count:
        return "No nightly run was read whole."
    return f"{format_count(whole_run_count, 'nightly run')} {was_or_were(whole_run_count)} read."


def _describe_doubtful_runs(nightly_runs: Sequence[NightlyCoverage]) -> Iterator[str]:
    """Yield a sentence for each nightly run whose result is doubtful.

    A run is doubtful if it read no records or far fewer than usual, if it ran before its day was
    over, or if its tables do not match its counts. All runs that read no records share one
    sentence.
    """
    runs_without_records = [
        nightly_run for nightly_run in nightly_runs if nightly_run.verdict == NO_RECORDS_VERDICT
    ]
    if runs_without_records:
        usual_records_text = (
            _describe_usual_records(runs_without_records[0])
            if len(runs_without_records) == 1
            else ""
        )
        day_names = _join_days([nightly_run.day for nightly_run in runs_without_records])
        yield f"{day_names} had not one record{usual_records_text}: is the trail on?"
    for nightly_run in nightly_runs:
        day_name = format_day(nightly_run.day)
        if nightly_run.verdict == FAR_FEWER_RECORDS_VERDICT:
            usual_records_text = _describe_usual_records(nightly_run)
            records_text = f"{nightly_run.records:,}{usual_records_text}"
            yield f"{day_name} had far fewer records than usual: {records_text}."
        elif nightly_run.verdict == TABLES_DIFFER_FROM_COUNTS_VERDICT:
            yield f"The tables of {day_name} are not what its nightly run counted: run it again."
        elif nightly_run.verdict == READ_BEFORE_DAY_END_VERDICT:
            yield f"{day_name} was read before it was over, and not since."


def _describe_usual_records(nightly_run: NightlyCoverage) -> str:
    """Return the end of a sentence: how many records a nightly run usually reads.

    Empty if that is not known.
    """
    usual_record_count = nightly_run.usual_records
    return (
        ""
        if usual_record_count is None
        else f", where {format_number(round(usual_record_count))} are usual"
    )


def describe_sources(summary: Summary) -> str:
    """Return a part of a sentence: the files, records, accounts and regions of the report.

    Names are marked (see `words`).
    """
    coverage = summary.not_seen
    files_text = (
        f"{format_count(coverage.files_read, 'trail file')} ({format_bytes(coverage.bytes_read)})"
    )
    records_text = format_count(coverage.records_read, "record")
    accounts_text = _describe_accounts_or_regions(
        summary.accounts, summary.accounts_left_out, "account"
    )
    regions_text = _describe_accounts_or_regions(
        summary.regions, summary.regions_left_out, "region"
    )
    return f"{files_text} with {records_text}, of {accounts_text} in {regions_text}"


def _describe_accounts_or_regions(
    account_or_region_names: tuple[str, ...], left_out_count: int, noun: str
) -> str:
    """Return the names of accounts or regions, or only their number if there are many.

    Args:
        account_or_region_names: The names that are known.
        left_out_count: The number of further accounts or regions that are not in
            `account_or_region_names`.
        noun: `account` or `region`.
    """
    if not account_or_region_names:
        return f"no {noun}"
    if len(account_or_region_names) + left_out_count > MAXIMUM_NAMED_ACCOUNTS_OR_REGIONS:
        return format_count(len(account_or_region_names) + left_out_count, noun)
    noun_form = noun if len(account_or_region_names) == 1 else f"{noun}s"
    return (
        f"{noun_form} "
        f"{join_names([mark_quote(place_name) for place_name in account_or_region_names])}"
    )
