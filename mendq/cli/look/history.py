"""`mendq history QUEUE`: how it was configured when it was well, who changed it, and its cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from rich.text import Text

from mendq.aws.consumers import (
    active_function_arns,
    consumers_behind,
    list_mappings,
    timeout_seconds_of,
)
from mendq.aws.queue import tags_of
from mendq.aws.recent_changes import list_changes_since
from mendq.cases.baselines import Baselines
from mendq.cases.table import OpenCases
from mendq.cli.account import Account
from mendq.cli.commands import EVERY_CASE, QUEUE, Kind, command
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import Invocation
from mendq.cli.look.case_view import opened_at, summary
from mendq.cli.queues import QueueName, find_queue, resolve_queue_arn
from mendq.cli.undo.answers import group_by_case
from mendq.model.evidence import to_text
from mendq.model.facts import Facts
from mendq.model.policy import QueueChange
from mendq.notifications.configuration import Baseline, differences
from mendq.notifications.queue_lines import change_line, describe_configuration
from mendq.notifications.text import moment

# So long CloudTrail's event history goes back.
REMEMBERED = timedelta(days=90)
_CONSUMERS = {"lambda:ListEventSourceMappings", "lambda:GetFunctionConfiguration"}
_CHANGED = {"sqs:ListQueueTags", "cloudtrail:LookupEvents"}
Event = dict[str, Any]


@command(10, Kind.LOOKING, EVERY_CASE | QUEUE | _CONSUMERS | _CHANGED)
def history(call: Invocation, queue: QueueName) -> None:
    """What changed of a queue, who did it, and its cases.

    Examples:
      mendq history orders
      mendq history orders --json
    """
    account = call.account
    arn = resolve_queue_arn(account, queue)
    with call.out.show_waiting("reading baselines, cases and CloudTrail"):
        baselines = account.open_store(Baselines).of(arn)
        changes = list_changes_since(account.clients, arn, datetime.now(UTC) - REMEMBERED)
        events = [*_of_baselines(baselines), *_of_changes(changes), *_of_cases(account, arn)]
        now = _now(account, arn)
    if not (now or events):
        raise CommandError(f"of {arn} nothing is known", Exit.NOT_FOUND)
    since = list(differences(baselines[0].attributes, now)) if baselines and now else None
    why = changes if isinstance(changes, str) else None
    events.sort(key=lambda each: str(each["at"]), reverse=True)
    said = {"queue_arn": arn, "queue_exists": bool(now), "changed_since_baseline": since}
    call.out.print_json({**said, "changes_not_known": why, "events": events})
    call.out.say_unwrapped(arn, "bold")
    call.out.say(_stands(baselines, now, since))
    for line in since or ():
        call.out.say_indented(line)
    if why:
        call.out.say(f"who changed it is not known: {why}", "yellow")
    for each in events:
        at = moment(datetime.fromisoformat(each["at"]))
        call.out.show(Text.assemble(f"\n{at}  ", (each["kind"], "bold")))
        for line in each["says"]:
            call.out.say_indented(line)


def _stands(
    baselines: Sequence[Baseline], now: Mapping[str, str], since: Sequence[str] | None
) -> str:
    if not now:
        return "the queue is gone, or was never there"
    if since is None:
        return "no baseline: no scan has found it well yet, or it is not managed"
    differs = "differs now in:" if since else "nothing differs now"
    return f"a scan found it well at {moment(baselines[0].at)}; {differs}"


def _now(account: Account, arn: str) -> dict[str, str]:
    """As a baseline has it; empty where the queue is gone."""
    if (queue := find_queue(account, arn)) is None:
        return {}
    mappings, tags = list_mappings(account.clients, arn), tags_of(account.clients, arn) or {}
    seconds = {
        each: timeout_seconds_of(account.clients, each) for each in active_function_arns(mappings)
    }
    enabled, stopped = consumers_behind(mappings, seconds)
    consumers: Any = {"lambda_consumers": enabled, "stopped_consumers": stopped}
    return describe_configuration(Facts(arn, queue.attributes, tags, **consumers))


def _of_baselines(baselines: Sequence[Baseline]) -> Iterator[Event]:
    then: Mapping[str, str] = {}
    for each in reversed(baselines):
        says = ["a scan found it well with:", *differences(then, each.attributes)]
        yield {"at": to_text(each.at), "kind": "baseline", "says": says}
        then = each.attributes


def _of_cases(account: Account, arn: str) -> Iterator[Event]:
    for *_, case in group_by_case(account.open_store(OpenCases).all_transitions()).values():
        if case.queue_arn == arn:
            says = [f"{case.case_id}: {case.state}", case.reason]
            yield {"at": to_text(opened_at(case)), "kind": "case", "says": says, **summary(case)}


def _of_changes(changes: Sequence[QueueChange] | str) -> Iterator[Event]:
    for each in () if isinstance(changes, str) else changes:
        who = {"principal_arn": each.principal_arn, "attributes": list(each.attributes)}
        says = [change_line(each), f"by {each.who}"]
        yield {"at": to_text(each.at), "kind": "change", "says": says, **who}
