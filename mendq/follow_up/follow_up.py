"""Follow up open cases once a minute.

A due case gets its next transition if the queue's facts or the elapsed time require one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct, field

from mendq.aws.clients import LONGEST_CALL_SECONDS
from mendq.aws.errors import CaseMoved, CaseStoreUnavailable, FactsUnavailable, QueueRefusesUs
from mendq.aws.queue import read_queue_attributes, read_queue_tags
from mendq.cases.context import CaseContext, ManagingContext
from mendq.cases.items import Key
from mendq.cases.record import (
    Notification,
    file_transition,
    hold_back_notification,
    record_transition,
    report_wait,
)
from mendq.cases.table import OpenCase
from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.catalogue.dlq.dlq_messages_arriving import DLQ_MESSAGES_ARRIVING
from mendq.follow_up.case_evidence import DueCase, gather_evidence
from mendq.heal.outcome import Outcome
from mendq.heal.owners import FunctionNameByOwner, call_owner
from mendq.heal.recover import settle_claim_of_any_symptom
from mendq.model.case import Case, Severity
from mendq.model.facts import Facts
from mendq.model.harms import OWN_CHANGE_CODE, find_dlq_arn
from mendq.model.lifecycle import STATES_THAT_CALL_OWNER, due_at, make_next_transition
from mendq.model.limits import Limits
from mendq.model.mode import Mode
from mendq.model.names import HEARTBEAT_METRIC, OwnMetric, count_fixes_being_verified
from mendq.model.state import FINAL_STATES, State
from mendq.notifications.announcements import (
    Announcement,
    choose_severity,
    must_report_waiting_case,
)

# The delay until a case that could not be followed up is due again. Cases that are due earlier come
# first.
CASE_RETRY_DELAY = timedelta(minutes=5)
# The delay until a case is due again if this version of Mendq does not know its symptom. A version
# that knows the symptom may be deployed meanwhile.
UNKNOWN_SYMPTOM_DELAY = timedelta(hours=1)
# The code of the wait for the first queue of a shared default.
EXPECTED_WAIT_CODE = "first_not_verified"
# The longest that one case takes: two calls to an AWS service that does not answer.
LONGEST_SECONDS_PER_CASE = 2 * LONGEST_CALL_SECONDS


class FollowUpResult(Struct):
    """The result of one run of follow_up.

    Args:
        open_cases: The open cases when the run began.
        moved_cases: The cases that got a new transition.
        cases_with_called_owner: The cases whose owner (the Lambda that makes their next write) was
            called.
        cases_of_unknown_symptoms: The cases of symptoms that this version of Mendq does not know.
            They stay open until a version that knows the symptom is deployed, or a person closes
            them.
        errors: The errors, by case id. The keys of errors about filing begin with "filing".
    """

    open_cases: list[OpenCase]
    moved_cases: list[Case] = field(default_factory=list)
    cases_with_called_owner: list[Case] = field(default_factory=list)
    cases_of_unknown_symptoms: list[OpenCase] = field(default_factory=list)
    errors: dict[str, Exception] = field(default_factory=dict)

    def gauge_values(self, now: datetime, limits: Limits) -> dict[OwnMetric, int]:
        """Return, by metric: escalated cases, proposed cases, and fixes being verified."""
        case_count_by_state = Counter(case.state for case in self.open_cases)
        states_and_opening_times = ((case.state, case.opened_at) for case in self.open_cases)
        return {
            OwnMetric.ESCALATED_CASES_OPEN: case_count_by_state[State.ESCALATED],
            OwnMetric.PROPOSED_CASES_OPEN: case_count_by_state[State.PROPOSED],
            OwnMetric.FIXES_BEING_VERIFIED: count_fixes_being_verified(
                states_and_opening_times, now, limits
            ),
        }

    def counter_values(self) -> dict[OwnMetric, int]:
        """Return, by metric, how many recurrences, escalations and errors this run had.

        A recurrence is a case whose calls failed again while its fix was being watched.
        """
        recurrence_count = 0
        escalation_count = 0
        for case in self.moved_cases:
            if case.state is State.INEFFECTIVE and case.came_from is State.WATCHING:
                recurrence_count += 1
            if case.state is State.ESCALATED:
                escalation_count += 1
        return {
            OwnMetric.RECURRENCES: recurrence_count,
            OwnMetric.ESCALATIONS: escalation_count,
            OwnMetric.FOLLOW_UP_ERRORS: len(self.errors),
        }

    def duration_values(self, now: datetime) -> Iterator[tuple[str, float]]:
        """Yield metrics with values in seconds: the oldest open case's age, and times to heal.

        A time to heal is the time from a case's first failed call until this run verified its fix.
        """
        case_ages_seconds = [(now - case.opened_at).total_seconds() for case in self.open_cases]
        yield HEARTBEAT_METRIC, max([0, *case_ages_seconds])
        for case in self.moved_cases:
            if case.state is State.VERIFIED:
                first_failure_at = datetime.fromisoformat(case.evidence["first_at"])
                seconds_to_heal = (case.at - first_failure_at).total_seconds()
                yield OwnMetric.TIME_TO_HEAL, max(0.0, seconds_to_heal)


def follow_up(
    context: ManagingContext,
    function_name_by_owner: FunctionNameByOwner,
    remaining_seconds: Callable[[], float],
) -> FollowUpResult:
    """Follow up every due case, then file the transitions that were not filed yet.

    To file a transition means to copy it to the case bucket and the event bus. An error in one case
    does not stop the others. Cases for which no time is left wait for the next run.

    Args:
        context: This invocation.
        function_name_by_owner: The name of each owner's Lambda function.
        remaining_seconds: Returns the seconds until the invocation must end.

    Raises:
        CaseStoreUnavailable: The open cases could not be listed.
    """
    unsettled_cases = context.open_cases.list_unsettled_cases()
    follow_up_result = FollowUpResult(
        [case for case in unsettled_cases if case.state not in FINAL_STATES]
    )
    # Half of the time, and at least the time for one case, is kept for filing.
    seconds_kept_for_filing = max(
        LONGEST_SECONDS_PER_CASE, (remaining_seconds() + LONGEST_SECONDS_PER_CASE) / 2
    )
    for case in unsettled_cases:
        if case.due_at > context.now:
            continue
        if remaining_seconds() < seconds_kept_for_filing:
            break
        _follow_up_or_postpone(case, context, function_name_by_owner, follow_up_result)
    _copy_unfiled_transitions(context, remaining_seconds, follow_up_result)
    return follow_up_result


def _follow_up_or_postpone(
    listed_case: OpenCase,
    context: ManagingContext,
    function_name_by_owner: FunctionNameByOwner,
    result: FollowUpResult,
) -> None:
    """Follow up one case.

    If this fails, note the error in `result`, and make the case due after CASE_RETRY_DELAY. If
    another run has changed the case meanwhile, do nothing.
    """
    try:
        _follow_up_case(listed_case, context, function_name_by_owner, result)
    except CaseMoved:
        return
    except Exception as error:  # noqa: BLE001 - kept whole for the handler, which logs it
        result.errors[listed_case.case_id] = error
        # If the case store fails here too, the next run finds the case unchanged and due.
        with suppress(CaseStoreUnavailable):
            context.open_cases.postpone_unreadable_case(listed_case, context.now + CASE_RETRY_DELAY)


def _follow_up_case(
    listed_case: OpenCase,
    context: ManagingContext,
    function_name_by_owner: FunctionNameByOwner,
    result: FollowUpResult,
) -> None:
    """Send the case's unsent notification, settle the claim of a run that died, and move the case.

    Stop after the notification if another run holds the case. Stop after the claim if settling it
    already gives the case's outcome. Postpone a case of an unknown symptom.
    """
    symptom = SYMPTOM_BY_NAME.get(listed_case.symptom)
    attribute_names = symptom.attributes if symptom else ()
    case_store_view = context.case_store.look(
        listed_case.queue_arn, listed_case.symptom, attribute_names
    )
    announcement = context.notifier.send_left_unsent(
        listed_case.queue_arn,
        listed_case.symptom,
        case_store_view.notification,
        case_store_view.case,
    )
    if case_store_view.is_held_by_another(context.owner, context.now_for_claims):
        return
    if case_store_view.intent is not None:
        settling_result = settle_claim_of_any_symptom(
            case_store_view, case_store_view.intent, symptom, context
        )
        if isinstance(settling_result, Outcome):
            if settling_result.case is not None:
                result.moved_cases.append(settling_result.case)
            return
        case_store_view = settling_result
    case = case_store_view.case
    if case is not None and case.is_final:
        _finish_final_case(case, announcement, context)
    elif symptom is None:
        result.cases_of_unknown_symptoms.append(listed_case)
        context.open_cases.postpone_unreadable_case(
            listed_case, context.now + UNKNOWN_SYMPTOM_DELAY
        )
    elif case is not None:
        _continue_case(
            DueCase(symptom, case, case_store_view, context), function_name_by_owner, result
        )
        if announcement is Announcement.HELD_BACK and not case.is_redriving:
            hold_back_notification(case, context)


def _finish_final_case(case: Case, announcement: Announcement, context: CaseContext) -> None:
    """Remove a final case from the index of open cases, unless a notification still waits."""
    if announcement is Announcement.HELD_BACK:
        hold_back_notification(case, context)
    elif not announcement.is_pending:
        context.open_cases.mark_case_announced(case, context.now_for_claims)


def _continue_case(
    due_case: DueCase, function_name_by_owner: FunctionNameByOwner, result: FollowUpResult
) -> None:
    """Move the case if its evidence requires this, and call the owner of its next write, if any.

    If the case does not move, store when it is due again, and report a wait that is too long.
    """
    context = due_case.context
    evidence = gather_evidence(due_case)
    moved_case = make_next_transition(due_case.case, evidence, context.now)
    if moved_case is not None:
        result.moved_cases.append(_record_move(moved_case, due_case))
    newest_case = moved_case or due_case.case
    if newest_case.state in STATES_THAT_CALL_OWNER or newest_case.is_redriving:
        call_owner(context.clients, function_name_by_owner, newest_case)
        result.cases_with_called_owner.append(newest_case)
    if moved_case is None:
        _postpone_case(due_case, due_at(due_case.case, evidence, context.now))
        _report_long_wait(due_case)


def _record_move(moved_case: Case, due_case: DueCase) -> Case:
    """Record the case's new transition, and notify people if they must hear about it."""
    hold_up = due_case.view.hold_up
    if moved_case.state is State.EXPIRED and hold_up is not None:
        moved_case = replace(moved_case, reason=f"{moved_case.reason}: {hold_up.reason}")
    severity = choose_severity(
        moved_case,
        Mode.HEAL,
        is_about_plan=True,
        is_reported_elsewhere=_is_reported_elsewhere(moved_case, due_case),
    )
    is_overridden = moved_case.state is State.OVERRIDDEN
    notification = Notification(
        due_case.symptom,
        _read_facts(due_case) if severity else Facts(due_case.case.queue_arn, {}, {}),
        severity,
        new_records=due_case.view.make_overridden_records(moved_case, moved_case.at)
        if is_overridden
        else {},
    )
    return record_transition(moved_case, due_case.view, notification, due_case.context)


