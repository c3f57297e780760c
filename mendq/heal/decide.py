"""Decide what Mendq does about one symptom on one queue.

Theory of operation
===================

`decide` is pure. It reads a `Situation` and returns one `Decision`. It calls neither AWS nor the
case store, so the same situation leads to the same decision in the real run, after an approval, in
the dry run and in the backtest. These callers differ only in how they gather the situation and in
how they carry out the decision. The backtest knows no cases, claims and freezes, and uses the
default limits.

Not every group of failed calls, and not every finding of a scan, becomes a situation. The head of
`gather.py` lists the reasons for which a group is declined before `decide` is asked.

`decide` is asked in stages, because each stage costs more than the one before it. If it must know
more, its answer says so (`NeedsFacts`, `NeedsReach`). `gather.py` (`gather_and_decide`) then adds
the facts, or the number of queues, to the situation and asks again.

    stage                         known                          asked
    1. before the queue is read   case store, failed calls       GUARDRAILS_BEFORE_READING
    2. after it was read          the queue's facts              the symptom's plan
    3. after queues were counted  how many show the symptom      GUARDRAILS_ABOUT_PLAN, then mode
    4. after a refused write      why the write was refused      nothing more

A case that waits (approved, or its last step did not help) goes through the same stages with other
questions, because it was decided once already:

    1. before the queue is read   case store, the mode           is it claimed? may it be written?
                                                                 is its shared default stopped?
    2. after it was read          the queue's facts              the plan again, then the freeze
    3. after queues were counted  how many show the symptom      GUARDRAILS_ABOUT_PLAN
    4. after a refused write      why the write was refused      nothing more

A case may be written if its mode is `heal`. A person's approval makes the mode `heal`, unless the
queue is gone, not managed any more, or only observed.

After a refused write nothing more is asked. If the refusal opens a case (`Refusal.case_state`),
that case is recorded; otherwise the failed calls are kept, so that the next ones decide.

The rules, each with its reason and what would be lost without it:

 1. The cheapest questions come first. In a storm of failed calls most decisions end in stage 1,
    after one read of the queue's tags and one of the case store. Otherwise, each failed call would
    make many calls to AWS, and a storm would throttle the account's own tools.

 2. Within stage 1 a claim is asked about before a freeze. Another run that holds a claim may have
    written already. Otherwise, a case could say that a freeze stopped a write that was made. A
    freeze refuses only what would be written (`Situation.would_write_plan`): not a queue in
    `observe` or `propose`, and no symptom that notifies anyway.

 3. A failed call is only a hint. It takes several distinct calls close together to believe it
    (`Evidence.is_sufficient`; EVENTS_SUFFICIENT_FOR_CASE and SUFFICIENT_EVENTS_PERIOD_SECONDS in
    `mendq/model/evidence.py`), or one measurement, because a metric counts for hours. Calls that do
    not suffice yet are kept, because the next batch may complete them. Otherwise, one caller's
    mistake, or one record delivered twice, would change a production queue.

 4. Only calls from after the queue's last change count. What failed before says nothing about the
    queue as it is now. If the queue was changed MINIMUM_FREQUENT_CHANGES times (`situation.py`)
    within a day, each time just after calls had failed, a person is notified (`keeps_changing`),
    unless the queue is in `observe`. Otherwise, Mendq would fix what was just fixed, or an
    automation that changes the queue every hour would hide its faults.

 5. A person's value wins. If the value that Mendq wrote last is gone, someone else set another one.
    Mendq says so once and leaves the attribute alone for SILENT_DAYS (`mendq/model/state.py`).
    Otherwise, Mendq and a person, or a template, would overwrite each other's values.

 6. Many queues that show one symptom at once have a common cause outside the queues. Mendq
    changes none of them, and people get one notification for all. Many are more than
    `Limits.mass_symptom_queues` within the hour, or more than the share `Limits.mass_symptom_share`
    of the managed queues, and always more than MAXIMUM_COINCIDENT_QUEUES. Queues with the drill tag
    are counted apart: up to MAXIMUM_DRILLS of them in an hour are fixed. The share counts once
    among all managed queues and once among those in the same or a higher mode
    (`guardrails.explain_mass_symptom`). The case of a symptom that notifies anyway is recorded even
    so, with its own reason. Counting comes late because it may list every managed queue, and before
    the write because each write alone would look right. Otherwise, an outage of AWS or a bad
    deployment would rewrite a whole account.

 7. The mode decides how far an agreed plan goes: `observe` records a case, `propose` asks a person,
    `heal` writes. The plan itself may lower the mode (`Plan.highest_mode`): some changes always
    need a person. Only the Lambda that owns a step writes it; heal approves the case for the owner.
    Otherwise, a tag could give one Lambda the rights of another.

 8. A fix that did not help, or was rolled back, is not repeated automatically. The next plan for
    this symptom of that queue is proposed, until a person approves one (`unhelpful_case_id`). The
    same holds if an earlier change by Mendq may be the cause. Otherwise, Mendq would raise a value
    again and again.

 9. What a person approved is what happens. A case that waits is planned again just before the
    write. If the plan is not exactly the one that was shown, the approval expires. It needs no new
    evidence: the case was opened with it. Otherwise, a person's approval would cover a change that
    the person never saw.

10. A reason that passes without a person does not end a waiting case (PASSING_REFUSAL_CODES): a
    cooldown, a freeze, a mass symptom, or messages that someone else is taking
    (`messages_are_taken`). The same holds for a guardrail or a refused write that is tried again
    (`is_retried`) or opens no case, such as another run's claim. The case keeps waiting, and the
    reason is stored next to it, so that people see why. Otherwise, an approval would be lost in
    each freeze. A freeze does not stop the clock: the plan is made before the freeze is asked
    about, so an approval can expire during a freeze, for example because the queue is healthy or
    the plan has changed.

11. Repeats are silent (`mendq.heal.repeats`). A case that only repeats what people were told
    recently is not opened. How long that is depends on how the last case ended: from the cooldown
    for failed calls to EXPIRED_PROPOSAL_SILENCE for a fault in the configuration
    (`would_repeat_last_case`). Otherwise, people would stop reading the notifications.

12. An open case never hides new victims. If other callers begin to fail while a case of a symptom
    that notifies anyway is open and escalated, people are notified again, at most once in
    NEW_CALLERS_REPORT_PAUSE (`announcements.py`). If enough calls of these callers have failed, no
    guardrail of stage 1 stops the decision. Otherwise, a second team's outage would hide behind the
    first team's case.

13. The ground of a refusal decides whether people hear about it (`RefusalGround`). A refusal by the
    queue's own facts is news about the queue. A freeze or a cooldown concerns only Mendq, so nobody
    is notified.
    If the refusal is about many queues (MANY_QUEUES), the case itself notifies nobody: the one
    notification of rule 6 does. Otherwise, people would get a notification for each queue whenever
    a freeze begins. If the refusal is about Mendq, an escalation notifies all the same: for
    example, an attribute was written as often as a day allows, so more writes do not help.

14. When in doubt, nothing is written. Every way through `decide` that does not end in `WriteFix`
    leaves the queue as it is, except rule 15.

15. A visibility timeout that did not help is rolled back if a longer one cannot help either
    (CODES_WITH_ROLLBACK), unless a person approved it, someone has changed the queue since, the old
    value is below a need that is named, or changes are frozen. Otherwise, a useless value would
    stay in the queue. If the timeout meets a need, or a longer one may help, it stays: three late
    calls are easy to make, and with a value that is too short, messages are handled twice. Other
    changes are not rolled back automatically, because taking a DLQ, a key's reuse or a policy back
    can do harm: the notification offers `mendq rollback`.

16. Queues that share one wrong setting are proposed together, and a person approves them once
    (`mendq/model/shared_default.py`). Each queue has its own case. A case that follows the first
    one waits until the first fix is verified, and ends if a fix of the shared default did harm.
    Rule 6 does not hold for these cases: their common cause is known, and a person was shown all of
    them. Otherwise, the first day would bring as many proposals as queues, or none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum

from msgspec import Struct, structs

from mendq.cases.record import Notification
from mendq.catalogue.symptom import Steps
from mendq.catalogue.visibility.needed_timeout import (
    build_needs_document,
    list_readable_needs,
    list_unmet_needs,
)
from mendq.heal import guardrails
from mendq.heal.guardrails import find_first_refusal
from mendq.heal.repeats import would_repeat_last_case
from mendq.heal.situation import RefusedWrite, Situation
from mendq.model.case import (
    DLQ_MADE_FOR_SOURCE_KEY,
    MODE_LOWERED_BY_CASE_KEY,
    QUEUE_DELETED_CODE,
    SOURCE_ACCESS_KEY,
    Case,
    Severity,
    start_case,
)
from mendq.model.evidence import Evidence
from mendq.model.facts import Facts, count_affected_messages
from mendq.model.mode import Mode
from mendq.model.plan import Ignore, Plan, Refusal, Refuse
from mendq.model.principals import name_first_principals
from mendq.model.receiver import make_access_digest
from mendq.model.shared_default import SHARED_DEFAULT_KEY
from mendq.model.state import State, find_state_time_limit
from mendq.model.steps import AttributeStep, SetVisibilityTimeout, find_redrive_destination
from mendq.model.tags import find_cloudformation_resource
from mendq.notifications.announcements import choose_severity
from mendq.notifications.own_change import describe_own_change, make_rollback_command
from mendq.notifications.text import format_utc_time

# The guardrails before the queue is read, in the order in which they are asked (rules 1 to 3).
GUARDRAILS_BEFORE_READING = (
    guardrails.refuse_if_stale_or_future,
    guardrails.refuse_if_too_little_evidence,
    guardrails.refuse_if_case_already_open,
    guardrails.refuse_if_claimed,
    guardrails.refuse_if_frozen,
)

# The guardrails about a plan that would change the queue, in the order in which they are asked
# (rules 5 and 6).
GUARDRAILS_ABOUT_PLAN = (
    guardrails.refuse_if_overridden,
    guardrails.refuse_if_out_of_bounds,
    guardrails.refuse_if_too_soon,
    guardrails.refuse_if_too_often,
    guardrails.refuse_if_mass_symptom,
    guardrails.refuse_if_too_little_time,
)

# The guardrails about a waiting case of a shared default, in the order in which they are asked
# (rule 16).
GUARDRAILS_OF_SHARED_DEFAULTS = (
    guardrails.refuse_if_shared_default_stopped,
    guardrails.refuse_if_first_not_verified,
)

# The state in which a plan's case opens if heal does not write the plan itself (rule 7).
OPENING_STATE_BY_MODE = {
    Mode.OBSERVE: State.OBSERVED,
    Mode.PROPOSE: State.PROPOSED,
    Mode.HEAL: State.APPROVED,
}

# The codes of reasons that pass without a person (rule 10).
PASSING_REFUSAL_CODES = frozenset({"too_soon", "mass_symptom", "frozen", "messages_are_taken"})

# The codes of refusals that mean that a longer visibility timeout cannot help. Only after these, a
# change is rolled back automatically (rule 15).
CODES_WITH_ROLLBACK = frozenset({"consumer_failing", "guess_too_far", "readers_set_their_own"})

# The codes of refusals after which failed calls are kept although a case was opened: further ones
# may show that consumers work on batches. One run sees only a few late deletes of each consumer.
CODES_THAT_KEEP_EVIDENCE = frozenset({"need_already_met"})

HEAL_ACTOR = "heal"
APPROVAL_LIMIT_TEXT = "; it can be approved until "


class NeedsFacts(Struct, frozen=True):
    """Request to read the queue and ask `decide` again. So far, nothing forbids a change."""


class NeedsReach(Struct, frozen=True):
    """Request to count the queues that show the symptom, and then ask `decide` again."""


class LeaveHealthyQueue(Struct, frozen=True):
    """Decision to do nothing: the queue has what it needs."""


class WriteFix(Struct, frozen=True):
    """Decision to write the plan's steps, and then record `case`, the transition to `applied`."""

    plan: Plan
    case: Case


