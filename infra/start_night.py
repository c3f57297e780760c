"""The Lambda that starts the job, nightly and once a week."""

from __future__ import annotations

from aws_cdk import Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from functions.healing.own_roles import START_NIGHT
from functions.settings import StartNightSettings
from infra.lambda_function import Handler, ParkingLambda
from infra.night import Buckets, Night
from infra.report_bucket import LOGS

HANDLER = Handler(
    "start_night",
    "Mendq: starts the nightly and the weekly job",
    timeout=Duration.seconds(60),
    memory_mb=256,
)


class StartNight(ParkingLambda):
    """It may hand the job's role to EMR Serverless and to nothing else."""

    def __init__(
        self, scope: Construct, name: str, *, code: lambda_.Code, night: Night, buckets: Buckets
    ) -> None:
        super().__init__(
            scope,
            name,
            handler=HANDLER,
            code=code,
            purpose=START_NIGHT,
            patience=Duration.hours(1),
        )
        application = night.application.attr_arn
        self.may(["emr-serverless:ListJobRuns", "emr-serverless:StartJobRun"], application)
        self.role.add_to_policy(
            iam.PolicyStatement(
                actions=["iam:PassRole"],
                resources=[night.role.role_arn],
                conditions={
                    "StringEquals": {"iam:PassedToService": "emr-serverless.amazonaws.com"}
                },
            )
        )
        self.knows(_settings(Stack.of(self), night, buckets))


def _settings(stack: Stack, night: Night, buckets: Buckets) -> StartNightSettings:
    return StartNightSettings(
        account=stack.account,
        application_id=night.application.attr_application_id,
        job_role_arn=night.role.role_arn,
        entry_point=night.entry_point.s3_object_url,
        package=night.package.s3_object_url,
        compiled_packages=night.compiled.s3_object_url,
        trail_root=f"s3://{buckets.trail.bucket_name}",
        case_root=f"s3://{buckets.cases.bucket_name}/cases",
        out_root=f"s3://{buckets.reports.bucket_name}",
        log_root=f"s3://{buckets.reports.bucket_name}/{LOGS}/",
        maximum_executors=night.maximum_executors,
    )
