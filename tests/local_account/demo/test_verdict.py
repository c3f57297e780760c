"""The demo's verdict reports every difference from the claimed end."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from local_account.demo.mailbox import Message
from local_account.demo.story import BadQueue, Story, read_stories
from local_account.demo.verdict import list_claims
from mendq.model.case import Severity
from tests.local_account.demo.ended import (
    AT,
    NOTHING,
    SCOPE,
    make_ended_watch,
    make_incidents,
    make_notifications,
    make_transition,
)

STORIES = read_stories("all")
BAD: Mapping[str, BadQueue] = {
    f"{name} {bad.name.removesuffix('.fifo')}": bad
    for name, story in STORIES.items()
    for bad in story.queues
}
VISIBILITY, CATALOGUE = (STORIES[name] for name in ("visibility", "catalogue"))
KEY_REUSE = "KmsDataKeyReusePeriodSeconds"
INVOICES = BAD["visibility invoices"]
ORDERS, PARCELS = (BAD[f"catalogue {name}"] for name in ("orders", "parcels"))
TWICE = [
    make_transition(INVOICES),
    make_transition(INVOICES, case_id="again", to="refused", steps=[]),
]
REFUNDS = BAD["life refunds"]
NOT_BACK = [
    make_transition(REFUNDS),
    make_transition(REFUNDS, 2, steps=make_transition(REFUNDS)["steps"]),
]
OTHER_STEPS = [make_transition(ORDERS, steps=make_transition(PARCELS)["steps"])]


def _list_faults(
    story: Story,
    over: Mapping[str, dict[str, Any]] = NOTHING,
    *,
    sent: Sequence[Message] | None = None,
    found: Sequence[Mapping[str, Any]] | None = None,
    fixes: float | None = None,
) -> list[str]:
    watch = make_ended_watch(story, over, fixes=fixes)
    rows = make_incidents(story) if found is None else found
    sent = make_notifications(story) if sent is None else sent
    return [words for words, holds in list_claims(story, watch, sent, rows) if not holds]


@pytest.mark.parametrize("name", STORIES)
def test_demo_verdict_has_no_fault_if_the_story_ended_as_claimed(name: str) -> None:
    assert _list_faults(STORIES[name]) == []


@pytest.mark.parametrize(
    ("of", "over", "about"),
    [
        ("visibility invoices", {"attributes": {"VisibilityTimeout": "2"}}, "changed"),
        ("visibility invoices", {"cases": TWICE}, "visibility_timeout_too_short refused"),
        (
            "visibility invoices",
            {"cases": [make_transition(INVOICES, symptom="x")]},
            "are x applied",
        ),
        ("visibility invoices", {"successful_calls": 0}, "0 deletes in time"),
        ("visibility mails", {"failure_times": []}, "0 calls failed"),
        ("scan thumbnails", {"failure_times": [AT]}, "1 calls failed"),
        ("catalogue orders", {"cases": OTHER_STEPS}, f"its cases are .* {KEY_REUSE}"),
        ("life refunds", {"cases": NOT_BACK}, "rolled_back .* 300 -> 60$"),
    ],
)
def test_demo_verdict_reports_a_queue_whose_end_differs_from_the_claim(
    of: str, over: dict[str, Any], about: str
) -> None:
    story, queue = of.split()
    (fault, *others) = _list_faults(STORIES[story], {queue: over})
    assert re.search(about, fault)
    assert all("the nightly job found" in other for other in others)


SENT = make_notifications(CATALOGUE)
OF_ORDERS = next(message for message in SENT if message.case_id == "case-orders.fifo")
OF_NOBODY = Message(Severity.URGENT, "Mendq stopped", "many queues at once")
TO_OTHERS = Message(Severity.URGENT, OF_ORDERS.subject, OF_ORDERS.text)
WITHOUT = [message for message in SENT if message is not OF_ORDERS]


@pytest.mark.parametrize(
    ("sent", "about"),
    [
        (WITHOUT, "orders.fifo: notified none, expected info"),
        ([*SENT, OF_ORDERS], "orders.fifo: notified info, info, expected info"),
        ([*SENT, OF_NOBODY], "notifications about anything else: Mendq stopped, expected none"),
        ([*WITHOUT, TO_OTHERS], "orders.fifo: notified urgent, expected info"),
    ],
)
def test_demo_verdict_reports_missing_repeated_or_unexpected_notifications(
    sent: list[Message], about: str
) -> None:
    assert _list_faults(CATALOGUE, sent=sent) == [about]


def test_demo_verdict_reports_an_incident_of_a_queue_that_the_story_does_not_have() -> None:
    invented = make_incidents(VISIBILITY, exports={"queue_arn": f"{SCOPE}other.fifo"})
    assert re.search("nobody saw: .*other.fifo", _list_faults(VISIBILITY, found=invented)[-1])


def test_demo_verdict_reports_a_queue_without_an_incident() -> None:
    (fault,) = _list_faults(VISIBILITY, found=make_incidents(VISIBILITY)[1:])
    assert "invoices.fifo: the nightly job found none, expected" in fault


def test_demo_verdict_reports_another_number_of_fixes_than_the_story_has() -> None:
    (fault,) = _list_faults(VISIBILITY, fixes=2)
    assert "AutoFixes" in fault
