"""Guardrails: the reasons not to act, one function each.

A guardrail gets the situation, and the plan if there is one. It returns a refusal, or None if it
has no objection. The class of the refusal says what happens next (`mendq/model/plan.py`).
`mendq/heal/decide.py` lists the order in which the guardrails are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta

from mendq.cases.spread import Reach
from mendq.heal.situation import Situation, select_recent_changes
from mendq.model.evidence import EVENTS_SUFFICIENT_FOR_CASE, SUFFICIENT_EVENTS_PERIOD_SECONDS
from mendq.model.limits import Limits
from mendq.model.plan import Escalate, Ignore, Override, Plan, Refusal, Refuse, Retry
from mendq.model.steps import AttributeStep
from mendq.model.tags import DRILL_TAG
from mendq.notifications.configuration import summarize_attribute_value

ONE_DAY = timedelta(hours=24)
# The longest time for a claim, two reads, a write and the record of that write.
SECONDS_TO_WRITE = 15
# The longest time for a write whose claim is already made, and the record of that write.
SECONDS_TO_RECORD = 8
# Up to this many queues may show a symptom at once before Mendq suspects a common cause.
MAXIMUM_COINCIDENT_QUEUES = 3
# Up to this many queues with the drill tag are fixed in an hour. If there are more, someone may
# have put the tag on real queues.
MAXIMUM_DRILLS = 20


def refuse_if_stale_or_future(situation: Situation) -> Refusal | None:
    """Return `Ignore` if neither a recent failed call nor a measurement shows the symptom."""
    if not situation.fresh_sightings:
        reason = "every failed call is older than 60 minutes, ahead of the clock, or says nothing"
        return Ignore("stale_or_future", reason)
    return None


def refuse_if_too_little_evidence(situation: Situation) -> Refusal | None:
    """Return `Ignore` if too few calls failed close together, and there is no measurement."""
    if not situation.evidence.is_sufficient:
        reason = (
            f"fewer than {EVENTS_SUFFICIENT_FOR_CASE} distinct failed calls in "
            f"{SUFFICIENT_EVENTS_PERIOD_SECONDS} s; a burst of late extensions counts as one"
        )
        return Ignore("too_little_evidence", reason)
    return None


def refuse_if_case_already_open(situation: Situation) -> Refusal | None:
    """Return `Ignore` if a case of the same queue and symptom is open."""
    case = situation.open_case
    if case is not None:
        return Ignore("case_already_open", f"case {case.case_id} is {case.state}")
    return None


def refuse_if_claimed(situation: Situation) -> Refusal | None:
    """Return `Retry` while another run holds a claim on an attribute that a plan may change."""
    if situation.view.is_held_by_another(situation.owner, situation.now):
        return Retry("claimed", "another run is at work on it")
    return None


def refuse_if_frozen(situation: Situation) -> Refusal | None:
    """Return `Refuse` during a change freeze, if a plan would be written (`would_write_plan`)."""
    if situation.would_write_plan and situation.view.freeze_reason is not None:
        return Refuse("frozen", f"changes are frozen: {situation.view.freeze_reason}")
    return None


def refuse_if_keeps_changing(situation: Situation) -> Refusal | None:
    """Return `Escalate` if the queue was changed often, each time just after calls had failed.

    Calls before a change do not show if the queue still fails, so a person must look. In mode
    `observe` people are not notified, because Mendq may not act on the queue.
    """
    if not situation.keeps_changing:
        return None
    change_count = len(select_recent_changes(situation.excusing_change_times, situation.now))
    reason = (
        f"the queue was changed {change_count} times within 24 hours, each time just after calls "
        "had failed: none of them tells whether it still fails, and Mendq leaves it alone"
    )
    return Escalate("keeps_changing", reason, silent_in_observe=True)


def refuse_if_overridden(situation: Situation, plan: Plan) -> Refusal | None:
    """Return a refusal if Mendq must leave an attribute of the plan alone.

    The refusal is an `Override` if someone has replaced the value that Mendq wrote last. During
    SILENT_DAYS after an override or a rollback, it is an `Ignore`. But it is a `Refuse` if the
    attribute was rolled back and people were not notified yet that the symptom is back.
    """
    for step in plan.steps:
        refusal = _refuse_overridden_step(situation, step)
        if refusal is not None:
            return refusal
    return None


def _refuse_overridden_step(situation: Situation, step: AttributeStep) -> Refusal | None:
    attribute = step.attribute
    record = situation.records.record_of(attribute)
    if record.overridden_until is not None and situation.now < record.overridden_until:
        override_end_date = f"{record.overridden_until:%F}"
        if record.owes_a_notification:
            reason = (
                f"it shows again since {attribute} was rolled back, and Mendq would make it "
                f"{step.after} again; it leaves it alone until {override_end_date}"
            )
            return Refuse("overridden", reason)
        reason = f"another principal keeps {attribute}; silent until {override_end_date}"
        return Ignore("overridden", reason)
    was_mendqs_value = (
        record.last_written_value in (None, str(step.before)) or not step.has_value_in_queue
    )
    if record.overridden_until is None and not was_mendqs_value:
        persons_value = summarize_attribute_value(attribute, str(step.before))
        mendqs_value = summarize_attribute_value(attribute, record.last_written_value or "")
        reason = (
            f"another principal set {attribute} to {persons_value} after Mendq had set it to "
            f"{mendqs_value}; Mendq stays away for 7 days"
        )
        return Override("overridden", reason)
    return None


def refuse_if_out_of_bounds(_situation: Situation, plan: Plan) -> Refusal | None:
    """Return `Refuse` if a step's value is outside the limits of its attribute."""
    for step in plan.steps:
        fault = step.find_bounds_fault()
        if fault:
            return Refuse("out_of_bounds", fault)
    return None


