"""What a story sets up, what happens in it, and what it claims about the end: data, read here.

Each file in `stories/` is one story. `script` has one line for each thing that happens after the
calls have begun: the name of a method of the stage and its arguments.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from local_account.demo.traffic import Crashes, Extensions, LateDeletes, Nobody, Races, Sends
from local_account.where import CannotStart
from mendq.catalogue import CATALOGUE
from mendq.catalogue.symptom import Symptom
from mendq.model.case import Severity, State

FOLDER = Path(__file__).parent / "stories"
NAMES = ("visibility", "catalogue", "life", "scan", "redrive")
ALL = "all"


class Calls(StrEnum):
    """When a queue is called: most from the beginning until its first case is shown."""

    UNTIL_SHOWN = "until shown"
    UNTIL_ENDED = "until ended"
    ON_CUE = "on cue"


class BadQueue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A queue in trouble: how it is made, which calls fail on it, and how it is to end.

    `on_demand` is an error that the account gives when told, `caller` an IAM user who makes the
    calls instead of the account itself. `states` are those of its case, first to last, `steps` what
    the case holds: (before, after) by attribute; they are made where it comes to `applied`.
    `notifies` says whom it reaches. With `is_silent` no call to it ever fails: a scan finds it.
    `a_person_sets` is what somebody writes over Mendq's value; `outcome` its incident's, where
    that is another word than the last state.
    """

    name: str
    why: str
    traffic: LateDeletes | Sends | Races | Crashes | Nobody | Extensions
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
        """Whether Mendq changes something here."""
        return State.APPLIED in self.states

    @property
    def is_to_be_fixed(self) -> bool:
        """Whether its calls work once its steps are made."""
        return self.is_written and State.INEFFECTIVE not in self.states

    @property
    def leaves_a_value(self) -> bool:
        """Whether its steps set attributes of the queue: a redrive sets none."""
        kinds = {each.attribute: each for each in symptom_of(self).steps}
        return any(kinds[name].has_value_in_queue for name in self.steps)

    @property
    def changes(self) -> dict[str, tuple[str, str]]:
        """The attributes that stand otherwise in the end: (before, after)."""
        is_left = self.is_written and State.ROLLED_BACK not in self.states and self.leaves_a_value
        stands = {name: after for name, (_, after) in self.steps.items() if is_left}
        return {
            name: (self.steps[name][0], after)
            for name, after in {**stands, **self.a_person_sets}.items()
        }

    @property
    def created_with(self) -> dict[str, str]:
        """The attributes for CreateQueue."""
        kind = {"FifoQueue": "true"} if self.name.endswith(".fifo") else {}
        return {**kind, **self.attributes}

    @property
    def longer_timeout(self) -> timedelta:
        """The time that messages in flight may still have; none where it is not what changes."""
        return timedelta(seconds=max(map(int, self.steps.get("VisibilityTimeout", ("0",)))))


class Story(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Queues in trouble, all at once; then, line by line, what becomes of their cases."""

    queues: tuple[BadQueue, ...]
    script: tuple[tuple[Any, ...], ...] = ()

    @property
    def notifications(self) -> int:
        """How many it claims."""
        return sum(bad.notifies is not None for bad in self.queues)


def symptom_of(bad: BadQueue) -> Symptom:
    """The catalogue's entry that a queue's trouble is of."""
    return next(each for each in CATALOGUE if each.name == bad.symptom)


def read(name: str) -> Story:
    """Read a story; raise msgspec.ValidationError where it is none."""
    return msgspec.convert(tomllib.loads((FOLDER / f"{name}.toml").read_text()), Story)


def stories_of(name: str) -> Mapping[str, Story]:
    """The story of that name, or every one; raise CannotStart where there is none."""
    if name not in (*NAMES, ALL):
        known = ", ".join([*NAMES, ALL])
        raise CannotStart(f"STORY {name!r} is not known: give one of {known}")
    return {each: read(each) for each in NAMES if name in (each, ALL)}
