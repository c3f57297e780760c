"""A scan of every queue of a region with an operator's credentials; nothing of Mendq's is needed.

Where a stack is there, it also says what that would do about the queues that it manages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from functools import cached_property
from math import inf
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec.structs import asdict

from mendq.aws.clients import Clients
from mendq.aws.errors import is_denied
from mendq.aws.queue import Listing, ManagedQueue, list_readable_queues
from mendq.cases.finding import Finding, ScanResult
from mendq.catalogue import BY_NAME, CATALOGUE
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import describe_error
from mendq.cli.look.case_view import step_lines
from mendq.cli.scan.dry_run import (
    CANNOT_SAY,
    TOO_DEAR,
    DryRun,
    WouldDo,
    estimate_monthly_dollars,
    make_readonly_clients,
)
from mendq.model.evidence import to_text
from mendq.model.facts import Facts, Need
from mendq.model.limits import TEAM_TAG, Consent, Limits, Mode, Timing
from mendq.model.names import PROBE_QUEUE
from mendq.model.plan import Plan
from mendq.model.prices import METRIC_ASKED
from mendq.model.queue import is_quarantine, parts_of
from mendq.notifications.change_lines import commands
from mendq.notifications.next_steps import command_without_case
from mendq.notifications.text import format_count
from mendq.scan.reader import ScanReader

_NOT_MEASURED = f"not measured: {TOO_DEAR}"
_OFF = "not looked at: its tag `mendq` is `off`"
_QUARANTINE = "not looked at: by its name it is a quarantine, which is nobody's to fix"
_NONE = "there is no queue of that name"


class FindingSeverity(StrEnum):
    """What a finding does to the queue's users, the worst first."""

    LOSING = "losing messages"
    FAILING = "failing now"
    AT_RISK = "at risk"
    COSTING = "costing money"


def rate_severity(finding: Finding) -> FindingSeverity:
    """Messages expire; what was measured goes on now; all else may, or merely costs."""
    detection = BY_NAME[finding.symptom].detection
    assert detection is not None  # noqa: S101 - or nothing had been found
    if finding.seconds_left is not None:
        return FindingSeverity.LOSING
    if detection.measured_last:
        return FindingSeverity.COSTING
    is_measured = Need.MEASUREMENTS in detection.needs and not detection.of_configuration
    return FindingSeverity.FAILING if is_measured else FindingSeverity.AT_RISK


EVERYTHING = "*"


class _ToLookAt(Consent):
    """A bare `*` names every queue here, quarantines too: who only looks changes none."""

    def names(self, queue_name: str) -> bool:
        return EVERYTHING in self.queues or super().names(queue_name)

    def mode_of(self, queue_name: str, tags: Mapping[str, str]) -> Mode | None:
        return Mode.OBSERVE if is_quarantine(queue_name) else super().mode_of(queue_name, tags)

    def without_team_tag(self, tags: Mapping[str, str]) -> dict[str, str]:
        """Which teams there are, settings alone know: the deployed scan reports what is none."""
        return {key: text for key, text in tags.items() if key != TEAM_TAG}


