"""What a story may be made of, so that it shows what it says."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise

import pytest

from functions.healing.advance import TABLE
from functions.healing.causes import CAUSES
from functions.healing.guardrails import FEW_QUEUES
from functions.healing.states import State
from local_account.cannot_start import CannotStart
from local_account.demo.stories import STORIES, stories_of
from local_account.demo.stories.catalogue import CATALOGUE_STORY
from local_account.demo.stories.life import LIFE
from local_account.demo.stories.redrive import REDRIVE
from local_account.demo.stories.sweep import SWEEP
from local_account.demo.story import Story
from local_account.sqs.error_switch import read

EACH = pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)


@EACH
def test_no_symptom_is_a_mass_symptom(story: Story) -> None:
    assert max(Counter(bad.symptom.name for bad in story.queues).values()) <= FEW_QUEUES


@EACH
def test_what_a_case_would_do_is_what_its_symptom_may(story: Story) -> None:
    for bad in story.queues:
        assert {type(each) for each in bad.steps} <= set(bad.symptom.steps)
        assert all(each.out_of_bounds() is None for each in bad.steps)
        assert bool(bad.steps) == (bad.state not in (State.REFUSED, State.ESCALATED))


@EACH
def test_errors_on_demand_are_ones_that_the_account_has(story: Story) -> None:
    asked = [
        {"error": bad.on_demand, "queues": [bad.name]} for bad in story.queues if bad.on_demand
    ]
    assert len(read({"errors": asked})) == len(asked)


def test_the_catalogue_is_told_by_four_symptoms_mended_or_proposed_one_refused_one_paged() -> None:
    ends = {
        state: {bad.symptom.name for bad in CATALOGUE_STORY.queues if bad.state is state}
        for state in State
    }
    assert len(ends[State.APPLIED] | ends[State.PROPOSED]) >= 4
    assert len(ends[State.APPLIED]) >= 2
    assert len(ends[State.PROPOSED]) >= 2
    assert len(ends[State.REFUSED]) == len(ends[State.ESCALATED]) == 1


def test_the_sweep_is_told_without_a_failing_call_by_one_mended_and_one_left_alone() -> None:
    assert all(bad.is_silent for bad in SWEEP.queues)
    ends = {bad.symptom.name: bad.state for bad in SWEEP.queues}
    assert ends["lease_expired"] is State.APPLIED
    assert ends["consumer_failing"] is State.ESCALATED
    assert not any(bad.steps for bad in SWEEP.queues if bad.symptom.name == "consumer_failing")
    assert all(bad.symptom.detection for bad in SWEEP.queues)


def test_the_redrive_is_told_by_letters_whose_cause_is_proven_mended_first() -> None:
    letters, source = REDRIVE.queues
    assert source.symptom.name in CAUSES
    assert source.path[-2:] == (State.VERIFIED, State.WATCHING)
    assert json.loads(source.attributes["RedrivePolicy"])["deadLetterTargetArn"].endswith(
        f":{letters.name}"
    )
    assert [str(each.after).rpartition(":")[2] for each in letters.steps] == [source.name]
    assert State.APPROVED in letters.path
    assert letters.changes == {}


def test_a_story_that_is_none_is_refused_with_the_list() -> None:
    with pytest.raises(
        CannotStart, match=r"^STORY 'leese' is not known: give one of .*, sweep, redrive, all$"
    ):
        stories_of("leese")
    assert stories_of("life") == {"life": LIFE}
    assert stories_of("all") == STORIES


@EACH
def test_what_a_person_sets_is_what_mendq_has_written_otherwise(story: Story) -> None:
    for bad in story.queues:
        written = {each.attribute: str(each.after) for each in bad.steps}
        assert bad.a_person_sets.keys() <= written.keys()
        assert not bad.a_person_sets.items() & written.items()


@EACH
def test_a_case_goes_from_state_to_state_as_cases_can(story: Story) -> None:
    """By time and by what is seen, or by a person's word and by heal."""
    by_itself = {(state, row.into) for row in TABLE for state in row.out_of}
    by_others = {
        (State.PROPOSED, State.APPROVED),
        (State.APPROVED, State.APPLIED),
        (State.INEFFECTIVE, State.ESCALATED),
        (State.APPLIED, State.ROLLED_BACK),
    }
    for bad in story.queues:
        assert set(pairwise(bad.path)) <= by_itself | by_others


def test_the_life_is_told_by_a_case_of_each_end() -> None:
    ends = {bad.path[-1] for bad in LIFE.queues}
    assert ends == {State.CLOSED, State.ESCALATED, State.ROLLED_BACK, State.CONTESTED}
    assert any(State.APPROVED in bad.path for bad in LIFE.queues)
    assert any(State.VERIFIED in bad.path and State.APPROVED not in bad.path for bad in LIFE.queues)
    assert sum(bool(bad.a_person_sets) for bad in LIFE.queues) == 1
