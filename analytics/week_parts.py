"""Count rows of the nightly tables for the weekly summary: sums, days, queues, times and names.

docs/summary.md explains each field of the summary. Other accounts may have written text in the
rows, so every list and every text has a limit.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from operator import itemgetter
from typing import Any

from analytics.cases import FIXED_OUTCOMES, HEALED_OUTCOME, MAXIMUM_NAME_CHARACTERS, shorten
from analytics.incidents import COLUMN_TYPES_BY_TABLE
from analytics.trail_file import UNRESOLVED_QUEUE
from mendq.catalogue import UNKNOWN_PREFIX
from mendq.model.state import State

MAXIMUM_CASES = 50
MAXIMUM_CODES = 10
MAXIMUM_SYMPTOMS = 100
MAXIMUM_ACCOUNTS_OR_REGIONS = 1_000
MAXIMUM_ACCOUNT_OR_REGION_CHARACTERS = 64
MAXIMUM_QUEUES = 20
MAXIMUM_HEALING_TIMES = 200
# The 90th percentile of fewer times than this would always be the longest time.
MINIMUM_TIMES_FOR_PERCENTILE = 5
# The symptom for all unknown error codes beyond MAXIMUM_SYMPTOMS. The symptom of a single unknown
# code begins with `unknown:`.
OTHER_CODES_SYMPTOM = "unknown_code"
# The states in which a case waits for a person, the most pressing first.
WAITING_STATES = (State.ESCALATED, State.PROPOSED, State.OVERRIDDEN)
# Incidents that do not wait for a person are listed last: first unfixed incidents, then fixed ones.
_RANK_OF_UNFIXED = len(WAITING_STATES)
_RANK_OF_FIXED = _RANK_OF_UNFIXED + 1
# The fields of an incident in the summary. Account and region are in the queue's ARN.
_INCIDENT_FIELDS = tuple(
    name for name in COLUMN_TYPES_BY_TABLE["incidents"] if name not in {"account", "region"}
)

# A row of a table.
Row = Mapping[str, Any]
# The rows of a table, by day.
RowsByDay = Mapping[date, Sequence[Row]]


def select_rows_of_days(days: Iterable[date], rows_by_day: RowsByDay) -> RowsByDay:
    """Return the rows of each of `days`. A day without a table has no rows."""
    return {day: rows_by_day.get(day, ()) for day in days}


def list_rows(rows_by_day: RowsByDay) -> list[Row]:
    """Return the rows of all days as one list."""
    return [row for rows in rows_by_day.values() for row in rows]


def format_time(aware_time: datetime) -> str:
    """Return a time as text in UTC, to the second, such as `2026-11-16T06:00:00Z`."""
    return aware_time.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


@dataclass
class IncidentCounts:
    """The number of incidents, and the number of failed calls in them."""

    incidents: int = 0
    failed_calls: int = 0

    def add(self, row: Row) -> None:
        """Add one incident and its failed calls."""
        self.incidents += 1
        self.failed_calls += row["failed_calls"]


def count_incidents_and_calls_by(
    incidents: Iterable[Row], *columns: str
) -> dict[Any, IncidentCounts]:
    """Return the number of incidents and failed calls for each value of a column.

    If several columns are given, the keys are tuples of their values.
    """
    counts_by_column_values: dict[Any, IncidentCounts] = defaultdict(IncidentCounts)
    get_column_values = itemgetter(*columns)
    for row in incidents:
        counts_by_column_values[get_column_values(row)].add(row)
    return counts_by_column_values


def count_totals(incidents: Sequence[Row]) -> dict[str, Any]:
    """Return the sums over all incidents, and the median time to heal in seconds.

    The median is None if no incident has a time to heal.
    """
    healing_seconds = sorted(row["seconds_to_heal"] for row in incidents if _has_healing_time(row))
    return {
        "incidents": len(incidents),
        "failed_calls": sum(row["failed_calls"] for row in incidents),
        "healed": sum(row["outcome"] == HEALED_OUTCOME for row in incidents),
        "notified": sum(row["notified"] for row in incidents),
        "urgent": sum(row["urgent"] for row in incidents),
        "median_seconds_to_heal": find_percentile(healing_seconds, 50) if healing_seconds else None,
        "healed_with_time": len(healing_seconds),
    }


def count_named_queues(incidents: Iterable[Row]) -> int:
    """Return the number of queues in these incidents.

    Incidents whose queue the logs do not name are not counted.
    """
    return len({row["queue_arn"] for row in incidents} - {UNRESOLVED_QUEUE})


def count_texts(texts: Iterable[str]) -> dict[str, int]:
    """Return how often each text occurs, by text, sorted by text."""
    return dict(sorted(Counter(texts).items()))


def make_day_rows(day: date, incidents: Iterable[Row]) -> list[dict[str, Any]]:
    """Return a row for each symptom of a day.

    If the day has no incidents, return one row whose symptom is None.
    """
    sorted_symptoms_and_counts = sorted(count_incidents_and_calls_by(incidents, "symptom").items())
    if not sorted_symptoms_and_counts:
        return [{"date": str(day), "symptom": None, **asdict(IncidentCounts())}]
    return [
        {"date": str(day), "symptom": symptom, **asdict(incident_counts)}
        for symptom, incident_counts in sorted_symptoms_and_counts
    ]


def make_queue_days(incidents_by_day: RowsByDay) -> dict[str, Any]:
    """Return the queues with the most incidents, and how many queues and incidents are left out.

    Each queue has a list with its number of incidents on each day. Incidents whose queue the logs
    do not name count as one queue, `unresolved`.
    """
    incidents = list_rows(incidents_by_day)
    incident_counts_of_each_day = [
        _count_incidents_by_queue(rows) for rows in incidents_by_day.values()
    ]
    unhealed_count_by_queue = _count_incidents_by_queue(
        row for row in incidents if row["outcome"] not in FIXED_OUTCOMES
    )
    ranked_queues = sorted(
        count_incidents_and_calls_by(incidents, "queue_arn").items(), key=rank_by_counts
    )
    queues: list[dict[str, Any]] = []
    for queue_arn, incident_counts in ranked_queues[:MAXIMUM_QUEUES]:
        queues.append(
            {
                "queue_arn": queue_arn,
                "incidents": [
                    incident_count_by_queue[queue_arn]
                    for incident_count_by_queue in incident_counts_of_each_day
                ],
                "failed_calls": incident_counts.failed_calls,
                "not_healed": unhealed_count_by_queue[queue_arn],
            }
        )
    return {
        "queues": queues,
        "queues_left_out": len(ranked_queues[MAXIMUM_QUEUES:]),
        "incidents_left_out": sum(
            incident_counts.incidents for _, incident_counts in ranked_queues[MAXIMUM_QUEUES:]
        ),
    }


def _count_incidents_by_queue(incidents: Iterable[Row]) -> Counter[str]:
    """Return the number of incidents of each queue, by queue ARN."""
    return Counter(row["queue_arn"] for row in incidents)


def rank_by_counts(name_and_counts: tuple[str, IncidentCounts]) -> tuple[int, int, str]:
    """Return a sorting key for a name and its counts: most incidents first, then most calls.

    Names with equal counts are sorted alphabetically.
    """
    name, incident_counts = name_and_counts
    return -incident_counts.incidents, -incident_counts.failed_calls, name


def list_times_to_heal(incidents: Iterable[Row]) -> list[dict[str, Any]]:
    """Return a summary of the times to heal of each symptom.

    Symptoms with the most healed incidents come first. Symptoms with equal numbers are sorted by
    name.
    """
    healing_seconds_by_symptom = defaultdict[str, list[float]](list)
    for row in incidents:
        if _has_healing_time(row):
            healing_seconds_by_symptom[row["symptom"]].append(row["seconds_to_heal"])
    healing_time_summaries = [
        _summarize_times(symptom, sorted(healing_seconds))
        for symptom, healing_seconds in healing_seconds_by_symptom.items()
    ]
    return sorted(
        healing_time_summaries, key=lambda summary: (-summary["incidents"], summary["symptom"])
    )


def find_percentile(sorted_times: Sequence[float], percent: int) -> float:
    """Return a percentile by the nearest-rank method: the result is always one of the times.

    Args:
        sorted_times: The times, sorted; at least one.
        percent: The percentile; 50 for the median.
    """
    return sorted_times[-(-percent * len(sorted_times) // 100) - 1]


def _has_healing_time(row: Row) -> bool:
    return row["outcome"] == HEALED_OUTCOME and row["seconds_to_heal"] is not None


def _summarize_times(symptom: str, sorted_healing_seconds: Sequence[float]) -> dict[str, Any]:
    """Return the median, the 90th percentile and a selection of a symptom's times to heal."""
    has_enough_times = len(sorted_healing_seconds) >= MINIMUM_TIMES_FOR_PERCENTILE
    return {
        "symptom": symptom,
        "incidents": len(sorted_healing_seconds),
        "median_seconds": find_percentile(sorted_healing_seconds, 50),
        "p90_seconds": find_percentile(sorted_healing_seconds, 90) if has_enough_times else None,
        "seconds": pick_evenly(sorted_healing_seconds, MAXIMUM_HEALING_TIMES),
    }


