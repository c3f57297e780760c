"""The table of cases, fixes, snapshots, claims, evidence and budgets."""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from functions.healing import ledger_index


class Ledger(Construct):
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
            index_name=ledger_index.OPEN_CASES,
            partition_key=dynamodb.Attribute(name=ledger_index.PARTITION, type=text),
            sort_key=dynamodb.Attribute(name=ledger_index.SORT, type=dynamodb.AttributeType.NUMBER),
            projection_type=dynamodb.ProjectionType.INCLUDE,
            non_key_attributes=list(ledger_index.INCLUDED),
        )
