"""Gather: read what `decide` must know about one symptom of one queue.

A group is a scan's finding, or failed calls that point to one symptom of one queue.
`gather_history` makes a `Situation` from a group. `gather_and_decide` asks `decide` about it, and
gathers more if `decide` needs more.

Not every group becomes a situation. A situation must have a queue, its mode, and its history. So
these groups are declined first, in this order, and `decide` is never asked:

    code                    reason
    queue_gone              The queue does not exist, and the symptom is about an existing queue.
    never_seen              The queue does not exist, and neither a scan, a case nor a setting names
                            it. Anyone can make calls fail on a name that they have made up. Lambda
                            names the timeout only of a queue that exists, so `mapping_refused` is
                            not declined.
    not_managed             Neither settings nor tags give the queue a mode. A finding about a DLQ
                            that Mendq made for a managed queue is reported nevertheless.
    muted                   A mute of the settings holds for the queue and the symptom, and no fix
                            of an open case needs the failed calls as evidence.
    queue_refuses_us        The queue's policy denies Mendq access, so tags or facts are unknown.
    case_store_unreadable   The case store holds something unreadable, so the history is unknown.

A finding only says where to look. It becomes a situation when a measurement confirms it, because
that measurement is the situation's evidence. AWS charges for each measurement, so the first two
questions are asked before it. A finding is declined for these reasons, in this order:

    case_already_open       The finding was noted with its open case, or the case moved, within the
                            last day.
    said_already            Its case would certainly be a repeat.
    not_found               The measurement does not confirm the finding.
    said_of_another         An open case of another queue already asks for the same missing queue.

The last two rows of the first table answer errors that any read can raise. The dry run declines
only for not_managed, not_found and said_of_another.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct, field, structs

from mendq.aws.consumers import FunctionMetrics, copy_function_metrics
from mendq.aws.dlqs import list_source_arns
from mendq.aws.errors import (
    CaseStoreUnreadable,
    NotificationNotSent,
    QueueGone,
    QueueRefusesUs,
)
from mendq.aws.facts_reader import FactsReader
from mendq.aws.queue import read_attributes_if_queue_exists, read_queue_attributes, read_queue_tags
from mendq.cases import items
from mendq.cases.context import FixContext
from mendq.cases.finding import SharedFinding
from mendq.cases.made_dlqs import MadeDlqs
from mendq.cases.measured_facts import MeasuredFacts, unpack_measured_facts
from mendq.cases.pins import NEEDS_FROM_PEOPLE, add_pins
from mendq.cases.seen_moves import SeenMoves
from mendq.cases.spread import Reach, mass_symptom_key
from mendq.cases.view import CaseStoreView
from mendq.catalogue.symptom import Symptom
from mendq.heal.decide import Decision, NeedsFacts, NeedsReach, decide
from mendq.heal.guardrails import MAXIMUM_COINCIDENT_QUEUES
from mendq.heal.outcome import Outcome, make_declined_outcome
from mendq.heal.recover import recover_left_claim
from mendq.heal.repeats import was_noted_recently, would_repeat_without_metrics
from mendq.heal.situation import Situation
from mendq.model.evidence import EVIDENCE_MAXIMUM_AGE, Evidence, Sighting
from mendq.model.facts import Facts, Need
from mendq.model.failed_call import FailedCall
from mendq.model.harms import (
    CAUSABLE_SYMPTOMS,
    find_causing_change,
    list_causing_attributes,
    may_case_have_caused_symptom,
)
from mendq.model.metrics import Measurement, Window
from mendq.model.mode import Mode
from mendq.model.mutes import Mute, find_mute
from mendq.model.own_change import OwnChange
from mendq.model.plan import Ignore, Refusal
from mendq.model.queue import parse_queue_arn, queue_arn_or_none
from mendq.model.state import STATES_WITH_FIX_IN_PLACE
from mendq.notifications.text import format_count

Needs = Collection[Need]
# How far in the future a failed call may be. CloudTrail's clock may be ahead of Mendq's.
FUTURE_TOLERANCE = timedelta(minutes=5)


class Group(Struct, frozen=True, eq=False):
    """The failed calls of one batch that point to one symptom of one queue, or a scan's finding.

    Attributes:
        queue_arn: The queue.
        symptom: The catalogue's entry.
        calls: The failed calls. Empty for a finding.
        must_measure: True for a finding, and for calls that prove nothing because all may be races
            (`FailedCall.may_be_a_race`). The queue must then be measured.
        shared_finding: For a finding, the other queues that name the same missing queue, and what
            the scan knows about the sources of a DLQ.
    """

    queue_arn: str
    symptom: Symptom
    calls: tuple[FailedCall, ...] = ()
    must_measure: bool = False
    shared_finding: SharedFinding = field(default_factory=SharedFinding)

    @property
    def callers(self) -> frozenset[str]:
        """The principals whose calls failed."""
        return frozenset(call.principal_arn for call in self.calls)


# A function that adds the information to a situation for which `decide` has asked.
SituationGatherer = Callable[[Situation], Situation]


def gather_and_decide(
    situation: Situation,
    *,
    count_queues: SituationGatherer,
    read_queue: SituationGatherer | None = None,
) -> tuple[Decision, Situation]:
    """Ask `decide`. If it needs more facts, gather them and ask again.

    The batches of heal, approved cases, the dry run and the backtest all use this function. They
    differ only in how they gather.

    Args:
        situation: The symptom and the queue to decide about.
        count_queues: Answers `NeedsReach`. Returns the situation with the queues that show the
            symptom (`reach`).
        read_queue: Answers `NeedsFacts`. Returns the situation with the queue's facts. None if the
            situation has them already.

    Returns:
        The final decision, and the situation with everything that was gathered for it.
    """
    decision = decide(situation)
    if isinstance(decision, NeedsFacts) and read_queue is not None:
        situation = read_queue(situation)
        decision = decide(situation)
    if isinstance(decision, NeedsReach):
        situation = count_queues(situation)
        decision = decide(situation)
    return decision, situation


def gather_history(group: Group, run: FixContext, *, is_only_group: bool) -> Situation | Outcome:
    """Return the situation before the queue is read, or the outcome if the group is declined.

    If a run died after it claimed a write, settle that write first. Do this even if the queue's
    mode allows no writes now, because people must hear about the write.

    Args:
        group: The failed calls, or the finding.
        run: This invocation.
        is_only_group: True if no other group of the batch has this symptom. Then the read of the
            case store also returns the queues that showed the symptom in the last hour.

    Returns:
        The situation, for a finding with measured facts. Or an outcome, if the group is declined or
        a dead run's write was recorded.

    Raises:
        FactsUnavailable, CaseStoreUnavailable, NotificationNotSent: The group must be delivered
            again.
    """
    try:
        return _gather_history(group, run, is_only_group=is_only_group)
    except QueueRefusesUs as error:
        return make_declined_outcome("queue_refuses_us", str(error))
    except CaseStoreUnreadable as error:
        return make_declined_outcome("case_store_unreadable", str(error))


def _gather_history(group: Group, run: FixContext, *, is_only_group: bool) -> Situation | Outcome:
    """Do what `gather_history` does, but raise QueueRefusesUs and CaseStoreUnreadable."""
    queue_arn = group.queue_arn
    symptom = group.symptom
    tags = _read_tags(group, run)
    if tags is None and symptom.needs:
        return make_declined_outcome("queue_gone", "the queue is gone")
    spread_subject = mass_symptom_key(symptom.name, tags or {}) if is_only_group else ""
    view: CaseStoreView | Outcome
    view = run.case_store.look(queue_arn, symptom.name, symptom.attributes, spread_subject)
    _send_unsent_notification(group, view, run)
    view = recover_left_claim(view, symptom, run)
    if isinstance(view, Outcome):
        return view
    if tags is None and not (_has_certainly_existed(group) or _is_known_name(queue_arn, run)):
        reason = "no such queue was ever seen, and no setting names it alone"
        return make_declined_outcome("never_seen", reason)
    situation = make_situation_if_managed(group, run, tags or {}, view)
    if isinstance(situation, Outcome):
        return situation
    mute = _find_mute(group, view, run)
    if mute is not None:
        reason = f"muted in the settings until {mute.until}: {mute.reason}"
        return make_declined_outcome("muted", reason)
    if group.must_measure and (not group.calls or _take_measuring_turn(queue_arn, run)):
        return _measure_finding(group, situation, run)
    return _add_evidence_of_calls(group, situation, run)


def _find_mute(group: Group, view: CaseStoreView, run: FixContext) -> Mute | None:
    """Return the mute that hides the group; None if Mendq must handle it.

    A fix that was made before the mute is still verified, so its failed calls count.
    """
    if view.case is not None and view.case.state in STATES_WITH_FIX_IN_PLACE:
        return None
    queue_name = parse_queue_arn(group.queue_arn).name
    return find_mute(run.settings.mutes, queue_name, group.symptom.name, run.now.date())


def _send_unsent_notification(group: Group, view: CaseStoreView, run: FixContext) -> None:
    """Send the notification that an earlier run stored and did not send, if there is one.

    Drop it if its case has moved since. Do not raise errors of SNS or EventBridge, because a queue
    is fixed even if people cannot be notified.
    """
    if view.notification is None:
        return
    with suppress(NotificationNotSent):
        run.notifier.send_left_unsent(
            group.queue_arn, group.symptom.name, view.notification, view.case
        )


def _add_evidence_of_calls(group: Group, situation: Situation, run: FixContext) -> Situation:
    """Return the situation with the group's failed calls and the stored calls as evidence.

    Leave out calls that are too old or too far in the future, and calls that may have failed only
    because the message was already deleted.
    """
    usable_calls = [
        call for call in group.calls if is_fresh(call, run.now) and not call.may_be_a_race
    ]
    fresh_sightings = tuple(Sighting.of(call) for call in usable_calls)
    stored_sightings = situation.view.evidence.sightings
    evidence = Evidence.of([*stored_sightings, *fresh_sightings]).without_old_sightings(run.now)
    return structs.replace(situation, evidence=evidence, fresh_sightings=fresh_sightings)


def is_fresh(call: FailedCall, now: datetime) -> bool:
    """Return True if a call is at most EVIDENCE_MAXIMUM_AGE old.

    Return True also for a call in the future that is at most FUTURE_TOLERANCE ahead.
    """
    return -FUTURE_TOLERANCE <= now - call.event_time <= EVIDENCE_MAXIMUM_AGE


def _read_tags(group: Group, run: FixContext) -> Mapping[str, str] | None:
    """Return the queue's tags, or None if there is no such queue.

    If the queue's policy denies the read, return an empty mapping if the symptom `notifies_anyway`
    and the settings manage the queue by its name.

    Raises:
        QueueRefusesUs: The queue's policy denies the read, and one of these conditions is not met.
    """
    try:
        return read_queue_tags(run.clients, group.queue_arn)
    except QueueRefusesUs:
        if group.symptom.notifies_anyway and find_mode(group.queue_arn, run, {}) is not None:
            return {}
        raise


def _has_certainly_existed(group: Group) -> bool:
    """Return True if Lambda has named the queue's visibility timeout: then the queue existed.

    CloudFormation often deletes a new queue within minutes after Lambda refused its mapping, so no
    scan has recorded its name.
    """
    return any(call.refused_function_seconds is not None for call in group.calls)


def _is_known_name(queue_arn: str, run: FixContext) -> bool:
    """Return True if settings contain exactly this queue's name, or a scan or case recorded it.

    A caller may have invented any other name.
    """
    if run.settings.consent.has_exact_name(parse_queue_arn(queue_arn).name):
        return True
    return bool(run.baselines.load(queue_arn) or run.open_cases.list_newest_cases([queue_arn]))


def _take_measuring_turn(queue_arn: str, run: FixContext) -> bool:
    """Return True, once an hour, if Mendq may measure the queue because of failed calls.

    Then also note in the case store that the hour's turn is taken. The limit is needed because AWS
    charges for metrics, and anyone can make calls fail.
    """
    key = items.item_key(queue_arn, "measured")
    turn_over_condition = "attribute_not_exists(pk) OR expires_at <= :now"
    turn_ends_at = run.now + timedelta(hours=1)
    update_expression = "SET expires_at = :until"
    return run.case_store.change(
        key, update_expression, turn_over_condition, until=turn_ends_at, now=run.now
    )


def make_situation_if_managed(
    group: Group, run: FixContext, tags: Mapping[str, str], view: CaseStoreView
) -> Situation | Outcome:
    """Return the situation without evidence, or an outcome if the queue is not managed.

    The situation's mode is the queue's mode by settings and tags, or the symptom's autonomy if that
    is lower. An unmanaged DLQ that Mendq made for a managed source counts as managed in mode
    `observe`, if the group must be measured.
    """
    mode = find_mode(group.queue_arn, run, tags)
    managed_source_arn = ""
    if mode is None and group.must_measure:
        managed_source_arn = _find_managed_source(group.queue_arn, tags, run)
        mode = Mode.OBSERVE if managed_source_arn else None
    if mode is None:
        return make_declined_outcome("not_managed", "the queue is not managed by Mendq")
    lowest_mode = min(mode, find_autonomy(group.symptom, run, mode))
    facts = Facts(group.queue_arn, {}, tags)
    return make_situation(
        group.symptom, facts, lowest_mode, view, run, managed_source_arn=managed_source_arn
    )


def make_situation(
    symptom: Symptom,
    facts: Facts,
    mode: Mode,
    view: CaseStoreView,
    run: FixContext,
    **other_fields: Any,
) -> Situation:
    """Return the situation before the queue is read.

    Read the change calendars only if a write may follow. A closed calendar freezes changes.

    Args:
        symptom: The catalogue's entry.
        facts: The queue's ARN and tags.
        mode: The mode of the queue for this symptom.
        view: The case store's records.
        run: This invocation.
        other_fields: Further fields of the situation, such as `waiting_case`.
    """
    situation = Situation(
        symptom=symptom,
        facts=facts,
        mode=mode,
        view=view,
        now=run.now,
        owner=run.owner,
        writer=run.writer,
        limits=run.settings.limits,
        timing=run.settings.timing,
        **other_fields,
    )
    if view.freeze_reason or not run.settings.freeze_calendars or not situation.would_write_plan:
        return situation
    return structs.replace(
        situation, view=structs.replace(view, freeze_reason=run.calendar_freeze_reason)
    )


def _find_managed_source(queue_arn: str, tags: Mapping[str, str], run: FixContext) -> str:
    """Return the ARN of the managed source for which Mendq made this DLQ, or an empty text."""
    try:
        source_arns = list_source_arns(run.clients, queue_arn)
    except QueueGone:
        return ""
    made_dlqs = run.open_store(MadeDlqs)
    return made_dlqs.find_managed_source(
        queue_arn, tags, source_arns, run.clients, run.settings.consent
    )


def find_mode(queue_arn: str, run: FixContext, tags: Mapping[str, str]) -> Mode | None:
    """Return the mode that settings and tags give the queue, or None if it is not managed."""
    return run.settings.consent.mode_of(parse_queue_arn(queue_arn).name, tags)


def find_autonomy(symptom: Symptom, run: FixContext, default_mode: Mode) -> Mode:
    """Return the highest mode in which the symptom's plans may be carried out.

    The mode comes from the settings, or from the catalogue's entry if the settings do not name the
    symptom. Return `default_mode` if neither has a limit.
    """
    autonomy = run.settings.autonomy.get(symptom.name, symptom.autonomy)
    return default_mode if autonomy is None else autonomy


def _measure_finding(group: Group, situation: Situation, run: FixContext) -> Situation | Outcome:
    """Measure the queue. Return the situation, or the outcome if the finding is declined.

    AWS charges for metrics, so decline without measuring if the result would only repeat a recent
    case. Use the metrics that the scan has just read, except if a write may follow: whoever may
    invoke heal could forge them.
    """
    symptom = group.symptom
    tags = situation.facts.tags
    open_case = situation.open_case
    last_case = situation.view.case
    if open_case is not None:
        failure_times = [sighting.event_time for sighting in situation.view.failures.sightings]
        if was_noted_recently(open_case, max(failure_times, default=None), run.now):
            reason = f"case {open_case.case_id} is {open_case.state}"
            return make_declined_outcome("case_already_open", reason)
    elif symptom.is_of_configuration and last_case is not None:
        modified_at = gather_facts(run, group.queue_arn, tags, {Need.QUEUE}).modified_at
        if would_repeat_without_metrics(last_case, situation.mode, run.now, modified_at):
            return make_declined_outcome("said_already", last_case.reason)
    measured_facts = None
    if not situation.would_write_plan:
        measured_facts = unpack_measured_facts(group.shared_finding.measured)
    facts = gather_facts(run, group.queue_arn, tags, symptom.all_needs, measured_facts)
    return confirm_finding(group, situation, facts, run)


def confirm_finding(
    group: Group, situation: Situation, facts: Facts, run: FixContext
) -> Situation | Outcome:
    """Return the situation with its evidence if `facts` confirm the finding, else an outcome.

    Raises:
        CaseStoreUnavailable, CaseStoreUnreadable: The cases of the queues that share the finding
            could not be read.
    """
    detection = group.symptom.detection
    fault = detection.find_fault(facts, run.now) if detection else None
    if fault is None:
        return make_declined_outcome("not_found", "the queue does not show it, or not any more")
    refusal = (
        None
        if situation.open_case
        else _refuse_if_requested_elsewhere(group, fault.missing_queue_arn, run)
    )
    if refusal is not None:
        return Outcome(refusal=refusal)
    measured_sighting = Sighting.from_scan(run.now)
    facts = replace(
        facts,
        found=add_other_queue_names(fault.because, group.shared_finding),
        source_checks=tuple(source.source_check for source in group.shared_finding.sources),
    )
    return structs.replace(
        situation,
        facts=facts,
        evidence=Evidence((measured_sighting,)),
        fresh_sightings=(measured_sighting,),
    )


def _refuse_if_requested_elsewhere(
    group: Group, missing_queue_arn: str, run: FixContext
) -> Refusal | None:
    """Return a refusal if another queue's open case already asks people for the missing queue.

    Args:
        group: The finding. Its `shared_finding.open_at` names the queues whose cases may ask for
            the missing queue.
        missing_queue_arn: The ARN of the missing queue. Empty if the finding is not about a missing
            queue.
    """
    for queue_arn in group.shared_finding.open_at if missing_queue_arn else ():
        case = run.case_store.look(queue_arn, group.symptom.name, ()).case
        if case is None or not case.is_open(run.now, run.settings.timing):
            continue
        if any(step.get("after") == missing_queue_arn for step in case.steps):
            reason = f"case {case.case_id} of {queue_arn} asks for {missing_queue_arn} already"
            return Ignore("said_of_another", reason)
    return None


def add_other_queue_names(sentence: str, shared_finding: SharedFinding) -> str:
    """Return a finding's sentence, with the other queues that name the same missing queue added.

    Further queues are only counted ("and 3 more"). Return the sentence unchanged if there are no
    other queues.
    """
    if not shared_finding.others:
        return sentence
    queue_names = ", ".join(parse_queue_arn(queue_arn).name for queue_arn in shared_finding.others)
    queue_count = len(shared_finding.others) + shared_finding.more
    verb = "names" if queue_count == 1 else "name"
    unnamed_queues_text = f" and {shared_finding.more:,} more" if shared_finding.more else ""
    other_queues_text = format_count(queue_count, "other queue")
    return f"{sentence}. {other_queues_text} {verb} it too: {queue_names}{unnamed_queues_text}"


def make_facts_reader(run: FixContext) -> FactsReader:
    """Return a reader of facts from AWS and the case store."""
    return FactsReader(
        run.clients,
        run.now,
        run.settings.timing,
        run.open_cases.list_open_symptoms,
        read_noted_move_destinations=lambda: run.open_store(SeenMoves).list_destinations(run.now),
        list_newest_cases=run.open_cases.list_newest_cases,
        consent=run.settings.consent,
    )


class _ReusingReader(FactsReader, frozen=True, kw_only=True):
    """A reader for one queue that uses the metrics of a scan and does not read them again."""

    measured_facts: MeasuredFacts

    def measure(self, window_by_arn: Mapping[str, Window]) -> Mapping[str, Measurement | None]:
        return dict.fromkeys(window_by_arn, self.measured_facts.measurement)

    def read_function_metrics(self, function_names: Sequence[str]) -> Mapping[str, FunctionMetrics]:
        """Return the scan's metrics; read them if the scan did not see one of the functions."""
        metrics_by_name = {
            consumer.name: copy_function_metrics(consumer)
            for consumer in self.measured_facts.consumers
        }
        if metrics_by_name.keys() >= set(function_names):
            return metrics_by_name
        return FactsReader.read_function_metrics(self, function_names)

    def with_days_of_traffic(self, facts: Facts) -> Facts:
        """Return the facts with the traffic of four days; read it if the scan did not."""
        days_of_traffic = self.measured_facts.days_of_traffic
        if days_of_traffic is None:
            return FactsReader.with_days_of_traffic(self, facts)
        return replace(facts, days_of_traffic=days_of_traffic)


