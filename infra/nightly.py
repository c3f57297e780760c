"""The nightly job's place on EMR Serverless: an application with bounds, and the job's role."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from aws_cdk import Stack
from aws_cdk import aws_emrserverless as emr
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from infra.buckets import LOGS, TABLES
from infra.packaging.emr import EmrPackage
from infra.roles import own_role
from infra.settings.deployment import NightlySettings
from mendq.model.names import NIGHTLY
from mendq.model.settings import WORKER, executors_within, workers_within

# Spark 3.5.8, which pyspark is pinned to.
# https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/release-version-7140.html
RELEASE = "emr-7.14.0"
IDLE_MINUTES = 15
# Below the tables' root, where the job lets Spark write before a table is put whole.
STAGING = "quality/.writing-"


@dataclass(frozen=True)
class Buckets:
    """What the job reads and writes."""

    trail: s3.IBucket
    cases: s3.IBucket
    reports: s3.IBucket


class Nightly(Construct):
    """No worker waits for work: between nightly runs it costs nothing."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        settings: NightlySettings,
        buckets: Buckets,
        code: EmrPackage,
    ) -> None:
        super().__init__(scope, name)
        self.entry_point = assets.Asset(self, "EntryPoint", path=str(code.entry_point))
        self.package = assets.Asset(self, "Package", path=str(code.modules))
        self.compiled = assets.Asset(self, "Compiled", path=str(code.compiled))
        bounds = (settings.maximum_vcpu, settings.maximum_memory_gb)
        self.maximum_executors = executors_within(*bounds)
        self.application = emr.CfnApplication(
            self,
            "Application",
            name="mendq",
            type="SPARK",
            release_label=RELEASE,
            architecture="ARM64",
            maximum_capacity=emr.CfnApplication.MaximumAllowedResourcesProperty(
                cpu=f"{settings.maximum_vcpu} vCPU",
                memory=f"{settings.maximum_memory_gb} GB",
                disk=f"{workers_within(*bounds) * WORKER.disk_gb} GB",
            ),
            auto_start_configuration=emr.CfnApplication.AutoStartConfigurationProperty(
                enabled=True
            ),
            auto_stop_configuration=emr.CfnApplication.AutoStopConfigurationProperty(
                enabled=True, idle_timeout_minutes=IDLE_MINUTES
            ),
        )
        self.role = own_role(
            self,
            "Role",
            purpose=NIGHTLY,
            service="emr-serverless",
            description="Mendq: reads the trail and the cases, writes incidents and summaries",
        )
        for statement in self._statements(buckets):
            self.role.add_to_policy(statement)

    def may_decrypt_a_trail(self) -> None:
        """For a trail that others made and may encrypt: only what a CloudTrail trail wrote.

        https://docs.aws.amazon.com/awscloudtrail/latest/userguide/create-kms-key-policy-for-cloudtrail.html
        """
        keys = Stack.of(self).format_arn(
            service="kms", account="*", resource="key", resource_name="*"
        )
        self.role.add_to_policy(
            iam.PolicyStatement(
                actions=["kms:Decrypt"],
                resources=[keys],
                conditions={"Null": {"kms:EncryptionContext:aws:cloudtrail:arn": "false"}},
            )
        )

    def _statements(self, buckets: Buckets) -> Iterator[iam.PolicyStatement]:
        """Hadoop asks for a key before it lists below it: without ListBucket a miss is a 403.

        It looks at what it replaces, and deletes only what Spark wrote beside the tables before
        each was put whole: EMR's S3A leaves markers where they are.
        https://hadoop.apache.org/docs/r3.4.1/hadoop-aws/tools/hadoop-aws/directory_markers.html
        """
        tables = [buckets.reports.arn_for_objects(f"{each}/*") for each in TABLES]
        code = [each.bucket.arn_for_objects(each.s3_object_key) for each in self._code()]
        inputs = (
            buckets.trail.arn_for_objects("AWSLogs/*"),
            buckets.cases.arn_for_objects("cases/*"),
            buckets.cases.arn_for_objects("findings/*"),
        )
        yield _allow(["s3:GetObject"], *inputs, *tables, *code)
        yield _allow(["s3:PutObject"], *tables, buckets.reports.arn_for_objects(f"{LOGS}/*"))
        yield _allow(["s3:DeleteObject"], buckets.reports.arn_for_objects(f"{STAGING}*"))
        listed = (buckets.trail, buckets.cases, buckets.reports, self.package.bucket)
        yield _allow(["s3:ListBucket"], *(each.bucket_arn for each in listed))

    def _code(self) -> tuple[assets.Asset, ...]:
        return (self.entry_point, self.package, self.compiled)


def _allow(actions: list[str], *resources: str) -> iam.PolicyStatement:
    return iam.PolicyStatement(actions=actions, resources=list(resources))