def pick_evenly(sorted_values: Sequence[float], maximum_values: int) -> list[float]:
    """Return at most `maximum_values` values, evenly spaced, with the first and the last."""
    if len(sorted_values) <= maximum_values:
        return list(sorted_values)
    last_position = len(sorted_values) - 1
    return [
        sorted_values[position * last_position // (maximum_values - 1)]
        for position in range(maximum_values)
    ]


def list_worst_incidents(
    incidents: Iterable[Row], describe_case: Callable[[str | None], dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return at most MAXIMUM_CASES incidents: first those that wait for a person, then the others.

    Incidents that wait are sorted by state as in WAITING_STATES. Within a state, urgent incidents
    come first, then the oldest, so that a flood of new incidents cannot hide old ones. Other
    incidents are sorted with unfixed before fixed ones, and then by the number of failed calls.

    Args:
        incidents: All incidents.
        describe_case: A function that returns further fields for an incident, from the id of its
            case.
    """
    ranked_rows = sorted(incidents, key=_rank_incident)[:MAXIMUM_CASES]
    return [make_incident(row) | describe_case(row["case_id"]) for row in ranked_rows]


def _rank_incident(row: Row) -> tuple[int, bool, int, datetime, str]:
    """Return the sorting key for `list_worst_incidents`."""
    outcome = row["outcome"]
    if outcome in WAITING_STATES:
        state_rank = WAITING_STATES.index(outcome)
        return state_rank, not row["urgent"], 0, row["first_failure"], row["incident_id"]
    state_rank = _RANK_OF_FIXED if outcome in FIXED_OUTCOMES else _RANK_OF_UNFIXED
    return state_rank, True, -row["failed_calls"], row["first_failure"], row["incident_id"]


def make_incident(row: Row) -> dict[str, Any]:
    """Return an incident as a JSON object for the summary.

    Times are texts. A long case id and a long list of error codes are cut.
    """
    incident = {name: row[name] for name in _INCIDENT_FIELDS}
    incident["first_failure"] = format_time(row["first_failure"])
    incident["last_failure"] = format_time(row["last_failure"])
    incident["error_codes"] = row["error_codes"][:MAXIMUM_CODES]
    if row["case_id"]:
        incident["case_id"] = shorten(row["case_id"], MAXIMUM_NAME_CHARACTERS)
    return incident


def split_largest_counts(
    count_by_name: Mapping[str, int], maximum_names: int
) -> tuple[dict[str, int], dict[str, int]]:
    """Return the `maximum_names` largest counts, sorted by name, and all other counts."""
    ranked_names_and_counts = sorted(count_by_name.items(), key=lambda count: (-count[1], count[0]))
    return dict(sorted(ranked_names_and_counts[:maximum_names])), dict(
        ranked_names_and_counts[maximum_names:]
    )


def list_most_frequent_values(rows: Iterable[Row], column: str) -> tuple[list[str], int]:
    """Return the accounts or regions with the most rows, and the number of those left out.

    They are sorted by name.

    `column` is `account` or `region`.
    """
    row_count_by_name, left_out_count_by_name = split_largest_counts(
        Counter(row[column] for row in rows), MAXIMUM_ACCOUNTS_OR_REGIONS
    )
    return sorted(
        {shorten(name, MAXIMUM_ACCOUNT_OR_REGION_CHARACTERS) for name in row_count_by_name}
    ), len(left_out_count_by_name)


def limit_symptoms(incidents_by_day: RowsByDay) -> tuple[RowsByDay, int]:
    """Return the incidents with at most MAXIMUM_SYMPTOMS symptoms.

    Symptoms of the catalogue are kept, and so are the unknown codes with the most incidents. Other
    unknown codes get the symptom OTHER_CODES_SYMPTOM.

    Returns:
        The incidents, and the number of codes that OTHER_CODES_SYMPTOM replaces.
    """
    counts_by_symptom = count_incidents_and_calls_by(list_rows(incidents_by_day), "symptom")
    if len(counts_by_symptom) <= MAXIMUM_SYMPTOMS:
        return incidents_by_day, 0
    ranked_symptoms = sorted(
        counts_by_symptom.items(),
        key=lambda symptom_and_counts: (
            symptom_and_counts[0].startswith(UNKNOWN_PREFIX),
            *rank_by_counts(symptom_and_counts),
        ),
    )
    symptoms_to_replace = {symptom for symptom, _ in ranked_symptoms[MAXIMUM_SYMPTOMS - 1 :]}
    limited_incidents_by_day: dict[date, list[Row]] = {}
    for day, rows in incidents_by_day.items():
        limited_incidents_by_day[day] = [
            {**row, "symptom": OTHER_CODES_SYMPTOM}
            if row["symptom"] in symptoms_to_replace
            else row
            for row in rows
        ]
    return limited_incidents_by_day, len(symptoms_to_replace)