def gather_facts(
    run: FixContext,
    queue_arn: str,
    tags: Mapping[str, str],
    needs: Needs,
    measured_facts: MeasuredFacts | None = None,
) -> Facts:
    """Return the queue's attributes and the facts that `needs` names. Read nothing else.

    If `measured_facts` still fit the queue, their metrics are used and not read again.

    Raises:
        FactsUnavailable, QueueRefusesUs: AWS could not be read.
        CaseStoreUnavailable, CaseStoreUnreadable: The case store could not be read.
    """
    reader = make_facts_reader(run)
    facts = reader.read_queue(queue_arn, tags, needs)
    if measured_facts and measured_facts.fits(facts, run.now):
        reader = _ReusingReader(**structs.asdict(reader), measured_facts=measured_facts)
    return _gather_more_facts(run, facts, needs, reader)


def _gather_more_facts(
    run: FixContext, facts: Facts, needs: Needs, reader: FactsReader | None = None
) -> Facts:
    facts = (reader or make_facts_reader(run)).with_needed_facts(facts, needs)
    return add_pins(run, facts, needs) if NEEDS_FROM_PEOPLE.intersection(needs) else facts


def add_facts(situation: Situation, run: FixContext) -> Situation:
    """Answer `NeedsFacts`: read the queue, and return the situation with the queue's facts.

    - A measured queue is not read again.
    - If the queue was changed after most calls failed, only its attributes are read, and the time
      of the change is stored.
    - If the queue's policy denies the read and the symptom `notifies_anyway`, only the facts of the
      failed calls are added.

    Raises:
        FactsUnavailable, QueueRefusesUs: The queue could not be read.
        CaseStoreUnavailable, CaseStoreUnreadable: The case store could not be read or written.
    """
    situation = structs.replace(situation, are_facts_read=True)
    symptom = situation.symptom
    facts = situation.facts
    try:
        if not situation.is_found_by_measurement:
            # A missing queue may be the symptom itself. Then it needs no facts.
            read_attributes = (
                read_queue_attributes if symptom.needs else read_attributes_if_queue_exists
            )
            facts = replace(facts, attributes=read_attributes(run.clients, facts.queue_arn))
            situation_with_attributes = structs.replace(situation, facts=facts)
            if not situation_with_attributes.has_current_evidence:
                return _note_excusing_change(situation_with_attributes, run)
            facts = _gather_more_facts(run, facts, symptom.needs)
    except QueueRefusesUs:
        if not symptom.notifies_anyway:
            raise
        facts = situation.facts
    facts = situation.view.add_facts_of_calls(facts, situation.deciding_evidence)
    situation = structs.replace(situation, facts=facts)
    if not situation.has_current_evidence:
        return _note_excusing_change(situation, run)
    return add_own_change(situation, run)


