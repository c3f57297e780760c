"""Dry run of the hourly scan with the operator's credentials, and a decision on each finding.

A dry run makes the same decisions as Mendq's Lambda `heal` and does not carry them out. It changes
no queue and no case, and invokes no Lambda. It cannot know two refusals that depend on the moment
of a write: the account has used up its writes of the minute, or another run works on the queue.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cached_property, partial
from itertools import accumulate
from math import ceil, inf
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
    find_waiting_findings,
    limit_mass_findings,
    merge_results,
)
from mendq.cases.made_dlqs import MadeDlqs
from mendq.cases.pins import add_pins
from mendq.cases.spread import mass_symptom_key
from mendq.cases.table import CaseStore
from mendq.catalogue import CATALOGUE, SYMPTOM_BY_NAME
from mendq.catalogue.symptom import Symptom
from mendq.cli.account import Account
from mendq.cli.look.case_view import list_step_lines
from mendq.heal.decide import (
    Decision,
    Decline,
    KeepEvidence,
    KeepWaiting,
    LeaveHealthyQueue,
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
    make_situation_if_managed,
)
from mendq.heal.outcome import Outcome
from mendq.heal.situation import Situation
from mendq.model.case import Case
from mendq.model.facts import Facts, Need
from mendq.model.mutes import Mute
from mendq.model.plan import Refusal
from mendq.model.prices import METRIC_READ
from mendq.model.queue import parse_queue_arn
from mendq.model.state import State
from mendq.model.steps import Owner
from mendq.model.traffic import SUM_SERIES, ScanHistory, SumsShare, hour_number
from mendq.notifications.own_change import describe_own_change
from mendq.scan.mutes import apply_mutes, find_findings_to_wait
from mendq.scan.reader import ScanReader, make_scan_reader
from mendq.scan.scan import Allowance, scan
from mendq.scan.selection import (
    MAXIMUM_NEW_FAULTS_PER_DAY,
    group_shared_defaults,
    map_merged_findings,
    map_topics,
    merge_shared_findings,
)
from mendq.scan.severity import find_class, rate_severity, sort_worst_first
from mendq.scan.source_checks import add_source_checks
from mendq.scan.store import ScanStore
from mendq.scan.urgency import share_seconds_left

if TYPE_CHECKING:
    from botocore.model import OperationModel

    from mendq.aws.operator_session import Session

SCANS_PER_MONTH = 24 * 30
# Version of the JSON documents of scans.
SCAN_DOCUMENT_SCHEMA = 1
# Values of `ExpectedAction.would`.
REFUSAL_TEXT = "would be refused"
WAIT_TEXT = "waits"
WRITE_TEXT = "does"
NO_DECISION_TEXT = "cannot say"
_RUN_NAME = "mendq scan --dry-run"
# Beginnings of the names of AWS actions that only read.
_READING_ACTION_PREFIXES = (
    "BatchGet",
    "Describe",
    "Get",
    "Head",
    "List",
    "Lookup",
    "Query",
    "Scan",
    "TransactGet",
)
# Errors that prevent the decision on one queue and not on the others: AWS did not answer, or its
# answer is not one about a queue.
UNDECIDABLE_ERRORS = (
    FactsUnavailable,
    CaseStoreUnavailable,
    CaseStoreUnreadable,
    QueueRefusesUs,
    ArithmeticError,
    ValueError,
)
METRIC_LIMIT_REASON = "it takes more metrics than --max-metrics lets it ask for"
# What a scan-only stack does where a whole stack in mode observe records a case.
_SCAN_ONLY_ACTION = "only reports"
# What Mendq would do, by the state in which the case would be.
_ACTION_BY_STATE = {
    State.APPLIED: WRITE_TEXT,
    State.APPROVED: WRITE_TEXT,
    State.PROPOSED: "proposes",
    State.OBSERVED: "only notes",
    State.ESCALATED: "pages",
}


def estimate_monthly_dollars(metrics_per_scan: int) -> float:
    """Return the dollars a month for CloudWatch metrics if an hourly scan runs all month.

    CloudWatch bills each metric that a scan reads. `metrics_per_scan` is their number in one scan.
    """
    return round(METRIC_READ.cost(metrics_per_scan) * SCANS_PER_MONTH, 2)


class MetricBudget(Struct):
    """Limit of the metrics that a scan may read from CloudWatch, which bills each of them."""

    # None means no limit.
    maximum_metrics: int | None = None
    asked_metric_count: int = 0

    def reserve_metrics(self, count: int) -> bool:
        """Take `count` metrics from the budget. Return False, and take none, if fewer are left."""
        if (
            self.maximum_metrics is not None
            and self.asked_metric_count + count > self.maximum_metrics
        ):
            return False
        self.asked_metric_count += count
        return True

    def count_left(self) -> float:
        """Return how many metrics may still be read; infinity without a limit."""
        if self.maximum_metrics is None:
            return inf
        return self.maximum_metrics - self.asked_metric_count


class DryRunChangeError(AssertionError):
    """A bug in Mendq: a dry run tried to send a request that changes something.

    The request was not sent.
    """


def make_readonly_clients(session: Session) -> Clients:
    """Return AWS clients that only read.

    Any other request raises DryRunChangeError and is not sent. This also applies to all clients
    that the session makes later.
    """
    session.events.register_first("before-call", _refuse_changes)
    return Clients(session)


def _refuse_changes(model: OperationModel, **_: Any) -> None:
    if not model.name.startswith(_READING_ACTION_PREFIXES):
        raise DryRunChangeError(f"{model.service_model.service_name} {model.name}")


class _ReadonlyCases(CaseStore, frozen=True):
    """The case store for a dry run: it reads, and a change of a set is computed but not stored."""

    def change_set(
        self, key: items.Key, name: str, _until: datetime, _drop: Sequence[str], add: Sequence[str]
    ) -> items.Item:
        """Return the set `name` of an item with the members of `add`, without storing it.

        Members that have expired are not removed.
        """
        current_members = items.read_texts(self.get(key), name)
        return {name: {"SS": sorted({*current_members, *add})}}


class _ReadonlyScans(ScanStore, frozen=True):
    """The scan's part of the case store for a dry run. Changes have no effect."""

    def change_and_read(self, *_: Any, **__: Any) -> items.Item:
        return {}


