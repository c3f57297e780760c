"""The cases table: one incident as the cells of a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from functions.report.outcomes import tone, why_in_words
from functions.report.places import place_in
from functions.report.summary import Incident, Summary
from functions.report.visible import visible
from functions.report.words import counted, duration, principal_name, queue_name, span

MOST_CODES = 3


@dataclass(frozen=True)
class Row:
    """What the template prints; `tone` is one of `outcomes.tone`, everything else is text."""

    label: str
    calls: str
    caller: str
    queue: str
    place: str
    when: str
    outcome: str
    tone: str
    is_mended: bool
    paged: bool
    case_id: str
    why: str
    healed_in: str


def rows(summary: Summary) -> tuple[Row, ...]:
    """The summary's cases in its order, worst first."""
    return tuple(_row(summary, each) for each in summary.cases)


def healed_count(every: Sequence[Row]) -> str:
    """What the page folds away."""
    return counted(sum(each.is_mended for each in every), "healed incident")


def _row(summary: Summary, incident: Incident) -> Row:
    seconds = incident.seconds_to_heal
    return Row(
        label=visible(incident.label),
        calls=_calls(incident),
        caller=_caller(incident),
        queue=queue_name(incident.queue_arn),
        place=place_in(summary, incident.queue_arn),
        when=span(incident.first_failure, incident.last_failure),
        outcome=visible(incident.outcome.replace("_", " ")),
        tone=tone(incident.outcome),
        is_mended=incident.is_mended,
        paged=incident.paged,
        case_id=visible(incident.case_id or ""),
        why=why_in_words(incident),
        healed_in="" if seconds is None else duration(seconds),
    )


def _calls(incident: Incident) -> str:
    codes = [visible(each) for each in incident.error_codes[:MOST_CODES]]
    if len(incident.error_codes) > MOST_CODES:
        codes.append(f"{len(incident.error_codes) - MOST_CODES} more")
    return ", ".join([counted(incident.failed_calls, "failed call"), *codes])


def _caller(incident: Incident) -> str:
    """The first principal of at most ten, and how many more."""
    if not incident.principals:
        return ""
    more = len(incident.principals) - 1
    return principal_name(incident.principals[0]) + (f" and {more} more" if more else "")
