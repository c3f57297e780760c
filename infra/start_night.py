"""The Lambda that starts the job, and the schedules that wake it: nightly and once a week."""

from __future__ import annotations

from aws_cdk import Duration, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_destinations as destinations
from constructs import Construct

from functions.settings import StartNightSettings
from infra.lambda_function import Handler, hand_over, lambda_function
from infra.night import Buckets, Night
from infra.own_queues import dead_letter_queue
from infra.report_bucket import LOGS
from infra.roles import START_NIGHT, own_role

LAMBDA_PATIENCE = Duration.hours(1)
HANDLER = Handler(
    "start_night",
    "Mendq: starts the nightly and the weekly job",
    timeout=Duration.seconds(60),
    memory_mb=256,
)


class StartNight(Construct):
    """It may hand the job's role to EMR Serverless and to nothing else."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        code: lambda_.Code,
        night: Night,
        buckets: Buckets,
    ) -> None:
        super().__init__(scope, name)
        self.dead_letters = dead_letter_queue(self, "DeadLetters")
        role = own_role(
            self,
            "Role",
            purpose=START_NIGHT,
            service="lambda",
            description="Mendq: starts the nightly and the weekly job",
        )
        application = night.application.attr_arn
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["emr-serverless:ListJobRuns", "emr-serverless:StartJobRun"],
                resources=[application],
            )
        )
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["iam:PassRole"],
                resources=[night.role.role_arn],
                conditions={
                    "StringEquals": {"iam:PassedToService": "emr-serverless.amazonaws.com"}
                },
            )
        )
        self.function = lambda_function(self, HANDLER, code=code, role=role)
        self.function.configure_async_invoke(
            on_failure=destinations.SqsDestination(self.dead_letters),
            max_event_age=LAMBDA_PATIENCE,
            retry_attempts=2,
        )
        hand_over(self.function, _settings(Stack.of(self), night, buckets).to_environment())


def _settings(stack: Stack, night: Night, buckets: Buckets) -> StartNightSettings:
    return StartNightSettings(
        account=stack.account,
        application_id=night.application.attr_application_id,
        job_role_arn=night.role.role_arn,
        entry_point=night.entry_point.s3_object_url,
        package=night.package.s3_object_url,
        trail_root=f"s3://{buckets.trail.bucket_name}",
        case_root=f"s3://{buckets.cases.bucket_name}/cases",
        out_root=f"s3://{buckets.reports.bucket_name}",
        log_root=f"s3://{buckets.reports.bucket_name}/{LOGS}/",
    )