class _ReadonlyContext(FixContext, frozen=True):
    """The context of a run of heal, with a case store that stores nothing."""

    @property
    def case_store(self) -> CaseStore:
        return self.open_store(_ReadonlyCases)


class ExpectedAction(Struct, frozen=True):
    """What Mendq would do about one finding, in words for the operator."""

    # Such as `proposes`, or `would be refused` with the refusal's code.
    would: str
    # The planned steps, one line each.
    steps: tuple[str, ...] = ()
    # The reason. Empty if it is the finding's own sentence.
    why: str = ""
    # Commands for a person: to make the planned change by hand, or to follow up a refusal.
    commands: tuple[str, ...] = ()
    # Sentence about an earlier change by Mendq that may be the cause. Empty if there is none, or if
    # `why` begins with it.
    first: str = ""

    @property
    def line(self) -> str:
        """One line with an earlier change by Mendq, the action, and its steps or reason."""
        details_text = "; ".join(self.steps) or self.why
        action_text = (
            f"{self.would}: {details_text}"
            if self.would and details_text
            else self.would or details_text
        )
        return f"{self.first}. {action_text}" if self.first else action_text


class DryRun(Struct, frozen=True, dict=True):
    """Dry run of the hourly scan of all queues that the deployed stack manages."""

    account: Account
    now: datetime
    # Shared by the scan and by the decisions.
    budget: MetricBudget = field(default_factory=MetricBudget)

    @cached_property
    def queues(self) -> tuple[ManagedQueue, ...]:
        """The queues that the stack manages. Raises FactsUnavailable if they cannot be listed."""
        heal_context = self._heal_context
        return list_managed_queues(
            heal_context.clients, self.account.account_id, heal_context.settings.consent
        )

    @cached_property
    def _heal_context(self) -> FixContext:
        return _ReadonlyContext(
            clients=make_readonly_clients(self.account.session),
            settings=self.account.settings,
            owner=_RUN_NAME,
            now=self.now,
            remaining_seconds=lambda: float("inf"),
            write_steps=lambda *_: None,
            writer=Owner.HEAL,
        )

    @cached_property
    def reader(self) -> ScanReader:
        """The reader of facts. It asks AWS for each fact once, and slows down if AWS throttles."""
        return make_scan_reader(self._heal_context, self._heal_context.settings.consent)

    def run_scan(self) -> Iterator[ScanResult]:
        """Run the scan. After each part, yield the result of all parts so far.

        The last result is complete.
        """
        allowance = Allowance(
            may_measure=self.budget.reserve_metrics,
            count_metrics_left=self.budget.count_left,
            sums_share=self._sums_share,
        )
        history, error_by_target = self._read_history()
        partial_results = scan(self.queues, self.reader, allowance, CATALOGUE, history)
        accumulated_results = accumulate(
            partial_results, merge_results, initial=ScanResult(error_by_target=error_by_target)
        )
        queue_names = [queue.name for queue in self.queues]
        return (
            apply_mutes(
                add_source_checks(share_seconds_left(scan_result)),
                [name for name in queue_names if name <= scan_result.last_queue_name],
                self._mutes,
                self.now.date(),
            )
            for scan_result in accumulated_results
        )

    def _read_history(self) -> tuple[ScanHistory, Mapping[str, Exception]]:
        """Return what the deployed scans remember, or none of it and the error by its name."""
        heal_context = self._heal_context
        scan_store = _ReadonlyScans(
            heal_context.clients.dynamodb, heal_context.settings.case_table, _RUN_NAME
        )
        try:
            return scan_store.read_history(self.now), {}
        except (CaseStoreUnavailable, CaseStoreUnreadable) as error:
            return {}, {"history": error}

    @property
    def _sums_share(self) -> SumsShare | None:
        """The most queues whose sums the deployed scan asks for in one round."""
        return SumsShare.of_daily_limit(self._metrics_per_day)

    @property
    def _mutes(self) -> tuple[Mute, ...]:
        """The mutes of the deployed stack's settings."""
        return self._heal_context.settings.mutes

    def decide_findings(self, findings: Iterable[Finding]) -> dict[Finding, ExpectedAction]:
        """Return what Mendq would do about each finding that is not muted.

        Facts that heal needs and the scan did not read are read now.
        """
        all_findings = sorted(findings)
        sorted_findings = [finding for finding in all_findings if finding.mute is None]
        muted_findings = [finding for finding in all_findings if finding.mute is not None]
        try:
            waiting_reason_by_finding, merged_finding_by_finding = self._find_waiting_findings(
                sorted_findings, muted_findings
            )
        except UNDECIDABLE_ERRORS as error:
            return dict.fromkeys(sorted_findings, ExpectedAction(NO_DECISION_TEXT, why=str(error)))
        findings_to_decide = [
            finding for finding in sorted_findings if finding not in waiting_reason_by_finding
        ]
        queues_by_symptom = self._group_queues_by_symptom(findings_to_decide)
        action_by_finding = dict[Finding, ExpectedAction]()
        for finding in sorted_findings:
            symptom = SYMPTOM_BY_NAME[finding.symptom]
            if symptom.plan is None or symptom.detection is None:
                action = ExpectedAction("only reports it")
            elif finding in waiting_reason_by_finding:
                action = ExpectedAction(WAIT_TEXT, why=waiting_reason_by_finding[finding])
            else:
                merged_finding = merged_finding_by_finding[finding]
                action = self._decide_or_say_why_not(merged_finding, symptom, queues_by_symptom)
            action_by_finding[finding] = action
        return {**action_by_finding, **_join_shared_defaults(action_by_finding)}

    def _decide_or_say_why_not(
        self, finding: Finding, symptom: Symptom, queues_by_symptom: Mapping[str, set[str]]
    ) -> ExpectedAction:
        """Return what Mendq would do about a finding, or that this cannot be decided."""
        try:
            return self._decide(finding, symptom, queues_by_symptom)
        except UNDECIDABLE_ERRORS as error:
            return ExpectedAction(NO_DECISION_TEXT, why=str(error))

    def is_queue_managed(self, finding: Finding) -> bool:
        """Return True if Mendq manages the finding's queue.

        Mendq also manages a DLQ that it made itself for a managed queue. If the case store cannot
        say whether Mendq made the DLQ, return False.
        """
        if finding.queue_arn in self._tags_by_queue_arn:
            return True
        made_dlqs = self._heal_context.open_store(MadeDlqs)
        managed_sources = [
            source_arn
            for source_arn in finding.source_arns
            if source_arn in self._tags_by_queue_arn
        ]
        with suppress(CaseStoreUnavailable, CaseStoreUnreadable):
            return any(
                made_dlqs.is_made_by_mendq(source_arn, finding.queue_arn)
                for source_arn in managed_sources
            )
        return False

    def _find_waiting_findings(
        self, findings: list[Finding], muted_findings: Collection[Finding]
    ) -> tuple[Mapping[Finding, str], Mapping[Finding, Finding]]:
        """Find the findings that the scan would not pass to heal now.

        The scan merges the findings of queues that name the same missing queue. One of them
        represents the others.

        Returns:
            Two mappings. The first has the reason to wait, by finding. The second has the merged
            findings: a finding that represents others is mapped to a copy that mentions them, and
            any other finding to itself.
        """
        heal_context = self._heal_context
        merged_findings = merge_shared_findings(
            findings,
            self.queues,
            heal_context.open_cases.list_open_cases(),
            heal_context.settings.consent,
        )
        waiting_reason_by_finding = dict[Finding, str]()
        for finding, representative_finding in map_merged_findings(
            findings, merged_findings
        ).items():
            representative_name = parse_queue_arn(representative_finding.queue_arn).name
            waiting_reason_by_finding[finding] = (
                f"said_of_another: {representative_name} speaks for it"
            )
        earlier_symptoms_by_symptom = {
            name: symptom.gives_way_to for name, symptom in SYMPTOM_BY_NAME.items()
        }
        for finding, symptom_name in find_waiting_findings(
            merged_findings, earlier_symptoms_by_symptom
        ).items():
            waiting_reason_by_finding[finding] = f"{symptom_name} goes first"
        name_with_muted = find_waiting_findings(
            (*merged_findings, *muted_findings), earlier_symptoms_by_symptom
        )
        for finding in find_findings_to_wait(
            merged_findings, muted_findings, earlier_symptoms_by_symptom
        ):
            muted_name = name_with_muted.get(finding, "another symptom")
            waiting_reason_by_finding.setdefault(
                finding,
                f"{muted_name} goes first: it is muted, but this fix waits while it is found",
            )
        for finding in self._list_findings_over_daily_limit(
            [finding for finding in merged_findings if finding not in waiting_reason_by_finding]
        ):
            waiting_reason_by_finding[finding] = (
                f"of faults in configuration {MAXIMUM_NEW_FAULTS_PER_DAY} new ones a day are taken "
                "up"
            )
        return waiting_reason_by_finding, {finding: finding for finding in merged_findings}

    def _list_findings_over_daily_limit(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings about configuration that are too many for one day."""
        limited_findings = [finding for finding in findings if _is_daily_limited(finding.symptom)]
        if not limited_findings:
            return []
        heal_context = self._heal_context
        scan_store = _ReadonlyScans(
            heal_context.clients.dynamodb, heal_context.settings.case_table, _RUN_NAME
        )
        topic_by_finding = map_topics(limited_findings)
        admitted_topics = scan_store.admit_faults(list(topic_by_finding.values()), self.now)
        return [
            finding
            for finding in limited_findings
            if topic_by_finding[finding] not in admitted_topics
        ]

    def _group_queues_by_symptom(self, findings: Iterable[Finding]) -> Mapping[str, set[str]]:
        """Group the findings' queues by symptom, to see if many queues show the same symptom.

        A queue is in the group of the symptom's name, as the scan counts it, and in the group of
        the key by which heal counts it. The two differ for the queues of drills.
        """
        queues_by_symptom = defaultdict[str, set[str]](set)
        for finding in findings:
            spread_key = mass_symptom_key(
                finding.symptom, self._tags_by_queue_arn.get(finding.queue_arn, {})
            )
            queues_by_symptom[finding.symptom].add(finding.queue_arn)
            queues_by_symptom[spread_key].add(finding.queue_arn)
        return queues_by_symptom

    def _decide(
        self, finding: Finding, symptom: Symptom, queues_by_symptom: Mapping[str, set[str]]
    ) -> ExpectedAction:
        """Decide as heal would about one finding, and return the decision in words."""
        heal_context = self._heal_context
        queue_arn = finding.queue_arn
        facts = self._read_facts(queue_arn, symptom)
        if facts is None:
            return ExpectedAction(NO_DECISION_TEXT, why=METRIC_LIMIT_REASON)
        finding_group = Group(
            queue_arn, symptom, must_measure=True, shared_finding=finding.reference
        )
        case_store_view = heal_context.case_store.look(queue_arn, symptom.name, symptom.attributes)
        if case_store_view.intent is not None and not case_store_view.is_held_by_another(
            heal_context.owner, heal_context.now
        ):
            return ExpectedAction(
                "first ends what a run that died has begun", why=case_store_view.intent.case_id
            )
        situation = make_situation_if_managed(
            finding_group, heal_context, facts.tags, case_store_view
        )
        if not isinstance(situation, Outcome):
            situation = confirm_finding(finding_group, situation, facts, heal_context)
        if isinstance(situation, Outcome):
            return _describe_refusal(situation.refusal)

        def count_queues(situation_without_count: Situation) -> Situation:
            queues_with_symptom = self._list_queues_with_symptom(
                symptom, facts.tags, queues_by_symptom
            )
            return add_reach(situation_without_count, queues_with_symptom, heal_context)

        decision, situation = gather_and_decide(
            situation, read_queue=partial(add_facts, run=heal_context), count_queues=count_queues
        )
        action = describe_decision(decision, finding.sentence)
        if self.account.is_scan_only and action.would == _ACTION_BY_STATE[State.OBSERVED]:
            action = replace(action, would=_SCAN_ONLY_ACTION)
        own_change = situation.facts.own_change
        if own_change is not None and action.steps:
            return replace(action, first=describe_own_change(own_change, heal_context.now))
        return action

    def _list_queues_with_symptom(
        self,
        symptom: Symptom,
        tags: Mapping[str, str],
        queues_by_symptom: Mapping[str, set[str]],
    ) -> frozenset[str]:
        """Return the ARNs of the queues that heal would count as showing the symptom.

        Empty if the symptom is a fault in configuration, because heal does not count those.
        """
        if _is_daily_limited(symptom.name):
            return frozenset()
        spread_key = mass_symptom_key(symptom.name, tags)
        return self._heal_context.case_store.note_spread(
            queues_by_symptom.get(spread_key, ()), spread_key, self.now
        )

    def _read_facts(self, queue_arn: str, symptom: Symptom) -> Facts | None:
        """Read the facts about a queue that heal would read for the symptom.

        Answers that the scan got from AWS already are used again. The metrics to read are taken
        from the budget; None if the budget has too few left.
        """
        tags = self._tags_by_queue_arn.get(queue_arn, {})
        needed_facts = symptom.all_needs
        facts = self.reader.read_queue(queue_arn, tags, {Need.QUEUE})
        if not self.budget.reserve_metrics(self.reader.count_metrics_to_read(facts, needed_facts)):
            return None
        return self._add_pins(self.reader.with_needed_facts(facts, needed_facts), needed_facts)

    @cached_property
    def _tags_by_queue_arn(self) -> Mapping[str, Mapping[str, str]]:
        """The tags of each queue in `queues`, by queue ARN."""
        return {queue.queue_arn: queue.tags for queue in self.queues}

    def _add_pins(self, facts: Facts, needs: Collection[Need]) -> Facts:
        return add_pins(self._heal_context, facts, needs)

    def count_metrics_per_hour(
        self, scan_result: ScanResult, action_by_finding: Mapping[Finding, ExpectedAction]
    ) -> int:
        """Estimate the metrics read per hour by scan and heal.

        It is the mean of an hour with sums and one without, at most `limits.scanMetricsPerDay` /
        24.

        Args:
            scan_result: The result of the scan.
            action_by_finding: What Mendq would do about each finding.
        """
        findings_for_heal = [
            finding
            for finding, action in action_by_finding.items()
            if action.would != WAIT_TEXT and SYMPTOM_BY_NAME[finding.symptom].plan
        ]
        mass_symptoms = {
            finding.symptom
            for finding, action in action_by_finding.items()
            if action.would == f"{REFUSAL_TEXT}: mass_symptom"
        }
        heal_metric_count = 0
        for finding in limit_mass_findings(findings_for_heal, mass_symptoms):
            if finding.measured and action_by_finding[finding].would != WRITE_TEXT:
                continue  # heal uses the scan's metrics if it writes nothing
            needed_facts = SYMPTOM_BY_NAME[finding.symptom].all_needs
            heal_metric_count += self.reader.count_metrics_that_heal_reads(
                finding.queue_arn, needed_facts
            )
        hour = hour_number(self.now)
        queues_with_sums = sum(
            record.sums_hour == hour for record in scan_result.record_by_queue_name.values()
        )
        metrics_without_sums = scan_result.metrics + len(SUM_SERIES) * (
            scan_result.measured - queues_with_sums
        )
        mean_metric_count = ceil((scan_result.metrics + metrics_without_sums) / 2)
        return min(mean_metric_count + heal_metric_count, self._metrics_per_day // 24)

    @property
    def _metrics_per_day(self) -> int:
        """The most metrics that the deployed scan may read in a day."""
        return self._heal_context.settings.limits.scan_metrics_per_day

    def document(
        self, scan_result: ScanResult, action_by_finding: Mapping[Finding, ExpectedAction]
    ) -> dict[str, Any]:
        """Return the JSON document of the scan: its results, Mendq's actions and the costs.

        The results have the form in which the hourly scan stores them in the case bucket.
        """
        metrics_per_hour = self.count_metrics_per_hour(scan_result, action_by_finding)
        return {
            "schema": SCAN_DOCUMENT_SCHEMA,
            **scan_result.document(self.now),
            "findings": [
                {
                    **finding.document(),
                    "severity": rate_severity(finding),
                    "class": find_class(finding),
                    "first_step": SYMPTOM_BY_NAME[finding.symptom].first_step,
                    **asdict(action_by_finding[finding]),
                }
                for finding in sort_worst_first(scan_result.reported_findings)
            ],
            "shared_defaults": make_shared_defaults_document(scan_result.reported_findings),
            "metrics_asked": self.budget.asked_metric_count,
            "dollars": round(METRIC_READ.cost(self.budget.asked_metric_count), 4),
            "metrics_an_hour": metrics_per_hour,
            "dollars_per_month": estimate_monthly_dollars(metrics_per_hour),
        }


def _join_shared_defaults(
    action_by_finding: Mapping[Finding, ExpectedAction],
) -> dict[Finding, ExpectedAction]:
    """Return the actions for the findings of which Mendq asks together, with one approval."""
    proposed_text = _ACTION_BY_STATE[State.PROPOSED]
    changed_findings = [
        finding
        for finding, action in action_by_finding.items()
        if action.would in (WRITE_TEXT, proposed_text) and action.steps
    ]
    joined_action_by_finding = dict[Finding, ExpectedAction]()
    for group in group_shared_defaults(changed_findings):
        shared_text = f"One approval for {len(group)} queues that share this setting"
        for finding in group:
            joined_action_by_finding[finding] = replace(
                action_by_finding[finding], would=proposed_text, first=shared_text
            )
    return joined_action_by_finding


def make_shared_defaults_document(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return the shared defaults among the findings, as a part of the scan's JSON document."""
    return [
        {
            "symptom": group[0].symptom,
            "setting": group[0].shared_setting,
            "queue_arns": [finding.queue_arn for finding in group],
        }
        for group in group_shared_defaults(findings)
    ]


def _is_daily_limited(symptom_name: str) -> bool:
    """Return True if Mendq handles only a few new queues with this symptom per day.

    That is so for faults in configuration that Mendq can fix.
    """
    return (
        SYMPTOM_BY_NAME[symptom_name].plan is not None
        and SYMPTOM_BY_NAME[symptom_name].is_of_configuration
    )


def describe_decision(decision: Decision, because: str = "") -> ExpectedAction:
    """Return in words what a decision of heal would do.

    Args:
        decision: The decision.
        because: The sentence of the finding. It is not repeated as the reason.

    Raises:
        TypeError: The decision is not final, because it asks for more facts.
    """
    match decision:
        case NeedsFacts() | NeedsReach():
            raise TypeError(f"{decision} is no final decision")
        case LeaveHealthyQueue():
            return ExpectedAction("does nothing: the queue stands as it should")
        case Decline() | KeepEvidence() | NoteFailures() | KeepWaiting():
            return _describe_refusal(decision.refusal)
        case RecordTransition(refusal=refusal) if refusal and refusal.code == "mass_symptom":
            return _describe_refusal(refusal)
        case WriteFix() | RecordTransition():
            return _describe_case(decision.case, because)


def _describe_case(case: Case, because: str) -> ExpectedAction:
    """Return in words what Mendq would do with the case that a decision would record."""
    if case.state not in _ACTION_BY_STATE:
        return ExpectedAction(f"{REFUSAL_TEXT}: {case.code}", why=case.reason)
    # An escalated case leaves its steps to a person. The finding is printed above this text.
    steps = () if case.state is State.ESCALATED else tuple(list_step_lines(case.steps))
    reason_unless_repeated = "" if case.reason == because else case.reason
    return ExpectedAction(_ACTION_BY_STATE[case.state], steps, reason_unless_repeated)


def _describe_refusal(refusal: Refusal | None) -> ExpectedAction:
    """Return in words that Mendq would refuse to act, and why."""
    assert refusal is not None  # noqa: S101 - a decision without a case has a refusal
    if refusal.code == "not_found":
        return ExpectedAction("finds nothing: it has passed meanwhile")
    return ExpectedAction(f"{REFUSAL_TEXT}: {refusal.code}", why=refusal.reason)
