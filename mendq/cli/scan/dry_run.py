"""A scan with an operator's credentials, and heal's decision about each finding.

Nothing is written, noted or called: the decision is the one that heal makes, and it is not carried
out. What only the moment of a write tells is not known here: the account's writes of that minute,
and another run at work.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cached_property, partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from mendq.aws.clients import Clients
from mendq.aws.errors import (
    CaseStoreUnavailable,
    CaseStoreUnreadable,
    FactsUnavailable,
    QueueRefusesUs,
)
from mendq.aws.queue import ManagedQueue, list_managed_queues
from mendq.cases import items
from mendq.cases.context import FixContext
from mendq.cases.finding import (
    Finding,
    ScanResult,
    find_waiting,
    limit_mass_findings,
    merge_results,
)
from mendq.cases.made_dlqs import MadeDlqs
from mendq.cases.pins import with_pins
from mendq.cases.table import CaseStore
from mendq.catalogue import BY_NAME
from mendq.catalogue.symptom import Symptom
from mendq.cli.account import Account
from mendq.cli.look.case_view import step_lines
from mendq.heal.decide import (
    Decision,
    Decline,
    Healthy,
    KeepEvidence,
    KeepWaiting,
    NeedsFacts,
    NeedsReach,
    NoteFailures,
    RecordTransition,
    WriteFix,
)
from mendq.heal.gather import (
    Group,
    add_facts,
    add_reach,
    confirm_finding,
    gather_and_decide,
    make_managed_situation,
)
from mendq.heal.outcome import Outcome
from mendq.heal.situation import Situation
from mendq.model.case import Case, State
from mendq.model.facts import Facts, Need
from mendq.model.limits import mass_symptom_key
from mendq.model.plan import Refusal
from mendq.model.prices import METRIC_ASKED
from mendq.model.queue import parts_of
from mendq.model.steps import Owner
from mendq.notifications.own_change import describe_own_change
from mendq.scan.reader import ScanReader, reader_in
from mendq.scan.scan import Allowance, scan
from mendq.scan.selection import NEW_FAULTS_A_DAY, map_merged_findings, merge_shared_findings
from mendq.scan.store import ScanStore

if TYPE_CHECKING:
    from botocore.model import OperationModel

    from mendq.aws.operator_session import Session

ROUNDS_A_MONTH = 24 * 30
REFUSED, WAITS = "would be refused", "waits"
_OWNER = "mendq scan --dry-run"
_READS = ("BatchGet", "Describe", "Get", "Head", "List", "Lookup", "Query", "Scan", "TransactGet")
# AWS did not let us look, or said what no queue is: that costs one answer, not the others.
CANNOT_SAY = (
    *(FactsUnavailable, CaseStoreUnavailable, CaseStoreUnreadable, QueueRefusesUs),
    *(ArithmeticError, ValueError),
)
TOO_DEAR = "it takes more metrics than --max-metrics lets it ask for"
_ENDS_IN = {
    State.APPLIED: "does",
    State.APPROVED: "does",
    State.PROPOSED: "proposes",
    State.OBSERVED: "only notes",
    State.ESCALATED: "pages",
}


def estimate_monthly_dollars(metrics: int) -> float:
    """What a scan an hour costs that asks for as many each time: each metric is billed."""
    return round(METRIC_ASKED.cost(metrics) * ROUNDS_A_MONTH, 2)


class MetricBudget(Struct):
    """`most` metrics may be asked for, `spent` of them were; None: as many as it takes."""

    most: int | None = None
    spent: int = 0

    def take(self, metrics: int) -> bool:
        """Pay for so many, or for none of them where they are more than are left."""
        if self.most is not None and self.spent + metrics > self.most:
            return False
        self.spent += metrics
        return True


class WouldChange(AssertionError):
    """A dry run was about to change something: our own bug, and nothing was changed."""


def make_readonly_clients(session: Session) -> Clients:
    """Clients that raise WouldChange for every request that does not only look.

    So do all others that the session makes from now on.
    """
    session.events.register_first("before-call", _only_look)
    return Clients(session)


def _only_look(model: OperationModel, **_: Any) -> None:
    if not model.name.startswith(_READS):
        raise WouldChange(f"{model.service_model.service_name} {model.name}")


class _UnchangedCases(CaseStore, frozen=True):
    def change_set(
        self, key: items.Key, name: str, _until: datetime, _drop: Sequence[str], add: Sequence[str]
    ) -> items.Item:
        """The item as it would be, were nothing dropped from it."""
        retained = items.texts_in(self.get(key), name)
        return {name: {"SS": sorted({*retained, *add})}}


class _UnchangedScans(ScanStore, frozen=True):
    def change_and_read(self, *_: Any, **__: Any) -> items.Item:
        return {}


class _Context(FixContext, frozen=True):
    @property
    def case_store(self) -> CaseStore:
        return self.stored(_UnchangedCases)


class WouldDo(Struct, frozen=True):
    """In words, with the refusal's code where there is one; the steps as lines, or the reason.

    `commands` are what a person runs where Mendq does nothing. `first` is the sentence about a
    change by Mendq that can be the cause, if `why` does not begin with it.
    """

    would: str
    steps: tuple[str, ...] = ()
    why: str = ""
    commands: tuple[str, ...] = ()
    first: str = ""

    @property
    def line(self) -> str:
        """All of it on one line, Mendq's own change first."""
        what = ": ".join(each for each in (self.would, "; ".join(self.steps) or self.why) if each)
        return f"{self.first}. {what}" if self.first else what


