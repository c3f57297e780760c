"""What would undoing a case do, attribute by attribute? Pure: it compares, and writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from mendq.cases.view import CaseStoreView
from mendq.model.case import Case, State
from mendq.model.facts import Facts
from mendq.model.steps import AttributeStep, has_value_in_queue, kind_of
from mendq.notifications.commands import delete_queue_command, set_command

# Lowered, a retention deletes messages; put back, a policy may undo a revocation.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
NEVER_PUT_BACK = frozenset({"MessageRetentionPeriod", "Policy"})


class UndoOutcome(StrEnum):
    """The result for one attribute."""

    UNDONE = "undone"
    THEIRS = "kept"
    PRINTED = "printed"
    NOTHING = "nothing"


class Written(Struct, frozen=True):
    """What a case wrote to one attribute: `before` its first write, `after` its last.

    A write on top of another principal's value starts again: `first` is the transition of that
    write. A value that was overridden since may be a person's. A step that `goes_on` is not
    complete yet, so it can be stopped.
    """

    attribute: str
    before: str
    after: str
    first: Case
    last: Case
    was_overridden: bool = False
    goes_on: bool = False

    def joined(self, later: Written) -> Written:
        if later.before != self.after:
            return later
        return replace(later, before=self.before, first=self.first)


_ANSWERED = ("attribute", "outcome", "before", "after", "now", "command")


class Undo(Struct, frozen=True):
    """One attribute of a case: before it, as it wrote it last, and now.

    `step` is the write that undoes it, `command` what a person runs if Mendq does not write it.
    `stops` is true if the step still goes on: then stopping it undoes it, and nothing is written.
    """

    attribute: str
    outcome: UndoOutcome
    before: str
    after: str
    now: str | None
    step: AttributeStep | None = None
    command: str = ""
    stops: bool = False

    def document(self) -> dict[str, str | None]:
        """The attribute in the answer of a rollback."""
        return {name: getattr(self, name) for name in _ANSWERED}

    def done(self) -> Undo:
        """Return the attribute after its undoing was written."""
        return replace(self, outcome=UndoOutcome.UNDONE, now=self.before)

    def by_person(self, queue_arn: str) -> Undo:
        """Return the attribute with the command for a person. AWS did not let Mendq write it."""
        command = set_command(queue_arn, {self.attribute: self.before})
        return replace(self, outcome=UndoOutcome.PRINTED, command=command)


def written_by(history: Sequence[Case]) -> tuple[Written, ...]:
    """Return what the case of these transitions wrote into its queue, once per attribute."""
    written: dict[str, Written] = {}
    for case in history:
        for step in case.steps if case.state is State.APPLIED else ():
            name = step["attribute"]
            this = Written(name, step["before"], step["after"], case, case)
            written[name] = written[name].joined(this) if name in written else this
    overridden = [case.n for case in history if case.state is State.OVERRIDDEN]
    return tuple(
        replace(
            write,
            was_overridden=any(n > write.last.n for n in overridden),
            goes_on=history[-1].is_redriving and not has_value_in_queue(write.attribute),
        )
        for write in written.values()
    )


def undos(
    written: Iterable[Written],
    snapshots: Mapping[int, Mapping[str, str] | None],
    facts: Facts,
    view: CaseStoreView,
) -> tuple[Undo, ...]:
    """Return what undoing would do to the queue as it is now.

    Args:
        written: What the case wrote.
        snapshots: The queue's attributes before each write, by the number of its transition. An
            attribute that was absent goes back to its default.
        facts: The queue as it is now.
        view: The case store's view. It shows if a later write of Mendq was overruled: then the
            value is a person's, even if the case wrote the same one.
    """
    now_known = view.restrict_to_queue(facts.created_at)
    plans = [_undo(write, snapshots.get(write.first.n), facts) for write in written]
    return tuple(_unless_overruled(undo, now_known) for undo in plans)


def steps_of(found: Iterable[Undo]) -> tuple[AttributeStep, ...]:
    """Return the writes that undo what may be undone."""
    return tuple(undo.step for undo in found if undo.step is not None)


def stopped_by(found: Iterable[Undo]) -> tuple[dict[str, str], ...]:
    """Return the documents of the steps that a stop undoes. It changes no other step."""
    return tuple(
        {"attribute": undo.attribute, "before": undo.after, "after": undo.before}
        for undo in found
        if undo.stops
    )


def _undo(written: Written, snapshot: Mapping[str, str] | None, facts: Facts) -> Undo:
    name = written.attribute
    before = written.before
    now = facts.attributes.get(name)
    kind = kind_of(name)
    if kind is not None:
        now = kind.value_in(facts.attributes)
        before = (kind.value_in(snapshot) if snapshot else None) or before
    found = Undo(name, UndoOutcome.THEIRS, before, written.after, now)
    if written.goes_on:
        return replace(found, outcome=UndoOutcome.UNDONE, now=written.after, stops=True)
    if now == before:
        return replace(found, outcome=UndoOutcome.NOTHING)
    if kind is not None and kind.is_permanent:
        command = delete_queue_command(written.after)
        return replace(found, outcome=UndoOutcome.PRINTED, command=command)
    made_anew = facts.is_created_after(written.last.at)
    if now != written.after or made_anew or written.was_overridden:
        return found
    if kind is None or name in NEVER_PUT_BACK:
        return found.by_person(facts.queue_arn)
    return replace(found, outcome=UndoOutcome.UNDONE, step=kind.of(now, before))


def _unless_overruled(found: Undo, view: CaseStoreView) -> Undo:
    last_written = view.record_of(found.attribute).last_written
    if found.outcome is UndoOutcome.NOTHING or last_written in (None, found.now):
        return found
    return replace(found, outcome=UndoOutcome.THEIRS, step=None, command="")
