"""The scan-only stack: the hourly scan, and one notification about its new findings.

It has one Lambda with its role, log and schedule, one table, one topic and one alarm. Nothing in it
may write to a queue.

All constructs have the same ids as in a whole stack. So if `scanOnly` is switched on or off,
CloudFormation keeps the table, the topic with its confirmed subscriptions, the Lambda, its log and
the alarm, and changes them in place. docs/upgrade.md says what it deletes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.alarms.health import make_missing_scan_alarm
from infra.lambdas.environment import make_scan_only_settings
from infra.lambdas.grants import allow_on_partitions
from infra.lambdas.lambda_function import Handler, OwnLambda, set_environment
from infra.queue_grants import SCAN_READ_ACTIONS, list_read_statements
from infra.schedules import add_schedules
from infra.settings.deployment import DeploymentSettings
from infra.stack import StackPlacement
from infra.storage import make_case_table
from infra.topics import Topic, make_only_topic
from mendq.cases.partitions import ACCOUNT_PARTITION

SCAN_ONLY_STACK_DESCRIPTION = "Mendq scans SQS queues and reports what it finds"
# Named `scan` as in a whole stack, so that its function, role and log stay when a stack changes.
SCAN_ONLY_HANDLER = Handler(
    "scan",
    "Mendq: scans managed queues and reports what is new",
    900,
    1_024,
    module="scan_only",
)


class ScanOnlyStack(Stack):
    """Mendq's scan in one account and region."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        settings: DeploymentSettings,
        lambda_code: Path,
        placement: StackPlacement,
    ) -> None:
        super().__init__(
            scope,
            name,
            stack_name=placement.stack_name,
            env=placement.environment,
            synthesizer=placement.synthesizer,
            description=SCAN_ONLY_STACK_DESCRIPTION,
            analytics_reporting=False,
        )
        topic = make_only_topic(self, settings.notifications)
        case_table = make_case_table(Construct(self, "CaseStore"))
        scan = OwnLambda(self, SCAN_ONLY_HANDLER, lambda_.Code.from_asset(str(lambda_code)))
        for statement in self._list_statements(case_table, topic):
            scan.role.add_to_policy(statement)
        set_environment(
            scan.function,
            make_scan_only_settings(self.account, case_table.table_name, topic.arn, settings),
        )
        add_schedules(self, {SCAN_ONLY_HANDLER.name: scan}, settings)
        self._add_alarm(scan.function, topic, settings)
        value_by_output = {
            "CaseTable": case_table.table_name,
            "ScanFunction": scan.function.function_name,
            "UrgentTopic": topic.arn,
        }
        for output_name, value in value_by_output.items():
            CfnOutput(self, f"{output_name}Name", value=value).override_logical_id(output_name)

    def _list_statements(
        self, case_table: dynamodb.Table, topic: Topic
    ) -> Iterator[iam.PolicyStatement]:
        """Yield the statements of the Lambda's role.

        It may read queues, read and write the partition about the account, and publish.
        """
        yield from list_read_statements(self, SCAN_READ_ACTIONS)
        yield allow_on_partitions(
            case_table, ["dynamodb:GetItem", "dynamodb:UpdateItem"], ACCOUNT_PARTITION
        )
        yield from topic.list_publish_statements()

    def _add_alarm(
        self, scan_function: lambda_.Function, topic: Topic, settings: DeploymentSettings
    ) -> None:
        """Add the alarm that rings if no scan ended well for hours."""
        alarms_construct = Construct(self, "Alarms")
        alarms_construct.node.set_context("docsUrl", settings.docs_url or "")
        missing_scan_alarm = make_missing_scan_alarm(scan_function)
        part_construct = Construct(alarms_construct, missing_scan_alarm.description.part)
        topic.connect_alarm(missing_scan_alarm.make_alarm(part_construct))
