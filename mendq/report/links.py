"""Links in the report's page and mail: to the AWS console, to runbooks, and inside the page.

A summary may contain forged text. So each part of a link is checked first, and there is no link if
a part has an unexpected form.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote

from mendq.report.summary import Summary


class ReportedAccount(NamedTuple):
    """The account and region that a report is about."""

    region: str
    account: str
    # The account's alias, or empty.
    alias: str = ""
    # Address of the docs, in which `*` stands for the path of a page. Empty if there is none.
    docs_url: str = ""


def format_account_name(reported_account: ReportedAccount) -> str:
    """Return the account and region in words, such as `orders-prod (123456789012), eu-west-1`.

    If the account has no alias, return `123456789012, eu-west-1`.
    """
    account_text = (
        f"{reported_account.alias} ({reported_account.account})"
        if reported_account.alias
        else reported_account.account
    )
    return f"{account_text}, {reported_account.region}"


# The same patterns as in `mendq.model.queue` and `mendq.model.case`. The report imports no other
# package of mendq, so it has its own.
QUEUE_ARN_REGEX = re.compile(
    r"arn:(?P<partition>aws[a-z-]{0,16}):sqs:(?P<region>[a-z0-9-]{1,32}):(?P<account>[0-9]{12}):"
    r"(?=.{1,80}\Z)(?P<name>[A-Za-z0-9_-]{1,80}(?:\.fifo)?)"
)
CASE_ID_REGEX = re.compile(r"(?P<symptom>[a-z_]{1,64})-[0-9a-f]{12}")
_REGION_REGEX = re.compile(r"[a-z]{2,8}(?:-[a-z]{1,16}){1,3}-[0-9]{1,2}")
# The form in which a case names its runbook.
_RUNBOOK_REGEX = re.compile(r"docs/(runbooks/[a-z_]{1,64})\.md")
# Hosts by partition: the console, and the domain of queue URLs. The domains are the same as in
# `mendq.model.partitions`.
_CONSOLE_AND_QUEUE_HOSTS_BY_PARTITION = {
    "aws": ("console.aws.amazon.com", "amazonaws.com"),
    "aws-us-gov": ("console.amazonaws-us-gov.com", "amazonaws.com"),
    "aws-cn": ("console.amazonaws.cn", "amazonaws.com.cn"),
    "aws-eusc": ("console.amazonaws-eusc.eu", "amazonaws.eu"),
}


def match_queue(queue_arn: str, reported_account: ReportedAccount | None) -> re.Match[str] | None:
    """Match the ARN of a queue in the reported account and region.

    The groups of the match are `partition`, `region`, `account` and `name`. None if the text is not
    a queue ARN, if the queue is in another account or region, or if `reported_account` is None.
    """
    queue_match = QUEUE_ARN_REGEX.fullmatch(queue_arn)
    if queue_match is None or reported_account is None:
        return None
    region_and_account = (queue_match["region"], queue_match["account"])
    return queue_match if region_and_account == reported_account[:2] else None


def is_safe_in_command(queue_match: re.Match[str]) -> bool:
    """Return True if no mail program makes a link of the queue's name, as it does of `www.fifo`."""
    return not queue_match["name"].lower().startswith("www.")


def make_console_url(queue_arn: str) -> str:
    """Return the URL of the queue's page in the AWS console.

    Empty if the text is not a queue ARN, or if its partition is not one of aws, aws-us-gov, aws-cn
    and aws-eusc, or if its region does not look like an AWS region.
    """
    queue_match = QUEUE_ARN_REGEX.fullmatch(queue_arn)
    if (
        not queue_match
        or queue_match["partition"] not in _CONSOLE_AND_QUEUE_HOSTS_BY_PARTITION
        or not _REGION_REGEX.fullmatch(queue_match["region"])
    ):
        return ""
    region = queue_match["region"]
    console_host, _ = _CONSOLE_AND_QUEUE_HOSTS_BY_PARTITION[queue_match["partition"]]
    quoted_queue_url = quote(make_queue_url(queue_match), safe="")
    return f"https://{region}.{console_host}/sqs/v3/home?region={region}#/queues/{quoted_queue_url}"


def make_queue_url(queue_match: re.Match[str]) -> str:
    """Return the queue's URL. Empty if its partition is not one of those of `make_console_url`."""
    hosts = _CONSOLE_AND_QUEUE_HOSTS_BY_PARTITION.get(queue_match["partition"])
    if hosts is None:
        return ""
    _, domain = hosts
    region = queue_match["region"]
    return f"https://sqs.{region}.{domain}/{queue_match['account']}/{queue_match['name']}"


def make_runbook_url(runbook_path: str, reported_account: ReportedAccount | None) -> str:
    """Return the URL of a runbook such as `docs/runbooks/dlq_missing.md`.

    Empty if the path has another form, or if `reported_account` or its `docs_url` is not known.
    """
    runbook_match = _RUNBOOK_REGEX.fullmatch(runbook_path)
    return (
        reported_account.docs_url.replace("*", runbook_match[1])
        if runbook_match and reported_account
        else ""
    )


def make_case_anchor(case_id: str | None) -> str:
    """Return the HTML id of a case in the page. Empty if `case_id` is None or not a case id."""
    return f"case-{case_id}" if case_id and CASE_ID_REGEX.fullmatch(case_id) else ""


def list_case_anchors(summary: Summary) -> frozenset[str]:
    """Return the HTML ids of the waiting cases and of the cases of listed incidents.

    Only these cases have a place in the page to which a link can lead.
    """
    case_ids = {case.case_id for case in summary.open_now}
    case_ids |= {incident.case_id for incident in summary.cases if incident.case_id}
    return frozenset(make_case_anchor(case_id) for case_id in case_ids) - {""}
