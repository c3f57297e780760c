"""The case table, and what each Lambda may do with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aws_cdk import RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.roles import allow
from infra.settings.deployment import DeploymentSettings
from infra.topics import Topics
from mendq.cases import view


class CaseStore(Construct):
    """On demand, restorable to any second of the last 35 days, kept when the stack goes."""

    def __init__(self, scope: Construct, name: str) -> None:
        super().__init__(scope, name)
        text = dynamodb.AttributeType.STRING
        self.table = dynamodb.Table(
            self,
            "Table",
            partition_key=dynamodb.Attribute(name="pk", type=text),
            sort_key=dynamodb.Attribute(name="sk", type=text),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            time_to_live_attribute="expires_at",
            removal_policy=RemovalPolicy.RETAIN,
        )
        self.table.add_global_secondary_index(
            index_name=view.OPEN_CASES,
            partition_key=dynamodb.Attribute(name=view.PARTITION, type=text),
            sort_key=dynamodb.Attribute(name=view.SORT, type=dynamodb.AttributeType.NUMBER),
            projection_type=dynamodb.ProjectionType.INCLUDE,
            non_key_attributes=list(view.INCLUDED),
        )


# A transaction takes the actions of its parts.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis-iam.html
MOVE = tuple(f"dynamodb:{each}Item" for each in ("Get", "Put", "Update", "Delete"))
CHECK = ("dynamodb:ConditionCheckItem",)
QUERY = ("dynamodb:Query",)
SCAN = ("dynamodb:GetItem", "dynamodb:UpdateItem")


@dataclass(frozen=True)
class CaseGrants:
    """Shared by heal, follow_up, approve, rollback and the scan."""

    case_store: dynamodb.Table
    cases: s3.Bucket
    topics: Topics
    settings: DeploymentSettings

    def let_move_cases(self, role: iam.Role) -> None:
        """Item by item in the case store, one new object a transition."""
        allow(role, MOVE, self.case_store.table_arn)
        allow(role, ["s3:PutObject"], self.cases.arn_for_objects("cases/*"))

    def let_page(self, role: iam.Role) -> None:
        """Both severities; an hour's pages are counted in the case store."""
        for topic in (self.topics.urgent, self.topics.info):
            topic.let_publish(role)

    def let_check_freeze(self, role: iam.Role) -> None:
        """As part of a claim; what undoes needs none, because no freeze stops it."""
        allow(role, CHECK, self.case_store.table_arn)

    def let_read_a_case(self, role: iam.Role) -> None:
        """All transitions of one case, or the newest cases about one queue."""
        allow(role, QUERY, self.case_store.table_arn)

    def let_list_open_cases(self, role: iam.Role) -> None:
        index = f"{self.case_store.table_arn}/index/{view.OPEN_CASES}"
        allow(role, QUERY, index)

    def let_scan(self, role: iam.Role) -> None:
        """Its own items of the case store, and one object an hour."""
        allow(role, SCAN, self.case_store.table_arn)
        allow(role, ["s3:GetObject", "s3:PutObject"], self.cases.arn_for_objects("findings/*"))

    def known(self) -> dict[str, Any]:
        """The fields of CaseSettings."""
        return {
            "account": Stack.of(self.case_store).account,
            "case_table": self.case_store.table_name,
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
