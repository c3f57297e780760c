"""The Lambda that starts the job, nightly and once a week."""

from __future__ import annotations

from aws_cdk import Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.buckets import LOGS
from infra.lambdas.lambda_function import Handler, ParkingLambda
from infra.nightly import Buckets, Nightly
from mendq.model.names import START_NIGHTLY
from mendq.model.settings import StartNightlySettings

HANDLER = Handler(
    "start_nightly",
    "Mendq: starts the nightly and the weekly job",
    timeout=Duration.seconds(60),
    memory_mb=256,
)


class StartNightly(ParkingLambda):
    """It may pass the job's role to EMR Serverless and to nothing else."""

    def __init__(
        self, scope: Construct, name: str, *, code: lambda_.Code, nightly: Nightly, buckets: Buckets
    ) -> None:
        super().__init__(
            scope,
            name,
            handler=HANDLER,
            code=code,
            purpose=START_NIGHTLY,
            patience=Duration.hours(1),
        )
        application = nightly.application.attr_arn
        self.may(["emr-serverless:ListJobRuns", "emr-serverless:StartJobRun"], application)
        self.role.add_to_policy(
            iam.PolicyStatement(
                actions=["iam:PassRole"],
                resources=[nightly.role.role_arn],
                conditions={
                    "StringEquals": {"iam:PassedToService": "emr-serverless.amazonaws.com"}
                },
            )
        )
        self.knows(_settings(Stack.of(self), nightly, buckets))


def _settings(stack: Stack, nightly: Nightly, buckets: Buckets) -> StartNightlySettings:
    return StartNightlySettings(
        account=stack.account,
        application_id=nightly.application.attr_application_id,
        job_role_arn=nightly.role.role_arn,
        entry_point=nightly.entry_point.s3_object_url,
        package=nightly.package.s3_object_url,
        compiled_packages=nightly.compiled.s3_object_url,
        trail_root=f"s3://{buckets.trail.bucket_name}",
        case_root=f"s3://{buckets.cases.bucket_name}/cases",
        out_root=f"s3://{buckets.reports.bucket_name}",
        log_root=f"s3://{buckets.reports.bucket_name}/{LOGS}/",
        maximum_executors=nightly.maximum_executors,
    )
