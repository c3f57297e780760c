"""The parts of a week's document that are counted from rows: sums, days, queues, times, names."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from typing import Any

from analytics.cases import FIXED, HEALED, MOST_NAME, shortened
from analytics.days import Days
from analytics.incidents import COLUMNS
from analytics.trail_file import UNRESOLVED
from mendq.catalogue import UNKNOWN
from mendq.model.limits import DRILL_QUEUE

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
# A queue's ARN names the other two.
_FIELDS = tuple(each for each in COLUMNS["incidents"] if each not in {"account", "region"})

Row = Mapping[str, Any]


@dataclass(frozen=True)
class NightlyRows:
    """The rows of one day's incidents and quality."""

    incidents: Sequence[Row]
    quality: Sequence[Row]


NightlyRuns = Mapping[date, NightlyRows]


def is_of_a_drill(queue_arn: str) -> bool:
    return queue_arn.rpartition(":")[2].startswith(DRILL_QUEUE)


def without_drills(nightly_runs: NightlyRuns) -> NightlyRuns:
    """What people practised is no incident of anybody's."""
    return _changed(
        nightly_runs,
        lambda incidents: [row for row in incidents if not is_of_a_drill(row["queue_arn"])],
    )


def _changed(
    nightly_runs: NightlyRuns, change: Callable[[Sequence[Row]], Sequence[Row]]
) -> NightlyRuns:
    return {
        day: replace(rows, incidents=change(rows.incidents)) for day, rows in nightly_runs.items()
    }


def incidents_of(days: Days, nightly_runs: NightlyRuns) -> list[Row]:
    return [row for day in days if day in nightly_runs for row in nightly_runs[day].incidents]


def quality_of(days: Days, nightly_runs: NightlyRuns) -> list[Row]:
    return [row for day in days if day in nightly_runs for row in nightly_runs[day].quality]


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
    for row in incidents:
        found[row[names[0]] if len(names) == 1 else tuple(row[each] for each in names)].add(row)
    return found


def totals(incidents: Sequence[Row]) -> dict[str, Any]:
    """The median is None where no healing was timed."""
    seconds = seconds_of_the_healed(incidents)
    return {
        "incidents": len(incidents),
        "failed_calls": sum(row["failed_calls"] for row in incidents),
        "healed": sum(row["outcome"] == HEALED for row in incidents),
        "notified": sum(row["notified"] for row in incidents),
        "median_seconds_to_heal": median_of(seconds),
        "healed_with_time": len(seconds),
    }


def queues_named(incidents: Iterable[Row]) -> int:
    return len({row["queue_arn"] for row in incidents} - {UNRESOLVED})


def counted(words: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(words).items()))


def day_rows(day: date, nightly_runs: NightlyRuns) -> list[dict[str, Any]]:
    """One row per symptom; a day without incidents has one with none."""
    of_day = weights(incidents_of(Days(day, day), nightly_runs), "symptom")
    return [
        {"date": str(day), "symptom": symptom, **asdict(of_day[symptom])}
        for symptom in sorted(of_day)
    ] or [{"date": str(day), "symptom": None, **asdict(Weight())}]


def queue_days(days: Days, nightly_runs: NightlyRuns) -> dict[str, Any]:
    """The queues with most incidents, `unresolved` like any, and how much is left out."""
    incidents = incidents_of(days, nightly_runs)
    of_day = [
        Counter(row["queue_arn"] for row in incidents_of(Days(day, day), nightly_runs))
        for day in days
    ]
    not_healed = Counter(row["queue_arn"] for row in incidents if row["outcome"] not in FIXED)
    ranked = sorted(weights(incidents, "queue_arn").items(), key=_most_first)
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


def _most_first(item: tuple[str, Weight]) -> tuple[int, int, str]:
    name, weight = item
    return -weight.incidents, -weight.failed_calls, name


def seconds_of_the_healed(incidents: Iterable[Row]) -> list[float]:
    """Of those whose healing was timed, shortest first."""
    return sorted(row["seconds_to_heal"] for row in incidents if _was_timed(row))


