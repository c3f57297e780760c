"""Decide about past incidents as heal would have decided, in each mode.

The time of a decision is the time at which heal would first have had enough failed calls. The case
store of that time is not known. So the decision assumes that there were no cases, cooldowns,
freezes or running fixes. The queue's configuration is the current one, or that of a snapshot file.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any

from msgspec import Struct, structs

from mendq.cases.attribute_record import AttributeRecord
from mendq.cases.spread import Reach, Spread, mass_symptom_key
from mendq.cases.view import CaseStoreView
from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.catalogue.symptom import Symptom
from mendq.cli.backtest.configuration import Configuration, Tags
from mendq.cli.scan.dry_run import (
    NO_DECISION_TEXT,
    UNDECIDABLE_ERRORS,
    ExpectedAction,
    describe_decision,
)
from mendq.heal.decide import Decision, KeepWaiting, RecordTransition, Rejection, WriteFix
from mendq.heal.gather import gather_and_decide
from mendq.heal.guardrails import MAXIMUM_COINCIDENT_QUEUES
from mendq.heal.situation import Situation
from mendq.model.case import Severity
from mendq.model.consent import Consent
from mendq.model.evidence import Evidence, Sighting
from mendq.model.facts import Facts
from mendq.model.limits import Limits, Timing
from mendq.model.mode import Mode
from mendq.model.queue import parse_queue_arn
from mendq.model.steps import Owner
from mendq.model.tags import MODE_OFF_VALUE, MODE_TAG
from mendq.notifications.announcements import NOTIFICATIONS_PER_HOUR, must_report_mass_symptom
from mendq.report.words import WORDS_BY_NO_CASE_REASON

NO_CASE_OUTCOME = "not_seen"
NO_ACTION_TEXT = "leaves it alone"
# Values of `ExpectedAction.would` that mean a change or a notification.
_NOTICEABLE_ACTIONS = ("does", "proposes", "pages")


class PastIncident(Struct, frozen=True, dict=True):
    """An incident as the nightly job writes it for a backtest."""

    incident_id: str
    queue_arn: str
    symptom: str
    first_failure: datetime
    last_failure: datetime
    failed_calls: int
    error_codes: tuple[str, ...]
    principals: tuple[str, ...]
    # Why heal would not have acted, if there were too few calls.
    why: str
    # The first failed calls that are enough for heal to act, as texts. Empty if there are too few.
    evidence: tuple[str, ...] = ()

    @cached_property
    def first_evidence(self) -> Evidence:
        """The first failed calls that are enough for heal to act. Empty if there are too few."""
        return Evidence.of(map(Sighting.from_text, self.evidence))

    @property
    def decided_at(self) -> datetime:
        """Time at which heal would first have had enough failed calls to act.

        If there were never enough, the time of the first failure.
        """
        sightings = self.first_evidence.sightings
        return sightings[-1].event_time if sightings else self.first_failure


class ModeAnswer(Struct, frozen=True):
    """What Mendq would have done about an incident in one mode."""

    would: ExpectedAction
    # Outcome as the report names it: the state of the case, or NO_CASE_OUTCOME.
    outcome: str = NO_CASE_OUTCOME
    # Severity of the notification. None if there is none.
    severity: Severity | None = None
    # True if people get one notification about all queues with the symptom.
    is_of_many: bool = False


class JudgedIncident(Struct, frozen=True):
    """An incident, and what Mendq would have done about it in each mode."""

    incident: PastIncident
    answers: Mapping[Mode, ModeAnswer]


class Backtest(Struct, frozen=True):
    """Decides about past incidents, and tracks how many queues show a symptom at the same time."""

    configuration: Configuration

    def judge_incidents(self, incidents: Iterable[PastIncident]) -> Iterator[JudgedIncident]:
        """Yield heal's decision on each incident, sorted by `decided_at`."""
        spread_by_symptom_key = defaultdict[str, Spread](Spread)
        for incident in sorted(
            incidents, key=lambda incident: (incident.decided_at, incident.incident_id)
        ):
            yield JudgedIncident(
                incident, self._make_answer_by_mode(incident, spread_by_symptom_key)
            )

    def _make_answer_by_mode(
        self, incident: PastIncident, spread_by_symptom_key: dict[str, Spread]
    ) -> Mapping[Mode, ModeAnswer]:
        """Return Mendq's answers to an incident by mode, and note that its queue shows the symptom.

        `spread_by_symptom_key` has the queues that showed a symptom lately, by mass symptom key.
        The queue is not added if the symptom is unknown, if there were too few calls, or if the
        queue cannot be read.
        """
        symptom = SYMPTOM_BY_NAME.get(incident.symptom)
        if symptom is None or not incident.evidence:
            return dict.fromkeys(
                Mode,
                _make_no_action_answer(WORDS_BY_NO_CASE_REASON.get(incident.why, incident.why)),
            )
        try:
            facts = self.configuration.read_facts(incident.queue_arn, symptom.needs)
            symptom_key = mass_symptom_key(symptom.name, facts.tags)
            spread = spread_by_symptom_key[symptom_key]
            outdated_spread = Spread.from_texts(spread.list_outdated_notes(incident.decided_at))
            new_spread = Spread.from_texts(
                spread.make_new_notes([incident.queue_arn], incident.decided_at)
            )
            spread_by_symptom_key[symptom_key] = Spread(
                spread.notes - outdated_spread.notes | new_spread.notes
            )
            queue_arns = spread_by_symptom_key[symptom_key].list_queue_arns(incident.decided_at)
            return {
                mode: self._decide_in_mode(incident, symptom, facts, mode, queue_arns)
                for mode in Mode
            }
        except UNDECIDABLE_ERRORS as error:
            return dict.fromkeys(Mode, ModeAnswer(ExpectedAction(NO_DECISION_TEXT, why=str(error))))

    def _decide_in_mode(
        self,
        incident: PastIncident,
        symptom: Symptom,
        facts: Facts,
        account_mode: Mode,
        affected_queue_arns: frozenset[str],
    ) -> ModeAnswer:
        """Return heal's decision on an incident in one mode of the account."""
        queue_mode = find_queue_mode(facts.queue_arn, facts.tags, account_mode)
        if queue_mode is None:
            is_switched_off = facts.tags.get(MODE_TAG) == MODE_OFF_VALUE
            return _make_no_action_answer(
                f"its tag `{MODE_TAG}` is `{MODE_OFF_VALUE}`" if is_switched_off else "a quarantine"
            )
        if symptom.autonomy is not None:
            queue_mode = min(queue_mode, symptom.autonomy)
        case_store_view = CaseStoreView(
            record_by_attribute={
                attribute_name: AttributeRecord() for attribute_name in symptom.attributes
            }
        )
        evidence = incident.first_evidence
        situation = Situation(
            symptom=symptom,
            facts=case_store_view.add_facts_of_calls(facts, evidence),
            mode=queue_mode,
            view=case_store_view,
            now=incident.decided_at,
            owner="backtest",
            writer=Owner.HEAL,
            limits=Limits(),
            timing=Timing(),
            evidence=evidence,
            fresh_sightings=evidence.sightings,
        )
        decision, _ = gather_and_decide(
            situation,
            read_queue=lambda unread_situation: structs.replace(
                unread_situation, are_facts_read=True
            ),
            count_queues=lambda uncounted_situation: self._count_affected_queues(
                uncounted_situation, affected_queue_arns, account_mode
            ),
        )
        return _describe_answer(decision, queue_mode)

    def _count_affected_queues(
        self, situation: Situation, affected_queue_arns: frozenset[str], account_mode: Mode
    ) -> Situation:
        """Return the situation with the queues that show the symptom, and their counts.

        If at most MAXIMUM_COINCIDENT_QUEUES queues show it, nothing is counted.

        Args:
            situation: The symptom and the queue that is decided about.
            affected_queue_arns: The queues that showed the symptom in the hour before the incident.
            account_mode: The mode of the account that is assumed.
        """
        if len(affected_queue_arns) <= MAXIMUM_COINCIDENT_QUEUES:
            return structs.replace(situation, reach=Reach(affected_queue_arns))
        facts = situation.facts
        mode_by_queue_arn: dict[str, Mode] = {}
        for queue_arn, tags in {**self.configuration.tags, facts.queue_arn: facts.tags}.items():
            queue_mode = find_queue_mode(queue_arn, tags, account_mode)
            if queue_mode is not None:
                mode_by_queue_arn[queue_arn] = queue_mode
        reach = Reach.count_among(
            affected_queue_arns, mode_by_queue_arn, mode_by_queue_arn[facts.queue_arn]
        )
        return structs.replace(situation, reach=reach)


