"""scan: the second stretch of a round, in which a queue is found whose messages expire first."""

from __future__ import annotations

from datetime import UTC, datetime

from mendq.cases import items
from mendq.cases.archive import FindingsBucket
from mendq.cases.finding import Scanned, round_of
from mendq.model.evidence import to_text
from tests.local_account.dlq import naming
from tests.local_account.least_privilege.cases import (
    CaseStores,
    new_queue_named,
    queue_with_short_timeout,
)
from tests.local_account.least_privilege.enforced import Enforced
from tests.local_account.least_privilege.proof import Proof

# In order: the round goes by name, and the first stretch is said to have come to there.
SOURCE, MESSAGES, FIRST = "named-swept", "named-swept-dlq", "a"
EVERYBODYS = {"tls_not_enforced"}
# The stack's own bear a tag as well: off.
OTHERS = [{"Key": "mendq", "Values": ["propose", "heal"]}]
Scene = tuple[FindingsBucket, set[str]]


def _half_scanned(here: Enforced) -> Scene:
    _no_managed_queue(here)
    CaseStores(here).wipe()
    messages = new_queue_named(here, MESSAGES, MessageRetentionPeriod="86400")
    source = new_queue_named(here, SOURCE, RedrivePolicy=naming(messages, receives=5))
    for each in (source, messages):
        each.send()
    read_by_a_lambda = queue_with_short_timeout(here, "heal")
    now = datetime.now(UTC)
    findings = FindingsBucket(here.account.client("s3"), here.outputs["CaseBucket"])
    findings.put(round_of(now), Scanned().document(now))
    here.account.client("dynamodb").put_item(
        TableName=here.outputs["CaseTable"],
        Item={
            **items.key(items.ACCOUNT, "scan"),
            "round": {"S": to_text(round_of(now))},
            "after": {"S": FIRST},
        },
    )
    return findings, {each.arn for each in (source, messages, read_by_a_lambda)}


def _no_managed_queue(here: Enforced) -> None:
    """Those of other runs would be scanned too."""
    sqs = here.account.client("sqs")
    pages = here.account.client("resourcegroupstaggingapi").get_paginator("get_resources")
    for page in list(pages.paginate(ResourceTypeFilters=["sqs"], TagFilters=OTHERS)):
        for each in page["ResourceTagMappingList"]:
            name = each["ResourceARN"].rpartition(":")[2]
            sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName=name)["QueueUrl"])


def _scanned(here: Enforced, scene: Scene) -> str:
    findings, ours = scene
    answer = here.call("scan", {})
    found = findings.get(round_of(datetime.now(UTC)))["findings"]
    announced = {each["symptom"] for each in found if each["queue_arn"] in ours}
    names = f"found: {', '.join(sorted(announced - EVERYBODYS))}"
    unseen = "" if answer.error or not answer.document["errors"] else "gaps"
    return "; ".join(each for each in (answer.error, unseen, names) if each)


PROOF = Proof(
    handler="scan",
    prepare=_half_scanned,
    comes_of=_scanned,
    whole="found: dlq_missing, dlq_retention_too_short",
    without={
        "dynamodb:GetItem": "CaseStoreUnavailable; found: ",
        "dynamodb:Query": "CaseStoreUnavailable; found: ",
        "dynamodb:UpdateItem": "CaseStoreUnavailable; found: ",
        "lambda:GetFunctionConfiguration": "gaps; found: dlq_retention_too_short",
        "lambda:InvokeFunction": "OwnerUnavailable; found: ",
        "lambda:ListEventSourceMappings": "gaps; found: ",
        "s3:GetObject": "AccessDenied; found: ",
        "s3:PutObject": "AccessDenied; found: ",
        "sqs:GetQueueAttributes": "gaps; found: ",
        "sqs:ListDeadLetterSourceQueues": "gaps; found: ",
        "sqs:ListQueues": "gaps; found: dlq_missing, dlq_retention_too_short",
        "tag:GetResources": "FactsUnavailable; found: ",
    },
    elsewhere={
        "cloudwatch:GetMetricData": "a queue that has been there for longer than what is measured",
        "sqs:ListMessageMoveTasks": "the same, of a DLQ",
    },
)