class RecordTransition(Struct, frozen=True):
    """Decision to open or move a case and to notify people. The queue is not changed.

    The run's outcome contains `refusal`, if there is one, so it is logged and counted. If
    `must_roll_back` is True, the case's change must be rolled back first. A successful rollback
    replaces this transition.
    """

    case: Case
    notification: Notification
    refusal: Refusal | None = None
    must_roll_back: bool = False


class Decline(Struct, frozen=True):
    """Decision to record nothing. Only the log and the metrics show the refusal."""

    refusal: Refusal


class KeepEvidence(Struct, frozen=True):
    """Decision to keep the evidence, because later failed calls may complete it."""

    refusal: Refusal
    evidence: Evidence


class NoteFailures(Struct, frozen=True):
    """Decision to store the new failed calls with the open case. They show if its fix helps."""

    refusal: Refusal
    open_case: Case


class KeepWaiting(Struct, frozen=True):
    """Decision to leave the waiting case unchanged, and to store the reason with it."""

    refusal: Refusal
    waiting_case: Case


InformationRequest = NeedsFacts | NeedsReach
Rejection = RecordTransition | Decline | KeepEvidence | NoteFailures
Decision = InformationRequest | LeaveHealthyQueue | WriteFix | Rejection | KeepWaiting


class RefusalGround(Enum):
    """What a refusal is about. This decides if people hear about the case (rule 13)."""

    # A freeze, a budget or a cooldown. People hear only about an escalated or overridden case.
    MENDQ = "mendq"
    # The queue's own facts. People hear about a refused case unless the queue is in mode `observe`,
    # and about an escalated or overridden case in every mode.
    QUEUE = "queue"
    # A mass symptom. The case itself notifies nobody: one notification names all queues.
    MANY_QUEUES = "many_queues"


