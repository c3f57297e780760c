"""The parts of a week's document that are counted from rows: sums, days, queues, times, names."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from operator import itemgetter
from typing import Any

from analytics.cases import FIXED, HEALED, MOST_NAME, shortened
from analytics.incidents import COLUMNS, OWN_LOOK
from analytics.trail_file import UNRESOLVED
from mendq.catalogue import UNKNOWN
from mendq.model.case import State
from mendq.model.limits import DRILL_QUEUE
from mendq.model.names import PROBE_QUEUE

MAXIMUM_CASES = 50
MOST_CODES = 10
MAXIMUM_SYMPTOMS = 100
MAXIMUM_PLACES = 1_000
MOST_PLACE = 64
MAXIMUM_QUEUES = 20
MAXIMUM_SECONDS = 200
# Of fewer, the 90th percentile would be the longest by another name.
LEAST_FOR_A_PERCENTILE = 5
# The symptom of the codes beyond, together; a code's own has a colon.
FURTHER = "unknown_code"
# What waits for a person, most pressing first.
PRESSING = (State.ESCALATED, State.PROPOSED, State.OVERRIDDEN)
# A queue's ARN names the other two.
_FIELDS = tuple(each for each in COLUMNS["incidents"] if each not in {"account", "region"})

Row = Mapping[str, Any]
ByDay = Mapping[date, Sequence[Row]]


def of_days(days: Iterable[date], by_day: ByDay) -> ByDay:
    """Those of `days`, each of which is there: without rows where nothing was written."""
    return {day: by_day.get(day, ()) for day in days}


def rows_of(by_day: ByDay) -> list[Row]:
    return [row for rows in by_day.values() for row in rows]


def is_own_queue(queue_arn: str) -> bool:
    """A drill's, or the probe's."""
    name = queue_arn.rpartition(":")[2]
    return name.startswith(DRILL_QUEUE) or name == PROBE_QUEUE


def without_own(incidents: ByDay) -> ByDay:
    """What people practised, and the probe and operators made, is no incident of anybody's."""
    return {
        day: [row for row in rows if not is_own_queue(row["queue_arn"]) and row["why"] != OWN_LOOK]
        for day, rows in incidents.items()
    }


