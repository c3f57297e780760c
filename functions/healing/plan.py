"""What the catalogue answers: a plan, or a refusal. Both are values."""

from __future__ import annotations

from dataclasses import dataclass

from functions.healing.mode import Mode
from functions.healing.states import State
from functions.healing.steps import AttributeStep

# The code of what AWS did not let us do.
AWS_REFUSED = "aws_refused"


@dataclass(frozen=True)
class Plan:
    """The change to make; no steps: the queue is healthy.

    `first` are the commands that a person runs before it, `proposal` is what a person should do
    beyond it: printed and never written. `at_most` lowers the mode where a person has to see it
    first.
    """

    steps: tuple[AttributeStep, ...]
    reason: str
    proposal: tuple[AttributeStep, ...] = ()
    first: tuple[str, ...] = ()
    at_most: Mode = Mode.HEAL


@dataclass(frozen=True)
class Refusal:
    """Why nothing is changed.

    `becomes` is the state the case opens in; None where nothing is written down.
    `again` asks for the same events once more: the reason passes by itself. `next_command` is what
    whoever is paged runs first.
    """

    code: str
    reason: str
    becomes: State | None = State.REFUSED
    again: bool = False
    next_command: str = ""
