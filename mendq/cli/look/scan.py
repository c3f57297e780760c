"""`mendq scan`: find symptoms on a region's queues, or show what the deployed scan would do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from mendq.cases.finding import Finding, ScanResult
from mendq.catalogue import SYMPTOM_BY_NAME
from mendq.catalogue.dlq.time_left import sort_by_urgency
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
from mendq.scan.selection import group_shared_defaults
from mendq.scan.severity import find_class, find_explained_findings, sort_worst_first

_MOST_QUEUE_NAMES = 4
_SCANNED_SYMPTOMS = frozenset(SYMPTOM_BY_NAME) - {*SYMPTOMS_UNSEEN_BY_SCANS}
# Printed in place of a pattern whose queues could not be listed.
_LABEL_BY_PATTERN = {ANY_QUEUE_PATTERN: "queues without a tag"}
# Most queues with the same symptom that are printed. --json and --html have all of them.
_MOST_QUEUES_PER_SYMPTOM = 5
# The most findings that are printed of those that another finding explains.
_MOST_EXPLAINED_FINDINGS = 20
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
        typer.Option(metavar="QUEUE", help="Only that of this name, URL or ARN; again for more."),
    ] = None,
    prefix: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only queues whose names begin so.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page as well.", show_default=False)
    ] = None,
    policy: Annotated[
        bool, typer.Option("--policy", help="Print the IAM policy that it needs; ask AWS nothing.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only managed queues, as the deployed scan looks.")
    ] = False,
    metrics: Annotated[
        int | None,
        typer.Option(
            "--max-metrics",
            metavar="N",
            help="How many metrics to ask CloudWatch for, each is billed.",
            min=0,
            show_default=(
                f"{_LEAST_DEFAULT_METRIC_COUNT:,}, or {_DEFAULT_METRICS_PER_QUEUE} a queue if that "
                "is more; with --dry-run as settings say"
            ),
        ),
    ] = None,
    severity_classes: Annotated[
        list[SeverityClass] | None,
        typer.Option("--class", help="Show only findings of this class; again for more."),
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
        frozenset(severity_classes or SeverityClass),
        MuteList() if dry_run else read_mute_list(config),
        yes,
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
        shown_classes: The severity classes whose findings are shown.
        mute_list: The mutes of the operator's file.
        is_price_accepted: True if the scan must not ask before it costs more than a little.
    """

    most_metrics: int | None
    shown_classes: Collection[SeverityClass]
    mute_list: MuteList
    is_price_accepted: bool


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
    document = dry_run.document(scan_result, action_by_finding)
    call.out.print_json(_select_findings(document, choice.shown_classes))
    _print_dry_run(call.out, dry_run, scan_result, action_by_finding, choice.shown_classes)
    return Exit.FAILED if scan_result.error_by_target else Exit.DONE


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
    does not exist, and 0 in all other cases, even if there are findings.
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
        region_scan.document(scan_result, action_by_finding), choice.shown_classes
    )
    _print_region_scan(call.out, region_scan, scan_result, action_by_finding, choice.shown_classes)
    document = {**document, **_make_mute_document(mute_by_finding, choice.mute_list)}
    _print_mutes(call.out, mute_by_finding, choice.mute_list)
    if html_path is not None:
        from mendq.cli.scan.scan_page import render_page  # noqa: PLC0415 - only a page needs it

        written_page = write_private_file(html_path, render_page(document))
        report_open_files(call.out, [written_page])
    call.out.print_json(document)
    if scan_result.is_blind:
        return Exit.FAILED
    return Exit.NOT_FOUND if region_scan.absent_queue_names else Exit.DONE


def _select_findings(
    document: Mapping[str, Any], shown_classes: Collection[SeverityClass]
) -> dict[str, Any]:
    """Return the JSON document of a scan with the findings of `shown_classes` only."""
    shown_findings = [
        finding for finding in document["findings"] if finding["class"] in shown_classes
    ]
    return {**document, "findings": shown_findings}


