"""What a story is made of, so that it shows what it says, and the days of its jobs."""

from __future__ import annotations

import inspect
from datetime import datetime

import pytest

from local_account.demo.nightly import monday_after, next_day
from local_account.demo.redrive import RedriveStage
from local_account.demo.story import Calls, Story, stories_of
from mendq.model.case import State
from mendq.nightly.jobs import Roots, nightly, week

STORIES = stories_of("all")
EACH = pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)


@EACH
def test_each_line_of_a_script_is_one_that_the_stage_knows(story: Story) -> None:
    names = {bad.name for bad in story.queues}
    ended = set()
    for verb, *arguments in story.script:
        inspect.signature(getattr(RedriveStage, verb)).bind(None, *arguments)
        if verb in ("begin", "end", "until_working", "have_a_person_set", "until_holding"):
            assert {each for each in arguments if isinstance(each, str)} <= names
        if verb in ("until_in", "follow_up"):
            assert State(arguments[0])
            assert set(arguments[1:]) <= names
        ended |= set(arguments) if verb == "end" else set()
    assert {bad.name for bad in story.queues if bad.calls is Calls.UNTIL_ENDED} <= ended


@pytest.mark.parametrize(
    ("moment", "day", "iso_week"),
    [
        ("2026-11-22T23:59:59+00:00", "2026-11-22", "2026-W47"),
        ("2026-11-23T00:30:00+01:00", "2026-11-22", "2026-W47"),
        ("2027-01-03T12:00:00+00:00", "2027-01-03", "2026-W53"),
    ],
)
def test_the_jobs_are_for_the_storys_own_day_and_week(moment: str, day: str, iso_week: str) -> None:
    at, roots = datetime.fromisoformat(moment), Roots("trail", "cases", "out", "a", "r")
    assert nightly(next_day(at), roots).of == day
    assert week(monday_after(at), roots).of == iso_week