def decide(situation: Situation) -> Decision:
    """Decide what to do about one symptom on one queue. The module's docstring has the rules.

    Returns:
        `NeedsFacts` or `NeedsReach` if more must be known: add that to the situation and ask again.
        Any other decision is final. But if the write of a fix is refused, set `refused_write` and
        ask once more.
    """
    case = situation.waiting_case
    if case is not None:
        return _decide_waiting_case(situation, case)
    if situation.refused_write is not None:
        return _decide_after_refused_write(situation, situation.refused_write)
    if not situation.are_facts_read:
        return _decide_before_reading(situation)
    return _decide_about_queue(situation)


def _decide_before_reading(situation: Situation) -> NeedsFacts | Rejection:
    """Stage 1: decide if the failed calls justify reading the queue."""
    refusal = find_first_refusal(GUARDRAILS_BEFORE_READING, situation)
    if refusal is None or situation.must_report_new_callers:
        return NeedsFacts()
    return _decide_after_refusal(situation, refusal, RefusalGround.MENDQ)


def _decide_about_queue(situation: Situation) -> Decision:
    """Stages 2 and 3: decide if the queue shows the symptom now, and if Mendq may change it."""
    if not situation.has_current_evidence:
        refusal = guardrails.refuse_if_keeps_changing(situation)
        if refusal is not None:
            return _decide_after_queue_refusal(situation, refusal)
        reason = "most failed calls are from before the queue was last changed"
        stale_evidence_refusal = Ignore("before_last_change", reason)
        return _decide_after_refusal(
            _limit_to_current_evidence(situation), stale_evidence_refusal, RefusalGround.MENDQ
        )
    situation = _limit_to_current_evidence(situation)
    plan = _make_plan(situation)
    if isinstance(plan, Refusal):
        return _decide_after_queue_refusal(situation, plan)
    if not plan.steps:
        return LeaveHealthyQueue()
    if situation.reach is None:
        return NeedsReach()
    return _act_on_plan(situation, plan)


