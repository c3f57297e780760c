"""From a summary in the report bucket to a page beside it and a verdict to people."""

from __future__ import annotations

from aws_cdk import Duration, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct

from functions.settings import DeliverReportSettings
from infra.lambda_function import Handler, ParkingLambda
from infra.roles import DELIVER_REPORT
from infra.topics import Topic

SUMMARIES = "summary/week=*/summary.json"
# Charts are drawn by a whole browser engine: one full virtual CPU.
# https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
MEMORY_MB = 1_769
# A report that is a day late is still worth reading.
PATIENCE = Duration.hours(24)
LAMBDA_PATIENCE = Duration.hours(6)
HANDLER = Handler(
    "deliver_report",
    "Mendq: delivers the weekly report",
    timeout=Duration.seconds(120),
    memory_mb=MEMORY_MB,
)


class DeliverReport(ParkingLambda):
    """What EventBridge cannot hand over, and what the Lambda gives up, is kept for a person."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        code: lambda_.Code,
        reports: s3.Bucket,
        info: Topic,
    ) -> None:
        super().__init__(
            scope,
            name,
            handler=HANDLER,
            code=code,
            purpose=DELIVER_REPORT,
            patience=LAMBDA_PATIENCE,
        )
        for action, keys in (
            ("s3:GetObject", "summary/*"),
            ("s3:PutObject", "report/*"),
            ("s3:DeleteObject", "report/*/delivered"),
        ):
            self.may([action], reports.arn_for_objects(keys))
        info.let_publish(self.role)
        self.knows(
            DeliverReportSettings(
                account=Stack.of(self).account,
                report_bucket=reports.bucket_name,
                topic_arn=info.arn,
            )
        )
        self._starts_with(reports)

    def _starts_with(self, reports: s3.Bucket) -> None:
        """https://docs.aws.amazon.com/AmazonS3/latest/userguide/EventBridge.html"""
        events.Rule(
            self,
            "SummaryWritten",
            description="A week's summary was written to Mendq's report bucket",
            event_pattern=events.EventPattern(
                source=["aws.s3"],
                detail_type=["Object Created"],
                detail={
                    "bucket": {"name": [reports.bucket_name]},
                    "object": {"key": [{"wildcard": SUMMARIES}]},
                },
            ),
            targets=[
                targets.LambdaFunction(
                    self.function,
                    dead_letter_queue=self.dead_letters,
                    max_event_age=PATIENCE,
                    retry_attempts=185,
                )
            ],
        )
