"""What a story sets up, and what it claims about the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from functions.catalogue.symptom import Symptom
from functions.healing.paging import Severity
from functions.healing.states import State
from functions.healing.steps import AttributeStep
from local_account.demo.traffic import Traffic

if TYPE_CHECKING:
    from local_account.demo.stage import Act


@dataclass(frozen=True)
class BadQueue:
    """A queue in trouble: how it is made, which calls fail on it, and how it is to end.

    `on_demand` is an error that the account gives when told, `caller` an IAM user who makes the
    calls instead of the account itself. `steps` are what its case holds; they are made only where
    the case comes to `applied`. `pages` says whom it reaches.

    `state` is the one in which its case opens; in the story's acts it goes on to those in `then`.
    Its calls begin with the story and end when its first case is shown, unless an act does that.
    With `is_silent` no call to it ever fails: it is a sweep that finds it.
    `a_person_sets` is what somebody writes over Mendq's value; `outcome` its incident's, where
    that is another word than the last state.
    """

    name: str
    why: str
    traffic: Traffic
    symptom: Symptom
    state: State
    attributes: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    on_demand: str | None = None
    caller: str | None = None
    steps: tuple[AttributeStep, ...] = ()
    pages: Severity | None = None
    then: tuple[State, ...] = ()
    begins_in_an_act: bool = False
    ends_in_an_act: bool = False
    is_silent: bool = False
    a_person_sets: Mapping[str, str] = field(default_factory=dict)
    outcome: str = ""

    @property
    def path(self) -> tuple[State, ...]:
        """Every state of its case, first to last."""
        return (self.state, *self.then)

    @property
    def is_written(self) -> bool:
        return State.APPLIED in self.path

    @property
    def is_to_be_mended(self) -> bool:
        """Whether its calls work once its steps are made."""
        return self.is_written and State.INEFFECTIVE not in self.path

    @property
    def _standing(self) -> tuple[AttributeStep, ...]:
        """Those that leave something to be seen in the queue."""
        return tuple(each for each in self.steps if each.leaves_a_value)

    @property
    def leaves_a_value(self) -> bool:
        return bool(self._standing)

    @property
    def changes(self) -> dict[str, tuple[str, str]]:
        """The attributes that stand otherwise in the end: (before, after)."""
        is_left = self.is_written and State.ROLLED_BACK not in self.path
        stands = {each.attribute: str(each.after) for each in self._standing if is_left}
        before = {each.attribute: str(each.before) for each in self.steps}
        return {
            name: (before[name], after) for name, after in {**stands, **self.a_person_sets}.items()
        }

    @property
    def incident_outcome(self) -> str:
        return self.outcome or str(self.path[-1])

    @property
    def created_with(self) -> dict[str, str]:
        """The attributes for CreateQueue."""
        kind = {"FifoQueue": "true"} if self.name.endswith(".fifo") else {}
        return {**kind, **self.attributes}


@dataclass(frozen=True)
class Story:
    """Queues in trouble, all at once; then, act by act, what becomes of their cases."""

    queues: tuple[BadQueue, ...]
    acts: tuple[Act, ...] = ()

    @property
    def pages(self) -> int:
        """How many pages it claims."""
        return sum(bad.pages is not None for bad in self.queues)
