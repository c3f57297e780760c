"""Plan how to undo a case, attribute by attribute.

This module is pure. It compares the queue with the values that the case wrote, and writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from mendq.cases.view import CaseStoreView
from mendq.model.case import Case
from mendq.model.facts import Facts
from mendq.model.state import State
from mendq.model.steps import AttributeStep, find_step_class, has_value_in_queue
from mendq.notifications.commands import delete_queue_command, set_attributes_command

# Attributes that Mendq never sets back, so that a person must run the command. A lower retention
# deletes messages, and an older policy may restore an access that people have revoked since.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
MANUAL_ATTRIBUTES = frozenset({"MessageRetentionPeriod", "Policy"})


class UndoOutcome(StrEnum):
    """The result of undoing one attribute."""

    # Mendq sets the value back.
    UNDONE = "undone"
    # The value is a person's, so Mendq keeps it.
    VALUE_KEPT = "kept"
    # Mendq shows the command that undoes the write, because a person must run it.
    COMMAND_PRINTED = "printed"
    # The attribute already has the value from before the case.
    ALREADY_UNDONE = "nothing"


class CaseWrite(Struct, frozen=True):
    """The writes of a case to one attribute, taken together.

    Attributes:
        attribute: The queue attribute.
        before: The value before the first write.
        after: The value of the last write.
        first_transition: The transition of the first write. If another principal changed the value
            between two writes, the later write counts as the first.
        last_transition: The transition of the last write.
        was_overridden: True if the case was overridden after its last write. The value may then be
            a person's.
        is_incomplete: True if the step is still running and can be stopped.
    """

    attribute: str
    before: str
    after: str
    first_transition: Case
    last_transition: Case
    was_overridden: bool = False
    is_incomplete: bool = False

    def merge_with_later(self, later_write: CaseWrite) -> CaseWrite:
        """Return both writes as one; only `later_write` if the value was changed between them."""
        if later_write.before != self.after:
            return later_write
        return replace(later_write, before=self.before, first_transition=self.first_transition)


class Undo(Struct, frozen=True):
    """The plan to undo one attribute of a case.

    Attributes:
        attribute: The queue attribute.
        outcome: The result, or the expected result of a dry run.
        before: The value before the case. It comes from the snapshot if the snapshot has it.
        after: The value that the case wrote last.
        current_value: The present value. None if the queue does not have the attribute.
        step: The write that undoes the attribute. None if Mendq writes nothing.
        command: The command for a person if the outcome is COMMAND_PRINTED. Otherwise empty.
        must_stop_step: True if the case's step is still running. Then the rollback stops that step
            and writes nothing; `step` is None.
    """

    attribute: str
    outcome: UndoOutcome
    before: str
    after: str
    current_value: str | None
    step: AttributeStep | None = None
    command: str = ""
    must_stop_step: bool = False

    def document(self) -> dict[str, str | None]:
        """Return the attribute as JSON for the answer of a rollback."""
        return {
            "attribute": self.attribute,
            "outcome": self.outcome,
            "before": self.before,
            "after": self.after,
            "now": self.current_value,
            "command": self.command,
        }

    def mark_done(self) -> Undo:
        """Return the plan with the outcome UNDONE and the earlier value as the present value."""
        return replace(self, outcome=UndoOutcome.UNDONE, current_value=self.before)

    def leave_to_person(self, queue_arn: str) -> Undo:
        """Return the plan with a command for a person, because Mendq may not write the value."""
        command = set_attributes_command(queue_arn, {self.attribute: self.before})
        return replace(self, outcome=UndoOutcome.COMMAND_PRINTED, step=None, command=command)


def list_writes(history: Sequence[Case]) -> tuple[CaseWrite, ...]:
    """Return the writes of a case to its queue, one for each attribute.

    Args:
        history: All transitions of the case, the oldest first.
    """
    write_by_attribute: dict[str, CaseWrite] = {}
    for case in history:
        if case.state is not State.APPLIED:
            continue
        for step in case.steps:
            attribute = step["attribute"]
            write = CaseWrite(attribute, step["before"], step["after"], case, case)
            earlier_write = write_by_attribute.get(attribute)
            if earlier_write is not None:
                write = earlier_write.merge_with_later(write)
            write_by_attribute[attribute] = write
    override_numbers = [case.n for case in history if case.state is State.OVERRIDDEN]
    last_override_number = max(override_numbers, default=0)
    return tuple(
        replace(
            write,
            was_overridden=last_override_number > write.last_transition.n,
            is_incomplete=history[-1].is_redriving and not has_value_in_queue(write.attribute),
        )
        for write in write_by_attribute.values()
    )


def plan_undos(
    writes: Iterable[CaseWrite],
    snapshot_by_transition_number: Mapping[int, Mapping[str, str] | None],
    facts: Facts,
    view: CaseStoreView,
) -> tuple[Undo, ...]:
    """Plan how to undo each write of a case.

    Args:
        writes: The writes of the case.
        snapshot_by_transition_number: The queue's attributes before each write, by the number of
            the write's transition. An attribute that was not set is set to its default.
        facts: The queue's present facts.
        view: The case store's records. If the present value is not the value that Mendq wrote last
            for any case, a person has set it. It is then kept, even if this case wrote the same
            value.
    """
    records = view.restrict_to_queue(facts.created_at)
    undos = [
        _plan_undo(write, snapshot_by_transition_number.get(write.first_transition.n), facts)
        for write in writes
    ]
    return tuple(_keep_persons_value(undo, records) for undo in undos)


def list_undo_steps(undos: Iterable[Undo]) -> tuple[AttributeStep, ...]:
    """Return the writes that Mendq makes to undo the case."""
    return tuple(undo.step for undo in undos if undo.step is not None)


def list_stopped_steps(undos: Iterable[Undo]) -> tuple[dict[str, str], ...]:
    """Return the inverse, as JSON, of each step that is undone by stopping it."""
    return tuple(
        {"attribute": undo.attribute, "before": undo.after, "after": undo.before}
        for undo in undos
        if undo.must_stop_step
    )


def _plan_undo(write: CaseWrite, snapshot: Mapping[str, str] | None, facts: Facts) -> Undo:
    attribute = write.attribute
    value_before = write.before
    current_value = facts.attributes.get(attribute)
    step_type = find_step_class(attribute)
    if step_type is not None:
        current_value = step_type.value_in(facts.attributes)
        value_before = (step_type.value_in(snapshot) if snapshot else None) or value_before
    default_undo = Undo(attribute, UndoOutcome.VALUE_KEPT, value_before, write.after, current_value)
    if write.is_incomplete:
        return replace(
            default_undo, outcome=UndoOutcome.UNDONE, current_value=write.after, must_stop_step=True
        )
    if current_value == value_before:
        return replace(default_undo, outcome=UndoOutcome.ALREADY_UNDONE)
    if step_type is not None and step_type.is_permanent:
        command = delete_queue_command(write.after)
        return replace(default_undo, outcome=UndoOutcome.COMMAND_PRINTED, command=command)
    is_another_queue = facts.is_created_after(write.last_transition.at)
    if current_value != write.after or is_another_queue or write.was_overridden:
        return default_undo
    if step_type is None or attribute in MANUAL_ATTRIBUTES:
        return default_undo.leave_to_person(facts.queue_arn)
    return replace(
        default_undo, outcome=UndoOutcome.UNDONE, step=step_type.of(current_value, value_before)
    )


def _keep_persons_value(undo: Undo, view: CaseStoreView) -> Undo:
    """Return a plan that keeps the present value if a person has set it.

    A person has set it if it is not the value that Mendq wrote last. Return `undo` unchanged if it
    is, if no write by Mendq is on record, or if the attribute already has the earlier value.
    """
    last_written_value = view.record_of(undo.attribute).last_written_value
    if undo.outcome is UndoOutcome.ALREADY_UNDONE or last_written_value in (
        None,
        undo.current_value,
    ):
        return undo
    return replace(undo, outcome=UndoOutcome.VALUE_KEPT, step=None, command="")
