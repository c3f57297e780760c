"""What a story may be made of, so that it shows what it says."""

from __future__ import annotations

import inspect
from collections import Counter
from itertools import pairwise

import msgspec
import pytest

from local_account.cannot_start import CannotStart
from local_account.demo.redrive import RedriveStage
from local_account.demo.story import Calls, Story, read, stories_of, symptom_of
from local_account.sqs.errors import KINDS
from mendq.heal.guardrails import FEW_QUEUES
from mendq.model.case import State
from mendq.model.lifecycle import TABLE

STORIES = stories_of("all")
EACH = pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)


@EACH
def test_no_symptom_is_a_mass_symptom(story: Story) -> None:
    assert max(Counter(bad.symptom for bad in story.queues).values()) <= FEW_QUEUES


@EACH
def test_what_a_case_would_do_is_what_its_symptom_may(story: Story) -> None:
    for bad in story.queues:
        kinds = {each.attribute: each for each in symptom_of(bad).steps}
        assert all(
            kinds[name].of(*pair).out_of_bounds() is None for name, pair in bad.steps.items()
        )
        assert bool(bad.steps) == (bad.states[0] not in (State.REFUSED, State.ESCALATED))
        assert bad.a_person_sets.keys() <= bad.steps.keys()
        assert not any(bad.steps[name][1] == value for name, value in bad.a_person_sets.items())


@EACH
def test_errors_on_demand_are_ones_that_the_account_has(story: Story) -> None:
    assert {bad.on_demand for bad in story.queues if bad.on_demand} <= KINDS.keys()


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
        assert set(pairwise(bad.states)) <= by_itself | by_others


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


def test_each_story_is_said_by_the_ends_that_it_is_about() -> None:
    ends = {
        name: Counter(str(bad.states[-1]) for bad in story.queues)
        for name, story in STORIES.items()
    }
    assert ends == {
        "visibility": {"applied": 1, "observed": 1, "refused": 1},
        "catalogue": {"applied": 2, "proposed": 3, "refused": 1, "escalated": 1},
        "life": {"closed": 2, "escalated": 1, "rolled_back": 1, "overridden": 1},
        "scan": {"applied": 2, "escalated": 1},
        "redrive": {"watching": 2},
    }
    assert all(bad.is_silent and symptom_of(bad).detection for bad in STORIES["scan"].queues)


def test_a_story_that_is_none_is_refused_with_the_list() -> None:
    known = r"^STORY 'leese' is not known: give one of .*, scan, redrive, all$"
    with pytest.raises(CannotStart, match=known):
        stories_of("leese")
    assert stories_of("life") == {"life": read("life")}


def test_a_field_that_nobody_knows_is_refused() -> None:
    bad = {"name": "a", "why": "", "traffic": {"kind": "nobody"}, "symptom": "s", "states": []}
    assert msgspec.convert({"queues": [bad]}, Story)
    for wrong in ({"colour": "red"}, {"states": ["fixed"]}, {"traffic": {"kind": "walks"}}):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert({"queues": [{**bad, **wrong}]}, Story)
