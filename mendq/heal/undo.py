"""What undoing a case would do, attribute by attribute: compare and set against what it wrote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from mendq.cases.view import CaseStoreView
from mendq.model.case import Case, State
from mendq.model.facts import Facts
from mendq.model.steps import AttributeStep, kind_of, leaves_a_value
from mendq.notifications.commands import delete_queue_command, set_command

# Lowered, a retention deletes messages; put back, a policy may undo a revocation.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
NEVER_PUT_BACK = frozenset({"MessageRetentionPeriod", "Policy"})


class Outcome(StrEnum):
    """What becomes of one attribute."""

    UNDONE = "undone"
    THEIRS = "kept"
    PRINTED = "printed"
    NOTHING = "nothing"


class Written(Struct, frozen=True):
    """What a case wrote to one attribute: `before` its first write, `after` its last.

    A write on top of somebody else's value begins anew: `first` is the transition that did. What
    was overridden since may be a person's. What `goes_on` is not written yet: it can be stopped.
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
    """One attribute: what stood there before the case, what it wrote last, what stands there now.

    `step` is the write that undoes it, `command` what people run where Mendq does not write.
    `stops`: what goes on is undone by being stopped, and nothing is written.
    """

    attribute: str
    outcome: Outcome
    before: str
    after: str
    now: str | None
    step: AttributeStep | None = None
    command: str = ""
    stops: bool = False

    def document(self) -> dict[str, str | None]:
        """The answer that rollback gives."""
        return {name: getattr(self, name) for name in _ANSWERED}

    def done(self) -> Undo:
        """After its write."""
        return replace(self, outcome=Outcome.UNDONE, now=self.before)

    def by_person(self, queue_arn: str) -> Undo:
        """Where AWS does not let Mendq write it."""
        command = set_command(queue_arn, {self.attribute: self.before})
        return replace(self, outcome=Outcome.PRINTED, command=command)


def written_by(history: Sequence[Case]) -> tuple[Written, ...]:
    """What the case of these transitions wrote into its queue, one entry an attribute."""
    written: dict[str, Written] = {}
    for case in history:
        for step in case.steps if case.state is State.APPLIED else ():
            name = step["attribute"]
            this = Written(name, step["before"], step["after"], case, case)
            written[name] = written[name].joined(this) if name in written else this
    overridden = [case.n for case in history if case.state is State.OVERRIDDEN]
    return tuple(
        replace(
            each,
            was_overridden=any(n > each.last.n for n in overridden),
            goes_on=history[-1].goes_on and not leaves_a_value(each.attribute),
        )
        for each in written.values()
    )


def undos(
    written: Iterable[Written],
    snapshots: Mapping[int, Mapping[str, str] | None],
    facts: Facts,
    view: CaseStoreView,
) -> tuple[Undo, ...]:
    """What undoing would do to the queue as it is now.

    `snapshots` are the queue's attributes by the transition that they were taken for: what was
    absent goes back to what its absence means. `view` tells whether a later write of ours was
    overruled: then the value is a person's, even where it is the one that the case wrote.
    """
    now_known = view.of_queue(facts.created_at)
    found = (_undo(each, snapshots.get(each.first.n), facts) for each in written)
    return tuple(_unless_overruled(each, now_known) for each in found)


def steps_of(found: Iterable[Undo]) -> tuple[AttributeStep, ...]:
    """The writes that undo what may be undone."""
    return tuple(each.step for each in found if each.step is not None)


def stopped_by(found: Iterable[Undo]) -> tuple[dict[str, str], ...]:
    """The step documents of what is undone by being stopped: what did not go yet stays."""
    return tuple(
        {"attribute": each.attribute, "before": each.after, "after": each.before}
        for each in found
        if each.stops
    )


def _undo(written: Written, snapshot: Mapping[str, str] | None, facts: Facts) -> Undo:
    name, before = written.attribute, written.before
    now, kind = facts.attributes.get(name), kind_of(name)
    if kind is not None:
        now = kind.standing_in(facts.attributes)
        before = (kind.standing_in(snapshot) if snapshot else None) or before
    found = Undo(name, Outcome.THEIRS, before, written.after, now)
    if written.goes_on:
        return replace(found, outcome=Outcome.UNDONE, now=written.after, stops=True)
    if now == before:
        return replace(found, outcome=Outcome.NOTHING)
    if kind is not None and kind.stays:
        command = delete_queue_command(written.after)
        return replace(found, outcome=Outcome.PRINTED, command=command)
    made_anew = facts.made_after(written.last.at)
    if now != written.after or made_anew or written.was_overridden:
        return found
    if kind is None or name in NEVER_PUT_BACK:
        return found.by_person(facts.queue_arn)
    return replace(found, outcome=Outcome.UNDONE, step=kind.of(now, before))


def _unless_overruled(found: Undo, view: CaseStoreView) -> Undo:
    last_written = view.record_of(found.attribute).last_written
    if found.outcome is Outcome.NOTHING or last_written in (None, found.now):
        return found
    return replace(found, outcome=Outcome.THEIRS, step=None, command="")
