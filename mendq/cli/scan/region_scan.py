"""Scan of all queues of a region with the operator's credentials. It needs no deployed stack.

If a stack is deployed, the scan also says what that stack would do about the queues it manages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec.structs import asdict

from mendq.aws.clients import Clients
from mendq.aws.errors import FactsUnavailable, is_access_denied
from mendq.aws.queue import ManagedQueue, QueueListing, list_readable_queues
from mendq.cases.finding import Finding, ScanResult
from mendq.catalogue import CATALOGUE, SYMPTOM_BY_NAME
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import describe_error
from mendq.cli.look.case_view import list_step_lines
from mendq.cli.scan.dry_run import (
    METRIC_LIMIT_REASON,
    NO_DECISION_TEXT,
    SCAN_DOCUMENT_SCHEMA,
    UNDECIDABLE_ERRORS,
    DryRun,
    ExpectedAction,
    estimate_monthly_dollars,
    make_readonly_clients,
    make_shared_defaults_document,
)
from mendq.model.consent import Consent
from mendq.model.facts import Facts, Need
from mendq.model.limits import Limits, Timing
from mendq.model.mode import Mode
from mendq.model.mutes import Mute
from mendq.model.names import PROBE_QUEUE
from mendq.model.plan import Plan
from mendq.model.prices import METRIC_READ
from mendq.model.queue import is_quarantine, parse_queue_arn
from mendq.model.tags import TEAM_TAG
from mendq.model.time_text import format_time
from mendq.model.traffic import ScanHistory, SumsShare
from mendq.notifications.change_lines import list_change_commands
from mendq.notifications.next_steps import choose_command_without_case
from mendq.notifications.text import format_count
from mendq.scan.reader import ScanReader
from mendq.scan.severity import (
    find_class,
    find_explained_findings,
    rate_severity,
    sort_worst_first,
)

_METRIC_LIMIT_NOTE = f"not measured: {METRIC_LIMIT_REASON}"
_PARTLY_CHECKED_NOTE = (
    "not looked at for faults that only cost money or do no harm yet: --max-metrics is spent"
)
_OFF_TAG_NOTE = "not looked at: its tag `mendq` is `off`"
_QUARANTINE_NOTE = "not looked at: by its name it is a quarantine, which is nobody's to fix"
_ABSENT_QUEUE_NOTE = "there is no queue of that name"


# Pattern that fits every queue.
ANY_QUEUE_PATTERN = "*"


class _ScanConsent(Consent):
    """Settings that say which queues a scan of a region may read. `*` means every queue.

    Unlike heal's settings, they include quarantines, because a scan changes nothing.
    """

    def is_queue_named(self, queue_name: str) -> bool:
        return ANY_QUEUE_PATTERN in self.queues or super().is_queue_named(queue_name)

    def mode_of(self, queue_name: str, tags: Mapping[str, str]) -> Mode | None:
        return Mode.OBSERVE if is_quarantine(queue_name) else super().mode_of(queue_name, tags)

    def without_team_tag(self, tags: Mapping[str, str]) -> dict[str, str]:
        """Return a queue's tags without the tag that names its team.

        Only a deployed stack knows the teams. So its scan reports a wrong team name, and this scan
        does not.
        """
        return {key: value for key, value in tags.items() if key != TEAM_TAG}


class RegionScan(DryRun, frozen=True, dict=True):
    """Scan of the queues of a region whose names match one of `patterns`."""

    # Names of queues, or prefixes that end in `*`.
    patterns: tuple[str, ...] = (ANY_QUEUE_PATTERN,)

    @cached_property
    def stack_dry_run(self) -> DryRun | Exception | None:
        """The dry run of the deployed stack's own scan, or the error if the stack cannot be read.

        None if no stack is deployed, or if the credentials may not ask CloudFormation, such as
        those with only the permissions that `--policy` prints.
        """
        dry_run = DryRun(self.account, self.now, self.budget)
        try:
            # A second try, if AWS does not answer in time: without the stack, the scan cannot say
            # what Mendq would do.
            with suppress(FactsUnavailable, BotoCoreError):
                dry_run.queues  # noqa: B018 - reads the stack, its settings and its queues
            dry_run.queues  # noqa: B018 - reads the stack, its settings and its queues
        except (CommandError, *UNDECIDABLE_ERRORS, ClientError, BotoCoreError) as error:
            has_no_stack = isinstance(error, CommandError) and error.code is Exit.NOT_FOUND
            may_not_describe_stacks = (
                isinstance(error, ClientError)
                and error.operation_name == "DescribeStacks"
                and is_access_denied(error)
            )
            return None if has_no_stack or may_not_describe_stacks else error
        return dry_run

    @cached_property
    def _queue_listing(self) -> QueueListing:
        """All queues that match the patterns, with quarantines, and queues whose mode is `off`."""
        scan_consent = _ScanConsent(queues=self.patterns)
        queue_listing = list_readable_queues(self._clients, self.account.account_id, scan_consent)
        queues = tuple(
            queue for queue in queue_listing.queues if scan_consent.is_queue_named(queue.name)
        )
        arns_of_queues_tagged_off = tuple(
            queue_arn
            for queue_arn in queue_listing.arns_tagged_off
            if scan_consent.is_queue_named(parse_queue_arn(queue_arn).name)
        )
        return QueueListing(queues, queue_listing.error_by_pattern, arns_of_queues_tagged_off)

    @cached_property
    def queues(self) -> tuple[ManagedQueue, ...]:
        """The queues to scan, without quarantines.

        Raises FactsUnavailable as `list_readable_queues` does: one pattern that cannot be listed is
        no error if queues are found.
        """
        return tuple(queue for queue in self._queue_listing.queues if not is_quarantine(queue.name))

    @property
    def absent_queue_names(self) -> list[str]:
        """Names in `patterns` that no queue has, sorted.

        A name whose queues could not be listed is left out: a queue may have it.
        """
        existing_queue_names = {
            parse_queue_arn(queue_arn).name for queue_arn in self._existing_queue_arns
        }
        named_queue_names = {pattern for pattern in self.patterns if not pattern.endswith("*")}
        unlisted_names = self._queue_listing.error_by_pattern.keys()
        return sorted(named_queue_names - existing_queue_names - unlisted_names)

    @cached_property
    def _existing_queue_arns(self) -> frozenset[str]:
        """ARNs of all queues that match the patterns, with those whose mode is `off`."""
        queue_arns = (queue.queue_arn for queue in self._queue_listing.queues)
        return frozenset((*queue_arns, *self._queue_listing.arns_tagged_off))

    def is_queue_absent(self, queue_arn: str) -> bool:
        """Return True if the list of all queues is complete and does not have this queue.

        Use it only with the default `patterns`, which list all queues. The answer saves a call to
        AWS, because failed calls often name queues that do not exist.
        """
        return (
            not self._queue_listing.error_by_pattern and queue_arn not in self._existing_queue_arns
        )

    @cached_property
    def _stack_timing(self) -> Timing:
        """The time settings of the deployed stack, so that both scans find the same.

        They do not need the stack's queues: if only those cannot be listed, the stack's settings
        still count. The default settings if no stack is deployed or its settings cannot be read;
        their `measuring_minutes` are the shortest that a stack on AWS can set.
        """
        if self.stack_dry_run is None:
            return Timing()
        try:
            return self.account.settings.timing
        except (CommandError, *UNDECIDABLE_ERRORS, ClientError, BotoCoreError):
            return Timing()

    @property
    def _metrics_per_day(self) -> int:
        """The most metrics that a scan deployed with the default settings may read in a day."""
        return Limits().scan_metrics_per_day

    def _read_history(self) -> tuple[ScanHistory, Mapping[str, Exception]]:
        """Return no history and no error: this scan works without a deployed stack."""
        return {}, {}

    @property
    def _sums_share(self) -> SumsShare | None:
        """None: the sums of all queues are asked for, up to the operator's budget."""
        return None

    @property
    def _mutes(self) -> tuple[Mute, ...]:
        """No mutes: the command applies those of the operator's file."""
        return ()

    @cached_property
    def _clients(self) -> Clients:
        return make_readonly_clients(self.account.session)

    @cached_property
    def reader(self) -> ScanReader:
        """The reader of facts. It has no case store, so it knows no cases and no message moves."""
        return ScanReader(
            self._clients,
            self.now,
            self._stack_timing,
            list_open_symptoms=lambda _: frozenset(),
            read_noted_move_destinations=frozenset,
            list_newest_cases=lambda _: (),
            consent=_ScanConsent(queues=(ANY_QUEUE_PATTERN,)),
        )

    def decide_findings(self, findings: Iterable[Finding]) -> dict[Finding, ExpectedAction]:
        """Return what Mendq would do about each finding.

        For queues that the deployed stack manages, this is what the stack would do. For all other
        queues, and for all queues if the stack cannot be read, it is what the catalogue's plan
        would change with the default limits.
        """
        all_findings = list(findings)
        action_by_finding = dict[Finding, ExpectedAction]()
        if isinstance(self.stack_dry_run, DryRun):
            managed_findings = [
                finding for finding in all_findings if self.stack_dry_run.is_queue_managed(finding)
            ]
            if managed_findings:
                action_by_finding = self.stack_dry_run.decide_findings(managed_findings)
        return {
            finding: action_by_finding.get(finding) or self._decide_by_catalogue(finding)
            for finding in all_findings
        }

    def _decide_by_catalogue(self, finding: Finding) -> ExpectedAction:
        """Return in words what the catalogue's plan would change, without a deployed stack."""
        symptom = SYMPTOM_BY_NAME[finding.symptom]
        if symptom.plan is None:
            return ExpectedAction("only reports it")
        try:
            facts = self._read_facts(finding.queue_arn, symptom)
            if facts is None:
                return ExpectedAction(NO_DECISION_TEXT, why=METRIC_LIMIT_REASON)
            plan_or_refusal = symptom.plan(facts, Limits())
        except UNDECIDABLE_ERRORS as error:
            return ExpectedAction(NO_DECISION_TEXT, why=str(error))
        if not isinstance(plan_or_refusal, Plan):
            command = choose_command_without_case(plan_or_refusal, finding.queue_arn)
            manual_commands = (command,) if command else ()
            return ExpectedAction(
                "would change nothing", (), plan_or_refusal.reason, manual_commands
            )
        steps = [step.document() for step in plan_or_refusal.steps]
        manual_commands_of_plan = list_change_commands(finding.queue_arn, steps, facts.attributes)
        if not steps:
            return ExpectedAction("finds nothing more")
        return ExpectedAction(
            "could change", tuple(list_step_lines(steps)), commands=tuple(manual_commands_of_plan)
        )

    def _add_pins(self, facts: Facts, _needs: Collection[Need]) -> Facts:
        """Return the facts unchanged. Pins are in the case store, which this scan does not have."""
        return facts

    def explain_unchecked(self, scan_result: ScanResult) -> dict[str, str]:
        """Return the reasons why something was not checked, or not completely.

        The keys are queue ARNs, patterns, names that no queue has, or `the stack Mendq`.
        """
        queue_listing = self._queue_listing
        error_by_target = {**queue_listing.error_by_pattern, **scan_result.error_by_target}
        minutes_text = format_count(self._stack_timing.measuring_minutes, "minute")
        too_new_note = (
            f"not measured: made or changed too lately, as {minutes_text} of it have to be counted"
        )
        if isinstance(self.stack_dry_run, Exception):
            error_by_target[f"the stack {self.account.stack}"] = self.stack_dry_run
        # The stack's own queues have the tag `off` too. Alarms watch them.
        own_queue_prefixes = (f"{self.account.stack}-", PROBE_QUEUE)
        arns_of_queues_tagged_off = (
            queue_arn
            for queue_arn in queue_listing.arns_tagged_off
            if not parse_queue_arn(queue_arn).name.startswith(own_queue_prefixes)
        )
        quarantine_arns = (
            queue.queue_arn for queue in queue_listing.queues if is_quarantine(queue.name)
        )
        return {
            **dict.fromkeys(self.absent_queue_names, _ABSENT_QUEUE_NOTE),
            **dict.fromkeys(quarantine_arns, _QUARANTINE_NOTE),
            **dict.fromkeys(arns_of_queues_tagged_off, _OFF_TAG_NOTE),
            **dict.fromkeys(scan_result.partly_checked_arns, _PARTLY_CHECKED_NOTE),
            **dict.fromkeys(scan_result.skipped_arns, _METRIC_LIMIT_NOTE),
            **scan_result.gap_reason_by_arn,
            **dict.fromkeys(scan_result.unsettled_arns, too_new_note),
            # AWS names the policy that refused at the end of a long line.
            **{target: describe_error(error)[:600] for target, error in error_by_target.items()},
        }

    def document(
        self, scan_result: ScanResult, action_by_finding: Mapping[Finding, ExpectedAction]
    ) -> dict[str, Any]:
        """Return the JSON document of the scan: findings, queues, and what was not checked."""
        explaining_symptom_by_finding = find_explained_findings(action_by_finding)
        return {
            "schema": SCAN_DOCUMENT_SCHEMA,
            "at": format_time(self.now),
            "account": self.account.account_id,
            "region": self.account.region,
            "findings": [
                {
                    "account": self.account.account_id,
                    "region": self.account.region,
                    "queue_arn": finding.queue_arn,
                    "symptom": finding.symptom,
                    "severity": rate_severity(finding),
                    "class": find_class(finding),
                    "reason": finding.sentence,
                    "first_step": SYMPTOM_BY_NAME[finding.symptom].first_step,
                    "explained_by": explaining_symptom_by_finding.get(finding),
                    "plan": asdict(action_by_finding[finding]),
                    "runbook": SYMPTOM_BY_NAME[finding.symptom].runbook,
                }
                for finding in sort_worst_first(action_by_finding)
            ],
            "shared_defaults": make_shared_defaults_document(action_by_finding),
            "queues": [queue.queue_arn for queue in self.queues],
            "measured_because": {**scan_result.measuring_reason_by_arn},
            "not_seen": self.explain_unchecked(scan_result),
            "not_judged": {**scan_result.unjudged_reason_by_symptom},
            "by_failed_calls_alone": SYMPTOMS_UNSEEN_BY_SCANS,
            "metrics_asked": self.budget.asked_metric_count,
            "dollars": round(METRIC_READ.cost(self.budget.asked_metric_count), 4),
            "dollars_per_month": estimate_monthly_dollars(
                self.count_metrics_per_hour(scan_result, action_by_finding)
            ),
        }


# Names of the symptoms that no scan can see, sorted.
SYMPTOMS_UNSEEN_BY_SCANS = sorted(
    symptom.name for symptom in CATALOGUE if symptom.detection is None
)
