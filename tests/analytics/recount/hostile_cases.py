"""Cases in every state of docs/incidents.md, and malformed files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from tests.analytics.recount.hostile_callers import ACCOUNTS, REGIONS, Place
from tests.analytics.recount.hostile_calls import Publication, get_midnight
from tests.analytics.recount.hostile_records import (
    ERRORS,
    TABLES,
    make_failed_call,
    make_queue_fields,
)


@dataclass(frozen=True)
class Plan:
    """A burst on a queue of its own, and its cases: states, and when the evidence was taken."""

    burst: tuple[float, ...]
    cases: tuple[tuple[str, float, float], ...]
    symptom: str = "visibility_timeout_too_short"
    queue: str | None = None
    hours_apart: float = 1.05
    evidence_grows: bool = False
    failed_calls: int = 3


def write_cases(random: Random, root: Path, first_day: date) -> list[Publication]:
    """Write the transitions of all cases and return the failed calls that belong to them."""
    calls: list[Publication] = []
    for number, plan in enumerate(Plan(**plan_fields) for plan_fields in TABLES["plans"]):
        start = get_midnight(first_day) + timedelta(seconds=random.randrange(86_400 * 3 - 7200))
        place = Place(ACCOUNTS[0], REGIONS[0], f"case-{number}")
        calls += _burst(random, place, start, plan)
        for case_number, (ending, first, last) in enumerate(plan.cases):
            about = Place(place.account, place.region, plan.queue or place.queue)
            taken = start + timedelta(seconds=first), start + timedelta(seconds=last)
            life = list(
                make_transitions(
                    f"{plan.symptom}-{number}-{case_number}", about, plan, ending, taken
                )
            )
            write_transitions(root, life)
    beside = root / "findings" / f"dt={first_day}" / "09.json"
    beside.parent.mkdir(parents=True)
    beside.write_text('{"schema": 1, "findings": []}')
    return calls


def _burst(random: Random, place: Place, start: datetime, plan: Plan) -> list[Publication]:
    times = [start + timedelta(seconds=offset) for offset in plan.burst]
    return [
        Publication(
            when + timedelta(minutes=5), place.account, place.region,
            {**make_failed_call(random, place, ERRORS[0], when), **make_queue_fields(place)},
        )
        for when in times
    ]  # fmt: skip


def make_transitions(
    case_id: str, place: Place, plan: Plan, ending: str, taken: tuple[datetime, datetime]
) -> Iterator[dict[str, Any]]:
    """Whether of one moment or growing, the evidence is 90 s old; `!` pages."""
    before = None
    for n, state in enumerate(ending.split(), start=1):
        to = state.removesuffix("!")
        last_at = taken[1] + (n - 1) * timedelta(hours=plan.hours_apart)
        at = last_at + timedelta(seconds=90, milliseconds=7)
        evidence = {
            "failed_calls": plan.failed_calls, "principals": [],
            "first_request_id": "a", "last_request_id": "b",
            "first_at": _format_time(taken[0]),
            "last_at": _format_time(last_at if plan.evidence_grows else taken[1]),
        }  # fmt: skip
        yield {
            "schema": 1, "case_id": case_id, "n": n, "at": _format_time(at),
            "from": before, "to": to,
            "queue_arn": place.arn, "account": place.account, "region": place.region,
            "symptom": plan.symptom, "reason": 'Größe \u2028 {"n": 9}', "evidence": evidence,
            "steps": [{"attribute": "VisibilityTimeout", "before": "30", "after": "45"}],
            "notified": state.endswith("!"), "urgent": state == "escalated!",
            "actor": "heal", "a_later_version_s": {"field": [1]},
        }  # fmt: skip
        before = to


def write_transitions(root: Path, life: list[dict[str, Any]]) -> None:
    for document in life:
        path = root / f"dt={document['at'][:10]}" / f"{document['case_id']}-{document['n']}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document), encoding="utf-8")
    last = life[-1]
    half = path.with_name(f"{last['case_id']}-{last['n'] + 1}.json")
    half.write_text(json.dumps({**last, "n": last["n"] + 1, "to": "overridden"})[:-40])


def _format_time(when: datetime) -> str:
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")
