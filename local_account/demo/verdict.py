"""Check a story's claims against the account, and build the result for result.json."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from local_account.demo.mailbox import Message
from local_account.demo.story import BadQueue, Story
from local_account.demo.watching import AccountWatcher, QueueObservation
from mendq.model.case import Severity
from mendq.model.state import State

Result = dict[str, Any]
Claim = tuple[str, bool]
NONE_TEXT = "none"


def list_claims(
    story: Story,
    watcher: AccountWatcher,
    messages: Sequence[Message],
    incidents: Sequence[Mapping[str, Any]],
) -> Iterator[Claim]:
    """Yield every claim of a story as a sentence, each with True if the claim holds.

    Args:
        story: The story.
        watcher: The observations of the account.
        messages: All notifications of this account except the weekly report's.
        incidents: All incidents that the nightly job wrote for this account.
    """
    for bad_queue in story.queues:
        yield from _list_queue_claims(bad_queue, watcher.queues[bad_queue.name], watcher)
        yield from _list_notification_claims(
            bad_queue, watcher.queues[bad_queue.name], messages, incidents
        )
    expected_fixes = sum(bad_queue.is_fix_written for bad_queue in story.queues)
    yield _make_claim(
        "metric AutoFixes is", f"{watcher.sum_metric('AutoFixes'):g}", f"{expected_fixes}"
    )
    case_ids = [(queue.newest_transition or {}).get("case_id") for queue in watcher.queues.values()]
    unrelated_message_subjects = [
        message.subject for message in messages if message.case_id not in case_ids
    ]
    yield _make_claim(
        "notifications about anything else:", _join_texts(unrelated_message_subjects), NONE_TEXT
    )
    queue_arns = {queue.queue_arn for queue in watcher.queues.values()}
    unexpected_queue_arns = [
        incident["queue_arn"] for incident in incidents if incident["queue_arn"] not in queue_arns
    ]
    yield _make_claim("incidents that nobody saw:", _join_texts(unexpected_queue_arns), NONE_TEXT)


def _make_claim(subject: str, actual_text: str, expected_text: str) -> Claim:
    if actual_text == expected_text:
        return f"{subject} {actual_text}", True
    return f"{subject} {actual_text}, expected {expected_text}", False


def _join_texts(texts: Iterable[str]) -> str:
    return ", ".join(texts) or NONE_TEXT


def describe_changes(changes: Mapping[str, Sequence[object]]) -> str:
    """Return changes as text, such as `VisibilityTimeout 30 -> 60`; `none` without any."""
    return _join_texts(
        f"{name} {value_before} -> {value_after}"
        for name, (value_before, value_after) in changes.items()
    )


def _list_queue_claims(
    bad_queue: BadQueue, queue: QueueObservation, watcher: AccountWatcher
) -> Iterator[Claim]:
    """Yield the claims about a queue's changes, its cases and its calls."""
    name = bad_queue.name
    actual_changes = describe_changes(queue.changes())
    yield _make_claim(f"{name}: changed", actual_changes, describe_changes(bad_queue.changes))
    transitions = [
        _describe_transition(transition)
        for transition in watcher.case_transitions
        if transition["queue_arn"] == queue.queue_arn
    ]
    expected_transitions = [
        _describe_expected_transition(bad_queue, state) for state in bad_queue.states
    ]
    yield _make_claim(
        f"{name}: its cases are", _join_texts(transitions), _join_texts(expected_transitions)
    )
    failed_calls = queue.failed_calls
    yield f"{name}: {failed_calls} calls failed", (failed_calls == 0) == bad_queue.is_silent
    needed_call_count = bad_queue.traffic.convincing_calls
    if bad_queue.must_be_fixed and needed_call_count:
        calls_text = f"{queue.successful_calls} {bad_queue.traffic.call_noun}s"
        successes_text = f"{calls_text} {bad_queue.traffic.success_words}"
        claim_text = f"fixed, and {successes_text}, expected {needed_call_count} at least"
        yield f"{name}: {claim_text}", queue.successful_calls >= needed_call_count


def _describe_expected_transition(bad_queue: BadQueue, state: State) -> str:
    """Return the claimed transition to `state` as text. A rollback swaps the steps' values."""
    steps = bad_queue.steps
    if state is State.ROLLED_BACK:
        steps = {
            name: (value_after, value_before) for name, (value_before, value_after) in steps.items()
        }
    return _describe_state(bad_queue.symptom, state, steps)


def _describe_transition(transition: Mapping[str, Any]) -> str:
    steps = {step["attribute"]: (step["before"], step["after"]) for step in transition["steps"]}
    return _describe_state(transition["symptom"], transition["to"], steps)