def _make_no_action_answer(why: str) -> ModeAnswer:
    return ModeAnswer(ExpectedAction(NO_ACTION_TEXT, why=why))


def find_queue_mode(queue_arn: str, tags: Tags, account_mode: Mode) -> Mode | None:
    """Return the mode that a queue would have if Mendq managed all queues in `account_mode`.

    The queue's tag may lower the mode. Return None if the tag switches Mendq off, or if the queue
    is a quarantine.
    """
    queue_name = parse_queue_arn(queue_arn).name
    return Consent(account_mode, queues=(queue_name,)).mode_of(queue_name, tags)


def _describe_answer(decision: Decision, queue_mode: Mode) -> ModeAnswer:
    """Return what a decision would do, its outcome, and the severity of its notification."""
    refusal = decision.refusal if isinstance(decision, Rejection | KeepWaiting) else None
    # A backtest knows no drills.
    is_of_many = must_report_mass_symptom(refusal, queue_mode, is_drill=False)
    outcome = NO_CASE_OUTCOME
    severity: Severity | None = None
    if isinstance(decision, WriteFix | RecordTransition):
        outcome = str(decision.case.state)
    if isinstance(decision, RecordTransition):
        severity = decision.notification.severity
    return ModeAnswer(describe_decision(decision), outcome, severity, is_of_many)