def refuse_if_too_soon(situation: Situation, plan: Plan) -> Refusal | None:
    """Return `Refuse` if an attribute of the plan was written within the cooldown.

    A write needs time to take effect.
    """
    cooldown_minutes = situation.timing.cooldown_minutes
    write_count, attribute = situation.find_most_written_attribute(
        plan, timedelta(minutes=cooldown_minutes)
    )
    if write_count:
        return Refuse(
            "too_soon", f"{attribute} was written less than {cooldown_minutes} minutes ago"
        )
    return None


def refuse_if_too_often(situation: Situation, plan: Plan) -> Refusal | None:
    """Return a refusal if an attribute of the plan was written too often within 24 hours.

    At the limit in the settings it is an `Escalate`, because more writes do not help. At the limit
    of the step's class (`most_writes_per_day`) it is a `Refuse`.
    """
    daily_limit = situation.limits.writes_per_attribute_per_day
    write_count, attribute = situation.find_most_written_attribute(plan, ONE_DAY)
    if attribute and write_count >= daily_limit:
        reason = f"{attribute} was written {daily_limit} times in 24 hours; a person decides"
        return Escalate("too_often", reason, silent_in_observe=True)
    for step in plan.steps:
        daily_step_limit = step.most_writes_per_day
        if (
            daily_step_limit is not None
            and situation.count_writes(step.attribute, ONE_DAY) >= daily_step_limit
        ):
            # No escalation: a person has nothing to repair, because Mendq may write it tomorrow.
            times_text = "once" if daily_step_limit == 1 else f"{daily_step_limit} times"
            reason = f"{step.attribute} may be written {times_text} in 24 hours, and was"
            return Refuse("too_often", reason)
    return None


