"""summary.json, version 1, read whole or refused; what is not named here is passed over."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any, NoReturn

from functions.report.document import At, SummaryUnreadable
from functions.report.read_parts import (
    DAYS,
    MOST_NAMES,
    day_if_given,
    deeds,
    given,
    nights,
    queue_days,
    reached_a_person,
    swept,
    text_if_given,
    times_to_heal,
    true_unless_given,
    whole_if_given,
)
from functions.report.summary import (
    SCHEMA,
    WHOLE_WEEK_NIGHTS,
    DayCount,
    EarlierWeek,
    Incident,
    NotSeen,
    Summary,
    Totals,
    UnreadableFile,
)

# The largest week that was tried has half of one megabyte.
MOST_BYTES = 5_000_000
MOST_CASES = 50
MOST_FILES = 20
MOST_OUTCOMES = 30
MOST_EARLIER_WEEKS = 4
MOST_ROWS = DAYS * MOST_NAMES
_WEEK = re.compile(r"(\d{4})-W(\d{2})", re.ASCII)


def read(summary: Mapping[str, Any] | bytes) -> Summary:
    """Read a parsed summary.json or its bytes.

    Raises SummaryUnreadable, one line, for the first thing that is wrong.
    """
    document = At("", _parsed(summary) if isinstance(summary, bytes) else summary)
    schema = document["schema"].value
    if schema != SCHEMA or isinstance(schema, bool):
        raise SummaryUnreadable(
            f"summary.json has schema {ascii(schema)[:40]} and this report reads schema {SCHEMA}; "
            "deploy the report and the night of one release"
        )
    return _summary(document)


def read_under(key: str, content: bytes) -> Summary:
    """The same of what lies under a key, whose week it is: another's page is not its to replace."""
    summary = read(content)
    if key != f"summary/week={summary.week}/summary.json":
        raise SummaryUnreadable(f"summary.json: week {summary.week} lies under another week's key")
    return summary


