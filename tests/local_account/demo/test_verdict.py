"""The demo may not say that it ended as claimed when it did not."""

from __future__ import annotations

import re
from typing import Any

import pytest

from functions.healing.paging import Severity
from local_account.demo.honesty import Honesty
from local_account.demo.mailbox import Message, Notice
from local_account.demo.stories import STORIES
from local_account.demo.stories.catalogue import CATALOGUE_STORY, ORDERS, PARCELS
from local_account.demo.stories.lease import INVOICES, LEASE
from local_account.demo.stories.life import INVOICES as LIFE_INVOICES
from local_account.demo.stories.life import LETTERS, LIFE, REPORTS
from local_account.demo.stories.sweep import SWEEP
from local_account.demo.story import Story
from local_account.demo.verdict import (
    alarm_faults,
    faults,
    incident_faults,
    joined,
    page_faults,
    result_of,
)
from local_account.demo.watching import Watch
from tests.local_account.demo.ended import SCOPE, case_of, ended, incidents, life_of, pages

KEY_REUSE = "KmsDataKeyReusePeriodSeconds"
TWICE = [case_of(INVOICES), case_of(INVOICES, case_id="again", to="refused", steps=[])]
ANOTHER = [case_of(INVOICES, symptom="caller_bug")]
NOT_BACK = [*life_of(LETTERS)[:1], case_of(LETTERS, to="rolled_back", n=2)]
OTHER_STEPS = [case_of(ORDERS, steps=case_of(PARCELS)["steps"])]


@pytest.mark.parametrize(
    ("story", "over", "about"),
    [
        (LEASE, {"invoices": {"attributes": {"VisibilityTimeout": "2"}}}, "changed"),
        (LEASE, {"invoices": {"attributes": {"VisibilityTimeout": "7"}}}, "changed"),
        (LEASE, {"mails": {"attributes": {"VisibilityTimeout": "3"}}}, "changed"),
        (LEASE, {"exports": {"now": {"VisibilityTimeout": "2"}}}, "changed"),
        (LEASE, {"invoices": {"cases": TWICE}}, "lease_expired refused"),
        (LEASE, {"invoices": {"cases": ANOTHER}}, "its cases are caller_bug"),
        (LEASE, {"exports": {"cases": []}}, "its cases are none"),
        (LEASE, {"invoices": {"calls_well": 0}}, "in time"),
        (LEASE, {"mails": {"failed_calls": 0}}, "no call failed"),
        (SWEEP, {"thumbnails": {"failed_calls": 1}}, "1 calls failed, so a sweep proved nothing"),
        (SWEEP, {"invoices": {"attributes": {"VisibilityTimeout": "2"}}}, "invoices: changed"),
        (SWEEP, {"invoices": {"cases": []}}, "its cases are none"),
        (CATALOGUE_STORY, {"parcels": {"attributes": {KEY_REUSE: "600"}}}, "changed"),
        (CATALOGUE_STORY, {"parcels": {"calls_well": 2}}, "2 sends accepted, expected 3"),
        (CATALOGUE_STORY, {"scans": {"attributes": {"MaximumMessageSize": "1048576"}}}, "changed"),
        (CATALOGUE_STORY, {"orders": {"cases": OTHER_STEPS}}, f"its cases are .* {KEY_REUSE}"),
        (LIFE, {"letters": {"attributes": {KEY_REUSE: "300"}}}, "letters: changed"),
        (LIFE, {"parcels": {"attributes": {KEY_REUSE: "60"}}}, "parcels: changed"),
        (LIFE, {"parcels": {"attributes": {KEY_REUSE: "300"}}}, "parcels: changed"),
        (LIFE, {"invoices": {"cases": life_of(LIFE_INVOICES)[:-1]}}, "its cases are"),
        (LIFE, {"reports": {"cases": life_of(REPORTS)[:1]}}, "ineffective .*, .* escalated"),
        (LIFE, {"letters": {"cases": NOT_BACK}}, "rolled_back .* 300 -> 60$"),
        (LIFE, {"tickets": {"calls_well": 0}}, "0 sends accepted"),
        (CATALOGUE_STORY, {"refunds": {"attributes": {"Policy": "{}"}}}, "changed"),
    ],
)
def test_an_end_that_was_not_claimed_is_a_fault(
    story: Story, over: dict[str, dict[str, Any]], about: str
) -> None:
    (fault,) = faults(story, ended(story, over))
    assert re.search(about, fault)


@pytest.mark.parametrize("fixes", [0, 2])
def test_fixes_that_were_not_claimed_are_a_fault(fixes: int) -> None:
    (fault,) = faults(LEASE, ended(LEASE, fixes=fixes))
    assert "AutoFixes" in fault


