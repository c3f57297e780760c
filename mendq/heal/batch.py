"""Heal a batch of failed calls or findings: call each step, and collect the outcomes.

These are the steps, in this order. The head of `mendq/heal/decide.py` gives the reasons.

1. Group the failed calls by queue and symptom (`group_failed_calls`).
2. For each group, gather its history from the case store, and ask `decide` before reading the
   queue. Most groups end here.
3. Symptom by symptom, read the queues of all groups that are left, and note which queues show the
   symptom.
4. Decide about each queue by its facts, and carry out the decision.
5. Send one notification for all queues of a mass symptom, and one for a flood of names.

All queues with a symptom are noted before Mendq decides about the first of them. Otherwise, the
first queues of a mass symptom would be changed. If a group fails, the others continue, and SQS
delivers the failed group's messages again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from hashlib import sha256
from typing import Any, TypeVar

from msgspec import Struct, field

from mendq.aws.errors import (
    CaseMoved,
    CaseStoreUnavailable,
    CaseStoreUnreadable,
    EventUnreadable,
    FactsUnavailable,
    NotificationNotSent,
    QueueRefusesUs,
    RetryLater,
)
from mendq.aws.queue import list_managed_arns_cached
from mendq.cases.aws_health import HealthEvent, HealthEvents, read_health
from mendq.cases.context import FixContext
from mendq.cases.finding import read_finding_references
from mendq.cases.record import list_aws_health_lines
from mendq.cases.spread import Reach
from mendq.catalogue import CATALOGUE, find_symptom_of
from mendq.catalogue.symptom import Symptom
from mendq.catalogue.visibility.visibility_timeout_too_short import (
    VISIBILITY_TIMEOUT_TOO_SHORT as TOO_SHORT,
)
from mendq.heal.apply import carry_out_decision
from mendq.heal.decide import NeedsFacts, decide
from mendq.heal.gather import (
    Group,
    add_facts,
    add_reach,
    count_reach,
    gather_and_decide,
    gather_history,
)
from mendq.heal.guardrails import MAXIMUM_COINCIDENT_QUEUES, SECONDS_TO_WRITE
from mendq.heal.outcome import Outcome, make_declined_outcome
from mendq.heal.shared_default import (
    join_shared_defaults,
    leave_shared_default_without_first,
)
from mendq.heal.situation import Situation
from mendq.model.account_and_region import AccountAndRegion
from mendq.model.failed_call import (
    KNOWN_ERROR_CODES,
    FailedCall,
    UnreadableRecord,
    read,
    read_refused_mapping,
)
from mendq.model.ignored_calls import find_ignore_reason
from mendq.model.names import PROBE_ROLE_PURPOSE, OwnMetric
from mendq.model.own_change import OwnChange
from mendq.model.queue import arn_of_name, parse_queue_arn, queue_arn_or_none
from mendq.model.state import State
from mendq.model.tags import DRILL_TAG
from mendq.notifications import notification
from mendq.notifications.announcements import must_report_mass_symptom
from mendq.notifications.own_change import describe_own_changes
from mendq.probe.probe import PROBE_EVENT_NAME, PROBE_QUEUE_NAME
from mendq.probe.send import ProbeRecord

Answer = TypeVar("Answer")
# Reasons why a record is not a failed call of SQS. Such a record is skipped without an error.
NOT_FAILED_CALL_REASONS = frozenset({"not_failed", "not_sqs"})
# The most queues of a batch that are checked although they are not in the list of managed queues.
# Checking so many takes one or two seconds.
MAXIMUM_UNKNOWN_QUEUES = 50
# How long a warm Lambda reuses its list of managed queues.
QUEUE_LIST_LIFETIME = timedelta(minutes=5)
# Errors that are not faults of Mendq: a message must wait or cannot be read, or another run moved
# the case first. The last happens if two runs handle calls of the same minute.
EXPECTED_ERRORS = (CaseMoved, RetryLater, EventUnreadable)


class BatchResult(Struct):
    """The groups of a batch, and the outcome of each.

    Attributes:
        message_ids_by_group: The ids of the messages of each group.
        unreadable_by_message_id: The messages that cannot be read as an event, by message id.
        unknown_error_codes: The error codes that Mendq does not know, one for each failed call.
        ignored_call_reasons: The code of the reason for each ignored failed call whose symptom has
            a plan.
        probe_by_message_id: Mendq's own hourly failed calls (probes), by message id. They are not
            evidence of a symptom.
        health_event_by_message_id: Events of AWS Health, by message id.
        failed_call_count: The number of failed calls in the batch, without probes.
        outcome_by_group: The outcome of each group that was handled.
        error_by_message_id: The error of each message that must be delivered again, by message id.
        skipped_name_count_by_caller: The number of queue names that were not checked because of a
            flood of names, by the principal of the failed calls.
    """

    message_ids_by_group: dict[Group, list[str]] = field(default_factory=dict)
    unreadable_by_message_id: dict[str, UnreadableRecord] = field(default_factory=dict)
    unknown_error_codes: list[str] = field(default_factory=list)
    ignored_call_reasons: list[str] = field(default_factory=list)
    probe_by_message_id: dict[str, FailedCall] = field(default_factory=dict)
    health_event_by_message_id: dict[str, HealthEvent] = field(default_factory=dict)
    failed_call_count: int = 0
    outcome_by_group: dict[Group, Outcome] = field(default_factory=dict)
    error_by_message_id: dict[str, Exception] = field(default_factory=dict)
    skipped_name_count_by_caller: Counter[str] = field(default_factory=Counter)

    def make_lambda_answer(self) -> dict[str, list[dict[str, str]]]:
        """Return the answer for Lambda: the ids of messages that SQS must deliver again.

        https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
        """
        failed_items = [{"itemIdentifier": message_id} for message_id in self.error_by_message_id]
        return {"batchItemFailures": failed_items}

    @property
    def unexpected_errors(self) -> list[Exception]:
        """The errors that may be faults of Mendq. An error of several messages is listed once."""
        distinct_errors = {id(error): error for error in self.error_by_message_id.values()}.values()
        return [error for error in distinct_errors if not isinstance(error, EXPECTED_ERRORS)]

    def count_by_symptom_by_metric(self) -> dict[OwnMetric, Counter[str]]:
        """Return the number of fixes and the number of refusals, each by symptom name."""
        fix_count_by_symptom = Counter[str]()
        refusal_count_by_symptom = Counter[str]()
        for group, outcome in self.outcome_by_group.items():
            if outcome.case is not None and outcome.case.state is State.APPLIED:
                fix_count_by_symptom[group.symptom.name] += 1
            if outcome.refusal is not None:
                refusal_count_by_symptom[group.symptom.name] += 1
        return {
            OwnMetric.AUTO_FIXES: fix_count_by_symptom,
            OwnMetric.REFUSALS: refusal_count_by_symptom,
        }

    def count_by_metric(self) -> dict[OwnMetric, int]:
        """Return the values of the metrics about the batch and its outcomes."""
        counts_by_metric = self.count_by_symptom_by_metric()
        refusal_count = counts_by_metric[OwnMetric.REFUSALS].total()
        return {
            OwnMetric.FAILED_CALLS_SEEN: self.failed_call_count,
            OwnMetric.UNKNOWN_ERROR_CODES: len(self.unknown_error_codes),
            OwnMetric.HEAL_ERRORS: len(self.unexpected_errors),
            OwnMetric.AUTO_FIXES: counts_by_metric[OwnMetric.AUTO_FIXES].total(),
            OwnMetric.REFUSALS: refusal_count + len(self.ignored_call_reasons),
            OwnMetric.ESCALATIONS: sum(
                outcome.is_escalation for outcome in self.outcome_by_group.values()
            ),
        }

    def mark_failed(self, groups: Iterable[Group], error: Exception) -> None:
        """Store the error for all messages of the groups, so that SQS delivers them again."""
        for group in groups:
            self.error_by_message_id.update(dict.fromkeys(self.message_ids_by_group[group], error))

    def set_outcome(self, group: Group, outcome: Outcome) -> None:
        """Store the outcome of a group.

        If the outcome has a refusal for which `is_retried` is True, SQS delivers the group's
        messages again.
        """
        self.outcome_by_group[group] = outcome
        if outcome.refusal and outcome.refusal.is_retried:
            self.mark_failed([group], RetryLater(outcome.refusal.reason))


def heal_failed_calls(body_by_message_id: Mapping[str, str], run: FixContext) -> BatchResult:
    """Heal the queues of a batch of failed calls. Keep errors in the result; raise none.

    Mendq's own probe and events of AWS Health are only recorded.

    Args:
        body_by_message_id: The bodies of the intake queue's messages, by message id.
        run: This invocation.
    """
    batch = group_failed_calls(
        body_by_message_id, AccountAndRegion(run.settings.account, run.clients.region)
    )
    _record_probes_and_health_events(batch, run)
    return _heal_groups(batch, run)


def heal_findings(request: Mapping[str, Any], run: FixContext) -> BatchResult:
    """Heal the queues on which a scan found a symptom. Keep errors in the result; raise none.

    Skip a finding if its queue is in another account or region, or if its symptom is unknown, has
    no plan, or cannot be found by a scan. A finding whose handling fails is not tried again,
    because the next scan finds the symptom again if it still shows.

    Args:
        request: `{"found": [{"queue_arn", "symptom"}, ...]}`. Findings after the first
            MAXIMUM_FINDINGS_PER_CALL are not read (`read_finding_references`).
        run: This invocation.
    """
    symptom_by_name = {
        symptom.name: symptom for symptom in CATALOGUE if symptom.plan and symptom.detection
    }
    batch = BatchResult()
    for finding in read_finding_references(request):
        symptom = symptom_by_name.get(finding.symptom)
        if (
            symptom is None
            or not queue_arn_or_none(finding.queue_arn)
            or not run.is_here(finding.queue_arn)
        ):
            continue
        group = Group(finding.queue_arn, symptom, must_measure=True, shared_finding=finding)
        batch.message_ids_by_group[group] = [str(len(batch.message_ids_by_group))]
    return _heal_groups(batch, run)


def group_failed_calls(
    body_by_message_id: Mapping[str, str], account_and_region: AccountAndRegion
) -> BatchResult:
    """Read the messages and group their failed calls by queue and symptom.

    An event that was delivered twice is in its group once. Keep errors in the result; raise none.

    Args:
        body_by_message_id: The bodies of the intake queue's messages, by message id.
        account_and_region: The account and region whose queues Mendq manages.
    """
    batch = BatchResult()
    calls_by_queue_and_symptom = defaultdict[tuple[str, Symptom], dict[str, FailedCall]](dict)
    message_ids_by_queue_and_symptom = defaultdict[tuple[str, Symptom], list[str]](list)
    for message_id, body in body_by_message_id.items():
        call: FailedCall | UnreadableRecord = read_refused_mapping(body) or read(body)
        if isinstance(call, UnreadableRecord):
            _note_unreadable(message_id, body, call, account_and_region, batch)
        elif is_probe(call, account_and_region):
            batch.probe_by_message_id[message_id] = call
        else:
            batch.failed_call_count += 1
            symptom = _recognize_symptom(call, account_and_region, batch)
            if symptom is not None and call.queue_arn is not None:
                queue_and_symptom = (call.queue_arn, symptom)
                calls_by_queue_and_symptom[queue_and_symptom].setdefault(call.event_id, call)
                message_ids_by_queue_and_symptom[queue_and_symptom].append(message_id)
    for queue_and_symptom, call_by_event_id in calls_by_queue_and_symptom.items():
        queue_arn, symptom = queue_and_symptom
        grouped_calls = tuple(call_by_event_id.values())
        may_all_be_races = all(call.may_be_a_race for call in grouped_calls)
        group = Group(queue_arn, symptom, grouped_calls, must_measure=may_all_be_races)
        batch.message_ids_by_group[group] = message_ids_by_queue_and_symptom[queue_and_symptom]
    return batch


def _note_unreadable(
    message_id: str,
    body: str,
    unreadable: UnreadableRecord,
    account_and_region: AccountAndRegion,
    batch: BatchResult,
) -> None:
    """Add an AWS Health event or an unreadable message to the result.

    Skip a record of a call that did not fail or was not made to SQS.
    """
    health_event = read_health(body, account_and_region.account, account_and_region.region)
    if health_event is not None:
        batch.health_event_by_message_id[message_id] = health_event
    elif unreadable.reason not in NOT_FAILED_CALL_REASONS:
        batch.unreadable_by_message_id[message_id] = unreadable
        batch.error_by_message_id[message_id] = EventUnreadable(unreadable.reason)


def is_probe(call: FailedCall, account_and_region: AccountAndRegion) -> bool:
    """Return True if the call is Mendq's probe: a SendMessage by the probe's role to its queue.

    If CloudTrail's record does not name the queue, only the role and the operation are compared.
    """
    principal_purpose = account_and_region.purpose_of(call.principal_arn)
    if principal_purpose != PROBE_ROLE_PURPOSE or call.event_name != PROBE_EVENT_NAME:
        return False
    probe_queue_arn = arn_of_name(
        PROBE_QUEUE_NAME, account_and_region.region, account_and_region.account
    )
    return call.queue_arn in (None, probe_queue_arn)


def _recognize_symptom(
    call: FailedCall, account_and_region: AccountAndRegion, batch: BatchResult
) -> Symptom | None:
    """Return the symptom that a call points to, or None if Mendq ignores the call.

    Add an unknown error code to the batch. Add the reason to ignore the call only if Mendq has a
    plan for the symptom.
    """
    if call.error_code not in KNOWN_ERROR_CODES:
        batch.unknown_error_codes.append(call.raw_error_code)
    symptom = find_symptom_of(call)
    ignore_reason = find_ignore_reason(call, symptom, account_and_region)
    if call.may_be_a_race:
        symptom = TOO_SHORT
    if ignore_reason in (None, "may_be_a_race"):
        return symptom
    if symptom is not None and symptom.plan is not None:
        batch.ignored_call_reasons.append(ignore_reason)
    return None


def _record_probes_and_health_events(batch: BatchResult, run: FixContext) -> None:
    """Record that the probe arrived and what AWS Health reports. Take no other action on either."""
    probe_record = run.open_store(ProbeRecord)
    health_events = run.open_store(HealthEvents)
    store_function_by_message_id = {
        message_id: partial(probe_record.store_seen_probe, call)
        for message_id, call in batch.probe_by_message_id.items()
    }
    store_function_by_message_id |= {
        message_id: partial(health_events.note_event, health_event)
        for message_id, health_event in batch.health_event_by_message_id.items()
    }
    for message_id, store_function in store_function_by_message_id.items():
        try:
            store_function(run.now)
        except (CaseStoreUnavailable, CaseStoreUnreadable) as error:
            batch.error_by_message_id[message_id] = error


SituationByGroup = dict[Group, Situation]


def _heal_groups(batch: BatchResult, run: FixContext) -> BatchResult:
    """Heal the groups of the batch, symptom by symptom. Return the batch with the outcomes."""
    for (symptom, spread_subject), situations in _gather_situations(batch, run).items():
        try:
            _heal_symptom(symptom, spread_subject, situations, batch, run)
        except Exception as error:  # noqa: BLE001 - the messages come again, for the notification too
            batch.mark_failed(situations, error)
    if batch.skipped_name_count_by_caller:
        with suppress(CaseStoreUnavailable, CaseStoreUnreadable, NotificationNotSent):
            _notify_name_flood(batch.skipped_name_count_by_caller, run)
    return batch


def _gather_situations(
    batch: BatchResult, run: FixContext
) -> Mapping[tuple[Symptom, str], SituationByGroup]:
    """Gather each group's history, and decide about the groups whose queue need not be read.

    Half of the remaining time is reserved for the queues that must be read.

    Returns:
        The situations whose queues must be read, by symptom and by the key under which the
        case store counts the symptom's queues. Drills have a separate key.
    """
    situations_by_symptom = defaultdict[tuple[Symptom, str], SituationByGroup](dict)
    reserved_seconds = run.remaining_seconds() / 2
    group_count_by_symptom = Counter(group.symptom.name for group in batch.message_ids_by_group)
    for group in _select_groups(batch, run):
        is_only_group = group_count_by_symptom[group.symptom.name] == 1
        gather_group = partial(_gather_or_decide, group, run, is_only_group=is_only_group)
        situation_or_outcome = _attempt_for_group(gather_group, group, batch, run, reserved_seconds)
        if isinstance(situation_or_outcome, Situation):
            situations_by_symptom[group.symptom, situation_or_outcome.mass_symptom_key][group] = (
                situation_or_outcome
            )
        elif situation_or_outcome is not None:
            batch.set_outcome(group, situation_or_outcome)
    return situations_by_symptom


def _select_groups(batch: BatchResult, run: FixContext) -> list[Group]:
    """Select all groups of known queues, and up to MAXIMUM_UNKNOWN_QUEUES other groups.

    A queue is known if it is managed, or if the settings contain exactly its name. If there are at
    most MAXIMUM_UNKNOWN_QUEUES groups, or the managed queues cannot be listed, select all groups.

    Groups of unknown queues are taken from each caller in turn, so that one caller with many queue
    names cannot crowd out the rest. The other groups are counted and skipped. Mendq does not return
    them to SQS, because that would cause another flood. A caller that continues to fail gets a turn
    in a later batch.
    """
    groups = list(batch.message_ids_by_group)
    consent = run.settings.consent
    if len(groups) <= MAXIMUM_UNKNOWN_QUEUES:
        return groups
    listing_period = run.now.timestamp() // QUEUE_LIST_LIFETIME.total_seconds()
    try:
        known_queue_arns = list_managed_arns_cached(
            run.clients, run.settings.account, consent, listing_period
        )
    except FactsUnavailable:
        return groups
    unknown_name_count_by_caller = Counter[str]()
    turn_by_group = dict[Group, int]()
    for group in groups:
        queue_name = parse_queue_arn(group.queue_arn).name
        if group.queue_arn in known_queue_arns or consent.has_exact_name(queue_name):
            turn_by_group[group] = 0
        else:
            unknown_name_count_by_caller.update(group.callers)
            turn_by_group[group] = min(
                unknown_name_count_by_caller[caller] for caller in group.callers
            )
    sorted_groups = sorted(groups, key=turn_by_group.__getitem__)
    known_group_count = sum(turn == 0 for turn in turn_by_group.values())
    maximum_group_count = MAXIMUM_UNKNOWN_QUEUES + known_group_count
    for group in sorted_groups[maximum_group_count:]:
        batch.skipped_name_count_by_caller.update(group.callers)
    return sorted_groups[:maximum_group_count]


def _gather_or_decide(group: Group, run: FixContext, *, is_only_group: bool) -> Situation | Outcome:
    """Return the group's situation if its queue must be read, else the group's outcome."""
    situation = gather_history(group, run, is_only_group=is_only_group)
    if isinstance(situation, Outcome):
        return situation
    decision = decide(situation)
    if isinstance(decision, NeedsFacts):
        return situation
    return carry_out_decision(decision, situation, run)


def _heal_symptom(
    symptom: Symptom,
    spread_subject: str,
    situations: SituationByGroup,
    batch: BatchResult,
    run: FixContext,
) -> None:
    """Read the queues that may show one symptom, count them, then decide about each of them.

    If it is a mass symptom that people must hear about, send one notification for all queues.

    A queue that was changed after its calls failed is not counted. No queue is counted if scans
    found a fault in the configuration and no call failed: many queues may have had such a fault for
    long, and the scan limits how many of them it reports per day. If many share one value, they are
    proposed together (`mendq/heal/shared_default.py`).
    """
    situations_with_facts = _read_queues(situations, batch, run)
    spread = frozenset[str]()
    if symptom.is_of_configuration and all(group.must_measure for group in situations):
        situations_with_facts = join_shared_defaults(situations_with_facts)
    else:
        spread = _note_spread(spread_subject, situations, situations_with_facts, run)
    for group, situation in situations_with_facts.items():
        opened_case_ids = {
            outcome.case.case_id for outcome in batch.outcome_by_group.values() if outcome.case
        }
        joined_situation = leave_shared_default_without_first(situation, opened_case_ids)
        heal_queue = partial(_heal_queue, joined_situation, spread, run)
        outcome = _attempt_for_group(heal_queue, group, batch, run)
        if outcome is not None:
            batch.set_outcome(group, outcome)
    must_notify_mass_symptom = any(
        must_report_mass_symptom(
            batch.outcome_by_group[group].refusal,
            situation.mode,
            is_drill=DRILL_TAG in situation.facts.tags,
        )
        for group, situation in situations.items()
        if group in batch.outcome_by_group
    )
    if must_notify_mass_symptom:
        own_changes = _list_own_changes(situations_with_facts.values())
        _notify_mass_symptom(symptom, spread, situations, own_changes, run)


def _note_spread(
    spread_subject: str,
    situations: SituationByGroup,
    situations_with_facts: SituationByGroup,
    run: FixContext,
) -> frozenset[str]:
    """Note the queues that show the symptom. Return all queues that showed it in the last hour.

    Leave out a queue that was changed after its calls failed. Include a queue that could not be
    read.

    Args:
        spread_subject: The key under which the case store counts the symptom's queues.
        situations: All situations of the symptom.
        situations_with_facts: The situations whose queues could be read.
        run: This invocation.
    """
    changed_groups = {
        group
        for group, situation in situations_with_facts.items()
        if situation.was_changed_after_failures
    }
    unchanged_queue_arns = [group.queue_arn for group in situations if group not in changed_groups]
    # If the symptom has only one group, its history was read together with the spread.
    stored_spread = next(iter(situations.values())).view.spread_item
    return run.case_store.note_spread(unchanged_queue_arns, spread_subject, run.now, stored_spread)


def _list_own_changes(situations: Iterable[Situation]) -> list[OwnChange]:
    """Return the changes by Mendq that may have caused the symptom on these queues."""
    own_changes = [situation.facts.own_change for situation in situations]
    return [own_change for own_change in own_changes if own_change is not None]


def _read_queues(
    situations: SituationByGroup, batch: BatchResult, run: FixContext
) -> SituationByGroup:
    """Read the facts of each situation's queue, and return the situations with these facts.

    Leave out a group whose queue could not be read. Reserve half of the remaining time for the
    decisions.
    """
    situations_with_facts = SituationByGroup()
    reserved_seconds = run.remaining_seconds() / 2
    for group, situation in situations.items():
        read_queue = partial(_read_queue, situation, run)
        situation_or_outcome = _attempt_for_group(read_queue, group, batch, run, reserved_seconds)
        if isinstance(situation_or_outcome, Situation):
            situations_with_facts[group] = situation_or_outcome
        elif situation_or_outcome is not None:
            batch.set_outcome(group, situation_or_outcome)
    return situations_with_facts


def _read_queue(situation: Situation, run: FixContext) -> Situation | Outcome:
    """Return the situation with the queue's facts, or an outcome if the policy denies the read."""
    try:
        return add_facts(situation, run)
    except QueueRefusesUs as error:
        return make_declined_outcome("queue_refuses_us", str(error))


