"""The nightly job on EMR Serverless: an application with limits, and the job's role."""

from __future__ import annotations

from collections.abc import Iterator

from aws_cdk import Stack
from aws_cdk import aws_emrserverless as emr
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3_assets as assets
from constructs import Construct
from msgspec import Struct

from infra.packaging.emr import EmrPackage
from infra.roles import allow, make_role
from infra.settings.deployment import DeploymentSettings, NightlySettings
from infra.storage import LOGS, TABLES, Buckets
from mendq.model.names import NIGHTLY_PURPOSE, case_bucket_name
from mendq.model.settings import (
    DEFAULT_WORKER,
    ORGANIZATION_SCOPE,
    executors_within,
    workers_within,
)

# This release has Spark 3.5.8; pyspark is pinned to the same version.
# https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/release-version-7140.html
RELEASE = "emr-7.14.0"
IDLE_MINUTES = 15
# Key prefix in the report bucket. Spark first writes there; then the job puts each table in place.
STAGING = "quality/.writing-"


class JobCode(Struct, frozen=True):
    """S3 URIs of the code that a job run loads."""

    entry_point: str
    package: str
    compiled_packages: str


class JobRoots(Struct, frozen=True):
    """S3 URIs below which a job run reads (`trail`, `cases`) and writes (`out`, `logs`)."""

    trail: str
    cases: str
    out: str
    logs: str


class Nightly(Construct):
    """The EMR Serverless application and the role of the nightly job.

    No workers are kept ready, so the application costs nothing between nightly runs.

    Attributes:
        application: the EMR Serverless application.
        role: the role that job runs have.
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
        self._reads_all_accounts = settings.nightly.scope == ORGANIZATION_SCOPE
        self._entry_point = assets.Asset(self, "EntryPoint", path=str(code.entry_point))
        self._package = assets.Asset(self, "Package", path=str(code.modules))
        self._compiled = assets.Asset(self, "Compiled", path=str(code.compiled))
        self.application = _application(self, settings.nightly)
        self.role = make_role(
            self,
            "Role",
            purpose=NIGHTLY_PURPOSE,
            service="emr-serverless",
            description="Mendq: reads the trail and the cases, writes incidents and summaries",
        )
        for statement in self._statements():
            self.role.add_to_policy(statement)

    @property
    def code(self) -> JobCode:
        """S3 URIs of the code that a job run loads."""
        return JobCode(
            entry_point=self._entry_point.s3_object_url,
            package=self._package.s3_object_url,
            compiled_packages=self._compiled.s3_object_url,
        )

    @property
    def roots(self) -> JobRoots:
        """S3 URIs below which a job run reads and writes."""
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
        """The most Spark executors that the application's limits allow besides the driver."""
        nightly = self._settings.nightly
        return executors_within(nightly.maximum_vcpu, nightly.maximum_memory_gb)

    @property
    def organization_root(self) -> str | None:
        """S3 URI of the tables of all accounts, for the hub's job; None in other stacks."""
        if not self._settings.is_hub:
            return None
        tables = self._buckets.organization or self._buckets.reports
        return f"s3://{tables.bucket_name}"

    @property
    def organization_accounts(self) -> tuple[str, ...]:
        """Accounts that the hub's report must mention; empty in other stacks."""
        organization = self._settings.organization
        if organization is None or not self._settings.is_hub:
            return ()
        return organization.accounts

    @property
    def _case_bucket(self) -> str:
        """Name of the bucket that cases are read from.

        If the job reads for all accounts, the name contains `{account}`. The job replaces it by
        each account in the trail.
        """
        if self._reads_all_accounts:
            return case_bucket_name("{account}", Stack.of(self).region)
        return self._buckets.cases.bucket_name

    def _statements(self) -> Iterator[iam.PolicyStatement]:
        """Yield the statements of the job's role.

        The role may list buckets: Hadoop first asks for a key and then lists below it, and without
        ListBucket S3 answers 403 for a missing key. It may read the tables that it replaces. It may
        delete only below STAGING, because EMR's S3A does not delete directory markers.
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
        yield allow(["s3:GetObject"], *read, *tables)
        yield allow(["s3:PutObject"], *tables, reports.arn_for_objects(f"{LOGS}/*"))
        yield allow(["s3:DeleteObject"], reports.arn_for_objects(f"{STAGING}*"))
        listed = (buckets.trail, buckets.cases, reports, self._package.bucket)
        yield allow(["s3:ListBucket"], *(bucket.bucket_arn for bucket in listed))
        yield from self._hub_statements()
        if not self._settings.trail.create:
            # A trail that exists already may be encrypted. Allow to decrypt only files of a trail.
            # https://docs.aws.amazon.com/awscloudtrail/latest/userguide/create-kms-key-policy-for-cloudtrail.html
            keys = Stack.of(self).format_arn(
                service="kms", account="*", resource="key", resource_name="*"
            )
            is_trail = {"Null": {"kms:EncryptionContext:aws:cloudtrail:arn": "false"}}
            yield allow(["kms:Decrypt"], keys, conditions=is_trail)

    def _log_arns(self) -> list[str]:
        """Return ARN patterns of the trail's log files, of this account or of all accounts."""
        trail = self._settings.trail
        # An organization's trail has the organization's id before the account in its keys.
        levels_above_account = ("",) if trail.create else ("", "o-*/")
        account = "*" if self._reads_all_accounts else Stack.of(self).account
        return [
            self._buckets.trail.arn_for_objects(f"{trail.above_logs}AWSLogs/{level}{account}/*")
            for level in levels_above_account
        ]

    def _hub_statements(self) -> Iterator[iam.PolicyStatement]:
        """Yield the statements that only the hub's job needs, to read the members' tables.

        If the hub's job reads the trail for all accounts, members share no tables: the job reads
        the members' cases instead.
        """
        organization = self._settings.organization
        if organization is None or not self._settings.is_hub:
            return
        organization_bucket = self._buckets.organization
        if organization_bucket:
            yield allow(["s3:GetObject"], organization_bucket.arn_for_objects("account=*"))
            yield allow(["s3:ListBucket"], organization_bucket.bucket_arn)
            return
        stack = Stack.of(self)
        case_buckets = f"arn:{stack.partition}:s3:::{case_bucket_name('*', stack.region)}"
        of_members = {"StringEquals": {"aws:ResourceOrgID": organization.id}}
        keys = (f"{case_buckets}/cases/*", f"{case_buckets}/findings/*")
        yield allow(["s3:GetObject"], *keys, conditions=of_members)
        yield allow(["s3:ListBucket"], case_buckets, conditions=of_members)


def _application(scope: Construct, settings: NightlySettings) -> emr.CfnApplication:
    """Make an application that starts with a job run and stops after IDLE_MINUTES without one."""
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
            "disk": f"{workers * DEFAULT_WORKER.disk_gb} GB",
        },
        auto_start_configuration={"enabled": True},
        auto_stop_configuration={"enabled": True, "idleTimeoutMinutes": IDLE_MINUTES},
    )