class RegionScan(DryRun, frozen=True, dict=True):
    """Those of a region's queues that fit one of `patterns`: names, or prefixes ending in `*`."""

    patterns: tuple[str, ...] = (EVERYTHING,)

    @cached_property
    def deployed(self) -> DryRun | Exception | None:
        """The same by the stack's settings, or why they cannot be read.

        None where there is none, and where these rights cannot tell: those of `--policy` cannot.
        """
        beside = DryRun(self.account, self.now, self.purse)
        try:
            beside.queues  # noqa: B018 - asks for stack, settings and queues
        except (CommandError, *CANNOT_SAY, ClientError, BotoCoreError) as error:
            is_none = isinstance(error, CommandError) and error.code is Exit.NOT_FOUND
            asked = getattr(error, "operation_name", "")
            hidden = asked == "DescribeStacks" and is_denied(error)
            return None if is_none or hidden else error
        return beside

    @cached_property
    def _listing(self) -> Listing:
        asked = _ToLookAt(queues=self.patterns)
        found = list_readable_queues(self._looking, self.account.account_id, asked)
        fits = [each for each in found.queues if asked.names(each.name)]
        off = [each for each in found.off if asked.names(parts_of(each).name)]
        return Listing(tuple(fits), found.failed, tuple(off))

    @cached_property
    def queues(self) -> tuple[ManagedQueue, ...]:
        """Raises FactsUnavailable where none can be listed."""
        return tuple(each for each in self._listing.queues if not is_quarantine(each.name))

    @property
    def absent(self) -> list[str]:
        """The names that were asked for and that no queue has, sorted."""
        known = {parts_of(arn).name for arn in self._known}
        return sorted({each for each in self.patterns if not each.endswith("*")} - known)

    @cached_property
    def _known(self) -> frozenset[str]:
        there = self._listing
        return frozenset((*(each.queue_arn for each in there.queues), *there.off))

    def is_absent(self, queue_arn: str) -> bool:
        """Whether all are known, and none is it: made-up names are not worth a call each."""
        return not self._listing.failed and queue_arn not in self._known

    @cached_property
    def _timing(self) -> Timing:
        """The stack's, where there is one: both find the same."""
        deployed = self.deployed
        return deployed.account.settings.timing if isinstance(deployed, DryRun) else Timing()

    @cached_property
    def _looking(self) -> Clients:
        return make_readonly_clients(self.account.session)

    @cached_property
    def reader(self) -> ScanReader:
        """Of no case, move or approval is anything known without a case store."""
        return ScanReader(
            self._looking,
            self.now,
            self._timing,
            list_open_symptoms=lambda _: frozenset(),
            noted_moves=frozenset,
            list_newest_cases=lambda _: (),
            consent=_ToLookAt(queues=(EVERYTHING,)),
        )

    def would_do(self, findings: Iterable[Finding]) -> dict[Finding, WouldDo]:
        """What the stack would do about what it manages, and the plan for every other queue."""
        every, would = list(findings), dict[Finding, WouldDo]()
        if isinstance(self.deployed, DryRun):
            theirs = [each for each in every if self.deployed.looks_after(each)]
            would = self.deployed.would_do(theirs) if theirs else would
        return {each: would.get(each) or self._planned(each) for each in every}

    def _planned(self, finding: Finding) -> WouldDo:
        symptom = BY_NAME[finding.symptom]
        if symptom.plan is None:
            return WouldDo("only reports it")
        try:
            facts = self._facts(finding.queue_arn, symptom)
            if facts is None:
                return WouldDo("cannot say", why=TOO_DEAR)
            answer = symptom.plan(facts, Limits())
        except CANNOT_SAY as error:
            return WouldDo("cannot say", why=str(error))
        if not isinstance(answer, Plan):
            command = command_without_case(answer, finding.queue_arn)
            return WouldDo("would change nothing", (), answer.reason, (command,) * bool(command))
        steps = [each.document() for each in answer.steps]
        manual = commands(finding.queue_arn, steps, facts.attributes)
        could = WouldDo("could change", tuple(step_lines(steps)), commands=tuple(manual))
        return could if steps else WouldDo("finds nothing more")

    def _pinned(self, facts: Facts, _needs: Collection[Need]) -> Facts:
        """Without a case store nothing is."""
        return facts

    def not_seen(self, scanned: ScanResult) -> dict[str, str]:
        """Why nothing, or not everything, is known of a queue, or of what the stack would do."""
        there, failed = self._listing, {**self._listing.failed, **scanned.failed}
        minutes = format_count(self._timing.measuring_minutes, "minute")
        too_new = f"not measured: made or changed too lately, as {minutes} of it have to be counted"
        if isinstance(self.deployed, Exception):
            failed[f"the stack {self.account.stack}"] = self.deployed
        # The stack tags its queues `off`, and alarms watch them.
        own = (f"{self.account.stack}-", PROBE_QUEUE)
        off = (arn for arn in there.off if not parts_of(arn).name.startswith(own))
        quarantines = (each.queue_arn for each in there.queues if is_quarantine(each.name))
        return {
            **dict.fromkeys(self.absent, _NONE),
            **dict.fromkeys(quarantines, _QUARANTINE),
            **dict.fromkeys(off, _OFF),
            **dict.fromkeys(scanned.skipped, _NOT_MEASURED),
            **dict.fromkeys(scanned.unsettled, too_new),
            # AWS says at the end of a long line which policy it was.
            **{about: describe_error(why)[:600] for about, why in failed.items()},
        }

    def document(self, scanned: ScanResult, would: Mapping[Finding, WouldDo]) -> dict[str, Any]:
        """For scripts: what was found, where one looked, and what could not be judged and why."""
        return {
            "at": to_text(self.now),
            "account": self.account.account_id,
            "region": self.account.region,
            "findings": [
                {
                    "queue_arn": each.queue_arn,
                    "symptom": each.symptom,
                    "severity": rate_severity(each),
                    "reason": each.because,
                    "plan": asdict(would[each]),
                    "runbook": BY_NAME[each.symptom].runbook,
                }
                for each in sort_worst_first(would)
            ],
            "queues": [each.queue_arn for each in self.queues],
            "not_seen": self.not_seen(scanned),
            "by_failed_calls_alone": BY_FAILED_CALLS_ALONE,
            "metrics_asked": self.purse.spent,
            "dollars": round(METRIC_ASKED.cost(self.purse.spent), 4),
            "dollars_per_month": estimate_monthly_dollars(self.metrics_an_hour(scanned, would)),
        }


_PLACES = {each.name: place for place, each in enumerate(CATALOGUE)}


def sort_worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """By severity, then by how soon something is lost; what can only be reported stands last.

    Of what is alike in all of it, in the catalogue's order.
    """
    order = list(FindingSeverity)

    def rank(each: Finding) -> tuple[int, float, bool, int, str]:
        harm, name = order.index(rate_severity(each)), each.symptom
        left = inf if each.seconds_left is None else each.seconds_left
        return harm, left, BY_NAME[name].plan is None, _PLACES[name], each.queue_arn

    return sorted(findings, key=rank)


# What no scan can see.
BY_FAILED_CALLS_ALONE = sorted(each.name for each in CATALOGUE if each.detection is None)
