"""From a summary in the report bucket to a page beside it and a verdict to people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from aws_cdk import Duration, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.lambdas.lambda_function import Handler, ParkingLambda
from infra.settings.deployment import ReportSettings
from infra.topics import Topic
from mendq.model.names import DELIVER_REPORT
from mendq.model.settings import DeliverReportSettings

SUMMARIES = "summary/week=*/summary.json"
# Charts are drawn by a whole browser engine: one full virtual CPU.
# https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
MEMORY_MB = 1_769
# A report that is a day late is still worth reading.
PATIENCE = Duration.hours(24)
LAMBDA_PATIENCE = Duration.hours(6)
# https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
LAMBDA_RETRIES_AFTER_SECONDS = (60, 120)
HANDLER = Handler(
    "deliver_report",
    "Mendq: delivers the weekly report",
    timeout=Duration.seconds(120),
    memory_mb=MEMORY_MB,
)

# What it may do with the report bucket's objects: its own marks it reads back as well.
OBJECTS = (
    ("s3:GetObject", "summary/*"),
    ("s3:PutObject", "report/*"),
    ("s3:GetObject", "report/*/delivered/*"),
)


def mail_arns(stack: Stack, addresses: Iterable[str]) -> list[str]:
    """Whatever may be verified for these addresses: each, its domain and the domains above."""
    names = dict.fromkeys(name for each in addresses for name in (each, *_domains_of(each)))
    identities = [
        stack.format_arn(service="ses", resource="identity", resource_name=each) for each in names
    ]
    return [*identities, configuration_sets_arn(stack)]


def configuration_sets_arn(stack: Stack) -> str:
    """Any of the account: which one an identity sends by is set in SES."""
    return stack.format_arn(service="ses", resource="configuration-set", resource_name="*")


def _domains_of(address: str) -> Iterator[str]:
    labels = address.rpartition("@")[2].lower().split(".")
    yield from (".".join(labels[n:]) for n in range(len(labels) - 1))


class DeliverReport(ParkingLambda):
    """What EventBridge cannot deliver, and what the Lambda gives up, is kept for a person."""

    def __init__(  # noqa: PLR0913 - what it reads, and whom it reaches
        self,
        scope: Construct,
        name: str,
        *,
        code: lambda_.Code,
        reports: s3.Bucket,
        info: Topic,
        mail: ReportSettings,
    ) -> None:
        super().__init__(
            scope,
            name,
            handler=HANDLER,
            code=code,
            purpose=DELIVER_REPORT,
            patience=LAMBDA_PATIENCE,
        )
        for action, keys in OBJECTS:
            self.may([action], reports.arn_for_objects(keys))
        info.let_publish(self.role)
        if mail.sender is not None and mail.mails:
            self._may_mail(mail.sender, mail.recipients)
        self.knows(
            DeliverReportSettings(
                account=Stack.of(self).account,
                report_bucket=reports.bucket_name,
                topic_arn=info.arn,
                sender=mail.sender,
                recipients=mail.recipients,
            )
        )
        self._starts_with(reports)

    def _may_mail(self, sender: str, recipients: Sequence[str]) -> None:
        """From this sender alone; a mail that is sent raw takes both actions.

        Where a recipient is an identity of the account too, as in SES's sandbox, SES asks for the
        permission on that one as well; and on the sender's configuration set where it has one.
        Not tried on AWS.
        https://docs.aws.amazon.com/ses/latest/dg/control-user-access.html
        """
        self.role.add_to_policy(
            iam.PolicyStatement(
                actions=["ses:SendEmail", "ses:SendRawEmail"],
                resources=mail_arns(Stack.of(self), (sender, *recipients)),
                conditions={"StringEquals": {"ses:FromAddress": sender}},
            )
        )

    def _starts_with(self, reports: s3.Bucket) -> None:
        """https://docs.aws.amazon.com/AmazonS3/latest/userguide/EventBridge.html"""
        written = events.EventPattern(
            source=["aws.s3"],
            detail_type=["Object Created"],
            detail={
                "bucket": {"name": [reports.bucket_name]},
                "object": {"key": [{"wildcard": SUMMARIES}]},
            },
        )
        self.starts_with(
            "SummaryWritten",
            written,
            description="A week's summary was written to Mendq's report bucket",
            patience=PATIENCE,
        )
