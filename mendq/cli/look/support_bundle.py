"""`mendq support-bundle CASE`: one file with what AWS Support asks for about a case.

It holds no message: neither CloudTrail's records nor anything else that is read has their bodies.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from mendq.aws.clients import Clients
from mendq.aws.cloudwatch import build_query, queue_dimension, read_series
from mendq.aws.queue import tags_if_readable
from mendq.cases import items
from mendq.cli.commands import SHOWN, Kind, command
from mendq.cli.exit_codes import CommandError, Exit
from mendq.cli.invocation import Invocation
from mendq.cli.look.export import replace_if_changed
from mendq.cli.look.show import CaseId, Whole, look
from mendq.cli.output import Yes
from mendq.model.case import Case
from mendq.model.evidence import to_text
from mendq.model.json_text import to_json
from mendq.model.metrics import series_of
from mendq.model.queue import on_fifo, parts_of
from mendq.notifications.text import format_count

SCHEMA = 1
AROUND = timedelta(hours=1)
LONGEST = timedelta(days=1)
# How long CloudTrail's event history goes back; what is older AWS may not be able to look up.
OLD = timedelta(days=90)
# How long CloudWatch keeps datapoints of a period.
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_concepts.html
_PERIODS = ((timedelta(days=15), 60), (timedelta(days=63), 300))
_OUTPUT = typer.Option("--output", "-o", help="The file; else CASE.json.", show_default=False)
_READ = {"sqs:ListQueueTags", "cloudwatch:GetMetricData"}


@command(11, Kind.LOOKING, SHOWN | _READ)
def support_bundle(
    call: Invocation,
    case_id: CaseId,
    output: Annotated[Path | None, _OUTPUT] = None,
    yes: Yes = False,
) -> None:
    """Write what AWS Support asks for about a case.

    Examples:
      mendq support-bundle orders
      mendq support-bundle orders --output bundle.json
    """
    path = output or Path(f"{case_id}.json")
    if path.exists() and not yes:
        raise CommandError(f"{path} is there already: --yes overwrites it", Exit.USAGE)
    reading = items.reading(f"the evidence of {case_id}")
    with call.out.show_waiting("reading the case, its queue and CloudWatch"), reading:
        bundle = _bundle(call, look(call, case_id), datetime.now(UTC))
    replace_if_changed(path, to_json(bundle, indent=2) + "\n")
    number, unknown = len(bundle["requests"]), bundle["not_known"]
    call.out.print_json({"file": str(path.resolve()), "requests": number, "not_known": unknown})
    call.out.say(f"{path}: {format_count(number, 'request')}, no message bodies")
    for line in unknown:
        call.out.say(line, "yellow")


def _bundle(call: Invocation, whole: Whole, now: datetime) -> dict[str, Any]:
    case, clients = whole.case, call.account.clients
    queue, requests = parts_of(case.queue_arn), case.evidence.get("requests", [])
    more = case.evidence["failed_calls"] - len(requests)
    are_old = any(now - datetime.fromisoformat(each["at"]) > OLD for each in requests)
    unknown = {
        f"{format_count(more, 'failed call')} more: see the trail's log files": more > 0,
        "no failed call is known in full: the case says what it stands on": not requests,
        f"there are requests older than {OLD.days} days: AWS may not find them any more": are_old,
        "the queue is gone: see the facts from before in the case": whole.now is None,
    }
    return {
        "schema": SCHEMA,
        "made_at": to_text(now),
        "account": queue.account,
        "region": queue.region,
        "queue_arn": case.queue_arn,
        "requests": [{**each, "region": queue.region} for each in requests],
        "attributes": whole.now,
        "tags": dict(tags_if_readable(clients, case.queue_arn)),
        "metrics": _metrics(clients, case, now),
        "not_known": [line for line, so in unknown.items() if so],
        "case": whole.document(),
    }


def _metrics(clients: Clients, case: Case, now: datetime) -> dict[str, Any]:
    """What SQS counted around the first and the last failure, for a day at most."""
    first, last = (datetime.fromisoformat(case.evidence[e]) for e in ("first_at", "last_at"))
    since, until = first - AROUND, min(last + AROUND, first + LONGEST, now)
    seconds = next((each for age, each in _PERIODS if now - since < age), 3600)
    kinds = ("every queue", "receives", *(["FIFO"] if on_fifo(case.queue_arn) else []))
    asked = {key: each[:2] for key, each in series_of(kinds).items()}
    queries = [
        build_query(key, queue_dimension(case.queue_arn), *each, seconds)
        for key, each in asked.items()
    ]
    found = read_series(clients, queries, since, until, of=case.queue_arn)
    return {
        "since": to_text(since),
        "until": to_text(until),
        "period_seconds": seconds,
        "series": {
            " ".join(asked[key]): [(to_text(at), value) for at, value in points]
            for key, points in found.items()
        },
    }