def _is_reported_elsewhere(moved_case: Case, due_case: DueCase) -> bool:
    """Return True if another case's notification tells people the same.

    That is the open case of the DLQ if a change may do harm, or the first case of a shared default
    if this one follows it and expires.
    """
    if moved_case.state is State.EXPIRED and moved_case.follows_first_case:
        return True
    return moved_case.code == OWN_CHANGE_CODE and _is_reported_at_dlq(due_case)


def _is_reported_at_dlq(due_case: DueCase) -> bool:
    """Return True if an open `dlq_messages_arriving` case of the DLQ already names this case."""
    dlq_arn = find_dlq_arn(due_case.case.steps)
    if not dlq_arn:
        return False
    context = due_case.context
    dlq_case = context.case_store.look(dlq_arn, DLQ_MESSAGES_ARRIVING.name, ()).case
    if dlq_case is None or not dlq_case.is_open(context.now, context.settings.timing):
        return False
    return dlq_case.code == OWN_CHANGE_CODE and due_case.case.case_id in dlq_case.reason


def _read_facts(due_case: DueCase) -> Facts:
    """Return the queue's facts for a notification.

    If AWS cannot be read, the facts have no attributes and no tags.
    """
    queue_arn = due_case.case.queue_arn
    clients = due_case.context.clients
    facts = Facts(queue_arn, {}, {}, event_names=due_case.view.failures.event_names())
    with suppress(FactsUnavailable, QueueRefusesUs):
        attributes = read_queue_attributes(clients, queue_arn)
        return replace(facts, attributes=attributes, tags=read_queue_tags(clients, queue_arn) or {})
    return facts


