"""Grants: functions that return the IAM statements of a Lambda's role.

Each grant allows one kind of work. `infra/lambdas/rows.py` names the grants of each Lambda.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from aws_cdk import Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from msgspec import Struct

from infra.nightly import NightlyJob
from infra.queue_grants import (
    PolicyStatements,
    StepTypes,
    list_read_statements,
    list_redrive_statements,
    list_write_statements,
)
from infra.roles import allow, unpack_single
from infra.settings.deployment import DeploymentSettings
from infra.storage import Buckets
from infra.topics import Topics
from mendq.cases import open_case_index
from mendq.cases.partitions import ACCOUNT_PARTITION, BASELINE_PARTITION_PREFIX
from mendq.model.case import EVENT_SOURCE, NOTIFICATION_EVENT, TRANSITION_EVENT
from mendq.model.consent import Consent
from mendq.model.facts import ReadAction
from mendq.model.partitions import list_service_principals
from mendq.model.steps import RedriveMessages
from mendq.nightly.verdict import (
    NIGHTLY_FOLDER,
    TABLES_SHARED_WITH_ORGANIZATION,
    make_member_prefix,
)


class StackResources(Struct, frozen=True):
    """Resources and settings that the Lambdas work with. They are made before the Lambdas.

    Attributes:
        stack: the stack that the Lambdas belong to.
        settings: the settings of this stack.
        consent: the queues that Mendq manages, and the highest mode there.
        case_store: the case table.
        seal_table: the table of seal keys.
        buckets: buckets of the trail, the cases and the reports.
        topics: topics of urgent and other notifications, and of the teams.
        nightly: the nightly job; None if the settings leave it out.
    """

    stack: Stack
    settings: DeploymentSettings
    consent: Consent
    case_store: dynamodb.Table
    seal_table: dynamodb.Table
    buckets: Buckets
    topics: Topics
    nightly: NightlyJob | None

    @property
    def job(self) -> NightlyJob:
        """The nightly job.

        Only the grants, settings and triggers of Lambdas that are left out without the nightly job
        may read this.
        """
        assert self.nightly is not None  # noqa: S101 - `make_lambdas` leaves those Lambdas out
        return self.nightly


Grant = Callable[[StackResources], Iterable[iam.PolicyStatement]]


# Partitions of the case table that are about a queue. Their keys are the queues' ARNs.
_QUEUE_PARTITION_PATTERN = "arn:*:sqs:*:*:*"


def allow_case_writes(resources: StackResources) -> PolicyStatements:
    """Allow reading and writing single items of the case table, and storing transitions in S3.

    Items may be deleted only in partitions about queues. So no Lambda may delete the change freeze,
    which is in the partition about the account.

    A transaction needs the permissions of its single writes.
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis-iam.html
    """
    yield allow(
        ["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"],
        resources.case_store.table_arn,
    )
    yield allow_on_partitions(
        resources.case_store, ["dynamodb:DeleteItem"], _QUEUE_PARTITION_PATTERN
    )
    yield allow(["s3:PutObject"], resources.buckets.cases.arn_for_objects("cases/*"))


def allow_on_partitions(
    case_table: dynamodb.Table, actions: Iterable[str], *partition_patterns: str
) -> iam.PolicyStatement:
    """Allow actions on items of the case table whose partition key matches one of the patterns.

    IAM knows only the partition keys of a request's items, not their sort keys. ForAllValues also
    holds if a request has no partition key, so the condition Null requires that there is one.
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/specifying-conditions.html
    """
    conditions = {
        "ForAllValues:StringLike": {"dynamodb:LeadingKeys": list(partition_patterns)},
        "Null": {"dynamodb:LeadingKeys": "false"},
    }
    return allow(actions, case_table.table_arn, conditions=conditions)


def allow_seal_keys(resources: StackResources) -> PolicyStatements:
    """Allow reading and making the keys of seals. Only the Lambda redrive gets this right."""
    yield allow(["dynamodb:GetItem", "dynamodb:UpdateItem"], resources.seal_table.table_arn)


def allow_transition_events(resources: StackResources) -> PolicyStatements:
    """Allow sending events about transitions of cases, also of those that other Lambdas made."""
    yield _allow_events(resources, TRANSITION_EVENT)


def _allow_events(resources: StackResources, detail_type: str) -> iam.PolicyStatement:
    """Allow sending events with Mendq's own source and of one type, and no other events."""
    own_event_condition = {"events:source": EVENT_SOURCE, "events:detail-type": detail_type}
    event_bus_arn = resources.stack.format_arn(
        service="events", resource="event-bus", resource_name="default"
    )
    return allow(
        ["events:PutEvents"], event_bus_arn, conditions={"StringEquals": own_event_condition}
    )