def print_findings_by_class(
    out: Output,
    action_by_finding: Mapping[Finding, ExpectedAction],
    shown_classes: Collection[SeverityClass],
    most_per_symptom: int | None = None,
) -> None:
    """Print the findings of `shown_classes` below one heading for each class, the worst first."""
    explaining_symptom_by_finding = find_explained_findings(action_by_finding)
    causes = [
        finding for finding in action_by_finding if finding not in explaining_symptom_by_finding
    ]
    for severity_class, findings_of_class in groupby(sort_worst_first(causes), find_class):
        if severity_class not in shown_classes:
            continue
        actions_of_class = {finding: action_by_finding[finding] for finding in findings_of_class}
        count_text = format_count(len(actions_of_class), "finding")
        out.say_heading(f"{severity_class.title.capitalize()}: {count_text}")
        print_findings(out, actions_of_class, most_per_symptom)
    _print_explained_findings(
        out,
        {
            finding: symptom
            for finding, symptom in explaining_symptom_by_finding.items()
            if find_class(finding) in shown_classes
        },
    )
    hidden_count = sum(find_class(finding) not in shown_classes for finding in action_by_finding)
    if hidden_count:
        out.say(f"{format_count(hidden_count, 'finding')} of other classes not shown", "dim")


def _print_explained_findings(
    out: Output, explaining_symptom_by_finding: Mapping[Finding, str]
) -> None:
    """Print a line for each finding that another one explains, with the symptom that explains it.

    Of many findings, only the first are printed.
    """
    if not explaining_symptom_by_finding:
        return
    count_text = format_count(len(explaining_symptom_by_finding), "finding")
    out.say_heading(f"Explained by another finding: {count_text}")
    explained_findings = sort_worst_first(explaining_symptom_by_finding)
    for finding in explained_findings[:_MOST_EXPLAINED_FINDINGS]:
        queue_name = to_terminal_text(parse_queue_arn(finding.queue_arn).name, 80)
        explaining_symptom = explaining_symptom_by_finding[finding]
        out.say_indented(
            f"{queue_name}: {finding.symptom}, probably caused by {explaining_symptom}: fix that "
            "first"
        )
    if len(explained_findings) > _MOST_EXPLAINED_FINDINGS:
        left_out_count = len(explained_findings) - _MOST_EXPLAINED_FINDINGS
        out.say_indented(f"and {left_out_count:,} more: --json names them")


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
    shown_classes: Collection[SeverityClass],
) -> None:
    """Print the findings of a dry run, and what the deployed scan costs."""
    if action_by_finding:
        print_findings_by_class(out, action_by_finding, shown_classes)
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
    shown_classes: Collection[SeverityClass],
) -> None:
    """Print the findings of a region by class, what could not be checked, and the costs."""
    print_findings_by_class(out, action_by_finding, shown_classes, _MOST_QUEUES_PER_SYMPTOM)
    reason_by_target = region_scan.explain_unchecked(scan_result)
    if not action_by_finding:
        out.say(
            _describe_no_findings(region_scan, scan_result, reason_by_target),
            "yellow" if reason_by_target else "green",
        )
    out.say("")
    for reason, target_names in _group_by_reason(reason_by_target).items():
        shown_names = shorten_list(target_names, _MOST_QUEUE_NAMES)
        out.say(f"not judged, or not wholly: {shown_names}: {reason}", "yellow")
    _print_unjudged_symptoms(out, scan_result)
    if max(len(reason_by_target), len(action_by_finding)) > _MOST_QUEUE_NAMES:
        out.say("--json and --html name every queue", "dim")
    monthly_dollars = estimate_monthly_dollars(
        region_scan.count_metrics_per_hour(scan_result, action_by_finding)
    )
    asked_metrics = region_scan.budget.asked_metric_count
    out.say(
        f"{region_scan.account.account_id}, {region_scan.account.region}: "
        f"{format_count(scan_result.queues_scanned, 'queue')}, "
        f"{format_count(len(action_by_finding), 'finding')}, "
        f"{len(reason_by_target):,} not judged wholly; {asked_metrics:,} metrics asked "
        f"for: ${METRIC_READ.cost(asked_metrics):,.4f}"
    )
    out.say(
        f"Deployed, Mendq looks each hour (at most ${monthly_dollars:,.2f} a month for these "
        f"queues), sees {len(SYMPTOMS_UNSEEN_BY_SCANS)} more symptoms where a trail logs failed "
        "calls, and changes nothing until told to",
        "dim",
    )
    out.say("nothing was changed")


def _print_unjudged_symptoms(out: Output, scan_result: ScanResult) -> None:
    """Print the symptoms that could not be judged on some queues, with the reason."""
    for symptom, reason in scan_result.unjudged_reason_by_symptom.items():
        out.say(f"not judged: {symptom}, because {reason}", "yellow")


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