def _note_excusing_change(situation: Situation, run: FixContext) -> Situation:
    """Store the time of the queue's last change, because earlier failed calls do not count.

    Return the situation with all such times of the last day. If a case is open or SQS does not name
    the time, store nothing and return the situation unchanged.
    """
    facts = situation.facts
    if facts.modified_at is None or situation.open_case is not None:
        return situation
    change_times = run.case_store.note_change(
        facts.queue_arn, situation.symptom.name, facts.modified_at, run.now
    )
    return structs.replace(situation, excusing_change_times=tuple(change_times))


def add_own_change(situation: Situation, run: FixContext) -> Situation:
    """Return the situation with Mendq's newest change that may have caused the symptom.

    Return the situation unchanged if there is no such change, or if a case in the case store is
    unreadable.

    Raises:
        CaseStoreUnavailable: The case store does not answer.
    """
    if not situation.facts.exists or not _may_have_own_change(situation):
        return situation
    own_change = None
    with suppress(CaseStoreUnreadable):
        own_change = _find_own_change(situation.symptom.name, situation.facts, run)
    if own_change is None:
        return situation
    return structs.replace(situation, facts=replace(situation.facts, own_change=own_change))


def _may_have_own_change(situation: Situation) -> bool:
    """Return False if Mendq has certainly made no write that can cause the symptom.

    That is certain if no kind of step can cause it. It is also certain if the view has the records
    of all attributes that can cause it, and none of the records has a write.
    """
    symptom = situation.symptom.name
    if symptom not in CAUSABLE_SYMPTOMS:
        return False
    attributes = list_causing_attributes(symptom)
    records = situation.records
    if attributes is None or not attributes <= records.record_by_attribute.keys():
        return True
    return any(records.record_of(attribute).writes for attribute in attributes)