def _heal_queue(situation: Situation, spread: frozenset[str], run: FixContext) -> Outcome:
    """Decide about a queue whose facts were read, and carry out the decision.

    Args:
        situation: The symptom and the queue, with its facts.
        spread: The queues that showed the symptom in the last hour.
        run: This invocation.

    Raises:
        FactsUnavailable, CaseStoreUnavailable, StepFailed, NotificationNotSent: The messages must
            be delivered again.
    """
    if len(spread) <= MAXIMUM_COINCIDENT_QUEUES:
        situation = situation.with_reach(Reach(spread), run.remaining_seconds())
    count_queues = partial(add_reach, spread=spread, run=run)
    decision, situation = gather_and_decide(situation, count_queues=count_queues)
    return carry_out_decision(decision, situation, run)


def _attempt_for_group(
    action: Callable[[], Answer],
    group: Group,
    batch: BatchResult,
    run: FixContext,
    reserved_seconds: float = 0,
) -> Answer | None:
    """Call `action` for one group, and return its answer.

    If `action` fails, or less time is left than `reserved_seconds` or SECONDS_TO_WRITE, return None
    and make SQS deliver the group's messages again.
    """
    if run.remaining_seconds() < max(SECONDS_TO_WRITE, reserved_seconds):
        batch.mark_failed([group], RetryLater("too little of the Lambda's time is left"))
        return None
    try:
        return action()
    except Exception as error:  # noqa: BLE001 - the result keeps it for the handler, which logs it
        batch.mark_failed([group], error)
        return None