def time_text(moment: datetime) -> str:
    """To the second, in UTC, with a Z."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


@dataclass
class Weight:
    """How many incidents, and failed calls in them."""

    incidents: int = 0
    failed_calls: int = 0

    def add(self, row: Row) -> None:
        self.incidents += 1
        self.failed_calls += row["failed_calls"]


def weights(incidents: Iterable[Row], *names: str) -> dict[Any, Weight]:
    """By what the rows hold in `names`: the value of one, a tuple of several."""
    found: dict[Any, Weight] = defaultdict(Weight)
    key = itemgetter(*names)
    for row in incidents:
        found[key(row)].add(row)
    return found


def totals(incidents: Sequence[Row]) -> dict[str, Any]:
    """The median is None where no healing was timed."""
    seconds = sorted(row["seconds_to_heal"] for row in incidents if _was_timed(row))
    return {
        "incidents": len(incidents),
        "failed_calls": sum(row["failed_calls"] for row in incidents),
        "healed": sum(row["outcome"] == HEALED for row in incidents),
        "notified": sum(row["notified"] for row in incidents),
        "urgent": sum(row["urgent"] for row in incidents),
        "median_seconds_to_heal": nearest_rank(seconds, 50) if seconds else None,
        "healed_with_time": len(seconds),
    }


def queues_named(incidents: Iterable[Row]) -> int:
    return len({row["queue_arn"] for row in incidents} - {UNRESOLVED})


def counted(words: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(words).items()))


def day_rows(day: date, incidents: Iterable[Row]) -> list[dict[str, Any]]:
    """One row per symptom; a day without incidents has one with none."""
    found = sorted(weights(incidents, "symptom").items()) or [(None, Weight())]
    return [{"date": str(day), "symptom": symptom, **asdict(each)} for symptom, each in found]


def queue_days(by_day: ByDay) -> dict[str, Any]:
    """The queues with most incidents, `unresolved` like any, and how much is left out."""
    incidents = rows_of(by_day)
    of_day = [Counter(row["queue_arn"] for row in rows) for rows in by_day.values()]
    not_healed = Counter(row["queue_arn"] for row in incidents if row["outcome"] not in FIXED)
    ranked = sorted(weights(incidents, "queue_arn").items(), key=most_first)
    return {
        "queues": [
            {
                "queue_arn": queue_arn,
                "incidents": [each[queue_arn] for each in of_day],
                "failed_calls": weight.failed_calls,
                "not_healed": not_healed[queue_arn],
            }
            for queue_arn, weight in ranked[:MAXIMUM_QUEUES]
        ],
        "queues_left_out": len(ranked[MAXIMUM_QUEUES:]),
        "incidents_left_out": sum(weight.incidents for _, weight in ranked[MAXIMUM_QUEUES:]),
    }


def most_first(item: tuple[str, Weight]) -> tuple[int, int, str]:
    name, weight = item
    return -weight.incidents, -weight.failed_calls, name


def times_to_heal(incidents: Iterable[Row]) -> list[dict[str, Any]]:
    """A row per symptom: most healed first, then by name."""
    by_symptom = defaultdict[str, list[float]](list)
    for row in filter(_was_timed, incidents):
        by_symptom[row["symptom"]].append(row["seconds_to_heal"])
    times = [_times(symptom, sorted(seconds)) for symptom, seconds in by_symptom.items()]
    return sorted(times, key=lambda each: (-each["incidents"], each["symptom"]))


def nearest_rank(ranked: Sequence[float], percent: int) -> float:
    """The least of `ranked`, sorted and not empty, that `percent` of them do not exceed.

    It is a time that was measured, also where it is the median.
    """
    return ranked[-(-percent * len(ranked) // 100) - 1]


def _was_timed(row: Row) -> bool:
    return row["outcome"] == HEALED and row["seconds_to_heal"] is not None


def _times(symptom: str, ranked: Sequence[float]) -> dict[str, Any]:
    enough = len(ranked) >= LEAST_FOR_A_PERCENTILE
    return {
        "symptom": symptom,
        "incidents": len(ranked),
        "median_seconds": nearest_rank(ranked, 50),
        "p90_seconds": nearest_rank(ranked, 90) if enough else None,
        "seconds": spread(ranked, MAXIMUM_SECONDS),
    }


def spread(ranked: Sequence[float], most: int) -> list[float]:
    """At most `most`, evenly spaced by rank, the first and the last among them."""
    if len(ranked) <= most:
        return list(ranked)
    return [ranked[each * (len(ranked) - 1) // (most - 1)] for each in range(most)]


def worst(
    incidents: Iterable[Row], says: Callable[[str | None], dict[str, Any]]
) -> list[dict[str, Any]]:
    """At most MAXIMUM_CASES: what waits for a person first, then what else was not fixed.

    Of what waits the older first: no flood of later ones, however many calls they have, hides it.
    Of the rest by failed calls.

    `says` is what a case says beside, by its id.
    """
    ranked = sorted(incidents, key=_worst_first)[:MAXIMUM_CASES]
    return [listed(row) | says(row["case_id"]) for row in ranked]


def _worst_first(row: Row) -> tuple[int, bool, int, datetime, str]:
    outcome, calls = row["outcome"], row["failed_calls"]
    pressing = PRESSING.index(outcome) if outcome in PRESSING else len(PRESSING)
    rank = pressing + (outcome in FIXED)
    waits_urgently = row["urgent"] and outcome in PRESSING
    by_calls = -calls if pressing == len(PRESSING) else 0
    return rank, not waits_urgently, by_calls, row["first_failure"], row["incident_id"]


def listed(row: Row) -> dict[str, Any]:
    said = {name: time_text(row[name]) for name in ("first_failure", "last_failure")}
    said["error_codes"] = row["error_codes"][:MOST_CODES]
    said["case_id"] = row["case_id"] and shortened(row["case_id"], MOST_NAME)
    return {name: said.get(name, row[name]) for name in _FIELDS}


def largest(counts: Mapping[str, int], most: int) -> tuple[dict[str, int], dict[str, int]]:
    """At most `most` of `counts`, the largest, sorted by name; and the others."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return dict(sorted(ranked[:most])), dict(ranked[most:])


def places(rows: Iterable[Row], name: str) -> tuple[list[str], int]:
    """The accounts or regions with most `rows`, sorted, and how many more there are."""
    found, left_out = largest(Counter(row[name] for row in rows), MAXIMUM_PLACES)
    return sorted({shortened(each, MOST_PLACE) for each in found}), len(left_out)


def with_few_symptoms(incidents: ByDay) -> tuple[ByDay, int]:
    """`incidents` of at most MAXIMUM_SYMPTOMS, and how many codes FURTHER stands for.

    What Mendq names itself stays; of the codes without a symptom, those of most incidents.
    """
    found = weights(rows_of(incidents), "symptom")
    if len(found) <= MAXIMUM_SYMPTOMS:
        return incidents, 0
    ranked = sorted(
        found.items(), key=lambda item: (item[0].startswith(UNKNOWN), *most_first(item))
    )
    beyond = {symptom: FURTHER for symptom, _ in ranked[MAXIMUM_SYMPTOMS - 1 :]}
    few = {
        day: [{**row, "symptom": beyond.get(row["symptom"], row["symptom"])} for row in rows]
        for day, rows in incidents.items()
    }
    return few, len(beyond)
