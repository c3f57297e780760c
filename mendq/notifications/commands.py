"""Commands printed for people: `mendq` and `aws`, to look at a queue, change it or undo a
change.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from shlex import quote

from mendq.model.case import Case
from mendq.model.metrics import Measurement
from mendq.model.queue import parts_of, public_url
from mendq.notifications.text import Section, command_line, exact_json


def aws_command(operation: str, queue_arn: str, options: str = "") -> str:
    """An `aws` command in the queue's region; raises ValueError where `queue_arn` is none."""
    return f"aws {operation} --region {parts_of(queue_arn).region} {options}".rstrip()


def _sqs(operation: str, queue_arn: str, queue_url: str = "") -> str:
    url = quote(queue_url or public_url(queue_arn))
    return aws_command(f"sqs {operation}", queue_arn, f"--queue-url {url}")


def get_attributes(queue_arn: str, *names: str) -> str:
    """What SQS says of the queue, all of it by default; raises ValueError where there is none."""
    said = " ".join(names or ("All",))
    return f"{_sqs('get-queue-attributes', queue_arn)} --attribute-names {said}"


def consumers_of(queue_arn: str) -> str:
    """Which functions read the queue; raises ValueError where `queue_arn` is none."""
    options = f"--event-source-arn {quote(queue_arn)}"
    return aws_command("lambda list-event-source-mappings", queue_arn, options)


def mendq_on(command: str, queue_arn: str) -> str:
    """The operator's own command, `{queue}` in it named; raises ValueError as the others."""
    queue = parts_of(queue_arn)
    return f"mendq {command.format(queue=queue.name)} --region {queue.region}"


# Which of a source's messages a person would send back, and what lies in its DLQ, by group.
redrive_preview = partial(mendq_on, "redrive {queue} --all --dry-run")
messages_of = partial(mendq_on, "dlq {queue}")
# Send back all DLQ messages of a FIFO queue, except the first message of each group.
leaving_first = partial(mendq_on, "redrive {queue} --all --leave-first")


def tag_command(tag: str, queue_arn: str) -> str:
    """The `aws` command that tags a queue; `tag` is ours, so it is not quoted."""
    return f"{_sqs('tag-queue', queue_arn)} --tags {tag}"


def metric_command(
    queue_arn: str, metric: str, statistic: str, measured: Measurement | None
) -> str:
    """The `aws` command that shows a metric of the queue as it was measured; empty if it was not.

    Metric and statistic are words of ours, so neither is quoted.
    """
    if measured is None:
        return ""
    queue = parts_of(queue_arn)
    return (
        f"aws cloudwatch get-metric-statistics --region {queue.region} --namespace AWS/SQS "
        f"--metric-name {metric} --dimensions Name=QueueName,Value={queue.name} "
        f"--statistics {statistic} --period 300 "
        f"--start-time {_moment(measured.since)} --end-time {_moment(measured.until)}"
    )


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


_WORD = re.compile(r"[A-Za-z0-9]{1,64}")


def set_command(queue_arn: str, values: Mapping[str, str], queue_url: str = "") -> str:
    """The `aws` command that sets attributes; raises ValueError where `queue_arn` is none.

    JSON escapes keep every value exact and every character visible. `queue_url` is for a queue that
    has another one than AWS would give it. A policy is quoted twice, for the shell and as the CLI's
    JSON, whose short form splits at commas:
    https://docs.aws.amazon.com/cli/latest/userguide/cli-usage-shorthand.html
    """
    words = all(_WORD.fullmatch(each) for pair in values.items() for each in pair)
    shorthand = ",".join(f"{name}={text}" for name, text in values.items())
    given = shorthand if words else exact_json(dict(values))
    return f"{_sqs('set-queue-attributes', queue_arn, queue_url)} --attributes {quote(given)}"


def create_queue_command(queue_arn: str, attributes: Mapping[str, str]) -> str:
    """The `aws` command that makes a queue; raises ValueError where `queue_arn` is none."""
    name, given = parts_of(queue_arn).name, quote(exact_json(dict(attributes)))
    return aws_command("sqs create-queue", queue_arn, f"--queue-name {name} --attributes {given}")


def delete_queue_command(queue_arn: str) -> str:
    """The `aws` command that deletes a queue with all that is in it; ValueError for no queue."""
    return _sqs("delete-queue", queue_arn)


def mendq_command(verb: str, case: Case) -> str:
    """The operator's own command for a case, where its queue is."""
    region = parts_of(case.queue_arn).region
    return command_line(f"mendq {verb} {quote(case.case_id)} --region {region}")


def quotas_command(service_code: str, queue_arn: str, named: str = "") -> str:
    """The `aws` command that lists a service's quotas in the queue's region.

    With `named` only those whose names hold it. Both words are ours, so neither is quoted.
    """
    chosen = f"[?contains(QuotaName, '{named}')]" if named else "[]"
    shown = f'--query "Quotas{chosen}.[QuotaName, QuotaCode, Value, Adjustable]" --output table'
    options = f"--service-code {service_code} {shown}"
    return aws_command("service-quotas list-service-quotas", queue_arn, options)


def quota(queue_arn: str, named: str, default: str, service: str, code: str = "") -> Section:
    """A quota that was hit: AWS's documented default, the account's own value, and more of it.

    Mendq may not read the account's own. Without a `code` all of the service are listed.
    """
    of = f"--service-code {service} --quota-code {code or 'QUOTA_CODE'}"
    read = aws_command("service-quotas get-service-quota", queue_arn, of)
    ask = "service-quotas request-service-quota-increase"
    lines = (
        f"{named}: {default} by AWS's documentation; this account's own value is in:",
        read if code else quotas_command(service, queue_arn),
        "to ask for more; what is not adjustable there takes a case with AWS Support:",
        aws_command(ask, queue_arn, f"{of} --desired-value VALUE"),
    )
    return Section("QUOTA", lines, cut=False)


# How the name of every alarm of Mendq's begins: others of the account may not publish here.
ALARM_PREFIX = "mendq-"
FIRES, FIRST, RUNBOOK = "Fires: ", "First, in account ", "Runbook: "
# What Mendq's own doctor sees of most causes.
DOCTOR = "mendq doctor"

_WORDS = re.compile(
    rf"^{FIRES}(?P<when>.{{1,500}})\.\n"
    rf"{FIRST}\S{{1,40}}: (?P<command>.{{1,200}})\n"
    rf"{RUNBOOK}(?P<page>docs/runbooks/[a-z_]{{1,64}}\.md|https://[!-~]{{1,300}})$",
    re.MULTILINE,
)


def format_alarm_description(impact: str, when: str, account: str, command: str, page: str) -> str:
    """What CloudWatch sends to people with an alarm."""
    return f"{impact}\n{FIRES}{when}.\n{FIRST}{account}: {command}\n{RUNBOOK}{page}"


def parse_alarm_description(description: str) -> tuple[str, str, str] | None:
    """When it fires, what to type first and its runbook; None where it is not of our wording."""
    found = _WORDS.search(description)
    return (found["when"], found["command"], found["page"]) if found else None