def _notify_mass_symptom(
    symptom: Symptom,
    spread: frozenset[str],
    groups: Iterable[Group],
    own_changes: Sequence[OwnChange],
    run: FixContext,
) -> None:
    """Send people one notification about all queues that show the symptom.

    The list begins with one queue of each caller. So if a long list is cut, each caller still has a
    queue in it.

    Args:
        symptom: The catalogue's entry.
        spread: The queues that showed it in the last hour.
        groups: The groups of this batch with this symptom.
        own_changes: Changes by Mendq that may have caused the symptom on some of the queues.
        run: This invocation.

    Raises:
        FactsUnavailable, CaseStoreUnavailable, CaseStoreUnreadable, NotificationNotSent: The
            messages must be delivered again.
    """
    queue_arn_by_caller = {caller: group.queue_arn for group in groups for caller in group.callers}
    reach = count_reach(spread, [group.queue_arn for group in groups], run)
    reached_arns_of_callers = [
        queue_arn for queue_arn in queue_arn_by_caller.values() if queue_arn in reach.queue_arns
    ]
    listed_queue_arns = dict.fromkeys([*reached_arns_of_callers, *sorted(reach.queue_arns)])
    mass_symptom = notification.MassSymptom(
        symptom.name,
        symptom.sentence,
        symptom.runbook,
        symptom.advice_if_many.sentence,
        symptom.advice_if_many.make_command(min(reach.queue_arns)),
        () if symptom.is_of_configuration else list_aws_health_lines(run),
        describe_own_changes(own_changes, run.now),
    )
    place_text = notification.format_account_and_region(run.settings.account, run.clients.region)
    notification_text = notification.describe_mass_symptom(
        mass_symptom, listed_queue_arns, reach.managed_queue_count, run.now, place_text
    )
    joined_queue_arns = " ".join(sorted(reach.queue_arns))
    news_key = f"mass_symptom:{sha256(joined_queue_arns.encode()).hexdigest()[:12]}"
    run.notifier.send_about_account(symptom.name, news_key, notification_text)


def _notify_name_flood(name_count_by_caller: Counter[str], run: FixContext) -> None:
    """Notify people of callers whose failed calls name many unknown queues.

    The key of the news is the caller with the most skipped names, so people are notified at most
    once a day for each such caller.

    Args:
        name_count_by_caller: The number of skipped queue names by caller.
        run: This invocation.
    """
    place_text = notification.format_account_and_region(run.settings.account, run.clients.region)
    callers_and_counts = name_count_by_caller.most_common()
    notification_text = notification.describe_call_flood(callers_and_counts, run.now, place_text)
    run.notifier.send_about_account("flood", f"flood:{callers_and_counts[0][0]}", notification_text)
