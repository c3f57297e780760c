"""Reports of the demo's stories: subject, headline and tiles."""

from __future__ import annotations

import pytest

from local_account.demo.story import BadQueue, Story, read_stories
from local_account.demo.verdict import list_week_claims
from mendq.model.case import Severity
from mendq.report.mail import OutgoingReport
from mendq.report.tiles import make_tiles
from mendq.report.verdict import describe_not_healed, make_headline
from tests.report.weeks import (
    HERE,
    Document,
    make_incident,
    make_reached_a_person,
    make_week,
    read_document,
)

STORIES = read_stories("all")
# What each story's week says: its subject, its headline, whom its cases reached.
SAID = {
    "visibility": (
        "3 incidents, 0 healed, 1 told",
        "3 incidents, none healed yet, 1 changed.",
        "1 of the 3 told a person.",
    ),
    "catalogue": (
        "7 incidents, 0 healed, 1 paged, 4 told",
        "7 incidents, none healed yet, 2 changed.",
        "1 of the 7 paged a person and 4 told one.",
    ),
    "life": (
        "5 incidents, 2 healed, 1 paged, 2 told",
        "5 incidents, 2 healed, 1 of them after approval.",
        "1 of the 5 paged a person and 2 told one.",
    ),
    "scan": (
        "3 incidents, 0 healed, 1 paged, 1 told",
        "3 incidents, all found by scans, none healed yet, 2 changed.",
        "1 of the 3 paged a person and 1 told one.",
    ),
    "redrive": (
        "2 incidents, 2 healed, 1 told",
        "2 incidents, 1 of them found by a scan, both healed, 1 of them after approval.",
        "1 of the 2 told a person.",
    ),
}


def _make_incident(bad: BadQueue) -> Document:
    calls = {"found_by": "scan", "failed_calls": 0, "principals": [], "error_codes": []}
    return make_incident(
        bad.name,
        symptom=bad.symptom,
        outcome=bad.outcome or str(bad.states[-1]),
        notified=bad.notifies is not None,
        urgent=bad.notifies is Severity.URGENT,
        **(calls if bad.is_silent else {"failed_calls": 3}),
    )


def _make_mail(story: Story) -> OutgoingReport:
    made = make_week([_make_incident(bad) for bad in story.queues])
    urgent = sum(bad.notifies is Severity.URGENT for bad in story.queues)
    made["totals"] |= {"urgent_notifications": urgent}
    made["reached_a_person"] = make_reached_a_person(left_out=story.notifications)
    return OutgoingReport(read_document(made), "PLACE", HERE, "")


@pytest.mark.parametrize("name", SAID)
def test_report_of_a_demo_story_counts_the_outcomes_of_its_cases(name: str) -> None:
    story = STORIES[name]
    (subject, first, reached) = SAID[name]
    mail = _make_mail(story)
    assert mail.subject == f"Mendq 2026-W46: {subject}"
    assert make_headline(mail.summary) == first
    said = describe_not_healed(mail.summary)
    assert said.lower().endswith(reached)
    healed = sum(bad.outcome == "healed" for bad in story.queues)
    urgent = sum(bad.notifies is Severity.URGENT for bad in story.queues)
    calls = sum(3 for bad in story.queues if not bad.is_silent)
    incidents, by_itself, paged, _, failed = make_tiles(mail.summary)
    assert (incidents.figure, by_itself.figure) == (f"{len(story.queues)}", f"{healed}")
    assert (paged.figure, failed.figure) == (f"{urgent}", f"{calls}")


@pytest.mark.parametrize("name", SAID)
def test_demo_check_rejects_a_mail_subject_with_wrong_or_missing_counts(name: str) -> None:
    right = _make_mail(STORIES[name]).subject
    assert [holds for _, holds in list_week_claims(STORIES[name], right)] == [True]
    for wrong in ("", "Mendq 2026-W46: no incidents", right.replace(" told", " paged")):
        assert [holds for _, holds in list_week_claims(STORIES[name], wrong)] == [False]


def test_every_demo_story_has_an_expected_report() -> None:
    assert SAID.keys() == STORIES.keys()
