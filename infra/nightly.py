"""The nightly job on EMR Serverless: an application with limits, and the job's role."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from aws_cdk import Stack
from aws_cdk import aws_emrserverless as emr
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from infra.packaging.emr import EmrPackage
from infra.roles import may, own_role
from infra.settings.deployment import DeploymentSettings, NightlySettings
from infra.storage import LOGS, TABLES, Buckets
from mendq.model.names import NIGHTLY, case_bucket_name
from mendq.model.settings import ORGANIZATION, WORKER, executors_within, workers_within

# Spark 3.5.8, which pyspark is pinned to.
# https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/release-version-7140.html
RELEASE = "emr-7.14.0"
IDLE_MINUTES = 15
# Key prefix in the report bucket. Spark writes there before the job puts a table whole.
STAGING = "quality/.writing-"


@dataclass(frozen=True)
class JobCode:
    """S3 URIs of what a job run loads."""

    entry_point: str
    package: str
    compiled_packages: str


@dataclass(frozen=True)
class JobRoots:
    """S3 URIs below which a job run reads (`trail`, `cases`) and writes (`out`, `logs`)."""

    trail: str
    cases: str
    out: str
    logs: str


class Nightly(Construct):
    """The EMR Serverless application and the role of the nightly job.

    No worker waits for work, so the application costs nothing between nightly runs.
    """

    def __init__(
        self,
        scope: Construct,
        name: str,
        settings: DeploymentSettings,
        buckets: Buckets,
        code: EmrPackage,
    ) -> None:
        super().__init__(scope, name)
        self._settings = settings
        self._buckets = buckets
        self._reads_all_accounts = settings.nightly.scope == ORGANIZATION
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
        for statement in self._statements():
            self.role.add_to_policy(statement)

    @property
    def code(self) -> JobCode:
        """What a job run loads."""
        return JobCode(
            entry_point=self._entry_point.s3_object_url,
            package=self._package.s3_object_url,
            compiled_packages=self._compiled.s3_object_url,
        )

    @property
    def roots(self) -> JobRoots:
        """Where a job run reads and writes."""
        trail = self._buckets.trail.bucket_name
        reports = self._buckets.reports.bucket_name
        return JobRoots(
            trail=f"s3://{trail}/{self._settings.trail.above_logs}".rstrip("/"),
            cases=f"s3://{self._case_bucket}/cases",
            out=f"s3://{reports}",
            logs=f"s3://{reports}/{LOGS}/",
        )

    @property
    def maximum_executors(self) -> int:
        """The most Spark executors that fit into the application beside the driver."""
        nightly = self._settings.nightly
        return executors_within(nightly.maximum_vcpu, nightly.maximum_memory_gb)

    @property
    def organization_root(self) -> str | None:
        """Where the hub's job finds the tables of all accounts; None if this is not the hub."""
        if not self._settings.is_hub:
            return None
        tables = self._buckets.organization or self._buckets.reports
        return f"s3://{tables.bucket_name}"

    @property
    def organization_accounts(self) -> tuple[str, ...]:
        """Accounts that the hub's report must mention; empty if this is not the hub."""
        organization = self._settings.organization
        if organization is None or not self._settings.is_hub:
            return ()
        return organization.accounts

    @property
    def _case_bucket(self) -> str:
        """The bucket that cases are read from.

        If the job reads for all accounts, the name has a place that the job fills in with each
        account that the trail has.
        """
        if self._reads_all_accounts:
            return case_bucket_name("{account}", Stack.of(self).region)
        return self._buckets.cases.bucket_name

    def _statements(self) -> Iterator[iam.PolicyStatement]:
        """What the job's role may do.

        It may list buckets: Hadoop asks for a key before it lists below it, and without ListBucket
        a missing key gives 403. It reads what it replaces. It deletes only what Spark wrote beside
        the tables before each table was put whole: EMR's S3A leaves directory markers in place.
        https://hadoop.apache.org/docs/r3.4.1/hadoop-aws/tools/hadoop-aws/directory_markers.html
        """
        buckets = self._buckets
        reports = buckets.reports
        code = (self._entry_point, self._package, self._compiled)
        tables = [reports.arn_for_objects(f"{table}/*") for table in TABLES]
        read = (
            *self._log_arns(),
            buckets.cases.arn_for_objects("cases/*"),
            buckets.cases.arn_for_objects("findings/*"),
            *(asset.bucket.arn_for_objects(asset.s3_object_key) for asset in code),
        )
        yield may(["s3:GetObject"], *read, *tables)
        yield may(["s3:PutObject"], *tables, reports.arn_for_objects(f"{LOGS}/*"))
        yield may(["s3:DeleteObject"], reports.arn_for_objects(f"{STAGING}*"))
        listed = (buckets.trail, buckets.cases, reports, self._package.bucket)
        yield may(["s3:ListBucket"], *(bucket.bucket_arn for bucket in listed))
        yield from self._hub_statements()
        if not self._settings.trail.create:
            # Another owner's trail may be encrypted. Decrypt only what a CloudTrail trail wrote.
            # https://docs.aws.amazon.com/awscloudtrail/latest/userguide/create-kms-key-policy-for-cloudtrail.html
            keys = Stack.of(self).format_arn(
                service="kms", account="*", resource="key", resource_name="*"
            )
            of_a_trail = {"Null": {"kms:EncryptionContext:aws:cloudtrail:arn": "false"}}
            yield may(["kms:Decrypt"], keys, conditions=of_a_trail)

    def _log_arns(self) -> list[str]:
        """ARNs of the trail's log files."""
        trail = self._settings.trail
        # An organization's trail has the organization's id above the accounts.
        levels_above_account = ("",) if trail.create else ("", "o-*/")
        account = "*" if self._reads_all_accounts else Stack.of(self).account
        return [
            self._buckets.trail.arn_for_objects(f"{trail.above_logs}AWSLogs/{level}{account}/*")
            for level in levels_above_account
        ]

    def _hub_statements(self) -> Iterator[iam.PolicyStatement]:
        """What only the hub's job may do: read the tables that members share.

        If it reads the trail for all accounts, it reads the members' cases instead.
        """
        organization = self._settings.organization
        if organization is None or not self._settings.is_hub:
            return
        central = self._buckets.organization
        if central:
            yield may(["s3:GetObject"], central.arn_for_objects("account=*"))
            yield may(["s3:ListBucket"], central.bucket_arn)
            return
        stack = Stack.of(self)
        case_buckets = f"arn:{stack.partition}:s3:::{case_bucket_name('*', stack.region)}"
        of_members = {"StringEquals": {"aws:ResourceOrgID": organization.id}}
        keys = (f"{case_buckets}/cases/*", f"{case_buckets}/findings/*")
        yield may(["s3:GetObject"], *keys, conditions=of_members)
        yield may(["s3:ListBucket"], case_buckets, conditions=of_members)


def _application(scope: Construct, settings: NightlySettings) -> emr.CfnApplication:
    """An application that starts with a job run and stops when it is idle."""
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
