"""`mendq scan`: find symptoms on a region's queues, or show what the deployed scan would do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from mendq.cases.finding import Finding, ScanResult
from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.cli.account import Account
from mendq.cli.commands import (
    CASE_QUERY_ACTIONS,
    FREEZE_ACTIONS,
    IAM_ACTIONS_TO_LIST_MANAGED_QUEUES,
    SCAN_FACTS_ACTIONS,
    CommandKind,
    command,
)
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import Invocation, describe_error
from mendq.cli.mute_list import ConfigOption, MuteList, read_mute_list
from mendq.cli.output import Output, YesOption, confirm, shorten_list
from mendq.cli.private_file import (
    report_open_files,
    require_writable_path,
    write_private_file,
)
from mendq.cli.queues import resolve_queue_arn
from mendq.cli.scan.dry_run import DryRun, ExpectedAction, MetricBudget, estimate_monthly_dollars
from mendq.cli.scan.finding_filter import FindingFilter, find_failing_classes, make_filter
from mendq.cli.scan.findings_text import count_queues_by_need, print_findings_of_scan
from mendq.cli.scan.region_scan import (
    ANY_QUEUE_PATTERN,
    SYMPTOMS_UNSEEN_BY_SCANS,
    RegionScan,
)
from mendq.model.mutes import Mute
from mendq.model.prices import METRIC_READ
from mendq.model.queue import arn_of_name, parse_queue_arn, queue_arn_or_none
from mendq.model.severity_class import SeverityClass
from mendq.notifications.text import format_count, to_terminal_text
from mendq.scan.severity import find_class

_MOST_QUEUE_NAMES = 4
_SCANNED_SYMPTOMS = frozenset(SYMPTOM_BY_NAME) - {*SYMPTOMS_UNSEEN_BY_SCANS}
# Printed in place of a pattern whose queues could not be listed.
_LABEL_BY_PATTERN = {ANY_QUEUE_PATTERN: "queues without a tag"}
# Metrics that may be asked for by default, in a region with few queues and with many: about ten
# cents, or the three sums of each queue and as many further metrics.
_LEAST_DEFAULT_METRIC_COUNT = 10_000
_DEFAULT_METRICS_PER_QUEUE = 6
# A scan that may cost more asks the operator first.
_MOST_DOLLARS_WITHOUT_ASKING = 1.0
_IAM_ACTIONS = (
    IAM_ACTIONS_TO_LIST_MANAGED_QUEUES | CASE_QUERY_ACTIONS | FREEZE_ACTIONS | SCAN_FACTS_ACTIONS
)
# The IAM actions that a scan of a region needs. It does not read Mendq's own resources.
_REGION_SCAN_ACTIONS = SCAN_FACTS_ACTIONS | {"tag:GetResources", "sqs:ListQueues"}


@command(4, CommandKind.LOOKING, _IAM_ACTIONS)
def scan(  # noqa: PLR0913, PLR0917 - each is one option of the command
    call: Invocation,
    queue: Annotated[
        list[str] | None,
        typer.Option(
            metavar="QUEUE",
            help="Scan only this queue: name, URL or ARN; repeat for several queues.",
        ),
    ] = None,
    prefix: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Scan only queues whose names begin with this."),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write an HTML page too.", show_default=False),
    ] = None,
    policy: Annotated[
        bool,
        typer.Option(
            "--policy", help="Print the IAM policy that a scan needs, and call nothing in AWS."
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Scan only managed queues, as the deployed scan does.")
    ] = False,
    metrics: Annotated[
        int | None,
        typer.Option(
            "--max-metrics",
            metavar="N",
            help="The most metrics to ask CloudWatch for. Each is billed.",
            min=0,
            show_default=(
                f"{_LEAST_DEFAULT_METRIC_COUNT:,}, or {_DEFAULT_METRICS_PER_QUEUE} a queue if that "
                "is more; with --dry-run as settings say"
            ),
        ),
    ] = None,
    severity_classes: Annotated[
        list[SeverityClass] | None,
        typer.Option(
            "--class", help="Show only findings of this class; repeat for several classes."
        ),
    ] = None,
    symptoms: Annotated[
        list[str] | None,
        typer.Option(
            "--symptom",
            metavar="SYMPTOM",
            help="Show only this symptom, on all of its queues; repeat for several symptoms.",
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SYMPTOM[:QUEUE]",
            help="Leave a symptom out, on all queues or on one; repeat for several.",
        ),
    ] = None,
    hygiene: Annotated[
        bool, typer.Option("--hygiene", help="Print hygiene findings in detail too.")
    ] = False,
    fail_on: Annotated[
        SeverityClass | None,
        typer.Option(
            help="Exit with 1 if there is a finding of this class or a worse one.",
            show_default=False,
        ),
    ] = None,
    config: ConfigOption = None,
    yes: YesOption = False,
) -> Exit:
    """Find symptoms on queues, even if no call fails.

    Needs no deployment and changes nothing. If Mendq is deployed, also says what it would do.

    Examples:
      mendq scan                       # every queue of the region
      mendq scan --prefix orders- --html scan.html
      mendq scan --policy              # what to allow whoever scans
    """
    if policy:
        Output(as_json=True).print_json(_make_iam_policy())
        return Exit.DONE
    if dry_run and (queue or html or prefix is not None or config):
        raise CommandError(
            "--dry-run looks at every managed queue: leave out the others", Exit.USAGE
        )
    choice = _ScanChoice(
        metrics,
        make_filter(severity_classes or (), symptoms or (), ignore or ()),
        find_failing_classes(fail_on),
        MuteList() if dry_run else read_mute_list(config),
        is_price_accepted=yes,
        shows_hygiene=hygiene or severity_classes == [SeverityClass.HYGIENE] or bool(symptoms),
    )
    if not dry_run:
        patterns = _make_patterns(call.account, queue or (), prefix)
        return _scan_region(call, patterns, html, choice)
    return _scan_managed_queues(call, choice)


@dataclass(frozen=True)
class _ScanChoice:
    """The operator's choice of what a scan may cost, and which findings it shows.

    Attributes:
        most_metrics: The most metrics to ask for; None for the default.
        finding_filter: The findings that the operator wants to see.
        failing_classes: The classes whose findings end the command with 1.
        mute_list: The mutes of the operator's file.
        is_price_accepted: True if the scan must not ask before it costs more than a little.
        shows_hygiene: True if hygiene findings are printed in detail.
    """

    most_metrics: int | None
    finding_filter: FindingFilter
    failing_classes: frozenset[SeverityClass]
    mute_list: MuteList
    is_price_accepted: bool
    shows_hygiene: bool


def _scan_managed_queues(call: Invocation, choice: _ScanChoice) -> Exit:
    """Scan the managed queues as the deployed scan does, and print what would follow."""
    most_metrics = choice.most_metrics
    if most_metrics is None:
        most_metrics = call.account.settings.limits.scan_metrics_per_day
    _confirm_price(call.out, most_metrics, yes=choice.is_price_accepted)
    dry_run = DryRun(call.account, datetime.now(UTC), MetricBudget(most_metrics))
    with call.out.show_waiting("looking at every managed queue"):
        partial_results = list(dry_run.run_scan())
    scan_result = partial_results[-1]
    with call.out.show_waiting("asking what would come of it"):
        action_by_finding = dry_run.decide_findings(scan_result.findings)
    document = _select_findings(
        dry_run.document(scan_result, action_by_finding), choice.finding_filter
    )
    call.out.print_json(document)
    _print_dry_run(call.out, dry_run, scan_result, action_by_finding, choice)
    return Exit.FAILED if scan_result.error_by_target else _choose_exit(document, choice)


def _make_iam_policy() -> dict[str, Any]:
    """Return the IAM policy that a scan of a region needs."""
    from mendq.cli.permissions import make_policy  # noqa: PLC0415 - it imports this file

    return make_policy(_REGION_SCAN_ACTIONS)


def _make_patterns(
    account: Account, queue_names: Iterable[str], prefix: str | None
) -> tuple[str, ...]:
    """Return the patterns that the names of the scanned queues must match.

    Raises CommandError if a name is not that of a queue in this account and region, or if the name
    of no queue can begin with the prefix.
    """
    patterns = tuple(parse_queue_arn(resolve_queue_arn(account, name)).name for name in queue_names)
    if prefix is None:
        return patterns or (ANY_QUEUE_PATTERN,)
    if not arn_of_name(prefix, account.region, account.account_id):
        problem = f"--prefix {prefix[:80]!r} begins no queue's name: only a-z, A-Z, 0-9, - and _ do"
        raise CommandError(problem, Exit.USAGE)
    return (*patterns, f"{prefix}*")


def _confirm_price(out: Output, most_metrics: int, *, yes: bool) -> None:
    """Say what the scan may cost at most. Ask the operator if that is much.

    Raises CommandError if the answer is no, or if there is no terminal to ask at.
    """
    dollars = METRIC_READ.cost(most_metrics)
    price_text = f"at most {format_count(most_metrics, 'metric')} of CloudWatch, ${dollars:,.2f}"
    out.say(f"{price_text}: three sums of each queue, and more of those that these show", "dim")
    if dollars > _MOST_DOLLARS_WITHOUT_ASKING:
        confirm(f"Ask for {price_text}?", yes=yes)


def _scan_region(
    call: Invocation,
    patterns: tuple[str, ...],
    html_path: Path | None,
    choice: _ScanChoice,
) -> Exit:
    """Scan the queues of the region whose names match, and print the findings.

    Return 1 if there are queues and none of them could be read. Otherwise return 4 if a named queue
    does not exist. With `--fail-on`, return 1 if there are findings of these classes. Return 0 in
    all other cases, even if there are findings.
    """
    if html_path is not None:
        require_writable_path(html_path)
    region_scan = RegionScan(call.account, datetime.now(UTC), MetricBudget(0), patterns)
    scan_result = ScanResult()
    with call.out.show_waiting("listing the queues"):
        queue_count = len(region_scan.queues)
    most_metrics = choice.most_metrics
    if most_metrics is None:
        most_metrics = max(_LEAST_DEFAULT_METRIC_COUNT, _DEFAULT_METRICS_PER_QUEUE * queue_count)
    _confirm_price(call.out, most_metrics, yes=choice.is_price_accepted)
    region_scan.budget.maximum_metrics = most_metrics
    with call.out.show_progress("looking at queues", queue_count) as show_done:
        for scan_result in region_scan.run_scan():
            show_done(scan_result.queues_scanned)
    mute_by_finding = _find_mutes(region_scan, scan_result, choice.mute_list)
    scan_result = replace(
        scan_result,
        findings=tuple(
            finding for finding in scan_result.findings if finding not in mute_by_finding
        ),
    )
    with call.out.show_waiting("asking what would come of it"):
        action_by_finding = region_scan.decide_findings(scan_result.findings)
    document = _select_findings(
        region_scan.document(scan_result, action_by_finding), choice.finding_filter
    )
    _print_region_scan(call.out, region_scan, scan_result, action_by_finding, choice)
    document = {**document, **_make_mute_document(mute_by_finding, choice.mute_list)}
    _print_mutes(call.out, mute_by_finding, choice.mute_list)
    if html_path is not None:
        from mendq.cli.scan.scan_page import render_page  # noqa: PLC0415 - only a page needs it

        written_page = write_private_file(html_path, render_page(document))
        report_open_files(call.out, [written_page])
    call.out.print_json(document)
    if scan_result.is_blind:
        return Exit.FAILED
    if region_scan.absent_queue_names:
        return Exit.NOT_FOUND
    return _choose_exit(document, choice)


def _select_findings(document: Mapping[str, Any], finding_filter: FindingFilter) -> dict[str, Any]:
    """Return the JSON document of a scan with the findings that the operator wants to see."""
    shown_findings = [
        finding
        for finding in document["findings"]
        if finding_filter.shows(
            finding["symptom"], finding["class"], parse_queue_arn(finding["queue_arn"]).name
        )
    ]
    return {**document, "findings": shown_findings}


def _choose_exit(document: Mapping[str, Any], choice: _ScanChoice) -> Exit:
    """Return FAILED if a shown finding is of a class that `--fail-on` names, else DONE."""
    found_classes = {finding["class"] for finding in document["findings"]}
    return Exit.FAILED if found_classes & choice.failing_classes else Exit.DONE


def _find_mutes(
    region_scan: RegionScan, scan_result: ScanResult, mute_list: MuteList
) -> dict[Finding, Mute]:
    """Return the mutes by the finding that each leaves out.

    A queue that could not be checked completely makes no mute stale.
    """
    unchecked_targets = region_scan.explain_unchecked(scan_result)
    mute_list.note_listed(
        pattern for pattern in region_scan.patterns if pattern not in unchecked_targets
    )
    for queue in region_scan.queues:
        if queue.queue_arn not in unchecked_targets:
            mute_list.note_checked(_SCANNED_SYMPTOMS, queue.name)
    for target in unchecked_targets:
        queue_arn = queue_arn_or_none(target)
        if queue_arn is not None:
            mute_list.note_unchecked(_SCANNED_SYMPTOMS, parse_queue_arn(queue_arn).name)
    mute_by_finding: dict[Finding, Mute] = {}
    for finding in scan_result.findings:
        queue_name = parse_queue_arn(finding.queue_arn).name
        mute = mute_list.find(finding.symptom, queue_name)
        if mute is not None:
            mute_by_finding[finding] = mute
    return mute_by_finding


def _make_mute_document(
    mute_by_finding: Mapping[Finding, Mute], mute_list: MuteList
) -> dict[str, Any]:
    """Return the muted findings and the stale mutes as fields of the JSON document."""
    return {
        "muted": [
            {
                "queue_arn": finding.queue_arn,
                "symptom": finding.symptom,
                "class": find_class(finding),
                "reason": mute.reason,
                "until": mute.until.isoformat(),
            }
            for finding, mute in mute_by_finding.items()
        ],
        "stale": [
            {"where": place, "symptom": mute.symptom, "because": because}
            for place, mute, because in mute_list.list_stale()
        ],
    }


def _print_mutes(out: Output, mute_by_finding: Mapping[Finding, Mute], mute_list: MuteList) -> None:
    """Print the muted findings with their reasons, and the mutes that are stale or have ended."""
    for finding, mute in mute_by_finding.items():
        queue_name = to_terminal_text(parse_queue_arn(finding.queue_arn).name, 80)
        reason = to_terminal_text(mute.reason, 300)
        out.say(f"muted until {mute.until}: {finding.symptom} on {queue_name}: {reason}", "dim")
    for place, mute, because in mute_list.list_stale():
        place_text = to_terminal_text(place, 300)
        out.say(f"stale: {place_text}, {mute.symptom}: {to_terminal_text(because, 600)}", "yellow")


def _print_dry_run(
    out: Output,
    dry_run: DryRun,
    scan_result: ScanResult,
    action_by_finding: dict[Finding, ExpectedAction],
    choice: _ScanChoice,
) -> None:
    """Print the findings of a dry run, and what the deployed scan costs."""
    if action_by_finding:
        print_findings_of_scan(
            out, action_by_finding, choice.finding_filter, shows_hygiene=choice.shows_hygiene
        )
    elif not dry_run.queues:
        out.say("no queue is managed, so none was looked at", "yellow")
        out.say("tag one: aws sqs tag-queue --queue-url URL --tags mendq=observe", "dim")
    elif scan_result.error_by_target or scan_result.skipped_arns or scan_result.gap_reason_by_arn:
        out.say("nothing was found in what was judged", "yellow")
    else:
        out.say("nothing was found", "green")
    out.say("")
    metrics_per_hour = dry_run.count_metrics_per_hour(scan_result, action_by_finding)
    skipped_count = len(scan_result.skipped_arns)
    gap_count = len(scan_result.gap_reason_by_arn)
    gaps_text = f"{gap_count:,} without complete metrics, " if gap_count else ""
    out.say(
        f"{scan_result.queues_scanned:,} queues looked at, {scan_result.suspects:,} suspects, "
        f"{scan_result.measured:,} measured, {skipped_count:,} skipped for the budget, {gaps_text}"
        f"{len(scan_result.reported_findings):,} findings"
    )
    _print_mutes(
        out,
        {finding: finding.mute for finding in scan_result.findings if finding.mute},
        MuteList(),
    )
    asked_metrics = dry_run.budget.asked_metric_count
    asking_lambdas = "scan asks" if dry_run.account.is_scan_only else "scan and heal ask"
    out.say(
        f"{asked_metrics:,} metrics asked for: ${METRIC_READ.cost(asked_metrics):,.4f}; the "
        f"{asking_lambdas} for at most {metrics_per_hour:,} each hour, "
        f"${estimate_monthly_dollars(metrics_per_hour):,.2f} a month ({METRIC_READ.note})",
        "dim",
    )
    for reason, queue_names in _group_by_reason(scan_result.error_by_target).items():
        out.say(
            f"could not look at {shorten_list(queue_names, _MOST_QUEUE_NAMES)}: {reason}", "red"
        )
    _print_unjudged_symptoms(out, scan_result)
    out.say("nothing was changed, noted or paged")


def _print_region_scan(
    out: Output,
    region_scan: RegionScan,
    scan_result: ScanResult,
    action_by_finding: dict[Finding, ExpectedAction],
    choice: _ScanChoice,
) -> None:
    """Print the findings of a region by class, what could not be checked, and the costs."""
    reason_by_target = region_scan.explain_unchecked(scan_result)
    out.say(_describe_scan(region_scan, scan_result, action_by_finding), "bold")
    print_findings_of_scan(
        out, action_by_finding, choice.finding_filter, shows_hygiene=choice.shows_hygiene
    )
    if not action_by_finding:
        out.say(
            _describe_no_findings(region_scan, scan_result, reason_by_target),
            "yellow" if reason_by_target else "green",
        )
    out.say("")
    for reason, target_names in _group_by_reason(reason_by_target).items():
        shown_names = shorten_list(target_names, _MOST_QUEUE_NAMES)
        out.say(f"Not fully judged: {shown_names}: {reason}", "yellow")
    _print_unjudged_symptoms(out, scan_result)
    if max(len(reason_by_target), len(action_by_finding)) > _MOST_QUEUE_NAMES:
        out.say("--json and --html name every queue", "dim")
    asked_metrics = region_scan.budget.asked_metric_count
    out.say(
        f"CloudWatch was asked for {format_count(asked_metrics, 'metric')}, "
        f"${METRIC_READ.cost(asked_metrics):,.4f}. Nothing was changed"
    )
    monthly_dollars = estimate_monthly_dollars(
        region_scan.count_metrics_per_hour(scan_result, action_by_finding)
    )
    out.say(
        "A deployed Mendq repeats this scan every hour, for these queues at most "
        f"${monthly_dollars:,.2f} a month. If a trail logs failed calls, it sees "
        f"{len(SYMPTOMS_UNSEEN_BY_SCANS)} more symptoms. It changes nothing until you allow it",
        "dim",
    )


def _describe_scan(
    region_scan: RegionScan,
    scan_result: ScanResult,
    action_by_finding: Mapping[Finding, ExpectedAction],
) -> str:
    """Return the first line: account, region, and the number of queues that need attention."""
    attention_count, hygiene_count = count_queues_by_need(action_by_finding)
    account = region_scan.account
    queues_text = format_count(scan_result.queues_scanned, "queue")
    needs_text = "needs" if attention_count == 1 else "need"
    return (
        f"{queues_text} of {account.account_id}, {account.region}: "
        f"{attention_count:,} {needs_text} attention, {hygiene_count:,} with hygiene findings only"
    )


def _print_unjudged_symptoms(out: Output, scan_result: ScanResult) -> None:
    """Print the symptoms that could not be judged on some queues, with the reason."""
    for symptom, reason in scan_result.unjudged_reason_by_symptom.items():
        out.say(f"Not judged: {symptom}, because {reason}", "yellow")


def _describe_no_findings(
    region_scan: RegionScan, scan_result: ScanResult, unchecked_targets: Collection[str]
) -> str:
    """Return the line for a scan without findings. The line says if queues were not checked."""
    if not region_scan.queues:
        return "no queue was looked at" if unchecked_targets else "there is no queue"
    if scan_result.is_blind:
        return "no queue could be judged"
    return f"nothing was found{' in what could be judged' if unchecked_targets else ''}"


def _group_by_reason(reason_by_target: Mapping[str, str | Exception]) -> dict[str, list[str]]:
    """Return the names of queues and other targets by the reason why they were not checked.

    In a reason, the queue's ARN is replaced by "the queue", so that equal reasons are one group.
    """
    names_by_reason = defaultdict[str, list[str]](list)
    for target, reason_or_error in reason_by_target.items():
        reason = (
            reason_or_error if isinstance(reason_or_error, str) else describe_error(reason_or_error)
        )
        if queue_arn_or_none(target):
            reason = reason.replace(target, "the queue")
            name = parse_queue_arn(target).name
        else:
            name = _LABEL_BY_PATTERN.get(target, target)
        names_by_reason[reason].append(name)
    return names_by_reason