def _decide_after_refused_write(
    situation: Situation, refused_write: RefusedWrite
) -> KeepEvidence | NoteFailures | Rejection:
    """Stage 4: decide after a write was refused and the queue was not changed."""
    situation = _limit_to_current_evidence(situation)
    if refused_write.refusal.case_state is None:
        return _keep_failed_calls(situation, refused_write.refusal)
    return _decide_after_refusal(
        situation, refused_write.refusal, RefusalGround.MENDQ, refused_write.plan.steps
    )


def _limit_to_current_evidence(situation: Situation) -> Situation:
    """Return the situation with only the evidence since the queue's last change (rule 4)."""
    return structs.replace(situation, evidence=situation.current_evidence)


def _make_plan(situation: Situation) -> Plan | Refusal:
    """Return the symptom's plan, or a refusal.

    If producers send to the queue, and other queues name it as their DLQ, the plan needs a person:
    only a person knows which of the two roles is meant.
    """
    if situation.symptom.plan is None:
        return Ignore("count_only", "it is only counted")
    facts = situation.facts
    plan = situation.symptom.plan(facts, situation.limits)
    if isinstance(plan, Refusal) or not (facts.dlq_sources and facts.is_sent_to):
        return plan
    two_roles_text = (
        "Producers send to it, and it is named as the DLQ of "
        f"{name_first_principals(facts.source_arns)}"
    )
    reason = f"{plan.reason}. {two_roles_text}: which it is, a person has to say"
    return replace(plan, reason=reason, highest_mode=min(plan.highest_mode, Mode.PROPOSE))