class DryRun(Struct, frozen=True, dict=True):
    """Every managed queue of an account, at one moment; `purse` pays for every metric."""

    account: Account
    now: datetime
    purse: MetricBudget = field(default_factory=MetricBudget)

    @cached_property
    def queues(self) -> tuple[ManagedQueue, ...]:
        """Raises FactsUnavailable."""
        run = self._run
        return list_managed_queues(run.clients, self.account.account_id, run.settings.consent)

    @cached_property
    def _run(self) -> FixContext:
        return _Context(
            clients=make_readonly_clients(self.account.session),
            settings=self.account.settings,
            owner=_OWNER,
            now=self.now,
            remaining_seconds=lambda: float("inf"),
            write=lambda *_: None,
            writer=Owner.HEAL,
        )

    @cached_property
    def reader(self) -> ScanReader:
        """What asks AWS, each thing once and at its pace."""
        return reader_in(self._run, self._run.settings.consent)

    def stretches(self) -> Iterator[ScanResult]:
        """How far it has come, again and again; the last is all of it."""
        allowance = Allowance(may_measure=self.purse.take)
        return accumulate(
            scan(self.queues, self.reader, allowance), merge_results, initial=ScanResult()
        )

    def would_do(self, findings: Iterable[Finding]) -> dict[Finding, WouldDo]:
        """What Mendq would do about each; it looks at the queues once more."""
        found = sorted(findings)
        try:
            waits, shared = self._waits(found)
        except CANNOT_SAY as error:
            return dict.fromkeys(found, WouldDo("cannot say", why=str(error)))
        shown = self._shown(each for each in found if each not in waits)
        would = {}
        for each in found:
            symptom = BY_NAME[each.symptom]
            if symptom.plan is None or symptom.detection is None:
                would[each] = WouldDo("only reports it")
            elif each in waits:
                would[each] = WouldDo(WAITS, why=waits[each])
            else:
                try:
                    would[each] = self._would_do(shared[each], symptom, shown)
                except CANNOT_SAY as error:
                    would[each] = WouldDo("cannot say", why=str(error))
        return would

    def looks_after(self, finding: Finding) -> bool:
        """True if the queue is managed, or is a DLQ that Mendq made for a managed source."""
        if finding.queue_arn in self._tags:
            return True
        made = self._run.stored(MadeDlqs)
        managed_sources = [arn for arn in finding.sources if arn in self._tags]
        with suppress(CaseStoreUnavailable, CaseStoreUnreadable):
            return any(made.is_made(arn, finding.queue_arn) for arn in managed_sources)
        return False

    def _waits(
        self, findings: list[Finding]
    ) -> tuple[Mapping[Finding, str], Mapping[Finding, Finding]]:
        """Why heal does not hear of some yet; and those that it hears of, with whom for."""
        run = self._run
        spoken = merge_shared_findings(
            findings, self.queues, run.open_cases.list_open(), run.settings.consent
        )
        first = find_waiting(spoken, {name: each.gives_way_to for name, each in BY_NAME.items()})
        by = {
            e: parts_of(one.queue_arn).name
            for e, one in map_merged_findings(findings, spoken).items()
        }
        why = {each: f"said_of_another: {name} speaks for it" for each, name in by.items()}
        why |= {each: f"{name} goes first" for each, name in first.items()}
        slow = [each for each in spoken if each not in why and _is_paced(each.symptom)]
        if slow:
            store = _UnchangedScans(run.clients.dynamodb, run.settings.case_table, _OWNER)
            announced = store.admit([each.topic for each in slow], self.now)
            day = f"of faults in configuration {NEW_FAULTS_A_DAY} new ones a day are taken up"
            why |= {each: day for each in slow if each.topic not in announced}
        return why, {each: each for each in spoken}

    def _shown(self, findings: Iterable[Finding]) -> Mapping[str, set[str]]:
        """The queues by symptom; the scan counts a drill's among all, heal among drills."""
        shown = defaultdict[str, set[str]](set)
        for each in findings:
            counted = mass_symptom_key(each.symptom, self._tags.get(each.queue_arn, {}))
            for word in {each.symptom, counted}:
                shown[word].add(each.queue_arn)
        return shown

    def _would_do(
        self, finding: Finding, symptom: Symptom, shown: Mapping[str, set[str]]
    ) -> WouldDo:
        run, queue_arn = self._run, finding.queue_arn
        facts = self._facts(queue_arn, symptom)
        if facts is None:
            return WouldDo("cannot say", why=TOO_DEAR)
        group = Group(queue_arn, symptom, is_found=True, shared=finding.reference)
        view = run.case_store.look(queue_arn, symptom.name, symptom.attributes)
        if view.intent is not None and not view.is_held_by_another(run.owner, run.now):
            return WouldDo("first ends what a run that died has begun", why=view.intent.case_id)
        situation = make_managed_situation(group, run, facts.tags, view)
        if not isinstance(situation, Outcome):
            situation = confirm_finding(group, situation, facts, run)
        if isinstance(situation, Outcome):
            return _refused(situation.refusal)

        def count_queues(unsettled: Situation) -> Situation:
            return add_reach(unsettled, self._spread_of(symptom, facts.tags, shown), run)

        decision, situation = gather_and_decide(
            situation, read_queue=partial(add_facts, run=run), count_queues=count_queues
        )
        would, change = describe_decision(decision, finding.because), situation.facts.own_change
        if change is not None and would.steps:
            return replace(would, first=describe_own_change(change, run.now))
        return would

    def _spread_of(
        self, symptom: Symptom, tags: Mapping[str, str], shown: Mapping[str, set[str]]
    ) -> frozenset[str]:
        """The queues that heal would count. It does not count faults in configuration."""
        if _is_paced(symptom.name):
            return frozenset()
        word = mass_symptom_key(symptom.name, tags)
        return self._run.case_store.note_spread(shown.get(word, ()), word, self.now)

    def _facts(self, queue_arn: str, symptom: Symptom) -> Facts | None:
        """As heal gathers them, from what the scan was answered; None where they cost too much."""
        tags, needs = self._tags.get(queue_arn, {}), symptom.every_need
        facts = self.reader.read_queue(queue_arn, tags, {Need.QUEUE})
        if not self.purse.take(self.reader.metrics_to_ask(facts, needs)):
            return None
        return self._pinned(self.reader.with_more(facts, needs), needs)

    @cached_property
    def _tags(self) -> Mapping[str, Mapping[str, str]]:
        return {each.queue_arn: each.tags for each in self.queues}

    def _pinned(self, facts: Facts, needs: Collection[Need]) -> Facts:
        return with_pins(self._run, facts, needs)

    def metrics_an_hour(self, scanned: ScanResult, would: Mapping[Finding, WouldDo]) -> int:
        """What the scan of an hour like this asks for, and heal again about what it is told."""
        spoken_of = (each for each, what in would.items() if what.would != WAITS)
        announced = [each for each in spoken_of if BY_NAME[each.symptom].plan]
        of_many = f"{REFUSED}: mass_symptom"
        mass = {each.symptom for each, what in would.items() if what.would == of_many}
        return scanned.metrics + sum(
            self.reader.metrics_asked_again(each.queue_arn, BY_NAME[each.symptom].every_need)
            for each in limit_mass_findings(announced, mass)
        )

    def document(self, scanned: ScanResult, would: Mapping[Finding, WouldDo]) -> dict[str, Any]:
        """As a round in the case bucket, with what would come of it and what it cost."""
        findings = sorted(scanned.findings)
        an_hour = self.metrics_an_hour(scanned, would)
        return {
            **scanned.document(self.now),
            "findings": [{**each.document(), **asdict(would[each])} for each in findings],
            "metrics_asked": self.purse.spent,
            "dollars": round(METRIC_ASKED.cost(self.purse.spent), 4),
            "metrics_an_hour": an_hour,
            "dollars_per_month": estimate_monthly_dollars(an_hour),
        }