def times_to_heal(incidents: Iterable[Row]) -> list[dict[str, Any]]:
    """A row per symptom: most healed first, then by name."""
    by_symptom = defaultdict[str, list[Row]](list)
    for row in filter(_was_timed, incidents):
        by_symptom[row["symptom"]].append(row)
    times = [_times(symptom, seconds_of_the_healed(rows)) for symptom, rows in by_symptom.items()]
    return sorted(times, key=lambda each: (-each["incidents"], each["symptom"]))


def median_of(ranked: Sequence[float]) -> float | None:
    """By nearest rank, so that it is a time that was measured; None of none."""
    return nearest_rank(ranked, 50) if ranked else None


def nearest_rank(ranked: Sequence[float], percent: int) -> float:
    """The least of `ranked`, sorted and not empty, that `percent` of them do not exceed."""
    return ranked[-(-percent * len(ranked) // 100) - 1]


def _was_timed(row: Row) -> bool:
    return row["outcome"] == HEALED and row["seconds_to_heal"] is not None


def _times(symptom: str, ranked: Sequence[float]) -> dict[str, Any]:
    enough = len(ranked) >= LEAST_FOR_A_PERCENTILE
    return {
        "symptom": symptom,
        "incidents": len(ranked),
        "median_seconds": median_of(ranked),
        "p90_seconds": nearest_rank(ranked, 90) if enough else None,
        "seconds": spread(ranked, MAXIMUM_SECONDS),
    }


def spread(ranked: Sequence[float], most: int) -> list[float]:
    """At most `most`, evenly spaced by rank, the first and the last among them."""
    if len(ranked) <= most:
        return list(ranked)
    return [ranked[each * (len(ranked) - 1) // (most - 1)] for each in range(most)]


def worst(incidents: Iterable[Row], reasons: Mapping[str, object]) -> list[dict[str, Any]]:
    """At most MAXIMUM_CASES: those that were not fixed first, then by failed calls.

    `reasons` is what each case said last; empty where its case is not known.
    """
    ranked = sorted(incidents, key=_worst_first)[:MAXIMUM_CASES]
    return [_listed(row) | {"reason": shortened(reasons.get(row["case_id"]))} for row in ranked]


def _worst_first(row: Row) -> tuple[bool, int, datetime, str]:
    return row["outcome"] in FIXED, -row["failed_calls"], row["first_failure"], row["incident_id"]


def _listed(row: Row) -> dict[str, Any]:
    said = {name: time_text(row[name]) for name in ("first_failure", "last_failure")}
    said["error_codes"] = row["error_codes"][:MOST_CODES]
    said["case_id"] = row["case_id"] and shortened(row["case_id"], MOST_NAME)
    return {name: said.get(name, row[name]) for name in _FIELDS}


@dataclass(frozen=True)
class Largest:
    """The names with most, sorted by name, and what is left out."""

    counts: Mapping[str, int]
    names_left_out: int = 0
    count_left_out: int = 0


def largest(counts: Mapping[str, int], most: int) -> Largest:
    """At most `most` of `counts`."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    beyond = ranked[most:]
    retained = dict(sorted(ranked[:most]))
    return Largest(retained, len(beyond), sum(count for _, count in beyond))


def places(rows: Iterable[Row], name: str) -> tuple[list[str], int]:
    """The accounts or regions with most `rows`, sorted, and how many more there are."""
    found = largest(Counter(row[name] for row in rows), MAXIMUM_PLACES)
    return sorted({shortened(each, MOST_PLACE) for each in found.counts}), found.names_left_out


def with_few_symptoms(days: Days, nightly_runs: NightlyRuns) -> tuple[NightlyRuns, int]:
    """`nightly_runs` with at most MAXIMUM_SYMPTOMS, and how many codes FURTHER stands for.

    What Mendq symptoms itself stays; of the codes without a symptom, those of most incidents.
    """
    found = weights(incidents_of(days, nightly_runs), "symptom")
    if len(found) <= MAXIMUM_SYMPTOMS:
        return nightly_runs, 0
    ranked = sorted(
        found.items(), key=lambda item: (item[0].startswith(UNKNOWN), *_most_first(item))
    )
    retained = frozenset(symptom for symptom, _ in ranked[: MAXIMUM_SYMPTOMS - 1])

    def renamed(row: Row) -> Row:
        return row if row["symptom"] in retained else {**row, "symptom": FURTHER}

    few = _changed(nightly_runs, lambda incidents: [*map(renamed, incidents)])
    return few, len(found) - len(retained)