def _act_on_plan(situation: Situation, plan: Plan) -> WriteFix | Rejection:
    """Stage 3: ask the guardrails about the plan, then follow the mode (rules 5 to 8)."""
    refusal = find_first_refusal(GUARDRAILS_ABOUT_PLAN, situation, plan)
    if refusal is not None:
        refusal_ground = (
            RefusalGround.QUEUE if refusal.code == "overridden" else RefusalGround.MENDQ
        )
        return _decide_after_refusal(situation, refusal, refusal_ground, plan.steps)
    plan = _add_shared_default(situation, _lower_to_proposal(situation, plan))
    mode = min(situation.mode, plan.highest_mode)
    if mode is Mode.HEAL and plan.steps[0].owner is situation.writer:
        return WriteFix(plan, _open_case(situation, State.APPLIED, plan.reason, plan.steps))
    return _open_plan_case(situation, plan, mode)


def _lower_to_proposal(situation: Situation, plan: Plan) -> Plan:
    """Return the plan, changed so that a person must approve it if rule 8 requires this.

    Rule 8 requires it if an earlier change by Mendq did not help, was rolled back, or may be the
    cause of the symptom. In modes below `heal`, the plan is returned unchanged.
    """
    if situation.mode is not Mode.HEAL:
        return plan
    highest_mode = min(plan.highest_mode, Mode.PROPOSE)
    if situation.unhelpful_case_id:
        approval_reason = (
            f"case {situation.unhelpful_case_id} did not help or was taken back, so a person has "
            "to approve this one"
        )
        plan = replace(plan, reason=f"{plan.reason}; {approval_reason}", highest_mode=highest_mode)
    if situation.facts.own_change is not None:
        approval_reason = (
            "that change by Mendq may be the cause, so a person must approve this plan"
        )
        plan = replace(plan, reason=f"{plan.reason}; {approval_reason}", highest_mode=highest_mode)
    return plan


def _add_shared_default(situation: Situation, plan: Plan) -> Plan:
    """Return the plan, changed so that a person approves it if it is one of a shared default."""
    shared_default = situation.shared_default
    if shared_default is None:
        return plan
    sentences = (
        plan.reason,
        shared_default.describe(situation.facts.queue_arn),
        shared_default.describe_left_out(),
    )
    reason = ". ".join(sentence for sentence in sentences if sentence)
    return replace(plan, reason=reason, highest_mode=min(plan.highest_mode, Mode.PROPOSE))


def _open_plan_case(situation: Situation, plan: Plan, mode: Mode) -> RecordTransition | Decline:
    """Open the case for a plan that this run does not write, or decline if it repeats the last one.

    The mode decides if the case opens as observed, proposed, or approved for another Lambda.
    """
    state = OPENING_STATE_BY_MODE[mode]
    reason = plan.reason
    longest_wait = find_state_time_limit(state, situation.timing)
    if mode is Mode.HEAL:
        owner = plan.steps[0].owner
        reason = f"{reason}; settings let {owner} do it without a person"
    elif longest_wait is not None:
        reason = f"{reason}{APPROVAL_LIMIT_TEXT}{format_utc_time(situation.now + longest_wait)}"
    case = _open_case(situation, state, reason, plan.steps)
    if plan.source_arn:
        case = replace(case, evidence={**case.evidence, "source": plan.source_arn})
    if would_repeat_last_case(situation, case):
        return Decline(Ignore("said_already", case.reason))
    first_commands = plan.first_commands
    own_change = situation.facts.own_change
    if own_change is not None:
        first_commands = (
            f"decide first: {own_change.rollback_introduction}:",
            make_rollback_command(own_change),
            *first_commands,
        )
    notification = Notification(
        situation.symptom,
        situation.facts,
        choose_severity(
            case,
            situation.mode,
            is_about_plan=True,
            is_reported_elsewhere=case.follows_first_case,
        ),
        advice_before_change=first_commands,
        advice_after_change=tuple(str(step) for step in plan.proposal),
    )
    return RecordTransition(case, notification)


