"""`mendq support-bundle CASE`: write a file with what AWS Support asks for about a case.

The file has no message bodies: the command reads none.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from mendq.aws.clients import Clients
from mendq.aws.cloudwatch import build_query, make_queue_dimension, read_metric_series
from mendq.aws.queue import read_tags_if_allowed
from mendq.cases import items
from mendq.cli.commands import SHOW_ACTIONS, CommandKind, command
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import Invocation
from mendq.cli.look.show import CaseId, ShownCase, read_case_details
from mendq.cli.output import YesOption
from mendq.cli.private_file import report_open_files, write_private_file
from mendq.model.case import Case
from mendq.model.json_text import to_json
from mendq.model.metrics import select_series
from mendq.model.queue import is_fifo_arn, parse_queue_arn
from mendq.model.time_text import format_time
from mendq.notifications.text import format_count

SCHEMA_VERSION = 1
METRICS_MARGIN = timedelta(hours=1)
LONGEST_METRICS_SPAN = timedelta(days=1)
# How far CloudTrail's event history goes back. AWS may not find older requests.
OLD_REQUEST_AGE = timedelta(days=90)
# How long CloudWatch keeps datapoints, and their period in seconds. The longest period is 3600.
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_concepts.html
_PERIOD_SECONDS_BY_AGE = ((timedelta(days=15), 60), (timedelta(days=63), 300))
_OUTPUT_OPTION = typer.Option(
    "--output", "-o", help="The file to write. Default: CASE.json.", show_default=False
)
_BUNDLE_ACTIONS = {"sqs:ListQueueTags", "cloudwatch:GetMetricData"}


@command(11, CommandKind.LOOKING, SHOW_ACTIONS | _BUNDLE_ACTIONS)
def support_bundle(
    call: Invocation,
    case_id: CaseId,
    output: Annotated[Path | None, _OUTPUT_OPTION] = None,
    yes: YesOption = False,
) -> None:
    """Write what AWS Support asks for about a case.

    Examples:
      mendq support-bundle orders
      mendq support-bundle orders --output bundle.json
    """
    bundle_path = output or Path(f"{case_id}.json")
    if bundle_path.exists() and not yes:
        raise CommandError(f"{bundle_path} is there already: --yes overwrites it", Exit.USAGE)
    decode_error_context = items.convert_decode_errors(f"the evidence of {case_id}")
    with call.out.show_waiting("reading the case, its queue and CloudWatch"), decode_error_context:
        bundle = _make_bundle(call, read_case_details(call, case_id), datetime.now(UTC))
    written_file = write_private_file(bundle_path, to_json(bundle, indent=2) + "\n")
    request_count = len(bundle["requests"])
    evidence_gaps = bundle["not_known"]
    call.out.print_json(
        {"file": str(bundle_path.resolve()), "requests": request_count, "not_known": evidence_gaps}
    )
    call.out.say(f"{bundle_path}: {format_count(request_count, 'request')}, no message bodies")
    report_open_files(call.out, [written_file])
    for evidence_gap in evidence_gaps:
        call.out.say(evidence_gap, "yellow")


def _make_bundle(call: Invocation, shown_case: ShownCase, now: datetime) -> dict[str, Any]:
    """Return the file's content: requests, attributes, tags, metrics, gaps, and the case."""
    case = shown_case.case
    clients = call.account.clients
    queue = parse_queue_arn(case.queue_arn)
    requests = case.evidence.get("requests", [])
    return {
        "schema": SCHEMA_VERSION,
        "made_at": format_time(now),
        "account": queue.account,
        "region": queue.region,
        "queue_arn": case.queue_arn,
        "requests": [{**request, "region": queue.region} for request in requests],
        "attributes": shown_case.attributes_now,
        "tags": dict(read_tags_if_allowed(clients, case.queue_arn)),
        "metrics": _read_metrics(clients, case, now),
        "not_known": _list_evidence_gaps(shown_case, now),
        "case": shown_case.document(),
    }


def _list_evidence_gaps(shown_case: ShownCase, now: datetime) -> list[str]:
    """Return a sentence for each thing that the bundle does not have or that AWS may not find."""
    evidence = shown_case.case.evidence
    requests = evidence.get("requests", [])
    evidence_gaps = []
    missing_call_count = evidence["failed_calls"] - len(requests)
    if missing_call_count > 0:
        evidence_gaps.append(
            f"{format_count(missing_call_count, 'failed call')} more: see the trail's log files"
        )
    if not requests:
        evidence_gaps.append("no failed call is known in full: the case says what it stands on")
    if any(now - datetime.fromisoformat(request["at"]) > OLD_REQUEST_AGE for request in requests):
        old_request_days = OLD_REQUEST_AGE.days
        evidence_gaps.append(
            f"there are requests older than {old_request_days} days: AWS may not find them any more"
        )
    if shown_case.attributes_now is None:
        evidence_gaps.append("the queue is gone: see the facts from before in the case")
    return evidence_gaps


def _read_metrics(clients: Clients, case: Case, now: datetime) -> dict[str, Any]:
    """Return SQS's metrics from an hour before the first failure to an hour after the last one.

    The end is at most one day after the first failure, and not later than `now`.
    """
    first_failure = datetime.fromisoformat(case.evidence["first_at"])
    last_failure = datetime.fromisoformat(case.evidence["last_at"])
    metrics_since = first_failure - METRICS_MARGIN
    metrics_until = min(last_failure + METRICS_MARGIN, first_failure + LONGEST_METRICS_SPAN, now)
    period_seconds = _choose_period_seconds(now - metrics_since)
    metric_group_names = ["every queue", "receives"]
    if is_fifo_arn(case.queue_arn):
        metric_group_names.append("FIFO")
    # Name of the metric and statistic, by the key of its query.
    metric_and_statistic_by_query_key = {
        query_key: metric_parts[:2]
        for query_key, metric_parts in select_series(metric_group_names).items()
    }
    queries = [
        build_query(
            query_key, make_queue_dimension(case.queue_arn), name, statistic, period_seconds
        )
        for query_key, (name, statistic) in metric_and_statistic_by_query_key.items()
    ]
    points_by_query_key = read_metric_series(
        clients, queries, metrics_since, metrics_until, subject=case.queue_arn
    )
    points_by_metric = {}
    for query_key, metric_points in points_by_query_key.items():
        points_by_metric[" ".join(metric_and_statistic_by_query_key[query_key])] = [
            (format_time(point_time), value) for point_time, value in metric_points
        ]
    return {
        "since": format_time(metrics_since),
        "until": format_time(metrics_until),
        "period_seconds": period_seconds,
        "series": points_by_metric,
    }


def _choose_period_seconds(age_of_first_point: timedelta) -> int:
    """Return the shortest period, in seconds, for which CloudWatch keeps datapoints of this age."""
    for retention_time, period_seconds in _PERIOD_SECONDS_BY_AGE:
        if age_of_first_point < retention_time:
            return period_seconds
    return 3600
