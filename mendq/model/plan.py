"""Plans and refusals: what the catalogue answers. Both are values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from mendq.model.case import State
from mendq.model.limits import Mode
from mendq.model.steps import AttributeStep, Owner, kind_of

# The code of what AWS did not let us do.
AWS_REFUSED = "aws_refused"


@dataclass(frozen=True)
class Plan:
    """The change to make; no steps: the queue is healthy.

    `first` are the commands that a person runs before it, `proposal` is what a person should do
    beyond it: printed and never written. `at_most` lowers the mode where a person has to see it
    first. `source_arn` is a source that it is for: to approve it is to approve that pair.
    """

    steps: tuple[AttributeStep, ...]
    reason: str
    proposal: tuple[AttributeStep, ...] = ()
    first: tuple[str, ...] = ()
    at_most: Mode = Mode.HEAL
    source_arn: str = ""


@dataclass(frozen=True)
class Refusal:
    """Why nothing is changed; what follows from it is its type.

    `next_command` is what whoever is paged runs first. `silent_in_observe` is one that people hear
    of only where Mendq may act: it is a guess, or about what Mendq would write or has written.
    """

    code: str
    reason: str
    next_command: str = ""
    silent_in_observe: bool = False

    # The state that its case opens in; None where nothing is written down.
    case_state: ClassVar[State | None] = None
    # Whether the same events come once more.
    is_retried: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if type(self) is Refusal:
            raise TypeError("say which kind of refusal it is, such as Refuse or Ignore")

    def is_reported_in(self, mode: Mode) -> bool:
        """Whether it is anything to tell people, as far as the mode decides."""
        return mode is not Mode.OBSERVE or not self.silent_in_observe

    def as_recorded_in(self, mode: Mode) -> Refusal:
        """The refusal that is written down: what people do not hear of is only `refused`."""
        return (
            self if self.case_state is None or self.is_reported_in(mode) else self.as_kind(Refuse)
        )

    def as_kind(self, kind: type[Refusal]) -> Refusal:
        """The same code and reason with what follows from another kind."""
        if isinstance(self, kind):
            return self
        return kind(self.code, self.reason, self.next_command, self.silent_in_observe)


class Ignore(Refusal):
    """Nothing is written down."""


class Retry(Ignore):
    """The reason passes by itself: the same events are asked for once more."""

    is_retried = True


class Refuse(Refusal):
    """A case says it."""

    case_state = State.REFUSED


class Escalate(Refusal):
    """A person is paged."""

    case_state = State.ESCALATED


@dataclass(frozen=True)
class Override(Refusal):
    """Somebody else's value stands; people hear of it where Mendq may write."""

    silent_in_observe: bool = True

    case_state = State.OVERRIDDEN


def owner_of_case(documents: Iterable[Mapping[str, str]]) -> Owner:
    """By the steps as transitions hold them; heal's, where an older Mendq's are not known."""
    kinds = (kind_of(each["attribute"]) for each in documents)
    return next((kind.owner for kind in kinds if kind is not None), Owner.HEAL)
