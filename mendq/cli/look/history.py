"""`mendq history QUEUE`: show a queue's baselines (healthy configurations), changes and cases.

A baseline is the configuration that the queue had when a scan found it healthy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from rich.text import Text

from mendq.aws.consumers import (
    list_active_function_arns,
    list_consumers,
    list_mappings,
    read_function_timeout_seconds,
)
from mendq.aws.queue import read_queue_tags
from mendq.aws.recent_changes import list_changes_since
from mendq.cases.baselines import Baselines
from mendq.cases.table import OpenCases
from mendq.cli.account import Account
from mendq.cli.commands import CASE_SCAN_ACTIONS, QUEUE_ATTRIBUTES_ACTIONS, CommandKind, command
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import Invocation
from mendq.cli.look.case_view import get_opening_time, summarize_case
from mendq.cli.queues import QueueName, find_queue, resolve_queue_arn
from mendq.cli.undo.answers import group_by_case
from mendq.model.facts import Facts
from mendq.model.policy import QueueChange
from mendq.model.time_text import format_time
from mendq.notifications.configuration import Baseline, describe_differences
from mendq.notifications.queue_lines import describe_configuration, describe_queue_change
from mendq.notifications.text import format_utc_time

# How far CloudTrail's event history goes back.
CLOUDTRAIL_HISTORY_TIME = timedelta(days=90)
_CONSUMER_IAM_ACTIONS = {"lambda:ListEventSourceMappings", "lambda:GetFunctionConfiguration"}
_CHANGE_HISTORY_IAM_ACTIONS = {"sqs:ListQueueTags", "cloudtrail:LookupEvents"}
# An event of the history: `at`, `kind`, `says` (lines for people), and further fields by kind.
HistoryEvent = dict[str, Any]


@command(
    10,
    CommandKind.LOOKING,
    CASE_SCAN_ACTIONS
    | QUEUE_ATTRIBUTES_ACTIONS
    | _CONSUMER_IAM_ACTIONS
    | _CHANGE_HISTORY_IAM_ACTIONS,
)
def history(call: Invocation, queue: QueueName) -> None:
    """Show what changed on a queue, who changed it, and its cases.

    Examples:
      mendq history orders
      mendq history orders --json
    """
    account = call.account
    queue_arn = resolve_queue_arn(account, queue)
    with call.out.show_waiting("reading baselines, cases and CloudTrail"):
        baselines = account.open_store(Baselines).load(queue_arn)
        changes = list_changes_since(
            account.clients, queue_arn, datetime.now(UTC) - CLOUDTRAIL_HISTORY_TIME
        )
        events = [
            *_make_baseline_events(baselines),
            *_make_change_events(changes),
            *_make_case_events(account, queue_arn),
        ]
        current_configuration = _read_configuration(account, queue_arn)
    if not (current_configuration or events):
        raise CommandError(f"of {queue_arn} nothing is known", Exit.NOT_FOUND)
    # None if there is nothing to compare.
    changed_lines = None
    if baselines and current_configuration:
        changed_lines = list(describe_differences(baselines[0].attributes, current_configuration))
    why_changes_unknown = changes if isinstance(changes, str) else None
    events.sort(key=lambda event: str(event["at"]), reverse=True)
    call.out.print_json(
        {
            "queue_arn": queue_arn,
            "queue_exists": bool(current_configuration),
            "changed_since_baseline": changed_lines,
            "changes_not_known": why_changes_unknown,
            "events": events,
        }
    )
    call.out.say_unwrapped(queue_arn, "bold")
    call.out.say(_compare_with_newest_baseline(baselines, current_configuration, changed_lines))
    for changed_line in changed_lines or ():
        call.out.say_indented(changed_line)
    if why_changes_unknown:
        call.out.say(f"who changed it is not known: {why_changes_unknown}", "yellow")
    for event in events:
        event_time_text = format_utc_time(datetime.fromisoformat(event["at"]))
        call.out.show(Text.assemble(f"\n{event_time_text}  ", (event["kind"], "bold")))
        for changed_line in event["says"]:
            call.out.say_indented(changed_line)


def _compare_with_newest_baseline(
    baselines: Sequence[Baseline],
    current_configuration: Mapping[str, str],
    changed_lines: Sequence[str] | None,
) -> str:
    """Return a sentence that compares the queue with its newest baseline, or says why it cannot.

    `changed_lines` has the differences; None if there is no baseline or no queue.
    """
    if not current_configuration:
        return "the queue is gone, or was never there"
    if changed_lines is None:
        return "no baseline: no scan has found it well yet, or it is not managed"
    comparison_text = "differs now in:" if changed_lines else "nothing differs now"
    return f"a scan found it well at {format_utc_time(baselines[0].at)}; {comparison_text}"


def _read_configuration(account: Account, queue_arn: str) -> dict[str, str]:
    """Return the queue's attributes, tags and consumers in the form of a baseline.

    Empty if there is no such queue.
    """
    queue = find_queue(account, queue_arn)
    if queue is None:
        return {}
    lambda_mappings = list_mappings(account.clients, queue_arn)
    tags = read_queue_tags(account.clients, queue_arn) or {}
    timeout_seconds_by_function_arn = {
        function_arn: read_function_timeout_seconds(account.clients, function_arn)
        for function_arn in list_active_function_arns(lambda_mappings)
    }
    enabled_consumers, stopped_consumers = list_consumers(
        lambda_mappings, timeout_seconds_by_function_arn
    )
    consumer_facts: Any = {
        "lambda_consumers": enabled_consumers,
        "stopped_consumers": stopped_consumers,
    }
    return describe_configuration(Facts(queue_arn, queue.attributes, tags, **consumer_facts))


def _make_baseline_events(baselines: Sequence[Baseline]) -> Iterator[HistoryEvent]:
    """Yield an event for each baseline, the oldest first, with the changes since the one before."""
    attributes_before: Mapping[str, str] = {}
    for baseline in reversed(baselines):
        changes = describe_differences(attributes_before, baseline.attributes)
        event_lines = ["a scan found it well with:", *changes]
        yield {"at": format_time(baseline.at), "kind": "baseline", "says": event_lines}
        attributes_before = baseline.attributes


def _make_case_events(account: Account, queue_arn: str) -> Iterator[HistoryEvent]:
    """Yield an event for each case of the queue, at the time when the case was opened."""
    transitions = account.open_store(OpenCases).scan_all_transitions()
    for case_transitions in group_by_case(transitions).values():
        case = case_transitions[-1]
        if case.queue_arn == queue_arn:
            event_lines = [f"{case.case_id}: {case.state}", case.reason]
            opened_at_text = format_time(get_opening_time(case))
            event = {"at": opened_at_text, "kind": "case", "says": event_lines}
            yield event | summarize_case(case)


def _make_change_events(queue_changes: Sequence[QueueChange] | str) -> Iterator[HistoryEvent]:
    """Yield an event for each change of the queue.

    Yield nothing if `queue_changes` is a text, which says why the changes are not known.
    """
    if isinstance(queue_changes, str):
        return
    for queue_change in queue_changes:
        yield {
            "at": format_time(queue_change.at),
            "kind": "change",
            "says": [describe_queue_change(queue_change), f"by {queue_change.who}"],
            "principal_arn": queue_change.principal_arn,
            "attributes": list(queue_change.attributes),
        }