@pytest.mark.parametrize("name", STORIES)
def test_the_claimed_end_has_no_fault(name: str) -> None:
    story = STORIES[name]
    watch: Watch = ended(story)
    assert faults(story, watch) == []
    assert page_faults(story, watch, pages(story)) == []
    assert incident_faults(story, watch, incidents(story)) == []


PAGES = pages(CATALOGUE_STORY)
OF_ORDERS = next(each for each in PAGES if each.case_id == "case-orders.fifo")
OF_PARCELS = Message(Severity.INFO, "Mendq applied", "  case: case-parcels in 0 us-east-1")
OF_NOBODY = Message(Severity.URGENT, "Mendq stopped", "many queues at once")


@pytest.mark.parametrize(
    ("messages", "about"),
    [
        ([each for each in PAGES if each is not OF_ORDERS], "no info page about orders.fifo"),
        ([*PAGES, OF_ORDERS], "an info page too many: orders.fifo"),
        ([*PAGES, OF_PARCELS], "an info page too many: parcels"),
        ([*PAGES, OF_NOBODY], "an urgent page too many: None"),
        ([], "no urgent page about refunds"),
    ],
)
def test_people_are_paged_exactly_as_claimed(messages: list[Message], about: str) -> None:
    found = page_faults(CATALOGUE_STORY, ended(CATALOGUE_STORY), messages)
    assert about in found
    assert len(found) == abs(len(messages) - len(PAGES))


def test_a_page_to_the_wrong_people_is_missing_and_too_many() -> None:
    wrong = Message(Severity.URGENT, OF_ORDERS.subject, OF_ORDERS.text)
    messages = [wrong if each is OF_ORDERS else each for each in PAGES]
    found = page_faults(CATALOGUE_STORY, ended(CATALOGUE_STORY), messages)
    assert found == ["no info page about orders.fifo", "an urgent page too many: orders.fifo"]


@pytest.mark.parametrize(
    ("rows", "about"),
    [
        (incidents(LEASE, invoices={"outcome": "observed"}), "invoices.fifo: lease_expired, obs"),
        (incidents(LEASE, mails={"failed_calls": 4}), "mails.fifo: lease_expired, observed, 4"),
        (incidents(LEASE, mails={"paged": True}), "observed, 3 failed calls, paged"),
        (incidents(LEASE, exports={"label": "unlabelled:Teapot"}), "exports.fifo: unlabelled:T"),
        (incidents(LEASE, exports={"queue_arn": f"{SCOPE}other.fifo"}), "other.fifo"),
        ([*incidents(LEASE), incidents(LEASE)[0]], "invoices.fifo"),
        (incidents(LEASE)[1:], "did not find invoices.fifo"),
        ([], "did not find exports.fifo"),
    ],
)
def test_incidents_that_nobody_saw_or_found_are_faults(
    rows: list[dict[str, Any]], about: str
) -> None:
    assert any(about in fault for fault in incident_faults(LEASE, ended(LEASE), rows))


def test_the_time_to_heal_is_the_first_verified_case_s() -> None:
    watch = ended(LIFE)
    for case in watch.cases:
        if case["to"] != "verified":
            case["at"] = "2026-11-16T09:00:08.000Z"
    result = result_of(watch, None, 2, Honesty((), ()))
    assert result["seconds_to_heal"] == 960
    assert result["incidents"] is None


def test_stories_are_joined_in_their_order_and_what_is_the_same_is_said_once() -> None:
    honesty = Honesty(("KMS",), ("floor",), ("16 min",))
    first, second = (result_of(ended(story), None, 2, honesty) for story in (LEASE, LIFE))
    first["incidents"], second["incidents"], second["report"] = 3, 5, "report.html"
    both = joined([first, second])
    assert [len(both[name]) for name in ("queues", "not_emulated", "floors_lowered")] == [8, 1, 1]
    assert both["cases"] == [*first["cases"], *second["cases"]]
    assert (both["pages"], both["incidents"], both["report"]) == (4, 8, "report.html")
    assert joined([{**first, "incidents": None}, second])["incidents"] is None


def test_an_alarm_that_no_case_of_the_story_explains_is_a_fault() -> None:
    def rang(alarm: str, state: str = "ALARM") -> Notice:
        return Notice(Severity.URGENT, alarm, state)

    escalated, proposed = "mendq-escalated-cases-open", "mendq-proposed-cases-open"
    assert alarm_faults(LIFE, [rang(escalated), rang(proposed)]) == []
    assert alarm_faults(LEASE, [rang("mendq-follow-up-errors", "OK")]) == []
    (fault,) = alarm_faults(LIFE, [rang("mendq-follow-up-errors")] * 2)
    assert "mendq-follow-up-errors" in fault
    assert len(alarm_faults(LEASE, [rang(proposed)])) == 1
