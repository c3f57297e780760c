"""The nightly job's place on EMR Serverless: an application with bounds, and the job's role."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_emrserverless as emr
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from infra.packaging.emr import EmrPackage
from infra.roles import may, own_role
from infra.settings.deployment import DeploymentSettings, NightlySettings
from infra.storage import LOGS, TABLES, Buckets
from mendq.model.names import NIGHTLY, case_bucket_named
from mendq.model.settings import ORGANIZATION, WORKER, executors_within, workers_within

# Spark 3.5.8, which pyspark is pinned to.
# https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/release-version-7140.html
RELEASE = "emr-7.14.0"
IDLE_MINUTES = 15
# Below the tables' root, where the job lets Spark write before a table is put whole.
STAGING = "quality/.writing-"


class Nightly(Construct):
    """No worker waits for work: between nightly runs it costs nothing."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        settings: DeploymentSettings,
        buckets: Buckets,
        code: EmrPackage,
    ) -> None:
        super().__init__(scope, name)
        self._settings, self.buckets = settings.nightly, buckets
        self._organization = settings.organization
        self._is_hub, self._one_reads = settings.is_hub, settings.nightly.scope == ORGANIZATION
        self._logs = settings.trail.above_logs
        self.trail_root = f"s3://{buckets.trail.bucket_name}/{self._logs}".rstrip("/")
        self._entry_point = assets.Asset(self, "EntryPoint", path=str(code.entry_point))
        self._package = assets.Asset(self, "Package", path=str(code.modules))
        self._compiled = assets.Asset(self, "Compiled", path=str(code.compiled))
        self.application = _application(self, settings.nightly)
        self.role = own_role(
            self,
            "Role",
            purpose=NIGHTLY,
            service="emr-serverless",
            description="Mendq: reads the trail and the cases, writes incidents and summaries",
        )
        for statement in self._statements(of_others=not settings.trail.create):
            self.role.add_to_policy(statement)

    def known(self) -> dict[str, Any]:
        """What the Lambdas that start and watch it have to know."""
        reports = self.buckets.reports.bucket_name
        return {
            "application_id": self.application.attr_application_id,
            "job_role_arn": self.role.role_arn,
            "entry_point": self._entry_point.s3_object_url,
            "package": self._package.s3_object_url,
            "compiled_packages": self._compiled.s3_object_url,
            "trail_root": self.trail_root,
            "case_root": f"s3://{self._case_bucket}/cases",
            "out_root": f"s3://{reports}",
            "log_root": f"s3://{reports}/{LOGS}/",
            **self._of_the_organization(),
            "maximum_executors": executors_within(
                self._settings.maximum_vcpu, self._settings.maximum_memory_gb
            ),
        }

    @property
    def _case_bucket(self) -> str:
        """Of every account, where this job reads for all: the job fills in what the trail has."""
        region = Stack.of(self).region
        every = case_bucket_named("{account}", region)
        return every if self._one_reads else self.buckets.cases.bucket_name

    def _of_the_organization(self) -> dict[str, Any]:
        """Where the stack's tables are shared, and the hub's job finds those of all."""
        central, out = self.buckets.organization, self.buckets.reports
        known: dict[str, Any] = {"scope": self._settings.scope}
        if central:
            known["organization_bucket"] = central.bucket_name
        if self._organization and self._is_hub:
            known["organization_root"] = f"s3://{(central or out).bucket_name}"
            known["organization_accounts"] = self._organization.accounts
        return known

    def _reads_members(self) -> Iterator[iam.PolicyStatement]:
        """The hub's alone: tables that others shared, or their cases where it reads for all."""
        central, stack = self.buckets.organization, Stack.of(self)
        if not (self._organization and self._is_hub):
            return
        if central:
            yield may(["s3:GetObject"], central.arn_for_objects("account=*"))
            yield may(["s3:ListBucket"], central.bucket_arn)
            return
        every = f"arn:{stack.partition}:s3:::{case_bucket_named('*', stack.region)}"
        theirs = {"StringEquals": {"aws:ResourceOrgID": self._organization.id}}
        keys = (f"{every}/{each}/*" for each in ("cases", "findings"))
        yield may(["s3:GetObject"], *keys, conditions=theirs)
        yield may(["s3:ListBucket"], every, conditions=theirs)

    def _statements(self, *, of_others: bool) -> Iterator[iam.PolicyStatement]:
        """Hadoop asks for a key before it lists below it: without ListBucket a miss is a 403.

        It looks at what it replaces, and deletes only what Spark wrote beside the tables before
        each was put whole: EMR's S3A leaves markers where they are.
        https://hadoop.apache.org/docs/r3.4.1/hadoop-aws/tools/hadoop-aws/directory_markers.html
        """
        buckets, code = self.buckets, (self._entry_point, self._package, self._compiled)
        # An organization's trail has its id above the accounts.
        above = ("", "o-*/") if of_others else ("",)
        whose = "*" if self._one_reads else Stack.of(self).account
        logs = (f"{self._logs}AWSLogs/{each}{whose}/*" for each in above)
        tables = [buckets.reports.arn_for_objects(f"{each}/*") for each in TABLES]
        read = (
            *map(buckets.trail.arn_for_objects, logs),
            buckets.cases.arn_for_objects("cases/*"),
            buckets.cases.arn_for_objects("findings/*"),
            *(each.bucket.arn_for_objects(each.s3_object_key) for each in code),
        )
        yield may(["s3:GetObject"], *read, *tables)
        yield may(["s3:PutObject"], *tables, buckets.reports.arn_for_objects(f"{LOGS}/*"))
        yield may(["s3:DeleteObject"], buckets.reports.arn_for_objects(f"{STAGING}*"))
        listed = (buckets.trail, buckets.cases, buckets.reports, self._package.bucket)
        yield may(["s3:ListBucket"], *(each.bucket_arn for each in listed))
        yield from self._reads_members()
        if of_others:
            # A trail that others made may be encrypted: only what a CloudTrail trail wrote.
            # https://docs.aws.amazon.com/awscloudtrail/latest/userguide/create-kms-key-policy-for-cloudtrail.html
            keys = Stack.of(self).format_arn(
                service="kms", account="*", resource="key", resource_name="*"
            )
            of_a_trail = {"Null": {"kms:EncryptionContext:aws:cloudtrail:arn": "false"}}
            yield may(["kms:Decrypt"], keys, conditions=of_a_trail)


def _application(scope: Construct, settings: NightlySettings) -> emr.CfnApplication:
    workers = workers_within(settings.maximum_vcpu, settings.maximum_memory_gb)
    return emr.CfnApplication(
        scope,
        "Application",
        name="mendq",
        type="SPARK",
        release_label=RELEASE,
        architecture="ARM64",
        maximum_capacity={
            "cpu": f"{settings.maximum_vcpu} vCPU",
            "memory": f"{settings.maximum_memory_gb} GB",
            "disk": f"{workers * WORKER.disk_gb} GB",
        },
        auto_start_configuration={"enabled": True},
        auto_stop_configuration={"enabled": True, "idleTimeoutMinutes": IDLE_MINUTES},
    )