def allow_notifications(resources: StackResources) -> PolicyStatements:
    """Allow sending notifications of both severities, as events and to SNS topics.

    The topics are Mendq's own topics and all teams' topics.
    """
    yield _allow_events(resources, NOTIFICATION_EVENT)
    for topic in (resources.topics.urgent, resources.topics.info, *resources.topics.teams):
        yield from topic.list_publish_statements()


def allow_freeze_checks(resources: StackResources) -> PolicyStatements:
    """Allow checking that changes are not frozen, by an operator or by a change calendar.

    Rollback does not need this, because a freeze does not stop a rollback.
    """
    yield allow(["dynamodb:ConditionCheckItem"], resources.case_store.table_arn)
    if resources.settings.freeze_calendars:
        yield allow(["ssm:GetCalendarState"], *resources.settings.freeze_calendars)


def allow_case_queries(resources: StackResources) -> PolicyStatements:
    """Allow reading all transitions of one case, and the newest cases of one queue."""
    yield allow(["dynamodb:Query"], resources.case_store.table_arn)


def allow_open_case_list(resources: StackResources) -> PolicyStatements:
    """Allow listing open cases in the order in which they are due."""
    index_arn = f"{resources.case_store.table_arn}/index/{open_case_index.OPEN_CASES}"
    yield allow(["dynamodb:Query"], index_arn)


def allow_finding_writes(resources: StackResources) -> PolicyStatements:
    """Allow reading and writing the scan's own records.

    These are its items in the case table, and one object of findings an hour in the case bucket.
    The scan may read every item, but write no case: it may write only the partition about the
    account and the partitions of baselines.
    """
    yield allow(["dynamodb:GetItem"], resources.case_store.table_arn)
    yield allow_on_partitions(
        resources.case_store,
        ["dynamodb:UpdateItem"],
        ACCOUNT_PARTITION,
        f"{BASELINE_PARTITION_PREFIX}*",
    )
    yield allow(
        ["s3:GetObject", "s3:PutObject"], resources.buckets.cases.arn_for_objects("findings/*")
    )


class FactReadsGrant(Struct, frozen=True):
    """A grant that allows the AWS calls in `actions`, which read facts."""

    actions: Collection[ReadAction]

    def __call__(self, resources: StackResources) -> PolicyStatements:
        """Return the IAM statements of this grant."""
        return list_read_statements(resources.stack, self.actions)


class StepsGrant(Struct, frozen=True):
    """A grant that allows `steps` on managed queues.

    If the steps are those of redrive, it allows moving messages out of managed DLQs instead.
    """

    steps: StepTypes

    def __call__(self, resources: StackResources) -> PolicyStatements:
        """Return the IAM statements of this grant."""
        if RedriveMessages in self.steps:
            return list_redrive_statements(resources.stack, resources.settings)
        return list_write_statements(resources.stack, resources.settings, self.steps)


def allow_probe_records(resources: StackResources) -> PolicyStatements:
    """Allow recording each probe that is sent, and notifying people if several were lost.

    The probe and its notification are in the partition about the account. Other partitions may not
    be read or written.
    """
    item_actions = ["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"]
    yield allow_on_partitions(resources.case_store, item_actions, ACCOUNT_PARTITION)
    yield _allow_events(resources, NOTIFICATION_EVENT)
    yield from resources.topics.urgent.list_publish_statements()


def allow_job_starts(resources: StackResources) -> PolicyStatements:
    """Allow starting job runs, and passing the job's role to EMR Serverless only."""
    actions = ["emr-serverless:ListJobRuns", "emr-serverless:StartJobRun"]
    yield allow(actions, resources.job.application.attr_arn)
    region = resources.job.role.stack.region
    emr_names = unpack_single(list_service_principals("emr-serverless", region))
    emr_condition = {"StringEquals": {"iam:PassedToService": emr_names}}
    yield allow(["iam:PassRole"], resources.job.role.role_arn, conditions=emr_condition)