def count_notifications(judged_incidents: Iterable[JudgedIncident], mode: Mode) -> dict[str, Any]:
    """Return how many notifications there would have been, in all and in the worst hour.

    `held_back` counts the notifications beyond NOTIFICATIONS_PER_HOUR per severity and hour.
    """
    # Severity, hour and subject: one notification about many queues counts once an hour.
    notifications = set[tuple[Severity, str, str]]()
    for judged_incident in judged_incidents:
        incident = judged_incident.incident
        answer = judged_incident.answers[mode]
        if answer.severity or answer.is_of_many:
            subject = incident.symptom if answer.is_of_many else incident.incident_id
            severity = answer.severity or Severity.URGENT
            notifications.add((severity, f"{incident.decided_at:%Y-%m-%dT%H}", subject))
    notification_count_by_hour = Counter(sorted(hour for _, hour, _ in notifications))
    worst_hour, worst_hour_notification_count = max(
        notification_count_by_hour.items(), key=lambda pair: pair[1], default=(None, 0)
    )
    notification_count_by_severity_and_hour = Counter(
        (severity, hour) for severity, hour, _ in notifications
    )
    held_back_notification_count = sum(
        max(0, count - NOTIFICATIONS_PER_HOUR)
        for count in notification_count_by_severity_and_hour.values()
    )
    return {
        "notifications": len(notifications),
        "urgent": sum(severity is Severity.URGENT for severity, _, _ in notifications),
        "worst_hour": worst_hour,
        "in_worst_hour": worst_hour_notification_count,
        "held_back": held_back_notification_count,
    }


def explain_queues_left_alone(judged_incidents: Iterable[JudgedIncident]) -> dict[str, str]:
    """Return why Mendq would leave queues alone even in mode heal: one text by queue ARN."""
    # The inner dict is an ordered set of reasons.
    reasons_by_queue = defaultdict[str, dict[str, None]](dict)
    handled_queue_arns = set[str]()
    for judged_incident in judged_incidents:
        queue_arn = judged_incident.incident.queue_arn
        action = judged_incident.answers[Mode.HEAL].would
        reason = action.why if action.would == NO_ACTION_TEXT else action.line
        reasons_by_queue[queue_arn][reason] = None
        if action.would in _NOTICEABLE_ACTIONS:
            handled_queue_arns.add(queue_arn)
    return {
        queue_arn: "; ".join(reasons)
        for queue_arn, reasons in sorted(reasons_by_queue.items())
        if queue_arn not in handled_queue_arns
    }