def _postpone_case(due_case: DueCase, next_due_at: datetime) -> None:
    """Make the case due at `next_due_at`, or after CASE_RETRY_DELAY if this time is past."""
    now = due_case.context.now
    if next_due_at <= now:
        next_due_at = now + CASE_RETRY_DELAY
    due_case.context.open_cases.postpone(due_case.case, next_due_at)


def _report_long_wait(due_case: DueCase) -> None:
    """Notify people if the case has waited too long for the owner of its next write.

    They are notified at most once a day. The wait for the first queue of a shared default takes
    hours, so it is not reported.
    """
    hold_up = due_case.view.hold_up
    if hold_up is None or due_case.case.state not in STATES_THAT_CALL_OWNER:
        return
    if hold_up.code == EXPECTED_WAIT_CODE:
        return
    if must_report_waiting_case(hold_up.waiting_since, due_case.context.now):
        notification = Notification(due_case.symptom, _read_facts(due_case), Severity.INFO)
        report_wait(due_case.case, due_case.view, notification, due_case.context)


def _copy_unfiled_transitions(
    context: CaseContext, remaining_seconds: Callable[[], float], result: FollowUpResult
) -> None:
    """Copy each transition that was not filed yet to the case bucket and the event bus.

    If AWS refuses a call or does not answer, stop, because the next transition would fail as well.
    Continue after any other error. Errors are noted in `result`.
    """
    try:
        for transition_key in context.open_cases.list_unfiled_transitions(context.now):
            if remaining_seconds() < LONGEST_SECONDS_PER_CASE:
                return
            error = _copy_transition_or_postpone(transition_key, context, result)
            if isinstance(error, BotoCoreError | ClientError):
                return
    except CaseStoreUnavailable as error:
        result.errors["filing"] = error


def _copy_transition_or_postpone(
    transition_key: Key, context: CaseContext, result: FollowUpResult
) -> Exception | None:
    """File one transition. Return None, or the error if this fails.

    After an error, note it in `result` and make the transition due after CASE_RETRY_DELAY.
    """
    try:
        transition = context.open_cases.load_transition(transition_key)
        if transition is not None:
            file_transition(transition, transition_key, context)
    except Exception as error:  # noqa: BLE001 - kept whole for the handler, which logs it
        result.errors[f"filing {transition_key['pk']['S']}"] = error
        context.open_cases.postpone_filing(transition_key, context.now + CASE_RETRY_DELAY)
        return error
    return None
