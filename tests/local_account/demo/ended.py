"""Demo stories that ended as claimed, except for what a test changes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from local_account.demo.mailbox import Message
from local_account.demo.story import BadQueue, Story
from local_account.demo.watching import AccountWatcher, QueueObservation

SCOPE = "arn:aws:sqs:us-east-1:000000000000:"
NOTHING: Mapping[str, dict[str, Any]] = {}
AT = datetime(2026, 11, 16, 9, tzinfo=UTC)


class EndedWatcher(AccountWatcher):
    """A watch whose metrics are what the test says."""

    fixes: float

    def sum_metric(self, name: str) -> float:
        return self.fixes if name == "AutoFixes" else 0


def make_transition(bad: BadQueue, n: int = 1, **over: Any) -> dict[str, Any]:
    state = str(bad.states[n - 1])
    way = -1 if state == "rolled_back" else 1
    pairs = {name: pair[::way] for name, pair in bad.steps.items()}
    return {
        "case_id": f"case-{bad.name}",
        "n": n,
        "queue_arn": f"{SCOPE}{bad.name}",
        "symptom": bad.symptom,
        "to": state,
        "reason": "as claimed",
        "at": "2026-11-16T09:16:00.000Z",
        "evidence": {
            "failed_calls": 0 if bad.is_silent else 3,
            "first_request_id": "" if bad.is_silent else "r-1",
            "first_at": "2026-11-16T09:00:00.000Z",
        },
        "steps": [{"attribute": n, "before": a, "after": b} for n, (a, b) in pairs.items()],
    } | over


def make_transitions(bad: BadQueue) -> list[dict[str, Any]]:
    """Every transition of its case."""
    return [make_transition(bad, n + 1) for n in range(len(bad.states))]


def make_observation(bad: BadQueue, **over: Any) -> QueueObservation:
    """`over` are fields of Seen, or `attributes` that stand there in the end."""
    before = {name: pair[0] for name, pair in bad.steps.items()} | bad.creation_attributes
    made = {name: after for name, (_, after) in bad.changes.items()}
    given: dict[str, Any] = {
        "queue_arn": f"{SCOPE}{bad.name}",
        "queue_url": "http://h:1/q",
        "initial_configuration": before,
        "latest_configuration": {**before, **made, **over.pop("attributes", {})},
        "failure_times": [] if bad.is_silent else [AT] * 3,
        "successful_calls": bad.traffic.convincing_calls if bad.must_be_fixed else 0,
        "newest_transition": make_transitions(bad)[-1],
    }
    return QueueObservation(**given | over)


def make_ended_watch(
    story: Story, over: Mapping[str, dict[str, Any]] = NOTHING, *, fixes: float | None = None
) -> AccountWatcher:
    """`over`: fields of Seen by the queue's name without `.fifo`; its `cases`, if not the one."""
    nobody: Any = None
    watch = EndedWatcher(nobody, nobody, nobody, "cases")
    for bad in story.queues:
        said = dict(over.get(bad.name.removesuffix(".fifo"), {}))
        watch.case_transitions += said.pop("cases", make_transitions(bad))
        watch.queues[bad.name] = make_observation(bad, **said)
    written = sum(bad.is_fix_written for bad in story.queues)
    watch.fixes = written if fixes is None else fixes
    return watch


def make_notifications(story: Story) -> list[Message]:
    return [
        Message(bad.notifies, f"Mendq {bad.name}", f"NEXT\n  case: case-{bad.name} in 0 us-east-1")
        for bad in story.queues
        if bad.notifies is not None
    ]


def make_incidents(story: Story, **over: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the nightly incidents of a finished story. `over` changes fields by queue."""
    return [
        {
            "queue_arn": f"{SCOPE}{bad.name}",
            "symptom": bad.symptom,
            "outcome": bad.outcome or str(bad.states[-1]),
            "failed_calls": 0 if bad.is_silent else 3,
            "notified": bad.notifies is not None,
        }
        | over.get(bad.name.removesuffix(".fifo"), {})
        for bad in story.queues
    ]


RESULT_OF_THE_DEMO: dict[str, Any] = {
    "stories": ["visibility"],
    "claims": [{"claim": "it is fixed", "holds": True}],
    "notifications": 2,
    "incidents": 3,
    "report": "report.html",
    "not_emulated": ["KMS"],
    "floors_lowered": ["floor"],
    "clock_put_forward": ["16 min"],
    "messages": None,
}
