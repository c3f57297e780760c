"""Where the page and its mail lead: consoles, runbooks and places of the page itself.

An address is made of parts that have the one form that they may have; what has not stays text.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote

from mendq.report.summary import Summary


class Here(NamedTuple):
    """The region and account that Mendq looks after, its alias, and where the docs are read.

    A page's path takes the place of the `*` in `docs_url`.
    """

    region: str
    account: str
    alias: str = ""
    docs_url: str = ""


def account_name(here: Here) -> str:
    """`orders-prod (123456789012), eu-west-1`; the number alone where there is no alias."""
    account = f"{here.alias} ({here.account})" if here.alias else here.account
    return f"{account}, {here.region}"


# As `mendq.model.queue` and `mendq.model.case` have them; the report stands alone.
QUEUE_ARN = re.compile(
    r"arn:(?P<partition>aws[a-z-]{0,16}):sqs:(?P<region>[a-z0-9-]{1,32}):(?P<account>[0-9]{12}):"
    r"(?=.{1,80}\Z)(?P<name>[A-Za-z0-9_-]{1,80}(?:\.fifo)?)"
)
CASE_ID = re.compile(r"(?P<symptom>[a-z_]{1,64})-[0-9a-f]{12}")
_REGION = re.compile(r"[a-z]{2}(?:-[a-z]{1,16}){1,3}-[0-9]{1,2}")
# As a case names its page.
_RUNBOOK = re.compile(r"docs/(runbooks/[a-z_]{1,64})\.md")
# Of a partition: where its console lies, and its queues.
_HOSTS = {
    "aws": ("console.aws.amazon.com", "amazonaws.com"),
    "aws-us-gov": ("console.amazonaws-us-gov.com", "amazonaws.com"),
    "aws-cn": ("console.amazonaws.cn", "amazonaws.com.cn"),
}


def queue_of(queue_arn: str, here: Here | None) -> re.Match[str] | None:
    """The parts of a queue's ARN; None for what is no queue, or none of here."""
    queue = QUEUE_ARN.fullmatch(queue_arn)
    return queue if here and queue and (queue["region"], queue["account"]) == here[:2] else None


def console(queue_arn: str) -> str:
    """The queue's page in the console; empty for what is no queue."""
    queue = QUEUE_ARN.fullmatch(queue_arn)
    if not queue or queue["partition"] not in _HOSTS or not _REGION.fullmatch(queue["region"]):
        return ""
    region, (host, domain) = queue["region"], _HOSTS[queue["partition"]]
    url = f"https://sqs.{region}.{domain}/{queue['account']}/{queue['name']}"
    return f"https://{region}.{host}/sqs/v3/home?region={region}#/queues/{quote(url, safe='')}"


def runbook(page: str, here: Here | None) -> str:
    """The runbook's address; empty where nobody said where the docs are read."""
    found = _RUNBOOK.fullmatch(page)
    return here.docs_url.replace("*", found[1]) if found and here else ""


def anchor(case_id: str | None) -> str:
    """The id of the case's place in the page; empty for what is no case."""
    return f"case-{case_id}" if case_id and CASE_ID.fullmatch(case_id) else ""


def places(summary: Summary) -> frozenset[str]:
    """The anchors that the page of a summary has: of the cases that it lists."""
    listed = {it.case_id for it in summary.open_now} | {it.case_id for it in summary.cases}
    return frozenset(map(anchor, listed)) - {""}