def _find_own_change(symptom: str, facts: Facts, run: FixContext) -> OwnChange | None:
    related_cases = run.open_cases.list_newest_cases(_list_related_queues(facts))
    suspected_cases = [
        case for case in related_cases if may_case_have_caused_symptom(case, symptom, facts)
    ]
    case_histories = [run.open_cases.list_transitions(case.case_id) for case in suspected_cases]
    return find_causing_change(symptom, facts, case_histories, run.now, run.settings.timing)


def _list_related_queues(facts: Facts) -> list[str]:
    """Return the ARNs of the queue, its sources and its own DLQ.

    The DLQ is included because the case of a redrive into this queue is a case of the DLQ.
    """
    related_queue_arns = [facts.queue_arn, *facts.source_arns]
    dlq_arn = queue_arn_or_none(facts.dlq_arn)
    if dlq_arn is not None:
        related_queue_arns.append(dlq_arn)
    return list(dict.fromkeys(related_queue_arns))


def add_reach(situation: Situation, spread: frozenset[str], run: FixContext) -> Situation:
    """Answer `NeedsReach`: count the queues that show the symptom, and return the situation.

    `spread` are the queues that showed it in the last hour.

    Raises:
        FactsUnavailable: The managed queues could not be listed.
    """
    queue_arn = situation.facts.queue_arn
    mode = find_mode(queue_arn, run, situation.facts.tags) or Mode.OBSERVE
    reach = count_reach(spread, [queue_arn], run, mode)
    return situation.with_reach(reach, run.remaining_seconds())


def count_reach(
    spread: frozenset[str],
    failing_queue_arns: Iterable[str],
    run: FixContext,
    mode: Mode = Mode.OBSERVE,
) -> Reach:
    """Count the managed queues, and the managed queues that showed the symptom.

    If at most MAXIMUM_COINCIDENT_QUEUES showed it, the managed queues are not listed, because so
    few are not a mass symptom.

    Args:
        spread: The queues that showed the symptom in the last hour.
        failing_queue_arns: Managed queues that show the symptom. They count even if SQS does not
            list them yet.
        run: This invocation.
        mode: The mode of the queue to decide about. Queues in this or a higher mode are also
            counted separately.

    Raises:
        FactsUnavailable: The managed queues could not be listed.
    """
    if len(spread) <= MAXIMUM_COINCIDENT_QUEUES:
        return Reach(spread)
    mode_by_queue_arn = {**dict.fromkeys(failing_queue_arns, mode), **run.mode_by_managed_arn}
    return Reach.count_among(spread, mode_by_queue_arn, mode)
