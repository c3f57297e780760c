"""The Lambda that checks each nightly and weekly run that ended, well or not."""

from __future__ import annotations

from aws_cdk import Duration, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.lambdas.lambda_function import Handler, ParkingLambda
from infra.nightly import Nightly
from mendq.model.names import WATCH_NIGHTLY
from mendq.model.settings import WatchNightlySettings
from mendq.nightly.outcome import DETAIL_TYPE, ENDED, SOURCE
from mendq.nightly.verdict import NIGHTLY_RUNS

HANDLER = Handler(
    "watch_nightly",
    "Mendq: checks nightly runs that ended, and counts what failed or read too little",
    timeout=Duration.seconds(60),
    memory_mb=256,
)
# A nightly run that nobody heard of within this time is missing: the alarm on its figures says so.
PATIENCE = Duration.hours(6)


class WatchNightly(ParkingLambda):
    """It reads the accounts of nightly runs, asks EMR about them, and lists weeks."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        code: lambda_.Code,
        nightly: Nightly,
        reports: s3.IBucket,
    ) -> None:
        super().__init__(
            scope, name, handler=HANDLER, code=code, purpose=WATCH_NIGHTLY, patience=PATIENCE
        )
        runs = f"{nightly.application.attr_arn}/jobruns/*"
        self.may(["emr-serverless:GetJobRun"], runs)
        self.may(["s3:GetObject"], reports.arn_for_objects(f"{NIGHTLY_RUNS}/*"))
        self.role.add_to_policy(
            iam.PolicyStatement(
                actions=["s3:ListBucket"],
                resources=[reports.bucket_arn],
                conditions={"StringLike": {"s3:prefix": [f"{NIGHTLY_RUNS}/*", "summary/*"]}},
            )
        )
        application_id = nightly.application.attr_application_id
        self.knows(
            WatchNightlySettings(
                account=Stack.of(self).account,
                application_id=application_id,
                report_bucket=reports.bucket_name,
            )
        )
        self.starts_with(
            "RunEnded",
            run_ended(application_id),
            description="A job run of Mendq's application ended",
            patience=PATIENCE,
        )


def run_ended(application_id: str) -> events.EventPattern:
    """https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/using-eventbridge.html"""
    return events.EventPattern(
        source=[SOURCE],
        detail_type=[DETAIL_TYPE],
        detail={"applicationId": [application_id], "state": list(ENDED)},
    )