def _describe_state(symptom: str, state: str, steps: Mapping[str, Sequence[object]]) -> str:
    state_text = f"{symptom} {state}"
    return f"{state_text} {describe_changes(steps)}" if steps else state_text


def _list_notification_claims(
    bad_queue: BadQueue,
    queue: QueueObservation,
    messages: Sequence[Message],
    incidents: Sequence[Mapping[str, Any]],
) -> Iterator[Claim]:
    """Yield the claims about the notifications of a queue, and about its incident."""
    case_id = (queue.newest_transition or {}).get("case_id")
    expected_severities = [bad_queue.notifies] if bad_queue.notifies else []
    severities = [message.severity for message in messages if message.case_id == case_id]
    yield _make_claim(
        f"{bad_queue.name}: notified", _join_texts(severities), _join_texts(expected_severities)
    )
    incident_rows = [
        _describe_incident(
            incident["symptom"],
            incident["outcome"],
            incident["failed_calls"],
            was_notified=incident["notified"],
        )
        for incident in incidents
        if incident["queue_arn"] == queue.queue_arn
    ]
    outcome = bad_queue.outcome or str(bad_queue.states[-1])
    expected_incident_row = _describe_incident(
        bad_queue.symptom, outcome, queue.failed_calls, was_notified=bad_queue.notifies is not None
    )
    yield _make_claim(
        f"{bad_queue.name}: the nightly job found",
        _join_texts(incident_rows),
        expected_incident_row,
    )


def list_week_claims(story: Story, week_message_subject: str) -> Iterator[Claim]:
    """Yield the claim that the subject of the week's report has every count.

    The counts are one incident for each queue, and the notifications of each severity.
    """
    count_by_severity = Counter(bad_queue.notifies for bad_queue in story.queues)
    expected_count_texts = [f"{len(story.queues)} incident"]
    for severity, notification_verb in ((Severity.URGENT, "paged"), (Severity.INFO, "told")):
        if count_by_severity[severity]:
            expected_count_texts.append(f"{count_by_severity[severity]} {notification_verb}")
    missing_count_texts = [
        count for count in expected_count_texts if count not in week_message_subject
    ]
    yield _make_claim("the week's subject leaves out:", _join_texts(missing_count_texts), NONE_TEXT)


def _describe_incident(symptom: str, outcome: str, failed_calls: int, *, was_notified: bool) -> str:
    incident_text = f"{symptom} {outcome} after {failed_calls} failed calls"
    return f"{incident_text}, notified" if was_notified else incident_text


def make_result(watcher: AccountWatcher, other_fields: Mapping[str, Any]) -> Result:
    """Return the result of one story for result.json.

    `other_fields` has the fields that `watcher` does not know.
    """
    queues = [
        {
            "queue_arn": queue.queue_arn,
            "before": queue.initial_configuration,
            "after": queue.latest_configuration,
        }
        for queue in watcher.queues.values()
    ]
    return {
        "queues": queues,
        "cases": watcher.case_transitions,
        "seconds_to_heal": _compute_seconds_to_heal(watcher),
        **other_fields,
    }


def join_results(results: Sequence[Result]) -> Result:
    """Join the results of several stories.

    Lists are joined, without repeated texts. Whole numbers are added. For other fields, the first
    value that is not None is used.
    """
    joined_result: Result = {}
    for result in results:
        for name, value in result.items():
            joined_result[name] = (
                _join_values(joined_result[name], value) if name in joined_result else value
            )
    return joined_result


def _join_values(joined_value: Any, value: Any) -> Any:
    if isinstance(value, list):
        new_elements = [
            element
            for element in value
            if not isinstance(element, str) or element not in joined_value
        ]
        return [*joined_value, *new_elements]
    if isinstance(value, int):
        return (joined_value or 0) + value
    return value if joined_value is None else joined_value


def _compute_seconds_to_heal(watcher: AccountWatcher) -> float | None:
    """Return the seconds from a case's first failed call until the case was verified.

    The case is the first one that was verified. If no case was verified, return
    `QueueObservation.seconds_to_heal` of the first changed queue of the story, or None if no queue
    was changed.
    """
    for transition in watcher.case_transitions:
        if transition["to"] == State.VERIFIED:
            first_failure_at = datetime.fromisoformat(transition["evidence"]["first_at"])
            return (datetime.fromisoformat(transition["at"]) - first_failure_at).total_seconds()
    for queue in watcher.queues.values():
        if queue.changes():
            return queue.seconds_to_heal()
    return None
