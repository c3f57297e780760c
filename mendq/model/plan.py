"""Plans and refusals: the two possible answers of a symptom's plan function.

Both are only values: creating one changes nothing in AWS.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from mendq.model.mode import Mode
from mendq.model.state import State
from mendq.model.steps import AttributeStep, Owner, find_step_class

# The refusal's code if AWS refused a write.
AWS_REFUSED = "aws_refused"


@dataclass(frozen=True)
class Plan:
    """The change that a symptom plans for a queue.

    Attributes:
        steps: The changes that Mendq writes, in order; empty if nothing must be changed.
        reason: The reason for the change, as a sentence for people.
        proposal: Further changes for a person to make. Mendq shows them and never writes them.
        first_commands: Commands for a person to run before the change.
        highest_mode: The highest mode in which Mendq may handle this plan. It is lower than HEAL if
            a person must see the plan first.
        source_arn: The source queue, if the plan changes a DLQ for this source; otherwise empty. An
            approval is valid only for this DLQ and this source.
    """

    steps: tuple[AttributeStep, ...]
    reason: str
    proposal: tuple[AttributeStep, ...] = ()
    first_commands: tuple[str, ...] = ()
    highest_mode: Mode = Mode.HEAL
    source_arn: str = ""


@dataclass(frozen=True)
class Refusal:
    """The reason why Mendq changes nothing. The subclass decides what happens next.

    Attributes:
        code: The refusal's code, such as `dlq_unfit`.
        reason: The reason, as a sentence for people.
        next_command: The command that a notified person should run first.
        silent_in_observe: True if people are not notified of this refusal on queues in mode
            `observe`, because it is a guess, or is only about a write by Mendq.
    """

    code: str
    reason: str
    next_command: str = ""
    silent_in_observe: bool = False

    # The state in which the refusal's case opens; None if no case is opened.
    case_state: ClassVar[State | None] = None
    # True if the caller should try again: the reason passes soon.
    is_retried: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if type(self) is Refusal:
            raise TypeError("say which kind of refusal it is, such as Refuse or Ignore")

    def is_reported_in(self, mode: Mode) -> bool:
        """Return True if people may be notified of this refusal on a queue in this mode."""
        return mode is not Mode.OBSERVE or not self.silent_in_observe

    def as_recorded_in(self, mode: Mode) -> Refusal:
        """Return the refusal that a case records on a queue in this mode.

        This is the refusal itself, or a `Refuse` with the same code and reason if the refusal opens
        a case that is not reported to people in this mode.
        """
        if self.case_state is None or self.is_reported_in(mode):
            return self
        return self.as_refusal_of_class(Refuse)

    def as_refusal_of_class(self, refusal_class: type[Refusal]) -> Refusal:
        """Return a refusal of this class with the same code, reason and command.

        Return the refusal itself if it is of this class or of a subclass.
        """
        if isinstance(self, refusal_class):
            return self
        return refusal_class(self.code, self.reason, self.next_command, self.silent_in_observe)


class Ignore(Refusal):
    """A refusal that opens no case."""


class Retry(Ignore):
    """A refusal for a reason that will pass. In heal, SQS then delivers the same events again."""

    is_retried = True


class Refuse(Refusal):
    """A refusal that a case records, without notifying people urgently."""

    case_state = State.REFUSED


class Escalate(Refusal):
    """A refusal that notifies a person urgently, because a person must act."""

    case_state = State.ESCALATED


@dataclass(frozen=True)
class Override(Refusal):
    """A refusal because someone else set the value, which Mendq does not replace.

    People are notified, but not on queues in mode `observe` if `silent_in_observe` is True.
    """

    silent_in_observe: bool = True

    case_state = State.OVERRIDDEN


def owner_of_case(step_documents: Iterable[Mapping[str, str]]) -> Owner:
    """Return the owner of a case's steps: the Lambda that makes these changes.

    This is the owner of the first known step, or heal if no step is known.

    Args:
        step_documents: The stored steps of a case's transition.
    """
    for step_document in step_documents:
        step_class = find_step_class(step_document["attribute"])
        if step_class is not None:
            return step_class.owner
    return Owner.HEAL
