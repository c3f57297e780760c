"""Whether the queues really are as the story says, and the file that says so to machines."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from functions.catalogue.lease_expired import LEASE_EXPIRED
from local_account.demo.ending import Ending
from local_account.demo.story import BadQueue
from local_account.demo.watching import Seen, Watch


def faults(story: Sequence[BadQueue], watch: Watch) -> list[str]:
    """Every way in which the account is not as claimed; none: the claim holds."""
    found = [fault for bad in story for fault in _faults(bad, watch.queues[bad.name])]
    mended = sum(bad.is_to_be_mended for bad in story)
    if watch.metric("AutoFixes") != mended:
        found.append(f"metric AutoFixes is {watch.metric('AutoFixes')}, expected {mended}")
    return found


def _faults(bad: BadQueue, seen: Seen) -> list[str]:
    found = []
    expected = {}
    if bad.is_to_be_mended:
        ends = str(bad.ends_with_seconds)
        expected = {"VisibilityTimeout": (str(bad.visibility_seconds), ends)}
    if seen.changed() != expected:
        found.append(f"{bad.name}: changed {seen.changed()}, expected {expected}")
    state = seen.case["to"] if seen.case else None
    if state != bad.state:
        found.append(f"{bad.name}: its case is {state}, expected {bad.state}")
    if bad.is_to_be_mended and not seen.deletes_in_time:
        found.append(f"{bad.name}: mended, and still no delete was in time")
    if not seen.failed_calls:
        found.append(f"{bad.name}: no call failed, so nothing was shown")
    return found


def incident_faults(
    story: Sequence[BadQueue], watch: Watch, incidents: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Every way in which the incidents are not one for each queue, as the story saw it."""
    found = Counter(
        (each["queue_arn"], each["label"], each["outcome"], each["failed_calls"])
        for each in incidents
    )
    seen = {bad.name: watch.queues[bad.name] for bad in story}
    expected = Counter(
        (seen[bad.name].queue_arn, LEASE_EXPIRED.name, bad.state, seen[bad.name].failed_calls)
        for bad in story
    )
    missing = [f"the night did not find {_incident(each)}" for each in expected - found]
    invented = [f"the night found {_incident(each)}, which nobody saw" for each in found - expected]
    return missing + invented


def _incident(shape: tuple[str, str, str, int]) -> str:
    queue_arn, label, outcome, failed_calls = shape
    return f"{queue_arn.rpartition(':')[2]}: {label}, {outcome}, {failed_calls} failed calls"


def write_result(
    path: Path,
    watch: Watch,
    ending: Ending | None,
    *,
    not_emulated: Sequence[str],
    floors_lowered: Sequence[str],
) -> None:
    """`build/demo/result.json`."""
    healed = [seen.seconds_to_heal() for seen in watch.queues.values() if seen.changed()]
    result: dict[str, Any] = {
        "queues": [
            {"queue_arn": seen.queue_arn, "before": seen.before, "after": seen.now}
            for seen in watch.queues.values()
        ],
        "cases": watch.cases,
        "seconds_to_heal": next(iter(healed), None),
        "incidents": None if ending is None else len(ending.incidents),
        "report": None if ending is None else str(ending.report),
        "not_emulated": list(not_emulated),
        "floors_lowered": list(floors_lowered),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=2, sort_keys=True) + "\n")
