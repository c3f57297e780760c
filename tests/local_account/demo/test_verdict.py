"""The demo may not say that it ended as claimed when it did not."""

from __future__ import annotations

from typing import Any

import pytest

from local_account.demo.story import LEASE, STORIES
from local_account.demo.verdict import faults, incident_faults
from local_account.demo.watching import Seen, Watch


class Ended(Watch):
    """A watch whose metrics are what the test says."""

    def __init__(self, queues: dict[str, Seen], fixes: float) -> None:
        nobody: Any = None
        super().__init__(nobody, nobody, nobody, "cases", queues)
        self.fixes = fixes

    def metric(self, name: str) -> float:
        return self.fixes if name == "AutoFixes" else 0


def ended(*, fixes: float = 1, **over: Any) -> Watch:
    """As claimed, but for what `over` says of a queue (by the start of its name)."""
    queues = {}
    for bad in LEASE:
        before = {"VisibilityTimeout": str(bad.visibility_seconds), "FifoQueue": "true"}
        now = {**before, "VisibilityTimeout": str(bad.ends_with_seconds)}
        fields: dict[str, Any] = {
            "before": before,
            "now": now,
            "failed_calls": 3,
            "deletes_in_time": 1,
            "case": {"to": bad.state},
        }
        fields |= over.get(bad.name.removesuffix(".fifo"), {})
        queues[bad.name] = Seen(**{"queue_arn": "arn", "queue_url": "url"} | fields)
    return Ended(queues, fixes)


@pytest.mark.parametrize(
    ("watch", "about"),
    [
        (ended(invoices={"now": {"VisibilityTimeout": "2", "FifoQueue": "true"}}), "changed"),
        (ended(invoices={"now": {"VisibilityTimeout": "7", "FifoQueue": "true"}}), "changed"),
        (ended(mails={"now": {"VisibilityTimeout": "3", "FifoQueue": "true"}}), "changed"),
        (ended(exports={"now": {"VisibilityTimeout": "2"}}), "changed"),
        (ended(mails={"case": {"to": "refused"}}), "case"),
        (ended(exports={"case": None}), "case"),
        (ended(invoices={"deletes_in_time": 0}), "in time"),
        (ended(mails={"failed_calls": 0}), "no call failed"),
        (ended(fixes=0), "AutoFixes"),
        (ended(fixes=2), "AutoFixes"),
    ],
)
def test_an_end_that_was_not_claimed_is_a_fault(watch: Watch, about: str) -> None:
    (fault,) = faults(LEASE, watch)
    assert about in fault


def test_the_claimed_end_has_no_fault() -> None:
    assert faults(LEASE, ended()) == []


@pytest.mark.parametrize("name", STORIES)
def test_a_story_shows_a_queue_mended_observed_and_refused(name: str) -> None:
    assert {bad.state for bad in STORIES[name]} == {"applied", "observed", "refused"}


def incidents(**over: Any) -> list[dict[str, Any]]:
    """The rows that `ended()` makes, but for what `over` says of a queue."""
    return [
        {
            "queue_arn": f"arn:{bad.name}",
            "label": "lease_expired",
            "outcome": bad.state,
            "failed_calls": 3,
        }
        | over.get(bad.name.removesuffix(".fifo"), {})
        for bad in LEASE
    ]


def ended_with_arns() -> Watch:
    arns = {bad.name.removesuffix(".fifo"): {"queue_arn": f"arn:{bad.name}"} for bad in LEASE}
    return ended(fixes=1, **arns)


@pytest.mark.parametrize(
    ("rows", "about"),
    [
        (incidents(invoices={"outcome": "observed"}), "invoices.fifo: lease_expired, observed, 3"),
        (incidents(mails={"failed_calls": 4}), "mails.fifo: lease_expired, observed, 4"),
        (incidents(exports={"label": "unlabelled:Teapot"}), "exports.fifo: unlabelled:Teapot"),
        (incidents(exports={"queue_arn": "arn:other.fifo"}), "other.fifo"),
        ([*incidents(), incidents()[0]], "invoices.fifo"),
        (incidents()[1:], "did not find invoices.fifo"),
        ([], "did not find exports.fifo"),
    ],
)
def test_incidents_that_nobody_saw_or_found_are_faults(
    rows: list[dict[str, Any]], about: str
) -> None:
    assert any(about in fault for fault in incident_faults(LEASE, ended_with_arns(), rows))


def test_one_incident_for_each_queue_is_no_fault() -> None:
    assert incident_faults(LEASE, ended_with_arns(), incidents()) == []