def _parsed(document: bytes) -> object:
    if len(document) > MOST_BYTES:
        raise SummaryUnreadable(f"summary.json is larger than {MOST_BYTES:,} bytes")
    try:
        return json.loads(document, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise SummaryUnreadable("summary.json is not a JSON document") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _summary(document: At) -> Summary:
    every_case = tuple(_incident(each) for each in document["cases"])
    to_do, to_do_left_out = deeds(document)
    summary = Summary(
        week=_week(document["week"]),
        first_day=document["from"].day(),
        last_day=document["to"].day(),
        made_at=document["made_at"].time(),
        accounts=document["accounts"].at_most(MOST_NAMES).texts(),
        regions=document["regions"].at_most(MOST_NAMES).texts(),
        accounts_left_out=whole_if_given(document, "accounts_left_out"),
        regions_left_out=whole_if_given(document, "regions_left_out"),
        labels_left_out=whole_if_given(document, "labels_left_out"),
        totals=_totals(document["totals"]),
        by_outcome=document["by_outcome"].at_most(MOST_OUTCOMES).counts(),
        by_label=document["by_label"].at_most(MOST_NAMES).counts(),
        per_day=tuple(_day_count(each) for each in document["per_day"].at_most(MOST_ROWS)),
        previous_weeks=tuple(
            _earlier_week(each) for each in document["previous_weeks"].at_most(MOST_EARLIER_WEEKS)
        ),
        cases=every_case[:MOST_CASES],
        cases_left_out=document["cases_left_out"].whole() + len(every_case[MOST_CASES:]),
        not_seen=_not_seen(document["not_seen"]),
        times_to_heal=times_to_heal(given(document, "times_to_heal")),
        queue_days=queue_days(given(document, "queue_days")),
        cases_were_read=given(document, "reached_a_person") is not None,
        reached_a_person=reached_a_person(given(document, "reached_a_person")),
        swept=swept(given(document, "swept")),
        do_this_week=to_do,
        do_this_week_left_out=to_do_left_out,
    )
    _require_one_week(document, summary)
    return summary


def _require_one_week(document: At, summary: Summary) -> None:
    """`week`, `from` and `to`, and every day that is told of."""
    if summary.last_day - summary.first_day != timedelta(days=DAYS - 1):
        raise document["to"].wrong("six days after `from`")
    if summary.first_day != _monday(summary.week):
        raise document["from"].wrong(f"the Monday of {summary.week}")
    not_seen = document["not_seen"]
    for place in (
        *(each["date"] for each in document["per_day"]),
        *not_seen["nights_missing"],
        *(each["day"] for each in given(not_seen, "nights") or ()),
    ):
        if place.day() not in summary.days:
            raise place.wrong("a day from `from` to `to`")


def _week(place: At) -> str:
    if not _monday(place.text()):
        raise place.wrong("a week such as 2026-W46")
    return place.text()


def _monday(week: str) -> date | None:
    """None where the calendar has no such week."""
    found = _WEEK.fullmatch(week)
    try:
        return date.fromisocalendar(int(found[1]), int(found[2]), 1) if found else None
    except ValueError:
        return None


def _totals(place: At) -> Totals:
    return Totals(
        incidents=place["incidents"].whole(),
        failed_calls=place["failed_calls"].whole(),
        queues=place["queues"].whole(),
        healed=place["healed"].whole(),
        paged=place["paged"].whole(),
        median_seconds_to_heal=_median(place),
        healed_with_time=whole_if_given(place, "healed_with_time"),
    )


def _median(place: At) -> float | None:
    median = given(place, "median_seconds_to_heal")
    return median.seconds_or_none() if median else None


def _day_count(place: At) -> DayCount:
    return DayCount(
        day=place["date"].day(),
        label=place["label"].text_or_none(),
        incidents=place["incidents"].whole(),
        failed_calls=place["failed_calls"].whole(),
    )


def _earlier_week(place: At) -> EarlierWeek:
    return EarlierWeek(
        week=_week(place["week"]),
        incidents=place["incidents"].whole(),
        failed_calls=place["failed_calls"].whole(),
        healed=place["healed"].whole(),
        paged=place["paged"].whole(),
        median_seconds_to_heal=_median(place),
        healed_with_time=whole_if_given(place, "healed_with_time"),
        nights=_nights_of(place),
    )


def _nights_of(week: At) -> int:
    nights = given(week, "nights")
    return nights.whole() if nights else WHOLE_WEEK_NIGHTS


def _incident(place: At) -> Incident:
    return Incident(
        incident_id=place["incident_id"].text(),
        queue_arn=place["queue_arn"].text(),
        label=place["label"].text(),
        error_codes=place["error_codes"].texts(),
        first_failure=place["first_failure"].time(),
        last_failure=place["last_failure"].time(),
        failed_calls=place["failed_calls"].whole(),
        principals=place["principals"].texts(),
        outcome=place["outcome"].text(),
        why=place["why"].text_or_none() or "",
        case_id=place["case_id"].text_or_none() or "",
        seconds_to_heal=place["seconds_to_heal"].seconds_or_none(),
        paged=place["paged"].truth(),
        reason=text_if_given(place, "reason"),
    )


def _not_seen(place: At) -> NotSeen:
    files = list(place["unreadable_files"])[:MOST_FILES]
    return NotSeen(
        nights_missing=tuple(each.day() for each in place["nights_missing"].at_most(DAYS)),
        files_read=place["files_read"].whole(),
        files_unreadable=place["files_unreadable"].whole(),
        bytes_read=place["bytes_read"].whole(),
        bytes_unreadable=place["bytes_unreadable"].whole(),
        records_read=place["records_read"].whole(),
        unlabelled=place["unlabelled"].at_most(MOST_NAMES).counts(),
        unreadable_files=tuple(
            UnreadableFile(file=each["file"].text(), reason=each["reason"].text()) for each in files
        ),
        nights=nights(given(place, "nights")),
        case_files_unreadable=whole_if_given(place, "case_files_unreadable"),
        week_is_over=true_unless_given(place, "week_is_over"),
        began=day_if_given(place, "began"),
        drill_incidents=whole_if_given(place, "drill_incidents"),
        unlabelled_codes_left_out=whole_if_given(place, "unlabelled_codes_left_out"),
        unlabelled_calls_left_out=whole_if_given(place, "unlabelled_calls_left_out"),
    )
