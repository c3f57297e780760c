"""`mendq queues`: every managed queue, how it is managed and why, and how it does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from rich.text import Text

from mendq.aws.queue import list_readable_queues
from mendq.cases.table import OpenCases
from mendq.catalogue.configuration.tag_not_understood import find_mistakes
from mendq.cli.commands import CASES, MANAGED, Kind, command
from mendq.cli.doctor.life import HourlyScan, read_last_scans
from mendq.cli.exit_codes import Exit
from mendq.cli.invocation import Invocation
from mendq.cli.output import Output, format_minute, shorten_list
from mendq.model.evidence import to_text
from mendq.model.queue import parts_of
from mendq.notifications.text import format_count, plain

_STYLES = {"heal": "green", "propose": "cyan"}
_INDENT = len("observe") + 2


@command(0, Kind.LOOKING, MANAGED | CASES | {"s3:GetObject"})
def queues(call: Invocation) -> Exit:
    """Managed queues: mode and why, last scan, cases.

    Examples:
      mendq queues
      mendq queues --json
    """
    account, consent = call.account, call.account.settings.consent
    with call.out.show_waiting("reading queues, scans and cases"):
        listing = list_readable_queues(account.clients, account.account_id, consent)
        last, open_cases = tuple(read_last_scans(account)), defaultdict[str, list[str]](list)
        for case in account.open_store(OpenCases).list_open():
            open_cases[case.queue_arn].append(case.case_id)
    found = [
        {
            "queue_arn": each.queue_arn,
            "mode": str(each.mode),
            "why": consent.why(each.name, each.tags),
            "tags_not_understood": [*find_mistakes(consent.without_team_tag(each.tags))],
            "last_scan": last_scan(each.queue_arn, last),
            "open_cases": sorted(open_cases[each.queue_arn]),
        }
        for each in listing.queues
    ]
    failed = {name: str(error) for name, error in sorted(listing.failed.items())}
    call.out.print_json({"queues": found, "off": listing.off, "not_listed": failed})
    for queue in found:
        _show(call.out, queue)
    for line in failed.values():
        call.out.say(line, "red")
    off = shorten_list([parts_of(each).name for each in listing.off])
    call.out.say(
        format_count(len(found), "managed queue") + (f"; off by tag: {off}" if off else "")
    )
    return Exit.FAILED if failed else Exit.DONE


def last_scan(
    queue_arn: str, last: Iterable[tuple[HourlyScan, str | None]]
) -> Mapping[str, Any] | None:
    """What the newest round thought that has reached the queue; None where none has.

    Tags are said as they are now.
    """
    for found, reached in last:
        if queue_arn in found.managed and (reached is None or parts_of(queue_arn).name <= reached):
            return {
                "at": to_text(found.at),
                "found": found.symptoms_by_queue.get(queue_arn, []),
                "not_looked_at": found.not_looked_at.get(queue_arn, ""),
                "skipped_for_budget": queue_arn in found.skipped,
            }
    return None


def _show(out: Output, queue: Mapping[str, Any]) -> None:
    mode, name = queue["mode"], parts_of(queue["queue_arn"]).name
    out.show(Text.assemble((f"{mode:<{_INDENT}}", _STYLES.get(mode, "dim")), (plain(name), "bold")))
    out.say_indented(queue["why"], "dim", indent=_INDENT)
    out.say_indented(_thought(queue["last_scan"]), indent=_INDENT)
    for line in (*queue["tags_not_understood"], *queue["open_cases"]):
        out.say_indented(line, "yellow", indent=_INDENT)


def _thought(scanned: Mapping[str, Any] | None) -> str:
    """One line."""
    if scanned is None:
        return "no scan has come to it yet"
    found = ", ".join(scanned["found"])
    skipped = "not measured, for the budget" if scanned["skipped_for_budget"] else ""
    failed = scanned["not_looked_at"] and f"not or not wholly looked at: {scanned['not_looked_at']}"
    said = "; ".join(filter(None, (found, skipped, failed))) or "nothing found"
    return f"{format_minute(datetime.fromisoformat(scanned['at']))}: {said}"
