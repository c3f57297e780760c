"""Compare the account with what the story claims, and build the result for result.json."""

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
    """Yield every claim of a story in words, with True if it holds.

    Args:
        story: The story.
        watch: What was observed.
        messages: All notifications of this account except the weekly report's.
        incidents: All incidents that the nightly job wrote for this account.
    """
    for bad in story.queues:
        yield from _claims_about_queue(bad, watch.queues[bad.name], watch)
        yield from _claims_about_people(bad, watch.queues[bad.name], messages, incidents)
    fixes = sum(bad.is_written for bad in story.queues)
    yield _claim("metric AutoFixes is", f"{watch.metric('AutoFixes'):g}", f"{fixes}")
    case_ids = [(queue.case or {}).get("case_id") for queue in watch.queues.values()]
    others = [message.subject for message in messages if message.case_id not in case_ids]
    yield _claim("notifications about anything else:", _join(others), NONE)
    arns = {queue.queue_arn for queue in watch.queues.values()}
    invented = [
        incident["queue_arn"] for incident in incidents if incident["queue_arn"] not in arns
    ]
    yield _claim("incidents that nobody saw:", _join(invented), NONE)


def _claim(subject: str, actual: str, expected: str) -> Claim:
    if actual == expected:
        return f"{subject} {actual}", True
    return f"{subject} {actual}, expected {expected}", False


def _join(words: Iterable[str]) -> str:
    return ", ".join(words) or NONE


def changes_in_words(changes: Mapping[str, Sequence[object]]) -> str:
    """Return the attributes with their values before and after, for people."""
    return _join(f"{name} {before} -> {after}" for name, (before, after) in changes.items())


def _claims_about_queue(bad: BadQueue, queue: Observation, watch: Watch) -> Iterator[Claim]:
    """Yield the claims about a queue's changes, its cases and its calls."""
    name = bad.name
    actual_changes = changes_in_words(queue.changes())
    yield _claim(f"{name}: changed", actual_changes, changes_in_words(bad.changes))
    cases = [
        _transition_in_words(case) for case in watch.cases if case["queue_arn"] == queue.queue_arn
    ]
    expected = [_expected_transition(bad, state) for state in bad.states]
    yield _claim(f"{name}: its cases are", _join(cases), _join(expected))
    failed = queue.failed_calls
    yield f"{name}: {failed} calls failed", (failed == 0) == bad.is_silent
    enough = bad.traffic.convincing
    if bad.is_to_be_fixed and enough:
        calls = f"{queue.calls_well} {bad.traffic.noun}s"
        words = f"fixed, and {calls} {bad.traffic.well}, expected {enough} at least"
        yield f"{name}: {words}", queue.calls_well >= enough


def _expected_transition(bad: BadQueue, state: State) -> str:
    """Return the words for the transition that the story claims. A rollback swaps the values."""
    steps = bad.steps
    if state is State.ROLLED_BACK:
        steps = {name: (after, before) for name, (before, after) in steps.items()}
    return _words(bad.symptom, state, steps)


def _transition_in_words(case: Mapping[str, Any]) -> str:
    steps = {step["attribute"]: (step["before"], step["after"]) for step in case["steps"]}
    return _words(case["symptom"], case["to"], steps)


def _words(symptom: str, state: str, steps: Mapping[str, Sequence[object]]) -> str:
    words = f"{symptom} {state}"
    return f"{words} {changes_in_words(steps)}" if steps else words


def _claims_about_people(
    bad: BadQueue,
    queue: Observation,
    messages: Sequence[Message],
    incidents: Sequence[Mapping[str, Any]],
) -> Iterator[Claim]:
    """Yield the claims about the notifications of a queue, and about its incident."""
    case_id = (queue.case or {}).get("case_id")
    expected_severities = [bad.notifies] if bad.notifies else []
    severities = [message.severity for message in messages if message.case_id == case_id]
    yield _claim(f"{bad.name}: notified", _join(severities), _join(expected_severities))
    rows = [
        _row(
            incident["symptom"],
            incident["outcome"],
            incident["failed_calls"],
            was_notified=incident["notified"],
        )
        for incident in incidents
        if incident["queue_arn"] == queue.queue_arn
    ]
    outcome = bad.outcome or str(bad.states[-1])
    expected_row = _row(
        bad.symptom, outcome, queue.failed_calls, was_notified=bad.notifies is not None
    )
    yield _claim(f"{bad.name}: the nightly job found", _join(rows), expected_row)


def claims_about_week(story: Story, subject: str) -> Iterator[Claim]:
    """Yield the claim that the subject of the week's report names every count.

    The subject must count one incident for each queue, and the notifications of each severity.
    """
    notifications = Counter(bad.notifies for bad in story.queues)
    counts = [f"{len(story.queues)} incident"]
    for severity, word in ((Severity.URGENT, "paged"), (Severity.INFO, "told")):
        if notifications[severity]:
            counts.append(f"{notifications[severity]} {word}")
    missing = [count for count in counts if count not in subject]
    yield _claim("the week's subject leaves out:", _join(missing), NONE)


def _row(symptom: str, outcome: str, failed_calls: int, *, was_notified: bool) -> str:
    words = f"{symptom} {outcome} after {failed_calls} failed calls"
    return f"{words}, notified" if was_notified else words


def result_of(watch: Watch, other_fields: Mapping[str, Any]) -> Result:
    """Return the result of one story for result.json.

    `other_fields` has what is not observed in queues and cases.
    """
    queues = [
        {"queue_arn": queue.queue_arn, "before": queue.before, "after": queue.now}
        for queue in watch.queues.values()
    ]
    return {
        "queues": queues,
        "cases": watch.cases,
        "seconds_to_heal": _seconds_to_heal(watch),
        **other_fields,
    }


def join_results(results: Sequence[Result]) -> Result:
    """Join the results of several stories.

    Lists are joined, without repeated sentences, and whole numbers are added. Of other values the
    first that is not None is used.
    """
    whole: Result = {}
    for result in results:
        for name, value in result.items():
            whole[name] = _join_values(whole[name], value) if name in whole else value
    return whole


def _join_values(before: Any, value: Any) -> Any:
    if isinstance(value, list):
        new = [
            element for element in value if not isinstance(element, str) or element not in before
        ]
        return [*before, *new]
    if isinstance(value, int):
        return (before or 0) + value
    return value if before is None else before


def _seconds_to_heal(watch: Watch) -> float | None:
    """Return the seconds from the first failed call to the first verified case.

    If no case was verified, return the seconds to the first change, or None without a change.
    """
    for case in watch.cases:
        if case["to"] == State.VERIFIED:
            first_at = datetime.fromisoformat(case["evidence"]["first_at"])
            return (datetime.fromisoformat(case["at"]) - first_at).total_seconds()
    for queue in watch.queues.values():
        if queue.changes():
            return queue.seconds_to_heal()
    return None
