"""sweep: the second stretch of a round, in which a queue is found whose letters expire first."""

from __future__ import annotations

from datetime import UTC, datetime

from functions.aws import ledger_items as items
from functions.aws.findings_bucket import FindingsBucket
from functions.healing.evidence import to_text
from functions.healing.sweeping import Swept, round_of
from tests.local_account.dead_letters import naming
from tests.local_account.least_privilege.cases import (
    Ledgers,
    leased_queue,
    new_queue_named,
)
from tests.local_account.least_privilege.enforced import Enforced
from tests.local_account.least_privilege.proof import Proof

# In order: the round goes by name, and the first stretch is said to have come to there.
SOURCE, LETTERS, FIRST = "named-swept", "named-swept-dlq", "a"
EVERYBODYS = {"tls_not_enforced"}
# The stack's own bear a tag as well: off.
OTHERS = [{"Key": "mendq", "Values": ["propose", "heal"]}]
Scene = tuple[FindingsBucket, set[str]]


def _half_swept(here: Enforced) -> Scene:
    _no_managed_queue(here)
    Ledgers(here).wipe()
    letters = new_queue_named(here, LETTERS, MessageRetentionPeriod="86400")
    source = new_queue_named(here, SOURCE, RedrivePolicy=naming(letters, receives=5))
    for each in (source, letters):
        each.send()
    read_by_a_lambda = leased_queue(here, "heal")
    now = datetime.now(UTC)
    findings = FindingsBucket(here.account.client("s3"), here.outputs["CaseBucket"])
    findings.put(round_of(now), Swept().document(now))
    here.account.client("dynamodb").put_item(
        TableName=here.outputs["LedgerTable"],
        Item={
            **items.key(items.ACCOUNT, "sweep"),
            "round": {"S": to_text(round_of(now))},
            "after": {"S": FIRST},
        },
    )
    return findings, {each.arn for each in (source, letters, read_by_a_lambda)}


def _no_managed_queue(here: Enforced) -> None:
    """Those of other runs would be swept too."""
    sqs = here.account.client("sqs")
    pages = here.account.client("resourcegroupstaggingapi").get_paginator("get_resources")
    for page in list(pages.paginate(ResourceTypeFilters=["sqs"], TagFilters=OTHERS)):
        for each in page["ResourceTagMappingList"]:
            name = each["ResourceARN"].rpartition(":")[2]
            sqs.delete_queue(QueueUrl=sqs.get_queue_url(QueueName=name)["QueueUrl"])


def _swept(here: Enforced, scene: Scene) -> str:
    findings, ours = scene
    answer = here.call("sweep", {})
    found = findings.get(round_of(datetime.now(UTC)))["findings"]
    told = {each["symptom"] for each in found if each["queue_arn"] in ours}
    names = f"found: {', '.join(sorted(told - EVERYBODYS))}"
    unseen = "" if answer.error or not answer.document["errors"] else "gaps"
    return "; ".join(each for each in (answer.error, unseen, names) if each)


PROOF = Proof(
    handler="sweep",
    prepare=_half_swept,
    comes_of=_swept,
    whole="found: dead_letter_queue_missing, dead_letters_expire_first",
    without={
        "dynamodb:GetItem": "LedgerUnavailable; found: ",
        "dynamodb:Query": "LedgerUnavailable; found: ",
        "dynamodb:UpdateItem": "LedgerUnavailable; found: ",
        "lambda:GetFunctionConfiguration": "gaps; found: dead_letters_expire_first",
        "lambda:InvokeFunction": "OwnerUnavailable; found: ",
        "lambda:ListEventSourceMappings": "gaps; found: ",
        "s3:GetObject": "AccessDenied; found: ",
        "s3:PutObject": "AccessDenied; found: ",
        "sqs:GetQueueAttributes": "gaps; found: ",
        "sqs:ListDeadLetterSourceQueues": "gaps; found: ",
        "sqs:ListQueues": "gaps; found: dead_letter_queue_missing, dead_letters_expire_first",
        "tag:GetResources": "FactsUnavailable; found: ",
    },
    elsewhere={
        "cloudwatch:GetMetricData": "a queue that has been there for longer than what is measured",
        "sqs:ListMessageMoveTasks": "the same, of a dead-letter queue",
    },
)
