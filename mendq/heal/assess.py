"""Assess one (queue, symptom): read its queue and case, and recover what a dead run left."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

from mendq.aws.errors import CaseStoreUnreadable, NotificationNotSent, QueueRefusesUs
from mendq.aws.queue import ManagedQueue, tags_of
from mendq.cases.finding import Finding
from mendq.cases.open_cases import OpenCase
from mendq.cases.record import try_to_file_owed
from mendq.cases.view import CaseStoreView, keeps_changing
from mendq.heal import guardrails
from mendq.heal.context import Group, Outcome, Run, declined
from mendq.heal.decide import Decision
from mendq.heal.observation import Observation, gather, gather_more, gather_queue
from mendq.heal.recover import settle
from mendq.heal.repeats import asks_for, needs_no_look, one_for_each, was_noted_lately, with_others
from mendq.model.evidence import Evidence, Sighting
from mendq.model.facts import Facts, Need
from mendq.model.limits import Consent, Mode
from mendq.model.plan import Ignore, Refusal
from mendq.model.queue import parts_of


def said_of_another(group: Group, about: str, run: Run) -> Refusal | None:
    """`about` is the queue that is missing, empty where none is; people are asked once for it.

    A scan names the queues with such a case; what it asks for, the case store says. A case of the
    queue's own comes first. Raises CaseStoreUnavailable or CaseStoreUnreadable.
    """
    name = group.symptom.name
    for queue_arn in group.shared.open_at if about else ():
        case = run.case_store.look(queue_arn, name, ()).case
        is_open = case is not None and case.is_open(run.now, run.settings.timing)
        if case is not None and is_open and asks_for(case, about):
            reason = f"case {case.case_id} of {queue_arn} asks for {about} already"
            return Ignore("said_of_another", reason)
    return None


def spoken_for(
    findings: Iterable[Finding],
    managed: Iterable[ManagedQueue],
    open_cases: Sequence[OpenCase],
    consent: Consent,
) -> list[Finding]:
    """One finding for each missing queue, with those who may have asked for it before."""
    tags = {each.queue_arn: each.tags for each in managed}
    topics = {f"{each.queue_arn} {each.symptom}" for each in open_cases}
    retained = one_for_each(
        findings, topics, lambda arn: consent.mode_of(parts_of(arn).name, tags.get(arn, {}))
    )
    open_at: dict[str, list[str]] = defaultdict(list)
    for case in open_cases:
        open_at[case.symptom].append(case.queue_arn)
    return [
        replace(each, open_at=tuple(arn for arn in open_at[each.symptom] if arn != each.queue_arn))
        if each.about
        else each
        for each in retained
    ]


class Assessment(Observation):
    """What becomes of what was seen."""

    def refusal_so_far(self) -> Refusal | None:
        """What speaks against it before the queue's facts are gathered."""
        writes = self.mode is Mode.HEAL and not self.group.symptom.notifies_anyway
        calendar = self.run.closed_calendars if writes else None
        situation = guardrails.Situation(
            view=replace(self.view, frozen=self.view.frozen or calendar),
            fresh_calls=len(self.fresh),
            evidence=self.evidence,
            evidence_needed=self.group.symptom.evidence,
            owner=self.run.owner,
            now=self.run.now,
            timing=self.run.settings.timing,
            writes=writes,
        )
        refusal = guardrails.first_refusal(guardrails.ON_CASE, situation)
        return None if refusal and self.has_strangers else refusal

    def decline(self, refusal: Refusal) -> Outcome:
        """Say no before the queue was looked at."""
        return Decision(self, Facts(self.group.queue_arn, {}, self.tags)).decline(refusal)

    def decide(self) -> Outcome:
        """Raises FactsUnavailable, CaseStoreUnavailable or StepFailed: then it is to come again."""
        try:
            facts = self._facts()
        except QueueRefusesUs as refused:
            if not self.group.symptom.notifies_anyway:
                return declined("queue_refuses_us", str(refused))
            facts = self._with_what_calls_said(Facts(self.group.queue_arn, {}, self.tags))
        evidence = self._since_last_change(facts)
        decision = Decision(replace(self, evidence=evidence), facts)
        return decision.take() if self._suffices(evidence) else self._recently_changed(decision)

    def _recently_changed(self, decision: Decision) -> Outcome:
        """Nothing is done; of a queue that is changed again and again people are told."""
        group, run, changed_at = self.group, self.run, decision.facts.modified_at
        if changed_at is not None and self.open_case is None:
            changes = run.case_store.note_change(
                group.queue_arn, group.symptom.name, changed_at, run.now
            )
            refusal = keeps_changing(changes, run.now)
            if refusal is not None:
                return replace(decision, seen=self).refuse(refusal)
        reason = "most failed calls are from before the queue was last changed"
        return decision.decline(Ignore("before_last_change", reason))

    def _facts(self) -> Facts:
        """No more than the queue itself where nothing shows that it still is as it failed."""
        if self.found_facts is not None:
            return self._with_what_calls_said(self.found_facts)
        needs = self.group.symptom.needs
        queue = gather_queue(self.run, self.group.queue_arn, self.tags, needs)
        if not self._suffices(self._since_last_change(queue)):
            return queue
        return self._with_what_calls_said(gather_more(self.run, queue, needs))

    @property
    def _in_question(self) -> Evidence:
        """What is to be decided by."""
        return self.strangers if self.has_strangers else self.evidence

    def _since_last_change(self, facts: Facts) -> Evidence:
        """What speaks about the queue as it is now."""
        propagation = timedelta(seconds=self.run.settings.timing.propagation_seconds)
        after_the_timeout = self.group.symptom.outlives_the_timeout
        return self._in_question.since(
            facts.settled_at(propagation, after_the_timeout=after_the_timeout)
        )

    def _suffices(self, evidence: Evidence) -> bool:
        return evidence.suffices(self.group.symptom.evidence)

    def _with_what_calls_said(self, facts: Facts) -> Facts:
        return self.view.with_what_calls_said(facts, self._in_question)


