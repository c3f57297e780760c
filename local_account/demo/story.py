"""Read a story: the queues that it sets up, what happens to them, and what it claims.

Each file in `stories/` is one story. `script` has one line for each thing that happens after the
calls have begun: the name of a method of the stage, and its arguments.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from local_account.demo.traffic import Crashes, Extensions, LateDeletes, NoCalls, Races, Sends
from local_account.where import CannotStart
from mendq.catalogue import CATALOGUE
from mendq.catalogue.symptom import Symptom
from mendq.model.case import Severity
from mendq.model.state import State

STORIES_FOLDER = Path(__file__).parent / "stories"
STORY_NAMES = ("visibility", "catalogue", "life", "scan", "redrive")
ALL_STORIES = "all"


class Calls(StrEnum):
    """The time in which the story calls a queue.

    UNTIL_SHOWN: from the start until the queue's first case is shown. UNTIL_ENDED: from the start
    until the script ends the calls. ON_CUE: only after the script has begun the calls.
    """

    UNTIL_SHOWN = "until shown"
    UNTIL_ENDED = "until ended"
    ON_CUE = "on cue"


class BadQueue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A faulty queue: how it is created, how it is called, and what the story claims about it.

    Attributes:
        name: Its name.
        why: A sentence about its fault.
        traffic: The calls that it gets.
        symptom: The symptom that Mendq must find.
        states: The states of its case, first to last.
        calls: When it is called.
        attributes: The attributes that it is created with.
        tags: Its tags.
        on_demand: An error that the account simulates for it.
        caller: An IAM user who makes the calls; by default the account's root user does.
        steps: The case's steps: attribute -> (before, after). They are written if the case reaches
            the state `applied`.
        notifies: The severity of the notification about it; None for no notification.
        is_silent: True if no call fails, so that only a scan can find the fault.
        a_person_sets: Attributes that a person sets over Mendq's values.
        outcome: The outcome of its incident, if that is another word than the last state.
    """

    name: str
    why: str
    traffic: LateDeletes | Sends | Races | Crashes | NoCalls | Extensions
    symptom: str
    states: tuple[State, ...]
    calls: Calls = Calls.UNTIL_SHOWN
    attributes: dict[str, str] = {}
    tags: dict[str, str] = {}
    on_demand: str | None = None
    caller: str | None = None
    steps: dict[str, tuple[str, str]] = {}
    notifies: Severity | None = None
    is_silent: bool = False
    a_person_sets: dict[str, str] = {}
    outcome: str = ""

    @property
    def is_written(self) -> bool:
        """True if Mendq writes the steps."""
        return State.APPLIED in self.states

    @property
    def is_to_be_fixed(self) -> bool:
        """True if calls succeed after the steps were written."""
        return self.is_written and State.INEFFECTIVE not in self.states

    @property
    def leaves_a_value(self) -> bool:
        """True if the steps set attributes of the queue. A redrive sets none."""
        step_by_attribute = {step.attribute: step for step in find_symptom(self).steps}
        return any(step_by_attribute[name].has_value_in_queue for name in self.steps)

    @property
    def changes(self) -> dict[str, tuple[str, str]]:
        """The attributes that are different at the end, as (before, after)."""
        was_rolled_back = State.ROLLED_BACK in self.states
        value_by_attribute: dict[str, str] = {}
        if self.is_written and self.leaves_a_value and not was_rolled_back:
            value_by_attribute = {name: after for name, (_, after) in self.steps.items()}
        value_by_attribute |= self.a_person_sets
        return {name: (self.steps[name][0], value) for name, value in value_by_attribute.items()}

    @property
    def created_with(self) -> dict[str, str]:
        """The attributes for CreateQueue."""
        if self.name.endswith(".fifo"):
            return {"FifoQueue": "true", **self.attributes}
        return self.attributes

    @property
    def longer_timeout(self) -> timedelta:
        """The longer of the visibility timeouts before and after the fix.

        Messages can be in flight that long after it. Zero if the fix is another one.
        """
        timeouts = self.steps.get("VisibilityTimeout", ("0",))
        return timedelta(seconds=max(int(timeout) for timeout in timeouts))


class Story(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The faulty queues of a story, and its script, whose lines run one after the other."""

    queues: tuple[BadQueue, ...]
    script: tuple[tuple[Any, ...], ...] = ()

    @property
    def notifications(self) -> int:
        """Number of notifications that the story claims."""
        return sum(bad.notifies is not None for bad in self.queues)


def find_symptom(bad_queue: BadQueue) -> Symptom:
    """Return the catalogue's entry of the queue's symptom."""
    return next(symptom for symptom in CATALOGUE if symptom.name == bad_queue.symptom)


def read_story(name: str) -> Story:
    """Read a story by its name. Raises msgspec.ValidationError if the file is not a story."""
    return msgspec.convert(tomllib.loads((STORIES_FOLDER / f"{name}.toml").read_text()), Story)


def read_stories(name: str) -> Mapping[str, Story]:
    """Return the story of that name, or all stories for `all`, by their names.

    Raises CannotStart if there is no such story.
    """
    if name == ALL_STORIES:
        return {story: read_story(story) for story in STORY_NAMES}
    if name not in STORY_NAMES:
        known_names = ", ".join([*STORY_NAMES, ALL_STORIES])
        raise CannotStart(f"STORY {name!r} is not known: give one of {known_names}")
    return {name: read_story(name)}