def _decide_after_queue_refusal(situation: Situation, refusal: Refusal) -> NeedsReach | Rejection:
    """Decide about a refusal whose reason is the queue itself.

    If many queues show the symptom, people get one notification for all of them (rule 6). The
    case's reason is then the mass symptom, or `refusal` for a symptom that `notifies_anyway`. In
    mode `observe` the notification is sent only for such a symptom, or if `refusal` escalates.
    """
    if refusal.case_state is None or not refusal.is_reported_in(situation.mode):
        return _decide_after_refusal(situation, refusal, RefusalGround.MENDQ)
    if situation.reach is None:
        return NeedsReach()
    mass_symptom_refusal = guardrails.refuse_if_mass_symptom(situation)
    if mass_symptom_refusal is None:
        return _decide_after_refusal(situation, refusal, RefusalGround.QUEUE)
    notifies_anyway = situation.symptom.notifies_anyway
    must_report = notifies_anyway or refusal.case_state is State.ESCALATED
    mass_symptom_refusal = replace(mass_symptom_refusal, silent_in_observe=not must_report)
    recorded_refusal = refusal if notifies_anyway else mass_symptom_refusal
    rejection = _decide_after_refusal(situation, recorded_refusal, RefusalGround.MANY_QUEUES)
    return structs.replace(rejection, refusal=mass_symptom_refusal)


def _decide_after_refusal(
    situation: Situation, refusal: Refusal, refusal_ground: RefusalGround, steps: Steps = ()
) -> Rejection:
    """Decide what follows from a refusal.

    Open a case if the refusal has a case state, the evidence suffices, no case is open, and the new
    case does not repeat the last one. Otherwise keep the failed calls if they may matter later
    (CODES_THAT_KEEP_EVIDENCE), or decline. If people must
    be notified of new callers, an `Escalate` escalates the open case once more.

    Args:
        situation: The symptom and the queue.
        refusal: The reason not to write.
        refusal_ground: What the refusal is about.
        steps: The steps that were refused, if a plan was refused.
    """
    refusal = refusal.as_recorded_in(situation.mode)
    if situation.must_report_new_callers and refusal.case_state is State.ESCALATED:
        return _report_new_callers(situation, refusal)
    if situation.open_case is not None or not situation.evidence.is_sufficient:
        return _keep_failed_calls(situation, refusal)
    if refusal.case_state is None:
        return Decline(refusal)
    if refusal.case_state is State.OVERRIDDEN:
        steps = situation.records.make_steps_to_last_written(steps)
    case = _open_case(situation, refusal.case_state, refusal.reason, steps, refusal.code)
    if would_repeat_last_case(situation, case):
        if refusal.code in CODES_THAT_KEEP_EVIDENCE and not situation.is_found_by_measurement:
            return KeepEvidence(refusal, situation.evidence)
        return Decline(refusal)
    severity = choose_severity(
        case,
        situation.mode,
        is_about_plan=refusal_ground is RefusalGround.QUEUE,
        is_reported_elsewhere=refusal_ground is RefusalGround.MANY_QUEUES,
    )
    notification = _make_notification(situation, case, refusal, severity)
    if case.state is not State.OVERRIDDEN and case.code == "overridden" and severity:
        new_records = situation.records.make_records_after_reminder(case)
        notification = structs.replace(notification, new_records=new_records)
    return RecordTransition(case, notification, refusal)


def _keep_failed_calls(situation: Situation, refusal: Refusal) -> KeepEvidence | NoteFailures:
    """Keep the failed calls with the open case, or as evidence for a case that may open later."""
    if situation.open_case is not None:
        return NoteFailures(refusal, situation.open_case)
    return KeepEvidence(refusal, situation.evidence)


def _report_new_callers(situation: Situation, refusal: Refusal) -> RecordTransition:
    """Escalate the open case once more, because new callers fail too (rule 12)."""
    open_case = situation.open_case
    assert open_case is not None  # noqa: S101 - callers are new to an open case
    case = open_case.move_to(
        State.ESCALATED,
        _prepend_own_change(situation, refusal.reason),
        situation.now,
        actor=HEAL_ACTOR,
        code=refusal.code,
        evidence=situation.evidence.merge_into(open_case.evidence),
    )
    severity = choose_severity(case, situation.mode, is_about_plan=True)
    notification = _make_notification(situation, case, refusal, severity)
    caller_names = ",".join(situation.evidence.principals())
    return RecordTransition(case, structs.replace(notification, news_distinction=caller_names))


