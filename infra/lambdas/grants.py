"""Grants: the IAM statements that Lambdas need, each made from what the stack holds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from aws_cdk import Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam

from infra.nightly import Nightly
from infra.queue_grants import (
    Kinds,
    Statements,
    look_statements,
    redrive_statements,
    write_statements,
)
from infra.roles import may
from infra.settings.deployment import DeploymentSettings
from infra.storage import Buckets
from infra.topics import Topics
from mendq.cases import open_case_index
from mendq.model.case import EVENT_SOURCE, NOTIFICATION_EVENT, TRANSITION_EVENT
from mendq.model.facts import ReadAction
from mendq.model.limits import Consent
from mendq.model.steps import RedriveMessages
from mendq.nightly.verdict import NIGHTLY_RUNS, SHARED_TABLES, member_key


@dataclass(frozen=True)
class Work:
    """What the Lambdas work with. All of it is made before the Lambdas.

    Attributes:
        stack: the stack that the Lambdas belong to.
        settings: what the user has set, as it holds for this stack.
        consent: which queues Mendq manages, and how far it may go there.
        case_store: the case table.
        buckets: buckets of the trail, the cases and the reports.
        topics: topics of urgent and other notifications, and of the teams.
        nightly: the nightly job; None if the settings leave it out.
    """

    stack: Stack
    settings: DeploymentSettings
    consent: Consent
    case_store: dynamodb.Table
    buckets: Buckets
    topics: Topics
    nightly: Nightly | None

    @property
    def job(self) -> Nightly:
        """The nightly job, for Lambdas that exist only together with it."""
        assert self.nightly is not None  # noqa: S101 - `every_lambda` leaves those Lambdas out
        return self.nightly


Grant = Callable[[Work], Iterable[iam.PolicyStatement]]


def moves_cases(work: Work) -> Statements:
    """Write single items of the case store, and one new object for each transition.

    A transaction needs the actions of its parts.
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis-iam.html
    """
    verbs = ("Get", "Put", "Update", "Delete")
    yield may([f"dynamodb:{verb}Item" for verb in verbs], work.case_store.table_arn)
    yield may(["s3:PutObject"], work.buckets.cases.arn_for_objects("cases/*"))


def files_cases(work: Work) -> Statements:
    """Send an event for each transition, also for those that another Lambda recorded."""
    yield _puts_events(work, TRANSITION_EVENT)


def _puts_events(work: Work, detail_type: str) -> iam.PolicyStatement:
    """Send events of Mendq's own source and of one type; the role can imitate no other event."""
    only = {"events:source": EVENT_SOURCE, "events:detail-type": detail_type}
    bus = work.stack.format_arn(service="events", resource="event-bus", resource_name="default")
    return may(["events:PutEvents"], bus, conditions={"StringEquals": only})


def notifies(work: Work) -> Statements:
    """Send notifications of both severities to Mendq's topics and to every team's."""
    yield _puts_events(work, NOTIFICATION_EVENT)
    for topic in (work.topics.urgent, work.topics.info, *work.topics.teams):
        yield from topic.publishing()


def asks_for_freezes(work: Work) -> Statements:
    """Check for a change freeze while claiming a case. Rollback needs none: no freeze stops it."""
    yield may(["dynamodb:ConditionCheckItem"], work.case_store.table_arn)
    if work.settings.freeze_calendars:
        yield may(["ssm:GetCalendarState"], *work.settings.freeze_calendars)


def reads_cases(work: Work) -> Statements:
    """Read all transitions of one case, or the newest cases about one queue."""
    yield may(["dynamodb:Query"], work.case_store.table_arn)


def lists_open_cases(work: Work) -> Statements:
    """List open cases in the order in which they are due."""
    yield may(["dynamodb:Query"], f"{work.case_store.table_arn}/index/{open_case_index.OPEN_CASES}")


def notes_findings(work: Work) -> Statements:
    """Write the scan's own items of the case store, and one object each hour."""
    yield may(["dynamodb:GetItem", "dynamodb:UpdateItem"], work.case_store.table_arn)
    yield may(["s3:GetObject", "s3:PutObject"], work.buckets.cases.arn_for_objects("findings/*"))


@dataclass(frozen=True)
class ReadsFacts:
    """Make the reads that facts need."""

    actions: Collection[ReadAction]

    def __call__(self, work: Work) -> Statements:
        """Return the statements that allow these reads."""
        return look_statements(work.stack, self.actions)


