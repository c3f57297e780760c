"""Whether the queues really are as the story says, and the file that says so to machines."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from functions.healing.states import State
from infra.alarms.open_cases import ESCALATED, PROPOSED
from local_account.demo.ending import Ending
from local_account.demo.honesty import Honesty
from local_account.demo.mailbox import Message, Notice
from local_account.demo.story import BadQueue, Story
from local_account.demo.watching import Seen, Watch

Result = dict[str, Any]
OF_STATES = {State.ESCALATED: ESCALATED.called(), State.PROPOSED: PROPOSED.called()}


def faults(story: Story, watch: Watch) -> list[str]:
    """Every way in which the account is not as claimed; none: the claim holds."""
    found = [
        fault for bad in story.queues for fault in _faults(bad, watch.queues[bad.name], watch.cases)
    ]
    written = sum(bad.is_written for bad in story.queues)
    if watch.metric("AutoFixes") != written:
        found.append(f"metric AutoFixes is {watch.metric('AutoFixes')}, expected {written}")
    return found


def _faults(bad: BadQueue, seen: Seen, cases: Sequence[Mapping[str, Any]]) -> list[str]:
    found = []
    if seen.changed() != bad.changes:
        found.append(f"{bad.name}: changed {seen.changed()}, expected {bad.changes}")
    claimed = [_claimed(bad, state) for state in bad.path]
    of_queue = [each for each in cases if each["queue_arn"] == seen.queue_arn]
    if list(map(_case, of_queue)) != list(map(_case, claimed)):
        said = ", ".join(map(_case, of_queue)) or "none"
        expects = ", ".join(map(_case, claimed))
        found.append(f"{bad.name}: its cases are {said}, expected {expects}")
    if bad.is_to_be_mended and seen.calls_well < bad.traffic.convincing:
        found.append(
            f"{bad.name}: mended, and still {seen.calls_well} {bad.traffic.noun}s "
            f"{bad.traffic.well}, expected {bad.traffic.convincing}"
        )
    if bad.is_silent and seen.failed_calls:
        found.append(f"{bad.name}: {seen.failed_calls} calls failed, so a sweep proved nothing")
    if not bad.is_silent and not seen.failed_calls:
        found.append(f"{bad.name}: no call failed, so nothing was shown")
    return found


def _claimed(bad: BadQueue, state: State) -> dict[str, Any]:
    """A transition as it is to be, as far as the story claims it."""
    steps = [each.document() for each in bad.steps]
    if state is State.ROLLED_BACK:
        steps = [{**each, "before": each["after"], "after": each["before"]} for each in steps]
    return {"symptom": bad.symptom.name, "to": state, "steps": steps}


def _case(case: Mapping[str, Any]) -> str:
    steps = [f"{each['attribute']} {each['before']} -> {each['after']}" for each in case["steps"]]
    return " ".join([f"{case['symptom']} {case['to']}", *steps])


def page_faults(story: Story, watch: Watch, messages: Sequence[Message]) -> list[str]:
    """Every way in which people were not paged exactly as claimed; the week's verdict aside."""
    found = Counter((str(each.severity), each.case_id) for each in messages)
    seen = {bad.name: watch.queues[bad.name] for bad in story.queues}
    expected = Counter(
        (str(bad.pages), (seen[bad.name].case or {}).get("case_id"))
        for bad in story.queues
        if bad.pages is not None
    )
    names = {(each.case or {}).get("case_id"): name for name, each in seen.items()}
    missing = [f"no {to} page about {names.get(case, case)}" for to, case in expected - found]
    extra = [f"an {to} page too many: {names.get(case, case)}" for to, case in found - expected]
    return missing + extra


def alarm_faults(story: Story, notices: Sequence[Notice]) -> list[str]:
    """Alarms that rang for no case of the story: Mendq itself is well in all of them."""
    passed = {state for bad in story.queues for state in bad.path}
    explained = {alarm for state, alarm in OF_STATES.items() if state in passed}
    rang = dict.fromkeys(each.alarm for each in notices if each.state == "ALARM")
    return [f"{each} rang, and nothing explains it" for each in rang if each not in explained]


def incident_faults(
    story: Story, watch: Watch, incidents: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Every way in which the incidents are not one for each queue, as the story saw it."""
    found = Counter(
        (each["queue_arn"], each["label"], each["outcome"], each["failed_calls"], each["paged"])
        for each in incidents
    )
    seen = {bad.name: watch.queues[bad.name] for bad in story.queues}
    expected = Counter(
        (
            seen[bad.name].queue_arn,
            bad.symptom.name,
            bad.incident_outcome,
            seen[bad.name].failed_calls,
            bad.pages is not None,
        )
        for bad in story.queues
        if not bad.is_silent
    )
    missing = [f"the night did not find {_incident(*each)}" for each in expected - found]
    invented = [
        f"the night found {_incident(*each)}, which nobody saw" for each in found - expected
    ]
    return missing + invented


def _incident(queue_arn: str, label: str, outcome: str, failed_calls: int, paged: bool) -> str:
    told = "paged" if paged else "not paged"
    return (
        f"{queue_arn.rpartition(':')[2]}: {label}, {outcome}, {failed_calls} failed calls, {told}"
    )


def result_of(
    watch: Watch,
    ended: Ending | None,
    pages: int,
    honesty: Honesty,
    letters: Mapping[str, Any] | None = None,
) -> Result:
    """One story for machines; `letters` says what became of those that went back."""
    return {
        "queues": [
            {"queue_arn": seen.queue_arn, "before": seen.before, "after": seen.now}
            for seen in watch.queues.values()
        ],
        "cases": watch.cases,
        "seconds_to_heal": _seconds_to_heal(watch),
        "pages": pages,
        "incidents": None if ended is None else len(ended.incidents),
        "report": None if ended is None else str(ended.report),
        "not_emulated": list(honesty.not_emulated),
        "floors_lowered": list(honesty.floors_lowered),
        "clock_put_forward": list(honesty.clock_put_forward),
        "letters": dict(letters) if letters else None,
    }


def joined(results: Sequence[Result]) -> Result:
    """Several stories as one."""
    incidents = [each["incidents"] for each in results]
    told, said = ("queues", "cases"), ("not_emulated", "floors_lowered", "clock_put_forward")
    seconds = (each["seconds_to_heal"] for each in results)
    return {
        **{name: [item for each in results for item in each[name]] for name in told},
        **{name: _once([item for each in results for item in each[name]]) for name in said},
        "seconds_to_heal": next((each for each in seconds if each is not None), None),
        "pages": sum(each["pages"] for each in results),
        "incidents": None if None in incidents else sum(incidents),
        "report": results[-1]["report"],
        "letters": next((each["letters"] for each in results if each["letters"]), None),
    }


def write_result(path: Path, result: Result) -> None:
    """`build/demo/result.json`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=2, sort_keys=True) + "\n")


def _once(lines: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(lines))


def _seconds_to_heal(watch: Watch) -> float | None:
    """The first case's that was verified; where none was, until the first change."""
    for case in watch.cases:
        if case["to"] == State.VERIFIED:
            first_at = datetime.fromisoformat(case["evidence"]["first_at"])
            return (datetime.fromisoformat(case["at"]) - first_at).total_seconds()
    healed = (seen.seconds_to_heal() for seen in watch.queues.values() if seen.changed())
    return next(healed, None)
