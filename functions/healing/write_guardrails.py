"""What speaks against a write: a person's value there, and how often we have written already."""

from __future__ import annotations

from datetime import timedelta

from functions.healing.difference import in_short
from functions.healing.plan import Refusal
from functions.healing.proposal import Proposal
from functions.healing.states import State
from functions.healing.steps import AttributeStep

A_DAY = timedelta(hours=24)


def contested(proposal: Proposal) -> Refusal | None:
    """A person's value is never overwritten: ours was the last recorded and is gone."""
    refusals = (_contested(step, proposal) for step in proposal.plan.steps)
    return next((each for each in refusals if each is not None), None)


def _contested(step: AttributeStep, proposal: Proposal) -> Refusal | None:
    record, attribute = proposal.view.record_of(step.attribute), step.attribute
    if record.contested_until is not None and proposal.now < record.contested_until:
        until = f"{record.contested_until:%F}"
        if record.owes_a_page:
            reason = (
                f"it shows again since {attribute} was rolled back, and Mendq would make it "
                f"{step.after} again; it leaves it alone until {until}"
            )
            return Refusal("contested", reason)
        reason = f"another principal keeps {attribute}; silent until {until}"
        return Refusal("contested", reason, becomes=None)
    was_ours = record.last_written in (None, str(step.before)) or not step.leaves_a_value
    if record.contested_until is None and not was_ours:
        reason = (
            f"another principal set {attribute} to {in_short(attribute, str(step.before))} "
            f"after Mendq had set it to {in_short(attribute, record.last_written or '')}; "
            "Mendq stays away for 7 days"
        )
        return Refusal("contested", reason, State.CONTESTED, silent_in_observe=True)
    return None


def too_soon(proposal: Proposal) -> Refusal | None:
    minutes = proposal.timing.cooldown_minutes
    written, attribute = proposal.most_written_since(timedelta(minutes=minutes))
    if written:
        reason = f"{attribute} was written less than {minutes} minutes ago"
        return Refusal("too_soon", reason)
    return None


def too_often(proposal: Proposal) -> Refusal | None:
    most = proposal.limits.writes_per_attribute_per_day
    written, attribute = proposal.most_written_since(A_DAY)
    if attribute and written >= most:
        reason = f"{attribute} was written {most} times in 24 hours; a person decides"
        return Refusal("too_often", reason, State.ESCALATED, silent_in_observe=True)
    return _more_than_its_own_bound(proposal)


def _more_than_its_own_bound(proposal: Proposal) -> Refusal | None:
    """It is no fault that a person would have to find: tomorrow it may be done again."""
    for step in proposal.plan.steps:
        most = step.most_a_day
        if most is not None and proposal.written_since(step.attribute, A_DAY) >= most:
            times = "once" if most == 1 else f"{most} times"
            reason = f"{step.attribute} may be written {times} in 24 hours, and was"
            return Refusal("too_often", reason)
    return None