def look(group: Group, run: Run) -> Assessment | Outcome:
    """What is known of a group's queue before it is decided; or why nothing is to be decided.

    Raises FactsUnavailable or CaseStoreUnavailable: then the group is to come again.
    """
    try:
        return _looked(group, run)
    except QueueRefusesUs as refused:
        return declined("queue_refuses_us", str(refused))
    except CaseStoreUnreadable as unreadable:
        return declined("case_store_unreadable", str(unreadable))


def _looked(group: Group, run: Run) -> Assessment | Outcome:
    tags = _tags_of(group, run)
    if tags is None and group.symptom.needs:
        return declined("queue_gone", "the queue is gone")
    view = _settled(group, run)
    if isinstance(view, Outcome):
        return view
    name = parts_of(group.queue_arn).name
    if tags is None and view.known is None and not run.consent.names_exactly(name):
        return declined("never_seen", "no such queue was ever seen, and no setting names it alone")
    mode = run.consent.mode_of(name, tags or {})
    refusal = guardrails.not_managed(mode)
    if refusal or mode is None:
        return Outcome(refusal=refusal)
    return _undecided(group, run, tags or {}, mode, view)


def _tags_of(group: Group, run: Run) -> Mapping[str, str] | None:
    """The queue's tags; none of one that keeps us out, where settings name it to be told of."""
    try:
        return tags_of(run.clients, group.queue_arn)
    except QueueRefusesUs:
        named = run.consent.mode_of(parts_of(group.queue_arn).name, {}) is not None
        if not (group.symptom.notifies_anyway and named):
            raise
        return {}


def _undecided(
    group: Group, run: Run, tags: Mapping[str, str], mode: Mode, view: CaseStoreView
) -> Assessment | Outcome:
    symptom = group.symptom
    autonomy = run.settings.autonomy.get(symptom.name, symptom.autonomy)
    lowest = mode if autonomy is None else min(mode, autonomy)
    if group.is_found:
        return _found(Assessment(group, run, tags, lowest, view, Evidence(), ()))
    fresh = tuple(
        Sighting.of(each)
        for each in group.calls
        if guardrails.is_fresh(each, run.now) and symptom.speaks(each)
    )
    evidence = Evidence.of([*view.evidence.sightings, *fresh]).fresh(run.now)
    return Assessment(group, run, tags, lowest, view, evidence, fresh)


def _found(assessment: Assessment) -> Assessment | Outcome:
    """A scan only says where to look: what is there now is found here, or nothing is."""
    symptom, run = assessment.group.symptom, assessment.run
    refusal = _not_to_be_measured(assessment)
    if refusal is not None:
        return refusal
    facts = gather(run, assessment.group.queue_arn, assessment.tags, symptom.every_need)
    found = symptom.detection.detect(facts) if symptom.detection else None
    if found is None:
        return declined("not_found", "the queue does not show it, or not any more")
    said = None if assessment.open_case else said_of_another(assessment.group, found.about, run)
    if said is not None:
        return Outcome(refusal=said)
    fresh = (Sighting.of_measurement(run.now),)
    return replace(
        assessment,
        evidence=Evidence(fresh),
        fresh=fresh,
        found_facts=replace(facts, found=with_others(found.because, assessment.group.shared)),
    )


def _not_to_be_measured(assessment: Assessment) -> Outcome | None:
    """What would come to nothing anyway; each metric is billed, and a scan finds it each hour."""
    run, case = assessment.run, assessment.open_case
    if case is not None:
        noted = [each.event_time for each in assessment.view.failures.sightings]
        if was_noted_lately(case, max(noted, default=None), run.now):
            return declined("case_already_open", f"case {case.case_id} is {case.state}")
        return None
    if not assessment.group.symptom.is_of_configuration or assessment.view.case is None:
        return None
    facts = gather(run, assessment.group.queue_arn, assessment.tags, {Need.QUEUE})
    last = assessment.view.case
    if needs_no_look(last, assessment.mode, run.now, facts.modified_at):
        return declined("said_already", last.reason)
    return None


def _settled(group: Group, run: Run) -> CaseStoreView | Outcome:
    """Before the queue's mode is asked for: what was written has to be told, whatever it is now."""
    view = run.case_store.look(group.queue_arn, group.symptom.name, group.attributes)
    view = try_to_file_owed(view, run)
    with suppress(NotificationNotSent):  # a queue must not go unfixed because nobody can be told
        run.notifier.send_left_unsent(group.queue_arn, group.symptom.name, view.page, view.case)
    if view.intent is None or view.held_by_another(run.owner, run.now):
        return view
    return settle(view, view.intent, group.symptom, run)
