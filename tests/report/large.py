"""The largest summary that a week can have: of each list as much as the document holds."""

from __future__ import annotations

from typing import Any

from tests.report.week_parts import (
    notified,
    queue_days,
    reached_a_person,
    recommendation,
    scanned,
    times,
)
from tests.report.weeks import DAYS, earlier, incident, week

LONG = "a-queue-whose-name-uses-all-of-the-80-characters-that-sqs-lets-a-queue-s-name-"


def largest_week() -> dict[str, Any]:
    """10,000 incidents of 500 queues with long names, and of everything too much to list."""
    names = [f"{LONG}{n:02}" for n in range(20)]
    why = "the need of 1,380 s is above the ceiling of 900 s; " * 8
    cases = [
        incident(
            names[n % 20],
            day=n % 7,
            outcome=outcome,
            failed_calls=9_000 - n,
            **_announced(outcome, why),
        )
        for n, outcome in enumerate(["escalated", "refused", "healed", "not_seen", "observed"] * 10)
    ]
    queues = queue_days(cases, DAYS)
    for each in queues["queues"]:
        each["incidents"] = [count * 37 for count in each["incidents"]]
    codes = [f"unknown:A{n}" * 4 for n in range(30)]
    symptoms = ["visibility_timeout_too_short", "kms_throttled", *codes]
    return week(
        cases,
        cases_left_out=9_950,
        totals={"incidents": 10_000, "failed_calls": 2_500_000, "queues": 500, "healed": 9_100,
                "notified": 400, "median_seconds_to_heal": 61.0, "healed_with_time": 9_100},
        previous_weeks=earlier(8_000, 9_000, 9_500, 12_000, healed=7_000, median_seconds=58.0),
        per_day=[
            {"date": f"{day}", "symptom": symptom, "incidents": 40 - n, "failed_calls": 900}
            for day in DAYS
            for n, symptom in enumerate(symptoms)
        ],
        times_to_heal=[
            times(symptom, *(10 + (n * 97 + at) ** 1.7 for n in range(200)))
            for at, symptom in enumerate(symptoms)
        ],
        queue_days=queues | {"queues_left_out": 480, "incidents_left_out": 8_150},
        reached_a_person=reached_a_person(
            *(notified(names[n % 20], reason=why) for n in range(50)), left_out=350
        ),
        scanned=scanned(healed=90, notified=4, **dict.fromkeys(codes, 3)),
        do_this_week=[
            recommendation(
                "fix", names[n], reason=why, why="refused", command="mendq show " + "x" * 300
            )
            for n in range(10)
        ],
        do_this_week_left_out=312,
    )  # fmt: skip


def _announced(outcome: str, reason: str) -> dict[str, Any]:
    """What the case said; of what has none, why it has none."""
    return {"why": "event_lost"} if outcome == "not_seen" else {"reason": reason}