def _is_paced(name: str) -> bool:
    """True where people are told of it a few queues a day."""
    return BY_NAME[name].plan is not None and BY_NAME[name].is_of_configuration


def describe_decision(decision: Decision, because: str = "") -> WouldDo:
    """Describe what follows from a decision. `because`, the finding's sentence, is not repeated."""
    match decision:
        case NeedsFacts() | NeedsReach():
            raise TypeError(f"{decision} is no final decision")
        case Healthy():
            return WouldDo("does nothing: the queue stands as it should")
        case Decline() | KeepEvidence() | NoteFailures() | KeepWaiting():
            return _refused(decision.refusal)
        case RecordTransition(refusal=refusal) if refusal and refusal.code == "mass_symptom":
            return _refused(refusal)
        case WriteFix() | RecordTransition():
            return _describe_case(decision.case, because)


def _describe_case(case: Case, because: str) -> WouldDo:
    if case.state not in _ENDS_IN:
        return WouldDo(f"{REFUSED}: {case.code}", why=case.reason)
    # A person takes the steps of what pages; what was found stands above its line.
    steps = () if case.state is State.ESCALATED else tuple(step_lines(case.steps))
    reason = "" if case.reason == because else case.reason
    return WouldDo(_ENDS_IN[case.state], steps, reason)


def _refused(refusal: Refusal | None) -> WouldDo:
    assert refusal is not None  # noqa: S101 - what opens no case says why
    if refusal.code == "not_found":
        return WouldDo("finds nothing: it has passed meanwhile")
    return WouldDo(f"{REFUSED}: {refusal.code}", why=refusal.reason)
