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
from infra.storage import LOG_PREFIX, TABLE_PREFIXES, Buckets
from mendq.model.names import NIGHTLY_ROLE_PURPOSE, case_bucket_name
from mendq.model.settings import (
    DEFAULT_SPARK_WORKER,
    ORGANIZATION_SCOPE,
    count_executors_within,
    count_workers_within,
)

# This release has Spark 3.5.8; pyspark is pinned to the same version.
# https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/release-version-7140.html
EMR_RELEASE = "emr-7.14.0"
MAXIMUM_IDLE_MINUTES = 15
# Key prefix in the report bucket. Spark first writes there; then the job puts each table in place.
STAGING_PREFIX = "quality/.writing-"


class JobCodeUris(Struct, frozen=True):
    """S3 URIs of the code that a job run loads."""

    entry_point: str
    package: str
    compiled_packages: str


class JobRoots(Struct, frozen=True):
    """S3 URIs that a job run reads (`trail`, `cases`) and writes (`output_root`, `logs`)."""

    trail: str
    cases: str
    output_root: str
    logs: str


class NightlyJob(Construct):
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
        self._package = assets.Asset(self, "Package", path=str(code.modules_path))
        self._package_archive = assets.Asset(self, "Compiled", path=str(code.package_archive))
        self.application = _make_application(self, settings.nightly)
        self.role = make_role(
            self,
            "Role",
            purpose=NIGHTLY_ROLE_PURPOSE,
            service="emr-serverless",
            description="Mendq: reads the trail and the cases, writes incidents and summaries",
        )
        for statement in self._list_role_statements():
            self.role.add_to_policy(statement)

    @property
    def code(self) -> JobCodeUris:
        """S3 URIs of the code that a job run loads."""
        return JobCodeUris(
            entry_point=self._entry_point.s3_object_url,
            package=self._package.s3_object_url,
            compiled_packages=self._package_archive.s3_object_url,
        )

    @property
    def roots(self) -> JobRoots:
        """S3 URIs of the roots that a job run reads and writes."""
        trail_bucket_name = self._buckets.trail.bucket_name
        report_bucket_name = self._buckets.reports.bucket_name
        return JobRoots(
            trail=f"s3://{trail_bucket_name}/{self._settings.trail.log_key_prefix}".rstrip("/"),
            cases=f"s3://{self._case_bucket}/cases",
            output_root=f"s3://{report_bucket_name}",
            logs=f"s3://{report_bucket_name}/{LOG_PREFIX}/",
        )

    @property
    def maximum_executors(self) -> int:
        """The largest number of Spark executors, besides the driver, that the limits allow."""
        nightly_settings = self._settings.nightly
        return count_executors_within(
            nightly_settings.maximum_vcpu, nightly_settings.maximum_memory_gb
        )

    @property
    def organization_root(self) -> str | None:
        """S3 URI of the tables of all accounts, for the hub's job; None in other stacks."""
        if not self._settings.is_hub:
            return None
        table_bucket = self._buckets.organization or self._buckets.reports
        return f"s3://{table_bucket.bucket_name}"

    @property
    def organization_accounts(self) -> tuple[str, ...]:
        """Accounts that the hub's report must mention; empty in other stacks."""
        organization = self._settings.organization
        if organization is None or not self._settings.is_hub:
            return ()
        return organization.accounts

    @property
    def _case_bucket(self) -> str:
        """Name of the bucket from which the job reads cases.

        If the job reads for all accounts, the name contains `{account}`. The job replaces this by
        the id of each account in the trail.
        """
        if self._reads_all_accounts:
            return case_bucket_name("{account}", Stack.of(self).region)
        return self._buckets.cases.bucket_name

    def _list_role_statements(self) -> Iterator[iam.PolicyStatement]:
        """Yield the statements of the job's role.

        The role may list buckets: Hadoop first asks for a key and then lists below it, and without
        ListBucket S3 answers 403 for a missing key. The role may read the tables, because the job
        replaces them. It may delete only below STAGING_PREFIX, because EMR's S3A does not delete
        directory markers.
        https://hadoop.apache.org/docs/r3.4.1/hadoop-aws/tools/hadoop-aws/directory_markers.html
        """
        buckets = self._buckets
        report_bucket = buckets.reports
        code_assets = (self._entry_point, self._package, self._package_archive)
        table_arns = [report_bucket.arn_for_objects(f"{table}/*") for table in TABLE_PREFIXES]
        readable_object_arns = (
            *self._list_log_arns(),
            buckets.cases.arn_for_objects("cases/*"),
            buckets.cases.arn_for_objects("findings/*"),
            *(asset.bucket.arn_for_objects(asset.s3_object_key) for asset in code_assets),
        )
        yield allow(["s3:GetObject"], *readable_object_arns, *table_arns)
        yield allow(["s3:PutObject"], *table_arns, report_bucket.arn_for_objects(f"{LOG_PREFIX}/*"))
        yield allow(["s3:DeleteObject"], report_bucket.arn_for_objects(f"{STAGING_PREFIX}*"))
        listable_buckets = (buckets.trail, buckets.cases, report_bucket, self._package.bucket)
        yield allow(["s3:ListBucket"], *(bucket.bucket_arn for bucket in listable_buckets))
        yield from self._list_hub_statements()
        if not self._settings.trail.create:
            # A trail that exists already may be encrypted. Allow to decrypt only files of a trail.
            # https://docs.aws.amazon.com/awscloudtrail/latest/userguide/create-kms-key-policy-for-cloudtrail.html
            kms_key_arn_pattern = Stack.of(self).format_arn(
                service="kms", account="*", resource="key", resource_name="*"
            )
            trail_condition = {"Null": {"kms:EncryptionContext:aws:cloudtrail:arn": "false"}}
            yield allow(["kms:Decrypt"], kms_key_arn_pattern, conditions=trail_condition)

    def _list_log_arns(self) -> list[str]:
        """Return ARN patterns of the trail's log files, of this account or of all accounts."""
        trail = self._settings.trail
        # An organization's trail has the organization's id before the account in its keys.
        key_paths_above_account = ("",) if trail.create else ("", "o-*/")
        account = "*" if self._reads_all_accounts else Stack.of(self).account
        return [
            self._buckets.trail.arn_for_objects(
                f"{trail.log_key_prefix}AWSLogs/{key_path_above_account}{account}/*"
            )
            for key_path_above_account in key_paths_above_account
        ]

    def _list_hub_statements(self) -> Iterator[iam.PolicyStatement]:
        """Yield the statements that only the hub's job needs.

        They allow reading the tables of all members. If the hub's job reads the trail for all
        accounts, members share no tables: then the statements allow reading the cases and
        findings of the members.
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
        case_bucket_arn_pattern = (
            f"arn:{stack.partition}:s3:::{case_bucket_name('*', stack.region)}"
        )
        member_condition = {"StringEquals": {"aws:ResourceOrgID": organization.id}}
        case_object_arn_patterns = (
            f"{case_bucket_arn_pattern}/cases/*",
            f"{case_bucket_arn_pattern}/findings/*",
        )
        yield allow(["s3:GetObject"], *case_object_arn_patterns, conditions=member_condition)
        yield allow(["s3:ListBucket"], case_bucket_arn_pattern, conditions=member_condition)


def _make_application(scope: Construct, settings: NightlySettings) -> emr.CfnApplication:
    """Make the EMR application.

    It starts with a job run, and stops after MAXIMUM_IDLE_MINUTES without a job run.
    """
    worker_count = count_workers_within(settings.maximum_vcpu, settings.maximum_memory_gb)
    return emr.CfnApplication(
        scope,
        "Application",
        name="mendq",
        type="SPARK",
        release_label=EMR_RELEASE,
        architecture="ARM64",
        maximum_capacity={
            "cpu": f"{settings.maximum_vcpu} vCPU",
            "memory": f"{settings.maximum_memory_gb} GB",
            "disk": f"{worker_count * DEFAULT_SPARK_WORKER.disk_gb} GB",
        },
        auto_start_configuration={"enabled": True},
        auto_stop_configuration={"enabled": True, "idleTimeoutMinutes": MAXIMUM_IDLE_MINUTES},
    )