def _decide_waiting_case(situation: Situation, case: Case) -> Decision:
    """Decide about a case that was approved, or whose last step did not help (rules 9, 10)."""
    if situation.refused_write is not None:
        return _keep_waiting_or_end(situation, case, situation.refused_write.refusal)
    if not situation.are_facts_read:
        return _decide_waiting_case_before_reading(situation, case)
    plan = _make_plan_again(situation, case)
    if isinstance(plan, Refusal) and plan.code in PASSING_REFUSAL_CODES:
        return KeepWaiting(plan, case)
    if isinstance(plan, Refusal):
        must_roll_back = _must_roll_back(situation, case, plan)
        return structs.replace(_end_wait(situation, case, plan), must_roll_back=must_roll_back)
    refusal = guardrails.refuse_if_frozen(situation)
    if refusal is None and situation.reach is None:
        return NeedsReach()
    if refusal is None:
        refusal = find_first_refusal(GUARDRAILS_ABOUT_PLAN, situation, plan)
    if refusal is not None:
        return _keep_waiting_or_end(situation, case, refusal)
    steps = _make_step_documents(plan.steps)
    applied_case = case.move_to(
        State.APPLIED, plan.reason, situation.now, steps=steps, actor=situation.writer
    )
    return WriteFix(plan, applied_case)


def _must_roll_back(situation: Situation, case: Case, refusal: Refusal) -> bool:
    """Return True if the case's change must be rolled back, because it did not help (rule 15)."""
    if case.state is not State.INEFFECTIVE or refusal.code not in CODES_WITH_ROLLBACK:
        return False
    if [step["attribute"] for step in case.steps] != [SetVisibilityTimeout.attribute]:
        return False
    (step,) = case.steps
    facts = situation.facts
    facts_after_rollback = replace(
        facts, attributes={**facts.attributes, step["attribute"]: step["before"]}
    )
    return not list_unmet_needs(facts_after_rollback, list_readable_needs(facts_after_rollback))


def _decide_waiting_case_before_reading(
    situation: Situation, case: Case
) -> NeedsFacts | KeepWaiting | RecordTransition:
    """Stage 1 of a waiting case: decide if Mendq may still change its queue."""
    refusal = guardrails.refuse_if_claimed(situation)
    if refusal is not None:
        return KeepWaiting(refusal, case)
    situation_without_facts = structs.replace(
        situation, facts=Facts(situation.facts.queue_arn, {}, {})
    )
    if situation.mode is Mode.HEAL:
        refusal = find_first_refusal(GUARDRAILS_OF_SHARED_DEFAULTS, situation)
        if refusal is None:
            return NeedsFacts()
        return _keep_waiting_or_end(situation_without_facts, case, refusal)
    if situation.is_queue_gone:
        return _end_wait(
            situation_without_facts, case, Refuse(QUEUE_DELETED_CODE, "the queue is gone")
        )
    return _end_wait(
        situation_without_facts,
        case,
        Refuse("not_any_more", "Mendq may no longer change this queue"),
    )


def _make_plan_again(situation: Situation, case: Case) -> Plan | Refusal:
    """Plan the waiting case again (rule 9).

    Return a refusal if Mendq may no longer write: a new queue has the name now, the symptom's plan
    refuses, the queue is healthy, the plan differs from the approved one, or it needs a person or
    another Lambda.
    """
    plan = _make_plan(situation)
    if situation.facts.is_created_after(case.opened_at):
        plan = Refuse("another_queue", "there is another queue of that name by now")
    elif isinstance(plan, Plan) and not plan.steps:
        plan = Refuse("healthy", "the queue has what it needs by now")
    if isinstance(plan, Refusal):
        return plan
    if case.state is State.APPROVED and _make_step_documents(plan.steps) != case.steps:
        steps_text = ", ".join(str(step) for step in plan.steps)
        return Refuse("plan_changed", f"the queue has changed: the plan would be {steps_text} now")
    if not case.is_approved_by_person and plan.highest_mode is not Mode.HEAL:
        return Refuse("not_by_itself", "a person has to see this step first")
    owner = plan.steps[0].owner
    if owner is not situation.writer:
        return Refuse("another_owner", f"{owner} would take the next step")
    return plan