def allow_job_checks(resources: StackResources) -> PolicyStatements:
    """Allow checking nightly runs.

    This means listing and reading the records of nightly runs, asking EMR about the runs, and
    listing the summaries.
    """
    job_run_arn_pattern = f"{resources.job.application.attr_arn}/jobruns/*"
    yield allow(["emr-serverless:GetJobRun"], job_run_arn_pattern)
    yield allow(["s3:GetObject"], resources.buckets.reports.arn_for_objects(f"{NIGHTLY_FOLDER}/*"))
    listing_condition = {"StringLike": {"s3:prefix": [f"{NIGHTLY_FOLDER}/*", "summary/*"]}}
    yield allow(
        ["s3:ListBucket"], resources.buckets.reports.bucket_arn, conditions=listing_condition
    )


def allow_table_sharing(resources: StackResources) -> PolicyStatements:
    """Allow copying tables to the organization's bucket, below the stack's own prefix.

    The bucket's policy lets each account write below its own prefix only. Yield nothing if there is
    no such bucket.
    """
    organization_bucket = resources.buckets.organization
    if organization_bucket is None:
        return
    table_arns = [
        resources.buckets.reports.arn_for_objects(f"{table}/*")
        for table in TABLES_SHARED_WITH_ORGANIZATION
    ]
    yield allow(["s3:GetObject"], *table_arns)
    member_table_prefix = make_member_prefix(resources.stack.account, resources.stack.region)
    yield allow(["s3:PutObject"], organization_bucket.arn_for_objects(f"{member_table_prefix}/*"))
    yield allow(["iam:ListAccountAliases"], "*")


def allow_report_delivery(resources: StackResources) -> PolicyStatements:
    """Allow reading a summary, writing the report's page, and sending the report to people.

    It also allows reading which deliveries were made. If an organization's policy denies
    iam:ListAccountAliases, the report shows only the account's id.
    """
    report_bucket = resources.buckets.reports
    yield allow(["iam:ListAccountAliases"], "*")
    yield allow(["s3:GetObject"], report_bucket.arn_for_objects("summary/*"))
    yield allow(["s3:PutObject"], report_bucket.arn_for_objects("report/*"))
    yield allow(["s3:GetObject"], report_bucket.arn_for_objects("report/*/delivered/*"))
    yield from resources.topics.info.list_publish_statements()
    yield from _allow_mail(resources)


def _allow_mail(resources: StackResources) -> PolicyStatements:
    """Allow sending mail from the sender's address only. A raw mail needs both actions.

    Nothing is allowed if the settings name no sender or no recipients.

    SES checks the permission on three resources: the sender's identity; a recipient's identity, if
    it belongs to the account, as in SES's sandbox; and the sender's configuration set, which is set
    in SES. An address is verified if the address itself, its domain or a parent domain is an
    identity, so all of these are allowed. This was not tried on AWS.
    https://docs.aws.amazon.com/ses/latest/dg/control-user-access.html
    """
    sender_address = resources.settings.report.sender
    recipient_addresses = resources.settings.report.recipients
    if sender_address is None or not recipient_addresses:
        return
    identity_names: dict[str, None] = {}
    for address in (sender_address, *recipient_addresses):
        identity_names[address] = None
        identity_names.update(dict.fromkeys(_list_domains(address)))
    resource_kinds_and_names = [("identity", name) for name in identity_names]
    resource_kinds_and_names.append(("configuration-set", "*"))
    ses_arns = [
        resources.stack.format_arn(service="ses", resource=resource_kind, resource_name=name)
        for resource_kind, name in resource_kinds_and_names
    ]
    sender_condition = {"StringEquals": {"ses:FromAddress": sender_address}}
    yield allow(["ses:SendEmail", "ses:SendRawEmail"], *ses_arns, conditions=sender_condition)


def _list_domains(address: str) -> Iterator[str]:
    """Yield the address's domain and its parent domains, except the top-level domain."""
    domain_labels = address.rpartition("@")[2].lower().split(".")
    for first_label_index in range(len(domain_labels) - 1):
        yield ".".join(domain_labels[first_label_index:])