@dataclass(frozen=True)
class WritesQueues:
    """Take these steps on managed queues. The steps of redrive also move messages."""

    kinds: Kinds

    def __call__(self, work: Work) -> Statements:
        """Return the statements that allow these steps."""
        if RedriveMessages in self.kinds:
            return redrive_statements(work.stack, work.settings)
        return write_statements(work.stack, work.settings, self.kinds)


def probes(work: Work) -> Statements:
    """Record each probe that is sent, and page if several were lost."""
    verbs = ("Get", "Put", "Update")
    yield may([f"dynamodb:{verb}Item" for verb in verbs], work.case_store.table_arn)
    yield _puts_events(work, NOTIFICATION_EVENT)
    yield from work.topics.urgent.publishing()


def starts_jobs(work: Work) -> Statements:
    """Start job runs. It may pass the job's role to EMR Serverless and to no other service."""
    actions = ["emr-serverless:ListJobRuns", "emr-serverless:StartJobRun"]
    yield may(actions, work.job.application.attr_arn)
    to_emr = {"StringEquals": {"iam:PassedToService": "emr-serverless.amazonaws.com"}}
    yield may(["iam:PassRole"], work.job.role.role_arn, conditions=to_emr)


def checks_jobs(work: Work) -> Statements:
    """Read the records of nightly runs, ask EMR about them, and list weeks."""
    runs = f"{work.job.application.attr_arn}/jobruns/*"
    yield may(["emr-serverless:GetJobRun"], runs)
    yield may(["s3:GetObject"], work.buckets.reports.arn_for_objects(f"{NIGHTLY_RUNS}/*"))
    listed = {"StringLike": {"s3:prefix": [f"{NIGHTLY_RUNS}/*", "summary/*"]}}
    yield may(["s3:ListBucket"], work.buckets.reports.bucket_arn, conditions=listed)


def shares(work: Work) -> Statements:
    """Copy tables below the stack's own prefix of the organization's bucket, if there is one.

    The bucket's own policy lets each account write below its own prefix only.
    """
    central = work.buckets.organization
    if central is None:
        return
    tables = [work.buckets.reports.arn_for_objects(f"{table}/*") for table in SHARED_TABLES]
    yield may(["s3:GetObject"], *tables)
    mine = member_key(work.stack.account, work.stack.region)
    yield may(["s3:PutObject"], central.arn_for_objects(f"{mine}/*"))
    yield may(["iam:ListAccountAliases"], "*")


def delivers(work: Work) -> Statements:
    """Write the report's page from the summary, and notify people. It reads back what it delivered.

    If an organization denies the account's alias, the report shows the account's id only.
    """
    reports = work.buckets.reports
    yield may(["iam:ListAccountAliases"], "*")
    yield may(["s3:GetObject"], reports.arn_for_objects("summary/*"))
    yield may(["s3:PutObject"], reports.arn_for_objects("report/*"))
    yield may(["s3:GetObject"], reports.arn_for_objects("report/*/delivered/*"))
    yield from work.topics.info.publishing()
    yield from _mails(work)


def _mails(work: Work) -> Statements:
    """Send mail from the sender's address only. A raw mail needs both actions.

    SES also asks for the permission on a recipient that is an identity of the account, as in SES's
    sandbox, and on the sender's configuration set, which is set in SES. An address counts as
    verified if it, its domain or a domain above is. Not tried on AWS.
    https://docs.aws.amazon.com/ses/latest/dg/control-user-access.html
    """
    sender = work.settings.report.sender
    recipients = work.settings.report.recipients
    if sender is None or not recipients:
        return
    identities: dict[str, None] = {}
    for address in (sender, *recipients):
        identities[address] = None
        identities.update(dict.fromkeys(_domains_of(address)))
    resources = [("identity", name) for name in identities]
    resources.append(("configuration-set", "*"))
    arns = [
        work.stack.format_arn(service="ses", resource=kind, resource_name=name)
        for kind, name in resources
    ]
    from_sender = {"StringEquals": {"ses:FromAddress": sender}}
    yield may(["ses:SendEmail", "ses:SendRawEmail"], *arns, conditions=from_sender)


def _domains_of(address: str) -> Iterator[str]:
    """The address's domain and the domains above it, except the top-level domain."""
    labels = address.rpartition("@")[2].lower().split(".")
    for start in range(len(labels) - 1):
        yield ".".join(labels[start:])
