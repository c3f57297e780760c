"""Whether the queues really are as the story says, and the file that says so to machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from local_account.demo.mailbox import Message
from local_account.demo.story import BadQueue, Story
from local_account.demo.watching import Observation, Watch
from mendq.model.case import Severity, State

Result = dict[str, Any]
Claim = tuple[str, bool]
NONE = "none"


def claims(
    story: Story, watch: Watch, messages: Sequence[Message], incidents: Sequence[Mapping[str, Any]]
) -> Iterator[Claim]:
    """Everything that a story claims, in words, and whether it holds.

    `messages` are without the week's own; mailbox and incidents are of this account alone.
    """
    for bad in story.queues:
        yield from _of_queue(bad, watch.queues[bad.name], watch)
        yield from _of_reach(bad, watch.queues[bad.name], messages, incidents)
    written = sum(bad.is_written for bad in story.queues)
    yield _claim("metric AutoFixes is", f"{watch.metric('AutoFixes'):g}", f"{written}")
    known = [(seen.case or {}).get("case_id") for seen in watch.queues.values()]
    others = [each.subject for each in messages if each.case_id not in known]
    yield _claim("notifications about anything else:", _listed(others), NONE)
    arns = {seen.queue_arn for seen in watch.queues.values()}
    invented = [each["queue_arn"] for each in incidents if each["queue_arn"] not in arns]
    yield _claim("incidents that nobody saw:", _listed(invented), NONE)


def _claim(what: str, found: str, expected: str) -> Claim:
    wanted = "" if found == expected else f", expected {expected}"
    return f"{what} {found}{wanted}", found == expected


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words) or NONE


def changes(pairs: Mapping[str, Sequence[object]]) -> str:
    """Attributes with what they were and what they became, as people read them."""
    return _listed(f"{name} {pair[0]} -> {pair[1]}" for name, pair in pairs.items())


def _of_queue(bad: BadQueue, seen: Observation, watch: Watch) -> Iterator[Claim]:
    name = bad.name
    yield _claim(f"{name}: changed", changes(seen.changed()), changes(bad.changes))
    cases = [_case(each) for each in watch.cases if each["queue_arn"] == seen.queue_arn]
    expected = [_claimed(bad, state) for state in bad.states]
    yield _claim(f"{name}: its cases are", _listed(cases), _listed(expected))
    failed = seen.failed_calls
    yield f"{name}: {failed} calls failed", (failed == 0) == bad.is_silent
    enough = bad.traffic.convincing
    if bad.is_to_be_fixed and enough:
        calls = f"{seen.calls_well} {bad.traffic.noun}s"
        words = f"fixed, and {calls} {bad.traffic.well}, expected {enough} at least"
        yield f"{name}: {words}", seen.calls_well >= enough


def _claimed(bad: BadQueue, state: State) -> str:
    """A transition as it is to be, as far as the story claims it."""
    way = -1 if state is State.ROLLED_BACK else 1
    steps = {name: pair[::way] for name, pair in bad.steps.items()}
    return " ".join([bad.symptom, state, *([changes(steps)] if steps else [])])


def _case(case: Mapping[str, Any]) -> str:
    steps = {each["attribute"]: (each["before"], each["after"]) for each in case["steps"]}
    return " ".join([case["symptom"], case["to"], *([changes(steps)] if steps else [])])


def _of_reach(
    bad: BadQueue,
    seen: Observation,
    messages: Sequence[Message],
    incidents: Sequence[Mapping[str, Any]],
) -> Iterator[Claim]:
    """Whom it reached, and what the nightly job made of it."""
    case_id, wanted = (seen.case or {}).get("case_id"), [bad.notifies] if bad.notifies else []
    got = [each.severity for each in messages if each.case_id == case_id]
    yield _claim(f"{bad.name}: notified", _listed(got), _listed(wanted))
    rows = [
        _row(each["symptom"], each["outcome"], each["failed_calls"], each["notified"])
        for each in incidents
        if each["queue_arn"] == seen.queue_arn
    ]
    outcome, notified = bad.outcome or str(bad.states[-1]), bad.notifies is not None
    expected = [_row(bad.symptom, outcome, seen.failed_calls, notified)]
    yield _claim(f"{bad.name}: the nightly job found", _listed(rows), _listed(expected))


def of_week(story: Story, subject: str) -> Iterator[Claim]:
    """What the week's subject has to count: an incident for each queue, and whom they reached."""
    reached = Counter(bad.notifies for bad in story.queues)
    counted = [f"{len(story.queues)} incident"]
    for severity, word in ((Severity.URGENT, "paged"), (Severity.INFO, "told")):
        counted += [f"{reached[severity]} {word}"] * (reached[severity] > 0)
    missing = [each for each in counted if each not in subject]
    yield _claim("the week's subject leaves out:", _listed(missing), NONE)


def _row(symptom: str, outcome: str, failed_calls: int, notified: bool) -> str:
    return f"{symptom} {outcome} after {failed_calls} failed calls{', notified' * notified}"


def result_of(watch: Watch, said: Mapping[str, Any]) -> Result:
    """One story for machines; `said` is what is not seen in queues and cases."""
    queues = [
        {"queue_arn": seen.queue_arn, "before": seen.before, "after": seen.now}
        for seen in watch.queues.values()
    ]
    return {
        "queues": queues,
        "cases": watch.cases,
        "seconds_to_heal": _seconds_to_heal(watch),
        **said,
    }


def joined(results: Sequence[Result]) -> Result:
    """Several stories as one: lists go on, whole numbers add up, of all else the first stands.

    A sentence that was said before is not said again.
    """
    whole: Result = {}
    for name, found in (item for each in results for item in each.items()):
        before: Any = whole.setdefault(name, found)
        if before is not found and isinstance(found, list):
            whole[name] = [
                *before,
                *(e for e in found if not isinstance(e, str) or e not in before),
            ]
        elif before is not found and isinstance(found, int):
            whole[name] = (before or 0) + found
        elif before is None:
            whole[name] = found
    return whole


def _seconds_to_heal(watch: Watch) -> float | None:
    """The first case's that was verified; where none was, until the first change."""
    for case in watch.cases:
        if case["to"] == State.VERIFIED:
            first_at = datetime.fromisoformat(case["evidence"]["first_at"])
            return (datetime.fromisoformat(case["at"]) - first_at).total_seconds()
    healed = (seen.seconds_to_heal() for seen in watch.queues.values() if seen.changed())
    return next(healed, None)