def _keep_waiting_or_end(
    situation: Situation, case: Case, refusal: Refusal
) -> KeepWaiting | RecordTransition:
    """Keep the case waiting if the reason passes without a person; otherwise end it (rule 10)."""
    if refusal.is_retried or refusal.case_state is None or refusal.code in PASSING_REFUSAL_CODES:
        return KeepWaiting(refusal, case)
    if refusal.case_state is State.OVERRIDDEN:
        return _move_case(situation, case, State.OVERRIDDEN, refusal)
    return _end_wait(situation, case, refusal)


def _end_wait(situation: Situation, case: Case, refusal: Refusal) -> RecordTransition:
    """End the wait: expire an approval, or escalate a fix that did not help."""
    if case.state is State.APPROVED:
        return _move_case(situation, case, State.EXPIRED, refusal)
    reason = f"{case.reason}, and Mendq has no further step: {refusal.reason}"
    return _move_case(situation, case, State.ESCALATED, replace(refusal, reason=reason))


def _move_case(
    situation: Situation, case: Case, state: State, refusal: Refusal
) -> RecordTransition:
    moved_case = case.move_to(
        state, refusal.reason, situation.now, actor=situation.writer, code=refusal.code
    )
    severity = choose_severity(
        moved_case,
        situation.mode,
        is_about_plan=True,
        is_reported_elsewhere=refusal.code == "shared_default_stopped",
    )
    notification = _make_notification(situation, moved_case, refusal, severity)
    return RecordTransition(moved_case, notification, refusal)


def _make_notification(
    situation: Situation, case: Case, refusal: Refusal, severity: Severity | None
) -> Notification:
    """Return the notification about a case.

    For an overridden case, it has new records of the case's attributes. Once they are stored, Mendq
    leaves these attributes alone for SILENT_DAYS.
    """
    is_overridden = case.state is State.OVERRIDDEN
    new_records = (
        situation.records.make_overridden_records(case, situation.now) if is_overridden else {}
    )
    return Notification(
        situation.symptom, situation.facts, severity, refusal.next_command, new_records=new_records
    )


def _open_case(
    situation: Situation, state: State, reason: str, steps: Steps, code: str = ""
) -> Case:
    """Return the first transition of a new case.

    The case's evidence also has the counts of messages, the needs of consumers and other details
    that are shown to people.
    """
    symptom, facts = situation.symptom.name, situation.facts
    case = start_case(
        state,
        queue_arn=facts.queue_arn,
        symptom=symptom,
        reason=_prepend_own_change(situation, reason),
        evidence=situation.evidence,
        steps=steps,
        now=situation.now,
        actor=HEAL_ACTOR,
        code=code,
        previous=situation.view.case,
    )
    evidence = {**case.evidence, **find_cloudformation_resource(facts.tags)}
    detail_by_name = {
        "messages": count_affected_messages(symptom, facts),
        "needs": build_needs_document(symptom, facts),
        MODE_LOWERED_BY_CASE_KEY: situation.unhelpful_case_id,
        DLQ_MADE_FOR_SOURCE_KEY: situation.managed_source_arn,
        SOURCE_ACCESS_KEY: _make_source_access_digest(situation, steps),
        SHARED_DEFAULT_KEY: situation.shared_default and situation.shared_default.document(),
    }
    evidence |= {detail_name: detail for detail_name, detail in detail_by_name.items() if detail}
    return replace(case, evidence=evidence)


def _make_source_access_digest(situation: Situation, steps: Steps) -> str:
    """Return the digest of the policy and KMS key of a redrive's source.

    Return an empty text if the steps are no redrive, or if the source was not read. The redrive
    halts before its first message if the digest has changed by then.
    """
    source_arn = find_redrive_destination(_make_step_documents(steps))
    for source in situation.facts.dlq_sources or ():
        if source.queue_arn == source_arn and source.exists:
            return make_access_digest(source.attributes)
    return ""


def _prepend_own_change(situation: Situation, reason: str) -> str:
    """Return the reason. If a change by Mendq may be the cause, begin with a sentence about it."""
    own_change = situation.facts.own_change
    return (
        reason
        if own_change is None
        else f"{describe_own_change(own_change, situation.now)}. {reason}"
    )


def _make_step_documents(steps: Sequence[AttributeStep]) -> tuple[dict[str, str], ...]:
    return tuple(step.document() for step in steps)
