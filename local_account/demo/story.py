"""Read a story: its faulty queues, the steps of its script, and its claims about the result.

Each file in `stories/` is one story. `script` has one line for each step that follows the start of
the calls: the name of a method of `Stage`, and its arguments.
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


class CallTiming(StrEnum):
    """When the story calls a queue.

    UNTIL_SHOWN: from the start until the queue has a case and, if Mendq fixes the queue at once,
    until enough calls have succeeded. UNTIL_ENDED: from the start until the script ends the calls.
    ON_CUE: after the script has started the calls.
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
        calls: When the story calls it.
        attributes: The attributes that it is created with.
        tags: Its tags.
        on_demand: Name of an SQS error that the account simulates for it; None for no error.
        caller: Name of the IAM user who makes the calls; None for the account's root user.
        steps: The case's steps: attribute -> (before, after). They are written if the case reaches
            the state `applied`.
        notifies: The severity of the notification about it; None for no notification.
        is_silent: True if no call fails, so that only a scan can find the fault.
        a_person_sets: Attributes with which a person replaces Mendq's values.
        outcome: The outcome of its incident; empty if it is the last of `states`.
    """

    name: str
    why: str
    traffic: LateDeletes | Sends | Races | Crashes | NoCalls | Extensions
    symptom: str
    states: tuple[State, ...]
    calls: CallTiming = CallTiming.UNTIL_SHOWN
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
    def is_fix_written(self) -> bool:
        """True if Mendq writes the steps, and does not only propose or observe them."""
        return State.APPLIED in self.states

    @property
    def must_be_fixed(self) -> bool:
        """True if Mendq writes the steps and calls must succeed afterwards."""
        return self.is_fix_written and State.INEFFECTIVE not in self.states

    @property
    def has_attribute_steps(self) -> bool:
        """True if the steps set attributes of the queue. A redrive sets none."""
        step_by_attribute = {step.attribute: step for step in find_symptom(self).steps}
        return any(step_by_attribute[name].has_value_in_queue for name in self.steps)

    @property
    def changes(self) -> dict[str, tuple[str, str]]:
        """Attributes that must be different at the end, as name -> (value before, value after)."""
        was_rolled_back = State.ROLLED_BACK in self.states
        value_by_attribute: dict[str, str] = {}
        if self.is_fix_written and self.has_attribute_steps and not was_rolled_back:
            value_by_attribute = {
                name: value_after for name, (_, value_after) in self.steps.items()
            }
        value_by_attribute |= self.a_person_sets
        return {name: (self.steps[name][0], value) for name, value in value_by_attribute.items()}

    @property
    def creation_attributes(self) -> dict[str, str]:
        """Attributes with which CreateQueue is called."""
        if self.name.endswith(".fifo"):
            return {"FifoQueue": "true", **self.attributes}
        return self.attributes

    @property
    def longer_timeout(self) -> timedelta:
        """The longer of the two visibility timeouts, before and after the fix.

        After the fix, a message can be in flight for this time. Zero if the fix does not change
        the visibility timeout.
        """
        old_and_new_timeouts = self.steps.get("VisibilityTimeout", ("0",))
        return timedelta(seconds=max(int(timeout) for timeout in old_and_new_timeouts))


class Story(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The faulty queues of a story, and its script, whose lines run one after the other."""

    queues: tuple[BadQueue, ...]
    script: tuple[tuple[Any, ...], ...] = ()

    @property
    def notifications(self) -> int:
        """Number of notifications that Mendq must send in this story."""
        return sum(bad_queue.notifies is not None for bad_queue in self.queues)


def find_symptom(bad_queue: BadQueue) -> Symptom:
    """Return the catalogue's entry of the queue's symptom."""
    return next(symptom for symptom in CATALOGUE if symptom.name == bad_queue.symptom)


def read_story(name: str) -> Story:
    """Return the story with this name. Raises msgspec.ValidationError if its file is not valid."""
    return msgspec.convert(tomllib.loads((STORIES_FOLDER / f"{name}.toml").read_text()), Story)


def read_stories(name: str) -> Mapping[str, Story]:
    """Return stories by their names: the story `name`, or every story if `name` is `all`.

    Raises CannotStart if there is no such story.
    """
    if name == ALL_STORIES:
        return {story: read_story(story) for story in STORY_NAMES}
    if name not in STORY_NAMES:
        valid_names = ", ".join([*STORY_NAMES, ALL_STORIES])
        raise CannotStart(f"STORY {name!r} is not known: give one of {valid_names}")
    return {name: read_story(name)}