def explain_mass_symptom(reach: Reach, limits: Limits) -> str | None:
    """Return why the queues must share a cause, or None if only a few show the symptom.

    Whoever may tag queues can make more queues managed, which lowers the share. So the share is
    computed a second time among the queues of the same or a higher mode, and more queues than
    `mass_symptom_queues` in the settings are always too many.
    """
    maximum_queue_share, maximum_queue_count = limits.mass_symptom_share, limits.mass_symptom_queues
    counts_to_compare = (
        (len(reach.queue_arns), reach.managed_queue_count, "managed queues"),
        (
            reach.queue_count_in_mode,
            reach.managed_queue_count_in_mode,
            "queues that Mendq may go as far on",
        ),
    )
    for showing_queue_count, managed_queue_count, managed_queues_text in counts_to_compare:
        if showing_queue_count > min(
            maximum_queue_count,
            max(MAXIMUM_COINCIDENT_QUEUES, maximum_queue_share * managed_queue_count),
        ):
            return (
                f"{showing_queue_count} of {managed_queue_count} {managed_queues_text} "
                "show it within the hour"
            )
    return None


def refuse_if_mass_symptom(situation: Situation, _plan: Plan | None = None) -> Refusal | None:
    """Return `Refuse` if many queues show the symptom at once, because they must share a cause.

    A queue with the drill tag is refused only if more than MAXIMUM_DRILLS such queues show it. In
    mode `observe` the refusal is silent, because Mendq would write nothing anyway.
    """
    reach = situation.reach or Reach()
    if DRILL_TAG in situation.facts.tags:
        drill_count = len(reach.queue_arns)
        mass_symptom_reason = (
            f"{drill_count} drills within the hour" if drill_count > MAXIMUM_DRILLS else None
        )
        consequence = f"at most {MAXIMUM_DRILLS} are fixed"
    else:
        mass_symptom_reason = explain_mass_symptom(reach, situation.limits)
        consequence = "the cause is not this queue's"
    reason = f"{mass_symptom_reason}: {consequence}"
    return Refuse("mass_symptom", reason, silent_in_observe=True) if mass_symptom_reason else None


def refuse_if_shared_default_stopped(situation: Situation) -> Refusal | None:
    """Return `Refuse` if nothing more may be written for the shared default of the waiting case.

    That is so if the first queue's fix can no longer be verified, or if the fix of another queue
    did harm, did not help, was rolled back or was overruled.
    """
    case, shared_cases = situation.waiting_case, situation.shared_cases
    if case is None or shared_cases is None or situation.approved_shared_default is None:
        return None
    stop_text = shared_cases.describe_stop(follows_first=case.follows_first_case)
    if not stop_text:
        return None
    reason = f"{stop_text}, and this queue would get the same change: nothing more is written"
    return Refuse("shared_default_stopped", reason)


def refuse_if_first_not_verified(situation: Situation) -> Refusal | None:
    """Return `Ignore` while the first queue of a shared default is not fixed and verified."""
    case, shared_cases = situation.waiting_case, situation.shared_cases
    if case is None or situation.approved_shared_default is None or not case.follows_first_case:
        return None
    if shared_cases is None or not shared_cases.is_first_verified:
        first_case_id = situation.approved_shared_default.first_case_id
        reason = f"it follows case {first_case_id}, which must be verified first"
        return Ignore("first_not_verified", reason)
    return None


def refuse_if_too_little_time(situation: Situation, _plan: Plan) -> Refusal | None:
    """Return `Retry` if too little time is left to write and to record the write."""
    if situation.remaining_seconds < SECONDS_TO_WRITE:
        reason = "too little of the Lambda's time is left to write and record"
        return Retry("too_little_time", reason)
    return None


def find_first_refusal(
    guardrails: Iterable[Callable[..., Refusal | None]],
    situation: Situation,
    plan: Plan | None = None,
) -> Refusal | None:
    """Ask the guardrails in order. Return the first refusal, or None if no guardrail refuses.

    If there is a plan, each guardrail gets the plan too.
    """
    for guardrail in guardrails:
        refusal = guardrail(situation) if plan is None else guardrail(situation, plan)
        if refusal is not None:
            return refusal
    return None
