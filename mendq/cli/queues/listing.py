"""`mendq queues`: list the managed queues with mode, reason, last scan and open cases."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.text import Text

from mendq.aws.queue import list_readable_queues
from mendq.cases.table import OpenCases
from mendq.catalogue.configuration.tag_not_understood import describe_tag_mistakes
from mendq.cli.account import SCAN_ONLY_TEXT
from mendq.cli.commands import (
    CASE_QUERY_ACTIONS,
    IAM_ACTIONS_TO_LIST_MANAGED_QUEUES,
    CommandKind,
    command,
)
from mendq.cli.doctor.life import HourlyScan, read_last_scans
from mendq.cli.exit_codes import Exit
from mendq.cli.invocation import Invocation
from mendq.cli.output import Output, format_minute, shorten_list
from mendq.model.queue import parse_queue_arn
from mendq.model.time_text import format_time
from mendq.notifications.text import format_count, to_terminal_text

_STYLE_BY_MODE = {"heal": "green", "propose": "cyan"}
_MODE_COLUMN_WIDTH = len("observe") + 2


@command(
    0,
    CommandKind.LOOKING,
    IAM_ACTIONS_TO_LIST_MANAGED_QUEUES | CASE_QUERY_ACTIONS | {"s3:GetObject"},
)
def queues(call: Invocation) -> Exit:
    """List the managed queues: mode, last scan, cases.

    Examples:
      mendq queues
      mendq queues --json
    """
    account = call.account
    consent = account.settings.consent
    with call.out.show_waiting("reading queues, scans and cases"):
        readable_queues = list_readable_queues(account.clients, account.account_id, consent)
        last_scans = () if account.is_scan_only else tuple(read_last_scans(account))
        case_ids_by_queue_arn = defaultdict[str, list[str]](list)
        for case in account.open_store(OpenCases).list_open_cases():
            case_ids_by_queue_arn[case.queue_arn].append(case.case_id)
    queue_documents = [
        {
            "queue_arn": queue.queue_arn,
            "mode": str(queue.mode),
            "why": consent.explain_mode(queue.name, queue.tags),
            "tags_not_understood": [*describe_tag_mistakes(consent.without_team_tag(queue.tags))],
            "last_scan": describe_last_scan(queue.queue_arn, last_scans),
            "open_cases": sorted(case_ids_by_queue_arn[queue.queue_arn]),
        }
        for queue in readable_queues.queues
    ]
    error_text_by_queue_name = {
        name: str(error) for name, error in sorted(readable_queues.error_by_pattern.items())
    }
    call.out.print_json(
        {
            "queues": queue_documents,
            "off": readable_queues.arns_tagged_off,
            "not_listed": error_text_by_queue_name,
        }
    )
    _print_queues(
        call.out,
        queue_documents,
        error_text_by_queue_name.values(),
        readable_queues.arns_tagged_off,
        shows_last_scan=not account.is_scan_only,
    )
    if account.is_scan_only:
        call.out.say(
            f"stack {account.stack} {SCAN_ONLY_TEXT}, and keeps no findings by queue: "
            "`mendq scan --dry-run` shows them",
            "dim",
        )
    return Exit.FAILED if error_text_by_queue_name else Exit.DONE


def _print_queues(
    out: Output,
    queue_documents: Sequence[Mapping[str, Any]],
    error_texts: Iterable[str],
    arns_tagged_off: Iterable[str],
    *,
    shows_last_scan: bool,
) -> None:
    """Print the managed queues for people, then the errors and the queues that are switched off."""
    for queue_document in queue_documents:
        _print_queue(out, queue_document, shows_last_scan=shows_last_scan)
    for error_text in error_texts:
        out.say(error_text, "red")
    names_of_switched_off_queues = shorten_list(
        [parse_queue_arn(queue_arn).name for queue_arn in arns_tagged_off]
    )
    off_text = (
        f"; off by tag: {names_of_switched_off_queues}" if names_of_switched_off_queues else ""
    )
    out.say(format_count(len(queue_documents), "managed queue") + off_text)


def describe_last_scan(
    queue_arn: str, last_scans: Iterable[tuple[HourlyScan, str | None]]
) -> Mapping[str, Any] | None:
    """Return what the newest scan that checked this queue found. None if no scan checked it.

    Args:
        queue_arn: The queue.
        last_scans: The scans, the newest first, as `read_last_scans` yields them. With each scan
            goes the name of the last queue that it has checked, in the order of names. The name is
            empty if it has checked none yet, and None if it has checked all.
    """
    queue_name = parse_queue_arn(queue_arn).name
    for scan, last_checked_queue_name in last_scans:
        if queue_arn in scan.managed and (
            last_checked_queue_name is None or queue_name <= last_checked_queue_name
        ):
            return {
                "at": format_time(scan.at),
                "found": scan.symptoms_by_queue.get(queue_arn, []),
                "not_looked_at": scan.not_looked_at.get(queue_arn, ""),
                "skipped_for_budget": queue_arn in scan.skipped,
                "metric_gap": scan.metric_gaps.get(queue_arn, ""),
            }
    return None


def _print_queue(out: Output, queue_document: Mapping[str, Any], *, shows_last_scan: bool) -> None:
    """Print one managed queue for people."""
    mode = queue_document["mode"]
    styled_mode = (f"{mode:<{_MODE_COLUMN_WIDTH}}", _STYLE_BY_MODE.get(mode, "dim"))
    styled_queue_name = (
        to_terminal_text(parse_queue_arn(queue_document["queue_arn"]).name),
        "bold",
    )
    out.show(Text.assemble(styled_mode, styled_queue_name))
    out.say_indented(queue_document["why"], "dim", indent=_MODE_COLUMN_WIDTH)
    if shows_last_scan:
        out.say_indented(_describe_scan(queue_document["last_scan"]), indent=_MODE_COLUMN_WIDTH)
    for line in (*queue_document["tags_not_understood"], *queue_document["open_cases"]):
        out.say_indented(line, "yellow", indent=_MODE_COLUMN_WIDTH)


def _describe_scan(last_scan: Mapping[str, Any] | None) -> str:
    if last_scan is None:
        return "no scan has come to it yet"
    finding_texts = list[str]()
    if last_scan["found"]:
        finding_texts.append(", ".join(last_scan["found"]))
    if last_scan["skipped_for_budget"]:
        finding_texts.append("not measured, because the scan's budget of metrics or time was spent")
    if last_scan["metric_gap"]:
        finding_texts.append(f"not measured: {last_scan['metric_gap']}")
    if last_scan["not_looked_at"]:
        finding_texts.append(f"not or not wholly looked at: {last_scan['not_looked_at']}")
    sentence = "; ".join(finding_texts) or "nothing found"
    return f"{format_minute(datetime.fromisoformat(last_scan['at']))}: {sentence}"