def print_findings(
    out: Output,
    action_by_finding: Mapping[Finding, ExpectedAction],
    most_per_symptom: int | None = None,
) -> None:
    """Print a block of lines for each finding, at most `most_per_symptom` for a symptom.

    Several queues with a symptom that Mendq only reports share one block, without that limit, and
    so do the queues that share a wrong setting.
    """
    for symptom, findings in _group_by_symptom(action_by_finding).items():
        single_findings = list(findings)
        for group in group_shared_defaults(findings):
            _print_shared_default(out, group, action_by_finding)
            single_findings = [finding for finding in single_findings if finding not in group]
        if len(single_findings) > 1 and _has_no_plan(symptom):
            _print_reported_queues(out, symptom, single_findings)
        else:
            shown_findings = single_findings[:most_per_symptom]
            _print_findings_of_symptom(out, symptom, shown_findings, action_by_finding)
            hidden_count = len(single_findings) - len(shown_findings)
            if hidden_count:
                out.say_indented(f"and {hidden_count:,} other queues: --json or --html names them")
        out.say_indented(f"runbook: {SYMPTOM_BY_NAME[symptom].runbook}", "dim")


def _print_reported_queues(out: Output, symptom: str, findings: Sequence[Finding]) -> None:
    """Print one block for all queues with a symptom that Mendq only reports."""
    queue_names = [parse_queue_arn(finding.queue_arn).name for finding in findings]
    action_line = f"only reports it: {shorten_list(queue_names, _MOST_QUEUE_NAMES)}"
    _print_finding_block(
        out, f"{len(queue_names)} queues", symptom, SYMPTOM_BY_NAME[symptom].sentence, action_line
    )


def _print_shared_default(
    out: Output, group: Sequence[Finding], action_by_finding: Mapping[Finding, ExpectedAction]
) -> None:
    """Print one block for all queues that share a wrong setting."""
    queue_names = [parse_queue_arn(finding.queue_arn).name for finding in group]
    first_finding = group[0]
    title = f"{len(group)} queues share a default: {shorten_list(queue_names, _MOST_QUEUE_NAMES)}"
    attribute, _, value = first_finding.shared_setting.partition("=")
    because = f"{attribute} is {value or 'not set'} on all of them. The first: "
    _print_finding_block(
        out,
        title,
        first_finding.symptom,
        f"{because}{first_finding.sentence}",
        action_by_finding[first_finding].line,
    )


def _print_findings_of_symptom(
    out: Output,
    symptom: str,
    findings: Iterable[Finding],
    action_by_finding: Mapping[Finding, ExpectedAction],
) -> None:
    """Print a block for each finding, with the commands that a person runs."""
    for finding in findings:
        action = action_by_finding[finding]
        queue_name = parse_queue_arn(finding.queue_arn).name
        _print_finding_block(out, queue_name, symptom, finding.sentence, action.line)
        for manual_command in action.commands:
            out.say_command(manual_command)


def _print_finding_block(
    out: Output, title: str, symptom: str, because: str, action_line: str
) -> None:
    """Print the lines of a finding: title, symptom, why it was found, and what Mendq would do."""
    out.show(Text.assemble((to_terminal_text(title, 80), "bold"), "\n  ", (symptom, "yellow")))
    out.say_indented(because)
    out.say_indented(f"-> {action_line.replace(f'{because}. ', '')}", "cyan")


def _group_by_symptom(all_findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """Return the findings by symptom, in the catalogue's order.

    Symptoms that Mendq only reports come last. Within a symptom, the queue that loses messages
    soonest comes first.
    """
    findings_by_symptom: dict[str, list[Finding]] = defaultdict(list)
    for finding in sort_by_urgency(all_findings, lambda finding: finding.seconds_left):
        findings_by_symptom[finding.symptom].append(finding)
    sorted_symptoms = sorted(
        (symptom for symptom in SYMPTOM_BY_NAME if symptom in findings_by_symptom), key=_has_no_plan
    )
    return {symptom: findings_by_symptom[symptom] for symptom in sorted_symptoms}


def _has_no_plan(symptom: str) -> bool:
    """Return True if Mendq has no plan for the symptom."""
    return SYMPTOM_BY_NAME[symptom].plan is None
