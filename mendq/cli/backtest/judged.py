"""What Mendq would have done about past incidents, in each mode, by heal's own decision.

Each is decided as of the moment at which heal would first have believed it, and for itself: the
cases, claims, cooldowns and freezes of then are not known, and what is measured is of now.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any

from msgspec import Struct, structs

from mendq.cases.attribute_record import AttributeRecord
from mendq.cases.spread import Reach, Spread
from mendq.cases.view import CaseStoreView
from mendq.catalogue import BY_NAME
from mendq.catalogue.symptom import Symptom
from mendq.cli.backtest.configuration import Configuration, Tags
from mendq.cli.scan.dry_run import CANNOT_SAY, WouldDo, describe_decision
from mendq.heal.decide import Decision, RecordTransition, WriteFix
from mendq.heal.gather import gather_and_decide
from mendq.heal.guardrails import COINCIDENCE_QUEUES
from mendq.heal.situation import Situation
from mendq.model.case import Severity
from mendq.model.evidence import Evidence, Sighting
from mendq.model.facts import Facts
from mendq.model.limits import MODE_TAG, OFF, Consent, Limits, Mode, Timing, mass_symptom_key
from mendq.model.plan import Refusal
from mendq.model.queue import parts_of
from mendq.model.steps import Owner
from mendq.notifications.announcements import NOTIFICATIONS_PER_HOUR
from mendq.report.words import WHY

NO_CASE = "not_seen"
ALONE = "leaves it alone"
# Of the words of `WouldDo`, those that come to more than a note.
REACHES_SOMEBODY = ("does", "proposes", "pages")


class PastIncident(Struct, frozen=True, dict=True):
    """As the nightly job writes it, with the calls that heal would first have believed."""

    incident_id: str
    queue_arn: str
    symptom: str
    first_failure: datetime
    last_failure: datetime
    failed_calls: int
    error_codes: tuple[str, ...]
    principals: tuple[str, ...]
    why: str
    evidence: tuple[str, ...] = ()

    @cached_property
    def believed(self) -> Evidence:
        return Evidence.of(map(Sighting.from_text, self.evidence))

    @property
    def at(self) -> datetime:
        """When heal would first have believed it; what it would not, when it began."""
        sightings = self.believed.sightings
        return sightings[-1].event_time if sightings else self.first_failure


class ModeAnswer(Struct, frozen=True):
    """What Mendq would have done; `outcome` is the report's word for it.

    `is_of_many`: people hear of it in one page about all queues.
    """

    would: WouldDo
    outcome: str = NO_CASE
    severity: Severity | None = None
    is_of_many: bool = False


class JudgedIncident(Struct, frozen=True):
    incident: PastIncident
    answers: Mapping[Mode, ModeAnswer]


class Backtest(Struct, frozen=True):
    """Incidents are decided in the order of their time: how far a symptom has spread is counted."""

    configuration: Configuration

    def judged(self, incidents: Iterable[PastIncident]) -> Iterator[JudgedIncident]:
        noted = defaultdict[str, Spread](Spread)
        for each in sorted(incidents, key=lambda it: (it.at, it.incident_id)):
            yield JudgedIncident(each, self._answers(each, noted))

    def _answers(
        self, incident: PastIncident, noted: dict[str, Spread]
    ) -> Mapping[Mode, ModeAnswer]:
        symptom = BY_NAME.get(incident.symptom)
        if symptom is None or not incident.evidence:
            return dict.fromkeys(Mode, _left_alone(WHY.get(incident.why, incident.why)))
        try:
            facts = self.configuration.look(incident.queue_arn, symptom.needs)
            word = mass_symptom_key(symptom.name, facts.tags)
            gone = Spread.from_texts(noted[word].outdated_notes(incident.at))
            new = Spread.from_texts(noted[word].notes_to_add([incident.queue_arn], incident.at))
            noted[word] = Spread(noted[word].notes - gone.notes | new.notes)
            spread = noted[word].queues(incident.at)
            return {mode: self._answer(incident, symptom, facts, mode, spread) for mode in Mode}
        except CANNOT_SAY as error:
            return dict.fromkeys(Mode, ModeAnswer(WouldDo("cannot say", why=str(error))))

    def _answer(
        self,
        incident: PastIncident,
        symptom: Symptom,
        facts: Facts,
        mode: Mode,
        spread: frozenset[str],
    ) -> ModeAnswer:
        theirs = mode_of(facts.queue_arn, facts.tags, mode)
        if theirs is None:
            is_off = facts.tags.get(MODE_TAG) == OFF
            return _left_alone(f"its tag `{MODE_TAG}` is `{OFF}`" if is_off else "a quarantine")
        lowest = theirs if symptom.autonomy is None else min(theirs, symptom.autonomy)
        view = CaseStoreView(attributes={name: AttributeRecord() for name in symptom.attributes})
        facts, found = view.add_facts_of_calls(facts, incident.believed), incident.believed
        known = symptom, facts, lowest, view, incident.at, "backtest", Owner.HEAL
        situation = Situation(*known, Limits(), Timing(), found, found.sightings)
        decision, _ = gather_and_decide(
            situation,
            read_queue=lambda unread: structs.replace(unread, is_read=True),
            count_queues=lambda uncounted: self._count_queues(uncounted, spread, mode),
        )
        return _answer_of(decision, lowest)

    def _count_queues(self, situation: Situation, spread: frozenset[str], mode: Mode) -> Situation:
        """Return the situation with the number of queues that show the symptom.

        Args:
            situation: The symptom and the queue that is decided about.
            spread: The queues that showed the symptom in the hour before the incident.
            mode: The mode of the account that is assumed.
        """
        if len(spread) <= COINCIDENCE_QUEUES:
            return structs.replace(situation, reach=Reach(spread))
        facts = situation.facts
        modes: dict[str, Mode] = {}
        for queue_arn, tags in {**self.configuration.tags, facts.queue_arn: facts.tags}.items():
            queue_mode = mode_of(queue_arn, tags, mode)
            if queue_mode is not None:
                modes[queue_arn] = queue_mode
        reach = Reach.among(spread, modes, modes[facts.queue_arn])
        return structs.replace(situation, reach=reach)


def _left_alone(why: str) -> ModeAnswer:
    return ModeAnswer(WouldDo(ALONE, why=why))


def mode_of(queue_arn: str, tags: Tags, mode: Mode) -> Mode | None:
    """The mode of a queue that settings name, in an account of that mode; its tag lowers it."""
    name = parts_of(queue_arn).name
    return Consent(mode, queues=(name,)).mode_of(name, tags)


def _answer_of(decision: Decision, mode: Mode) -> ModeAnswer:
    refusal: Refusal | None = getattr(decision, "refusal", None)
    is_of_many = (
        refusal is not None and refusal.code == "mass_symptom" and refusal.is_reported_in(mode)
    )
    outcome, severity = NO_CASE, None
    if isinstance(decision, WriteFix | RecordTransition):
        outcome = str(decision.case.state)
    if isinstance(decision, RecordTransition):
        severity = decision.notification.severity
    return ModeAnswer(describe_decision(decision), outcome, severity, is_of_many)


def count_notifications(judged: Iterable[JudgedIncident], mode: Mode) -> dict[str, Any]:
    """How many people would have been sent; `held_back` are beyond what is sent in an hour."""
    sent = set[tuple[Severity, str, str]]()
    for incident, answer in ((each.incident, each.answers[mode]) for each in judged):
        if answer.severity or answer.is_of_many:
            about = incident.symptom if answer.is_of_many else incident.incident_id
            sent.add((answer.severity or Severity.URGENT, f"{incident.at:%Y-%m-%dT%H}", about))
    by_hour = Counter(sorted(hour for _, hour, _ in sent))
    worst, most = max(by_hour.items(), key=lambda item: item[1], default=(None, 0))
    of_a_kind = Counter((severity, hour) for severity, hour, _ in sent).values()
    return {
        "notifications": len(sent),
        "urgent": sum(severity is Severity.URGENT for severity, _, _ in sent),
        "worst_hour": worst,
        "in_worst_hour": most,
        "held_back": sum(max(0, each - NOTIFICATIONS_PER_HOUR) for each in of_a_kind),
    }


def explain_left_alone(judged: Iterable[JudgedIncident]) -> dict[str, str]:
    """The queues about which nothing would have been done even in mode heal, and why."""
    whys, reached = defaultdict[str, dict[str, None]](dict), set[str]()
    for queue_arn, would in ((e.incident.queue_arn, e.answers[Mode.HEAL].would) for e in judged):
        whys[queue_arn][would.why if would.would == ALONE else would.line] = None
        reached.update([queue_arn] * (would.would in REACHES_SOMEBODY))
    return {arn: "; ".join(lines) for arn, lines in sorted(whys.items()) if arn not in reached}
