"""What every Lambda that moves a case works with: the ledger, the case bucket, the topics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3

from functions.healing import ledger_index
from infra.roles import allow
from infra.settings import DeploymentSettings
from infra.topics import Topics

# A transaction takes the actions of its parts.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis-iam.html
MOVE = tuple(f"dynamodb:{each}Item" for each in ("Get", "Put", "Update", "Delete"))
CHECK = ("dynamodb:ConditionCheckItem",)
QUERY = ("dynamodb:Query",)
SWEEP = ("dynamodb:GetItem", "dynamodb:UpdateItem")


@dataclass(frozen=True)
class CaseDesk:
    """Shared by heal, follow_up, approve, roll_back and the sweep."""

    ledger: dynamodb.Table
    cases: s3.Bucket
    topics: Topics
    settings: DeploymentSettings

    def let_move_cases(self, role: iam.Role) -> None:
        """Item by item in the ledger, one new object a transition."""
        allow(role, MOVE, self.ledger.table_arn)
        allow(role, ["s3:PutObject"], self.cases.arn_for_objects("cases/*"))

    def let_page(self, role: iam.Role) -> None:
        """Both severities; an hour's pages are counted in the ledger."""
        for topic in (self.topics.urgent, self.topics.info):
            topic.let_publish(role)

    def let_check_freeze(self, role: iam.Role) -> None:
        """As part of a claim; what undoes needs none, because no freeze stops it."""
        allow(role, CHECK, self.ledger.table_arn)

    def let_read_a_case(self, role: iam.Role) -> None:
        """All transitions of one case, or the newest cases about one queue."""
        allow(role, QUERY, self.ledger.table_arn)

    def let_list_open_cases(self, role: iam.Role) -> None:
        index = f"{self.ledger.table_arn}/index/{ledger_index.OPEN_CASES}"
        allow(role, QUERY, index)

    def let_sweep(self, role: iam.Role) -> None:
        """Its own items of the ledger, and one object an hour."""
        allow(role, SWEEP, self.ledger.table_arn)
        allow(role, ["s3:GetObject", "s3:PutObject"], self.cases.arn_for_objects("findings/*"))

    def known(self) -> dict[str, Any]:
        """The fields of CaseSettings."""
        return {
            "account": Stack.of(self.ledger).account,
            "ledger_table": self.ledger.table_name,
            "case_bucket": self.cases.bucket_name,
            "urgent_topic_arn": self.topics.urgent.arn,
            "info_topic_arn": self.topics.info.arn,
            "limits": self.settings.limits,
            "timing": self.settings.timing,
        }

    def managed(self) -> dict[str, Any]:
        """The fields of ConsentSettings beside the account."""
        return {
            "mode": self.settings.mode,
            "tag_may_raise_to": self.settings.tag_may_raise_to,
            "queues": self.settings.queues,
        }
