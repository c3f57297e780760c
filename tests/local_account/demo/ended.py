"""Stories as they would end if all were as claimed, but for what a test says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from local_account.demo.mailbox import Message
from local_account.demo.story import BadQueue, Story
from local_account.demo.watching import Seen, Watch

SCOPE = "arn:aws:sqs:us-east-1:000000000000:"
NOTHING: Mapping[str, dict[str, Any]] = {}


class Ended(Watch):
    """A watch whose metrics are what the test says."""

    def __init__(
        self, queues: dict[str, Seen], cases: list[dict[str, Any]], *, fixes: float
    ) -> None:
        nobody: Any = None
        super().__init__(nobody, nobody, nobody, "cases", queues, cases)
        self.fixes = fixes

    def metric(self, name: str) -> float:
        return self.fixes if name == "AutoFixes" else 0


def case_of(bad: BadQueue, **over: Any) -> dict[str, Any]:
    return {
        "case_id": f"case-{bad.name}",
        "n": 1,
        "queue_arn": f"{SCOPE}{bad.name}",
        "symptom": bad.symptom.name,
        "to": str(bad.state),
        "reason": "as claimed",
        "at": "2026-11-16T09:16:00.000Z",
        "evidence": {
            "failed_calls": 0 if bad.is_silent else 3,
            "first_request_id": "" if bad.is_silent else "r-1",
            "first_at": "2026-11-16T09:00:00.000Z",
        },
        "steps": [each.document() for each in bad.steps],
    } | over


def life_of(bad: BadQueue) -> list[dict[str, Any]]:
    """Every transition of its case."""
    cases = [case_of(bad, to=str(to), n=n) for n, to in enumerate(bad.path, start=1)]
    for each in cases:
        if each["to"] == "rolled_back":
            each["steps"] = [
                {**step, "before": step["after"], "after": step["before"]} for step in each["steps"]
            ]
    return cases


def seen_of(bad: BadQueue, **over: Any) -> Seen:
    """`over` are fields of Seen, or `attributes` that stand there in the end."""
    before = {each.attribute: str(each.before) for each in bad.steps} | bad.created_with
    made = {name: after for name, (_, after) in bad.changes.items()}
    fields: dict[str, Any] = {
        "before": before,
        "now": {**before, **made, **over.pop("attributes", {})},
        "failed_calls": 0 if bad.is_silent else 3,
        "calls_well": bad.traffic.convincing if bad.is_to_be_mended else 0,
        "case": life_of(bad)[-1],
    }
    return Seen(**{"queue_arn": f"{SCOPE}{bad.name}", "queue_url": "url"} | fields | over)


def ended(
    story: Story, over: Mapping[str, dict[str, Any]] = NOTHING, *, fixes: float | None = None
) -> Watch:
    """`over`: fields of Seen by the queue's name without `.fifo`; its `cases`, if not the one."""
    queues, cases = {}, []
    for bad in story.queues:
        said = dict(over.get(bad.name.removesuffix(".fifo"), {}))
        cases += said.pop("cases", life_of(bad))
        queues[bad.name] = seen_of(bad, **said)
    written = sum(bad.is_written for bad in story.queues)
    return Ended(queues, cases, fixes=written if fixes is None else fixes)


def pages(story: Story) -> list[Message]:
    return [
        Message(bad.pages, f"Mendq {bad.state}", f"NEXT\n  case: case-{bad.name} in 0 us-east-1")
        for bad in story.queues
        if bad.pages is not None
    ]


def incidents(story: Story, **over: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows that `ended(story)` makes, but for what `over` says of a queue."""
    return [
        {
            "queue_arn": f"{SCOPE}{bad.name}",
            "label": bad.symptom.name,
            "outcome": bad.incident_outcome,
            "failed_calls": 3,
            "paged": bad.pages is not None,
        }
        | over.get(bad.name.removesuffix(".fifo"), {})
        for bad in story.queues
        if not bad.is_silent
    ]
